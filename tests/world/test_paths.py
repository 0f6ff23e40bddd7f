"""Polylines by hand."""

import numpy as np
import pytest

from wordwing.world.paths import line_distance, lines_of, path_length, resample


def test_path_length_by_hand():
    assert path_length(np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 5.0]])) == 6.0
    assert path_length(np.array([[1.0, 1.0]])) == 0.0


CORNER = np.array([[0.0, 0.0], [0.3, 0.0], [0.3, 0.4]])


def test_resampling_by_hand():
    expected = [[0, 0], [0.1, 0], [0.2, 0], [0.3, 0], [0.3, 0.1], [0.3, 0.2], [0.3, 0.3], [0.3, 0.4]]
    assert resample(CORNER, 0.1) == pytest.approx(np.array(expected))
    # 0.7 m in steps of about 0.3 m are two of 0.35 m.
    assert resample(CORNER, 0.3) == pytest.approx(np.array([[0, 0], [0.3, 0.05], [0.3, 0.4]]))
    assert resample(CORNER, 9.0) == pytest.approx(CORNER[[0, 2]])


def test_resampling_takes_repeated_points_and_single_ones():
    assert resample(np.repeat(CORNER, 3, axis=0), 0.1) == pytest.approx(resample(CORNER, 0.1))
    assert resample(CORNER[:1], 0.1) == pytest.approx(CORNER[:1])
    assert resample(CORNER[[1, 1]], 0.1) == pytest.approx(CORNER[[1]])


def test_the_distance_from_lines_is_that_of_their_nearest_point(rng):
    lines = rng.uniform(-2, 2, (6, 2, 2))
    lines[0, 1] = lines[0, 0]  # a turn on the spot
    points = rng.uniform(-3, 3, (50, 2))
    share = np.linspace(0, 1, 101)[:, None, None]
    on_lines = (lines[:, 0] * (1 - share) + lines[:, 1] * share).reshape(-1, 2)
    expected = np.linalg.norm(points[:, None] - on_lines, axis=-1).min(axis=1)
    assert line_distance(points, lines) == pytest.approx(expected, abs=0.03)
    assert np.all(line_distance(points, lines) <= expected + 1e-12)
    assert np.all(line_distance(points, lines[:0]) == np.inf)
    assert line_distance(points[:0], lines).shape == (0,)


def test_the_lines_of_a_path_are_its_stretches():
    assert lines_of(CORNER).tolist() == [[[0.0, 0.0], [0.3, 0.0]], [[0.3, 0.0], [0.3, 0.4]]]
    assert lines_of(CORNER[:1]).tolist() == [[[0.0, 0.0], [0.0, 0.0]]]
