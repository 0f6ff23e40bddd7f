"""The ways that layers take on CUDA, taken on the CPU: they find what torch's own do."""

import pytest
import torch
from torch import nn

from wordwing.model import layers, mapping
from wordwing.model.layers import (
    channels_last,
    convolution,
    convolve,
    convolve_image,
    filter_by_text,
    mean_convolution,
    twice_as_large,
)


@pytest.fixture
def as_on_cuda(monkeypatch):
    """Layers take the ways that are fast on tensor cores."""
    monkeypatch.setattr(layers, "on_cuda", lambda _features: True)


def test_features_on_cuda_lie_pixel_by_pixel(as_on_cuda):
    features = torch.randn(2, 5, 4, 3)
    assert channels_last(features).stride() == (60, 1, 15, 5)
    assert torch.equal(channels_last(features), features)
    assert filter_by_text(features, torch.randn(2, 6, 5)).is_contiguous(memory_format=torch.channels_last)
    colours = torch.randn(2, 3, 6, 8)
    assert convolve_image(convolution(3, 7), colours).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("own", "inputs", "outputs", "stride"),
    [(convolve_image, 3, 6, 1), (convolve, 2, 3, 1), (convolve, 8, 8, 1), (mean_convolution, 5, 2, 2)],
)
def test_a_convolution_on_cuda_is_torchs_with_all_its_gradients(as_on_cuda, own, inputs, outputs, stride):
    torch.manual_seed(0)
    layer = convolution(inputs, outputs, stride).double()
    nn.init.normal_(layer.bias)
    features = torch.randn(3, inputs, 8, 12, dtype=torch.float64, requires_grad=True)
    mine = own(layer, features)
    theirs = layer(features) if own is not mean_convolution else layer(features).mean((2, 3))
    assert torch.allclose(mine, theirs)
    weights = torch.randn_like(mine)
    asked = (features, layer.weight, layer.bias)
    for found, expected in zip(
        torch.autograd.grad((mine * weights).sum(), asked),
        torch.autograd.grad((theirs * weights).sum(), asked),
        strict=True,
    ):
        assert torch.allclose(found, expected)


def test_each_pixel_becomes_four_on_cuda_as_on_the_cpu(monkeypatch):
    features = torch.randn(2, 3, 4, 5)
    expected = twice_as_large(features)
    monkeypatch.setattr(layers, "on_cuda", lambda _features: True)
    assert torch.equal(twice_as_large(features), expected)


def test_each_sample_is_filtered_on_cuda_as_on_the_cpu(monkeypatch):
    features, kernels = torch.randn(4, 6, 5, 3), torch.randn(4, 2, 6)
    expected = filter_by_text(features, kernels)
    monkeypatch.setattr(layers, "on_cuda", lambda _features: True)
    assert torch.allclose(filter_by_text(features, kernels), expected, atol=1e-5)


def test_features_are_sampled_on_cuda_as_on_the_cpu_and_so_are_gradients(monkeypatch):
    torch.manual_seed(0)
    features = torch.randn(3, 5, 6, 9, requires_grad=True)
    where = 2.4 * torch.rand(3, 8, 8, 2) - 1.2
    edge = torch.tensor([1 - 1 / 9, 1 - 1 / 6])  # the middles of the outermost features
    where = torch.where((where.abs() <= 1).all(-1, keepdim=True), where.clamp(-edge, edge), 2.0)
    assert 0.3 < (where[..., 0] < 2).float().mean() < 0.9
    weights = torch.randn(3, 5, 8, 8)
    results = []
    for own in (False, True):
        monkeypatch.setattr(mapping, "on_cuda", lambda _features, own=own: own)
        found = mapping._sample(features, where)
        results.append((found, *torch.autograd.grad((found * weights).sum(), features)))
    assert not results[0][0].is_contiguous(memory_format=torch.channels_last)
    assert results[1][0].is_contiguous(memory_format=torch.channels_last)
    for expected, found in zip(*results, strict=True):
        assert torch.allclose(found, expected, atol=1e-5)
