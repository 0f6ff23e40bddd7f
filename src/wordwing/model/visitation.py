"""Where to go through and where to stop: distributions over what has been observed and one place more (paper: Stage 1).

Scores become probabilities by one softmax for each distribution, over the observed cells and the placeholder p_oob
together. There is no other normalisation: what the loss sees is what flies.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Visitation:
    """d^p and d^g of N contexts: each sums to 1 over its cells and its share of `unobserved`."""

    trajectory: Tensor
    """[N, 64, 64] d^p: where the drone should pass; zero where it has not looked."""
    goal: Tensor
    """[N, 64, 64] d^g: where it should stop."""
    unobserved: Tensor
    """[N, 2] p_oob of the trajectory and of the goal: the share that lies where it has not looked."""

    @property
    def cells(self) -> Tensor:
        """[N, 2, 64, 64] trajectory and goal."""
        return torch.stack([self.trajectory, self.goal], dim=1)


@dataclass(frozen=True)
class Scores:
    """What LingUNet says, before normalisation."""

    cells: Tensor
    """[N, 2, 64, 64], of trajectory and goal."""
    unobserved: Tensor | None
    """[N, 2], or None for PVN, which has no p_oob."""


def log_probabilities(scores: Scores, observed: Tensor) -> Tensor:
    """One masked softmax for each distribution, in single precision.

    Args:
        scores: Of N contexts.
        observed: [N, 64, 64] bool, the cells that may have probability; all of them for PVN.

    Returns:
        [N, 2, 4097] the cells' row by row, then p_oob's; -inf where nothing may be.
    """
    cells = scores.cells.float().masked_fill(~observed[:, None], -torch.inf).flatten(2)
    nowhere = cells.new_full(cells.shape[:2], -torch.inf)
    unobserved = nowhere if scores.unobserved is None else scores.unobserved.float()
    return torch.cat([cells, unobserved[..., None]], dim=-1).log_softmax(-1)


def visitation(scores: Scores, observed: Tensor) -> Visitation:
    """The distributions over the observed cells [N, 64, 64] and p_oob."""
    probabilities = log_probabilities(scores, observed).exp()
    trajectory, goal = probabilities[..., :-1].reshape(scores.cells.shape).unbind(1)
    return Visitation(trajectory, goal, probabilities[..., -1].clone())  # which keeps nothing of the cells alive


def cross_entropy(scores: Scores, observed: Tensor, gold: Visitation) -> Tensor:
    """[N, 2] -Σ gold · log predicted, nats, of trajectory and goal; infinite where gold lies out of reach."""
    wanted = _joint(gold)
    logs = log_probabilities(scores, observed)
    return -torch.where(wanted > 0, wanted * logs, 0.0).sum(-1)


def entropy(distributions: Visitation) -> Tensor:
    """[N, 2] nats, of trajectory and goal: the least that a cross-entropy against them can be."""
    return torch.special.entr(_joint(distributions)).sum(-1)


def _joint(distributions: Visitation) -> Tensor:
    """[N, 2, 4097]."""
    return torch.cat([distributions.cells.flatten(2), distributions.unobserved[..., None]], dim=-1)
