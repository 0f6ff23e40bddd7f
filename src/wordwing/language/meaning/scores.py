"""How well sections of a flown path do what a clause says.

A clause is scored for many sections at once: a matrix [I, J] in [0, 1] over sections from point i to point j. The first
clause is only ever asked about sections that begin where the path does, and the last one about those that end there.
Thresholds come in pairs: the full score within the first number, none from the second on, a line between.
"""

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from wordwing.constants import CONTROL_PERIOD
from wordwing.language.meaning.clauses import COLOURS, Clause, Reference
from wordwing.language.meaning.flown_path import ALL, Track, falling, least, mean, summed, wrapped
from wordwing.world.fences import FENCES
from wordwing.world.paths import Bools, Floats, Ints, lengths

DEGREE = math.pi / 180

NEAR_PASS = 0.7, 1.3
"""Distance from a landmark at which one still passes it, metres."""
NEAR_HUG = 0.35, 0.75
NEAR_CIRCLE = 0.55, 1.1
NEAR_END = 0.5, 1.0
"""Distance from a landmark at which one has reached it, metres."""
NEAR_FENCE = 0.6, 1.1
CLEAR = 0.4, 0.1
"""Distance that is kept from what is avoided, metres, where the clause does not name it."""
SPARED = 0.0, 0.2
"""How much less than the distance that an `avoid` names may be kept, metres."""
HELD, HELD_SHARE = (0.25, 0.5), (0.1, 0.2)
"""How far one may rest from the distance that a clause names, metres, and share of it that is added."""
VIEWED_FROM = 0.7, 0.4
"""Distance from which a landmark's sides are told, and from which one comes back, metres."""
OVERRUN = 0.9, 1.8
"""How much farther a section may lead after the thing has been done, metres."""
TO_AND_FRO = 0.25, 0.6
"""Share of the way around a thing that may be flown back and forth."""
BENT = 0.45, 0.15
"""Share of the way around a thing by which the direction of flight must turn."""
TURNING_SPACE = 0.3, 0.8
"""How long a section may be on which a turn "on the spot" is flown, metres."""
FACING = 25 * DEGREE, 60 * DEGREE
SIDEWAYS = 35 * DEGREE, 70 * DEGREE
ARC_SLACK = 38 * DEGREE, 75 * DEGREE
"""How far a circle or a spin may fall short."""
SPUN_ON = 225 * DEGREE, 300 * DEGREE
"""How much farther than told one may have turned on the spot: to the next heading, but not once more."""
SHARE_OFF = 0.35, 0.9
"""Share of a distance by which it may be missed."""
HOVERED, LESS_LONG = (0.1, 0.25), (0.2, 0.6)
"""How long a section may be on which one hovers, metres, and share of the time that may be missing."""
GAP_BETWEEN = 0.05, 0.4
"""How far from the line between two things one may fly and have gone between them, metres."""


def score(clause: Clause, track: Track, first: bool, begins: slice = ALL, ends: slice = ALL) -> Floats:
    """Score sections of a track for one clause.

    Args:
        clause: What was to be done.
        track: The path flown.
        first: Whether nothing comes before it, so that "forward" means the heading that the drone started with.
        begins: The I points that sections begin at.
        ends: The J points that they end at.

    Returns:
        [I, J] in [0, 1].
    """
    return scores([clause], track, first, begins, ends)[0]


def scores(clauses: Sequence[Clause], track: Track, first: bool, begins: slice = ALL, ends: slice = ALL) -> Floats:
    """Score sections of a track for each of some clauses of one kind; otherwise as `score`: [C, I, J]."""
    asked = _Scores(clauses, track, first, begins, ends)
    values = getattr(asked, f"_{clauses[0].kind}")()
    shape = (len(clauses), *asked.length.shape)
    return values if values.shape == shape else np.broadcast_to(values, shape)


_TOWARDS = {"front": 0.0, "behind": math.pi, "left": math.pi / 2, "right": -math.pi / 2}
"""Where a side of a drone or a thing is, radians counter-clockwise from where it looks."""

_AROUND = {"front": math.pi, "behind": 0.0, "left": math.pi / 2, "right": -math.pi / 2}
"""Where a side of a thing lies, seen along the line to it, radians counter-clockwise from beyond it."""


class _Scores:
    """How well sections of a track do what each of C clauses of a kind says: a method for each kind of clause.

    They return what broadcasts to [C, I, J]: [C, 1, J] where only the last point of a section counts.
    """

    gap: Floats
    """[C, K] distance of each point from what a clause speaks of, metres."""
    bearing: Floats
    """[C, K] world direction to it, radians."""

    def __init__(self, clauses: Sequence[Clause], track: Track, first: bool, begins: slice, ends: slice) -> None:
        self.clauses, self.track, self.first = clauses, track, first
        self.begins, self.ends = begins, ends
        self.length = track.length[begins, ends]  # [I, J] metres
        self.references: list[Reference] = [clause.reference for clause in clauses if clause.reference is not None]
        self.amount = np.array([clause.amount or 0.0 for clause in clauses])[:, None, None]
        self.sign = np.array([1.0 if clause.side == "left" else -1.0 for clause in clauses])[:, None, None]
        if self.references:
            rows = track.rows(self.references)
            self.gap, self.bearing = track.all_gaps[rows], track.all_bearings[rows]

    def _at_begin(self, values: Floats) -> Floats:
        """Values [..., K] of points, where sections begin: [..., I, 1]."""
        return values[..., self.begins, None]

    def _at_end(self, values: Floats) -> Floats:
        """Values [..., K] of points, where sections end: [..., 1, J]."""
        return values[..., None, self.ends]

    def _change(self, values: Floats) -> Floats:
        """By how much values [..., K] of points grow within sections: [..., I, J]."""
        return self._at_end(values) - self._at_begin(values)

    @property
    def _rests(self) -> Bools:
        """[J] whether sections end where the path does: there the drone stays."""
        return np.asarray(np.arange(len(self.track))[self.ends] == len(self.track) - 1)

    def _turned_by(self, angle: Floats | float, full: Floats | float, zero: Floats | float) -> Floats:
        change = wrapped(self._at_end(self.track.depart) - self._at_begin(self.track.arrive))  # [I, J]
        return falling(np.abs(wrapped(change - angle)), full, zero) * falling(self.length, *TURNING_SPACE)

    def _turn(self) -> Floats:
        full, zero = np.minimum(0.6 * self.amount, 38 * DEGREE), np.minimum(self.amount, 75 * DEGREE)
        return self._turned_by(self.sign * self.amount, full, zero)

    def _turn_around(self) -> Floats:
        return self._turned_by(math.pi, 45 * DEGREE, 90 * DEGREE)

    def _turn_to(self) -> Floats:
        error = np.abs(wrapped(self.bearing - self.track.depart))
        return self._at_end(falling(error, *FACING)) * falling(self.length, *TURNING_SPACE)

    def _straight(self) -> Floats:
        chord = self.track.chord[self.begins, self.ends]
        direction = np.arctan2(chord[..., 1], chord[..., 0])
        heading = self.track.depart.copy()
        if self.first:
            heading[0] = self.track.start_yaw
        off = np.abs(wrapped(direction - self._at_begin(heading)))
        bent = 1 - lengths(chord) / np.maximum(self.length, 1e-9)
        return falling(off, *FACING) * falling(bent, 0.12, 0.35) * (self.length > 0.1)

    def _forward(self) -> Floats:
        return self._straight() * falling(np.abs(self.length - self.amount) / self.amount, *SHARE_OFF)

    @cached_property
    def _turned(self) -> Floats:
        """[C, I, J] radians that the direction of flight turns to the clause's side."""
        return self.sign * self.track.turned[self.begins, self.ends]

    def _curve(self) -> Floats:
        turned = self._turned
        enough = falling(-turned, -40 * DEGREE, -15 * DEGREE) * falling(turned, 200 * DEGREE, 270 * DEGREE)
        return enough * falling(-self.length, -0.3, -0.1)

    @cached_property
    def _polar(self) -> Floats:
        """[C, K] how far the drone has gone around each landmark, radians."""
        return self.track.polar[[int(reference) for reference in self.references]]

    @cached_property
    def _swept(self) -> Floats:
        """[C, I, J] radians flown around the landmark with it on the clause's side."""
        return self.sign * self._change(self._polar)

    def _steady(self) -> Floats:
        """[C, I, J] how much of the way around is flown one way round, rather than to and fro."""
        way = self._change(summed(np.abs(np.diff(self._polar))))
        return falling(1 - self._swept / np.maximum(way, 1e-9), *TO_AND_FRO)

    def _since(self, where: Ints) -> Floats:
        """[C, I, J] the way flown since points [C, I, J], metres."""
        return self._at_end(self.track.passed) - self.track.passed[where]

    def _mean_gap(self) -> Floats:
        """[C, I, J] mean distance of sections from what the clauses speak of, metres."""
        return mean(self.gap, self.begins, self.ends)

    def _pass(self) -> Floats:
        swept = self._swept
        nearest, where = least(self.gap, self.begins, self.ends)
        by = falling(-swept, -50 * DEGREE, -20 * DEGREE) * falling(swept, 225 * DEGREE, 300 * DEGREE)
        return by * falling(nearest, *NEAR_PASS) * falling(self._since(where), *OVERRUN)

    def _circle(self) -> Floats:
        near = falling(self._mean_gap(), *NEAR_CIRCLE)
        amount = falling(np.abs(self._swept - self.amount), *ARC_SLACK)
        # Straight past a thing leads around it too, as seen from it; a drone that circles it also turns.
        turned = self._turned / self.amount
        return near * amount * self._steady() * falling(-turned, *(-share for share in BENT))

    def _hug(self) -> Floats:
        near = falling(self._mean_gap(), *NEAR_HUG)
        return near * falling(-self._swept, -45 * DEGREE, -20 * DEGREE) * self._steady()

    def _lines(self) -> tuple[Floats, Floats]:
        """The two ends [C, 1, 2] of the line between what each clause speaks of."""
        others: list[Reference] = [clause.other for clause in self.clauses if clause.other is not None]
        middle = np.broadcast_to(self.track.points[len(self.track) // 2], (len(others), 2))
        ends = self.track.places(others, self.track.places(self.references, middle))
        return self.track.places(self.references, ends)[:, None], ends[:, None]

    def _between(self) -> Floats:
        (begin, end), points = self._lines(), self.track.points
        line = end - begin
        normal = np.stack([-line[..., 1], line[..., 0]], axis=1)  # [C, 2, 1]
        side = ((points - begin) @ normal)[..., 0]  # [C, K] sign: which side of the line
        # Each step across the line counts by how near to its inner part it crosses; there and back again is nothing.
        before, after = side[:, :-1], side[:, 1:]
        ways = np.sign(after) - np.sign(before)
        if not ways.any():
            return np.zeros((1, 1, 1))
        share = before / np.where(before == after, 1.0, before - after)
        crossing = points[:-1] + share[..., None] * np.diff(points, axis=0)  # [C, K - 1, 2]
        weight = falling(_distance_to_line(crossing, begin, end, inner=0.8), *GAP_BETWEEN)
        crossed = self._change(summed(weight * ways / 2))
        _, where = least(_distance_to_line(points, begin, end, inner=0.8), self.begins, self.ends)
        return np.abs(crossed).clip(0.0, 1.0) * falling(self._since(where), *OVERRUN)

    def _toward(self) -> Floats:
        nearer = -self._change(self.gap) / np.maximum(self.length, 1e-9)
        return falling(-nearer, -0.75, -0.3) * falling(-self.length, -0.3, -0.1)

    def _held(self, near: tuple[float, float]) -> Floats:
        """[C, 1, J] how well sections end as far from things as was said, or else near them."""
        amount = self.amount[..., 0]  # [C, 1]
        full, zero = (most + share * amount for most, share in zip(HELD, HELD_SHARE, strict=True))
        held = falling(np.abs(self.gap - amount), full, zero)
        return self._at_end(np.where(amount > 0, held, falling(self.gap, *near)))

    def _reach(self) -> Floats:
        return self._held(NEAR_END)

    def _reach_side(self) -> Floats:
        # Where the last point lies around the landmark, seen along the line from the first point to it.
        around = wrapped(self._at_end(self.bearing) + math.pi - self._at_begin(self.bearing))  # [C, I, J]
        side = np.array([_AROUND[str(clause.side)] for clause in self.clauses])[:, None, None]
        right = falling(np.abs(wrapped(around - side)), *SIDEWAYS)
        # Seen from close by, wherever one comes to a stop is "in front", so one must look at it from farther away.
        away = falling(-self.gap, -VIEWED_FROM[0], -VIEWED_FROM[1])
        return self._reach() * right * self._at_begin(away)

    def _reach_own_side(self) -> Floats:
        looks = [self.track.layout.landmarks[int(reference)].yaw for reference in self.references]
        side = np.array([_TOWARDS[str(clause.side)] for clause in self.clauses]) + looks  # [C] world direction
        off = np.abs(wrapped(self.bearing + math.pi - side[:, None]))
        return self._reach() * self._at_end(falling(off, *SIDEWAYS))

    def _reach_fence(self) -> Floats:
        return self._held(NEAR_FENCE)

    def _reach_between(self) -> Floats:
        return self._at_end(falling(_distance_to_line(self.track.points, *self._lines(), inner=0.4), 0.2, 0.55))

    def _face(self) -> Floats:
        return self._at_end(falling(np.abs(wrapped(self.bearing - self.track.arrive)), *FACING))

    def _abeam(self) -> Floats:
        aside = self.sign[..., 0] * wrapped(self.bearing - self.track.arrive)  # [C, K]
        return self._at_end(falling(np.abs(aside - math.pi / 2), *SIDEWAYS) * falling(self.gap, *NEAR_PASS))

    def _along(self) -> Floats:
        normals = np.array([FENCES[COLOURS.index(str(reference))].normal for reference in self.references])  # [C, 2]
        # With the fence on the left its inward normal points to the drone's right.
        forward = self.sign[..., 0] * np.stack([-normals[:, 1], normals[:, 0]], axis=-1)
        chord = self.track.chord[self.begins, self.ends]
        straight = np.moveaxis(chord @ forward.T, -1, 0) / np.maximum(self.length, 1e-9)
        near = falling(self._mean_gap(), 0.9, 1.5)
        return near * falling(-straight, -0.85, -0.6) * falling(-self.length, -0.4, -0.2)

    def _leave(self) -> Floats:
        behind = np.abs(wrapped(self.bearing - self.track.depart))
        farther = self._change(self.gap) / np.maximum(self.length, 1e-9)
        begun = falling(-behind, -120 * DEGREE, -80 * DEGREE) * falling(self.gap, *NEAR_END)
        return self._at_begin(begun) * falling(-farther, -0.7, -0.3) * falling(-self.length, -0.25, -0.1)

    def _return(self) -> Floats:
        away = lengths(self.track.points - self.track.points[0])  # [K]
        farthest = np.maximum.accumulate(away)  # who never left has not come back
        return self._at_end(falling(away, *NEAR_END) * falling(-farthest, -VIEWED_FROM[0], -VIEWED_FROM[1]))

    def _avoid(self) -> Floats:
        # Of the whole flight: what is to be avoided is not avoided in one section only.
        nearest, amount = self.gap.min(axis=-1)[:, None, None], self.amount
        return np.where(amount > 0, falling(amount - nearest, *SPARED), falling(-nearest, -CLEAR[0], -CLEAR[1]))

    def _spin(self) -> Floats:
        turned = np.stack([self.track.most_turned(sign) for sign in self.sign[:, 0, 0].tolist()])
        more = turned[:, self.begins, self.ends] - self.amount
        return falling(-more, *ARC_SLACK) * falling(more, *SPUN_ON) * falling(self.length, *TURNING_SPACE)

    def _look(self) -> Floats:
        moments = self.track.moments
        off = np.abs(wrapped(self.bearing[:, moments.nearest] - moments.yaws))  # [C, T]
        looked = falling(least(off, moments.first[self.begins], moments.last[self.ends])[0], *FACING)
        # Whoever is told nothing more goes on looking there.
        return np.where(self._rests, falling(off[:, -1], *FACING)[:, None, None], looked)

    def _move(self) -> Floats:
        chord = self.track.chord[self.begins, self.ends]
        direction, distance = np.arctan2(chord[..., 1], chord[..., 0]), lengths(chord)  # [I, J]
        side = np.array([_TOWARDS[str(clause.side)] for clause in self.clauses])[:, None, None]
        moments = self.track.moments
        off = np.abs(wrapped(direction - self._at_begin(moments.yaws[moments.first]) - side))
        right = falling(off, *FACING) * falling(np.abs(distance - self.amount) / self.amount, *SHARE_OFF)
        # A drone that only flies forward turns first.
        return right * falling(self.length - distance, *TURNING_SPACE)

    def _hover(self) -> Floats:
        moments = self.track.moments
        begin, end = moments.arrived.astype(float), moments.departed.astype(float)
        periods = self._at_end(end) - self._at_begin(begin) if moments.timed else 0.0
        long = falling(1 - CONTROL_PERIOD * periods / self.amount, *LESS_LONG)
        return np.where(self._rests, 1.0, long) * falling(self.length, *HOVERED)


def _distance_to_line(points: Floats, begin: Floats, end: Floats, inner: float) -> Floats:
    """[C, K] metres from points [K, 2] or [C, K, 2] to the inner parts of lines between ends [C, 1, 2]."""
    line, offset = end - begin, points - begin
    share = offset @ line.mT / np.maximum(line @ line.mT, 1e-9)  # [C, K, 1]
    return lengths(offset - share.clip(0.5 - inner / 2, 0.5 + inner / 2) * line)
