"""Polylines by hand."""

import numpy as np
import pytest

from wordwing.world.paths import path_length, resample


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
