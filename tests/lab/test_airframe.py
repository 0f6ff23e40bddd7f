"""The rigid body against mechanics worked out by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from wordwing.lab.airframe import Airframe, AirframeConfig, body_axes

CONFIG = AirframeConfig()
CALM = (0.0, 0.0, 0.0)
OFF = (0.0, 0.0, 0.0, 0.0)
HOVER = (CONFIG.hover_command,) * 4


def fly(airframe: Airframe, commands, seconds: float, wind=CALM) -> None:
    for _ in range(round(seconds / CONFIG.timestep)):
        airframe.step(commands, wind)


def test_without_thrust_and_drag_it_falls_freely():
    airframe = Airframe(replace(CONFIG, drag=(0.0, 0.0, 0.0)))
    airframe.reset((1.0, -2.0, 10.0), 0.4, flying=False)
    fly(airframe, OFF, 0.5)
    assert airframe.state.velocity == pytest.approx([0.0, 0.0, -9.81 * 0.5], abs=1e-9)
    first_order_error = 9.81 * 0.5 * CONFIG.timestep / 2
    assert airframe.state.position == pytest.approx([1.0, -2.0, 10.0 - 9.81 * 0.5**2 / 2], abs=1.1 * first_order_error)


def test_drag_slows_the_fall_to_its_terminal_velocity():
    airframe = Airframe(CONFIG)
    airframe.reset((0.0, 0.0, 100.0), 0.0, flying=False)
    fly(airframe, OFF, 3.0)
    rate = 0.60 / 1.37
    assert airframe.state.velocity[2] == pytest.approx(-9.81 / rate * (1 - math.exp(-rate * 3.0)), rel=1e-3)


@pytest.mark.parametrize("yaw", [0.0, 1.0])
def test_wind_pushes_in_its_own_direction(yaw):
    airframe = Airframe(replace(CONFIG, drag_height=0.0))
    airframe.reset((0.0, 0.0, 1.0), yaw)
    fly(airframe, HOVER, 0.1, wind=(2.0, 0.0, 0.0))
    rate = 0.35 / 1.37
    assert airframe.state.velocity == pytest.approx([2.0 * (1 - math.exp(-rate * 0.1)), 0.0, 0.0], abs=2e-4)


def test_hover_thrust_balances_the_weight():
    assert 4 * CONFIG.hover_command * 5.77 == pytest.approx(1.37 * 9.81)
    airframe = Airframe(CONFIG)
    airframe.reset((0.5, 0.6, 0.7), -2.0)
    fly(airframe, HOVER, 2.0)
    assert 5.77 * airframe.data.act.sum() == pytest.approx(1.37 * 9.81)
    assert airframe.state.position == pytest.approx([0.5, 0.6, 0.7], abs=1e-9)
    assert airframe.state.quaternion == pytest.approx([math.cos(-1.0), 0.0, 0.0, math.sin(-1.0)], abs=1e-9)


@pytest.mark.parametrize(
    ("stronger", "axis", "acceleration"),
    [
        # Levers 0.18 m / √2 and 0.016 m; ±5 % of 5.77 N on four motors; the inertia about the axis.
        ((-1, 1, 1, -1), 0, 4 * 0.18 / math.sqrt(2) * 0.05 * 5.77 / 0.0090),  # left: rolls right
        ((-1, 1, -1, 1), 1, 4 * 0.18 / math.sqrt(2) * 0.05 * 5.77 / 0.0110),  # rear: noses down
        ((-1, -1, 1, 1), 2, 4 * 0.016 * 0.05 * 5.77 / 0.0185),  # clockwise propellers: turns left
    ],
)
def test_unequal_motors_turn_it_by_lever_and_inertia(stronger, axis, acceleration):
    airframe = Airframe(replace(CONFIG, drag=(0.0, 0.0, 0.0), motor_time_constant=1e-4))
    airframe.reset((0.0, 0.0, 5.0), 0.0)
    fly(airframe, [CONFIG.hover_command + 0.05 * sign for sign in stronger], 0.012)
    expected = np.zeros(3)
    expected[axis] = acceleration * 0.010  # the thrust of the first step is still that of hover
    assert airframe.state.body_rates == pytest.approx(expected, abs=1e-6)


def test_a_yaw_torque_turns_the_heading_left_and_nothing_else():
    airframe = Airframe(CONFIG)
    airframe.reset((0.0, 0.0, 5.0), 0.0)
    commands = [CONFIG.hover_command + 0.05 * sign for sign in (-1, -1, 1, 1)]
    fly(airframe, commands, 0.2)  # ten time constants
    before = np.array(airframe.state.body_rates)
    fly(airframe, commands, 0.1)
    gained = airframe.state.body_rates - before
    assert gained == pytest.approx([0.0, 0.0, 0.1 * 4 * 0.016 * 0.05 * 5.77 / 0.0185], rel=1e-3)
    assert Rotation.from_quat(airframe.state.quaternion, scalar_first=True).as_euler("ZYX")[0] > 0.0
    assert airframe.state.position == pytest.approx([0.0, 0.0, 5.0], abs=1e-9)


def test_thrust_follows_a_command_with_the_stated_time_constant():
    airframe = Airframe(CONFIG)
    airframe.reset((0.0, 0.0, 50.0), 0.0, flying=False)
    for constants in (1, 2, 3):
        fly(airframe, (1.0, 0.5, 0.0, 2.0), 0.02)  # the last command is clipped to full thrust
        risen = 5.77 * (1 - math.exp(-constants))
        assert 5.77 * airframe.data.act == pytest.approx([risen, risen / 2, 0.0, risen])


def test_it_stands_on_the_floor():
    airframe = Airframe(CONFIG)
    airframe.reset((0.3, 0.2, CONFIG.leg_height), 0.7, flying=False)
    fly(airframe, OFF, 1.0, wind=(1.0, 0.0, 0.0))
    assert airframe.touches_floor
    assert airframe.state.position == pytest.approx([0.3, 0.2, CONFIG.leg_height], abs=2e-3)
    assert airframe.state.velocity == pytest.approx([0.0, 0.0, 0.0], abs=1e-3)


def test_body_axes_are_the_columns_of_the_rotation_matrix():
    rotations = Rotation.random(20, rng=np.random.default_rng(0))
    for rotation in rotations:
        quaternion = rotation.as_quat(scalar_first=True).tolist()
        columns = np.array(body_axes(quaternion)).T
        assert columns == pytest.approx(rotation.as_matrix())
