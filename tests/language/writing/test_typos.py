"""Typing mistakes: small, seeded, and never one that means something else."""

import numpy as np
import pytest

from wordwing.language.meaning.clauses import COLOURS
from wordwing.language.tokenizer import tokenize
from wordwing.language.writing.typos import HABITS, misspell
from wordwing.world.catalogue import lexicon

TEXT = (
    "okay, fly straight towards the wooden barrel until it is on your left; then circle the mushroom clockwise, "
    "keeping close, and stop right behind the white fence!"
)
SENSES = {"left", "right", "front", "behind", "clockwise", "counterclockwise", "anticlockwise", *COLOURS}
"""Words of which one must not become another."""


def mistakes(word: str, rng: np.random.Generator, draws: int = 400) -> set[str]:
    """What a word turns into."""
    return {misspell(word, 1.0, rng) for _ in range(draws)} - {word}


def edits(a: str, b: str) -> int:
    """Letters dropped, added, changed and neighbours swapped to make one word of another."""
    table = np.zeros((len(a) + 1, len(b) + 1), int)
    table[:, 0], table[0] = range(len(a) + 1), range(len(b) + 1)
    for i, x in enumerate(a, start=1):
        for j, y in enumerate(b, start=1):
            best = min(table[i - 1, j] + 1, table[i, j - 1] + 1, table[i - 1, j - 1] + (x != y))
            if i > 1 and j > 1 and (x, y) == (b[j - 2], a[i - 2]):
                best = min(best, table[i - 2, j - 2] + 1)
            table[i, j] = best
    return int(table[-1, -1])


def test_who_makes_no_mistakes_changes_nothing(rng):
    for text in (TEXT, "", "go", " two  spaces ", "u-turn - don't"):
        assert misspell(text, 0.0, rng) == text


def test_who_always_makes_mistakes_changes_most_long_words(rng):
    text = " ".join(word for word in TEXT.split() if len(word) >= 6)
    changed = [a != b for _ in range(50) for a, b in zip(text.split(), misspell(text, 1.0, rng).split(), strict=True)]
    assert np.mean(changed) > 0.75


def test_about_as_many_words_are_spoilt_as_asked_for(rng):
    words = ["mushrooms", "fences", "buildings", "pillars"] * 1000
    changed = np.mean([a != b for a, b in zip(words, misspell(" ".join(words), 0.1, rng).split(" "), strict=True)])
    assert 0.07 < changed < 0.11


def test_short_words_numbers_and_hyphens_are_left_alone(rng):
    text = "go to it 90 1/4 u-turn left-hand don't the red one by"
    assert {misspell(text, 1.0, rng) for _ in range(50)} == {text}


def test_no_side_or_colour_becomes_another(rng):
    for word in SENSES:
        assert not mistakes(word, rng) & SENSES, word
    assert mistakes("left", rng)


def test_no_word_for_a_landmark_becomes_a_side_or_a_colour(rng):
    words = {word for entry in lexicon().values() for phrase in entry.names for word in tokenize(phrase)} - SENSES
    for word in words:
        assert not mistakes(word, rng, draws=80) & SENSES, word


def test_a_mistake_is_one_edit_or_a_common_one(rng):
    for word in {*tokenize(TEXT), *HABITS}:
        for wrong in mistakes(word, rng, draws=200):
            assert edits(word, wrong) == 1 or wrong == HABITS.get(word), (word, wrong)
            assert wrong[0] == word[0]


def test_every_way_to_mistype_a_word_occurs(rng):
    found = mistakes("house", rng)
    assert "huse" in found  # dropped
    assert "hoouse" in found  # doubled
    assert "huose" in found  # swapped
    assert "hiuse" in found or "hpuse" in found  # the key beside
    assert all(wrong.startswith("h") for wrong in found)


def test_common_mistakes_are_common(rng):
    said = [misspell("until", 1.0, rng) for _ in range(300)]
    assert said.count("untill") > 100


@pytest.mark.parametrize("mark", [",", ".", ";", "!", ". then", ", then"])
def test_punctuation_stays_where_it_was(mark, rng):
    for wrong in mistakes(f"mushroom{mark}", rng, draws=60):
        word, *rest = wrong.split(" ")
        assert word.endswith(mark[0])
        assert word[:-1].isalpha()
        assert len(rest) == len(mark.split(" ")) - 1


def test_equal_seeds_make_equal_mistakes_and_others_do_not():
    first, again, other = (misspell(TEXT, 0.5, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again != other
