"""What to say about a path: a few true clauses, in order, that together mean this path and no other.

People do not list everything; they say what leads there and where to stop. A meaning is proposed at random with the
weights of `FINALS` and `MIDDLES`, kept only if the judge gives full marks to the path it describes, and preferred if
it does not fit other paths in the same layout.
"""

import math
from collections.abc import Sequence
from functools import cache, cached_property

import numpy as np

from wordwing.language.meaning.clauses import Clause, Kind
from wordwing.language.meaning.facts import HEADED, QUARTER, SLIGHT, TRUE, Fact, Facts
from wordwing.language.meaning.flown_path import ALL, FIRST, LAST, Track, wrapped
from wordwing.language.meaning.judge import judge_track
from wordwing.language.meaning.scores import score
from wordwing.language.writing.templates import pick, pick_weighted
from wordwing.world.paths import Floats

FINALS: dict[Kind, float] = {
    "reach": 3.0,
    "reach_side": 2.2,
    "reach_fence": 1.5,
    "reach_between": 1.2,
    "pass": 2.2,
    "between": 0.9,
    "circle": 2.0,
    "abeam": 1.0,
    "face": 1.2,
    "along": 0.6,
    "forward": 0.1,
}
"""Kinds that can end an instruction, and how often they do."""

MIDDLES: dict[Kind, float] = {
    "pass": 2.5,
    "circle": 2.0,
    "between": 1.5,
    "toward": 1.2,
    "straight": 1.0,
    "curve": 1.0,
    "hug": 1.2,
    "along": 0.8,
    "forward": 0.4,
    "leave": 0.5,
}
"""Kinds that lead on to something else."""

OPENINGS: tuple[Kind, ...] = ("turn", "turn_around", "turn_to")
ROUND: tuple[Kind, ...] = ("pass", "circle", "hug", "abeam")
"""Ways of going by a thing."""

REDUNDANT: tuple[tuple[tuple[Kind, ...], tuple[Kind, ...]], ...] = (
    (ROUND, (*ROUND, "reach")),
    (("between",), ("reach_between",)),
    (("leave",), ("between", "reach_between")),
)
"""Kinds of which nobody says the first and then the second about the same thing."""

OPEN: tuple[Kind, ...] = ("straight", "forward", "toward", "along", "leave", "curve")
"""Ways of flying on, of which nobody says two."""

ACCEPTED = TRUE - 0.01
CONFUSED = 0.5
"""Score from which a meaning fits another path as well."""

PROPOSALS, PATIENCE, RIVALS = 22, 18, 10
"""Meanings tried for one path, after how many another clause is added, and other paths that each is tried on."""


def compose(track: Track, rivals: Sequence[Track], clauses: int, rng: np.random.Generator) -> tuple[Clause, ...] | None:
    """Choose what to say about a path.

    Args:
        track: The path to describe.
        rivals: Other paths in the same layout, which the meaning should not fit.
        clauses: How many clauses to say at most, apart from an opening turn.
        rng: Source of every choice.

    Returns:
        A meaning that the judge gives full marks for this path; None if nothing was found to say.
    """
    proposals = _Proposals(track)
    if not proposals.finals:
        return None
    against = _Rivals([rivals[i] for i in rng.permutation(len(rivals))[:RIVALS]])
    best: tuple[int, tuple[Clause, ...]] | None = None
    tried: set[tuple[Clause, ...]] = set()
    for attempt in range(PROPOSALS):
        # What one clause cannot tell apart, two may.
        said = proposals.draw(clauses + (attempt >= PATIENCE), rng)
        meaning = tuple(fact.clause for fact in said)
        if not meaning or meaning in tried:
            continue
        tried.add(meaning)
        if not proposals.agreed(said):
            continue
        confused = against.confused(meaning, best[0] if best else math.inf)
        if best is None or confused < best[0]:
            best = confused, meaning
        if confused == 0:
            break
    return best[1] if best else None


class _Rivals:
    """Other paths, and how well they do what has been asked of them so far."""

    def __init__(self, tracks: Sequence[Track]) -> None:
        self.tracks = tracks
        self._score = cache(_score)

    def confused(self, meaning: tuple[Clause, ...], enough: float) -> int:
        """How many paths a meaning fits; counting ends at `enough`."""
        count = 0
        for track in self.tracks:
            count += self._fits(track, meaning)
            if count >= enough:
                break
        return count

    def _fits(self, track: Track, meaning: tuple[Clause, ...]) -> bool:
        scores = []
        for place, clause in enumerate(meaning, start=1):
            scores.append(self._score(track, clause, place == 1, place == len(meaning)))
            if not scores[-1].any():
                return False  # a clause that no section does at all needs no cutting
        return judge_track(scores).score >= CONFUSED


def _score(track: Track, clause: Clause, first: bool, last: bool) -> Floats:
    return score(clause, track, first, FIRST if first else ALL, LAST if last else ALL)


class _Proposals:
    """Random meanings of a path."""

    def __init__(self, track: Track) -> None:
        self.track = track
        self._known = Facts(track)
        self.finals = self._known.true(FINALS, ends=LAST)

    @cached_property
    def _middles(self) -> list[Fact]:
        return self._known.true(MIDDLES)

    @cached_property
    def _openings(self) -> list[Fact]:
        return [fact for fact in self._known.true(OPENINGS, begins=FIRST) if fact.score[0, 0] >= TRUE]

    def draw(self, clauses: int, rng: np.random.Generator) -> list[Fact]:
        """One of so many clauses at most, apart from an opening turn; [] if it came to nothing."""
        final = _choose(self.finals, FINALS, rng)
        said = [final]
        if final.clause.kind == "forward" and rng.random() < 0.7:
            clauses = 1
        for _ in range(clauses - 1):
            options = [fact for fact in self._middles if _goes_with(fact, said)]
            if not options:
                break
            said.insert(0, _choose(options, MIDDLES, rng))
        if final.clause.kind == "face" and len(said) == 1:
            return []
        middles = sorted(said[:-1], key=_when)
        opening = self._opening(rng)
        return [*([opening] if opening else []), *middles, final]

    def agreed(self, said: list[Fact]) -> bool:
        """Whether the judge gives full marks to the path."""
        judgement = judge_track([self._score(fact, first=index == 0) for index, fact in enumerate(said)])
        return min(judgement.clauses) >= ACCEPTED

    def _opening(self, rng: np.random.Generator) -> Fact | None:
        """A turn to begin with; the sharper, the likelier to be mentioned."""
        if not self._openings:
            return None
        sharp = abs(float(wrapped(self.track.depart[0] - self.track.start_yaw)))
        chance = 0.12 if sharp < (SLIGHT + QUARTER) / 2 else 0.7
        return pick(self._openings, rng) if rng.random() < chance else None

    def _score(self, fact: Fact, first: bool) -> Floats:
        """A fact's score; "straight" is the start's heading only at the very beginning."""
        if first or fact.clause.kind not in HEADED:
            return fact.score
        return score(fact.clause, self.track, first=False)


def _goes_with(fact: Fact, said: list[Fact]) -> bool:
    """Whether a clause can come before others without saying the same thing again."""
    clause, final = fact.clause, said[-1]
    for other in (entry.clause for entry in said):
        if clause.kind == other.kind and clause.references == other.references:
            return False
        if clause.kind in OPEN and other.kind in OPEN:
            return False
        if any(clause.kind in first and other.kind in then for first, then in REDUNDANT) and (
            set(clause.references) & set(other.references)
        ):
            return False
    return bool((fact.end & final.last).any())


def _when(fact: Fact) -> float:
    """Where along the path a fact is true, on average."""
    begins, ends = fact.true.nonzero()
    return float((begins + ends).mean())


def _choose(options: list[Fact], weights: dict[Kind, float], rng: np.random.Generator) -> Fact:
    """A kind by its weight, then a clause of that kind: many landmarks do not make one kind commoner."""
    kinds = sorted({fact.clause.kind for fact in options})
    kind = pick_weighted(kinds, [weights[kind] for kind in kinds], rng)
    return pick([fact for fact in options if fact.clause.kind == kind], rng)
