"""Before a flight: asking the autopilot for its messages and parameters."""

from __future__ import annotations

import math

from wordwing.flight.messages import AUTOPILOT_VERSION, GLOBAL_ORIGIN, Maker, Message
from wordwing.flight.parameters import Parameters

EVERY = 1.0
"""Seconds between two rounds of requests for messages; three times that later on."""

ROUNDS = 3
"""How often messages are asked for in any case; more often only while something is missing."""


class Preparation:
    """Asks again while packets may have been lost."""

    def __init__(self, maker: Maker) -> None:
        self.parameters = Parameters(maker.dialect)
        self._maker = maker
        self._rounds = 0
        self._asked_at = -math.inf

    def tick(self, ready: bool, version_known: bool, now: float) -> list[Message]:
        """Requests to send now."""
        return self._messages(ready, version_known, now) + self.parameters.due(self._maker, now)

    def _messages(self, ready: bool, version_known: bool, now: float) -> list[Message]:
        first = self._rounds < ROUNDS
        if (ready and not first) or now - self._asked_at < (EVERY if first else 3 * EVERY):
            return []
        self._rounds += 1
        self._asked_at = now
        wanted = [self._maker.interval(kind, hertz) for kind, hertz in self._maker.dialect.rates.items()]
        if not self._maker.dialect.lands_with_an_origin:
            wanted.append(self._maker.request(GLOBAL_ORIGIN))
        return wanted if version_known else [*wanted, self._maker.request(AUTOPILOT_VERSION)]
