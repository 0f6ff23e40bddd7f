"""What simulators, vehicles and policies say to each other: observations in, setpoints and STOP out.

Everything is batched over N drones; one flight is a batch of one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from wordwing.constants import CONTROL_PERIOD as CONTROL_PERIOD
from wordwing.constants import FLIGHT_HEIGHT as FLIGHT_HEIGHT
from wordwing.constants import MAX_FORWARD as MAX_FORWARD
from wordwing.constants import MAX_YAW_RATE as MAX_YAW_RATE
from wordwing.frames import Pose

Domain = Literal["sim", "lab"]
"""Where a drone flies and its pictures come from: the simulator or the lab."""


@dataclass(frozen=True)
class Setpoint:
    """The paper's ρ = (v, ω): what the drone's velocity controller is told."""

    forward: Tensor
    """[N] m/s along the heading."""
    yaw_rate: Tensor
    """[N] rad/s, positive turns left."""

    @classmethod
    def zero(cls, count: int, device: torch.device | str = "cpu") -> Setpoint:
        """Hover in place."""
        return cls(torch.zeros(count, device=device), torch.zeros(count, device=device))

    def to(self, device: torch.device | str) -> Setpoint:
        """The same setpoints on another device."""
        return Setpoint(self.forward.to(device), self.yaw_rate.to(device))

    def clamp(self) -> Setpoint:
        """Bring both into their limits; NaN becomes zero, so that a broken policy hovers."""
        forward = torch.nan_to_num(self.forward, nan=0.0)
        yaw_rate = torch.nan_to_num(self.yaw_rate, nan=0.0)
        return Setpoint(forward.clamp(0.0, MAX_FORWARD), yaw_rate.clamp(-MAX_YAW_RATE, MAX_YAW_RATE))

    def where(self, mask: Tensor) -> Setpoint:
        """This setpoint where `mask` [N] is true, zero elsewhere."""
        return Setpoint(self.forward * mask, self.yaw_rate * mask)


@dataclass(frozen=True)
class Action:
    """A decision: a new setpoint or, where `stop` is true, STOP."""

    setpoint: Setpoint
    stop: Tensor
    """[N] bool."""


@dataclass(frozen=True)
class Observation:
    """What the drones see and where they believe they are."""

    image: Tensor
    """[N, 72, 128, 3] uint8 RGB."""
    pose: Pose
    """[N] 6-DOF pose estimates of the drones, world frame."""
    time: Tensor
    """[N] seconds since the start of each flight."""


class Policy(Protocol):
    """Anything that flies: baselines, learned policies, a person at a keyboard."""

    needs_gold_path: bool
    """Whether `reset` must be given the demonstration's path; true for ORACLE alone."""

    def reset(
        self,
        instructions: Sequence[str],
        start: Pose,
        gold_paths: Sequence[Tensor] | None = None,
    ) -> None:
        """Begin N flights.

        Args:
            instructions: N texts.
            start: [N] start poses, world frame.
            gold_paths: N paths [P, 2], world frame, only for a policy that needs them.
        """
        ...

    def act(self, observation: Observation) -> Action:
        """Decide for all N drones; what it says for one that has stopped is ignored."""
        ...
