"""The served camera: an image is exposed at once, rendered later, and streamed at the camera's rate and latency."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from wordwing.flight.served.faults import FaultSchedule, FrozenCamera
from wordwing.flight.served.video import RATE, VideoServer
from wordwing.frames import Pose
from wordwing.lab.camera import LabCamera
from wordwing.lab.vehicle import LabConfig
from wordwing.world.layout import Layout


class CameraMount(Protocol):
    """The vehicle that carries the camera."""

    @property
    def time(self) -> float:
        """Now, lab time."""
        ...

    def pose_at(self, time: float) -> Pose:
        """[1] its true pose at a moment of the last half second, world frame."""
        ...


@dataclass(frozen=True)
class Exposure:
    """An image that has been taken but not rendered yet."""

    opened: Pose
    """[1] of the drone when the shutter opened, world frame."""
    closed: Pose
    """[1] when it closed."""
    time: float
    """When it closed, lab time."""
    frozen: FrozenCamera | None
    """The fault of the camera, if any."""


class ServedCamera:
    """Takes the images of one flight."""

    def __init__(self, layout: Layout, config: LabConfig, mount: CameraMount, faults: FaultSchedule, seed: int) -> None:
        self._layout = layout
        self._config = config
        self._mount = mount
        self._faults = faults
        self._seed = seed
        self._last: tuple[NDArray[np.uint8], float] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the raw images."""
        sensor = self._config.camera.lens.sensor
        return sensor.width, sensor.height

    def expose(self, age: float | None = None) -> Exposure:
        """Take an image whose shutter closed some seconds ago; by default the newest that can have arrived by now."""
        now, pose_at = self._mount.time, self._mount.pose_at
        closed = now - (self._config.image_latency if age is None else age)
        opened = closed - self._config.camera.exposure_time
        frozen = self._faults.active(FrozenCamera, now)
        return Exposure(pose_at(opened), pose_at(closed), closed, frozen)

    def render(self, exposure: Exposure) -> tuple[NDArray[np.uint8], float]:
        """The raw image [H, W, 3] RGB, and when its shutter closed, lab time; a frozen camera repeats an older one."""
        if exposure.frozen is not None and self._last is not None:
            return (self._last[0], exposure.time) if exposure.frozen.still else self._last
        light = self._camera.raw(exposure.opened, exposure.closed)
        self._last = ((light * 255).round().to(torch.uint8).numpy(), exposure.time)
        return self._last

    @cached_property
    def _camera(self) -> LabCamera:
        # Created on first use: many flights need no image.
        camera = LabCamera(self._layout, np.random.default_rng(self._seed), self._config.camera)
        camera.begin(np.random.default_rng([self._seed, 2]))
        return camera


def stream_camera(
    camera: ServedCamera,
    mount: CameraMount,
    video: VideoServer,
    latency: float,
    stopping: threading.Event,
    lock: AbstractContextManager[object],
    speed: float = 1.0,
) -> None:
    """Take images until told to stop; a slow machine drops some.

    Args:
        camera: Takes them.
        mount: The vehicle, whose time counts.
        video: Where they go.
        latency: How old an image is when it is sent, seconds.
        stopping: Ends it.
        lock: Held while the mount must not move.
        speed: How many of the mount's seconds pass in one.
    """
    last_time, next_time = -1.0, 0.0
    while not stopping.wait(0.005 / speed):
        video.accept_client()
        if mount.time < next_time or not video.has_clients:
            continue
        next_time = max(next_time + 1 / RATE, mount.time)
        with lock:
            exposure = camera.expose(age=0.0)
        image, closed = camera.render(exposure)
        # Rendering takes part of the latency that a real camera and its link have.
        while mount.time < exposure.time + latency and not stopping.wait(0.002 / speed):
            pass
        if closed > last_time:
            last_time = closed
            video.send(image, closed)
