"""`wordwing study`: people judge flights; made from evaluations, reported as the paper does."""

import os
from pathlib import Path
from typing import Annotated

import tyro

from wordwing.commands.common import bar, check_counts, check_packages, check_port, serve_page
from wordwing.errors import WordwingError
from wordwing.web.database import check_new

FEW = 24
"""Flights that one process draws sooner than others would have started."""

MOST_RATERS = 1_000


def create(
    episodes: tuple[Path, ...],
    systems: tuple[str, ...] = (),
    raters: int = 5,
    items_per_rater: int | None = None,
    segments: tuple[int, ...] = (1, 2),
    limit: int | None = None,
    practice: int = 3,
    seed: int = 0,
    processes: int = 0,
    out: Path = Path("study.db"),
) -> None:
    """Make a study from saved evaluations: an item for each flight, animated from above, without names.

    Only instructions that all systems flew are rated. The study is one file, which does not need the evaluations any
    more. Try: wordwing study create --episodes out/evaluate/cage-test-20-lab --systems average pvn2-sureal --segments 2

    Args:
        episodes: Folders of wordwing evaluate, of one corpus, split and domain.
        systems: Whose flights; by default of all that flew.
        raters: How many people judge each flight.
        items_per_rater: How many flights one person is given; by default all.
        segments: Instructions of how many segments; the paper took those of two.
        limit: Only so many instructions, drawn by the seed.
        practice: How many flights raters practise on; of instructions that are not rated.
        seed: Chooses instructions, flights to practise on, and orders.
        processes: How many share the drawing; 0 takes one for each core.
        out: The file to write; nothing may be there.
    """
    from wordwing.study.create import create_study, plan

    if not 1 <= raters <= MOST_RATERS:
        raise WordwingError(f"--raters is {raters}; it must be from 1 to {MOST_RATERS:,}")
    check_counts(items_per_rater=items_per_rater, practice=practice, limit=limit, processes=processes, seed=seed)
    check_new(out)
    made = plan(episodes, systems, raters, items_per_rater, segments, limit, practice, seed)
    flights = len(made.items) + len(made.practice)
    shared_by = 1 if flights <= FEW else processes or os.cpu_count() or 1
    with bar("drawing", flights, "flights") as tick:
        create_study(made, out, shared_by, tick)
    print(
        f"{made.instructions} instructions x {len(made.settings.systems)} systems = {len(made.items)} items, "
        f"{raters} judgements each; flights to practise on: {len(made.practice)}"
    )
    if made.held_out:
        print(f"held out for practice, since all instructions were to be rated: {made.held_out}")
    print(out)


def serve(
    study: Annotated[Path, tyro.conf.Positional],
    /,
    host: str = "127.0.0.1",
    port: int = 8081,
    names: tuple[str, ...] = (),
    token: str | None = None,
) -> None:
    """Open the page on which people rate, and print the link that invites them.

    Every rater who follows it and begins gets a link of their own, with which they can continue later. On this machine
    no invitation is needed; where others can connect, only visitors with the printed link, which holds a token, can
    begin.

    Args:
        study: The study's file.
        host: Which address to listen on; 0.0.0.0 is every address of this machine.
        port: Which port.
        names: Other names by which browsers may reach it, such as that of a reverse proxy: study.example.org
        token: What the invitation holds; by default what the study's file tells, so that it stays the same.
    """
    check_port(port)
    check_packages("the page of a study", "studio")
    from wordwing.study.server import make_server
    from wordwing.study.store import Study

    serve_page(make_server, Study(study), "raters", host, port, names, token)


def report(study: Annotated[Path, tyro.conf.Positional], /, out: Path = Path("out/study")) -> None:
    """Say what people said: scores, agreement, tests between systems, charts.

    Args:
        study: The study's file.
        out: Folder for report.json, tables.md, scores.csv, ratings.csv and charts.
    """
    from wordwing.study.report import write_report
    from wordwing.study.store import Study

    found = write_report(Study(study), out)
    judged = f"{len(found.ratings)} judgements by {found.raters} raters"
    print(f"{judged}; {len(found.excluded)} instructions excluded", out, sep="\n")


def export(study: Annotated[Path, tyro.conf.Positional], /, mturk: Path, url: str = "") -> None:
    """Write a study as a batch for Amazon Mechanical Turk.

    Args:
        study: The study's file.
        mturk: The batch's CSV file; the template (.html) and the folder of images and videos (-images) go beside it.
        url: Where the folder's files will be on the web, such as https://example.org/study.
    """
    from wordwing.study.mturk import export_batch, media_folder
    from wordwing.study.store import Study

    count = export_batch(Study(study), mturk, url)
    place = f"{url} must show" if url else "give their address on the web with --url; workers cannot see"
    print(
        f"{count} items; {mturk.with_suffix('.html')} is the template",
        f"{place} the files of {media_folder(mturk)}",
        mturk,
        sep="\n",
    )


def import_results(
    study: Annotated[Path, tyro.conf.Positional], results: Annotated[Path, tyro.conf.Positional], /
) -> None:
    """Add the results of a Mechanical Turk batch; workers' ids become salted hashes.

    Args:
        study: The study's file.
        results: The CSV file that Mechanical Turk gives.
    """
    from wordwing.study.mturk import import_batch
    from wordwing.study.store import Study

    read = import_batch(Study(study), results)
    left_out = f"; {read.rejected} rejected ones left out" if read.rejected else ""
    print(f"{read.judgements} judgements added, {read.workers} new raters{left_out}", study, sep="\n")
