"""Layers of networks for one sample, in double precision, by numpy and scipy alone."""

import numpy as np
from numpy.typing import NDArray
from scipy.signal import correlate2d
from torch import nn

Array = NDArray[np.float64]


def weights_of(layer: nn.Conv2d | nn.Linear) -> tuple[Array, Array]:
    """Weights and biases of a torch layer."""
    assert layer.bias is not None
    return layer.weight.detach().double().numpy(), layer.bias.detach().double().numpy()


def convolve(features: Array, layer: nn.Conv2d) -> Array:
    """[C, H, W] by a 3×3 convolution, perhaps with a border of zeros: every place first, then those of the stride."""
    weights, biases = weights_of(layer)
    stride, mode = layer.stride[0], "same" if layer.padding[0] else "valid"
    found = [
        sum(correlate2d(channel, kernel, mode=mode) for channel, kernel in zip(features, row, strict=True)) + bias
        for row, bias in zip(weights, biases, strict=True)
    ]
    return np.stack(found)[:, ::stride, ::stride]


def linear(values: Array, layer: nn.Linear) -> Array:
    """W x + b."""
    weights, biases = weights_of(layer)
    return weights @ values + biases


def leaky(values: Array) -> Array:
    """LeakyReLU with a slope of a hundredth."""
    return np.where(values > 0, values, 0.01 * values)


def norm(features: Array) -> Array:
    """Each channel of [C, H, W] less its mean, over its standard deviation."""
    return np.stack([(channel - channel.mean()) / np.sqrt(channel.var() + 1e-5) for channel in features])


def twice(features: Array) -> Array:
    """[C, H, W] to [C, 2H, 2W], each value four times."""
    return features.repeat(2, axis=1).repeat(2, axis=2)
