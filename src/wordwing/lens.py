"""Lens distortion and its removal, so that every camera reaches the policy as the same pinhole view.

Brown's radial model: a ray that a pinhole would see at (x, y) = (left, up) per unit of depth lands at
(x, y)·(1 + k₁r² + k₂r⁴), with r² = x² + y².
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor
from torch.nn.functional import grid_sample

from wordwing.camera import Camera, CameraConfig


@dataclass(frozen=True)
class LensConfig:
    """A camera as it is built: wider and finer than the policy's view, behind a lens that bends lines."""

    sensor: CameraConfig = field(default_factory=lambda: CameraConfig(width=248, height=140, horizontal_fov_deg=82.0))
    """Size of the raw picture, and its field of view if the lens did not bend; this barrel makes 82° 86°."""
    k1: float = -0.10
    """First radial coefficient; negative is a barrel."""
    k2: float = 0.015
    """Second radial coefficient."""


def distort(rays: Tensor, config: LensConfig) -> Tensor:
    """Where pinhole coordinates [..., 2] (left, up per unit of depth) land behind the lens."""
    r2 = rays.square().sum(-1, keepdim=True)
    return rays * (1 + config.k1 * r2 + config.k2 * r2.square())


def undistort(rays: Tensor, config: LensConfig, iterations: int = 20) -> Tensor:
    """The inverse of `distort`, by fixed-point iteration."""
    straight = rays
    for _iteration in range(iterations):
        r2 = straight.square().sum(-1, keepdim=True)
        straight = rays / (1 + config.k1 * r2 + config.k2 * r2.square())
    return straight


def pixels(rays: Tensor, camera: Camera) -> Tensor:
    """Pixel coordinates (u, v) [..., 2] of rays [..., 2] (left, up) in a pinhole camera's picture."""
    middle = rays.new_tensor([camera.config.width / 2, camera.config.height / 2])
    return middle - camera.focal * rays


def sample(picture: Tensor, rays: Tensor, camera: Camera) -> Tensor:
    """Look a pinhole camera's picture [H, W, C] up along rays [h, w, 2] (left, up), bilinearly: [h, w, C]."""
    size = rays.new_tensor([camera.config.width, camera.config.height])
    grid = 2 * pixels(rays, camera) / size - 1
    channels = picture.permute(2, 0, 1)[None]
    found = grid_sample(channels, grid[None], padding_mode="border", align_corners=False)
    return found[0].permute(1, 2, 0)


class Rectifier:
    """Turns raw pictures of a distorted camera into the policy's pinhole view.

    Where the raw picture is finer, each pixel of the view is a mean, so that small things do not flicker.
    """

    def __init__(self, lens: LensConfig, view: Camera | None = None) -> None:
        self.view = view or Camera()
        self._sensor = Camera(lens.sensor)
        config = self.view.config
        if lens.sensor.pitch_down_deg != config.pitch_down_deg:
            raise ValueError(
                f"the camera is pitched down by {lens.sensor.pitch_down_deg}°; "
                f"the policy's view needs {config.pitch_down_deg}°"
            )
        self._finer = max(1, round(self._sensor.focal / self.view.focal))
        size = {"width": config.width * self._finer, "height": config.height * self._finer}
        fine = Camera(replace(config, **size))
        self._bent = distort(fine.rays()[..., 1:], lens)  # [72·finer, 128·finer, 2]
        if not self._sensor.contains(pixels(self._bent, self._sensor)).all():
            raise ValueError(
                f"a camera of {lens.sensor.horizontal_fov_deg}° and {lens.sensor.width}×{lens.sensor.height} "
                f"pixels with this lens does not see all of the policy's {config.horizontal_fov_deg}° view"
            )

    def __call__(self, raw: Tensor) -> Tensor:
        """A raw picture [H, W, 3], any float scale, as the policy's view [72, 128, 3]."""
        fine = sample(raw, self._bent, self._sensor)
        tiles = fine.unflatten(1, (-1, self._finer)).unflatten(0, (-1, self._finer))
        return tiles.mean(dim=(1, 3))
