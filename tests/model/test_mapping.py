"""Maps of the ground against the real renderer, plain loops over cells and rotations by scipy."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.ndimage import label
from scipy.spatial.transform import Rotation

from wordwing.camera import Camera
from wordwing.frames import Pose, in_start_frame
from wordwing.interface import Observation
from wordwing.language.tokenizer import Vocabulary
from wordwing.model.mapping import (
    MappingConfig,
    SemanticMap,
    arena_cells,
    boundary_cells,
    project,
    visible_ground,
)
from wordwing.model.policy import ModelConfig, PolicyNetwork, PolicyState
from wordwing.model.text import Tokens
from wordwing.model.vision import STRIDE, ResNet, VisionConfig
from wordwing.policies.learned import LearnedPolicy
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import PackedLayouts, SimScene
from wordwing.world.layout import Layout

CELL = 4.7 / 32
FOCAL = 64 / math.tan(math.radians(42))
TILT = Rotation.from_euler("y", 15, degrees=True)
CONFIG = MappingConfig()
Floats = NDArray[np.float64]


class Flights:
    """N drones anywhere in the arena, tilted by up to 15°, and where they started; in doubles of our own."""

    def __init__(self, rng: np.random.Generator, count: int) -> None:
        self.xyz = np.column_stack([rng.uniform(-2.3, 2.3, (count, 2)), rng.uniform(0.4, 1.0, count)])
        yaw, tilts = rng.uniform(-np.pi, np.pi, count), np.radians(rng.uniform(-15, 15, (count, 2)))
        self.turn = Rotation.from_euler("ZYX", np.column_stack([yaw, tilts]))
        self.start_xy = rng.uniform(-2.3, 2.3, (count, 2))
        self.start_yaw = rng.uniform(-np.pi, np.pi, count)

    @property
    def pose(self) -> Pose:
        return pose_of(self.xyz, self.turn)

    @property
    def start(self) -> Pose:
        """Also tilted and in the air, which must not matter to its frame."""
        tilted = Rotation.from_euler("ZYX", [(yaw, 0.1, -0.2) for yaw in self.start_yaw])
        return pose_of(np.column_stack([self.start_xy, np.full(len(self.start_xy), 0.7)]), tilted)

    def eye(self, n: int) -> tuple[Floats, Floats]:
        """Position and rotation matrix of the n-th camera in its start frame."""
        back = Rotation.from_euler("z", -self.start_yaw[n])
        offset = self.xyz[n] - [*self.start_xy[n], 0.0]
        return back.apply(offset), (back * self.turn[n] * TILT).as_matrix()

    def to_start(self, n: int, xy: Floats) -> Floats:
        """World points [..., 2] in the n-th start frame."""
        c, s = math.cos(self.start_yaw[n]), math.sin(self.start_yaw[n])
        return (xy - self.start_xy[n]) @ np.array([[c, -s], [s, c]])

    def moved(self, angle: float, shift: Floats) -> "Flights":
        """All of it turned about the world's origin, then shifted."""
        about = Rotation.from_euler("z", angle)
        other = object.__new__(Flights)
        other.xyz = about.apply(self.xyz) + np.array([*shift, 0.0])
        other.turn = about * self.turn
        other.start_xy = about.apply(np.column_stack([self.start_xy, np.zeros(len(self.start_xy))]))[:, :2] + shift
        other.start_yaw = self.start_yaw + angle
        return other


def pose_of(xyz: Floats, turn: Rotation) -> Pose:
    quaternion = np.roll(turn.as_quat(), 1, axis=-1)
    return Pose(torch.from_numpy(xyz).float(), torch.from_numpy(quaternion).float())


def pixel_of(eye: Floats, turn: Floats, point: Floats) -> tuple[float, float, float]:
    """(u, v) of a ground point and its depth."""
    ahead, left, up = turn.T @ (np.array([point[0], point[1], 0.0]) - eye)
    return 64 - FOCAL * left / ahead, 36 - FOCAL * up / ahead, ahead


def in_image(eye: Floats, turn: Floats, point: Floats, margin: float = 0.0) -> bool:
    u, v, depth = pixel_of(eye, turn, point)
    return depth > 0 and margin <= u < 128 - margin and margin <= v < 72 - margin


def ground_at(eye: Floats, turn: Floats, u: float, v: float) -> Floats | None:
    """Where the ray through a pixel meets the ground, or None where it does not."""
    ray = turn @ [1.0, (64 - u) / FOCAL, (36 - v) / FOCAL]
    return (eye - eye[2] / ray[2] * ray)[:2] if ray[2] < 0 else None


def row_depth(eye: Floats, turn: Floats, point: Floats) -> float:
    """How much of the ground a pixel row covers at a ground point, metres."""
    u, v, _depth = pixel_of(eye, turn, point)
    far, near = ground_at(eye, turn, u, v - 0.5), ground_at(eye, turn, u, v + 0.5)
    return math.inf if far is None or near is None else float(np.linalg.norm(far - near))


def cell_centres() -> list[tuple[int, int, float, float]]:
    return [
        (row, column, 4.7 - (row + 0.5) * CELL, 4.7 - (column + 0.5) * CELL)
        for row in range(64)
        for column in range(64)
    ]


def sight_by_rays(eye: Floats, turn: Floats) -> tuple[NDArray, NDArray, Floats, NDArray]:
    """Cell by cell: in view, covered, (u, v), and whether the answer hangs on less than a thousandth of a pixel."""
    in_view, covered, close_call = np.zeros((3, 64, 64), bool)
    pixels = np.full((64, 64, 2), np.nan)
    for row, column, x, y in cell_centres():
        ground = np.array([x, y])
        distance = math.hypot(x - eye[0], y - eye[1])
        u, v, depth = pixel_of(eye, turn, ground)
        pixels[row, column] = u, v
        below = depth > 0 and 0 <= u < 128 and v >= 72 and distance <= 1.2
        in_view[row, column] = in_image(eye, turn, ground)
        covered[row, column] = in_view[row, column] or below or distance <= 0.3
        nearest = min(abs(u), abs(u - 128), abs(v), abs(v - 72), abs(depth) * 1e3)
        close_call[row, column] = nearest < 1e-3 or min(abs(distance - 1.2), abs(distance - 0.3)) < 1e-5
    return in_view, covered, pixels, close_call


def arena_by_cells(xy: Floats, yaw: float) -> tuple[NDArray, NDArray]:
    """Cell by cell: whether it is in the arena, and how far from the nearest fence."""
    inside, room = np.zeros((64, 64), bool), np.zeros((64, 64))
    for row, column, ahead, left in cell_centres():
        x = xy[0] + ahead * math.cos(yaw) - left * math.sin(yaw)
        y = xy[1] + ahead * math.sin(yaw) + left * math.cos(yaw)
        room[row, column] = min(2.35 - x, 2.35 + x, 2.35 - y, 2.35 + y)
        inside[row, column] = room[row, column] >= 0
    return inside, room


def random_images(rng: np.random.Generator, count: int) -> torch.Tensor:
    return torch.from_numpy(rng.integers(0, 256, (count, 72, 128, 3), np.uint8))


def network_and_tokens(count: int) -> tuple[PolicyNetwork, Tokens]:
    torch.manual_seed(3)
    network = PolicyNetwork(ModelConfig(), vocabulary_size=20).eval()
    return network, Tokens(torch.randint(2, 20, (count, 6)), torch.full((count,), 6))


# Patches on the floor


def visible_patch(rng: np.random.Generator, flights: Flights, n: int) -> tuple[int, int] | None:
    """The lake cell at the upper corner of a patch's middle such that all of the patch is in the n-th image."""
    eye, turn = flights.eye(n)
    for i, j in rng.integers(4, 97, (60, 2)):
        corners = np.array([(i + di, j + dj) for di in (-3, 3) for dj in (-3, 3)]) * 0.047 - 2.35
        corners = flights.to_start(n, corners)
        if np.abs(corners).max() > 4.6 or not all(in_image(eye, turn, corner, margin=1) for corner in corners):
            continue
        if row_depth(eye, turn, corners.mean(0)) < 0.28:  # farther away a patch can slip between two pixel rows
            return int(i), int(j)
    return None


def flights_and_patches(rng: np.random.Generator, count: int) -> tuple[Flights, Floats]:
    """Flights, and a lake cell for each that it sees."""
    drawn = Flights(rng, 3 * count)
    found = [(n, patch) for n in range(3 * count) if (patch := visible_patch(rng, drawn, n))][:count]
    assert len(found) == count
    chosen = [n for n, _patch in found]
    for name in ("xyz", "turn", "start_xy", "start_yaw"):
        setattr(drawn, name, getattr(drawn, name)[chosen])
    return drawn, np.array([patch for _n, patch in found])


def images(layouts: list[Layout], drones: Pose) -> torch.Tensor:
    """[N, 3, 72, 128] as the drones' cameras see them, 0 to 255."""
    scene = SimScene(len(layouts), torch.device("cpu"))
    scene.place(PackedLayouts.pack(layouts), torch.arange(len(layouts)))
    renderer = Renderer(scene, config=RenderConfig(textures=False))
    return renderer.first_person(renderer.camera.pose(drones)).permute(0, 3, 1, 2).float()


def observed(network: PolicyNetwork, state: PolicyState, image: torch.Tensor, pose: Pose) -> PolicyState:
    features = network.stage1.encode_images(image, "sim")
    [state], _in_view, _here = network.observe(state, features, pose[:, None])
    return state


def test_a_patch_on_the_floor_appears_in_its_map_cell_from_200_poses(rng):
    flights, patches = flights_and_patches(rng, 200)
    lakes = [tuple((int(i) + di, int(j) + dj) for di in range(-3, 3) for dj in range(-3, 3)) for i, j in patches]
    sight = visible_ground(in_start_frame(flights.pose, flights.start), Camera(), CONFIG)
    with_patch = project(images([Layout((), lakes=cells) for cells in lakes], flights.pose), sight, 1, Camera())
    without = project(images([Layout(())] * 200, flights.pose), sight, 1, Camera())
    colour = (with_patch - without).abs().sum(1).double().numpy()  # [200, 64, 64], of the patch alone
    along = 4.7 - (np.arange(64) + 0.5) * CELL
    near, offsets = [], []
    for n in range(200):
        eye, turn = flights.eye(n)
        truth = flights.to_start(n, patches[n] * 0.047 - 2.35)
        mass = colour[n].sum()
        assert mass > 0
        found = np.array([(colour[n].sum(axis) * along).sum() / mass for axis in (1, 0)])
        distance = np.linalg.norm(truth - eye[:2])
        near.append(distance <= 2.0)
        limit = CELL if distance <= 2.0 else max(CELL, row_depth(eye, turn, truth))
        assert np.linalg.norm(found - truth) <= limit, (n, distance)
        forward = (truth - eye[:2]) / distance
        offset = found - truth
        offsets.append([offset @ forward, offset @ [-forward[1], forward[0]]])
    assert 60 <= sum(near) <= 180
    # None of the ways to be off by half a cell or half a pixel row on average.
    assert np.abs(np.mean(np.array(offsets)[near], axis=0)).max() < 0.01


# Features


@pytest.mark.parametrize("stride", [1, 4])
def test_features_lie_on_the_ground_that_the_pixels_they_are_centred_on_show(rng, stride):
    flights = Flights(rng, 6)
    sight = visible_ground(in_start_frame(flights.pose, flights.start), Camera(), CONFIG)
    u = torch.arange(0, 128, stride) + 0.5
    v = torch.arange(0, 72, stride) + 0.5
    features = torch.stack(torch.meshgrid(v, u, indexing="ij"))[[1, 0]]  # (u, v) of each feature's own pixel
    ground = project(features.expand(6, -1, -1, -1).contiguous(), sight, stride, Camera()).numpy()
    last = [128 - stride + 0.5, 72 - stride + 0.5]
    for n in range(6):
        in_view, _covered, pixels, close_call = sight_by_rays(*flights.eye(n))
        expected = pixels.clip(0.5, last)  # the outermost features go on to the edge of the image
        sure = in_view & ~close_call
        assert sure.sum() > 50
        assert ground[n].transpose(1, 2, 0)[sure] == pytest.approx(expected[sure], abs=2e-2)
        assert (ground[n][:, ~in_view & ~close_call] == 0).all()


def test_features_of_another_camera_are_refused():
    sight = visible_ground(Pose.level(torch.zeros(1, 2), torch.zeros(1), 0.7), Camera(), CONFIG)
    with pytest.raises(ValueError, match="18x32 features 2 pixels apart"):
        project(torch.zeros(1, 3, 18, 32), sight, 2, Camera())


def test_half_precision_features_lie_where_single_precision_ones_do(rng):
    sight = visible_ground(Flights(rng, 2).pose, Camera(), CONFIG)
    features = torch.from_numpy(rng.integers(-8, 8, (2, 3, 18, 32))).float()
    half = project(features.bfloat16(), sight, STRIDE, Camera())
    assert half.dtype == torch.bfloat16
    assert torch.equal(half, project(features, sight, STRIDE, Camera()).bfloat16())


def test_a_feature_that_is_not_in_view_gets_no_gradient_and_spoils_nothing(rng):
    flights = Flights(rng, 1)
    sight = visible_ground(flights.pose, Camera(), CONFIG)
    features = torch.zeros(1, 1, 72, 128, requires_grad=True)
    project(features, sight, 1, Camera()).sum().backward()
    assert features.grad is not None
    assert features.grad.sum().item() == pytest.approx(sight.in_view.sum().item(), rel=1e-4)
    unseen = torch.where(features.grad == 0, torch.nan, 1.0)
    assert unseen.isnan().any()
    away = replace(sight, in_view=torch.zeros_like(sight.in_view))
    assert (project(unseen, away, 1, Camera()) == 0).all()


def test_features_of_the_resnet_are_centred_on_every_fourth_pixel():
    centres = []
    for seed in range(6):
        torch.manual_seed(seed)
        network = ResNet(VisionConfig())
        pixels = torch.randn(1, 3, 72, 128, requires_grad=True)
        features = network.blocks(network.stem(pixels))
        for channel in range(0, 32, 8):
            [gradient] = torch.autograd.grad(features[0, channel, 9, 16], pixels, retain_graph=True)
            weight = gradient[0].square().sum(0).double().numpy()
            rows, columns = np.mgrid[:72, :128]
            centres.append([(weight * axis).sum() / weight.sum() for axis in (rows, columns)])
    spread = np.std(centres, axis=0) / np.sqrt(len(centres))
    assert spread.max() < 0.15
    assert np.mean(centres, axis=0) == pytest.approx([36, 64], abs=0.5)


def test_mirrored_images_give_mirrored_features_where_the_last_feature_is_centred_on_the_last_pixel():
    # Of 73 × 129 pixels (4i, 4j) runs from edge to edge; were features centred on 4×4 blocks this would not hold.
    torch.manual_seed(0)
    network, mirror = ResNet(VisionConfig()).double(), ResNet(VisionConfig()).double()
    mirror.load_state_dict(
        {name: weight.flip(-1, -2) if weight.ndim == 4 else weight for name, weight in network.state_dict().items()}
    )
    pixels = torch.randn(1, 3, 73, 129, dtype=torch.float64)
    features = network.blocks(network.stem(pixels))
    assert features.shape[-2:] == (19, 33)
    assert torch.allclose(mirror.blocks(mirror.stem(pixels.flip(-1, -2))), features.flip(-1, -2), atol=1e-9)


# What is in view, and what counts as observed


def test_what_is_in_view_and_what_is_covered_equal_a_ray_test_of_every_cell(rng):
    flights = Flights(rng, 24)
    sight = visible_ground(in_start_frame(flights.pose, flights.start), Camera(), CONFIG)
    blind = 0
    for n in range(24):
        in_view, covered, pixels, close_call = sight_by_rays(*flights.eye(n))
        assert close_call.mean() < 0.01
        sure = ~close_call
        assert (sight.in_view[n].numpy() == in_view)[sure].all()
        assert (sight.covered[n].numpy() == covered)[sure].all()
        assert sight.pixels[n].numpy()[in_view & sure] == pytest.approx(pixels[in_view & sure], abs=2e-2)
        blind += (covered & ~in_view).sum()
    assert blind > 24 * 13


def test_a_level_drone_sees_from_78_cm_on_and_knows_the_ground_below_the_image():
    sight = visible_ground(Pose.level(torch.zeros(1, 2), torch.zeros(1), 0.7), Camera(), CONFIG)
    ahead = (31.5 - np.arange(32)) * CELL
    column = sight.in_view[0, :32, 31].numpy()
    assert (column == (ahead > 0.7 / math.tan(math.radians(15) + math.atan(36 / FOCAL)))).all()
    assert ahead[column].min() == pytest.approx(0.78, abs=CELL)
    assert sight.covered[0, :32, 31].all()
    behind = sight.covered[0, 32:, 31].numpy()
    assert behind.tolist() == [True] * 2 + [False] * 30  # 7 cm and 22 cm are within 30 cm


def test_a_drone_that_looks_at_the_sky_knows_only_what_it_hovers_over():
    up = pose_of(np.array([[0.0, 0.0, 0.7]]), Rotation.from_euler("ZYX", [[0.3, -np.radians(80), 0]]))
    sight = visible_ground(up, Camera(), CONFIG)
    assert not sight.in_view.any()
    distance = np.array([math.hypot(x, y) for _r, _c, x, y in cell_centres()]).reshape(64, 64)
    assert (sight.covered[0].numpy() == (distance <= 0.3)).all()


def test_observed_is_the_union_over_time_of_what_was_covered_within_the_arena(rng):
    steps = [Flights(rng, 2) for _ in range(5)]
    for step in steps:
        step.start_xy, step.start_yaw = steps[0].start_xy, steps[0].start_yaw
    network, tokens = network_and_tokens(2)
    with torch.no_grad():
        state = network.begin(tokens, steps[0].start)
        arenas = [arena_by_cells(steps[0].start_xy[n], steps[0].start_yaw[n])[0] for n in range(2)]
        assert not state.observed.any()
        covered, shown, unsure = np.zeros((3, 2, 64, 64), bool)
        for step in steps:
            before = state.observed
            state = observed(network, state, random_images(rng, 2), step.pose)
            assert (before <= state.observed).all()
            for n in range(2):
                in_view, all_covered, _pixels, close_call = sight_by_rays(*step.eye(n))
                covered[n] |= all_covered & arenas[n]
                shown[n] |= in_view
                unsure[n] |= close_call
            assert (state.observed.numpy() == covered)[~unsure].all()
            assert (state.observed <= state.arena).all()
            features = (state.map.features != 0).any(1).numpy()
            assert (features == shown)[~unsure].all()
            assert ((state.map.view_counts > 0).numpy() == shown)[~unsure].all()
    assert (covered & ~shown).any()


def test_features_under_a_drone_that_flies_over_them_do_not_fade(rng):
    network, tokens = network_and_tokens(1)
    zero = torch.zeros(1)
    with torch.no_grad():
        state = network.begin(tokens, Pose.level(torch.tensor([[-1.5, 0.0]]), zero, 0.7))
        first = observed(network, state, random_images(rng, 1), Pose.level(torch.tensor([[-1.5, 0.0]]), zero, 0.7))
        over = Pose.level(torch.tensor([[0.0, 0.0]]), zero, 0.7)
        later = first
        for _ in range(8):
            later = observed(network, later, random_images(rng, 1), over)
    rows = slice(20, 22)  # 1.46 m and 1.61 m ahead of the start: below the drone, and seen from the start
    rows_seen_again = slice(10, 14)  # 1.2 m to 1.6 m ahead of the drone
    columns = slice(31, 33)
    assert (first.map.view_counts[0, rows, columns] == 1).all()
    assert torch.equal(later.map.features[0, :, rows, columns], first.map.features[0, :, rows, columns])
    assert (later.map.view_counts[0, rows, columns] == 1).all()
    assert later.observed[0, rows, columns].all()
    assert (later.map.view_counts[0, rows_seen_again, columns] == 9).all()
    assert not torch.equal(
        later.map.features[0, :, rows_seen_again, columns], first.map.features[0, :, rows_seen_again, columns]
    )


# Accumulation


def test_sights_are_averaged_up_to_the_fifth_and_fade_from_then_on(rng):
    state = SemanticMap(torch.zeros(2, 3, 8, 8), torch.zeros(2, 8, 8))
    pictures_, views = rng.normal(size=(14, 2, 3, 8, 8)), rng.random((14, 2, 8, 8)) < 0.55
    views[:, 0, 0, 0], views[:, 0, 0, 1] = False, True
    for step in range(14):
        seen = views[step]
        shown = torch.from_numpy(pictures_[step] * seen[:, None]).float()
        state = state.accumulate(shown, torch.from_numpy(seen), blend=0.2)
        for n, row, column in np.ndindex(2, 8, 8):
            sights = [pictures_[t, n, :, row, column] for t in range(step + 1) if views[t, n, row, column]]
            expected = np.mean(sights[:5], axis=0) if sights else np.zeros(3)
            for sight in sights[5:]:
                expected = 0.8 * expected + 0.2 * sight
            assert state.features[n, :, row, column].numpy() == pytest.approx(expected, abs=1e-5)
            assert state.view_counts[n, row, column] == len(sights)
    assert (state.features[0, :, 0, 0] == 0).all()


def test_gradients_reach_only_images_that_showed_a_cell_by_how_much_they_count(rng):
    views = torch.from_numpy(rng.random((9, 1, 8, 8)) < 0.8)
    views[:, 0, 3, 3] = True
    views[:, 0, 4, 4] = False
    pictures_ = [torch.zeros(1, 2, 8, 8, requires_grad=True) for _ in range(9)]
    state = SemanticMap(torch.zeros(1, 2, 8, 8), torch.zeros(1, 8, 8))
    for image, seen in zip(pictures_, views, strict=True):
        state = state.accumulate(image, seen, blend=0.2)
    state.features.sum().backward()
    grads = torch.stack([image.grad for image in pictures_ if image.grad is not None])[:, 0, 0]  # [9, 8, 8]
    assert ((grads != 0) == views[:, 0]).all()
    # Nine sights: the first five share 0.8⁴ of the whole, the sixth has 0.2 · 0.8³, the last 0.2.
    shares = [0.2 * 0.8**4] * 5 + [0.2 * 0.8**3, 0.2 * 0.8**2, 0.2 * 0.8, 0.2]
    assert grads[:, 3, 3].tolist() == pytest.approx(shares, abs=1e-6)
    assert (grads[:, 4, 4] == 0).all()


# The arena


def test_arena_and_boundary_equal_a_test_of_every_cell(rng):
    flights = Flights(rng, 12)
    flights.start_xy[:4] = [(2.3, 2.3), (-2.3, 2.3), (2.3, -2.3), (-2.3, -2.3)]
    arena, boundary = arena_cells(flights.start).numpy(), boundary_cells(flights.start).numpy()
    for n in range(12):
        inside, room = arena_by_cells(flights.start_xy[n], flights.start_yaw[n])
        sure = (np.abs(room) > 1e-5) & (np.abs(room - CELL) > 1e-5)
        assert sure.mean() > 0.99
        assert (arena[n] == inside)[sure].all()
        assert (boundary[n] == (inside & (room < CELL)))[sure].all()


def test_the_boundary_is_closed_and_one_cell_wide(rng):
    flights = Flights(rng, 40)
    flights.start_xy *= 0.5  # near enough to the middle that the whole arena lies on the map
    arena, boundary = arena_cells(flights.start).numpy(), boundary_cells(flights.start).numpy()
    for n in range(40):
        regions, count = label(~boundary[n])  # by steps along rows and columns
        for region in range(1, count + 1):
            assert len(set(arena[n][regions == region])) == 1
        _rings, pieces = label(boundary[n], structure=np.ones((3, 3)))
        assert pieces == 1
        assert boundary[n].sum() == pytest.approx(32**2 - 30**2, rel=0.2)
    assert boundary.sum((1, 2)).mean() == pytest.approx(32**2 - 30**2, rel=0.02)


def test_the_boundary_of_a_start_in_the_middle_is_the_outermost_ring_of_the_arena():
    start = Pose.level(torch.zeros(1, 2), torch.zeros(1))
    arena, ring = np.zeros((2, 64, 64), bool)
    arena[16:48, 16:48] = ring[16:48, 16:48] = True
    ring[17:47, 17:47] = False
    assert (arena_cells(start)[0].numpy() == arena).all()
    assert (boundary_cells(start)[0].numpy() == ring).all()


# Frames


def flown(network: PolicyNetwork, tokens: Tokens, steps: list[Flights], images: list[torch.Tensor]):
    with torch.no_grad():
        state = network.begin(tokens, steps[0].start)
        for step, image in zip(steps, images, strict=True):
            state, beliefs = network(state, image, step.pose, "sim")
    return state, beliefs


def flight_steps(rng: np.random.Generator, count: int, length: int) -> list[Flights]:
    steps = [Flights(rng, count) for _ in range(length)]
    for step in steps:
        step.start_xy, step.start_yaw = steps[0].start_xy, steps[0].start_yaw
    return steps


def test_turning_and_shifting_the_world_changes_nothing_in_the_start_frame(rng):
    flights = Flights(rng, 8)
    here = visible_ground(in_start_frame(flights.pose, flights.start), Camera(), CONFIG)
    image = random_images(rng, 8).permute(0, 3, 1, 2).float()
    for angle, shift in [(0.0, [3.0, -1.0]), (1.0, [0.0, 0.0]), (-2.4, [-1.5, 2.0])]:
        moved = flights.moved(angle, np.array(shift))
        there = visible_ground(in_start_frame(moved.pose, moved.start), Camera(), CONFIG)
        assert torch.equal(there.in_view, here.in_view)
        assert torch.equal(there.covered, here.covered)
        assert torch.allclose(there.pixels[here.in_view], here.pixels[here.in_view], atol=2e-3)
        before, after = (project(image, sight, 1, Camera()) for sight in (here, there))
        assert torch.allclose(after, before, atol=0.5)  # of 255, where neighbouring pixels differ by as much


def test_turning_and_shifting_the_world_changes_no_map_of_features(rng):
    steps = flight_steps(rng, 2, 3)
    network, tokens = network_and_tokens(2)
    images = [random_images(rng, 2) for _ in steps]
    state, _beliefs = flown(network, tokens, steps, images)
    moved, _beliefs = flown(network, tokens, [step.moved(0.8, np.array([0.4, -0.3])) for step in steps], images)
    assert torch.allclose(moved.map.features, state.map.features, atol=2e-3)
    assert torch.equal(moved.map.view_counts, state.map.view_counts)


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_turning_the_world_by_quarters_about_the_arenas_centre_changes_nothing_at_all(rng, quarters):
    steps = flight_steps(rng, 2, 3)
    network, tokens = network_and_tokens(2)
    images = [random_images(rng, 2) for _ in steps]
    state, beliefs = flown(network, tokens, steps, images)
    turned, turned_beliefs = flown(
        network, tokens, [step.moved(quarters * np.pi / 2, np.zeros(2)) for step in steps], images
    )
    for name in ("observed", "arena", "boundary"):
        assert torch.equal(getattr(turned, name), getattr(state, name)), name
        assert getattr(state, name).any(), name
    assert torch.allclose(turned.map.features, state.map.features, atol=2e-3)
    ours, theirs = beliefs.visitation, turned_beliefs.visitation
    for name in ("trajectory", "goal", "unobserved"):
        assert torch.allclose(getattr(theirs, name), getattr(ours, name), atol=1e-4, rtol=2e-2), name
    assert torch.allclose(turned_beliefs.view.whole, beliefs.view.whole, atol=1e-3)
    assert torch.allclose(turned_beliefs.control.mean, beliefs.control.mean, atol=1e-3)


# A drone that has lost its pose


def nan_at(pose: Pose, lost: str) -> Pose:
    position, quaternion = pose.position.clone(), pose.quaternion.clone()
    if lost in ("everything", "position"):
        position[1] = torch.nan
    if lost in ("everything", "attitude"):
        quaternion[1] = torch.nan
    if lost == "height":
        position[1, 2] = torch.nan
    return Pose(position, quaternion)


@pytest.mark.parametrize("lost", ["everything", "position", "attitude", "height"])
def test_a_lost_pose_sees_nothing_not_even_what_it_hovers_over(rng, lost):
    sight = visible_ground(nan_at(Flights(rng, 2).pose, lost), Camera(), CONFIG)
    assert sight.covered[0].any()
    assert not sight.in_view[1].any()
    assert not sight.covered[1].any()
    assert (project(torch.ones(2, 3, 18, 32), sight, STRIDE, Camera())[1] == 0).all()


@pytest.mark.parametrize("lost", ["everything", "position", "attitude", "height"])
def test_a_lost_pose_hovers_and_leaves_no_trace_in_the_maps(rng, lost):
    steps = flight_steps(rng, 3, 4)
    images = [random_images(rng, 3) for _ in steps]
    network, _tokens = network_and_tokens(3)
    vocabulary = Vocabulary(("<pad>", "<unk>", *(f"word{n}" for n in range(18))))

    def fly(losing: bool) -> tuple[list, LearnedPolicy]:
        policy = LearnedPolicy(network, vocabulary)
        policy.reset(["word3 word4", "word1", "word5 word2"], steps[0].start)
        actions = []
        for number, (step, image) in enumerate(zip(steps, images, strict=True)):
            pose = nan_at(step.pose, lost) if losing and number == 2 else step.pose
            before = policy.state
            actions.append(policy.act(Observation(image, pose, torch.zeros(3))))
            if losing and number == 2:
                assert before is not None
                assert policy.state is not None
                assert torch.equal(policy.state.map.features[1], before.map.features[1])
                assert torch.equal(policy.state.map.view_counts[1], before.map.view_counts[1])
                assert torch.equal(policy.state.observed[1], before.observed[1])
        return actions, policy

    sound, kept = fly(losing=False)
    broken, policy = fly(losing=True)
    assert broken[2].setpoint.forward[1] == 0
    assert broken[2].setpoint.yaw_rate[1] == 0
    assert not broken[2].stop[1]
    assert sound[2].setpoint.forward[1] != 0
    for number in range(4):
        for n in (0, 2):
            assert broken[number].setpoint.forward[n] == pytest.approx(
                sound[number].setpoint.forward[n].item(), abs=1e-5
            )
    assert broken[3].setpoint.forward[1] > 0
    assert policy.state is not None
    assert kept.state is not None
    assert policy.state.map.features.isfinite().all()
    assert policy.state.observed[1].sum() < kept.state.observed[1].sum()
    assert policy.beliefs is not None
    assert policy.beliefs.control.mean.isfinite().all()
