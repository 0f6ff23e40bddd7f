"""The `sim` camera's geometry against MuJoCo's ray casting, and its paint against common sense."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from mujoco_oracle import cast, mujoco_world, slots_of_geoms
from randomly import random_lakes, random_poses
from wordwing.bench.sim import crowded_layout
from wordwing.camera import Camera
from wordwing.frames import ARENA_HALF, Pose, quaternion_rotate
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import SimScene
from wordwing.world.fences import FENCE_HEIGHT
from wordwing.world.layout import Layout, Placement

CPU = torch.device("cpu")
GROUND, FENCE, SKY = -1, -2, -3


def scene_of(layouts: list[Layout]) -> SimScene:
    return SimScene.of(layouts)


def world_rays(camera: Camera, poses: Pose) -> np.ndarray:
    """[N, 9216, 3] unit directions through all pixels, world frame."""
    rays = camera.rays().reshape(1, -1, 3)
    rays = rays / rays.norm(dim=-1, keepdim=True)
    return quaternion_rotate(poses.quaternion[:, None], rays).double().numpy()


def fence_in_the_way(origin: np.ndarray, rays: np.ndarray) -> np.ndarray:
    """[R] distance to the fences by stepping along each ray's horizontal exit from the arena; inf above them."""
    with np.errstate(divide="ignore"):
        walls = (np.sign(rays[:, :2]) * ARENA_HALF - origin[:2]) / rays[:, :2]
    distance = walls.min(axis=-1)
    height = origin[2] + distance * rays[:, 2]
    return np.where((height >= 0) & (height <= FENCE_HEIGHT), distance, np.inf)


def test_distances_and_landmarks_agree_with_mujocos_ray_casting(rng):
    layouts = [crowded_layout(12, rng) for _ in range(24)]
    camera = Camera()
    poses = camera.pose(random_poses(rng, 24))
    distance, segmentation = Renderer(scene_of(layouts), camera).probe(poses)
    rays = world_rays(camera, poses)
    agree, pixels = 0, 0
    for i, layout in enumerate(layouts):
        origin = poses.position[i].double().numpy()
        theirs, geom = cast(mujoco_world(layout), origin, rays[i])
        theirs = np.where(theirs < 0, np.inf, theirs)
        fence = fence_in_the_way(origin, rays[i])
        what = np.where(geom < 0, SKY, np.where(geom == 0, GROUND, slots_of_geoms(layout)[geom]))
        what = np.where(fence < theirs, FENCE, what)
        theirs = np.minimum(theirs, fence)
        ours = distance[i].reshape(-1).double().numpy()
        seen = segmentation[i].reshape(-1).numpy()
        near = theirs < 50  # float32 says little about where grazing rays meet the floor far away
        same = (seen == what) & (np.isclose(ours, theirs, rtol=1e-4, atol=1e-3) | ~near)
        agree, pixels = agree + same.sum(), pixels + len(same)
    assert agree / pixels > 0.9995


def test_every_landmark_of_the_catalogue_is_hit_where_mujoco_hits_it(rng):
    from wordwing.world.catalogue import catalogue

    layouts = [Layout((Placement(entry.name, 0.0, 0.0, float(rng.uniform(-3, 3))),)) for entry in catalogue()]
    camera = Camera()
    drones = Pose.level(torch.tensor([[-1.2, 0.0]]).expand(len(layouts), 2), torch.zeros(len(layouts)), 0.7)
    poses = camera.pose(drones)
    distance, segmentation = Renderer(scene_of(layouts), camera).probe(poses)
    rays = world_rays(camera, poses)
    for i, layout in enumerate(layouts):
        theirs, geom = cast(mujoco_world(layout), poses.position[i].double().numpy(), rays[i])
        on_it = geom > 0
        assert on_it.sum() > 60, layout.landmarks[0].name
        same = (segmentation[i].reshape(-1).numpy() == 0) == on_it
        same[on_it] &= np.isclose(distance[i].reshape(-1).numpy()[on_it], theirs[on_it], atol=1e-3)
        assert same.mean() > 0.999, layout.landmarks[0].name


def test_a_camera_inside_a_geom_sees_its_far_wall_as_mujoco_does():
    layout = Layout((Placement("Fridge", 0.0, 0.0),))
    origin = torch.tensor([[0.0, 0.0, 0.5]])
    poses = Pose(origin, torch.tensor([[1.0, 0.0, 0.0, 0.0]]))
    camera = Camera()
    distance, _ = Renderer(scene_of([layout]), camera).probe(poses)
    theirs, _geom = cast(mujoco_world(layout), origin[0].numpy(), world_rays(camera, poses)[0])
    assert np.allclose(distance[0].reshape(-1).numpy(), theirs, atol=1e-3)


def test_each_landmarks_known_position_is_projected_onto_its_own_pixels(rng):
    """The camera's mathematics against the renderer's: 89 landmarks, tilted drones all round."""
    from wordwing.world.assets import asset
    from wordwing.world.catalogue import catalogue

    camera, views = Camera(), 6
    for entry in catalogue():
        yaw = float(rng.uniform(-3, 3))
        layout = Layout((Placement(entry.name, 0.3, -0.2, yaw),))
        body = asset(entry.name)
        big = int(np.prod(body.half_extents(), axis=-1).argmax())
        turn = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
        centre = np.append(turn @ body.position[big, :2] + [0.3, -0.2], body.position[big, 2])
        around = rng.uniform(-np.pi, np.pi, views)
        away = np.stack([np.cos(around), np.sin(around)], axis=-1) * rng.uniform(1.0, 1.6, (views, 1))
        drones = random_poses(rng, views, tilt=0.12)
        position = torch.from_numpy(np.column_stack([centre[:2] - away, np.full(views, 0.7)])).float()
        level = Pose.level(position[:, :2], torch.from_numpy(around).float(), 0.7)
        tilt = Pose(torch.zeros(views, 3), drones.quaternion)
        # Keep the random roll and pitch, look along `around`.
        untwist = Pose.level(torch.zeros(views, 2), -tilt.yaw)
        poses = camera.pose(Pose(position, (level @ untwist @ tilt).quaternion))
        _, segmentation = Renderer(scene_of([layout] * views), camera).probe(poses)
        pixels, in_front = camera.project(torch.from_numpy(centre).float(), poses)
        inside = in_front & camera.contains(pixels)
        assert inside.sum() >= views // 2, entry.name
        for view in torch.nonzero(inside)[:, 0].tolist():
            column, row = pixels[view].floor().long().tolist()
            assert segmentation[view, row, column] == 0, entry.name


def test_the_fences_have_their_colours_on_their_sides():
    scene = scene_of([Layout(())] * 4)
    yaws = torch.tensor([0.0, -np.pi / 2, np.pi, np.pi / 2])
    camera = Camera()
    poses = camera.pose(Pose.level(torch.zeros(4, 2), yaws, 0.7))
    images = Renderer(scene, camera, RenderConfig(textures=False)).first_person(poses)
    middle = torch.tensor([[2.35, 0.0, 0.15], [0.0, -2.35, 0.15], [-2.35, 0.0, 0.15], [0.0, 2.35, 0.15]])
    pixels, _ = camera.project(middle, poses)
    red, white, blue, yellow = (
        images[i, int(v), int(u)].int().tolist() for i, (u, v) in enumerate(pixels.floor().tolist())
    )
    assert red[0] > 2 * red[1]
    assert red[0] > 2 * red[2]
    assert min(white) > 120
    assert max(white) - min(white) < 30
    assert blue[2] > 2 * blue[0]
    assert min(yellow[:2]) > 2 * yellow[2]


def test_the_overhead_map_shows_a_landmark_where_it_stands_with_x_up_and_y_left():
    layout = Layout((Placement("Pumpkin", 1.5, 1.0),))
    image = Renderer(scene_of([layout]), config=RenderConfig(textures=False)).overhead(size=200, extent=5.0)[0].int()
    orange = (image[..., 0] > 150) & (image[..., 1] < 150) & (image[..., 2] < 90)
    rows, columns = torch.nonzero(orange[20:180, 20:180], as_tuple=True)
    assert 2.5 - (rows.float().mean() + 20.5) * 5 / 200 == pytest.approx(1.5, abs=0.06)
    assert 2.5 - (columns.float().mean() + 20.5) * 5 / 200 == pytest.approx(1.0, abs=0.06)


def test_shadows_fall_away_from_the_sun_and_only_when_asked():
    layout = Layout((Placement("Column", 0.0, 0.0),))
    lit = Renderer(scene_of([layout]), config=RenderConfig(textures=False)).overhead(200, samples=1)[0].int().sum(-1)
    config = RenderConfig(textures=False, shadows=True, sun_azimuth_deg=0.0)
    shaded = Renderer(scene_of([layout]), config=config).overhead(200, samples=1)[0].int().sum(-1)
    darker = torch.nonzero(shaded < lit - 30)
    assert len(darker) > 50
    assert darker[:, 0].float().mean() > 105  # the sun is in +x, up in the image: the shadow lies below


def test_textures_and_antialiasing_change_the_image_but_not_its_mean(rng):
    layout = crowded_layout(8, rng)
    poses = Camera().pose(random_poses(rng, 1))
    images = [
        Renderer(scene_of([layout]), config=config).first_person(poses).float()
        for config in (RenderConfig(textures=False), RenderConfig(), RenderConfig(samples=3))
    ]
    plain, textured, smooth = images
    assert (plain - textured).abs().mean() > 2
    assert textured.mean() == pytest.approx(smooth.mean().item(), rel=0.02)
    assert (smooth - textured).abs().mean() > 0.5


def lakeland(rng: np.random.Generator) -> Layout:
    return replace(crowded_layout(6, rng), lakes=random_lakes(rng))


def near_a_mesh_line(points: np.ndarray, margin: float = 1e-3) -> np.ndarray:
    """[...] whether points [..., 2] lie so near to the edge of a lake cell that rounding decides."""
    cells = (points + ARENA_HALF) / 0.047
    return (np.abs(cells - np.round(cells)) * 0.047 < margin).any(axis=-1)


@pytest.mark.parametrize(("textures", "shadows"), [(False, False), (True, False), (True, True)])
def test_ground_pixels_are_blue_exactly_where_their_rays_meet_a_lake(rng, textures, shadows):
    layouts = [*(lakeland(rng) for _ in range(11)), crowded_layout(6, rng)]
    camera, count = Camera(), len(layouts)
    poses = camera.pose(random_poses(rng, count))
    renderer = Renderer(scene_of(layouts), camera, RenderConfig(textures, shadows))
    images = renderer.first_person(poses).reshape(count, -1, 3).int().numpy()
    ground = renderer.probe(poses)[1].reshape(count, -1).numpy() == GROUND
    rays, origin = world_rays(camera, poses), poses.position[:, None].double().numpy()
    points = (origin + origin[..., 2:] / -rays[..., 2:] * rays)[..., :2]
    near = np.linalg.norm(points - origin[..., :2], axis=-1) < 8  # float32 says little about grazing rays
    sure = ground & near & ~near_a_mesh_line(points)
    lake = np.stack([layout.lake_at(xy) for layout, xy in zip(layouts, points, strict=True)])
    red, green, blue = np.moveaxis(images, -1, 0)
    water, grass = (blue > green + 15) & (green > red + 15), (green > blue + 15) & (green > red + 5)
    assert water[sure & lake].all()
    assert grass[sure & ~lake].all()
    assert min((sure & lake).sum(), (sure & ~lake).sum()) > 3000  # there is something to see


@pytest.mark.parametrize("textures", [False, True])
def test_the_overhead_map_is_blue_exactly_on_lakes(rng, textures):
    layouts = [Layout((), lakes=random_lakes(rng)), Layout(())]
    images = Renderer(scene_of(layouts), config=RenderConfig(textures)).overhead(size=333, extent=4.69, samples=1)
    along = 4.69 * (0.5 - (np.arange(333) + 0.5) / 333)
    points = np.stack(np.meshgrid(along, along, indexing="ij"), axis=-1)
    sure = ~near_a_mesh_line(points, 1e-4)
    for layout, image in zip(layouts, images.int().numpy(), strict=True):
        blue = image[..., 2] > image[..., 1]
        assert (blue == layout.lake_at(points))[sure].all()
    assert layouts[0].lake_at(points).any()


@pytest.mark.parametrize("textures", [False, True])
def test_no_water_looks_like_the_blue_fence_or_grass(textures):
    pond = Layout((), lakes=tuple((i, j) for i in range(20, 50) for j in range(30, 70)))
    camera = Camera()
    poses = camera.pose(Pose.level(torch.zeros(1, 2), torch.full((1,), np.pi), 0.7))
    renderer = Renderer(scene_of([pond]), camera, RenderConfig(textures))
    image, seen = renderer.first_person(poses)[0].float(), renderer.probe(poses)[1][0]
    points = torch.from_numpy(world_rays(camera, poses)[0]).reshape(72, 128, 3)
    points = (points / -points[..., 2:] * 0.7)[..., :2].numpy()
    lake = torch.from_numpy(pond.lake_at(points)) & (seen == GROUND)
    fence = (seen == FENCE) & (image[..., 2] > 2 * image[..., 0])
    for other in (fence, (seen == GROUND) & ~lake):
        apart = torch.cdist(image[lake], image[other])
        assert apart.numel() > 100_000
        assert apart.min() > 50


def test_ripples_are_slight_and_only_with_textures():
    pond = Layout((), lakes=tuple((i, j) for i in range(100) for j in range(100)))
    scene = scene_of([pond])
    plain = Renderer(scene, config=RenderConfig(textures=False)).overhead(200, 4.0)[0].float().reshape(-1, 3)
    rippled = Renderer(scene).overhead(200, 4.0)[0].float().reshape(-1, 3)
    assert (plain == plain[0]).all()
    assert (rippled.std(dim=0) > 3).all()
    assert (rippled.std(dim=0) < 25).all()


def test_lakes_are_ground_to_probe_and_change_nothing_else(rng):
    wet = [lakeland(rng) for _ in range(6)]
    dry = [replace(layout, lakes=()) for layout in wet]
    poses = Camera().pose(random_poses(rng, 6))
    (distance, slots), (dry_distance, dry_slots) = (Renderer(scene_of(some)).probe(poses) for some in (wet, dry))
    assert torch.equal(distance, dry_distance)
    assert torch.equal(slots, dry_slots)
    images, dry_images = (Renderer(scene_of(some)).first_person(poses) for some in (wet, dry))
    assert torch.equal(images[slots != GROUND], dry_images[slots != GROUND])
    assert not torch.equal(images, dry_images)
