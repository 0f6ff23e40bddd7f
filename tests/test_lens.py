"""The lens against hand-written formulas and pictures of straight edges painted pixel by pixel."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from wordwing.camera import Camera, CameraConfig
from wordwing.lens import LensConfig, Rectifier, distort, landing, undistort

LENS = LensConfig()
SENSOR = Camera(LENS.sensor)


def bent_by_hand(left: np.ndarray, up: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r = np.sqrt(left**2 + up**2)
    factor = 1 - 0.10 * r**2 + 0.015 * r**4
    return left * factor, up * factor


def straightened_by_table(left: np.ndarray, up: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The inverse, looked up in a table of radii."""
    radii = np.linspace(0.0, 1.7, 20_000)
    bent, _ = bent_by_hand(radii, np.zeros_like(radii))
    r = np.hypot(left, up)
    factor = np.interp(r, bent, radii) / r
    return left * factor, up * factor


def residual(rows: np.ndarray) -> float:
    """How far the points (0, rows[0]), (1, rows[1]), … are from the straight line that fits them best."""
    columns = np.arange(len(rows))
    return float(np.abs(np.polyval(np.polyfit(columns, rows, 1), columns) - rows).max())


def raw_picture_of_an_edge(slope: float, offset: float) -> np.ndarray:
    """What the sensor sees of a white half-plane below the line up = slope·left + offset; [H, W]."""
    fine = 6  # rays a pixel along each axis
    width, height = LENS.sensor.width, LENS.sensor.height
    u, v = np.meshgrid((np.arange(width * fine) + 0.5) / fine, (np.arange(height * fine) + 0.5) / fine)
    left, up = straightened_by_table((width / 2 - u) / SENSOR.focal, (height / 2 - v) / SENSOR.focal)
    white = (up < slope * left + offset).astype(float)
    return white.reshape(height, fine, width, fine).mean(axis=(1, 3))


def test_distortion_is_browns_formula(rng):
    rays = rng.uniform(-1.2, 1.2, (50, 2))
    expected = np.stack(bent_by_hand(rays[:, 0], rays[:, 1]), axis=-1)
    assert distort(torch.from_numpy(rays), LENS).numpy() == pytest.approx(expected, abs=1e-12)


def test_a_barrel_pulls_the_corners_in():
    corner = torch.tensor([0.9, 0.5])
    bent = distort(corner, LENS)
    assert bent.norm() < 0.95 * corner.norm()
    assert (bent / bent.norm()).tolist() == pytest.approx((corner / corner.norm()).tolist())


def test_undistorting_is_the_inverse_of_distorting_over_the_whole_raw_image():
    raw = SENSOR.rays()[..., 1:]
    straight = undistort(raw, LENS)
    assert distort(straight, LENS).numpy() == pytest.approx(raw.numpy(), abs=1e-6)
    assert undistort(distort(straight, LENS), LENS).numpy() == pytest.approx(straight.numpy(), abs=1e-6)
    by_table = np.stack(straightened_by_table(*np.moveaxis(raw.double().numpy(), -1, 0)), axis=-1)
    assert straight.numpy() == pytest.approx(by_table, abs=1e-5)


@pytest.mark.parametrize(("slope", "offset"), [(0.0, 0.35), (0.0, -0.4), (0.25, 0.1), (-0.3, -0.1)])
def test_a_straight_edge_bent_by_the_lens_is_straight_again_and_in_its_place(slope, offset):
    raw = raw_picture_of_an_edge(slope, offset)
    view = Rectifier(LENS)(torch.from_numpy(raw).float()[..., None].expand(-1, -1, 3))
    assert view.shape == (72, 128, 3)
    if abs(offset) > 0.2:
        assert residual(len(raw) - raw.sum(axis=0)) > 2.0  # the lens does bend it
    edge = 72 - view[..., 0].numpy().sum(axis=0)  # [128] the row where white begins
    assert residual(edge) < 0.3
    left = (64 - (np.arange(128) + 0.5)) / Camera().focal
    assert edge == pytest.approx(36 - Camera().focal * (slope * left + offset), abs=0.3)


def test_without_a_lens_the_same_camera_gives_the_same_image(rng):
    picture = torch.from_numpy(rng.random((72, 128, 3))).float()
    rectify = Rectifier(LensConfig(sensor=CameraConfig(), k1=0.0, k2=0.0))
    assert rectify(picture).numpy() == pytest.approx(picture.numpy(), abs=1e-4)


def test_each_pixel_is_the_mean_of_the_raw_pixels_that_it_covers(rng):
    picture = torch.from_numpy(rng.random((144, 256, 3))).float()
    rectify = Rectifier(LensConfig(sensor=CameraConfig(width=256, height=144), k1=0.0, k2=0.0))
    blocks = picture.numpy().reshape(72, 2, 128, 2, 3).mean(axis=(1, 3))
    assert rectify(picture).numpy() == pytest.approx(blocks, abs=1e-4)


def opencv_pixel(x: float, y: float) -> tuple[float, float]:
    """OpenCV's own formula (right, down per unit of depth to pixels), written out as its manual has it."""
    fx, fy, cx, cy, k1, k2, p1, p2, k3 = 700.0, 690.0, 655.0, 350.0, -0.2, 0.05, 0.003, -0.002, -0.01
    r2 = x * x + y * y
    radial = 1 + k1 * r2 + k2 * r2 * r2 + k3 * r2 * r2 * r2
    bent_x = x * radial + 2 * p1 * x * y + p2 * (r2 + 2 * x * x)
    bent_y = y * radial + p1 * (r2 + 2 * y * y) + 2 * p2 * x * y
    return fx * bent_x + cx, fy * bent_y + cy


CALIBRATED = LensConfig(
    CameraConfig(width=1280, height=720),
    k1=-0.2,
    k2=0.05,
    k3=-0.01,
    p1=0.003,
    p2=-0.002,
    focal=(700.0, 690.0),
    centre=(655.5, 350.5),
)


def test_a_calibrated_camera_puts_rays_where_opencvs_formula_does(rng):
    rays = rng.uniform(-0.9, 0.9, (50, 2))
    ours = landing(torch.from_numpy(rays), CALIBRATED).numpy()
    theirs = np.array([opencv_pixel(-left, -up) for left, up in rays])
    assert ours - 0.5 == pytest.approx(theirs, abs=1e-9)  # they count from the middle of the first pixel


def test_a_calibrated_pixel_worked_out_on_paper():
    # x = 0.5, y = 0: r² = 0.25, radial = 1 - 0.05 + 0.003125 - 0.00015625 = 0.95296875.
    # x'' = 0.476484375 - 0.002 · (0.25 + 0.5) = 0.474984375; y'' = 0.003 · 0.25 = 0.00075.
    there = landing(torch.tensor([-0.5, 0.0], dtype=torch.float64), CALIBRATED)
    assert there.tolist() == pytest.approx([655.5 + 700 * 0.474984375, 350.5 + 690 * 0.00075])


def test_undistorting_also_undoes_a_lens_that_is_not_parallel_to_the_sensor(rng):
    rays = torch.from_numpy(rng.uniform(-0.8, 0.8, (50, 2)))
    bent = distort(rays, CALIBRATED)
    assert (bent - distort(rays, replace(CALIBRATED, p1=0.0, p2=0.0))).norm(dim=-1).max() > 1e-3
    assert undistort(bent, CALIBRATED).numpy() == pytest.approx(rays.numpy(), abs=1e-8)


def test_a_calibrated_camera_shows_each_thing_where_the_policys_view_has_it():
    u, v = np.meshgrid(np.arange(1280), np.arange(720))
    view = Camera()
    for left, up in ((0.0, 0.0), (0.6, 0.3), (-0.7, -0.4)):
        x, y = opencv_pixel(-left, -up)
        raw = np.exp(-((u - x) ** 2 + (v - y) ** 2) / (2 * 8.0**2))  # a lamp in that direction
        seen = Rectifier(CALIBRATED)(torch.from_numpy(raw).float()[..., None].expand(-1, -1, 3))[..., 0].numpy()
        rows, columns = np.meshgrid(np.arange(72) + 0.5, np.arange(128) + 0.5, indexing="ij")
        found = (seen * columns).sum() / seen.sum(), (seen * rows).sum() / seen.sum()
        assert found == pytest.approx((64 - view.focal * left, 36 - view.focal * up), abs=0.15)


def test_a_camera_pitched_less_is_turned_until_it_looks_where_the_view_does():
    wide = LensConfig(CameraConfig(width=640, height=480, horizontal_fov_deg=100.0, pitch_down_deg=5.0), k1=0.0, k2=0.0)
    u, v = np.meshgrid(np.arange(640) + 0.5, np.arange(480) + 0.5)
    focal = 320 / np.tan(np.radians(50))
    below = 240 + focal * np.tan(np.radians(10))  # the view's axis is 10° below this camera's
    raw = np.exp(-((u - 320) ** 2 + (v - below) ** 2) / (2 * 4.0**2))
    seen = Rectifier(wide)(torch.from_numpy(raw).float()[..., None].expand(-1, -1, 3))[..., 0].numpy()
    rows, columns = np.meshgrid(np.arange(72) + 0.5, np.arange(128) + 0.5, indexing="ij")
    assert (seen * columns).sum() / seen.sum() == pytest.approx(64, abs=0.1)
    assert (seen * rows).sum() / seen.sum() == pytest.approx(36, abs=0.1)


def test_a_camera_that_does_not_see_the_whole_view_is_refused():
    with pytest.raises(ValueError, match=r"75.0° and 248×140 pixels.* does not see all of the policy's 84.0° view"):
        Rectifier(replace(LENS, sensor=replace(LENS.sensor, horizontal_fov_deg=75.0)))


@pytest.mark.parametrize("pitch", [30.0, -5.0, 15.0 + 120.0])
def test_a_camera_whose_pitch_hides_some_of_the_view_is_refused(pitch):
    with pytest.raises(ValueError, match=rf"pitched down by {pitch}°, .* view, pitched down by 15.0°"):
        Rectifier(replace(LENS, sensor=replace(LENS.sensor, pitch_down_deg=pitch)))


def test_coefficients_that_fold_the_image_over_are_refused():
    with pytest.raises(ValueError, match="some places of the policy's view twice"):
        Rectifier(replace(LENS, k1=-0.6, k2=0.0))


def test_an_image_of_another_size_is_refused():
    with pytest.raises(ValueError, match=r"the image is 128×72; the camera's are 248×140"):
        Rectifier(LENS)(torch.zeros(72, 128, 3))
