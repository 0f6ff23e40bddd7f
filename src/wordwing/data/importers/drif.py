"""The workspace of the authors' CoRL 2019 release, `drif_workspace_corl2019`, as a dataset.

    configs/{train,dev,test}_annotations_7000.json   paragraphs; or `_6000`; or one `annotation_results.json`
    configs/configs/random_config_<id>.json          layouts
    configs/anno_paths/anno_curve_<id>.json          what followers flew
    configs/paths/random_curve_<id>.json             what writers were shown

Environments 6000 to 6999 are the paper's REAL, all others LANI's. Paragraphs marked invalid are kept, as the
authors' own loader does; all paragraphs of an environment are, of which it takes the first.
"""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any, Literal

from wordwing.data.dataset import Dataset, Source, check_place
from wordwing.data.importers.annotations import SPLITS, Entry, read_annotations
from wordwing.data.importers.originals import MAX_FILE, ImportNotes
from wordwing.data.importers.workspace import Files, Part, Track, chosen, import_entries, silently
from wordwing.errors import WordwingError
from wordwing.files import read_json, safe_name

Annotations = Literal["any", "7000", "6000", "4000"]
"""A set of annotation files; "4000" is `annotation_results.json`, "any" the first of them that is there."""

MARK = "wordwing.json"
"""In a workspace of our own export: which dataset it was."""


def import_drif(
    folder: str | Path,
    out: str | Path,
    seed: int = 0,
    valid_only: bool = False,
    part: Part = "all",
    annotations: Annotations = "any",
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
    check_place(out)
    root, notes = Path(folder), ImportNotes()
    if not root.is_dir():
        raise WordwingError(f"{folder}: there is no such folder; name a drif workspace")
    configs = root if any(root.glob("*annotation*.json")) else root / "configs"
    mark = configs.parent / MARK
    entries = _annotations(configs, annotations, mark.is_file(), notes)
    named = chosen(entries, part, valid_only, notes)
    if not named:
        raise WordwingError(f"{folder}: of {len(entries)} paragraphs none is wanted (part {part})")

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


def _annotations(configs: Path, wanted: Annotations, exported: bool, notes: ImportNotes) -> list[Entry]:
    """The entries of one set of annotation files, training first; splits of other names only in our own exports."""
    for name in ("7000", "6000", "4000") if wanted == "any" else (wanted,):
        single = configs / "annotation_results.json"
        if name == "4000":
            paths: list[tuple[str | None, Path]] = [(None, single)] if single.is_file() else []
        else:
            ending = f"_annotations_{name}.json"
            others = sorted(path.name.removesuffix(ending) for path in configs.glob(f"*{ending}")) if exported else []
            splits = [*SPLITS, *(split for split in others if split not in SPLITS)]
            files = [(split, configs / f"{split}{ending}") for split in splits]
            paths = [(split, path) for split, path in files if path.is_file()]
        if paths:
            read = [split for split, _ in paths if split]
            if read and (without := [split for split in SPLITS if split not in read]):
                notes.facts.append(f"there are no annotations for {' and '.join(without)}")
            return [entry for split, path in paths for entry in read_annotations(path, split, notes)]
    which = "{train,dev,test}_annotations_7000.json" if wanted == "any" else f"the annotations {wanted}"
    raise WordwingError(f"{configs}: {which} is not there; name a drif workspace, in which it is in the folder configs")


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
