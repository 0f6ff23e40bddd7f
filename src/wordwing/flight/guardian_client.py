"""The pilot's end of a guardian, which runs in another process or in lock-step with a served lab (`lockstep`)."""

import json
import socket
import subprocess
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress

import torch

from wordwing.errors import WordwingError
from wordwing.flight.guardian.process import PACKET, GuardianConfig
from wordwing.flight.guardian.protocol import GuardianState, Order, to_json
from wordwing.flight.matching import PoseTrack
from wordwing.flight.mavlink.clock import Clock, SystemClock
from wordwing.frames import Pose, quaternion_from_euler

START_SECONDS = 60.0
"""How long a guardian process may take to load, seconds, on a busy machine."""


class GuardianClient(ABC):
    """Sends orders to a guardian, and keeps the state and the poses that come back."""

    lost: str | None = None
    """Why the guardian cannot be reached any more, in words; None while it can."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        """The clock of all times."""
        self.poses = PoseTrack()
        """Of the last seconds, world frame."""

    @abstractmethod
    def order(self, order: Order) -> None:
        """Send an order."""

    @abstractmethod
    def state(self) -> GuardianState:
        """The newest that is known."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect; a drone in the air then lands. May be called twice."""

    def sleep(self, seconds: float) -> None:
        """Let time pass; what comes meanwhile is taken in."""
        self.clock.sleep(seconds)

    def _add_poses(self, rows: Sequence[tuple[float, Sequence[float]]]) -> None:
        """Keep poses: the time, then x, y, z, metres, and roll, pitch, yaw, radians, world frame."""
        for time, numbers in rows:
            values = torch.tensor(numbers, dtype=torch.float64)
            quaternion = quaternion_from_euler(*values[3:].unbind())
            self.poses.add(time, Pose(values[:3].float(), quaternion.float()))


class ProcessClient(GuardianClient):
    """Starts a guardian process. It is never killed: it ends by itself when the drone is down."""

    def __init__(self, config: GuardianConfig) -> None:
        super().__init__(SystemClock(config.speed))
        self._lock = threading.Lock()
        self._state: GuardianState  # the first comes before `__init__` ends
        self._answered = threading.Event()
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "wordwing.flight.guardian.process", str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._socket.send(config.to_json().encode())
        threading.Thread(target=self._read, name="guardian client", daemon=True).start()
        if not self._answered.wait(START_SECONDS) or self.lost is not None:
            why = self.lost or f"it did not start within {START_SECONDS:g} s"
            self.close()
            raise WordwingError(why)

    def order(self, order: Order) -> None:
        """Send an order; if nobody is there, `lost` tells."""
        with suppress(OSError):
            self._socket.send(json.dumps(to_json(order)).encode(), socket.MSG_DONTWAIT)

    def state(self) -> GuardianState:
        """The newest that the process has sent."""
        with self._lock:
            return self._state

    def close(self) -> None:
        """Disconnect; a drone in the air then lands."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _read(self) -> None:
        while True:
            try:
                packet = self._socket.recv(PACKET)
            except OSError:
                packet = b""
            if not packet:
                self.lost = self.lost or "the process that speaks to the drone has ended"
                self._answered.set()
                return
            document = json.loads(packet)
            if "failure" in document:
                self.lost = document["failure"]
                continue
            with self._lock:
                self._state = GuardianState.from_json(document["state"])
                self._add_poses(document["poses"])
            self._answered.set()
