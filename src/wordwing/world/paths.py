"""Paths as polylines [P, 2]: lengths, even points, points along them, distances from them."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def lengths(vectors: Floats) -> Floats:
    """[..., 2] to [...]; for vectors so short much faster than `np.linalg.norm`."""
    x, y = vectors[..., 0], vectors[..., 1]
    return np.sqrt(x * x + y * y)


def path_length(path: Floats) -> float:
    """Length of the polyline through points [P, 2], in their unit."""
    return float(lengths(np.diff(path, axis=0)).sum())


def resample(path: Floats, spacing: float) -> Floats:
    """Spread points evenly along a polyline, both ends included.

    Args:
        path: [P, 2] metres; at least one point.
        spacing: Wanted distance along the path from point to point, metres. What is kept to is the
            nearest that divides the path's length.

    Returns:
        [Q, 2] metres; one point where the path has no length, else at least two.
    """
    length = path_length(path)
    intervals = max(round(length / spacing), 1) if length > 0 else 0
    return points_along(path, np.linspace(0.0, length, intervals + 1))


def points_along(path: Floats, distances: Floats) -> Floats:
    """Points [Q, 2] at distances [Q] along a polyline [P, 2]."""
    passed = np.concatenate([[0.0], lengths(np.diff(path, axis=0)).cumsum()])  # [P]
    return np.stack([np.interp(distances, passed, axis) for axis in path.T], axis=-1)


def lines_of(path: Floats) -> Floats:
    """[E, 2, 2] ends of the straight lines of a polyline [P, 2]; of a single point one line without length."""
    ends = path[1:] if len(path) > 1 else path
    return np.stack([path[: len(ends)], ends], axis=1)


def line_distance(points: Floats, lines: Floats) -> Floats:
    """Distance [Q] of points [Q, 2] from the nearest of straight lines [E, 2, 2] between two ends; inf without any."""
    begin, along = lines[:, 0], lines[:, 1] - lines[:, 0]
    square = (along * along).sum(axis=-1)
    offset = points[:, None] - begin  # [Q, E, 2]
    share = ((offset * along).sum(axis=-1) / np.where(square > 0, square, 1.0)).clip(0.0, 1.0)
    return lengths(offset - share[..., None] * along).min(axis=1, initial=np.inf)
