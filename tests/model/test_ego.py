"""The drone's own view of its maps against scipy's affine transformation and hand-placed masses."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.ndimage import affine_transform
from scipy.spatial.transform import Rotation

from randomly import random_poses
from wordwing.frames import Pose
from wordwing.model.ego import ego_view, to_ego_frame
from wordwing.model.visitation import Visitation

CELL = 4.7 / 32


def level(x: float, y: float, yaw: float) -> Pose:
    return Pose.level(torch.tensor([[x, y]]), torch.tensor([yaw]), 0.7)


def headings(poses: Pose) -> NDArray[np.float64]:
    """[N] where the drones' noses point, radians."""
    noses = Rotation.from_quat(np.roll(poses.quaternion.numpy(), -1, axis=-1)).apply([1, 0, 0])
    return np.arctan2(noses[:, 1], noses[:, 0])


def cells_with(*cells: tuple[int, int]) -> torch.Tensor:
    maps = torch.zeros(1, 64, 64)
    for row, column in cells:
        maps[0, row, column] = 1.0
    return maps


def blobs(centres: NDArray[np.float64], width: float = 0.25) -> torch.Tensor:
    """[N, 64, 64] normal distributions around points [N, 2], metres, drawn cell by cell."""
    along = 4.7 - (np.arange(64) + 0.5) * CELL
    x, y = np.meshgrid(along, along, indexing="ij")
    maps = [np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * width**2)) for cx, cy in centres]
    return torch.from_numpy(np.stack([blob / blob.sum() for blob in maps])).float()


def view_of(trajectory, goal, pose, unexplored=None, boundary=None):
    nothing = torch.zeros(len(trajectory), 64, 64, dtype=torch.bool)
    plan = Visitation(trajectory, goal, torch.zeros(len(trajectory), 2))
    return ego_view(
        plan,
        nothing if unexplored is None else unexplored,
        nothing if boundary is None else boundary,
        pose,
    )


def centroid(amounts: torch.Tensor, cell: float) -> list[float]:
    """(ahead, left) metres of what a square map holds."""
    size = len(amounts)
    along = (size / 2 - 0.5 - np.arange(size)) * cell
    masses = amounts.double().numpy()
    return [float((masses.sum(axis) * along).sum() / masses.sum()) for axis in (1, 0)]


def test_turning_is_scipys_affine_transformation(rng):
    poses = random_poses(rng, 12, reach=3.0)
    maps = rng.normal(size=(12, 2, 64, 64))
    ours = to_ego_frame(torch.from_numpy(maps).float(), poses).numpy()
    for n, yaw in enumerate(headings(poses)):
        matrix = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
        # (row, column) from the middle of the map is minus (ahead, left) in cells, and so turns alike.
        offset = 31.5 - matrix @ [47.5, 47.5] - poses.xy[n].numpy() / CELL
        for c in range(2):
            theirs = affine_transform(maps[n, c], matrix, offset, (96, 96), order=1, mode="grid-constant")
            assert ours[n, c] == pytest.approx(theirs, abs=1e-3)


def test_a_drone_at_the_start_sees_the_map_as_it_is(rng):
    maps = torch.from_numpy(rng.normal(size=(1, 2, 64, 64))).float()
    turned = to_ego_frame(maps, level(0, 0, 0))
    assert torch.allclose(turned[..., 16:-16, 16:-16], maps, atol=1e-4)
    turned[..., 16:-16, 16:-16] = 0
    assert not turned[..., 17:-17, :].any()  # the outermost cells fade over half a cell


@pytest.mark.parametrize(
    ("yaw", "cell"),
    [(0.0, (28, 30)), (np.pi / 2, (33, 28)), (np.pi, (35, 33)), (-np.pi / 2, (30, 35))],
)
def test_what_lies_three_cells_ahead_and_one_to_the_left_is_three_up_and_one_left_in_the_close_view(yaw, cell):
    # The drone is at the middle corner: the fourth row ahead of it is row 28 of the map, row 4 of the close view.
    view = view_of(cells_with(cell), cells_with(cell), level(0, 0, yaw))
    expected = np.zeros((16, 16))
    expected[4, 6] = 1.0
    for channel in range(2):
        assert view.close[0, channel].numpy() == pytest.approx(expected, abs=1e-4)


def test_a_drone_that_flew_moves_the_map_the_other_way():
    view = view_of(cells_with((20, 40)), cells_with((20, 40)), level(10 * CELL, -5 * CELL, 0))
    assert torch.unravel_index(view.close[0, 0].argmax(), (16, 16)) == (20 + 10 - 24, 40 - 5 - 24)


def test_a_goal_is_as_far_ahead_and_to_the_left_in_both_views_as_it_is_of_the_drone(rng):
    poses = random_poses(rng, 30, reach=1.5)
    yaws, spots = headings(poses), rng.uniform(-0.5, 0.5, (30, 2))
    turns = np.stack([np.stack([np.cos(yaws), -np.sin(yaws)], -1), np.stack([np.sin(yaws), np.cos(yaws)], -1)], -2)
    goals = poses.xy.numpy() + np.einsum("nij,nj->ni", turns, spots)
    far = poses.xy.numpy() + np.einsum("nij,nj->ni", turns, 3 * spots)
    view = view_of(blobs(far, 0.3), blobs(goals, 0.15), poses)
    for n in range(30):
        assert centroid(view.close[n, 1], CELL) == pytest.approx(spots[n], abs=0.01)
        assert centroid(view.whole[n, 1], 4 * CELL) == pytest.approx(spots[n], abs=0.06)
        assert centroid(view.whole[n, 0], 4 * CELL) == pytest.approx(3 * spots[n], abs=0.06)


def test_the_whole_view_holds_as_much_probability_as_the_map(rng):
    poses = random_poses(rng, 20, reach=1.5)
    amounts = rng.uniform(0.1, 1, 20)
    maps = blobs(rng.uniform(-1, 1, (20, 2))) * torch.from_numpy(amounts).float()[:, None, None]
    view = view_of(maps, maps, poses)
    for channel in range(2):
        assert view.whole[:, channel].sum((1, 2)).numpy() == pytest.approx(amounts, rel=0.005)


def test_a_single_cell_keeps_its_amount_as_well_as_bilinear_interpolation_can(rng):
    poses = random_poses(rng, 200, reach=1.5)
    maps = torch.zeros(200, 64, 64)
    maps[:, 25, 36] = 1.0
    amounts = view_of(maps, maps, poses).whole[:, 0].sum((1, 2)).numpy()
    # At 45° the four nearest lattice waves add 4 sinc²(√2) + 4 sinc⁴(√½) at most; np.sinc has the π in it.
    assert np.abs(amounts - 1).max() < 4 * np.sinc(np.sqrt(2)) ** 2 + 4 * np.sinc(np.sqrt(0.5)) ** 4 + 0.02
    assert amounts.mean() == pytest.approx(1, abs=0.02)


def test_a_coarse_cell_holds_the_sum_of_its_sixteen_cells():
    block = [(row, column) for row in range(12, 16) for column in range(40, 44)]
    view = view_of(cells_with(*block) / 32, cells_with(block[0]), level(0, 0, 0))
    expected = np.zeros((2, 24, 24))
    expected[:, 7, 14] = 0.5, 1.0
    assert view.whole[0, :2].numpy() == pytest.approx(expected, abs=1e-4)


def test_masks_become_the_share_of_each_coarse_cell(rng):
    unexplored, boundary = torch.from_numpy(rng.random((2, 1, 64, 64)) < 0.3)
    nothing = torch.zeros(1, 64, 64)
    view = view_of(nothing, nothing, level(0, 0, 0), unexplored, boundary)
    for channel, mask in ((2, unexplored), (3, boundary)):
        shares = mask[0].numpy().reshape(16, 4, 16, 4).mean((1, 3))
        assert view.whole[0, channel].numpy() == pytest.approx(np.pad(shares, 4), abs=1e-4)


def test_beyond_the_map_there_is_nothing():
    everywhere = torch.ones(1, 64, 64)
    view = view_of(everywhere, everywhere, level(4.7, 0, 0), everywhere.bool(), everywhere.bool())
    # The edge of the map runs through the drone, and 4.7 m to both sides of it.
    assert (view.whole[0, :, :11] == 0).all()
    assert (view.whole[0, :, :, :3] == 0).all()
    assert view.whole[0, 2:, 13:, 5:-5].numpy() == pytest.approx(1, abs=1e-4)


def test_a_goal_in_the_opposite_corner_of_the_arena_is_in_the_whole_view():
    # From one corner the other is 6.6 m away; the start is halfway between them, so both are on the map.
    goal = blobs(np.array([[2.3, 2.3]]), 0.15)
    for yaw in np.linspace(-np.pi, np.pi, 9):
        view = view_of(goal, goal, level(-2.3, -2.3, yaw))
        assert float(view.whole[0, 1].sum()) == pytest.approx(1, abs=0.02)


def test_unobserved_probabilities_pass_and_contexts_can_be_picked(rng):
    maps = torch.from_numpy(rng.random((3, 64, 64))).float()
    unobserved = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
    masks = torch.zeros(3, 64, 64, dtype=torch.bool)
    view = ego_view(Visitation(maps, maps, unobserved), masks, masks, random_poses(rng, 3))
    assert view.unobserved is unobserved
    picked = view[torch.tensor([2, 0])]
    assert torch.equal(picked.close, torch.stack([view.close[2], view.close[0]]))
    assert torch.equal(picked.whole, torch.stack([view.whole[2], view.whole[0]]))
    assert picked.unobserved.tolist() == unobserved[[2, 0]].tolist()


def test_views_that_are_kept_keep_nothing_of_the_maps(rng):
    maps, poses = torch.from_numpy(rng.random((3, 64, 64))).float(), random_poses(rng, 3)
    view = view_of(maps, maps, poses)
    for part in (view.close, view.whole):
        assert part.untyped_storage().nbytes() == part.nbytes


def test_half_precision_around_it_moves_nothing(rng):
    poses, maps = random_poses(rng, 8), torch.from_numpy(rng.normal(size=(8, 2, 64, 64))).float()
    with torch.autocast("cpu", torch.bfloat16):
        turned = to_ego_frame(maps, poses)
    assert torch.equal(turned, to_ego_frame(maps, poses))


@pytest.mark.parametrize(
    ("part", "value"), [("position", torch.nan), ("position", torch.inf), ("quaternion", torch.nan)]
)
def test_a_lost_pose_sees_nan_and_not_an_empty_map(rng, part, value):
    poses, maps = random_poses(rng, 2), torch.ones(2, 1, 64, 64)
    getattr(poses, part)[1, 0] = value
    turned = to_ego_frame(maps, poses)
    assert turned[1].isnan().all()
    assert turned[0].isfinite().all()


def test_phases_seen_one_by_one_are_together_as_much_as_the_trajectory(rng):
    poses, goal = random_poses(rng, 2), blobs(rng.uniform(-1, 1, (2, 2)))
    phases = torch.stack([blobs(rng.uniform(-1, 1, (2, 2))) for _ in range(4)], dim=1)
    plan = Visitation(phases.mean(1), goal, torch.zeros(2, 2), phases, torch.zeros(2, 4))
    masks = torch.from_numpy(rng.random((2, 64, 64)) < 0.3)
    whole, ordered = (ego_view(plan, masks, ~masks, poses, ordered=order) for order in (False, True))
    for seen, expected in ((ordered.close, whole.close), (ordered.whole, whole.whole)):
        assert seen.shape[1] == expected.shape[1] + 3
        assert torch.allclose(seen[:, :4].sum(1), expected[:, 0], atol=1e-6)
        assert torch.allclose(seen[:, 4:], expected[:, 1:], atol=1e-6)
    alone = ego_view(replace(plan, trajectory=phases[:, 2]).unordered, masks, ~masks, poses)
    assert torch.allclose(4 * ordered.close[:, 2], alone.close[:, 0], atol=1e-6)
