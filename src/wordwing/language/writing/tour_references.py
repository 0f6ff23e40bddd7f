"""What a visitor calls things in a tour: by a name, by where they are, or by what was said of them before.

Whatever is said of a thing is true in the layout. Where the drone looks, and what is near to it, is known at the start
only; such words are for the first thing to do.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from wordwing.language.meaning.clauses import COLOURS, Reference
from wordwing.language.writing.referring_expressions import Namer
from wordwing.language.writing.templates import pick
from wordwing.language.writing.tour_phrases import Phrases
from wordwing.world.catalogue import lexicon
from wordwing.world.fences import distance_to_fences
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, lengths
from wordwing.world.tasks import StartPose

CLEARLY = 0.3
"""By how much one thing must be nearer than another for anybody to say so, metres."""

NEARBY = 1.6
"""Distance up to which one thing locates another, metres."""

VIEW = math.radians(40)
"""On either side of where the drone looks, what it sees well."""

ANYTHING = ("one", "one", "thing", "object")
"""Words for a thing of whatever kind."""


COLOURED = ("red", "blue", "yellow", "white", "black", "orange", "gold", "purple")
"""Colours that tell things apart; most of the others are green, brown or grey."""


@dataclass(frozen=True)
class Habits:
    """How often somebody refers to things in other ways than by name."""

    pronouns: float
    relations: float
    """By where they are."""
    back: float
    """By what was said of them before."""


class References:
    """What things have been called so far, in one instruction.

    Args:
        layout: Where.
        start: Of the drone.
        namer: Of names.
        habits: Of the visitor.
        phrases: To refer by.
        rng: Source of every choice.
    """

    def __init__(
        self,
        layout: Layout,
        start: StartPose,
        namer: Namer,
        habits: Habits,
        phrases: Phrases,
        rng: np.random.Generator,
    ) -> None:
        self.namer, self.habits, self._phrases, self._rng = namer, habits, phrases, rng
        self.spoken: tuple[Reference, ...] = ()
        """What the last clause spoke of."""
        self.mentioned: list[Reference] = []
        """Everything, in order."""
        self.plain = True
        """Whether nothing else has been mentioned, by mistake or to be ignored."""
        self._names = [entry.name for entry in layout.landmarks]
        self._families = [lexicon()[name].family for name in self._names]
        self._centres: Floats = layout.centres
        self._start = start
        offsets = self._centres - np.array(start[:2])
        self._away: Floats = lengths(offsets)
        ahead = np.arctan2(offsets[:, 1], offsets[:, 0]) - start.yaw
        self._bearings: list[float] = [math.remainder(angle, 2 * math.pi) for angle in ahead.tolist()]

    def call(self, reference: Reference, *, alone: bool = False, first: bool = False) -> str:
        """A noun phrase for a thing.

        Args:
            reference: The thing.
            alone: Whether the clause speaks of nothing else, so that "it" and what is not meant can be said.
            first: Whether nothing was done before.
        """
        phrase = self._referred(reference, alone, first)
        self.mentioned.append(reference)
        return phrase

    def other_than(self, references: Sequence[Reference]) -> int | None:
        """A landmark that is not meant: one of the same kind, if there is one, or else any."""
        others = [place for place in range(len(self._families)) if place not in references]
        alike = [place for place in others if any(self._families[place] == self._family(one) for one in references)]
        choice = alike if alike and self._rng.random() < 0.7 else others
        return pick(choice, self._rng) if choice else None

    def coloured(self, place: int) -> str:
        """A landmark as the only one of its colour; empty where that would not tell it from all others."""
        palettes = [palette(entry) for entry in self._names]
        own = next(iter(palettes[place]), "")
        others = [colours for other, colours in enumerate(palettes) if other != place]
        if not own or any(own in colours for colours in others):
            return ""
        return self._say("coloured", colour=own)

    def _family(self, reference: Reference) -> str:
        return "fence" if isinstance(reference, str) else self._families[reference]

    def _plural(self, thing: str) -> str:
        return self._phrases.plurals.get(thing, f"{thing}s")

    def _say(self, key: str, **slots: str) -> str:
        return pick(self._phrases.do[key], self._rng).format(**slots)

    def _referred(self, reference: Reference, alone: bool, first: bool) -> str:
        chance, known = self._rng.random(), reference in self.mentioned
        repeated = alone and known and self.spoken == (reference,) and not self.namer.plural(reference)
        if repeated and chance < self.habits.pronouns:
            return "it" if chance < 0.9 * self.habits.pronouns else "that one"
        if isinstance(reference, str):
            return self.namer.name(reference)
        phrase = ""
        if known and reference not in self.spoken and chance < self.habits.back:
            phrase = self._again(reference)
        elif alone and not known and chance < 2 * self.habits.back:
            phrase = self._twin(reference)
        if not phrase and alone and self._rng.random() < self.habits.relations:
            phrase = pick(self._relations(reference, first) or [""], self._rng)
        return phrase or self.namer.name(reference)

    def _again(self, place: int) -> str:
        """What was spoken of before."""
        others = {entry for entry in self.mentioned if entry != place and isinstance(entry, int)}
        if self.plain and others and self.mentioned[0] == place and self._rng.random() < 0.5:
            return self._say("first")
        family = self._families[place]
        return self._say("again", thing=family) if self._families.count(family) == 1 else ""

    def _twin(self, place: int) -> str:
        """The other one of two of a kind, of which one was spoken of."""
        family = self._families[place]
        others = [one for one, name in enumerate(self._families) if name == family and one != place]
        if len(others) != 1 or others[0] not in self.mentioned:
            return ""
        phrase = self._say("other", thing=family, things=self._plural(family))
        return phrase if others[0] in self.spoken or family in phrase else ""

    def _relations(self, place: int, first: bool) -> list[str]:
        """Phrases that say where a landmark is, one of each kind that fits."""
        family = self._families[place]
        alike = [other for other, name in enumerate(self._families) if name == family]
        found = [*self._near(place, alike), *filter(None, [self.coloured(place)])]
        if first:
            found += self._seen(place)
            found += self._nearer(place)
            if len(alike) == 2:
                found += self._of_two(place, *(other for other in alike if other != place))
        return found

    def _near(self, place: int, alike: Sequence[int]) -> list[str]:
        """By what it is the nearest to, or the farthest from."""
        found = []
        everything = list(range(len(self._families)))
        targets: list[Reference] = [*(other for other in everything if other != place), *COLOURS]
        for target in self._rng.permutation(len(targets)).tolist():
            reference = targets[target]
            away = self._distances(reference)
            for among, thing in ((everything, ""), (alike, self._families[place])):
                rivals = [float(away[other]) for other in among if other not in (place, reference)]
                here = float(away[place])
                if not rivals or (thing and reference in alike):
                    continue
                if here < min(NEARBY, min(rivals) - CLEARLY):
                    noun = thing or pick(ANYTHING, self._rng)
                    found.append(self._say("nearest", thing=noun, Y=self.namer.name(reference)))
                elif here > max(rivals) + CLEARLY and (thing or len(rivals) > 2) and self._rng.random() < 0.3:
                    noun = thing or pick(ANYTHING, self._rng)
                    found.append(self._say("farthest", thing=noun, Y=self.namer.name(reference)))
            if len(found) > 1:
                break
        return found[:2]

    def _distances(self, reference: Reference) -> Floats:
        """[L] of all landmarks from a landmark or a fence, metres."""
        if isinstance(reference, str):
            return distance_to_fences(self._centres)[:, COLOURS.index(reference)]
        return lengths(self._centres - self._centres[reference])

    def _seen(self, place: int) -> list[str]:
        """By where it is from the start."""
        angle, name = self._bearings[place], self.namer.name(place)
        side = "left" if angle > 0 else "right"
        found = []
        if abs(angle) < VIEW / 2:
            found.append(self._say("ahead", X=name))
        elif math.radians(50) < abs(angle) < math.radians(130):
            found.append(self._say("beside", X=name, side=side))
        elif abs(angle) > math.radians(150):
            found.append(self._say("at_back", X=name))
        if (direction := hour(angle)) and self._rng.random() < 0.5:
            found.append(self._say("at_hour", X=name, hour=direction))
        in_view = [other for other in self._bearings if abs(other) < VIEW]
        rank = sorted(in_view)
        if len(rank) > 1 and abs(angle) < VIEW:
            if angle == rank[-1] and angle - rank[-2] > 0.1:
                found.append(self._say("sidemost", sidemost="leftmost"))
            elif angle == rank[0] and rank[1] - angle > 0.1:
                found.append(self._say("sidemost", sidemost="rightmost"))
        return found

    def _nearer(self, place: int) -> list[str]:
        """As the nearer of two things that have nothing in common."""
        far = [other for other, away in enumerate(self._away.tolist()) if away > self._away[place] + CLEARLY]
        if not far or self._rng.random() < 0.5:
            return []
        names = [self.namer.name(place), self.namer.name(pick(far, self._rng))]
        one, two = names if self._rng.random() < 0.5 else names[::-1]
        return [self._say("whichever", X=one, Y=two)]

    def _of_two(self, place: int, other: int) -> list[str]:
        """As one of two of a kind."""
        thing, found = self._families[place], []
        things = self._plural(thing)
        nearer = float(self._away[other] - self._away[place])
        if abs(nearer) > CLEARLY:
            found.append(self._say("nearer" if nearer > 0 else "farther", thing=thing, things=things))
        angle, apart = self._bearings[place], self._bearings[place] - self._bearings[other]
        if max(abs(angle), abs(self._bearings[other])) < math.pi / 2 and abs(apart) > math.radians(15):
            side = "left" if apart > 0 else "right"
            found.append(self._say("handed", thing=thing, things=things, side=side, sidemost=f"{side}most"))
        return found


@cache
def palette(name: str) -> tuple[str, ...]:
    """The colours that what a landmark is called begins with, the most usual one first."""
    entry = lexicon()[name]
    words = Counter(phrase.split()[0] for phrase in (*entry.names, *entry.looks, *entry.contrast))
    return tuple(word for word, _ in words.most_common() if word in COLOURED)


def hour(angle: float) -> str:
    """The clock direction of an angle, left positive; empty where it is none."""
    number = round(-math.degrees(angle) / 30)
    if abs(math.degrees(angle) + 30 * number) > 10:
        return ""
    return f"{number % 12 or 12} o'clock"
