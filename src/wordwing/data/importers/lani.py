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
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from wordwing.data.dataset import Dataset, Source, check_place
from wordwing.data.importers.annotations import SPLITS, Entry, read_annotations
from wordwing.data.importers.originals import MAX_FILE, ImportNotes
from wordwing.data.importers.workspace import Files, Part, Track, chosen, import_entries, silently
from wordwing.errors import WordwingError
from wordwing.files import read_json, safe_name

LaniAnnotations = Literal["any", "6000", "4000"]
"""A set of annotation files; "any" is the first of them that is there."""

DrifAnnotations = Literal["any", "7000", "6000", "4000"]
"""The same; "4000" is `annotation_results.json`."""

DEPTH = 6
"""How many folders deep under the release the resources are searched for."""

MARK = "wordwing.json"
"""In a workspace of our own export: which dataset it was."""


def import_lani(
    folder: str | Path,
    out: str | Path,
    seed: int = 0,
    valid_only: bool = True,
    part: Part = "all",
    annotations: LaniAnnotations = "any",
    resources: str | Path | None = None,
    track: Track = silently,
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

    def paths_of(name: str) -> list[tuple[str | None, Path]]:
        return [(split, home / f"{split}_annotations_{name}.json") for split in SPLITS]

    entries = _annotations(("6000", "4000") if annotations == "any" else (annotations,), paths_of, notes)
    if entries is None:
        which = "6000" if annotations == "any" else annotations
        raise WordwingError(
            f"{home}: {{train,dev,test}}_annotations_{which}.json is not there; "
            "name the LANI release, in which it is in data/nav_drone"
        )
    named = _wanted(folder, entries, part, valid_only, notes)
    for _, entry in named:
        if not entry.row.config_file:
            raise WordwingError(f'{entry.where}: there is no "config_file"')
    base = Path(resources) if resources is not None else _resources(root, home, [entry for _, entry in named])
    if not base.is_dir():
        raise WordwingError(f"{base}: there is no such folder; name the resources folder of the LANI release")

    def files(entry: Entry) -> Files:
        curves = (("that writers were shown", base / entry.row.path_file),) if entry.row.path_file else ()
        return Files(base / entry.row.config_file, curves)

    words = [str(folder), "--seed", str(seed), "--part", part, "--annotations", annotations]
    words += [] if valid_only else ["--no-valid-only"]
    words += [] if resources is None else ["--resources", str(resources)]
    command = shlex.join(["wordwing", "data", "import", "lani", *words])
    source = Source(name="lani", text="human", seed=seed, command=command)
    return import_entries(named, files, out, source, notes, track)


def import_drif(
    folder: str | Path,
    out: str | Path,
    seed: int = 0,
    valid_only: bool = False,
    part: Part = "all",
    annotations: DrifAnnotations = "any",
    track: Track = silently,
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

    def paths_of(name: str) -> list[tuple[str | None, Path]]:
        if name == "4000":
            return [(None, configs / "annotation_results.json")]
        ending = f"_annotations_{name}.json"
        # Splits of other names are only in our own exports.
        others = sorted(path.name.removesuffix(ending) for path in configs.glob(f"*{ending}")) if mark.is_file() else []
        splits = [*SPLITS, *(split for split in others if split not in SPLITS)]
        return [(split, configs / f"{split}{ending}") for split in splits]

    entries = _annotations(("7000", "6000", "4000") if annotations == "any" else (annotations,), paths_of, notes)
    if entries is None:
        which = "{train,dev,test}_annotations_7000.json" if annotations == "any" else f"the annotations {annotations}"
        raise WordwingError(
            f"{configs}: {which} is not there; name a drif workspace, in which it is in the folder configs"
        )
    named = _wanted(folder, entries, part, valid_only, notes)

    def files(entry: Entry) -> Files:
        return Files(
            configs / "configs" / f"random_config_{entry.env}.json",
            (
                ("that followers flew", configs / "anno_paths" / f"anno_curve_{entry.env}.json"),
                ("that writers were shown", configs / "paths" / f"random_curve_{entry.env}.json"),
            ),
        )

    words = [str(folder), "--seed", str(seed), "--part", part, "--annotations", annotations]
    command = shlex.join(["wordwing", "data", "import", "drif", *words, *["--valid-only"] * valid_only])
    source = _source(read_json(mark, MAX_FILE, "mark of an export") if mark.is_file() else {}, mark, seed, command)
    return import_entries(named, files, out, source, notes, track)


def _opened(folder: str | Path, out: str | Path, what: str) -> Path:
    check_place(out)
    if not Path(folder).is_dir():
        raise WordwingError(f"{folder}: there is no such folder; name {what}")
    return Path(folder)


def _annotations(
    sets: Sequence[str], paths_of: Callable[[str], list[tuple[str | None, Path]]], notes: ImportNotes
) -> list[Entry] | None:
    """The entries of the first set of annotation files that is there, training first."""
    for name in sets:
        paths = [(split, path) for split, path in paths_of(name) if path.is_file()]
        if paths:
            read = [split for split, _ in paths if split]
            if read and (without := [split for split in SPLITS if split not in read]):
                notes.facts.append(f"there are no annotations for {' and '.join(without)}")
            return [entry for split, path in paths for entry in read_annotations(path, split, notes)]
    return None


def _wanted(
    folder: str | Path, entries: Sequence[Entry], part: Part, valid_only: bool, notes: ImportNotes
) -> list[tuple[str, Entry]]:
    named = chosen(entries, part, valid_only, notes)
    if not named:
        raise WordwingError(f"{folder}: of {len(entries)} paragraphs none is wanted (part {part})")
    return named


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


def _source(mark: Any, file: Path, seed: int, command: str) -> Source:
    """What the dataset is: the authors', or one of ours that was exported."""
    rows = mark if isinstance(mark, dict) else {}
    text = {key: rows[key] for key in ("name", "text") if isinstance(rows.get(key), str) and rows[key]}
    steps, notes = rows.get("steps"), rows.get("notes")
    return Source(
        name=safe_name(text.get("name", "drif"), f'{file}: "name"'),
        text=text.get("text", "human"),
        seed=seed,
        command=command,
        steps=steps if type(steps) is int and steps > 0 else 50,
        notes=tuple(note for note in notes if isinstance(note, str)) if isinstance(notes, list) else (),
    )
