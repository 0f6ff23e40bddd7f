"""Rotations and poses in plain floats, for a process without torch; conventions and formulas are those of `frames`."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

MARGIN = 0.35
"""Metres that a real drone keeps from the fences at least: nearer, its hull and its overshoot do not fit."""

Vector = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]
"""(w, x, y, z), body to frame."""


class SupportsList(Protocol):
    """An array or a tensor."""

    def tolist(self) -> Any:
        """Its numbers."""


def single(value: float) -> float:
    """A number rounded to float32, as policies, simulator and MAVLink have it."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def to_ned(vector: Vector) -> Vector:
    """World (x, y left, z up) to NED, or body FLU to FRD; an involution."""
    x, y, z = vector
    return x, -y, -z


def quaternion_to_ned(quaternion: Quaternion) -> Quaternion:
    """FLU to world, z up, as FRD to NED: half a turn about x on both sides; an involution."""
    w, x, y, z = quaternion
    return w, x, -y, -z


def add(a: Vector, b: Vector) -> Vector:
    """The sum of two vectors."""
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def scale(factor: float, vector: Vector) -> Vector:
    """A vector times a number."""
    return factor * vector[0], factor * vector[1], factor * vector[2]


def rotate(quaternion: Quaternion, vector: Vector) -> Vector:
    """A body vector in the frame of a unit quaternion."""
    w, x, y, z = quaternion
    a, b, c = vector
    t, u, v = 2 * (y * c - z * b), 2 * (z * a - x * c), 2 * (x * b - y * a)
    return a + w * t + (y * v - z * u), b + w * u + (z * t - x * v), c + w * v + (x * u - y * t)


def conjugate(quaternion: Quaternion) -> Quaternion:
    """The inverse rotation."""
    w, x, y, z = quaternion
    return w, -x, -y, -z


def multiply(a: Quaternion, b: Quaternion) -> Quaternion:
    """Rotate by `b` first, then by `a`."""
    (aw, ax, ay, az), (bw, bx, by, bz) = a, b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def quaternion_from_euler(roll: float, pitch: float, yaw: float) -> Quaternion:
    """Yaw about z, then pitch about the new y, then roll about the new x, radians."""
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    return (
        cr * cp * cy + sr * sp * sy,
        sr * cp * cy - cr * sp * sy,
        cr * sp * cy + sr * cp * sy,
        cr * cp * sy - sr * sp * cy,
    )


def euler_from_quaternion(quaternion: Quaternion) -> Vector:
    """Roll, pitch and yaw, radians; inverts `quaternion_from_euler`."""
    w, x, y, z = quaternion
    roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = math.asin(min(max(2 * (w * y - z * x), -1.0), 1.0))
    return roll, pitch, math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))


@dataclass(frozen=True)
class PlainPose:
    """One rigid 6-DOF pose in some z-up frame."""

    position: Vector
    """Metres."""
    quaternion: Quaternion
    """Unit, body to frame."""

    @classmethod
    def of(cls, position: SupportsList, quaternion: SupportsList) -> PlainPose:
        """The pose of a position [3] and a unit quaternion [4], arrays or tensors."""
        (x, y, z), (a, b, c, d) = position.tolist(), quaternion.tolist()
        return cls((x, y, z), (a, b, c, d))

    @property
    def yaw(self) -> float:
        """Heading of the body x axis, radians, rounded to float32 as `frames.Pose` has it."""
        return single(euler_from_quaternion(self.quaternion)[2])

    def __matmul__(self, pose: PlainPose) -> PlainPose:
        """A pose in the frame that lies here, in the frame that this pose is in."""
        position = add(self.position, rotate(self.quaternion, pose.position))
        return PlainPose(position, multiply(self.quaternion, pose.quaternion))

    def single(self) -> PlainPose:
        """The same pose in float32."""
        x, y, z = map(single, self.position)
        a, b, c, d = map(single, self.quaternion)
        return PlainPose((x, y, z), (a, b, c, d))


@dataclass(frozen=True)
class ArenaFrame:
    """A square arena of 4.7 m in the autopilot's local frame.

    The *local frame* here is the autopilot's local NED turned z up: x north, y west, z up.
    The *world frame* has its origin on the floor at the arena's centre and its +x axis through the red fence.
    """

    north: float = 0.0
    """Of the arena's centre, metres."""
    east: float = 0.0
    """Of the arena's centre, metres."""
    heading_deg: float = 0.0
    """Where the world's +x axis points, degrees clockwise from the local frame's north."""
    floor_down: float = 0.0
    """How far the floor is below the local frame's origin, metres; negative if it is above."""
    margin: float = MARGIN
    """Where safety stops a drone that flies at a fence, metres before it."""
    side_margin: float = MARGIN
    """Where it stops a drone that flies along a fence, metres before it."""

    @cached_property
    def _centre(self) -> PlainPose:
        """The world frame's pose in the local frame."""
        yaw = (-math.radians(self.heading_deg) + math.pi) % (2 * math.pi) - math.pi
        return PlainPose(to_ned((self.north, self.east, self.floor_down)), quaternion_from_euler(0.0, 0.0, yaw))

    @cached_property
    def _inverse(self) -> PlainPose:
        """The local frame's pose in the world frame."""
        back = conjugate(self._centre.quaternion)
        x, y, z = rotate(back, self._centre.position)
        return PlainPose((-x, -y, -z), back)

    def local_pose(self, position: Vector, quaternion: Quaternion) -> PlainPose:
        """A pose in the world frame, in the local frame with z up; inverts `world_pose`."""
        return self._centre @ PlainPose(position, quaternion)

    def local_velocity(self, velocity: Vector) -> Vector:
        """A velocity in the world frame, m/s, in the local frame with z up; inverts `world_velocity`."""
        return rotate(self._centre.quaternion, velocity)

    def world_pose(self, position: Vector, quaternion: Quaternion) -> PlainPose:
        """A pose in the local frame with z up, in the world frame, where heights are above the floor."""
        return self._inverse @ PlainPose(position, quaternion)

    def world_velocity(self, velocity: Vector) -> Vector:
        """A velocity in the local frame with z up, m/s, in the world frame."""
        return rotate(self._inverse.quaternion, velocity)
