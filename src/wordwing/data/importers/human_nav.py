"""Import human_nav: sentences that people wrote for walks through furnished rooms.

    scenes.json                     {scene: [{"name": …, "x": …, "y": …}, …]}, raw furniture centres
    NAME.jsonl.xz or NAME.jsonl     the split NAME; a line is a paragraph:
                                    {"id", "scene", "segments": [{"instruction", "start_yaw", "end_yaw", "path"}]}

Metres and radians, yaw counter-clockwise from +x, which is wordwing's own convention.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import TypeAdapter

from wordwing.data.dataset import Dataset, check_place
from wordwing.data.importers.originals import MAX_FILE, Track, silently
from wordwing.data.importers.rooms import Rooms, build
from wordwing.data.scenes import MAX_DISTANCE
from wordwing.data.schema import MAX_POINTS, MAX_TEXT, Paragraph, Segment
from wordwing.errors import WordwingError
from wordwing.files import read_json, read_lines
from wordwing.validation import Array, Label, Number, numbered, parse, parse_json
from wordwing.world.paths import Floats

MAX_LINE = 1_000_000
"""Longest line that is read, bytes; with windows it grows, and must stay below what datasets may have."""

MAX_UNPACKED = 256_000_000
"""Most that a split is read of, bytes."""

ENDINGS = (".jsonl", ".jsonl.xz")


@dataclass(frozen=True)
class _Furniture:
    name: str
    x: Number
    y: Number


@dataclass(frozen=True)
class _SegmentRow:
    instruction: str
    start_yaw: Number
    end_yaw: Number
    path: Annotated[Floats, Array(2, least=1, most=MAX_POINTS)]


@dataclass(frozen=True)
class _ParagraphRow:
    id: Label
    scene: Label
    segments: Annotated[tuple[_SegmentRow, ...], numbered("segment", first=0)]


_SCENES = TypeAdapter(dict[str, Annotated[list[_Furniture], numbered("piece")]])


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
        for number, line in enumerate(read_lines(path, MAX_LINE, MAX_UNPACKED), start=1):
            if line.isspace():
                continue
            where = f"{path}: line {number}"
            entry = _paragraph(line, split, where)
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
    scenes = parse(_SCENES, read_json(path, MAX_FILE, "file of scenes"), str(path))
    return {name: [(piece.name, piece.x + 0.0, piece.y + 0.0) for piece in pieces] for name, pieces in scenes.items()}


def _paragraph(line: bytes, split: str, where: str) -> Paragraph:
    row = parse_json(_ParagraphRow, line, where)
    segments = tuple(_segment(entry, f"{where}: segment {i}") for i, entry in enumerate(row.segments))
    return Paragraph(row.id, split, row.scene, segments)


def _segment(row: _SegmentRow, where: str) -> Segment:
    text = " ".join(row.instruction.split())
    if len(text) > MAX_TEXT:
        raise WordwingError(f"{where}: the instruction has {len(text)} characters; {MAX_TEXT} are the most")
    path = row.path.round(4) + 0.0
    if np.abs(path).max() > MAX_DISTANCE:
        raise WordwingError(f"{where}: the path is more than {MAX_DISTANCE:g} m from the scene's origin")
    x, y = path[0].tolist()
    return Segment(text, (x, y), row.start_yaw, path)
