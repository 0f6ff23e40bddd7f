"""The table of the acceptance list: one line a row, flights of one kind together."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from wordwing.frames import ARENA_HALF

Row = dict[str, Any]
"""A line of the JSON lines that `running` writes."""

MANY = re.compile(r"(?P<kind>motion capture \w+, [\w ]+), \d+|(?P<other>instruction) \d+")
"""Rows of which there are several."""


def summarise(rows: Iterable[Row]) -> list[dict[str, str]]:
    """Lines with what was seen, the greatest |x| and |y| in metres, and the verdict; the versions come first."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        found = MANY.fullmatch(row["row"])
        name = row["row"] if found is None else found["kind"] or "instructions, by the shipped policy"
        groups.setdefault(name, []).append(row)
    lines = [_line(name, group) for name, group in groups.items()]
    versions = ", ".join(sorted({f"{row['version']}" for group in groups.values() for row in group}))
    ours = ", ".join(sorted({row["wordwing"] for group in groups.values() for row in group}))
    return [{"row": "versions", "seen": f"{versions}; wordwing {ours}", "x, m": "", "y, m": "", "holds": ""}, *lines]


def _line(name: str, group: Sequence[Row]) -> dict[str, str]:
    holds = sum(row["holds"] for row in group)
    several = len(group) > 1 or MANY.fullmatch(group[0]["row"]) is not None
    return {
        "row": name,
        "seen": _seen(group) if several else group[0]["seen"],
        "x, m": _greatest(group, "x"),
        "y, m": _greatest(group, "y"),
        "holds": f"{holds} of {len(group)}" if several else "yes" if holds else "**no**",
    }


def _seen(group: Sequence[Row]) -> str:
    """Several flights in a few words."""
    goals = [row["values"]["goal"] for row in group if "goal" in row["values"]]
    if goals or group[0]["row"].startswith("instruction"):
        successes = sum(row["values"].get("success", 0) for row in group)
        return f"{len(goals)} of {len(group)} flown to the end, {successes:.0f} of them within 0.47 m of the goal"
    inside = sum(max(row["x"], row["y"]) <= ARENA_HALF for row in group)
    times = sorted(row["values"]["land"] for row in group if "land" in row["values"])
    landed = f", LAND after {times[0]:.1f} to {times[-1]:.1f} s" if times else ""
    return f"{inside} of {len(group)} inside{landed}"


def _greatest(group: Sequence[Row], axis: str) -> str:
    known = [row[axis] for row in group if row[axis] is not None]
    return f"{max(known):.2f}" if known else ""


def to_text(lines: Sequence[dict[str, str]]) -> str:
    """A Markdown table."""
    keys = list(lines[0])
    head = ["| " + " | ".join(keys) + " |", "| --- " * len(keys) + "|"]
    return "\n".join([*head, *("| " + " | ".join(line[key] for key in keys) + " |" for line in lines)])
