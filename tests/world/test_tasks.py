"""Tasks: stretches of walks with instructions that name their goal."""

import math

import numpy as np
import pytest

from wordwing.world.layout import Layout, Placement
from wordwing.world.paths import path_length, resample
from wordwing.world.samplers import sample_layout
from wordwing.world.tasks import StartPose, sample_stretches, sample_task_in, sample_tasks
from wordwing.world.walks import WALK_CONFIGS, WalkConfig, sample_walks

STAR = Layout(
    tuple(
        Placement(name, x, y)
        for name, x, y in [
            ("Barrel", 0, 0),
            ("Rock", -1.2, 0),
            ("Stump", 0, 1.2),
            ("Gorilla", 0, -1.2),
            ("Boat", 1.6, 1),
        ]
    )
)


@pytest.mark.parametrize("corpus", ["field", "cage", "house"])
def test_stretches_are_parts_of_walks(corpus):
    rng = np.random.default_rng(8)
    layouts = [sample_layout(corpus, rng) for _ in range(8)]
    walks = sample_walks(layouts, np.random.default_rng(1), WALK_CONFIGS[corpus])
    stretches = sample_stretches(layouts, np.random.default_rng(1), WALK_CONFIGS[corpus], length=(1.0, 3.0))
    for layout, walk, stretch in zip(layouts, walks, stretches, strict=True):
        assert (walk is None) == (stretch is None)
        if stretch is None:
            continue
        path, start_yaw = stretch
        steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
        assert 0.99 <= steps.sum() <= 3.0 + 1e-9
        # Where the walk turns, the straight line between two points 2 cm apart along it is shorter.
        assert np.median(steps) == pytest.approx(0.02, rel=0.02)
        assert steps.max() <= 0.0204
        whole = resample(walk.points, 0.001)
        assert max(np.linalg.norm(whole - point, axis=1).min() for point in path) < 0.001
        reach = path[np.searchsorted(steps.cumsum(), 0.2) + 1] - path[0]
        assert abs(math.remainder(start_yaw - math.atan2(reach[1], reach[0]), math.tau)) < 0.15
        assert not layout.inside(path).any()


def test_stretch_lengths_fill_their_range(rng):
    stretches = sample_stretches([STAR] * 200, rng, WalkConfig(visits=4, linger=0), length=(0.5, 1.5))
    lengths = [path_length(stretch.path) for stretch in stretches]
    assert 0.48 < min(lengths) < 0.6
    assert 1.4 < max(lengths) <= 1.5 + 1e-9


@pytest.mark.parametrize("count", [0, 1, 2])
def test_where_no_walk_fits_the_path_leads_straight_to_a_landmark_or_to_the_middle(rng, count):
    layout = Layout((Placement("Barrel", 1.0, 1.0), Placement("Boat", -1.0, 0.5))[:count])
    for _ in range(20):
        task = sample_task_in(layout, "field", rng)
        assert task.gold_path[0].tolist() == list(task.start_xy)
        assert np.abs(task.gold_path).max() < 2.35
        goals = [(mark.x, mark.y) for mark in layout.landmarks] or [(0.0, 0.0)]
        ahead = [goal for goal in goals if math.dist(goal, task.gold_path[-1]) < 1.0]
        assert ahead
        off = [np.cross(np.subtract(goal, task.start_xy), point - task.start_xy) for goal in ahead[:1]
               for point in task.gold_path] if count < 2 else [0.0]  # fmt: skip
        assert np.abs(off).max() < 1e-9  # on the line to it
        for mark in layout.landmarks:
            assert math.dist(task.start_xy, (mark.x, mark.y)) > mark.kind.footprint


def test_a_start_that_is_given_is_where_the_path_begins(rng):
    task = sample_task_in(STAR, "field", rng, StartPose(-0.4, 0.3, 1.25))
    assert (task.start_xy, task.start_yaw) == ((-0.4, 0.3), 1.25)
    assert task.gold_path[0].tolist() == [-0.4, 0.3]


def test_a_walk_shorter_than_asked_gives_no_stretch(rng):
    assert sample_stretches([STAR], rng, WalkConfig(visits=2, linger=0), length=(20.0, 30.0)) == [None]


@pytest.mark.parametrize("corpus", ["field", "cage", "house"])
def test_a_tasks_instruction_names_the_landmark_nearest_to_the_end_of_its_path(corpus, rng):
    for task in sample_tasks(corpus, 4, rng):
        distances = [math.dist(task.gold_path[-1], (mark.x, mark.y)) for mark in task.layout.landmarks]
        nearest = task.layout.landmarks[int(np.argmin(distances))]
        assert task.instruction.removeprefix("fly to the ") in nearest.kind.nouns
        assert task.start_xy == tuple(task.gold_path[0])


def test_no_task_starts_or_ends_inside_a_landmark(rng):
    for corpus in ("field", "cage", "house"):
        for task in sample_tasks(corpus, 10, rng):
            assert not task.layout.inside(task.gold_path[[0, -1]]).any()


def test_equal_seeds_give_equal_tasks():
    first, again = (sample_tasks("cage", 2, np.random.default_rng(5)) for _ in range(2))
    for a, b in zip(first, again, strict=True):
        assert a.layout == b.layout
        assert a.instruction == b.instruction
        assert np.array_equal(a.gold_path, b.gold_path)
