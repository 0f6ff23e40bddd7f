"""The writer of tours: several clauses in one instruction, in the words of those who type as they please.

A text says what its meaning says. It may leave out on which side a thing is passed or circled; then the other side is
meant as well (`TourText.alternatives`). Beside the voices of `writer` there are the phrases of `tours.json`: for kinds
of clauses that the voices do not have, for what is not meant (contrasts, corrections, things to be ignored), and for
the order of things.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from wordwing.language.meaning.clauses import COLOURS, Clause, Side
from wordwing.language.meaning.facts import ARCS, DISTANCES, LAPS, QUARTER, SLIGHT
from wordwing.language.writing.templates import VOICES, expand, pick, pick_weighted, templates, voice
from wordwing.language.writing.tour_phrases import phrases
from wordwing.language.writing.tour_references import Habits, References, hour
from wordwing.language.writing.typos import misspell
from wordwing.language.writing.writer import Persona, Writer
from wordwing.world.layout import Layout
from wordwing.world.tasks import StartPose

OWN_PHRASE, UNSAID, SIDE_UNSAID = 0.65, 0.8, 0.2
"""How often a clause is said as in `tours.json` where the voice knows it, too; how often nobody mentions a clause that
goes without saying; and how often a side is not mentioned."""

COUNTED, OPENED, JOINED_BY_VOICE = 0.12, 0.25, 0.3
"""How often things are counted ("first, …"), how often something comes before them ("ok, …"), and how often the voice
says what joins them."""

LATE = ("reach", "reach_side", "reach_own_side", "reach_between", "reach_fence")
"""Kinds that can be said before what leads there: "stop at the boat, but first …"."""

RETRACTED = ("reach", "pass", "circle", "between", "reach_side", "reach_fence", "reach_between", "toward", "move")
"""Kinds before which somebody may have begun to say something else."""

NO_VERBS = ("past", "one", "half", "with", "when", "straight", "don't", "not", "without", "between", "where")
"""First words of phrases that cannot follow "could you"."""

IMPLIED = (("toward", "circle"), ("reach_fence", "along"))
"""Kinds of clauses about one thing of which the first goes without saying."""

_NUMBERS = ("", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_DEGREES = {30: "thirty", 45: "forty five", 60: "sixty", 90: "ninety", 150: "a hundred and fifty", 180: "one eighty"}
_OPPOSITE: dict[Side, Side] = {"left": "right", "right": "left"}
_BARE = re.compile(r"[,;:!?()]|\.(?!\d)| - ")
_SENTENCE = re.compile(r"(^|[.!?]\s+)([a-z])")
_SIDED = re.compile(r"left|right|clock", re.IGNORECASE)


@dataclass(frozen=True)
class Visitor(Persona):
    """Who types a tour."""

    style: str
    """"tidy" with capitals and full stops, "plain", or "bare" without punctuation."""
    short: float
    """How often words are shortened ("u", "thru")."""
    units: str
    """"metres", "centimetres" or "feet"."""
    digits: bool
    """Whether numbers are digits."""
    brevity: float
    """Words that make a phrase e times rarer."""
    polite: float
    asides: float
    contrasts: float
    corrections: float
    backwards: float
    """How often there is such a thing in an instruction; backwards: what comes last is said first."""
    habits: Habits

    @classmethod
    def sample(cls, rng: np.random.Generator) -> Visitor:
        """Draw somebody."""
        person = Persona.sample(rng)
        style = pick(("tidy", "tidy", "plain", "plain", "plain", "bare", "bare"), rng)
        return cls(
            **{**vars(person), "voice": pick(VOICES, rng), "articles": rng.random() < 0.9},
            style=style,
            short=0.0 if style == "tidy" else pick((0.0, 0.0, 0.0, 0.3, 0.8), rng),
            units=pick(("metres", "metres", "metres", "centimetres", "feet"), rng),
            digits=rng.random() < 0.5,
            brevity=pick((1.0, 1.5, 4.0), rng),
            polite=pick((0.0, 0.0, 0.15, 0.6), rng),
            asides=pick((0.0, 0.0, 0.1, 0.4), rng),
            contrasts=pick((0.05, 0.2, 0.5), rng),
            corrections=pick((0.0, 0.2, 0.6), rng),
            backwards=pick((0.0, 0.2, 0.5), rng),
            habits=Habits(person.pronouns, pick((0.05, 0.2, 0.45), rng), float(rng.uniform(0.2, 0.8))),
        )


class TourText(NamedTuple):
    """An instruction and what it may mean as well."""

    text: str
    alternatives: tuple[tuple[Clause, ...], ...]


class _Part(NamedTuple):
    """What is said in one breath."""

    kind: str
    """The clause's, or "corner"."""
    clause: Clause
    place: int
    """In the meaning."""


class TourWriter(Writer):
    """One visitor writing about tours in one layout, from one start."""

    def __init__(
        self, layout: Layout, visitor: Visitor, training: bool, rng: np.random.Generator, start: StartPose
    ) -> None:
        super().__init__(layout, visitor, training, rng)
        self.visitor, self.layout, self.start = visitor, layout, start
        self.phrases = phrases(training)

    def word(self, meaning: Sequence[Clause]) -> str:
        """Put a meaning into words."""
        return self.write_tour(meaning).text

    def write_tour(self, meaning: Sequence[Clause]) -> TourText:
        """Put a meaning into words that may mean something else as well."""
        visitor = self.visitor
        self._refer = References(self.layout, self.start, self.namer, visitor.habits, self.phrases, self.rng)
        self._free: set[int] = set()  # places of clauses whose side is not said
        self._contrast, self._mistake = self._chance(visitor.contrasts), self._chance(visitor.corrections)
        text = self._finished(self._ordered(self._parts(meaning)))
        flips = [(False, True) if place in self._free else (False,) for place in range(len(meaning))]
        others = [tuple(map(_flipped, meaning, flip)) for flip in product(*flips)][1:]
        return TourText(text, tuple(others))

    def _chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def _word(self, kind: str) -> str:
        return pick(self.phrases.words[kind], self.rng)

    def _phrase(self, kind: str) -> str:
        return pick(self.phrases.do[kind], self.rng)

    def _parts(self, meaning: Sequence[Clause]) -> list[_Part]:
        """Clauses, those together that are one thing to say, without some that go without saying."""
        parts: list[_Part] = []
        for place, clause in enumerate(meaning):
            kind: str = clause.kind
            if parts and parts[-1].place == place - 1:
                before = parts[-1].clause
                implied = before.reference == clause.reference and (before.kind, kind) in IMPLIED
                if corner := is_corner(before, clause):
                    kind, clause = "corner", Clause("reach_between", before.reference, clause.reference)
                if corner or (implied and self._chance(UNSAID)):
                    parts.pop()
            parts.append(_Part(kind, clause, place))
        return parts

    def _ordered(self, parts: list[_Part]) -> str:
        """Everything, in an order that somebody might say it in."""
        # What is to be avoided throughout may be said whenever one thinks of it.
        avoided = [part for part in parts if part.kind == "avoid"] if self._chance(0.6) else []
        if avoided and len(parts) > 1:
            parts = [part for part in parts if part.kind != "avoid"]
            if self._chance(0.3):
                parts, avoided = [*avoided, *parts], []
        else:
            avoided = []
        last = parts[-1]
        if 1 < len(parts) < 4 and last.kind in LATE and self._chance(self.visitor.backwards):
            self._refer.plain = False
            late = self._text(last, last=True, clean=True)
            text = self._word("backwards").format(L=late, U=self._joined(parts[:-1], begun=True))
        else:
            text = self._joined(parts)
        for part in avoided:
            late = pick(("avoid_tail", "avoid"), self.rng)
            join = " " if late == "avoid_tail" else pick((", and ", ". ", ", but "), self.rng)
            text += join + self._filled(self._phrase(late), part.clause)
        if self._chance(self.visitor.asides):
            aside = self._word("asides")
            text = pick(("{A}, {T}", "{T}, {A}", "{T} ({A})", "{T}. {A}", "{T} - {A}"), self.rng).format(
                A=aside, T=text
            )
        return text

    def _joined(self, parts: Sequence[_Part], begun: bool = False) -> str:
        """Parts one after another; not the beginning of a text if it is `begun`."""
        counted = pick(self.phrases.ordinals, self.rng) if not begun and self._chance(COUNTED) else ()
        if not 2 < len(parts) <= len(counted):
            counted = ()
        polite = not begun and not counted and self._chance(self.visitor.polite)
        text = ""
        for number, part in enumerate(parts):
            last, first = number == len(parts) - 1, number == 0
            if number:
                text += pick((",", ".", ""), self.rng) if counted else self._join()
            if counted:
                final = last and counted[0] != "1." and self._chance(0.6)
                text += f" {self._word('finally') if final else counted[number]}"
            text += " " + self._mistaken(part, first)
            part_text = self._text(
                part, last=last and not begun, first=first and not begun, clean=first and (polite or begun)
            )
            text += self._word("requests").format(U=part_text) if polite and first else part_text
        if not (polite or begun or counted) and self._chance(OPENED):
            text = f"{self._word('openers')} {text}"
        return text

    def _join(self) -> str:
        if self._chance(JOINED_BY_VOICE):
            return pick(voice(self.visitor.voice).joins, self.rng)
        return self._word("run_on" if self.visitor.style == "bare" else "joins")

    def _mistaken(self, part: _Part, first: bool) -> str:
        """What comes before a part now and then: something to be ignored, or something that is taken back."""
        wanted = "ignored" if not first and self._chance(0.3 * self.visitor.asides) else ""
        if self._mistake and part.kind in RETRACTED and self._chance(0.25):
            wanted = "retraction"
        other = self._refer.other_than(part.clause.references) if wanted else None
        if other is None or other in self._refer.mentioned:
            return ""
        self._refer.plain, self._refer.spoken = False, ()
        text = self._phrase(wanted).format(Y=self.namer.name(other))
        if wanted == "ignored":
            return text + pick((", ", ". ", " and "), self.rng)
        self._mistake = False
        return text

    def _text(self, part: _Part, *, last: bool, first: bool = False, clean: bool = False) -> str:
        """One part in words; if it has to be `clean`, words that can follow "could you"."""
        options = self._options(part, last)
        if clean:
            verbs = tuple(option for option in options if option[0].isalpha() and option.split()[0] not in NO_VERBS)
            options = verbs or options
        chosen = pick_weighted(options, _odds(options, self.visitor.brevity), self.rng)
        return self._filled(expand(chosen, self.rng), part.clause, first)

    def _options(self, part: _Part, last: bool) -> tuple[str, ...]:
        """Phrases for one part, or templates of the voice that this visitor has."""
        clause, kind, amount = part.clause, part.kind, part.clause.amount
        own = self._chance(OWN_PHRASE)
        if kind == "turn":
            if amount in (SLIGHT, QUARTER):
                return self._voiced("turn_slight" if amount == SLIGHT else "turn")
            on_the_hour = amount is not None and amount < math.radians(155) and hour(amount)
            kind = "turn_hour" if on_the_hour and self._chance(0.3) else "turn_angle"
        elif kind == "move":
            kind = "move_behind" if clause.side == "behind" else "move_aside"
        elif kind == "reach_own_side":
            kind = "own_side" if amount is None else "own_side_held"
        elif amount is not None and kind in ("reach", "reach_fence"):
            kind = "reach_held"
        elif kind == "reach":
            again = clause.reference in self._refer.mentioned and clause.reference not in self._refer.spoken
            own, kind = own or again or not last, "visit_again" if again else "stop_at" if last else "visit"
        elif kind == "circle":
            kind = next(f"circle_{name}" for name, arc in LAPS.items() if abs(arc - (amount or 0.0)) < 0.01)
            own = own or kind == "circle_twice"
        if kind in self.phrases.do and (own or kind not in _VOICED):
            if f"{kind}_free" in self.phrases.do and self._chance(SIDE_UNSAID):
                self._free.add(part.place)
                kind = f"{kind}_free"
            return self.phrases.do[kind]
        return self._voiced(_VOICED.get(kind, kind))

    def _voiced(self, kind: str) -> tuple[str, ...]:
        return templates(self.visitor.voice, "do", kind, self.training)

    def _filled(self, template: str, clause: Clause, first: bool = False) -> str:
        """A phrase with the names, sides and numbers of its clause."""
        slots = self._numbers(clause) | self._sides(clause, template)
        alone = clause.other is None
        if clause.reference is not None:
            name = self._refer.call(clause.reference, alone=alone, first=first)
            slots["X"] = self._qualified(name, clause) if alone else name
        if clause.other is not None:
            slots["Y"] = self._refer.call(clause.other)
            slots |= {"A": str(clause.reference), "B": str(clause.other)}
        self._refer.spoken = clause.references or self._refer.spoken
        if clause.kind == "reach_own_side":
            slots["place"] = self._place(clause).format(**slots)
        return template.format(**slots)

    def _qualified(self, name: str, clause: Clause) -> str:
        """A name with what is not meant, now and then: something else that could have been, or was said by mistake."""
        reference = clause.reference
        if not isinstance(reference, int) or clause.kind in ("avoid", "turn_to") or name in ("it", "that one"):
            return name
        for kind, wanted in (("contrast", self._contrast), ("correction", self._mistake)):
            other = self._refer.other_than([reference]) if wanted and self._chance(0.6) else None
            if other is None:
                continue
            called, colours = self.namer.name(other), (self._refer.coloured(reference), self._refer.coloured(other))
            if all(colours) and self._chance(0.4):
                name, called = colours
            if called in name or name in called:
                continue
            if kind == "contrast":
                self._contrast = False
            else:
                self._mistake = False
            self._refer.plain = False
            return self._phrase(kind).format(X=name, Y=called)
        return name

    def _sides(self, clause: Clause, template: str) -> dict[str, str]:
        """What a side is called; now and then somebody says the wrong one first."""
        if clause.side is None:
            return {}
        slots: dict[str, str] = {}
        if clause.handed:
            slots = {"side": clause.side, "opp": _OPPOSITE[clause.side], "clock": self._word(f"clock_{clause.side}")}
            slots["quarter"] = self._hour("9 o'clock" if clause.side == "left" else "3 o'clock")
            if self._mistake and template.endswith("{side}") and self._chance(0.5):
                self._mistake = False
                slots["side"] = self._phrase("side_correction").format(**slots)
        if clause.kind == "reach_side":
            slots["where"] = pick(voice(self.visitor.voice).where[clause.side], self.rng)
        return slots

    def _place(self, clause: Clause) -> str:
        """Where a thing's own side is, by its parts or in general words."""
        name = self.layout.landmarks[int(clause.reference or 0)].name
        known = self.phrases.parts.get(name, {}).get(str(clause.side), ())
        return pick(known, self.rng) if known and self._chance(0.7) else self._phrase(f"own_{clause.side}")

    def _numbers(self, clause: Clause) -> dict[str, str]:
        """What an amount is called."""
        amount = clause.amount
        if amount is None:
            return {}
        if clause.kind == "circle":
            name = next((name for name, arc in ARCS.items() if abs(arc - amount) < 0.01), "")
            return {"amount": pick(voice(self.visitor.voice).amounts[name], self.rng)} if name else {}
        if clause.kind == "turn":
            direction = hour(amount if clause.side == "left" else -amount)
            return {"angle": self._angle(amount), "hour": self._hour(direction)}
        return {"seconds": self._seconds(amount)} if clause.kind == "hover" else {"distance": self._metres(amount)}

    def _metres(self, metres: float) -> str:
        """A distance in this visitor's units."""
        rng, visitor = self.rng, self.visitor
        if (named := next((name for name, amount in DISTANCES.items() if metres == amount), None)) is not None:
            return pick(voice(visitor.voice).distances[named], rng)
        feet = round(metres / 0.3048)
        if visitor.units == "feet" and feet and abs(feet * 0.3048 - metres) < 0.15 * metres:
            return f"{self._number(feet)} {'foot' if feet == 1 else pick(('feet', 'ft'), rng)}"
        if visitor.units == "centimetres" and metres < 2:
            return f"{round(100 * metres)}{pick((' cm', 'cm', ' centimetres'), rng)}"
        word = pick(("metre", "meter"), rng)
        spoken = {0.5: f"half a {word}", 1.0: pick((f"one {word}", f"a {word}"), rng), 1.5: f"a {word} and a half"}
        if metres in spoken and not visitor.digits:
            return spoken[metres]
        if metres == round(metres):
            return f"{self._number(round(metres))} {word}{'s' * (metres > 1)}"
        return f"{metres:g} {pick(('m', f'{word}s'), rng)}"

    def _number(self, number: int) -> str:
        return str(number) if self.visitor.digits or number >= len(_NUMBERS) else _NUMBERS[number]

    def _angle(self, amount: float) -> str:
        degrees = round(math.degrees(amount))
        if not self.visitor.digits and degrees in _DEGREES:
            return f"{_DEGREES[degrees]} degrees"
        return f"{degrees}{pick((' degrees', ' degrees', ' deg', '°', ''), self.rng)}"

    def _hour(self, direction: str) -> str:
        number, _, rest = direction.partition(" ")
        return f"{self._number(int(number))} {rest}" if direction else ""

    def _seconds(self, seconds: float) -> str:
        if seconds <= 5 and self._chance(0.3):
            return pick(
                ("a moment", "a sec", "a second") if seconds <= 2 else ("a few seconds", "some seconds"), self.rng
            )
        return f"{self._number(round(seconds))} second{'s' * (seconds > 1)}"

    def _finished(self, text: str) -> str:
        """Spelling, capitals and punctuation as this visitor has them."""
        visitor = self.visitor
        text = " ".join(text.split()).replace(" ,", ",").replace(" .", ".").replace(",,", ",")
        text = " ".join(self._typed(word) for word in text.split(" "))
        if visitor.style == "bare":
            return " ".join(_BARE.sub(" ", text).lower().split())
        if visitor.style == "plain":
            return text.lower() if self._chance(0.5) else text
        text = _SENTENCE.sub(lambda match: match[1] + match[2].upper(), text)
        return text if text.endswith((".", "!", "?")) else text + "."

    def _typed(self, word: str) -> str:
        """A word as it is typed: shortened, or misspelt."""
        core = word.strip(".,;!()")
        if core in self.phrases.short and self._chance(self.visitor.short):
            return word.replace(core, self.phrases.short[core])
        # A side that is misspelt would be the same in a mirror.
        return word if _SIDED.search(word) else misspell(word, self.visitor.typos, self.rng)


_VOICED = (
    {f"circle_{name}": "circle" for name in ARCS}
    | {"stop_at": "reach"}
    | {kind: kind for kind in ("pass", "between", "reach_between", "abeam", "along", "forward", "reach")}
)
"""Phrases that the voices have templates for, too, and of which kind."""


@cache
def _odds(options: tuple[str, ...], brevity: float) -> tuple[float, ...]:
    """How likely each phrase is: long ones are rarer."""
    return tuple(math.exp(-len(option.split()) / brevity) for option in options)


def is_corner(one: Clause, two: Clause) -> bool:
    """Whether two clauses together lead into a corner."""
    if (one.kind, two.kind) != ("reach_fence", "reach_fence") or one.amount or two.amount:
        return False
    return (COLOURS.index(str(one.reference)) - COLOURS.index(str(two.reference))) % 2 == 1


def _flipped(clause: Clause, flip: bool) -> Clause:
    return replace(clause, side=_OPPOSITE[clause.side]) if flip and clause.side is not None else clause
