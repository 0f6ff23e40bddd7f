"""Annotation files of LANI and the drif workspace: one entry for each paragraph that somebody wrote and followed.

An entry has `id`, `valid`, `config_file`, `path_file` and, with one value for each segment, `instructions`, `moves`,
`start_x`, `start_z`, `start_rot`, `end_x` and `end_z`. How variants are read:

- Fields may lie at the entry's root or in an object `metadata` in it; where both have a field the root's counts.
- `id` may be a number or a text. `valid` may be missing, which means true.
- An instruction may be a text or a list of words. Where an entry has one segment, values may stand without a list.
- `moves` may be missing: then nothing can be replayed. `end_rot` and `num_tokens` are not needed and not read.
- Positions are Unity metres, or layout units if the file's values say so; rotations are degrees clockwise from +z.
"""

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from pydantic import AfterValidator, BeforeValidator, Field

from wordwing.data.importers.originals import (
    ImportNotes,
    LenientFlag,
    LenientNumbers,
    check_lengths,
    is_unity,
    to_arena,
)
from wordwing.errors import WordwingError, shown
from wordwing.files import SAFE_NAME, SAFE_NAME_RULE, read_json, safe_name
from wordwing.frames import compass_to_yaw
from wordwing.language.meaning.clauses import Clause
from wordwing.validation import numbered, parse
from wordwing.world.paths import Floats

SPLITS = ("train", "dev", "test")

MAX_ANNOTATIONS, MAX_PARTS = 64_000_000, 8
"""Largest file of annotations that is read, bytes, and how many parts the path of a file in it may have."""


def _listed(value: object) -> object:
    """A value that stands without its list."""
    return [value] if isinstance(value, int | float | str) else value


def _joined(value: object, between: str) -> object:
    """A text, or the words of a list joined, with white space folded."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        value = between.join(value)
    return between.join(value.split()) if isinstance(value, str) else value


def _relative(path: str) -> str:
    """A path of safe names; the authors' tools ran on several systems, so either slash may separate."""
    parts = [part for part in path.strip().replace("\\", "/").split("/") if part not in ("", ".")]
    if len(parts) > MAX_PARTS:
        raise ValueError(f"is {shown(path)}; it lies more than {MAX_PARTS - 1} folders deep")
    if wrong := [part for part in parts if not re.fullmatch(SAFE_NAME, part)]:
        raise ValueError(f"is {shown(path)}, of which a part is {shown(wrong[0])}; it must be {SAFE_NAME_RULE}")
    return "/".join(parts)


_Entries = Annotated[list[dict[str, Any]], numbered("entry")]
_LenientNumbers = Annotated[LenientNumbers, BeforeValidator(_listed)]
_Sentence = Annotated[str, BeforeValidator(partial(_joined, between=" "))]
_Moves = Annotated[str, BeforeValidator(partial(_joined, between=""))]
_File = Annotated[str, AfterValidator(_relative), BeforeValidator(lambda value: "" if value is None else value)]


@dataclass(frozen=True)
class OwnEntry:
    """What our own exporter added."""

    id: str = ""
    """The paragraph's."""
    spans: list[tuple[int, int]] | None = None
    """[S] first and last point of the curve."""
    meaning: list[tuple[Clause, ...] | None] | None = None
    """[S] what each segment means."""


@dataclass(frozen=True)
class AnnotationRow:
    """An entry of S segments as it stands in a file."""

    instructions: Annotated[list[_Sentence], Field(description="a list of texts"), BeforeValidator(_listed)]
    """[S] verbatim, white space folded."""
    start_x: _LenientNumbers
    start_z: _LenientNumbers
    start_rot: _LenientNumbers
    end_x: _LenientNumbers
    end_z: _LenientNumbers
    moves: Annotated[list[_Moves] | None, Field(description="a list of texts"), BeforeValidator(_listed)] = None
    valid: LenientFlag = True
    config_file: _File = ""
    path_file: _File = ""
    """Relative to LANI's resources; empty where they are not named."""
    wordwing: OwnEntry = OwnEntry()

    def __post_init__(self) -> None:
        check_lengths(vars(self) | {"spans": self.wordwing.spans, "meaning": self.wordwing.meaning})


@dataclass(frozen=True)
class Entry:
    """One annotated paragraph of S segments; metres and radians, world frame."""

    where: str
    """Its file, number and id: begins complaints."""
    env: str
    """The environment's id, as in file names."""
    split: str
    row: AnnotationRow
    starts: Floats
    """[S, 2] where each segment's follower started, not yet clipped to the arena."""
    yaws: Floats
    """[S] and looked."""
    ends: Floats
    """[S, 2] where the follower said that the segment ends."""
    moves: list[str] | None
    """[S] letters F, L and R."""


def read_annotations(path: Path, split: str | None, notes: ImportNotes) -> list[Entry]:
    """Read all entries of a file.

    Args:
        path: The file: a list of entries, or an object with such a list for each split.
        split: What its entries are for; None if the file says it.
        notes: Told the units.
    """
    document = read_json(path, MAX_ANNOTATIONS, "file of annotations")
    parts = parse(dict[str, Any], document, str(path)) if split is None else {split: document}
    found = [name for name in (SPLITS if split is None else (split,)) if name in parts]
    if not found:
        raise WordwingError(f"{path}: the file must be an object with keys {', '.join(SPLITS)}")
    entries = []
    for part in found:
        rows = parse(_Entries, parts[part], f'{path}: "{part}"' if split is None else str(path))
        label = f"{part} entry" if split is None else "entry"
        entries += [_entry(part, row, f"{path}: {label} {number}") for number, row in enumerate(rows, start=1)]
    every = [places for entry in entries for places in (entry.starts, entry.ends)]
    unity = not every or is_unity(np.concatenate(every))
    if not unity:
        notes.facts.append(f"{path.name}: positions are in layout units, 0 to 1000")
    for number, entry in enumerate(entries):
        known = not set("".join(entry.moves or ())) - set("FLR")
        notes.add("paragraphs with moves other than F, L and R, never replayed", entry.env, not known)
        starts, ends = to_arena(entry.starts, unity), to_arena(entry.ends, unity)
        entries[number] = replace(entry, starts=starts, ends=ends, moves=entry.moves if known else None)
    return entries


def _entry(split: str, fields: dict[str, Any], where: str) -> Entry:
    """An entry, wherever its fields lie, with positions in the file's units."""
    nested = fields.get("metadata")
    fields = {**(nested if isinstance(nested, dict) else {}), **fields}
    env = fields.get("id")
    if isinstance(env, float) and env.is_integer():
        env = int(env)
    name = str(env).strip() if isinstance(env, int | str) and not isinstance(env, bool) else ""
    name = safe_name(name or env, f'{where}: "id"')
    env = str(int(name)) if name.isdigit() else name
    where = f"{where} (id {env})"
    row = parse(AnnotationRow, fields, where)
    starts, ends = np.array([row.start_x, row.start_z], float).T, np.array([row.end_x, row.end_z], float).T
    yaws = compass_to_yaw(torch.tensor(row.start_rot, dtype=torch.float64)).numpy()
    moves = None if row.moves is None else [text.upper() for text in row.moves]
    return Entry(where, env, split, row, starts, yaws, ends, moves)
