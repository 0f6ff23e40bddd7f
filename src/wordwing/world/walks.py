"""Curved paths past landmarks: the noisy walks whose images people were asked to describe.

A walk starts on the keep-out circle of one landmark and heads for random points on the circles of
others, one after another, with noise on every step; circles push it out, so it curves around them.
A walk that leaves the arena, meets itself, takes too long or barely touches a landmark it visits is
thrown away and begun anew. Most are, so candidates walk in large batches, one array row each.
Lakes, which bent the authors' LANI walks, are left out: generated corpora have none.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from wordwing.frames import ARENA_HALF, CONFIG_UNIT
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout
from wordwing.world.paths import Bools, Floats, Ints, lengths, line_distance, lines_of

TOLERANCE = 0.02
"""How deep a path, the straight lines between its points included, may cut a circle, metres."""

MAX_POINTS = 128
"""Longest walk kept; field walks have 48 points on average, and hardly any has 90."""

LANES = 4096
"""Candidate walks in one batch."""


@dataclass(frozen=True)
class WalkConfig:
    """The rules of a walk; lengths in metres."""

    step: float = 4 * CONFIG_UNIT
    """Length of a step before noise."""
    noise: float = 1.0
    """Greatest length of the noise on a step, in steps."""
    spacing: float = 40 * CONFIG_UNIT
    """Distance walked from one point of the path to the next."""
    reached: float = 20 * CONFIG_UNIT
    """A target is reached from less than this distance."""
    max_steps: int = 500
    """Most steps to one target."""
    visits: int = 5
    """Landmarks visited, the first included; at most all but one of those on the floor."""
    closest: int = 4
    """The next landmark is one of this many closest that qualify."""
    min_leg: float = 200 * CONFIG_UNIT
    """Least distance to the centre of the next landmark."""
    linger: int = 4
    """Least number of points within `spacing` of the circle of each landmark after the first."""
    edge_margin: float = 0.0
    """Least distance of points and targets from the fences."""
    aims: int = 1
    """Points on the next landmark's circle tried as target before a walk is thrown away."""

    def __post_init__(self) -> None:
        if self.visits < 2:
            raise ValueError(f"a walk visits at least 2 landmarks, not {self.visits}")


WALK_CONFIGS: dict[Corpus | Literal["errand"], WalkConfig] = {
    "field": WalkConfig(),
    "cage": WalkConfig(noise=1.5, visits=4, edge_margin=160 * CONFIG_UNIT),
    "house": WalkConfig(visits=4, linger=3, aims=16),
    "errand": WalkConfig(noise=0.75, visits=2, closest=100, min_leg=0.6, linger=1, edge_margin=0.3, aims=4),
}
"""Rules by kind of world: LANI's walk; REAL's, which is rougher, shorter and 0.75 m from the fences; one for furnished
rooms, where walls and neighbours take much of each circle; and one to any landmark, however far, without detours."""


@dataclass(frozen=True)
class Walk:
    """An accepted walk."""

    points: Floats
    """[P, 2] its start, then where it was after each `spacing` walked; metres, world frame."""
    visited: tuple[int, ...]
    """Indices of the landmarks that it visits, in order."""


def sample_walks(
    layouts: Sequence[Layout],
    rng: np.random.Generator,
    config: WalkConfig,
    attempts: int = 3000,
    starts: Sequence[Walk | None] | None = None,
) -> list[Walk | None]:
    """Draw one accepted walk for each layout.

    Attempts of a layout are numbered and the first that succeeds is taken: first by number, not by
    time, so walking many side by side does not favour short walks.

    Args:
        layouts: The arenas; the same one may occur several times.
        rng: Source of everything random.
        config: Rules of the walk.
        attempts: Candidates per layout before giving up.
        starts: For each layout a walk in it to go on from, or None: the new walk starts at its last
            point, with its last landmark counted as visited.

    Returns:
        For each layout a walk, or None where all attempts failed or fewer than three landmarks
        stand on the floor. What stands on furniture is kept clear of but never visited.
    """
    walks: list[Walk | None] = [None] * len(layouts)
    circles = _circles(layouts)
    best = np.full(len(layouts), attempts)  # [N] number of the attempt whose walk is taken
    waiting = np.flatnonzero(circles.visitable.sum(axis=0) > 2)
    tried = 0
    while waiting.size and tried < attempts:
        lanes = LANES if waiting.size > 16 else LANES // 4  # a few layouts are done sooner with fewer at once
        each = min(max(lanes // waiting.size, 1), attempts - tried)
        for first in range(0, waiting.size, LANES):
            layout = np.repeat(waiting[first : first + LANES], each)
            attempt = tried + np.arange(layout.size) % each
            walkers = _Walkers(layout, attempt, circles, config)
            walkers.set_out(starts or [None] * len(layouts), rng)
            while walkers.alive.size:
                for row in walkers.step(rng):
                    if walkers.attempt[row] < best[walkers.layout[row]]:
                        best[walkers.layout[row]] = walkers.attempt[row]
                        walks[walkers.layout[row]] = walkers.walk(row)
                        walkers.alive &= walkers.attempt < best[walkers.layout]
                if np.count_nonzero(walkers.alive) / walkers.alive.size < 0.8:
                    walkers.keep(walkers.alive)
        tried += each
        waiting = waiting[best[waiting] == attempts]
    return walks


class _Circles(NamedTuple):
    """The keep-out circles of N layouts, padded to L of them with points far away."""

    centre: Floats  # [2, L, N] metres, world frame
    radius: Floats  # [L, N] metres
    visitable: Bools  # [L, N] the landmark stands on the floor
    crowded: Bools  # [L, N] the circle meets another one


def _circles(layouts: Sequence[Layout]) -> _Circles:
    shape = max((len(layout.landmarks) for layout in layouts), default=0), len(layouts)
    circles = _Circles(np.full((2, *shape), 1e3), np.zeros(shape), np.zeros(shape, bool), np.zeros(shape, bool))
    for index, layout in enumerate(layouts):
        used = ..., slice(len(layout.landmarks)), index
        circles.centre[used] = centre = layout.centres.T
        circles.radius[used] = radius = layout.keep_out
        meets = _lengths(centre[:, None] - centre[..., None]) < radius + radius[:, None]
        circles.crowded[used] = meets.sum(axis=1) > 1  # each meets itself
        circles.visitable[used] = [entry.elevation == 0 for entry in layout.landmarks]
    return circles


class _Walkers:
    """B candidate walks in lock-step; metres and world frame throughout.

    The batch is the last dimension of every array: numpy is fast along long rows of memory, and L is only a dozen.
    Rows of a batch are taken with `take` and `compress`, which keep it last in memory too; indexing puts it first.
    """

    def __init__(self, layout: Ints, attempt: Ints, circles: _Circles, config: WalkConfig) -> None:
        lanes = layout.size
        self.config = config
        self.layout = layout  # [B] index of its layout
        self.attempt = attempt  # [B] number among the attempts of that layout
        self.alive = np.ones(lanes, bool)  # [B] neither thrown away nor finished
        self.centre = circles.centre.take(layout, axis=-1)  # [2, L, B]
        self.radius = circles.radius.take(layout, axis=-1)  # [L, B]
        self.square = self.radius * self.radius  # [L, B]
        self.crowded = circles.crowded.take(layout, axis=-1)  # [L, B] meets another circle
        self.ahead = circles.visitable.take(layout, axis=-1)  # [L, B] may still be visited
        self.goal = np.minimum(config.visits, self.ahead.sum(axis=0) - 1)  # [B] visits to make
        self.visited = np.zeros((config.visits, lanes), int)  # [V, B] in order, target included
        self.visits = np.zeros(lanes, int)  # [B] how many of them
        self.position = np.zeros((2, lanes))  # [2, B]
        self.target = np.zeros((2, lanes))  # [2, B]
        self.steps = np.zeros(lanes, int)  # [B] taken towards the target
        self.travelled = np.zeros(lanes)  # [B]
        self.due = np.full(lanes, config.spacing)  # [B] when the next point is noted
        self.points = np.zeros((2, 0, lanes))  # [2, P, B] the path so far
        self.count = np.ones(lanes, int)  # [B] how many of them

    def keep(self, rows: Bools) -> None:
        """Forget all other rows."""
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(self, name, value.compress(rows, axis=-1))

    def walk(self, row: int) -> Walk:
        """The walk of one row so far."""
        visited = self.visited[: self.visits[row], row]
        return Walk(self.points[:, : self.count[row], row].T.copy(), tuple(visited.tolist()))

    def set_out(self, starts: Sequence[Walk | None], rng: np.random.Generator) -> None:
        """Go to the starts and choose first targets; rows without either are forgotten."""
        self.position = rng.uniform(-ARENA_HALF, ARENA_HALF, (self.alive.size, 2)).T.copy()
        for row, index in enumerate(self.layout):
            if (before := starts[index]) is not None:
                self.position[:, row] = before.points[-1]
                self.visited[0, row] = before.visited[-1]
                self.visits[row] = 1
                self.ahead[before.visited[-1], row] = False
        # Other starts are chosen as targets are, seen from a random place.
        fresh = np.flatnonzero(self.visits == 0)
        self.aim(fresh, rng)
        self.position[:, fresh] = self.target[:, fresh]
        self.keep(self.alive)
        self.aim(np.arange(self.alive.size), rng)
        self.keep(self.alive)
        self.points = np.zeros((2, MAX_POINTS, self.alive.size))
        self.points[:, 0] = self.position

    def aim(self, rows: Ints, rng: np.random.Generator) -> None:
        """Choose the next landmark of some rows and a target on its circle; without, they die."""
        if not rows.size:
            return
        config, each = self.config, np.arange(rows.size)
        centre, radius = self.centre.take(rows, axis=-1), self.radius.take(rows, axis=-1)
        distance = _lengths(centre - self.position.take(rows, axis=-1)[:, None])  # [L, R]
        distance[~self.ahead.take(rows, axis=-1) | (distance < config.min_leg)] = np.inf
        choices = np.minimum(np.isfinite(distance).sum(axis=0), config.closest)
        rank = (rng.random(rows.size) * choices).astype(int)
        chosen = np.argsort(distance, axis=0)[rank, each]
        around = _directions((rows.size, config.aims), rng)  # [2, R, A]
        targets = centre[:, chosen, each, None] + radius[chosen, each, None] * around
        gaps = _lengths(targets[:, None] - centre[..., None]) - radius[..., None]  # [L, R, A]
        free = _inside(targets, ARENA_HALF - config.edge_margin) & (gaps > -TOLERANCE).all(axis=0)  # [R, A]
        self.target[:, rows] = targets[:, each, free.argmax(axis=1)]
        self.visited[self.visits[rows], rows] = chosen
        self.visits[rows] += 1
        self.ahead[chosen, rows] = False
        self.steps[rows] = 0
        self.alive[rows] &= (choices > 0) & free.any(axis=1)

    def step(self, rng: np.random.Generator) -> list[int]:
        """Move everyone one step; returns the rows that have just finished a good walk."""
        config = self.config
        heading = self.target - self.position
        noise = rng.uniform(0.0, config.step * config.noise, len(self.alive))
        position = self.position + heading * (config.step / _lengths(heading))
        position += _directions(noise.shape, rng) * noise
        self._push_out(position)
        self.travelled += _lengths(position - self.position)
        self.position = position
        self.steps += 1
        self.alive &= _inside(position, ARENA_HALF) & (self.steps <= config.max_steps)
        self._add_points()
        [arrived] = (self.alive & (_lengths(self.target - position) < config.reached)).nonzero()
        last = self.visits[arrived] == self.goal[arrived]
        finished = arrived[last]
        self.alive[finished] = False
        self.aim(arrived[~last], rng)
        return [row for row in finished.tolist() if self._is_good(row)]

    def _push_out(self, position: Floats) -> None:
        """Move positions [2, B] that are inside a circle to its rim, in place."""
        offset = position[:, None] - self.centre  # [2, L, B]
        x, y = offset * offset
        hit, rows = (x + y < self.square).nonzero()
        if not rows.size:
            return
        centre, radius = self.centre[:, hit, rows], self.radius[hit, rows]
        offset = position[:, rows] - centre  # [2, R]
        position[:, rows] = centre + offset * (radius / _lengths(offset))
        # Where circles overlap, the rim of one can be deep inside another: a dead end.
        rows = rows[self.crowded[hit, rows]]
        if rows.size:
            gaps = _lengths(position[:, None, rows] - self.centre[..., rows]) - self.radius[:, rows]
            self.alive[rows] &= (gaps > -TOLERANCE).all(axis=0)

    def _add_points(self) -> None:
        """Note positions as they fall due; rows near the fences or their own path die."""
        [rows] = (self.alive & (self.travelled >= self.due)).nonzero()
        if not rows.size:
            return
        here, count = self.position.take(rows, axis=-1), self.count[rows]
        most = count.max()
        apart = _lengths(self.points[:, :most].take(rows, axis=-1) - here[:, None])  # [most, R]
        # The last two points are always close.
        earlier = np.arange(most)[:, None] < count - 2
        meets = (earlier & (apart <= self.config.spacing)).any(axis=0)
        self.points[:, count, rows] = here
        self.count[rows] = count + 1
        self.due[rows] = (count + 1) * self.config.spacing
        self.alive[rows] = _inside(here, ARENA_HALF - self.config.edge_margin) & ~meets & (count + 1 < MAX_POINTS)

    def _is_good(self, row: int) -> bool:
        """Whether a finished walk lingers at its landmarks and cuts across no circle."""
        walk, centre, radius = self.walk(row), self.centre[..., row].T, self.radius[:, row]
        gaps = lengths(walk.points[:, None] - centre) - radius  # [P, L]
        near = (gaps[:, list(walk.visited[1:])] < self.config.spacing).sum(axis=0)
        if (near < self.config.linger).any():
            return False
        apart = line_distance(centre, lines_of(walk.points))  # [L] of the straight lines through its points
        return bool((apart > radius - TOLERANCE).all())


def _lengths(vectors: Floats) -> Floats:
    """[2, ...] to [...]."""
    x, y = vectors * vectors
    return np.asarray(np.sqrt(x + y))


def _inside(places: Floats, half: float) -> Bools:
    """Whether places [2, ...] lie in the square from -half to half: [...]."""
    x, y = np.abs(places) <= half
    return np.asarray(x & y)


def _directions(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Random unit vectors, [2, ...]."""
    angle = rng.uniform(-math.pi, math.pi, shape)
    return np.array([np.cos(angle), np.sin(angle)])
