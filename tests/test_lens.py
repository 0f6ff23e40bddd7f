"""The lens against hand-written formulas and pictures of straight edges painted pixel by pixel."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from wordwing.camera import Camera, CameraConfig
from wordwing.lens import LensConfig, Rectifier, distort, undistort

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


def test_undistorting_is_the_inverse_of_distorting_over_the_whole_raw_picture():
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


def test_without_a_lens_the_same_camera_gives_the_same_picture(rng):
    picture = torch.from_numpy(rng.random((72, 128, 3))).float()
    rectify = Rectifier(LensConfig(sensor=CameraConfig(), k1=0.0, k2=0.0))
    assert rectify(picture).numpy() == pytest.approx(picture.numpy(), abs=1e-4)


def test_each_pixel_is_the_mean_of_the_raw_pixels_that_it_covers(rng):
    picture = torch.from_numpy(rng.random((144, 256, 3))).float()
    rectify = Rectifier(LensConfig(sensor=CameraConfig(width=256, height=144), k1=0.0, k2=0.0))
    blocks = picture.numpy().reshape(72, 2, 128, 2, 3).mean(axis=(1, 3))
    assert rectify(picture).numpy() == pytest.approx(blocks, abs=1e-4)


def test_a_camera_that_does_not_see_the_whole_view_is_refused():
    with pytest.raises(ValueError, match=r"75.0° and 248×140 pixels .* does not see all of the policy's 84.0° view"):
        Rectifier(replace(LENS, sensor=replace(LENS.sensor, horizontal_fov_deg=75.0)))


def test_a_camera_at_another_pitch_is_refused():
    with pytest.raises(ValueError, match=r"pitched down by 30.0°; the policy's view needs 15.0°"):
        Rectifier(replace(LENS, sensor=replace(LENS.sensor, pitch_down_deg=30.0)))
