"""Layers that several networks share, and dataclasses of tensors [N, ...]."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional


def instance_norm(features: Tensor) -> Tensor:
    """Each channel [N, C, H, W] of each sample to mean 0 and variance 1, without parameters or running statistics.

    Written out for the GPU, where torch's own copies to another memory layout; on the CPU torch's own is twice as fast.
    """
    if features.device.type == "cpu" and features.shape[2] * features.shape[3] > 1:
        return functional.instance_norm(features)
    variance, mean = torch.var_mean(features, dim=(2, 3), correction=0, keepdim=True)
    return (features - mean) * torch.rsqrt(variance + 1e-5)


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
    return torch.einsum("nchw,nkc->nkhw", features, kernels)


def convolution(inputs: int, outputs: int, stride: int = 1, padding: int = 1) -> nn.Conv2d:
    """A 3×3 convolution, Kaiming-uniform weights, zero biases."""
    layer = nn.Conv2d(inputs, outputs, 3, stride, padding)
    nn.init.kaiming_uniform_(layer.weight, a=0.01)
    nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return layer


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
