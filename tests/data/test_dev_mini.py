"""dev-mini: 64 instructions of every kind that come with wordwing."""

from collections import Counter

import numpy as np
import pytest

from wordwing.data.corpora import corpus
from wordwing.data.dataset import Dataset
from wordwing.data.generating import CHUNK, Chunk, make
from wordwing.data.subsets import paragraphs_of
from wordwing.frames import ARENA_HALF
from wordwing.language.writing.content_selection import FINALS, MIDDLES, OPENINGS
from wordwing.world.paths import path_length


@pytest.fixture(scope="module")
def mini() -> Dataset:
    return corpus("dev-mini")


def test_it_needs_no_cache_and_is_one_dataset_whatever_the_seed(mini, monkeypatch, tmp_path):
    monkeypatch.setenv("WORDWING_CACHE", str(tmp_path / "cache"))
    assert corpus("dev-mini", seed=3).folder == mini.folder
    assert not (tmp_path / "cache").exists()


def test_it_is_valid_and_says_what_it_is(mini):
    mini.validate()
    assert (mini.name, mini.meta["text"], mini.splits, mini.steps) == ("dev-mini", "generated", ["dev"], 50)


def test_it_has_64_instructions_of_one_and_two_segments(mini):
    instructions = list(mini.instructions("dev"))
    assert len({entry.id for entry in instructions}) == len(instructions) == 64
    counts = Counter(entry.segments for entry in instructions)
    assert set(counts) == {1, 2}
    assert min(counts.values()) >= 20
    assert mini.meta["counts"]["dev"]["instructions"] == 64


def test_it_is_half_of_the_cage_and_half_of_the_field_and_no_layout_is_in_it_twice(mini):
    paragraphs = list(mini.paragraphs())
    assert len({entry.layout for entry in paragraphs}) == len(paragraphs)
    homes = Counter(entry.id.partition("-")[0] for entry in paragraphs)
    assert set(homes) == {"cage", "field"}
    assert abs(homes["cage"] - homes["field"]) <= 2
    assert all(entry.layout.startswith(f"{entry.id.partition('-')[0]}-dev-") for entry in paragraphs)


def test_every_kind_of_clause_that_the_writer_uses_is_in_it(mini):
    meant = Counter(
        clause.kind for paragraph in mini.paragraphs() for segment in paragraph.segments for clause in segment.meaning
    )
    assert set(meant) == {*FINALS, *MIDDLES, *OPENINGS}
    assert meant.most_common(1)[0][1] <= sum(meant.values()) / 4


def test_its_paths_lie_in_the_arena_and_lead_somewhere(mini):
    for entry in mini.instructions():
        flown = np.vstack([entry.segment.start_xy, entry.segment.path])
        assert np.abs(flown).max() <= ARENA_HALF
        assert path_length(entry.segment.path) > 0.3
        assert len(mini.task(entry).layout.landmarks) >= 5
        assert entry.segment.instruction.strip()


def test_its_fixed_part_is_twenty_of_its_paragraphs(mini):
    assert len(list(paragraphs_of(mini, "dev-20"))) == 20


@pytest.mark.long
def test_its_paragraphs_are_pieces_of_those_that_the_writer_makes(mini):
    found = list(mini.paragraphs())
    wanted = {(entry.id.partition("-")[0], int(entry.id.split(".")[0][-5:]) // CHUNK) for entry in found}
    layouts, originals = {}, {}
    for name, number in sorted(wanted):
        size = {"cage": 150, "field": 898}[name]
        made = make(Chunk(name, "dev", 0, number * CHUNK, min(CHUNK, size - number * CHUNK)))
        layouts |= made[0]
        originals |= {paragraph.id: paragraph for paragraph in made[1]}
    for entry in found:
        home, _dot, first = entry.id.rpartition(".")
        part = originals[home].segments[int(first) : int(first) + len(entry.segments)]
        assert [segment.instruction for segment in entry.segments] == [segment.instruction for segment in part]
        assert [segment.meaning for segment in entry.segments] == [segment.meaning for segment in part]
        for mine, theirs in zip(entry.segments, part, strict=True):
            assert np.abs(mine.path - theirs.path).max() < 1e-4
        assert mini.layout(entry.layout) == layouts[entry.layout]
