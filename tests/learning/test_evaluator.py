"""FlightMetrics against metrics by hand, intervals against scipy, and first looks with and without the text."""

import math
from dataclasses import replace

import numpy as np
import ot
import pytest
import torch
from scipy import stats

from small_policy import CONFIG
from wordwing.execution.execution import Execution
from wordwing.execution.runner import fly, start_poses
from wordwing.frames import Pose
from wordwing.language.meaning.judge import judge
from wordwing.learning.evaluator import Evaluator, FlightMetrics, mean_interval
from wordwing.learning.losses import GoldConfig, gold_visitation
from wordwing.policies.baselines import Average, Stop
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.oracle import Oracle
from wordwing.sim.simulator import Simulator
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def evaluator(run) -> Evaluator:
    return Evaluator(run.data, CPU)


@pytest.fixture(scope="module")
def average(evaluator) -> dict[str, FlightMetrics]:
    return evaluator.average


@pytest.fixture(scope="module")
def stopped(evaluator) -> dict[str, FlightMetrics]:
    return evaluator.fly(Stop())


def flight_along(path: np.ndarray, gold: np.ndarray) -> Execution:
    positions = np.pad(path, ((0, 0), (0, 1)), constant_values=0.7).astype(np.float32)
    task = Task("go", Layout(()), tuple(gold[0]), 0.0, gold)
    return Execution.single(
        task, positions, np.zeros((len(path), 4), np.float32), np.zeros((len(path) - 1, 2)), 3, "stop"
    )


def evenly(path: np.ndarray, count: int) -> np.ndarray:
    along = np.concatenate([[0], np.cumsum(np.hypot(*np.diff(path, axis=0).T))])
    at = np.linspace(0, along[-1], count)
    return np.stack([np.interp(at, along, path[:, axis]) for axis in (0, 1)], axis=1)


def test_metrics_of_flights_beside_behind_and_at_the_start_of_the_demonstration():
    gold = np.array([[0.0, 0.0], [1.0, 0.0]])
    beside = flight_along(gold + np.array([0.0, 0.3]), gold)
    beyond = flight_along(np.array([[0.0, 0.0], [2.0, 0.0]]), gold)
    nowhere = flight_along(np.zeros((2, 2)), gold)
    edge = flight_along(gold + np.array([0.0, 0.46999]), gold)
    flown = FlightMetrics.of([beside, beyond, nowhere, edge])
    # moved by 0.3 m; stretched to twice its length, by half a metre on average; all mass from one point to a line
    assert flown.emd == pytest.approx([0.3, 0.5, 0.5, 0.47], abs=1e-3)
    assert flown.distance == pytest.approx([0.3, 1.0, 1.0, 0.47], abs=1e-4)
    assert flown.success == 0.5


def test_metrics_of_flights_are_those_of_the_evaluation(evaluator, run):
    found = evaluator.fly(Average(0.4, 0.3, 7))
    assert set(found) == {"cage", "field", "house"}
    for dataset, part in zip(run.data.datasets, run.data.dev, strict=True):
        tasks = [dataset.task(one) for one in part]
        given = found[dataset.name]
        assert len(given.emd) == len(given.distance) == len(tasks)
        for number in (0, len(tasks) - 1):
            [flight] = fly(Average(0.4, 0.3, 7), Simulator(1, draw=False), [tasks[number]])
            flown, gold = evenly(flight.path, 150), evenly(tasks[number].gold_path, 150)
            cost = np.hypot(*(flown[:, None] - gold).transpose(2, 0, 1))
            assert given.emd[number] == pytest.approx(ot.emd2([], [], cost), abs=0.01)
            assert given.distance[number] == pytest.approx(math.dist(flown[-1], gold[-1]), abs=1e-5)


def test_who_stops_at_once_is_as_far_away_as_the_path_is(stopped, run):
    for dataset, part in zip(run.data.datasets, run.data.dev, strict=True):
        for number, one in enumerate(part):
            task = dataset.task(one)
            away = np.hypot(*(evenly(task.gold_path, 2000) - task.start_xy).T)
            assert stopped[dataset.name].emd[number] == pytest.approx(away.mean(), abs=5e-3)
            assert stopped[dataset.name].distance[number] == pytest.approx(away[-1], abs=1e-3)


def test_flights_are_given_as_many_steps_as_their_dataset_has(run):
    class Endless(Average):
        """Counts its decisions."""

        decided: list[int] = []  # noqa: RUF012

        def reset(self, *given, **more):
            super().reset(*given, **more)
            self.decided.append(0)

        def act(self, observation):
            self.decided[-1] += 1
            return super().act(observation)

    alone = replace(run.data, dev=[part[:1] for part in run.data.dev])
    Evaluator(alone, CPU).fly(Endless(0.0, 0.5, 1000))
    assert Endless.decided == [50, 50, 70]


def test_metrics_are_means_over_flights_and_then_over_corpora(evaluator):
    flown = {
        "cage": FlightMetrics(np.array([0.1, 0.3, 0.5]), np.array([0.2, 0.4, 0.9])),
        "field": FlightMetrics(np.array([1.0]), np.array([2.0])),
    }
    metrics = evaluator.metrics(flown)
    assert metrics["dev/cage_success"] == pytest.approx(2 / 3)
    assert metrics["dev/cage_emd"] == pytest.approx(0.3)
    assert metrics["dev/cage_distance"] == pytest.approx(0.5)
    assert metrics["dev/field_success"] == 0
    assert metrics["dev/success"] == pytest.approx(1 / 3)
    assert metrics["dev/emd"] == pytest.approx(0.65)


def test_what_was_followed_is_logged_beside_oracles_share_where_meanings_are_known(evaluator, run):
    metrics = evaluator.metrics(evaluator.fly(Oracle()))
    known = [dataset.name for dataset, part in zip(run.data.datasets, run.data.dev, strict=True)
             if part[0].segment.meaning]  # fmt: skip
    assert known == ["cage", "field"]  # people's sentences have none
    assert "dev/house_followed" not in metrics
    shares = []
    for name in known:
        dataset, part = next(
            (dataset, part)
            for dataset, part in zip(run.data.datasets, run.data.dev, strict=True)
            if dataset.name == name
        )
        done = []
        for one in part:
            [flight] = fly(Oracle(), Simulator(1, draw=False), [dataset.task(one)])
            scores = judge(one.segment.meaning, flight.path, one.segment.start_yaw, dataset.layout(one.layout)).clauses
            done.append(min(scores) >= 0.5)
        shares.append(np.mean(done))
        assert metrics[f"dev/{name}_followed"] == metrics[f"dev/{name}_followed_by_oracle"] == shares[-1] > 0.5
    assert metrics["dev/followed"] == metrics["dev/followed_by_oracle"] == pytest.approx(np.mean(shares))


def test_who_stays_follows_less_than_oracle(evaluator, stopped):
    metrics = evaluator.metrics(stopped)
    assert metrics["dev/followed"] < metrics["dev/followed_by_oracle"]


@pytest.mark.parametrize("count", [2, 10, 300])
def test_an_interval_is_that_of_the_normal_distribution(rng, count):
    values = rng.normal(0.3, 0.2, count)
    mean, low, high = mean_interval(values)
    expected = stats.norm.interval(0.95, loc=values.mean(), scale=stats.sem(values))
    assert mean == pytest.approx(values.mean())
    assert (low, high) == pytest.approx(expected, abs=1e-4)


def test_one_value_says_nothing_about_its_neighbours():
    assert mean_interval(np.array([0.7])) == (0.7, -math.inf, math.inf)


def test_the_gap_is_by_how_much_emd_is_smaller_than_averages_in_the_same_flights(evaluator, average, stopped):
    perfect = {name: FlightMetrics(given.emd - 0.25, given.distance) for name, given in average.items()}
    assert evaluator.gap(perfect) == pytest.approx((0.25, 0.25, 0.25), abs=1e-9)
    pairs = [(a, b) for name in average for a, b in zip(average[name].emd, stopped[name].emd, strict=True)]
    differences = np.array([a - b for a, b in pairs])
    mean, low, high = evaluator.gap(stopped)
    expected = stats.norm.interval(0.95, loc=differences.mean(), scale=stats.sem(differences))
    assert mean == pytest.approx(differences.mean(), abs=1e-9)
    assert (low, high) == pytest.approx(expected, abs=1e-4)
    assert low < mean < high
    assert evaluator.gap(average)[0] == pytest.approx(0, abs=1e-9)


def test_average_is_flown_only_once_and_in_every_corpus_by_its_own_mean_action(run, monkeypatch):
    evaluator = Evaluator(replace(run.data, dev=[part[:1] for part in run.data.dev]), CPU)
    flown = {}

    def noted(policy, simulator, tasks, max_steps):
        flown[id(tasks)] = policy.mean_action
        return fly(policy, simulator, tasks, max_steps=max_steps)

    monkeypatch.setattr("wordwing.learning.evaluator.fly", noted)
    first = evaluator.average
    assert [flown[id(evaluator.tasks[name])] for name in ("cage", "field", "house")] == [
        (0.454, -0.006, 12),
        (0.459, -0.001, 17),
        (0.358, -0.045, 31),
    ]
    flown.clear()
    assert evaluator.average is first
    assert not flown


def test_oracle_has_a_gap_above_zero(evaluator):
    mean, low, _high = evaluator.gap(evaluator.fly(Oracle()))
    assert low > 0
    assert mean > 0.2


def test_first_looks_differ_without_the_text_for_who_reads_and_do_not_for_who_does_not(evaluator, run):
    reader = evaluator.first_looks(run.network(), GoldConfig())
    deaf = replace(CONFIG, stage1=replace(CONFIG.stage1, blank="instruction"))
    other = evaluator.first_looks(run.network(config=deaf), GoldConfig())
    for name in ("cage", "field", "house"):
        assert reader[f"first_look/{name}_goal_kl"] != pytest.approx(
            reader[f"first_look/{name}_goal_kl_without_text"], abs=1e-3
        )
        for figure in ("error", "within", "goal_kl"):
            assert other[f"first_look/{name}_{figure}"] == pytest.approx(
                other[f"first_look/{name}_{figure}_without_text"], abs=1e-6, nan_ok=True
            )


@torch.no_grad()
@pytest.mark.parametrize(("kind", "headings"), [("first_look", 1), ("look_around", 6)])
def test_goal_errors_are_means_over_the_goals_in_view(evaluator, run, kind, headings):
    network = run.network()
    metrics = evaluator.first_looks(network, GoldConfig())
    policy = LearnedPolicy(network, run.data.vocabulary)
    seen = hidden = 0
    for dataset, part in zip(run.data.datasets, run.data.dev, strict=True):
        errors = []
        for task in [dataset.task(one) for one in part]:
            start = start_poses([task])
            policy.reset([task.instruction], start)
            for heading in range(headings):
                turned = Pose.level(start.xy, start.yaw + math.tau * heading / headings, 0.7)
                policy.act(Simulator(1).reset([task.layout], turned))
            points = torch.from_numpy(evenly(task.gold_path, 64)).float()[None]
            goal = gold_visitation(points, start, GoldConfig()).goal
            if float(goal[policy.beliefs.observed].sum()) <= 0.5:
                hidden += 1
                continue
            row, column = divmod(int(policy.beliefs.visitation.goal[0].argmax()), 64)
            best = complex(31.5 - row, 31.5 - column) * 4.7 / 32
            turn = complex(math.cos(task.start_yaw), math.sin(task.start_yaw))
            errors.append(abs(complex(*task.start_xy) + best * turn - complex(*task.gold_path[-1])))
        seen += len(errors)
        if errors:
            assert metrics[f"{kind}/{dataset.name}_error"] == pytest.approx(np.mean(errors), abs=1e-3)
            within = np.mean([error < 0.47 for error in errors])
            assert metrics[f"{kind}/{dataset.name}_within"] == pytest.approx(within)
    assert seen > 2
    assert hidden > 2 if headings == 1 else seen > 2 * hidden, "who looks around sees most goals"


def test_an_image_shows_what_the_policy_believes(evaluator, run):
    network = run.network()
    with torch.no_grad():
        network.stage2.network.last.bias[4] = 5.0  # it stops at once, which is thought of soonest
    image = evaluator.image(LearnedPolicy(network, run.data.vocabulary))
    assert image.ndim == 3
    assert image.shape[2] == 3
    assert image.dtype == np.uint8
    assert image.std() > 10
