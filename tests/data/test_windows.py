import math

import numpy as np
import pytest
from scipy import stats

from house_rooms import random_furniture, random_walk
from wordwing.data.furniture import furnish
from wordwing.data.scenes import END_REACH, MARGIN, START_REACH, Scene, about, place_window
from wordwing.data.schema import Window
from wordwing.frames import ARENA_HALF
from wordwing.world.layout import Placement

NOTHING = np.zeros((0, 3))
SUCCESS = 0.47
"""Radius around the goal in which a stop counts as there, metres."""


def inside(window: Window, x: float, y: float) -> float:
    """How far a point is from the window's nearest edge, by complex numbers; negative outside."""
    turned = complex(x - window.x, y - window.y) / complex(math.cos(window.yaw), math.sin(window.yaw))
    return ARENA_HALF - max(abs(turned.real), abs(turned.imag))


def straight(length: float, angle: float = 0.0) -> np.ndarray:
    return np.array([[0.0, 0.0], [length * math.cos(angle), length * math.sin(angle)]])


def test_a_window_holds_its_path_with_a_margin(rng):
    for _ in range(300):
        path = np.array(random_walk(rng, int(rng.integers(1, 20))))
        window = place_window(path, rng.uniform(-2, 2, (5, 3)) * (1, 1, 0) + (0, 0, 0.3), rng)
        if window is None:
            assert np.ptp(path, axis=0).max() > 4.2
        else:
            assert min(inside(window, x, y) for x, y in path) >= MARGIN


def test_furniture_that_some_window_can_hold_is_held(rng):
    for _ in range(300):
        # Whatever lies in a hidden window fits a window. Not quite to its edge, for directions are tried 1.4° apart.
        hidden = Window(*rng.uniform(-5, 5, 2).tolist(), rng.uniform(-4, 4))
        turn = np.array([[math.cos(hidden.yaw), math.sin(hidden.yaw)], [-math.sin(hidden.yaw), math.cos(hidden.yaw)]])
        path = rng.uniform(-2.05, 2.05, (4, 2)) @ turn + (hidden.x, hidden.y)
        keep = np.column_stack([rng.uniform(-1.8, 1.8, (6, 2)) @ turn + (hidden.x, hidden.y), np.full(6, 0.45)])
        window = place_window(path, keep, rng)
        assert window is not None
        assert min(inside(window, x, y) for x, y in path) >= MARGIN
        assert min(inside(window, x, y) for x, y, _ in keep) >= 0.45


def test_where_not_everything_fits_what_comes_first_is_held(rng):
    east, west = (3.9, 0.0, 0.4), (-3.9, 0.0, 0.4)
    for _ in range(50):
        for first, second in ((east, west), (west, east)):
            window = place_window(np.array([[0.0, 0.0]]), np.array([first, second]), rng)
            assert window is not None
            assert inside(window, *first[:2]) >= 0.4
            assert inside(window, *second[:2]) < 0.4


def test_a_path_longer_than_the_arena_fits_across_and_one_longer_still_does_not(rng):
    across = (2 * ARENA_HALF - 2 * MARGIN) * math.sqrt(2)  # 6.08 m
    for angle in rng.uniform(-math.pi, math.pi, 50):
        path = straight(5.9, angle)
        window = place_window(path, NOTHING, rng)
        assert window is not None
        assert min(inside(window, x, y) for x, y in path) >= MARGIN
        assert place_window(straight(across + 0.01, angle), NOTHING, rng) is None


def test_windows_lie_evenly_over_all_offsets_and_directions(rng):
    point = np.array([[3.0, -7.0]])
    windows = [place_window(point, NOTHING, rng) for _ in range(3000)]
    places = np.concatenate([window.to_arena(point) for window in windows])
    limit = ARENA_HALF - MARGIN
    for axis in places.T:
        assert stats.kstest(axis, stats.uniform(-limit, 2 * limit).cdf).pvalue > 1e-3
    assert abs(stats.spearmanr(*places.T).statistic) < 0.06
    yaws = np.array([window.yaw for window in windows])
    assert stats.kstest(yaws, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > 1e-3


def test_a_straight_leg_lies_evenly_where_its_length_leaves_room(rng):
    # Along each axis the middle of the leg has what its extent leaves of 4.3 m, evenly around the centre.
    path = straight(3.0)
    along = []
    for _ in range(2000):
        window = place_window(path, NOTHING, rng)
        (a, b), (c, d) = window.to_arena(path)
        for start, end in ((a, c), (b, d)):
            room = 2 * (ARENA_HALF - MARGIN) - abs(end - start)
            along.append((start + end) / 2 / room + 0.5)
    assert stats.kstest(along, "uniform").pvalue > 1e-3


def test_the_window_does_not_give_the_goal_away(rng):
    hits = legs = 0
    while legs < 1500:
        scene, _ = furnish(random_furniture(rng, 10, size=5.0))
        for _ in range(25):
            path = np.array(random_walk(rng, int(rng.integers(2, 16)), tuple((rng.integers(-6, 7, 2) * 0.25).tolist())))
            window = place_window(path, about(path, scene), rng)
            if window is not None:
                start, goal = window.to_arena(path[[0, -1]])
                hits += np.hypot(*(goal + start)) < SUCCESS
                legs += 1
    assert hits / legs < 0.05


def test_a_leg_is_about_the_furniture_near_its_ends_nearest_to_its_goal_first():
    scene = Scene(
        (
            Placement("Sofa", 0.0, START_REACH - 0.01),
            Placement("Bed", 0.0, -START_REACH - 0.01),
            Placement("Desk", 4.0, END_REACH - 0.01),
            Placement("Toilet", 4.0 + END_REACH + 0.01, 0.0),
            Placement("Fridge", 4.5, 0.0),
            Placement("Shelf", 2.0, 0.0),
        )
    )
    path = np.array([[0.0, 0.0], [2.0, 0.5], [4.0, 0.0]])
    fridge, desk, sofa = about(path, scene)
    assert fridge == pytest.approx([4.5, 0.0, 0.3])
    assert desk == pytest.approx([4.0, END_REACH - 0.01, 0.4])
    assert sofa == pytest.approx([0.0, START_REACH - 0.01, 0.48])
    assert about(path, Scene(())).shape == (0, 3)


def test_windows_are_what_a_file_holds_and_the_same_for_the_same_seed():
    keep = np.array([[1.0, 1.0, 0.3]])
    first, again, other = (place_window(straight(2.0), keep, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert first == again != other
    assert first == Window(round(first.x, 4), round(first.y, 4), round(first.yaw, 5))
