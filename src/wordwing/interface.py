"""What environments and policies exchange: observations one way, setpoints and STOP the other.

Everything is batched over N drones; one flight is a batch of one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Protocol, Self

import torch
from torch import Tensor

from wordwing.constants import (
    CONTROL_PERIOD as CONTROL_PERIOD,
    FLIGHT_HEIGHT as FLIGHT_HEIGHT,
    MAX_FORWARD as MAX_FORWARD,
    MAX_YAW_RATE as MAX_YAW_RATE,
)
from wordwing.errors import WordwingError
from wordwing.frames import Pose
from wordwing.interrupts import ABORTED_FLIGHT

Domain = Literal["sim", "lab"]
"""Where a drone flies and its images come from: the simulator or the lab."""


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
    velocity: Tensor | None = None
    """[N, 3] velocity estimates, m/s, world frame; None where the pose source gives none."""


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

    def act(self, observation: Observation) -> Action:
        """Decide for all N drones; what it says for one that has stopped is ignored."""


class Environment(Protocol):
    """N worlds with a drone in each: the simulator, the lab, a drone on MAVLink. Time passes only in `step`."""

    def reset(self, layouts: Any, poses: Pose, worlds: Tensor | None = None) -> Observation:
        """Begin flights in layouts [M] at poses [M], world frame, in worlds [M], by default in all.

        A vehicle that is connected already hovers at its start: it only observes.
        """

    def observe(self) -> Observation:
        """Images and pose estimates of all N drones now."""

    def step(self, setpoint: Setpoint, *, safety: bool = True) -> Setpoint:
        """Fly setpoints [N] for one control period; returns what was flown, after limits and safety."""

    @property
    def seconds_inside_landmarks(self) -> Tensor | None:
        """[N] how long each drone has flown through landmarks; None where that is not known."""


class FlightOverError(WordwingError):
    """The vehicle no longer flies for this pilot; the message says why."""

    status = ABORTED_FLIGHT


class Vehicle(ABC):
    """One drone that takes setpoints, simulated or real: an `Environment` of one world.

    Use it as a context manager: it connects on entry, and lands and closes on exit, whatever has happened;
    also if connecting fails halfway.
    """

    @abstractmethod
    def connect(self) -> None:
        """Make contact and hover at the start of a flight."""

    @abstractmethod
    def observe(self) -> Observation:
        """The newest image and pose estimate, a batch of one."""

    @abstractmethod
    def send(self, setpoint: Setpoint) -> Setpoint:
        """Fly this setpoint [1] until the next one.

        Returns:
            What was really sent, after limits and safety.
        """

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Let time pass: simulated time for a simulated drone, real time for a real one."""

    @abstractmethod
    def land(self) -> None:
        """Come down and stop the motors; does nothing on the ground or before it has connected."""

    @abstractmethod
    def close(self) -> None:
        """Release the drone; may be called twice."""

    def reset(self, layouts: Any, poses: Pose, worlds: Tensor | None = None) -> Observation:
        """Begin a flight where the connected drone hovers."""
        return self.observe()

    def step(self, setpoint: Setpoint, *, safety: bool = True) -> Setpoint:
        """Fly a setpoint [1] for one control period; a vehicle's safety cannot be switched off here."""
        sent = self.send(setpoint)
        self.wait(CONTROL_PERIOD)
        return sent

    @property
    def seconds_inside_landmarks(self) -> Tensor | None:
        """[1] how long it has flown through landmarks; a real drone does not know."""
        return None

    def __enter__(self) -> Self:
        try:
            self.connect()
        except BaseException:
            with suppress(Exception):  # why it could not connect is the better story
                self.land()
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.land()
        finally:
            self.close()
