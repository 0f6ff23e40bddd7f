"""What the importers share: reading the JSON of the original datasets, their units, and notes of what was repaired.

People's copies differ: numbers may be written as texts ("12.5"), flags as 0 and 1. Both are taken for what they mean;
NaN and infinity, which Python's JSON reader lets through, are not.

Annotations are in Unity metres, 225 to 275 on both axes; layouts and curves are in thousandths of the arena's edge.
Some workspaces hold files that were converted from the one to the other, so the values decide.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import BeforeValidator, Field

from wordwing.frames import ARENA_HALF, ARENA_SIZE, UNITY_ORIGIN, UNITY_SIZE, config_to_world, unity_to_world
from wordwing.world.paths import Floats

MAX_FILE = 8_000_000
"""Largest file of one environment, scene or trial that is read, bytes."""


Progress = Callable[[Sequence[Any], str], Iterable[Any]]
"""Goes through a sequence, and may show how far it is under a title."""


def silently(rows: Sequence[Any], title: str) -> Iterable[Any]:
    """Go through a sequence and show nothing."""
    return rows


def _number(value: object) -> object:
    """What a text stands for that somebody wrote instead of a number."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def _flag(value: object) -> object:
    """What 0, 1 and texts stand for that somebody wrote instead of a flag."""
    return {"true": True, "1": True, "false": False, "0": False}.get(str(value).strip().lower(), value)


LenientNumber = Annotated[float, Field(allow_inf_nan=False), BeforeValidator(_number)]
LenientNumbers = Annotated[list[LenientNumber], Field(description="a list of finite numbers")]
LenientFlag = Annotated[bool, BeforeValidator(_flag)]
LenientFlags = Annotated[list[LenientFlag], Field(description="a list of true and false")]


def check_lengths(record: dict[str, Any]) -> None:
    """Raise a `ValueError` unless all lists in a record are as long as the first."""
    first, *others = [(key, len(value)) for key, value in record.items() if isinstance(value, list)]
    for key, count in others:
        if count != first[1]:
            raise ValueError(f'"{key}" has {count} values, but "{first[0]}" has {first[1]}')


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


@dataclass
class ImportNotes:
    """Facts and counts, in the order in which they first occurred."""

    facts: list[str] = field(default_factory=list)
    """Sentences about the whole."""
    counts: Counter[str] = field(default_factory=Counter)
    """How often each oddity was met."""
    _examples: defaultdict[str, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))

    def add(self, what: str, example: str = "", count: int = 1) -> None:
        """Count an oddity.

        Args:
            what: What it is and what became of it: "unknown landmarks, left out".
            example: Where or what it was; the first few different ones are named.
            count: How often.
        """
        if count:
            self.counts[what] += count
            if example and len(self._examples[what]) <= EXAMPLES:
                self._examples[what][example] = None

    def sentences(self) -> tuple[str, ...]:
        """Facts, then counts: "unknown landmarks, left out: 3 (Unicorn, Barell)"."""
        lines = list(self.facts)
        for what, count in self.counts.items():
            names = list(self._examples[what])
            shown = ", ".join(names[:EXAMPLES]) + (", …" if len(names) > EXAMPLES else "")
            lines.append(f"{what}: {count}" + (f" ({shown})" if shown else ""))
        return tuple(lines)
