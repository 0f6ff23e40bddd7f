import json
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from wordwing.errors import WordwingError
from wordwing.language import alignment
from wordwing.language.alignment import Alignment, align, present
from wordwing.world.layout import Layout, Placement

NAMES = ["Barrel", "Boat", "BushTree", "Cactus", "Fridge", "Gorilla", "LionStatue", "Sofa", "Well"]
WORDS = [f"word{i}" for i in range(30)]


def random_examples(rng: np.random.Generator, count: int) -> list[tuple[list[str], list[str]]]:
    """Instructions of common and rare words, some said mostly where a certain landmark is; repetitions in both."""
    examples = []
    for _ in range(count):
        names = list(rng.choice(NAMES, rng.integers(0, 5)))
        words = [WORDS[i] for i in rng.geometric(0.12, rng.integers(0, 7)) - 1 if i < len(WORDS)]
        words += [f"the{name}" for name in names if rng.random() < 0.3] * rng.integers(1, 3)
        examples.append((words, names))
    return examples


def share(hits: list[bool]) -> Fraction:
    return Fraction(sum(hits), len(hits))


def paper_alignment(examples: list[tuple[list[str], list[str]]]) -> dict[tuple[str, str], float]:
    """{(word, landmark): PMI} of the paper's output set, pair by pair."""
    kept = {}
    for word in {word for words, _ in examples for word in words}:
        for name in NAMES:
            p_word = share([word in words for words, _ in examples])
            p_name = share([name in names for _, names in examples])
            p_both = share([word in words and name in names for words, names in examples])
            if p_both > 0:
                pmi = float(p_both) * math.log(p_both / (p_name * p_word))
                if pmi > 0.008 and p_word < Fraction(1, 10):
                    kept[word, name] = pmi
    return kept


def test_alignments_are_the_papers_output_set(rng):
    examples = random_examples(rng, 300)
    scores = align((iter(words), names) for words, names in examples).scores
    expected = paper_alignment(examples)
    assert {(word, name): pmi for word, row in scores.items() for name, pmi in row.items()} == expected
    assert 10 < len(expected) < 100
    assert len({word for word, _ in expected}) < len({word for words, _ in examples for word in words})


def test_words_come_in_alphabetical_order_and_their_landmarks_the_greatest_pmi_first(rng):
    scores = align(random_examples(rng, 300)).scores
    assert list(scores) == sorted(scores)
    assert any(len(row) > 1 for row in scores.values())
    for row in scores.values():
        assert list(row.values()) == sorted(row.values(), reverse=True)


def test_saying_a_word_twice_counts_once():
    once = [(["the", "barrel"], ["Barrel"]), *[(["the"], ["Boat"])] * 30]
    often = [(["the", "barrel", "the", "barrel"], ["Barrel", "Barrel"]), *[(["the", "the"], ["Boat", "Boat"])] * 30]
    assert align(once) == align(often)
    assert align(once).scores == {"barrel": {"Barrel": math.log(31) / 31}}


@pytest.mark.parametrize("total", [10, 30, 70, 1000])
def test_a_word_in_a_tenth_of_all_instructions_is_too_common(total):
    def kept(times: int) -> set[str]:
        examples = [(["barrel"], ["Barrel"])] * times + [(["go"], [])] * (total - times)
        return set(align(examples).scores)

    assert kept(total // 10) == set()
    assert kept(total // 10 - 1) == ({"barrel"} if total > 10 else set())


def test_a_pmi_must_be_above_the_threshold(monkeypatch):
    examples = [(["barrel"], ["Barrel"])] * 2 + [(["go"], ["Barrel"])] * 20 + [(["go"], [])] * 10
    pmi = align(examples).scores["barrel"]["Barrel"]
    assert pmi == pytest.approx(2 / 32 * math.log(32 / 22), rel=1e-12)
    monkeypatch.setattr(alignment, "MIN_PMI", pmi)
    assert align(examples).scores == {}
    monkeypatch.setattr(alignment, "MIN_PMI", math.nextafter(pmi, 0))
    assert align(examples).scores == {"barrel": {"Barrel": pmi}}


def test_the_thresholds_are_the_papers():
    assert (alignment.MIN_PMI, alignment.MAX_WORD_SHARE) == (0.008, 0.1)
    assert pytest.approx(15 * 4.7 / 50) == alignment.NEAR


@pytest.mark.parametrize("examples", [[], [([], [])], [(["barrel"], [])] * 3, [([], ["Barrel"])] * 3])
def test_where_there_is_nothing_to_count_nothing_is_aligned(examples):
    assert align(examples).scores == {}


def test_a_text_mentions_the_landmarks_of_all_its_words():
    found = Alignment({"barrel": {"Barrel": 0.1, "WoodBarrel": 0.05}, "sofa": {"Sofa": 0.2}})
    assert found.mentioned("Past the BARREL, to the sofa!") == {"Barrel", "WoodBarrel", "Sofa"}
    assert found.mentioned("barrels, sofas") == set()
    assert found.mentioned("") == set()


def sampled(path: np.ndarray) -> np.ndarray:
    """Points of a polyline, 300 on every edge."""
    steps = np.linspace(0, 1, 300)[:, None]
    return np.concatenate([path[:1], *(a + steps * (b - a) for a, b in pairwise(path))])


def test_present_is_what_some_point_of_the_path_is_near(rng):
    answers = []
    for points in [1, 2, 2, 3, 5, 8] * 10:
        layout = Layout(tuple(Placement(name, *rng.uniform(-2.35, 2.35, 2)) for name in NAMES))
        path = rng.uniform(-2.35, 2.35, (points, 2)) * rng.choice([0.1, 1.0])
        path = np.repeat(path, rng.integers(1, 3, points), axis=0)  # standing still is part of a path
        near = rng.uniform(0.2, 1.5)
        found = present(layout, path, near)
        for entry in layout.landmarks:
            distance = min(math.dist(point, (entry.x, entry.y)) for point in sampled(path))
            if abs(distance - near) > 1e-3:
                answers.append(distance < near)
                assert (entry.name in found) == answers[-1]
    assert len(answers) > 500
    assert 0.1 < np.mean(answers) < 0.9


def test_within_the_distance_means_nearer_than_it():
    layout = Layout((Placement("Barrel", 1.0, 0.5),))
    path = np.array([[0.0, 0.0], [2.0, 0.0]])
    assert present(layout, path, near=0.5) == frozenset()
    assert present(layout, path, near=math.nextafter(0.5, 1)) == {"Barrel"}
    assert present(layout, path) == {"Barrel"}


def test_two_of_a_kind_are_one_name_and_an_empty_layout_has_none():
    pair = Layout((Placement("Barrel", -2.0, 0.0), Placement("Barrel", 0.3, 0.0)))
    assert present(pair, np.zeros((1, 2))) == {"Barrel"}
    assert present(Layout(()), np.zeros((3, 2))) == frozenset()


def test_what_is_written_is_what_is_read_to_six_decimals(rng):
    written = align(random_examples(rng, 300))
    read = Alignment.from_json(json.loads(json.dumps(written.to_json())), "alignments.json")
    assert [(word, list(row)) for word, row in read.scores.items()] == [
        (word, list(row)) for word, row in written.scores.items()
    ]
    for word, row in written.scores.items():
        assert read.scores[word] == pytest.approx(row, abs=5.01e-7)
    assert Alignment.from_json(read.to_json(), "again") == read
    assert Alignment.from_json(Alignment({}).to_json(), "empty") == Alignment({})


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"words": None},
        {"words": []},
        {"words": {"barrel": None}},
        {"words": {"barrel": ["Barrel"]}},
        {"words": {"barrel": {"Barell": 0.1}}},
        {"words": {"sofa": {"Sofa": 0.1}, "barrel": {"Barrel": "0.1"}}},
        {"words": {"barrel": {"Barrel": True}}},
        {"words": {"barrel": {"Barrel": None}}},
        {"words": {"barrel": {"Barrel": math.nan}}},
        {"words": {"barrel": {"Barrel": math.inf}}},
        {"words": {"barrel": {"Barrel": -0.1}}},
        {"words": {"barrel": {"Barrel": 10**400}}},
    ],
)
def test_what_is_no_alignment_is_refused(document):
    with pytest.raises(WordwingError) as caught:
        Alignment.from_json(document, "alignments.json")
    assert str(caught.value) == (
        'alignments.json: "words" must map each word to landmarks of the catalogue and their PMI'
    )
