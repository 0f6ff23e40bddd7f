"""A report: every metric computed again from the lines of evaluations, as tables, charts, a page and videos.

    tables.md tables.tex metrics.csv    what the paper's tables have, and more
    report.html                         all of it on one page, with a gallery
    charts/*.svg videos/*.mp4           what the page shows and links to
    curves*.png                         how training runs went

Nothing but `episodes.jsonl` is read of an evaluation, so the same lines make the same bytes.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from wordwing.errors import WordwingError
from wordwing.evaluation.report.charts import charts_of
from wordwing.evaluation.report.curves import save_curves
from wordwing.evaluation.report.gallery import VIDEOS, Position, choose, examples, make_videos
from wordwing.evaluation.report.labels import SUMMARY
from wordwing.evaluation.report.page import Page, flown_rows, render
from wordwing.evaluation.report.results import MAIN_TABLES, report_tables, to_csv
from wordwing.evaluation.report.summary import flight_row, flight_table, summarise
from wordwing.evaluation.report.tables import render_table
from wordwing.execution.episodes import EPISODES, find_episodes, read_episodes
from wordwing.execution.metrics import measure
from wordwing.files import check_replaceable, replacing_folder, write_text
from wordwing.release import VERSION

FILES = ("tables.md", "tables.tex", "metrics.csv", "report.html", "charts", "videos")
PAGE = "report.html"
OLD_FILES = ("figures.csv", "films")
"""What reports of version 0.1 called metrics.csv and videos; they are replaced like others."""

Progress = Callable[[Sequence[Position]], Iterable[Position]]


@dataclass(frozen=True)
class ReportFolders:
    """Folders to report on."""

    evaluations: tuple[Path, ...]
    """Files of episodes."""
    runs: tuple[Path, ...]
    """Folders of `wordwing train`."""


def sort_folders(folders: Sequence[Path]) -> ReportFolders:
    """Tell evaluations from training runs; anything else is a mistake."""
    evaluations, runs = [], []
    for folder in folders:
        if (folder / "run.json").is_file():
            runs.append(folder)
        elif not folder.exists():
            raise WordwingError(f"{folder}: there is no such folder; wordwing evaluate and wordwing train make them")
        else:
            evaluations.append(find_episodes(folder))
    for found in (evaluations, runs):
        if len({entry.resolve() for entry in found}) < len(found):
            raise WordwingError("a folder is named twice; name each once")
    return ReportFolders(tuple(evaluations), tuple(runs))


def measure_again(folders: ReportFolders, tick: Callable[[int], None] = lambda flights: None) -> pd.DataFrame:
    """Measure every flight again, and write the summary of every evaluation; returns a `summary.flight_table`.

    Args:
        folders: What to report on.
        tick: Called with the number of flights measured since the last call.
    """
    tables = []
    for file in folders.evaluations:
        rows = []
        for episode in read_episodes([file]):
            rows.append(flight_row(episode.provenance, measure(episode)))
            tick(1)
        if not rows:
            raise WordwingError(f"{file}: there are no flights in it yet; wordwing evaluate flies them")
        tables.append(flight_table(rows))
        # A compressed file, or one in a folder that is not ours to write to, is an archive, which stays as it is.
        if file.name == EPISODES and os.access(file.parent, os.W_OK):
            write_text(file.with_name(SUMMARY), summarise(tables[-1]).to_json())
    return pd.concat(tables, ignore_index=True) if tables else flight_table([])


def write_report(
    folders: ReportFolders, flights: pd.DataFrame, out: Path, videos: int = VIDEOS, progress: Progress = iter
) -> None:
    """Write everything.

    Args:
        folders: What to report on.
        flights: Of its evaluations, as `measure_again` returns them.
        out: A folder, which only a report may be in; it is replaced.
        videos: How many to make at most.
        progress: Wraps the flights of which videos are made: a progress bar.
    """
    check_place(out)
    with replacing_folder(out) as folder:
        curves = []
        for number, run in enumerate(folders.runs, start=1):
            image = folder / ("curves.png" if len(folders.runs) == 1 else f"curves-{number}.png")
            save_curves(run, image)
            curves.append((run.resolve().name, image.read_bytes()))
        page = Page("wordwing: training", VERSION, curves=curves)
        if len(flights):
            page = _evaluated(page, flights, folders, folder, videos, progress)
        (folder / PAGE).write_text(render(page), "utf-8")


def check_place(out: Path) -> None:
    """Raise a `WordwingError` if something but a report would be lost with a folder."""
    curves = [path.name for path in out.glob("curves*.png")]
    check_replaceable(out, {*FILES, *OLD_FILES, *curves}, PAGE, "a report")


def _evaluated(
    page: Page, flights: pd.DataFrame, folders: ReportFolders, folder: Path, videos: int, progress: Progress
) -> Page:
    """Write tables, charts and videos of evaluations into a folder; the page with all of them on it."""
    summary = summarise(flights)
    tables = report_tables(summary)
    charts = {origin.title: charts_of(origin, flights, summary) for origin in summary.origins}
    texts = {
        "tables.md": "\n".join(render_table(table, "md") for table in tables),
        "tables.tex": "\n".join(render_table(table, "tex") for table in tables),
        "metrics.csv": to_csv(summary),
        **{f"charts/{chart.name}.svg": chart.svg for group in charts.values() for chart in group},
    }
    (folder / "charts").mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    shown = examples(choose(flights, summary.origins), read_episodes(folders.evaluations))
    return replace(
        page,
        title="wordwing: results",
        flown=flown_rows(flights, summary.origins),
        tables=[table for table in tables if table.name.startswith(MAIN_TABLES)],
        more_tables=[table for table in tables if not table.name.startswith(MAIN_TABLES)],
        charts=charts,
        seeds=sorted({flight.episode.provenance.seed for example in shown for flight in example.flights}),
        gallery=make_videos(shown, folder, videos, progress),
    )
