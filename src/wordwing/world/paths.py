"""Curved paths past landmarks: the noisy walk whose picture people were asked to describe.

A walk starts on the keep-out circle of one landmark and heads for random points on the circles of
others, one after another, with noise on every step; circles push it out, so it curves around them.
A walk that leaves the arena, meets itself, takes too long or barely touches a landmark that it visits
is thrown away and begun anew. Most are, so candidates walk in large batches, one array row each.
Lakes, which bent the authors' LANI walks, are left out: generated corpora have none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF, ARENA_SIZE, CONFIG_UNITS
from wordwing.world.layout import Layout

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNIT = ARENA_SIZE / CONFIG_UNITS
"""The authors' unit of length, metres."""

TOLERANCE = 0.02
"""How deep a path, the straight lines between its points included, may cut a circle, metres."""

MAX_POINTS = 128
"""Points of the longest walk kept; at 0.188 m apart three times the usual number."""

import os
LANES = int(os.environ.get('LANES',4096))
"""Candidate walks in one batch."""

START_EDGE = 45 * UNIT
"""Least distance from the fences of the random place from which a start is chosen, metres."""

FLIGHT_SPACING = 0.02
HEADING_REACH = 0.2
"""Distance between the points of a flight, and over which its first heading is taken, metres."""


@dataclass(frozen=True)
class WalkConfig:
    """The rules of the walk; lengths in metres."""

    step: float = 4 * UNIT
    """Length of a step before noise."""
    noise: float = 1.0
    """Greatest length of a step's noise, in steps."""
    spacing: float = 40 * UNIT
    """Distance walked from one point of the path to the next."""
    reached: float = 20 * UNIT
    """A target is reached at less than this distance."""
    max_steps: int = 500
    """Most steps for one target."""
    visits: int = 5
    """Landmarks visited, the first included; at most all but one of those on the floor."""
    closest: int = 4
    """The next landmark is one of this many closest."""
    min_leg: float = 200 * UNIT
    """Least distance to the next landmark's centre."""
    linger: int = 4
    """Least number of points within `spacing` of the circle of each landmark after the first."""
    edge_margin: float = 0.0
    """Least distance of points and targets from the fences."""
    aims: int = 1
    """Points on the next landmark's circle tried as target before the walk is thrown away."""

    @classmethod
    def field(cls) -> WalkConfig:
        """LANI's walk."""
        return cls()

    @classmethod
    def cage(cls) -> WalkConfig:
        """REAL's walk: rougher, shorter, and 0.75 m from the fences."""
        return cls(noise=1.5, visits=4, edge_margin=160 * UNIT)

    @classmethod
    def house(cls) -> WalkConfig:
        """For furnished rooms, where walls and neighbours take much of each circle."""
        return cls(visits=4, linger=3, aims=16)


@dataclass(frozen=True)
class Walk:
    """An accepted walk."""

    points: Floats
    """[P, 2] every `spacing` metres along it, world frame."""
    visited: tuple[int, ...]
    """Indices of the landmarks it visits, in order."""


class Flight(NamedTuple):
    """A path to fly and the heading to begin with."""

    path: Floats
    """[P, 2] every 2 cm, metres, world frame."""
    start_yaw: float
    """Radians, world frame."""


def sample_walks(
    layouts: Sequence[Layout],
    rng: np.random.Generator,
    config: WalkConfig,
    attempts: int = 3000,
    starts: Sequence[Walk | None] | None = None,
) -> list[Walk | None]:
    """Draw one accepted walk for each layout.

    Attempts of a layout are independent and the first success by number is taken, not by time, so
    walking many at once does not favour short walks.

    Args:
        layouts: The arenas; the same one may occur several times.
        rng: Source of everything random.
        config: Rules of the walk.
        attempts: Candidates per layout before giving up.
        starts: For each layout the walk to go on from, or None for a new one: the new walk starts at
            its last point, with its last landmark counted as visited.

    Returns:
        For each layout a walk, or None where all attempts failed or fewer than three landmarks stand
        on the floor. Landmarks on top of others are never visited, only kept clear of.
    """
    walks: list[Walk | None] = [None] * len(layouts)
    circles = _Circles.of(layouts)
    best = np.full(len(layouts), attempts)  # [N] number of the first attempt that succeeded
    waiting = np.flatnonzero(circles.visitable.sum(axis=1) > 2)
    tried = 0
    while waiting.size and tried < attempts:
        each = min(max(LANES // waiting.size, 1), attempts - tried)
        for begin in range(0, waiting.size, LANES):
            layout = np.repeat(waiting[begin : begin + LANES], each)
            number = tried + np.arange(layout.size) % each
            walkers = _Walkers.start(layout, number, circles, starts, config, rng)
            while walkers.alive.any():
                for row in walkers.step(config, rng):
                    index = walkers.layout[row]
                    if walkers.attempt[row] < best[index]:
                        best[index] = walkers.attempt[row]
                        walks[index] = walkers.walk(row)
                walkers.alive &= walkers.attempt < best[walkers.layout]
                if walkers.alive.mean() < 0.8:
                    walkers.keep(walkers.alive)
        tried += each
        waiting = waiting[best[waiting] == attempts]
    return walks


@dataclass(frozen=True)
class _Circles:
    """The keep-out circles of N layouts, padded to L."""

    centre: Floats  # [N, L, 2] metres, world frame
    radius: Floats  # [N, L] metres
    visitable: Bools  # [N, L] stands on the floor

    @classmethod
    def of(cls, layouts: Sequence[Layout]) -> _Circles:
        most = max((len(layout.landmarks) for layout in layouts), default=0)
        # Padding lies far outside the arena.
        centre = np.full((len(layouts), most, 2), 1e3)
        radius = np.zeros((len(layouts), most))
        visitable = np.zeros((len(layouts), most), bool)
        for row, layout in enumerate(layouts):
            used = slice(len(layout.landmarks))
            centre[row, used] = layout.centres
            radius[row, used] = layout.keep_out
            visitable[row, used] = [entry.elevation == 0 for entry in layout.landmarks]
        return cls(centre, radius, visitable)


@dataclass
class _Walkers:
    """B candidate walks in lock-step, one row each."""

    layout: Ints  # [B] index of its layout
    attempt: Ints  # [B] number among the attempts of that layout
    alive: Bools  # [B] neither thrown away nor finished
    centre: Floats  # [B, L, 2] metres, world frame
    radius: Floats  # [B, L] metres
    ahead: Bools  # [B, L] may still be visited
    goal: Ints  # [B] landmarks to visit
    position: Floats  # [B, 2] metres, world frame
    target: Floats  # [B, 2] metres, world frame
    visited: Ints  # [B, V] landmarks in order, the target's included
    visits: Ints  # [B] how many of them
    steps: Ints  # [B] taken towards the target
    travelled: Floats  # [B] metres
    points: Floats  # [B, P, 2] metres, world frame
    count: Ints  # [B] how many of them

    @classmethod
    def start(
        cls,
        layout: Ints,
        attempt: Ints,
        circles: _Circles,
        starts: Sequence[Walk | None] | None,
        config: WalkConfig,
        rng: np.random.Generator,
    ) -> _Walkers:
        """Put walkers at their starts, each with a first target; the hopeless are dropped."""
        lanes = layout.size
        visitable = circles.visitable[layout]
        limit = ARENA_HALF - START_EDGE
        walkers = cls(
            layout=layout,
            attempt=attempt,
            alive=np.ones(lanes, bool),
            centre=circles.centre[layout],
            radius=circles.radius[layout],
            ahead=visitable,
            goal=np.minimum(config.visits, visitable.sum(axis=1) - 1),
            position=rng.uniform(-limit, limit, (lanes, 2)),
            target=np.zeros((lanes, 2)),
            visited=np.zeros((lanes, config.visits), int),
            visits=np.zeros(lanes, int),
            steps=np.zeros(lanes, int),
            travelled=np.zeros(lanes),
            points=np.zeros((lanes, 0, 2)),
            count=np.ones(lanes, int),
        )
        # A start is chosen like any target: a point on a circle, seen from a random place.
        walkers.aim(np.flatnonzero(walkers.visits == 0), config, rng)
        walkers.keep(walkers.alive)
        walkers.aim(np.arange(walkers.alive.size), config, rng)
        walkers.keep(walkers.alive)
        walkers.points = np.zeros((walkers.alive.size, MAX_POINTS, 2))
        walkers.points[:, 0] = walkers.position
        return walkers

    def _go_on_from(self, row: int, walk: Walk) -> None:
        last = walk.visited[-1]
        self.position[row] = walk.points[-1]
        self.ahead[row, last] = False
        self.visited[row, 0] = last
        self.visits[row] = 1

    def keep(self, rows: Bools) -> None:
        """Drop all other rows."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name)[rows])

    def walk(self, row: int) -> Walk:
        """A finished walk."""
        visited = self.visited[row, : self.visits[row]]
        return Walk(self.points[row, : self.count[row]].copy(), tuple(visited.tolist()))

    def aim(self, rows: Ints, config: WalkConfig, rng: np.random.Generator) -> None:
        """Choose the next landmark and a point on its circle; walkers without any die."""
        each = np.arange(rows.size)
        centre, radius = self.centre[rows], self.radius[rows]
        distance = _length(centre - self.position[rows, None])  # [R, L]
        distance[~self.ahead[rows] | (distance < config.min_leg)] = np.inf
        choices = np.minimum(np.isfinite(distance).sum(axis=1), config.closest)
        rank = (rng.random(rows.size) * choices).astype(int)
        chosen = np.argsort(distance, axis=1)[each, rank]
        angle = rng.uniform(-math.pi, math.pi, (rows.size, config.aims))
        around = np.stack([np.cos(angle), np.sin(angle)], axis=-1)  # [R, A, 2]
        targets = centre[each, chosen, None] + radius[each, chosen, None, None] * around
        inside = (np.abs(targets) <= ARENA_HALF - config.edge_margin).all(axis=-1)
        gaps = _length(targets[:, :, None] - centre[:, None]) - radius[:, None]  # [R, A, L]
        free = inside & (gaps > -TOLERANCE).all(axis=-1)  # [R, A]
        self.target[rows] = targets[each, free.argmax(axis=1)]
        self.visited[rows, self.visits[rows]] = chosen
        self.visits[rows] += 1
        self.ahead[rows, chosen] = False
        self.steps[rows] = 0
        self.alive[rows] &= (choices > 0) & free.any(axis=1)

    def step(self, config: WalkConfig, rng: np.random.Generator) -> Ints:
        """Move all walkers one step; returns the rows of those that completed a good walk."""
        heading = self.target - self.position
        angle = rng.uniform(-math.pi, math.pi, len(heading))
        noise = rng.uniform(0.0, config.step * config.noise, len(heading))
        position = self.position + heading * (config.step / _length(heading))[:, None]
        position += noise[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        self._push_out(position)
        self.travelled += _length(position - self.position)
        self.position = position
        self.steps += 1
        self.alive &= (np.abs(position) <= ARENA_HALF).all(axis=-1)
        self.alive &= self.steps <= config.max_steps
        self._add_points(np.flatnonzero(self.alive & (self.travelled >= self.count * config.spacing)), config)
        arrived = self.alive & (_length(self.target - position) < config.reached)
        finished = arrived & (self.visits == self.goal)
        self.alive &= ~finished
        self.aim(np.flatnonzero(arrived & ~finished), config, rng)
        return np.array([row for row in np.flatnonzero(finished) if self._is_good(row, config)], int)

    def _push_out(self, position: Floats) -> None:
        """Move positions [B, 2] inside a circle to its rim, in place."""
        x = position[:, :1] - self.centre[..., 0]  # [B, L]
        y = position[:, 1:] - self.centre[..., 1]
        rows, hit = np.nonzero(x * x + y * y < self.radius * self.radius)
        centre, radius = self.centre[rows, hit], self.radius[rows, hit]
        offset = position[rows] - centre
        position[rows] = centre + offset * (radius / _length(offset))[:, None]
        # Where circles overlap, the rim of one may lie deep inside another.
        gaps = _length(position[rows, None] - self.centre[rows]) - self.radius[rows]
        self.alive[rows] &= (gaps > -TOLERANCE).all(axis=-1)

    def _add_points(self, rows: Ints, config: WalkConfig) -> None:
        """Append positions to paths; walkers too near to the fences or to their own path die."""
        if not rows.size:
            return
        here, count = self.position[rows], self.count[rows]
        inside = (np.abs(here) <= ARENA_HALF - config.edge_margin).all(axis=-1)
        older = np.arange(count.max()) < count[:, None] - 2
        apart = _length(self.points[rows, : count.max()] - here[:, None])  # [R, P]
        meets = (older & (apart <= config.spacing)).any(axis=-1)
        self.points[rows, count] = here
        self.count[rows] += 1
        self.alive[rows] &= inside & ~meets & (self.count[rows] < MAX_POINTS)

    def _is_good(self, row: int, config: WalkConfig) -> bool:
        """Whether a finished walk lingers at its landmarks and never cuts across a circle."""
        walk = self.walk(row)
        later = list(walk.visited[1:])
        rim = _length(walk.points[:, None] - self.centre[row]) - self.radius[row]  # [P, L]
        lingers = (rim[:, later] < config.spacing).sum(axis=0) >= config.linger
        return bool(lingers.all()) and _clear(walk.points, self.centre[row], self.radius[row])


def _clear(path: Floats, centres: Floats, radii: Floats) -> bool:
    """Whether the straight lines between points [P, 2] stay out of circles [L, 2], [L]."""
    line = np.diff(path, axis=0)[:, None]  # [P - 1, 1, 2]
    offset = centres - path[:-1, None]  # [P - 1, L, 2]
    along = (offset * line).sum(axis=-1) / (line * line).sum(axis=-1)
    nearest = offset - line * along.clip(0.0, 1.0)[..., None]
    return bool((_length(nearest) > radii - TOLERANCE).all())


def _length(vectors: Floats) -> Floats:
    """[..., 2] to [...]; several times as fast as `np.linalg.norm` for such short vectors."""
    x, y = vectors[..., 0], vectors[..., 1]
    return np.sqrt(x * x + y * y)


def path_length(path: Floats) -> float:
    """Length in metres of the polyline through points [P, 2]."""
    return float(_length(np.diff(path, axis=0)).sum())


def resample(path: Floats, spacing: float) -> Floats:
    """Points at even distances along a polyline, both ends included.

    Args:
        path: [P, 2] metres, at least one point.
        spacing: Wanted distance from one to the next, metres; the nearest that divides the length.

    Returns:
        [Q, 2] metres; one point if the path has no length.
    """
    length = path_length(path)
    return _along(path, np.linspace(0.0, length, max(round(length / spacing), length > 0) + 1))


def _along(path: Floats, distances: Floats) -> Floats:
    """Points [Q, 2] at distances [Q] from the start of a polyline [P, 2], metres."""
    passed = np.concatenate([[0.0], np.cumsum(_length(np.diff(path, axis=0)))])
    return np.stack([np.interp(distances, passed, axis) for axis in path.T], axis=-1)


def sample_flights(
    layouts: Sequence[Layout],
    rng: np.random.Generator,
    config: WalkConfig,
    length: tuple[float, float] = (1.0, 3.0),
    attempts: int = 3000,
) -> list[Flight | None]:
    """Cut a stretch of random length out of a random walk in each layout.

    Args:
        layouts: The arenas.
        rng: Source of everything random.
        config: Rules of the walks.
        length: Least and greatest length of a stretch, metres.
        attempts: Candidates per layout before giving up.

    Returns:
        For each layout a flight, or None where no walk was found or it was too short.
    """
    walks = sample_walks(layouts, rng, config, attempts)
    return [None if walk is None else _cut(walk.points, length, rng) for walk in walks]


def sample_flight(
    layout: Layout,
    rng: np.random.Generator,
    config: WalkConfig,
    length: tuple[float, float] = (1.0, 3.0),
) -> Flight:
    """One of `sample_flights`; a layout without any is a `WordwingError`."""
    (flight,) = sample_flights([layout], rng, config, length)
    if flight is None:
        raise WordwingError(
            "the layout leaves no room for a path; "
            "at least three landmarks must stand on the floor with open floor between them"
        )
    return flight


def _cut(path: Floats, length: tuple[float, float], rng: np.random.Generator) -> Flight | None:
    whole = path_length(path)
    if whole < length[0]:
        return None
    wanted = rng.uniform(length[0], min(length[1], whole))
    begin = rng.uniform(0.0, whole - wanted)
    stretch = _along(path, begin + np.linspace(0.0, wanted, round(wanted / FLIGHT_SPACING) + 1))
    ahead = stretch[min(round(HEADING_REACH / FLIGHT_SPACING), len(stretch) - 1)] - stretch[0]
    return Flight(stretch, math.atan2(ahead[1], ahead[0]))
