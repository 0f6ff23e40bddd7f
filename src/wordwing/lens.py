"""Lens distortion and its removal, so that every camera reaches the policy as the same pinhole view.

Brown's model: a ray that a pinhole would see at (x, y) per unit of depth lands at (x, y)·(1 + k₁r² + k₂r⁴ + k₃r⁶), with
r² = x² + y², moved by (2p₁xy + p₂(r² + 2x²), p₁(r² + 2y²) + 2p₂xy) where the lens is not quite parallel to the sensor.
In that formula x is right and y down, as OpenCV has it; rays here are (left, up), which turns the signs of p₁ and p₂.
"""

import math
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor
from torch.nn.functional import grid_sample

from wordwing.camera import Camera, CameraConfig


@dataclass(frozen=True)
class LensConfig:
    """A camera as it is built: wider and finer than the policy's view, behind a lens that bends lines."""

    sensor: CameraConfig = field(default_factory=lambda: CameraConfig(width=248, height=140, horizontal_fov_deg=82.0))
    """Size of the raw image, and its field of view if the lens did not bend; this barrel makes 82° 86°."""
    k1: float = -0.10
    """First radial coefficient; negative is a barrel."""
    k2: float = 0.015
    """Second radial coefficient."""
    k3: float = 0.0
    """Third radial coefficient."""
    p1: float = 0.0
    """First tangential coefficient."""
    p2: float = 0.0
    """Second tangential coefficient."""
    focal: tuple[float, float] | None = None
    """Focal lengths along u and v, pixels; None for both as `sensor` says."""
    centre: tuple[float, float] | None = None
    """Where the optical axis meets the image, (u, v) in pixels with the image's corner at (0, 0); None for its
    middle. OpenCV counts from the middle of the first pixel, so its cx and cy are 0.5 less."""


def distort(rays: Tensor, config: LensConfig) -> Tensor:
    """Where pinhole coordinates [..., 2] (left, up per unit of depth) land behind the lens."""
    radial, tangential = _bend(rays, config)
    return rays * radial if tangential is None else rays * radial + tangential


def undistort(rays: Tensor, config: LensConfig, iterations: int = 20) -> Tensor:
    """The inverse of `distort`, by fixed-point iteration."""
    straight = rays
    for _iteration in range(iterations):
        radial, tangential = _bend(straight, config)
        straight = (rays if tangential is None else rays - tangential) / radial
    return straight


def _bend(rays: Tensor, config: LensConfig) -> tuple[Tensor, Tensor | None]:
    """The factor [..., 1] and the shift [..., 2] of rays [..., 2] (left, up); None where the lens has no shift."""
    r2 = rays.square().sum(-1, keepdim=True)
    radial = 1 + config.k1 * r2 + config.k2 * r2.square()
    if config.k3:
        radial = radial + config.k3 * r2**3
    if not (config.p1 or config.p2):
        return radial, None
    both = 2 * rays.prod(-1, keepdim=True)
    own = r2 + 2 * rays.square()
    p1, p2 = config.p1, config.p2
    return radial, -torch.cat([p1 * both + p2 * own[..., :1], p1 * own[..., 1:] + p2 * both], dim=-1)


def landing(rays: Tensor, lens: LensConfig) -> Tensor:
    """Pixel coordinates (u, v) [..., 2] at which a lens puts rays [..., 2] (left, up) in the raw image."""
    bent, sensor = distort(rays, lens), Camera(lens.sensor)
    if lens.focal is None and lens.centre is None:
        return pixels(bent, sensor)
    centre = lens.centre or (sensor.config.width / 2, sensor.config.height / 2)
    return bent.new_tensor(centre) - bent.new_tensor(lens.focal or (sensor.focal, sensor.focal)) * bent


def pixels(rays: Tensor, camera: Camera) -> Tensor:
    """Pixel coordinates (u, v) [..., 2] of rays [..., 2] (left, up) in a pinhole camera's image."""
    middle = rays.new_tensor([camera.config.width / 2, camera.config.height / 2])
    return middle - camera.focal * rays


def sample(image: Tensor, rays: Tensor, camera: Camera) -> Tensor:
    """Look a pinhole camera's image [H, W, C] up along rays [h, w, 2] (left, up), bilinearly: [h, w, C]."""
    return sample_at(image, pixels(rays, camera))


def sample_at(image: Tensor, places: Tensor) -> Tensor:
    """Look an image [H, W, C] up at pixel coordinates [h, w, 2] (u, v), bilinearly: [h, w, C]."""
    grid = 2 * places / places.new_tensor([image.shape[1], image.shape[0]]) - 1
    found = grid_sample(image.permute(2, 0, 1)[None], grid[None], padding_mode="border", align_corners=False)
    return found[0].permute(1, 2, 0)


class Rectifier:
    """Turns raw images of a distorted camera into the policy's pinhole view.

    Where the raw image is finer, each pixel of the view is a mean, so that small things do not flicker. A camera that
    is pitched otherwise than the view is turned, as far as it sees what the view shows.
    """

    def __init__(self, lens: LensConfig, view: Camera | None = None) -> None:
        self.view = view or Camera()
        config, sensor = self.view.config, lens.sensor
        focal = Camera(sensor).focal if lens.focal is None else max(lens.focal)
        self._finer = max(1, round(focal / self.view.focal))
        size = {"width": config.width * self._finer, "height": config.height * self._finer}
        rays = _pitched(Camera(replace(config, **size)).rays(), config.pitch_down_deg - sensor.pitch_down_deg)
        ahead = bool((rays[..., 0] > 0).all())
        rays = rays[..., 1:] / rays[..., :1] if ahead else rays[..., 1:]
        self._size = (sensor.height, sensor.width)
        self._places = landing(rays, lens)  # [72·finer, 128·finer, 2]
        if not ahead or not Camera(sensor).contains(self._places).all():
            seen = "this focal length" if lens.focal else f"{sensor.horizontal_fov_deg}°"
            raise ValueError(
                f"a camera of {seen} and {sensor.width}×{sensor.height} pixels, pitched down by "
                f"{sensor.pitch_down_deg}°, with this lens does not see all of the policy's "
                f"{config.horizontal_fov_deg}° view, pitched down by {config.pitch_down_deg}°"
            )
        if not _unfolded(rays, lens):
            raise ValueError("with these coefficients the lens would show some places of the policy's view twice")

    def __call__(self, raw: Tensor) -> Tensor:
        """A raw image [H, W, 3], any float scale, as the policy's view [72, 128, 3]."""
        if raw.shape[:2] != self._size:
            raise ValueError(
                f"the image is {raw.shape[1]}×{raw.shape[0]}; the camera's are {self._size[1]}×{self._size[0]}"
            )
        tiles = sample_at(raw, self._places).unflatten(1, (-1, self._finer)).unflatten(0, (-1, self._finer))
        return tiles.mean(dim=(1, 3))


def _pitched(rays: Tensor, degrees: float) -> Tensor:
    """Directions [..., 3] of one camera in the frame of another that is pitched down by so much less."""
    if degrees == 0:
        return rays
    cos, sin = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    ahead, left, up = rays.unbind(-1)
    return torch.stack([cos * ahead + sin * up, left, cos * up - sin * ahead], dim=-1)


def _unfolded(rays: Tensor, lens: LensConfig) -> bool:
    """Whether the lens puts what is farther out farther out, as far as rays [..., 2] reach."""
    r2 = torch.linspace(0.0, float(rays.square().sum(-1).max()), 200)
    return bool((1 + 3 * lens.k1 * r2 + 5 * lens.k2 * r2**2 + 7 * lens.k3 * r2**3 > 0).all())
