"""The four coloured fences around the arena, which instructions speak of ("fly to the red fence").

Seen from above with x up and y left, as images show the arena, red is the top edge, white the
right, blue the bottom and yellow the left.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wordwing.constants import ARENA_HALF

FENCE_HEIGHT = 0.30
"""Height of all fences, metres."""


@dataclass(frozen=True)
class Fence:
    """One straight edge of the arena; going from `start` to `end`, the arena is on the right."""

    colour: str
    """What people call it: "red", "white", "blue" or "yellow"."""
    rgb: tuple[float, float, float]
    """Its paint, each channel in [0, 1]."""
    start: tuple[float, float]
    """World x and y of one corner, metres."""
    end: tuple[float, float]
    """World x and y of the next corner, clockwise seen from above, metres."""
    normal: tuple[float, float]
    """Unit vector into the arena, world frame."""

    @property
    def middle(self) -> tuple[float, float]:
        """World x and y of the point halfway along, metres."""
        return (self.start[0] + self.end[0]) / 2, (self.start[1] + self.end[1]) / 2


_TOP_LEFT = (ARENA_HALF, ARENA_HALF)
_TOP_RIGHT = (ARENA_HALF, -ARENA_HALF)
_BOTTOM_RIGHT = (-ARENA_HALF, -ARENA_HALF)
_BOTTOM_LEFT = (-ARENA_HALF, ARENA_HALF)

FENCES = (
    Fence("red", (0.80, 0.10, 0.10), _TOP_LEFT, _TOP_RIGHT, normal=(-1.0, 0.0)),
    Fence("white", (0.93, 0.93, 0.93), _TOP_RIGHT, _BOTTOM_RIGHT, normal=(0.0, 1.0)),
    Fence("blue", (0.10, 0.22, 0.78), _BOTTOM_RIGHT, _BOTTOM_LEFT, normal=(1.0, 0.0)),
    Fence("yellow", (0.95, 0.80, 0.10), _BOTTOM_LEFT, _TOP_LEFT, normal=(0.0, -1.0)),
)
"""Clockwise seen from above, from the top of the image."""

_STARTS = np.array([fence.start for fence in FENCES])  # [4, 2]
_NORMALS = np.array([fence.normal for fence in FENCES])  # [4, 2]


def distance_to_fences(xy: ArrayLike) -> NDArray[np.float64]:
    """How far points are from the line of each fence.

    Args:
        xy: [..., 2] metres, world frame.

    Returns:
        [..., 4] metres in the order of `FENCES`; positive on the arena's side, negative beyond.
    """
    offsets = np.asarray(xy, float)[..., None, :] - _STARTS  # [..., 4, 2]
    return (offsets * _NORMALS).sum(axis=-1)


def nearest_on_fences(xy: ArrayLike) -> NDArray[np.float64]:
    """The point of each fence's line that is nearest to points [..., 2], metres, world frame: [..., 4, 2]."""
    points = np.asarray(xy, float)
    return points[..., None, :] - distance_to_fences(points)[..., None] * _NORMALS
