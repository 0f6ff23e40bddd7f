"""Flights in fewer worlds than there are flights."""

import pytest
import torch

from small_policy import VOCABULARY, small_network
from wordwing.data.corpora import corpus
from wordwing.evaluation.turns import fly_in_turns
from wordwing.execution.execution import Execution
from wordwing.execution.runner import Runner
from wordwing.interface import Action, Setpoint
from wordwing.policies.learned import LearnedPolicy
from wordwing.sim.simulator import Simulator
from wordwing.world.tasks import Task

STEPS = 8
"""Most decisions of a flight."""


class Clockwork(LearnedPolicy):
    """Flies as its instruction's length says, and stops after so many decisions: no rounding can tip one."""

    def reset(self, instructions, start, gold_paths=None, worlds=None):
        super().reset(instructions, start, gold_paths, worlds)
        lengths = torch.tensor([len(text) for text in instructions])
        if worlds is None:
            self.lengths, self.made = lengths, torch.zeros_like(lengths)
        else:
            self.lengths[worlds], self.made[worlds] = lengths, 0

    def act(self, observation):
        super().act(observation)
        setpoint = Setpoint(0.1 + 0.1 * (self.lengths % 5), self.lengths % 3 - 1.0)
        self.made += 1
        return Action(setpoint, self.made > self.lengths % 11)


@pytest.fixture(scope="module")
def policy() -> LearnedPolicy:
    return Clockwork(small_network(3), VOCABULARY)


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    dataset = corpus("dev-mini")
    return [dataset.task(one) for one in list(dataset.instructions("dev"))[:21:3]]


@pytest.fixture(scope="module")
def alone(policy, tasks) -> list[Execution]:
    """Each flown by itself."""
    return [Runner(policy, Simulator(1), max_steps=STEPS).run([task]) for task in tasks]


@pytest.mark.parametrize("worlds", [1, 3, 7])
def test_flights_in_turns_are_those_of_drones_that_fly_alone(policy, tasks, alone, worlds):
    assert len({int(one.decisions) for one in alone}) > 2, "some end before others"
    assert {one.ended_by for one in alone} == {("stop",), ("steps",)}
    found = fly_in_turns(policy, Simulator(worlds), tasks, max_steps=STEPS)
    for one, other in zip(found, alone, strict=True):
        assert one.tasks == other.tasks
        assert one.ended_by == other.ended_by
        assert torch.equal(one.decisions, other.decisions)
        assert torch.equal(one.length, other.length)
        assert one.seconds_inside_landmarks == pytest.approx(other.seconds_inside_landmarks)
        for name in ("position", "quaternion"):
            assert torch.allclose(getattr(one.pose, name), getattr(other.pose, name), atol=1e-3)
        for name in ("forward", "yaw_rate"):
            assert torch.allclose(getattr(one.setpoint, name), getattr(other.setpoint, name), atol=1e-3)
        for name in ("velocity", "goals", "probabilities"):
            assert getattr(one, name).shape == getattr(other, name)[:, : getattr(one, name).shape[1]].shape
            assert torch.allclose(getattr(one, name), getattr(other, name).to(getattr(one, name)), atol=1e-3)


def test_what_flew_before_leaves_nothing_behind(policy, tasks, alone):
    fly_in_turns(policy, Simulator(2), tasks[::-1], max_steps=STEPS)
    [*_others, last] = fly_in_turns(policy, Simulator(5), tasks, max_steps=STEPS)
    assert torch.allclose(last.pose.position, alone[-1].pose.position, atol=1e-3)
