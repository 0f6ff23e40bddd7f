"""The guardian's prediction in plain floats against the simulator's kernels and the lab's rule, and what it imports."""

import math
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from wordwing.flight.guardian import prediction
from wordwing.flight.guardian.prediction import DroneState, largest_safe_speed
from wordwing.flight.guardian.safety import AT_A_FENCE, FenceMargins, motion_of
from wordwing.flight.mavlink.geometry import PlainPose, single
from wordwing.frames import Pose, quaternion_from_euler
from wordwing.interface import Setpoint
from wordwing.lab import safety as lab_safety
from wordwing.sim.dynamics import SUBSTEP, DynamicsConfig, FleetState, SafetyConfig

COUNT = 2000


def fleet(seed: int) -> tuple[FleetState, Setpoint]:
    """Drones anywhere in the arena, tilted, moving and turning, and what they are asked to fly."""
    rng = np.random.default_rng(seed)

    def draw(low: float, high: float, *shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.uniform(low, high, (COUNT, *shape)).astype(np.float32))

    made = FleetState(COUNT, torch.device("cpu"), DynamicsConfig())
    position = torch.cat([draw(-2.3, 2.3, 2), draw(0.5, 0.9, 1)], dim=1)
    attitude = quaternion_from_euler(draw(-0.2, 0.2), draw(-0.2, 0.2), draw(-math.pi, math.pi))
    made.reset(Pose(position, attitude), torch.arange(COUNT))
    made.velocity[:] = draw(-0.7, 0.7, 3) * torch.tensor([1.0, 1.0, 0.3])
    made.rates[:] = draw(-1.0, 1.0, 3)
    yaw = Pose(position, attitude).yaw
    made.target[:, 0] = made.velocity[:, 0] * yaw.cos() + made.velocity[:, 1] * yaw.sin()
    made.yaw_target[:] = made.rates[:, 2]
    return made, Setpoint(draw(0.0, 0.7), draw(-1.0, 1.0))


def drones(made: FleetState) -> list[DroneState]:
    rows = zip(*(values.tolist() for values in (made.position, made.attitude, made.velocity, made.rates)), strict=True)
    found = []
    for position, attitude, velocity, rates in rows:
        motion = motion_of(PlainPose(tuple(position), tuple(attitude)), tuple(velocity), tuple(rates))
        found.append(DroneState.of(motion.pose, motion.velocity, motion.rates))
    return found


def test_its_constants_are_those_of_the_simulator():
    config, safety = DynamicsConfig(), SafetyConfig()
    for name, value in vars(config).items():
        assert getattr(prediction, {"height": "FLIGHT_HEIGHT"}.get(name, name.upper())) == value
    assert (SUBSTEP, safety.choices, safety.margin) == (prediction.SUBSTEP, prediction.CHOICES, prediction.KEPT)
    assert (round(safety.horizon / SUBSTEP), round(safety.braking / SUBSTEP)) == (
        prediction.HORIZON,
        prediction.BRAKING,
    )
    assert AT_A_FENCE == lab_safety.AT_A_FENCE


def test_it_comes_to_rest_where_the_simulator_does():
    made, _ = fleet(1)
    expected = made.rest().numpy()
    for drone, place in zip(drones(made)[:300], expected, strict=False):
        for _ in range(180):
            drone = drone.step(0.0, 0.0)
        assert drone.position[:2] == pytest.approx(place.tolist(), abs=2e-5)


@pytest.mark.parametrize("bound", [1.6, 2.0])
def test_it_slows_thousands_of_drones_down_as_the_simulator_does(bound):
    made, asked = fleet(2)
    expected = made.restrain(asked, bound).forward.tolist()
    setpoints = zip(asked.forward.tolist(), asked.yaw_rate.tolist(), strict=True)
    found = [
        single(largest_safe_speed(drone, forward, yaw_rate, (bound, bound)))
        for drone, (forward, yaw_rate) in zip(drones(made), setpoints, strict=True)
    ]
    different = [i for i in range(COUNT) if found[i] != expected[i]]
    assert len(different) <= 2  # float32 may decide otherwise on the bound itself
    for i in different:
        assert abs(found[i] - expected[i]) <= float(asked.forward[i]) / prediction.CHOICES + 1e-6
    assert len({round(value, 3) for value in expected}) > 500


def test_its_bounds_are_those_of_the_lab():
    made, asked = fleet(3)
    rule, fence = lab_safety.SafetyRule(0.5, 0.2), FenceMargins(0.5, 0.2)
    poses = Pose(made.position, made.attitude)
    expected = rule.bounds(poses, asked).tolist()
    for drone, yaw_rate, bounds in zip(drones(made), asked.yaw_rate.tolist(), expected, strict=True):
        found = fence.bounds(PlainPose(drone.position, drone.attitude), yaw_rate)
        assert found == pytest.approx(bounds, abs=1e-6)


def test_the_guardian_process_needs_numpy_and_pymavlink_only_and_starts_soon():
    heavy = ("torch", "warp", "mujoco", "pydantic", "scipy", "PIL", "pandas", "av")
    source = f"import sys, wordwing.flight.guardian.process; print([m for m in {heavy} if m in sys.modules])"
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert time.monotonic() - began < 2.0


def test_the_prediction_is_fast_enough_for_a_tick():
    """The worst case: no fraction of the speed is safe, and each is found out late."""
    made, asked = fleet(4)
    began = time.process_time()
    for drone, forward, yaw_rate in zip(
        drones(made)[:50], asked.forward.tolist(), asked.yaw_rate.tolist(), strict=False
    ):
        largest_safe_speed(drone, forward, yaw_rate, (2.0, 2.0))
    assert (time.process_time() - began) / 50 < 0.03
