"""Shared layers against torch's own."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional

from wordwing.model import layers
from wordwing.model.layers import (
    channels_last,
    convolution,
    convolve_image,
    convolve_thin,
    count_parameters,
    filter_by_text,
    instance_norm,
    leaky,
    mean_convolution,
    single_precision,
    twice_as_large,
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


@pytest.fixture
def as_on_cuda(monkeypatch):
    """Layers take the ways that are fast on tensor cores."""
    monkeypatch.setattr(layers, "on_cuda", lambda _features: True)


def test_features_on_cuda_lie_pixel_by_pixel(as_on_cuda):
    features = torch.randn(2, 5, 4, 3)
    assert channels_last(features).stride() == (60, 1, 15, 5)
    assert torch.equal(channels_last(features), features)
    assert filter_by_text(features, torch.randn(2, 6, 5)).is_contiguous(memory_format=torch.channels_last)
    colours = torch.randn(2, 3, 8, 6)
    assert convolve_image(convolution(3, 7), colours).is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize(
    ("own", "inputs", "outputs", "stride"),
    [(convolve_image, 3, 6, 1), (convolve_thin, 2, 2, 1), (mean_convolution, 5, 2, 2)],
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
