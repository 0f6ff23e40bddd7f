"""What a decision was worth: returns and advantages of complete flights (paper: Process B).

A row is one flight: its decisions from first to last, then padding. Every flight ended inside its row, so nothing comes
after its last decision and no value stands in for the rest.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def returns(reward: Tensor, mask: Tensor, discount: float) -> Tensor:
    """The sum of all rewards from a decision on, each later one worth less (Monte-Carlo, as in the paper).

    Args:
        reward: [R, D] that followed each decision; anything in the padding.
        mask: [R, D] bool, true for decisions, false for padding.
        discount: γ.

    Returns:
        [R, D], zero in the padding.
    """
    _check(reward, reward, mask)
    return _sums_from_here(torch.where(mask, reward, 0.0), discount)


def generalised_advantages(reward: Tensor, value: Tensor, mask: Tensor, discount: float, decay: float) -> Tensor:
    """GAE: how much better than the value network expected the flight went from a decision on.

    Args:
        reward: [R, D] that followed each decision; anything in the padding.
        value: [R, D] what the value network expected before each decision; anything in the padding.
        mask: [R, D] bool, true for decisions, false for padding.
        discount: γ.
        decay: λ; at 1 these are the returns less the values, at 0 each looks one decision ahead.

    Returns:
        [R, D], zero in the padding.
    """
    _check(reward, value, mask)
    value = torch.where(mask, value, 0.0)
    following = functional.pad(value[:, 1:], (0, 1))  # zero after the last decision
    surprise = torch.where(mask, reward, 0.0) + discount * following - value
    return _sums_from_here(surprise, discount * decay)


def _sums_from_here(terms: Tensor, factor: float) -> Tensor:
    """[R, D] Σ_k factor^k · terms[:, d + k]."""
    sums = []
    total = torch.zeros_like(terms[:, 0])
    for column in reversed(terms.unbind(1)):
        total = column + factor * total
        sums.append(total)
    return torch.stack(sums[::-1], dim=1)


def _check(reward: Tensor, value: Tensor, mask: Tensor) -> None:
    if reward.ndim != 2 or reward.shape[1] == 0 or value.shape != reward.shape or mask.shape != reward.shape:
        shapes = ", ".join(str(list(tensor.shape)) for tensor in (reward, value, mask))
        raise ValueError(f"reward, value and mask must be [R, D] with one R and one D of at least 1, not {shapes}")
    if mask.dtype != torch.bool:
        raise ValueError(f"a mask must be bool, not {mask.dtype}")
