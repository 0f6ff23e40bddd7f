"""The pilot's end of a sender process."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Protocol

import torch

from wordwing.errors import WordwingError
from wordwing.flight.guardian.process import PACKET, GuardianConfig
from wordwing.flight.guardian.protocol import GuardianState, Order, to_json
from wordwing.flight.matching import PoseTrack
from wordwing.flight.mavlink.clock import Clock, SystemClock
from wordwing.frames import Pose, quaternion_from_euler

START_SECONDS = 60.0
"""How long a sender may take to load, seconds: a first start compiles."""


class ProcessClient:
    """Starts a sender and speaks to it. The sender is never killed: it ends by itself when the drone is down."""

    def __init__(self, setup: GuardianConfig) -> None:
        self.clock = SystemClock(setup.speed)
        self.poses = PoseTrack()
        self._lock = threading.Lock()
        self._state: GuardianState | None = None
        self._lost: str | None = None
        self._spoke = threading.Event()
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "wordwing.flight.guardian.process", str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        self._socket.send(setup.to_json().encode())
        self._reader = threading.Thread(target=self._read, name="sender's words", daemon=True)
        self._reader.start()
        if not self._spoke.wait(START_SECONDS) or self._lost is not None:
            why = self._lost or f"it did not start within {START_SECONDS:g} s"
            self.close()
            raise WordwingError(why)

    @property
    def lost(self) -> str | None:
        """Why nobody can be asked any more."""
        return self._lost

    def order(self, order: Order) -> None:
        """Ask for something."""
        with suppress(OSError):  # `lost` tells
            self._socket.send(json.dumps(to_json(order)).encode(), socket.MSG_DONTWAIT)

    def state(self) -> GuardianState | None:
        """The newest that the sender has told."""
        with self._lock:
            return self._state

    def sleep(self, seconds: float) -> None:
        """Wait."""
        self.clock.sleep(seconds)

    def close(self) -> None:
        """Hang up; a drone in the air then lands."""
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
                self._lost = self._lost or "the process that speaks to the drone has ended"
                self._spoke.set()
                return
            said = json.loads(packet)
            if "failure" in said:
                self._lost = said["failure"]
                continue
            with self._lock:
                self._state = GuardianState.from_json(said["state"])
                for time, numbers in said["poses"]:
                    self.poses.add(time, pose_from_numbers(numbers))
            self._spoke.set()


class GuardianClient(Protocol):
    """A guardian somewhere: in another process (`process_helm`) or in lock-step with a served lab (`lockstep`)."""

    @property
    def clock(self) -> Clock:
        """Whose times everything has."""
        ...

    @property
    def poses(self) -> PoseTrack:
        """Of the last seconds, world frame."""
        ...

    def order(self, order: Order) -> None:
        """Ask for something."""
        ...

    def state(self) -> GuardianState | None:
        """The newest that is known; None before anything is."""
        ...

    @property
    def lost(self) -> str | None:
        """Why nobody can be asked any more, in words; None while the guardian is there."""
        ...

    def sleep(self, seconds: float) -> None:
        """Let time pass; what comes meanwhile is taken in."""
        ...

    def close(self) -> None:
        """Let go; a drone in the air then lands. May be called twice."""
        ...


def pose_from_numbers(numbers: tuple[float, ...] | list[float]) -> Pose:
    """[] the pose that is at x, y, z, metres, with roll, pitch and yaw, radians."""
    values = torch.tensor(numbers, dtype=torch.float64)
    return Pose(values[:3].float(), quaternion_from_euler(*values[3:].unbind()).float())
