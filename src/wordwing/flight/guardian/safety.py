"""Safety, before anything is sent: limits, the fence, the paper's forward simulation (paper: Quadcopter Safety).

The paper's rule needs bounds, and a real drone needs them nearer than the fences; `Fence` says where. The in-process
lab and the `Guardian` of a real drone share it. `Safety` adds what a drone on the wire needs besides: limits of speed
and acceleration at each tick and a bounded climb to the flight height.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from wordwing.frames import ARENA_HALF, Pose, quaternion_from_euler, quaternion_multiply
from wordwing.interface import FLIGHT_HEIGHT, MAX_FORWARD, MAX_YAW_RATE, Setpoint
from wordwing.sim.dynamics import DynamicsConfig, FleetState

AT_A_FENCE = 0.45
"""A drone flies at a fence, not along it, with more than this share of its speed towards it."""

STANDING = 0.05
"""A drone that is to fly slower is to stay where it is, m/s."""

AT_REST = 0.15
"""A drone that is slower has come to rest, m/s."""

NOISE = 0.01
"""Corrections that are slower are not sent, m/s."""

MARGIN = 0.35
"""Metres that a real drone keeps from the fences."""


@dataclass(frozen=True)
class Limits:
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
    """m/s, `hold_speed` at most, against each m/s that a drone moves without having been told to."""
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
    """A decision from an older picture does not count."""
    image_ahead: float = 0.05
    """Nor does one from a picture that is so much newer than itself: a clock is wrong."""
    pose: float = 0.2
    """With an older pose the drone must land."""
    heartbeat: float = 2.0
    """Without the autopilot's heartbeat for so long the link is lost."""
    tick: float = 0.2
    """If the guardian itself has been away for longer, the drone stops."""
    daze: float = 1.0
    """If it has been away for longer, it asks for nothing until it has heard a new heartbeat."""
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
    plea: float = 2.0
    """How long LAND is still sent over a link that is lost; then there is silence."""
    insist: float = 3.0
    """If LAND does not show for so long, all else is left out, so that the autopilot's own failsafe may act."""


@dataclass(frozen=True)
class Fence:
    """How near to the arena's edges a drone may come, metres."""

    ahead: float = MARGIN
    """From a fence that it flies at."""
    aside: float = MARGIN
    """From a fence that it flies along."""
    edge: float = MARGIN / 2
    """Nearer, it must land."""
    half: float = ARENA_HALF
    """From the arena's centre to its edges."""

    def bounds(self, pose: Pose, setpoint: Setpoint) -> Tensor:
        """[1, 2] how far from the arena's centre the drone may go along x and along y, metres."""
        headings = torch.stack([_heading(pose.yaw), _heading(pose.yaw + setpoint.yaw_rate)])  # now, in a second
        outwards = (headings * pose.xy.sign()).amax(0)  # [1, 2]
        margins = torch.where(outwards > AT_A_FENCE, self.ahead, self.aside)
        bounds = self.half - margins
        # Pushed out by a gust, it may come back once it looks back, or it would hover there for ever.
        return torch.where(outwards < 0, bounds.maximum(pose.xy.abs() + 0.03), bounds)


class SafetyRule:
    """The paper's rule inside a fence, for one drone: predicts with the simple model of `sim`."""

    def __init__(self, fence: Fence) -> None:
        self.fence = fence
        # The true body answers a little differently.
        self._model = FleetState(1, torch.device("cpu"), DynamicsConfig())

    def restrain(self, setpoint: Setpoint, pose: Pose, velocity: Tensor, rates: Tensor) -> Setpoint:
        """The setpoint with its forward velocity reduced, to standstill if need be.

        Args:
            setpoint: [1] what the drone is asked to fly.
            pose: [1] of the drone, world frame.
            velocity: [3] m/s, world frame.
            rates: [3] body rates, rad/s.
        """
        model = self._model
        model.reset(pose, torch.arange(1))
        model.velocity[0] = velocity
        model.rates[0] = rates
        model.target[0, 0] = model.velocity[0, :2] @ _heading(pose.yaw)[0]
        model.yaw_target[0] = model.rates[0, 2]
        return model.restrain(setpoint, self.fence.bounds(pose, setpoint))


@dataclass(frozen=True)
class Motion:
    """The drone now, world frame."""

    pose: Pose
    """[1]."""
    velocity: Tensor
    """[3] m/s."""
    rates: Tensor
    """[3] body rates, rad/s."""

    @property
    def height(self) -> float:
        """Metres above the floor."""
        return float(self.pose.position[0, 2])

    @property
    def reach(self) -> float:
        """How far it is from the arena's centre along x or y, metres, whichever is more."""
        return float(self.pose.xy.abs().max())

    def ahead(self, seconds: float) -> Motion:
        """The same a moment later, if it goes on as it does."""
        level = torch.zeros(1)
        turn = quaternion_from_euler(level, level, self.rates[2:] * seconds)
        position = self.pose.position + self.velocity * seconds
        return Motion(Pose(position, quaternion_multiply(turn, self.pose.quaternion)), self.velocity, self.rates)


class Safety:
    """What may be sent for what is wished, tick by tick."""

    def __init__(self, limits: Limits, fence: Fence) -> None:
        self.limits = limits
        self.rule = SafetyRule(fence)
        self._forward = 0.0
        self._yaw_rate = 0.0
        self._rest: tuple[float, float] | None = None  # where the drone came to rest, world frame

    def grant(self, forward: float, yaw_rate: float, motion: Motion, seconds: float) -> tuple[Setpoint, float]:
        """The setpoint [1] that may be sent, and a velocity to the left, m/s.

        A drone that is not to move, or may not, is held where it came to rest, also while it turns. One that flies is
        kept from slipping sideways, and led back from a fence beside it.

        Args:
            forward: Wished velocity, m/s.
            yaw_rate: Wished, rad/s, positive turns left.
            motion: The drone now.
            seconds: Since the last setpoint.
        """
        limits = self.limits
        forward = clamped(forward, 0.0, limits.forward)
        yaw_rate = clamped(yaw_rate, -limits.yaw_rate, limits.yaw_rate)
        forward = quickened(self._forward, forward, limits.acceleration * seconds)
        yaw_rate = quickened(self._yaw_rate, yaw_rate, limits.yaw_acceleration * seconds)
        asked = Setpoint(torch.tensor([forward]), torch.tensor([yaw_rate]))
        granted = self.rule.restrain(asked, motion.pose, motion.velocity, motion.rates) if forward > 0 else asked
        self._forward, self._yaw_rate = float(granted.forward[0]), yaw_rate
        if self._forward >= STANDING:
            self._rest = None
            return granted, self._aside(motion)
        forward, left = self._hold(motion, at_a_fence=forward >= STANDING)
        return Setpoint(torch.tensor([forward]), granted.yaw_rate), left

    def _hold(self, motion: Motion, *, at_a_fence: bool) -> tuple[float, float]:
        """The velocity that keeps a drone where it came to rest, m/s, forward and left.

        Zero velocity is no position hold: PX4 drifted by 0.2 to 0.7 m on it. Nor is it a brake: PX4's simulator flew on
        for 0.28 m after it, to 0.11 m from a fence. A drone that the fence has stopped brakes until it is at rest.
        """
        limits, (x, y) = self.limits, motion.pose.xy[0].tolist()
        ahead, aside = _body(motion, *motion.velocity[:2].tolist())
        if self._rest is None and math.hypot(ahead, aside) < AT_REST:
            inside = self.rule.fence.half - self.rule.fence.ahead
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
        limits, bound = self.limits, self.rule.fence.half - self.rule.fence.aside
        beyond = (math.copysign(max(0.0, abs(place) - bound), place) for place in motion.pose.xy[0].tolist())
        left = -limits.return_gain * _body(motion, *beyond)[1]
        return self._bounded(0.0, left - limits.damping * _body(motion, *motion.velocity[:2].tolist())[1])[1]

    def climb(self, height: float) -> float:
        """The vertical velocity that brings the drone to its height, m/s, up."""
        limits = self.limits
        return clamped(limits.height_gain * (limits.height - height), -limits.climb, limits.climb)


def clamped(value: float, least: float, most: float) -> float:
    """A number inside its limits; NaN becomes the one nearest to zero, so that a broken policy hovers."""
    if math.isnan(value):
        value = 0.0
    return min(max(value, least), most)


def quickened(before: float, wished: float, most: float) -> float:
    """A speed that is at most `most` faster than before, whichever its direction; slower at once."""
    allowed = abs(before) + most if before * wished > 0 else most
    return math.copysign(min(abs(wished), allowed), wished)


def _body(motion: Motion, x: float, y: float) -> tuple[float, float]:
    """A horizontal vector of the world frame as the drone sees it: forward and left."""
    yaw = float(motion.pose.yaw[0])
    return x * math.cos(yaw) + y * math.sin(yaw), y * math.cos(yaw) - x * math.sin(yaw)


def _heading(yaw: Tensor) -> Tensor:
    """[..., 2] horizontal unit vectors along yaws [...]."""
    return torch.stack([yaw.cos(), yaw.sin()], dim=-1)


def motion_of(pose: Pose, velocity: Tensor, rates: Sequence[float]) -> Motion:
    """A motion from a pose [] and a velocity [3] in the world frame."""
    return Motion(
        Pose(pose.position[None].float(), pose.quaternion[None].float()),
        velocity.float(),
        torch.tensor(rates, dtype=torch.float32),
    )
