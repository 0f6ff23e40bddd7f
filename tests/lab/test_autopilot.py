"""The autopilot's loops, one by one against what their gains say, and together in rough air."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from wordwing.lab.airframe import Airframe, AirframeConfig, BodyState
from wordwing.lab.autopilot import Autopilot, AutopilotConfig, Guidance

AIRFRAME = AirframeConfig()
HOVERING = BodyState((0.0, 0.0, 0.7), (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
CALM = (0.0, 0.0, 0.0)


def autopilot() -> Autopilot:
    return Autopilot(AIRFRAME, AutopilotConfig())


def commands_of(
    pilot: Autopilot, state: BodyState, forward: float, yaw_rate: float, height: float
) -> tuple[float, ...]:
    return pilot.follow(state, Guidance(forward=forward, yaw_rate=yaw_rate, height=height))


def wrench(commands) -> np.ndarray:
    """Total thrust and the torques about x, y and z of four motor commands, from the geometry."""
    lever = 0.18 / math.sqrt(2)
    positions = np.array([(lever, -lever), (-lever, lever), (lever, lever), (-lever, -lever)])
    reaction = 0.016 * np.array([-1, -1, 1, 1])  # opposite to the propeller
    forces = 5.77 * np.array(commands)
    return np.array(
        [
            forces.sum(),
            positions[:, 1] @ forces,
            -positions[:, 0] @ forces,
            reaction @ forces,
        ]
    )


def test_in_hover_all_motors_carry_a_quarter_of_the_weight():
    assert commands_of(autopilot(), HOVERING, 0.0, 0.0, 0.7) == pytest.approx([1.37 * 9.81 / 4 / 5.77] * 4)


@pytest.mark.parametrize("rates", [(0.2, 0.0, 0.0), (0.0, -0.2, 0.0), (0.0, 0.0, 0.2)])
def test_an_unwanted_rate_meets_the_torque_of_its_gain_and_inertia(rates):
    gains = np.array([25.0 * 0.0090, 25.0 * 0.0110, 8.0 * 0.0185])
    commands = commands_of(autopilot(), HOVERING._replace(body_rates=rates), 0.0, 0.0, 0.7)
    assert wrench(commands) == pytest.approx([1.37 * 9.81, *(-gains * rates)])


@pytest.mark.parametrize(("axis", "gain"), [((1, 0, 0), 0.0090), ((0, 1, 0), 0.0110)])
def test_a_tilt_is_righted_with_the_gain_of_the_attitude_loop(axis, gain):
    tilt = Rotation.from_rotvec(0.1 * np.array(axis))
    state = HOVERING._replace(quaternion=tuple(tilt.as_quat(scalar_first=True).tolist()))
    torques = wrench(commands_of(autopilot(), state, 0.0, 0.0, 0.7))[1:]
    assert torques == pytest.approx(-25.0 * 8.0 * 0.1 * gain * np.array(axis), abs=1e-9)


def test_an_error_in_height_becomes_a_limited_climb():
    low, high = (HOVERING._replace(position=(0.0, 0.0, z)) for z in (0.6, 5.0))
    assert wrench(commands_of(autopilot(), low, 0.0, 0.0, 0.7))[0] == pytest.approx(1.37 * (9.81 + 4.0 * 1.5 * 0.1))
    assert wrench(commands_of(autopilot(), high, 0.0, 0.0, 0.7))[0] == pytest.approx(1.37 * (9.81 - 4.0 * 0.3))


def test_speed_is_asked_for_along_the_heading():
    heading = Rotation.from_euler("z", 2.0)
    turned = HOVERING._replace(quaternion=tuple(heading.as_quat(scalar_first=True).tolist()))
    ahead, left = autopilot(), autopilot()
    for _ in range(100):
        assert commands_of(ahead, HOVERING, 0.5, 0.0, 0.7) == pytest.approx(commands_of(left, turned, 0.5, 0.0, 0.7))
    assert wrench(commands_of(ahead, HOVERING, 0.5, 0.0, 0.7))[2] > 0.0  # noses down


def test_a_positive_yaw_rate_turns_left():
    torque = wrench(commands_of(autopilot(), HOVERING, 0.0, 0.3, 0.7))[1:]
    assert torque[:2] == pytest.approx([0.0, 0.0], abs=1e-12)
    assert torque[2] > 0.0


def test_commands_stay_within_the_motors_in_any_state():
    rng = np.random.default_rng(1)
    for quaternion in Rotation.random(500, rng=rng).as_quat(scalar_first=True):
        state = BodyState(
            tuple(rng.normal(0.0, 2.0, 3)),
            tuple(quaternion),
            tuple(rng.normal(0.0, 3.0, 3)),
            tuple(rng.normal(0.0, 10.0, 3)),
        )
        commands = commands_of(autopilot(), state, rng.uniform(0, 0.7), rng.uniform(-1, 1), 0.7)
        assert -1e-12 <= min(commands) <= max(commands) <= 1 + 1e-12


@pytest.mark.parametrize("roll", [1.5, 3.1])
def test_it_rights_a_drone_that_was_thrown_over(roll):
    airframe, pilot = Airframe(AIRFRAME), autopilot()
    airframe.reset((0.0, 0.0, 10.0), 0.0)
    airframe.data.qpos[3:] = Rotation.from_euler("x", roll).as_quat(scalar_first=True)
    for _ in range(1000):
        airframe.step(commands_of(pilot, airframe.state, 0.0, 0.0, 10.0), CALM)
    assert Rotation.from_quat(airframe.state.quaternion, scalar_first=True).as_matrix()[2, 2] > 0.9


def test_the_integrals_make_up_for_a_heavier_battery_and_a_steady_wind():
    heavier = replace(AIRFRAME, mass=1.50, max_thrust=5.5)
    airframe, pilot = Airframe(heavier), autopilot()
    airframe.reset((0.0, 0.0, 0.7), 0.0)
    for _ in range(5000):
        airframe.step(commands_of(pilot, airframe.state, 0.0, 0.0, 0.7), (1.0, 0.0, 0.0))
    assert airframe.state.position[2] == pytest.approx(0.7, abs=0.01)
    assert airframe.state.velocity == pytest.approx([0.0, 0.0, 0.0], abs=0.01)


def test_after_a_reset_nothing_is_left_of_the_past():
    used = autopilot()
    for _ in range(50):
        commands_of(used, HOVERING, 0.7, -1.0, 1.5)
    used.reset()
    assert commands_of(used, HOVERING, 0.5, 0.3, 0.8) == commands_of(autopilot(), HOVERING, 0.5, 0.3, 0.8)
