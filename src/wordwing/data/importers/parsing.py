"""Reading the JSON of the original datasets: what is wrong with it is said in one sentence.

People's copies differ: numbers may be written as texts ("12.5"), flags as 0 and 1. Both are taken for what they mean;
NaN and infinity, which Python's JSON reader lets through, are not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wordwing.errors import WordwingError, shown
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
