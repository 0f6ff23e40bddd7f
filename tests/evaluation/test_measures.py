"""All metrics of flights that are simple enough to be measured by hand."""

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from small_evaluation import plain_episode
from wordwing.execution.episodes import episode_line, parse_episode
from wordwing.execution.execution import Execution
from wordwing.execution.metrics import Metrics, measure
from wordwing.language.meaning.clauses import Clause
from wordwing.language.meaning.judge import judge
from wordwing.world.layout import Layout, Placement

GOLD = np.array([[0.0, 0.0], [2.0, 0.0]])
BARREL = Layout((Placement("Barrel", 2.0, 1.0),))
REACH = Clause("reach", 0)


def episode(path: list[list[float]], **changes: object) -> Execution:
    return plain_episode(path, **{"start": (0.0, 0.0, 0.0), "gold": GOLD, **changes})


def test_a_perfect_flight_has_all_that_can_be_had():
    found = measure(episode([[0, 0], [0.7, 0], [2, 0]])).to_json()
    assert found == {
        "success": True,
        "success_at_stop": True,
        "stopped": True,
        "distance": 0.0,
        "distance_at_stop": 0.0,
        "closest": 0.0,
        "oracle_success": True,
        "emd": 0.0,
        "stop_emd": 1.0,
        "nemd": 0.0,
        "semd": 1.0,
        "length": 2.0,
        "gold_length": 2.0,
        "spl": 1.0,
        "ndtw": 1.0,
        "sdtw": 1.0,
        "clauses": None,
        "followed": None,
        "judge_path": None,
        "judge_goal": None,
        "first_goal_error": None,
        "last_goal_error": None,
        "first_unobserved": None,
        "goal_ahead": True,
        "goal_in_sight": True,
    }
    assert tuple(found) == tuple(entry.name for entry in fields(Metrics))


def test_who_ran_out_of_steps_did_not_stop_but_may_succeed():
    found = measure(replace(episode([[0, 0], [0.7, 0], [2, 0]]), ended_by=("steps",)))
    assert (found.stopped, found.success) == (False, True)


def test_a_flight_beside_the_demonstration():
    found = measure(episode([[0, 0.3], [1, 0.3], [2, 0.3]]))
    assert (found.success, found.distance, found.emd) == (True, 0.3, 0.3)
    assert found.nemd == 0.3  # staying costs 1 m
    assert found.semd == 0.7
    assert found.spl == 1.0
    assert found.ndtw == found.sdtw == round(math.exp(-0.3 / 0.47), 6)


def test_a_flight_past_the_end_and_back_rests_elsewhere_than_where_it_stopped():
    # It decides to stop 0.4 m from the end, and rests 0.6 m from it, having been there in between.
    found = measure(episode([[0, 0], [2.4, 0], [1.4, 0]], decisions=1))
    assert (found.success_at_stop, found.distance_at_stop) == (True, 0.4)
    assert (found.success, found.distance) == (False, 0.6)
    assert (found.oracle_success, found.closest) == (True, 0.0)
    assert (found.length, found.spl, found.sdtw, found.semd) == (3.4, 0.0, 0.0, 0.0)
    assert found.ndtw > 0


def test_a_long_way_to_the_end_halves_spl():
    found = measure(episode([[0, 0], [0, 1], [2, 1], [2, 0]]))
    assert (found.success, found.length, found.spl) == (True, 4.0, 0.5)


def test_a_drone_that_stays_scores_what_staying_costs():
    found = measure(episode([[0, 0], [0, 0]]))
    assert (found.success, found.oracle_success, found.distance, found.closest) == (False, False, 2.0, 2.0)
    assert found.emd == found.stop_emd == 1.0
    assert (found.nemd, found.semd, found.length, found.spl) == (1.0, 0.0, 0.0, 0.0)


def test_the_start_that_staying_is_measured_from_is_the_instructions():
    found = measure(episode([[0.5, 0], [2, 0]], start=(0.0, 0.3, 0.0)))
    line = np.column_stack([np.linspace(0, 2, 101), np.zeros(101)])
    assert found.stop_emd == round(float(cdist([[0.0, 0.3]], line).mean()), 6)


def test_a_demonstration_of_one_point_where_the_drone_starts():
    still = measure(episode([[0, 0], [0, 0]], gold=GOLD[:1]))
    assert (still.success, still.emd, still.stop_emd, still.nemd, still.semd) == (True, 0.0, 0.0, 0.0, 1.0)
    assert (still.spl, still.ndtw, still.gold_length) == (1.0, 1.0, 0.0)
    away = measure(episode([[0, 0], [0.2, 0]], gold=GOLD[:1]))
    assert (away.success, away.emd, away.nemd, away.semd, away.spl) == (True, 0.1, None, 0.0, 0.0)


def test_a_flight_of_one_pose_is_measured():
    found = measure(episode([[2, 0]]))
    assert (found.success, found.distance, found.length, found.emd) == (True, 0.0, 0.0, 1.0)


def test_47_centimetres_are_no_success_however_they_are_computed():
    for x in (0.1, 0.3, 0.53, 1.1, 1.9):
        gold = np.array([[0.0, 0.0], [x, 0.0]])
        found = measure(episode([[0, 0], [round(x + 0.47, 4), 0]], gold=gold))
        assert (found.distance, found.success) == (0.47, False)
        assert found.oracle_success  # on its way
        assert measure(episode([[0, 0], [round(x + 0.4699, 4), 0]], gold=gold)).success


def test_the_judge_scores_the_path_down_to_rest_by_what_was_meant():
    meaning = (Clause("turn", side="right", amount=1.5), REACH)
    flown = [[0, 0], [1, 0], [2, 0], [2, 0.6]]
    found = measure(episode(flown, layout=BARREL, meaning=meaning, start=(0.0, 0.0, 1.5), decisions=2))
    expected = judge(meaning, flown, 1.5, BARREL)
    assert expected.path == pytest.approx(1.0)
    assert (found.judge_path, found.judge_goal) == (round(expected.path, 6), round(expected.goal, 6))
    elsewhere = measure(episode([[0, 0], [0, 1]], layout=BARREL, meaning=(REACH,), start=(0.0, 0.0, 1.5)))
    assert (elsewhere.judge_path, elsewhere.judge_goal) == (0.0, 0.0)


def test_followed_is_every_clause_and_not_only_the_end():
    layout = Layout((Placement("Barrel", 1.0, 0.5), Placement("Boat", 2.0, 0.0)))
    meaning = (Clause("pass", 0, side="left"), Clause("reach", 1))
    beside = measure(episode([[0, 0], [1, 0], [2, 0]], layout=layout, meaning=meaning))
    assert (beside.clauses, beside.followed, beside.success) == (2, True, True)
    around = measure(episode([[0, 0], [0, 2], [2, 2], [2, 0]], layout=layout, meaning=meaning))
    assert (around.followed, around.success, around.judge_goal) == (False, True, 1.0)
    beyond = measure(episode([[0, 0], [1, 0], [2, 0], [2, -1.5]], layout=layout, meaning=meaning))
    assert (beyond.followed, beyond.oracle_success) == (False, True)  # it was there, and does not rest there


def test_whoever_does_one_of_the_things_that_a_sentence_may_mean_has_followed_it():
    past = [(Clause("pass", 0, side=side), Clause("reach", 1)) for side in ("left", "right")]
    layout = Layout((Placement("Barrel", 1.0, 0.5), Placement("Boat", 2.0, 0.0)))
    for meaning, other in (past, past[::-1]):
        flown = episode([[0, 0], [1, 0], [2, 0]], layout=layout, meaning=meaning, alternatives=(other,))
        assert (measure(flown).followed, measure(flown).judge_path) == (True, 1.0)
    assert measure(episode([[0, 0], [1, 0], [2, 0]], layout=layout, meaning=past[1])).followed is False


def test_the_judge_knows_where_the_drone_looked():
    for turned, followed in ((math.pi / 2, True), (0.0, False)):
        yaws = [0.0, 0.0, turned]
        poses = [[x, 0.0, 0.7, 0.0, 0.0, yaw] for x, yaw in zip([0.0, 2.0, 2.0], yaws, strict=True)]
        flown = episode([[0, 0], [2, 0], [2, 0]], layout=BARREL, meaning=(Clause("look", 0),), poses=poses)
        assert measure(flown).followed is followed


@pytest.mark.parametrize("meaning", [None, ()])
def test_without_a_meaning_there_is_no_judge(meaning):
    found = measure(episode([[0, 0], [2, 0]], layout=BARREL, meaning=meaning))
    assert (found.clauses, found.followed, found.judge_path, found.judge_goal) == (None, None, None, None)


def test_goals_believed_in_are_compared_with_the_demonstrations_end():
    goals = np.array([[2.0, 0.3, 0.25], [9.0, 9.0, 0.9], [1.6, 0.3, 0.0]])
    found = measure(episode([[0, 0], [1, 0], [2, 0]], goals=goals))
    assert (found.first_goal_error, found.last_goal_error, found.first_unobserved) == (0.3, 0.5, 0.25)


def test_what_is_ahead_may_be_hidden():
    behind = measure(episode([[0, 0], [2, 0]], start=(0.0, 0.0, 3.0)))
    assert (behind.goal_ahead, behind.goal_in_sight) == (False, False)
    hidden = measure(episode([[0, 0], [2, 0]], layout=Layout((Placement("Barrel", 1.5, 0.0),))))
    assert (hidden.goal_ahead, hidden.goal_in_sight) == (True, False)


def test_a_line_read_again_has_the_same_metrics(rng):
    path = np.cumsum(rng.normal(0, 0.1, (12, 2)), axis=0).round(4)
    flown = episode(path.tolist(), layout=BARREL, meaning=(REACH,), goals=rng.uniform(0, 1, (3, 3)).round(4))
    metrics = measure(flown).to_json()
    line = episode_line(flown, metrics)
    assert json.loads(line)["metrics"] == metrics
    assert measure(parse_episode(line, "here")).to_json() == metrics


def test_numbers_have_six_decimals(rng):
    path = np.cumsum(rng.normal(0, 0.1, (12, 2)), axis=0)
    for value in measure(episode(path.tolist(), layout=BARREL, meaning=(REACH,))).to_json().values():
        if isinstance(value, float):
            assert value == round(value, 6)
