"""Flights in the simulator keep what the policy believed, drone by drone."""

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import torch
from torch import Tensor

from wordwing.execution.runner import Runner, fly
from wordwing.language.tokenizer import Vocabulary
from wordwing.model.policy import Beliefs, ModelConfig, PolicyNetwork
from wordwing.policies.baselines import Average, Stop
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.oracle import Oracle
from wordwing.sim.simulator import Simulator
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task

TASKS = [
    Task("go to the well", Layout(()), (0.0, 0.5), 0.0, np.array([[0.0, 0.5], [1.0, 0.5]])),
    Task("go left", Layout(()), (-1.0, -1.0), 2.0, np.array([[-1.0, -1.0], [1.0, 0.5]])),
]


class Listed(LearnedPolicy):
    """Untrained; stops its drones after so many decisions each, and keeps the beliefs of all."""

    def __init__(self, decisions: list[int]) -> None:
        torch.manual_seed(3)
        vocabulary = Vocabulary.of(["go to the well"], min_count=1)
        super().__init__(PolicyNetwork(ModelConfig(), len(vocabulary)), vocabulary)
        self.left = torch.tensor(decisions)
        self.all: list[Beliefs] = []
        self.believed: list[Tensor] = []

    def act(self, observation):
        action = super().act(observation)
        self.all.append(self.beliefs)
        self.believed.append(self.goals())
        self.left = self.left - 1
        return type(action)(action.setpoint, self.left < 0)


def tensors(record: object, name: str = "") -> dict[str, Tensor]:
    """All tensors of a record of records, by name."""
    if isinstance(record, Tensor):
        return {name: record}
    if not is_dataclass(record):
        return {}
    parts = [tensors(getattr(record, part.name), f"{name}.{part.name}") for part in fields(record)]
    return {key: tensor for part in parts for key, tensor in part.items()}


@pytest.fixture(scope="module")
def flown() -> tuple[Listed, list]:
    policy = Listed([1, 3])
    return policy, fly(policy, Simulator(2), TASKS, max_steps=3, keep_images=True)


def test_flights_are_counted_from_either_end_and_there_are_no_others():
    execution = Runner(Oracle(), Simulator(2, draw=False), max_steps=3).run(TASKS)
    for index, task in enumerate(TASKS):
        first, last = execution[index], execution[index - 2]
        assert first.task is last.task is task
        assert np.array_equal(first.positions, last.positions)
        assert np.array_equal(first.setpoints, last.setpoints)
    for index in (2, -3):
        with pytest.raises(IndexError):
            execution[index]


def test_each_flight_keeps_one_belief_for_each_of_its_decisions(flown):
    _policy, flights = flown
    assert [(flight.end, flight.ended_by[0], len(flight.beliefs[0])) for flight in flights] == [
        (1, "stop", 2),  # the decision to stop is one
        (3, "steps", 3),
    ]


def test_each_flight_keeps_the_beliefs_of_its_own_drone_and_nothing_of_others(flown):
    policy, flights = flown
    for drone, flight in enumerate(flights):
        for kept, all_drones in zip(flight.beliefs[0], policy.all, strict=False):
            mine, theirs = tensors(kept), tensors(all_drones)
            assert mine.keys() == theirs.keys()
            assert len(mine) > 12
            for name, tensor in mine.items():
                assert torch.equal(tensor, theirs[name][drone : drone + 1]), name
                assert tensor.device.type == "cpu"
                assert tensor.untyped_storage().nbytes() == tensor.nbytes, name  # else all drones stay in memory


def test_nothing_is_kept_where_images_are_not_or_where_nothing_is_believed():
    [flight] = fly(Listed([2]), Simulator(1), TASKS[:1], max_steps=3)
    assert flight.beliefs[0] == ()
    [flight] = fly(Stop(), Simulator(1), TASKS[:1], keep_images=True)
    assert flight.beliefs[0] == ()


def test_each_flight_keeps_the_goal_of_its_own_drone_at_each_of_its_decisions(flown):
    policy, flights = flown
    believed = torch.stack(policy.believed).double().numpy()  # [D, N, 3]
    assert not np.allclose(believed[:, 0], believed[:, 1])
    for drone, (flight, decisions) in enumerate(zip(flights, (2, 3), strict=True)):
        assert flight.believed_goals.shape == (decisions, 3)
        assert np.array_equal(flight.believed_goals, believed[:decisions, drone])


def test_goals_are_kept_without_images_too_and_none_where_nothing_is_believed():
    [flight] = fly(Listed([2]), Simulator(1), TASKS[:1], max_steps=3)
    assert flight.believed_goals.shape == (3, 3)
    for policy in (Stop(), Average(0.3, 0.1, 2), Oracle()):
        [flight] = fly(policy, Simulator(1, draw=False), TASKS[:1], max_steps=3)
        assert flight.believed_goals.shape == (0, 3)
