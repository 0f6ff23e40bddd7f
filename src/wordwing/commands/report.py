"""`wordwing report`: tables, charts, a page and films from evaluations, curves from training runs."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import tyro

from wordwing.commands.progress import bar, track
from wordwing.errors import WordwingError


def report(
    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER ...")],
    /,
    out: Path | None = None,
    films: int = 12,
) -> None:
    """Measure all flights of evaluations again and make tables, charts, a page and films of them.

    Several evaluations, such as sim and lab, test and dev, go into one report: wordwing report out/evaluate/cage-*
    Of a training run, which may be among them, it draws the learning curves. The same lines give the same bytes.

    Args:
        folders: Of wordwing evaluate (only their episodes.jsonl, or episodes.jsonl.xz, is read; summary.json is written
            again) and of wordwing train.
        out: Folder for report.html, tables.md, tables.tex, figures.csv, charts and films; by default the folder report
            in the evaluation's or the run's, or out/report for several.
        films: How many flights of the gallery are filmed at most.
    """
    if not folders:
        raise WordwingError("report on what? Name folders of evaluations: wordwing report out/evaluate/cage-dev-sim")
    if films < 0:
        raise WordwingError(f"--films is {films}; it must be 0 or more")
    from wordwing.evaluation.episodes import count_lines
    from wordwing.evaluation.report import writing

    given = writing.sorted_folders(folders)
    place = out or (folders[0] / "report" if len(folders) == 1 and folders[0].is_dir() else Path("out") / "report")
    writing.check_place(place)
    flights = sum(map(count_lines, given.evaluations))
    with bar("measuring", flights, "flights") as tick:
        scores = writing.rescore(given, tick)
    writing.write_report(given, scores, place, films, partial(track, title="filming"))
    print(place / writing.PAGE)
