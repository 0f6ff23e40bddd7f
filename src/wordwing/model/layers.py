"""Layers that several networks share, and dataclasses of tensors [N, ...]."""

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def on_cuda(features: Tensor) -> bool:
    """Whether convolutions and norms take the ways that are fast on tensor cores; the results are the same."""
    return features.is_cuda


def instance_norm(features: Tensor) -> Tensor:
    """Each channel [N, C, H, W] of each sample to mean 0 and variance 1, without parameters or running statistics.

    Written out for the GPU, where torch's own copies to another memory layout; on the CPU torch's own is twice as fast.
    """
    if not on_cuda(features) and features.shape[2] * features.shape[3] > 1:
        return functional.instance_norm(features)
    variance, mean = torch.var_mean(features, dim=(2, 3), correction=0, keepdim=True)
    return (features - mean) * torch.rsqrt(variance + 1e-5)


def channels_last(features: Tensor) -> Tensor:
    """Features [N, C, H, W] as tensor cores want them in memory, pixel by pixel; on the CPU as they are."""
    return features.contiguous(memory_format=torch.channels_last) if on_cuda(features) else features


def leaky(features: Tensor, slope: float = 0.01) -> Tensor:
    """LeakyReLU."""
    return functional.leaky_relu(features, slope)


def filter_by_text(features: Tensor, kernels: Tensor) -> Tensor:
    """The paper's F ⊛ K: a 1×1 convolution with kernels of its own, computed from the text, for each sample.

    Args:
        features: [N, C, H, W].
        kernels: [N, K, C].

    Returns:
        [N, K, H, W].
    """
    if not on_cuda(features):
        return torch.einsum("nchw,nkc->nkhw", features, kernels)
    pixels = features.permute(0, 2, 3, 1).flatten(1, 2)  # [N, H · W, C]
    return (pixels @ kernels.mT).mT.unflatten(2, features.shape[2:])


def convolution(inputs: int, outputs: int, stride: int = 1, padding: int = 1) -> nn.Conv2d:
    """A 3×3 convolution, Kaiming-uniform weights, zero biases."""
    layer = nn.Conv2d(inputs, outputs, 3, stride, padding)
    nn.init.kaiming_uniform_(layer.weight, a=0.01)
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layer


def convolve_image(layer: nn.Conv2d, image: Tensor) -> Tensor:
    """A 3×3 convolution of three colours [N, 3, H, W]; on CUDA of four pixels of a row at once: three are too few.

    Tensor cores take multiples of eight channels. Four pixels are one with twelve colours, and none need be copied.
    """
    if not on_cuda(image):
        return layer(image)
    assert layer.bias is not None
    count, colours, height, width = image.shape
    groups = image.permute(0, 2, 3, 1).reshape(count, height, width // 4, 4 * colours)
    groups = functional.pad(groups, (0, 4)).permute(0, 3, 1, 2)
    # Of pixel p in its group the weights stand p to the right, in a row of twelve pixels: three groups.
    rows = torch.stack([functional.pad(layer.weight, (p + 3, 6 - p)) for p in range(4)])  # [4, outputs, 3, 3, 12]
    weight = rows.unflatten(4, (3, 4)).permute(0, 1, 5, 2, 3, 4).flatten(2, 3).flatten(0, 1)  # [4 · outputs, 12, 3, 3]
    weight = functional.pad(weight, (0, 0, 0, 0, 0, 4)).contiguous(memory_format=torch.channels_last)
    found = functional.conv2d(groups, weight, layer.bias.repeat(4), padding=1)
    return found.permute(0, 2, 3, 1).reshape(count, height, width, -1).permute(0, 3, 1, 2)


def convolve(layer: nn.Conv2d, features: Tensor) -> Tensor:
    """A 3×3 convolution of [N, C, H, W], on CUDA with multiples of eight channels, as tensor cores want them."""
    outputs, inputs = layer.weight.shape[:2]
    missing, spare = -inputs % 8, -outputs % 8
    if not on_cuda(features) or missing == spare == 0:
        return layer(features)
    assert layer.bias is not None
    pixels = functional.pad(features.permute(0, 2, 3, 1), (0, missing)).permute(0, 3, 1, 2)
    weight = functional.pad(layer.weight, (0, 0, 0, 0, 0, missing, 0, spare))
    weight = weight.contiguous(memory_format=torch.channels_last)
    return functional.conv2d(pixels, weight, functional.pad(layer.bias, (0, spare)), padding=1)[:, :outputs]


def mean_convolution(layer: nn.Conv2d, features: Tensor) -> Tensor:
    """The mean over all places of a 3×3 convolution with stride 2 of [N, C, H, W], H and W even: [N, outputs].

    On CUDA means come first, of the pixels that each weight meets: the convolution is linear.
    """
    if not on_cuda(features):
        return layer(features).mean(dim=(2, 3))
    height, width = features.shape[2:]
    padded = functional.pad(features, (1, 1, 1, 1))
    means = [
        padded[:, :, i : i + height : 2, j : j + width : 2].mean(dim=(2, 3))
        for i, j in itertools.product(range(3), range(3))
    ]
    return functional.linear(torch.stack(means, dim=2).flatten(1), layer.weight.flatten(1), layer.bias)


def twice_as_large(features: Tensor) -> Tensor:
    """Features [N, C, H, W], each pixel as four: [N, C, 2H, 2W]."""
    if not on_cuda(features):
        return functional.interpolate(features, scale_factor=2, mode="nearest")
    count, channels, height, width = features.shape
    pixels = features.permute(0, 2, 3, 1)[:, :, None, :, None]
    larger = pixels.expand(count, height, 2, width, 2, channels).reshape(count, 2 * height, 2 * width, channels)
    return larger.permute(0, 3, 1, 2)


def shrink_init(last: nn.Conv2d | nn.Linear, bias: float = 0.0) -> None:
    """Divide the initial weights of an output layer by ten, so that an untrained network predicts nearly uniformly."""
    with torch.no_grad():
        last.weight.mul_(0.1)
        nn.init.constant_(last.bias, bias)  # type: ignore[arg-type]


def single_precision(device: torch.device) -> AbstractContextManager[object]:
    """Switch autocast to bf16 off in the block."""
    return torch.autocast(device.type, enabled=False) if device.type in ("cpu", "cuda") else nullcontext()


def count_parameters(module: nn.Module) -> int:
    """Number of trainable parameters of a module."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def each(function: Callable[..., Tensor], record: Any, *others: Any) -> Any:
    """Map a function over all tensors of a record, with the tensors at the same place of other records."""
    if isinstance(record, Tensor):
        return function(record, *others)
    if isinstance(record, tuple):
        return tuple(each(function, *parts) for parts in zip(record, *others, strict=True))
    if is_dataclass(record):
        names = [entry.name for entry in fields(record)]
        parts = {name: each(function, *(getattr(one, name) for one in (record, *others))) for name in names}
        return replace(record, **parts)  # type: ignore[type-var]
    return record
