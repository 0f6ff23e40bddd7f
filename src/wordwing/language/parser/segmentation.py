"""A text cut at its joints into pieces, in the order in which they are to be done.

Joints are breaks, "and", "then", "until" and the like, and places where a new thing to do begins without any: "turn
left to the boat". Cutting too often does no harm, for `parser.parsing` puts together what belongs together.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from wordwing.language.parser.clause_parsing import Draft, read
from wordwing.language.parser.reference_resolution import Mention, mentions
from wordwing.language.parser.spelling import BREAKS, Word, plain, words_of
from wordwing.world.layout import Layout

ACROSS = {",": 0.0, "and": 0.0, "until": 0.0, "then": 1.2, ".": 1.6}
"""Kinds of joints, and what it costs to read one clause across them, in the units of `reading.content`."""

_VERBS = (
    "aim", "anchor", "approach", "bank", "bear", "bend", "bring", "center", "circle", "clear", "close", "come",
    "continue", "curve", "cut", "dodge", "draw", "end", "face", "find", "finish", "fly", "follow", "get", "glide",
    "go", "halt", "head", "hold", "hover", "hug", "keep", "land", "leave", "let", "line", "look", "loop", "make",
    "move", "orbit", "park", "pass", "pivot", "place", "point", "proceed", "pull", "put", "reach", "ride", "rotate",
    "run", "sail", "settle", "skirt", "slip", "spin", "split", "start", "stay", "steer", "stick", "stop", "sweep",
    "swing", "take", "thread", "trace", "travel", "turn", "walk", "wind", "wrap",
)  # fmt: skip
"""With which a clause begins."""
_ON_THE_WAY = ("with", "keeping", "leaving", "passing", "by")
_JOINTS = re.compile(
    r"(?P<then>(?:and )?(?:then|next(?! to)|after(?:wards?| that| this| which)|with that done|now|first(?:ly)?|"
    r"second(?:ly)?|third(?:ly)?|finally|lastly|ok|okay|alright|"
    r"from (?:there|here|that point|this (?:spot|position)|where you are)|"
    r"(?:once|when) (?:(?:you|youve|it|is) )*(?:have )?(?:done|did|finished)(?: it| that)?))\b|"
    r"(?P<until>until|when|once|as soon as|so|after|before)\b|"
    r"(?P<and>and|but|while|as you|making sure|make sure)\b|"
    r"(?P<to>(?:to|toward|at|near) X\b|to (?:face|reach|get|go|stand)\b)|"
    r"(?P<with>(?:with|keeping|leaving|passing) X\b|by (?:going|passing|flying|keeping|staying)\b)|"
    rf"(?P<verb>{'|'.join(_VERBS)})\b"
)
_DROPPED = ("then", "and")
"""Joints that say nothing more; "when it is close" needs its "when"."""
_NO_VERB_AFTER = frozenset(
    ("to", "you", "and", "can", "could", "should", "will", "gonna", "would", "i", "we", "not", "dont", "must", "please",
     "just", "always", "never", "then", "so", "of", "your", "it", "be", "in", "on", "at", "half", "full", "by")
)  # fmt: skip
"""After these a verb begins nothing new."""
_LETS = frozenset(("let", "letting", "watch", "watching", "see", "saw", "seen", "have"))
"""After these a thing does something: "let the barrel go by"."""
_WHOLE = frozenset(
    ("X", "it", "left", "right", "stop", "done", "there", "clockwise", "counterclockwise", "bit", "little", "way",
     "distance", "steps", "feet", "meters", "lengths", "ahead", "turning")
)  # fmt: skip
"""One of these is in every piece after which a verb without a joint begins another."""
_STEPS = frozenset(("turn", "go", "move", "walk", "step", "head", "veer", "hang", "take", "make", "fly", "bear"))
_ONE_PLACE = re.compile(
    r"\b(?:between|middle|midway|midpoint|gap|through|sides?|both|split|thread\w*|gate\w*|flank\w*|opening|channel|"
    r"posts|doorway|separat\w+|joins?|space|line|behind|cleared)\b"
)
"""Where "the boat and the barrel" are one place and not two."""

_EXCEPTING = re.compile(r"\b(?:any|every|no)(?:where|thing|one|place)?(?: else)?(?: \w+)?$|\ball$")
"""Before a "but" that excepts something: "anywhere but the barrel"."""


@dataclass(frozen=True)
class Piece:
    """Words between two joints."""

    first: int
    last: int
    """Of the words, both included."""
    joint: str
    """What stands before it: a key of `ACROSS`."""
    opener: str
    """The word of that joint."""


class Text:
    """What a person typed, its words, and what they name in a layout."""

    def __init__(self, text: str, layout: Layout) -> None:
        self.text = plain(text)
        self.words: list[Word] = words_of(self.text, layout)
        self.named: list[Mention] = mentions(self.words, layout)

    @cached_property
    def marks(self) -> list[str]:
        """The words with X for the first word of a name and nothing for its others."""
        # "The round table" is a table; only who goes "round the table" goes round.
        marks = ["" if word.text == "round" and word.article else word.text for word in self.words]
        for entry in self.named:
            mark = self.words[entry.first].text if entry.pronoun else "X"
            marks[entry.first : entry.last + 1] = [mark, *[""] * (entry.last - entry.first)]
        return marks

    def typed(self, first: int, last: int) -> str:
        """From one word to another, as typed."""
        return self.text[self.words[first].start : self.words[last].stop]

    def said(self, pieces: Sequence[Piece]) -> tuple[str, list[Mention]]:
        """The marks of some pieces, and what they name."""
        marks = [" ".join(filter(None, self.marks[piece.first : piece.last + 1])) for piece in pieces]
        spoken = [entry for piece in pieces for entry in self.named if piece.first <= entry.first <= piece.last]
        return " , ".join(marks), spoken

    def read(self, piece: Piece) -> Draft | None:
        """What a piece means alone."""
        return read(*self.said([piece]))


def pieces_of(text: Text) -> list[Piece]:
    """The pieces of a text in the order in which they are to be done."""
    found: list[Piece] = []
    sentence: list[Piece] = []
    for piece in _cut(text):
        if piece.joint in (".", "then"):
            found += _ordered(sentence, text)
            sentence = []
        sentence.append(piece)
    return found + _ordered(sentence, text)


def _cut(text: Text) -> list[Piece]:
    marks = text.marks
    found: list[Piece] = []
    first, joint, opener, at = 0, ".", "", 0
    while at <= len(marks):
        mark = marks[at] if at < len(marks) else "."
        kind, words, length = mark, mark, 1
        if mark not in BREAKS:
            match = _JOINTS.match(" ".join(filter(None, marks[at : at + 8]))) if mark else None
            if match is None or not _joins(match.lastgroup or "", text, first, at):
                at += 1
                continue
            kind, words = match.lastgroup or "", match[0]
            length = 1 if kind in ("to", "with") else len(words.split())
        else:
            kind = "," if mark == "," else "."
        strength = kind if kind in ACROSS else "and"
        if any(marks[first:at]):
            found.append(Piece(first, at - 1, joint, opener))
            joint = strength
        else:  # two joints, one after the other: the stronger counts, and the word of the last
            joint = max(joint, strength, key=ACROSS.__getitem__)
        opener = words if kind == "until" else words.split()[0]
        first = at + length if kind in _DROPPED or mark in BREAKS else at
        at += length
    return found


def _joins(kind: str, text: Text, first: int, at: int) -> bool:
    """Whether words that could be a joint are one here."""
    marks = text.marks
    before = [mark for mark in marks[first:at] if mark]
    last = before[-1] if before else ""
    following = next((mark for mark in marks[at + 1 :] if mark), "")
    if kind == "and" and marks[at] == "but" and _EXCEPTING.search(" ".join(before)):
        return False
    if kind == "and":
        return last != "X" or following != "X" or not _ONE_PLACE.search(_sentence(marks, at))
    if kind == "until":
        after = next(
            (mark for mark in marks[at + 2 :] if mark), ""
        )  # "before you" is in front, "before you go" is time
        placed = following in ("X", "it") or (following == "you" and after not in _VERBS)
        return last != "or" and not (marks[at] == "before" and placed)
    if kind == "to":
        # "Turn left to the boat", "over the mushroom to the barrel"; but "from the boat to the barrel" is one place.
        turned = "X" not in before and last in ("left", "right", "around", "again") and not _STEPS.isdisjoint(before)
        return turned or ("X" in before and marks[at] == "to" and not {"from", "between"} & set(before))
    if kind == "with":
        return "X" in before
    if kind == "then":
        return not text.words[at].article  # "the second rock"
    if kind == "verb":
        if text.words[at].article or last in _NO_VERB_AFTER or (last == "X" and not _LETS.isdisjoint(before)):
            return False
        return len(before) > 1 and not _WHOLE.isdisjoint(before)
    return True


def _sentence(marks: Sequence[str], at: int) -> str:
    """The marks around one of them up to the next full stop."""
    begin = next((i + 1 for i in range(at, -1, -1) if marks[i] in (".", ";")), 0)
    stop = next((i for i in range(at, len(marks)) if marks[i] in (".", ";")), len(marks))
    return " ".join(marks[begin:stop])


def _ordered(sentence: list[Piece], text: Text) -> list[Piece]:
    """A sentence's pieces as they are to be done: "after", "before", "at" and "with" can come late."""
    if sentence and sentence[0].opener == "before":
        main = next((i for i, piece in enumerate(sentence) if i and piece.opener in (",", *_VERBS)), 0)
        return sentence[main:] + sentence[:main]
    for place in range(1, len(sentence)):
        if _comes_first(sentence[place], sentence[place - 1], text):
            return [*sentence[: place - 1], *sentence[place:], sentence[place - 1]]
    return sentence


def _comes_first(piece: Piece, before: Piece, text: Text) -> bool:
    """Whether a piece is to be done before the one that it follows."""
    said, _ = text.said([piece])
    if piece.opener == "after":
        return re.match(r"after (?:\w+ing|you|X|it)\b", said) is not None
    if piece.opener in ("when", "once", "as soon as", "at", "near"):
        draft = text.read(before)
        return "X" in said and draft is not None and draft.kind in ("turn", "turn_around", "curve")
    if piece.opener not in ("but", "while", *_ON_THE_WAY) and not said.startswith(("keeping", "leaving", "passing")):
        return False
    goal, way = text.read(before), text.read(piece)
    if goal is None or way is None or not goal.kind.startswith("reach") or way.kind not in ("pass", "along"):
        return False
    return {entry.key for entry in goal.mentions}.isdisjoint(entry.key for entry in way.mentions)
