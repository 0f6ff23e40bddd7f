"""What a writer calls a landmark: by a name, by its looks, or by what tells it from another of its kind."""

import math
import re
from dataclasses import dataclass, field

import numpy as np

from wordwing.language.meaning.clauses import Reference
from wordwing.language.tokenizer import tokenize
from wordwing.language.writing.templates import pick
from wordwing.world.catalogue import LandmarkNames, landmark, lexicon
from wordwing.world.layout import Layout, Placement

FENCE_NAMES = ("{} fence", "{} fence", "{} fence", "{} fence", "{} wall", "{} border", "{} boundary", "{} edge")
BESIDE = ("next to", "near", "by", "close to", "beside")
CLOSE = 1.3
"""Distance between landmarks of which one may locate the other, metres."""


@dataclass
class Namer:
    """One writer's words for things in one layout; remembers what it has called them."""

    layout: Layout
    rng: np.random.Generator
    looks: float = 0.1
    """How often this writer goes by looks."""
    loose: float = 0.15
    """How often it does not mind that a name fits two things."""
    article: bool = True
    _called: dict[Reference, str] = field(default_factory=dict)

    def name(self, reference: Reference) -> str:
        """A noun phrase with article."""
        known = self._called.get(reference)
        if known is None or self.rng.random() < 0.3:
            is_fence = isinstance(reference, str)
            known = pick(FENCE_NAMES, self.rng).format(reference) if is_fence else self._landmark(int(reference))
            self._called[reference] = known
        return f"the {known}" if self.article or self.rng.random() < 0.5 else known

    def plural(self, reference: Reference) -> bool:
        """Whether a thing goes by a plural ("the red flowers"), which "it" does not stand for."""
        head = re.split(f" (?:with|{'|'.join(BESIDE)}) ", self._called.get(reference, ""))[0].split(" ")[-1]
        return head.endswith("s") and not head.endswith(("ss", "us"))

    def _landmark(self, index: int) -> str:
        entry = lexicon()[self.layout.landmarks[index].name]
        nouns = landmark(self.layout.landmarks[index].name).nouns
        chance = self.rng.random()
        if chance < self.looks:
            phrase = pick(entry.looks, self.rng)
        elif chance < 0.84:
            # The first noun is what most people say: the shares of a language, not of a list.
            phrase = nouns[min(int(self.rng.geometric(0.7)) - 1, len(nouns) - 1)]
        else:
            phrase = pick(entry.names, self.rng)
        rivals = self.rivals(index, phrase)
        if not rivals or self.rng.random() < self.loose:
            return phrase
        return self._distinguished(index, phrase, rivals)

    def rivals(self, index: int, phrase: str) -> list[int]:
        """Other landmarks of the layout that a phrase could mean: of the same family, or called just so."""
        family = lexicon()[self.layout.landmarks[index].name].family
        generic = tokenize(phrase) == [family]

        def fits(names: LandmarkNames) -> bool:
            return (generic and names.family == family) or phrase in names.names or phrase in names.looks

        others = enumerate(self.layout.landmarks)
        return [other for other, entry in others if other != index and fits(lexicon()[entry.name])]

    def _distinguished(self, index: int, phrase: str, rivals: list[int]) -> str:
        """A phrase that fits only this one: its own feature, or what it stands near."""
        own = lexicon()[self.layout.landmarks[index].name]
        other_kinds = all(self.layout.landmarks[rival].name != self.layout.landmarks[index].name for rival in rivals)
        if own.contrast and other_kinds and self.rng.random() < 0.75:
            return pick(own.contrast, self.rng)
        neighbour = self._neighbour(index, rivals)
        if neighbour is None:
            return pick(own.contrast or own.looks, self.rng)
        beside = lexicon()[self.layout.landmarks[neighbour].name].names[0]
        return f"{phrase} {pick(BESIDE, self.rng)} the {beside}"

    def _neighbour(self, index: int, rivals: list[int]) -> int | None:
        """The nearest landmark that stands near this one, with none of its name near this one's rivals."""
        entries = self.layout.landmarks

        def apart(one: Placement, other: Placement) -> float:
            return math.hypot(one.x - other.x, one.y - other.y)

        def tells(entry: Placement) -> bool:
            noun = lexicon()[entry.name].names[0]
            called = [other for other in entries if noun in lexicon()[other.name].names]
            return all(apart(other, entries[rival]) > CLOSE for other in called for rival in rivals)

        others = [i for i in range(len(entries)) if i != index and i not in rivals]
        near = [(apart(entries[i], entries[index]), i) for i in others]
        return min(((far, i) for far, i in near if far < CLOSE and tells(entries[i])), default=(0.0, None))[1]
