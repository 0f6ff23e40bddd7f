"""Where in a scene the arena lies for one instruction.

A window centred on a path would give the goal away: it would be the start reflected through the centre. So windows lie
anywhere, and any way round, where the path can be flown and what the sentence is likely about can be seen.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wordwing.data.scenes import Scene
from wordwing.data.schema import Window
from wordwing.frames import ARENA_HALF
from wordwing.world.paths import Floats, lengths

MARGIN = 0.2
"""Least distance of a path from the fences, metres: drones do not track a path exactly."""

END_REACH, START_REACH = 1.2, 0.6
"""A leg is about the furniture whose centre is this near to its end or start, metres. The more must be seen, the more
the window centres on the path; with 0.8 m the reflected start is within 0.47 m of 5 % of the goals of house."""

ROUNDING = 2e-4
"""What storing a window to a tenth of a millimetre may take from its margins, metres."""

YAWS = 64
"""Directions that are tried for one window, evenly over a quarter turn, which is all that a square has."""


def about(path: Floats, scene: Scene) -> Floats:
    """The furniture that a leg is about: [K, 3] x, y, footprint, metres, scene frame; the nearest to its end first."""
    from_end = lengths(scene.centres - path[-1])
    near = (from_end <= END_REACH) | (lengths(scene.centres - path[0]) <= START_REACH)
    order = np.argsort(from_end, kind="stable")
    circles = np.column_stack([scene.centres, scene.footprints])
    return circles[order[near[order]]]


def place_window(path: Floats, keep: Floats, rng: np.random.Generator) -> Window | None:
    """Draw a window that holds a path and as much of its furniture as any does: a direction, then a place, evenly.

    Args:
        path: [P, 2] metres, scene frame.
        keep: [K, 3] x, y, footprint of what should be seen, metres, scene frame; what matters more comes first. Where
            not everything fits, a piece is given up rather than one before it.
        rng: Source of direction and offset.

    Returns:
        The window, to a tenth of a millimetre as datasets store it; None if the path fits no window.
    """
    yaws = (np.arange(YAWS) + rng.random()) * (math.pi / 2 / YAWS)  # [Y]
    cos, sin = np.cos(yaws), np.sin(yaws)
    axes = np.stack([np.concatenate([cos, -sin]), np.concatenate([sin, cos])])  # [2, 2 Y] all u axes, then all v axes
    along = path @ axes  # [P, 2 Y]
    low = along.max(axis=0) - (ARENA_HALF - MARGIN - ROUNDING)  # [2 Y] where the centre may lie
    high = along.min(axis=0) + (ARENA_HALF - MARGIN - ROUNDING)
    fits = _both(low <= high)  # [Y]
    if not fits.any():
        return None
    places = keep[:, :2] @ axes  # [K, 2 Y]
    reach = ARENA_HALF - ROUNDING - keep[:, 2:]
    lowest, highest = places - reach, places + reach
    all_low = np.maximum(low, lowest.max(axis=0, initial=-np.inf))
    all_high = np.minimum(high, highest.min(axis=0, initial=np.inf))
    all_fit = _both(all_low <= all_high)
    if all_fit.any():
        low, high, fits = all_low, all_high, all_fit
    else:
        for piece_low, piece_high in zip(lowest, highest, strict=True):
            lower, higher = np.maximum(low, piece_low), np.minimum(high, piece_high)
            holds = _both(lower <= higher)
            if holds.any():
                low, high, fits = lower, higher, holds
    [possible] = np.nonzero(fits)
    chosen = int(possible[rng.integers(len(possible))])
    across = np.array([chosen, chosen + YAWS])
    u, v = (low[across] + rng.random(2) * (high - low)[across]).tolist()
    x, y = u * cos[chosen] - v * sin[chosen], u * sin[chosen] + v * cos[chosen]
    yaw = math.remainder(yaws[chosen] + int(rng.integers(4)) * math.pi / 2, 2 * math.pi)
    return Window(round(float(x), 4), round(float(y), 4), round(yaw, 5))


def _both(condition: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Where a condition [2 Y] holds along both axes: [Y]."""
    return condition[:YAWS] & condition[YAWS:]
