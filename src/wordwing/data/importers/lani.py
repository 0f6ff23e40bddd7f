"""The authors' two releases as datasets: LANI (EMNLP 2018) and the drif workspace (CoRL 2019).

LANI:

    data/nav_drone/{train,dev,test}_annotations_6000.json   paragraphs; or `_4000`
    data/nav_drone/config_localmoves_6000.json              names the resources folder, `resources_dir`
    RESOURCES/<config_file>, RESOURCES/<path_file>          layouts, and the curves that writers were shown

Each paragraph names its own files. Paragraphs marked invalid are left out, as the authors' own loader does. Where the
configuration names no folder inside the release (it was somebody's disk), the resources are searched for under it.

The workspace, `drif_workspace_corl2019`:

    configs/{train,dev,test}_annotations_7000.json   paragraphs; or `_6000`; or one `annotation_results.json`
    configs/configs/random_config_<id>.json          layouts
    configs/anno_paths/anno_curve_<id>.json          what followers flew
    configs/paths/random_curve_<id>.json             what writers were shown

Environments 6000 to 6999 are the paper's REAL, all others LANI's. Paragraphs marked invalid are kept, as the
authors' own loader does; all paragraphs of an environment are, of which it takes the first.

Environments whose layout files have the same landmarks and lakes in the same places share one layout, named after the
first of them, so that splits are compared by what the arenas are and not by what files are called. Paragraphs are
named after their environments: "6001", and "6001-1", "6001-2" for further ones in the same environment. Where a
segment in between is left out, the rest becomes a paragraph of its own, "6001.2", because pairs of segments must truly
follow one another.
"""

import os
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from wordwing.data.dataset import MAX_STEPS, Dataset, Source, check_place, write_dataset
from wordwing.data.importers.annotations import SPLITS, Entry, read_annotations
from wordwing.data.importers.arenas import Config, read_config, to_layout
from wordwing.data.importers.originals import MAX_FILE, ImportNotes, Progress, is_unity, silently, to_arena
from wordwing.data.importers.paths import best_cut, find_stride, read_curve, segments_of
from wordwing.data.schema import Paragraph, Segment
from wordwing.errors import WordwingError
from wordwing.files import read_json
from wordwing.validation import Label, SafeName, parse
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats

CAGE_IDS = range(6000, 7000)
"""Environments that are the paper's REAL ones: 15 landmarks, no lakes."""

Part = Literal["all", "field", "cage"]
"""Which environments are wanted: LANI's field, the paper's REAL cage, or both."""

LaniAnnotations = Literal["any", "6000", "4000"]
"""A set of annotation files; "any" is the first of them that is there."""

DrifAnnotations = Literal["any", "7000", "6000", "4000"]
"""The same; "4000" is `annotation_results.json`."""

DEPTH = 6
"""How many folders deep under the release the resources are searched for."""

MARK = "wordwing.json"
"""In a workspace of our own export: which dataset it was."""


@dataclass(frozen=True)
class ExportMark:
    """What `MARK` says of the dataset; the authors' workspaces have none."""

    name: SafeName = "drif"
    text: Label | None = None
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS)] = 50
    notes: tuple[str, ...] = ()


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


def import_lani(
    folder: str | Path,
    out: str | Path,
    seed: int = 0,
    valid_only: bool = True,
    part: Part = "all",
    annotations: LaniAnnotations = "any",
    resources: str | Path | None = None,
    track: Progress = silently,
) -> Dataset:
    """Make a dataset of the LANI release.

    Args:
        folder: The release, or its folder `nav_drone`.
        out: The dataset's folder; new, empty or a dataset, which is replaced.
        seed: Decides where landmarks look, which the release does not say.
        valid_only: Leave out paragraphs that are marked invalid.
        part: The paper's REAL environments, 6000 to 6999 ("cage"), all others ("field") or both.
        annotations: Which set of annotation files.
        resources: The folder that entries' file names are relative to; searched for by default.
        track: Shows progress.
    """
    root, notes = _opened(folder, out, "the LANI release"), ImportNotes()
    home = next((place for place in (root / "data" / "nav_drone", root / "nav_drone") if place.is_dir()), root)
    sets = [
        [(split, home / f"{split}_annotations_{name}.json") for split in SPLITS]
        for name in (("6000", "4000") if annotations == "any" else (annotations,))
    ]
    named = _named(sets, "name the LANI release, in which it is in data/nav_drone", part, valid_only, notes)
    for _, entry in named:
        if not entry.row.config_file:
            raise WordwingError(f'{entry.where}: there is no "config_file"')
    base = Path(resources) if resources is not None else _resources(root, home, [entry for _, entry in named])
    if not base.is_dir():
        raise WordwingError(f"{base}: there is no such folder; name the resources folder of the LANI release")

    def files(entry: Entry) -> Files:
        path = entry.row.path_file
        return Files(base / entry.row.config_file, (("that writers were shown", base / path),) if path else ())

    options = [*["--no-valid-only"] * (not valid_only), *([] if resources is None else ["--resources", str(resources)])]
    command = _command("lani", folder, seed, part, annotations, *options)
    return _import(named, files, out, Source("lani", "human", seed, command), notes, track)


def import_drif(
    folder: str | Path,
    out: str | Path,
    seed: int = 0,
    valid_only: bool = False,
    part: Part = "all",
    annotations: DrifAnnotations = "any",
    track: Progress = silently,
) -> Dataset:
    """Make a dataset of a drif workspace.

    Args:
        folder: The workspace, or its folder `configs`.
        out: The dataset's folder; new, empty or a dataset, which is replaced.
        seed: Decides where landmarks look, which the workspace does not say.
        valid_only: Leave out paragraphs that are marked invalid.
        part: LANI's environments ("field"), the REAL ones ("cage") or all.
        annotations: Which set of annotation files.
        track: Shows progress.
    """
    root, notes = _opened(folder, out, "a drif workspace"), ImportNotes()
    configs = root if any(root.glob("*annotation*.json")) else root / "configs"
    mark = configs.parent / MARK

    def annotation_files(name: str) -> list[tuple[str | None, Path]]:
        if name == "4000":
            return [(None, configs / "annotation_results.json")]
        ending = f"_annotations_{name}.json"
        # Splits of other names are only in our own exports.
        others = sorted(path.name.removesuffix(ending) for path in configs.glob(f"*{ending}")) if mark.is_file() else []
        return [(split, configs / f"{split}{ending}") for split in dict.fromkeys([*SPLITS, *others])]

    sets = [annotation_files(name) for name in (("7000", "6000", "4000") if annotations == "any" else (annotations,))]
    named = _named(sets, "name a drif workspace, in which it is in the folder configs", part, valid_only, notes)

    def files(entry: Entry) -> Files:
        return Files(
            configs / "configs" / f"random_config_{entry.env}.json",
            (
                ("that followers flew", configs / "anno_paths" / f"anno_curve_{entry.env}.json"),
                ("that writers were shown", configs / "paths" / f"random_curve_{entry.env}.json"),
            ),
        )

    command = _command("drif", folder, seed, part, annotations, *["--valid-only"] * valid_only)
    own = (
        parse(ExportMark, read_json(mark, MAX_FILE, "mark of an export"), str(mark)) if mark.is_file() else ExportMark()
    )
    source = Source(own.name, own.text or "human", seed, command, own.steps, notes=own.notes)
    return _import(named, files, out, source, notes, track)


def _command(release: str, folder: str | Path, seed: int, part: Part, annotations: str, *options: str) -> str:
    """The command that imports the same again."""
    words = [release, str(folder), "--seed", str(seed), "--part", part, "--annotations", annotations, *options]
    return shlex.join(["wordwing", "data", "import", *words])


def _opened(folder: str | Path, out: str | Path, what: str) -> Path:
    check_place(out)
    if not Path(folder).is_dir():
        raise WordwingError(f"{folder}: there is no such folder; name {what}")
    return Path(folder)


def _named(
    sets: Sequence[Sequence[tuple[str | None, Path]]], advice: str, part: Part, valid_only: bool, notes: ImportNotes
) -> list[tuple[str, Entry]]:
    """The wanted entries of the first set of annotation files that is there, training first, and their names.

    Names do not depend on what is wanted. A name is the environment's id, with a number for further paragraphs in it.
    """
    files = next((found for paths in sets if (found := [row for row in paths if row[1].is_file()])), None)
    first = sets[0][0][1]
    if files is None:
        raise WordwingError(f"{first.parent}: {first.name} is not there; {advice}")
    read = [split for split, _ in files if split]
    if read and (without := [split for split in SPLITS if split not in read]):
        notes.facts.append(f"there are no annotations for {' and '.join(without)}")
    entries = [entry for split, path in files for entry in read_annotations(path, split, notes)]
    seen: Counter[str] = Counter()
    used: set[str] = set()
    wanted, real = [], 0
    for entry in entries:
        name = _unused(entry.env if not seen[entry.env] else f"{entry.env}-{seen[entry.env]}", used)
        seen[entry.env] += 1
        cage = entry.env.isdigit() and int(entry.env) in CAGE_IDS
        if part != "all" and cage != (part == "cage"):
            continue
        notes.add(f"paragraphs marked invalid, {'left out' if valid_only else 'kept'}", name, not entry.row.valid)
        if entry.row.valid or not valid_only:
            wanted.append((name, entry))
            real += cage
    if not wanted:
        raise WordwingError(f"{first.parent}: of {len(entries)} paragraphs none is wanted (part {part})")
    notes.facts.append(f"{real} of {len(wanted)} paragraphs are in REAL environments, 6000 to 6999")
    return wanted


def _resources(root: Path, home: Path, entries: list[Entry]) -> Path:
    """The folder that file names are relative to: as configured, else the first in which one of a few files is."""
    wanted = [entry.row.config_file for entry in entries[:: max(len(entries) // 10, 1)]]
    for config in sorted(home.glob("config*.json")):
        row = read_json(config, MAX_FILE, "configuration")
        name = row.get("resources_dir") if isinstance(row, dict) else None
        if isinstance(name, str) and name:
            for place in (root / name, home / name):
                try:
                    # A release does not choose what else is read from the disk; --resources does.
                    inside = place.resolve().is_relative_to(root.resolve())
                    if inside and any((place / file).is_file() for file in wanted):
                        return place
                except (OSError, ValueError):  # a name that no folder can have
                    continue
    for here, folders, _ in os.walk(root):
        folders.sort()
        if len(Path(here).relative_to(root).parts) >= DEPTH:
            folders.clear()
        if any(Path(here, file).is_file() for file in wanted):
            return Path(here)
    raise WordwingError(
        f"{root}: no folder in it has {wanted[0]}, which {entries[0].where} names; "
        "name the folder that has it with --resources"
    )


def _import(
    named: list[tuple[str, Entry]],
    files: Callable[[Entry], Files],
    out: str | Path,
    source: Source,
    notes: ImportNotes,
    track: Progress,
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
        example = where[named[0][0]].layout
        raise WordwingError(f"none of {len(named)} paragraphs has a layout file; {example} would be the first")
    for name, files_of in where.items():
        notes.add("paragraphs without a layout file, left out", name, not files_of.layout.is_file())
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
        raise WordwingError(
            f"none of {len(named)} paragraphs has a segment that can be flown: {'; '.join(notes.sentences())}"
        )
    notes.facts += [f"{count} paragraphs with paths {origin}" for origin, count in origins.most_common()]
    layouts = {arena.name: arena.layout for arena in arenas.values()}
    return write_dataset(out, _with_notes(source, paragraphs, notes), layouts, paragraphs)


def _arenas(rows: list[tuple[str, Path]], seed: int, notes: ImportNotes, track: Progress) -> dict[Path, ImportedLayout]:
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
    if len(made) < len(keys):
        notes.facts.append(f"{len(keys)} layout files hold {len(made)} different layouts")
    return {path: made[key] for path, key in keys.items()}


def _unused(name: str, used: set[str]) -> str:
    """A name like `name` that is not used yet, and is from now on."""
    while name in used:
        name += "'"
    used.add(name)
    return name


def _curves(rows: list[Files], notes: ImportNotes, track: Progress) -> dict[Path, Floats]:
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
