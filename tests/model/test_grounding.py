"""The grounding map against numpy."""

import numpy as np
import torch

from plain_layers import leaky, linear, norm
from wordwing.model.layers import count_parameters
from wordwing.model.stage1 import Grounding


def test_the_grounding_has_as_many_parameters_as_the_authors():
    assert count_parameters(Grounding(50, 32, 3)) == 4896 == (50 + 1) * 3 * 32


def test_kernels_and_map_are_the_papers_with_a_norm_behind():
    torch.manual_seed(0)
    grounding = Grounding(hidden=5, channels=4, outputs=3)
    texts, maps = torch.randn(3, 5), torch.randn(3, 4, 8, 8)
    kernels = grounding.kernels(texts)
    found = grounding(maps, kernels).detach()
    for i in range(3):
        kernel = linear(texts[i].double().numpy(), grounding.kernel).reshape(3, 4)
        assert np.allclose(kernels[i].detach(), kernel, atol=1e-5)
        filtered = np.zeros((3, 8, 8))
        for k in range(3):
            for c in range(4):
                filtered[k] += kernel[k, c] * maps[i, c].double().numpy()
        assert np.allclose(found[i], norm(leaky(filtered)), atol=1e-4)


def test_a_louder_kernel_says_the_same_and_the_opposite_one_does_not():
    torch.manual_seed(0)
    grounding = Grounding(hidden=5, channels=4, outputs=3)
    maps, kernels = torch.randn(1, 4, 8, 8), torch.randn(1, 3, 4)
    found = grounding(maps, kernels)
    assert torch.allclose(grounding(maps, 7 * kernels), found, atol=1e-3)
    assert not torch.allclose(grounding(maps, -kernels), found, atol=0.5)
