"""The earth mover's distance between where a drone has been and where it should pass (paper: Visitation Reward).

One side of each transport problem is a flown path, the other d^p, a distribution over cells; both lie in the start
frame. `exact_emd` solves the problems one by one with POT. `batched_emd` solves all of them at once on the device:
Sinkhorn's algorithm, in logarithms and with a shrinking ε, finds potentials that are nearly the best; two c-transforms
then make them feasible. The value of feasible potentials is never above the distance, and much nearer to it than the
cost of Sinkhorn's blurred plan.

For P points and K cells this takes 48 passes over all K · P pairs, of one square root and one exponential each, and two
without the exponential: 1.6 million pairs for 50 points and the 650 cells that are observed on average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import ot
import torch
import warp as wp
from torch import Tensor
from torch.nn import functional

from wordwing.learning.emd.sinkhorn import LEAST, Side, c_transform, sinkhorn_update
from wordwing.model.grid import START_GRID
from wordwing.model.layers import each
from wordwing.sim.launch import launch, warp_struct

Method = Literal["auto", "exact", "batched"]

KEEP = 1024
"""Cells of a map that are kept, of some 650 observed ones; `wordwing bench emd` shows what that changes."""

EPSILONS = tuple(float(epsilon) for epsilon in np.geomspace(0.3, 0.004, 24))
"""ε of Sinkhorn's steps, metres: from two cells to a fortieth of one."""

RELAXATION = tuple(min(1 + 0.1 * step, 1.85) for step in range(len(EPSILONS)))
"""How far each step goes, 1 being Sinkhorn's own: with 1 errors are several times greater, from 1.9 on some explode."""

TINY = torch.finfo(torch.float32).tiny
"""A sum below this is none: dividing by it would leave no digits."""


@dataclass(frozen=True)
class SparseMap:
    """Distributions over the cells of `START_GRID`, only their likeliest cells, the likeliest first."""

    index: Tensor
    """[..., K] int16, 64 · row + column."""
    weight: Tensor
    """[..., K] float32; sums to 1, or is zero."""

    @classmethod
    def of(cls, cells: Tensor, keep: int = KEEP) -> SparseMap:
        """The `keep` likeliest cells of maps [N, 64, 64], brought to sum 1; a map of zeros stays one."""
        weight, index = cells.float().flatten(1).topk(keep, dim=1)
        total = weight.sum(1, keepdim=True)
        return cls(index.to(torch.int16), torch.where(total >= TINY, weight / total, 0.0))

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, index: Any) -> SparseMap:
        """Some of the maps."""
        return each(lambda tensor: tensor[index], self)

    @property
    def centres(self) -> Tensor:
        """[..., K, 2] of the cells, start frame, metres."""
        return START_GRID.centres(self.index.device).flatten(0, 1)[self.index.long()]


def visited_weights(position: Tensor, count: Tensor) -> Tensor:
    """Spread mass evenly along flown paths: each point gets half of the edges that meet there.

    The paper gives every position the same mass, step by step or place by place. It is by length here, as in the gold
    distributions and in the evaluation: a drone that turns on the spot visits nothing new and must not pay for it.

    Args:
        position: [N, P, 2] the drone's positions, metres.
        count: [N] how many of them each path has, at least 1.

    Returns:
        [N, P] sums to 1; zero from `count` on. A path of no length has all its mass on its first point.
    """
    order = torch.arange(position.shape[1], device=position.device)
    flown = order[1:] < count[:, None]
    edges = torch.where(flown, (position[:, 1:] - position[:, :-1]).norm(dim=-1), 0.0)  # [N, P - 1]
    length = edges.sum(1, keepdim=True)
    weights = (functional.pad(edges, (1, 0)) + functional.pad(edges, (0, 1))) / (2 * length)
    return torch.where(length >= TINY, weights, (order == 0).to(weights))


def emd(points: Tensor, weights: Tensor, cells: SparseMap, method: Method = "auto") -> Tensor:
    """Earth mover's distances between points that carry weight and maps.

    Args:
        points: [N, P, 2] start frame, metres.
        weights: [N, P] each sums to 1; points without weight do not count, and those at the end cost no time.
        cells: [N].
        method: By default exact on the CPU, where that is faster, and batched on CUDA.

    Returns:
        [N] metres; zero where the map is zero.
    """
    if method == "auto":
        method = "batched" if points.is_cuda else "exact"
    return (exact_emd if method == "exact" else batched_emd)(points, weights, cells)


def exact_emd(points: Tensor, weights: Tensor, cells: SparseMap) -> Tensor:
    """`emd` by POT's network simplex, in double precision on the CPU, a few milliseconds each."""

    def array(tensor: Tensor) -> np.ndarray:
        return tensor.double().cpu().numpy()

    problems = zip(array(points), array(weights), array(cells.centres), array(cells.weight), strict=True)
    return points.new_tensor([_solve(*problem) for problem in problems])


def _solve(points: np.ndarray, weights: np.ndarray, centres: np.ndarray, masses: np.ndarray) -> float:
    visited, likely = weights > 0, masses > 0
    if not (visited.any() and likely.any()):
        return 0.0
    a, b = weights[visited], masses[likely]
    cost = ot.dist(points[visited], centres[likely], metric="euclidean")
    return float(ot.emd2(a / a.sum(), b / b.sum(), cost, numItermax=1_000_000))


def batched_emd(points: Tensor, weights: Tensor, cells: SparseMap) -> Tensor:
    """`emd` by Sinkhorn's algorithm and c-transforms, never more than the distance; nothing waits for the device."""
    device = points.device
    path, likely = _side(points, weights), _side(cells.centres, cells.weight)
    for epsilon, following, relaxation in zip(EPSILONS, (*EPSILONS[1:], EPSILONS[-1]), RELAXATION, strict=True):
        launch(sinkhorn_update, likely.place.shape, (likely, path, 1 / epsilon, 1 / epsilon, relaxation), device)
        launch(sinkhorn_update, path.place.shape, (path, likely, 1 / epsilon, 1 / following, relaxation), device)
    launch(c_transform, likely.place.shape, (likely, path), device)
    launch(c_transform, path.place.shape, (path, likely), device)
    value = torch.zeros_like(weights[:, 0])
    for side in (path, likely):
        value = value + (wp.to_torch(side.mass) * wp.to_torch(side.potential)).sum(1)
    return torch.where((weights.amax(1) > 0) & (cells.weight.amax(1) > 0), value, 0.0)


def _side(place: Tensor, mass: Tensor) -> Side:
    """One side of the problems with potentials of zero: places [N, P, 2] and their masses [N, P]."""
    place, mass = place.detach().float().contiguous(), mass.detach().float().contiguous()
    log_mass = torch.where(mass > 0, mass.log(), LEAST)
    order = torch.arange(1, mass.shape[1] + 1, device=mass.device)
    return warp_struct(
        Side,
        place=place,
        mass=mass,
        log_mass=log_mass,
        count=torch.where(mass > 0, order, 0).amax(1).int(),
        potential=torch.zeros_like(mass),
        score=log_mass.clone(),
    )


def dirac_emd(position: Tensor, cells: SparseMap) -> Tensor:
    """`emd` [...] where all mass lies on one point [..., 2]: the mean distance from it."""
    return ((cells.centres - position[..., None, :]).norm(dim=-1) * cells.weight).sum(-1)


def stop_emd(goal: Tensor, position: Tensor) -> Tensor:
    """Earth mover's distance between d^g and coming to rest at one point (paper: Stop Reward).

    Args:
        goal: [N, 64, 64] over observed cells; need not sum to 1.
        position: [N, 2] start frame, metres.

    Returns:
        [N] metres; zero where the goal is zero.
    """
    centres = START_GRID.centres(goal.device)
    x, y = centres[:, 0, 0], centres[0, :, 1]
    distance = torch.hypot((x - position[:, :1])[:, :, None], (y - position[:, 1:])[:, None, :])  # [N, 64, 64]
    total = goal.sum((1, 2))
    return torch.where(total >= TINY, (goal * distance).sum((1, 2)) / total, 0.0)
