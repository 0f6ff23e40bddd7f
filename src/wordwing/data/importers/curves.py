"""Paths of LANI and the drif workspace: curve files, where their segments end, and moves replayed.

`random_curve_<id>.json` is the curve that a writer was shown, `anno_curve_<id>.json` the one that a follower took:
`{"x_array": […], "z_array": […]}`. A follower moved in steps F of one length and turns L and R of 15°; each gave a
point, so turns stand there as the same point again and again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wordwing.data.importers.annotations import Entry
from wordwing.data.importers.parsing import MAX_FILE, items, numbers
from wordwing.data.importers.tally import Tally
from wordwing.data.importers.units import UNITY_METRE
from wordwing.data.schema import MAX_POINTS
from wordwing.errors import WordwingError, shown
from wordwing.files import read_json
from wordwing.world.paths import Floats, lengths

STRIDES = (1.0, 1.5)
"""What a step F may be, Unity metres; releases and tools differ."""

TURN = math.radians(15)
"""How far L and R turn, radians."""

SAME = 1e-6
"""Points no farther apart are one, metres."""


def read_curve(path: Path) -> Floats:
    """[P, 2] x and z of a curve file, in its units; P may be 0."""
    row = read_json(path, MAX_FILE, "curve")
    if not isinstance(row, dict):
        raise WordwingError(f"{path}: this is {shown(row)}; a curve is an object with x_array and z_array")
    x = items(row, "x_array", str(path))
    z = items(row, "z_array", str(path), len(x), "x_array")
    if len(x) > MAX_POINTS:
        raise WordwingError(f"{path}: the curve has {len(x)} points; {MAX_POINTS} is the most")
    return np.stack([numbers(x, "x_array", str(path)), numbers(z, "z_array", str(path))], axis=-1)


def condensed(path: Floats) -> Floats:
    """Points [P, 2] without those that repeat the one before."""
    if not len(path):
        return path
    return path[np.concatenate([[True], lengths(np.diff(path, axis=0)) > SAME])]


def ends_along(path: Floats, ends: Floats) -> tuple[NDArray[np.int64], int]:
    """Where on a path segments end: in order along it, and together as near to the annotated ends as can be.

    Args:
        path: [P, 2] at least one point.
        ends: [S, 2] annotated ends.

    Returns:
        [S] indices of path points, non-decreasing, with the least sum of squared distances, and how many of them the
        nearest point of the whole path differs from. That is what the authors take, and where paths come near
        themselves it can lie before the segment's start.
    """
    distances = lengths(path - ends[:, None])  # [S, P]
    total = np.zeros(len(path))  # [P] least sum so far with all ends up to this point
    choices = []  # for each end and last point allowed: where it is
    for row in distances**2:
        total = total + row
        least = np.minimum.accumulate(total)
        better = np.concatenate([[True], total[1:] < least[:-1]])
        choices.append(np.maximum.accumulate(np.where(better, np.arange(len(path)), 0)))
        total = least
    indices, last = [], len(path) - 1
    for choice in reversed(choices):
        last = int(choice[last])
        indices.append(last)
    found = np.array(indices[::-1], int)
    return found, int((found != distances.argmin(axis=1)).sum())


def replayed(start: Floats, yaw: float, moves: str, stride: float) -> Floats:
    """The path of moves from a pose.

    Args:
        start: [2] metres, world frame.
        yaw: Radians, world frame.
        moves: Letters F, L and R.
        stride: Length of a step F, metres.

    Returns:
        [1 + F, 2] the start and the place after each step.
    """
    letters = np.array(list(moves), dtype="U1")
    turns = (letters == "L").astype(int) - (letters == "R").astype(int)
    heading = yaw + TURN * turns.cumsum()[letters == "F"]  # one for each step
    steps = stride * np.stack([np.cos(heading), np.sin(heading)], axis=-1)
    return np.asarray(start + np.concatenate([np.zeros((1, 2)), steps]).cumsum(axis=0), float)


def find_stride(entries: Iterable[Entry], tally: Tally) -> float:
    """The length of a step F, metres: the one of `STRIDES` whose replays end nearest to the annotated ends.

    The median decides, because moves against fences and landmarks were blocked and no replay knows of it.
    """
    missed: dict[float, list[float]] = {stride: [] for stride in STRIDES}
    for entry in entries:
        for start, yaw, end, moves in zip(entry.starts, entry.yaws, entry.ends, entry.moves or (), strict=False):
            if "F" in moves:
                for stride, distances in missed.items():
                    last = replayed(start, float(yaw), moves, stride * UNITY_METRE)[-1]
                    distances.append(math.dist(last, end))
    if not missed[STRIDES[0]]:
        return STRIDES[0] * UNITY_METRE
    medians = {stride: float(np.median(distances)) for stride, distances in missed.items()}
    best = min(medians, key=lambda stride: (medians[stride], stride))
    others = ", ".join(f"{stride} m: {median:.3f} m" for stride, median in medians.items() if stride != best)
    tally.facts.append(
        f"a move F is {best} Unity m: replayed, {len(missed[best])} segments end {medians[best]:.3f} m "
        f"from where they should, in the median ({others})"
    )
    return best * UNITY_METRE
