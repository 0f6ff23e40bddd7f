"""Safety, before anything is sent: limits, the fence, the paper's forward simulation (paper: Quadcopter Safety).

The paper's rule needs bounds, and a real drone needs them nearer than the fences; `FenceMargins` says where. The
in-process lab and the `Guardian` of a real drone share it. `Safety` adds what a drone on the wire needs besides: limits
of speed and acceleration at each tick and a bounded climb to the flight height.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wordwing.constants import ARENA_HALF, FLIGHT_HEIGHT, MAX_FORWARD, MAX_YAW_RATE
from wordwing.flight.guardian.prediction import DroneState, largest_safe_speed
from wordwing.flight.mavlink.geometry import (
    MARGIN,
    PlainPose,
    Vector,
    add,
    multiply,
    quaternion_from_euler,
    scale,
    single,
)

AT_A_FENCE = 0.45
"""A drone flies at a fence, not along it, with more than this share of its speed towards it."""

STANDING = 0.05
"""A drone that is to fly slower is to stay where it is, m/s."""

AT_REST = 0.15
"""A drone that is slower has come to rest, m/s."""

NOISE = 0.01
"""Corrections that are slower are not sent, m/s."""


@dataclass(frozen=True)
class FlightLimits:
    """What a drone on the wire may do."""

    forward: float = MAX_FORWARD
    """m/s that a decision may ask for; never backwards."""
    yaw_rate: float = MAX_YAW_RATE
    """rad/s, either way."""
    acceleration: float = 1.5
    """m/s², of the forward velocity that is sent; slowing down is not limited."""
    yaw_acceleration: float = 4.0
    """rad/s², of the yaw rate that is sent; slowing down is not limited."""
    climb: float = 0.3
    """m/s, up or down."""
    height: float = FLIGHT_HEIGHT
    """Metres that are held."""
    height_gain: float = 1.0
    """m/s of climb for each metre that is missing."""
    hold_gain: float = 1.0
    """m/s for each metre that a drone is away from where it came to rest."""
    hold_speed: float = 0.2
    """m/s of that at most, in any direction."""
    damping: float = 1.0
    """m/s, `hold_speed` at most, against each m/s that a drone moves without a setpoint to."""
    return_gain: float = 2.0
    """m/s, `hold_speed` at most, for each metre that a drone is nearer to a fence beside it than it may be."""
    hold_slack: float = 0.03
    """Metres that it may be away before anything is done about it."""
    ceiling: float = 1.5
    """Metres; above it the drone must land."""
    tilt: float = math.radians(35)
    """Radians of roll or pitch; beyond it the drone must land."""
    battery: float = 0.2
    """Share that remains; below it the drone must land."""
    flight_time: float = 120.0
    """Seconds since it was armed; then it must land."""
    start_battery: float = 0.3
    """Share that remains; below it the drone does not start."""
    start_height: float = 0.3
    """Metres from the floor, either way: higher up it does not stand on it."""
    start_tilt: float = math.radians(10)
    """Radians of roll or pitch; a drone that stands more crooked does not start."""
    start_speed: float = 0.3
    """m/s; a drone that is being carried does not start."""


@dataclass(frozen=True)
class Timeouts:
    """How long things may take, seconds."""

    decision: float = 0.6
    """A decision is repeated for so long, then the drone stops."""
    hold: float = 3.0
    """A drone without a decision hovers for so long, then it lands."""
    longest_hold: float = 30.0
    """A pilot may have it hover for so long on purpose, then it lands."""
    image: float = 0.5
    """A decision from an older image does not count."""
    image_ahead: float = 0.05
    """Nor does one from an image that is so much newer than itself: a clock is wrong."""
    pose: float = 0.2
    """With an older pose the drone must land."""
    heartbeat: float = 2.0
    """Without the autopilot's heartbeat for so long the link is lost."""
    tick: float = 0.2
    """If the guardian itself has been away for longer, the drone stops."""
    outage: float = 1.0
    """If it has been away for longer, it sends nothing but heartbeats until a new one has come from the autopilot."""
    pilot: float = 1.0
    """A pilot that has been silent for so long is gone."""
    answer: float = 0.5
    """A command that has not been answered is sent again after so long."""
    tries: int = 5
    """How often a command is sent at most (not LAND)."""
    effect: float = 3.0
    """How long an accepted command may take to show."""
    climb: float = 15.0
    """How long a take-off may take."""
    hover: float = 0.5
    """How long the drone must have kept its height before it hovers."""
    lost_link: float = 2.0
    """How long LAND is still sent over a link that is lost; then there is silence."""
    land_unconfirmed: float = 3.0
    """If LAND does not show for so long, all else is left out, so that the autopilot's own failsafe may act."""


@dataclass(frozen=True)
class FenceMargins:
    """How near to the arena's edges a drone may come, metres."""

    ahead: float = MARGIN
    """From a fence that it flies at."""
    aside: float = MARGIN
    """From a fence that it flies along."""
    edge: float = MARGIN / 2
    """Nearer, it must land."""
    half: float = ARENA_HALF
    """From the arena's centre to its edges."""

    def bounds(self, pose: PlainPose, yaw_rate: float) -> tuple[float, float]:
        """How far from the arena's centre the drone may go along x and along y, metres, while it turns at rad/s."""
        headings = [(math.cos(yaw), math.sin(yaw)) for yaw in (pose.yaw, pose.yaw + yaw_rate)]  # now, in a second
        x, y = (
            self._bound(place, max(h[axis] for h in headings), min(h[axis] for h in headings))
            for axis, place in enumerate(pose.position[:2])
        )
        return x, y

    def _bound(self, place: float, most: float, least: float) -> float:
        """The bound along one axis for a drone at `place` whose heading there lies between two cosines."""
        outwards = most if place > 0 else -least if place < 0 else 0.0
        bound = self.half - (self.ahead if outwards > AT_A_FENCE else self.aside)
        # Pushed out by a gust, it may come back once it looks back, or it would hover there for ever.
        return max(bound, abs(place) + 0.03) if outwards < 0 else bound


@dataclass(frozen=True)
class Motion:
    """The drone now, world frame."""

    pose: PlainPose
    velocity: Vector
    """m/s."""
    rates: Vector
    """Body rates, rad/s."""

    @property
    def height(self) -> float:
        """Metres above the floor."""
        return self.pose.position[2]

    @property
    def reach(self) -> float:
        """How far it is from the arena's centre along x or y, metres, whichever is more."""
        return max(map(abs, self.pose.position[:2]))

    def ahead(self, seconds: float) -> Motion:
        """The same a moment later, if it goes on as it does."""
        turn = quaternion_from_euler(0.0, 0.0, self.rates[2] * seconds)
        position = add(self.pose.position, scale(seconds, self.velocity))
        pose = PlainPose(position, multiply(turn, self.pose.quaternion)).single()
        return Motion(pose, self.velocity, self.rates)


class Safety:
    """What may be sent for what is wanted, tick by tick."""

    def __init__(self, limits: FlightLimits, fence: FenceMargins) -> None:
        self.limits, self.fence = limits, fence
        self._forward = self._yaw_rate = 0.0
        self._rest: tuple[float, float] | None = None  # where the drone came to rest, world frame

    def limit(self, forward: float, yaw_rate: float, motion: Motion, seconds: float) -> Vector:
        """What may be sent: forward m/s, yaw rate rad/s, and a velocity to the left, m/s.

        A drone that is not to move, or may not, is held where it came to rest, also while it turns. One that flies is
        kept from slipping sideways, and led back from a fence beside it.

        Args:
            forward: Wanted velocity, m/s.
            yaw_rate: Wanted, rad/s, positive turns left.
            motion: The drone now.
            seconds: Since the last setpoint.
        """
        limits = self.limits
        forward = clamped(forward, 0.0, limits.forward)
        yaw_rate = clamped(yaw_rate, -limits.yaw_rate, limits.yaw_rate)
        forward = accelerated(self._forward, forward, limits.acceleration * seconds)
        yaw_rate = accelerated(self._yaw_rate, yaw_rate, limits.yaw_acceleration * seconds)
        safe, turn = single(forward), single(yaw_rate)
        if forward > 0:
            drone = DroneState.of(motion.pose, motion.velocity, motion.rates)
            safe = single(largest_safe_speed(drone, safe, turn, self.fence.bounds(motion.pose, turn)))
        self._forward, self._yaw_rate = safe, yaw_rate
        if self._forward >= STANDING:
            self._rest = None
            return safe, turn, self._aside(motion)
        forward, left = self._hold(motion, at_a_fence=forward >= STANDING)
        return single(forward), turn, left

    def _hold(self, motion: Motion, *, at_a_fence: bool) -> tuple[float, float]:
        """The velocity that keeps a drone where it came to rest, m/s, forward and left.

        Zero velocity is no position hold: PX4 drifted by 0.2 to 0.7 m on it. Nor is it a brake: PX4's simulator flew on
        for 0.28 m after it, to 0.11 m from a fence. A drone that the fence has stopped brakes until it is at rest.
        """
        limits, (x, y) = self.limits, motion.pose.position[:2]
        ahead, aside = _body(motion, *motion.velocity[:2])
        if self._rest is None and math.hypot(ahead, aside) < AT_REST:
            inside = self.fence.half - self.fence.ahead
            self._rest = clamped(x, -inside, inside), clamped(y, -inside, inside)
        if self._rest is None:
            left = self._aside(motion)
            most = math.sqrt(max(limits.hold_speed**2 - left**2, 0.0))
            return -clamped(limits.damping * ahead, 0.0, most) if at_a_fence else 0.0, left
        away = self._rest[0] - x, self._rest[1] - y
        back, left = _body(motion, *away) if math.hypot(*away) > limits.hold_slack else (0.0, 0.0)
        gain, damping = limits.hold_gain, limits.damping
        return self._bounded(gain * back - damping * ahead, gain * left - damping * aside)

    def _bounded(self, forward: float, left: float) -> tuple[float, float]:
        """The velocity of a correction, m/s, no faster than it may be; what would be nothing but noise is nothing."""
        speed = math.hypot(forward, left)
        share = min(1.0, self.limits.hold_speed / speed) if speed > NOISE else 0.0
        return share * forward, share * left

    def _aside(self, motion: Motion) -> float:
        """The velocity to the left that keeps a drone from slipping sideways, and from a fence beside it, m/s.

        The rule only slows a drone down. One that is blown to a fence, or whose autopilot does not know how it drifts
        (PX4's simulator: by 0.2 m/s), would come nearer until it has come to rest.
        """
        limits, bound = self.limits, self.fence.half - self.fence.aside
        beyond = (math.copysign(max(0.0, abs(place) - bound), place) for place in motion.pose.position[:2])
        left = -limits.return_gain * _body(motion, *beyond)[1]
        return self._bounded(0.0, left - limits.damping * _body(motion, *motion.velocity[:2])[1])[1]

    def climb(self, height: float) -> float:
        """The vertical velocity that brings the drone to its height, m/s, up."""
        limits = self.limits
        return clamped(limits.height_gain * (limits.height - height), -limits.climb, limits.climb)


def clamped(value: float, least: float, most: float) -> float:
    """A number inside its limits; NaN becomes the one nearest to zero, so that a broken policy hovers."""
    if math.isnan(value):
        value = 0.0
    return min(max(value, least), most)


def accelerated(before: float, wanted: float, most: float) -> float:
    """A speed that is at most `most` faster than before, whichever its direction; slower at once."""
    allowed = abs(before) + most if before * wanted > 0 else most
    return math.copysign(min(abs(wanted), allowed), wanted)


def _body(motion: Motion, x: float, y: float) -> tuple[float, float]:
    """A horizontal vector of the world frame as the drone sees it: forward and left."""
    yaw = motion.pose.yaw
    return x * math.cos(yaw) + y * math.sin(yaw), y * math.cos(yaw) - x * math.sin(yaw)


def motion_of(pose: PlainPose, velocity: Vector, rates: Vector) -> Motion:
    """A motion in float32, as the simulator has it."""
    (vx, vy, vz), (p, q, r) = map(single, velocity), map(single, rates)
    return Motion(pose.single(), (vx, vy, vz), (p, q, r))
