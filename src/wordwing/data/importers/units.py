"""Which units a file of the original datasets speaks, and its positions in the arena.

Annotations are in Unity metres, 225 to 275 on both axes; layouts and curves are in thousandths of the arena's edge.
Some workspaces hold files that were converted from the one to the other, so the values decide.
"""

from __future__ import annotations

import numpy as np
import torch

from wordwing.frames import ARENA_HALF, ARENA_SIZE, UNITY_ORIGIN, UNITY_SIZE, config_to_world, unity_to_world
from wordwing.world.paths import Floats

SLACK = 10.0
"""How far out of the field a Unity position may be and still be known as one, Unity metres."""

UNITY_METRE = ARENA_SIZE / UNITY_SIZE
"""One metre of the Unity field, in metres of the arena."""


def is_unity(xz: Floats) -> bool:
    """Whether positions [..., 2] are Unity metres: if most of them lie in that field.

    Layout units spread over 0 to 1000, of which the field's 225 to 275 is a twentieth on each axis, so this is sure
    for a file's worth of positions; it would only mistake one whose every place is in that one small square.
    """
    inside = (xz >= UNITY_ORIGIN - SLACK) & (xz <= UNITY_ORIGIN + UNITY_SIZE + SLACK)
    return bool(xz.size) and float(inside.all(axis=-1).mean()) > 0.5


def to_arena(xz: Floats, unity: bool) -> Floats:
    """Positions [..., 2] in Unity metres, or else in layout units, to arena metres, world frame."""
    convert = unity_to_world if unity else config_to_world
    return np.asarray(convert(torch.from_numpy(np.ascontiguousarray(xz, float))).numpy(), float)


def clipped(xy: Floats) -> tuple[Floats, int]:
    """Points [P, 2] moved into the arena, and how many were outside; metres, world frame."""
    outside = (np.abs(xy) > ARENA_HALF + 1e-6).any(axis=-1)
    return xy.clip(-ARENA_HALF, ARENA_HALF), int(outside.sum())
