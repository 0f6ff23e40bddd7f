"""A dataset small enough to be counted by hand."""

import json
import math

import numpy as np
import pytest

from wordwing.commands.statistics import stats
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.scenes import Scene
from wordwing.data.schema import Paragraph, Segment, Window
from wordwing.data.statistics import PAPER, PAPER_VISIBLE, describe
from wordwing.errors import WordwingError
from wordwing.language.meaning.clauses import Clause
from wordwing.world.layout import Layout, Placement

REACH, PASS, TURN = Clause("reach", 0), Clause("pass", 1, side="left"), Clause("turn", side="left", amount=1.5)
ARENA = Layout((Placement("Barrel", 1.0, 0.0), Placement("Palm1", 0.0, 1.0)))
WIDER = Layout((*ARENA.landmarks, Placement("Rock", -1.0, 0.0), Placement("Boat", 0.0, -1.5)))


def segment(text: str, begin: float, end: float, *meaning: Clause, yaw: float = 0.0) -> Segment:
    """A flight along the x axis."""
    return Segment(text, (begin, 0.0), yaw, np.array([[begin, 0.0], [end, 0.0]]), meaning or None)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    """Three paragraphs of training, of 2, 1 and 1 segments, and one of dev of 3, one of them flown backwards."""
    paragraphs = [
        Paragraph(
            "a", "train", "one", (segment("go to the barrel", 0, 1, REACH), segment("Go on!", 1, 2, PASS, REACH))
        ),
        Paragraph("b", "train", "two", (segment("go to the barrel.", 0, 0.5, REACH),)),
        Paragraph("c", "train", "one", (segment("on the palm", 0, 0.5, PASS, PASS),)),
        Paragraph(
            "d",
            "dev",
            "three",
            (
                segment("go to the paln", 0, 2, TURN, PASS),
                segment("go to the barrel, xyzzy", 2, 1, REACH, yaw=math.pi),
                segment("the barrel", 1, 0, PASS, yaw=0.0),
            ),
        ),
    ]
    layouts = {"one": ARENA, "two": WIDER, "three": ARENA, "unused": WIDER}
    source = Source("cage", "generated", 0, "by hand")
    return write_dataset(tmp_path_factory.mktemp("data") / "mini", source, layouts, paragraphs)


def test_sizes_and_means_are_those_counted_by_hand(dataset):
    rows = {(row.segments, row.split): row for row in describe(dataset).rows}
    assert set(rows) == {(1, "train"), (2, "train"), (1, "dev"), (2, "dev")}
    counted = {key: (row.paragraphs, row.instructions, row.tokens, row.metres) for key, row in rows.items()}
    assert counted[1, "train"] == (3, 4, (4 + 2 + 4 + 3) / 4, (1 + 1 + 0.5 + 0.5) / 4)
    assert counted[2, "train"] == (1, 1, 6, 2)
    assert counted[1, "dev"] == (1, 3, (4 + 5 + 2) / 3, (2 + 1 + 1) / 3)
    assert counted[2, "dev"] == (1, 2, (9 + 7) / 2, (3 + 2) / 2)


def test_goals_in_view_are_those_ahead(dataset):
    rows = {(row.segments, row.split): row.visible for row in describe(dataset).rows}
    assert rows[1, "train"] == 1
    # The third sentence of dev is flown backwards.
    assert rows[1, "dev"] == pytest.approx(2 / 3)
    assert rows[2, "dev"] == 1


def test_a_split_whose_name_does_not_say_it_all_is_explained(tmp_path, capsys):
    source = Source("x", "human", 0, "by hand", splits={"dev": "new tasks in known rooms"}, shared=("dev",))
    paragraphs = [Paragraph(split, split, "one", (segment("go", 0, 1),)) for split in ("train", "dev")]
    made = write_dataset(tmp_path / "data", source, {"one": ARENA}, paragraphs)
    assert made.label("dev") == "dev (new tasks in known rooms)"
    assert made.label("train") == "train"
    stats((made.folder,))
    assert "The split dev has new tasks in known rooms." in capsys.readouterr().out


def test_goals_that_mirror_their_start_are_counted(tmp_path):
    flights = (segment("go", -1, 1.4), segment("go on", 1.4, -0.9), segment("and on", -0.9, 0.0))
    source = Source("x", "human", 0, "by hand")
    found = describe(
        write_dataset(tmp_path / "data", source, {"one": ARENA}, [Paragraph("a", "train", "one", flights)])
    )
    # −1 is mirrored to 1, 0.4 m from 1.4; 1.4 to −1.4, 0.5 m from −0.9; −0.9 to 0.9.
    assert {row.segments: row.reflected for row in found.rows} == {1: pytest.approx(1 / 3), 2: 0.0}


def test_words_are_counted_in_training_and_missed_elsewhere(dataset):
    words = describe(dataset).words
    # go to the barrel / go on / go to the barrel / on the palm
    assert (words.tokens, words.types, words.once) == (13, 6, 1)
    assert words.vocabulary == 5
    assert words.splits == {"train": (13, 6), "dev": (11, 6)}
    # 10 % is 1.3 words, in the first sentence; 25 % is 3.25, in it; 50 % is 6.5, in the third.
    assert words.growth == {"10%": 4, "25%": 4, "50%": 5, "100%": 6}
    # Of eleven words in dev, "paln" and "xyzzy" are unknown, and neither is like a word that is known.
    assert words.unknown == {"dev": pytest.approx(2 / 11)}
    assert words.unreadable == {"dev": pytest.approx(2 / 11)}


def test_a_misspelt_word_can_be_read_and_is_unknown_all_the_same(dataset, tmp_path):
    texts = {"train": "barrel barrel", "dev": "barrle barrel"}
    paragraphs = [Paragraph(split, split, split, (segment(text, 0, 1),)) for split, text in texts.items()]
    source = Source("x", "human", 0, "by hand")
    other = write_dataset(tmp_path / "data", source, {"train": ARENA, "dev": ARENA}, paragraphs)
    words = describe(other).words
    assert (words.unknown, words.unreadable) == ({"dev": 0.5}, {"dev": 0.0})


def test_of_a_dataset_without_training_nothing_is_said_of_a_vocabulary(tmp_path, capsys):
    source, paragraph = Source("x", "human", 0, "by hand"), Paragraph("a", "dev", "one", (segment("go go on", 0, 1),))
    stats((write_dataset(tmp_path / "data", source, {"one": ARENA}, [paragraph]).folder,))
    said = capsys.readouterr().out
    assert "Words: dev 3 of 2 types." in said
    assert "Vocabulary" not in said


def test_sentences_clauses_and_landmarks_are_those_counted_by_hand(dataset):
    found = describe(dataset)
    # "go to the barrel" stands there twice, once with a full stop.
    assert (found.sentences, found.distinct, found.known) == (7, 6, 7)
    assert found.clauses == {"pass": pytest.approx(4 / 7), "reach": pytest.approx(4 / 7), "turn": pytest.approx(1 / 7)}
    assert found.landmarks == {2: 2, 4: 1}
    assert not found.scenes


def test_alignment_is_compared_with_what_is_meant_and_stands_there(dataset):
    aligned = {"barrel": {"Barrel": 0.1, "Rock": 0.1}, "the": {"Palm1": 0.1}}
    document = {"near": 1.41, "min_pmi": 0.008, "max_word_share": 0.1, "words": aligned}
    path = dataset.folder / "alignments.json"
    before = path.read_text()
    path.write_text(json.dumps(document))
    try:
        found = describe(Dataset(dataset.folder)).aligned
    finally:
        path.write_text(before)
    # Found: palm; barrel and palm; barrel and palm. Rock stands in another layout. Meant: palm; barrel; palm.
    assert (found.found, found.meant, found.both) == (5, 3, 3)
    assert (found.precision, found.recall) == (3 / 5, 1)


def test_only_sentences_with_a_window_count_in_scenes(tmp_path):
    legs = tuple(segment(text, begin, begin + 1) for begin, text in enumerate(["one", "two", "three"]))
    windows = {(0, 0): Window(0, 0, 0), (0, 1): Window(0, 0, 0)}
    paragraphs = [Paragraph("a", "train", "room", legs, windows)]
    source = Source("house", "human", 0, "by hand")
    data = write_dataset(tmp_path / "data", source, {"room": Scene(ARENA.landmarks)}, paragraphs)
    found = describe(data)
    assert [(row.segments, row.paragraphs, row.instructions) for row in found.rows] == [(1, 1, 1), (2, 1, 1)]
    assert (found.sentences, found.words.tokens) == (2, 2)
    assert found.scenes
    assert (found.text, found.paper, found.clauses, found.aligned.precision) == ("human", None, {}, None)


def test_the_papers_rows_agree_with_what_the_paper_says_of_them():
    real = PAPER["cage"][1]
    # "This increases the mean instruction length from 11.10 tokens to 20.97, and the mean trajectory length by 1.91."
    assert (real[1, "train"].tokens, real[2, "train"].tokens) == (11.10, 20.97)
    assert real[2, "train"].metres / real[1, "train"].metres == pytest.approx(1.91)
    assert sum(row.paragraphs for (count, _), row in PAPER["field"][1].items() if count == 1) == 6000
    assert PAPER_VISIBLE[0] + 38 == PAPER_VISIBLE[1]


def test_the_command_says_who_wrote_it_and_sets_the_papers_numbers_beside_ours(dataset, tmp_path, capsys):
    stats((dataset.folder,), json=tmp_path / "stats.json")
    printed = capsys.readouterr().out
    assert "Sentences generated by a program." in printed
    [row] = [line for line in printed.splitlines() if line.split()[:2] == ["1", "train"]]
    assert row.split()[2:] == ["3", "698", "4", "3,245", "3.25", "11.10", "0.75", "1.00", "100.0%", "0.0%"]
    [written] = json.loads((tmp_path / "stats.json").read_text())
    assert written["rows"][0]["paper"]["instructions"] == 3245
    assert written["words"]["types"] == 6
    assert written["text"] == "generated"


def test_brackets_in_a_name_are_printed_as_they_are(tmp_path, capsys):
    paragraphs = [Paragraph("a", "train", "one", (segment("go", 0, 1),))]
    data = write_dataset(tmp_path / "[red]", Source("b", "human", 0, "by hand"), {"one": ARENA}, paragraphs)
    stats((data.folder,))
    assert f"b  {data.folder}" in capsys.readouterr().out.replace("\n", "").replace("Sentences", " ")


def test_without_a_dataset_the_command_asks_for_one():
    with pytest.raises(WordwingError, match="which dataset"):
        stats(())
