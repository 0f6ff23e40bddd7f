"""The file of episodes while it is written: whole lines only, each flight once, in a fixed order."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from wordwing.errors import WordwingError
from wordwing.evaluation.episodes import MAX_LINE, SCHEMA
from wordwing.evaluation.measures import Measures, measures_of
from wordwing.files import read_lines, replacing


class Line(NamedTuple):
    """Where a flight's line is in its file, and what it says about the flight."""

    begin: int
    """Bytes."""
    size: int
    measures: Measures


def append(file: Path, text: str) -> None:
    """Write lines behind those of a file, and see to it that they are on the disk."""
    try:
        with open(file, "a", encoding="utf-8") as lines:
            lines.write(text)
            lines.flush()
            os.fsync(lines.fileno())
    except OSError as error:
        why = (error.strerror or "unknown").lower()
        raise WordwingError(f"{file}: cannot be written ({why}); the same command goes on from what is there") from None


def whole_lines(file: Path, systems: Collection[str], ids: Collection[str]) -> dict[tuple[str, str], Line]:
    """Lines of a file by system and instruction; one that was cut off is dropped, from the file too."""
    found: dict[tuple[str, str], Line] = {}
    if not file.is_file():
        return found
    begin = 0
    for number, line in enumerate(read_lines(file, MAX_LINE), start=1):
        if not line.endswith(b"\n"):
            break
        try:
            row = json.loads(line)
            key, measures = (row["system"], row["id"]), measures_of(row, f"{file}: line {number}")
            plain = all(isinstance(value, float | int | None) for value in row["metrics"].values())
            whole = row["schema"] == SCHEMA and plain
        except (ValueError, KeyError, TypeError, RecursionError, WordwingError):
            whole = False
        if not whole:
            raise WordwingError(f"{file}: line {number} is damaged; delete it, and the same command goes on")
        if key[0] not in systems or key[1] not in ids:
            raise WordwingError(
                f"{file}: line {number}, {key[1]} flown by {key[0]}, is not of this evaluation; delete it, and the "
                "same command goes on"
            )
        found[key] = Line(begin, len(line), measures)
        begin += len(line)
    if begin < file.stat().st_size:
        os.truncate(file, begin)
    return found


def keep(file: Path, lines: Iterable[Line]) -> None:
    """Keep some lines of a file, in their order."""
    with replacing(file) as temporary, open(file, "rb") as old, open(temporary, "wb") as new:
        for line in lines:
            old.seek(line.begin)
            new.write(old.read(line.size))


def sort(file: Path, systems: Sequence[str], ids: Sequence[str]) -> None:
    """Bring lines into the order in which one process would have written them at one go, each once."""
    places = {name: place for place, name in enumerate(ids)}
    lines = whole_lines(file, systems, places)
    keys = sorted(lines, key=lambda key: (systems.index(key[0]), places[key[1]]))
    twice = sum(line.size for line in lines.values()) < file.stat().st_size
    if twice or keys != list(lines):
        keep(file, [lines[key] for key in keys])
