"""Walks smoothed, cut and written about: what follows what, how long it is, and that it is all still the walk."""

import math
from itertools import pairwise

import numpy as np
import pytest

from wordwing.data import segmenting
from wordwing.data.schema import Segment
from wordwing.data.segmenting import SHORTEST, CutConfig, cut_segments, smooth, write_segments
from wordwing.language.meaning.judge import judge
from wordwing.language.writing.writer import Writer
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, path_length, resample
from wordwing.world.samplers import sample_layout
from wordwing.world.walks import WALK_CONFIGS, sample_walks

CUTS = CutConfig(length=1.3)
Written = list[tuple[Layout, Floats, list[Segment]]]


def walks(count: int, rng: np.random.Generator) -> list[tuple[Layout, Floats]]:
    layouts = [sample_layout("field", rng) for _ in range(count)]
    found = sample_walks(layouts, rng, WALK_CONFIGS["field"])
    return [(layout, walk.points) for layout, walk in zip(layouts, found, strict=True) if walk is not None]


@pytest.fixture(scope="module")
def written() -> Written:
    """Layouts, smooth paths and segments."""
    rng = np.random.default_rng(21)
    found = []
    for layout, walk in walks(30, rng):
        path = smooth(walk)
        found.append((layout, path, write_segments(layout, path, [path], CUTS, True, rng)))
    return found


def direction(points: Floats) -> float:
    """Of the last 0.2 m of a path."""
    end = resample(points[::-1], 0.01)
    back = end[min(20, len(end) - 1)]
    return math.atan2(*(end[0] - back)[::-1])


def test_a_segment_begins_where_the_one_before_ends(written):
    for _, path, segments in written:
        for segment in segments:
            assert segment.start_xy == tuple(segment.path[0])
        for before, after in pairwise(segments):
            assert np.array_equal(before.path[-1], after.path[0])
        assert segments[0].path[0] == pytest.approx(path[0], abs=1e-4)
        assert segments[-1].path[-1] == pytest.approx(path[-1], abs=1e-4)


def test_a_segment_begins_with_the_heading_that_the_one_before_ends_with(written):
    for _, _, segments in written:
        for before, after in pairwise(segments):
            assert abs(math.remainder(after.start_yaw - direction(before.path), 2 * math.pi)) < math.radians(8)


def test_a_paragraph_begins_roughly_along_its_path_or_looking_anywhere(rng):
    [(layout, walk), *_] = walks(2, rng)
    path = smooth(walk)
    ahead = math.atan2(*(resample(path, 0.01)[20] - path[0])[::-1])

    def off(looks_away: float) -> list[float]:
        config = CutConfig(length=1.3, segments=2, looks_away=looks_away)
        found = [write_segments(layout, path, [path], config, True, rng) for _ in range(20)]
        return [abs(math.remainder(segments[0].start_yaw - ahead, 2 * math.pi)) for segments in found if segments]

    assert np.max(off(0.0)) < 1.2
    assert np.max(off(1.0)) > 1.8


def test_segments_put_together_are_the_walk_smoothed(written):
    for _, path, segments in written:
        dense = resample(path, 0.01)
        for segment in segments:
            distances = np.linalg.norm(segment.path[:, None] - dense, axis=-1)
            assert distances.min(axis=1).max() < 0.011
            assert (np.diff(distances.argmin(axis=1)) > 0).all()


def test_segments_are_about_as_long_and_as_many_as_configured(written):
    lengths = [path_length(segment.path) for _, _, segments in written for segment in segments]
    assert np.mean(lengths) == pytest.approx(CUTS.length, rel=0.25)
    assert 0.44 < np.min(lengths) < 0.5 * CUTS.length
    assert np.max(lengths) > 1.5 * CUTS.length
    for _, path, segments in written:
        assert len(segments) == pytest.approx(path_length(path) / CUTS.length, rel=0.6)


def test_points_are_a_decimetre_apart_and_to_a_tenth_of_a_millimetre(written):
    for _, _, segments in written:
        for segment in segments:
            gaps = np.linalg.norm(np.diff(segment.path, axis=0), axis=1)
            assert np.median(gaps) == pytest.approx(0.1, abs=0.015)
            assert np.array_equal(segment.path, segment.path.round(4))
            assert segment.start_yaw == round(segment.start_yaw, 5)


def test_longer_segments_are_cut_if_they_are_asked_for(rng):
    places = [(layout, smooth(walk)) for layout, walk in walks(8, rng)]

    def mean_length(length: float) -> float:
        config = CutConfig(length=length)
        cut = [write_segments(layout, path, [path], config, True, rng) for layout, path in places]
        return float(np.mean([path_length(segment.path) for segments in cut for segment in segments]))

    assert 1.4 * mean_length(0.8) < mean_length(2.0)


def test_the_sentences_of_segments_are_true(written):
    for layout, _, segments in written:
        for segment in segments:
            assert segment.instruction
            assert judge(segment.meaning, segment.path, segment.start_yaw, layout).score >= 0.95


def test_one_writer_writes_a_paragraph_and_knows_whether_it_is_for_training(rng, monkeypatch):
    told = []

    class Spy(Writer):
        def __init__(self, layout, persona, training, rng):
            told.append(training)
            super().__init__(layout, persona, training, rng)

    monkeypatch.setattr(segmenting, "Writer", Spy)
    [(layout, walk), *_] = walks(2, rng)
    for training in (True, False):
        write_segments(layout, smooth(walk), [smooth(walk)], CUTS, training, rng)
    assert told == [True, False]


def test_a_path_with_a_part_that_nobody_has_words_for_has_no_segments(rng, monkeypatch):
    [(layout, walk), *_] = walks(2, rng)
    write = Writer.write
    written = iter([True, True, False, False, False, False, False, False])
    monkeypatch.setattr(Writer, "write", lambda self, *args: write(self, *args) if next(written) else None)
    assert write_segments(layout, smooth(walk), [walk], CUTS, True, rng) == []


def test_a_paragraph_is_as_long_as_its_segments_should_be_together(rng):
    lengths = [CutConfig(length=1.5, segments=4.0).sample_length(rng) for _ in range(2000)]
    assert np.mean(lengths) == pytest.approx(6.0, abs=0.15)
    assert np.min(lengths) >= 3.0


def test_smoothing_keeps_ends_and_straight_lines_and_takes_out_wiggles():
    line = np.array([[-1.0, 0.5], [1.0, 0.5]])
    assert smooth(line) == pytest.approx(resample(line, 0.05))
    along = np.linspace(0.0, 2.0, 201)
    wiggly = np.stack([along, 0.05 * np.sin(2 * np.pi * along / 0.2)], axis=-1)
    even = smooth(wiggly)
    assert even[[0, -1]] == pytest.approx(wiggly[[0, -1]])
    assert np.abs(even[:, 1]).max() < 0.01
    assert np.array_equal(smooth(np.array([[0.3, 0.4]])), [[0.3, 0.4]])


def test_smoothing_stays_close_to_the_walk_and_in_the_arena(rng):
    for _, walk in walks(15, rng):
        path, dense = smooth(walk), resample(walk, 0.005)
        assert np.linalg.norm(path[:, None] - dense, axis=-1).min(axis=1).max() < 0.1
        assert np.abs(path).max() <= np.abs(walk).max() + 1e-9
        assert path[[0, -1]] == pytest.approx(walk[[0, -1]])


def test_a_path_along_the_fence_stays_inside():
    # Bending away from the fence at both ends, where smoothing has least to go by.
    angles = np.linspace(0.2, math.pi - 0.2, 80)
    path = np.stack([2.35 - 0.6 * (1 - np.sin(angles)), 0.6 * np.cos(angles)], axis=-1)
    for part in (path, path[40:], path[:41]):
        assert smooth(part)[:, 0].max() <= 2.35


def test_equal_seeds_cut_and_write_alike(rng):
    [(layout, walk), *_] = walks(2, rng)
    path = smooth(walk)
    first, again, other = (
        write_segments(layout, path, [path], CUTS, True, np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert [segment.instruction for segment in first] == [segment.instruction for segment in again]
    assert all(np.array_equal(a.path, b.path) for a, b in zip(first, again, strict=True))
    assert [segment.instruction for segment in first] != [segment.instruction for segment in other]


@pytest.mark.parametrize("count", [1, 4, 6])
def test_a_path_is_cut_into_as_many_segments_without_words_as_are_asked_for(rng, count):
    for _, walk in walks(10, rng):
        path = smooth(walk)
        segments = cut_segments(path, count, CUTS, rng)
        assert [segment.instruction for segment in segments] == [""] * count
        assert min(path_length(segment.path) for segment in segments) > SHORTEST - 0.05
        assert segments[0].path[0] == pytest.approx(path[0], abs=1e-4)
        assert segments[-1].path[-1] == pytest.approx(path[-1], abs=1e-4)
        for before, after in pairwise(segments):
            assert after.start_xy == tuple(before.path[-1])
            assert abs(math.remainder(after.start_yaw - direction(before.path), 2 * math.pi)) < math.radians(15)


def test_a_path_that_is_too_short_for_its_segments_is_refused(rng):
    with pytest.raises(ValueError, match=r"3 segments need a path of 1.35 m; this one has 1.00 m"):
        cut_segments(np.array([[0.0, 0.0], [1.0, 0.0]]), 3, CUTS, rng)
