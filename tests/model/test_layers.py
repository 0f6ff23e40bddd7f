"""Shared layers against torch's own."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from wordwing.model.layers import (
    convolution,
    count_parameters,
    filter_by_text,
    instance_norm,
    leaky,
    single_precision,
)


@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_instance_norm_is_torchs_with_nothing_learned(layout):
    torch.manual_seed(0)
    features = (3 * torch.randn(3, 5, 7, 9) + 2).contiguous(memory_format=layout)
    assert torch.allclose(instance_norm(features), functional.instance_norm(features), atol=1e-5)


def test_instance_norm_of_a_constant_channel_is_zero():
    assert instance_norm(torch.full((2, 3, 4, 4), 7.0)).abs().max() < 1e-3


def test_instance_norm_of_two_values_is_minus_one_and_one():
    halves = torch.tensor([3.0, 3.0, 7.0, 7.0]).expand(1, 1, 4, 4)
    assert torch.allclose(instance_norm(halves)[0, 0, 0], torch.tensor([-1.0, -1.0, 1.0, 1.0]), atol=1e-5)


def test_leaky_lets_a_hundredth_of_the_negative_through():
    assert leaky(torch.tensor([-2.0, 0.0, 3.0])).tolist() == pytest.approx([-0.02, 0.0, 3.0])
    assert leaky(torch.tensor([-2.0]), 0.2).tolist() == pytest.approx([-0.4])


def test_each_sample_is_filtered_by_its_own_text():
    torch.manual_seed(0)
    features, kernels = torch.randn(4, 6, 5, 3), torch.randn(4, 2, 6)
    filtered = filter_by_text(features, kernels)
    assert filtered.shape == (4, 2, 5, 3)
    for sample, kernel, found in zip(features, kernels, filtered, strict=True):
        assert torch.allclose(found, functional.conv2d(sample[None], kernel[:, :, None, None])[0], atol=1e-5)


def test_a_convolution_keeps_or_halves_the_size_and_begins_with_kaiming_weights():
    torch.manual_seed(0)
    layer = convolution(20, 30)
    bound = math.sqrt(6 / (1 + 0.01**2) / (20 * 9))
    assert 0.98 * bound < layer.weight.abs().max() <= bound
    assert not layer.bias.any()
    assert layer(torch.zeros(1, 20, 18, 32)).shape == (1, 30, 18, 32)
    assert convolution(20, 30, stride=2)(torch.zeros(1, 20, 18, 32)).shape == (1, 30, 9, 16)


def test_in_single_precision_nothing_is_rounded_and_afterwards_it_is():
    layer, inputs = nn.Linear(9, 9), torch.randn(2, 9)
    with torch.autocast("cpu", torch.bfloat16):
        with single_precision(torch.device("cpu")):
            assert layer(inputs).dtype == torch.float32
        assert layer(inputs).dtype == torch.bfloat16


def test_only_what_is_learned_counts_as_a_parameter():
    module = nn.Linear(3, 2)
    module.register_buffer("drawn", torch.zeros(100))
    assert count_parameters(module) == 8
    module.bias.requires_grad_(False)
    assert count_parameters(module) == 6
