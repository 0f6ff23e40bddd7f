"""Annotation files of LANI and the drif workspace: one entry for each paragraph that somebody wrote and followed.

An entry has `id`, `valid`, `config_file`, `path_file` and, with one value for each segment, `instructions`, `moves`,
`start_x`, `start_z`, `start_rot`, `end_x` and `end_z`. How variants are read:

- Fields may lie at the entry's root or in an object `metadata` in it; where both have a field the root's counts.
- `id` may be a number or a text. `valid` may be missing, which means true.
- An instruction may be a text or a list of words. Where an entry has one segment, values may stand without a list.
- `moves` may be missing: then nothing can be replayed. `end_rot` and `num_tokens` are not needed and not read.
- Positions are Unity metres, or layout units if the file's values say so; rotations are degrees clockwise from +z.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wordwing.data.importers.originals import ImportNotes, flag, is_unity, items, numbers, to_arena
from wordwing.errors import WordwingError, shown
from wordwing.files import read_json, safe_name
from wordwing.frames import compass_to_yaw
from wordwing.world.paths import Floats

POSITIONS = ("start_x", "start_z", "end_x", "end_z")
SPLITS = ("train", "dev", "test")

MAX_ANNOTATIONS, MAX_PARTS = 64_000_000, 8
"""Largest file of annotations that is read, bytes, and how many parts the path of a file in it may have."""


@dataclass(frozen=True)
class Entry:
    """One annotated paragraph of S segments; metres and radians, world frame."""

    where: str
    """Its file, number and id: begins complaints."""
    env: str
    """The environment's id, as in file names."""
    split: str
    valid: bool
    instructions: tuple[str, ...]
    """[S] verbatim, white space folded."""
    starts: Floats
    """[S, 2] where each segment's follower started, not yet clipped to the arena."""
    yaws: Floats
    """[S] and looked."""
    ends: Floats
    """[S, 2] where the follower said that the segment ends."""
    moves: tuple[str, ...] | None
    """[S] letters F, L and R."""
    config_file: str
    path_file: str
    """Relative to LANI's resources; empty where they are not named."""
    extra: dict[str, Any] = field(default_factory=dict)
    """What our own exporter added."""


def read_annotations(path: Path, split: str | None, notes: ImportNotes) -> list[Entry]:
    """Read all entries of a file.

    Args:
        path: The file: a list of entries, or an object with such a list for each split.
        split: What its entries are for; None if the file says it.
        notes: Told the units.
    """
    document = read_json(path, MAX_ANNOTATIONS, "file of annotations")
    if split is not None:
        if not isinstance(document, list):
            raise WordwingError(f"{path}: this is {shown(document)}; annotations are a list of entries, […]")
        document = {split: document}
    elif not isinstance(document, dict) or not document.keys() & set(SPLITS):
        raise WordwingError(f"{path}: the file must be an object with keys {', '.join(SPLITS)}")
    raw = []
    for part in [split] if split is not None else [name for name in SPLITS if name in document]:
        rows = document[part]
        if not isinstance(rows, list):
            raise WordwingError(f'{path}: "{part}" is {shown(rows)}; it must be a list of entries, […]')
        label = "entry" if split is not None else f"{part} entry"
        raw += [(part, _fields(row, f"{path}: {label} {i}")) for i, row in enumerate(rows, start=1)]
    read = [(part, row, _positions(row, where), where) for part, (row, where) in raw]
    every = [place for _, _, places, _ in read for place in (places[:, :2], places[:, 2:])]
    unity = is_unity(np.concatenate(every)) if every else True
    if every and not unity:
        notes.facts.append(f"{path.name}: positions are in layout units, 0 to 1000")
    entries = [_entry(part, row, to_arena(places.reshape(-1, 2, 2), unity), where) for part, row, places, where in read]
    for number, entry in enumerate(entries):
        if set("".join(entry.moves or ())) - set("FLR"):
            notes.add("paragraphs with moves other than F, L and R, never replayed", entry.env)
            entries[number] = replace(entry, moves=None)
    return entries


def _fields(row: Any, where: str) -> tuple[dict[str, Any], str]:
    """An entry's fields, wherever they lie, with one list a field; and its place with the id."""
    if not isinstance(row, dict):
        raise WordwingError(f"{where} is {shown(row)}; it must be an object")
    nested = row.get("metadata")
    fields = {**(nested if isinstance(nested, dict) else {}), **row}
    env = fields.get("id")
    if isinstance(env, float) and env.is_integer():
        env = int(env)
    name = str(env).strip() if isinstance(env, int | str) and not isinstance(env, bool) else ""
    safe_name(name or env, f'{where}: "id"')
    fields["id"] = str(int(name)) if name.isdigit() else name
    for key in ("instructions", "moves", "start_rot", *POSITIONS):
        if isinstance(fields.get(key), int | float | str):
            fields[key] = [fields[key]]
    return fields, f"{where} (id {fields['id']})"


def _positions(row: dict[str, Any], where: str) -> Floats:
    """[S, 4] start and end x and z in the file's units."""
    count = len(items(row, "instructions", where))
    columns = [numbers(items(row, key, where, count, "instructions"), key, where) for key in POSITIONS]
    return np.stack(columns, axis=-1)


def _entry(split: str, row: dict[str, Any], places: Floats, where: str) -> Entry:
    count = len(row["instructions"])
    rotations = numbers(items(row, "start_rot", where, count, "instructions"), "start_rot", where)
    moves = None
    if row.get("moves") is not None:
        texts = items(row, "moves", where, count, "instructions")
        moves = tuple(_text(text, "moves", where, "").upper().replace(" ", "") for text in texts)
    extra = row.get("wordwing")
    return Entry(
        where=where,
        env=row["id"],
        split=split,
        valid=flag(row.get("valid", True), "valid", where),
        instructions=tuple(_text(text, "instructions", where, " ") for text in row["instructions"]),
        starts=places[:, 0],
        yaws=compass_to_yaw(torch.from_numpy(rotations)).numpy(),
        ends=places[:, 1],
        moves=moves,
        config_file=_file(row.get("config_file"), "config_file", where),
        path_file=_file(row.get("path_file"), "path_file", where),
        extra=extra if isinstance(extra, dict) else {},
    )


def _text(value: Any, key: str, where: str, between: str) -> str:
    """A text, or the words of a list joined, with white space folded."""
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        value = between.join(value)
    if not isinstance(value, str):
        raise WordwingError(f'{where}: "{key}" has {shown(value)} in it; it must be a text')
    # Half a surrogate pair, which JSON can hold, could not be written again.
    return " ".join(value.encode("utf-8", "replace").decode("utf-8").split())


def _file(value: Any, key: str, where: str) -> str:
    """A relative path of safe names; the authors' tools ran on several systems, so either slash may separate."""
    if value is not None and not isinstance(value, str):
        raise WordwingError(f'{where}: "{key}" is {shown(value)}; it must be the name of a file')
    parts = (value or "").strip().replace("\\", "/").split("/")
    if len(parts) > MAX_PARTS:
        raise WordwingError(f'{where}: "{key}" is {shown(value)}; it lies more than {MAX_PARTS - 1} folders deep')
    what = f'{where}: "{key}" is {shown(value)}, of which a part'
    return "/".join(safe_name(part, what) for part in parts if part not in ("", "."))
