"""Walks by their rules, and against a plain walker that takes one step at a time."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from wordwing.world.layout import Layout, Placement
from wordwing.world.paths import path_length, resample
from wordwing.world.samplers import sample_layout
from wordwing.world.walks import WALK_CONFIGS, WalkConfig, sample_walks

UNIT = 0.0047
CONFIGS = {"field": WALK_CONFIGS["field"], "cage": WALK_CONFIGS["cage"], "house": WALK_CONFIGS["house"]}


STAR = Layout(
    (
        Placement("Barrel", 0.0, 0.0),
        Placement("Apple", 0.9, 0.0),
        Placement("Rock", -1.2, 0.0),
        Placement("Stump", 0.0, 1.2),
        Placement("Gorilla", 0.0, -1.2),
        Placement("Pumpkin", 1.4, 1.0),
        Placement("Anvil", -1.9, -1.9),
    )
)
"""Around the Barrel, four landmarks qualify before the Anvil; the Apple is too near to be next."""


@pytest.fixture(scope="module", params=CONFIGS)
def walked(request):
    """A corpus's rules, layouts of it, and a walk in each where there is one."""
    rng = np.random.default_rng(4)
    layouts = [sample_layout(request.param, rng) for _ in range(30)]
    config = CONFIGS[request.param]
    walks = sample_walks(layouts, rng, config)
    return config, [(layout, walk) for layout, walk in zip(layouts, walks, strict=True) if walk is not None]


def on_the_floor(layout: Layout) -> int:
    return sum(entry.elevation == 0 for entry in layout.landmarks)


def circle(layout: Layout, index: int) -> tuple[np.ndarray, float]:
    entry = layout.landmarks[index]
    return np.array([entry.x, entry.y]), entry.keep_out


def arrival(config: WalkConfig) -> float:
    """Greatest distance from a circle of the last point noted before a target on it was reached."""
    return config.reached + config.spacing + config.step * (1 + config.noise)


def test_the_rules_are_the_authors_in_metres():
    field, cage = WALK_CONFIGS["field"], WALK_CONFIGS["cage"]
    assert (field.step, field.noise, field.visits) == pytest.approx((0.0188, 1.0, 5))
    assert (cage.step, cage.noise, cage.visits) == pytest.approx((0.0188, 1.5, 4))
    assert (field.spacing, field.reached, field.min_leg) == pytest.approx((0.188, 0.094, 0.94))
    assert (field.edge_margin, cage.edge_margin) == pytest.approx((0.0, 0.752))
    assert (field.max_steps, field.closest, field.linger) == (500, 4, 4)


def test_nearly_every_layout_has_a_walk(walked):
    _, pairs = walked
    assert len(pairs) >= 24


def test_walks_stay_off_the_fences(walked):
    config, pairs = walked
    for _, walk in pairs:
        assert np.abs(walk.points).max() <= 2.35 - config.edge_margin


def test_walks_and_the_lines_between_their_points_stay_out_of_all_circles(walked):
    _, pairs = walked
    for layout, walk in pairs:
        path = resample(walk.points, 0.005)
        for entry in layout.landmarks:
            assert np.hypot(path[:, 0] - entry.x, path[:, 1] - entry.y).min() >= entry.keep_out - 0.02
        assert not layout.inside(path).any()


def test_lines_between_points_far_apart_stay_out_of_all_circles_too(rng):
    config = WalkConfig(spacing=0.4, visits=3, linger=0)
    for walk in sample_walks([STAR] * 50, rng, config):
        path = resample(walk.points, 0.005)
        for entry in STAR.landmarks:
            assert np.hypot(path[:, 0] - entry.x, path[:, 1] - entry.y).min() >= entry.keep_out - 0.02


def test_points_are_a_spacing_apart_along_the_walk(walked):
    config, pairs = walked
    # A point is noted at the first step beyond a multiple of the spacing, and noise makes the way
    # longer than the straight line; a push can double a step.
    longest = config.spacing + 2 * config.step * (1 + config.noise)
    for _, walk in pairs:
        lines = np.linalg.norm(np.diff(walk.points, axis=0), axis=1)
        assert lines.max() <= longest
        assert 0.75 * config.spacing < lines.mean() <= config.spacing


def test_walks_do_not_come_near_themselves(walked):
    config, pairs = walked
    for _, walk in pairs:
        for i, point in enumerate(walk.points):
            for earlier in walk.points[: max(i - 2, 0)]:
                assert math.dist(point, earlier) > config.spacing


def test_walks_visit_the_number_of_landmarks_in_the_rules_and_none_twice(walked):
    config, pairs = walked
    for layout, walk in pairs:
        assert len(walk.visited) == min(config.visits, on_the_floor(layout) - 1)
        assert len(set(walk.visited)) == len(walk.visited)
        assert all(layout.landmarks[index].elevation == 0 for index in walk.visited)


def test_walks_begin_on_the_first_circle_and_end_at_the_last(walked):
    config, pairs = walked
    for layout, walk in pairs:
        centre, radius = circle(layout, walk.visited[0])
        assert math.dist(walk.points[0], centre) == pytest.approx(radius)
        centre, radius = circle(layout, walk.visited[-1])
        assert math.dist(walk.points[-1], centre) < radius + arrival(config)


def test_walks_linger_at_every_landmark_after_the_first(walked):
    config, pairs = walked
    for layout, walk in pairs:
        for index in walk.visited[1:]:
            centre, radius = circle(layout, index)
            near = [math.dist(point, centre) < radius + config.spacing for point in walk.points]
            assert sum(near) >= config.linger


def test_walks_come_to_their_landmarks_in_order(walked):
    config, pairs = walked
    for layout, walk in pairs:
        at = 0
        for index in walk.visited:
            centre, radius = circle(layout, index)
            close = np.linalg.norm(walk.points[at:] - centre, axis=1) < radius + arrival(config)
            assert close.any()
            at += int(close.argmax())


def test_equal_seeds_give_equal_walks_and_others_do_not():
    layouts = [sample_layout("field", np.random.default_rng(9))] * 2
    first, again, other = (
        sample_walks(layouts, np.random.default_rng(seed), WALK_CONFIGS["field"]) for seed in (1, 1, 2)
    )
    for a, b, c in zip(first, again, other, strict=True):
        assert np.array_equal(a.points, b.points)
        assert a.visited == b.visited
        assert not np.array_equal(a.points, c.points)


def test_a_block_of_five_goes_on_where_the_last_walk_ended(rng):
    config = WALK_CONFIGS["cage"]
    chains = [(layout,) for layout in (sample_layout("cage", rng) for _ in range(8))]
    for _ in range(5):
        starts = [chain[-1] if len(chain) > 1 else None for chain in chains]
        walks = sample_walks([chain[0] for chain in chains], rng, config, starts=starts)
        chains = [(*chain, walk) for chain, walk in zip(chains, walks, strict=True) if walk is not None]
    assert len(chains) >= 4
    for layout, *block in chains:
        assert len(block) == 5
        for before, after in pairwise(block):
            assert np.array_equal(after.points[0], before.points[-1])
            assert after.visited[0] == before.visited[-1]
            assert len(after.visited) == min(4, len(layout.landmarks) - 1)


def test_the_next_landmark_is_any_of_the_four_closest_that_are_far_enough(rng):
    config = WalkConfig(visits=2, linger=0)
    begin = sample_walks([STAR] * 200, rng, config)
    at_barrel = [walk for walk in begin if walk.visited[-1] == 0]
    onward = sample_walks([STAR] * len(at_barrel) * 12, rng, config, starts=at_barrel * 12)
    counts = dict.fromkeys(range(1, 7), 0)
    for walk in onward:
        distances = {i: math.dist(walk.points[0], circle(STAR, i)[0]) for i in range(1, 7)}
        allowed = sorted((d, i) for i, d in distances.items() if d >= 200 * UNIT)[:4]
        assert walk.visited[1] in [i for _, i in allowed]
        counts[walk.visited[1]] += 1
    assert all(counts[i] > 0.08 * len(onward) for i in (2, 3, 4))
    assert len(at_barrel) > 5


def reference_walk(layout: Layout, config: WalkConfig, rng: np.random.Generator) -> np.ndarray | None:
    """One attempt, a step at a time: the rules again, in the plainest way."""
    circles = [circle(layout, index) for index in range(len(layout.landmarks))]
    left = list(range(len(circles)))

    def aim(position):
        near = sorted(
            (math.dist(position, circles[i][0]), i) for i in left if math.dist(position, circles[i][0]) >= 0.94
        )
        if not near:
            return None
        index = near[: config.closest][rng.integers(min(len(near), config.closest))][1]
        left.remove(index)
        angle = rng.uniform(0, 2 * math.pi)
        target = circles[index][0] + circles[index][1] * np.array([math.cos(angle), math.sin(angle)])
        return target if np.abs(target).max() <= 2.35 - config.edge_margin else None

    position = aim(rng.uniform(-2.35, 2.35, 2))
    if position is None:
        return None
    points, travelled = [position], 0.0
    for _ in range(config.visits - 1):
        target = aim(position)
        if target is None:
            return None
        for _ in range(500):
            angle, size = rng.uniform(0, 2 * math.pi), rng.uniform(0, config.noise * 0.0188)
            moved = position + 0.0188 * (target - position) / math.dist(target, position)
            moved = moved + size * np.array([math.cos(angle), math.sin(angle)])
            for centre, radius in circles:
                if math.dist(moved, centre) < radius:
                    moved = centre + (moved - centre) * radius / math.dist(moved, centre)
            before, travelled = travelled, travelled + math.dist(moved, position)
            position = moved
            if np.abs(position).max() > 2.35:
                return None
            if travelled // 0.188 > before // 0.188:
                points.append(position)
                if any(math.dist(position, point) <= 0.188 for point in points[:-3]):
                    return None
                if np.abs(position).max() > 2.35 - config.edge_margin:
                    return None
            if math.dist(position, target) < 0.094:
                break
        else:
            return None
    return np.array(points)


def assert_same_mean(a: list[float], b: list[float]) -> None:
    error = math.hypot(np.std(a) / math.sqrt(len(a)), np.std(b) / math.sqrt(len(b)))
    assert np.mean(a) == pytest.approx(np.mean(b), abs=4 * error)


@pytest.mark.parametrize("margin", [0.0, 0.752])
def test_walking_many_at_once_draws_the_same_walks_as_one_at_a_time(margin, rng):
    config = WalkConfig(visits=3, linger=0, edge_margin=margin)
    plain = []
    while len(plain) < 80:
        points = reference_walk(STAR, config, rng)
        if points is not None:
            plain.append(points)
    batched = [walk.points for walk in sample_walks([STAR] * 400, rng, config)]
    assert_same_mean([path_length(path) for path in batched], [path_length(path) for path in plain])
    # How much of the way is lost to noise.
    assert_same_mean(
        [path_length(path) / (len(path) - 1) for path in batched],
        [path_length(path) / (len(path) - 1) for path in plain],
    )
    # Thousands race for one layout; were the first to arrive taken, it would be a very short one.
    alone = [path_length(sample_walks([STAR], rng, config)[0].points) for _ in range(8)]
    assert_same_mean(alone, [path_length(path) for path in plain])


def test_layouts_without_room_for_a_walk_have_none(rng):
    two = Layout((Placement("Barrel", 1.0, 0.0), Placement("Apple", -1.0, 0.0)))
    stacked = Layout(
        (
            Placement("Desk", 1.0, 0.0),
            Placement("DeskLamp", 1.0, 0.0, elevation=0.56),
            Placement("Bed", -1.0, 0.0),
        )
    )
    huddle = Layout(tuple(Placement("Barrel", x, 0.0) for x in (-0.2, 0.0, 0.2)))
    layouts = [Layout(()), two, stacked, huddle, STAR]
    walks = sample_walks(layouts, rng, WalkConfig(visits=2, linger=0), attempts=200)
    assert [walk is None for walk in walks] == [True, True, True, True, False]
    assert sample_walks([], rng, WALK_CONFIGS["field"]) == []


def test_a_walk_to_nowhere_is_refused():
    with pytest.raises(ValueError, match="at least 2 landmarks, not 1"):
        replace(WALK_CONFIGS["field"], visits=1)
