"""`wordwing evaluate`: systems on the instructions of a split, in either domain."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from wordwing.commands.common import bar, check_counts
from wordwing.commands.statistics import opened, plain_console, plain_table
from wordwing.errors import WordwingError

if TYPE_CHECKING:
    from wordwing.evaluation.report.bootstrap import Estimate
    from wordwing.evaluation.report.summary import Summary
    from wordwing.evaluation.systems import System
    from wordwing.execution.metrics import Metrics


def evaluate(
    systems: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="SYSTEM ...")],
    /,
    data: Path | None = None,
    corpus: str | None = None,
    split: str = "dev",
    segments: tuple[int, ...] = (1, 2),
    domain: Literal["sim", "lab"] = "sim",
    limit: int | None = None,
    seed: int = 0,
    device: str = "",
    processes: int = 0,
    wire: Literal["ardupilot", "px4"] | None = None,
    out: Path | None = None,
) -> None:
    """Fly systems on the same instructions and measure every flight.

    The folder gets episodes.jsonl, a line for each flight with all that it was given, all that came of it and every
    metric, and summary.json, means with intervals. wordwing report makes tables and images of them. If it is
    interrupted, the same command goes on; with other systems it adds them. Try: wordwing evaluate average oracle

    Args:
        systems: stop, average, oracle, or policies by name or folder; NAME=FOLDER gives one a name in the tables.
        data: A dataset's folder.
        corpus: A corpus by name instead: cage, field, errands, tours, house, written, typed, or dev-mini: 64
            instructions that come with wordwing; dev-mini if nothing is said.
        split: Which part: train, dev, test, …; test-20 and dev-20 are 20 fixed paragraphs, as many as the paper flew.
        segments: How many segments instructions have.
        domain: The batched simulator or the lab.
        limit: Fly only so many instructions, chosen by the seed.
        seed: Of that choice, and of gusts and noise in the lab.
        device: "cpu" or "cuda", for sim; by default CUDA where there is one.
        processes: How many share the work in the lab; 0 takes one for each core.
        wire: Fly the lab as a drone over MAVLink, in lock-step: through the guardian that flies real drones,
            with this autopilot imitated; for --domain lab.
        out: Folder for the results; by default out/evaluate/CORPUS-SPLIT-DOMAIN.
    """
    check_counts(seed=seed, limit=limit, processes=processes)
    if not systems:
        raise WordwingError("who is to fly? Name systems: wordwing evaluate average oracle")
    if not segments or not set(segments) <= {1, 2}:
        raise WordwingError(f"--segments is {' '.join(map(str, segments)) or 'empty'}; it must be 1, 2 or both")
    if wire is not None and domain != "lab":
        raise WordwingError("--wire is for the lab; say --domain lab, too")
    from wordwing.devices import find_device
    from wordwing.evaluation import evaluate as flying
    from wordwing.evaluation.report.labels import SUMMARY
    from wordwing.evaluation.systems import find_systems
    from wordwing.execution import environments
    from wordwing.execution.episodes import EPISODES

    where = find_device(device)
    dataset = opened(data, corpus or (None if data else "dev-mini"))
    chosen = find_systems(systems, dataset, where, partial(print, file=sys.stderr))
    open_environment: Any = environments.open_environment
    if wire is not None:
        from wordwing.flight.lockstep import open_lockstep  # needs the extra `flight`, unlike all else here

        open_environment = partial(open_lockstep, autopilot=wire)
    config = flying.EvaluationConfig(
        dataset,
        split,
        tuple(sorted(set(segments))),
        domain,
        limit,
        seed,
        where.type,
        processes or os.cpu_count() or 1,
        wire,
        open_environment,
    )
    folder = out or Path("out") / "evaluate" / "-".join(filter(None, (dataset.name, split, domain, wire)))
    total = len(config.instructions()) * len(chosen)
    measured: dict[str, list[Metrics]] = {}
    with bar(f"{dataset.name} {split} in {domain}", total, "flights") as tick:

        def flown(system: System, metrics: list[Metrics]) -> None:
            so_far = measured.setdefault(system.name, [])
            so_far += metrics
            tick(len(metrics), f"{system.name}: {_so_far(so_far)}")

        summary = flying.evaluate(config, chosen, folder, flown)
    _show(summary)
    _show_clauses(folder / EPISODES)
    print(f"{folder / EPISODES}\n{folder / SUMMARY}")


def _so_far(metrics: Sequence[Metrics]) -> str:
    """How many flights succeeded and, where meanings are known, did everything that was said."""
    shares = {"SR": [entry.success for entry in metrics]}
    if judged := [entry.followed for entry in metrics if entry.followed is not None]:
        shares["followed"] = judged
    return ", ".join(f"{name} {100 * sum(hits) / len(hits):.1f} %" for name, hits in shares.items())


def _show(summary: Summary) -> None:
    """The main metrics, a row for each system and number of segments."""
    from wordwing.evaluation.report.labels import title

    console = plain_console()
    shown = {name: look for name, look in _SHOWN.items() if console.width >= _WIDE or name in _NARROW}
    for origin in summary.origins:
        heading = f"{origin.corpus} {origin.split} in {origin.domain}, {origin.text} instructions, 95 % intervals"
        table = plain_table(heading, ("system", "segments", "n", *(look[0] for look in shown.values())))
        table.collapse_padding = True
        for column in table.columns[1:5]:
            column.no_wrap, column.overflow = True, "ellipsis"  # a number with its interval stands in one line
        found = summary.select(origin, kind="mean", goal="all", clauses="all")
        for segments, system in found[["segments", "system"]].drop_duplicates().itertuples(index=False):
            estimates = {name: summary.estimate(origin, segments, system, name) for name in shown}
            cells = [_cell(name, entry) for name, entry in estimates.items()]
            table.add_row(title(system), str(segments), str(estimates["success"].n), *cells)
        console.print(table)


def _show_clauses(file: Path) -> None:
    """How many clauses of each kind were done, where meanings are known and flights are not too many to judge again."""
    from wordwing.evaluation.clauses import clause_rates
    from wordwing.evaluation.report.labels import title
    from wordwing.execution.episodes import count_lines, read_episodes

    found = clause_rates(read_episodes([file])) if count_lines(file) <= _JUDGED_AGAIN else {}
    if not found:
        return
    table = plain_table("Clauses done, by kind", ("system", "kind", "n", "done, %", "score"), 2)
    for system, rates in found.items():
        for kind, rate in rates.items():
            cells = (str(rate.clauses), f"{100 * rate.share:.1f}", f"{rate.score:.2f}")
            table.add_row(title(system), kind, *cells, end_section=kind == list(rates)[-1])
    plain_console().print(table)


_JUDGED_AGAIN = 1000
"""Most flights whose clauses are counted; that takes a second for some hundred."""

_SHOWN = {
    "success": ("SR, %", 100, 1),
    "followed": ("followed, %", 100, 1),
    "stopped": ("STOP, %", 100, 1),
    "emd": ("EMD, m", 1, 2),
    "ndtw": ("nDTW", 1, 2),
    "judge_path": ("path score", 1, 2),
    "judge_goal": ("goal score", 1, 2),
}
"""Metrics on the screen: column, factor and decimals."""

_WIDE = 100
"""From so many characters on there is room for all of them…"""

_NARROW = ("success", "followed", "emd")
"""…else only for these."""

_SURE = ("success", "emd")
"""Those with their interval; summary.json has all."""


def _cell(metric: str, estimate: Estimate) -> str:
    if estimate.mean is None:
        return ""
    _column, factor, digits = _SHOWN[metric]
    text = f"{factor * estimate.mean:.{digits}f}"
    if metric in _SURE and estimate.low is not None and estimate.high is not None:
        text += f" ({factor * estimate.low:.{digits}f}–{factor * estimate.high:.{digits}f})"
    return text
