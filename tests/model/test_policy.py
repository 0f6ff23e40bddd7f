"""A learned policy in flight: what it remembers, what it decides, and what one flight does to another."""

import math
from dataclasses import fields, is_dataclass, replace

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation
from torch import Tensor

from randomly import random_poses
from small_policy import CONFIG, ORDERED, VOCABULARY, small_network
from wordwing.errors import WordwingError
from wordwing.execution.runner import SETTLE_STEPS, fly
from wordwing.frames import Pose, start_frame
from wordwing.interface import Observation
from wordwing.model.policy import ModelConfig, PolicyState
from wordwing.model.text import Tokens
from wordwing.model.visitation import Visitation
from wordwing.policies.learned import LearnedPolicy
from wordwing.sim.simulator import Simulator
from wordwing.world.tasks import sample_tasks

TEXTS = ["go to the barrel", "left of the barrel", "the café"]


def tensors(record: object) -> list[Tensor]:
    """All tensors of a dataclass of tensors, tuples of them and other such dataclasses."""
    if isinstance(record, Tensor):
        return [record]
    if is_dataclass(record):
        record = [getattr(record, field.name) for field in fields(record)]
    return [tensor for part in record for tensor in tensors(part)] if isinstance(record, list | tuple) else []


def seen(rng: np.random.Generator, count: int = 3) -> Observation:
    image = torch.from_numpy(rng.integers(0, 256, (count, 72, 128, 3), np.uint8))
    return Observation(image, random_poses(rng, count), torch.zeros(count))


def flying(rng: np.random.Generator, config: ModelConfig = CONFIG) -> tuple[LearnedPolicy, Pose]:
    policy, start = LearnedPolicy(small_network(config=config), VOCABULARY), random_poses(rng, len(TEXTS))
    policy.reset(TEXTS, start)
    return policy, start


def scipy_rotation(quaternion: Tensor) -> Rotation:
    return Rotation.from_quat(quaternion.roll(-1, -1).numpy())  # scipy has w last


def always(logit: float, forward: float = 0.5, yaw_rate: float = 0.0) -> LearnedPolicy:
    """A policy that does the same whatever it sees; setpoints in shares of the greatest."""
    network = small_network()
    with torch.no_grad():
        network.stage2.network.last.weight.zero_()
        network.stage2.network.last.bias.copy_(torch.tensor([forward, yaw_rate, 0.0, 0.0, logit]))
    return LearnedPolicy(network, VOCABULARY)


def test_a_learned_policy_flies_tasks_in_the_simulator(rng):
    tasks = sample_tasks("cage", 2, rng)
    flights = fly(always(-9.0), Simulator(2), tasks, max_steps=4, safety=False)
    assert [flight.ended_by[0] for flight in flights] == ["steps", "steps"]
    for flight in flights:
        assert np.allclose(flight.setpoints, [[0.35, 0.0]] * 4 + [[0.0, 0.0]] * SETTLE_STEPS)
        assert np.linalg.norm(flight.path[-1] - flight.path[0]) == pytest.approx(4 * 0.3 * 0.35, rel=0.2)


def test_a_learned_policy_that_stops_ends_its_flight(rng):
    [flight] = fly(always(9.0), Simulator(1), sample_tasks("cage", 1, rng))
    assert (flight.ended_by[0], flight.end) == ("stop", 0)


def test_what_it_has_seen_and_read_decides_what_it_does(rng):
    policy, start = flying(rng)
    observation = seen(rng)
    first = policy.act(observation).setpoint
    again = policy.act(observation).setpoint
    policy.reset(TEXTS, start)
    assert torch.equal(policy.act(observation).setpoint.yaw_rate, first.yaw_rate)
    assert torch.equal(policy.act(observation).setpoint.yaw_rate, again.yaw_rate)
    policy.reset(TEXTS[::-1], start)
    assert not torch.allclose(policy.act(observation).setpoint.yaw_rate, first.yaw_rate, atol=1e-4)
    policy.reset(TEXTS, start)
    darker = Observation(observation.image // 2 + 60 * (observation.image > 99), observation.pose, observation.time)
    assert not torch.allclose(policy.act(darker).setpoint.yaw_rate, first.yaw_rate, atol=1e-4)


@pytest.mark.parametrize("config", [CONFIG, ORDERED], ids=["pvn2", "phases and words"])
def test_one_flight_that_begins_anew_is_a_fresh_flight_and_the_others_do_not_notice(rng, config):
    (policy, start), observations = flying(rng, config), [seen(rng) for _ in range(4)]
    alone, undisturbed = LearnedPolicy(policy.network, VOCABULARY), LearnedPolicy(policy.network, VOCABULARY)
    undisturbed.reset(TEXTS, start)
    for observation in observations[:2]:
        policy.act(observation)
        undisturbed.act(observation)
    anew = random_poses(rng, 1)
    policy.reset(["barrel go"], anew, worlds=torch.tensor([1]))
    alone.reset(["barrel go"], anew)
    for mine, theirs in zip(tensors(policy.state), tensors(alone.state), strict=True):
        torch.testing.assert_close(mine[1:2], theirs, rtol=0, atol=0, equal_nan=True)
    for observation in observations[2:]:
        action, expected = policy.act(observation), undisturbed.act(observation)
        fresh = alone.act(Observation(observation.image[1:2], observation.pose[1:2], observation.time[1:2]))
        for name in ("forward", "yaw_rate"):
            mine = getattr(action.setpoint, name)
            assert torch.equal(mine[::2], getattr(expected.setpoint, name)[::2])
            assert torch.allclose(mine[1:2], getattr(fresh.setpoint, name), atol=1e-4)
    for mine, theirs in zip(tensors(policy.state), tensors(undisturbed.state), strict=True):
        assert torch.equal(mine[::2], theirs[::2])
    for mine, theirs in zip(tensors(policy.beliefs), tensors(undisturbed.beliefs), strict=True):
        assert torch.equal(mine[::2], theirs[::2])


def test_several_flights_begin_anew_in_the_order_in_which_they_are_named(rng):
    policy, _start = flying(rng)
    policy.act(seen(rng))
    anew = random_poses(rng, 2)
    policy.reset(["go", "left"], anew, worlds=torch.tensor([2, 0]))
    fresh = LearnedPolicy(policy.network, VOCABULARY)
    fresh.reset(["go", "left"], anew)
    for mine, theirs in zip(tensors(policy.state), tensors(fresh.state), strict=True):
        assert torch.equal(mine[[2, 0]], theirs)


def test_a_decision_leaves_what_it_was_given_as_it_was(rng):
    network, observation = small_network(), seen(rng)
    with torch.no_grad():
        state = network.begin(Tokens.encode(TEXTS, VOCABULARY), random_poses(rng, 3))
        state, _beliefs = network(state, observation.image, observation.pose, "sim")
        before = [tensor.clone() for tensor in tensors((state, observation))]
        first = network(state, observation.image, observation.pose, "sim")
        second = network(state, observation.image, observation.pose, "sim")
    for kept, now in zip(before, tensors((state, observation)), strict=True):
        assert torch.equal(kept, now)
    for one, other in zip(tensors(first), tensors(second), strict=True):
        assert torch.equal(one, other)
    assert isinstance(first[0], PolicyState)
    assert first[0].map.view_counts.sum() > state.map.view_counts.sum()


@pytest.mark.parametrize(("logit", "stops"), [(0.0, False), (1e-3, True), (-1e-3, False)])
def test_it_stops_where_the_probability_is_above_a_half(rng, logit, stops):
    policy = always(logit)
    policy.reset(TEXTS, random_poses(rng, 3))
    assert policy.act(seen(rng)).stop.tolist() == [stops] * 3


@pytest.mark.parametrize(
    ("mean", "setpoint"),
    [
        ((0.5, -0.5), (0.35, -0.5)),
        ((7.0, 9.0), (0.7, 1.0)),
        ((-7.0, -9.0), (0.0, -1.0)),
    ],
)
def test_setpoints_are_the_means_within_the_limits(rng, mean, setpoint):
    policy = always(-9.0, *mean)
    policy.reset(TEXTS, random_poses(rng, 3))
    action = policy.act(seen(rng))
    assert action.setpoint.forward.tolist() == pytest.approx([setpoint[0]] * 3)
    assert action.setpoint.yaw_rate.tolist() == pytest.approx([setpoint[1]] * 3)


@pytest.mark.parametrize(
    "decision", [(torch.nan, 0.5, 0.5), (0.0, torch.nan, 0.5), (0.0, 0.5, -torch.inf), (0.0, 1e30, 0.0)]
)
def test_a_decision_that_makes_no_sense_is_refused(rng, decision):
    policy = always(*decision)
    policy.reset(TEXTS, random_poses(rng, 3))
    with pytest.raises(WordwingError, match=r"the policy's decision makes no sense .* its weights are damaged"):
        policy.act(seen(rng))


def test_the_beliefs_are_those_of_the_last_decision(rng):
    policy, _start = flying(rng)
    assert policy.beliefs is None
    action = policy.act(seen(rng))
    beliefs = policy.beliefs
    assert torch.equal(action.setpoint.yaw_rate, beliefs.control.mean[:, 1].clamp(-1, 1))
    total = beliefs.visitation.cells.sum((2, 3)) + beliefs.visitation.unobserved
    assert torch.allclose(total, torch.ones(3, 2), atol=1e-5)
    assert not beliefs.visitation.goal[~beliefs.observed].any()
    policy.reset(TEXTS, random_poses(rng, 3))
    assert policy.beliefs is None


def test_the_beliefs_of_one_drone_are_its_own(rng):
    policy, _start = flying(rng)
    policy.act(seen(rng))
    beliefs = policy.beliefs
    for index in (1, -1):
        for mine, theirs in zip(tensors(beliefs.of(index)), tensors(beliefs), strict=True):
            assert torch.equal(mine[0], theirs[index])
            assert len(mine) == 1
            assert mine.untyped_storage().nbytes() == mine.nbytes
    with pytest.raises(IndexError):
        beliefs.of(3)


def test_a_goal_is_where_the_likeliest_cell_lies_in_the_world(rng):
    policy, start = flying(rng)
    policy.act(seen(rng))
    cells = [(0, 0), (40, 10), (31, 63)]
    goal = torch.from_numpy(rng.uniform(0, 0.1, (3, 64, 64))).float()
    for drone, (row, column) in enumerate(cells):
        goal[drone, row, column] = 0.2
    unobserved = torch.tensor([[0.1, 0.9], [0.2, 0.0], [0.3, 1.0]])
    plan = Visitation(goal.flip(0), goal, unobserved)
    policy.beliefs = replace(policy.beliefs, visitation=plan)
    found = policy.goals()
    assert found.shape == (3, 3)
    for drone, (row, column) in enumerate(cells):
        # Row 0 lies farthest ahead, column 0 farthest to the left, 4.7 m each; a cell is a 32nd of the arena's edge.
        ahead, left = 4.7 - (row + 0.5) * 4.7 / 32, 4.7 - (column + 0.5) * 4.7 / 32
        x, y, _z = start.position[drone].tolist()
        nose = scipy_rotation(start.quaternion[drone]).apply([1.0, 0.0, 0.0])
        yaw = math.atan2(nose[1], nose[0])
        place = [x + ahead * math.cos(yaw) - left * math.sin(yaw), y + ahead * math.sin(yaw) + left * math.cos(yaw)]
        assert found[drone].tolist() == pytest.approx([*place, unobserved[drone, 1].item()], abs=1e-4)


def test_a_goal_is_among_what_has_been_observed(rng):
    policy, start = flying(rng)
    for _look in range(3):
        policy.act(seen(rng))
        places, unobserved = policy.goals()[:, :2], policy.goals()[:, 2]
        here = start_frame(start).unapply(torch.cat([places, torch.zeros(3, 1)], 1))[:, :2]
        cells = ((4.7 - here) / (4.7 / 32)).long()
        for drone, (row, column) in enumerate(cells.tolist()):
            assert policy.beliefs.observed[drone, row, column]
            assert policy.beliefs.visitation.goal[drone, row, column] == policy.beliefs.visitation.goal[drone].max()
        assert torch.equal(unobserved, policy.beliefs.visitation.unobserved[:, 1])


def test_each_domain_has_its_own_eyes(rng):
    network, observation, start = small_network(), seen(rng), random_poses(rng, 3)
    actions = []
    for domain in ("sim", "lab"):
        policy = LearnedPolicy(network, VOCABULARY, domain)
        policy.reset(TEXTS, start)
        actions.append(policy.act(observation).setpoint.yaw_rate)
    assert not torch.allclose(*actions, atol=1e-4)


def test_misuse_is_an_error(rng):
    policy = LearnedPolicy(small_network(), VOCABULARY)
    with pytest.raises(ValueError, match="reset comes before act"):
        policy.act(seen(rng))
    with pytest.raises(ValueError, match="no flights are under way"):
        policy.reset(["go"], random_poses(rng, 1), worlds=torch.tensor([0]))
    with pytest.raises(ValueError, match="1 instructions for 2 drones"):
        policy.reset(["go"], random_poses(rng, 2))
    policy.reset(TEXTS, random_poses(rng, 3))
    with pytest.raises(ValueError, match="1 observations for 3 drones"):
        policy.act(seen(rng, 1))
    with pytest.raises(ValueError, match="act comes before goals"):
        policy.goals()


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has CUDA")
def test_cuda_is_refused_in_a_sentence_where_there_is_none():
    with pytest.raises(WordwingError, match="no CUDA device"):
        LearnedPolicy(small_network(), VOCABULARY, device="cuda")
