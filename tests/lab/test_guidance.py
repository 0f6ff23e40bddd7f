"""What the autopilot does with guidance that says more than a speed, a yaw rate and a height."""

import math

import numpy as np
import pytest

from wordwing.lab.autopilot import Guidance
from wordwing.lab.flight import LabFlight, LabFlightConfig
from wordwing.lab.wind import WindConfig


@pytest.fixture
def calm() -> LabFlight:
    return LabFlight(LabFlightConfig(wind=WindConfig(standard_deviation=0.0)))


def test_a_setpoint_said_in_full_flies_like_the_short_one_to_the_bit():
    short, full = (LabFlight(LabFlightConfig(wind=WindConfig(standard_deviation=0.5))) for _ in range(2))
    for forward, yaw_rate in [(0.7, 0.5), (0.2, -1.0), (0.0, 0.0)]:
        short.advance(0.5, forward, yaw_rate)
        full.follow(0.5, Guidance(forward=forward, yaw_rate=yaw_rate, height=0.7))
        assert np.array_equal(short.position, full.position)
        assert np.array_equal(short.state.quaternion, full.state.quaternion)


@pytest.mark.parametrize("heading", [0.0, 1.0, -2.5])
def test_velocities_are_along_and_left_of_the_given_heading(calm, heading):
    calm.reset((0.0, 0.0), 0.7, 0)
    calm.follow(3.0, Guidance(forward=0.3, left=0.4, heading=heading, height=0.7))
    cos, sin = math.cos(heading), math.sin(heading)
    assert calm.velocity[:2] == pytest.approx([0.3 * cos - 0.4 * sin, 0.3 * sin + 0.4 * cos], abs=0.02)
    assert calm.yaw == pytest.approx(0.7, abs=1e-3)


def test_a_climb_is_tracked_within_its_limits(calm):
    calm.follow(2.0, Guidance(climb=0.2))
    assert calm.velocity[2] == pytest.approx(0.2, abs=0.02)
    calm.follow(2.0, Guidance(climb=3.0))
    assert calm.velocity[2] == pytest.approx(0.5, abs=0.02)
    calm.follow(2.0, Guidance(climb=-3.0))
    assert calm.velocity[2] == pytest.approx(-0.3, abs=0.02)
    calm.follow(1.5, Guidance(climb=-3.0, descent=0.6))
    assert calm.velocity[2] == pytest.approx(-0.6, abs=0.03)


def test_another_direction_of_the_same_velocity_changes_nothing(calm):
    calm.follow(2.0, Guidance(forward=0.5, heading=0.0, height=0.7))
    before = calm.velocity
    for angle in np.linspace(0.0, 2.0, 100):
        cos, sin = math.cos(angle), math.sin(angle)
        calm.follow(0.01, Guidance(forward=0.5 * cos, left=-0.5 * sin, heading=angle, height=0.7))
        assert calm.velocity == pytest.approx(before, abs=0.03)


def test_told_to_hold_it_brakes_and_stays_and_wind_does_not_carry_it_away():
    wind = WindConfig(mean=(0.6, -0.4, 0.0), standard_deviation=0.3)
    flight = LabFlight(LabFlightConfig(wind=wind))
    flight.advance(2.0, 0.6, 0.0)
    flight.follow(2.0, Guidance(hold=True, height=0.7))
    place = flight.position
    places = []
    for _ in range(30):
        flight.follow(0.5, Guidance(hold=True, height=0.7))
        places.append(flight.position)
    assert np.abs(np.array(places) - place).max() < 0.15


@pytest.mark.parametrize(("hold", "least", "most"), [(True, 0.0, 0.02), (False, 0.1, 0.3)])
def test_pushed_from_the_place_that_it_holds_it_comes_back_against_the_wind(calm, hold, least, most):
    calm.follow(1.0, Guidance(hold=hold, height=0.7))
    calm.gust = (1.5, 0.0, 0.0)
    calm.follow(1.0, Guidance(hold=hold, height=0.7))
    assert calm.position[0] > 0.05
    calm.follow(12.0, Guidance(hold=hold, height=0.7))
    assert least <= np.linalg.norm(calm.position[:2]) < most


def test_wrong_about_its_velocity_it_moves_against_its_error(calm):
    calm.drift = (0.1, 0.0, 0.0)
    calm.follow(6.0, Guidance(height=0.7))
    assert calm.velocity[:2] == pytest.approx([-0.1, 0.0], abs=0.01)


def test_take_off_and_landing_go_on_step_by_step(calm):
    calm.reset((0.0, 0.0), 0.0, 0, flying=False)
    calm.follow(1.0, Guidance(height=0.7))
    assert calm.position[2] == pytest.approx(0.11, abs=1e-3)
    calm.start_motors()
    calm.follow(0.5, Guidance(height=0.7, hold=True))
    assert 0.12 < calm.position[2] < 0.5
    calm.follow(4.0, Guidance(height=0.7, hold=True))
    assert calm.position == pytest.approx([0.0, 0.0, 0.7], abs=0.02)
    while not calm.at_rest_on_floor and calm.time < 20:
        calm.follow(0.01, Guidance(climb=-0.3, hold=True))
    assert calm.position[2] == pytest.approx(0.11, abs=0.01)
    calm.stop_motors()
    assert not calm.motors_on


def test_past_velocities_and_rates_are_remembered(calm):
    seen = {}
    for step in range(1, 151):
        calm.advance(0.002, 0.7, 1.0)
        seen[step] = (calm.velocity, calm.body_rates)
    for step in (30, 100, 150):
        assert np.array_equal(calm.state_at(step * 0.002).velocity, seen[step][0])
        assert np.array_equal(calm.state_at(step * 0.002).body_rates, seen[step][1])
