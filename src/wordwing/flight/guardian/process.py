"""The guardian process: it holds the link and the guardian, and outlives the pilot's process.

It has its own session, so that Ctrl-C in the pilot's terminal does not reach it. The two exchange packets of JSON over
a local socket: first a `GuardianConfig`, then orders one way; state, poses and failures the other. When the pilot's end
of the socket closes, for whatever reason, the guardian lands the drone.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Any

from wordwing.errors import WordwingError
from wordwing.flight.guardian.event_log import EventLog
from wordwing.flight.guardian.guardian import TICK, Guardian
from wordwing.flight.guardian.protocol import PilotDisconnected, from_json
from wordwing.flight.guardian.safety import FenceMargins
from wordwing.flight.mavlink.clock import Clock, SystemClock
from wordwing.flight.mavlink.geometry import ArenaFrame
from wordwing.flight.mavlink.link import BYTE_STREAMS, MavlinkLink, open_link
from wordwing.flight.mavlink.messages import Codec
from wordwing.flight.mavlink.signing import UNITS, read_key, signing_time
from wordwing.flight.mocap.relay import MocapSource
from wordwing.flight.mocap.sources import open_source
from wordwing.flight.options import MOCAP

PACKET = 1 << 20
"""Largest packet between the processes, bytes."""

FAREWELL = 0.5
"""How long the sender stays after the end, so that the last state and packets get through, seconds."""

MOST_READS = 8
"""How often what has come is read before a tick at most: a flood must not keep the drone waiting."""

MOST_ORDERS = 64
"""How many orders are read before a tick at most."""


@dataclass(frozen=True)
class GuardianConfig:
    """One flight's link."""

    url: str
    """As `link.open_link` takes it."""
    arena: ArenaFrame
    mocap: str = MOCAP
    """Where the poses of motion capture come to, as `mocap.sources.open_source` takes it."""
    fence: FenceMargins | None = None
    """Other margins than the arena's, for the lab."""
    log: str | None = None
    """Folder for `events.jsonl` and `flight.tlog`; None keeps no log."""
    key: str | None = None
    """File with a key for MAVLink 2 signing: 32 bytes, or 64 hexadecimal digits."""
    dry: bool = False
    may_set_parameters: bool = False
    speed: float = 1.0
    """Of the clock; other than 1 only for a lab that is served at that speed."""

    def to_json(self) -> str:
        """One JSON object."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> GuardianConfig:
        """What `to_json` wrote."""
        document: dict[str, Any] = json.loads(text)
        arena, fence = document.pop("arena"), document.pop("fence")
        return cls(
            arena=ArenaFrame(**{entry.name: arena[entry.name] for entry in fields(ArenaFrame)}),
            fence=None if fence is None else FenceMargins(**fence),
            **document,
        )


class GuardianLoop:
    """Brings a guardian what its link and motion capture receive, and sends what it answers.

    All that run a guardian run it by this: a process of its own, a lock-step flight of the lab, and tests.
    """

    def __init__(
        self, guardian: Guardian, link: MavlinkLink, mocap: MocapSource, clock: Clock, log: EventLog | None = None
    ) -> None:
        self.guardian, self.clock = guardian, clock
        self._link, self._mocap, self._log = link, mocap, log

    def receive(self, timeout: float) -> bool:
        """Take in what comes within some seconds of the link's time; whether anything has come from the link."""
        received = self._link.receive(timeout)
        for data in received:
            for message in self.guardian.codec.parse(data):
                if self._log is not None:
                    self._log.packet(bytes(message.get_msgbuf()), time.time())
                self.guardian.receive(message, self.clock.now())
        for pose in self._mocap.read(0.0):
            self.guardian.receive_mocap(pose.time, pose.position, pose.quaternion, self.clock.now())
        return bool(received)

    def tick(self) -> None:
        """Send what the guardian wants to send now."""
        for packet in self.guardian.tick(self.clock.now()):
            self._link.send(packet)
            if self._log is not None:
                self._log.packet(packet, time.time())


class GuardianProcess(GuardianLoop):
    """One flight's link, guardian and log, in real time, with the pilot at a socket."""

    clock: SystemClock

    def __init__(self, pilot: socket.socket, config: GuardianConfig) -> None:
        clock = SystemClock(config.speed)
        key = None if config.key is None else read_key(config.key)
        codec = Codec(stream=config.url.startswith(BYTE_STREAMS), key=key, signed_at=signing_time() / UNITS)
        log = None if config.log is None else EventLog(config.log, tlog=True)
        link, mocap = open_link(config.url), open_source(config.mocap, clock)
        guardian = Guardian(
            config.arena,
            fence=config.fence,
            codec=codec,
            dry=config.dry,
            may_set_parameters=config.may_set_parameters,
            now=clock.now(),
        )
        super().__init__(guardian, link, mocap, clock, log)
        self._pilot = pilot
        self._disconnected = self._terminated = False
        self._reported_until = -float("inf")

    def terminate(self, *_: object) -> None:
        """The system wants this process to end: it does, after the landing."""
        self._terminated = True

    def run(self) -> None:
        """Until nothing more will come of this flight."""
        due = self.clock.now()
        ended: float | None = None
        try:
            while ended is None or self.clock.now() < ended + FAREWELL:
                due = self._receive_until(due + TICK)
                self._receive_orders()
                for _ in range(MOST_READS):  # somebody taking over must be known before anything is sent
                    if not self.receive(0.0):
                        break
                self.tick()
                now = self.clock.now()
                self._report(now)
                if ended is None and self.guardian.finished(now):
                    ended = now
        finally:
            self._link.close()
            self._mocap.close()
            if self._log is not None:
                self._log.close()

    def _receive_until(self, due: float) -> float:
        """Take in what the autopilot sends until a moment; that moment, or now if it has long passed."""
        while True:
            now = self.clock.now()
            rest = due - now
            if self._link.lost is not None:
                self.clock.sleep(rest)
            self.receive(max(0.0, rest / self.clock.speed))
            if self.clock.now() >= due:
                return due if rest > -TICK else now

    def _receive_orders(self) -> None:
        if self._terminated and not self._disconnected:
            self._disconnect()
        for _ in range(MOST_ORDERS):
            if self._disconnected:
                return
            try:
                packet = self._pilot.recv(PACKET, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if not packet:
                self._disconnect()
                return
            with suppress(WordwingError, ValueError):  # what cannot be understood is not an order
                self.guardian.order(from_json(json.loads(packet)), self.clock.now())

    def _disconnect(self) -> None:
        self._disconnected = True
        self.guardian.order(PilotDisconnected(), self.clock.now())

    def _report(self, now: float) -> None:
        """State and new poses for the pilot, events for the log."""
        if self._log is not None:
            for event in self.guardian.events:
                self._log.add(event.to_json())
        self.guardian.events.clear()
        if self._disconnected:
            return
        poses = self.guardian.estimate.poses_since(self._reported_until)
        if poses:
            self._reported_until = poses[-1][0]
        send_packet(self._pilot, {"state": self.guardian.state(now).to_json(), "poses": poses})


def send_packet(peer: socket.socket, document: dict[str, Any]) -> None:
    """Send a packet to the other process, or drop it: nobody waits for a process that does not read."""
    with suppress(OSError):
        peer.send(json.dumps(document).encode(), socket.MSG_DONTWAIT)


def main() -> None:
    """Run as `python -m wordwing.flight.guardian.process FD`, with a connected socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pilot = socket.socket(fileno=int(sys.argv[1]))
    try:
        config = GuardianConfig.from_json(pilot.recv(PACKET).decode())
        gc.collect()
        gc.freeze()  # what has been loaded need not be looked at again in the air
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, -10)  # granted to few; this process does little, and on time
        process = GuardianProcess(pilot, config)
    except WordwingError as error:
        send_packet(pilot, {"failure": str(error)})
        return
    signal.signal(signal.SIGTERM, process.terminate)
    process.run()


if __name__ == "__main__":
    main()
