"""Metrics of paths against scipy's linear program and assignment, a plain loop, and cases done by hand."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment, linprog
from scipy.sparse import eye, kron, vstack
from scipy.spatial.distance import cdist

from wordwing.execution.metrics import (
    dtw,
    emd,
    evenly,
    final_distance,
    ndtw,
    nemd,
    path_distance,
    sdtw,
    semd,
    spl,
    succeeded,
    wilson,
)

LINE = np.array([[0.0, 0.0], [1.0, 0.0]])
POINT = np.array([[0.3, -0.4]])
BROKEN = [[], np.zeros((0, 2)), [[0.0, np.nan], [1.0, 1.0]], [[np.inf, 0.0]], [0.0, 1.0], [[0.0, 1.0, 2.0, 3.0]]]


def emd_by_linear_programming(a: np.ndarray, b: np.ndarray) -> float:
    """Earth mover's distance between uniform masses on points [A, 2] and [B, 2], as a transport problem."""
    n, m = len(a), len(b)
    constraints = vstack([kron(eye(n), np.ones((1, m))), kron(np.ones((1, n)), eye(m))]).tocsr()
    masses = np.concatenate([np.full(n, 1 / n), np.full(m, 1 / m)])
    # The last constraint follows from the others, which rounding must not contradict.
    return linprog(cdist(a, b).ravel(), A_eq=constraints[:-1], b_eq=masses[:-1], method="highs").fun


def dtw_by_loops(a: np.ndarray, b: np.ndarray) -> float:
    table = [[math.inf] * (len(b) + 1) for _ in range(len(a) + 1)]
    table[0][0] = 0.0
    for i, p in enumerate(a, start=1):
        for j, q in enumerate(b, start=1):
            table[i][j] = math.dist(p, q) + min(table[i - 1][j], table[i][j - 1], table[i - 1][j - 1])
    return table[-1][-1]


def aside(path: np.ndarray, y: float) -> np.ndarray:
    return path + np.array([0.0, y])


def random_path(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-1, 1, 2) + np.cumsum(rng.normal(0, 0.1, (rng.integers(2, 12), 2)), axis=0)


def path_of_three_metres(rng: np.random.Generator) -> np.ndarray:
    """30 points of a winding path from the origin, 3 m long."""
    heading = np.cumsum(rng.normal(0, 0.25, 30))
    steps = np.stack([np.cos(heading), np.sin(heading)], axis=1) * 0.1
    return np.concatenate([np.zeros((1, 2)), np.cumsum(steps, axis=0)])


def test_emd_agrees_with_a_linear_program_on_200_pairs(rng):
    for _ in range(200):
        a, b = random_path(rng), random_path(rng)
        expected = emd_by_linear_programming(evenly(a, 0.1), evenly(b, 0.1))
        assert emd(a, b, spacing=0.1) == pytest.approx(expected, abs=1e-6)


def test_emd_of_equally_long_paths_is_the_cheapest_assignment(rng):
    for _ in range(10):
        a, b = path_of_three_metres(rng), path_of_three_metres(rng)
        cost = cdist(evenly(a), evenly(b))
        assert cost.shape == (151, 151)
        assert emd(a, b) == pytest.approx(cost[linear_sum_assignment(cost)].mean(), abs=1e-9)


def test_emd_of_two_parallel_lines_is_their_distance():
    assert emd(LINE, aside(LINE, 0.3)) == pytest.approx(0.3, abs=1e-9)


def test_emd_of_a_point_to_a_line_is_the_mean_distance():
    line = evenly([[0, 0], [2, 0]])
    assert emd([[0.0, 0.0]], [[0, 0], [2, 0]]) == pytest.approx(line[:, 0].mean())
    assert emd([[0, 0], [2, 0]], [[0.0, 0.0]]) == pytest.approx(1.0)
    assert emd([[0.0, 0.0]], [[3.0, 4.0]]) == pytest.approx(5.0)


def test_emd_of_a_path_to_itself_is_zero(rng):
    path = random_path(rng)
    assert emd(path, path) == pytest.approx(0.0, abs=1e-12)
    assert emd(POINT, POINT) == 0.0


def test_even_points_keep_both_ends_and_have_the_stated_number():
    path = np.array([[0.0, 0.0], [0.3, 0.0], [0.3, 0.41]])
    points = evenly(path)
    assert len(points) == round(0.71 / 0.02) + 1
    assert points[0].tolist() == path[0].tolist()
    assert points[-1] == pytest.approx(path[-1])
    gaps = np.hypot(*np.diff(points, axis=0).T)
    assert gaps.max() <= 0.71 / (len(points) - 1) + 1e-9


def test_a_short_path_has_two_points_and_one_of_no_length_has_one():
    assert len(evenly([[0, 0], [0.001, 0]])) == 2
    assert len(evenly([[1, 1], [1, 1], [1, 1]])) == 1
    assert len(evenly([[1, 1]])) == 1


@pytest.mark.parametrize("path", BROKEN)
@pytest.mark.parametrize("metric", [emd, ndtw, dtw, final_distance])
def test_an_empty_or_broken_path_is_refused(metric, path):
    for pair in ((path, LINE), (LINE, path)):
        with pytest.raises(ValueError, match="a path"):
            metric(*pair)


@pytest.mark.parametrize("path", BROKEN)
def test_nothing_is_close_to_an_empty_or_broken_path_or_point(path):
    with pytest.raises(ValueError, match="a path"):
        path_distance(path, [0.0, 0.0])
    with pytest.raises(ValueError, match="a path"):
        path_distance(LINE, [0.0, np.nan])


def test_final_distance_is_between_the_ends():
    assert final_distance([[9, 9], [3, 0]], [[0, 0], [0, 4]]) == pytest.approx(5.0)


def test_success_is_less_than_47_centimetres():
    distances = [0.0, 0.4699999, 0.47, 0.4700001, 9.0]
    expected = [True, True, False, False, False]
    assert [succeeded(distance) for distance in distances] == expected
    assert succeeded(np.array(distances)).tolist() == expected
    assert succeeded(torch.tensor(distances, dtype=torch.float64)).tolist() == expected


@pytest.mark.parametrize(
    ("path", "point", "distance"),
    [
        ([[0, 0], [2, 0]], [1, 0.3], 0.3),  # beside the middle of a line, a metre from any of its points
        ([[0, 0], [2, 0]], [5, 4], 5.0),  # beyond its end
        ([[0, 0], [2, 0], [2, 2], [0, 2]], [0, 1.2], 0.8),  # the last line is nearest
        ([[1, 1]], [4, 5], 5.0),
        ([[1, 1], [1, 1]], [1, 1], 0.0),
    ],
)
def test_the_closest_approach_is_measured_along_the_lines(path, point, distance):
    assert path_distance(path, point) == pytest.approx(distance)


@pytest.mark.parametrize(
    ("success", "flown", "gold", "value"),
    [
        (True, 2.0, 2.0, 1.0),
        (True, 4.0, 2.0, 0.5),
        (True, 1.0, 2.0, 1.0),  # a shorter way is no better
        (False, 2.0, 2.0, 0.0),
        (True, 0.0, 0.0, 1.0),
        (False, 0.0, 0.0, 0.0),
        (True, 0.1, 0.0, 0.0),
        (True, 0.0, 2.0, 1.0),
    ],
)
def test_spl_is_the_share_of_the_flown_way_that_was_needed(success, flown, gold, value):
    assert spl(success, flown, gold) == value


def test_dtw_agrees_with_a_plain_loop(rng):
    sizes = [*rng.integers(1, 40, (60, 2)), (1, 1), (1, 9), (9, 1), (150, 151)]
    for n, m in sizes:
        a, b = np.cumsum(rng.normal(0, 0.1, (n, 2)), axis=0), np.cumsum(rng.normal(0, 0.1, (m, 2)), axis=0)
        assert dtw(a, b) == pytest.approx(dtw_by_loops(a, b), rel=1e-9, abs=1e-9)


def test_dtw_keeps_the_order_of_points():
    there = [[0, 0], [1, 0], [2, 0]]
    assert dtw(there, there) == 0.0
    assert dtw(there, there[::-1]) == pytest.approx(4.0)  # the ends are 2 m apart, and the middle may wait for each


def test_ndtw_of_a_shifted_line_is_one_e_th_per_success_distance():
    assert ndtw(aside(LINE, 0.47), LINE) == pytest.approx(math.exp(-1))
    assert ndtw(aside(LINE, 0.235), LINE) == pytest.approx(math.exp(-0.5))


def test_ndtw_is_normalised_by_the_demonstrations_points():
    # A drone that stays at the start is 0 to 1 m away from 51 points, or 51 points are from it.
    assert ndtw(LINE[:1], LINE) == pytest.approx(math.exp(-0.5 / 0.47))
    assert ndtw(LINE, LINE[:1]) == pytest.approx(math.exp(-51 * 0.5 / 0.47))


def test_ndtw_of_the_same_path_is_one_and_of_the_way_back_is_not(rng):
    path = path_of_three_metres(rng)
    assert ndtw(path, path) == 1.0
    assert ndtw(POINT, POINT) == 1.0
    assert ndtw(path[::-1], path) < 0.5
    assert emd(path[::-1], path) == pytest.approx(0.0, abs=1e-9)


def test_sdtw_is_ndtw_of_successes():
    assert sdtw(True, 0.7) == 0.7
    assert sdtw(False, 0.7) == 0.0


@pytest.mark.parametrize(
    ("flown", "stop", "share", "worth"),
    [(0.5, 2.0, 0.25, 0.75), (0.0, 2.0, 0.0, 1.0), (3.0, 2.0, 1.5, 0.0), (0.0, 0.0, 0.0, 1.0), (0.1, 0.0, None, 0.0)],
)
def test_nemd_compares_with_staying_and_semd_counts_successes(flown, stop, share, worth):
    assert nemd(flown, stop) == share
    assert semd(True, share) == worth
    assert semd(False, share) == 0.0


def test_no_metric_changes_when_everything_is_turned_and_moved(rng):
    for _ in range(5):
        flown, gold = random_path(rng), random_path(rng)
        angle = rng.uniform(-math.pi, math.pi)
        turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        there, demonstrated = (path @ turn.T + [1.3, -0.6] for path in (flown, gold))
        for metric in (emd, ndtw, dtw, final_distance):
            assert metric(there, demonstrated) == pytest.approx(metric(flown, gold), abs=1e-9)
        assert path_distance(there, demonstrated[-1]) == pytest.approx(path_distance(flown, gold[-1]), abs=1e-9)


# Newcombe (1998), Statistics in Medicine 17, table I, method 3.
@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilsons_interval_is_newcombes(hits, total, low, high):
    assert wilson(hits, total) == pytest.approx((low, high), abs=5e-5)


def test_an_interval_ends_where_shares_do_and_says_nothing_of_nothing():
    assert wilson(0, 7)[0] == 0.0
    assert wilson(7, 7)[1] == 1.0
    assert wilson(0, 0) == (0.0, 1.0)
