"""The autopilot's poses of the last seconds on our clock: their age, their jumps, and its restarts."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from wordwing.flight.mavlink.clock import ClockSync
from wordwing.flight.mavlink.geometry import Vector
from wordwing.flight.mavlink.parse_message import Attitude, Position

MEMORY = 2.0
"""How far back poses are remembered, seconds."""

RESTART = 1.0
"""A boot time that goes back by more is a restart, not a packet that was overtaken; seconds."""

CONFIRMED = 3
"""How many messages in a row must have such a boot time."""

TINY = 1e-6
"""Sums of ticks and offsets are not exact, seconds."""


JUMP, MOST_SPEED = 0.3, 3.0
"""A drone cannot move by more than so many metres beyond what so many m/s allow, from one pose to the next."""

JUMP_TURN, MOST_YAW_RATE = 0.5, 6.0
"""Nor turn by more than so many radians of yaw beyond what so many rad/s allow."""


class TimeSeries:
    """Numbers over the last seconds, interpolated.

    Args:
        memory: How far back it reaches, seconds.
        angles: Which of the numbers are angles, radians: these go the short way round.
    """

    def __init__(self, memory: float = MEMORY, angles: Sequence[int] = ()) -> None:
        self._memory = memory
        self._angles = frozenset(angles)
        self._times: list[float] = []
        self._values: list[tuple[float, ...]] = []

    def add(self, time: float, values: Sequence[float]) -> bool:
        """Remember; what is not newer than the newest is not."""
        if self._times and time <= self._times[-1]:
            return False
        self._times.append(time)
        self._values.append(tuple(values))
        stale = bisect_left(self._times, time - self._memory)
        del self._times[:stale], self._values[:stale]
        return True

    @property
    def newest(self) -> tuple[float, tuple[float, ...]] | None:
        """Time and values, or None."""
        return (self._times[-1], self._values[-1]) if self._times else None

    def at(self, time: float) -> tuple[float, ...] | None:
        """The values at a time, or None before the oldest and after the newest."""
        if not self._times or not self._times[0] - TINY <= time <= self._times[-1] + TINY:
            return None
        time = min(max(time, self._times[0]), self._times[-1])
        after = bisect_left(self._times, time)
        if self._times[after] == time:
            return self._values[after]
        before = after - 1
        share = (time - self._times[before]) / (self._times[after] - self._times[before])
        pairs = zip(self._values[before], self._values[after], strict=True)
        return tuple(
            a + share * (math.remainder(b - a, math.tau) if i in self._angles else b - a)
            for i, (a, b) in enumerate(pairs)
        )

    def since(self, time: float) -> list[tuple[float, tuple[float, ...]]]:
        """Times and values after a time, oldest first."""
        first = bisect_left(self._times, time)
        return [entry for entry in zip(self._times[first:], self._values[first:], strict=True) if entry[0] > time]


@dataclass(frozen=True)
class LocalState:
    """The drone at one time, local frame with z up."""

    position: Vector
    """Metres."""
    velocity: Vector
    """m/s."""
    angles: Vector
    """Roll, pitch (positive: nose down), yaw, radians."""
    rates: Vector
    """Body rates, rad/s."""


class PoseHistory:
    """The autopilot's positions and attitudes of the last two seconds."""

    def __init__(self) -> None:
        self.sync = ClockSync()
        self.rebooted = False
        """Whether the autopilot has been started anew since the first message."""
        self.jump: str | None = None
        """The last jump in words."""
        self.jumped_at = -math.inf
        self._positions = TimeSeries()  # by boot time, so that a better offset moves all of them
        self._attitudes = TimeSeries(angles=(0, 1, 2))
        self._boot = -math.inf
        self._backwards = 0

    def update(self, message: Position | Attitude, now: float) -> None:
        """Take in a position or an attitude that has arrived at `now`."""
        if not self._in_time(message.boot):
            return
        self.sync.add(message.boot, now)
        if isinstance(message, Position):
            series, values = self._positions, message.position + message.velocity
        else:
            series, values = self._attitudes, message.angles + message.rates
        last = series.newest
        if series.add(message.boot, values) and last is not None:
            self._check_jump(message, last[1], message.boot - last[0], now)

    def note_jump(self, why: str, now: float) -> None:
        """A pose that cannot be used has come; it counts as a jump."""
        self.jump, self.jumped_at = why, now

    def age(self, now: float) -> float:
        """Of what is known, seconds; infinite if nothing is."""
        boot = self._newest_boot()
        return math.inf if boot is None else now - boot - self.sync.offset

    def newest(self) -> LocalState | None:
        """The newest position and the newest attitude."""
        position, attitude = self._positions.newest, self._attitudes.newest
        return None if position is None or attitude is None else _local_state(position[1], attitude[1])

    def newest_time(self) -> float:
        """Of the newest moment that is known in full, on our clock; NaN if there is none."""
        boot = self._newest_boot()
        return math.nan if boot is None else boot + self.sync.offset

    def pose_at(self, time: float) -> LocalState | None:
        """The drone at a time of our clock, interpolated; None if it is not in memory."""
        boot = time - self.sync.offset
        position, attitude = self._positions.at(boot), self._attitudes.at(boot)
        return None if position is None or attitude is None else _local_state(position, attitude)

    def times_since(self, time: float) -> list[float]:
        """Times of our clock after `time` at which positions are known, and attitudes too."""
        attitude = self._attitudes.newest
        last = attitude[0] if attitude else -math.inf
        offset = self.sync.offset
        return [boot + offset for boot, _ in self._positions.since(time - offset) if boot <= last]

    def _in_time(self, boot: float) -> bool:
        """Whether a message is not from before; notices restarts."""
        if boot < self._boot - RESTART:
            self._backwards += 1
            self.rebooted |= self._backwards >= CONFIRMED
            return False
        self._backwards = 0
        self._boot = max(self._boot, boot)
        return True

    def _newest_boot(self) -> float | None:
        position, attitude = self._positions.newest, self._attitudes.newest
        return None if position is None or attitude is None else min(position[0], attitude[0])

    def _check_jump(self, message: Position | Attitude, last: Sequence[float], seconds: float, now: float) -> None:
        if isinstance(message, Position):
            moved = math.dist(message.position, last[:3])
            if moved > JUMP + MOST_SPEED * seconds:
                self.note_jump(f"the position jumped by {moved:.2f} m in {seconds:.2f} s", now)
        else:
            turned = abs(math.remainder(message.angles[2] - last[2], math.tau))
            if turned > JUMP_TURN + MOST_YAW_RATE * seconds:
                self.note_jump(f"the heading jumped by {math.degrees(turned):.0f}° in {seconds:.2f} s", now)


def _local_state(position: tuple[float, ...], attitude: tuple[float, ...]) -> LocalState:
    x, y, z, vx, vy, vz = position
    roll, pitch, yaw, p, q, r = attitude
    return LocalState((x, y, z), (vx, vy, vz), (roll, pitch, yaw), (p, q, r))
