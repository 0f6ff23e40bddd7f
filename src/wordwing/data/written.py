"""The corpus `written`: sentences by language models that saw pictures of a layout and a path, in one packed file.

The file comes with wordwing: its first line has the profiles of the writers, each other line a paragraph, with the
verbatim reply to one sheet of pictures and what readers made of it (docs/data.md has the protocol).
"""

import json
import lzma
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.schema import MAX_TEXT, Paragraph, Segment
from wordwing.files import read_lines, replacing
from wordwing.validation import Number, SafeName, Version1, parse_json
from wordwing.world.layout import Layout

PACKED = Path(str(files("wordwing"))) / "data" / "written.jsonl.xz"

MAX_LINE = 1_000_000
"""Longest line that is read, bytes."""

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$", description="the SHA-256 of a file, 64 digits from 0 to f")]


@dataclass(frozen=True)
class Profile:
    """A writer or a reader."""

    id: SafeName
    split: SafeName
    """Where everything that they write belongs."""
    traits: dict[str, str]
    """What they are like and how they give instructions."""


@dataclass(frozen=True)
class Reading:
    """Where a reader, who did not see the path, says that a segment leads."""

    segment: int
    """From 0."""
    reader: SafeName
    sha256: Sha256
    """Of the reader's sheet."""
    x: Number
    """Metres, world frame."""
    y: Number


@dataclass(frozen=True)
class Written:
    """One paragraph: where it leads, and a writer's reply."""

    id: SafeName
    writer: SafeName
    sha256: Sha256
    """Of the writer's sheet."""
    world: Literal["cage", "field"]
    """What kind of layout."""
    layout: dict[str, Any]
    """What a layout file has."""
    path: tuple[tuple[int, int], ...]
    """First point and steps from point to point, millimetres, world frame."""
    ends: tuple[int, ...]
    """The last point of each segment, from 0; it is the first one of the next."""
    yaws: tuple[Number, ...]
    """Heading at the start of each segment, radians."""
    sentences: tuple[Annotated[str, Field(min_length=1, max_length=MAX_TEXT)], ...]
    """One for each segment, verbatim."""
    readings: tuple[Reading, ...] = ()

    def __post_init__(self) -> None:
        ends = list(self.ends)
        if not len(ends) == len(self.yaws) == len(self.sentences):
            raise ValueError("must have as many ends, yaws and sentences")
        if ends != sorted({*ends} - {0}) or ends[-1:] != [len(self.path) - 1]:
            raise ValueError("must have ends that go up to the last point of its path")
        if any(not 0 <= reading.segment < len(ends) for reading in self.readings):
            raise ValueError("must have readings of its own segments only")

    def paragraph(self, split: str) -> Paragraph:
        """As a dataset has it; its layout is called as itself."""
        points = np.cumsum(self.path, axis=0) / 1000
        paths = [points[first : last + 1] for first, last in zip((0, *self.ends), self.ends, strict=False)]
        segments = (
            Segment(
                sentence,
                (float(path[0, 0]), float(path[0, 1])),
                yaw,
                path,
                readings=tuple((reading.x, reading.y) for reading in self.readings if reading.segment == number),
            )
            for number, (sentence, yaw, path) in enumerate(zip(self.sentences, self.yaws, paths, strict=True))
        )
        return Paragraph(self.id, split, self.id, tuple(segments))


@dataclass(frozen=True)
class _Head:
    schema: Version1
    profiles: tuple[Profile, ...]


def read_written(path: Path = PACKED) -> tuple[list[Profile], list[Written]]:
    """The writers and readers, and the paragraphs, of a packed file."""
    lines = read_lines(path, MAX_LINE)
    head = parse_json(_Head, next(lines, b""), f"{path}: line 1")
    return list(head.profiles), [
        parse_json(Written, line, f"{path}: line {number}") for number, line in enumerate(lines, start=2)
    ]


def write_written(profiles: Sequence[Profile], paragraphs: Sequence[Written], path: Path = PACKED) -> None:
    """Pack them, sorted: the same content gives the same bytes."""
    rows = [{"schema": 1, "profiles": [asdict(profile) for profile in sorted(profiles, key=lambda each: each.id)]}]
    rows += [asdict(paragraph) for paragraph in sorted(paragraphs, key=lambda each: each.id)]
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    with replacing(path) as temporary:
        temporary.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def unpack(path: Path, folder: Path) -> Dataset:
    """Write the dataset of a packed file."""
    profiles, paragraphs = read_written(path)
    splits = {profile.id: profile.split for profile in profiles}
    layouts = {entry.id: Layout.from_document(entry.layout, f"{path}: {entry.id}") for entry in paragraphs}
    source = Source("written", "language-model", None, "python scripts/written_replies.py OUT")
    return write_dataset(folder, source, layouts, [entry.paragraph(splits[entry.writer]) for entry in paragraphs])
