"""The lab's camera: lens, blur, exposure and noise, each against a measurement of its own."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from wordwing.camera import Camera, CameraConfig
from wordwing.frames import Pose, quaternion_from_euler
from wordwing.lab.camera import LabCamera, LabCameraConfig
from wordwing.lab.scene import LabScene
from wordwing.lens import LensConfig
from wordwing.world.assets import asset
from wordwing.world.layout import Layout, Placement
from wordwing.world.samplers import sample_layout

CLEAN = LabCameraConfig(exposure_spread=0.0, flicker=0.0, vignetting=0.0, read_noise=0.0, shot_noise=0.0)
SMALL = LensConfig(sensor=CameraConfig(width=80, height=46, horizontal_fov_deg=82.0))
EMPTY = Layout(())
CAMERA = Camera()


def drone_at(x: float, y: float, yaw: float, roll: float = 0.0, pitch: float = 0.0) -> Pose:
    angles = torch.tensor([[roll], [pitch], [yaw]], dtype=torch.float32)
    return Pose(torch.tensor([[x, y, 0.7]], dtype=torch.float32), quaternion_from_euler(*angles))


HERE = drone_at(-1.4, 0.2, 0.0)


def clean_camera(layout: Layout, **changes: object) -> LabCamera:
    return LabCamera(layout, np.random.default_rng(0), replace(CLEAN, **changes))


def test_an_image_is_what_the_policy_expects():
    image = LabCamera(EMPTY, np.random.default_rng(0)).take(HERE, HERE)
    assert image.shape == (72, 128, 3)
    assert image.dtype == torch.uint8


def test_the_same_seed_takes_the_same_images_and_another_seed_others(rng):
    layout = sample_layout("cage", rng)
    first, again, other = (LabCamera(layout, np.random.default_rng(seed)) for seed in (5, 5, 6))
    after = drone_at(-1.4, 0.2, 0.02)
    images = [first.take(HERE, after), first.take(HERE, after)]
    assert not torch.equal(*images)  # noise is new in every image
    assert torch.equal(images[0], again.take(HERE, after))
    assert torch.equal(images[1], again.take(HERE, after))
    assert not torch.equal(images[0], other.take(HERE, after))
    first.begin(np.random.default_rng(5))
    assert torch.equal(images[0], first.take(HERE, after))


def test_noise_is_as_strong_as_configured():
    camera = clean_camera(EMPTY, lens=SMALL, read_noise=0.01, shot_noise=0.04)
    images = torch.stack([camera.raw(HERE, HERE) for _ in range(60)]).numpy()
    light = clean_camera(EMPTY, lens=SMALL).raw(HERE, HERE).numpy()
    assert images.mean(axis=0) == pytest.approx(light, abs=6 * 0.04 / math.sqrt(60))
    for low, high in [(0.1, 0.2), (0.4, 0.5), (0.6, 0.7)]:
        flat = (light > low) & (light < high)
        expected = math.sqrt(0.01**2 + 0.04**2 * light[flat].mean())
        assert flat.sum() > 100
        assert images[:, flat].std(axis=0, ddof=1).mean() == pytest.approx(expected, rel=0.05)


def test_noise_differs_from_pixel_to_pixel_and_from_channel_to_channel():
    noisy = clean_camera(EMPTY, lens=SMALL, read_noise=0.03).raw(HERE, HERE)
    grain = (noisy - clean_camera(EMPTY, lens=SMALL).raw(HERE, HERE)).numpy()
    assert abs(np.corrcoef(grain[:, :-1].ravel(), grain[:, 1:].ravel())[0, 1]) < 0.05
    assert abs(np.corrcoef(grain[..., 0].ravel(), grain[..., 1].ravel())[0, 1]) < 0.05


def test_the_exposure_varies_from_flight_to_flight_and_flickers_within_one():
    camera = clean_camera(EMPTY, lens=SMALL, exposure_spread=0.10, flicker=0.02)
    flights = []
    for seed in range(60):
        camera.begin(np.random.default_rng(seed))
        flights.append([camera.raw(HERE, HERE).mean().log().item() for _ in range(2)])
    flights = np.array(flights)
    assert flights.mean(axis=1).std(ddof=1) == pytest.approx(0.10, rel=0.3)
    assert np.diff(flights, axis=1).std() / math.sqrt(2) == pytest.approx(0.02, rel=0.3)


def test_corners_lose_the_light_that_vignetting_takes():
    bright = clean_camera(EMPTY).raw(HERE, HERE).mean(dim=-1)
    dim = clean_camera(EMPTY, vignetting=0.4).raw(HERE, HERE).mean(dim=-1)
    share = (dim / bright).numpy()
    assert share[[0, 0, -1, -1], [0, -1, 0, -1]] == pytest.approx(0.6, abs=0.03)
    assert share[70, 124] == pytest.approx(1.0, abs=0.03)


def test_turning_blurs_like_the_mean_of_the_views_on_the_way(rng):
    layout = sample_layout("field", rng)
    views = [drone_at(0.0, 0.0, yaw, roll, 0.05) for yaw, roll in [(1.0, 0.0), (1.04, 0.01), (1.08, 0.02)]]
    sharp = torch.stack([clean_camera(layout).raw(view, view) for view in views])
    blurred = clean_camera(layout).raw(views[0], views[2])
    middle = (slice(20, -20), slice(30, -30))  # the edges turn out of the image
    error = (blurred - sharp.mean(0))[middle].abs().mean()
    assert error < 0.01
    for one in sharp[::2]:
        assert (blurred - one)[middle].abs().mean() > 4 * error


def columns_of(camera: LabCamera, empty: LabCamera, before: Pose, after: Pose) -> tuple[float, float]:
    """Where in the policy's view a landmark begins and ends, against the same view without it."""
    change = (camera.take(before, after).int() - empty.take(before, after).int()).abs().sum(dim=-1)
    columns = np.flatnonzero((change[:34] > 60).any(dim=0))  # above its shadow
    return columns[0], columns[-1]


def test_turning_left_smears_a_post_to_the_right():
    post = Layout((Placement("StreetLamp", 0.0, 0.0),))
    camera, empty = clean_camera(post), clean_camera(EMPTY)
    opened, closed = drone_at(-1.4, 0.0, -0.05), drone_at(-1.4, 0.0, 0.05)
    first, last = columns_of(camera, empty, opened, opened), columns_of(camera, empty, closed, closed)
    shift = 0.1 * CAMERA.focal  # a turn of 0.1 rad about the middle of the image
    assert last[0] - first[0] == pytest.approx(shift, abs=1.5)
    smeared = columns_of(camera, empty, opened, closed)
    assert smeared[0] == pytest.approx(first[0], abs=1)
    assert smeared[1] == pytest.approx(last[1], abs=1)


@pytest.mark.parametrize("moved", [(0.0, 0.0), (0.014, -0.003)])
def test_without_turning_nothing_is_blurred(moved):
    after = drone_at(-1.4 + moved[0], 0.2 + moved[1], 0.3, 0.02, -0.1)
    before = drone_at(-1.4, 0.2, 0.3, 0.02, -0.1)
    layout = Layout((Placement("Box", 0.0, 0.5),))
    blurred, sharp = clean_camera(layout), clean_camera(layout, blur_samples=1)
    assert (blurred.raw(before, after) - sharp.raw(before, after)).abs().max() <= 1 / 255 + 1e-6


def test_the_straightened_image_is_the_pinhole_image(rng):
    layout = sample_layout("field", rng)
    for yaw, roll, pitch in rng.uniform(-0.15, 0.15, (3, 3)):
        drone = drone_at(-0.3, 0.4, 20 * yaw, roll, pitch)
        view = clean_camera(layout).take(drone, drone).float() / 255
        fine = Camera(CameraConfig(width=512, height=288))
        pinhole = LabScene(layout, fine).draw(fine.pose(drone))
        pinhole = pinhole.unflatten(1, (128, 4)).unflatten(0, (72, 4)).mean(dim=(1, 3))
        error = (view - pinhole).abs().mean()
        assert error < 0.02
        for shift in [(0, 1), (0, -1), (1, 0), (-1, 0)]:
            assert (view - pinhole.roll(shift, (0, 1))).abs().mean() > 1.5 * error


@pytest.mark.parametrize("name", ["TrafficCone", "Banana", "Mushroom", "Container", "Pumpkin", "House1", "Sofa"])
def test_landmarks_are_where_the_policys_camera_projects_them(rng, name):
    placement = Placement(name, 0.3, -0.2)
    camera, empty, scene = (
        clean_camera(Layout((placement,))),
        clean_camera(EMPTY),
        LabScene(Layout((placement,)), CAMERA),
    )
    look = asset(name, "lab")
    thick = look.half_extents().min(axis=-1) > 0.02
    centres = torch.from_numpy(look.position[thick] + [0.3, -0.2, 0.0]).float()
    for bearing, aside, roll, pitch in rng.uniform(-1, 1, (3, 4)) * [3.1, 0.3, 0.15, 0.1]:
        x, y = 0.3 - 1.3 * math.cos(bearing), -0.2 - 1.3 * math.sin(bearing)
        drone = drone_at(x, y, bearing + aside, roll, pitch)
        change = (camera.take(drone, drone).int() - empty.take(drone, drone).int()).abs().sum(dim=-1).numpy()
        pixels, _ = CAMERA.project(centres, CAMERA.pose(drone))
        columns, rows = pixels[CAMERA.contains(pixels)].int().numpy().T
        assert len(rows) > 0
        assert (change[rows, columns] > 10).all()
        there = scene.segment(CAMERA.pose(drone)) == 0
        assert (change[there] > 10).mean() > 0.93  # the rest happens to have the colour of what is behind
        assert (change[:10][~there[:10]] > 10).mean() < 0.01  # elsewhere, above any shadow, nothing changes


def test_segmentation_and_image_show_the_same_wide_view():
    camera = clean_camera(Layout((Placement("Container", 0.0, 0.0),)))
    pixels, _ = camera.wide.project(torch.tensor([[0.0, 0.0, 0.15]]), camera.wide.pose(HERE))
    column, row = pixels[0].int().tolist()
    slots = camera.segment(HERE)
    assert slots.shape == (camera.wide.config.height, camera.wide.config.width)
    assert slots[row, column] == 0
    assert slots[0, 0] == -1


def test_the_lab_is_neither_dark_nor_washed_out(rng):
    images = []
    for corpus in ("cage", "field", "house") * 2:
        layout = sample_layout(corpus, rng)
        camera = LabCamera(layout, rng)
        for x, y, yaw in rng.uniform(-1, 1, (6, 3)) * [1.8, 1.8, 3.1]:
            if not layout.inside((x, y)):
                drone = drone_at(x, y, yaw)
                images.append(camera.take(drone, drone).float())
    assert len(images) > 20
    light = torch.stack(images)
    assert 90 < light.mean() < 140
    assert (light > 250).float().mean() < 0.02
    assert (light < 10).float().mean() < 0.02
