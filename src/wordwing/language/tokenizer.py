"""From text to word indices: one tokenizer for training, flying and typing; and the tokens of a mirrored flight.

There are two tokenizers, and a vocabulary says which one its words are of. The first one has words alone. The second
one has numbers, units and clock directions, too (`quantities`), and words beyond the vocabulary are looked up in a
table of vectors (`word_vectors`).

Unknown words are rare but real: words that the training split has only once are left out of the vocabulary, so the
unknown token is trained on something. A typing mistake is repaired only where that is safe (see `Vocabulary.repair`).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Literal

from wordwing.errors import WordwingError
from wordwing.files import read_text, write_text
from wordwing.language.quantities import find_tokens, mirrored_direction, nearest, normalized
from wordwing.language.word_vectors import word_table
from wordwing.world.catalogue import catalogue, lexicon

PAD, UNKNOWN = "<pad>", "<unk>"
"""Indices 0 and 1 of every vocabulary."""

MIN_COUNT = 2
"""Times that a word must occur in the training split to be known."""

MIN_REPAIR, MAX_REPAIR = 5, 30
"""Letters of an unknown word that may be taken for a typing mistake; trying all edits takes their number squared."""

MAX_WORDS, MAX_BYTES = 100_000, 8_000_000
"""Most words of a vocabulary, the two that are none included, and most bytes of its file."""

Tokenizer = Literal[1, 2]
"""Which tokens a text has. Policies keep theirs, so a change of what the newest one does is one more."""

_HEADER = "# tokenizer 2\n"
"""Before the words of a vocabulary in its file; without it they are of tokenizer 1."""

LETTERS = "abcdefghijklmnopqrstuvwxyz"
_WORD = re.compile(r"[^\W_]+")


def normalize(text: str, tokenizer: Tokenizer = 1) -> str:
    """Lower case, and however "é" is encoded it is one letter."""
    return unicodedata.normalize("NFKC", text).lower() if tokenizer == 1 else normalized(text)


def token_spans(text: str, tokenizer: Tokenizer = 1) -> Iterator[tuple[str, int, int]]:
    """The tokens of a normalised text, and where each begins and ends."""
    return ((one[0], *one.span()) for one in _WORD.finditer(text)) if tokenizer == 1 else find_tokens(text)


def tokenize(text: str, tokenizer: Tokenizer = 1) -> list[str]:
    """Lower-case words and numbers; everything else separates them."""
    return [token for token, _begin, _end in token_spans(normalize(text, tokenizer), tokenizer)]


@dataclass(frozen=True)
class Vocabulary:
    """The words that a policy knows, the commonest first."""

    words: tuple[str, ...]
    """`PAD`, `UNKNOWN`, then words; the position is the index."""
    tokenizer: Tokenizer = 1

    @classmethod
    def of(cls, texts: Iterable[str], min_count: int = MIN_COUNT, tokenizer: Tokenizer = 1) -> Vocabulary:
        """The words that occur at least `min_count` times in some texts."""
        counts = Counter(word for text in texts for word in tokenize(text, tokenizer))
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        known = [word for word, count in ranked if count >= min_count]
        return cls((PAD, UNKNOWN, *known[: MAX_WORDS - 2]), tokenizer)

    def extended(self, other: Vocabulary) -> Vocabulary:
        """The same words at the same places, and behind them those that only another vocabulary has."""
        return replace(self, words=(*self.words, *(word for word in other.words if word not in self.index)))

    @cached_property
    def index(self) -> dict[str, int]:
        """Word to index."""
        return {word: index for index, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self.index

    def tokenize(self, text: str) -> list[str]:
        """The tokens of a text."""
        return tokenize(text, self.tokenizer)

    def encode(self, text: str) -> list[int]:
        """Indices of a text's words, typing mistakes repaired; [] for a text without words."""
        return [self.look_up(word)[0] for word in self.tokenize(text)]

    def look_up(self, word: str) -> tuple[int, int]:
        """The index of a word, typing mistakes repaired, and its row in the table of vectors, 0 for none."""
        read = self.repair(word)
        return self.index.get(read, self.index[UNKNOWN]), self.row(read)

    def row(self, word: str) -> int:
        """The row of a word in the table of vectors; 0 if it is not there, or tokenizer 1 has no table."""
        return word_table().row.get(word, 0) if self.tokenizer > 1 else 0

    def repair(self, word: str) -> str:
        """The known word that a typing mistake was meant to be, or the word itself.

        With tokenizer 2, a word of the table of vectors is no mistake, and a number is read as the nearest known one.
        Repaired are unknown words of at least five letters with a known one a letter dropped, added, changed or two
        neighbours swapped away, the commonest of them. A word that names a landmark is no mistake ("couch" is not
        "coach"), and nothing becomes a landmark's name by another first letter ("mouse" is not "house").
        """
        if self.tokenizer > 1 and word not in self.index:
            if self.row(word):
                return word
            if (near := nearest(word, self.words)) != word:
                return near
        if word in self.index or not MIN_REPAIR <= len(word) <= MAX_REPAIR or not word.isalpha():
            return word
        if word in _landmark_words():
            return word
        close = (near for near in _edits(word) if near in self.index)
        safe = [near for near in close if near[0] == word[0] or near not in _landmark_words()]
        return min(safe, key=lambda near: self.index[near], default=word)

    def save(self, path: str | Path) -> None:
        """Write one word a line."""
        write_text(path, _HEADER * (self.tokenizer > 1) + "\n".join(self.words) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Vocabulary:
        """Read a file that `save` wrote."""
        text = read_text(path, MAX_BYTES, "vocabulary")
        tokenizer: Tokenizer = 2 if text.startswith(_HEADER) else 1
        words = tuple(text.removeprefix(_HEADER).removesuffix("\n").split("\n"))
        if len(words) > MAX_WORDS:
            raise WordwingError(f"{path}: there are more than {MAX_WORDS} words in it")
        if words[:2] != (PAD, UNKNOWN):
            raise WordwingError(f"{path}: a vocabulary begins with the lines {PAD} and {UNKNOWN}")
        for number, word in enumerate(words[2:], start=2 + tokenizer):
            if tokenize(word, tokenizer) != [word]:
                raise WordwingError(f"{path}: line {number} is {word[:40]!r}; it must be one lower-case word")
        if len(set(words)) < len(words):
            twice = next(word for word, count in Counter(words).items() if count > 1)
            raise WordwingError(f'{path}: "{twice}" is there twice')
        return cls(words, tokenizer)


@cache
def _landmark_words() -> frozenset[str]:
    """All words in the names of landmarks, of every corpus, and in what the writer calls them."""
    called = [noun for entry in catalogue() for noun in entry.nouns]
    called += [phrase for names in lexicon().values() for phrase in names.names]
    return frozenset(word for phrase in called for word in tokenize(phrase))


def _edits(word: str) -> Iterator[str]:
    """Every string at edit distance 1, a swap of neighbours counted as one edit."""
    for cut in range(len(word) + 1):
        head, tail = word[:cut], word[cut:]
        yield from (head + letter + tail for letter in LETTERS)
        if tail:
            yield head + tail[1:]
            yield from (head + letter + tail[1:] for letter in LETTERS)
        if len(tail) > 1:
            yield head + tail[1] + tail[0] + tail[2:]


_MIRRORED_PAIRS = (
    ("left", "right"),
    ("leftmost", "rightmost"),
    ("lefthand", "righthand"),
    ("leftward", "rightward"),
    ("leftwards", "rightwards"),
    ("clockwise", "counterclockwise"),
    ("cw", "ccw"),
)
_SWAPPED = dict(_MIRRORED_PAIRS) | {b: a for a, b in _MIRRORED_PAIRS} | {"anticlockwise": "clockwise"}

_JUST = frozenset(
    ("next", "in", "infront", "now", "before", "behind", "beside", "near", "there", "here", "where", "away")
)
"""What follows "right" where it means "just"…"""

_SIDED = frozenset(
    ("turn", "turning", "the", "your", "ur", "a", "its", "to", "on", "hard", "slight", "slightly", "far")
)
"""…unless one of these comes before it."""

_MEASURED = frozenset(
    ("degrees", "deg", "m", "cm", "metre", "metres", "meter", "meters", "centimetres", "foot", "feet", "ft", "steps")
) | {"no", "wait", "sorry", "mean"}
"""After these and after numbers, "right now" and "right next", but not "right next to", are the ends of sentences and
the beginnings of others."""

_POINTED = frozenset(("look", "looking", "point", "pointed", "pointing", "aim", "aimed", "nose", "staring", "dead"))
"""After these "right at" means "exactly at"."""

_HOURS = ("twelve", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven")


def mirrored(words: Sequence[str]) -> list[str]:
    """The words of an instruction, as `tokenize` gives them, for the flight seen in a mirror: left becomes right."""
    found: list[str] = []
    for place, word in enumerate(words):
        before = words[place - 1] if place else ""
        after = words[place + 1] if place + 1 < len(words) else ""
        just = (after in _JUST and before not in _SIDED) or (after == "at" and before in _POINTED)
        new = after == "now" or (after == "next" and words[place + 2 : place + 3] != ["to"])
        ends = new and (before in _MEASURED or before[:1].isdigit())
        if word == "right" and just and not ends:
            found.append(word)
        elif word == "clockwise" and before in ("counter", "anti"):
            found[-1] = word
        elif after in ("o", "oclock") and (hour := _mirrored_hour(word)):
            found.append(hour)
        elif direction := mirrored_direction(word):
            found.append(direction)
        else:
            found.append(_SWAPPED.get(word, word))
    return found


def _mirrored_hour(word: str) -> str:
    """The other side of the clock face for "two" or "2"; empty for what is no hour."""
    if word in _HOURS:
        return _HOURS[-_HOURS.index(word) % 12]
    if word.isdecimal() and 1 <= int(word) <= 12:
        return str((-int(word) % 12) or 12)
    return ""
