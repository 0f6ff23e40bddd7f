"""The drone in the arena: the autopilot's estimate in the world frame."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from wordwing.flight.estimate import Estimate, Moment
from wordwing.flight.mocap_watch import MocapWatch
from wordwing.flight.safety import Motion, motion_of
from wordwing.frames import Pose, euler_from_quaternion, quaternion_from_euler


class ArenaFrame(Protocol):
    """What must be known of an `Arena`."""

    @property
    def half(self) -> float: ...  # noqa: D102
    @property
    def margin(self) -> float: ...  # noqa: D102
    @property
    def side_margin(self) -> float: ...  # noqa: D102
    def pose(self, position_up: Tensor, quaternion_up: Tensor) -> Pose: ...  # noqa: D102
    def velocity(self, velocity_up: Tensor) -> Tensor: ...  # noqa: D102


class Whereabouts:
    """Reads an `Estimate` through an arena; heights and velocities are those of motion capture.

    The autopilot's heights drift, and it may not know how it moves: PX4's simulator was wrong by 0.2 m/s.
    """

    def __init__(self, arena: ArenaFrame, estimate: Estimate, mocap: MocapWatch) -> None:
        self._arena = arena
        self._estimate = estimate
        self._mocap = mocap

    def motion(self) -> Motion | None:
        """The newest that is known, or None."""
        moment = self._estimate.newest()
        if moment is None:
            return None
        x, y = self._mocap.velocity() or moment.velocity[:2]
        velocity = self._arena.velocity(torch.tensor([x, y, moment.velocity[2]], dtype=torch.float64))
        return motion_of(self._pose(moment), velocity, moment.rates)

    def newest(self) -> tuple[float, tuple[float, ...]] | None:
        """When all was last known, seconds of our clock, and x, y, z, roll, pitch, yaw then, world frame."""
        time = self._estimate.newest_time()
        moment = self._estimate.pose_at(time)
        return None if moment is None else (time, self._numbers(moment))

    def pose_at(self, time: float) -> Pose | None:
        """The pose [] in the world frame at a time of our clock; None if it is not in memory."""
        moment = self._estimate.pose_at(time)
        return None if moment is None else self._pose(moment)

    def poses_since(self, time: float) -> list[tuple[float, tuple[float, ...]]]:
        """Times after `time`, and x, y, z, roll, pitch, yaw in the world frame then, oldest first."""
        known = [(then, self._estimate.pose_at(then)) for then in self._estimate.times_since(time)]
        return [(then, self._numbers(moment)) for then, moment in known if moment is not None]

    def _pose(self, moment: Moment) -> Pose:
        angles = torch.tensor(moment.angles, dtype=torch.float64)
        x, y, z = moment.position
        position = torch.tensor([x, y, z - self._mocap.height_bias], dtype=torch.float64)
        return self._arena.pose(position, quaternion_from_euler(*angles.unbind()))

    def _numbers(self, moment: Moment) -> tuple[float, ...]:
        pose = self._pose(moment)
        angles = (float(angle) for angle in euler_from_quaternion(pose.quaternion))
        return (*pose.position.tolist(), *angles)
