"""`wordwing report`: tables, charts, a page and films from evaluations, curves from training runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

from wordwing.commands.progress import bar
from wordwing.errors import WordwingError


def report(
    folders: Annotated[tuple[Path, ...], tyro.conf.Positional],
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
    from wordwing.evaluation import report as reporting
    from wordwing.evaluation.episodes import count_lines

    given = reporting.sorted_folders(folders)
    place = out or (folders[0] / "report" if len(folders) == 1 and folders[0].is_dir() else Path("out") / "report")
    reporting.check_place(place)
    flights = sum(map(count_lines, given.evaluations))
    with bar("measuring", flights, "flights") as tick:
        scores = reporting.rescore(given, tick)
    with bar("filming", films if scores else 0, "films") as tick:
        reporting.write_report(given, scores, place, films, lambda: tick(1))
    print(place / reporting.PAGE)
