"""The baselines STOP, which never moves, and AVERAGE, which flies the average action (paper: Systems)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from wordwing.frames import Pose
from wordwing.interface import Action, Observation, Setpoint


class MeanAction(NamedTuple):
    """What ORACLE does on average."""

    forward: float
    """m/s, mean over all decisions of all training demonstrations."""
    yaw_rate: float
    """rad/s, positive turns left."""
    steps: int
    """Mean number of decisions before STOP, rounded."""


MEAN_ACTIONS = {
    "cage": MeanAction(0.454, -0.006, 12),
    "field": MeanAction(0.459, -0.001, 17),
    "errands": MeanAction(0.403, 0.0, 27),
    "tours": MeanAction(0.38, 0.009, 43),
    "house": MeanAction(0.358, -0.045, 31),
    "dev-mini": MeanAction(0.458, -0.001, 17),
}
"""ORACLE's in the corpora's training demonstrations in `sim`, one and two segments pooled; other datasets are measured
by `data.demonstrations.flying`. dev-mini has no training split: its are those of cage and field together. The authors'
were 0.385 m/s, 0.008 rad/s to the right and 20 steps, from their own demonstrations."""


class Average:
    """Flies one constant setpoint and stops."""

    needs_gold_path = False

    def __init__(self, forward: float, yaw_rate: float, steps: int) -> None:
        self.mean_action = MeanAction(forward, yaw_rate, steps)
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
        """The same setpoint for so many decisions, then STOP."""
        stop = torch.full_like(observation.time, self._taken >= self.mean_action.steps, dtype=torch.bool)
        self._taken += 1
        forward = torch.full_like(observation.time, self.mean_action.forward)
        yaw_rate = torch.full_like(observation.time, self.mean_action.yaw_rate)
        return Action(Setpoint(forward, yaw_rate), stop)


class Stop(Average):
    """Stops at once, whatever it is told."""

    def __init__(self) -> None:
        super().__init__(0.0, 0.0, steps=0)
