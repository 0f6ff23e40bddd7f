"""How far a flown path is from the demonstration's (paper: Automated Evaluation Details).

Each metric's formula is in `docs/metrics.md`.
"""

from __future__ import annotations

import numpy as np
import ot
from numpy.typing import ArrayLike, NDArray

from wordwing.world.paths import resample

SUCCESS_DISTANCE = 0.47
"""A flight succeeds when the drone comes to rest within this of the demonstration's end, metres."""

EMD_SPACING = 0.02
"""Distance between the points that carry a path's mass, metres."""


def evenly(path: ArrayLike, spacing: float = EMD_SPACING) -> NDArray[np.float64]:
    """A path [P, 2] as n = max(2, round(length / spacing) + 1) even points with both its ends.

    A path of no length is one point.
    """
    points = np.asarray(path, np.float64).reshape(-1, 2)
    if not len(points):
        raise ValueError("a path needs at least one point")
    if not np.isfinite(points).all():
        raise ValueError("a path holds NaN or infinity")
    return resample(points, spacing)


def emd(flown: ArrayLike, gold: ArrayLike, spacing: float = EMD_SPACING) -> float:
    """Earth mover's distance in metres between two paths [P, 2], their mass spread evenly along them."""
    a, b = evenly(flown, spacing), evenly(gold, spacing)
    cost = ot.dist(a, b, metric="euclidean")
    return float(ot.emd2(ot.unif(len(a)), ot.unif(len(b)), cost))


def final_distance(flown: ArrayLike, gold: ArrayLike) -> float:
    """Metres between the ends of two paths [P, 2]."""
    a, b = np.asarray(flown, np.float64), np.asarray(gold, np.float64)
    return float(np.hypot(*(a[-1] - b[-1])))
