"""The pilot's hand on a guardian: orders go in, what is known of the drone comes out."""

from __future__ import annotations

from typing import Protocol

import torch

from wordwing.flight.clock import Clock
from wordwing.flight.matching import PoseTrack
from wordwing.flight.orders import Order
from wordwing.flight.phases import State
from wordwing.frames import Pose, quaternion_from_euler


class Helm(Protocol):
    """A guardian somewhere: in another process (`process_helm`) or in lock-step with a served lab (`lockstep`)."""

    @property
    def clock(self) -> Clock:
        """Whose times everything has."""
        ...

    @property
    def poses(self) -> PoseTrack:
        """Of the last seconds, world frame."""
        ...

    def order(self, order: Order) -> None:
        """Ask for something."""
        ...

    def state(self) -> State | None:
        """The newest that is known; None before anything is."""
        ...

    @property
    def lost(self) -> str | None:
        """Why nobody can be asked any more, in words; None while the guardian is there."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let time pass; what comes meanwhile is taken in."""
        ...

    def close(self) -> None:
        """Let go; a drone in the air then lands. May be called twice."""
        ...


def pose_from_numbers(numbers: tuple[float, ...] | list[float]) -> Pose:
    """[] the pose that is at x, y, z, metres, with roll, pitch and yaw, radians."""
    values = torch.tensor(numbers, dtype=torch.float64)
    return Pose(values[:3].float(), quaternion_from_euler(*values[3:].unbind()).float())
