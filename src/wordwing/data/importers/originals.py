"""What the importers share: reading the JSON of the original datasets, their units, and notes of what was repaired.

People's copies differ: numbers may be written as texts ("12.5"), flags as 0 and 1. Both are taken for what they mean;
NaN and infinity, which Python's JSON reader lets through, are not.

Annotations are in Unity metres, 225 to 275 on both axes; layouts and curves are in thousandths of the arena's edge.
Some workspaces hold files that were converted from the one to the other, so the values decide.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from wordwing.errors import WordwingError, shown
from wordwing.frames import ARENA_HALF, ARENA_SIZE, UNITY_ORIGIN, UNITY_SIZE, config_to_world, unity_to_world
from wordwing.world.paths import Floats

MAX_FILE = 8_000_000
"""Largest file of one environment, scene or trial that is read, bytes."""


def items(row: dict[str, Any], key: str, where: str, count: int | None = None, of: str = "") -> list[Any]:
    """A list that a record must have.

    Args:
        row: The record.
        key: The list's name.
        where: Begins each complaint.
        count: How long it must be.
        of: What else is so long, for the complaint.
    """
    if key not in row:
        raise WordwingError(f'{where}: there is no "{key}"')
    value = row[key]
    if not isinstance(value, list):
        raise WordwingError(f'{where}: "{key}" is {shown(value)}; it must be a list')
    if count is not None and len(value) != count:
        raise WordwingError(f'{where}: "{key}" has {len(value)} values, but "{of}" has {count}')
    return value


def number(value: Any, key: str, where: str) -> float:
    """A finite number, or a text that is one."""
    try:
        if isinstance(value, int | float | str) and not isinstance(value, bool) and math.isfinite(float(value)):
            return float(value)
    except (ValueError, OverflowError):
        pass
    raise WordwingError(f'{where}: "{key}" has {shown(value)} in it; it must be a finite number')


def numbers(values: list[Any], key: str, where: str) -> Floats:
    """[N] finite numbers."""
    return np.array([number(value, key, where) for value in values], float)


def flag(value: Any, key: str, where: str) -> bool:
    """True or false, also as 0, 1, "true" and "false"."""
    if isinstance(value, str):
        value = {"true": True, "false": False, "1": True, "0": False}.get(value.strip().lower(), value)
    if value in (0, 1) and isinstance(value, int):
        return bool(value)
    raise WordwingError(f'{where}: "{key}" has {shown(value)} in it; it must be true or false')


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


EXAMPLES = 5
"""Most examples named for one kind of oddity."""


class ImportNotes:
    """Facts and counts, in the order in which they first occurred."""

    def __init__(self) -> None:
        self.facts: list[str] = []
        """Sentences about the whole."""
        self.counts: dict[str, int] = {}
        """How often each oddity was met."""
        self._examples: dict[str, dict[str, None]] = {}

    def add(self, what: str, example: str = "", count: int = 1) -> None:
        """Count an oddity.

        Args:
            what: What it is and what became of it: "unknown landmarks, left out".
            example: Where or what it was; the first few different ones are named.
            count: How often.
        """
        if count:
            self.counts[what] = self.counts.get(what, 0) + count
            examples = self._examples.setdefault(what, {})
            if example and len(examples) <= EXAMPLES:
                examples[example] = None

    def sentences(self) -> tuple[str, ...]:
        """Facts, then counts: "unknown landmarks, left out: 3 (Unicorn, Barell)"."""
        lines = list(self.facts)
        for what, count in self.counts.items():
            names = list(self._examples[what])
            shown = ", ".join(names[:EXAMPLES]) + (", …" if len(names) > EXAMPLES else "")
            lines.append(f"{what}: {count}" + (f" ({shown})" if shown else ""))
        return tuple(lines)
