"""The autopilot's poses of the last seconds on our clock: their age, their jumps, and its restarts."""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from wordwing.flight.mavlink.geometry import Vector
from wordwing.flight.mavlink.parse_message import Attitude, Position

MEMORY = 2.0
"""How far back poses are remembered, seconds."""

WINDOW = 30.0
"""How long the smallest delay is remembered, seconds: clocks drift by less than a millisecond meanwhile."""

LONGEST_ROUND_TRIP = 0.1
"""Seconds; a reply that took longer says little."""

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
