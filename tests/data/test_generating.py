"""Generated corpora: the paper's numbers, paths that go on from one another, and the same from any number of hands."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from wordwing.data import generating
from wordwing.data.corpora import Job, build
from wordwing.data.dataset import Dataset
from wordwing.data.generating import CUTS, RULES, Chunk, chunks, collect, make, paragraph_count
from wordwing.data.schema import Paragraph
from wordwing.frames import ARENA_HALF
from wordwing.language.meaning.judge import judge
from wordwing.world.catalogue import landmarks
from wordwing.world.layout import Layout
from wordwing.world.paths import path_length, resample

PAPER = {
    "field": {"train": 4200, "dev": 898, "test": 902},
    "cage": {"train": 698, "dev": 150, "test": 149},
}
CORPORA = PAPER | {"errands": {"train": 6000, "dev": 300, "test": 300}}
"""Errands are wordwing's own."""


@pytest.fixture(scope="module", params=list(CORPORA))
def made(request) -> tuple[str, dict[str, Layout], list[Paragraph]]:
    """30 paragraphs of a corpus."""
    return request.param, *make(Chunk(request.param, "train", seed=5, first=50, count=30))


def as_text(paragraphs: list[Paragraph]) -> str:
    return json.dumps([paragraph.to_json() for paragraph in paragraphs])


@pytest.mark.parametrize("corpus", CORPORA)
def test_chunks_add_up_to_the_papers_table(corpus):
    counts = Counter()
    for chunk in chunks(corpus, seed=0):
        counts[chunk.split] += chunk.count
    assert counts == CORPORA[corpus]
    assert paragraph_count(corpus) == sum(CORPORA[corpus].values())


@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("share", [1.0, 0.31, 0.02, 1e-6])
def test_chunks_follow_one_another_begin_with_a_block_and_are_not_empty(corpus, share):
    block = {"field": 1, "cage": 5, "errands": 1}[corpus]
    for split, size in CORPORA[corpus].items():
        expected = 0
        for chunk in (chunk for chunk in chunks(corpus, 3, share) if chunk.split == split):
            assert (chunk.corpus, chunk.seed, chunk.first) == (corpus, 3, expected)
            assert chunk.count > 0
            assert chunk.first % block == 0
            expected += chunk.count
        assert expected == max(round(size * share), block)
    assert paragraph_count(corpus, share) == sum(chunk.count for chunk in chunks(corpus, 0, share))


def test_a_chunk_makes_the_paragraphs_it_was_asked_for_and_names_them(made):
    corpus, layouts, paragraphs = made
    assert [paragraph.id for paragraph in paragraphs] == [f"{corpus}-train-{50 + k:05}" for k in range(30)]
    assert {paragraph.split for paragraph in paragraphs} == {"train"}
    assert {paragraph.layout for paragraph in paragraphs} == set(layouts)
    assert all(re.fullmatch(rf"{corpus}-train-\d{{4}}", name) for name in layouts)
    for name, layout in layouts.items():
        layout.validate(name)


def test_every_paragraph_has_several_segments(made):
    corpus, _, paragraphs = made
    counts = [len(paragraph.segments) for paragraph in paragraphs]
    if corpus == "errands":
        assert set(counts) == {2}
    else:
        assert min(counts) >= 2
        assert 3 < np.mean(counts) < 7


def test_segments_chain(made):
    _, _, paragraphs = made
    for paragraph in paragraphs:
        for before, after in pairwise(paragraph.segments):
            assert after.start_xy == tuple(before.path[-1]) == tuple(after.path[0])
            end = before.path[-1] - before.path[-3]
            assert abs(math.remainder(after.start_yaw - math.atan2(end[1], end[0]), 2 * math.pi)) < 1e-4


def test_paths_stay_in_the_arena_and_out_of_footprints(made):
    corpus, layouts, paragraphs = made
    margin = RULES[corpus].edge_margin
    for paragraph in paragraphs:
        for segment in paragraph.segments:
            path = resample(segment.path, 0.01)
            assert np.abs(path).max() <= ARENA_HALF - margin
            for entry in layouts[paragraph.layout].landmarks:
                # Smoothing cuts a corner of the circle that walks keep out of.
                assert np.hypot(path[:, 0] - entry.x, path[:, 1] - entry.y).min() > entry.kind.footprint - 0.01


def test_segments_are_about_as_long_as_configured(made):
    corpus, _, paragraphs = made
    lengths = [path_length(segment.path) for paragraph in paragraphs for segment in paragraph.segments]
    usual = 2.1 if corpus == "errands" else CUTS[corpus].length
    assert np.mean(lengths) == pytest.approx(usual, rel=0.2)
    assert np.std(lengths) > 0.2 * usual


def test_errands_begin_with_any_heading_and_end_at_a_landmark_anywhere():
    layouts, paragraphs = make(Chunk("errands", "dev", seed=1, first=0, count=50))
    turns, distances = [], []
    for paragraph in paragraphs:
        first = paragraph.segments[0]
        for segment in paragraph.segments:
            gaps = [math.dist(segment.path[-1], (entry.x, entry.y)) for entry in layouts[paragraph.layout].landmarks]
            reach = [entry.keep_out for entry in layouts[paragraph.layout].landmarks]
            assert min(gap - radius for gap, radius in zip(gaps, reach, strict=True)) < 0.25
        goal = first.path[-1] - first.path[0]
        turns.append(math.remainder(math.atan2(goal[1], goal[0]) - first.start_yaw, math.tau))
        distances.append(math.hypot(*goal))
    assert np.abs(np.histogram(turns, 4, (-math.pi, math.pi))[0] - 12.5).max() < 9, "in all four quarters"
    assert np.percentile(distances, 10) < 1.2
    assert np.percentile(distances, 90) > 2.3
    kinds = {landmark_name(layouts[paragraph.layout]) for paragraph in paragraphs}
    assert kinds == {"cage", "field"}, "worlds of both kinds"


def landmark_name(layout: Layout) -> str:
    cage = {kind.name for kind in landmarks("cage")}
    return "cage" if all(entry.name in cage for entry in layout.landmarks) else "field"


def test_sentences_are_true_of_their_segments_as_they_are_stored(made):
    _, layouts, paragraphs = made
    sizes = {name: len(layout.landmarks) for name, layout in layouts.items()}
    for paragraph in paragraphs:
        stored = Paragraph.from_json(json.dumps(paragraph.to_json()), sizes, "stored")
        for segment in stored.segments:
            judged = judge(segment.meaning, segment.path, segment.start_yaw, layouts[paragraph.layout])
            assert judged.score >= 0.95, segment.instruction


def test_sentences_differ(made):
    _, _, paragraphs = made
    texts = [segment.instruction for paragraph in paragraphs for segment in paragraph.segments]
    assert len(set(texts)) > 0.85 * len(texts)


def test_every_field_paragraph_has_a_layout_of_its_own_and_five_of_the_cage_share_one(made):
    corpus, layouts, paragraphs = made
    shared = Counter(paragraph.layout for paragraph in paragraphs)
    assert set(shared.values()) == {5 if corpus == "cage" else 1}
    assert len({layout.to_json() for layout in layouts.values()}) == len(layouts)
    for before, after in pairwise(paragraphs):
        assert before.layout <= after.layout


def test_paragraphs_in_a_block_of_the_cage_begin_where_the_one_before_ends():
    layouts, paragraphs = make(Chunk("cage", "dev", seed=1, first=0, count=12))
    assert list(Counter(paragraph.layout for paragraph in paragraphs).values()) == [5, 5, 2]
    assert set(layouts) == {paragraph.layout for paragraph in paragraphs}
    for before, after in pairwise(paragraphs):
        if before.layout == after.layout:
            assert before.segments[-1].path[-1] == pytest.approx(after.segments[0].path[0], abs=2e-4)


def test_what_a_sentence_must_not_mean_are_the_other_walks_of_its_layout(monkeypatch):
    asked = []
    write = generating.write_segments

    def spy(layout, path, rivals, config, training, rng, yaw):
        asked.append((layout, path, rivals, training))
        return write(layout, path, rivals, config, training, rng, yaw)

    monkeypatch.setattr(generating, "write_segments", spy)
    make(Chunk("cage", "dev", seed=1, first=0, count=5))
    for layout, path, rivals, training in asked:
        others = {id(other) for where, other, *_ in asked if where is layout} - {id(path)}
        assert {id(rival) for rival in rivals} >= others
        assert all(rival is not path for rival in rivals)
        assert training is False


def test_a_layout_of_which_nothing_can_be_said_is_replaced(monkeypatch):
    write, refused = generating.write_segments, []

    def once_wordless(layout, *args):
        if not refused or refused[0] is layout:
            refused[:] = [layout]
            return []
        return write(layout, *args)

    monkeypatch.setattr(generating, "write_segments", once_wordless)
    layouts, paragraphs = make(Chunk("field", "dev", seed=1, first=0, count=3))
    assert [paragraph.id for paragraph in paragraphs] == [f"field-dev-{number:05}" for number in range(3)]
    assert refused[0] not in layouts.values()


def test_equal_chunks_are_equal_and_those_that_differ_in_anything_share_nothing():
    chunk = Chunk("field", "train", seed=5, first=50, count=3)
    layouts, paragraphs = make(chunk)
    again = make(chunk)
    assert again[0] == layouts
    assert as_text(again[1]) == as_text(paragraphs)
    for change in ({"seed": 6}, {"split": "dev"}, {"first": 100}):
        others, _ = make(replace(chunk, **change))
        assert not {layout.to_json() for layout in layouts.values()} & {layout.to_json() for layout in others.values()}
        assert "seed" in change or not set(layouts) & set(others)


def test_collecting_puts_chunks_together_in_order():
    parts = [make(Chunk("field", "dev", 2, first, 2)) for first in (0, 2)]
    layouts, paragraphs = collect(iter(parts))
    assert paragraphs == parts[0][1] + parts[1][1]
    assert list(layouts) == [*parts[0][0], *parts[1][0]]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def shares(tmp_path_factory):
    """A small part of the field built by one process and by two, and of the cage."""
    folder = tmp_path_factory.mktemp("corpora")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(generating, "CHUNK", 1)  # so that there is something to share
        for name, processes in (("alone", 1), ("field", 2)):
            build([Job("field", folder / name, seed=0, share=0.001)], processes)
    build([Job("cage", folder / "cage", seed=0, share=0.001)], processes=1)
    return folder


def test_two_processes_build_the_same_bytes_as_one(shares):
    assert contents(shares / "field") == contents(shares / "alone")


@pytest.mark.parametrize("corpus", PAPER)
def test_a_corpus_is_a_valid_dataset_whose_splits_share_no_layout(shares, corpus):
    dataset = Dataset(shares / corpus)
    dataset.validate()
    assert (dataset.name, dataset.meta["text"], dataset.meta["shared"]) == (corpus, "generated", [])
    wanted = {"cage": {"train": 5, "dev": 5, "test": 5}, "field": {"train": 4, "dev": 1, "test": 1}}[corpus]
    assert {split: row["paragraphs"] for split, row in dataset.meta["counts"].items()} == wanted
    seen: dict[str, str] = {}
    for paragraph in dataset.paragraphs():
        layout = dataset.layout(paragraph.layout).to_json()
        assert seen.setdefault(layout, paragraph.split) == paragraph.split
