"""From raw furniture centres to a scene in which everything stands.

Raw rooms give centres only, and the catalogue's pieces are not the sizes of the real ones: many would overlap. What
stands on other furniture in a home is put there; the rest is moved apart as little as possible; what then has no place
is left out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from wordwing.data.scenes import MAX_DISTANCE, MAX_PIECES, Scene
from wordwing.errors import WordwingError, did_you_mean
from wordwing.world.catalogue import landmark, landmarks
from wordwing.world.layout import OVERLAP, Placement
from wordwing.world.paths import Bools, Floats, lengths, line_distance

MAX_MOVE = 0.25
"""Farthest that a piece is moved to make room, metres: less than people's own vagueness about "in front of"."""

MAX_STRAY = 0.75
"""The same for a piece on walked ground. Nobody walks through furniture, so the real piece is not where its centre is:
an L-shaped counter has its centre on the free floor in its corner, and unwalked ground close by is what it covers."""

CLEARANCE = 0.05
"""Distance that pieces are kept from walked ground, metres; one that was nearer already comes no nearer."""

STEP = 0.02
"""Resolution of moves, metres."""

OVERHANG = 0.75
"""A guest's centre is at most this share of its host's footprint from the host's centre."""

NEAR = 1.0
"""Walked ground this far beyond a footprint counts as standing in front of the piece, metres."""

ROUNDS = 60
"""Attempts to find places for what the first pass left out or moved far."""

NAMED = (
    *("Fridge", "DiningTable", "Desk", "CounterTop", "Bed", "Sofa", "CoffeeTable", "Toilet", "BathtubBasin", "Dresser"),
    *("ArmChair", "Ottoman", "SinkBasin", "Microwave", "StoveBurner", "CoffeeMachine", "FloorLamp", "DeskLamp"),
    *("GarbageCan", "Safe", "Shelf", "SideTable", "HandTowelHolder", "Cabinet", "ToiletPaperHanger", "Drawer"),
)
"""Furniture by precedence: big pieces that people name often first, then small ones by how often they are named."""

ANCHORS = frozenset(NAMED[:11])
"""Big pieces that never make room for smaller ones. A sentence's path ends in front of the piece it names: were that
one moved, the path would no longer end there. Between two of them the one that is named less gives way."""

TABLES = ("CounterTop", "DiningTable", "Desk", "Dresser", "SideTable", "Cabinet", "CoffeeTable", "Drawer")
HOSTS: dict[str, tuple[str, ...]] = {
    "Microwave": (*TABLES, "StoveBurner", "Shelf"),
    "CoffeeMachine": (*TABLES, "Shelf"),
    "DeskLamp": (*TABLES, "Shelf", "Safe"),
    "Safe": (*TABLES, "Shelf"),
    "SinkBasin": ("CounterTop", "Cabinet", "Drawer"),
    "StoveBurner": ("CounterTop", "Cabinet", "Drawer"),
}
"""What stands on what in a home."""

LAST_HOSTS: dict[str, tuple[str, ...]] = {
    "Microwave": ("SinkBasin",),
    "Cabinet": ("CounterTop", "SinkBasin", "StoveBurner", "GarbageCan", "Toilet", "Drawer"),
    "Shelf": ("Desk", "Dresser", "CounterTop", "SideTable", "Cabinet", "Drawer", "GarbageCan", "Toilet"),
    "HandTowelHolder": ("SinkBasin", "CounterTop", "BathtubBasin", "Cabinet", "Drawer", "GarbageCan", "Toilet"),
    "ToiletPaperHanger": ("SinkBasin", "CounterTop", "Cabinet", "GarbageCan", "Toilet"),
    "Drawer": ("CounterTop", "Dresser", "Desk", "SideTable", "Cabinet"),
}
"""Where there is no room beside: what hangs on the wall above, and drawers, which a host's own front does not show."""

ON_HOST, ON_LAST_HOST = -0.12, 0.15
"""What standing on a host costs, in metres of moving."""

_OFFSETS = np.array(
    sorted(
        ((i * STEP, j * STEP) for i in range(-40, 41) for j in range(-40, 41) if math.hypot(i, j) * STEP <= MAX_STRAY),
        key=lambda offset: (round(math.hypot(*offset), 6), offset),
    )
)
"""[Q, 2] all moves, shortest first, metres."""
_DISTANCES = lengths(_OFFSETS)
_NEARBY = int((_DISTANCES <= MAX_MOVE + 1e-9).sum())


@dataclass(frozen=True)
class FurnishingReport:
    """What became of a room's furniture, or of several rooms'."""

    pieces: int = 0
    """All of it, unknown names not counted."""
    kept: int = 0
    stacked: int = 0
    moved: tuple[float, ...] = ()
    """How far each piece that did not stay was moved, metres."""
    left_out: tuple[str, ...] = ()
    """Names of the pieces that found no place."""
    unknown: tuple[str, ...] = ()
    """Names that were skipped."""

    @classmethod
    def total(cls, reports: Iterable[FurnishingReport]) -> FurnishingReport:
        """All rooms together."""
        rows = list(reports)
        return cls(
            sum(row.pieces for row in rows),
            sum(row.kept for row in rows),
            sum(row.stacked for row in rows),
            tuple(distance for row in rows for distance in row.moved),
            tuple(name for row in rows for name in row.left_out),
            tuple(name for row in rows for name in row.unknown),
        )


def furnish(
    pieces: Sequence[tuple[str, float, float]],
    walked: Floats | None = None,
    where: str = "scene",
    skip_unknown: bool = False,
) -> tuple[Scene, FurnishingReport]:
    """Make a scene of raw furniture, the same one every time.

    Fronts are turned, by quarter turns as furniture stands in rooms, to where people stand near a piece: the walked
    ground close to it, or without any the middle of the room. Guests look where their hosts do.

    Args:
        pieces: Names of the catalogue's furniture and raw centres, metres, scene frame.
        walked: [E, 2, 2] ends of straight lines that people walked, metres, scene frame: ground that stays free.
        where: Begins each complaint: the scene's name.
        skip_unknown: Leave out furniture that the catalogue does not have, instead of complaining.
    """
    known = {entry.name for entry in landmarks("house")}
    unknown = tuple(name for name, _, _ in pieces if name not in known)
    if unknown and not skip_unknown:
        hint = did_you_mean(unknown[0][:40], sorted(known)) or ", which is no furniture of the catalogue"
        raise WordwingError(f'{where}: a piece is called "{unknown[0][:60]}"{hint}')
    pieces = [piece for piece in pieces if piece[0] in known]
    if len(pieces) > MAX_PIECES:
        raise WordwingError(f"{where}: there are {len(pieces)} pieces of furniture; {MAX_PIECES} is the most")
    for name, x, y in pieces:
        if not max(abs(x), abs(y)) <= MAX_DISTANCE:
            raise WordwingError(
                f"{where}: {name} is at ({x:.6g}, {y:.6g}); x and y must be between ±{MAX_DISTANCE:g} m"
            )
    if walked is None:
        walked = np.zeros((0, 2, 2))
    room = _Room(pieces, walked)
    spots = room.solve()
    yaws = [_front(room.centres, index, room.footprints[index] + NEAR, walked) for index in range(len(pieces))]
    scene = Scene(
        tuple(
            Placement(
                room.names[index],
                round(spot.x, 3) + 0.0,
                round(spot.y, 3) + 0.0,
                yaws[index if spot.host is None else spot.host],
                spot.elevation,
            )
            for index, spot in sorted(spots.items())
        )
    )
    report = FurnishingReport(
        pieces=len(pieces),
        kept=len(spots),
        stacked=sum(spot.host is not None for spot in spots.values()),
        moved=tuple(round(spot.move, 3) for _, spot in sorted(spots.items()) if spot.move > 0),
        left_out=tuple(name for index, name in enumerate(room.names) if index not in spots),
        unknown=unknown,
    )
    return scene, report


class _Spot(NamedTuple):
    """Where a piece ends up."""

    x: float
    y: float
    elevation: float
    host: int | None
    move: float
    """Distance from its raw centre, metres."""
    cost: float
    """What this place is worth, in metres of moving; less is better."""


_Spots = dict[int, _Spot]


@dataclass
class _Room:
    """The search for places: pieces one after the other, then again in other orders around what went wrong."""

    pieces: Sequence[tuple[str, float, float]]
    walked: Floats
    _moves: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names = [name for name, _, _ in self.pieces]
        self.centres = np.array([(x, y) for _, x, y in self.pieces], float).reshape(-1, 2)
        kinds = [landmark(name) for name in self.names]
        self.footprints = np.array([kind.footprint for kind in kinds], float)
        self.heights = np.array([kind.height for kind in kinds], float)
        self.ranks = [NAMED.index(name) if name in NAMED else len(NAMED) for name in self.names]
        self.apart: Floats = lengths(self.centres[:, None] - self.centres)  # [L, L]

    def solve(self) -> _Spots:
        order = sorted(range(len(self.names)), key=lambda i: (self.names[i] in HOSTS, self.ranks[i], i))
        anchors = self._insert([i for i in order if self.names[i] in ANCHORS], {})
        best = self._insert([i for i in order if self.names[i] not in ANCHORS], anchors)
        cost = self._cost(best)
        rng = np.random.default_rng(0)
        for _ in range(ROUNDS):
            missing = [i for i in order if i not in best and i not in anchors and self.names[i] not in ANCHORS]
            trouble = missing + [i for i in order if i in best and i not in anchors and best[i].move > 2.5 * STEP]
            if not trouble:
                break
            centre = trouble[rng.integers(len(trouble))]
            close = [i for i in order if i in best and i not in anchors and self.apart[i, centre] < 1.2]
            again = {centre, *missing, *(i for i in close if rng.random() < 0.8)}
            again |= {i for i, spot in best.items() if spot.host in again}
            shuffled = [int(i) for i in rng.permutation(sorted(again))]
            if rng.random() < 0.5:
                shuffled.sort(key=lambda i: self.names[i] in HOSTS)
            tried = self._insert(shuffled, {i: spot for i, spot in best.items() if i not in again})
            if self._cost(tried) < cost - 1e-9:
                best, cost = tried, self._cost(tried)
        return best

    def _insert(self, order: list[int], placed: _Spots) -> _Spots:
        spots = dict(placed)
        for index in order:
            spot = self._best(index, spots)
            if spot is not None:
                spots[index] = spot
        return spots

    def _cost(self, spots: _Spots) -> float:
        """Metres of moving; leaving a piece out costs 1 to 3.6, the more often it is named the more."""
        left_out = [rank for index, rank in enumerate(self.ranks) if index not in spots]
        return sum(spot.cost for spot in spots.values()) + sum(1 + (len(NAMED) - rank) / 10 for rank in left_out)

    def _best(self, index: int, spots: _Spots) -> _Spot | None:
        """The cheapest place for a piece among those that have one; None if there is none."""
        places, moves = self._reach(index)
        others = list(spots)
        centres = np.array([(spot.x, spot.y) for spot in spots.values()], float).reshape(-1, 2)
        bottoms = np.array([spot.elevation for spot in spots.values()], float)
        tops = bottoms + self.heights[others]
        apart = lengths(places[:, None] - centres)  # [Q, placed]
        over = apart < self.footprints[others] + self.footprints[index] - 1e-6
        found: list[_Spot] = []

        def consider(elevation: float, host: int | None, allowed: Bools, price: float) -> None:
            beside = (bottoms < elevation + self.heights[index] - OVERLAP) & (elevation < tops - OVERLAP)
            free = allowed & ~over[:, beside].any(axis=1)
            if free.any():
                at = int(free.argmax())
                x, y = places[at].tolist()
                move = float(moves[at])
                found.append(_Spot(x, y, elevation, host, move, move + price))

        consider(0.0, None, np.ones(len(places), bool), 0.0)
        for column, host in enumerate(others):
            touching = self.apart[index, host] < self.footprints[index] + self.footprints[host] - OVERLAP
            if spots[host].host is not None or not touching:
                continue
            on_top = apart[:, column] <= OVERHANG * self.footprints[host] + 1e-9
            if self.names[host] in HOSTS.get(self.names[index], ()):
                consider(float(self.heights[host]), host, on_top, ON_HOST)
            elif self.names[host] in LAST_HOSTS.get(self.names[index], ()):
                consider(float(self.heights[host]), host, on_top, ON_LAST_HOST)
        return min(found, key=lambda spot: spot.cost, default=None)

    def _reach(self, index: int) -> tuple[Floats, Floats]:
        """Places [Q, 2] off walked ground that a piece may be moved to, nearest first, and how far they are [Q]."""
        if index not in self._moves:
            centre, footprint = self.centres[index], self.footprints[index]
            reach = MAX_STRAY + footprint + CLEARANCE
            low, high = self.walked.min(axis=1), self.walked.max(axis=1)  # [E, 2]
            near = self.walked[((low <= centre + reach) & (high >= centre - reach)).all(axis=1)]
            gap = float(line_distance(centre[None], near)[0] - footprint)
            count = _NEARBY if gap >= 0 else len(_OFFSETS)
            places = centre + _OFFSETS[:count]
            free = line_distance(places, near) - footprint >= (min(CLEARANCE, gap) if gap >= 0 else 0.0) - 1e-9
            self._moves[index] = places[free], _DISTANCES[:count][free]
        return self._moves[index]


def _front(centres: Floats, index: int, near: float, walked: Floats) -> float:
    """Yaw of a piece, radians, a multiple of a quarter turn."""
    stood = walked.mean(axis=1)  # [E, 2]
    if len(stood):
        away = lengths(stood - centres[index])
        # Where nobody came near, the nearest ground that was walked.
        towards = stood[away <= max(near, away.min())].mean(axis=0)
    else:
        towards = (centres.min(axis=0) + centres.max(axis=0)) / 2
    x, y = (towards - centres[index]).tolist()
    return round(math.remainder(round(math.atan2(y, x) / (math.pi / 2)) * math.pi / 2, 2 * math.pi), 5)
