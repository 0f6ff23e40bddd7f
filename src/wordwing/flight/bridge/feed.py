"""Motion capture of a simulated drone: JSON over UDP, as `wordwing flight mocap --source udp:…` reads it."""

from __future__ import annotations

import json
import socket
from collections.abc import Sequence

import numpy as np
import torch

from wordwing.errors import WordwingError
from wordwing.flight.arena import Arena
from wordwing.flight.bridge.faults import MocapDrift, MocapFreeze, MocapJump, offset
from wordwing.flight.served.faults import PoseDropout, Troubles
from wordwing.frames import Pose, quaternion_from_euler, quaternion_multiply

POSITION_NOISE, ATTITUDE_NOISE = 0.0005, 0.001
"""Standard deviations on each axis, metres and radians: what a good system has."""

NAME = "drone"
"""Of the rigid body."""


class MocapFeed:
    """What motion capture says of true poses; knows no sockets."""

    def __init__(self, frame: Arena, troubles: Troubles, seed: int = 0) -> None:
        """Nothing is seen yet.

        Args:
            frame: Where the arena lies in the frame of motion capture, which becomes the autopilot's local frame.
            troubles: What goes wrong.
            seed: Of its noise.
        """
        self._frame, self._troubles = frame, troubles
        self._rng = np.random.default_rng([seed, 3])
        self._last: dict[str, object] | None = None

    def measure(self, pose: Pose, time: float) -> bytes | None:
        """The datagram about a true pose [], world frame, at a time; None if motion capture is silent."""
        troubles = self._troubles
        if troubles.now(PoseDropout, time) is not None:
            return None
        if self._last is None or troubles.now(MocapFreeze, time) is None:
            self._last = self._measured(pose, time)
        return json.dumps({"time": time, "name": NAME, **self._last}).encode()

    def _measured(self, pose: Pose, time: float) -> dict[str, object]:
        noise, angles = torch.from_numpy(self._rng.standard_normal((2, 3)))
        wrong = torch.zeros(3, dtype=torch.float64)
        for fault in (self._troubles.now(MocapJump, time), self._troubles.now(MocapDrift, time)):
            if fault is not None:
                wrong[:2] += torch.tensor(offset(fault, time), dtype=torch.float64)
        wobble = quaternion_from_euler(*(ATTITUDE_NOISE * angles))
        seen = Pose(pose.position + wrong + POSITION_NOISE * noise, quaternion_multiply(pose.quaternion, wobble))
        local = self._frame.local(seen)
        return {"position": local.position.tolist(), "quaternion": local.quaternion.tolist()}


class UdpSenders:
    """Sends datagrams to some addresses; whoever is not there misses them."""

    def __init__(self, places: Sequence[tuple[str, int]]) -> None:
        self._sockets = []
        try:
            for host, port in places:
                family, kind, protocol, _name, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
                made = socket.socket(family, kind, protocol)
                self._sockets.append(made)
                made.setblocking(False)
                made.connect(address)
        except OSError as error:
            self.close()
            why = (error.strerror or "unknown").lower()
            raise WordwingError(f"motion capture cannot be sent to {host}:{port} ({why})") from None

    def send(self, data: bytes) -> None:
        """Send a datagram to all of them, or drop it."""
        for made in self._sockets:
            try:
                made.send(data)
            except OSError:  # nobody listens there yet
                continue

    def close(self) -> None:
        """Let go of the sockets."""
        for made in self._sockets:
            made.close()
