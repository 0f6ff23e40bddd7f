"""What can truly be said about a flown path: the clauses that the judge would give full marks.

A writer looks at a path from above. This lists what there is to see: everything passed, circled, approached, left or
faced, with the matrices of the judge, so that writing a meaning and judging it can never disagree.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wordwing.language.meaning.clauses import COLOURS, KINDS, Clause, Kind, Reference, Side
from wordwing.language.meaning.flown_path import ALL, Track, backwards, wrapped
from wordwing.language.meaning.scores import DEGREE, scores
from wordwing.world.fences import nearest_on_fences
from wordwing.world.paths import Bools, Floats, lengths

TRUE = 0.97
"""Score from which a writer takes a clause for true."""

SLIGHT, QUARTER = 35 * DEGREE, 90 * DEGREE
"""Amounts of a turn."""

ARCS = {"quarter": math.pi / 2, "half": math.pi, "three_quarters": 3 * math.pi / 2, "full": 2 * math.pi}
"""Amounts of a circle."""

LAPS = ARCS | {"twice": 4 * math.pi}
"""Amounts of a circle that may be asked for, beyond those that one walk happens to have."""

DISTANCES = {"tiny": 0.28, "short": 0.6, "medium": 1.1, "long": 1.9}
"""What vague distances mean, metres."""

UNITS = {"steps": 0.3, "feet": 0.3, "lengths": 0.4, "metres": 1.0}
"""What a unit is worth, metres: a step and a foot are about the same, a body length is the drone's."""

SIGHT = 3.0
"""Distance up to which a landmark is spoken of as something to face or head for, metres."""

HEADED: tuple[Kind, ...] = ("straight", "forward")
"""Kinds that mean the start's heading if nothing is said before them."""

WIDEST = 2.4
"""Distance between two things that one flies between, metres."""


@dataclass(frozen=True)
class Fact:
    """A clause and where on the track it is true."""

    clause: Clause
    score: Floats
    """[I, J] for each section from i to j that was looked at; 0 where j < i."""

    @property
    def ends(self) -> bool:
        """Whether it can be the last thing said: true of some section that ends where the path does."""
        return bool(self.last.any())

    @cached_property
    def last(self) -> Bools:
        """[I] whether it is true from a point to the last one."""
        return self.true[:, -1]

    @cached_property
    def end(self) -> Bools:
        """[J] whether it is true from some point to a point."""
        return np.asarray(self.true.any(axis=0))

    @cached_property
    def true(self) -> Bools:
        """[I, J] the sections that it is true of."""
        return self.score >= TRUE


class Facts:
    """Everything worth saying about a track, judged only as far as it is asked for."""

    def __init__(self, track: Track) -> None:
        self.track = track
        self._candidates: dict[Kind, list[Clause]] = {}
        for clause in _candidates(track):
            self._candidates.setdefault(clause.kind, []).append(clause)

    def true(self, kinds: Iterable[Kind] = KINDS, begins: slice = ALL, ends: slice = ALL) -> list[Fact]:
        """Facts of some kinds that are true of at least one section from some points to some others."""
        return [fact for kind in kinds if kind in self._candidates for fact in self._true(kind, begins, ends)]

    def _true(self, kind: Kind, begins: slice, ends: slice) -> list[Fact]:
        clauses, never = self._candidates[kind], backwards(len(self.track))[begins, ends]
        table = scores(clauses, self.track, first=kind in HEADED, begins=begins, ends=ends)
        table = np.where(never, 0.0, table)  # [C, I, J]
        true = table.max(axis=(1, 2)) >= TRUE
        return [Fact(clauses[index], table[index]) for index in true.nonzero()[0].tolist()]


def _candidates(track: Track) -> Iterator[Clause]:
    yield from _turns(track)
    yield from _moves(track)
    near = (track.all_gaps.min(axis=1) < 1.2).nonzero()[0].tolist()
    references: list[Reference] = [*range(len(track.centres)), *COLOURS]
    landmarks = [index for index in near if index < len(track.centres)]
    for index in landmarks:
        yield from _about(index, track)
    yield from _headed(references, track)
    for row in near[len(landmarks) :]:
        yield from (Clause("along", references[row], side=side) for side in _SIDES)
        if track.all_gaps[row, -1] < track.all_gaps[row, 0] - 0.3:
            yield Clause("reach_fence", references[row])
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
    whole = float(track.passed[-1])
    counted = (number * unit for unit in set(UNITS.values()) for number in range(2, 9))
    near = (round(metres, 2) for metres in counted if abs(metres - whole) < 0.25 * whole)
    yield Clause("straight")
    yield from (Clause("forward", amount=metres) for metres in (*DISTANCES.values(), *near))
    yield from (Clause("curve", side=side) for side in _SIDES)


def _about(index: int, track: Track) -> Iterator[Clause]:
    """Clauses about a landmark close to the path."""
    polar = track.polar[index]
    begin, end, least, most = (float(angle) for angle in (polar[0], polar[-1], polar.min(), polar.max()))
    for side, turned in zip(_SIDES, (most - begin, begin - least), strict=True):
        if max(turned, abs(end - begin)) > 20 * DEGREE:
            kinds: tuple[Kind, ...] = ("pass", "hug", "abeam")
            yield from (Clause(kind, index, side=side) for kind in kinds)
            arcs = (round(arc, 4) for arc in ARCS.values() if turned > arc - 40 * DEGREE)
            yield from (Clause("circle", index, side=side, amount=arc) for arc in arcs)
    first, last = float(track.gaps[index, 0]), float(track.gaps[index, -1])
    if last < 0.6:
        if last < first - 0.3:
            yield Clause("reach", index)
        if track.passed[-1] > 0.4:
            sides: tuple[Side, ...] = ("front", "behind", "left", "right")
            yield from (Clause("reach_side", index, side=side) for side in sides)
    if first < 0.6:
        yield Clause("leave", index)


def _headed(references: Sequence[Reference], track: Track) -> Iterator[Clause]:
    """Clauses about things in the direction of flight."""
    gap, bearing = track.all_gaps, track.all_bearings
    spoken = (gap[:, 0] <= SIGHT) | (np.arange(len(gap)) >= len(track.centres))  # of a fence however far
    toward = (np.abs(wrapped(bearing[:, 0] - track.depart[0])) < 20 * DEGREE) & (gap[:, 0] > 0.4)
    turn_to = toward & (np.abs(wrapped(bearing[:, 0] - track.start_yaw)) > 40 * DEGREE)
    facing = np.abs(wrapped(bearing - track.arrive))
    turned = facing[:, : len(track) // 2 + 1].max(axis=1) > 60 * DEGREE
    face = (facing[:, -1] < 20 * DEGREE) & (gap[:, -1] > 0.3) & turned
    kinds: tuple[tuple[Kind, Bools], ...] = (("turn_to", turn_to), ("toward", toward), ("face", face))
    for kind, seen in kinds:
        yield from (Clause(kind, references[row]) for row in (spoken & seen).nonzero()[0].tolist())


def _pairs(landmarks: list[int], track: Track) -> Iterator[Clause]:
    """Clauses about two things that the path goes between."""
    centres = track.centres[landmarks]  # [N, 2]
    apart = lengths(centres[:, None] - centres)  # [N, N]
    from_fences = lengths(nearest_on_fences(centres) - centres[:, None])  # [N, 4]
    for position, one in enumerate(landmarks):
        for two in (apart[position, position + 1 :] < WIDEST).nonzero()[0] + position + 1:
            yield Clause("between", one, landmarks[two])
            yield Clause("reach_between", one, landmarks[two])
        for fence in (from_fences[position] < WIDEST / 1.5).nonzero()[0]:
            yield Clause("between", one, COLOURS[fence])
