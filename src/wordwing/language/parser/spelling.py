"""The words of what a person typed, as they were meant: shorthand written out, articles dropped, slips repaired.

Known are the words of the writer's voices, of everything that landmarks are called, and a few more. A word is repaired
as the policy's vocabulary does it (`Vocabulary.repair`), and where that is too careful for a parser: short words, words
with the wrong letters doubled, and names of things that are there. No repair changes a first letter, so that "might" is
never "right".
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import islice

from wordwing.language.tokenizer import Vocabulary, tokenize
from wordwing.language.writing.templates import VOICES, voice
from wordwing.language.writing.typos import HABITS, mistypings
from wordwing.world.catalogue import catalogue, landmark, lexicon
from wordwing.world.layout import Layout

MAX_WORDS = 600
"""How much of a text is read."""

ARTICLES = frozenset(("a", "an", "the"))
BREAKS = frozenset(".,;")

_SHORTHAND = {
    "u": "you", "ur": "your", "urself": "yourself", "til": "until", "till": "until", "thru": "through", "n": "and",
    "&": "and", "infront": "in front", "inbetween": "between", "str8": "straight", "alittle": "little", "abit": "bit",
    "cw": "clockwise", "ccw": "counterclockwise", "anticlockwise": "counterclockwise", "lefthand": "left",
    "righthand": "right", "leftward": "left", "rightward": "right", "leftwards": "left", "rightwards": "right",
    "towards": "toward", "forwards": "forward", "backwards": "backward", "1/4": "quarter", "1/2": "half",
    "3/4": "three quarters", "metres": "meters", "metre": "meter", "ft": "feet", "centre": "center",
    "centred": "center", "centered": "center", "it's": "it is", "it'll": "it will", "n't": "not",
}  # fmt: skip
_JOINED = {
    ("you", "turn"): "uturn",
    ("clock", "wise"): "clockwise",
    ("counter", "clockwise"): "counterclockwise",
    ("anti", "clockwise"): "counterclockwise",
    ("counter", "clock"): "counterclock",
    ("anti", "clock"): "counterclock",
    ("counterclock", "wise"): "counterclockwise",
}
_MISTAKES = {wrong: right for right, wrong in HABITS.items() if right not in ("past", "your", "you're")}
_MISTAKES |= {"teh": "the", "hte": "the"}
"""What many people write for another word; "passed" and "your" are words as well."""
_MORE_WORDS = (
    "walk step stand navigate left right clockwise counterclockwise about backward degrees uturn veer cross strafe "
    "meters yards inches fence wall border boundary edge before zero one two three four five six seven eight nine ten "
    "twelve twenty thirty forty fifty sixty ninety hundred half visit thing object item alone"
)
"""That are said and are no slips of the voices' words."""
_SHORT = (
    "left",
    "right",
    "with",
    "your",
    "stop",
    "past",
    "pass",
    "keep",
    "turn",
    "from",
    "near",
    "next",
    "then",
    "side",
)
"""Words that matter and are too short for the vocabulary's repair."""
_CONTRACTED = ("that's", "what's", "there's", "let's", "here's", "where's")

_JUST = frozenset(
    ("in", "behind", "there", "at", "by", "up", "next", "beside", "past", "now", "before", "between", "over", "into",
     "through", "to", "after")
)  # fmt: skip
"""What follows "right" where it means "just"…"""
_TO_THE = frozenset(
    ("the", "your", "its", "a", "to", "on", "straight", "turn", "bear", "veer", "curve", "bank", "keep", "hard",
     "sharp", "slight", "slightly", "hang", "take", "bend", "arc", "swing")
)  # fmt: skip
"""…unless one of these comes before it."""
_TOKEN = re.compile(r"\d/\d|\d+(?:\.\d+)?|[^\W\d_]+(?:'[^\W\d_]+)*|[.,;:!?()\n]|(?<=\s)[-–—](?=\s)|&")
_DOUBLE = re.compile(r"(.)\1")


@dataclass(frozen=True)
class Word:
    """A word as it is meant, and where it stands in the text."""

    text: str
    """Lower-case and repaired; "." "," or ";" is a break."""
    start: int
    stop: int
    """Characters of the text."""
    article: bool = False
    """Whether an article stood before it."""


def plain(text: str) -> str:
    """A text in one encoding of its letters; what `Word` counts characters of."""
    return re.sub("[’‘ʼ`´]", "'", unicodedata.normalize("NFKC", text.replace("´", "'")))


def words_of(text: str, layout: Layout) -> list[Word]:
    """The words of a `plain` text as they are meant where a layout's things are about."""
    meant: list[tuple[str, int, int]] = []
    for match in islice(_TOKEN.finditer(text), MAX_WORDS):
        for word in _meant(match[0].lower()):
            joined = _JOINED.get((meant[-1][0], word)) if meant else None
            if joined is not None:
                meant[-1] = (joined, meant[-1][1], match.end())
            else:
                meant.append((word, match.start(), match.end()))
    found: list[Word] = []
    article = False
    for index, (word, start, stop) in enumerate(meant):
        following = meant[index + 1][0] if index + 1 < len(meant) else ""
        before = meant[index - 1][0] if index else ""
        if word in ARTICLES:
            article = True
        elif word != "right" or following not in _JUST or before in _TO_THE:
            found.append(Word(_meant_here(word, layout), start, stop, article))
            article = False
    return found


@lru_cache(maxsize=20_000)
def _meant(token: str) -> tuple[str, ...]:
    """What one token of a text stands for: usually one word."""
    if token in _SHORTHAND:
        return tuple(_SHORTHAND[token].split())
    if not token[0].isalnum():
        return ("," if token == "," else "." if token in ".!?\n" else ";",)
    word = token.replace("'", "")
    if token.endswith("'s") and token not in _CONTRACTED and word not in known_words():
        return (*_meant(token[:-2]), "its")  # the barrel's left side is its left side
    word = _repaired(_MISTAKES.get(word, word))
    return tuple(_SHORTHAND.get(word, word).split())


def _repaired(word: str) -> str:
    known = known_words()
    if word in known or " " in word:
        return word
    slips = [short for short in _SHORT if _slipped(word, short)]
    if len(word) == 4:
        slips += [near for at in (1, 2) if (near := word[:at] + word[at + 1] + word[at] + word[at + 2 :]) in known]
    repaired = slips[0] if slips else _undoubled().get(_DOUBLE.sub(r"\1", word)) or known.repair(word)
    if repaired in known and repaired[0] == word[0]:
        return repaired
    return next((word[:-cut] for cut in (1, 2) if word.endswith("s") and word[:-cut] in known), word)


def _meant_here(word: str, layout: Layout) -> str:
    """An unknown word as the name of something that is there, if it is one slip away: "rck" where a rock stands."""
    if not word.isalpha() or word in known_words():
        return word
    nouns = (noun for entry in layout.landmarks for noun in landmark(entry.name).nouns)
    return next((meant for noun in nouns for meant in noun.split() if _slipped(word, meant)), word)


def _slipped(word: str, meant: str) -> bool:
    """Whether one letter but the first was lost, added or changed, or two neighbours swapped."""
    if len(word) < 3 or word[0] != meant[0] or abs(len(word) - len(meant)) > 1:
        return False
    shorter = min(len(word), len(meant))
    at = next((i for i in range(shorter) if word[i] != meant[i]), shorter)
    tail, rest = word[at:], meant[at:]
    swapped = tail[1:2] + tail[:1] + tail[2:]
    return tail[1:] == rest or tail == rest[1:] or tail[1:] == rest[1:] or swapped == rest


_REAL = frozenset(
    ["bar", "bat", "beds", "bet", "cat", "cold", "don", "fill", "filing", "pace", "self", "sill", "walks", "wet"]
)
"""Words that look like slips of others, and that people have said of rooms."""


def correction(word: str) -> str | None:
    """The word of which this one is a common mistake, or one that a hurried person makes; None if it is no mistake."""
    if word in known_words() or word in _REAL:
        return None
    return _MISTAKES.get(word) or _spoilt().get(word)


@cache
def _spoilt() -> dict[str, str]:
    """The commonest known word by each way to mistype it."""
    return {wrong: word for word in reversed(known_words().words) for wrong in mistypings(word)}


@cache
def known_words() -> Vocabulary:
    """All words that mean something here, the commonest first."""
    said = [_MORE_WORDS]
    for speaker in map(voice, VOICES):
        for table in (speaker.do, speaker.until, speaker.distances, speaker.amounts, speaker.where, speaker.clock):
            said += [re.sub(r"\{\w+\}", " ", phrase) for phrases in table.values() for phrase in phrases]
        said += [*speaker.openers, *speaker.joins, *speaker.closers]
    said += [noun for entry in catalogue() for noun in entry.nouns]
    for names in lexicon().values():
        said += [*names.names, *names.looks, names.family, *names.contrast]
    return Vocabulary.of((phrase.replace("'", "") for phrase in said), min_count=1)


@cache
def _undoubled() -> dict[str, str]:
    """Longer words by how they are written without double letters, which people double at random."""
    return {_DOUBLE.sub(r"\1", word): word for word in reversed(known_words().words) if len(word) > 4}


def name_key(phrase: str) -> tuple[str, ...]:
    """A landmark's name as it stands among `Word`s."""
    return tuple(word for word in tokenize(phrase.replace("'", "")) if word not in ARTICLES)
