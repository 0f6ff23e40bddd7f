"""Coming down: the autopilot's land mode, asked for until it shows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wordwing.flight.aircraft import Aircraft
from wordwing.flight.errands import ACCEPTED
from wordwing.flight.messages import SET_MODE, Maker, Message
from wordwing.flight.safety import Timeouts
from wordwing.flight.told import Answer


class Descent:
    """One landing.

    Args:
        aircraft: The drone.
        maker: Makes messages for it.
        timeouts: How long things may take.
        why: The reason for it.
        before: Modes in which it may be until the land mode shows.
        streamed: Whether setpoints have been sent; then zero ones go on until the land mode shows.
        armed_at: When it was last asked to arm; minus infinity for never.
        now: Seconds.
    """

    def __init__(
        self,
        aircraft: Aircraft,
        maker: Maker,
        timeouts: Timeouts,
        why: str,
        before: Sequence[int],
        streamed: bool,
        armed_at: float,
        now: float,
    ) -> None:
        self._aircraft, self._maker, self._timeouts = aircraft, maker, timeouts
        self.why = why
        self._land = maker.dialect.land_mode
        self._before = tuple(before)
        self._streamed = streamed
        self._asked_to_arm_at = armed_at
        self._seen = False
        self._was_armed = aircraft.armed
        self._since = now
        self._sent_at = self._accepted_at = -math.inf
        self._lost_at = math.inf

    @property
    def allowed(self) -> tuple[int, ...]:
        """Modes in which the drone may be; in any other, someone else flies it."""
        return (self._land,) if self._seen else (*self._before, self._land)

    def see(self, now: float) -> bool:
        """A heartbeat in an allowed mode has come; true when it says that the drone is disarmed for good."""
        aircraft = self._aircraft
        self._seen |= aircraft.mode == self._land
        self._was_armed |= aircraft.armed
        self._lost_at = math.inf
        # A request to arm may still be on its way.
        settled = self._was_armed or now - self._asked_to_arm_at > self._timeouts.heartbeat
        return not aircraft.armed and settled

    def hear(self, answer: Answer, now: float) -> None:
        """An answer to some command."""
        if answer.command == SET_MODE and answer.result == ACCEPTED and not math.isinf(self._sent_at):
            self._accepted_at = now

    def lose(self, now: float) -> None:
        """The autopilot is not heard any more."""
        self._lost_at = min(self._lost_at, now)

    def lost_for(self, now: float) -> float:
        """Seconds since it was lost; negative if it is not."""
        return now - self._lost_at

    def tick(self, now: float) -> Message | None:
        """LAND, if it is to be sent now."""
        needed = self._aircraft.armed or not math.isinf(self._asked_to_arm_at)
        if self._seen or not needed or self.lost_for(now) > self._timeouts.plea:
            return None
        if self._accepted_at >= max(self._sent_at, self._aircraft.heard_at):
            return None  # it lands, or a pilot has taken over meanwhile: the next heartbeat tells
        wait = self._timeouts.answer if self._aircraft.heard_at > self._sent_at else 2 * self._timeouts.answer
        if now - self._sent_at < wait:
            return None
        self._sent_at = now
        return self._maker.mode(self._land)

    def hovers(self, now: float) -> bool:
        """Whether zero setpoints are to be sent."""
        return self._streamed and not self._seen and not self.insists(now) and math.isinf(self._lost_at)

    def insists(self, now: float) -> bool:
        """Whether LAND has not shown for so long, or the link is lost, that all but LAND is left out."""
        unheard = not self._seen and self._aircraft.armed and now - self._since >= self._timeouts.insist
        return unheard or not math.isinf(self._lost_at)
