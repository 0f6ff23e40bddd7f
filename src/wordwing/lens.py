"""Lens distortion and its removal, so that every camera reaches the policy as the same pinhole view.

Brown's radial model: a ray that a pinhole would see at (x, y) = (left, up) per unit of depth lands at
(x, y)·(1 + k₁r² + k₂r⁴), with r² = x² + y².
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from wordwing.camera import Camera, CameraConfig


@dataclass(frozen=True)
class LensConfig:
    """A camera as it is built: wider than the policy's view, with a lens that bends straight lines."""

    sensor: CameraConfig = field(default_factory=lambda: CameraConfig(width=160, height=92, horizontal_fov_deg=94.0))
    """Size and nominal field of view of the raw picture."""
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


def sample(picture: Tensor, rays: Tensor, camera: Camera) -> Tensor:
    """Look a pinhole camera's picture [H, W, C] up along rays [h, w, 2] (left, up), bilinearly: [h, w, C]."""
    u = 0.5 * camera.config.width - camera.focal * rays[..., 0]
    v = 0.5 * camera.config.height - camera.focal * rays[..., 1]
    grid = torch.stack([2 * u / camera.config.width - 1, 2 * v / camera.config.height - 1], dim=-1)
    channels = picture.permute(2, 0, 1)[None]
    found = grid_sample(channels, grid[None], padding_mode="border", align_corners=False)
    return found[0].permute(1, 2, 0)


class Rectifier:
    """Turns raw pictures of a distorted camera into the policy's pinhole view."""

    def __init__(self, lens: LensConfig, view: Camera | None = None) -> None:
        self.view = view or Camera()
        self._sensor = Camera(lens.sensor)
        self._bent = distort(self.view.rays()[..., 1:], lens)  # [72, 128, 2]

    def __call__(self, raw: Tensor) -> Tensor:
        """A raw picture [H, W, 3], any float scale, as the policy's view [72, 128, 3]."""
        return sample(raw, self._bent, self._sensor)
