"""`wordwing data import` and `wordwing data export`: datasets in the formats of other people's tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wordwing.commands.common import check_at_least, check_seed, track

if TYPE_CHECKING:
    from wordwing.data.dataset import Dataset


def human_nav(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    out: Path,
    seed: int = 0,
    hold_out: int = 10,
    skip_unknown: bool = False,
) -> None:
    """Import human_nav: sentences that people wrote for walks through furnished rooms.

    Args:
        folder: Where scenes.json and the splits, train.jsonl.xz and so on, are.
        out: Folder for the dataset.
        seed: Chooses where in its room each instruction's arena lies, and which rooms are held out.
        hold_out: How many training rooms become the split dev-unseen; 0 for none.
        skip_unknown: Leave out furniture that wordwing does not know, instead of stopping.
    """
    from wordwing.data.importers.human_nav import import_human_nav

    check_seed(seed)
    check_at_least("hold-out", hold_out, 0)
    _summary(import_human_nav(folder, out, seed, hold_out, skip_unknown, track))


def alfred(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    out: Path,
    seed: int = 0,
    hold_out: int = 10,
) -> None:
    """Import the "go to" instructions of ALFRED.

    Args:
        folder: ALFRED's json_2.1.0, or the folder that it is in.
        out: Folder for the dataset.
        seed: Chooses where in its room each instruction's arena lies, and which rooms are held out.
        hold_out: How many training rooms become the split dev-unseen; 0 for none.
    """
    from wordwing.data.importers.alfred import import_alfred

    check_seed(seed)
    check_at_least("hold-out", hold_out, 0)
    _summary(import_alfred(folder, out, seed, hold_out, track))


def _summary(dataset: Dataset) -> None:
    """Say what was imported, what was not and why."""
    for split, counts in dataset.meta["counts"].items():
        label = dataset.meta["splits"].get(split)
        print(f"{split}: {', '.join(f'{n} {what}' for what, n in counts.items())}" + (f" ({label})" if label else ""))
    for note in dataset.meta["notes"]:
        print(note)
    print(dataset.folder)


def lani(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    out: Path,
    seed: int = 0,
    valid_only: bool = True,
    part: Literal["all", "field", "cage"] = "all",
    annotations: Literal["any", "6000", "4000"] = "any",
    resources: Path | None = None,
) -> None:
    """Import LANI as released with EMNLP 2018.

    Args:
        folder: The release: data/nav_drone is in it.
        out: Folder for the dataset.
        seed: Chooses where landmarks look, which the release does not say.
        valid_only: Leave out paragraphs that are marked invalid, as the authors do.
        part: The paper's REAL environments, 6000 to 6999 (cage), all others (field), or both (all).
        annotations: Which annotation files; by default 6000, or 4000 where those are not there.
        resources: The folder that the annotations' file names are relative to; by default it is searched for.
    """
    from wordwing.data.importers.lani import import_lani

    check_seed(seed)
    _summary(import_lani(folder, out, seed, valid_only, part, annotations, resources, track))


def drif(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    out: Path,
    seed: int = 0,
    valid_only: bool = False,
    part: Literal["all", "field", "cage"] = "all",
    annotations: Literal["any", "7000", "6000", "4000"] = "any",
) -> None:
    """Import a drif workspace, as released with CoRL 2019 or written by `wordwing data export drif`.

    Args:
        folder: The workspace: configs is in it.
        out: Folder for the dataset.
        seed: Chooses where landmarks look, which the workspace does not say.
        valid_only: Leave out paragraphs that are marked invalid, which the authors keep.
        part: The paper's REAL environments, 6000 to 6999 (cage), all others (field), or both (all).
        annotations: Which annotation files; 4000 is annotation_results.json; by default the first that are there.
    """
    from wordwing.data.importers.drif import import_drif

    check_seed(seed)
    _summary(import_drif(folder, out, seed, valid_only, part, annotations, track))


def export_drif(dataset: Annotated[Path, tyro.conf.Positional], /, out: Path) -> None:
    """Write a dataset as a workspace of the authors' CoRL 2019 format.

    Args:
        dataset: A dataset's folder; its layouts must be arenas, not rooms larger than one.
        out: Folder for the workspace; new, empty or an earlier export.
    """
    from wordwing.data import exporters
    from wordwing.data.dataset import Dataset

    for split, count in exporters.export_drif(Dataset(dataset), out, track).items():
        print(f"{split:12} {count} paragraphs")
    print(out)
