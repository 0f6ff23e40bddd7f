"""The served lab's motion capture: the poses that its autopilot is fed with, as the guardian hears them."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import torch

from wordwing.flight.arena import Arena
from wordwing.flight.served.faults import PoseDropout, Troubles
from wordwing.frames import Pose, quaternion_from_euler, quaternion_multiply
from wordwing.lab.flight import LabFlight
from wordwing.lab.vehicle import LabConfig

PERIOD = 0.02
"""Seconds between two poses."""


class MocapPose(NamedTuple):
    """One pose of the drone, in the autopilot's local frame with z up."""

    time: float
    """When it was measured, lab time."""
    position: tuple[float, ...]
    """[3] metres."""
    quaternion: tuple[float, ...]
    """[4] (w, x, y, z), body to local frame."""

    def to_json(self) -> bytes:
        """As `mocap_sources` reads it."""
        return json.dumps(self._asdict()).encode()


class ServedMocap:
    """Measures the drone 50 times a second; what it sees waits until it is taken."""

    def __init__(self, flight: LabFlight, config: LabConfig, arena: Arena, troubles: Troubles, seed: int) -> None:
        self._flight, self._config, self._arena, self._troubles = flight, config, arena, troubles
        self._rng = np.random.default_rng([seed, 15])
        self._due = flight.time
        self._poses: list[MocapPose] = []

    def tick(self) -> None:
        """Measure, if it is time; nothing is seen during a dropout."""
        now = self._flight.time
        if now < self._due - 1e-6:
            return
        self._due += PERIOD
        if self._troubles.now(PoseDropout, now) is None:
            self._poses.append(self._measure(now))
            del self._poses[:-100]  # nobody may be listening

    def take(self) -> list[MocapPose]:
        """All poses since it was last asked, oldest first."""
        poses, self._poses = self._poses, []
        return poses

    def _measure(self, now: float) -> MocapPose:
        position, quaternion = self._flight.pose_at(now)
        position += self._config.position_noise * self._rng.standard_normal(3)
        position[:2] += self._troubles.measured_offset(now)
        wobble = quaternion_from_euler(*torch.from_numpy(self._config.attitude_noise * self._rng.standard_normal(3)))
        pose = self._arena.local(Pose(torch.from_numpy(position), torch.from_numpy(quaternion)))
        turned = quaternion_multiply(pose.quaternion, wobble)
        return MocapPose(now, tuple(pose.position.tolist()), tuple(turned.tolist()))
