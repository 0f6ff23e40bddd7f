"""The instruction writer: puts a meaning into one person's words.

A `Persona` writes a whole paragraph: a voice, how often it misspells, goes by looks or says "it". The text never says
more than the meaning, and for every word in it that points somewhere there is a clause.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wordwing.language.meaning.clauses import Clause, Reference
from wordwing.language.meaning.facts import ARCS, DISTANCES, SLIGHT, UNITS
from wordwing.language.meaning.flown_path import Track
from wordwing.language.writing.content_selection import compose
from wordwing.language.writing.referring_expressions import Namer
from wordwing.language.writing.templates import VOICES, Voice, expand, pick, templates, voice
from wordwing.language.writing.typos import misspell
from wordwing.world.layout import Layout

UNTIL_AFTER = ("straight", "curve", "hug", "toward", "along", "leave")
"""Movements without an end of their own, which an "until" can give them."""

ENDS = ("reach", "reach_side", "reach_fence", "reach_between", "face", "abeam", "forward", "circle")
"""Kinds after which "stop there" says nothing new."""

BREVITY = 0.86
"""Words that make a phrasing e times rarer."""

_STOPS = re.compile(
    r"\b(stop\w*|halt|hold|hover|park\w*|stay\w*|wait|finish\w*|end|ends|rest|settle|done|anchor|freeze|land|final|there)\b"
)
_NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight")
_SENTENCE = re.compile(r"(^|[.!?]\s+)([a-z])")


@dataclass(frozen=True)
class Persona:
    """Who writes a paragraph."""

    voice: str
    typos: float
    """Share of words that are misspelt."""
    looks: float
    """Share of things called by their looks."""
    pronouns: float
    """How often "it" stands for what was just named."""
    tidy: bool
    """Whether sentences begin with a capital and end with a full stop."""
    articles: bool
    clauses: tuple[float, float, float]
    """How often it says one, two or three clauses, apart from a turn to begin with."""

    @classmethod
    def sample(cls, rng: np.random.Generator) -> Persona:
        """Draw somebody."""
        name = str(rng.choice(VOICES, p=_SHARES))
        sloppy = name == "sloppy"
        return cls(
            voice=name,
            typos=float(
                rng.choice([0.0, 0.01, 0.03, 0.08], p=[0.1, 0.2, 0.3, 0.4] if sloppy else [0.45, 0.35, 0.15, 0.05])
            ),
            looks=float(rng.choice([0.0, 0.06, 0.25], p=[0.55, 0.3, 0.15])),
            pronouns=float(rng.uniform(0.2, 0.9)),
            tidy=not sloppy and rng.random() < 0.6,
            articles=name != "terse" or rng.random() < 0.5,
            clauses=_CLAUSES[name],
        )


_SHARES = (0.54, 0.04, 0.27, 0.01, 0.09, 0.05)
"""Of the voices, in their order; talkers are rare."""

_CLAUSES = {
    "quick": (0.88, 0.1, 0.02),
    "plain": (0.95, 0.05, 0.0),
    "terse": (0.75, 0.22, 0.03),
    "chatty": (1.0, 0.0, 0.0),
    "sloppy": (0.95, 0.05, 0.0),
    "vivid": (0.97, 0.03, 0.0),
}


@dataclass(frozen=True)
class Sentence:
    """An instruction and what it means."""

    text: str
    meaning: tuple[Clause, ...]


class Writer:
    """One persona writing about paths in one layout."""

    def __init__(self, layout: Layout, persona: Persona, training: bool, rng: np.random.Generator) -> None:
        self.persona = persona
        self.training = training
        self.rng = rng
        self.namer = Namer(layout, rng, looks=persona.looks, article=persona.articles)

    def write(self, track: Track, rivals: Sequence[Track]) -> Sentence | None:
        """Describe a path; None if there is nothing true to say of it that leads to its end.

        Args:
            track: The path.
            rivals: Other paths in the layout, which the sentence should not fit.
        """
        meaning = compose(track, rivals, 1 + int(self.rng.choice(3, p=self.persona.clauses)), self.rng)
        return None if meaning is None else Sentence(self.word(meaning), meaning)

    def word(self, meaning: Sequence[Clause]) -> str:
        """Put a meaning into words."""
        speaker = voice(self.persona.voice if self.rng.random() < 0.95 else str(self.rng.choice(VOICES)))
        text = pick(speaker.openers, self.rng) if self.rng.random() < 0.15 else ""
        spoken: tuple[Reference, ...] = ()
        index = 0
        while index < len(meaning):
            if index:
                text += pick(speaker.joins, self.rng)
            clause = meaning[index]
            text += (" " if text else "") + self._say(clause, "do", speaker, spoken)
            spoken = clause.references or spoken
            index += 1
            endless = clause.kind in UNTIL_AFTER and index < len(meaning) and meaning[index].kind in speaker.until
            if endless and self.rng.random() < 0.6:
                until = "til" if speaker.name == "sloppy" and self.rng.random() < 0.5 else "until"
                text += f" {until} " + self._say(meaning[index], "until", speaker, spoken)
                spoken = meaning[index].references or spoken
                index += 1
        if meaning[-1].kind in ENDS and not _STOPS.search(text) and self.rng.random() < 0.3:
            text += pick(speaker.closers, self.rng)
        return self._finish(text)

    def _say(self, clause: Clause, form: str, speaker: Voice, spoken: tuple[Reference, ...]) -> str:
        """One clause in words."""
        kind = "turn_slight" if clause.kind == "turn" and clause.amount == SLIGHT else clause.kind
        options = templates(speaker.name, form, kind, self.training)
        # Long ones are rarer: what people type is short more often than a list of what can be typed.
        chances = np.array([math.exp(-len(option.split()) / BREVITY) for option in options])
        text = expand(options[int(self.rng.choice(len(options), p=chances / chances.sum()))], self.rng)
        slots: dict[str, str] = {}
        if clause.reference is not None:
            again = spoken == (clause.reference,) and clause.other is None and not self.namer.plural(clause.reference)
            slots["X"] = (
                "it" if again and self.rng.random() < self.persona.pronouns else self.namer.name(clause.reference)
            )
        if clause.other is not None:
            slots["Y"] = self.namer.name(clause.other)
        if clause.side is not None:
            slots["side"], slots["opp"] = clause.side, "left" if clause.side == "right" else "right"
            if clause.kind == "reach_side":
                slots["where"] = pick(speaker.where[clause.side], self.rng)
            if clause.kind == "circle":
                slots["clock"] = pick(speaker.clock[clause.side], self.rng)
        if clause.kind == "circle":
            [arc] = [name for name, arc in ARCS.items() if abs(arc - (clause.amount or 0)) < 0.01]
            slots["amount"] = pick(speaker.amounts[arc], self.rng)
        if clause.kind == "forward":
            slots["distance"] = self._distance(clause.amount or 0.0, speaker)
        return text.format(**slots)

    def _distance(self, metres: float, speaker: Voice) -> str:
        if (named := next((name for name, amount in DISTANCES.items() if metres == amount), None)) is not None:
            return pick(speaker.distances[named], self.rng)
        counts = {
            name: round(metres / unit) for name, unit in UNITS.items() if abs(math.remainder(metres, unit)) < 1e-6
        }
        unit = pick([name for name, number in counts.items() if number < len(_NUMBERS)], self.rng)
        number = counts[unit]
        return pick(speaker.distances[unit], self.rng).format(n=_NUMBERS[number] if self.rng.random() < 0.6 else number)

    def _finish(self, text: str) -> str:
        """Spelling, capitals and full stops as this persona has them."""
        text = misspell(" ".join(text.split()), self.persona.typos, self.rng)
        if not self.persona.tidy:
            return text
        text = _SENTENCE.sub(lambda match: match[1] + match[2].upper(), text)
        return text if text.endswith((".", "!")) else text + "."
