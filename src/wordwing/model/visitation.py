"""Visitation distributions d^p and d^g over the observed cells and the placeholder p_oob (paper: Stage 1).

Scores become probabilities by one softmax for each distribution, over the observed cells and the placeholder p_oob
together. There is no other normalisation: what the loss sees is what flies.

The paper has one d^p. With `Stage1Config.phases` there is one for each of so many equal parts of the way, in order, and
d^p is their mean.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from wordwing.model.grid import START_GRID


@dataclass(frozen=True)
class Visitation:
    """d^p and d^g of N contexts: each sums to 1 over its cells and its share of `unobserved`."""

    trajectory: Tensor
    """[N, 64, 64] d^p: where the drone should pass; zero where it has not observed."""
    goal: Tensor
    """[N, 64, 64] d^g: where it should stop."""
    unobserved: Tensor
    """[N, 2] p_oob of the trajectory and of the goal: the share that lies where it has not observed."""
    phases: Tensor | None = None
    """[N, P, 64, 64] d^p of each phase, first to last; None where d^p has no order."""
    phases_unobserved: Tensor | None = None
    """[N, P] p_oob of each phase."""

    @property
    def cells(self) -> Tensor:
        """[N, 2, 64, 64] trajectory and goal."""
        return torch.stack([self.trajectory, self.goal], dim=1)

    @property
    def likeliest_goal(self) -> Tensor:
        """[N, 2] centre of the cell where d^g is largest, start frame, metres."""
        return START_GRID.centres(self.goal.device).flatten(0, 1)[self.goal.flatten(1).argmax(1)]

    @property
    def unordered(self) -> Visitation:
        """The same without phases."""
        return replace(self, phases=None, phases_unobserved=None)


@dataclass(frozen=True)
class Scores:
    """LingUNet's output, before normalisation."""

    cells: Tensor
    """[N, P + 1, 64, 64], of each phase of the trajectory, one in the paper, and of the goal."""
    unobserved: Tensor | None
    """[N, P + 1], or None for PVN, which has no p_oob."""


def log_probabilities(scores: Scores, observed: Tensor) -> Tensor:
    """One masked softmax for each distribution, in single precision.

    Args:
        scores: Of N contexts.
        observed: [N, 64, 64] bool, the cells that may have probability; all of them for PVN.

    Returns:
        [N, P + 1, 4097] the cells' row by row, then p_oob's; -inf where nothing may be.
    """
    cells = scores.cells.float().masked_fill(~observed[:, None], -torch.inf).flatten(2)
    nowhere = cells.new_full(cells.shape[:2], -torch.inf)
    unobserved = nowhere if scores.unobserved is None else scores.unobserved.float()
    return torch.cat([cells, unobserved[..., None]], dim=-1).log_softmax(-1)


def visitation(scores: Scores, observed: Tensor) -> Visitation:
    """The distributions over the observed cells [N, 64, 64] and p_oob."""
    probabilities = log_probabilities(scores, observed).exp()
    cells, unobserved = probabilities[..., :-1].reshape(scores.cells.shape), probabilities[..., -1]
    if cells.shape[1] == 2:
        trajectory, goal = cells.unbind(1)
        return Visitation(trajectory, goal, unobserved.clone())  # so that it does not keep the cells alive
    phases, goal = cells[:, :-1], cells[:, -1]
    shares = torch.stack([unobserved[:, :-1].mean(1), unobserved[:, -1]], dim=1)
    return Visitation(phases.mean(1), goal, shares, phases, unobserved[:, :-1].clone())


def cross_entropy(scores: Scores, observed: Tensor, gold: Visitation) -> Tensor:
    """[N, 2] -Σ gold · log predicted, nats, of trajectory and goal; infinite where gold is not observed.

    That of the trajectory is the mean over phases where gold has phases, and else that of d^p as a whole.
    """
    wanted = _joint(gold)
    logs = log_probabilities(scores, observed)
    if gold.phases is None and logs.shape[1] > 2:
        # Cells without gold probability do not count; zero instead of -inf keeps logsumexp's gradient finite.
        phases = torch.where(wanted[:, :1] > 0, logs[:, :-1], 0.0)
        whole = phases.logsumexp(1, keepdim=True) - math.log(phases.shape[1])
        logs = torch.cat([whole, logs[:, -1:]], dim=1)
    return _paired(-torch.where(wanted > 0, wanted * logs, 0.0).sum(-1))


def entropy(distributions: Visitation) -> Tensor:
    """[N, 2] nats, of trajectory and goal: the least that a cross-entropy against them can be."""
    return _paired(torch.special.entr(_joint(distributions)).sum(-1))


def _joint(distributions: Visitation) -> Tensor:
    """[N, P + 1, 4097], phases and goal; [N, 2, 4097] where there are none."""
    cells, unobserved = distributions.cells, distributions.unobserved
    if distributions.phases is not None and distributions.phases_unobserved is not None:
        cells = torch.cat([distributions.phases, cells[:, 1:]], dim=1)
        unobserved = torch.cat([distributions.phases_unobserved, unobserved[:, 1:]], dim=1)
    return torch.cat([cells.flatten(2), unobserved[..., None]], dim=-1)


def _paired(values: Tensor) -> Tensor:
    """[N, P + 1] of phases and goal to [N, 2]: their mean, and that of the goal."""
    if values.shape[1] == 2:
        return values
    return torch.stack([values[:, :-1].mean(1), values[:, -1]], dim=1)
