"""The writer of tours: several clauses in one instruction, in the words of those who type as they please.

What it says is what the meaning says. It may leave out which way round a thing is flown, and then the other way is
meant as well (`Told.alternatives`). Beside the voices of `writer` it has the phrases of `tours.json`: for the kinds
that those do not have, for what is not meant (contrasts, corrections, what is to be ignored), and for the order of
things. A fifth of the phrases of each kind is kept for dev and test, as of the voices.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import product
from typing import NamedTuple

import numpy as np

from wordwing.language.meaning.clauses import COLOURS, Clause, Side
from wordwing.language.meaning.facts import ARCS, DISTANCES, LAPS, QUARTER, SLIGHT
from wordwing.language.writing.templates import HELD_OUT, VOICES, expand, pick, templates, voice
from wordwing.language.writing.tour_references import Habits, References, hour
from wordwing.language.writing.typos import misspell
from wordwing.language.writing.writer import Persona, Writer
from wordwing.world.layout import Layout
from wordwing.world.tasks import StartPose

FIXED = ("joins", "run_on", "openers", "requests", "ordinals", "finally", "parts", "plurals", "short", "asides")
FIXED += ("clock_left", "clock_right", "backwards")
"""What is not a phrasing of a kind, and so not held out."""

FREE = 0.2
"""How often it is not said on which side a thing is passed or circled."""

LATE = ("reach", "reach_side", "reach_own_side", "reach_between", "reach_fence", "return")
"""Kinds that can be said before what leads there: "stop at the boat, but first …"."""

ONCE = ("turn", "turn_around", "turn_to", "hover", "look", "return", "avoid", "abeam")
"""Kinds before which nobody begins to correct himself."""

_BARE = re.compile(r"[,;:!?()]|\.(?!\d)")
_SENTENCE = re.compile(r"(^|[.!?]\s+)([a-z])")
_SIDES = re.compile(r"left|right|clock", re.IGNORECASE)
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_TENS = {30: "thirty", 45: "forty five", 60: "sixty", 90: "ninety", 150: "a hundred and fifty", 180: "one eighty"}


@cache
def phrases(training: bool) -> Mapping[str, Sequence[str]]:
    """What can be said for each kind of thing, without what is held out when writing for training."""
    known: dict[str, list[str]] = json.loads(
        files("wordwing.language.writing").joinpath("tours.json").read_text("utf-8")
    )
    if not training:
        return known
    return {key: entries if key in FIXED else _kept(entries) for key, entries in known.items()}


def _kept(entries: Sequence[str]) -> list[str]:
    ranked = sorted(entries, key=lambda entry: hashlib.sha256(entry.encode()).hexdigest())
    return sorted(ranked[len(ranked) // HELD_OUT :], key=entries.index)


@dataclass(frozen=True)
class Visitor(Persona):
    """Who types a tour."""

    style: str
    """"tidy" with capitals and full stops, "plain" in lower case, or "bare" without punctuation."""
    short: float
    """How often words are shortened ("u", "thru")."""
    units: str
    """"metres", "centimetres" or "feet"."""
    digits: bool
    brevity: float
    """Words that make a phrasing e times rarer."""
    polite: float
    asides: float
    contrasts: float
    corrections: float
    """How often each of them occurs in an instruction."""
    backwards: float
    """How often what comes last is said first."""
    habits: Habits

    @classmethod
    def sample(cls, rng: np.random.Generator) -> Visitor:
        """Draw somebody."""
        person = Persona.sample(rng)
        name = pick(VOICES, rng)
        style = pick(("tidy", "tidy", "plain", "plain", "plain", "bare", "bare"), rng)
        return cls(
            **{**vars(person), "voice": name, "articles": rng.random() < 0.9},
            style=style,
            short=0.0 if style == "tidy" else float(rng.choice([0.0, 0.3, 0.8], p=[0.6, 0.25, 0.15])),
            units=pick(("metres", "metres", "metres", "centimetres", "feet"), rng),
            digits=bool(rng.random() < 0.5),
            brevity=float(rng.choice([1.0, 2.0, 8.0])),
            polite=float(rng.choice([0.0, 0.15, 0.6], p=[0.5, 0.3, 0.2])),
            asides=float(rng.choice([0.0, 0.1, 0.4], p=[0.5, 0.35, 0.15])),
            contrasts=float(rng.choice([0.05, 0.2, 0.5], p=[0.4, 0.4, 0.2])),
            corrections=float(rng.choice([0.0, 0.2, 0.6], p=[0.4, 0.35, 0.25])),
            backwards=float(rng.choice([0.0, 0.2, 0.5], p=[0.3, 0.4, 0.3])),
            habits=Habits(person.pronouns, float(rng.choice([0.05, 0.2, 0.45])), float(rng.uniform(0.2, 0.8))),
        )


class Told(NamedTuple):
    """An instruction and what it may mean as well."""

    text: str
    alternatives: tuple[tuple[Clause, ...], ...]


class _Part(NamedTuple):
    """What is said in one breath: a clause, or two that are one thing."""

    key: str
    """"corner", or the kind of its only clause."""
    clause: Clause
    place: int
    """Of the clause in the meaning."""


class TourWriter(Writer):
    """One visitor writing about tours in one layout, from one start."""

    def __init__(
        self, layout: Layout, visitor: Visitor, training: bool, rng: np.random.Generator, start: StartPose
    ) -> None:
        super().__init__(layout, visitor, training, rng)
        self.visitor, self.layout, self.start = visitor, layout, start
        self._phrases = phrases(training)

    def word(self, meaning: Sequence[Clause]) -> str:
        """Put a meaning into words."""
        return self.tell(meaning).text

    def tell(self, meaning: Sequence[Clause]) -> Told:
        """Put a meaning into words that may mean something else as well."""
        self._refer = References(
            self.layout, self.start, self.namer, self.visitor.habits, self._phrases, self.rng
        )
        self._open: list[int] = []  # places of clauses whose side is not said
        self._speaker = voice(self.visitor.voice)
        self._contrasts = int(self.rng.random() < self.visitor.contrasts)
        self._corrections = int(self.rng.random() < self.visitor.corrections)
        text = self._told(self._parts(meaning))
        flips = [(False, True) if place in self._open else (False,) for place in range(len(meaning))]
        others = [tuple(map(_flipped, meaning, flip)) for flip in product(*flips)][1:]
        return Told(self._finished(text), tuple(others))

    def _parts(self, meaning: Sequence[Clause]) -> list[_Part]:
        """Clauses that are said together, or of which one goes without saying."""
        parts: list[_Part] = []
        for place, clause in enumerate(meaning):
            before = meaning[place - 1] if place else None
            key: str = clause.kind
            if before is not None and parts and parts[-1].place == place - 1:
                if is_corner(before, clause):
                    parts.pop()
                    key, clause = "corner", Clause("reach_between", before.reference, clause.reference)
                elif before.reference == clause.reference and (before.kind, clause.kind) in _IMPLIED:
                    if self.rng.random() < 0.8:
                        parts.pop()
            parts.append(_Part(key, clause, place))
        return parts

    def _told(self, parts: list[_Part]) -> str:
        """All that there is to say, in an order that somebody might choose."""
        rng, visitor = self.rng, self.visitor
        avoided = [part for part in parts if part.key == "avoid"]
        tail = ""
        if avoided and len(parts) > 1 and rng.random() < 0.6:
            # What is to be avoided throughout may be said whenever one thinks of it.
            parts = [part for part in parts if part.key != "avoid"]
            if rng.random() < 0.3:
                parts = [*avoided, *parts]
            else:
                tail = "avoid_tail" if rng.random() < 0.5 else "avoid"
        last = parts[-1]
        if len(parts) > 1 and len(parts) < 4 and last.key in LATE and last.clause.references and rng.random() < visitor.backwards:
            self._refer.plain = False
            late = self._said(last, last=True, first=len(parts) == 1, clean=True)
            rest = self._joined(parts[:-1], begun=True)
            text = pick(self._phrases["backwards"], rng).format(L=late, U=rest)
        else:
            text = self._joined(parts)
        for part in avoided if tail else ():
            join = " " if tail == "avoid_tail" else pick((", and ", ". ", ", but "), rng)
            text += join + self._fill(pick(self._phrases[tail], rng), part.clause)
        if rng.random() < visitor.asides:
            aside = pick(self._phrases["asides"], rng)
            text = f"{aside}, {text}" if rng.random() < 0.3 else text + pick((", {}", " ({})", ". {}", " - {}"), rng).format(aside)
        return text

    def _joined(self, parts: Sequence[_Part], begun: bool = False) -> str:
        """Parts one after another."""
        rng, visitor = self.rng, self.visitor
        bare = visitor.style == "bare"
        counted = pick(self._phrases["ordinals"], rng) if 2 < len(parts) < 7 and rng.random() < 0.12 and not begun else None
        polite = not begun and counted is None and rng.random() < visitor.polite
        text = ""
        for number, part in enumerate(parts):
            last, first = number == len(parts) - 1, number == 0 and not begun
            if number:
                joins = self._phrases["run_on" if bare else "joins"]
                text += pick(joins if rng.random() < 0.7 else self._speaker.joins, rng) if counted is None else pick((",", ".", ""), rng)
                text += " "
            if counted is not None:
                final = last and counted[0] != "1." and rng.random() < 0.6
                text += (pick(self._phrases["finally"], rng) if final else counted[number]) + " "
            if number and rng.random() < 0.3 * visitor.asides and (other := self._unmeant(part)) is not None:
                text += pick(self._phrases["ignored"], rng).format(Y=other) + pick((", ", ". ", " and "), rng)
                self._refer.spoken = ()
            if self._corrections and part.key not in ONCE and rng.random() < 0.25 and (other := self._unmeant(part)) is not None:
                self._corrections = 0
                text += pick(self._phrases["retraction"], rng).format(Y=other)
                self._refer.spoken = ()
            said = self._said(part, last=last and not begun, first=first, clean=polite and number == 0)
            text += pick(self._phrases["requests"], rng).format(U=said) if polite and number == 0 else said
        if not polite and not begun and counted is None and rng.random() < 0.25:
            text = f"{pick(self._phrases['openers'], rng)} {text}"
        return text

    def _unmeant(self, part: _Part) -> str | None:
        """The name of something that is not meant."""
        other = self._refer.other_than(part.clause.references)
        if other is None or other in self._refer.said:
            return None
        self._refer.plain = False
        return self.namer.name(other)

    def _said(self, part: _Part, *, last: bool, first: bool, clean: bool) -> str:
        """One part in words; `clean` ones begin with a verb."""
        options = self._options(part, last)
        if clean:
            options = [option for option in options if option[:1].isalpha() and option.split()[0] not in _NO_VERBS] or options
        lengths = np.array([len(option.split()) for option in options])
        chances = np.exp(-lengths / self.visitor.brevity)
        chosen = options[int(self.rng.choice(len(options), p=chances / chances.sum()))]
        return self._fill(expand(chosen, self.rng), part.clause, first)

    def _options(self, part: _Part, last: bool) -> Sequence[str]:
        """Phrasings of one kind: this visitor's, or those of the voice that it has."""
        clause, known = part.clause, self._phrases
        own = self.rng.random() < 0.65
        match part.key:
            case "turn" if clause.amount not in (SLIGHT, QUARTER):
                on_the_hour = hour(clause.amount or 0.0) and (clause.amount or 0.0) < 2.7
                return known["turn_hour" if on_the_hour and self.rng.random() < 0.3 else "turn_angle"]
            case "turn" if clause.amount == SLIGHT:
                return self._voiced("turn_slight")
            case "reach" | "reach_fence" if clause.amount is not None:
                return known["reach_held"]
            case "reach" if not last:
                again = clause.reference in self._refer.said and clause.reference not in self._refer.spoken
                return known["visit_again" if again else "visit"]
            case "reach":
                again = clause.reference in self._refer.said and clause.reference not in self._refer.spoken
                return known["visit_again" if again else "stop_at"] if own or again else self._voiced("reach")
            case "reach_own_side":
                return known["own_side" if clause.amount is None else "own_side_held"]
            case "move":
                return known["move_behind" if clause.side == "behind" else "move_aside"]
            case "circle":
                name = next(name for name, arc in LAPS.items() if abs(arc - (clause.amount or 0.0)) < 0.01)
                if f"circle_{name}" in known and (own or name not in ARCS):
                    return self._sided(part, f"circle_{name}")
                return self._voiced("circle")
            case "pass" if own:
                return self._sided(part, "pass")
            case "forward" if clause.amount in DISTANCES.values():
                return self._voiced("forward")
            case key if key in known and (own or key not in self._speaker.do):
                return known[key]
            case key:
                return self._voiced(key)

    def _sided(self, part: _Part, key: str) -> Sequence[str]:
        """Phrasings that say the side, or sometimes not."""
        if self.rng.random() >= FREE or len(self._open) > 1:
            return self._phrases[key]
        self._open.append(part.place)
        return self._phrases[f"{key}_free"]

    def _voiced(self, key: str) -> Sequence[str]:
        return templates(self._speaker.name, "do", key, self.training)

    def _fill(self, template: str, clause: Clause, first: bool = False) -> str:
        """A phrasing with the names, sides and numbers of its clause."""
        slots = self._numbers(clause) | self._sides(clause, template)
        refer, alone = self._refer, clause.other is None
        if clause.reference is not None:
            name = refer.call(clause.reference, alone=alone, first=first)
            slots["X"] = self._qualified(name, clause) if alone else name
        if clause.other is not None:
            slots["Y"] = refer.call(clause.other)
            slots |= {"A": str(clause.reference), "B": str(clause.other)}
        refer.spoken = clause.references or refer.spoken
        if clause.kind == "reach_own_side":
            slots["place"] = self._place(clause).format(**slots)
        return template.format(**slots)

    def _numbers(self, clause: Clause) -> dict[str, str]:
        """What an amount is called."""
        amount = clause.amount
        if amount is None:
            return {}
        match clause.kind:
            case "circle":
                name = next((name for name, arc in ARCS.items() if abs(arc - amount) < 0.01), "")
                return {"amount": pick(self._speaker.amounts[name], self.rng)} if name else {}
            case "turn":
                sign = 1.0 if clause.side == "left" else -1.0
                return {"angle": self._angle(amount), "hour": self._hour(hour(sign * amount))}
            case "hover":
                return {"seconds": self._seconds(amount)}
            case _:
                return {"distance": self._metres(amount)}

    def _metres(self, metres: float) -> str:
        """A distance in this visitor's units."""
        rng, visitor = self.rng, self.visitor
        if (named := next((name for name, amount in DISTANCES.items() if metres == amount), None)) is not None:
            return pick(self._speaker.distances[named], rng)
        feet = round(metres / 0.3048)
        if visitor.units == "feet" and abs(feet * 0.3048 - metres) < 0.15 * metres and feet:
            return f"{self._number(feet)} {'foot' if feet == 1 else pick(('feet', 'ft'), rng)}"
        if visitor.units == "centimetres" and metres < 2:
            return f"{round(100 * metres)}{pick((' ', ''), rng)}{pick(('cm', 'centimetres', 'cm'), rng)}"
        word = pick(("metre", "meter"), rng)
        spoken = {0.5: f"half a {word}", 1.0: f"{pick(('one', 'a'), rng)} {word}", 1.5: f"a {word} and a half"}
        if metres in spoken and not visitor.digits:
            return spoken[metres]
        if metres == round(metres):
            return f"{self._number(round(metres))} {word}{'s' if metres > 1 else ''}"
        return f"{metres:g} {pick(('m', f'{word}s'), rng)}"

    def _number(self, number: int) -> str:
        return str(number) if self.visitor.digits or number >= len(_DIGITS) else _DIGITS[number]

    def _angle(self, amount: float) -> str:
        degrees = round(math.degrees(amount))
        if not self.visitor.digits and degrees in _TENS:
            return f"{_TENS[degrees]} degrees"
        return f"{degrees}{pick((' degrees', ' degrees', ' deg', '°', ''), self.rng)}"

    def _hour(self, direction: str) -> str:
        number, _, rest = direction.partition(" ")
        return direction if self.visitor.digits or not direction else f"{_HOURS[int(number)]} {rest}"

    def _seconds(self, seconds: float) -> str:
        if seconds <= 2 and self.rng.random() < 0.4:
            return pick(("a moment", "a sec", "a second"), self.rng)
        if 3 <= seconds <= 5 and self.rng.random() < 0.3:
            return "a few seconds"
        return f"{self._number(round(seconds))} second{'s' if seconds != 1 else ''}"

    def _sides(self, clause: Clause, template: str) -> dict[str, str]:
        """What a side is called; now and then somebody says the wrong one first."""
        if clause.side is None:
            return {}
        slots: dict[str, str] = {}
        if clause.handed:
            slots = {"side": clause.side, "opp": _OPPOSITE[clause.side]}
            slots["clock"] = pick(self._phrases[f"clock_{clause.side}"], self.rng)
            slots["quarter"] = self._hour("9 o'clock" if clause.side == "left" else "3 o'clock")
            if self._corrections and template.endswith("{side}") and self.rng.random() < 0.5:
                self._corrections = 0
                slots["side"] = pick(self._phrases["side_correction"], self.rng).format(**slots)
        if clause.kind == "reach_side":
            slots["where"] = pick(self._speaker.where[clause.side], self.rng)
        return slots

    def _place(self, clause: Clause) -> str:
        """Where a thing's own side is, by its parts or in general words."""
        parts = self._phrases["parts"]
        assert isinstance(parts, Mapping) and isinstance(clause.reference, int)
        known = parts.get(self.layout.landmarks[clause.reference].name, {}).get(clause.side, [])
        general = self._phrases[f"own_{clause.side}"]
        return pick(known if known and self.rng.random() < 0.7 else general, self.rng)

    def _qualified(self, name: str, clause: Clause) -> str:
        """A name with what is not meant, now and then."""
        reference = clause.reference
        if not isinstance(reference, int) or clause.kind in ("avoid", "turn_to") or name in ("it", "that one"):
            return name
        for key in ("contrast", "correction"):
            wanted = self._contrasts if key == "contrast" else self._corrections
            other = self._refer.other_than([reference]) if wanted and self.rng.random() < 0.6 else None
            if other is not None and (called := self.namer.name(other)) not in name and name not in called:
                if key == "contrast":
                    self._contrasts = 0
                else:
                    self._corrections = 0
                self._refer.plain = False
                return pick(self._phrases[key], self.rng).format(X=name, Y=called)
        return name

    def _finished(self, text: str) -> str:
        """Spelling, capitals and punctuation as this visitor has them."""
        visitor, rng = self.visitor, self.rng
        words = " ".join(text.split()).replace(" ,", ",").replace(" .", ".").replace(",,", ",").split(" ")
        short = self._phrases["short"]
        assert isinstance(short, Mapping)
        for place, word in enumerate(words):
            core = word.strip(".,;!()")
            if core in short and rng.random() < visitor.short:
                words[place] = word.replace(core, short[core])
            elif not _SIDES.search(word):  # a side that is misspelt is none in a mirror
                words[place] = misspell(word, visitor.typos, rng)
        text = " ".join(words)
        if visitor.style == "bare":
            return " ".join(_BARE.sub(" ", text).lower().split())
        if visitor.style == "plain":
            return text.lower() if rng.random() < 0.5 else text
        text = _SENTENCE.sub(lambda match: match[1] + match[2].upper(), text)
        return text if text.endswith((".", "!", "?")) else text + "."


_HOURS = ("", *_DIGITS[1:], "eleven", "twelve")
_OPPOSITE: dict[Side, Side] = {"left": "right", "right": "left"}
_IMPLIED = (("toward", "circle"), ("reach_fence", "along"))
"""Kinds of which the first goes without saying."""
_NO_VERBS = ("past", "one", "half", "with", "when", "straight", "don't", "not", "without", "between", "where")


def is_corner(one: Clause, two: Clause) -> bool:
    """Whether two clauses together lead into a corner."""
    if (one.kind, two.kind) != ("reach_fence", "reach_fence") or one.amount or two.amount:
        return False
    apart = COLOURS.index(str(one.reference)) - COLOURS.index(str(two.reference))
    return apart % 2 == 1


def _flipped(clause: Clause, flip: bool) -> Clause:
    return replace(clause, side=_OPPOSITE[clause.side]) if flip and clause.side is not None else clause
