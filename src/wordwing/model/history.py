"""What a drone has done in its flight so far: which ground it has flown over, and how it moved last.

The paper's stage 2 sees the plan alone, so it cannot tell what is done from what is still to come, nor how fast it
flies. `Stage2Config.history` lets it and the value network see both.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from wordwing.frames import Pose, wrap_angle
from wordwing.interface import CONTROL_PERIOD, MAX_FORWARD, MAX_YAW_RATE
from wordwing.model.grid import START_GRID

REACH = 0.25
"""Cells whose centres are this near to the path have been flown over, metres."""


@dataclass(frozen=True)
class History:
    """Of N flights, start frame."""

    cells: Tensor
    """[N, 64, 64] bool, flown over."""
    last: Tensor
    """[N, 3] x, y and yaw at the last decision; NaN before the first one."""

    @classmethod
    def empty(cls, count: int, device: torch.device | str) -> History:
        """Before N flights."""
        cells = torch.zeros(count, START_GRID.cells, START_GRID.cells, dtype=torch.bool, device=device)
        return cls(cells, torch.full((count, 3), torch.nan, device=device))

    def follow(self, pose: Pose) -> tuple[History, Tensor]:
        """Fly straight on to poses [N], start frame.

        Returns:
            The history until there, and how the drones moved, [N, 3] forwards, to the left and around, in units of what
            a control period allows; zero at the first decision.
        """
        here = torch.cat([pose.xy, pose.yaw[:, None]], dim=1)
        first = self.last.isnan().any(1, keepdim=True)
        before = torch.where(first, here, self.last)
        step = here[:, :2] - before[:, :2]
        cos, sin = before[:, 2].cos(), before[:, 2].sin()
        ahead, left = step[:, 0] * cos + step[:, 1] * sin, step[:, 1] * cos - step[:, 0] * sin
        turn = wrap_angle(here[:, 2] - before[:, 2])
        most = CONTROL_PERIOD * MAX_FORWARD
        motion = torch.stack([ahead / most, left / most, turn / (CONTROL_PERIOD * MAX_YAW_RATE)], dim=1)
        # Distance from the cells' centres to the straight line from there to here.
        away = START_GRID.centres(here.device) - before[:, None, None, :2]  # [N, 64, 64, 2]
        along = (away * step[:, None, None]).sum(-1) / step.square().sum(-1).clamp(min=1e-12)[:, None, None]
        distance = (away - along.clamp(0, 1)[..., None] * step[:, None, None]).norm(dim=-1)
        return History(self.cells | (distance <= REACH), here), motion
