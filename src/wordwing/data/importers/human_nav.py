"""Import human_nav: sentences that people wrote for walks through furnished rooms.

    scenes.json                     {scene: [{"name": …, "x": …, "y": …}, …]}, raw furniture centres
    NAME.jsonl.xz or NAME.jsonl     the split NAME; a line is a paragraph:
                                    {"id", "scene", "segments": [{"instruction", "start_yaw", "end_yaw", "path"}]}

Metres and radians, yaw counter-clockwise from +x, which is wordwing's own convention.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wordwing.data.dataset import Dataset, check_place
from wordwing.data.importers.parsing import MAX_FILE
from wordwing.data.importers.rooms import Rooms, build
from wordwing.data.importers.workspace import Track, silently
from wordwing.data.scenes import MAX_DISTANCE
from wordwing.data.schema import MAX_POINTS, MAX_TEXT, Paragraph, Segment, are_numbers
from wordwing.errors import WordwingError
from wordwing.files import read_json, read_lines

MAX_LINE = 1_000_000
"""Longest line that is read, bytes; with windows it grows, and must stay below what datasets may have."""

MAX_UNPACKED = 256_000_000
"""Most that a split is read of, bytes."""

ENDINGS = (".jsonl", ".jsonl.xz")


def import_human_nav(
    folder: str | Path,
    out: str | Path,
    seed: int = 0,
    hold_out: int = 10,
    skip_unknown: bool = False,
    track: Track = silently,
) -> Dataset:
    """Make a dataset of a folder.

    Args:
        folder: Where scenes.json and the splits are.
        out: The dataset's folder; new, empty or a dataset, which is replaced.
        seed: Chooses windows and held-out rooms.
        hold_out: How many training rooms become the split `dev-unseen`.
        skip_unknown: Leave out furniture that the catalogue does not have, instead of complaining.
        track: Shows progress.
    """
    check_place(out)
    command = shlex.join(["wordwing", "data", "import", "human-nav", str(folder)])
    return build(out, read_human_nav(folder), command, seed, hold_out, skip_unknown, track)


def read_human_nav(folder: str | Path) -> Rooms:
    """Read a folder; every mistake is a `WordwingError` that names file and line."""
    folder = Path(folder)
    if not folder.is_dir():
        raise WordwingError(f"{folder}: there is no such folder; name one with scenes.json and train.jsonl.xz")
    furniture = _scenes(folder / "scenes.json")
    paragraphs: list[Paragraph] = []
    places: dict[str, str] = {}
    for split, path in sorted(_splits(folder).items()):
        for where, row in _lines(path):
            entry = _paragraph(row, split, where)
            if entry.layout not in furniture:
                raise WordwingError(f'{where}: scene "{entry.layout[:60]}" is not in scenes.json')
            if entry.id in places:
                raise WordwingError(f'{where}: a paragraph is called "{entry.id[:60]}" already ({places[entry.id]})')
            places[entry.id] = where
            paragraphs.append(entry)
    return Rooms(furniture, paragraphs)


def _splits(folder: Path) -> dict[str, Path]:
    """The file of each split."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), None)
        if ending is None or path.name == ending or not path.is_file():
            continue
        split = path.name.removesuffix(ending)
        if split in found:
            raise WordwingError(f"{folder}: there are both {found[split].name} and {path.name}; keep one")
        found[split] = path
    if not found:
        raise WordwingError(f"{folder}: there is no train.jsonl.xz or other file of paragraphs")
    return found


def _scenes(path: Path) -> dict[str, list[tuple[str, float, float]]]:
    if not path.is_file():
        raise WordwingError(f"{path}: there is no such file; it says where the furniture of each scene is")
    document = read_json(path, MAX_FILE, "file of scenes")
    if not isinstance(document, dict):
        raise WordwingError(f"{path}: it must be an object with a list of furniture for each scene")
    return {name: _pieces(rows, f'{path}: scene "{name[:60]}"') for name, rows in document.items()}


def _pieces(rows: Any, where: str) -> list[tuple[str, float, float]]:
    if not isinstance(rows, list):
        raise WordwingError(f"{where} must be a list of furniture")
    pieces = []
    for number, row in enumerate(rows, start=1):
        which = f"{where}: piece {number}"
        if not isinstance(row, dict):
            raise WordwingError(f'{which} must be an object, {{"name": …, "x": …, "y": …}}')
        for key in ("name", "x", "y"):
            if key not in row:
                raise WordwingError(f'{which} has no "{key}"; it needs name, x and y')
        if not isinstance(row["name"], str):
            raise WordwingError(f'{which}: "name" must be a text')
        if not are_numbers([row["x"], row["y"]], 2):
            raise WordwingError(f"{which} ({row['name'][:40]}): x and y must be numbers of metres")
        pieces.append((row["name"], row["x"] + 0.0, row["y"] + 0.0))
    return pieces


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    """Each line's place, for complaints, and content; blank lines are passed over."""
    for number, line in enumerate(read_lines(path, MAX_LINE, MAX_UNPACKED), start=1):
        if not line.isspace():
            where = f"{path}: line {number}"
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise WordwingError(f"{where}: not valid JSON ({error})") from None
            yield where, row


def _paragraph(row: Any, split: str, where: str) -> Paragraph:
    if not isinstance(row, dict):
        raise WordwingError(f"{where}: a paragraph must be an object")
    for key in ("id", "scene"):
        if not isinstance(row.get(key), str) or not row[key]:
            raise WordwingError(f'{where}: "{key}" must be a name')
    if not isinstance(row.get("segments"), list):
        raise WordwingError(f'{where}: "segments" must be a list')
    segments = tuple(_segment(entry, f"{where}: segment {i}") for i, entry in enumerate(row["segments"]))
    return Paragraph(row["id"], split, row["scene"], segments)


def _segment(row: Any, where: str) -> Segment:
    if not isinstance(row, dict):
        raise WordwingError(f"{where} must be an object")
    text = row.get("instruction")
    if not isinstance(text, str):
        raise WordwingError(f'{where}: "instruction" must be a text')
    text = " ".join(text.split())
    if len(text) > MAX_TEXT:
        raise WordwingError(f"{where}: the instruction has {len(text)} characters; {MAX_TEXT} are the most")
    for key in ("start_yaw", "end_yaw"):
        if not are_numbers([row.get(key)], 1):
            raise WordwingError(f'{where}: "{key}" must be a number of radians')
    points = row.get("path")
    if (
        not isinstance(points, list)
        or not 1 <= len(points) <= MAX_POINTS
        or not all(are_numbers(point, 2) for point in points)
    ):
        raise WordwingError(f'{where}: "path" must be a list of 1 to {MAX_POINTS} points [x, y] in metres')
    path = np.array(points, float).round(4) + 0.0
    if np.abs(path).max() > MAX_DISTANCE:
        raise WordwingError(f"{where}: the path is more than {MAX_DISTANCE:g} m from the scene's origin")
    x, y = path[0].tolist()
    return Segment(text, (x, y), float(row["start_yaw"]), path)
