"""The intrinsic reward against loops over flights with POT."""

import math
from dataclasses import replace

import numpy as np
import ot
import pytest
import torch
from torch import Tensor

from wordwing.learning import rewards as reward
from wordwing.learning.emd import SparseMap, emd
from wordwing.learning.rewards import RewardConfig, Rewards, rewards
from wordwing.learning.rollouts import RolloutBuffer
from wordwing.model.ego import EgoView

CELL = 4.7 / 32
LENGTHS = (6, 1, 4, 2)
CONFIG = RewardConfig(visitation=2.0, stop=3.0, exploration=5.0, unobserved=7.0, action=11.0, step=0.13)


LIMITS = torch.tensor([0.7, 1.0])
"""m/s and rad/s, of which actions are shares."""


def rollouts(lengths, position, trajectory, stop_distance, unobserved, action, stop) -> RolloutBuffer:
    """Flights whose actions are in m/s and rad/s; what rewards do not look at is empty."""
    rows = unobserved.shape
    view = EgoView(torch.zeros(*rows, 0), torch.zeros(*rows, 0), torch.stack([unobserved * 0, unobserved], -1))
    return RolloutBuffer(
        example=torch.arange(len(lengths)),
        length=torch.tensor(lengths),
        view=view,
        action=action / LIMITS,
        stop=stop,
        log_prob=torch.zeros(rows),
        value=torch.zeros(rows),
        trajectory=trajectory,
        stop_distance=stop_distance,
        position=position,
        pose=torch.zeros(*rows, 6, dtype=torch.int16),
        left_arena=torch.zeros_like(stop),
        strayed=torch.zeros_like(stop),
    )


def path_of(flown: RolloutBuffer, row: int) -> list[list[float]]:
    """Where a flight has been, from the origin on."""
    return [[0.0, 0.0], *flown.position[row].tolist()]


@pytest.fixture
def flown(rng) -> RolloutBuffer:
    """Flights of 6, 1, 4 and 2 decisions; what stands in the padding is no number."""
    flights, most = len(LENGTHS), max(LENGTHS)

    def padded(values: np.ndarray) -> Tensor:
        for row, length in enumerate(LENGTHS):
            values[row, length:] = math.nan
        return torch.from_numpy(values).float()

    return rollouts(
        LENGTHS,
        position=padded(rng.uniform(-0.3, 0.3, (flights, most, 2)).cumsum(1)),
        trajectory=SparseMap(
            torch.from_numpy(rng.integers(0, 4096, (flights, most, 12)).astype(np.int16)),
            padded(rng.dirichlet(np.ones(12), (flights, most))),
        ),
        stop_distance=padded(rng.uniform(0, 2, (flights, most))),
        unobserved=padded(rng.uniform(0, 1, (flights, most))),
        action=padded(rng.normal(0.5, 1.5, (flights, most, 2))),
        stop=torch.from_numpy(rng.random((flights, most)) < 0.3),
    )


def transport(points: list[list[float]], cells: SparseMap) -> float:
    """The distance of a polyline, its mass spread evenly along it, from a plan; by POT, mass by mass."""
    mass = [0.0] * len(points)
    for k in range(len(points) - 1):
        mass[k] += math.dist(points[k], points[k + 1]) / 2
        mass[k + 1] += math.dist(points[k], points[k + 1]) / 2
    if sum(mass) == 0:
        mass[0] = 1.0
    centres = [(4.7 - (i // 64 + 0.5) * CELL, 4.7 - (i % 64 + 0.5) * CELL) for i in cells.index.tolist()]
    likely = cells.weight.double().numpy()
    cost = ot.dist(np.array(points), np.array(centres), metric="euclidean")
    return float(ot.emd2(np.array(mass) / sum(mass), likely / likely.sum(), cost))


def standing(decisions: int, cells: SparseMap) -> RolloutBuffer:
    """A flight that stays where it is and knows all from the start, in two decisions' padding."""
    shape = (1, decisions + 2)
    return rollouts(
        [decisions],
        position=torch.zeros(*shape, 2),
        trajectory=SparseMap(cells.index.expand(*shape, -1), cells.weight.expand(*shape, -1)),
        stop_distance=torch.full(shape, 0.5),
        unobserved=torch.full(shape, 0.25),
        action=torch.zeros(*shape, 2),
        stop=torch.zeros(shape, dtype=torch.bool),
    )


def a_plan(rng) -> SparseMap:
    weight = torch.from_numpy(rng.dirichlet(np.ones(12))).float()
    return SparseMap(torch.from_numpy(rng.integers(0, 4096, 12).astype(np.int16)), weight)


def test_the_visitation_reward_is_the_reduction_of_the_distance_decision_by_decision(flown):
    found = rewards(flown, CONFIG).visitation
    for row, length in enumerate(LENGTHS):
        path = path_of(flown, row)
        distance = transport(path[:1], flown.trajectory[row, 0])
        for t in range(length):
            before, distance = distance, transport(path[: t + 2], flown.trajectory[row, t])
            assert found[row, t].item() == pytest.approx(2.0 * (before - distance), abs=1e-5)


def test_with_one_plan_both_distances_are_from_the_plan_of_the_decision(flown):
    found = rewards(flown, replace(CONFIG, one_plan=True)).visitation
    for row, length in enumerate(LENGTHS):
        path = path_of(flown, row)
        for t in range(length):
            before, after = (transport(path[: t + points], flown.trajectory[row, t]) for points in (1, 2))
            assert found[row, t].item() == pytest.approx(2.0 * (before - after), abs=1e-5)


def test_visitation_rewards_add_up_to_what_the_whole_flight_gained(flown):
    found = rewards(flown, CONFIG).visitation.sum(1)
    for row, length in enumerate(LENGTHS):
        path = path_of(flown, row)
        first = transport(path[:1], flown.trajectory[row, 0])
        last = transport(path[: length + 1], flown.trajectory[row, length - 1])
        assert found[row].item() == pytest.approx(2.0 * (first - last), abs=1e-5)


def test_stop_and_unobserved_are_paid_at_the_last_decision_alone_whatever_it_was(flown):
    found = rewards(flown, CONFIG)
    for row, length in enumerate(LENGTHS):
        for t in range(max(LENGTHS)):
            end = t == length - 1
            stop, unobserved = (
                (3.0 * flown.stop_distance[row, t], 7.0 * flown.unobserved[row, t]) if end else (0.0, 0.0)
            )
            assert found.stop[row, t].item() == pytest.approx(-float(stop))
            assert found.unobserved[row, t].item() == pytest.approx(-float(unobserved))


def test_exploration_pays_each_decision_for_what_the_next_prediction_knows_better(flown):
    found = rewards(flown, CONFIG).exploration
    for row, length in enumerate(LENGTHS):
        belief = [1 - p for p in flown.unobserved[row, :length].tolist()]
        for t in range(max(LENGTHS)):
            gain = max(belief[: t + 2]) - max(belief[: t + 1]) if t + 1 < length else 0.0
            assert found[row, t].item() == pytest.approx(5.0 * gain, abs=1e-5)
        assert found[row].sum().item() == pytest.approx(5.0 * (max(belief) - belief[0]), abs=1e-5)


@pytest.mark.parametrize(
    ("forward", "yaw_rate", "penalty"),
    [
        (-0.5, 2.0, 0.0),
        (1.7, -2.0, 0.0),
        (1.9, 0.0, 0.2),
        (-0.6, 0.0, 0.1),
        (0.0, 2.5, 0.5),
        (2.0, -2.25, 0.55),
        (3.0, 5.0, 2.0),
        (-9.0, 0.0, 2.0),
    ],
)
def test_actions_beyond_their_range_cost_by_how_far_and_at_most_two(rng, forward, yaw_rate, penalty):
    flight = standing(1, a_plan(rng))
    flight.action[0, :] = torch.tensor([forward, yaw_rate]) / LIMITS
    assert rewards(flight, CONFIG).action[0].tolist() == pytest.approx([-11 * penalty, 0, 0], abs=1e-5)


def test_stopping_costs_no_action(flown):
    found = rewards(flown, CONFIG).action
    moves = flown.mask & ~flown.stop
    assert (found[~moves] == 0).all()
    assert (found[moves] < 0).any()


def test_every_decision_costs_a_step_and_padding_nothing(flown):
    found = rewards(flown, CONFIG)
    assert found.step.sum(1).tolist() == pytest.approx([-0.13 * length for length in LENGTHS])
    for term in found.terms.values():
        assert (term[~flown.mask] == 0).all()


def test_the_reward_is_the_sum_of_its_terms_and_shares_are_parts_of_a_whole(flown):
    found = rewards(flown, CONFIG)
    six = [found.visitation, found.stop, found.exploration, found.unobserved, found.action, found.step]
    assert torch.allclose(found.total, sum(six, torch.zeros(())), rtol=0, atol=1e-5)
    whole = sum(float(term.abs().sum()) for term in six)
    names = ["visitation", "stop", "exploration", "unobserved", "action", "step"]
    expected = {name: float(term.abs().sum()) / whole for name, term in zip(names, six, strict=True)}
    assert {name: share.item() for name, share in found.shares().items()} == pytest.approx(expected)


def test_no_reward_has_no_shares():
    nothing = torch.zeros(2, 3)
    assert [share.item() for share in Rewards(*[nothing] * 6).shares().values()] == [0] * 6


def test_a_flight_that_never_stops_is_not_better_off_than_one_that_stops_there(rng):
    plan = a_plan(rng)
    stops, runs_out, hovers = standing(3, plan), standing(3, plan), standing(5, plan)
    stops.stop[0, 2] = True
    totals = [rewards(flight, CONFIG).total.sum().item() for flight in (stops, runs_out, hovers)]
    assert totals[1] == pytest.approx(totals[0])
    assert totals[2] == pytest.approx(totals[0] - 2 * 0.13)


def test_turning_on_the_spot_costs_steps_alone_before_the_end(rng):
    found = rewards(standing(4, a_plan(rng)), CONFIG)
    assert found.visitation.abs().max() < 1e-5
    assert found.total[0, :3].tolist() == pytest.approx([-0.13] * 3, abs=1e-5)


def test_the_batched_method_pays_nearly_the_same(flown):
    exact, batched = rewards(flown, CONFIG), rewards(flown, CONFIG, "batched")
    assert not torch.equal(exact.visitation, batched.visitation)
    assert torch.allclose(exact.total, batched.total, rtol=0, atol=0.02)


def test_only_decisions_cost_transport_problems_and_few_at_once(flown, monkeypatch):
    solved: list[int] = []

    def counting(points: Tensor, *rest: object) -> Tensor:
        solved.append(len(points))
        return emd(points, *rest)  # type: ignore[arg-type]

    expected = rewards(flown, CONFIG).total
    monkeypatch.setattr(reward, "CHUNK", 5)
    monkeypatch.setattr(reward, "emd", counting)
    assert torch.equal(rewards(flown, CONFIG).total, expected)
    assert solved == [5, 5, 3]


def test_half_precision_beliefs_are_paid_in_single(flown):
    halved = replace(flown.view, unobserved=flown.view.unobserved.bfloat16())
    found = rewards(replace(flown, view=halved), CONFIG)
    expected = rewards(replace(flown, view=replace(halved, unobserved=halved.unobserved.float())), CONFIG)
    assert torch.equal(found.total, expected.total)
    assert {term.dtype for term in found.terms.values()} == {torch.float32}


def test_the_default_weights_are_the_papers_in_metres():
    config = RewardConfig()
    assert config.visitation == pytest.approx(0.3 / CELL, abs=0.005)
    assert config.stop == pytest.approx(0.5 / CELL, abs=0.005)
    assert (config.exploration, config.unobserved, config.action, config.step) == (1.0, 3.0, 1.0, 0.04)
