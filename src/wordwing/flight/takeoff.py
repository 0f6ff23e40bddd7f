"""Taking off, step by step, as each autopilot wants it.

ArduPilot: GUIDED, arm, NAV_TAKEOFF, hover; any setpoint before the hover would replace the take-off. PX4: zero
setpoints for more than a second, OFFBOARD, arm, climb by setpoints; if they stop on the way up, it lands by itself.
"""

from __future__ import annotations

import math

from wordwing.flight.aircraft import Aircraft
from wordwing.flight.dialect import Dialect
from wordwing.flight.errands import Errand
from wordwing.flight.messages import ARM, SET_MODE, TAKE_OFF, Maker, Message
from wordwing.flight.safety import Limits, Motion, Timeouts
from wordwing.flight.told import Answer

STEADY = 0.1
"""A drone keeps its height if it climbs or sinks by less, m/s."""

LIFTED = 0.15
"""A drone that is so much higher than it stood is taking off, metres."""

FLYING_STATES = (2, 3)
"""MAV_LANDED_STATE: in the air, taking off."""


class Ascent:
    """One take-off. Ask for `allowed` modes and `problem` too; it ends when `done`."""

    def __init__(self, aircraft: Aircraft, maker: Maker, limits: Limits, timeouts: Timeouts, now: float) -> None:
        self.problem: str | None = None
        """Why it has failed."""
        self.done = False
        """Whether the drone hovers in the mode in which it flies setpoints."""
        self._aircraft, self._maker, self._limits, self._timeouts = aircraft, maker, limits, timeouts
        self._dialect: Dialect = maker.dialect
        self._steps = list(self._dialect.takeoff)
        self._before = aircraft.mode
        self._seen_flying = False
        self._stood: float | None = None
        self._errand: Errand | None = None
        self._since = now
        self._steady_since = math.inf

    @property
    def step(self) -> str:
        """What is being done, in a word."""
        return self._steps[0] if self._steps else "done"

    @property
    def streaming(self) -> bool:
        """Whether setpoints are to be sent."""
        return self.done or self._dialect.stream_seconds > 0

    @property
    def climbing(self) -> bool:
        """Whether they are to bring the drone up; else they are zero."""
        return self.done or self.step == "hover"

    @property
    def allowed(self) -> tuple[int, ...]:
        """Modes in which the drone may be now; in any other, someone else flies it."""
        flying = self._dialect.flying_mode
        if self.step == "stream":  # nobody has asked for another yet
            return (self._before,)
        return (flying,) if self._seen_flying else (self._before, flying)

    def see(self, mode: int) -> None:
        """A heartbeat in an allowed mode has come."""
        self._seen_flying |= mode == self._dialect.flying_mode and self.step != "stream"

    def hear(self, answer: Answer, now: float) -> None:
        """An answer to some command."""
        if self._errand is not None:
            self._errand.hear(answer, now)

    def tick(self, motion: Motion | None, now: float) -> list[Message]:
        """Messages to send now (setpoints apart, see `streaming`)."""
        self.see(self._aircraft.mode)
        while self._steps and self._finished(motion, now):
            self._steps.pop(0)
            self._errand, self._since, self._steady_since = None, now, math.inf
        self.done = not self._steps
        if self.done:
            return []
        if self.step in ("hover", "takeoff") and now - self._since > self._timeouts.climb:
            self.problem = f"the drone did not hover within {self._timeouts.climb:g} s"
            return []
        if self._errand is None:
            self._errand = self._new_errand()
        if self._errand is None:
            return []
        message = self._errand.due(now, self._aircraft.heard_at)
        self.problem = self._errand.problem
        return [] if message is None else [message]

    def _finished(self, motion: Motion | None, now: float) -> bool:
        """Whether the present step has had its effect."""
        aircraft, dialect = self._aircraft, self._dialect
        match self.step:
            case "stream":
                return now - self._since >= dialect.stream_seconds
            case "mode":
                return aircraft.mode == dialect.flying_mode
            case "arm":
                return aircraft.armed
            case "takeoff":
                # Asked a second time it refuses, because it is on its way.
                return (self._errand is not None and self._errand.accepted) or self._leaves_the_floor(motion)
        return self._hovers(motion, now)

    def _leaves_the_floor(self, motion: Motion | None) -> bool:
        if motion is not None and self._stood is None:
            self._stood = motion.height
        climbs = motion is not None and self._stood is not None and motion.height > self._stood + LIFTED
        return climbs or self._aircraft.landed_state in FLYING_STATES

    def _hovers(self, motion: Motion | None, now: float) -> bool:
        up = motion is not None and motion.height > 0.5 * self._limits.height
        if motion is None or not up or abs(float(motion.velocity[2])) > STEADY:
            self._steady_since = math.inf
            return False
        self._steady_since = min(self._steady_since, now)
        return now - self._steady_since >= self._timeouts.hover

    def _new_errand(self) -> Errand | None:
        maker, dialect = self._maker, self._dialect
        match self.step:
            case "mode":
                mode = dialect.flying_mode
                return Errand(
                    f"go to {dialect.mode_name(mode)}", SET_MODE, lambda again: maker.mode(mode, again), self._timeouts
                )
            case "arm":
                return Errand("arm", ARM, maker.arm, self._timeouts)
            case "takeoff":
                height = self._limits.height
                return Errand("take off", TAKE_OFF, lambda again: maker.take_off(height, again), self._timeouts)
        return None
