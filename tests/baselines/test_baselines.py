"""STOP, AVERAGE and ORACLE, and what the paper says of them."""

import math

import numpy as np
import pytest
import torch

from wordwing.execution.metrics import emd, final_distance
from wordwing.execution.runner import SETTLE_STEPS, fly
from wordwing.frames import Pose
from wordwing.interface import Observation
from wordwing.policies.baselines import Average, Stop
from wordwing.policies.oracle import Oracle, OracleConfig
from wordwing.sim.simulator import Simulator
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task, sample_tasks


def at(x: float, y: float, yaw: float) -> Observation:
    pose = Pose.level(torch.tensor([[x, y]]), torch.tensor([yaw]), 0.7)
    return Observation(torch.zeros(1, 72, 128, 3, dtype=torch.uint8), pose, torch.zeros(1))


def oracle_on(path: list[list[float]], **config: float) -> Oracle:
    oracle = Oracle(OracleConfig(**config))
    oracle.reset([""], at(0, 0, 0).pose, gold_paths=[torch.tensor(path)])
    return oracle


def test_stop_stops_at_once_and_does_not_move(rng):
    tasks = sample_tasks("cage", 3, rng)
    for flight in fly(Stop(), Simulator(3, draw=False), tasks):
        assert flight.end == 0
        assert np.abs(flight.path - flight.path[0]).max() < 1e-3


def test_average_flies_its_constant_setpoint_for_its_steps():
    task = Task("", Layout(()), (-2.0, 0.0), 0.0, np.array([[-2.0, 0.0], [0.0, 0.0]]))
    [flight] = fly(Average(forward=0.4, yaw_rate=0.1, steps=7), Simulator(1, draw=False), [task])
    assert flight.end == 7
    assert np.allclose(flight.setpoints[:7], [0.4, 0.1])
    assert np.allclose(flight.setpoints[7:], 0.0)


def test_the_oracle_flies_straight_ahead_at_full_speed():
    action = oracle_on([[0, 0], [3, 0]]).act(at(0, 0, 0))
    assert action.setpoint.forward.item() == pytest.approx(0.7)
    assert action.setpoint.yaw_rate.item() == pytest.approx(0.0)
    assert not action.stop.item()


def test_the_oracle_aims_half_a_metre_ahead_along_the_path():
    """Round the corner at (0.3, 0) the point 0.5 m ahead is (0.3, 0.2)."""
    action = oracle_on([[0, 0], [0.3, 0], [0.3, 3]], yaw_gain=1.0, slowdown=0.3).act(at(0, 0, 0))
    bearing = math.atan2(0.2, 0.3)
    assert action.setpoint.yaw_rate.item() == pytest.approx(bearing, abs=1e-5)
    assert action.setpoint.forward.item() == pytest.approx(0.7 - 0.3 * bearing, abs=1e-5)


def test_the_oracle_turns_left_for_a_goal_on_the_left_and_on_the_spot_for_one_behind():
    left = oracle_on([[0, 0], [0, 3]]).act(at(0, 0, 0)).setpoint
    assert left.yaw_rate.item() == 1.0
    behind = oracle_on([[0, 0], [-3, 0]]).act(at(0, 0, 0.1)).setpoint
    assert behind.forward.item() == 0.0
    assert abs(behind.yaw_rate.item()) == 1.0


def test_the_oracle_stops_when_the_path_is_nearly_done():
    oracle = oracle_on([[0, 0], [0.5, 0]], stop_distance=0.3)
    assert not oracle.act(at(0.1, 0, 0)).stop.item()
    assert oracle.act(at(0.25, 0, 0)).stop.item()


def test_the_oracle_does_not_cut_a_loop_short():
    """The path passes its own start again after 4 m; a drone there at first must not skip the loop."""
    square = [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0.05], [-1, 0.05]]
    oracle = oracle_on(square)
    assert oracle.act(at(0.0, 0.04, 0)).setpoint.yaw_rate.item() == pytest.approx(0.0, abs=0.2)


def test_an_oracle_without_a_path_says_so():
    with pytest.raises(ValueError, match="one path for each drone"):
        Oracle().reset(["go"], at(0, 0, 0).pose)


def test_a_path_of_one_point_makes_the_oracle_stop():
    assert oracle_on([[0.0, 0.0]]).act(at(0, 0, 0)).stop.item()


def test_batched_oracles_decide_as_single_ones(rng):
    tasks = sample_tasks("field", 6, rng)
    together = fly(Oracle(), Simulator(6, draw=False), tasks)
    for task, flight in zip(tasks, together, strict=True):
        [alone] = fly(Oracle(), Simulator(1, draw=False), [task])
        assert flight.end == alone.decisions
        assert np.allclose(flight.path, alone.path, atol=1e-5)


def test_the_oracle_comes_to_rest_at_the_end_of_500_curved_paths(rng):
    """At least 99 % within 0.47 m and a mean EMD of at most 0.17 m, the paper's ORACLE in simulation."""
    tasks = sample_tasks("field", 250, rng) + sample_tasks("cage", 250, rng)
    flights = fly(Oracle(), Simulator(500, draw=False), tasks)
    ends = np.array([final_distance(flight.path, flight.task.gold_path) for flight in flights])
    distances = np.array([emd(flight.path, flight.task.gold_path) for flight in flights])
    assert all(1.0 - 0.03 <= np.hypot(*np.diff(t.gold_path, axis=0).T).sum() <= 3.0 + 0.03 for t in tasks)
    assert (ends < 0.47).mean() >= 0.99
    assert distances.mean() <= 0.17
    assert all(flight.stopped for flight in flights)
    # It has come to rest: the last control period moved it by less than a centimetre.
    assert max(np.hypot(*(flight.path[-1] - flight.path[-2])) for flight in flights) < 0.01
    assert {len(flight.path) - 1 - flight.end for flight in flights} == {SETTLE_STEPS}


@pytest.mark.long
def test_the_oracle_comes_to_rest_at_the_end_of_40_paths_in_the_lab(rng):
    """At least 95 % within 0.47 m where the body, the wind, the delays and the noise are the lab's."""
    from wordwing.execution.runner import fly
    from wordwing.lab.vehicle import LabVehicle

    ends, distances = [], []
    for seed, task in enumerate(sample_tasks("cage", 40, rng)):
        with LabVehicle(task.layout, task.start_xy, task.start_yaw, seed=seed) as drone:
            [flight] = fly(Oracle(), drone, [task])
            rest = drone.true_pose.xy.numpy()
        ends.append(final_distance(rest, task.gold_path))
        distances.append(emd(flight.path, task.gold_path))
    assert (np.array(ends) < 0.47).mean() >= 0.95
    assert np.mean(distances) <= 0.17
