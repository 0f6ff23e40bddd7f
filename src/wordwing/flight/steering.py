"""Setpoints: what of a decision is sent, and the last that was."""

from __future__ import annotations

import math

from wordwing.flight.messages import Maker
from wordwing.flight.orders import Decision
from wordwing.flight.outbox import Outbox
from wordwing.flight.safety import Motion, Safety
from wordwing.interface import Setpoint

LONGEST_STEP = 0.1
"""Acceleration limits count at most so many seconds between two setpoints."""


class Steering:
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

    def stand_still(self, maker: Maker, now: float) -> None:
        """Send zero velocity, also vertically: this needs no pose."""
        self._send(maker, Setpoint.zero(1), 0.0, None, now)

    def fly(self, maker: Maker, decision: Decision | None, motion: Motion, age: float, now: float) -> None:
        """Send what is granted of a decision, or what holds the drone at its place and at the flight height.

        Args:
            maker: Makes the message.
            decision: What is wished; None to hover.
            motion: The drone `age` seconds ago, world frame.
            age: Seconds.
            now: Seconds.
        """
        setpoint, left = self._grant(decision, motion, age, now)
        self._send(maker, setpoint, self._safety.climb(motion.height), decision, now, left)

    def rehearse(self, decision: Decision, motion: Motion | None, age: float, now: float) -> None:
        """Tell what would be sent for a decision here and now."""
        if motion is None:
            self._out.note("refused", "there is no pose yet", now)
            return
        setpoint, _left = self._grant(decision, motion, age, now)
        self._remember(setpoint, self._safety.climb(motion.height), decision, now)
        self._out.note("would send", "decision", now, **self._values())

    def _grant(self, decision: Decision | None, motion: Motion, age: float, now: float) -> tuple[Setpoint, float]:
        forward, yaw_rate = (decision.forward, decision.yaw_rate) if decision else (0.0, 0.0)
        here, seconds = motion.ahead(max(0.0, age)), min(now - self._sent_at, LONGEST_STEP)
        return self._safety.grant(forward, yaw_rate, here, seconds)

    def _send(
        self, maker: Maker, setpoint: Setpoint, up: float, decision: Decision | None, now: float, left: float = 0.0
    ) -> None:
        self._out.send_quietly(maker.setpoint(setpoint, up, round((now - self._began) * 1000), left))
        self._remember(setpoint, up, decision, now)
        self._out.note("setpoint", "decision" if decision else "hover", now, **self._values())

    def _remember(self, setpoint: Setpoint, up: float, decision: Decision | None, now: float) -> None:
        self.setpoint = (float(setpoint.forward[0]), float(setpoint.yaw_rate[0]), up)
        self.decision_time = decision.made_at if decision else None
        self._sent_at = now

    def _values(self) -> dict[str, object]:
        return dict(zip(("forward", "yaw_rate", "up"), self.setpoint or (), strict=True))
