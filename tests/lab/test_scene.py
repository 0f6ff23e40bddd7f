"""The lab's images against projection by hand and MuJoCo's own ray casting."""

import math

import mujoco
import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from mujoco_oracle import cast
from randomly import random_lakes, random_poses
from wordwing.camera import Camera, CameraConfig
from wordwing.frames import ARENA_HALF, Pose, quaternion_from_euler, quaternion_rotate
from wordwing.lab import scene as lab
from wordwing.lab.scene import LabScene
from wordwing.world.assets import BOX, CYLINDER, Asset, asset, materials
from wordwing.world.catalogue import catalogue
from wordwing.world.layout import Layout, Placement
from wordwing.world.samplers import sample_layout

FINE = Camera(CameraConfig(width=256, height=144))
GRID = [(x, y) for x in (-1.6, 0.0, 1.6) for y in (-1.6, 0.0, 1.6)]


def drone_at(x: float, y: float, yaw: float, roll: float = 0.0, pitch: float = 0.0) -> Pose:
    angles = torch.tensor([[roll], [pitch], [yaw]], dtype=torch.float32)
    return Pose(torch.tensor([[x, y, 0.7]], dtype=torch.float32), quaternion_from_euler(*angles))


def geom_centres(placement: Placement) -> tuple[np.ndarray, np.ndarray]:
    """Where the parts of a landmark are in the world [G, 3], and how thin each is, metres [G]."""
    look = asset(placement.name, "lab")
    turn = Rotation.from_euler("z", placement.yaw)
    centres = turn.apply(look.position) + np.array([placement.x, placement.y, placement.elevation])
    return centres, look.half_extents().min(axis=-1)


def slots_of_geoms(model: mujoco.MjModel) -> np.ndarray:
    """[ngeom + 1] the landmark that each geom belongs to by its body, -1 for none and for a ray that hits nothing."""
    names = [model.body(body).name for body in model.geom_bodyid]
    return np.array([-1 if name == "world" else int(name) for name in names] + [-1])


@pytest.mark.parametrize("first", range(0, len(catalogue()), len(GRID)))
def test_every_landmark_is_seen_where_its_parts_project(rng, first):
    entries = catalogue()[first : first + len(GRID)]
    yaws = rng.uniform(-3.1, 3.1, len(entries))
    places = [Placement(e.name, *xy, float(yaw)) for e, xy, yaw in zip(entries, GRID, yaws, strict=False)]
    scene = LabScene(Layout(tuple(places)), FINE)
    for slot, place in enumerate(places):
        centres, thickness = geom_centres(place)
        for _view in range(2):
            x, y = ARENA_HALF, ARENA_HALF
            while max(abs(x), abs(y)) > 2.0:
                # From a metre away on a diagonal of the grid, where no other landmark is in the way.
                bearing = math.pi / 4 + math.pi / 2 * rng.integers(4) + rng.uniform(-0.15, 0.15)
                x, y = place.x - 1.05 * math.cos(bearing), place.y - 1.05 * math.sin(bearing)
            roll, pitch, aside = rng.uniform(-0.15, 0.15, 3)
            camera_pose = FINE.pose(drone_at(x, y, bearing + aside, roll, pitch))
            pixels, in_front = FINE.project(torch.from_numpy(centres).float(), camera_pose)
            inside = (in_front & FINE.contains(pixels)).numpy() & (thickness > 0.012)
            assert inside.any(), place.name
            columns, rows = pixels[torch.from_numpy(inside)].int().numpy().T
            seen = scene.segment(camera_pose)[rows, columns]
            assert (seen == slot).all(), (place.name, seen)


def test_segmentation_agrees_with_mujocos_ray_casting(rng):
    camera = Camera()
    agree, landmarks, total = 0, 0, 0
    for corpus in ("cage", "field", "house", "field"):
        layout = sample_layout(corpus, rng)
        scene = LabScene(layout, camera)
        slots = slots_of_geoms(scene.model)
        poses = random_poses(rng, 12, reach=2.2)
        for drone in [poses[[i]] for i in range(12) if not layout.inside(poses.xy[i])]:
            camera_pose = camera.pose(drone)
            rays = camera.rays().reshape(-1, 3)
            rays = quaternion_rotate(camera_pose.quaternion, rays / rays.norm(dim=-1, keepdim=True))
            _, geom = cast(scene.model, camera_pose.position[0].numpy(), rays.numpy())
            expected = slots[geom].reshape(72, 128)
            agree += (scene.segment(camera_pose) == expected).sum()
            landmarks += (expected >= 0).sum()
            total += expected.size
    assert landmarks / total > 0.03  # there is something to see
    assert agree / total > 0.9995


@pytest.mark.parametrize(
    ("colour", "yaw", "looks_right"),
    [
        ("red", 0.0, lambda r, g, b: r > 2.5 * max(g, b)),
        ("white", -math.pi / 2, lambda r, g, b: min(r, g, b) > 0.55 and max(r, g, b) < 1.15 * min(r, g, b)),
        ("blue", math.pi, lambda r, g, b: b > 2 * max(r, g)),
        ("yellow", math.pi / 2, lambda r, g, b: min(r, g) > 2.5 * b and g > 0.7 * r),
    ],
)
def test_the_fences_have_their_colours_on_their_sides(colour, yaw, looks_right):
    ahead, left = np.array([math.cos(yaw), math.sin(yaw)]), np.array([-math.sin(yaw), math.cos(yaw)])
    along = np.linspace(-1.5, 1.5, 13)
    points = np.insert(ARENA_HALF * ahead + along[:, None] * left, 2, 0.15, axis=1)
    camera = Camera()
    camera_pose = camera.pose(drone_at(0.0, 0.0, yaw))
    pixels, _ = camera.project(torch.from_numpy(points).float(), camera_pose)
    columns, rows = pixels.int().numpy().T
    seen = LabScene(Layout(()), camera).draw(camera_pose).numpy()[rows, columns]
    assert all(looks_right(*rgb) for rgb in seen), (colour, seen)


def test_above_the_fences_a_net_lets_the_hall_be_seen():
    """Along a level line, most of what is seen lies behind the net, and ropes come at even distances."""
    model = LabScene(Layout(()), Camera()).model
    y = np.linspace(-2.0, 2.0, 4001)
    targets = np.stack([np.full_like(y, ARENA_HALF), y, np.full_like(y, 1.4)], axis=-1) - [0.0, 0.0, 0.7]
    distance, _ = cast(model, np.array([0.0, 0.0, 0.7]), targets / np.linalg.norm(targets, axis=-1, keepdims=True))
    rope = distance < np.linalg.norm(targets, axis=-1) + 0.02
    assert 0.05 < rope.mean() < 0.25
    starts = y[1:][np.diff(rope.astype(int)) == 1]
    assert np.diff(starts) == pytest.approx(0.235, abs=0.005)


def test_all_scenes_share_one_kernel(rng):
    cameras = [Camera(), Camera(), FINE, Camera()]
    layouts = [
        Layout(()),
        sample_layout("field", rng),
        Layout((Placement("Apple", 0.0, 0.0),)),
        Layout((), lakes=random_lakes(rng)),
    ]
    scenes = [LabScene(layout, camera) for layout, camera in zip(layouts, cameras, strict=True)]
    for scene in scenes:
        scene.draw(scene.camera.pose(drone_at(-1.5, 0.0, 0.0)))
    first, *others = [scene._context._megakernel for scene in scenes]
    assert all(kernel.module is first.module and kernel.hash == first.hash for kernel in others)


def test_tarpaulins_lie_where_the_lakes_are_and_are_no_landmarks(rng):
    camera, floor = Camera(), mujoco.mjtGeom.mjGEOM_PLANE
    wet_pixels, dry_pixels = 0, 0
    for _ in range(4):
        layout = Layout(sample_layout("field", rng).landmarks, lakes=random_lakes(rng))
        scene, dry = LabScene(layout, camera), LabScene(Layout(layout.landmarks), camera)
        for i in range(4):
            camera_pose = camera.pose(random_poses(rng, 4)[[i]])
            assert np.array_equal(scene.segment(camera_pose), dry.segment(camera_pose))
            rays = camera.rays().reshape(-1, 3)
            rays = quaternion_rotate(camera_pose.quaternion, rays / rays.norm(dim=-1, keepdim=True)).numpy()
            origin = camera_pose.position[0].numpy()
            distance, geom = cast(scene.model, origin, rays)
            points = (origin + distance[:, None] * rays)[:, :2]
            around = np.array([(x, y) for x in (-0.02, 0.0, 0.02) for y in (-0.02, 0.0, 0.02)])
            lake = layout.lake_at(points[:, None] + around)  # a bitmap's pixel is 1.6 cm and blends with the next
            on_floor = (scene.model.geom_type[geom] == floor) & (np.abs(points) < 4.4).all(axis=-1)
            colours = scene.draw(camera_pose).numpy().reshape(-1, 3)
            red, green, blue = colours.T
            water = (blue > 1.15 * green) & (green > 1.5 * red)
            wet, mats = on_floor & lake.all(axis=-1), on_floor & ~lake.any(axis=-1)
            assert water[wet].all()
            assert not water[mats].any()
            change = np.abs(colours - dry.draw(camera_pose).numpy().reshape(-1, 3)).max(axis=-1)
            assert change[~on_floor].max() < 1e-6
            assert np.quantile(change[mats], 0.98) < 0.01
            wet_pixels, dry_pixels = wet_pixels + wet.sum(), dry_pixels + mats.sum()
    assert min(wet_pixels, dry_pixels) > 5000


def test_landmarks_cast_shadows_on_the_mats():
    camera = Camera()
    camera_pose = camera.pose(drone_at(-1.5, 0.0, 0.0))
    layout = Layout((Placement("Barrel", 0.0, 0.0),))
    scene = LabScene(layout, camera)
    empty = LabScene(Layout(()), camera).draw(camera_pose)
    changed = (scene.draw(camera_pose) - empty).mean(dim=-1).numpy()
    beside = changed[scene.segment(camera_pose) < 0]
    assert (beside < -0.05).sum() > 50
    assert (beside > 0.02).sum() == 0


def painted(monkeypatch, name: str, kind: int, size: list[float], rgb: list[float]) -> LabScene:
    """A scene with one geom of a material standing in the middle."""
    index = [material.name for material in materials()].index(name)
    height = size[1] if kind == CYLINDER else size[2]
    body = Asset(
        name="Barrel",
        kind=np.array([kind], np.int32),
        position=np.array([[0.0, 0.0, height]]),
        quaternion=np.array([[1.0, 0.0, 0.0, 0.0]]),
        size=np.array([size]),
        rgb=np.array([rgb]),
        material=np.array([index], np.int32),
    )
    monkeypatch.setattr(lab, "asset", lambda name, look: body)
    return LabScene(Layout((Placement("Barrel", 0.0, 0.0),)), FINE)


@pytest.mark.parametrize(("kind", "size"), [(CYLINDER, [0.15, 0.5, 0.0]), (BOX, [0.15, 0.15, 0.5])])
def test_bands_are_as_tall_as_their_repeats_a_metre_say(monkeypatch, kind, size):
    scene = painted(monkeypatch, "bands", kind, size, [0.1, 0.1, 0.6])
    camera_pose = FINE.pose(drone_at(-1.5, 0.0, 0.0))
    red = scene.draw(camera_pose)[..., 0].numpy()[:, 128]
    # Four repeats a metre, white above blue: an edge every eighth of a metre. A box has as many repeats on its ends,
    # 0.3 m across, as on its sides of a metre, so it has those of its mean height, weighted by area.
    mean_height = (4 * 0.30 * 1.0 + 2 * 0.09 * 0.3) / (4 * 0.30 + 2 * 0.09)
    step = 0.125 if kind == CYLINDER else 0.125 / mean_height
    levels = np.arange(1.0 - step, 0.05, -step)
    points = torch.from_numpy(np.stack([np.full_like(levels, -0.15), 0 * levels, levels], axis=-1)).float()
    pixels, _ = FINE.project(points, camera_pose)
    expected = pixels[:, 1].numpy()
    column = red[int(expected[0]) - 4 : int(expected[-1]) + 4] > 0.35
    edges = np.flatnonzero(np.diff(column.astype(int))) + int(expected[0]) - 3
    assert len(edges) == len(expected)
    assert edges == pytest.approx(expected, abs=1.5)


def test_a_brick_wall_shows_its_joints_and_a_plain_one_does_not(monkeypatch):
    camera_pose = FINE.pose(drone_at(-1.2, 0.0, 0.0))
    contrast = {}
    for name in ("plain", "bricks"):
        scene = painted(monkeypatch, name, BOX, [0.3, 0.3, 0.4], [0.7, 0.4, 0.3])
        contrast[name] = scene.draw(camera_pose)[..., 0].numpy()[60:110, 118:138].std()
    assert contrast["plain"] < 0.01
    assert contrast["bricks"] > 0.06
