"""Curved paths past landmarks: the noisy walks whose images people were asked to describe.

A walk starts on the keep-out circle of one landmark and heads for random points on the circles of
others, one after another, with noise on every step; circles push it out, so it curves around them.
A walk that leaves the arena, meets itself, takes too long or barely touches a landmark it visits is
thrown away and begun anew. Most are, so candidates walk in large batches, one array row each.
Lakes, which bent the authors' LANI walks, are left out: generated corpora have none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wordwing.frames import ARENA_HALF, CONFIG_UNIT
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, lengths

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

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
    waiting = np.flatnonzero(circles.visitable.sum(axis=1) > 2)
    tried = 0
    while waiting.size and tried < attempts:
        lanes = LANES if waiting.size > 16 else LANES // 4  # a few layouts are done sooner with fewer at once
        each = min(max(lanes // waiting.size, 1), attempts - tried)
        for first in range(0, waiting.size, LANES):
            layout = np.repeat(waiting[first : first + LANES], each)
            attempt = tried + np.arange(layout.size) % each
            walkers = _Walkers(layout, attempt, circles, config)
            walkers.set_out(starts or [None] * len(layouts), rng)
            while walkers.alive.any():
                for row in walkers.step(rng):
                    if walkers.attempt[row] < best[walkers.layout[row]]:
                        best[walkers.layout[row]] = walkers.attempt[row]
                        walks[walkers.layout[row]] = walkers.walk(row)
                walkers.alive &= walkers.attempt < best[walkers.layout]
                if walkers.alive.mean() < 0.8:
                    walkers.keep(walkers.alive)
        tried += each
        waiting = waiting[best[waiting] == attempts]
    return walks


class _Circles(NamedTuple):
    """The keep-out circles of N layouts, padded to L of them with points far away."""

    centre: Floats  # [N, L, 2] metres, world frame
    radius: Floats  # [N, L] metres
    visitable: Bools  # [N, L] the landmark stands on the floor


def _circles(layouts: Sequence[Layout]) -> _Circles:
    shape = len(layouts), max((len(layout.landmarks) for layout in layouts), default=0)
    circles = _Circles(np.full((*shape, 2), 1e3), np.zeros(shape), np.zeros(shape, bool))
    for index, layout in enumerate(layouts):
        used = index, slice(len(layout.landmarks))
        circles.centre[used] = layout.centres
        circles.radius[used] = layout.keep_out
        circles.visitable[used] = [entry.elevation == 0 for entry in layout.landmarks]
    return circles


class _Walkers:
    """B candidate walks in lock-step, one row each; metres and world frame throughout."""

    def __init__(self, layout: Ints, attempt: Ints, circles: _Circles, config: WalkConfig) -> None:
        lanes = layout.size
        self.config = config
        self.layout = layout  # [B] index of its layout
        self.attempt = attempt  # [B] number among the attempts of that layout
        self.alive = np.ones(lanes, bool)  # [B] neither thrown away nor finished
        self.centre = circles.centre[layout]  # [B, L, 2]
        self.radius = circles.radius[layout]  # [B, L]
        self.ahead = circles.visitable[layout]  # [B, L] may still be visited
        self.goal = np.minimum(config.visits, self.ahead.sum(axis=1) - 1)  # [B] visits to make
        self.visited = np.zeros((lanes, config.visits), int)  # [B, V] in order, target included
        self.visits = np.zeros(lanes, int)  # [B] how many of them
        self.position = np.zeros((lanes, 2))  # [B, 2]
        self.target = np.zeros((lanes, 2))  # [B, 2]
        self.steps = np.zeros(lanes, int)  # [B] taken towards the target
        self.travelled = np.zeros(lanes)  # [B]
        self.points = np.zeros((lanes, 0, 2))  # [B, P, 2] the path so far
        self.count = np.ones(lanes, int)  # [B] how many of them

    def keep(self, rows: Bools) -> None:
        """Forget all other rows."""
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(self, name, value[rows])

    def walk(self, row: int) -> Walk:
        """The walk of one row so far."""
        visited = self.visited[row, : self.visits[row]]
        return Walk(self.points[row, : self.count[row]].copy(), tuple(visited.tolist()))

    def set_out(self, starts: Sequence[Walk | None], rng: np.random.Generator) -> None:
        """Go to the starts and choose first targets; rows without either are forgotten."""
        self.position = rng.uniform(-ARENA_HALF, ARENA_HALF, self.position.shape)
        for row, index in enumerate(self.layout):
            if (before := starts[index]) is not None:
                self.position[row] = before.points[-1]
                self.visited[row, 0] = before.visited[-1]
                self.visits[row] = 1
                self.ahead[row, before.visited[-1]] = False
        # Other starts are chosen as targets are, seen from a random place.
        fresh = np.flatnonzero(self.visits == 0)
        self.aim(fresh, rng)
        self.position[fresh] = self.target[fresh]
        self.keep(self.alive)
        self.aim(np.arange(self.alive.size), rng)
        self.keep(self.alive)
        self.points = np.zeros((self.alive.size, MAX_POINTS, 2))
        self.points[:, 0] = self.position

    def aim(self, rows: Ints, rng: np.random.Generator) -> None:
        """Choose the next landmark of some rows and a target on its circle; without, they die."""
        config, each = self.config, np.arange(rows.size)
        centre, radius = self.centre[rows], self.radius[rows]
        distance = lengths(centre - self.position[rows, None])  # [R, L]
        distance[~self.ahead[rows] | (distance < config.min_leg)] = np.inf
        choices = np.minimum(np.isfinite(distance).sum(axis=1), config.closest)
        rank = (rng.random(rows.size) * choices).astype(int)
        chosen = np.argsort(distance, axis=1)[each, rank]
        around = _directions((rows.size, config.aims), rng)  # [R, A, 2]
        targets = centre[each, chosen, None] + radius[each, chosen, None, None] * around
        gaps = lengths(targets[:, :, None] - centre[:, None]) - radius[:, None]  # [R, A, L]
        free = self._within_margin(targets) & (gaps > -TOLERANCE).all(axis=-1)  # [R, A]
        self.target[rows] = targets[each, free.argmax(axis=1)]
        self.visited[rows, self.visits[rows]] = chosen
        self.visits[rows] += 1
        self.ahead[rows, chosen] = False
        self.steps[rows] = 0
        self.alive[rows] &= (choices > 0) & free.any(axis=1)

    def step(self, rng: np.random.Generator) -> list[int]:
        """Move everyone one step; returns the rows that have just finished a good walk."""
        config = self.config
        heading = self.target - self.position
        noise = rng.uniform(0.0, config.step * config.noise, len(heading))
        position = self.position + heading * (config.step / lengths(heading))[:, None]
        position += _directions(noise.shape, rng) * noise[:, None]
        self._push_out(position)
        self.travelled += lengths(position - self.position)
        self.position = position
        self.steps += 1
        self.alive &= (np.abs(position) <= ARENA_HALF).all(axis=-1)
        self.alive &= self.steps <= config.max_steps
        self._add_points()
        arrived = self.alive & (lengths(self.target - position) < config.reached)
        finished = arrived & (self.visits == self.goal)
        self.aim(np.flatnonzero(arrived & ~finished), rng)
        self.alive &= ~finished
        return [row for row in np.flatnonzero(finished).tolist() if self._is_good(row)]

    def _push_out(self, position: Floats) -> None:
        """Move positions [B, 2] that are inside a circle to its rim, in place."""
        x = position[:, :1] - self.centre[..., 0]  # [B, L]
        y = position[:, 1:] - self.centre[..., 1]
        rows, hit = np.nonzero(x * x + y * y < self.radius * self.radius)
        centre, radius = self.centre[rows, hit], self.radius[rows, hit]
        offset = position[rows] - centre
        position[rows] = centre + offset * (radius / lengths(offset))[:, None]
        # Where circles overlap, the rim of one can be deep inside another: a dead end.
        gaps = lengths(position[rows, None] - self.centre[rows]) - self.radius[rows]
        self.alive[rows] &= (gaps > -TOLERANCE).all(axis=-1)

    def _add_points(self) -> None:
        """Note positions as they fall due; rows near the fences or their own path die."""
        rows = np.flatnonzero(self.alive & (self.travelled >= self.count * self.config.spacing))
        here, count = self.position[rows], self.count[rows]
        most = count.max(initial=0)
        apart = lengths(self.points[rows, :most] - here[:, None])  # [R, most]
        # The last two points are always close.
        earlier = np.arange(most) < count[:, None] - 2
        meets = (earlier & (apart <= self.config.spacing)).any(axis=-1)
        self.points[rows, count] = here
        self.count[rows] += 1
        self.alive[rows] = self._within_margin(here) & ~meets & (count + 1 < MAX_POINTS)

    def _within_margin(self, places: Floats) -> Bools:
        return np.all(np.abs(places) <= ARENA_HALF - self.config.edge_margin, axis=-1)

    def _is_good(self, row: int) -> bool:
        """Whether a finished walk lingers at its landmarks and cuts across no circle."""
        walk, centre, radius = self.walk(row), self.centre[row], self.radius[row]
        gaps = lengths(walk.points[:, None] - centre) - radius  # [P, L]
        near = (gaps[:, list(walk.visited[1:])] < self.config.spacing).sum(axis=0)
        return bool((near >= self.config.linger).all()) and _clear(walk.points, centre, radius)


def _clear(path: Floats, centre: Floats, radius: Floats) -> bool:
    """Whether the straight lines through points [P, 2] stay out of circles [L, 2] and [L]."""
    line = np.diff(path, axis=0)[:, None]  # [P - 1, 1, 2]
    offset = centre - path[:-1, None]  # [P - 1, L, 2]
    nearest = ((offset * line).sum(axis=-1) / (line * line).sum(axis=-1)).clip(0.0, 1.0)
    return bool((lengths(offset - line * nearest[..., None]) > radius - TOLERANCE).all())


def _directions(shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
    """Random unit vectors, [..., 2]."""
    angle = rng.uniform(-math.pi, math.pi, shape)
    return np.stack([np.cos(angle), np.sin(angle)], axis=-1)
