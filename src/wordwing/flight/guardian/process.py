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
from wordwing.flight.mavlink.clock import SystemClock
from wordwing.flight.mavlink.geometry import ArenaFrame
from wordwing.flight.mavlink.link import MavlinkLink, open_link
from wordwing.flight.mavlink.messages import Codec
from wordwing.flight.mavlink.signing import UNITS, read_key, signing_time
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

STREAMS = ("tcp:", "serial:")
"""Links whose bytes do not come packet by packet."""


@dataclass(frozen=True)
class GuardianConfig:
    """One flight's link."""

    url: str
    """As `link.open_link` takes it."""
    arena: ArenaFrame
    mocap: str = MOCAP
    """Where the poses of motion capture come to, as `mocap_sources.open_source` takes it."""
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
        arena = document.pop("arena")
        fence = document.pop("fence")
        return cls(
            arena=ArenaFrame(**{entry.name: arena[entry.name] for entry in fields(ArenaFrame)}),
            fence=None if fence is None else FenceMargins(**fence),
            **document,
        )


class GuardianProcess:
    """One flight's link, guardian and log, in real time."""

    def __init__(self, pilot: socket.socket, setup: GuardianConfig) -> None:
        self._pilot = pilot
        self._clock = SystemClock(setup.speed)
        key = None if setup.key is None else read_key(setup.key)
        stream = setup.url.startswith(STREAMS)
        self._codec = Codec(stream=stream, key=key, signed_at=signing_time() / UNITS)
        self._log = None if setup.log is None else EventLog(setup.log, tlog=True)
        self._link: MavlinkLink = open_link(setup.url)
        self._mocap = open_source(setup.mocap, self._clock)
        self._guardian = Guardian(
            setup.arena,
            fence=setup.fence,
            codec=self._codec,
            dry=setup.dry,
            may_set_parameters=setup.may_set_parameters,
            now=self._clock.now(),
        )
        self._gone = self._terminated = False
        self._told_until = -float("inf")

    def terminate(self, *_: object) -> None:
        """The system wants this process to end: it does, after the landing."""
        self._terminated = True

    def run(self) -> None:
        """Until nothing more will come of this flight."""
        due = self._clock.now()
        ended: float | None = None
        try:
            while ended is None or self._clock.now() < ended + FAREWELL:
                due = self._listen(due + TICK)
                self._hear_pilot()
                self._catch_up()
                now = self._clock.now()
                for packet in self._guardian.tick(now):
                    self._link.send(packet)
                    self._keep(packet)
                self._tell(now)
                if ended is None and self._guardian.finished(now):
                    ended = now
        finally:
            self._link.close()
            self._mocap.close()
            if self._log is not None:
                self._log.close()

    def _listen(self, due: float) -> float:
        """Take in what the autopilot says until a moment; that moment, or now if it has long passed."""
        while True:
            now = self._clock.now()
            rest = due - now
            if self._link.lost is not None:
                self._clock.sleep(rest)
            self._take_in(max(0.0, rest / self._clock.speed))
            if self._clock.now() >= due:
                return due if rest > -TICK else now

    def _catch_up(self) -> None:
        """Read what waits: somebody taking over must be known before anything is sent."""
        for _ in range(MOST_READS):
            if not self._take_in(0.0):
                return

    def _take_in(self, timeout: float) -> bool:
        """Tell the guardian what has come within some seconds of the computer's time; whether anything has."""
        came = self._link.receive(timeout)
        for data in came:
            for message in self._codec.parse(data):
                self._keep(bytes(message.get_msgbuf()))
                self._guardian.receive(message, self._clock.now())
        for pose in self._mocap.read(0.0):
            self._guardian.hear_mocap(pose.time, pose.position, pose.quaternion, self._clock.now())
        return bool(came)

    def _hear_pilot(self) -> None:
        if self._terminated and not self._gone:
            self._leave()
        for _ in range(MOST_ORDERS):
            if self._gone:
                return
            try:
                packet = self._pilot.recv(PACKET, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return
            except OSError:
                packet = b""
            if not packet:
                self._leave()
                return
            with suppress(WordwingError, ValueError):  # what cannot be understood is not an order
                self._guardian.order(from_json(json.loads(packet)), self._clock.now())

    def _leave(self) -> None:
        self._gone = True
        self._guardian.order(PilotDisconnected(), self._clock.now())

    def _keep(self, packet: bytes) -> None:
        if self._log is not None:
            self._log.packet(packet, time.time())

    def _tell(self, now: float) -> None:
        """State and new poses for the pilot, events for the log."""
        for event in self._guardian.events:
            if self._log is not None:
                self._log.add(event.to_json())
        self._guardian.events.clear()
        if self._gone:
            return
        poses = self._guardian.poses_since(self._told_until)
        if poses:
            self._told_until = poses[-1][0]
        said: dict[str, Any] = {"state": self._guardian.state(now).to_json(), "poses": poses}
        say(self._pilot, said)


def say(peer: socket.socket, document: dict[str, Any]) -> None:
    """Send a packet to the other process, or drop it: nobody waits for one who does not listen."""
    with suppress(OSError):
        peer.send(json.dumps(document).encode(), socket.MSG_DONTWAIT)


def _make_ready() -> None:
    """Do once what would take long the first time: it must not happen in the air."""
    gc.collect()
    gc.freeze()  # what has been loaded need not be looked at again
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, -10)  # granted to few; the sender does little, and on time


def main() -> None:
    """Run as `python -m wordwing.flight.guardian.process FD`, with a connected socket."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    pilot = socket.socket(fileno=int(sys.argv[1]))
    try:
        setup = GuardianConfig.from_json(pilot.recv(PACKET).decode())
        _make_ready()
        sender = GuardianProcess(pilot, setup)
    except WordwingError as error:
        say(pilot, {"failure": str(error)})
        return
    signal.signal(signal.SIGTERM, sender.terminate)
    sender.run()


if __name__ == "__main__":
    main()
