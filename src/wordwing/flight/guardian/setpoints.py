"""Which decision is flown now, how long the pilot may be silent, and the setpoints that are sent."""

import math

from wordwing.flight.guardian.pose_history import TINY
from wordwing.flight.guardian.protocol import Decision, Hold, Order, Outbox, PilotDisconnected
from wordwing.flight.guardian.safety import Motion, Safety, Timeouts
from wordwing.flight.mavlink.geometry import Vector
from wordwing.flight.mavlink.messages import MessageFactory
from wordwing.flight.mavlink.vehicle_status import first_failed

ABSURD = 10.0
"""m/s or rad/s that no sound policy decides on; what is merely too much is flown within the limits."""


class SetpointTimeout:
    """The newest decision until it times out; then how long there has been none, and whether the pilot is there."""

    def __init__(self, timeouts: Timeouts) -> None:
        self._timeouts = timeouts
        self._decision: Decision | None = None
        self._order_at = self._expires_at = -math.inf
        self._disconnected_at = self._idle_since = self._held_since = math.inf
        self.why = "no decision yet"
        """Why there is none, in words."""

    def update(self, order: Order, now: float) -> str | None:
        """Take in an order; the answer says what is wrong with it."""
        if isinstance(order, PilotDisconnected):
            self._disconnected_at = min(self._disconnected_at, now)
            self.drop("the pilot is gone", now)
            return None
        self._order_at = now
        if isinstance(order, Decision):
            return self._decide(order, now)
        if isinstance(order, Hold):
            self.drop("the pilot wants to hover", now)
            self._held_since = min(self._held_since, now)
            self._idle_since = now
        return None

    def drop(self, why: str, now: float) -> None:
        """Fly no decision any more, until a new one comes."""
        self._expire(now)
        self._decision = None
        self._idle_since = min(self._idle_since, now)
        self.why = why

    def begin(self, now: float) -> None:
        """The drone hovers; from now on decisions are missed."""
        self._decision = None
        self._idle_since, self._held_since = now, math.inf
        self.why = "no decision yet"

    def current(self, now: float) -> Decision | None:
        """The decision to fly now."""
        self._expire(now)
        return self._decision

    def present(self, now: float) -> bool:
        """Whether the pilot is there, so that heartbeats may go on."""
        return math.isinf(self._disconnected_at) and now - self._order_at < self._timeouts.pilot

    @property
    def disconnected(self) -> bool:
        """Whether the pilot's connection has closed."""
        return not math.isinf(self._disconnected_at)

    def reconnect(self) -> None:
        """Another pilot has connected."""
        self._disconnected_at = math.inf

    def absent(self, now: float, *, at_once: bool = False) -> str | None:
        """Why a drone in the air must land because there is no pilot, or None; `at_once` after a disconnection."""
        if self.disconnected and (at_once or now - self._disconnected_at >= self._timeouts.pilot - TINY):
            return "the pilot is gone"
        if not self.disconnected and now - self._order_at >= self._timeouts.pilot - TINY:
            return f"the pilot has been silent for {now - self._order_at:.1f} s"
        return None

    def idle(self, now: float) -> str | None:
        """Why a drone that hovers must land because there is no decision, or None."""
        timeouts = self._timeouts
        self._expire(now)
        if self._decision is None and now - self._idle_since >= timeouts.hold - TINY:
            return f"it has hovered for {timeouts.hold:g} s: {self.why}"
        if self._decision is None and now - self._held_since >= timeouts.longest_hold - TINY:
            return f"the pilot has let it hover for {timeouts.longest_hold:g} s"
        return None

    def _decide(self, decision: Decision, now: float) -> str | None:
        made_at, age = min(decision.made_at, now), decision.made_at - decision.image_time
        problem = first_failed(  # by comparisons that NaN does not pass
            (
                not (abs(decision.forward) <= ABSURD and abs(decision.yaw_rate) <= ABSURD),
                f"no sound policy decides on {decision.forward:g} m/s and {decision.yaw_rate:g} rad/s",
            ),
            (not now - made_at < self._timeouts.decision - TINY, f"the decision is {now - made_at:.2f} s old"),
            (
                not -self._timeouts.image_ahead <= age <= self._timeouts.image,
                f"the image was {age:.2f} s old when it was decided",
            ),
        )
        if problem is not None:
            self.drop(problem, now)
            return problem
        self._decision = decision
        self._expires_at = made_at + self._timeouts.decision
        self._idle_since = self._held_since = math.inf
        return None

    def _expire(self, now: float) -> None:
        """Drop a decision that is too old, as of the moment when it became so."""
        if self._decision is not None and now >= self._expires_at - TINY:
            self._decision = None
            self._idle_since = min(self._idle_since, self._expires_at)
            self.why = f"the last decision is older than {self._timeouts.decision:g} s"


LONGEST_STEP = 0.1
"""Acceleration limits count at most so many seconds between two setpoints."""


class SetpointSender:
    """Sends setpoints through `Safety`, and remembers the last one."""

    def __init__(self, safety: Safety, out: Outbox, now: float, *, dry: bool = False) -> None:
        """Nothing is sent yet.

        Args:
            safety: Limits what is sent.
            out: Where packets and events go.
            now: Seconds of our clock.
            dry: Send nothing, only note what would be sent.
        """
        self.factory: MessageFactory | None = None
        """Makes messages for the autopilot, once it is known."""
        self.setpoint: tuple[float, float, float] | None = None
        """Forward m/s, yaw rate rad/s (left positive) and up m/s as last sent."""
        self.decision_time: float | None = None
        """`made_at` of the decision that it came from."""
        self._safety, self._out, self._began, self._dry = safety, out, now, dry
        self._sent_at = -math.inf

    @property
    def begun(self) -> bool:
        """Whether any setpoint has been sent."""
        return not math.isinf(self._sent_at)

    def stand_still(self, now: float) -> None:
        """Send zero velocity, also vertically: this needs no pose."""
        self._send((0.0, 0.0, 0.0), 0.0, None, now)

    def fly(self, decision: Decision | None, motion: Motion, age: float, now: float) -> None:
        """Send what safety makes of a decision, or what holds the drone in its place and at the flight height.

        Args:
            decision: What the pilot wants; None to hover.
            motion: The drone `age` seconds ago, world frame.
            age: Seconds.
            now: Seconds.
        """
        forward, yaw_rate = (decision.forward, decision.yaw_rate) if decision else (0.0, 0.0)
        here, seconds = motion.ahead(max(0.0, age)), min(now - self._sent_at, LONGEST_STEP)
        safe = self._safety.limit(forward, yaw_rate, here, seconds)
        self._send(safe, self._safety.climb(motion.height), decision, now)

    def _send(self, safe: Vector, up: float, decision: Decision | None, now: float) -> None:
        forward, yaw_rate, left = safe
        if not self._dry:
            assert self.factory is not None
            milliseconds = round((now - self._began) * 1000)
            self._out.send_quietly(self.factory.setpoint(forward, yaw_rate, up, milliseconds, left))
        self.setpoint, self._sent_at = (forward, yaw_rate, up), now
        self.decision_time = decision.made_at if decision else None
        kind = "would send" if self._dry else "setpoint"
        self._out.note(kind, "decision" if decision else "hover", now, forward=forward, yaw_rate=yaw_rate, up=up)
