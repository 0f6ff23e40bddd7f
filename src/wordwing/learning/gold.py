"""f*: the distributions that a demonstration asks stage 1 to predict (paper: Process A).

Each point of the demonstrated path, and its end, is blurred by a Gaussian whose mass in every cell is exact. What the
blur carries out of the arena or off the map is shared out among the rest, never called unobserved: it is nowhere. Then
what lies on ground that the drone has not observed yet becomes p_oob.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from wordwing.frames import Pose, start_frame
from wordwing.model.grid import START_GRID
from wordwing.model.mapping import arena_cells
from wordwing.model.visitation import Visitation
from wordwing.world.paths import Floats, path_length, points_along

POINTS = 64
"""Even points that stand for a path; some 5 cm apart on a long one."""


@dataclass(frozen=True)
class GoldConfig:
    """How sure the gold distributions are."""

    blur: float = 1.0
    """Standard deviation, cells of 0.147 m; a third of it in the authors' software."""


def even_points(paths: Sequence[Floats]) -> Tensor:
    """Paths [P, 2] as points [N, 64, 2] at even distances, both ends included."""
    return torch.from_numpy(
        np.stack([points_along(path, np.linspace(0, path_length(path), POINTS)) for path in paths]).astype(np.float32)
    )


def gold_visitation(points: Tensor, start: Pose, config: GoldConfig, phases: int = 1) -> Visitation:
    """What a path asks for when all has been observed; p_oob is zero.

    Args:
        points: [N, P, 2] along N paths, first to last, world frame, metres.
        start: [N] start poses, world frame.
        config: The blur.
        phases: Equal parts of the points, in order, that the trajectory is also wanted for; 1 for none.
    """
    frame = start_frame(start)[:, None]
    points = frame.unapply(torch.nn.functional.pad(points, (0, 1)))[..., :2]  # [N, P, 2] start frame
    inside = START_GRID.contains(points)
    # In double: near 1 a distribution function has no digits for the tails in single, and autocast leaves it alone.
    along = _cell_masses(points.double(), config.blur * START_GRID.cell)  # [N, P, 2, 64]
    weights = inside.double()[..., None]
    trajectory = torch.einsum("npi,npj->nij", along[:, :, 0] * weights, along[:, :, 1])
    # A path that leaves the map ends, for the map, where it left.
    order = torch.arange(points.shape[1], device=points.device)
    last = torch.where(inside, order, 0).amax(1)  # [N]
    end = along[torch.arange(len(points), device=points.device), last]  # [N, 2, 64]
    goal = end[:, 0, :, None] * end[:, 1, None, :]
    arena = arena_cells(start)
    none = points.new_zeros(len(points), 2)
    gold = Visitation(_normalised(trajectory * arena), _normalised(goal * arena), none)
    if phases == 1:
        return gold
    rows, columns = ((along[:, :, k] * weights).unflatten(1, (phases, -1)) for k in (0, 1))
    parts = torch.einsum("nkpi,nkpj->nkij", rows, columns) * arena[:, None]  # [N, phases, 64, 64]
    # A phase that lies off the map is, for the map, where the path left it.
    lost = parts.sum((2, 3), keepdim=True) == 0
    ordered = torch.where(lost, gold.goal[:, None], _normalised(parts))
    return replace(gold, phases=ordered, phases_unobserved=none.new_zeros(len(none), phases))


def observed_part(gold: Visitation, observed: Tensor) -> Visitation:
    """What of it a drone can know that has observed cells [N, 64, 64]; the rest becomes p_oob."""
    trajectory, goal = gold.trajectory * observed, gold.goal * observed
    lost = torch.stack([gold.trajectory - trajectory, gold.goal - goal], dim=1).sum((2, 3))
    known = Visitation(trajectory, goal, gold.unobserved + lost)
    if gold.phases is None or gold.phases_unobserved is None:
        return known
    phases = gold.phases * observed[:, None]
    hidden = gold.phases_unobserved + (gold.phases - phases).sum((2, 3))
    return replace(known, phases=phases, phases_unobserved=hidden)


def _cell_masses(points: Tensor, deviation: float) -> Tensor:
    """[..., 2, 64] how much of a Gaussian around each point falls into each row, and into each column."""
    steps = torch.arange(START_GRID.cells + 1, dtype=points.dtype, device=points.device)
    edges = START_GRID.half - steps * START_GRID.cell  # downwards, as rows go
    below = torch.special.ndtr((edges - points[..., None]) / deviation)  # [..., 2, 65]
    return below[..., :-1] - below[..., 1:]


def _normalised(masses: Tensor) -> Tensor:
    return (masses / masses.sum((-2, -1), keepdim=True).clamp(min=1e-100)).float()
