"""The corpus `typed`: what visitors of the studio type, freely invented, at random starts; each with its meaning.

A yardstick, not to train on: the file comes with wordwing, its first line has the profiles of the visitors, each other
line a sentence, the world that it was typed in and what it means, written by hand for the judge (docs/data.md).
"""

import json
import lzma
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.schema import MAX_ALTERNATIVES, MAX_POINTS, MAX_TEXT, Paragraph, Segment
from wordwing.data.written import MAX_LINE, Profile, Sha256
from wordwing.files import read_lines, replacing
from wordwing.language.meaning.clauses import Clause
from wordwing.validation import Array, Pose2, SafeName, Version1, numbered, parse_json
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats

PACKED = Path(str(files("wordwing"))) / "data" / "typed.jsonl.xz"

STEPS = 100
"""Control steps that a flight is given: visitors ask for circles, and for five things at once."""

SPLITS = {
    "dev": "sentences of four visitors, and twenty of the project's own",
    "test": "sentences of five other visitors, to be flown once, when all decisions have been taken",
}


@dataclass(frozen=True)
class Typed:
    """One sentence: where it was typed, and what it means."""

    id: SafeName
    visitor: SafeName
    world: Corpus
    """What kind of layout."""
    layout: dict[str, Any]
    """What a layout file has."""
    start: Pose2
    sentence: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    """Verbatim."""
    meanings: Annotated[
        tuple[Annotated[tuple[Clause, ...], Field(min_length=1)], ...],
        Field(min_length=1, max_length=MAX_ALTERNATIVES + 1),
        numbered("meaning"),
    ]
    """What it may mean; whoever does one of them has followed it."""
    path: Annotated[Floats, Array(2, least=1, most=MAX_POINTS)]
    """[P, 2] from the start on, drawn by hand as a careful pilot would fly it."""
    unclear: bool = False
    """Whether clauses cannot say what matters in it."""
    note: str = ""
    """What they cannot say."""
    sha256: Sha256 | None = None
    """Of the sheet that the visitor saw; None for the project's own sentences, which had none."""

    def paragraph(self, split: str) -> Paragraph:
        """As a dataset has it; its layout is called as itself."""
        x, y, yaw = self.start
        meaning, *others = self.meanings
        path = np.vstack([(x, y), self.path])
        segment = Segment(self.sentence, (x, y), yaw, path, meaning, alternatives=tuple(others))
        return Paragraph(self.id, split, self.id, (segment,))


@dataclass(frozen=True)
class _Head:
    schema: Version1
    profiles: tuple[Profile, ...]


def read_typed(path: Path = PACKED) -> tuple[list[Profile], list[Typed]]:
    """The visitors and what they typed, of a packed file."""
    lines = read_lines(path, MAX_LINE)
    head = parse_json(_Head, next(lines, b""), f"{path}: line 1")
    return list(head.profiles), [
        parse_json(Typed, line, f"{path}: line {number}") for number, line in enumerate(lines, start=2)
    ]


def write_typed(profiles: Sequence[Profile], sentences: Sequence[Typed], path: Path = PACKED) -> None:
    """Pack them, sorted: the same content gives the same bytes."""
    rows = [{"schema": 1, "profiles": [asdict(profile) for profile in sorted(profiles, key=lambda each: each.id)]}]
    for entry in sorted(sentences, key=lambda each: each.id):
        meanings = [[clause.to_json() for clause in meaning] for meaning in entry.meanings]
        rows.append(asdict(entry) | {"meanings": meanings, "path": entry.path.tolist()})
    text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    with replacing(path) as temporary:
        temporary.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def unpack_typed(path: Path, folder: Path) -> Dataset:
    """Write the dataset of a packed file."""
    profiles, sentences = read_typed(path)
    splits = {profile.id: profile.split for profile in profiles}
    layouts = {entry.id: Layout.from_document(entry.layout, f"{path}: {entry.id}") for entry in sentences}
    command = "python scripts/typed_pack.py OUT"
    source = Source("typed", "language-model-visitor", None, command, steps=STEPS, splits=SPLITS)
    return write_dataset(folder, source, layouts, [entry.paragraph(splits[entry.visitor]) for entry in sentences])
