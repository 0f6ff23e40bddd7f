"""Procedural patterns, each true to its name."""

import numpy as np
import pytest
from scipy import ndimage

from pattern_sampler import pattern_at
from wordwing.sim.kernels.textures import PATTERNS

FINE = 32
SPAN = (np.arange(-8 * FINE, 8 * FINE) + 0.5) / FINE
U, V = np.meshgrid(SPAN, SPAN, indexing="ij")
DRAWN = [name for name in PATTERNS if name]
SMOOTH = ["grain", "stone", "metal", "rust", "grass", "ripples"]
BLOTCHY = [*SMOOTH, "leaves", "camouflage"]


def grid(name: str) -> np.ndarray:
    """[512, 512] a pattern over 16 by 16 repeats around the origin, u along the first axis."""
    return pattern_at(name, U, V)


def correlation(amount: np.ndarray, lag: int, axis: int) -> float:
    """Between a pattern and itself moved along."""
    amount = np.moveaxis(amount, axis, 0)
    return float(np.corrcoef(amount[lag:].ravel(), amount[:-lag].ravel())[0, 1])


@pytest.mark.parametrize("name", DRAWN)
def test_a_pattern_shows_both_colours_and_nothing_beyond(name):
    amount = grid(name)
    assert amount.min() >= 0
    assert amount.max() <= 1
    assert amount.min() < 0.1
    assert amount.max() > 0.9
    assert 0.1 < amount.mean() < 0.9
    assert np.array_equal(amount, grid(name))


def test_patterns_all_differ_and_none_is_flat():
    drawn = {name: grid(name) for name in DRAWN}
    for name, amount in drawn.items():
        assert amount.std() > 0.1, name
        assert all(np.abs(amount - drawn[other]).mean() > 0.05 for other in DRAWN if other != name), name
    assert not grid("").any()


def test_bands_lie_across_half_of_each_colour():
    bands = grid("bands")
    assert set(np.unique(bands)) == {0.0, 1.0}
    assert (bands == bands[:1]).all()
    assert bands.mean() == 0.5
    assert (np.diff(bands[0]) != 0).sum() == 2 * 16 - 1  # sixteen bands up sixteen repeats


def test_ribs_are_one_wave_a_repeat_that_runs_up():
    ribs = grid("ribs")
    assert np.abs(ribs - ribs[:, :1]).max() < 1e-6
    spectrum = np.abs(np.fft.rfft(ribs[:, 0] - 0.5))
    assert spectrum.argmax() == 16
    assert spectrum[16] > 0.99 * np.linalg.norm(spectrum)


def test_a_checker_board_has_a_field_a_repeat():
    checker = grid("checker")
    assert set(np.unique(checker)) == {0.0, 1.0}
    assert (checker[FINE:] == 1 - checker[:-FINE]).all()
    assert (checker[:, FINE:] == 1 - checker[:, :-FINE]).all()
    fields = checker.reshape(16, FINE, 16, FINE)
    assert (fields == fields[:, :1, :, :1]).all()


def test_there_is_one_round_spot_in_each_repeat():
    spots = grid("spots")
    assert set(np.unique(spots)) == {0.0, 1.0}
    labels, count = ndimage.label(spots)
    assert count == 16 * 16
    areas = ndimage.sum_labels(spots, labels, np.arange(1, count + 1))
    assert areas.max() / areas.min() < 1.1
    wide = [max(sides.stop - sides.start for sides in found) for found in ndimage.find_objects(labels)]
    assert np.pi * (np.mean(wide) / 2) ** 2 == pytest.approx(areas.mean(), rel=0.08)
    centres = np.array(ndimage.center_of_mass(spots, labels, np.arange(1, count + 1))) % FINE
    assert centres.std() > 0.05 * FINE  # not a grid of them


def test_a_weave_goes_over_and_under_once_a_repeat():
    weave = grid("weave")
    spectrum = np.abs(np.fft.fft2(weave - weave.mean()))
    peaks = {(16, 16), (16, 512 - 16), (512 - 16, 16), (512 - 16, 512 - 16)}
    assert set(zip(*np.nonzero(spectrum > 0.05 * spectrum.max()), strict=True)) == peaks


def joints(name: str) -> np.ndarray:
    return grid(name) > 0.999


def runs(line: np.ndarray) -> int:
    """How many stretches of a line are true."""
    return int((np.diff(line.astype(int), prepend=0) == 1).sum())


@pytest.mark.parametrize(("name", "thick"), [("bricks", 0.256), ("shingles", 0.192)])
def test_courses_of_bricks_and_shingles_are_one_a_repeat_and_shifted_by_half_a_block(name, thick):
    joint = joints(name)
    bed = joint.all(axis=0)
    assert bed.mean() == pytest.approx(thick, abs=0.07)  # two sides of a joint that is as wide in u as in v
    assert np.array_equal(bed[FINE:], bed[:-FINE])
    middle, above = joint[:, 8 * FINE + FINE // 2], joint[:, 9 * FINE + FINE // 2]
    assert 16 <= runs(middle) <= 17
    assert np.array_equal(middle[FINE:], middle[:-FINE])
    assert np.array_equal(middle[FINE // 2 :], above[: -FINE // 2])
    assert not (middle & above).any()


def test_bricks_differ_and_shingles_darken_towards_the_course_above():
    bricks, shingles = grid("bricks"), grid("shingles")
    tones = bricks[FINE // 4 :: FINE, FINE // 2 :: FINE]
    assert len(np.unique(tones)) > 200
    course = np.median(shingles[:, 8 * FINE + 8 : 9 * FINE - 8], axis=0)
    assert course[-1] - course[0] > 0.1


def test_planks_run_up_with_a_groove_a_repeat_and_a_tone_each():
    planks = grid("planks")
    groove = joints("planks").all(axis=1)
    assert groove.mean() == pytest.approx(0.18, abs=0.04)
    assert np.array_equal(groove[FINE:], groove[:-FINE])
    boards = planks.reshape(16, FINE, -1)[:, 8:24].mean(axis=(1, 2))
    assert boards.std() > 0.05


def test_pickets_have_a_gap_a_repeat_and_a_rail_a_repeat():
    pickets = grid("pickets")
    gaps, rails = (pickets == 1).all(axis=1), (pickets == 1).all(axis=0)
    assert np.array_equal(pickets == 1, gaps[:, None] | rails)
    for line in (gaps, rails):
        assert 16 <= runs(line) <= 17
        assert np.array_equal(line[FINE:], line[:-FINE])


@pytest.mark.parametrize("name", SMOOTH)
def test_smooth_patterns_never_jump(name, rng):
    widest = 0.0
    for _ in range(20):
        start, direction = rng.uniform(-50, 50, 2), rng.standard_normal(2)
        along = np.linspace(0, 4, 8001)[:, None] * direction / np.linalg.norm(direction) + start
        amount = pattern_at(name, along[:, 0], along[:, 1])
        assert np.abs(np.diff(amount)).max() < 0.0075  # 15 a repeat; a jump would be a hundred times that
        widest = max(widest, np.ptp(amount))
    assert widest > 0.6


@pytest.mark.parametrize("name", BLOTCHY)
def test_random_patterns_have_blotches_of_about_a_repeat_and_no_period(name):
    amount = grid(name)
    near = FINE // 16 if name == "grass" else FINE // 8  # grass is tufts, five a repeat
    for axis in (0, 1):
        assert correlation(amount, near, axis) > 0.6
        for far in (2, 3, 4, 5):
            assert abs(correlation(amount, far * FINE, axis)) < 0.3
    assert correlation(amount, FINE // 2, 0) < 0.75
