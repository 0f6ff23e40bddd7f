"""The arena's frame for batches of poses, and how it is fitted to measured positions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from wordwing.flight.guardian.arena import ArenaFrame
from wordwing.frames import Pose, heading_to_yaw, ned_to_world, quaternion_rotate, world_to_ned, yaw_to_heading


@dataclass(frozen=True)
class Arena(ArenaFrame):
    """`ArenaFrame` with torch: batched conversions, and a least-squares fit."""

    @cached_property
    def frame(self) -> Pose:
        """The world frame's pose in the local frame, in double."""
        place = torch.tensor([self.north, self.east, self.floor_down], dtype=torch.float64)
        yaw = heading_to_yaw(torch.tensor(self.heading_deg, dtype=torch.float64))
        centre = ned_to_world(place)
        return Pose.level(centre[:2], yaw, centre[2])

    def pose(self, position_up: Tensor | Sequence[float], quaternion_up: Tensor | Sequence[float]) -> Pose:
        """A pose of the drone as the policy and safety know it.

        Args:
            position_up: [..., 3] metres, local frame with z up.
            quaternion_up: [..., 4] (w, x, y, z), body (x forward, y left) to local frame with z up.

        Returns:
            [...] in the world frame, heights above the floor; of the dtype of `position_up`.
        """
        position, quaternion = _floats(position_up), _floats(quaternion_up)
        found = self.frame.inverse() @ Pose(position.double(), quaternion.double())
        return Pose(found.position.to(position.dtype), found.quaternion.to(position.dtype))

    def velocity(self, velocity_up: Tensor | Sequence[float]) -> Tensor:
        """Velocities [..., 3] in the local frame with z up, m/s, in the world frame."""
        velocity = _floats(velocity_up)
        return quaternion_rotate(self.frame.inverse().quaternion, velocity.double()).to(velocity.dtype)

    def local(self, pose: Pose) -> Pose:
        """World poses [...] in the local frame with z up: the inverse of `pose`."""
        found = self.frame @ Pose(pose.position.double(), pose.quaternion.double())
        return Pose(found.position.to(pose.position), found.quaternion.to(pose.quaternion))

    @classmethod
    def fit(
        cls,
        places: Tensor | Sequence[Sequence[float]],
        positions_up: Tensor | Sequence[Sequence[float]],
        like: Arena | None = None,
    ) -> tuple[Arena, Tensor]:
        """The arena for which known places are where the autopilot says they are, by least squares.

        Args:
            places: [N, 3] where the drone really was, metres, world frame; at least two apart from each other.
            positions_up: [N, 3] where the autopilot said it was, metres, local frame with z up.
            like: Gives margins and fences.

        Returns:
            The arena, and how far from each place it still puts the drone, [N] metres.
        """
        known = torch.as_tensor(places, dtype=torch.float64)
        found = torch.as_tensor(positions_up, dtype=torch.float64)
        if known.shape != found.shape or known.ndim != 2 or known.shape[1] != 3:
            raise ValueError(f"places and positions must be [N, 3], not {list(known.shape)} and {list(found.shape)}")
        known_middle, found_middle = known.mean(0), found.mean(0)
        (x, y), (u, v) = (known - known_middle)[:, :2].T, (found - found_middle)[:, :2].T
        if float((x.square() + y.square()).sum()) < 0.01:
            raise ValueError("an arena needs two places that are apart from each other")
        yaw = torch.atan2((x * v - y * u).sum(), (x * u + y * v).sum())  # of the world frame in the local frame
        turned = quaternion_rotate(Pose.level(yaw.new_zeros(2), yaw).quaternion, known_middle)
        north, east, down = world_to_ned(found_middle - turned).tolist()
        like = like or cls()
        arena = cls(north, east, float(yaw_to_heading(yaw)), down, like.margin, like.side_margin, like.fences)
        level = found.new_tensor([1.0, 0.0, 0.0, 0.0]).expand(len(found), 4)
        return arena, (arena.pose(found, level).position - known).norm(dim=-1)


def _floats(values: Tensor | Sequence[float]) -> Tensor:
    """Numbers as a tensor: its own dtype if it is one of floats, else float32."""
    given = torch.as_tensor(values)
    return given if given.is_floating_point() else given.float()
