"""Which words of a text a policy does not know, and where they stand in it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from wordwing.language.tokenizer import Vocabulary, tokenize


def unknown_spans(text: str, vocabulary: Vocabulary) -> list[tuple[int, int]]:
    """Begin and end of the words that mean nothing to a policy, in order.

    Counted in UTF-16 code units, as JavaScript counts the characters of a string.
    """
    spans = [(begin, end) for word, begin, end in word_spans(text) if vocabulary.repair(word) not in vocabulary]
    units = [0]
    for letter in text:
        units.append(units[-1] + (2 if ord(letter) > 0xFFFF else 1))
    return list(dict.fromkeys((units[begin], units[end]) for begin, end in spans))


def word_spans(text: str) -> list[tuple[str, int, int]]:
    """The words of a text as `tokenize` has them, and where each stands: [begin, end) of the text.

    A character that becomes several words ("½") stands for each of them.
    """
    pieces = list(_pieces(text))
    words, word, begin, end = [], "", 0, 0
    for start, stop, spelled in pieces:
        for letter in spelled:
            if letter.isalnum():
                begin = begin if word else start
                word, end = word + letter, stop
            elif word:
                words.append((word, begin, end))
                word = ""
    if word:
        words.append((word, begin, end))
    if [word for word, _begin, _end in words] == tokenize(text):
        return words
    # Scripts in which letters change with their neighbours: then all words between two spaces share a place.
    return [(word, start, stop) for start, stop in _chunks(text) for word in tokenize(text[start:stop])]


def _pieces(text: str) -> Iterator[tuple[int, int, str]]:
    """Characters with the accents behind them: where each is, and how `tokenize` spells it."""
    if not text:
        return
    starts = [place for place, letter in enumerate(text) if place == 0 or not unicodedata.combining(letter)]
    for start, stop in zip(starts, [*starts[1:], len(text)], strict=True):
        yield start, stop, unicodedata.normalize("NFKC", text[start:stop]).lower()


def _chunks(text: str) -> Iterator[tuple[int, int]]:
    """[begin, end) of what stands between spaces."""
    start = None
    for place, letter in enumerate([*text, " "]):
        if letter.isspace():
            if start is not None:
                yield start, place
            start = None
        elif start is None:
            start = place
