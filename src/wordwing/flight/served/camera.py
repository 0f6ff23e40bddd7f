"""The served lab's camera: when a picture is taken is one thing, drawing it, which takes its time, another."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from wordwing.flight.served.faults import FrozenCamera, Troubles
from wordwing.frames import Pose
from wordwing.lab.camera import LabCamera
from wordwing.lab.vehicle import LabConfig
from wordwing.world.layout import Layout


class Carrier(Protocol):
    """What carries the camera."""

    @property
    def time(self) -> float:
        """Now, lab time."""
        ...

    def pose_at(self, time: float) -> Pose:
        """[1] its true pose at a moment of the last half second, world frame."""
        ...


@dataclass(frozen=True)
class Exposure:
    """A picture that has been taken but not been drawn yet."""

    opened: Pose
    """[1] of the drone when the shutter opened, world frame."""
    closed: Pose
    """[1] when it closed."""
    time: float
    """When it closed, lab time."""
    frozen: FrozenCamera | None
    """What is wrong with the camera."""


class ServedCamera:
    """Takes the pictures of one flight."""

    def __init__(self, layout: Layout, config: LabConfig, carrier: Carrier, troubles: Troubles, seed: int) -> None:
        self._layout = layout
        self._config = config
        self._carrier = carrier
        self._troubles = troubles
        self._seed = seed
        self._last: tuple[NDArray[np.uint8], float] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the raw pictures."""
        sensor = self._config.camera.lens.sensor
        return sensor.width, sensor.height

    def expose(self, age: float | None = None) -> Exposure:
        """Take a picture whose shutter closed some seconds ago; by default the newest that can have arrived by now."""
        now, pose_at = self._carrier.time, self._carrier.pose_at
        closed = now - (self._config.image_latency if age is None else age)
        opened = closed - self._config.camera.exposure_time
        frozen = self._troubles.now(FrozenCamera, now)
        return Exposure(pose_at(opened), pose_at(closed), closed, frozen)

    def develop(self, exposure: Exposure) -> tuple[NDArray[np.uint8], float]:
        """The raw picture [H, W, 3] RGB, and when its shutter closed, lab time; of a hung camera an older one."""
        if exposure.frozen is not None and self._last is not None:
            return (self._last[0], exposure.time) if exposure.frozen.still else self._last
        light = self._camera.raw(exposure.opened, exposure.closed)
        self._last = ((light * 255).round().to(torch.uint8).numpy(), exposure.time)
        return self._last

    @cached_property
    def _camera(self) -> LabCamera:
        # Made late: many flights need no picture.
        camera = LabCamera(self._layout, np.random.default_rng(self._seed), self._config.camera)
        camera.begin(np.random.default_rng([self._seed, 2]))
        return camera
