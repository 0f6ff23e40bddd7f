"""Images and poses of the same moment: what the policy is shown must be where it was seen from."""

import threading
from bisect import bisect_left
from dataclasses import dataclass

import torch

from wordwing.flight.camera_stream import CameraFrame
from wordwing.frames import Pose
from wordwing.interface import Observation

TOLERANCE = 0.05
"""How far from an image's moment the nearest pose may be, seconds; at 0.7 m/s and 1 rad/s that is 3.5 cm and 3°."""


class PoseTrack:
    """Poses of the last seconds, in between by straight lines; one may add while another looks."""

    def __init__(self, seconds: float = 2.0) -> None:
        self.seconds = seconds
        self._lock = threading.Lock()
        self._times: list[float] = []
        self._poses: list[Pose] = []

    def add(self, time: float, pose: Pose) -> None:
        """Take in a pose, one without batch dimension, of a moment after all others; an older one is left out."""
        with self._lock:
            if self._times and time <= self._times[-1]:
                return
            self._times.append(time)
            self._poses.append(pose)
            old = bisect_left(self._times, time - self.seconds)
            del self._times[:old], self._poses[:old]

    def pose_at(self, time: float) -> Pose | None:
        """The pose at a time; before the first and after the last it is theirs."""
        with self._lock:
            if not self._times:
                return None
            after = bisect_left(self._times, time)
            if after == 0 or after == len(self._times):
                return self._poses[min(after, len(self._times) - 1)]
            earlier, later = self._poses[after - 1], self._poses[after]
            begin, end = self._times[after - 1], self._times[after]
        share = (time - begin) / (end - begin)
        position = earlier.position + share * (later.position - earlier.position)
        # Two quaternions may stand for nearly the same turn and be opposite.
        near = torch.where((earlier.quaternion * later.quaternion).sum() < 0, -later.quaternion, later.quaternion)
        quaternion = earlier.quaternion + share * (near - earlier.quaternion)
        return Pose(position, quaternion / quaternion.norm())

    def gap_at(self, time: float) -> float:
        """Seconds from a time to the nearest pose; infinite if there are none."""
        with self._lock:
            after = bisect_left(self._times, time)
            near = self._times[max(0, after - 1) : after + 1]
        return min((abs(time - other) for other in near), default=float("inf"))


@dataclass(frozen=True)
class MatchedObservation:
    """An image and the pose that it was taken at."""

    frame: CameraFrame
    pose: Pose
    """World frame, no batch dimension."""
    gap: float
    """Seconds from the image to the nearest pose that was measured."""

    def observation(self, begun: float) -> Observation:
        """The same for a policy, of a flight that began at a time on our clock."""
        time = torch.tensor([self.frame.taken - begun])
        pose = Pose(self.pose.position[None].float(), self.pose.quaternion[None].float())
        return Observation(self.frame.image[None], pose, time)


def match(frame: CameraFrame | None, poses: PoseTrack, tolerance: float = TOLERANCE) -> MatchedObservation | None:
    """Find the pose that an image was taken at; None if there is no image, or no pose near enough in time.

    Args:
        frame: What was seen; None if nothing was yet.
        poses: Where the drone was, world frame, on the same clock.
        tolerance: How far the nearest pose may be, seconds.
    """
    if frame is None:
        return None
    pose, gap = poses.pose_at(frame.taken), poses.gap_at(frame.taken)
    return MatchedObservation(frame, pose, gap) if pose is not None and gap <= tolerance else None  # NaN is not, either
