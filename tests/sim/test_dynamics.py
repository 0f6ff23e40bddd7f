"""The batched quadrotor against physics, a real autopilot's figures and the lab's rigid body."""

import math
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from wordwing.execution.runner import SETTLE_STEPS
from wordwing.frames import Pose, wrap_angle
from wordwing.interface import CONTROL_PERIOD, Setpoint
from wordwing.lab.flight import LabFlight
from wordwing.sim.dynamics import RESPONSE_PARAMETERS, REST, DynamicsConfig, FleetState
from wordwing.sim.kernels.drone import DroneParameters
from wordwing.sim.scene import SimScene

CPU = torch.device("cpu")


class Fleet:
    """Drones in empty worlds, flown for any time."""

    def __init__(self, count: int = 1, yaw: float = 0.0, config: DynamicsConfig | None = None) -> None:
        self.scene = SimScene(count, CPU)
        self.drones = FleetState(count, CPU, config or DynamicsConfig())
        start = Pose.level(torch.zeros(count, 2), torch.full((count,), yaw), 0.7)
        self.drones.reset(start, torch.arange(count))

    def fly(self, forward: float, yaw_rate: float, seconds: float) -> None:
        count = len(self.drones.position)
        setpoint = Setpoint(torch.full((count,), forward), torch.full((count,), yaw_rate))
        self.drones.advance(setpoint, seconds, self.scene.worlds, self.scene.geoms)

    def fly_somehow(self, rng: np.random.Generator) -> None:
        """One control period, each drone by a setpoint of its own."""
        count = len(self.drones.position)
        forward, yaw_rate = rng.uniform(0, 0.7, count), rng.uniform(-1, 1, count)
        setpoint = Setpoint(torch.from_numpy(forward).float(), torch.from_numpy(yaw_rate).float())
        self.drones.advance(setpoint, CONTROL_PERIOD, self.scene.worlds, self.scene.geoms)

    @property
    def pose(self) -> Pose:
        return Pose(self.drones.position, self.drones.attitude)

    @property
    def forward_speed(self) -> float:
        yaw = self.pose.yaw[0]
        return float(self.drones.velocity[0, :2] @ torch.stack([yaw.cos(), yaw.sin()]))


def test_a_hovering_drone_stays_where_it_is():
    fleet = Fleet()
    fleet.fly(0.0, 0.0, 10.0)
    assert fleet.drones.position[0].tolist() == pytest.approx([0.0, 0.0, 0.7], abs=1e-4)
    assert fleet.drones.velocity.abs().max() < 1e-4


def test_the_speed_rises_as_an_ardu_copters_does():
    """From rest at 0.5 m/s it measured 0.19, 0.45 and 0.47 m/s after 0.5, 1.0 and 1.5 s, nose 5° down at first."""
    fleet, speeds, pitches = Fleet(), [], []
    for _ in range(15):
        fleet.fly(0.5, 0.0, 0.1)
        speeds.append(fleet.forward_speed)
        w, x, y, z = fleet.pose.quaternion[0]
        pitches.append(math.degrees(math.asin(2 * (w * y - z * x))))
    assert [speeds[4], speeds[9], speeds[14]] == pytest.approx([0.19, 0.45, 0.47], abs=0.03)
    assert 3 < max(pitches) < 7


def test_a_turn_in_flight_ends_where_an_ardu_copters_does():
    """5 s of 0.5 m/s and 0.3 rad/s turned it 83.0 to 83.9° of the 85.9° asked, at 0.49 to 0.514 m/s."""
    fleet = Fleet()
    fleet.fly(0.5, 0.3, 5.0)
    assert math.degrees(fleet.pose.yaw[0]) == pytest.approx(83.9, abs=1.0)
    assert fleet.forward_speed == pytest.approx(0.5, abs=0.02)


def test_the_yaw_rate_settles_within_half_a_second():
    fleet = Fleet()
    fleet.fly(0.0, 0.3, 0.5)
    assert fleet.drones.rates[0, 2].item() == pytest.approx(0.3, rel=0.05)


def test_braking_from_half_a_metre_a_second_takes_about_two_thirds_of_a_second():
    """The autopilot stood 1.1 s after the last setpoint, 0.5 s of which it still obeyed that setpoint."""
    fleet = Fleet()
    fleet.fly(0.5, 0.0, 3.0)
    fleet.fly(0.0, 0.0, 0.5)
    assert fleet.forward_speed > 0.1
    fleet.fly(0.0, 0.0, 0.3)
    assert abs(fleet.forward_speed) < 0.06


def test_positive_yaw_rate_turns_left_and_the_velocity_follows_the_heading():
    fleet = Fleet()
    fleet.fly(0.6, 1.0, math.pi / 2 + 0.3)
    yaw = fleet.pose.yaw[0]
    assert yaw > 1.2
    course = torch.atan2(fleet.drones.velocity[0, 1], fleet.drones.velocity[0, 0])
    lag = wrap_angle(yaw - course)
    assert 0.0 < lag < 0.6  # it slips outwards a little, as a multirotor does


@pytest.mark.parametrize(("forward", "yaw_rate"), [(0.5, 0.0), (0.7, 0.0), (0.3, 0.5), (0.6, -0.8)])
def test_steps_answer_as_the_labs_rigid_body_does(forward, yaw_rate):
    from wordwing.lab.flight import LabFlightConfig
    from wordwing.lab.wind import WindConfig

    fleet = Fleet()
    lab = LabFlight(LabFlightConfig(wind=WindConfig(standard_deviation=0.0)))
    lab.reset((0.0, 0.0), 0.0, seed=0)
    for _ in range(10):
        fleet.fly(forward, yaw_rate, 0.3)
        lab.advance(0.3, forward, yaw_rate)
        speed = math.hypot(*lab.velocity[:2])
        assert float(fleet.drones.velocity[0, :2].norm()) == pytest.approx(speed, abs=0.08)
        assert float(fleet.pose.yaw[0]) == pytest.approx(lab.yaw, abs=0.08)
    gap = fleet.drones.position[0, :2].numpy() - lab.position[:2]
    assert np.hypot(*gap) < 0.2


def test_height_is_held_within_two_centimetres_by_any_setpoints(rng):
    fleet = Fleet(32)
    for _ in range(30):
        fleet.fly_somehow(rng)
        assert (fleet.drones.position[:, 2] - 0.7).abs().max() < 0.02
    up = 1 - 2 * fleet.drones.attitude[:, 1:3].square().sum(-1)
    assert up.min() > math.cos(0.36)


def test_a_drone_dropped_without_thrust_falls_as_galileo_says():
    fleet = Fleet(config=DynamicsConfig(thrust_lag=1e9, drag=0.0))  # motors that take ages to answer
    fleet.drones.position[0, 2] = 10.0
    fleet.drones.thrust.zero_()
    fleet.fly(0.0, 0.0, 1.0)
    assert fleet.drones.position[0, 2].item() == pytest.approx(10 - 0.5 * 9.81, abs=0.06)


def test_turning_the_world_turns_the_flight(rng):
    turns = [(float(f), float(w)) for f, w in zip(rng.uniform(0, 0.7, 8), rng.uniform(-1, 1, 8), strict=True)]
    straight, turned = Fleet(yaw=0.0), Fleet(yaw=1.1)
    for forward, yaw_rate in turns:
        straight.fly(forward, yaw_rate, 0.3)
        turned.fly(forward, yaw_rate, 0.3)
    c, s = math.cos(1.1), math.sin(1.1)
    x, y = straight.drones.position[0, :2].tolist()
    assert turned.drones.position[0, :2].tolist() == pytest.approx([c * x - s * y, s * x + c * y], abs=1e-4)
    assert wrap_angle(turned.pose.yaw - straight.pose.yaw).item() == pytest.approx(1.1, abs=1e-4)


def test_where_drones_come_to_rest_is_told_without_flying_them(rng):
    fleet = Fleet(16)
    for _ in range(5):
        fleet.fly_somehow(rng)
    before = [tensor.clone() for tensor in fleet.drones.tensors()]
    told = fleet.drones.rest()
    assert all(map(torch.equal, before, fleet.drones.tensors()))
    assert round(SETTLE_STEPS * CONTROL_PERIOD, 6) == REST
    fleet.fly(0.0, 0.0, REST)
    assert torch.equal(told, fleet.drones.position[:, :2])
    assert fleet.drones.velocity.norm(dim=1).max() < 0.02


def test_airframes_lie_in_memory_as_configs_name_them():
    assert list(DroneParameters.vars) == [entry.name for entry in fields(DynamicsConfig)]


def test_a_drone_of_its_own_kind_flies_as_one_with_such_a_config_and_the_others_as_ever(rng):
    factors = torch.from_numpy(rng.uniform(0.5, 2.0, (3, len(RESPONSE_PARAMETERS)))).float()
    fleet, usual = Fleet(3), Fleet()
    fleet.drones.vary(torch.tensor([True, False, True]), factors)
    changed = [
        {
            name: getattr(DynamicsConfig(), name) * float(factor)
            for name, factor in zip(RESPONSE_PARAMETERS, row, strict=True)
        }
        for row in factors[[2, 0]]
    ]
    alone = [Fleet(config=replace(DynamicsConfig(), **changes)) for changes in changed]
    for forward, yaw_rate in [(0.7, 0.5), (0.3, -1.0), (0.0, 0.2)]:
        for one in (fleet, usual, *alone):
            one.fly(forward, yaw_rate, 0.6)
    for number, other in zip((2, 0, 1), (*alone, usual), strict=True):
        assert fleet.drones.position[number].tolist() == pytest.approx(other.drones.position[0].tolist(), abs=1e-5)
        assert torch.allclose(fleet.drones.rest()[number], other.drones.rest()[0], atol=1e-5)
    assert torch.cdist(fleet.drones.position, fleet.drones.position)[~torch.eye(3, dtype=torch.bool)].min() > 0.01
