"""The lab's camera: what MuJoCo Warp draws, seen through a real lens by a real sensor.

The scene is drawn wide, bent by the lens, blurred by the drone's turning during the exposure, darkened
towards the corners, exposed, and made noisy: a raw image. It is then straightened into the policy's 84°
view, as a real drone's images are.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wordwing.camera import Camera
from wordwing.frames import Pose, quaternion_conjugate, quaternion_multiply, quaternion_rotate
from wordwing.lab.scene import LabScene
from wordwing.lens import LensConfig, Rectifier, sample, undistort
from wordwing.world.layout import Layout

MARGIN = 1.04
"""How much wider than the raw image the scene is drawn: blur looks a little beyond its edges."""


@dataclass(frozen=True)
class LabCameraConfig:
    """Lens, exposure and sensor; the noise figures are typical of a small camera indoors, not measured."""

    lens: LensConfig = field(default_factory=LensConfig)
    exposure_time: float = 0.02
    """Seconds that the shutter is open, for motion blur."""
    blur_samples: int = 3
    """Moments during the exposure that are averaged."""
    exposure_spread: float = 0.08
    """Standard deviation of the logarithm of the exposure from flight to flight."""
    flicker: float = 0.02
    """Standard deviation of the logarithm of the exposure from image to image."""
    vignetting: float = 0.25
    """Share of the light lost in the corners of the raw image."""
    read_noise: float = 0.012
    """Standard deviation of the noise of a dark raw pixel, of a full scale of 1."""
    shot_noise: float = 0.025
    """Standard deviation that light adds to the noise of a white raw pixel; it grows as light's root."""


class LabCamera:
    """Takes images of one lab."""

    def __init__(self, layout: Layout, rng: np.random.Generator, config: LabCameraConfig | None = None) -> None:
        self.config = config = config or LabCameraConfig()
        self.view = Camera()
        lens = config.lens
        self._straight = undistort(Camera(lens.sensor).rays()[..., 1:], lens)  # [H, W, 2]
        self.wide = _covering(self._straight, Camera(lens.sensor))
        self._scene = LabScene(layout, self.wide)
        self._rectify = Rectifier(lens, self.view)
        radius = self._straight.norm(dim=-1, keepdim=True)
        self._falloff = 1 - config.vignetting * (radius / radius.max()).square()
        self.begin(rng)

    def begin(self, rng: np.random.Generator) -> None:
        """Begin a flight: all its noise comes from `rng`, and its exposure does now."""
        self._rng = rng
        self._exposure = math.exp(self.config.exposure_spread * rng.standard_normal())

    def raw(self, before: Pose, after: Pose) -> Tensor:
        """The image [H, W, 3] in [0, 1] as the sensor has it, of an exposure from one drone pose [1] to another."""
        config, rng = self.config, self._rng
        opened, closed = self.wide.pose(before), self.wide.pose(after)
        drawn = self._scene.draw(closed)
        turn = quaternion_multiply(quaternion_conjugate(closed.quaternion), opened.quaternion)[0]
        shares = torch.linspace(0.0, 1.0, config.blur_samples).tolist()
        looks = [sample(drawn, _turned(self._straight, turn, share), self.wide) for share in shares]
        gain = self._exposure * math.exp(config.flicker * rng.standard_normal())
        light = torch.stack(looks).mean(0) * self._falloff * gain
        grain = torch.from_numpy(rng.standard_normal(tuple(light.shape), np.float32))
        noise = (config.read_noise**2 + config.shot_noise**2 * light).sqrt()
        return ((light + noise * grain).clamp(0, 1) * 255).round() / 255

    def take(self, before: Pose, after: Pose) -> Tensor:
        """The policy's view [72, 128, 3] uint8 of such an exposure."""
        view = self._rectify(self.raw(before, after))
        return (view * 255).round().to(torch.uint8)

    def segment(self, drone: Pose) -> NDArray[np.int64]:
        """Landmark slots [height, width] as the camera `wide` sees them from a drone pose [1]; -1 for none."""
        return self._scene.segment(self.wide.pose(drone))


def _covering(rays: Tensor, sensor: Camera) -> Camera:
    """A pinhole camera as fine as the sensor whose image holds rays [..., 2] (left, up) and a margin."""
    reach = MARGIN * rays.abs().flatten(0, -2).amax(0)  # [2]
    width, height = (2 * torch.ceil(sensor.focal * reach)).int().tolist()
    fov = 2 * math.degrees(math.atan(width / 2 / sensor.focal))
    return Camera(replace(sensor.config, width=width, height=height, horizontal_fov_deg=fov))


def _turned(rays: Tensor, turn: Tensor, share: float) -> Tensor:
    """Rays [H, W, 2] (left, up) of a camera turned by a share of a small rotation (w, x, y, z)."""
    part = torch.cat([turn[:1], turn[1:] * share])
    ahead = torch.cat([torch.ones_like(rays[..., :1]), rays], dim=-1)
    moved = quaternion_rotate(part / part.norm(), ahead)
    return moved[..., 1:] / moved[..., :1]
