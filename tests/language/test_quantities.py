"""Tokens of tokenizer 2: apostrophes, numbers, units and clock directions."""

from itertools import pairwise

import pytest

from wordwing.language.quantities import find_tokens, mirrored_direction, nearest, normalized
from wordwing.language.text_checks import word_spans
from wordwing.language.tokenizer import mirrored, tokenize


def tokens(text: str) -> str:
    """Joined by spaces, which no token has."""
    return " ".join(tokenize(text, 2))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("You're at the cone's left", "you 're at the cone 's left"),
        ("you’re, they`ll, he´d", "you 're they 'll he 'd"),
        ("don't can't won't shan't", "do n't can n't will n't shall n't"),
        ("'stop' y'all lookin'", "stop y'all lookin"),
        ("3m, 3 m, 3 metres, three meters, 3-meter, 300 cm", " ".join(["3 metres"] * 6)),
        ("1.5 m, 1,5 m, 1½ metres, 1 1/2 m, one and a half metres, 150cm", " ".join(["1.5 metres"] * 6)),
        ("one metre but the red one", "1 metres but the red one"),
        ("90 degrees, 90°, 90-degree, ninety degrees, 90 deg", " ".join(["90 degrees"] * 5)),
        ("one hundred and eighty degrees, one eighty, 180", "180 degrees 180 180"),
        ("forty-five degrees, a hundred degrees, two hundred", "45 degrees 100 degrees 200"),
        ("3 o'clock, three oclock, 3 O’Clock, 3 o clock", " ".join(["3-o'clock"] * 4)),
        ("at your 12 o'clock in 12 steps", "at your 12-o'clock in 12 steps"),
        ("2 feet to the foot of the bed", "2 feet to the foot of the bed"),
        ("stop 3 in front of it", "stop 3 in front of it"),
        ("the 2nd and the 3rd, b4 the f16", "the second and the third b4 the f16"),
        ("0.75 m and .5 m and 2.0 m", "0.75 metres and 0.5 metres and 2 metres"),
        ("1/0 or 123456789", "1 or 123456789"),
    ],
)
def test_the_same_quantity_is_the_same_tokens_however_it_is_written(text, expected):
    assert tokens(text) == expected
    assert tokens(expected) == expected


def test_texts_without_numbers_and_apostrophes_have_the_same_tokens_as_before():
    for text in ("Go to the LEFT, of_the barrel!", "thé cafe\u0301 ﬁsh 飞 🚁x", "", "?!", "ΟΔΟΣ İstanbul"):
        assert tokenize(text, 2) == tokenize(text)


def test_every_character_is_in_a_token_of_both_tokenizers_or_of_none():
    characters = [chr(code) for code in range(0x3000)]
    for begin in range(0, len(characters), 8):
        block = characters[begin : begin + 8]
        assert bool(tokenize(" ".join(block))) == bool(tokenize(" ".join(block), 2)), block


@pytest.mark.parametrize("piece", ["a", "9", "one ", "'", "1 ", "a'", "hundred ", "o' ", "3 o'", "½"])
def test_an_endless_text_takes_time_in_proportion(piece):
    text = normalized(piece * 20_000)
    assert sum(end - begin for _token, begin, end in find_tokens(text)) <= len(text)


def test_tokens_stand_where_they_were_typed():
    text = "Fly 1½ m, you’re AT the cone's 3 o'clock 🚁 90°"
    spans = word_spans(text, 2)
    found = {word: text[begin:end] for word, begin, end in spans}
    assert [word for word, _begin, _end in spans] == tokenize(text, 2)
    assert found["1.5"] == "1½"
    assert (found["metres"], found["degrees"]) == ("m", "°")
    assert (found["'re"], found["cone"], found["3-o'clock"]) == ("’re", "cone", "3 o'clock")
    assert all(end <= begin for (_one, _begin, end), (_other, begin, _end) in pairwise(spans))


@pytest.mark.parametrize(
    ("token", "known", "read"),
    [
        ("2.25", ("2", "2.5", "9", "the"), "2"),
        ("85", ("45", "90", "180"), "90"),
        ("11-o'clock", ("1-o'clock", "6-o'clock", "11"), "1-o'clock"),
        ("12-o'clock", ("10-o'clock", "1-o'clock"), "1-o'clock"),
        ("7", ("the", "7-o'clock"), "7"),
        ("couch", ("7",), "couch"),
    ],
)
def test_a_number_that_was_never_heard_is_read_as_the_nearest(token, known, read):
    assert nearest(token, known) == read


def test_a_clock_direction_is_mirrored_and_a_number_is_not():
    assert [mirrored_direction(f"{hour}-o'clock") for hour in (12, 1, 3, 6, 11)] == [
        f"{hour}-o'clock" for hour in (12, 11, 9, 6, 1)
    ]
    text = "fly 3 metres to your 2 o'clock, turn left 90 degrees at the cone's right"
    assert " ".join(mirrored(tokenize(text, 2))) == (
        "fly 3 metres to your 10-o'clock turn right 90 degrees at the cone 's left"
    )
