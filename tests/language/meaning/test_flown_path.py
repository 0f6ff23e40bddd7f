"""What the judge knows about a path, against geometry done by hand and loops over all sections."""

import cmath
import math

import numpy as np
import pytest

from wordwing.language.meaning.flown_path import MOST, SPACING, STILL, Track, falling, least, mean, wrapped
from wordwing.world.layout import Layout, Placement

EMPTY = Layout(())
BARRELS = Layout((Placement("Barrel", 0.0, 1.0), Placement("Barrel", 2.0, 0.0)))
"""Their footprint is 0.24 m."""


def ring(radius: float, turns: float) -> np.ndarray:
    """Counter-clockwise around the origin from (radius, 0)."""
    angles = np.linspace(0, 2 * math.pi * turns, 400)
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def test_angles_are_wrapped_as_complex_numbers_wrap_them(rng):
    angles = rng.uniform(-20, 20, 200)
    expected = [cmath.phase(cmath.exp(1j * angle)) for angle in angles]
    assert wrapped(angles) == pytest.approx(expected)
    assert wrapped(math.pi) == -math.pi


def test_points_are_even_and_keep_both_ends():
    track = Track([(0, 0), (0.3, 0), (0.3, 1.3)], 0.0, EMPTY)
    assert len(track) == round(1.6 / SPACING) + 1
    assert track.spacing == pytest.approx(1.6 / 20)
    assert track.points[[0, -1]].tolist() == [[0, 0], [0.3, 1.3]]
    assert track.passed == pytest.approx(np.linspace(0, 1.6, 21))
    assert track.length[3, 7] == pytest.approx(4 * 0.08)


def test_a_long_path_has_no_more_points_than_the_most():
    track = Track([(0, 0), (40, 0)], 0.0, EMPTY)
    assert len(track) == MOST + 1
    assert track.spacing == pytest.approx(0.5)


@pytest.mark.parametrize("path", [[(1, 2)], [(1, 2)] * 5, [(1, 2), (1 + STILL / 2, 2)], [(0, 0), (1e-200, 0)]])
def test_a_path_that_leads_nowhere_is_one_point_that_looks_where_it_did(path):
    track = Track(path, 0.7, BARRELS)
    assert track.points == pytest.approx(np.array(path[:1], float))
    assert (track.arrive.tolist(), track.depart.tolist()) == ([0.7], [0.7])
    assert track.length.tolist() == [[0.0]]
    assert track.polar.shape == (2, 1)


def test_headings_before_and_after_a_corner_are_those_of_its_two_sides():
    track = Track([(-0.8, 0), (0, 0), (0, 0.8)], -1.0, EMPTY)
    corner = 10
    assert track.points[corner] == pytest.approx([0, 0], abs=1e-9)
    assert (track.arrive[corner], track.depart[corner]) == pytest.approx((0, math.pi / 2))
    assert (track.arrive[0], track.depart[0]) == pytest.approx((-1.0, 0))
    assert (track.arrive[-1], track.depart[-1]) == pytest.approx((math.pi / 2, math.pi / 2))


def test_turns_are_counted_beyond_a_full_one_left_positive():
    left, right = Track(ring(0.5, 1.5), 0.0, EMPTY), Track(ring(0.5, 1.5) * (1, -1), 0.0, EMPTY)
    # Headings are taken over 0.2 m, so a chord's worth of turn is lost at each end.
    assert left.turned[0, -1] == pytest.approx(3 * math.pi, abs=0.5)
    assert right.turned == pytest.approx(-left.turned)


def test_flights_around_a_landmark_count_full_turns_left_positive():
    layout = Layout((Placement("Barrel", 0, 0),))
    track = Track(ring(0.6, 1.5), 0.0, layout)
    assert track.polar[0, -1] - track.polar[0, 0] == pytest.approx(3 * math.pi, abs=1e-6)
    assert track.gaps[0] == pytest.approx(np.full(len(track), 0.6 - 0.24), abs=2e-3)
    back = Track(ring(0.6, 1.5)[::-1], 0.0, layout)
    assert back.polar[0, -1] - back.polar[0, 0] == pytest.approx(-3 * math.pi, abs=1e-6)


def test_distances_and_directions_to_landmarks_and_fences():
    track = Track([(0, 0), (0.8, 0)], 0.0, BARRELS)
    assert track.gap(0)[0] == pytest.approx(1 - 0.24)
    assert track.bearing(0)[0] == pytest.approx(math.pi / 2)
    assert (track.gap(1)[-1], track.bearing(1)[-1]) == pytest.approx((1.2 - 0.24, 0))
    fences = {"red": (1.55, 0), "white": (2.35, -math.pi / 2), "blue": (3.15, math.pi), "yellow": (2.35, math.pi / 2)}
    for colour, (gap, bearing) in fences.items():
        assert track.gap(colour)[-1] == pytest.approx(gap)
        assert abs(wrapped(track.bearing(colour)[-1] - bearing)) == pytest.approx(0, abs=1e-9)


def test_a_fence_is_where_it_is_nearest_and_a_landmark_where_it_stands():
    track = Track([(0, 0), (0.8, 0)], 0.0, BARRELS)
    places = track.places(["red", "yellow", 1], np.array([(0.3, -1.1), (-0.3, 0.1), (0.3, -1.1)]))
    assert places == pytest.approx(np.array([(2.35, -1.1), (-0.3, 2.35), (2.0, 0.0)]))


def test_least_and_mean_agree_with_a_loop_over_all_sections(rng):
    for _ in range(10):
        values = rng.integers(0, 4, 9).astype(float)  # with ties
        lowest, where = least(values)
        average = mean(values)
        for i in range(9):
            for j in range(i, 9):
                part = values[i : j + 1]
                assert lowest[i, j] == part.min()
                assert where[i, j] == i + max(np.flatnonzero(part == part.min()))
                assert average[i, j] == pytest.approx(part.mean())


def test_falling_is_full_then_a_line_then_none():
    assert falling([0, 1, 1.5, 1.75, 2, 9], 1, 2).tolist() == [1, 1, 0.5, 0.25, 0, 0]
    assert falling([-9, -2, -1.5, -1, 0], -2, -1).tolist() == [1, 1, 0.5, 0, 0]
