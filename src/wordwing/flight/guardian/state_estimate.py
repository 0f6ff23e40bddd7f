"""Where the drone is, and whether motion capture can be trusted: the guardian gets the poses that the autopilot gets.

An autopilot that loses motion capture says so late or not at all: PX4 flew on for five seconds on dead reckoning,
ArduPilot for seven, and both accept a jump without a word. So the feed itself is watched: its age and its rate, how
fast it moves, whether it moves as a drone that leans like this one can, and whether the autopilot agrees with it.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wordwing.flight.guardian.pose_history import TINY, LocalState, PoseHistory, TimeSeries
from wordwing.flight.guardian.prediction import GRAVITY
from wordwing.flight.guardian.safety import Motion, motion_of
from wordwing.flight.mavlink.geometry import ArenaFrame, PlainPose, euler_from_quaternion, quaternion_from_euler
from wordwing.flight.mavlink.vehicle_status import failed

MOMENT = 0.15
"""Over how long a velocity is measured, seconds."""


@dataclass(frozen=True)
class MocapLimits:
    """What a feed that can be trusted keeps to."""

    age: float = 0.2
    """Seconds since the newest pose."""
    rate: float = 20.0
    """Poses a second, over the last second."""
    calm: float = 2.0
    """Seconds without a fault before a start."""
    speed: float = 3.0
    """m/s."""
    jump: float = 0.1
    """Metres between two poses beyond what `speed` allows."""
    span: float = 0.3
    """Seconds: the drone's path is compared with its lean over twice as long."""
    swerve: float = 0.15
    """Metres by which a path over two spans may differ from what the lean explains."""
    disagreement: float = 0.25
    """Metres, horizontally, between the feed and the autopilot's estimate; before a start 0.1 m."""
    start_disagreement: float = 0.1
    """The same before a start, when nothing moves."""
    height_disagreement: float = 0.3
    """Metres, vertically: the estimate has a bias of up to 0.1 m that differs from boot to boot."""
    turn: float = math.radians(20)
    """Radians of heading between the feed and the estimate."""


class MocapMonitor:
    """The poses of the last seconds, and what is wrong with them.

    Poses are in the autopilot's local frame with z up: x north, y west.

    Args:
        history: The autopilot's own poses.
        limits: What the feed must keep to.
    """

    def __init__(self, history: PoseHistory, limits: MocapLimits | None = None) -> None:
        self.limits = limits or MocapLimits()
        self.fault: str | None = None
        """The last thing that was wrong, in words."""
        self.fault_at = -math.inf
        """When, seconds of our clock."""
        self.height_bias = 0.0
        """By how much the autopilot's height is more than that of motion capture, metres, over the last second."""
        self._history = history
        self._poses = TimeSeries(angles=(3,))  # x, y, z, yaw
        self._last: tuple[Sequence[float], Sequence[float]] | None = None
        self._biased_at = -math.inf

    def add(
        self, time: float, position: Sequence[float], quaternion: Sequence[float], now: float, *, flying: bool = False
    ) -> None:
        """Take in a pose.

        A pose that is not finite, not newer or exactly the same as the last one is left out: systems repeat the last
        pose when they lose sight of the drone. Then the feed grows old.

        Args:
            time: When it was measured, seconds of our clock.
            position: [3] metres.
            quaternion: [4] (w, x, y, z), body to local frame.
            now: Seconds of our clock.
            flying: Whether the drone hangs in the air by its rotors alone, so that its lean moves it.
        """
        pose = (tuple(position), tuple(quaternion))
        if not all(math.isfinite(number) for number in (time, *pose[0], *pose[1])) or pose == self._last:
            return
        before = self._poses.newest
        w, x, y, z = quaternion
        if not self._poses.add(time, (*position, math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)))):
            return
        self._last = pose
        if before is not None:
            moved, seconds = math.dist(pose[0], before[1][:3]), time - before[0]
            if moved > self.limits.jump + self.limits.speed * seconds:
                self.fault, self.fault_at = f"motion capture jumped by {moved:.2f} m in {seconds:.2f} s", now
        if flying and now - self.fault_at > 2 * self.limits.span:  # a path across a jump says nothing more
            self._check_path(now)
        self._measure_bias()

    def age(self, now: float) -> float:
        """Seconds since the newest pose was measured; infinite without one."""
        newest = self._poses.newest
        return math.inf if newest is None else now - newest[0]

    def velocity(self) -> tuple[float, float] | None:
        """How it moves along x and y, m/s; None without a pose now and one a moment ago."""
        newest = self._poses.newest
        before = None if newest is None else self._poses.at(newest[0] - MOMENT)
        if newest is None or before is None:
            return None
        return (newest[1][0] - before[0]) / MOMENT, (newest[1][1] - before[1]) / MOMENT

    def unready(self, now: float) -> list[str]:
        """What speaks against arming, in words."""
        limits, age, rate = self.limits, self.age(now), len(self._poses.since(now - 1.0))  # a second
        if math.isinf(age):
            return ["no motion capture has been heard (wordwing flight mocap sends it, --mocap says where to listen)"]
        reasons = failed(
            (age > limits.age + TINY, f"the newest pose of motion capture is {age:.2f} s old"),
            (rate < limits.rate, f"motion capture gives {rate:.0f} poses a second; it must give {limits.rate:.0f}"),
            (now - self.fault_at < limits.calm, f"{self.fault}"),
        )
        return (reasons or self._disagreements(limits.start_disagreement))[:1]

    def must_land(self, armed_at: float, now: float) -> str | None:
        """Why the feed cannot be trusted any more, or None."""
        if self.age(now) > self.limits.age + TINY:
            return f"motion capture is lost: its newest pose is {self.age(now):.2f} s old"
        if self.fault_at >= armed_at:
            return self.fault
        return next(iter(self._disagreements(self.limits.disagreement)), None)

    def _check_path(self, now: float) -> None:
        """Compare the second difference of the path over two spans with what the lean explains of it."""
        span, end = self.limits.span, self._newest_of_both()
        here, middle, there = (self._poses.at(end - back) for back in (0.0, span, 2 * span))
        if here is None or middle is None or there is None:
            return
        lean_x, lean_y = self._leaned(end - span)
        swerve = math.hypot(
            here[0] - 2 * middle[0] + there[0] - lean_x,
            here[1] - 2 * middle[1] + there[1] - lean_y,
        )
        if swerve > self.limits.swerve:
            self.fault = f"motion capture moved {swerve:.2f} m off the path that the drone's lean explains"
            self.fault_at = now

    def _leaned(self, middle: float) -> tuple[float, float]:
        """The second difference over two spans about a time that the autopilot's own lean causes, metres, x and y."""
        span, x, y, weights = self.limits.span, 0.0, 0.0, 0.0
        for time in self._history.times_since(middle - span):
            weight, local = span - abs(time - middle), self._history.pose_at(time)
            if local is None or weight <= 0:
                continue
            roll, pitch, yaw = local.angles
            forward, left = GRAVITY * math.tan(pitch), -GRAVITY * math.tan(roll)
            x += weight * (forward * math.cos(yaw) - left * math.sin(yaw))
            y += weight * (forward * math.sin(yaw) + left * math.cos(yaw))
            weights += weight
        return (span**2 * x / weights, span**2 * y / weights) if weights else (0.0, 0.0)

    def _newest_of_both(self) -> float:
        """The newest time at which both the feed and the autopilot's pose are known; NaN if there is none."""
        newest = self._poses.newest
        return math.nan if newest is None else min(newest[0], self._history.newest_time())

    def _measure_bias(self) -> None:
        time = self._newest_of_both()
        pose, local = self._poses.at(time), self._history.pose_at(time)
        if pose is not None and local is not None:
            share = min(1.0, max(0.0, time - self._biased_at))
            self.height_bias += share * (local.position[2] - pose[2] - self.height_bias)
            self._biased_at = time

    def _disagreements(self, most: float) -> list[str]:
        """In which ways the autopilot's pose is not where motion capture is."""
        time = self._newest_of_both()
        pose, local = self._poses.at(time), self._history.pose_at(time)
        if pose is None or local is None:
            return []  # their ages are judged elsewhere
        apart, above = math.dist(pose[:2], local.position[:2]), local.position[2] - pose[2]
        turn = math.remainder(local.angles[2] - pose[3], math.tau)
        return failed(
            (
                apart > most,
                f"the autopilot thinks that the drone is {apart:.2f} m from where motion capture sees it",
            ),
            (
                abs(above) > self.limits.height_disagreement,
                f"the autopilot's height is {above:+.2f} m off that of motion capture",
            ),
            (
                abs(turn) > self.limits.turn,
                f"the autopilot's heading is {math.degrees(turn):+.0f}° off that of motion capture",
            ),
        )


class StateEstimate:
    """The drone's state in the world frame: the autopilot's poses, with heights and velocities of motion capture.

    The autopilot's heights drift, and it may not know how it moves: PX4's simulator was wrong by 0.2 m/s.
    """

    def __init__(self, arena: ArenaFrame) -> None:
        self.history = PoseHistory()
        """The autopilot's own poses, local frame."""
        self.mocap = MocapMonitor(self.history)
        self._arena = arena

    def motion(self) -> Motion | None:
        """The newest that is known, or None."""
        local = self.history.newest()
        if local is None:
            return None
        x, y = self.mocap.velocity() or local.velocity[:2]
        velocity = self._arena.world_velocity((x, y, local.velocity[2]))
        return motion_of(self._pose(local), velocity, local.rates)

    def newest(self) -> tuple[float, tuple[float, ...]] | None:
        """When all was last known, seconds of our clock, and x, y, z, roll, pitch, yaw then, world frame."""
        time = self.history.newest_time()
        local = self.history.pose_at(time)
        return None if local is None else (time, self._numbers(local))

    def poses_since(self, time: float) -> list[tuple[float, tuple[float, ...]]]:
        """Times after `time`, and x, y, z, roll, pitch, yaw in the world frame then, oldest first."""
        known = [(then, self.history.pose_at(then)) for then in self.history.times_since(time)]
        return [(then, self._numbers(local)) for then, local in known if local is not None]

    def _pose(self, local: LocalState) -> PlainPose:
        x, y, z = local.position
        return self._arena.world_pose((x, y, z - self.mocap.height_bias), quaternion_from_euler(*local.angles))

    def _numbers(self, local: LocalState) -> tuple[float, ...]:
        pose = self._pose(local)
        return (*pose.position, *euler_from_quaternion(pose.quaternion))
