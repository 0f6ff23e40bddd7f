"""AVERAGE: take the average action for the average number of steps."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from wordwing.frames import Pose
from wordwing.interface import Action, Observation, Setpoint


class Average:
    """Flies one constant setpoint and stops.

    The defaults are the constants that the authors computed from their real demonstrations; their yaw rate of 0.008
    rad/s turns right.
    """

    needs_gold_path = False

    def __init__(self, forward: float = 0.385, yaw_rate: float = -0.008, steps: int = 20) -> None:
        self.forward = forward
        self.yaw_rate = yaw_rate
        self.steps = steps
        self._taken = 0

    def reset(
        self,
        instructions: Sequence[str],
        start: Pose,
        gold_paths: Sequence[Tensor] | None = None,
    ) -> None:
        """Begin N flights."""
        self._taken = 0

    def act(self, observation: Observation) -> Action:
        """The same setpoint for `steps` decisions, then STOP."""
        stop = torch.full_like(observation.time, self._taken >= self.steps, dtype=torch.bool)
        self._taken += 1
        forward = torch.full_like(observation.time, self.forward)
        yaw_rate = torch.full_like(observation.time, self.yaw_rate)
        return Action(Setpoint(forward, yaw_rate), stop)
