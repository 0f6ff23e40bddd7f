"""Gold distributions against scipy's normal distribution, sampling, and plain loops along paths."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.stats import norm

from wordwing.frames import Pose
from wordwing.learning.losses import GoldConfig, gold_visitation, observed_part
from wordwing.learning.training_data import even_points
from wordwing.model.visitation import Visitation, entropy

CELL = 4.7 / 32
EDGES = 4.7 - np.arange(65) * CELL  # of rows from ahead to behind, of columns from left to right
Floats = NDArray[np.float64]


def start_at(x: float, y: float, yaw: float) -> Pose:
    return Pose.level(torch.tensor([[x, y]], dtype=torch.float32), torch.tensor([yaw], dtype=torch.float32), 0.7)


def to_start(points: Floats, x: float, y: float, yaw: float) -> Floats:
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([((px - x) * c + (py - y) * s, (py - y) * c - (px - x) * s) for px, py in points])


def arena(x: float, y: float, yaw: float, slack: float = 0.0) -> NDArray[np.bool_]:
    """[64, 64] cells whose centre is in the arena, or so near that rounding decides, one by one."""
    mask = np.zeros((64, 64), bool)
    for row, column in np.ndindex(64, 64):
        ahead, left = 4.7 - (row + 0.5) * CELL, 4.7 - (column + 0.5) * CELL
        world_x = x + ahead * math.cos(yaw) - left * math.sin(yaw)
        world_y = y + ahead * math.sin(yaw) + left * math.cos(yaw)
        mask[row, column] = max(abs(world_x), abs(world_y)) <= 2.35 + slack
    return mask


def blurred(points: Floats, deviation: float) -> Floats:
    """[64, 64] mass of normal distributions around points [P, 2] in the start frame, cell by cell."""
    total = np.zeros((64, 64))
    for ahead, left in points:
        rows, columns = (np.abs(np.diff(norm.cdf(EDGES, at, deviation))) for at in (ahead, left))
        total += np.outer(rows, columns)
    return total


def gold_by_hand(path: Floats, x: float, y: float, yaw: float, blur: float, steps: int) -> tuple[Floats, Floats]:
    """Trajectory and goal of `steps` points, which a loop walks to along the path."""
    points = to_start(walked(path, steps), x, y, yaw)
    on_map = [point for point in points if max(abs(point)) <= 4.7]
    mask = arena(x, y, yaw)
    trajectory = blurred(np.array(on_map), blur * CELL) * mask
    goal = blurred(np.array(on_map[-1:]), blur * CELL) * mask
    return trajectory / trajectory.sum(), goal / goal.sum()


def walked(path: Floats, steps: int) -> Floats:
    """[steps, 2] at even distances along a polyline."""
    pieces = [math.dist(a, b) for a, b in pairwise(path)]
    points = []
    for step in range(steps):
        left = sum(pieces) * step / (steps - 1)
        point = path[-1]
        for piece, (a, b) in zip(pieces, pairwise(path), strict=True):
            if left <= piece and piece > 0:
                point = a + (b - a) * left / piece
                break
            left -= piece
        points.append(point)
    return np.array(points)


def bent_path(rng: np.random.Generator, x: float, y: float) -> Floats:
    """Four corners anywhere in the arena, from a start."""
    return np.concatenate([[(x, y)], rng.uniform(-2.3, 2.3, (3, 2))])


def gold_of(path: Floats, x: float, y: float, yaw: float, blur: float = 1.0) -> Visitation:
    return gold_visitation(even_points([path]), start_at(x, y, yaw), GoldConfig(blur))


def apart(ours: torch.Tensor, theirs: Floats) -> float:
    """Total variation distance."""
    return float(np.abs(ours.double().numpy() - theirs).sum() / 2)


def test_points_are_even_and_have_both_ends(rng):
    paths = [bent_path(rng, 0.3, -0.2) for _ in range(5)]
    points = even_points(paths)
    assert points.shape == (5, 64, 2)
    for path, ours in zip(paths, points.numpy(), strict=True):
        assert ours == pytest.approx(walked(path, 64), abs=1e-4)


@pytest.mark.parametrize("blur", [1 / 3, 1.0, 2.0])
def test_gold_equals_normal_masses_summed_cell_by_cell(rng, blur):
    for _ in range(4):
        x, y, yaw = rng.uniform([-2.2, -2.2, -np.pi], [2.2, 2.2, np.pi])
        path = bent_path(rng, x, y)
        gold = gold_of(path, x, y, yaw, blur)
        trajectory, goal = gold_by_hand(path, x, y, yaw, blur, steps=64)
        assert apart(gold.trajectory[0], trajectory) < 1e-4
        assert apart(gold.goal[0], goal) < 1e-4
        assert (gold.unobserved == 0).all()


def test_sixty_four_points_stand_for_the_whole_path(rng):
    x, y, yaw = 1.0, -0.5, 2.0
    path = bent_path(rng, x, y)
    trajectory, _goal = gold_by_hand(path, x, y, yaw, blur=1.0, steps=2000)
    assert apart(gold_of(path, x, y, yaw).trajectory[0], trajectory) < 1 / 64  # both ends count whole, not half


def test_gold_is_where_noise_around_the_path_and_around_its_end_falls(rng):
    x, y, yaw = -1.2, 0.7, 0.9
    path = np.array([(x, y), (0.5, 1.5), (2.2, 1.0), (2.25, -2.0)])
    points = walked(path, 64)
    gold = gold_of(path, x, y, yaw)
    mask = arena(x, y, yaw)
    for ours, centres in ((gold.trajectory[0], points[rng.integers(0, 64, 1_000_000)]), (gold.goal[0], points[-1:])):
        noisy = centres + CELL * rng.standard_normal((1_000_000, 2))
        c, s = math.cos(yaw), math.sin(yaw)
        ahead, left = ((noisy - [x, y]) @ np.array([[c, -s], [s, c]])).T
        counts = np.histogram2d(ahead, left, bins=[EDGES[::-1], EDGES[::-1]])[0][::-1, ::-1] * mask
        assert apart(ours, counts / counts.sum()) < 0.012


def test_gold_sums_to_one_and_has_nothing_outside_the_arena(rng):
    corners = [(2.35, 2.35), (-2.35, 2.35), (2.35, -2.35), (-2.35, -2.35)]
    for x, y in corners + [tuple(rng.uniform(-2.35, 2.35, 2)) for _ in range(12)]:
        yaw = float(rng.uniform(-np.pi, np.pi))
        ends = np.concatenate([np.sign(rng.normal(size=(1, 2))) * 2.35, rng.uniform(-2.35, 2.35, (1, 2))])
        path = np.concatenate([[(x, y)], ends[rng.permutation(2)]])
        outside = ~arena(x, y, yaw, slack=1e-5)
        for blur in (1 / 3, 1.0):
            gold = gold_of(path, x, y, yaw, blur)
            for masses in (gold.trajectory[0], gold.goal[0]):
                assert masses.sum().item() == pytest.approx(1, abs=1e-5)
                assert (masses >= 0).all()
                assert (masses.numpy()[outside] == 0).all()
            assert (gold.unobserved == 0).all()


@pytest.mark.parametrize("side", [(1, 0), (-1, 0), (0, 1), (0, -1)])
def test_a_goal_a_little_outside_the_arena_is_at_its_edge_on_every_side(side):
    end = 3.0 * np.array(side)
    gold = gold_of(np.array([(0.0, 0.0), end]), 0.0, 0.0, 0.0)
    ahead, left = np.mgrid[:64, :64] * -CELL + 4.7 - CELL / 2
    reach = ahead * side[0] + left * side[1]
    assert gold.goal.sum().item() == pytest.approx(1, abs=1e-5)
    # Of a normal distribution 0.65 m away hardly anything reaches the second cell within.
    first = norm.sf(0.65, scale=CELL) - norm.sf(0.65 + CELL, scale=CELL)
    assert gold.goal[0].numpy()[reach > 2.35 - CELL].sum() == pytest.approx(first / norm.sf(0.65, scale=CELL), abs=1e-4)


def test_a_path_that_leaves_the_map_ends_where_it_left():
    x, y, yaw = -2.3, -2.3, np.pi / 4  # the far corner is 6.5 m straight ahead, the map ends 4.7 m ahead
    path = np.array([(x, y), (2.3, 2.3)])
    gold = gold_of(path, x, y, yaw)
    trajectory, goal = gold_by_hand(path, x, y, yaw, blur=1.0, steps=64)
    assert apart(gold.trajectory[0], trajectory) < 1e-4
    assert apart(gold.goal[0], goal) < 1e-4
    ahead = 4.7 - (np.arange(64) + 0.5) * CELL
    assert (gold.goal[0].sum(1).numpy() * ahead).sum() > 4.4
    assert gold.goal.sum().item() == pytest.approx(1, abs=1e-5)


def test_a_path_that_comes_back_to_the_map_ends_at_its_end():
    x, y, yaw = -2.3, -2.3, np.pi / 4
    path = np.array([(x, y), (2.3, 2.3), (0.0, 0.5)])
    gold = gold_of(path, x, y, yaw)
    [end] = to_start(path[-1:], x, y, yaw)
    along = 4.7 - (np.arange(64) + 0.5) * CELL
    found = [(gold.goal[0].sum(axis).numpy() * along).sum() for axis in (1, 0)]
    assert found == pytest.approx(end, abs=0.01)


@pytest.mark.parametrize("path", [[(0.4, -0.6)], [(0.4, -0.6), (0.4, -0.6)]])
def test_a_path_without_length_is_a_single_spot(path):
    gold = gold_of(np.array(path), 0.0, 0.5, 1.0)
    spot = blurred(to_start(np.array(path[:1]), 0.0, 0.5, 1.0), CELL)
    assert apart(gold.trajectory[0], spot) < 1e-4
    assert apart(gold.goal[0], spot) < 1e-4


def test_golds_of_a_batch_are_those_of_each_alone(rng):
    starts = rng.uniform([-2, -2, -3], [2, 2, 3], (4, 3))
    paths = [bent_path(rng, x, y) for x, y, _yaw in starts]
    pose = Pose.level(torch.from_numpy(starts[:, :2]).float(), torch.from_numpy(starts[:, 2]).float(), 0.7)
    batch = gold_visitation(even_points(paths), pose, GoldConfig())
    for n, (x, y, yaw) in enumerate(starts):
        alone = gold_of(paths[n], x, y, yaw)
        assert torch.allclose(batch.trajectory[n], alone.trajectory[0], atol=1e-6)
        assert torch.allclose(batch.goal[n], alone.goal[0], atol=1e-6)


def test_half_precision_around_it_rounds_nothing(rng):
    path = bent_path(rng, 0.1, 0.2)
    with torch.autocast("cpu", torch.bfloat16):
        half = gold_of(path, 0.1, 0.2, 0.3)
    full = gold_of(path, 0.1, 0.2, 0.3)
    assert half.trajectory.dtype == half.goal.dtype == torch.float32
    assert torch.equal(half.trajectory, full.trajectory)
    assert torch.equal(half.goal, full.goal)


def test_a_wider_blur_is_less_sure(rng):
    path = bent_path(rng, 0.0, 0.0)
    sure, unsure = (entropy(gold_of(path, 0.0, 0.0, 0.0, blur)) for blur in (1 / 3, 1.0))
    assert (unsure > sure).all()
    # A round normal distribution of one cell has ln(2πe) nats; in whole cells a little more.
    assert unsure[0, 1].item() == pytest.approx(math.log(2 * math.pi * math.e), abs=0.1)


def test_what_lies_where_the_drone_has_not_looked_becomes_unobserved(rng):
    gold = gold_of(bent_path(rng, 0.5, 0.5), 0.5, 0.5, 1.0)
    observed = torch.from_numpy(rng.random((1, 64, 64)) < 0.4)
    known = observed_part(gold, observed)
    for channel, (part, whole) in enumerate(((known.trajectory, gold.trajectory), (known.goal, gold.goal))):
        assert (part[~observed] == 0).all()
        assert torch.equal(part[observed], whole[observed])
        lost = whole[0].double().numpy()[~observed[0].numpy()].sum()
        assert known.unobserved[0, channel].item() == pytest.approx(lost, abs=1e-6)
        assert part.sum().item() + known.unobserved[0, channel].item() == pytest.approx(1, abs=1e-5)


def test_unobserved_is_exactly_zero_when_all_has_been_observed_and_one_when_nothing_has(rng):
    gold = gold_of(bent_path(rng, 0.5, 0.5), 0.5, 0.5, 1.0)
    everything = torch.ones(1, 64, 64, dtype=torch.bool)
    known, nothing = observed_part(gold, everything), observed_part(gold, ~everything)
    assert (known.unobserved == 0).all()
    assert torch.equal(known.trajectory, gold.trajectory)
    assert (nothing.trajectory == 0).all()
    assert nothing.unobserved.numpy() == pytest.approx(1, abs=1e-5)


def test_looking_twice_loses_nothing_twice(rng):
    gold = gold_of(bent_path(rng, 0.5, 0.5), 0.5, 0.5, 1.0)
    first, second = torch.from_numpy(rng.random((2, 1, 64, 64)) < 0.7)
    twice, once = observed_part(observed_part(gold, first), second), observed_part(gold, first & second)
    assert torch.allclose(twice.cells, once.cells)
    assert torch.allclose(twice.unobserved, once.unobserved, atol=1e-6)


def test_each_phase_is_the_gold_of_its_part_of_the_points(rng):
    x, y, yaw = 0.4, -0.3, 1.0
    points = even_points([bent_path(rng, x, y)])
    gold = gold_visitation(points, start_at(x, y, yaw), GoldConfig(), phases=4)
    assert gold.phases is not None
    for number in range(4):
        part = gold_visitation(points[:, 16 * number : 16 * (number + 1)], start_at(x, y, yaw), GoldConfig())
        assert torch.allclose(gold.phases[:, number], part.trajectory, atol=1e-6)
    whole = gold_visitation(points, start_at(x, y, yaw), GoldConfig())
    assert torch.equal(gold.trajectory, whole.trajectory)
    assert torch.equal(gold.goal, whole.goal)


def test_a_phase_off_the_map_is_where_the_path_left_it():
    path = np.array([(-2.3, -2.3), (2.3, 2.3)])  # 6.5 m along the diagonal, of which the map shows 4.7
    gold = gold_visitation(even_points([path]), start_at(-2.3, -2.3, math.pi / 4), GoldConfig(), phases=4)
    assert gold.phases is not None
    assert torch.allclose(gold.phases.sum((2, 3)), torch.ones(1, 4), atol=1e-5)
    assert torch.equal(gold.phases[:, 3], gold.goal)


def test_what_of_a_phase_is_not_observed_is_its_own_share_of_the_unobserved(rng):
    points = even_points([bent_path(rng, 0.5, 0.5)])
    gold = gold_visitation(points, start_at(0.5, 0.5, 1.0), GoldConfig(), phases=4)
    observed = torch.zeros(1, 64, 64, dtype=torch.bool)
    observed[:, :32] = True
    known = observed_part(gold, observed)
    assert gold.phases is not None
    assert known.phases is not None
    assert known.phases_unobserved is not None
    assert torch.equal(known.phases, gold.phases * observed)
    assert torch.allclose(known.phases.sum((2, 3)) + known.phases_unobserved, torch.ones(1, 4), atol=1e-5)
    assert known.phases_unobserved.max() - known.phases_unobserved.min() > 0.1
