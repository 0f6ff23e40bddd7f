"""STOP: end the flight without moving."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from wordwing.frames import Pose
from wordwing.interface import Action, Observation, Setpoint


class Stop:
    """Stops at once, whatever it is told."""

    needs_gold_path = False

    def reset(
        self,
        instructions: Sequence[str],
        start: Pose,
        gold_paths: Sequence[Tensor] | None = None,
    ) -> None:
        """Nothing to remember."""

    def act(self, observation: Observation) -> Action:
        """STOP for all N drones."""
        device = observation.time.device
        count = len(observation.time)
        stop = torch.ones(count, dtype=torch.bool, device=device)
        return Action(Setpoint.zero(count, device), stop)
