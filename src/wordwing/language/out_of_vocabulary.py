"""Which words of a text a policy does not read as they were typed, and where they stand in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from wordwing.language.parser.spelling import correction
from wordwing.language.tokenizer import Vocabulary, tokenize


@dataclass(frozen=True)
class Mark:
    """A word that is no word to a policy, or not the one that was typed."""

    word: str
    """As `tokenize` has it."""
    begin: int
    end: int
    """Characters of the text; the end is not included."""
    meant: str | None = None
    """What it is read as; None where it means nothing to the policy."""


def marks(text: str, vocabulary: Vocabulary) -> list[Mark]:
    """The unknown and the misspelt words of a text, in order.

    A policy knows many slips by heart, because it has heard them ("teh"), and reads others as the nearest word that it
    knows ("stopp"); both are marked with what is meant.
    """
    found = []
    for word, begin, end in word_spans(text):
        read = vocabulary.repair(word)
        meant = (correction(read) or read) if read in vocabulary else None
        if meant != word:
            found.append(Mark(word, begin, end, meant))
    return found


def unknown_words(marked: Sequence[Mark]) -> list[str]:
    """Words that mean nothing to a policy, each once."""
    return list(dict.fromkeys(mark.word for mark in marked if mark.meant is None))


def slips(marked: Sequence[Mark]) -> list[str]:
    """Misspelt words with what they are read as, each once: "stopp → stop"."""
    return list(dict.fromkeys(f"{mark.word} → {mark.meant}" for mark in marked if mark.meant is not None))


def word_spans(text: str) -> list[tuple[str, int, int]]:
    """The words of a text as `tokenize` has them, and where each stands: [begin, end) of the text.

    A character that becomes several words ("½") stands for each of them.
    """
    starts = [place for place, letter in enumerate(text) if place == 0 or not unicodedata.combining(letter)]
    spelled = [
        (letter, start, stop)
        for start, stop in pairwise([*starts, len(text)])  # a character with the accents behind it
        for letter in unicodedata.normalize("NFKC", text[start:stop]).lower()
    ]
    found = re.finditer(r"[^\W_]+", "".join(letter for letter, _start, _stop in spelled))
    words = [(one[0], spelled[one.start()][1], spelled[one.end() - 1][2]) for one in found]
    if [word for word, _begin, _end in words] == tokenize(text):
        return words
    # Scripts in which letters change with their neighbours: then all words between two spaces share a place.
    return [(word, *chunk.span()) for chunk in re.finditer(r"\S+", text) for word in tokenize(chunk[0])]
