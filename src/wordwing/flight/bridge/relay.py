"""The pilot's link through the bridge, so that packets can get lost, late or out of order."""

from __future__ import annotations

import threading

from wordwing.flight.mavlink.clock import Clock
from wordwing.flight.mavlink.link import open_link
from wordwing.flight.mavlink.messages import Codec
from wordwing.flight.served.faults import Pipe, Troubles

WAIT = 0.005
"""How long either side is waited for before the other is looked at, seconds."""


class LinkRelay:
    """Carries MAVLink packets between a pilot and an autopilot, one at a time."""

    def __init__(self, pilot: str, autopilot: str, troubles: Troubles, clock: Clock, seed: int = 0) -> None:
        """Open both links.

        Args:
            pilot: URL on which the pilot is heard, `udpin:…`.
            autopilot: URL of the autopilot's link for a pilot.
            troubles: What goes wrong.
            clock: Whose times faults have.
            seed: Of what is random in them.
        """
        self._clock = clock
        self._pilot = open_link(pilot)
        try:
            self._autopilot = open_link(autopilot)
        except Exception:
            self._pilot.close()
            raise
        self._inwards, self._outwards = Pipe(troubles, "in", seed), Pipe(troubles, "out", seed)
        self._from_pilot, self._from_autopilot = Codec(stream=True), Codec(stream=True)

    def run(self, stopping: threading.Event) -> None:
        """Carry packets until told to stop."""
        while not stopping.is_set():
            for data in self._pilot.receive(WAIT):
                for message in self._from_pilot.parse(data):
                    self._inwards.put(bytes(message.get_msgbuf()), self._clock.now())
            for data in self._autopilot.receive(WAIT):
                for message in self._from_autopilot.parse(data):
                    self._outwards.put(bytes(message.get_msgbuf()), self._clock.now())
            for packet in self._inwards.take(self._clock.now()):
                self._autopilot.send(packet)
            for packet in self._outwards.take(self._clock.now()):
                self._pilot.send(packet)

    def close(self) -> None:
        """Let go of both links; may be called twice."""
        self._pilot.close()
        self._autopilot.close()
