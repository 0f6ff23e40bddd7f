"""One update of Adam that nonsense cannot spoil."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def adam(
    parameters: list[nn.Parameter], rate: float, weight_decay: float = 0.0, epsilon: float = 1e-8
) -> torch.optim.Adam:
    """Adam, fused: only then can it be told on the device to leave a step out."""
    return torch.optim.Adam(parameters, rate, weight_decay=weight_decay, eps=epsilon, fused=True)


def step(
    optimizer: torch.optim.Optimizer, loss: Tensor, rate: float | None = None, max_norm: float = math.inf
) -> tuple[Tensor, Tensor]:
    """Take one step down a loss, unless it or its gradient is not finite, and never wait for the device.

    A step that is left out changes neither the parameters nor what Adam remembers.

    Args:
        optimizer: From `adam`.
        loss: [].
        rate: Learning rate from now on; None leaves it.
        max_norm: Longer gradients are shortened to this.

    Returns:
        The gradient's norm [] and whether the step was left out, [] bool.
    """
    if rate is not None:
        for group in optimizer.param_groups:
            group["lr"] = rate
    optimizer.zero_grad()
    loss.backward()
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    norm = nn.utils.get_total_norm(gradients)
    if max_norm < math.inf:
        nn.utils.clip_grads_with_norm_(parameters, max_norm, norm)
    lost = ~(norm.isfinite() & loss.detach().isfinite())
    # What torch's GradScaler sets: where it is 1 the fused kernel writes nothing and takes its count of steps back.
    # Zeros for a gradient would not do: Adam would fly on with its momentum.
    optimizer.found_inf = lost.float()  # type: ignore[attr-defined]
    optimizer.step()
    optimizer.zero_grad()  # before the next loss: a CUDA graph would have to work around gradients that are still there
    return norm, lost
