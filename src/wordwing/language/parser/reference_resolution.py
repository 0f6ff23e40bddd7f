"""Which thing of a layout a noun phrase means.

A phrase is looked up in everything that people call a landmark (the catalogue's nouns and lexicon), the longest first,
and of all kinds of landmarks, not only of those that are there: "the blue box" is the container's name and must
not become the brown box because no container is there. If a phrase fits several things that are there, nouns of the
catalogue come before other names, and then whatever the words around it say: adjectives, or what it stands next to.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from wordwing.language.meaning.clauses import COLOURS, Reference
from wordwing.language.parser.spelling import BREAKS, Word, known_words, name_key
from wordwing.language.writing.referring_expressions import BESIDE, CLOSE, FENCE_NAMES
from wordwing.world.catalogue import catalogue, landmark, lexicon
from wordwing.world.fences import distance_to_fences
from wordwing.world.layout import Layout

PRONOUNS = ("it", "them", "its", "itself")
LONGEST = 9
"""Words of a name."""

_PAINTS = frozenset(
    ("red", "white", "blue", "yellow", "green", "orange", "black", "brown", "grey", "gray", "golden", "gold", "silver",
     "tan", "purple", "pink")
)  # fmt: skip
_FENCES = {name.format("").strip() for name in FENCE_NAMES} | {"barrier"}
_NOT_ADJECTIVES = BREAKS | {"and", "with", "of", "on", "in", "to", "by", "between"}
_NOT_LOOKS = _NOT_ADJECTIVES | {
    "its",
    "for",
    "from",
    "one",
    "two",
    "four",
    "several",
    "thing",
    "end",
    "without",
    "that",
}
_RELATION = re.compile(
    rf"(?:is )?(?:{'|'.join(BESIDE)}|(?:in )?front of|behind|across from|opposite|against|above|under|"
    r"(?:(?:just|directly) )?(?:(?:to|on|at) )?(?:left|right)(?: side)? of)"
)
"""What may stand between a thing and another that tells it from its like."""
_PLACING = frozenset(
    ("on", "in", "with", "at", "by", "where", "next", "beside", "behind", "of", "end", "side", "near", "under", "above",
     "is", "right", "left", "far", "other", "across", "front", "opposite", "against", "corner")
)  # fmt: skip
"""Words between two things of which only one needs to be there: "the apple on the counter"."""


@dataclass(frozen=True)
class Mention:
    """Words that name something."""

    first: int
    last: int
    """Of the words, both included."""
    phrase: tuple[str, ...]
    candidates: tuple[Reference, ...]
    """What it fits equally well; () if nothing that is there."""
    others: tuple[Reference, ...] = ()
    """What it could mean at a pinch, the likeliest first."""
    pronoun: bool = False
    placed: bool = True
    """Whether it is there, and near whatever it is said to be near."""

    @property
    def key(self) -> object:
        """The same for two mentions that mean the same thing."""
        return self.candidates if len(self.candidates) == 1 else self.phrase


def mentions(words: Sequence[Word], layout: Layout) -> list[Mention]:
    """Everything that the words of a text name, in order; "it" is what was named last."""
    found: list[Mention] = []
    at = 0
    while at < len(words):
        last = next((entry for entry in reversed(found) if not entry.pronoun), None)
        mention = (
            _pronoun(words, at, last)
            or _fence(words, at, last)
            or _landmark(words, at, layout)
            or _something(words, at, layout)
        )
        if mention is None:
            at += 1
            continue
        found.append(mention)
        at = mention.last + 1
        if len(found) > 1 and (located := _located(found[-2], found[-1], words, layout)):
            found[-2:] = [located]
    return found


def _pronoun(words: Sequence[Word], at: int, named: Mention | None) -> Mention | None:
    if words[at].text not in PRONOUNS or named is None:
        return None
    if at and words[at - 1].text in ("park", "call", "take"):  # "and park it", which is the drone
        return None
    return replace(named, first=at, last=at, pronoun=True)


def _fence(words: Sequence[Word], at: int, named: Mention | None) -> Mention | None:
    phrase = tuple(word.text for word in words[at : at + 2])
    if len(phrase) == 2 and phrase[0] in COLOURS and phrase[1] in _FENCES:
        return Mention(at, at + 1, phrase, (phrase[0],))
    if phrase[0] not in ("fence", "wall"):
        return None
    if named is not None and named.candidates and isinstance(named.candidates[0], str):
        return replace(named, first=at, last=at, pronoun=True)
    return Mention(at, at, phrase[:1], ()) if words[at].article else None


def _landmark(words: Sequence[Word], at: int, layout: Layout) -> Mention | None:
    """The longest name that begins here."""
    phrase = tuple(word.text for word in words[at : at + LONGEST])
    for length in range(len(phrase), 0, -1):
        kinds = _kinds(phrase[:length])
        ranks = {i: kinds[entry.name] for i, entry in enumerate(layout.landmarks) if entry.name in kinds}
        if ranks:
            best = min(ranks.values())
            fitting = _described(words, at, tuple(i for i, rank in ranks.items() if rank == best), layout)
            others = tuple(sorted(ranks.keys() - set(fitting), key=lambda i: ranks[i]))
            return Mention(at, at + length - 1, phrase[:length], fitting, others)
        if kinds and (length > 1 or words[at].article):
            absent = Mention(at, at + length - 1, phrase[:length], ())
            return absent if set(absent.phrase) & _PAINTS else _simpler(absent, words, layout)
    return None


def _simpler(absent: Mention, words: Sequence[Word], layout: Layout) -> Mention:
    """A name without its first words: who calls the only tree "the tall tree" means it. Colours are not left out."""
    shorter = (_landmark(words[: absent.last + 1], begin, layout) for begin in range(absent.first + 1, absent.last + 1))
    there = next((inner for inner in shorter if inner and inner.candidates and inner.last == absent.last), absent)
    return replace(there, first=absent.first)


def _kinds(phrase: tuple[str, ...]) -> dict[str, int]:
    """The kinds of landmarks that are called so, and how far down the list of their names it stands."""
    found = _names().get(phrase)
    if found is None and len(phrase) <= 2:
        found = _names().get(_unspaced().get("".join(phrase), ()))
    return found or {}


@cache
def _names() -> dict[tuple[str, ...], dict[str, int]]:
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for entry in catalogue():
        names = lexicon().get(entry.name)
        lists = [entry.nouns, names.phrases, (names.family,)] if names else [entry.nouns]
        for rank, phrases in enumerate(lists):
            for phrase in phrases:
                found.setdefault(name_key(phrase), {}).setdefault(entry.name, rank)
    return found


@cache
def _unspaced() -> dict[str, tuple[str, ...]]:
    """Short names by how they are written in one word, for "night stand" and "trashcan"."""
    return {"".join(phrase): phrase for phrase in _names() if len(phrase) <= 2}


def _described(words: Sequence[Word], at: int, fitting: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    """Those of several things that the adjectives before the name are ever said of."""
    if len(fitting) < 2 or words[at].article:
        return fitting
    for word in reversed(words[max(at - 3, 0) : at]):
        if word.text in _NOT_ADJECTIVES:
            break
        said = tuple(i for i in fitting if word.text in _words_for(layout.landmarks[i].name))
        if said:
            return said
        if word.article:
            break
    return fitting


def _something(words: Sequence[Word], at: int, layout: Layout) -> Mention | None:
    """Whatever is orange, for "the orange thing"; nothing, for "the dragon", which no landmark is called."""
    phrase = tuple(word.text for word in words[at : at + 2])
    if phrase[0] in _PAINTS and phrase[1:] and phrase[1] in ("thing", "one", "object", "item"):
        fitting = tuple(i for i, entry in enumerate(layout.landmarks) if phrase[0] in _words_for(entry.name))
        return Mention(at, at + 1, phrase, fitting)
    if not words[at].article or not phrase[0].isalpha() or phrase[0] in known_words():
        return None
    adjective = any(_landmark(words, i, layout) for i in range(at + 1, min(at + 3, len(words))))
    return None if adjective else Mention(at, at, phrase[:1], ())


@cache
def looks(kind: str) -> frozenset[str]:
    """Adjectives, and parts of names, that are ever said of a kind of landmark before its name."""
    return _words_for(kind) - _NOT_LOOKS


@cache
def _words_for(kind: str) -> frozenset[str]:
    names = lexicon().get(kind)
    said = [*landmark(kind).nouns, *(names.phrases if names else ())]
    return frozenset(word for phrase in said for word in name_key(phrase))


def _located(what: Mention, where: Mention, words: Sequence[Word], layout: Layout) -> Mention | None:
    """Take "X next to Y" as one mention, of that X which is nearest to a Y; None if the words do not say so."""
    between = [word.text for word in words[what.last + 1 : where.first]]
    if what.pronoun or where.pronoun or not between:
        return None
    known = bool(what.candidates) and bool(where.candidates)
    if not (_RELATION.fullmatch(" ".join(between)) if known else _PLACING.issuperset(between)):
        return None
    candidates = what.candidates or where.candidates
    if len(candidates) > 1 and known:
        candidates = (min(candidates, key=lambda i: min(distance(i, j, layout) for j in where.candidates)),)
    near = known and " ".join(between).removeprefix("is ") in BESIDE
    placed = near and min(distance(candidates[0], j, layout) for j in where.candidates) <= CLOSE
    return Mention(what.first, where.last, (*what.phrase, *between, *where.phrase), candidates, placed=placed)


def distance(thing: Reference, other: Reference | tuple[float, float], layout: Layout) -> float:
    """Metres from the centre of a landmark, or from a fence, to another of them or to a point in the world frame."""
    if isinstance(thing, str) or isinstance(other, str):
        fence, point = (thing, other) if isinstance(thing, str) else (other, thing)
        if isinstance(point, str):
            return 0.0
        return float(distance_to_fences(_place(point, layout))[COLOURS.index(str(fence))])
    return math.dist(_place(thing, layout), _place(other, layout))


def _place(thing: int | tuple[float, float], layout: Layout) -> tuple[float, float]:
    return (layout.landmarks[thing].x, layout.landmarks[thing].y) if isinstance(thing, int) else thing
