"""A flown path as the judge sees it: even points, headings, and everything between any two of them.

A *section* is the part of a path from point i to point j. Quantities of all sections at once are matrices [K, K] of
which only the part with j ≥ i means anything.
"""

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from wordwing.language.meaning.clauses import COLOURS, Reference
from wordwing.world.fences import FENCES, distance_to_fences
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, Ints, lengths, path_length, points_along

SPACING, MOST = 0.08, 80
"""Distance between points, metres, unless that makes more than this many intervals."""

STILL = 0.02
"""Length up to which a path is one point, metres: the direction of a hovering drone's drift means nothing."""

HEADING_REACH = 0.2
"""Distance over which a direction of flight is taken, metres."""


def wrapped(angle: ArrayLike) -> Floats:
    """Angles in [−π, π)."""
    return np.asarray((np.asarray(angle) + math.pi) % (2 * math.pi) - math.pi)


class Track:
    """A path in a layout, with the heading it was begun with.

    Args:
        path: [P, 2] metres, world frame.
        start_yaw: Radians, world frame.
        layout: Where it was flown.
    """

    def __init__(self, path: ArrayLike, start_yaw: float, layout: Layout) -> None:
        path = np.asarray(path, float).reshape(-1, 2)
        whole = path_length(path)
        intervals = min(max(round(whole / SPACING), 1), MOST) if whole > STILL else 0
        self.points: Floats = points_along(path, np.linspace(0.0, whole, intervals + 1))  # [K, 2]
        self.layout = layout
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

    def __len__(self) -> int:
        return len(self.points)

    @cached_property
    def turned(self) -> Floats:
        """[K, K] change of the direction of flight within each section, left positive, radians, full turns counted."""
        heading = np.unwrap(self.depart)
        return heading - heading[:, None]

    @cached_property
    def chord(self) -> Floats:
        """[K, K, 2] from the first to the last point of each section, metres."""
        return self.points - self.points[:, None]

    @cached_property
    def offsets(self) -> Floats:
        """[L, K, 2] from each point to each landmark's centre, metres."""
        return self.layout.centres[:, None] - self.points

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

    def gap(self, reference: Reference) -> Floats:
        """[K] distance from a landmark's footprint or a fence, metres."""
        if isinstance(reference, str):
            return self.fence_distances[COLOURS.index(reference)]
        return self.gaps[reference]

    def bearing(self, reference: Reference) -> Floats:
        """[K] world direction to a landmark, or straight to a fence, radians."""
        if isinstance(reference, str):
            normal = FENCES[COLOURS.index(reference)].normal
            return np.full(len(self), math.atan2(-normal[1], -normal[0]))
        return self.bearings[reference]

    def place(self, reference: Reference, seen_from: ArrayLike) -> Floats:
        """[2] centre of a landmark, or the point of a fence nearest to some place [2]."""
        if isinstance(reference, str):
            fence = COLOURS.index(reference)
            distance = distance_to_fences(seen_from)[fence]
            return np.asarray(seen_from, float) - distance * np.array(FENCES[fence].normal)
        return self.layout.centres[reference]


def least(values: Floats) -> tuple[Floats, Ints]:
    """The least of values [..., K] in each section [..., K, K], and the index of the last point that has it."""
    size = values.shape[-1]
    table = np.where(np.tri(size, dtype=bool).T, values[..., None, :], np.inf)
    lowest = np.minimum.accumulate(table, axis=-1)
    where = np.maximum.accumulate(np.where(table <= lowest, np.arange(size), 0), axis=-1)
    return lowest, where


def mean(values: Floats) -> Floats:
    """The mean of values [..., K] over each section [..., K, K]."""
    k = np.arange(values.shape[-1])
    total = np.concatenate([np.zeros((*values.shape[:-1], 1)), values.cumsum(axis=-1)], axis=-1)
    return (total[..., None, 1:] - total[..., :-1, None]) / np.maximum(k - k[:, None] + 1, 1)


def falling(value: ArrayLike, full: Floats | float, zero: Floats | float) -> Floats:
    """1 up to `full`, 0 from `zero` on, a line between."""
    return np.clip((zero - np.asarray(value)) / (zero - full), 0.0, 1.0)
