"""Poses and setpoints in 16 bits a number.

A half-precision float has steps of 1 to 2 mm beyond 1 m from the arena's centre; whole numbers of fixed steps take as
much room and are wrong by at most half a step everywhere: 0.05 mm, 0.05 mrad (0.003°), 0.017 mm/s and 0.017 mrad/s.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from wordwing.frames import Pose, euler_from_quaternion, quaternion_from_euler
from wordwing.interface import Setpoint

POSITION_STEP = 1e-4
"""Metres; reaches to 3.27 m, the arena's fences are at 2.35 m."""

ANGLE_STEP = math.pi / 2**15
"""Radians; a full turn is all that 16 bits hold, so that angles wrap by themselves."""

SETPOINT_STEP = 1 / 30_000
"""m/s and rad/s; both limits, 0.7 m/s and 1 rad/s, are whole numbers of it."""


def pack_pose(pose: Pose, checked: bool = True) -> Tensor:
    """Poses [...] as [..., 6] int16: x, y, z, roll, pitch, yaw; `checked` that they can be, which waits for a GPU."""
    places = (pose.position.double() / POSITION_STEP).round()
    if checked and not bool((places.abs() < 2**15).all()):  # NaN is not less either
        raise ValueError(f"a position is beyond {2**15 * POSITION_STEP:.2f} m from the arena's centre, or NaN")
    turns = (torch.stack(euler_from_quaternion(pose.quaternion), dim=-1) / ANGLE_STEP).round()
    turns = torch.where(turns >= 2**15, turns - 2**16, turns)
    return torch.cat([places, turns], dim=-1).to(torch.int16)


def unpack_pose(packed: Tensor) -> Pose:
    """What `pack_pose` made, [..., 6], as float32 poses [...]."""
    numbers = packed.double()
    roll, pitch, yaw = (numbers[..., 3:] * ANGLE_STEP).float().unbind(-1)
    return Pose((numbers[..., :3] * POSITION_STEP).float(), quaternion_from_euler(roll, pitch, yaw))


def pack_setpoint(setpoint: Setpoint) -> Tensor:
    """Setpoints [...] within their limits as [..., 2] int16: forward, yaw rate."""
    both = torch.stack([setpoint.forward, setpoint.yaw_rate], dim=-1).double()
    return (both / SETPOINT_STEP).round().to(torch.int16)


def unpack_setpoint(packed: Tensor) -> Setpoint:
    """What `pack_setpoint` made, [..., 2], as float32 setpoints [...]."""
    forward, yaw_rate = (packed.double() * SETPOINT_STEP).float().unbind(-1)
    return Setpoint(forward, yaw_rate)
