"""What a few words about a thing mean: one clause, by what is said of it and not by word order.

The words come as `parser.parsing` groups them, articles dropped, with X for whatever they name ("fly by left side of
X"). Sides and amounts are taken out, signs are looked for (`signs.json`: pieces of regular expressions by what they are
a sign of), and the first line of a decision list that fits names the kind. Two sorts of sides must be told apart: "pass
the barrel on its left" is the thing's own side, as seen by who looks at it, so the barrel is on the drone's right; "on
your left" is the drone's. "Pass the barrel on the left" is taken for the thing's own side too: who passes a car on the
left is on its left.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from wordwing.language.meaning.clauses import Kind, Side
from wordwing.language.meaning.facts import DISTANCES, QUARTER, SLIGHT, UNITS
from wordwing.language.parser.reference_resolution import Mention
from wordwing.language.parser.spelling import words_of
from wordwing.language.writing.templates import VOICES, voice
from wordwing.world.layout import Layout


@dataclass(frozen=True)
class Draft:
    """A clause whose names are not yet resolved."""

    kind: Kind
    mentions: tuple[Mention, ...] = ()
    side: Side | None = None
    amount: float | None = None
    cost: float = 0.0
    """How much of what was said is not in it, in the units of `content`."""
    weak: bool = False
    """Whether it only means this if it stands alone: "keep going", "left"."""


def read(text: str, named: Sequence[Mention]) -> Draft | None:
    """What a group means, or None.

    Args:
        text: Its words, with X for names.
        named: What X and "it" stand for, in order.
    """
    group = _Group(text, named)
    if "denied" in group:
        return None
    draft = _pair(group) or _thing(group) if group.named else _movement(group)
    return draft and replace(draft, cost=draft.cost + _unsaid(group, draft))


def content(text: str, named: Sequence[Mention]) -> float:
    """How much is lost if a group is not understood; a thing that is there is worth 3."""
    group = _Group(text, named)
    lost = 0.2 + sum(3.0 if entry.candidates else 1.0 for entry in group.named if not entry.pronoun)
    lost += 2.0 * bool(group.sides or group.own) + 2.0 * (group.clock is not None)
    lost += 2.0 * ("turn" in group or "about" in group) + 2.0 * group.arced
    return lost + 1.5 * (read(text, named) is not None)


_NOT = r"(?:(?:do|does|did|should|will|can) not|dont|doesnt|shouldnt|wont(?: be)?|never|not|no|without|no need to)"
_THING = r"(X|it)\b"
_HERE = r"(?= ,| \.|$| and\b| then\b| but\b| turn\b| just\b| until\b| go\b)"
"""Where nothing more is said of it."""
_IDIOMS = [
    (re.compile(pattern), meant)
    for pattern, meant in (
        (r"\b(?:one )?hundred eighty\b|\bone eighty\b", "180"),
        (r"\bninety\b", "90"),
        (r"\bforty five\b", "45"),
        (r"\bthirty\b", "30"),
        (r"\bround\b", "around"),
        (r"\bgo ahead and\b|\bgoing to want\b|\bkind of\b|\bsort of\b|\bas you go\b|\bgo ahead\b(?! bit)", ""),
        (r"\b(?:not|neither) ahead (?:or|nor) behind\b", "beside"),
        (r"\bits (far|other|near) side\b", r"\1 side of it"),
        (rf"\bturn (?:your )?(?:back|tail) (?:on|to) {_THING}", r"leave \1"),
        (r"\bturn (?:your )?head\b", "look"),
        (r"\b(?:you )?dont (?:need|overdo)\b.*|\bdont forget to\b", ""),
        # Said with a "not", and meant without one.
        (rf"\b{_NOT} turn back(?: toward it)?{_HERE}", ""),
        (rf"\b{_NOT} (?:stop|stopping)(?: to turn)?{_HERE}", ""),
        (rf"\b{_NOT}(?: any| making| you)? (?:turns?|turning|drift|drifting|bending your path|change direction)\b"
         rf"(?: off to one side or other| off| more| anywhere| or anything| at all| needed)*{_HERE}", "straight"),
        (rf"\b{_NOT}(?: go| going| get| getting)? (?:past|beyond|by) {_THING}", r"short of \1"),
        (rf"\b{_NOT} (?:stop|quit|halt) (?:until|before)\b", "until"),
        (r"\bbefore you (?=(?:stop|go|get|reach|fly|land|come|end|finish|park|hover)\b)", ""),
        (rf"\b{_NOT} (?:go|drift|stray)(?: away)? from {_THING}", r"hug \1"),
        (rf"\b{_NOT} (?:come out|exit|pass through|go through)(?: other side)?{_HERE}", "stay inside"),
        (rf"\b{_NOT} (?:let|letting|lose|losing|leave|leaves|leaving)(?: it| X)?(?: get)?(?: far)?(?: from| off)? "
         r"your (left|right)\b", r"on your \1"),
        (rf"\b{_NOT} (?:touching|touch|bumping|bump|hitting|hit)(?: into)?(?: {_THING})?", ""),
        (rf"\b{_NOT} (?:let you )?(?:move|moving|go|going|leaving|anything)"
         rf"(?: from your spot| your spot| anywhere| forward| more| yet| further| farther)*{_HERE}", "staying"),
        (rf"\b{_NOT} (?:more|further|farther)\b(?: than that)?{_HERE}", "staying"),
        (r"\bnot (?:too )?(?:much|sharp|full|whole|off to one side)\b|\bnowhere near full one\b|\bnothing big\b|"
         r"\bnot getting (?:nearer|closer) or (?:farther|further)\b|\band not corner\b|\bno space\b", ""),
        (rf"\b{_NOT} turning all way that direction\b", ""),
        (r"\byou (?:cant|cannot) (?:really )?(?=get any closer|go (?:past|any farther|forward))", ""),
        (r"\byou (?:cant|shouldnt)(?: be able to)? see (X|it) (?:anymore|since|cuz)(?= its?\b| because it slipped)",
         r"\1"),
        (r"\bdont go straight(?= , bend)", ""),
        (r"\binstead of (?:sharp )?(?:turn|corner)\b|\bnothing but(?= X)|\bno more (?:than|field)\b", ""),
        (r"\b(?:go|fly|move|continue|head|travel|proceed|carry|push|keep going)(?: on| straight| dead)* "
         r"(?:ahead|forward)\b", "advance"),
        (r"\b(to|toward|at|near|face|reach) (?:left|right|far|closest|nearest) (X)\b", r"\1 \2"),
    )
]  # fmt: skip
"""What stands for something shorter."""

_UNKNOWN_SIDE = re.compile(
    r"(?:\b(?:to|on|at|just) )?\b(?:left|right)(?: side)? of (?!X\b|it\b|them\b|you\b|where|dead|center|straight)\w+"
)
"""The side of something that nothing is called."""
_THERE = re.compile(
    r"\b((?:go|fly|flying|head|walk|move|get|over|up|back|proceed|travel|return|come|continue|cross|way|until|carry|"
    r"bring|turn|and|,)(?: \w+){0,3} (?:to|toward|for|reach)|reach|face|facing|^to|, to) ((?:\w+ ){0,2}X)(?: ahead)?"
    r"(?: that is| thats| which is)? "
    r"(?:(?:on|to|at) (?:your |far )?(?:left|right)(?: hand)?(?: side)?\b(?! of)|behind you)"
)
"""A side that only says where to look for what is to be reached…"""
_NOT_THERE = re.compile(r"\b(?:past|pass\w*|with|keep\w*|stop|side to|line\w*|parallel|along\w*|close)\b")
"""…if none of these is said."""
_OWN_SIDE = re.compile(
    r"\b(left|right)(?: hand)?(?: side| edge| end| corner)? of (?:X|it|them)\b|\bits (?:own )?(left|right)\b|"
    r"\b(?:pass|past|around|by|skirt|overtake) (?:X|it) (?:on|to|at) (left|right)(?: side)?\b(?! of)|"
    r"\b(?:on|along|by|from) (?:X|it) (left|right) side\b|\bfrom (left|right)\b|"
    r"\b(?:go|pass|fly|move|head)(?: to)? (left|right) (?=around (?:X|it)\b)|"
    r"\b(?:keep|stay|hold) to (left|right)\b(?=.*\b(?:past|by|pass)\b)"
)
_SIDE = re.compile(r"\b(left|right)\b")
_CLOCK = re.compile(r"\b(counter)?clockwise\b")
_ARCS = (
    (re.compile(r"\b(?:three|3) (?:quarter|fourth)s?\b|\b270\b"), 3 * QUARTER),
    (re.compile(r"\bhalf(?:way)?\b|\b180\b"), 2 * QUARTER),
    (re.compile(r"\bquarter\b|\bfourth\b|\b90\b"), QUARTER),
    (
        re.compile(r"\b(?:all|whole|entire) way\b|\bfull(?:y)?\b|\bcomplete(?:ly)?\b|\bonce around\b|\b360\b"),
        4 * QUARTER,
    ),
)
_DEGREES = re.compile(r"\b(\d+(?:\.\d+)?) ?deg\w*|\b(30|45|60|90|120|135|270)\b")
_ANGLE = re.compile(rf"{_DEGREES.pattern}|\b(?:ninety|forty five|thirty)\b")
_OF_THE_WAY = re.compile(r"(?: degrees?| of way| way| of circle| circle)?\b")
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_METRES = {
    **dict.fromkeys(("step", "steps", "pace", "paces"), UNITS["steps"]),
    **dict.fromkeys(("foot", "feet"), UNITS["feet"]),
    **dict.fromkeys(("length", "lengths"), UNITS["lengths"]),
    **dict.fromkeys(("meter", "meters", "m"), UNITS["metres"]),
    **dict.fromkeys(("inch", "inches"), 0.025),
    **dict.fromkeys(("yard", "yards"), 0.9),
    **dict.fromkeys(("cm", "centimeters"), 0.01),
}
_MEASURE = re.compile(
    rf"\b(\d+(?:\.\d+)?|{'|'.join(_NUMBERS)})(?: (?:big|good|small|walking|body|drone|of your own|times your own))* "
    rf"({'|'.join(_METRES)})\b"
)
_SIDES: dict[str, Side] = {"left": "left", "right": "right"}
_OTHER: dict[Side, Side] = {"left": "right", "right": "left"}


@cache
def _signs() -> dict[str, re.Pattern[str]]:
    table = json.loads(files("wordwing.language.parser").joinpath("signs.json").read_text("utf-8"))
    return {name: re.compile(rf"\b(?:{'|'.join(entries)})\b") for name, entries in table.items()}


class _Group:
    """The signs, sides and amounts of a group; `"stop" in group` asks for a sign."""

    def __init__(self, text: str, named: Sequence[Mention]) -> None:
        for pattern, meant in _IDIOMS:
            text = pattern.sub(meant, text)
        text = " ".join(text.split())
        if named:
            text = _UNKNOWN_SIDE.sub("", text)
        self.text = text if _NOT_THERE.search(text) else _THERE.sub(r"\1 \2", text)
        self.named = _distinct(named)
        explicit = [entry.key for entry in named if not entry.pronoun]
        self.repeated = len(explicit) - len(set(explicit))
        self.fence = bool(self.named) and isinstance(next(iter(self.named[0].candidates), None), str)
        own = next((found[found.lastindex or 0] for found in _OWN_SIDE.finditer(self.text)), None)
        self.own = _SIDES[own] if own else None
        """A side of the thing."""
        self.sides = [_SIDES[side] for side in _SIDE.findall(_OWN_SIDE.sub(" ", self.text))]
        """Sides of the drone."""
        clock = _CLOCK.search(self.text)
        # Counterclockwise around a thing has it on the left.
        self.clock: Side | None = None if clock is None else "left" if clock[1] else "right"
        self.arc = next((arc for pattern, arc in _ARCS if pattern.search(self.text)), None)
        self.arced = self.arc is not None and "around" in self

    def __contains__(self, sign: str) -> bool:
        return _signs()[sign].search(self.text) is not None

    def says(self, pattern: str) -> bool:
        return re.search(rf"\b(?:{pattern})\b", self.text) is not None

    @property
    def beside(self) -> Side | None:
        """On which side of the drone the thing is, whichever way it was said."""
        return next(iter(self.sides), None) or self.clock or (_OTHER[self.own] if self.own else None)


def _distinct(named: Sequence[Mention]) -> list[Mention]:
    """One mention of each thing: those that are there first, those by name before those by "it"."""
    found: dict[object, Mention] = {}
    for entry in sorted(named, key=lambda mention: (not mention.candidates, mention.pronoun)):
        found.setdefault(entry.key, entry)
    return list(found.values())


def _unsaid(group: _Group, draft: Draft) -> float:
    """What a group says that a draft has not."""
    left = [entry for entry in group.named if entry not in draft.mentions]
    lost = sum(1.5 if not entry.candidates else 2.0 if entry.pronoun else 3.0 for entry in left) + 2.0 * group.repeated
    missed = [
        group.own is not None and draft.side is None,
        "turn" in group and draft.kind not in ("turn", "turn_around", "turn_to", "face", "curve", "circle", "hug"),
        "about" in group and not draft.mentions and draft.kind not in ("turn_around", "turn"),
        group.clock is not None and draft.kind not in ("circle", "turn"),
        group.arced and draft.kind not in ("circle", "turn_around", "turn", "turn_to"),
    ]
    if draft.kind not in ("between", "reach_between"):
        missed += [bool(group.sides) and draft.side is None, len(set(group.sides)) > 1]
    return lost + 2.0 * sum(missed) + 1.0 * ("pass" in group and not draft.mentions)


def _pair(group: _Group, pair: tuple[Mention, ...] = ()) -> Draft | None:
    """Two things, and what is between them."""
    pair = pair or tuple(group.named[:2])
    flanked = len(set(group.sides)) == 2 and group.says("through|^with") and "stop" not in group
    if len(pair) < 2 or not ("gap" in group or flanked):
        return None
    stops = "stop" in group and not group.says("through|out other|keep going|continue on|fly on")
    into = group.says("into|to (?:middle|point|spot|gap|space|midpoint)|in between|midway") and "through" not in group
    return Draft("reach_between" if stops or into else "between", pair)


def _thing(group: _Group) -> Draft | None:
    """One thing: the decision list."""
    thing = (group.named[0],)
    reach = Draft("reach_fence" if group.fence else "reach", thing)
    if group.says("between(?! your?)"):
        # "Between the rocks" names both at once.
        return _pair(group, thing * 2) if len(thing[0].candidates) > 1 else None
    if group.text == "X":
        if "is" in thing[0].phrase:  # "the rock is near the boat" tells nobody to do anything
            return None
        return replace(reach, cost=0.5, weak=True)
    if group.beside and not group.fence and (group.arced or "circle" in group):
        return Draft("circle", thing, group.beside, group.arc if group.arc and group.arced else 4 * QUARTER)
    if group.sides:
        return _thing_beside(group, thing, group.sides[0])
    if group.own:
        past = group.says(rf"past|pass\w*|(?:{_FLIES}) by")
        by = past or "pass" in group or group.says(r"skirt\w*|around|keep going|continue|carry on")
        if not group.fence and (past or (by and "stop" not in group and "until" not in group)):
            return Draft("pass", thing, _OTHER[group.own])
        return Draft("reach_side", thing, group.own)
    if not group.fence and "stop" not in group and group.says("(?:past|around) (?:X|it)"):
        # Past or around a thing, no matter on which side, ends beyond it.
        return Draft("reach_side", thing, "behind")
    if "front" in group or "behind" in group:
        return reach if group.fence else Draft("reach_side", thing, "front" if "front" in group else "behind")
    if "leave" in group and "stop" not in group:
        return Draft("leave", thing)
    if "face" in group:
        if "turn" in group and "go" not in group:
            return Draft("turn_to", thing)
        if "stop" in group or "until" in group:
            return Draft("face", thing)
        return Draft("toward" if "go" in group else "turn_to", thing)
    if "turn" in group:
        return Draft("turn_to", thing)
    if "toward" in group and "stop" not in group and "until" not in group:
        return Draft("toward", thing)
    if group.says("find|visit|see|look for|spot"):
        return replace(reach, weak=True)
    return reach if "reach" in group or "stop" in group or "go" in group else None


_FLIES = "go|goes|going|gone|went|fly|flying|slip|slid|slide|get|come|drift|glide|ride|cut|cruise|on|zip|move"


def _thing_beside(group: _Group, thing: tuple[Mention, ...], side: Side) -> Draft:
    """A thing on the drone's left or right."""
    ends = "stop" in group or "until" in group
    if group.fence:
        return Draft("abeam" if ends and "along" not in group else "along", thing, side)
    if "pass" in group:
        return Draft("pass", thing, side)
    if not ends and ("hug" in group or ("curve" in group and group.says("around|with|along|by"))):
        return Draft("hug", thing, side)
    return Draft("abeam" if ends or "beside" in group else "pass", thing, side)


_ONLY_SIDE = re.compile(
    r"(?:just |directly |kept |keeping it |holding it |having it |it )*(?:on|off|at|to|in|with)?(?: to)? ?(your )?"
    r"(?:left|right)(?: (?:side|hand|wing|shoulder|elbow|window)(?: in| first)?)?"
)
_ONLY_AMOUNT = re.compile(
    r"(?:about |like |maybe |one |in )*(?:180|270|90|360|half|halfway|quarter|full)(?: degrees| circle| lap| way)*"
)
_BESIDE_WHAT = r"(?:on|off|at) your (?:left|right)|(?:left|right)(?: \w+)? of (?!you\b|where|dead|center|straight)\w+"
"""Sides of a thing that is not named, or not known."""
_TO_WHAT = "to(?! front)|at|near|by|toward|until|into|from|past|behind|between|around|over|no"
"""Where something is spoken of, so that going on is not all that was said."""


def _movement(group: _Group) -> Draft | None:
    """No thing at all: a turn, a curve, straight on."""
    if _ONLY_AMOUNT.fullmatch(group.text) or group.says("(?:keep|stay)(?: to)?(?: your)? (?:left|right)"):
        return None
    if not group.sides:
        return _movement_ahead(group)
    side = group.sides[0]
    if bare := _ONLY_SIDE.fullmatch(group.text):
        return None if bare[1] or group.says("side") else Draft("turn", side=side, amount=QUARTER, weak=True)
    if group.says(_BESIDE_WHAT) and "turn" not in group and "face" not in group:
        return None
    found = _DEGREES.search(group.text)
    angle = math.radians(float(found[1] or found[2])) if found else None
    if group.says("turning") and "go" not in group:
        return Draft("curve", side=side, weak=True)
    if "curve" in group and angle is None and not ("slight" in group and group.says("nose|heading|view|aim|look|face")):
        return Draft("curve", side=side)
    slight = "slight" in group and (angle is None or angle < math.radians(60))
    return Draft("turn", side=side, amount=SLIGHT if slight else angle or QUARTER)


def _movement_ahead(group: _Group) -> Draft | None:
    if "about" in group:
        return Draft("turn_around")
    if "turn" in group:
        return None
    metres = metres_in(group.text)
    if metres is not None:
        return Draft("forward", amount=metres, weak="go" not in group and "ahead" not in group)
    if "ahead" not in group or "stop" in group or group.says(_TO_WHAT):
        return None
    return Draft("straight", weak=not group.says("straight|advance|ahead|forward|course|heading|beeline"))


def metres_in(text: str) -> float | None:
    """The distance that is spoken of, metres."""
    one_step = (re.compile(r"\btake (?:one |small |single )?step\b"), UNITS["steps"])
    vague = next((metres for pattern, metres in (*_vague(), one_step) if pattern.search(text)), None)
    found = _MEASURE.search(text)
    if vague is not None or found is None:
        return vague
    number = _NUMBERS.index(found[1]) if found[1] in _NUMBERS else float(found[1])
    return number * _METRES[found[2]] or None


def amounts(text: str, kind: Kind) -> list[tuple[int, int]]:
    """Where a text speaks of the amount that a clause of some kind takes from it: [begin, end) of its characters."""
    patterns: dict[Kind, list[re.Pattern[str]]] = {
        "forward": [*(pattern for pattern, _ in _vague()), _MEASURE],
        "turn": [_ANGLE],
        "circle": [pattern for pattern, _ in _ARCS],
    }
    found = next((found for pattern in patterns.get(kind, ()) if (found := pattern.search(text))), None)
    if found is None:
        return []
    more = _OF_THE_WAY.match(text, found.end())
    return [(found.start(), more.end() if more else found.end())]


@cache
def _vague() -> list[tuple[re.Pattern[str], float]]:
    """The voices' words for distances, the longest first."""
    meant: dict[str, float] = {}
    for name, metres in DISTANCES.items():
        for phrase in (phrase for speaker in VOICES for phrase in voice(speaker).distances[name]):
            meant.setdefault(" ".join(word.text for word in words_of(phrase, Layout(()))), metres)
    return [(re.compile(rf"\b{phrase}\b"), meant[phrase]) for phrase in sorted(meant, key=len, reverse=True)]
