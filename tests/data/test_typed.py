"""The corpus `typed`: sentences, what they mean, and hand-drawn paths that do it."""

import ast
import json
import lzma
import math
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from wordwing.commands.statistics import stats
from wordwing.data import typed
from wordwing.data.corpora import corpus
from wordwing.data.typed import Typed, read_typed, unpack_typed, write_typed
from wordwing.data.written import read_written
from wordwing.errors import WordwingError
from wordwing.language.meaning.judge import judge_best
from wordwing.world.layout import Layout

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def sentences() -> list[Typed]:
    return read_typed()[1]


def followed(entry: Typed, path: list[tuple[float, ...]], yaws: list[float] | None = None) -> bool:
    layout = Layout.from_document(entry.layout, entry.id)
    return judge_best(entry.meanings, np.array(path), entry.start[2], layout, yaws)[1].followed


def drawn(entry: Typed) -> list[tuple[float, ...]]:
    return [entry.start[:2], *map(tuple, entry.path.tolist())]


def flown(entry: Typed, wait: int, turn: float) -> tuple[list[tuple[float, ...]], list[float]]:
    """The path at 0.5 m/s, nose first, with five seconds of hovering, and so much of a turn, at one of its points."""
    points, path, yaws = drawn(entry), [entry.start[:2]], [entry.start[2]]
    for number, (here, there) in enumerate(pairwise([*points, points[-1]])):
        if number == wait:
            path += 17 * [here]
            yaws += [yaws[-1] + turn * k / 16 for k in range(17)]
        steps = math.ceil(math.dist(here, there) / 0.15)
        if steps:
            path += [tuple(row) for row in np.linspace(here, there, steps + 1).tolist()]
            heading = math.atan2(there[1] - here[1], there[0] - here[0])
            yaws += (steps + 1) * [yaws[-1] + math.remainder(heading - yaws[-1], 2 * math.pi)]
    return path, yaws


def test_what_is_meant_can_be_done_a_path_drawn_by_hand_does_it(sentences):
    waiting = []
    for entry in sentences:
        kinds = {clause.kind for meaning in entry.meanings for clause in meaning}
        whole = any(c.kind == "spin" and c.amount > 6 for meaning in entry.meanings for c in meaning)
        if whole or "hover" in kinds:
            waiting.append(entry)  # which positions alone do not show
        else:
            assert followed(entry, drawn(entry)), entry.id
    assert 3 <= len(waiting) < 10
    for entry in waiting:
        assert not followed(entry, drawn(entry)), entry.id
        assert not followed(entry, *flown(entry, -1, 0.0)), entry.id
        assert any(
            followed(entry, *flown(entry, wait, turn))
            for wait in range(len(entry.path) + 1)
            for turn in (0.0, 2 * math.pi, -2 * math.pi)
        ), entry.id


def test_nobody_has_done_it_who_stays_at_the_start(sentences):
    # To five places the drone is so near at the start that their sentence is done; all others need a flight.
    done = [entry.id for entry in sentences if followed(entry, [entry.start[:2]] * 5, 5 * [entry.start[2]])]
    assert len(done) <= 5, done


def test_dev_and_test_share_neither_visitors_nor_worlds(sentences):
    splits = {profile.id: profile.split for profile in read_typed()[0]}
    homes: dict[str, set[str]] = {}
    for entry in sentences:
        homes.setdefault(json.dumps(entry.layout, sort_keys=True), set()).add(splits[entry.visitor])
    assert set(map(len, homes.values())) == {1}
    assert Counter(splits[entry.visitor] for entry in sentences) == {"dev": 100, "test": 100}
    assert Counter(splits.values()) == {"dev": 5, "test": 5}
    assert len({entry.sentence for entry in sentences}) == 200
    assert not {profile.id for profile in read_written()[0]} & splits.keys()


def test_the_packed_file_has_what_was_typed_and_what_it_means_verbatim(sentences, tmp_path):
    home = ROOT / "scripts" / "typed"
    rows = {
        name: [json.loads(line) for line in (home / f"{name}.jsonl").read_text("utf-8").splitlines()]
        for name in ("replies", "meanings", "own")
    }
    said = {row["id"]: row["sentence"] for row in rows["replies"] + rows["own"]}
    meant = {row["id"]: row["meanings"] for row in rows["meanings"] + rows["own"]}
    assert {entry.id: entry.sentence for entry in sentences} == said
    assert {entry.id: [[c.to_json() for c in m] for m in entry.meanings] for entry in sentences} == meant
    module = ast.parse((ROOT / "experiments" / "own_sentences" / "own_sentences.py").read_text("utf-8"))
    [own] = [node.value for node in module.body if isinstance(node, ast.Assign) and "SENTENCES" in ast.dump(node)]
    assert ast.literal_eval(own) == tuple(row["sentence"] for row in rows["own"])
    write_typed(*read_typed(), tmp_path / "again.xz")
    assert (tmp_path / "again.xz").read_bytes() == typed.PACKED.read_bytes()
    assert typed.PACKED.stat().st_size < 100_000


def test_the_dataset_needs_no_build_and_says_whose_sentences_they_are(monkeypatch, tmp_path, capsys, sentences):
    monkeypatch.setenv("WORDWING_CACHE", str(tmp_path))
    dataset = corpus("typed", seed=3)
    dataset.validate()
    assert (dataset.name, dataset.meta["text"], dataset.splits) == ("typed", "language-model-visitor", ["dev", "test"])
    assert corpus("typed").folder == dataset.folder
    entries = {entry.id: entry for entry in dataset.instructions("dev")}
    assert len(entries) == 100
    for entry in sentences:
        if f"{entry.id}/0" in entries:
            segment = entries[f"{entry.id}/0"].segment
            assert (segment.instruction, (segment.meaning, *segment.alternatives)) == (entry.sentence, entry.meanings)
            assert segment.path[0].tolist() == pytest.approx(entry.start[:2], abs=1e-4)
    stats(corpus=("typed",))
    printed = " ".join(capsys.readouterr().out.split())
    assert "Sentences typed by language models in the role of visitors." in printed
    assert "to be flown once" in printed


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('"meanings":[[{', '"meanings":[],"x":[[{', '"meanings" is a list of 0; it must be a list of 1 to 16'),
        ('"schema":1', '"schema":2', 'line 1: "schema" is 2; it must be 1'),
        ('"world":"cage"', '"world":"moon"', '"world" is "moon"; it must be field, cage or house'),
    ],
)
def test_a_damaged_packed_file_is_answered_with_a_sentence(tmp_path, old, new, sentence):
    text = lzma.decompress(typed.PACKED.read_bytes()).decode()
    assert old in text
    damaged = tmp_path / "typed.xz"
    damaged.write_bytes(lzma.compress(text.replace(old, new, 1).encode()))
    with pytest.raises(WordwingError) as error:
        read_typed(damaged)
    assert sentence in str(error.value)


def test_a_meaning_of_what_is_not_there_is_refused(tmp_path):
    profiles, [first, *_] = read_typed()
    row = first.meanings[0][0].to_json() | {"reference": 40}
    damaged = tmp_path / "typed.xz"
    write_typed(profiles, [first], damaged)
    text = lzma.decompress(damaged.read_bytes()).decode()
    old = json.dumps(first.meanings[0][0].to_json(), separators=(",", ":"))
    damaged.write_bytes(lzma.compress(text.replace(old, json.dumps(row), 1).encode()))
    with pytest.raises(WordwingError, match="speaks of 40"):
        unpack_typed(damaged, tmp_path / "dataset").validate()
