"""Executions with poses and setpoints in 16 bits a number: what demonstrations, D^S and D^R are kept as.

A half-precision float has steps of 1 to 2 mm beyond 1 m from the arena's centre; whole numbers of fixed steps take as
much room and are wrong by at most half a step everywhere: 0.05 mm, 0.05 mrad (0.003°), 0.017 mm/s and 0.017 mrad/s.
"""

import math
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from wordwing.execution.execution import Execution
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


@dataclass(eq=False)
class PackedExecutions:
    """N executions from the first pose to the one where they ended, padded to L poses; coming to rest is left out."""

    poses: Tensor
    """[N, L, 6] int16 as `pack_pose` makes them; beyond an end its last pose again."""
    lengths: Tensor
    """[N] int64, poses of each, at least one: decisions that were flown, and the pose where it ended."""
    setpoints: Tensor | None = None
    """[N, L, 2] int16 flown from these poses, zero at the end and beyond; None where they are not known."""
    stopped: Tensor | None = None
    """[N] bool, whether STOP was decided at the last pose; else the steps had run out there. None where unknown."""

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: Tensor) -> Self:
        """Executions `index` [M], copied."""
        setpoints, stopped = (None if part is None else part[index] for part in (self.setpoints, self.stopped))
        return type(self)(self.poses[index], self.lengths[index], setpoints, stopped)

    def to(self, device: torch.device | str) -> Self:
        """The same executions on another device."""
        setpoints, stopped = (None if part is None else part.to(device) for part in (self.setpoints, self.stopped))
        return type(self)(self.poses.to(device), self.lengths.to(device), setpoints, stopped)

    @classmethod
    def of(cls, execution: Execution) -> Self:
        """Pack N executions, on their device."""
        device = execution.pose.position.device
        ends = execution.decisions.to(device)
        steps = torch.arange(int(ends.max()) + 1, device=device).minimum(ends[:, None])  # [N, L]
        flown = pack_setpoint(execution.setpoint)  # [N, T, 2]
        flown = torch.nn.functional.pad(flown, (0, 0, 0, 1))  # a flight that was broken off has no setpoint at its end
        setpoints = flown.gather(1, steps[..., None].expand(-1, -1, 2)) * (steps < ends[:, None])[..., None]
        poses = pack_pose(execution.pose).gather(1, steps[..., None].expand(-1, -1, 6))
        stopped = torch.tensor([by == "stop" for by in execution.ended_by], device=device)
        return cls(poses, ends + 1, setpoints, stopped)

    @classmethod
    def from_rows(cls, rows: Tensor, lengths: Tensor, stopped: Tensor | None = None, most: int | None = None) -> Self:
        """Executions one after the other, [sum of lengths, 6 or 8] int16 with 8 for poses and setpoints, padded.

        Args:
            rows: As `rows` makes them.
            lengths: [N] int64.
            stopped: [N] bool.
            most: Room for so many poses, and longer executions are cut off; by default the longest.
        """
        # One pose where there are no executions.
        room = int(torch.cat([lengths.new_ones(1), lengths]).max()) if most is None else most
        kept = lengths.clamp(max=room)
        first = torch.cumsum(lengths, 0) - lengths
        padded = rows[first[:, None] + torch.arange(room, device=rows.device).minimum(kept[:, None] - 1)]  # [N, L, 8]
        setpoints = padded[..., 6:].contiguous() if rows.shape[-1] == 8 else None
        return cls(padded[..., :6].contiguous(), kept, setpoints, stopped)

    def rows(self) -> Tensor:
        """[sum of lengths, 6 or 8] int16: executions one after the other, each pose with its setpoint if known."""
        part = torch.arange(self.poses.shape[1], device=self.poses.device) < self.lengths[:, None]
        both = self.poses if self.setpoints is None else torch.cat([self.poses, self.setpoints], dim=-1)
        return both[part]

    def pose(self, index: Tensor, frames: Tensor) -> Pose:
        """[M, K] poses number `frames` [M, K] of executions `index` [M], world frame."""
        return unpack_pose(self.poses[index[:, None], frames])

    def setpoint(self, index: Tensor, frames: Tensor) -> Setpoint:
        """[M, K] setpoints flown from poses `frames` [M, K] of executions `index` [M]."""
        if self.setpoints is None:
            raise ValueError("the setpoints of these executions are not known")
        return unpack_setpoint(self.setpoints[index[:, None], frames])
