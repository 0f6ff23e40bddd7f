"""Words that a policy does not read as they were typed: found where they stand, with what is meant."""

import pytest

from wordwing.language.parser.spelling import correction
from wordwing.language.text_checks import WordIssue, misspellings, unknown_words, word_issues, word_spans
from wordwing.language.tokenizer import PAD, UNKNOWN, Vocabulary, tokenize
from wordwing.model.checkpoint import load_network

TRAINED = Vocabulary((PAD, UNKNOWN, "the", "stop", "go", "to", "barrel", "teh", "barrell", "lettuce"))
"""Of a policy whose training texts had misspellings."""


@pytest.mark.parametrize(
    "text",
    [
        "Go to the LEFT, of_the barrel!",
        "thé cafe\u0301 ½ ﬁsh 飞 🚁x",
        "ΟΔΟΣ İstanbul \u1112\u1161\u11ab",
        "\u0301leading e\u0301\u0301",
        "  ",
        "",
    ],
)
def test_words_stand_where_they_are_found(text):
    spans = word_spans(text)
    assert [word for word, _begin, _end in spans] == tokenize(text)
    for word, begin, end in spans:
        assert word in tokenize(text[begin:end])


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("stopp", "stop"),  # repaired
        ("teh", "the"),  # heard, and no word
        ("barell", "barrel"),  # repaired to a slip that was heard
        ("blorb", None),
        ("hte", None),  # too short to be repaired
    ],
)
def test_words_that_are_no_words_are_marked_with_what_is_read(typed, meant):
    text = f"go to {typed}"
    assert word_issues(text, TRAINED) == [WordIssue(typed, 6, 6 + len(typed), meant)]


def test_words_are_not_marked():
    assert word_issues("Go to the BARREL, stop; lettuce", TRAINED) == []


def test_unknown_words_and_slips_are_each_named_once():
    marked = word_issues("stopp teh blorb, stopp blorb", TRAINED)
    assert unknown_words(marked) == ["blorb"]
    assert misspellings(marked) == ["stopp → stop", "teh → the"]


def test_the_shipped_policy_says_what_it_makes_of_slips():
    _network, vocabulary = load_network("pvn2-sureal")
    marked = word_issues("stopp at teh barell pleez", vocabulary)
    assert misspellings(marked) == ["stopp → stop", "teh → the", "barell → barrel"]
    assert unknown_words(marked) == ["pleez"]
    assert word_issues("turn around, pass the barrel on its left and stop in front of the boat", vocabulary) == []


def test_words_that_people_say_of_rooms_are_no_slips():
    for word in ["bread", "plate", "spoon", "beds", "cold", "hallway", "pillow", "store", "lettuce", "walks"]:
        assert correction(word) is None, word
    for word, meant in {"rigth": "right", "untill": "until", "lfet": "left", "pumkin": "pumpkin"}.items():
        assert correction(word) == meant
