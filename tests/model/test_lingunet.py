"""LingUNet against the paper's equations, once in numpy and once by hand."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from plain_layers import Array, convolve, leaky, linear, norm, twice
from wordwing.model.layers import count_parameters
from wordwing.model.lingunet import LingUNet, LingUNetConfig, UnobservedHead


def tiny(unobserved: bool = True, levels: int = 5) -> LingUNet:
    """Few channels, a different number of each kind; biases and text kernels that matter."""
    torch.manual_seed(levels)
    network = LingUNet(LingUNetConfig(levels, channels=3, filtered=2, last=4), 5, 6, unobserved=unobserved)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.3)
            if name in ("up.0.second.weight", "head.second.weight"):  # which begin quietly
                parameter.mul_(10)
    return network


def papers_equations(network: LingUNet, maps: Array, text: Array) -> tuple[Array, Array]:
    """H_1 and h of one sample, with the norms and activations of the authors' table of layers."""
    levels = len(network.down)
    f, g = {0: maps}, {}
    for k in range(1, levels + 1):
        down = network.down[k - 1]
        f[k] = leaky(convolve(leaky(convolve(f[k - 1], down.first)), down.second))
        if k < levels:
            f[k] = norm(f[k])
        kernel = linear(text, network.kernel[k - 1]).reshape(-1, 3)  # K_k
        g[k] = np.einsum("kc,chw->khw", kernel, f[k])
        if k < levels:
            g[k] = norm(g[k])
    h = {}
    for k in range(levels, 0, -1):
        up = network.up[k - 1]
        below = g[k] if k == levels else np.concatenate([h[k + 1], g[k]])
        h[k] = convolve(twice(leaky(convolve(below, up.first))), up.second)
        if k > 1:
            h[k] = leaky(h[k]) if k == levels else norm(leaky(h[k]))
    scores = convolve(leaky(convolve(h[2], network.head.first)), network.head.second)
    return h[1], scores.mean((1, 2))


@pytest.mark.parametrize(("levels", "size"), [(5, 64), (5, 32), (3, 64), (2, 16)])
def test_lingunet_reproduces_the_papers_equations(levels, size):
    network = tiny(levels=levels)
    maps, texts = torch.randn(2, 5, size, size), torch.randn(2, 6)
    found = network(maps, network.kernels(texts))
    assert found.cells.shape == (2, 2, size, size)
    for i in range(2):
        cells, unobserved = papers_equations(network, maps[i].double().numpy(), texts[i].double().numpy())
        assert np.allclose(found.cells[i].detach(), cells, atol=2e-3 * np.abs(cells).max())
        assert np.allclose(found.unobserved[i].detach(), unobserved, atol=2e-3 * np.abs(unobserved).max())


def test_text_kernels_are_a_linear_function_of_the_instruction_at_each_level():
    network, texts = tiny(), torch.randn(3, 6)
    kernels = network.kernels(texts)
    assert [kernel.shape for kernel in kernels] == [(3, 2, 3)] * 4 + [(3, 3, 3)]
    for kernel, layer in zip(kernels, network.kernel, strict=True):
        for found, text in zip(kernel, texts, strict=True):
            assert np.allclose(found.detach().flatten(), linear(text.double().numpy(), layer), atol=1e-5)


def set_middle(layer: nn.Conv2d, rows: list[list[float]], biases: list[float]) -> None:
    """A 3×3 convolution that looks at the middle alone; all other weights are zero."""
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.zero_()
        weights = torch.tensor(rows)
        layer.weight[: len(weights), : weights.shape[1], 1, 1] = weights
        layer.bias[: len(biases)] = torch.tensor(biases)


def test_lingunet_with_five_levels_gives_a_result_worked_out_by_hand():
    network = LingUNet(LingUNetConfig(5, channels=1, filtered=1, last=1), 1, 1, unobserved=True)
    # The map has one value in its left half and another in its right, written (left, right). No filter looks
    # sideways, so every layer has two values, and a norm makes of them -1 and 1, or 1 and -1.
    maps = torch.zeros(1, 1, 64, 64)
    maps[..., 32:] = 2.0
    for down in network.down:
        set_middle(down.first, [[1.0]], [0.0])
        set_middle(down.second, [[1.0]], [0.0])
    # F_1 = norm(0, 2) = (-1, 1); also F_2, F_3, F_4, since (-1, 1) becomes (-0.0001, 1) and then (-1, 1) again.
    # F_5 = (-0.0001, 1), without a norm.
    # The text is u = 2, and K = w u + b:
    for layer, w, b in zip(network.kernel, [0.5, 1.0, 2.0, -1.0, 1.5], [1.0, -1.0, -1.0, 1.0, 1.0], strict=True):
        nn.init.constant_(layer.weight, w)
        nn.init.constant_(layer.bias, b)
    # K_1 … K_5 = 2, 1, 3, -1, 4, so after the norm G_1 = G_2 = G_3 = (-1, 1), G_4 = (1, -1); and G_5 = (-0.0004, 4).
    h5, h4, h3, h2, h1 = reversed(network.up)
    set_middle(h5.first, [[1.0]], [0.0])  # (-0.000004, 4) behind the LeakyReLU
    set_middle(h5.second, [[1.0]], [1.0])  # H_5 = (1, 5), without a norm
    set_middle(h4.first, [[1.0, 1.5]], [0.0])  # 1 · (1, 5) + 1.5 · (1, -1) = (2.5, 3.5)
    set_middle(h4.second, [[1.0]], [0.0])  # H_4 = norm(2.5, 3.5) = (-1, 1)
    set_middle(h3.first, [[-3.0, 1.0]], [0.0])  # -3 · (-1, 1) + (-1, 1) = (2, -2), LeakyReLU: (2, -0.02)
    set_middle(h3.second, [[1.0]], [0.0])  # H_3 = norm(2, -0.0002) = (1, -1)
    set_middle(h2.first, [[2.0, 1.0]], [0.0])  # 2 · (1, -1) + (-1, 1) = (1, -1), LeakyReLU: (1, -0.01)
    set_middle(h2.second, [[1.0]], [0.0])  # H_2 = norm(1, -0.0001) = (1, -1)
    set_middle(h1.first, [[3.0, 1.0], [-1.0, 1.0]], [0.5, 0.0])
    # 3 · (1, -1) + (-1, 1) + 0.5 = (2.5, -1.5), LeakyReLU: (2.5, -0.015)
    #    -(1, -1) + (-1, 1)       = (-2, 2),     LeakyReLU: (-0.02, 2)
    set_middle(h1.second, [[1.0, 0.0], [1.0, 2.0]], [0.25, -1.0])
    # H_1 of the trajectory: (2.5 + 0.25, -0.015 + 0.25)              = (2.75, 0.235)
    #     of the goal:       (2.5 + 2 · -0.02 - 1, -0.015 + 2 · 2 - 1) = (1.46, 2.985)
    set_middle(network.head.first, [[2.0]], [1.0])  # 2 · (1, -1) + 1 = (3, -1), LeakyReLU: (3, -0.01)
    set_middle(network.head.second, [[1.0], [-2.0]], [0.5, 0.0])
    # h = mean(3.5, 0.49) = 1.995 and mean(-6, 0.02) = -2.99
    found = network(maps, network.kernels(torch.tensor([[2.0]])))
    trajectory, goal = found.cells[0].detach()
    assert trajectory[:, :32].numpy() == pytest.approx(2.75, abs=1e-3)
    assert trajectory[:, 32:].numpy() == pytest.approx(0.235, abs=1e-3)
    assert goal[:, :32].numpy() == pytest.approx(1.46, abs=1e-3)
    assert goal[:, 32:].numpy() == pytest.approx(2.985, abs=1e-3)
    assert found.unobserved[0].tolist() == pytest.approx([1.995, -2.99], abs=1e-3)


def test_the_wide_lingunet_has_the_authors_parameters_but_those_of_the_skip_that_its_head_does_not_see():
    wide = LingUNet(LingUNetConfig.wide(), 35, 50, unobserved=True)
    assert count_parameters(wide) == 1_488_926 == 1_492_382 - 24 * 9 * 16
    assert count_parameters(wide.down[0]) == 26_228
    assert [count_parameters(down) for down in wide.down[1:]] == [41_568] * 4
    assert [count_parameters(kernel) for kernel in wide.kernel] == [58_752] * 4 + [117_504]
    assert count_parameters(wide.up[1]) == 756_224
    assert count_parameters(wide.up[0]) == 5_080


def convolution_parameters(*widths: int) -> int:
    """Of 3×3 convolutions in a row, with biases."""
    return sum(9 * a * b + b for a, b in pairwise(widths))


def test_the_default_lingunet_has_half_the_parameters_because_its_last_layers_are_narrow():
    narrow = LingUNet(LingUNetConfig(), 35, 50, unobserved=True)
    saved = convolution_parameters(72, 256, 256) - convolution_parameters(72, 48, 48)  # H_2
    saved += convolution_parameters(280, 2, 2) - convolution_parameters(72, 2, 2)  # H_1
    saved += convolution_parameters(256, 16, 2) - convolution_parameters(48, 16, 2)  # h
    assert count_parameters(narrow) == 1_488_926 - saved == 750_942


def test_the_earlier_pvn_has_no_head_and_the_same_scores_of_cells():
    with_head, without = tiny(), tiny(unobserved=False)
    shared = {name: tensor for name, tensor in with_head.state_dict().items() if not name.startswith("head")}
    without.load_state_dict(shared)
    maps, texts = torch.randn(1, 5, 64, 64), torch.randn(1, 6)
    found = without(maps, without.kernels(texts))
    assert found.unobserved is None
    assert torch.equal(found.cells, with_head(maps, with_head.kernels(texts)).cells)
    assert count_parameters(with_head) - count_parameters(without) == convolution_parameters(4, 16, 2)


def test_another_instruction_gives_other_scores_on_the_same_map():
    network = tiny()
    maps = torch.randn(1, 5, 64, 64).expand(2, -1, -1, -1)
    found = network(maps, network.kernels(torch.randn(2, 6)))
    assert (found.cells[0] - found.cells[1]).abs().max() > 1e-2
    assert (found.unobserved[0] - found.unobserved[1]).abs().max() > 1e-2


def test_half_precision_does_not_make_all_scores_of_the_unobserved_the_same():
    torch.manual_seed(0)
    head = UnobservedHead(48)
    features = torch.randn(16, 48, 32, 32)
    full = head(features)[:, 0].detach()
    with torch.autocast("cpu", torch.bfloat16):
        half = head(features)[:, 0].detach()
    assert full.std() < 0.02  # around 6, bf16 has steps of 0.03
    assert np.corrcoef(half, full)[0, 1] > 0.99


def test_a_kernel_too_few_is_refused():
    network = tiny()
    with pytest.raises(ValueError, match="zip"):
        network(torch.zeros(1, 5, 64, 64), network.kernels(torch.zeros(1, 6))[:4])


def test_an_untrained_network_hardly_prefers_any_place_and_gives_the_unobserved_the_weight_of_400_cells():
    for seed in range(3):
        torch.manual_seed(seed)
        network = LingUNet(LingUNetConfig(), 35, 50, unobserved=True)
        found = network(torch.randn(4, 35, 64, 64), network.kernels(0.3 * torch.randn(4, 50)))
        assert found.cells.std() < 0.5
        assert found.unobserved.exp().mean().item() == pytest.approx(400, rel=0.3)
