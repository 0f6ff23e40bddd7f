"""`wordwing report` and `wordwing pack`: tables, charts and videos from evaluations; a policy with its model card."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from wordwing.commands.common import bar, check_counts, track
from wordwing.errors import WordwingError

if TYPE_CHECKING:
    import pandas as pd

    from wordwing.evaluation.report.writing import ReportFolders


def report(
    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER ...")],
    /,
    out: Path | None = None,
    videos: int = 12,
) -> None:
    """Measure all flights of evaluations again and make tables, charts, a page and videos of them.

    Several evaluations, such as sim and lab, test and dev, go into one report: wordwing report out/evaluate/cage-*
    Of a training run, which may be among them, it draws the learning curves. The same lines give the same bytes.

    Args:
        folders: Of wordwing evaluate (only their episodes.jsonl, or episodes.jsonl.xz, is read; summary.json is written
            again) and of wordwing train.
        out: Folder for report.html, tables.md, tables.tex, metrics.csv, charts and videos; by default the folder
            report in the evaluation's or the run's, or out/report for several.
        videos: How many flights of the gallery get a video at most.
    """
    if not folders:
        raise WordwingError("report on what? Name folders of evaluations: wordwing report out/evaluate/cage-dev-sim")
    check_counts(videos=videos)
    from wordwing.evaluation.report import writing

    given = writing.sort_folders(folders)
    place = out or (folders[0] / "report" if len(folders) == 1 and folders[0].is_dir() else Path("out") / "report")
    writing.check_place(place)
    writing.write_report(given, _flights(given), place, videos, partial(track, title="videos"))
    print(place / writing.PAGE)


def pack(
    policy: Annotated[Path, tyro.conf.Positional],
    evaluations: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="EVALUATION ...")],
    /,
    name: str,
    out: Path | None = None,
) -> None:
    """Make a trained policy one to pass on: weights in half precision, and a model card with what was measured.

    wordwing evaluate average oracle brave=out/sureal-gpu/best --corpus cage --split dev --out out/brave-cage
    wordwing pack out/sureal-gpu/best out/brave-cage --name brave

    Args:
        policy: A policy of wordwing train: best or policy in the folder of a run.
        evaluations: Folders of wordwing evaluate in which it flew.
        name: What the policy is called, also in the evaluations.
        out: Where it goes; by default out/NAME.
    """
    if not evaluations:
        raise WordwingError("a model card needs evaluations; wordwing evaluate makes them")
    from wordwing.evaluation.report import writing
    from wordwing.evaluation.report.card import pack as write

    given = writing.sort_folders(evaluations)
    if given.runs:
        raise WordwingError(f"{given.runs[0]}: this is a training run; name folders of wordwing evaluate")
    place = out or Path("out") / name
    write(policy, name, _flights(given), place)
    print(f"policy: {place}")


def _flights(given: ReportFolders) -> pd.DataFrame:
    """Measure all flights of evaluations again, with a progress bar."""
    from wordwing.evaluation.report import writing
    from wordwing.execution.episodes import count_lines

    with bar("measuring", sum(map(count_lines, given.evaluations)), "flights") as tick:
        return writing.measure_again(given, tick)
