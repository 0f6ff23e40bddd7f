"""Maps in the drone's own frame (paper: Coordinate Frames of Reference; Stage 2).

The control network gets a close crop in full detail and the whole map coarsely. A coarse cell holds the sum of the
probabilities in it, and nothing is normalised afterwards, so that far from the goal looks different from close to it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from wordwing.frames import Pose
from wordwing.model.grid import START_GRID, Grid
from wordwing.model.layers import each
from wordwing.model.visitation import Visitation

EGO_GRID = Grid(cells=96)
"""Around the drone, ±7 m: the arena's diagonal is 6.6 m, so the map always holds all of it."""

CLOSE_CELLS = 16
"""Edge of the close view, cells of 0.147 m: 1.2 m each way."""

POOL = 4
"""Cells along the edge of a coarse cell of the whole view: 24×24 cells of 0.59 m."""


@dataclass(frozen=True)
class EgoView:
    """Input of the control network; the drone is in the middle of each map and faces up."""

    close: Tensor
    """[N, P + 1, 16, 16] probability of trajectory and goal in each cell; P phases of it, or 1 for it as a whole."""
    whole: Tensor
    """[N, P + 3, 24, 24] the same of coarse cells, then the share unexplored and the share at the boundary; with
    history the share flown over, too."""
    unobserved: Tensor
    """[N, 2] p_oob of trajectory and goal."""
    flown: Tensor | None = None
    """[N, 1, 16, 16] share flown over, close by; `whole` then has one more map of it. None without history."""
    done: Tensor | None = None
    """[N, 3 + P] the last motion, and how much of each phase's probability has been flown over."""

    def __getitem__(self, index: Tensor | slice) -> EgoView:
        """Some of the contexts."""
        return each(lambda tensor: tensor[index], self)


def to_ego_frame(maps: Tensor, pose: Pose) -> Tensor:
    """Maps [N, C, 64, 64] in the start frame to maps [N, C, 96, 96] in the frames of drones at poses [N] in it."""
    # Not as a product of matrices, which autocast would round to bf16: far cells then move by up to half a cell.
    yaw = pose.yaw[:, None, None]
    cos, sin = torch.cos(yaw), torch.sin(yaw)
    ahead, left = EGO_GRID.centres(maps.device).unbind(-1)
    points = torch.stack([cos * ahead - sin * left, sin * ahead + cos * left], dim=-1) + pose.xy[:, None, None]
    # Without a pose CUDA would sample zeros, an empty map by which the drone would fly on; with NaN it hovers.
    lost = ~(yaw[:, 0].isfinite() & pose.xy.isfinite().all(-1, keepdim=True))
    return START_GRID.sample(maps, points).masked_fill(lost[..., None, None], torch.nan)


def ego_view(
    visitation: Visitation,
    unexplored: Tensor,
    boundary: Tensor,
    pose: Pose,
    ordered: bool = False,
    flown: Tensor | None = None,
    motion: Tensor | None = None,
) -> EgoView:
    """The control network's view of the plan, the unexplored cells and the boundary.

    Args:
        visitation: Of N contexts, start frame.
        unexplored: [N, 64, 64] bool, cells of the arena that have not been observed, start frame.
        boundary: B^W [N, 64, 64] bool, start frame.
        pose: [N] of the drones, start frame.
        ordered: Whether the phases of the trajectory are seen one by one; together they are as much as it is.
        flown: [N, 64, 64] bool, cells that have been flown over, start frame; None without history.
        motion: [N, 3] how the drones moved last, of `History.follow`; None without history.
    """
    masks = torch.stack([unexplored, boundary] + ([] if flown is None else [flown]), dim=1).float()
    count = masks.shape[1]
    plan = visitation.cells
    if ordered and visitation.phases is not None:
        plan = torch.cat([visitation.phases / visitation.phases.shape[1], plan[:, 1:]], dim=1)
    maps = to_ego_frame(torch.cat([plan, masks], dim=1), pose)  # [N, P + 3, 96, 96]
    margin = (EGO_GRID.cells - CLOSE_CELLS) // 2
    middle = maps[:, :, margin:-margin, margin:-margin]
    close = middle[:, :-count].clone()  # so that it does not keep the maps alive
    shares = functional.avg_pool2d(maps, POOL)
    amounts = POOL * POOL * shares[:, :-count]
    view = EgoView(close, torch.cat([amounts, shares[:, -count:]], dim=1), visitation.unobserved)
    if flown is None or motion is None:
        return view
    phases = plan[:, :-1]
    passed = (phases * flown[:, None]).sum((2, 3)) / phases.sum((2, 3)).clamp(min=1e-6)
    return replace(view, flown=middle[:, -1:].clone(), done=torch.cat([motion, passed], dim=1))
