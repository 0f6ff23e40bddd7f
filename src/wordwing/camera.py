"""The pinhole camera that both domains and the policy share (paper: First-person Camera).

The camera frame has x along the optical axis, y left and z up in the image. Pixel coordinates are (u, v):
u to the right, v down, with the top left corner of the image at (0, 0), so the centre of the pixel in row r
and column c is (c + 0.5, r + 0.5).
"""

import math
from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Tensor

from wordwing.frames import Pose, quaternion_multiply


@dataclass(frozen=True)
class CameraConfig:
    """A pinhole camera fixed to the drone, its optical centre at the drone's position."""

    width: int = 128
    """Image width, pixels."""
    height: int = 72
    """Image height, pixels."""
    horizontal_fov_deg: float = 84.0
    """Horizontal field of view, degrees."""
    pitch_down_deg: float = 15.0
    """Tilt of the optical axis below the drone's x axis, degrees."""


@dataclass(frozen=True)
class Camera:
    """Projection between the world and the image."""

    config: CameraConfig = field(default_factory=CameraConfig)

    @property
    def focal(self) -> float:
        """Focal length in pixels, the same on both axes."""
        return self.config.width / 2 / math.tan(math.radians(self.config.horizontal_fov_deg) / 2)

    @property
    def vertical_fov_deg(self) -> float:
        """Vertical field of view, degrees."""
        return math.degrees(2 * math.atan(self.config.height / 2 / self.focal))

    def pose(self, drone: Pose) -> Pose:
        """The camera's 6-DOF pose [...] for a drone's pose [...], in the same frame."""
        tilt = _tilt(self.config.pitch_down_deg, drone.quaternion.dtype, drone.quaternion.device)
        return Pose(drone.position, quaternion_multiply(drone.quaternion, tilt.expand_as(drone.quaternion)))

    def project(self, points: Tensor, camera: Pose) -> tuple[Tensor, Tensor]:
        """Project points [..., 3] through camera poses that broadcast against them.

        Returns:
            Pixel coordinates (u, v) [..., 2] and whether the point lies in front of the camera [...];
            behind it the coordinates mean nothing.
        """
        x, y, z = camera.unapply(points).unbind(-1)
        in_front = x > 1e-6
        depth = torch.where(in_front, x, 1.0)
        u = self.config.width / 2 - self.focal * y / depth
        v = self.config.height / 2 - self.focal * z / depth
        return torch.stack([u, v], dim=-1), in_front

    def contains(self, pixels: Tensor) -> Tensor:
        """Whether pixel coordinates [..., 2] lie inside the image."""
        u, v = pixels.unbind(-1)
        return (u >= 0) & (u < self.config.width) & (v >= 0) & (v < self.config.height)

    def rays(self, device: torch.device | str = "cpu") -> Tensor:
        """Directions through the pixel centres in the camera frame, [height, width, 3], x component 1."""
        u = torch.arange(self.config.width, device=device) + 0.5
        v = torch.arange(self.config.height, device=device) + 0.5
        left = (self.config.width / 2 - u) / self.focal
        up = (self.config.height / 2 - v) / self.focal
        up, left = torch.meshgrid(up, left, indexing="ij")
        return torch.stack([torch.ones_like(left), left, up], dim=-1)


@cache
def _tilt(degrees: float, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The camera's rotation on the drone, [4]; kept on the device, since sending it there would wait for the device."""
    half = math.radians(degrees) / 2
    return torch.tensor([math.cos(half), 0.0, math.sin(half), 0.0], dtype=dtype, device=device)
