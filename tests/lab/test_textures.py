"""The lab's bitmaps: seamless, reproducible, in the material's colours."""

import numpy as np
import pytest

from wordwing.lab.textures import (
    REPEATS,
    bitmap,
    floor_bitmap,
    lake_floor_bitmap,
    needs_colour,
    smooth_noise,
    tiling,
)
from wordwing.world.assets import BOX, CYLINDER, SPHERE, Material, asset, materials
from wordwing.world.catalogue import catalogue
from wordwing.world.layout import Layout

PATTERNED = [material for material in materials() if material.pattern]


def named(name: str) -> Material:
    return next(material for material in materials() if material.name == name)


def test_noise_fills_its_range_and_tiles(rng):
    noise = smooth_noise(rng, (4, 4))
    assert (noise.min(), noise.max()) == (0.0, 1.0)
    assert 0.4 < noise.mean() < 0.6
    inside = np.abs(np.diff(noise, axis=0)).max()
    assert np.abs(noise[0] - noise[-1]).max() < 1.5 * inside


@pytest.mark.parametrize("material", PATTERNED, ids=lambda material: material.name)
def test_every_pattern_shows_both_colours(material):
    rgb = np.array([0.2, 0.5, 0.8])
    pixels = bitmap(material, rgb if needs_colour(material) else None) / 255
    assert pixels.shape == (64, 64, 3)
    first = rgb if needs_colour(material) else np.ones(3)
    second = np.array(material.second)
    share = ((pixels - first) @ (second - first)) / ((second - first) ** 2).sum()
    assert np.percentile(share, 2) < 0.35
    assert np.percentile(share, 98) > 0.65
    assert np.array_equal(pixels, bitmap(material, rgb if needs_colour(material) else None) / 255)


def test_other_materials_have_other_noise():
    assert not np.array_equal(bitmap(named("stone")), bitmap(named("rust")))


def test_bricks_have_a_bricks_size():
    bricks = named("bricks")  # nine a metre along the wall, eighteen up
    across, up = tiling(bricks, CYLINDER, np.array([0.25, 0.5, 0.0]))
    assert across * REPEATS["bricks"][0] == pytest.approx(9 * 2 * np.pi * 0.25, abs=1)
    assert up * REPEATS["bricks"][1] == pytest.approx(18.0)
    across, up = tiling(bricks, BOX, np.array([0.5, 0.5, 0.5]))
    assert (across * 2, up * 4) == pytest.approx((9.0, 18.0))


def test_around_round_geoms_bitmaps_fit_a_whole_number_of_times():
    for entry in catalogue():
        look = asset(entry.name, "lab")
        for kind, size, index in zip(look.kind, look.size, look.material, strict=True):
            if materials()[index].pattern:
                across, up = tiling(materials()[index], int(kind), size)
                assert across > 0, entry.name
                assert up > 0, entry.name
                assert kind == BOX or across == int(across) >= 1, entry.name


def test_a_small_ball_still_shows_a_whole_repeat():
    across, up = tiling(named("checker"), SPHERE, np.array([0.01, 0.0, 0.0]))
    assert across * REPEATS["checker"][0] >= 1
    assert up * REPEATS["checker"][1] >= 1


def test_the_floor_is_dark_mats_with_darker_seams():
    floor = floor_bitmap().mean(axis=-1)
    assert floor.shape == (128, 128)
    for seam in (0, 64):
        assert floor[seam].mean() < 0.75 * floor.mean()
        assert floor[:, seam].mean() < 0.75 * floor.mean()
    assert 80 < floor.mean() < 130


def test_a_floor_with_lakes_is_the_mats_everywhere_else():
    corner = tuple((i, j) for i in range(80, 100) for j in range(90, 100))  # +x, +y: to the right, at the top
    floor = lake_floor_bitmap(Layout((), lakes=corner), 4.5)
    mats = np.tile(floor_bitmap(), (5, 5, 1))[:576, :576]
    changed = (floor != mats).any(axis=-1)
    rows, columns = np.nonzero(changed)
    assert 4.5 - np.array([rows.min(), rows.max() + 1]) / 64 == pytest.approx([2.35, 1.88], abs=0.01)
    assert np.array([columns.min(), columns.max() + 1]) / 64 - 4.5 == pytest.approx([1.41, 2.35], abs=0.01)
    assert changed.sum() == (np.ptp(rows) + 1) * (np.ptp(columns) + 1)
