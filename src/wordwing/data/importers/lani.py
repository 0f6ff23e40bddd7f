"""The EMNLP 2018 release of LANI as a dataset.

    data/nav_drone/{train,dev,test}_annotations_6000.json   paragraphs; or `_4000`
    data/nav_drone/config_localmoves_6000.json              names the resources folder, `resources_dir`
    RESOURCES/<config_file>, RESOURCES/<path_file>          layouts, and the curves that writers were shown

Each paragraph names its own files. Paragraphs marked invalid are left out, as the authors' own loader does. Where the
configuration names no folder inside the release (it was somebody's disk), the resources are searched for under it.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Literal

from wordwing.data.dataset import Dataset, Source, check_place
from wordwing.data.importers.annotations import SPLITS, Entry, read_annotations
from wordwing.data.importers.originals import MAX_FILE, ImportNotes
from wordwing.data.importers.workspace import Files, Part, Track, chosen, import_entries, silently
from wordwing.errors import WordwingError
from wordwing.files import read_json

Annotations = Literal["any", "6000", "4000"]
"""A set of annotation files; "any" is the first of them that is there."""

DEPTH = 6
"""How many folders deep under the release the resources are searched for."""


def import_lani(
    folder: str | Path,
    out: str | Path,
    seed: int = 0,
    valid_only: bool = True,
    part: Part = "all",
    annotations: Annotations = "any",
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
    check_place(out)
    root, notes = Path(folder), ImportNotes()
    if not root.is_dir():
        raise WordwingError(f"{folder}: there is no such folder; name the LANI release")
    home = next((place for place in (root / "data" / "nav_drone", root / "nav_drone") if place.is_dir()), root)
    entries = _annotations(home, annotations, notes)
    named = chosen(entries, part, valid_only, notes)
    if not named:
        raise WordwingError(f"{folder}: of {len(entries)} paragraphs none is wanted (part {part})")
    for _, entry in named:
        if not entry.config_file:
            raise WordwingError(f'{entry.where}: there is no "config_file"')
    base = Path(resources) if resources is not None else _resources(root, home, [entry for _, entry in named])
    if not base.is_dir():
        raise WordwingError(f"{base}: there is no such folder; name the resources folder of the LANI release")

    def files(entry: Entry) -> Files:
        curves = (("that writers were shown", base / entry.path_file),) if entry.path_file else ()
        return Files(base / entry.config_file, curves)

    words = [str(folder), "--seed", str(seed), "--part", part, "--annotations", annotations]
    words += [] if valid_only else ["--no-valid-only"]
    words += [] if resources is None else ["--resources", str(resources)]
    command = shlex.join(["wordwing", "data", "import", "lani", *words])
    source = Source(name="lani", text="human", seed=seed, command=command)
    return import_entries(named, files, out, source, notes, track)


def _annotations(home: Path, wanted: Annotations, notes: ImportNotes) -> list[Entry]:
    for name in ("6000", "4000") if wanted == "any" else (wanted,):
        paths = [(split, home / f"{split}_annotations_{name}.json") for split in SPLITS]
        there = [(split, path) for split, path in paths if path.is_file()]
        if there:
            if without := [split for split, path in paths if not path.is_file()]:
                notes.facts.append(f"there are no annotations for {' and '.join(without)}")
            return [entry for split, path in there for entry in read_annotations(path, split, notes)]
    which = "6000" if wanted == "any" else wanted
    raise WordwingError(
        f"{home}: {{train,dev,test}}_annotations_{which}.json is not there; "
        "name the LANI release, in which it is in data/nav_drone"
    )


def _resources(root: Path, home: Path, entries: list[Entry]) -> Path:
    """The folder that file names are relative to: as configured, else the first in which one of a few files is."""
    wanted = [entry.config_file for entry in entries[:: max(len(entries) // 10, 1)]]
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
