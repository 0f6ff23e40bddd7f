"""Poses, frames and conversions: the only place that knows NED, FRD and dataset units.

Inside wordwing every frame is right-handed with z up: the world frame has its origin at the arena's
centre; a body frame has x forward, y left, z up; the start frame (the paper's world frame) is the world
frame moved to the start position and turned so that x points along the start heading. Angles are radians,
counter-clockwise seen from above; quaternions are (w, x, y, z) and turn body vectors into world vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from wordwing.constants import ARENA_HALF as ARENA_HALF, ARENA_SIZE as ARENA_SIZE


def wrap_angle(angle: Tensor) -> Tensor:
    """Bring angles into [-π, π)."""
    return torch.remainder(angle + math.pi, 2 * math.pi) - math.pi


def quaternion_multiply(a: Tensor, b: Tensor) -> Tensor:
    """Compose rotations: `b` first, then `a`; [..., 4] each."""
    aw, ax, ay, az = a.unbind(-1)
    bw, bx, by, bz = b.unbind(-1)
    return torch.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ],
        dim=-1,
    )


def quaternion_rotate(quaternion: Tensor, vector: Tensor) -> Tensor:
    """Rotate vectors [..., 3] by unit quaternions [..., 4] (broadcast)."""
    w, v = quaternion[..., :1], quaternion[..., 1:]
    v, vector = torch.broadcast_tensors(v, vector)
    t = 2 * torch.linalg.cross(v, vector)
    return vector + w * t + torch.linalg.cross(v, t)


def quaternion_conjugate(quaternion: Tensor) -> Tensor:
    """The inverse rotation of a unit quaternion [..., 4]."""
    return torch.cat([quaternion[..., :1], -quaternion[..., 1:]], dim=-1)


def quaternion_from_euler(roll: Tensor, pitch: Tensor, yaw: Tensor) -> Tensor:
    """Yaw about z, then pitch about the new y, then roll about the new x; [...] each to [..., 4].

    With z up and x forward a positive pitch points the nose *down*.
    """
    # Vector instructions and their scalar remainders differ in the last bit of a sine, so world i would depend on
    # how many worlds there are. In double, rounded afterwards, they do not.
    kind = roll.dtype
    roll, pitch, yaw = roll.double(), pitch.double(), yaw.double()
    cr, sr = torch.cos(roll / 2), torch.sin(roll / 2)
    cp, sp = torch.cos(pitch / 2), torch.sin(pitch / 2)
    cy, sy = torch.cos(yaw / 2), torch.sin(yaw / 2)
    return torch.stack(
        [
            cr * cp * cy + sr * sp * sy,
            sr * cp * cy - cr * sp * sy,
            cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy,
        ],
        dim=-1,
    ).to(kind)


def euler_from_quaternion(quaternion: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Roll, pitch and yaw [...] in radians of unit quaternions [..., 4], in double; inverts `quaternion_from_euler`."""
    w, x, y, z = quaternion.double().unbind(-1)
    roll = torch.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = torch.asin((2 * (w * y - z * x)).clamp(-1, 1))
    yaw = torch.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    return roll, pitch, yaw


@dataclass(frozen=True)
class Pose:
    """A batch of rigid 6-DOF poses in some z-up frame."""

    position: Tensor
    """[..., 3] metres."""
    quaternion: Tensor
    """[..., 4] unit (w, x, y, z), body to frame."""

    @classmethod
    def level(cls, xy: Tensor, yaw: Tensor, height: float | Tensor = 0.0) -> Pose:
        """Poses without roll and pitch: xy [..., 2] metres, yaw [...] radians."""
        # A number is filled in, not sent to the device, which would wait for it.
        z = height.to(xy).expand(xy.shape[:-1]) if isinstance(height, Tensor) else xy.new_full(xy.shape[:-1], height)
        half = yaw.double() / 2  # for the reason in `quaternion_from_euler`
        zero = torch.zeros_like(half)
        quaternion = torch.stack([half.cos(), zero, zero, half.sin()], dim=-1)
        return cls(torch.cat([xy, z[..., None]], dim=-1), quaternion.to(yaw.dtype))

    @classmethod
    def stack(cls, poses: Sequence[Pose]) -> Pose:
        """Join poses of equal shape along a new leading dimension."""
        return cls(
            torch.stack([pose.position for pose in poses]),
            torch.stack([pose.quaternion for pose in poses]),
        )

    def __post_init__(self) -> None:
        if self.position.shape[-1] != 3 or self.quaternion.shape[-1] != 4:
            raise ValueError(
                f"a pose needs [..., 3] and [..., 4], not {list(self.position.shape)} and {list(self.quaternion.shape)}"
            )

    def __getitem__(self, index: object) -> Pose:
        return Pose(self.position[index], self.quaternion[index])  # type: ignore[index]

    def __len__(self) -> int:
        return len(self.position)

    @property
    def xy(self) -> Tensor:
        """[..., 2] horizontal position, metres."""
        return self.position[..., :2]

    @property
    def yaw(self) -> Tensor:
        """[...] heading of the body x axis, radians in [-π, π]."""
        w, x, y, z = self.quaternion.double().unbind(-1)  # for the reason in `quaternion_from_euler`
        return torch.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)).to(self.quaternion.dtype)

    def to(self, device: torch.device | str) -> Pose:
        """The same poses on another device."""
        return Pose(self.position.to(device), self.quaternion.to(device))

    def __matmul__(self, other: Pose) -> Pose:
        """`self @ other`: a pose given in the body frame of `self`, in the frame of `self`."""
        return Pose(
            self.position + quaternion_rotate(self.quaternion, other.position),
            quaternion_multiply(self.quaternion, other.quaternion),
        )

    def inverse(self) -> Pose:
        """The pose of the frame seen from the body."""
        inverse = quaternion_conjugate(self.quaternion)
        return Pose(-quaternion_rotate(inverse, self.position), inverse)

    def apply(self, points: Tensor) -> Tensor:
        """Take points [..., 3] from the body frame to the frame of the pose."""
        return self.position + quaternion_rotate(self.quaternion, points)

    def unapply(self, points: Tensor) -> Tensor:
        """Take points [..., 3] from the frame of the pose to the body frame."""
        return quaternion_rotate(quaternion_conjugate(self.quaternion), points - self.position)

    def apply_xy(self, points: Tensor) -> Tensor:
        """`apply` to points [..., 2] at height 0; their heights are dropped."""
        return self.apply(functional.pad(points, (0, 1)))[..., :2]

    def unapply_xy(self, points: Tensor) -> Tensor:
        """`unapply` to points [..., 2] at height 0; their heights are dropped."""
        return self.unapply(functional.pad(points, (0, 1)))[..., :2]


def start_frame(start: Pose) -> Pose:
    """The pose of the start frame in the world: on the floor below the start, level, along its heading."""
    return Pose.level(start.xy, start.yaw)


def in_start_frame(pose: Pose, start: Pose) -> Pose:
    """World poses seen from the start frame."""
    frame = start_frame(start)  # not `frame.inverse() @ pose`: torch.compile cannot follow an @ of ours
    turned = quaternion_multiply(quaternion_conjugate(frame.quaternion), pose.quaternion)
    return Pose(frame.unapply(pose.position), turned)


def world_to_ned(vector: Tensor) -> Tensor:
    """World vectors (x, y left, z up) to local NED (north = world x, east = -y, down = -z); an involution."""
    return vector * vector.new_tensor([1.0, -1.0, -1.0])


ned_to_world = world_to_ned
flu_to_frd = world_to_ned
"""Body vectors x forward, y left, z up to x forward, y right, z down, as MAVLink has them."""

frd_to_flu = world_to_ned


def yaw_rate_to_ned(yaw_rate: Tensor) -> Tensor:
    """Counter-clockwise (turn left) to clockwise (turn right), and back."""
    return -yaw_rate


def quaternion_to_ned(quaternion: Tensor) -> Tensor:
    """FLU-to-world quaternions to FRD-to-NED ones: half a turn about x on both sides; an involution."""
    return quaternion * quaternion.new_tensor([1.0, 1.0, -1.0, -1.0])


CONFIG_UNITS = 1000.0
"""Edge of the arena in the units of the LANI and drif layout files."""

CONFIG_UNIT = ARENA_SIZE / CONFIG_UNITS
"""One of those units, metres."""

UNITY_ORIGIN, UNITY_SIZE = 225.0, 50.0
"""Corner and edge of the arena in LANI's annotations, Unity metres."""


def config_to_world(xz: Tensor) -> Tensor:
    """Layout-file units [..., 2] in [0, 1000] (x right, z up seen from above) to arena metres."""
    return (xz / CONFIG_UNITS - 0.5) * ARENA_SIZE


def world_to_config(xy: Tensor) -> Tensor:
    """Arena metres [..., 2] to layout-file units."""
    return (xy / ARENA_SIZE + 0.5) * CONFIG_UNITS


def unity_to_world(xz: Tensor) -> Tensor:
    """LANI annotation positions [..., 2], Unity metres in [225, 275], to arena metres."""
    return ((xz - UNITY_ORIGIN) / UNITY_SIZE - 0.5) * ARENA_SIZE


def world_to_unity(xy: Tensor) -> Tensor:
    """Arena metres [..., 2] to LANI annotation positions."""
    return (xy / ARENA_SIZE + 0.5) * UNITY_SIZE + UNITY_ORIGIN


def compass_to_yaw(degrees: Tensor) -> Tensor:
    """LANI rotations, degrees clockwise from +z (our +y), to yaw in radians."""
    return wrap_angle(math.pi / 2 - torch.deg2rad(degrees))


def yaw_to_compass(yaw: Tensor) -> Tensor:
    """Yaw in radians to LANI rotations in [0, 360) degrees."""
    return torch.remainder(90.0 - torch.rad2deg(yaw), 360.0)


def heading_to_yaw(degrees: Tensor) -> Tensor:
    """Headings in degrees, clockwise from north, to yaw in radians in a frame with x north, y west and z up."""
    return wrap_angle(-torch.deg2rad(degrees))


def yaw_to_heading(yaw: Tensor) -> Tensor:
    """Yaw in radians in a frame with x north, y west and z up to headings in [0, 360) degrees."""
    return torch.remainder(-torch.rad2deg(yaw), 360.0)
