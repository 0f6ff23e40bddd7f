"""What can truly be said about a flown path: the clauses that the judge would give full marks.

A writer looks at a path from above. This lists what there is to see: everything passed, circled, approached, left or
faced, with the matrices of the judge, so that writing a meaning and judging it can never disagree.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wordwing.language.meaning.clauses import COLOURS, Clause, Kind, Reference, Side
from wordwing.language.meaning.flown_path import Track, wrapped
from wordwing.language.meaning.judge import DEGREE, scores
from wordwing.world.paths import Bools, Floats, lengths

TRUE = 0.97
"""Score from which a writer takes a clause for true."""

SLIGHT, QUARTER = 35 * DEGREE, 90 * DEGREE
"""Amounts of a turn."""

ARCS = {"quarter": math.pi / 2, "half": math.pi, "three_quarters": 3 * math.pi / 2, "full": 2 * math.pi}
"""Amounts of a circle."""

DISTANCES = {"tiny": 0.28, "short": 0.6, "medium": 1.1, "long": 1.9}
"""What vague distances mean, metres."""

UNITS = {"steps": 0.3, "feet": 0.3, "lengths": 0.4, "metres": 1.0}
"""What a unit is worth, metres: a step and a foot are about the same, a body length is the drone's."""

SIGHT = 3.0
"""Distance up to which a landmark is spoken of as something to face or head for, metres."""

WIDEST = 2.4
"""Distance between two things that one flies between, metres."""


@dataclass(frozen=True)
class Fact:
    """A clause and where on the track it is true."""

    clause: Clause
    score: Floats
    """[K, K] for each section from i to j; 0 where j < i."""

    @cached_property
    def ends(self) -> bool:
        """Whether it can be the last thing said: true of some section that ends where the path does."""
        return bool(self.true[:, -1].any())

    @cached_property
    def true(self) -> Bools:
        """[K, K] the sections that it is true of."""
        return self.score >= TRUE


def facts(track: Track) -> list[Fact]:
    """Everything worth saying, true of at least one section."""
    candidates = list(_candidates(track))
    below = np.tri(len(track), k=-1, dtype=bool)
    found: dict[Clause, Floats] = {}
    for kind in {clause.kind for clause in candidates}:
        alike = [clause for clause in candidates if clause.kind == kind]
        table = np.where(below, 0.0, scores(alike, track, first=kind in ("straight", "forward")))
        found |= dict(zip(alike, table, strict=True))
    true = {clause for clause, entry in found.items() if entry.max() >= TRUE}
    return [Fact(clause, found[clause]) for clause in candidates if clause in true]


def _candidates(track: Track) -> Iterator[Clause]:
    yield from _turns(track)
    yield from _moves(track)
    landmarks = [index for index in range(len(track.gaps)) if track.gaps[index].min() < 1.2]
    for index in landmarks:
        yield from _about(index, track)
    for index in range(len(track.gaps)):
        yield from _headed(index, track)
    for fence, colour in enumerate(COLOURS):
        yield from _headed(colour, track)
        if track.fence_distances[fence].min() < 1.2:
            yield from (Clause("along", colour, side=side) for side in _SIDES)
            if track.gap(colour)[-1] < track.gap(colour)[0] - 0.3:
                yield Clause("reach_fence", colour)
    yield from _pairs(landmarks, track)


_SIDES: tuple[Side, Side] = ("left", "right")


def _turns(track: Track) -> Iterator[Clause]:
    turn = float(wrapped(track.depart[0] - track.start_yaw))
    side: Side = "left" if turn > 0 else "right"
    if abs(turn) > 135 * DEGREE:
        yield Clause("turn_around")
    elif abs(turn) > 18 * DEGREE:
        yield Clause("turn", side=side, amount=QUARTER if abs(turn) > 55 * DEGREE else SLIGHT)


def _moves(track: Track) -> Iterator[Clause]:
    whole = track.passed[-1]
    counted = (number * unit for unit in set(UNITS.values()) for number in range(2, 9))
    near = (round(metres, 2) for metres in counted if abs(metres - whole) < 0.25 * whole)
    yield Clause("straight")
    yield from (Clause("forward", amount=metres) for metres in (*DISTANCES.values(), *near))
    yield from (Clause("curve", side=side) for side in _SIDES)


def _about(index: int, track: Track) -> Iterator[Clause]:
    """Clauses about a landmark close to the path."""
    polar = track.polar[index]
    sweep = float(polar[-1] - polar[0])
    for side, turned in zip(_SIDES, (polar.max() - polar[0], polar[0] - polar.min()), strict=True):
        if max(turned, abs(sweep)) > 20 * DEGREE:
            kinds: tuple[Kind, ...] = ("pass", "hug", "abeam")
            yield from (Clause(kind, index, side=side) for kind in kinds)
            arcs = (round(arc, 4) for arc in ARCS.values() if turned > arc - 40 * DEGREE)
            yield from (Clause("circle", index, side=side, amount=arc) for arc in arcs)
    gap = track.gaps[index]
    if gap[-1] < 0.6:
        if gap[-1] < gap[0] - 0.3:
            yield Clause("reach", index)
        if track.passed[-1] > 0.4:
            sides: tuple[Side, ...] = ("front", "behind", "left", "right")
            yield from (Clause("reach_side", index, side=side) for side in sides)
    if gap[0] < 0.6:
        yield Clause("leave", index)


def _headed(reference: Reference, track: Track) -> Iterator[Clause]:
    """Clauses about something in the direction of flight."""
    gap, bearing = track.gap(reference), track.bearing(reference)
    if gap[0] > SIGHT and isinstance(reference, int):
        return
    kinds: list[Kind] = []
    if abs(float(wrapped(bearing[0] - track.depart[0]))) < 20 * DEGREE and gap[0] > 0.4:
        if abs(float(wrapped(bearing[0] - track.start_yaw))) > 40 * DEGREE:
            kinds.append("turn_to")
        kinds.append("toward")
    facing = np.abs(wrapped(bearing - track.arrive))
    if facing[-1] < 20 * DEGREE and gap[-1] > 0.3 and facing[: len(track) // 2 + 1].max() > 60 * DEGREE:
        kinds.append("face")
    yield from (Clause(kind, reference) for kind in kinds)


def _pairs(landmarks: list[int], track: Track) -> Iterator[Clause]:
    """Clauses about two things that the path goes between."""
    centres = track.layout.centres
    for position, one in enumerate(landmarks):
        for two in landmarks[position + 1 :]:
            if lengths(centres[one] - centres[two]) < WIDEST:
                yield Clause("between", one, two)
                yield Clause("reach_between", one, two)
        for colour in COLOURS:
            if lengths(track.place(colour, centres[one]) - centres[one]) < WIDEST / 1.5:
                yield Clause("between", one, colour)
