"""One clock for everything that waits: the system's, or one that a test or a lock-step flight moves by hand."""

import time
from typing import Protocol

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
