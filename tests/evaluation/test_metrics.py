"""EMD against scipy's linear program and hand-made cases."""

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial.distance import cdist

from wordwing.evaluation.metrics import emd, evenly, final_distance


def emd_by_linear_programming(a: np.ndarray, b: np.ndarray) -> float:
    """Earth mover's distance between uniform masses on points [A, 2] and [B, 2], as a transport problem."""
    n, m = len(a), len(b)
    rows = np.kron(np.eye(n), np.ones(m))
    columns = np.kron(np.ones(n), np.eye(m))
    masses = np.concatenate([np.full(n, 1 / n), np.full(m, 1 / m)])
    return linprog(cdist(a, b).ravel(), A_eq=np.vstack([rows, columns]), b_eq=masses).fun


def random_path(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-1, 1, 2) + np.cumsum(rng.normal(0, 0.1, (rng.integers(2, 12), 2)), axis=0)


def test_emd_agrees_with_a_linear_program(rng):
    for _ in range(20):
        a, b = random_path(rng), random_path(rng)
        expected = emd_by_linear_programming(evenly(a, 0.1), evenly(b, 0.1))
        assert emd(a, b, spacing=0.1) == pytest.approx(expected, abs=1e-6)


def test_emd_of_two_parallel_lines_is_their_distance():
    assert emd([[0, 0], [1, 0]], [[0, 0.3], [1, 0.3]]) == pytest.approx(0.3, abs=1e-9)


def test_emd_of_a_point_to_a_line_is_the_mean_distance():
    line = evenly([[0, 0], [2, 0]])
    assert emd([[0.0, 0.0]], [[0, 0], [2, 0]]) == pytest.approx(line[:, 0].mean())


def test_emd_of_a_path_to_itself_is_zero(rng):
    path = random_path(rng)
    assert emd(path, path) == pytest.approx(0.0, abs=1e-9)


def test_even_points_keep_both_ends_and_have_the_stated_number(rng):
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


@pytest.mark.parametrize("path", [[], [[0.0, np.nan], [1.0, 1.0]], [[np.inf, 0.0]]])
def test_an_empty_or_broken_path_is_refused(path):
    with pytest.raises(ValueError, match="a path"):
        emd(path, [[0, 0], [1, 1]])


def test_final_distance_is_between_the_ends():
    assert final_distance([[9, 9], [3, 0]], [[0, 0], [0, 4]]) == pytest.approx(5.0)
