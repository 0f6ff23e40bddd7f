"""What the pilot wishes now, and whether there still is one."""

from __future__ import annotations

import math

from wordwing.flight.guardian.protocol import Decision, Hold, Order, Outbox, PilotDisconnected
from wordwing.flight.guardian.safety import Motion, Safety, Timeouts
from wordwing.flight.mavlink.geometry import Vector
from wordwing.flight.mavlink.messages import MessageFactory

ABSURD = 10.0
"""m/s or rad/s that no sound policy decides on; what is merely too much is flown within the limits."""

TINY = 1e-6
"""Sums of ticks are not exact, seconds."""


class SetpointTimeout:
    """The newest decision for as long as it is good; then how long there has been none."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._spoke_at = -math.inf
        self._gone_at = math.inf
        self._decision: Decision | None = None
        self._good_until = -math.inf
        self._idle_since = math.inf
        self._held_since = math.inf
        self.why = "no decision yet"
        """Why there is none, in words."""

    def hear(self, order: Order, now: float) -> str | None:
        """Take in an order; the answer says what is wrong with it."""
        if isinstance(order, PilotDisconnected):
            self._gone_at = min(self._gone_at, now)
            self.drop("the pilot is gone", now)
            return None
        self._spoke_at = now
        if isinstance(order, Decision):
            return self._decide(order, now)
        if isinstance(order, Hold):
            self.drop("the pilot wants to hover", now)
            self._held_since = min(self._held_since, now)
            self._idle_since = now
        return None

    def drop(self, why: str, now: float) -> None:
        """Fly no decision any more, until a new one comes."""
        self._settle(now)
        self._decision = None
        self._idle_since = min(self._idle_since, now)
        self.why = why

    def begin(self, now: float) -> None:
        """The drone hovers; from now on decisions are missed."""
        self._decision = None
        self._idle_since, self._held_since = now, math.inf
        self.why = "no decision yet"

    def wish(self, now: float) -> Decision | None:
        """The decision to fly now."""
        self._settle(now)
        return self._decision

    def present(self, now: float) -> bool:
        """Whether the pilot is there, so that heartbeats may go on."""
        return math.isinf(self._gone_at) and now - self._spoke_at < self._timeouts.pilot

    @property
    def gone(self) -> bool:
        """Whether the pilot's connection has closed."""
        return not math.isinf(self._gone_at)

    def return_(self) -> None:
        """Another pilot has connected."""
        self._gone_at = math.inf

    def absent(self, now: float) -> str | None:
        """Why a drone in the air must come down for want of a pilot, or None."""
        if now - self._gone_at >= self._timeouts.pilot - TINY:
            return "the pilot is gone"
        if not self.gone and now - self._spoke_at >= self._timeouts.pilot - TINY:
            return f"the pilot has been silent for {now - self._spoke_at:.1f} s"
        return None

    def idle(self, now: float) -> str | None:
        """Why a drone that hovers must come down for want of a decision, or None."""
        limits = self._timeouts
        self._settle(now)
        if self._decision is None and now - self._idle_since >= limits.hold - TINY:
            return f"it has hovered for {limits.hold:g} s: {self.why}"
        if self._decision is None and now - self._held_since >= limits.longest_hold - TINY:
            return f"the pilot has let it hover for {limits.longest_hold:g} s"
        return None

    def _decide(self, decision: Decision, now: float) -> str | None:
        made_at = min(decision.made_at, now)
        age = decision.made_at - decision.image_time
        problem = None
        if not (abs(decision.forward) <= ABSURD and abs(decision.yaw_rate) <= ABSURD):  # nor NaN
            problem = f"no sound policy decides on {decision.forward:g} m/s and {decision.yaw_rate:g} rad/s"
        elif not now - made_at < self._timeouts.decision - TINY:  # NaN is not, either
            problem = f"the decision is {now - made_at:.2f} s old"
        elif not -self._timeouts.image_ahead <= age <= self._timeouts.image:
            problem = f"the picture was {age:.2f} s old when it was decided"
        if problem is not None:
            self.drop(problem, now)
            return problem
        self._decision = decision
        self._good_until = made_at + self._timeouts.decision
        self._idle_since = self._held_since = math.inf
        return None

    def _settle(self, now: float) -> None:
        """Let a decision that is too old go, from the moment on when it became so."""
        if self._decision is not None and now >= self._good_until - TINY:
            self._decision = None
            self._idle_since = min(self._idle_since, self._good_until)
            self.why = f"the last decision is older than {self._timeouts.decision:g} s"


LONGEST_STEP = 0.1
"""Acceleration limits count at most so many seconds between two setpoints."""


class SetpointSender:
    """Sends setpoints through `Safety`, and remembers the last one."""

    def __init__(self, safety: Safety, out: Outbox, now: float) -> None:
        self.setpoint: tuple[float, float, float] | None = None
        """Forward m/s, yaw rate rad/s (left positive) and up m/s as last sent."""
        self.decision_time: float | None = None
        """`made_at` of the decision that it came from."""
        self._safety = safety
        self._out = out
        self._began = now
        self._sent_at = -math.inf

    @property
    def begun(self) -> bool:
        """Whether any setpoint has been sent."""
        return not math.isinf(self._sent_at)

    def stand_still(self, factory: MessageFactory, now: float) -> None:
        """Send zero velocity, also vertically: this needs no pose."""
        self._send(factory, (0.0, 0.0, 0.0), 0.0, None, now)

    def fly(self, factory: MessageFactory, decision: Decision | None, motion: Motion, age: float, now: float) -> None:
        """Send what is granted of a decision, or what holds the drone at its place and at the flight height.

        Args:
            factory: Makes the message.
            decision: What is wished; None to hover.
            motion: The drone `age` seconds ago, world frame.
            age: Seconds.
            now: Seconds.
        """
        granted = self._grant(decision, motion, age, now)
        self._send(factory, granted, self._safety.climb(motion.height), decision, now)

    def rehearse(self, decision: Decision, motion: Motion | None, age: float, now: float) -> None:
        """Tell what would be sent for a decision here and now."""
        if motion is None:
            self._out.note("refused", "there is no pose yet", now)
            return
        granted = self._grant(decision, motion, age, now)
        self._remember(granted, self._safety.climb(motion.height), decision, now)
        self._out.note("would send", "decision", now, **self._values())

    def _grant(self, decision: Decision | None, motion: Motion, age: float, now: float) -> Vector:
        forward, yaw_rate = (decision.forward, decision.yaw_rate) if decision else (0.0, 0.0)
        here, seconds = motion.ahead(max(0.0, age)), min(now - self._sent_at, LONGEST_STEP)
        return self._safety.grant(forward, yaw_rate, here, seconds)

    def _send(self, factory: MessageFactory, granted: Vector, up: float, decision: Decision | None, now: float) -> None:
        forward, yaw_rate, left = granted
        self._out.send_quietly(factory.setpoint(forward, yaw_rate, up, round((now - self._began) * 1000), left))
        self._remember(granted, up, decision, now)
        self._out.note("setpoint", "decision" if decision else "hover", now, **self._values())

    def _remember(self, granted: Vector, up: float, decision: Decision | None, now: float) -> None:
        self.setpoint = (granted[0], granted[1], up)
        self.decision_time = decision.made_at if decision else None
        self._sent_at = now

    def _values(self) -> dict[str, object]:
        return dict(zip(("forward", "yaw_rate", "up"), self.setpoint or (), strict=True))
