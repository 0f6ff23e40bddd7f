"""Which words of a text are in what was understood of it: a white list, since no black list knows all that is denied.

A word is explained if it names a thing or says how that thing looks, if it is in the amount that a clause has, if it is
said just so for a clause of that kind by a voice of the writer (`voices/`), or if it is on the short list of words for
that kind of clause or on that of words that change nothing (`explained.json`). Whatever else was said, nobody knows
what it adds: "go halfway to the boat", "quit going to the boat", "go to the second boat".
"""

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from itertools import product

from wordwing.language.meaning.clauses import Kind
from wordwing.language.parser.clause_parsing import amounts
from wordwing.language.parser.reference_resolution import Mention, looks
from wordwing.language.parser.segmentation import Piece, Text
from wordwing.language.parser.spelling import BREAKS, Word, words_of
from wordwing.language.writing.templates import VOICES, voice
from wordwing.world.layout import Layout

_SIZES = frozenset(("big", "large", "huge", "giant", "small", "little", "tiny", "tall"))
"""Opinions that everything may be called by."""
_COUNTED = frozenset(("first", "second", "third", "next"))
_BEFORE_NAMES = frozenset(
    ("to", "toward", "at", "by", "near", "past", "pass", "around", "behind", "of", "reach", "for")
)
"""After these what counts is not what to do but a thing: "go to second boat"."""

_WITHIN: dict[str, str] = {"reach": "toward", "reach_fence": "toward"}
"""Clauses, and others that are in them."""
_SLOTS = {"X": "101", "Y": "101", "side": "102", "opp": "102", "where": "103", "clock": "104", "amount": "105",
          "distance": "106", "n": "107"}  # fmt: skip
"""What stands for them while a template is read as a text."""


class Explained:
    """The words of a text that are in its clauses.

    Args:
        text: What was typed.
        layout: Where.
        kinds: Of all its clauses.
    """

    def __init__(self, text: Text, layout: Layout, kinds: frozenset[Kind]) -> None:
        self._text = text
        self._named: set[int] = set()  # places of names and of looks
        self._first: set[int] = set()  # where names begin
        self._misplaced: set[int] = set()  # of names of things that do not stand where they are said to
        for entry in text.named:
            begins = entry.first if entry.pronoun else entry.last - len(entry.phrase) + 1
            (self._named if entry.placed else self._misplaced).update(range(begins, entry.last + 1))
            self._first.add(begins)
            self._named.update(_adjectives(text, entry, begins, layout))
        stream, _ = self._stream(range(len(text.words)))
        said = set(stream.split())
        said_by = {"", *kinds, *(_WITHIN[kind] for kind in kinds & _WITHIN.keys())}
        phrases = [pattern for kind in sorted(said_by) for words, pattern in _phrases(kind) if words <= said]
        self._phrased = self._spoken(range(len(text.words)), phrases)

    def missing(self, group: Sequence[Piece], kinds: frozenset[Kind]) -> list[int]:
        """The places of words of a group that are not in its clause, which is of one of some kinds."""
        places = [place for piece in group for place in range(piece.first, piece.last + 1)]
        known = self._named | self._phrased | self._spoken(places, [entry for kind in kinds for entry in _core(kind)])
        stream, at = self._stream(places)
        for kind in sorted(kinds):
            known |= {at[i] for i in _covered(stream, amounts(stream, kind))}
        known -= {at[i] for i in _covered(stream, [found.span() for found in _TORN.finditer(stream)])}
        known |= {piece.first for piece in group if piece.opener and self._joins(piece.first)}
        known -= self._misplaced
        text = [word.text for word in self._text.words]
        befores = [piece.first - 1 for piece in group if piece.first > 1]  # what could be a joint may count things
        counted = [i for i in befores if text[i] in _COUNTED and text[i - 1] in _BEFORE_NAMES]
        return sorted(counted + [i for i in places if i not in known and text[i] not in BREAKS])

    def _joins(self, place: int) -> bool:
        """Whether a word only says how what follows goes with another piece."""
        before, word = self._text.words[place - 1].text if place else "", self._text.words[place].text
        return word in _JOINTS and (word != "before" or before not in _STOPS)

    def _stream(self, places: Sequence[int] | range) -> tuple[str, list[int]]:
        """Some words with X for names and without what is said of their looks, and the places of those left."""
        words, at = [], []
        for place in places:
            if place in self._first:
                words.append(self._text.marks[place] or "X")
                at.append(place)
            elif place not in self._named | self._misplaced and self._text.words[place].text not in BREAKS:
                words.append(_plain(self._text.words[place]))
                at.append(place)
        return " ".join(words), at

    def _spoken(self, places: Sequence[int] | range, patterns: Sequence[re.Pattern[str]]) -> set[int]:
        """The places of words that some patterns fit."""
        stream, at = self._stream(places)
        spans = [found.span() for pattern in patterns for found in pattern.finditer(stream)]
        return {at[i] for i in _covered(stream, spans)}


_JOINTS = frozenset(("after", "before", "while", "with", "keeping", "leaving", "passing", "to", "at", "near", "so"))
"""Words that a piece may begin with, where they say only how it goes with another."""

_STOPS = frozenset(("stop", "halt", "wait", "hover", "park", "land", "hold", "stay"))
"""Who stops before going somewhere need not go there."""
_TORN = re.compile(r"\b(?:left right|right left|(?:counterclock|clock)wise (?:counterclock|clock)wise)\b")
"""No clause has both."""


def _covered(stream: str, spans: Sequence[tuple[int, int]]) -> Iterator[int]:
    """The numbers of the words in some spans of characters."""
    for begin, stop in spans:
        first = stream.count(" ", 0, begin)
        yield from range(first, first + len(stream[begin:stop].split()))


def _adjectives(text: Text, entry: Mention, begins: int, layout: Layout) -> Iterator[int]:
    """Places of the words before a name that say how the thing looks, back to its article."""
    said = [looks(layout.landmarks[i].name) for i in entry.candidates if isinstance(i, int)]
    for place in range(begins - 1, -1, -1):
        word = text.words[place].text
        if entry.pronoun or text.words[place + 1].article or not any(word in some or word in _SIZES for some in said):
            return
        yield place


@cache
def _core(kind: str) -> tuple[re.Pattern[str], ...]:
    """The words for a kind of clause, and those that change nothing."""
    table: dict[str, list[str]] = json.loads(
        files("wordwing.language.parser").joinpath("explained.json").read_text("utf-8")
    )

    def entries(name: str) -> Iterator[str]:
        for entry in table[name]:
            yield from entries(entry[1:]) if entry.startswith("@") else (entry,)

    return tuple(re.compile(rf"\b(?:{entry})\b") for entry in {*entries("any"), *entries(kind)})


@cache
def _phrases(kind: str) -> tuple[tuple[frozenset[str], re.Pattern[str]], ...]:
    """How the voices say a kind of clause, or ("") how they begin and end: the words in it, and a pattern."""
    said: set[str] = set()
    for speaker in map(voice, VOICES):
        if kind:
            names = (kind, "turn_slight") if kind == "turn" else (kind,)
            said.update(one for table in (speaker.do, speaker.until) for name in names for one in table.get(name, ()))
        else:
            said.update((*speaker.openers, *speaker.joins, *speaker.closers))
    found: dict[tuple[str, ...], None] = {}
    for phrase in (written for template in sorted(said) for written in _ways(template)):
        words = tuple(_reads(phrase))
        if kind or len(words) > 1:  # "next" alone may be the next boat
            found[words] = None
    slots = {code: _slot(name) for name, code in _SLOTS.items()}
    return tuple(
        (frozenset(words) - set(slots), re.compile(rf"\b{' '.join(slots.get(word, word) for word in words)}\b"))
        for words in found
    )


def _reads(phrase: str) -> list[str]:
    """A template as its words stand in a text."""
    phrase = re.sub(r"\{(\w+)\}", lambda found: f" {_SLOTS[found[1]]} ", phrase.replace("}'s", "} its"))
    return [_plain(word) for word in words_of(phrase, Layout(())) if word.text not in BREAKS]


def _plain(word: Word) -> str:
    """Who goes "round the table" goes around it; "the round table" is round."""
    return "around" if word.text == "round" and not word.article else word.text


def _ways(template: str) -> Iterator[str]:
    """A template with its options and choices decided in every way."""
    parts = re.split(r"(\[[^\[\]]*\]|\([^()]*\))", template)
    options = [
        ("", part[1:-1]) if part[:1] == "[" else part[1:-1].split("|") if part[:1] == "(" else (part,) for part in parts
    ]
    yield from ("".join(chosen) for chosen in product(*options))


@cache
def _slot(name: str) -> str:
    """A pattern for whatever a voice puts into a slot of a template."""
    if name in ("X", "Y"):
        return r"(?:X|it|its|them|itself|fence|wall)"
    if name in ("side", "opp"):
        return "(?:left|right)"
    if name == "n":
        return r"(?:\w+)"
    table = {"where": "where", "clock": "clock", "amount": "amounts", "distance": "distances"}[name]
    said = {phrase for speaker in map(voice, VOICES) for some in getattr(speaker, table).values() for phrase in some}
    ways = sorted({" ".join(_reads(phrase)) for phrase in said}, key=len, reverse=True)
    return f"(?:{'|'.join(ways)})".replace(_SLOTS["n"], _slot("n"))
