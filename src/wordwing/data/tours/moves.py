"""What a tour is made of: for each kind of thing to do, what it means and the points through which it leads.

A move begins where the one before ended. Its points are rough; `planning` bends the whole path around what stands in
its way, smooths it and asks the judge whether it still does what every move means.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from wordwing.frames import ARENA_HALF
from wordwing.language.meaning.clauses import COLOURS, Clause, Reference, Side
from wordwing.language.meaning.facts import LAPS, WIDEST
from wordwing.language.writing.templates import pick, pick_weighted
from wordwing.world.fences import FENCES, distance_to_fences
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, lengths
from wordwing.world.tasks import StartPose

ROOM = 0.3
"""Between a path and the footprints of landmarks, and to the fences, metres, where a move says nothing else."""

NARROWEST = 2 * ROOM + 0.1
"""Between two things that one flies between, metres."""

REACH = 1.2
"""Distance of things that makes them e times rarer, metres: tours are long enough."""

STRIDE = 15 * math.pi / 180
"""Between two points of an arc, radians."""

ROUNDS = {"half": 3.0, "full": 4.0, "three_quarters": 0.6, "twice": 3.0}
"""How often each part of a circle is flown."""

HELD = (0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.0, 1.5, 2.0)
"""Distances at which to stop, metres."""

PAUSES = (1.0, 2.0, 3.0, 5.0, 10.0)
"""How long to hover, seconds."""

STEPS_ASIDE = (0.4, 0.5, 0.6, 0.75, 1.0)
AHEAD = (0.5, 0.6, 0.75, 0.9, 1.0, 1.2, 1.5, 2.0)
"""Distances to move to a side, or forward, metres."""

FRONTED = frozenset(
    ("Bench", "Coach", "Container", "Gorilla", "Jet", "LionStatue", "Pickup", "Soldier", "TreasureChest", "WoodenChair")
)
"""Landmarks of which everybody sees where they look."""


class Move(NamedTuple):
    """One thing to do."""

    clauses: tuple[Clause, ...]
    points: Floats
    """[P, 2] through which it leads, metres, world frame."""


class Ground(NamedTuple):
    """A layout, and what is asked of it again and again."""

    layout: Layout
    centres: Floats
    """[L, 2] of its landmarks, metres."""
    footprints: Floats
    """[L] their radii, metres."""

    @classmethod
    def of(cls, layout: Layout) -> Ground:
        """The ground of a layout."""
        return cls(layout, layout.centres, layout.footprints)

    def gaps(self, points: Floats) -> Floats:
        """[..., L] of points [..., 2] from footprints, metres."""
        return lengths(points[..., None, :] - self.centres) - self.footprints


@dataclass
class Tour:
    """A tour as far as it is planned."""

    ground: Ground
    start: StartPose
    moves: list[Move]
    rng: np.random.Generator

    @property
    def here(self) -> Floats:
        """[2] where it has led so far, metres."""
        led = [move.points[-1] for move in self.moves if len(move.points)]
        return led[-1] if led else np.array(self.start[:2])

    @property
    def last(self) -> Reference | None:
        """What was spoken of last."""
        spoken = [clause.reference for move in self.moves for clause in move.clauses if clause.reference is not None]
        return spoken[-1] if spoken else None

    def free(self, points: Floats, room: float = ROOM) -> bool:
        """Whether points [P, 2] are in the arena and clear of everything, one at least."""
        inside = np.abs(points).max(initial=0.0) <= ARENA_HALF - ROOM
        return bool(inside and len(points) and (self.ground.gaps(points) >= room - 1e-9).all())

    def landmark(self, least: float, most: float = 9.0, again: float = 0.0) -> int | None:
        """A landmark on the floor from a distance to another one away; the last one again as often as said."""
        away = self.ground.gaps(self.here)
        if isinstance(self.last, int) and away[self.last] >= least and self.rng.random() < again:
            return self.last
        fits = (away >= least) & (away <= most)
        if isinstance(self.last, int):
            fits[self.last] = False
        chances = np.exp(-away / REACH) * fits
        return pick_weighted(range(len(chances)), chances, self.rng) if fits.any() else None

    def around(self, place: int, gap: float, begin: float, end: float, step: float = STRIDE) -> Floats:
        """[P, 2] points around a landmark from one direction of it to another, some way from its edge."""
        angles = np.linspace(begin, end, max(round(abs(end - begin) / step), 1) + 1)
        radius = self.ground.footprints[place] + gap
        return np.asarray(self.ground.centres[place] + radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1))

    def seen_from(self, place: int) -> tuple[float, float]:
        """In which direction of a landmark the tour is, and how far from its centre: radians, metres."""
        x, y = self.here - self.ground.centres[place]
        return math.atan2(y, x), math.hypot(x, y)

    def tangent(self, place: int, gap: float) -> float:
        """How far around a landmark a straight line first comes so near, radians."""
        return math.acos(min((self.ground.footprints[place] + gap) / self.seen_from(place)[1], 1.0))


def _side(rng: np.random.Generator) -> tuple[Side, float]:
    """A side and the way around what is there, counter-clockwise positive."""
    return ("left", 1.0) if rng.random() < 0.5 else ("right", -1.0)


def passes(tour: Tour) -> Move | None:
    """Past a landmark on one side."""
    place = tour.landmark(0.5, 3.0)
    if place is None:
        return None
    (side, way), (begin, _), gap = _side(tour.rng), tour.seen_from(place), tour.rng.uniform(0.3, 0.45)
    reach = tour.tangent(place, gap)
    points = tour.around(place, gap, begin + way * reach, begin + way * (max(reach, 1.1) + 0.6))
    return Move((Clause("pass", place, side=side),), points) if tour.free(points) else None


def circles(tour: Tour) -> Move | None:
    """Around a landmark, by half a circle or more."""
    place = tour.landmark(0.2, 2.5, again=0.3)
    if place is None:
        return None
    (side, way), (begin, away), gap = _side(tour.rng), tour.seen_from(place), tour.rng.uniform(0.3, 0.4)
    name = pick_weighted(list(ROUNDS), list(ROUNDS.values()), tour.rng)
    begin += way * 0.4 * tour.tangent(place, gap)
    points = tour.around(place, gap, begin, begin + way * LAPS[name])
    far = away - tour.ground.footprints[place] - gap > 0.4
    circle = Clause("circle", place, side=side, amount=round(LAPS[name], 4))
    said = (Clause("toward", place), circle) if far else (circle,)
    return Move(said, points) if tour.free(points, 0.25) else None


def _gap(tour: Tour) -> tuple[int, Reference, Floats, Floats] | None:
    """Two things with room between: which, the middle [2], and the direction [2] from one to the other."""
    layout, one = tour.ground, tour.landmark(0.3, 3.0)
    if one is None:
        return None
    centre, foot = layout.centres[one], layout.footprints[one]
    found: list[tuple[Reference, Floats, Floats]] = []
    offsets = layout.centres - centre
    for other, apart in enumerate(lengths(offsets).tolist()):
        if other != one and foot + layout.footprints[other] + NARROWEST <= apart <= WIDEST:
            direction = offsets[other] / apart
            found.append((other, centre + direction * (apart + foot - layout.footprints[other]) / 2, direction))
    for fence, apart in zip(FENCES, distance_to_fences(centre).tolist(), strict=True):
        if foot + NARROWEST <= apart <= WIDEST / 1.5:
            direction = -np.array(fence.normal)
            found.append((fence.colour, centre + direction * (apart + foot) / 2, direction))
    return (one, *pick(found, tour.rng)) if found else None


def between(tour: Tour) -> Move | None:
    """Through between two things."""
    if (gap := _gap(tour)) is None:
        return None
    one, other, middle, direction = gap
    across = np.array([-direction[1], direction[0]])
    across *= 1.0 if (middle - tour.here) @ across > 0 else -1.0
    points = middle + np.array([[-0.35], [0.0], [0.5]]) * across
    return Move((Clause("between", one, other),), points) if tour.free(points[1:], 0.28) else None


def ends_between(tour: Tour) -> Move | None:
    """To between two things."""
    if (gap := _gap(tour)) is None:
        return None
    one, other, middle, _ = gap
    points = middle[None]
    return Move((Clause("reach_between", one, other),), points) if tour.free(points, 0.28) else None


def follows(tour: Tour) -> Move | None:
    """To a fence and along it."""
    (side, way), fence = _side(tour.rng), pick(FENCES, tour.rng)
    normal = np.array(fence.normal)
    ahead = way * np.array([-normal[1], normal[0]])
    begin = tour.here + (tour.rng.uniform(0.4, 0.55) - distance_to_fences(tour.here)[FENCES.index(fence)]) * normal
    points = begin + np.array([[0.0], [0.5], [1.0]]) * tour.rng.uniform(0.9, 2.2) * ahead
    said = Clause("reach_fence", fence.colour), Clause("along", fence.colour, side=side)
    return Move(said, points) if tour.free(points, 0.1) else None


def visits(tour: Tour) -> Move | None:
    """To a landmark."""
    place = tour.landmark(0.5)
    if place is None:
        return None
    begin, _ = tour.seen_from(place)
    points = tour.around(place, tour.rng.uniform(0.3, 0.42), begin + tour.rng.normal(0.0, 0.15), begin)[:1]
    return Move((Clause("reach", place),), points) if tour.free(points, 0.29) else None


def stops_short(tour: Tour) -> Move | None:
    """To some distance from a landmark or a fence."""
    amount = pick(HELD, tour.rng)
    if tour.rng.random() < 0.2:
        row = int(tour.rng.integers(len(FENCES)))
        normal = np.array(FENCES[row].normal)
        points = (tour.here + (amount - distance_to_fences(tour.here)[row]) * normal)[None]
        return Move((Clause("reach_fence", COLOURS[row], amount=amount),), points) if tour.free(points) else None
    place = tour.landmark(amount + 0.4)
    if place is None:
        return None
    begin, _ = tour.seen_from(place)
    points = tour.around(place, amount, begin, begin)[:1]
    return Move((Clause("reach", place, amount=amount),), points) if tour.free(points, 0.29) else None


_TURNED: dict[Side, float] = {"front": 0.0, "behind": math.pi, "left": -math.pi / 2, "right": math.pi / 2}
"""Where a side of a thing is, from where one sees it, counter-clockwise around it, radians."""


def _to(tour: Tour, place: int, gap: float, end: float) -> Floats:
    """[P, 2] points to a direction of a landmark, around it where it is in the way."""
    begin, _ = tour.seen_from(place)
    turn = math.remainder(end - begin, 2 * math.pi)
    reach = min(tour.tangent(place, gap), abs(turn))
    return tour.around(place, gap, begin + math.copysign(reach, turn), begin + turn)


def sides(tour: Tour) -> Move | None:
    """To a side of a landmark, as it is seen from here."""
    place = tour.landmark(0.75)
    if place is None:
        return None
    side = pick_weighted(list(_TURNED), [1.0, 2.0, 1.5, 1.5], tour.rng)
    begin, _ = tour.seen_from(place)
    points = _to(tour, place, tour.rng.uniform(0.3, 0.42), begin + _TURNED[side])
    return Move((Clause("reach_side", place, side=side),), points) if tour.free(points, 0.28) else None


def own_sides(tour: Tour) -> Move | None:
    """To the front or the back of a landmark that has them."""
    entries = enumerate(tour.ground.layout.landmarks)
    fronted = [place for place, entry in entries if entry.name in FRONTED and place != tour.last]
    if not fronted:
        return None
    place, side = pick(fronted, tour.rng), pick(_OWN, tour.rng)
    amount = pick((0.5, 0.8, 1.0), tour.rng) if tour.rng.random() < 0.2 else None
    towards = tour.ground.layout.landmarks[place].yaw + (math.pi if side == "behind" else 0.0)
    points = _to(tour, place, amount or tour.rng.uniform(0.3, 0.42), towards)
    said = Clause("reach_own_side", place, side=side, amount=amount)
    return Move((said,), points) if tour.free(points, 0.28) else None


_OWN: tuple[Side, ...] = ("front", "front", "behind")


def to_fence(tour: Tour) -> Move | None:
    """To a fence."""
    row = int(tour.rng.integers(len(FENCES)))
    away = distance_to_fences(tour.here)[row]
    if away < 1.0:
        return None
    normal = np.array(FENCES[row].normal)
    aside = np.array([-normal[1], normal[0]]) * tour.rng.normal(0.0, 0.4)
    points = (tour.here + (tour.rng.uniform(0.35, 0.45) - away) * normal + aside)[None]
    return Move((Clause("reach_fence", COLOURS[row]),), points) if tour.free(points) else None


def to_corner(tour: Tour) -> Move | None:
    """To the corner of two fences."""
    row = int(tour.rng.integers(len(FENCES)))
    two = [FENCES[row], FENCES[(row + 1) % len(FENCES)]]
    points = np.array([two[0].end]) + tour.rng.uniform(0.4, 0.55, (1, 2)) * np.sum([fence.normal for fence in two], 0)
    if not tour.free(points) or lengths(points[0] - tour.here) < 1.0:
        return None
    said = [Clause("reach_fence", fence.colour) for fence in two]
    return Move(tuple(said if tour.rng.random() < 0.5 else said[::-1]), points)


def heads_for(tour: Tour) -> Move | None:
    """Some way towards a landmark."""
    place = tour.landmark(1.2)
    if place is None:
        return None
    offset = tour.ground.centres[place] - tour.here
    points = (tour.here + offset * tour.rng.uniform(0.4, 0.6))[None]
    return Move((Clause("toward", place),), points) if tour.free(points) else None


def looks(tour: Tour) -> Move | None:
    """To look at a landmark, a little way towards it, after something else."""
    place = tour.landmark(1.1, 3.5)
    if place is None or not tour.moves:
        return None
    offset = tour.ground.centres[place] - tour.here
    points = (tour.here + offset * tour.rng.uniform(0.6, 0.75) / np.hypot(*offset))[None]
    return Move((Clause("look", place),), points) if tour.free(points) else None


def abreast(tour: Tour) -> Move | None:
    """Until a landmark is right beside the drone."""
    place = tour.landmark(0.6, 3.0)
    if place is None:
        return None
    (side, way), (begin, _), gap = _side(tour.rng), tour.seen_from(place), tour.rng.uniform(0.35, 0.5)
    at = begin + way * tour.tangent(place, gap)
    points = tour.around(place, gap, at, at)[:1]
    return Move((Clause("abeam", place, side=side),), points) if tour.free(points) else None


def returns(tour: Tour) -> Move | None:
    """Back to the start."""
    points = np.array([tour.start[:2]]) + tour.rng.normal(0.0, 0.05, (1, 2))
    return Move((Clause("return"),), points) if lengths(points[0] - tour.here) > 0.9 else None


def goes_back(tour: Tour) -> Move | None:
    """Back to a landmark that was visited before the last one."""
    been = [clause.reference for move in tour.moves[:-1] for clause in move.clauses if clause.kind in ("reach", "pass")]
    places = [place for place in been if isinstance(place, int) and place != tour.last]
    if not places:
        return None
    place = pick(places, tour.rng)
    begin, away = tour.seen_from(place)
    points = tour.around(place, tour.rng.uniform(0.3, 0.42), begin, begin)[:1]
    return Move((Clause("reach", place),), points) if away > 1.0 and tour.free(points, 0.29) else None


def waits(tour: Tour) -> Move | None:
    """Wait where one has come to."""
    if not tour.moves or not tour.moves[-1].clauses[-1].kind.startswith("reach"):
        return None
    return Move((Clause("hover", amount=pick(PAUSES, tour.rng)),), np.zeros((0, 2)))


def _straight(tour: Tour, turned: float, amount: float) -> Floats:
    """[1, 2] where a straight flight from the start leads."""
    yaw = tour.start.yaw + turned
    return np.asarray(tour.here + amount * np.array([[math.cos(yaw), math.sin(yaw)]]))


_ASIDE: dict[Side, float] = {"behind": math.pi, "left": math.pi / 2, "right": -math.pi / 2}
"""Where a side is from where the drone looks, radians."""


def moves_aside(tour: Tour) -> Move | None:
    """Backwards or to a side, to begin with."""
    side, amount = pick_weighted(list(_ASIDE), [2.0, 1.0, 1.0], tour.rng), pick(STEPS_ASIDE, tour.rng)
    points = _straight(tour, _ASIDE[side], amount)
    said = Clause("move", side=side, amount=amount)
    return Move((said,), points) if tour.free(points) else None


def goes_ahead(tour: Tour) -> Move | None:
    """Straight on, to begin with."""
    amount = pick(AHEAD, tour.rng)
    points = _straight(tour, 0.0, amount)
    return Move((Clause("forward", amount=amount),), points) if tour.free(points) else None


Maker = Callable[[Tour], Move | None]

OPENINGS: dict[Maker, float] = {moves_aside: 1.0, goes_ahead: 1.0}
MIDDLES: dict[Maker, float] = {
    passes: 4.0,
    visits: 4.0,
    between: 2.5,
    circles: 4.0,
    follows: 1.5,
    heads_for: 0.5,
    to_fence: 0.6,
    to_corner: 0.3,
    own_sides: 0.5,
    sides: 0.6,
    looks: 0.4,
}
FINALS: dict[Maker, float] = {
    visits: 4.0,
    stops_short: 2.0,
    sides: 1.8,
    own_sides: 1.5,
    ends_between: 1.2,
    to_fence: 0.8,
    to_corner: 0.7,
    looks: 1.0,
    abreast: 0.8,
    passes: 0.8,
    circles: 2.0,
    returns: 1.2,
    goes_back: 1.5,
    waits: 0.5,
}
"""What tours begin with, go on with and end with, and how often."""
