"""A report: every figure computed again from the lines of evaluations, as tables, charts, a page and films.

    tables.md tables.tex figures.csv    what the paper's tables have, and more
    report.html                         all of it on one page, with a gallery
    charts/*.svg films/*.mp4            what the page shows and links to
    curves*.png                         how training runs went

Nothing but `episodes.jsonl` is read of an evaluation, so the same lines make the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from wordwing.errors import WordwingError
from wordwing.evaluation.episodes import EPISODES, find_episodes, read_episodes
from wordwing.evaluation.measures import measure
from wordwing.evaluation.report.curves import save_curves
from wordwing.evaluation.report.figures import charts_of, origin_title
from wordwing.evaluation.report.gallery import FILMS, Place, choose, exhibits, make_films
from wordwing.evaluation.report.page import Curves, Page, flown_rows, render
from wordwing.evaluation.report.results import MAIN_TABLES, report_tables, to_csv
from wordwing.evaluation.report.summary import SUMMARY, Score, summarise
from wordwing.evaluation.report.tables import to_latex, to_markdown
from wordwing.files import check_replaceable, replacing, replacing_folder
from wordwing.release import VERSION

MARKDOWN, LATEX, CSV, PAGE = "tables.md", "tables.tex", "figures.csv", "report.html"
CHARTS, FILMED = "charts", "films"

Progress = Callable[[Sequence[Place]], Iterable[Place]]


@dataclass(frozen=True)
class Given:
    """Folders to report on."""

    evaluations: tuple[Path, ...]
    """Files of episodes."""
    runs: tuple[Path, ...]
    """Folders of `wordwing train`."""


def sorted_folders(folders: Sequence[Path]) -> Given:
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
    return Given(tuple(evaluations), tuple(runs))


def rescore(given: Given, tick: Callable[[int], None] = lambda flights: None) -> list[Score]:
    """Measure every flight again, and write the summary of every evaluation.

    Args:
        given: What to report on.
        tick: Told how many flights have been measured since it was last told.
    """
    scores: list[Score] = []
    for file in given.evaluations:
        own = []
        for episode in read_episodes([file]):
            own.append(Score.of(episode, measure(episode)))
            tick(1)
        if not own:
            raise WordwingError(f"{file}: there are no flights in it yet; wordwing evaluate flies them")
        # A compressed file, or one in a folder that is not ours to write to, is an archive, which stays as it is.
        if file.name == EPISODES and os.access(file.parent, os.W_OK):
            with replacing(file.with_name(SUMMARY)) as temporary:
                temporary.write_text(summarise(own).to_json(), "utf-8")
        scores += own
    return scores


def write_report(
    given: Given, scores: Sequence[Score], out: Path, films: int = FILMS, progress: Progress = iter
) -> None:
    """Write everything.

    Args:
        given: What to report on.
        scores: Of its evaluations.
        out: A folder, which only a report may be in; it is replaced.
        films: How many to make at most.
        progress: Wraps the flights that are filmed: a progress bar.
    """
    check_place(out)
    with replacing_folder(out) as folder:
        curves = []
        for number, run in enumerate(given.runs, start=1):
            picture = folder / ("curves.png" if len(given.runs) == 1 else f"curves-{number}.png")
            save_curves(run, picture)
            curves.append(Curves(run.resolve().name, picture.read_bytes()))
        page = Page("wordwing: results" if scores else "wordwing: training", VERSION, curves=curves)
        if scores:
            page = _evaluated(page, scores, given, folder, films, progress)
        (folder / PAGE).write_text(render(page), "utf-8")


def check_place(out: Path) -> None:
    """Raise a `WordwingError` if something but a report would be lost with a folder."""
    curves = {path.name for path in out.glob("curves*.png")}
    check_replaceable(out, {MARKDOWN, LATEX, CSV, PAGE, CHARTS, FILMED, *curves}, PAGE, "a report")


def _evaluated(page: Page, scores: Sequence[Score], given: Given, folder: Path, films: int, progress: Progress) -> Page:
    """Write tables, charts and films of evaluations into a folder; the page with all of them on it."""
    summary = summarise(scores)
    tables = report_tables(summary)
    (folder / MARKDOWN).write_text("\n".join(map(to_markdown, tables)), "utf-8")
    (folder / LATEX).write_text("\n".join(map(to_latex, tables)), "utf-8")
    (folder / CSV).write_text(to_csv(summary), "utf-8")
    charts = {origin_title(origin): charts_of(origin, scores, summary) for origin in summary.origins}
    (folder / CHARTS).mkdir()
    for chart in (chart for group in charts.values() for chart in group):
        (folder / CHARTS / f"{chart.name}.svg").write_text(chart.svg, "utf-8")
    shown = exhibits(choose(scores, summary.origins), read_episodes(given.evaluations))
    return replace(
        page,
        flown=flown_rows(scores, summary.origins),
        tables=[table for table in tables if table.name.startswith(MAIN_TABLES)],
        more_tables=[table for table in tables if not table.name.startswith(MAIN_TABLES)],
        charts=charts,
        seeds=sorted({flown.episode.seed for exhibit in shown for flown in exhibit.flights}),
        gallery=make_films(shown, folder, films, progress),
    )
