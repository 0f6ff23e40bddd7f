"""The controller cascade of the batched quadrotor: it holds its height and never tilts further than it may."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from wordwing.frames import Pose, quaternion_rotate
from wordwing.interface import Setpoint
from wordwing.sim.dynamics import SUBSTEP, DynamicsConfig, FleetState
from wordwing.sim.scene import SimScene

CPU = torch.device("cpu")
UP = torch.tensor([0.0, 0.0, 1.0])


def fleet_at(heights: list[float], config: DynamicsConfig | None = None) -> FleetState:
    """Drones at rest at heights, each with a heading of its own."""
    count = len(heights)
    drones = FleetState(count, CPU, config or DynamicsConfig())
    drones.reset(
        Pose.level(torch.zeros(count, 2), torch.arange(count) * 0.8, torch.tensor(heights)), torch.arange(count)
    )
    return drones


def hover(drones: FleetState, seconds: float) -> None:
    count = len(drones.position)
    scene = SimScene(count, CPU)
    drones.advance(Setpoint.zero(count), seconds, scene.worlds, scene.geoms)


def tilt(drones: FleetState) -> torch.Tensor:
    """[N] angle between the drones' own up and the world's."""
    return torch.acos(quaternion_rotate(drones.attitude, UP)[:, 2].clamp(-1, 1))


def test_a_drone_too_low_or_too_high_comes_back_to_70_centimetres():
    drones = fleet_at([0.5, 0.9, 0.1, 2.0])
    hover(drones, 8.0)
    assert drones.position[:, 2].tolist() == pytest.approx([0.7] * 4, abs=0.002)
    assert drones.velocity.abs().max() < 0.005


def test_a_drone_holds_the_height_that_it_is_configured_for():
    drones = fleet_at([0.7, 0.7], DynamicsConfig(height=1.2))
    hover(drones, 8.0)
    assert drones.position[:, 2].tolist() == pytest.approx([1.2] * 2, abs=0.002)


def test_a_height_error_dies_away_as_the_differential_equation_of_the_loop_says():
    """Height asks for a climb rate, climb rate for an acceleration, and the motors follow with a lag."""
    config = DynamicsConfig()

    def loop(_time: float, state: np.ndarray) -> list[float]:
        height, climb, acceleration = state
        wanted = config.climb_gain * (config.height_gain * (0.7 - height) - climb)
        return [climb, acceleration, (wanted - acceleration) / config.thrust_lag]

    times = np.linspace(0.2, 4.0, 20)
    expected = [solve_ivp(loop, (0, 4), [start, 0, 0], t_eval=times, rtol=1e-8).y[0] for start in (0.5, 0.9)]
    drones, heights = fleet_at([0.5, 0.9]), []
    for _ in times:
        hover(drones, 0.2)
        heights.append(drones.position[:, 2].numpy().copy())
    assert np.transpose(heights) == pytest.approx(np.array(expected), abs=0.004)


def test_a_climb_is_no_faster_than_half_a_metre_a_second():
    drones, fastest = fleet_at([0.1, 5.0]), torch.zeros(2)
    for _ in range(40):
        hover(drones, 0.1)
        fastest = torch.maximum(fastest, drones.velocity[:, 2].abs())
    assert fastest[1].item() == pytest.approx(0.5, abs=0.02)
    assert fastest.max() < 0.52


@pytest.mark.parametrize("max_tilt", [0.15, 0.35, 0.6])
def test_a_huge_velocity_error_tilts_a_drone_up_to_its_limit_and_no_further(max_tilt):
    drones = fleet_at([0.7] * 8, DynamicsConfig(max_tilt=max_tilt))
    away = torch.arange(8) * 2 * math.pi / 8
    drones.velocity[:, :2] = 20 * torch.stack([away.cos(), away.sin()], dim=-1)
    most = torch.zeros(8)
    for _ in range(100):
        hover(drones, SUBSTEP)
        most = torch.maximum(most, tilt(drones))
    assert most.tolist() == pytest.approx([max_tilt] * 8, abs=0.02)


def test_a_drone_that_is_blown_along_leans_against_it_and_keeps_its_height():
    drones = fleet_at([0.7] * 8)
    away = torch.arange(8) * 2 * math.pi / 8
    course = torch.stack([away.cos(), away.sin()], dim=-1)
    drones.velocity[:, :2] = 5 * course
    hover(drones, 0.5)
    lean = quaternion_rotate(drones.attitude, UP)[:, :2]
    assert (lean * course).sum(-1).tolist() == pytest.approx([-math.sin(0.35)] * 8, abs=0.02)
    hover(drones, 5.0)
    assert drones.velocity.abs().max() < 0.05
    assert drones.position[:, 2].tolist() == pytest.approx([0.7] * 8, abs=0.01)
