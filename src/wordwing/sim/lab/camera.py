"""The lab's camera: what MuJoCo Warp draws, seen through a real lens by a real sensor.

The scene is drawn wide, bent by the lens, blurred by the drone's turning during the exposure, exposed, darkened towards
the corners, and made noisy: a raw picture. It is then straightened into the policy's 84° view, as a real drone's
pictures are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from wordwing.camera import Camera, CameraConfig
from wordwing.frames import Pose, quaternion_conjugate, quaternion_multiply, quaternion_rotate
from wordwing.lens import LensConfig, Rectifier, sample, undistort
from wordwing.sim.lab.scene import LabScene
from wordwing.world.layout import Layout


@dataclass(frozen=True)
class LabCameraConfig:
    """Lens, exposure and sensor; the noise figures are typical of a small rolling-shutter camera, not measured."""

    lens: LensConfig = field(default_factory=LensConfig)
    exposure_time: float = 0.02
    """Seconds that the shutter is open, for motion blur."""
    blur_samples: int = 3
    """Moments during the exposure that are averaged."""
    exposure_spread: float = 0.08
    """Standard deviation of the logarithm of the exposure from flight to flight."""
    flicker: float = 0.02
    """Standard deviation of the logarithm of the exposure from picture to picture."""
    vignetting: float = 0.25
    """Light lost in the corners of the raw picture."""
    read_noise: float = 0.008
    """Standard deviation of the noise of a dark pixel, of a full scale of 1."""
    shot_noise: float = 0.015
    """Standard deviation of the noise of a white pixel."""


class LabCamera:
    """Takes pictures of one lab."""

    def __init__(
        self, layout: Layout, rng: np.random.Generator, config: LabCameraConfig | None = None
    ) -> None:
        self.config = config = config or LabCameraConfig()
        self.view = Camera()
        lens = config.lens
        sensor = Camera(lens.sensor)
        self._straight = undistort(sensor.rays()[..., 1:], lens)  # [H, W, 2] where raw pixels look
        # Wide enough for the corners of the raw picture and for blur.
        reach = 1.04 * self._straight[..., 0].abs().max().item()
        fov = math.degrees(2 * math.atan(reach))
        size = lens.sensor
        self._wide = Camera(
            CameraConfig(round(size.width * 1.15), round(size.height * 1.25), fov, size.pitch_down_deg)
        )
        self._scene = LabScene(layout, self._wide)
        self._rectify = Rectifier(lens, self.view)
        self._rng = rng
        self._exposure = math.exp(config.exposure_spread * rng.standard_normal())
        radius = self._straight.norm(dim=-1, keepdim=True)
        self._falloff = 1 - config.vignetting * (radius / radius.max()).square()

    def raw(self, before: Pose, after: Pose) -> Tensor:
        """The distorted, noisy picture [H, W, 3] in [0, 1] of an exposure from one drone pose [1] to another."""
        opened, closed = self._wide.pose(before), self._wide.pose(after)
        drawn = self._scene.draw(closed)
        moments = torch.linspace(0.0, 1.0, self.config.blur_samples)
        turn = quaternion_multiply(quaternion_conjugate(closed.quaternion), opened.quaternion)[0]
        bent = [sample(drawn, _turned(self._straight, turn, float(part)), self._wide) for part in moments]
        gain = self._exposure * math.exp(self.config.flicker * self._rng.standard_normal())
        light = torch.stack(bent).mean(0) * self._falloff * gain
        grain = torch.from_numpy(self._rng.standard_normal(light.shape).astype(np.float32))
        noise = (self.config.read_noise**2 + self.config.shot_noise**2 * light).sqrt()
        return ((light + noise * grain).clamp(0, 1) * 255).round() / 255

    def take(self, before: Pose, after: Pose) -> Tensor:
        """The policy's view [72, 128, 3] uint8 of such an exposure."""
        straight = self._rectify(self.raw(before, after))
        return (straight * 255).round().clamp(0, 255).to(torch.uint8)

    def segment(self, drone: Pose) -> np.ndarray:
        """[height, width] landmark slots in the wide drawing from a drone pose [1]; its camera is `wide`."""
        return self._scene.segment(self._wide.pose(drone))


def _turned(rays: Tensor, turn: Tensor, part: float) -> Tensor:
    """Rays [H, W, 2] (left, up) of a camera turned by a share of a small rotation (w, x, y, z)."""
    share = torch.cat([turn[:1], turn[1:] * part])
    ahead = torch.cat([torch.ones_like(rays[..., :1]), rays], dim=-1)
    moved = quaternion_rotate(share / share.norm(), ahead)
    return moved[..., 1:] / moved[..., :1]
