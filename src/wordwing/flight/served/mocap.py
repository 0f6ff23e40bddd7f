"""Motion capture of a simulated drone: JSON over UDP, as `wordwing flight mocap` and the guardian read it."""

from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from wordwing.errors import WordwingError
from wordwing.flight.arena import Arena
from wordwing.flight.mavlink.geometry import PlainPose, Vector, add, multiply, quaternion_from_euler, scale
from wordwing.flight.mavlink.link import UdpClient
from wordwing.flight.mocap.relay import MocapSample
from wordwing.flight.served.faults import FaultSchedule, MocapFreeze, PoseDropout

PERIOD = 0.02
"""Seconds between two poses of the served lab."""

POSITION_NOISE, ATTITUDE_NOISE = 0.0005, 0.001
"""Standard deviations on each axis, metres and radians: what a good system has."""

QUEUE = 100
"""Longest queue of poses."""


class MocapStream:
    """Measures true poses, with noise and faults; it has no sockets."""

    def __init__(
        self,
        frame: Arena,
        faults: FaultSchedule,
        seed: Sequence[int],
        position_noise: float = POSITION_NOISE,
        attitude_noise: float = ATTITUDE_NOISE,
    ) -> None:
        """Prepare.

        Args:
            frame: Pose of the arena in the frame of motion capture, which becomes the autopilot's local frame.
            faults: Faults.
            seed: Of the noise.
            position_noise: Standard deviation on each axis, metres.
            attitude_noise: Standard deviation on each axis, radians.
        """
        self._frame, self._faults = frame, faults
        self._position_noise, self._attitude_noise = position_noise, attitude_noise
        self._rng = np.random.default_rng(list(seed))
        self._last: MocapSample | None = None
        self._due = 0.0
        self._queue: deque[MocapSample] = deque(maxlen=QUEUE)

    def measure(self, pose: PlainPose, time: float) -> MocapSample | None:
        """A true pose, world frame, as it is measured; None during a dropout."""
        if self._faults.active(PoseDropout, time) is not None:
            return None
        if self._last is not None and self._faults.active(MocapFreeze, time) is not None:
            return self._last._replace(time=time)
        dx, dy = self._faults.measured_offset(time)
        noise = scale(self._position_noise, self._normal())
        tilt = quaternion_from_euler(*scale(self._attitude_noise, self._normal()))
        local = self._frame.local_pose(add(add(pose.position, noise), (dx, dy, 0.0)), pose.quaternion)
        self._last = MocapSample(time, local.position, multiply(local.quaternion, tilt))
        return self._last

    def tick(self, pose_at: Callable[[float], tuple[NDArray[np.float64], NDArray[np.float64]]], time: float) -> None:
        """Measure the drone's position [3] and quaternion [4] if a pose is due, and queue it until it is taken."""
        if time >= self._due - 1e-6:
            self._due += PERIOD
            measured = self.measure(PlainPose.of(*pose_at(time)), time)
            if measured is not None:
                self._queue.append(measured)

    def _normal(self) -> Vector:
        """Three normal numbers."""
        x, y, z = self._rng.standard_normal(3).tolist()
        return x, y, z

    def take(self) -> list[MocapSample]:
        """All queued poses since the last call, oldest first."""
        return [self._queue.popleft() for _ in range(len(self._queue))]


def open_sender(host: str, port: int) -> UdpClient:
    """A UDP socket that sends poses to an address; what nobody receives is dropped."""
    try:
        return UdpClient(host, port, local=0)
    except OSError as error:
        why = (error.strerror or "unknown").lower()
        raise WordwingError(f"motion capture cannot be sent to {host}:{port} ({why})") from None
