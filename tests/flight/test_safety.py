"""Limits, the fence and the paper's rule as they meet a drone on the wire."""

import math

import pytest

from wordwing.flight.guardian.prediction import DroneState, largest_safe_speed
from wordwing.flight.guardian.safety import FenceMargins, FlightLimits, Motion, Safety, accelerated, clamped, motion_of
from wordwing.flight.mavlink.geometry import PlainPose, quaternion_from_euler


def level(x: float, y: float, yaw: float) -> PlainPose:
    return PlainPose((x, y, 0.7), quaternion_from_euler(0.0, 0.0, yaw))


def motion(x: float, y: float, yaw: float, forward: float = 0.0, yaw_rate: float = 0.0) -> Motion:
    velocity = (forward * math.cos(yaw), forward * math.sin(yaw), 0.0)
    return motion_of(level(x, y, yaw), velocity, (0.0, 0.0, yaw_rate))


def granted(safety: Safety, forward: float, yaw_rate: float, where: Motion, seconds: float) -> tuple[float, float]:
    return safety.limit(forward, yaw_rate, where, seconds)[:2]


@pytest.mark.parametrize(
    ("value", "least", "most", "expected"),
    [(0.3, 0, 0.7, 0.3), (9, 0, 0.7, 0.7), (-1, 0, 0.7, 0), (math.nan, -1, 1, 0), (-math.inf, -1, 1, -1)],
)
def test_a_number_is_brought_into_its_limits_and_nan_hovers(value, least, most, expected):
    assert clamped(value, least, most) == expected


@pytest.mark.parametrize(
    ("before", "wanted", "expected"),
    [
        (0.0, 0.5, 0.1),  # at most 0.1 faster
        (0.3, 0.35, 0.35),
        (0.3, 0.7, 0.4),
        (0.7, 0.1, 0.1),  # slower at once
        (0.7, 0.0, 0.0),
        (-0.5, -0.9, -0.6),
        (-0.5, -0.1, -0.1),
        (0.5, -0.5, -0.1),  # through zero: only what is on the other side speeds up
    ],
)
def test_speeding_up_is_limited_and_slowing_down_is_not(before, wanted, expected):
    assert accelerated(before, wanted, 0.1) == pytest.approx(expected)


def test_full_speed_takes_as_long_as_the_acceleration_allows():
    safety, here = Safety(FlightLimits(), FenceMargins()), motion(-1.5, 0.0, 0.0)
    speeds = [granted(safety, 5.0, 5.0, here, 0.05) for _ in range(12)]
    assert speeds[0] == pytest.approx((0.075, 0.2))
    assert [forward for forward, _ in speeds[:9]] == pytest.approx([0.075 * n for n in range(1, 10)])
    assert speeds[9][0] == pytest.approx(0.7)  # after 0.7 / 1.5 = 0.47 s
    assert speeds[3][1] == pytest.approx(0.8)
    assert speeds[4][1] == pytest.approx(1.0)
    assert granted(safety, 0.0, 0.0, here, 0.05) == (0.0, 0.0)
    assert granted(safety, 0.7, 0.0, here, 0.05)[0] == pytest.approx(0.075)


def test_nothing_is_flown_backwards_or_for_numbers_that_are_none():
    safety, here = Safety(FlightLimits(), FenceMargins()), motion(0.0, 0.0, 0.0)
    assert granted(safety, -3.0, 0.0, here, 0.05) == (0.0, 0.0)
    assert granted(safety, math.nan, math.nan, here, 0.05) == (0.0, 0.0)
    assert granted(safety, math.inf, -math.inf, here, 0.05) == pytest.approx((0.075, -0.2))


def test_height_is_held_by_a_bounded_climb():
    safety = Safety(FlightLimits(), FenceMargins())
    assert safety.climb(0.7) == 0.0
    assert safety.climb(0.6) == pytest.approx(0.1)
    assert safety.climb(0.0) == 0.3
    assert safety.climb(1.4) == -0.3
    assert safety.climb(math.nan) == 0.0


def simulate(fence: FenceMargins, where: Motion, turn: float, seconds: float) -> float:
    """How far a drone gets that obeys at once and always wants to go on: the largest |x| or |y|."""
    safety = Safety(FlightLimits(), fence)
    x, y = where.pose.position[:2]
    yaw, furthest = where.pose.yaw, 0.0
    forward = 0.0
    for _ in range(round(seconds / 0.05)):
        forward, yaw_rate = granted(safety, 0.7, turn, motion(x, y, yaw, forward, turn), 0.05)
        x, y = x + 0.05 * forward * math.cos(yaw), y + 0.05 * forward * math.sin(yaw)
        yaw += 0.05 * yaw_rate
        furthest = max(furthest, abs(x), abs(y))
    return furthest


@pytest.mark.parametrize("yaw", [0.0, math.pi / 2, 2.5, -0.8])
def test_a_drone_that_charges_at_a_fence_stops_at_the_margin(yaw):
    furthest = simulate(FenceMargins(), motion(0.0, 0.0, yaw), 0.0, 8.0)
    assert 1.6 < furthest <= 2.35 - 0.35


@pytest.mark.parametrize("turn", [-1.0, 0.4, 1.0])
def test_a_drone_that_turns_stays_inside_too(turn):
    assert simulate(FenceMargins(), motion(1.2, 1.2, 0.3), turn, 12.0) <= 2.35 - 0.35 + 0.03


def test_a_drone_that_answers_late_brakes_at_a_fence():
    """As PX4's simulator does: zero velocity alone would bring it 0.1 m nearer."""
    safety, x, speed = Safety(FlightLimits(), FenceMargins()), -1.5, 0.0
    sent, furthest = [], x
    for _ in range(400):
        sent.append(safety.limit(0.7, 0.0, motion(x, 0.0, 0.0, speed), 0.05)[0])
        speed += 0.05 * (sent[-1] - speed)  # it takes a second
        x += 0.05 * speed
        furthest = max(furthest, x)
    assert furthest < 2.35 - 0.35 + 0.03
    assert min(sent) >= -0.2 - 1e-6
    assert abs(speed) < 0.05  # and then it stays there


@pytest.mark.parametrize("heading", [0.0, math.pi / 2, math.pi, -math.pi / 2])
@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("lag", [0.1, 0.3, 1.0])
def test_a_drone_that_drifts_to_a_fence_beside_it_is_led_back(heading, side, lag):
    """Blown by 0.15 m/s, it would be outside after 3 s."""
    safety, ahead, left, forward, slip = Safety(FlightLimits(), FenceMargins()), -2.0, side * 1.9, 0.7, side * 0.15
    lefts = []
    for _ in range(200):
        x, y = turned(heading, ahead, left)
        velocity = (*turned(heading, forward, slip), 0.0)
        sent, _turn, back = safety.limit(0.7, 0.0, motion_of(level(x, y, heading), velocity, (0.0, 0.0, 0.0)), 0.05)
        assert math.hypot(min(sent, 0.0), back) <= 0.2 + 1e-6
        forward += 0.05 / lag * (sent - forward)
        slip += 0.05 / lag * (side * 0.15 + back - slip)
        ahead, left = ahead + 0.05 * forward, left + 0.05 * slip
        lefts.append(side * left)
    assert max(lefts) < 2.35 - 0.35 + 0.15  # where 1 m/s for each metre is as much as the wind


@pytest.mark.parametrize(("y", "back"), [(1.99, 0.0), (2.05, -0.1), (2.34, -0.2), (-2.05, 0.1)])
def test_the_nearer_to_a_fence_beside_it_the_faster_a_drone_is_led_back(y, back):
    _sent, _turn, left = Safety(FlightLimits(), FenceMargins()).limit(0.7, 0.0, motion(-1.0, y, 0.0, 0.7), 0.05)
    assert left == pytest.approx(back, abs=1e-6)


def turned(yaw: float, forward: float, left: float) -> tuple[float, float]:
    return forward * math.cos(yaw) - left * math.sin(yaw), forward * math.sin(yaw) + left * math.cos(yaw)


def test_margins_are_for_flying_at_a_fence_and_for_flying_along_it():
    fence = FenceMargins(ahead=0.5, aside=0.2, edge=0.1)
    at = fence.bounds(motion(1.0, 1.0, 0.0).pose, 0.0)
    assert at == pytest.approx((1.85, 2.15))
    turning = fence.bounds(motion(1.0, 1.0, 0.0).pose, 1.0)
    assert turning == pytest.approx((1.85, 1.85))
    leaving = fence.bounds(motion(2.3, 0.0, math.pi).pose, 0.0)
    assert leaving[0] == pytest.approx(2.33)


def ruled(where: Motion, forward: float, yaw_rate: float) -> float:
    """The largest safe speed from a motion."""
    drone = DroneState.of(where.pose, where.velocity, where.rates)
    return largest_safe_speed(drone, forward, yaw_rate, FenceMargins().bounds(where.pose, yaw_rate))


def test_the_rule_leaves_the_yaw_rate_alone():
    assert ruled(motion(2.1, 0.0, 0.0), 0.7, 0.6) == 0.0
    safety = Safety(FlightLimits(yaw_acceleration=math.inf, acceleration=math.inf), FenceMargins())
    assert safety.limit(0.7, 0.6, motion(2.1, 0.0, 0.0), 0.05)[1] == pytest.approx(0.6)


def test_the_rule_sees_a_drone_that_is_fast_already():
    slow, fast = motion(1.45, 0.0, 0.0), motion(1.45, 0.0, 0.0, forward=0.7)
    assert ruled(fast, 0.7, 0.0) < ruled(slow, 0.7, 0.0)


def test_a_motion_goes_on_as_it_does():
    later = motion(1.0, 0.5, 0.0, forward=0.5, yaw_rate=0.8).ahead(0.2)
    assert later.pose.position == pytest.approx((1.1, 0.5, 0.7))
    assert later.pose.yaw == pytest.approx(0.16)
    assert later.height == pytest.approx(0.7)
    assert later.reach == pytest.approx(1.1)
