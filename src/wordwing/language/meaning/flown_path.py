"""A flown path as the judge sees it: even points, headings, and everything between any two of them.

A *section* is the part of a path from point i to point j. Quantities of all sections at once are matrices [K, K] of
which only the part with j ≥ i means anything; of some of them, matrices [I, J] over the points that they begin and end
at.
"""

import math
from collections.abc import Sequence
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from wordwing.language.meaning.clauses import COLOURS, Reference
from wordwing.world.fences import FENCES, distance_to_fences, nearest_on_fences
from wordwing.world.layout import Layout
from wordwing.world.paths import Bools, Floats, Ints, lengths, path_length, points_along

SPACING, MOST = 0.08, 80
"""Distance between points, metres, unless that makes more than this many intervals."""

STILL = 0.02
"""Length up to which a path is one point, metres: the direction of a hovering drone's drift means nothing."""

HEADING_REACH = 0.2
"""Distance over which a direction of flight is taken, metres."""

EXACT = 1e-6
"""Difference of two lengths that means nothing, metres."""

ALL, FIRST, LAST = slice(None), slice(0, 1), slice(-1, None)
"""Points that sections begin or end at."""


def wrapped(angle: ArrayLike) -> Floats:
    """Angles in [−π, π)."""
    return np.asarray((np.asarray(angle) + math.pi) % (2 * math.pi) - math.pi)


class Moments(NamedTuple):
    """When a drone was where on its track, and where it looked: T moments."""

    timed: bool
    """Whether there is a moment for every control period."""
    yaws: Floats
    """[T] radians, world frame, full turns counted."""
    nearest: Ints
    """[T] the point that is nearest along the track."""
    arrived: Ints
    """[K] the first moment at each point or beyond."""
    departed: Ints
    """[K] the last moment at each point or before."""
    first: Ints
    """[K] the first moment of a section that begins at a point; between two moments it is the one before."""
    last: Ints
    """[K] the last moment of a section that ends at a point; between two moments it is the one after."""


class Track:
    """A path in a layout, with the heading it was begun with.

    Where the drone looked, and when, is known at T *moments*. Of a path without headings nothing is known of time: its
    moments are its points, where the drone looks in the direction of flight.

    Args:
        path: [P, 2] metres, world frame.
        start_yaw: Radians, world frame.
        layout: Where it was flown.
        yaws: [P] radians, world frame, where the path has a position for every control period.
    """

    def __init__(self, path: ArrayLike, start_yaw: float, layout: Layout, yaws: ArrayLike | None = None) -> None:
        path = np.asarray(path, float).reshape(-1, 2)
        whole = path_length(path)
        intervals = min(max(round(whole / SPACING), 1), MOST) if whole > STILL else 0
        self.points: Floats = points_along(path, np.linspace(0.0, whole, intervals + 1))  # [K, 2]
        self.layout = layout
        self.centres: Floats = layout.centres  # [L, 2] of the landmarks
        self.start_yaw = start_yaw
        self.spacing = whole / intervals if intervals else 0.0
        k = np.arange(intervals + 1)
        self.passed: Floats = np.asarray(k * self.spacing, float)  # [K] metres flown
        self.length: Floats = self.passed - self.passed[:, None]  # [K, K] metres from i to j
        reach = max(round(HEADING_REACH / self.spacing), 1) if intervals else 1
        back, ahead = self.points[np.maximum(k - reach, 0)], self.points[np.minimum(k + reach, intervals)]
        arrive, depart = self.points - back, ahead - self.points
        self.arrive: Floats = np.arctan2(arrive[:, 1], arrive[:, 0])  # [K] direction of flight into each point
        self.depart: Floats = np.arctan2(depart[:, 1], depart[:, 0])  # [K] and out of it
        self.arrive[0] = start_yaw
        self.depart[-1] = self.arrive[-1]
        self._path, self._yaws = path, yaws

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def turned(self) -> Floats:
        """[K, K] change of the direction of flight within each section, left positive, radians, full turns counted."""
        heading = np.unwrap(self.depart)
        return heading - heading[:, None]

    @cached_property
    def moments(self) -> Moments:
        """When it was where, and where it looked."""
        if self._yaws is None:
            points = np.arange(len(self))
            return Moments(False, np.unwrap(self.arrive), *[points] * 5)
        flown = summed(lengths(np.diff(self._path, axis=0)))  # [T] metres until each moment
        arrived = flown.searchsorted(self.passed - EXACT).clip(max=len(flown) - 1)
        departed = flown.searchsorted(self.passed + EXACT, "right") - 1
        nearest = np.abs(flown[:, None] - self.passed).argmin(axis=1)
        between = np.minimum(arrived, departed), np.maximum(arrived, departed)
        return Moments(True, np.unwrap(np.asarray(self._yaws, float)), nearest, arrived, departed, *between)

    def most_turned(self, sign: float) -> Floats:
        """[K, K] the most that the drone has turned to a side within each section, radians; 1 is left, −1 is right."""
        yaws, before = sign * self.moments.yaws, np.arange(len(self.moments.yaws)) < self.moments.first[:, None]
        lowest = np.minimum.accumulate(np.where(before, np.inf, yaws), axis=1)  # [K, T]
        most = np.maximum.accumulate(np.where(before, 0.0, yaws - lowest), axis=1)
        return np.asarray(most[:, self.moments.last])

    @cached_property
    def chord(self) -> Floats:
        """[K, K, 2] from the first to the last point of each section, metres."""
        return self.points - self.points[:, None]

    @cached_property
    def offsets(self) -> Floats:
        """[L, K, 2] from each point to each landmark's centre, metres."""
        return self.centres[:, None] - self.points

    @cached_property
    def gaps(self) -> Floats:
        """[L, K] distance of each point from each landmark's footprint, metres."""
        return lengths(self.offsets) - self.layout.footprints[:, None]

    @cached_property
    def bearings(self) -> Floats:
        """[L, K] world direction from each point to each landmark, radians."""
        return np.arctan2(self.offsets[..., 1], self.offsets[..., 0])

    @cached_property
    def polar(self) -> Floats:
        """[L, K] how far the drone has gone around each landmark, counter-clockwise, radians, full turns counted."""
        return np.unwrap(self.bearings, axis=1)

    @cached_property
    def fence_distances(self) -> Floats:
        """[4, K] metres."""
        return distance_to_fences(self.points).T

    @cached_property
    def all_gaps(self) -> Floats:
        """[L + 4, K] distance of each point from each landmark's footprint, then from each fence, metres."""
        return np.concatenate([self.gaps, self.fence_distances])

    @cached_property
    def all_bearings(self) -> Floats:
        """[L + 4, K] world direction to each landmark, then straight to each fence, radians."""
        return np.concatenate([self.bearings, np.repeat(_TO_FENCES, len(self), axis=1)])

    def rows(self, references: Sequence[Reference]) -> list[int]:
        """Where `all_gaps` and `all_bearings` have some landmarks and fences."""
        fences = len(self.layout.landmarks)
        return [fences + COLOURS.index(entry) if isinstance(entry, str) else entry for entry in references]

    def gap(self, reference: Reference) -> Floats:
        """[K] distance from a landmark's footprint or a fence, metres."""
        return self.all_gaps[self.rows([reference])[0]]

    def bearing(self, reference: Reference) -> Floats:
        """[K] world direction to a landmark, or straight to a fence, radians."""
        return self.all_bearings[self.rows([reference])[0]]

    def places(self, references: Sequence[Reference], seen_from: Floats) -> Floats:
        """[C, 2] centres of landmarks, or points of fences that are nearest to some places [C, 2]."""
        if not any(isinstance(entry, str) for entry in references):
            return self.centres[self.rows(references)]
        landmarks = np.broadcast_to(self.centres, (len(references), *self.centres.shape))
        everything = np.concatenate([landmarks, nearest_on_fences(seen_from)], axis=1)  # [C, L + 4, 2]
        return everything[np.arange(len(references)), self.rows(references)]


_TO_FENCES = np.array([[math.atan2(-fence.normal[1], -fence.normal[0])] for fence in FENCES])  # [4, 1] radians


@cache
def backwards(size: int) -> Bools:
    """[K, K] the sections that would end before they begin."""
    return np.tri(size, k=-1, dtype=bool)


def summed(steps: Floats) -> Floats:
    """[..., K - 1] to [..., K]: what the steps before each point add up to."""
    return np.concatenate([np.zeros((*steps.shape[:-1], 1)), steps.cumsum(axis=-1)], axis=-1)


def least(values: Floats, begins: slice | Ints = ALL, ends: slice | Ints = ALL) -> tuple[Floats, Ints]:
    """The least of values [..., K] in each section [..., I, J], and the index of the last point that has it."""
    size = values.shape[-1]
    table = np.where(backwards(size)[begins], np.inf, values[..., None, :])  # [..., I, K]
    lowest = np.minimum.accumulate(table, axis=-1)
    where = np.maximum.accumulate(np.where(table <= lowest, np.arange(size), 0), axis=-1)
    return lowest[..., ends], where[..., ends]


def mean(values: Floats, begins: slice = ALL, ends: slice = ALL) -> Floats:
    """The mean of values [..., K] over each section [..., I, J]."""
    k = np.arange(values.shape[-1])
    total = np.concatenate([np.zeros((*values.shape[:-1], 1)), values.cumsum(axis=-1)], axis=-1)
    count = np.maximum(k[ends] - k[begins, None] + 1, 1)
    return (total[..., None, 1:][..., ends] - total[..., :-1, None][..., begins, :]) / count


def falling(value: ArrayLike, full: Floats | float, zero: Floats | float) -> Floats:
    """1 up to `full`, 0 from `zero` on, a line between."""
    return ((zero - np.asarray(value)) / (zero - full)).clip(0.0, 1.0)
