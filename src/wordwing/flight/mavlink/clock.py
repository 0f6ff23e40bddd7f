"""One clock for everything that waits: the system's, or one that a test or a lock-step flight moves by hand.

`ClockSync` brings the times of another clock, such as the autopilot's, to it.
"""

import math
import time
from collections import deque
from typing import Protocol

WINDOW = 30.0
"""How long the smallest delay is remembered, seconds: clocks drift by less than a millisecond meanwhile."""

LONGEST_ROUND_TRIP = 0.1
"""Seconds; a reply that took longer says little."""

_AWAKE_OR_NOT: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """Seconds that only go forward; where zero is means nothing."""

    def now(self) -> float:
        """The time, seconds."""

    def sleep(self, seconds: float) -> None:
        """Let time pass; not at all if `seconds` is not positive."""


class SystemClock:
    """The computer's clock that never goes back. On Linux all processes share it, so their times may be compared.

    There it also counts the time that the computer sleeps (a lid that was closed): a decision from before is old then.

    Args:
        speed: How many seconds pass in one: for a lab that is served slower or faster than real time.
    """

    def __init__(self, speed: float = 1.0) -> None:
        self.speed = speed

    def now(self) -> float:
        """Seconds since some moment, the same for all processes."""
        return (time.monotonic() if _AWAKE_OR_NOT is None else time.clock_gettime(_AWAKE_OR_NOT)) * self.speed

    def sleep(self, seconds: float) -> None:
        """Wait."""
        if seconds > 0:
            time.sleep(seconds / self.speed)


class ManualClock:
    """Time that passes in `sleep` only."""

    def __init__(self, now: float = 0.0) -> None:
        self._now = now

    def now(self) -> float:
        """Seconds since it was made, and what it was made with."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Move time on at once."""
        if seconds > 0:
            self._now += seconds


class ClockSync:
    """The autopilot's boot time on our clock.

    Each message says when it was made, by the autopilot's clock; it arrives later by an unknown delay. The quickest
    message in a while gives the offset between the clocks, and one that has queued up shows as old. That takes a delay
    that all messages have for none at all. Where the autopilot answers TIMESYNC, half the round trip is the
    delay, and the quickest answer in a while gives the offset instead.
    """

    def __init__(self, window: float = WINDOW) -> None:
        self._window = window
        self._least: deque[tuple[float, float, float]] = deque()  # (arrival, offset, offset), both increasing
        self._quickest: deque[tuple[float, float, float]] = deque()  # (arrival, round trip, offset)

    def add_reply(self, asked: float, boot: float, now: float) -> None:
        """A TIMESYNC reply given at `boot` to what we asked at `asked` has arrived."""
        round_trip = now - asked
        if 0 <= round_trip <= LONGEST_ROUND_TRIP:  # else somebody else's question, or a clock that means nothing
            self._keep_least(self._quickest, (now, round_trip, (asked + now) / 2 - boot))

    def _keep_least(self, kept: deque[tuple[float, float, float]], entry: tuple[float, float, float]) -> None:
        """Add an entry to those of the window that nothing later has undercut; so the first is always the least."""
        while kept and kept[-1][1] >= entry[1]:
            kept.pop()
        kept.append(entry)
        while kept[0][0] < entry[0] - self._window:
            kept.popleft()

    def add(self, boot: float, now: float) -> None:
        """A message made at `boot` has arrived."""
        offset = now - boot
        self._keep_least(self._least, (now, offset, offset))

    @property
    def offset(self) -> float:
        """What to add to a boot time, seconds; NaN before any message."""
        # The lesser one: a pose cannot have been measured after it came.
        return min((kept[0][2] for kept in (self._quickest, self._least) if kept), default=math.nan)
