"""What the importers of LANI and of the drif workspace share: from entries and files to a dataset.

Environments whose layout files have the same landmarks and lakes in the same places share one layout, named after the
first of them, so that splits are compared by what the arenas are and not by what files are called. Paragraphs are
named after their environments: "6001", and "6001-1", "6001-2" for further ones in the same environment. Where a
segment in between is left out, the rest becomes a paragraph of its own, "6001.2", because pairs of segments must truly
follow one another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.importers.annotations import Entry
from wordwing.data.importers.arenas import Config, read_config, to_layout
from wordwing.data.importers.originals import ImportNotes, is_unity, to_arena
from wordwing.data.importers.paths import best_cut, find_stride, read_curve, segments_of
from wordwing.data.schema import Paragraph, Segment
from wordwing.errors import WordwingError
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats

CAGE_IDS = range(6000, 7000)
"""Environments that are the paper's REAL ones: 15 landmarks, no lakes."""

Part = Literal["all", "field", "cage"]
"""Which environments are wanted: LANI's field, the paper's REAL cage, or both."""

Track = Callable[[Sequence[Any], str], Iterable[Any]]
"""Goes through a sequence, and may show how far it is under a title."""


class Files(NamedTuple):
    """Where the files of an environment would be."""

    layout: Path
    curves: tuple[tuple[str, Path], ...]
    """What each is, and where; the preferred first."""


class ImportedLayout(NamedTuple):
    """The layout of an environment."""

    name: str
    layout: Layout
    whole: bool
    """Whether each landmark of the file is in the layout."""


def silently(rows: Sequence[Any], title: str) -> Iterable[Any]:
    """Go through a sequence and show nothing."""
    return rows


def chosen(entries: Iterable[Entry], part: Part, valid_only: bool, notes: ImportNotes) -> list[tuple[str, Entry]]:
    """Name paragraphs and leave out those that are not wanted; names do not depend on what is wanted.

    Returns:
        Names and entries. A name is the environment's id, with a number for further paragraphs in it.
    """
    seen: Counter[str] = Counter()
    used: set[str] = set()
    wanted, real = [], 0
    for entry in entries:
        name = _unused(entry.env if not seen[entry.env] else f"{entry.env}-{seen[entry.env]}", used)
        seen[entry.env] += 1
        cage = entry.env.isdigit() and int(entry.env) in CAGE_IDS
        if part != "all" and cage != (part == "cage"):
            continue
        if not entry.row.valid:
            notes.add(f"paragraphs marked invalid, {'left out' if valid_only else 'kept'}", name)
        if entry.row.valid or not valid_only:
            wanted.append((name, entry))
            real += cage
    notes.facts.append(f"{real} of {len(wanted)} paragraphs are in REAL environments, 6000 to 6999")
    return wanted


def import_entries(
    named: list[tuple[str, Entry]],
    files: Callable[[Entry], Files],
    out: str | Path,
    source: Source,
    notes: ImportNotes,
    track: Track = silently,
) -> Dataset:
    """Make a dataset of annotated paragraphs.

    Args:
        named: Names and entries of paragraphs.
        files: Where an entry's files are.
        out: The dataset's folder.
        source: Its name, text, seed, command and steps; notes, splits and what is shared are added here.
        notes: What was counted so far.
        track: Shows progress.
    """
    where = {name: files(entry) for name, entry in named}
    found = [(name, entry) for name, entry in named if where[name].layout.is_file()]
    if not found:
        example = f"; {where[named[0][0]].layout} would be the first" if named else ""
        raise WordwingError(f"none of {len(named)} paragraphs has a layout file{example}")
    missing = [name for name, _ in named if not where[name].layout.is_file()]
    for name in missing:
        notes.add("paragraphs without a layout file, left out", name)
    arenas = _arenas([(entry.env, where[name].layout) for name, entry in found], source.seed or 0, notes, track)
    curves = _curves([where[name] for name, _ in found], notes, track)
    stride = find_stride((entry for _, entry in found), notes)
    paragraphs: list[Paragraph] = []
    origins: Counter[str] = Counter()
    used: set[str] = set()
    for name, entry in track(found, "paragraphs"):
        arena = arenas[where[name].layout]
        there = [(kind, curves[path]) for kind, path in where[name].curves if path in curves]
        parts = _parts(entry, arena, there, stride, origins, notes)
        own = entry.row.wordwing.id
        title = own if own and own not in used else name
        for number, segments in enumerate(parts, start=1):
            label = _unused(title if number == 1 else f"{title}.{number}", used)
            paragraphs.append(Paragraph(label, entry.split, arena.name, tuple(segments)))
    if not paragraphs:
        said = "; ".join(notes.sentences())
        raise WordwingError(f"none of {len(named)} paragraphs has a segment that can be flown: {said}")
    notes.facts += [f"{count} paragraphs with paths {origin}" for origin, count in origins.most_common()]
    used_layouts = {arena.name: arena.layout for arena in arenas.values()}
    return write_dataset(out, _with_notes(source, paragraphs, notes), used_layouts, paragraphs)


def _arenas(rows: list[tuple[str, Path]], seed: int, notes: ImportNotes, track: Track) -> dict[Path, ImportedLayout]:
    """The layout of each layout file; files that say the same share it."""
    first: dict[tuple[object, ...], tuple[str, Config]] = {}
    keys: dict[Path, tuple[object, ...]] = {}
    # In order of numbers, so that a shared layout is named after the first environment that has it.
    for env, path in track(sorted(rows, key=lambda row: (row[0].zfill(12), row[1])), "layouts"):
        if path not in keys:
            config = read_config(path)
            keys[path] = config.key
            first.setdefault(config.key, (env, config))
    made: dict[tuple[object, ...], ImportedLayout] = {}
    names: set[str] = set()
    for key, (env, config) in first.items():
        own = config.wordwing.layout if config.wordwing else ""
        name = _unused(own if own and own not in names else env, names)
        made[key] = ImportedLayout(name, *to_layout(config, env, seed, notes))
    repeated = len(keys) - len(made)
    if repeated:
        notes.facts.append(f"{len(keys)} layout files hold {len(made)} different layouts")
    return {path: made[key] for path, key in keys.items()}


def _unused(name: str, used: set[str]) -> str:
    """A name like `name` that is not used yet, and is from now on."""
    while name in used:
        name += "'"
    used.add(name)
    return name


def _curves(rows: list[Files], notes: ImportNotes, track: Track) -> dict[Path, Floats]:
    """The points of each curve file there is, metres, world frame."""
    wanted = {path: kind for files in rows for kind, path in files.curves}
    raw: dict[str, dict[Path, Floats]] = {kind: {} for kind in wanted.values()}
    for path, kind in track(list(wanted.items()), "paths"):
        if path.is_file():
            points = read_curve(path)
            if len(points):
                raw[kind][path] = points
            else:
                notes.add("curve files without points, ignored", path.name)
    curves: dict[Path, Floats] = {}
    for kind, of_kind in raw.items():
        if of_kind:
            unity = is_unity(np.concatenate(list(of_kind.values())))
            if unity:
                notes.facts.append(f"paths {kind} are in Unity metres")
            curves |= {path: to_arena(points, unity) for path, points in of_kind.items()}
    return curves


def _parts(
    entry: Entry,
    arena: ImportedLayout,
    curves: list[tuple[str, Floats]],
    stride: float,
    origins: Counter[str],
    notes: ImportNotes,
) -> list[list[Segment]]:
    """Runs of consecutive segments; everything that is not in them is counted."""
    if not entry.row.instructions:
        notes.add("paragraphs without segments, left out", entry.env)
        return []
    cut = best_cut(entry, curves, stride, notes)
    if cut is None:
        notes.add("paragraphs without curve file and moves, left out", entry.env)
        return []
    parts = segments_of(entry, cut, len(arena.layout.landmarks) if arena.whole else None, notes)
    if not parts:
        notes.add("paragraphs of which no segment is left", entry.env)
        return []
    notes.add("paragraphs split where a segment is left out", entry.env, len(parts) > 1)
    origins[cut.origin] += 1
    return parts


def _with_notes(source: Source, paragraphs: list[Paragraph], notes: ImportNotes) -> Source:
    """The source with all that was counted, and with the splits that share layouts with those before them."""
    arenas: dict[str, set[str]] = {}
    for paragraph in paragraphs:
        arenas.setdefault(paragraph.split, set()).add(paragraph.layout)
    shared, words, before = [], dict(source.splits), list[str]()
    for split in sorted(arenas, key=lambda name: ({"train": 0, "dev": 1, "test": 2}.get(name, 3), name)):
        common = {other: len(arenas[split] & arenas[other]) for other in before}
        said = ", ".join(f"{count} with {other}" for other, count in common.items() if count)
        if said:
            shared.append(split)
            words[split] = f"of its {len(arenas[split])} layouts it shares {said}"
            notes.facts.append(f"{split} shares layouts: of {len(arenas[split])}, {said}")
        before.append(split)
    return replace(source, splits=words, shared=tuple(shared), notes=(*source.notes, *notes.sentences()))
