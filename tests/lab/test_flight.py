"""The drone's answers against those of ArduCopter with indoor parameters, measured over MAVLink.

From rest at a setpoint of 0.5 m/s it flew 0.19 m/s after 0.5 s, 0.45 after 1.0 s and 0.47 after
1.5 s, and pitched down by 5 degrees at first. 5 s of 0.5 m/s and 0.3 rad/s turned it by 83.0 to
83.9 degrees, at 0.490 to 0.514 m/s in the last 2 s; then it stopped within 1.1 s.
"""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from wordwing.lab.autopilot import Guidance
from wordwing.lab.flight import LabFlight, LabFlightConfig
from wordwing.lab.wind import WindConfig


def flight_in(standard_deviation: float) -> LabFlight:
    return LabFlight(LabFlightConfig(wind=WindConfig(standard_deviation=standard_deviation)))


@pytest.fixture
def calm() -> LabFlight:
    return flight_in(0.0)


def watch(flight: LabFlight, seconds: float, forward: float, yaw_rate: float) -> Iterator[LabFlight]:
    """Fly, stopping to look every 10 ms."""
    for _ in range(round(seconds / 0.01)):
        flight.advance(0.01, forward, yaw_rate)
        yield flight


def euler_deg(flight: LabFlight) -> np.ndarray:
    """Yaw, pitch (nose down) and roll."""
    return Rotation.from_quat(flight.state.quaternion, scalar_first=True).as_euler("ZYX", degrees=True)


def tilt_deg(flight: LabFlight) -> float:
    up = Rotation.from_quat(flight.state.quaternion, scalar_first=True).apply([0.0, 0.0, 1.0])
    return math.degrees(math.acos(min(1.0, up[2])))


def forward_speed(flight: LabFlight) -> float:
    return float(flight.velocity[:2] @ [math.cos(flight.yaw), math.sin(flight.yaw)])


def seconds_to_stop(flight: LabFlight) -> float:
    """Until the speed stays below 0.05 m/s."""
    speeds = [np.linalg.norm(flight.velocity[:2]) for _ in watch(flight, 3.0, 0.0, 0.0)]
    return 0.01 * (1 + max(index for index, speed in enumerate(speeds) if speed >= 0.05))


def test_from_rest_it_gathers_speed_like_ardupilot(calm):
    pitches = []
    for seconds, speed in [(0.5, 0.19), (1.0, 0.45), (1.5, 0.47)]:
        pitches += [euler_deg(calm)[1] for _ in watch(calm, seconds - calm.time, 0.5, 0.0)]
        assert calm.velocity[0] == pytest.approx(speed, abs=0.02)
    assert 4.0 < max(pitches) < 6.0
    assert 0.4 < 0.01 * np.argmax(pitches) < 0.6
    assert 0.6 < seconds_to_stop(calm) < 1.1


def test_in_a_turn_it_keeps_speed_and_yaw_like_ardupilot(calm):
    speeds = [forward_speed(calm) for _ in watch(calm, 5.0, 0.5, 0.3)]
    assert 82.0 < euler_deg(calm)[0] < 85.5
    assert all(0.49 < speed < 0.52 for speed in speeds[-200:])
    assert 0.6 < seconds_to_stop(calm) < 1.2
    assert calm.yaw == pytest.approx(5.0 * 0.3, abs=0.01)


@pytest.mark.parametrize("yaw_rate", [0.3, -0.3, 1.0])
def test_the_yaw_rate_settles_within_half_a_second(calm, yaw_rate):
    calm.advance(0.5, 0.0, yaw_rate)
    rates = [calm.body_rates[2] for _ in watch(calm, 1.0, 0.0, yaw_rate)]
    assert rates == pytest.approx([yaw_rate] * len(rates), rel=0.05)


def test_velocity_follows_the_heading(calm):
    calm.reset((1.0, 2.0), 2.5, 0)
    calm.advance(4.0, 0.6, 0.0)
    displacement = calm.position[:2] - [1.0, 2.0]
    assert math.atan2(displacement[1], displacement[0]) == pytest.approx(2.5, abs=1e-6)
    assert forward_speed(calm) == pytest.approx(0.6, abs=0.03)


def test_in_calm_air_the_height_stays_within_5_cm(calm):
    for forward, yaw_rate in [(0.7, 0.0), (0.0, 1.0), (0.7, -1.0), (0.0, 0.0)]:
        heights = [flight.position[2] for flight in watch(calm, 2.0, forward, yaw_rate)]
        assert heights == pytest.approx([0.7] * len(heights), abs=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_in_gusts_of_1_m_s_the_height_stays_within_10_cm(seed):
    flight = flight_in(1.0)
    flight.reset((0.0, 0.0), 0.0, seed)
    heights = [flight.position[2] for _ in watch(flight, 15.0, 0.0, 0.0)]
    assert heights == pytest.approx([0.7] * len(heights), abs=0.1)


def test_in_gusts_of_30_cm_s_hover_is_calm():
    flight = flight_in(0.3)
    flight.reset((0.0, 0.0), 0.0, 5)
    seen = [(np.linalg.norm(f.velocity), tilt_deg(f)) for f in watch(flight, 20.0, 0.0, 0.0)]
    speeds, tilts = np.array(seen).T
    assert speeds.max() < 0.15
    assert tilts.max() < 3.0
    assert np.linalg.norm(flight.position - [0.0, 0.0, 0.7]) < 0.2


@pytest.mark.parametrize("standard_deviation", [0.0, 1.0])
def test_no_sequence_of_setpoints_throws_it_over(standard_deviation):
    rng = np.random.default_rng(4)
    flight = flight_in(standard_deviation)
    for period in range(200):
        if period % 2:
            forward, yaw_rate = rng.uniform(0.0, 0.7), rng.uniform(-1.0, 1.0)
        else:
            forward, yaw_rate = rng.choice([0.0, 0.7]), rng.choice([-1.0, 1.0])
        for _ in watch(flight, 0.3, forward, yaw_rate):
            assert tilt_deg(flight) < 15.0
            assert 0.55 < flight.position[2] < 0.85
    assert flight.time == pytest.approx(60.0)


def test_the_same_seed_and_setpoints_fly_the_same_path_to_the_bit():
    def path(seed: int) -> np.ndarray:
        flight.reset((0.5, -0.5), 1.0, seed)
        poses = []
        for forward, yaw_rate in [(0.7, 0.5), (0.2, -1.0), (0.0, 0.0)]:
            flight.advance(0.3, forward, yaw_rate)
            poses.append([*flight.position, *flight.state.quaternion, *flight.velocity])
        flight.land()
        flight.start_motors()
        flight.follow(3.0, Guidance(height=0.7))
        return np.array([*poses, [*flight.position, *flight.state.quaternion, *flight.velocity]])

    flight = flight_in(0.5)
    first = path(11)
    assert not np.array_equal(path(12), first)
    assert np.array_equal(path(11), first)


def test_it_lands_at_30_cm_s_and_stops_its_motors():
    flight = LabFlight(LabFlightConfig(memory=5.0))
    flight.reset((0.4, -0.3), 0.5, 0)
    flight.land()
    heights = np.array([flight.pose_at(time)[0][2] for time in np.arange(0.0, flight.time, 0.01)])
    sinking = -np.gradient(heights, 0.01)
    assert sinking[(heights > 0.2) & (heights < 0.5)] == pytest.approx(0.3, abs=0.03)
    assert sinking.max() < 0.35
    assert not flight.motors_on
    assert flight.position[:2] == pytest.approx([0.4, -0.3], abs=0.1)
    assert flight.position[2] == pytest.approx(flight.config.airframe.leg_height, abs=1e-3)
    assert flight.velocity == pytest.approx([0.0, 0.0, 0.0], abs=1e-3)


def test_once_landed_it_stays_where_it_is(calm):
    calm.land()
    time, position = calm.time, calm.position
    calm.land()
    assert calm.time == time
    calm.advance(1.0, 0.7, 1.0)
    assert calm.time == pytest.approx(time + 1.0)
    assert calm.position == pytest.approx(position, abs=1e-4)


def test_it_takes_off_from_the_floor(calm):
    calm.reset((0.0, 0.0), 0.3, 0, flying=False)
    assert not calm.motors_on
    calm.start_motors()
    calm.follow(5.0, Guidance(height=0.9))
    assert calm.position == pytest.approx([0.0, 0.0, 0.9], abs=0.05)
    heights = []
    for _ in range(300):
        calm.follow(0.01, Guidance(height=0.9))
        heights.append(calm.position[2])
    assert heights == pytest.approx([0.9] * 300, abs=0.05)
    assert calm.yaw == pytest.approx(0.3, abs=1e-3)
    assert calm.motors_on


def test_past_poses_are_interpolated_like_scipys_slerp():
    flight = flight_in(1.0)
    flight.advance(0.3, 0.7, -1.0)
    times, positions, quaternions = [], [], []
    for _ in range(249):
        flight.advance(0.002, 0.0, 1.0)
        times.append(flight.time)
        positions.append(flight.position)
        quaternions.append(flight.state.quaternion)
    turn = Slerp(times, Rotation.from_quat(quaternions, scalar_first=True))
    for time in np.random.default_rng(0).uniform(times[0], times[-1], 50):
        position, quaternion = flight.pose_at(time)
        expected = [np.interp(time, times, axis) for axis in np.array(positions).T]
        assert position == pytest.approx(np.array(expected), abs=1e-12)
        miss = turn(time).inv() * Rotation.from_quat(quaternion, scalar_first=True)
        assert miss.magnitude() < 1e-8
        assert np.linalg.norm(quaternion) == pytest.approx(1.0)
    assert np.array_equal(flight.pose_at(times[100])[0], positions[100])


def test_before_the_flight_the_drone_kept_still(calm):
    calm.reset((1.0, 2.0), 0.0, 0)
    calm.advance(0.1, 0.5, 0.0)
    for time in (-0.4, -0.1234, 0.0):
        assert calm.pose_at(time)[0] == pytest.approx([1.0, 2.0, 0.7])


def test_half_a_second_of_poses_is_kept(calm):
    for _ in range(5):
        calm.advance(0.3, 0.5, 0.0)
        calm.pose_at(calm.time)
        calm.pose_at(calm.time - 0.5)
    for unknown in (calm.time - 0.6, calm.time + 0.001):
        with pytest.raises(ValueError, match=r"unknown; kept are 0\.998 s to 1\.500 s"):
            calm.pose_at(unknown)


def test_a_setpoint_that_is_no_number_is_refused(calm):
    with pytest.raises(ValueError, match="cannot fly nan"):
        calm.advance(0.3, math.nan, 0.0)
    assert calm.time == 0.0
