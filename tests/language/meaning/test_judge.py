"""Whole meanings: order, cuts against brute force, and what cannot be judged."""

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest

from wordwing.language.meaning.clauses import Clause
from wordwing.language.meaning.flown_path import Track
from wordwing.language.meaning.judge import Judgement, judge, judge_track
from wordwing.language.meaning.scores import score
from wordwing.world.layout import Layout, Placement

ROW = Layout((Placement("Barrel", -1.0, 0.5), Placement("Barrel", 1.0, -0.5)))
"""Two barrels along x: the first on the left, the second on the right of y = 0."""
LEFT_OF_FIRST = Clause("pass", 0, side="left")
RIGHT_OF_SECOND = Clause("pass", 1, side="right")
THROUGH = [(-1.8, 0.0), (1.8, 0.0)]


def test_two_things_done_in_order_are_full_marks():
    assert judge([LEFT_OF_FIRST, RIGHT_OF_SECOND], THROUGH, 0.0, ROW) == Judgement((1.0, 1.0), goal=1.0)


def test_the_same_two_things_in_the_other_order_are_not():
    swapped = judge([RIGHT_OF_SECOND, LEFT_OF_FIRST], THROUGH, 0.0, ROW)
    assert swapped.score == 0
    assert swapped.goal == 0
    # Flown the other way, the barrels come in the other order, and on the other sides.
    back = [Clause("pass", 1, side="left"), Clause("pass", 0, side="right")]
    assert judge(back, THROUGH[::-1], math.pi, ROW).score == 1
    assert judge(back[::-1], THROUGH[::-1], math.pi, ROW).score == 0


def test_half_of_it_done_is_half_the_path_and_not_the_instruction():
    halfway = judge([LEFT_OF_FIRST, RIGHT_OF_SECOND], [(-2.0, 0.0), (-0.3, 0.0)], 0.0, ROW)
    assert halfway.clauses == (1.0, 0.0)
    assert (halfway.path, halfway.score, halfway.goal) == (0.5, 0.0, 0.0)


def test_the_goal_is_the_last_clause_whatever_came_before():
    meaning = [Clause("pass", 0, side="right"), Clause("reach_fence", "red")]
    judged = judge(meaning, [(-2.0, 0.0), (2.0, 0.0)], 0.0, ROW)
    assert judged.goal == 1
    assert judged.clauses == (0.0, 1.0)


def test_a_turn_to_begin_with_is_measured_from_the_starts_heading():
    turn_and_go = [Clause("turn", side="left", amount=math.pi / 2), Clause("straight")]
    path = [(0.0, 0.0), (0.0, 1.5)]
    assert judge(turn_and_go, path, 0.0, ROW).score == 1
    assert judge(turn_and_go, path, math.pi, ROW).score == 0
    assert judge(turn_and_go, path, math.pi / 2, ROW).score == 0


def test_straight_is_the_starts_heading_only_if_it_comes_first():
    path = [(0.0, 0.0), (0.0, 1.5)]
    assert judge([Clause("straight")], path, math.pi / 2, ROW).score == 1
    assert judge([Clause("straight")], path, 0.0, ROW).score == 0
    assert judge([Clause("turn_to", "yellow"), Clause("straight")], path, 0.0, ROW).score == 1


def test_a_turn_in_the_middle_is_measured_from_the_way_flown():
    meaning = [Clause("forward", amount=1.0), Clause("turn", side="right", amount=math.pi / 2), Clause("straight")]
    assert judge(meaning, [(-1, 1), (0, 1), (0, 0)], 0.0, ROW).score == 1
    assert judge(meaning, [(-1, 0), (0, 0), (0, 1)], 0.0, ROW).score == 0


def test_going_on_after_the_end_costs_the_last_clause():
    reach = [Clause("reach", 1)]
    assert judge(reach, [(-2.0, -0.5), (0.4, -0.5)], 0.0, ROW).score == 1
    assert judge(reach, [(-2.0, -0.5), (0.4, -0.5), (0.4, 1.5)], 0.0, ROW).score == 0


def best_sum_by_brute_force(scores: list[np.ndarray]) -> float:
    """The most that the scores of consecutive sections can add up to, over all ways to cut."""
    last = len(scores[0]) - 1
    totals = []
    for ends in combinations_with_replacement(range(last + 1), len(scores) - 1):
        bounds = [0, *ends, last]
        totals.append(sum(entry[bounds[k], bounds[k + 1]] for k, entry in enumerate(scores)))
    return max(totals)


@pytest.mark.parametrize("clauses", [1, 2, 3, 4])
def test_no_way_to_cut_is_better_for_random_scores(rng, clauses):
    for _ in range(30):
        size = int(rng.integers(1, 8))
        scores = [rng.random((size, size)).round(1) for _ in range(clauses)]
        judged = judge_track(scores)
        assert sum(judged.clauses) == pytest.approx(best_sum_by_brute_force(scores))
        assert judged.goal == scores[-1][:, -1].max()


def test_only_the_first_row_and_the_last_column_of_the_outer_clauses_matter(rng):
    for clauses in (2, 3, 4):
        scores = [rng.random((6, 6)) for _ in range(clauses)]
        assert judge_track([scores[0][:1], *scores[1:-1], scores[-1][:, -1:]]) == judge_track(scores)
    assert judge_track([scores[0][:, -1:]]) == judge_track(scores[:1])


def test_no_way_to_cut_is_better_for_short_flights(rng):
    meaning = [LEFT_OF_FIRST, Clause("curve", side="left"), Clause("toward", 1), Clause("reach", 1)]
    for _ in range(20):
        path = rng.uniform(-1, 1, 2) + np.cumsum(rng.normal(0, 0.25, (4, 2)), axis=0)
        track = Track(path, 0.0, ROW)
        scores = [score(clause, track, first=k == 0) for k, clause in enumerate(meaning)]
        judged = judge(meaning, path, 0.0, ROW)
        assert sum(judged.clauses) == pytest.approx(best_sum_by_brute_force(scores))


def test_sections_never_run_backwards():
    # The second clause would be best before the first.
    forwards_only = [np.zeros((3, 3)), np.zeros((3, 3))]
    forwards_only[0][0, 2] = forwards_only[1][0, 1] = 1.0
    forwards_only[1][2, 1] = forwards_only[1][2, 0] = 1.0
    assert judge_track(forwards_only).clauses == (1.0, 0.0)


def test_a_score_is_the_geometric_and_a_path_the_plain_mean():
    judged = Judgement((1.0, 0.25), goal=0.25)
    assert (judged.path, judged.score) == (0.625, 0.5)


def test_a_drone_that_stays_can_have_reached_what_it_stands_at():
    here = [(0.6, -0.5)]
    assert judge([Clause("reach", 1)], here, 0.0, ROW).score == 1
    assert judge([Clause("face", 1)], here, 0.0, ROW).score == 1
    assert judge([Clause("face", 1)], here, math.pi, ROW).score == 0
    for moving in (LEFT_OF_FIRST, Clause("straight"), Clause("toward", 1), Clause("turn_around")):
        assert judge([moving], here, 0.0, ROW).score == 0


def test_drifting_while_hovering_is_no_way_to_turn_around():
    assert judge([Clause("turn_around")], [(0, 0), (-0.01, 0)], 0.0, ROW).score == 0


@pytest.mark.parametrize("path", [[], np.empty((0, 2)), [(0, math.nan)], [(0, 0), (math.inf, 0)]])
def test_an_empty_path_and_one_that_is_not_finite_are_refused(path):
    with pytest.raises(ValueError, match=r"at least one point|finite positions"):
        judge([Clause("straight")], path, 0.0, ROW)


def test_a_path_that_is_not_flat_and_a_heading_that_is_not_finite_are_refused():
    with pytest.raises(ValueError, match=r"\[P, 2\]"):
        judge([Clause("straight")], np.zeros((3, 3)), 0.0, ROW)
    with pytest.raises(ValueError, match="finite heading"):
        judge([Clause("straight")], THROUGH, math.nan, ROW)


def test_an_empty_meaning_is_refused():
    with pytest.raises(ValueError, match="at least one clause"):
        judge([], THROUGH, 0.0, ROW)


def test_random_garbage_scores_between_none_and_full(rng):
    meaning = [
        Clause("turn_to", "blue"),
        LEFT_OF_FIRST,
        Clause("between", 0, 1),
        Clause("reach_side", 1, side="behind"),
    ]
    for _ in range(50):
        path = rng.normal(0, 10 ** rng.uniform(-3, 1), (int(rng.integers(1, 15)), 2))
        judged = judge(meaning[: int(rng.integers(1, 5))], path, rng.uniform(-9, 9), ROW)
        for value in (*judged.clauses, judged.goal, judged.path, judged.score):
            assert 0 <= value <= 1


def test_a_layout_without_landmarks_can_be_flown_in():
    assert judge([Clause("straight"), Clause("reach_fence", "red")], [(0, 0), (2, 0)], 0.0, Layout(())).score == 1
