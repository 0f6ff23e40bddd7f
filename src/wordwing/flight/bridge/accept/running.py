"""Flying the acceptance list: which rows are still to be flown, and the table of what was seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from wordwing.errors import WordwingError, did_you_mean
from wordwing.files import unwritable
from wordwing.flight.bridge.accept.instructions import instructions
from wordwing.flight.bridge.accept.judging import Result, greatest_xy
from wordwing.flight.bridge.accept.scenarios import SCENARIOS, Scenario
from wordwing.flight.bridge.accept.trial import AcceptConfig, Trial, TrialError
from wordwing.flight.bridge.truth import Autopilot
from wordwing.release import release

TRIES = 3
"""How often a flight is begun that does not come to what it is about."""


def run(config: AcceptConfig, scenario: Scenario) -> Iterable[tuple[Result, str]]:
    """The rows of a flight, each with the autopilot's version.

    A flight that does not come to what it is about, often because of a busy machine, is tried again; the row says so.
    """
    setting = scenario.setting()
    for number in range(1, TRIES + 1):  # noqa: B007
        trouble, version, flown = None, "", []
        with Trial(config, scenario.name, setting.start, setting.layout, scenario.parameters) as trial:
            try:
                flown = list(scenario.fly(trial))
            except TrialError as error:
                trouble = str(error)
            version, judged, (x, y) = trial.bridge.version, trial.marked is not None, greatest_xy(trial)
        if trouble is None or judged:
            break
    tried = f" (try {number})" * (number > 1)
    if trouble is not None:
        flown = [Result(row, trouble, False, x, y) for row in scenario.rows]
    for result in flown:
        yield replace(result, seen=result.seen + tried), version


def chosen(autopilot: Autopilot, only: Sequence[str]) -> list[Scenario]:
    """The flights whose name, or a row of which, begins with one of some words; all if there are none."""
    every = [entry for entry in (*SCENARIOS, *instructions()) if entry.only in (None, autopilot)]
    if not only:
        return every
    names = [name for entry in every for name in (entry.name, *entry.rows)]
    for word in only:
        if not any(name.startswith(word) for name in names):
            raise WordwingError(f'--only is "{word}"; no row begins so{did_you_mean(word, names)}')
    return [entry for entry in every if any(name.startswith(tuple(only)) for name in (entry.name, *entry.rows))]


def run_all(
    config: AcceptConfig, file: Path, only: Sequence[str], say: Callable[[str], None], *, again: bool
) -> list[dict]:
    """Fly what is chosen and not in the file yet; each row is added to the file at once.

    Args:
        config: What all flights share.
        file: JSON lines, one a row.
        only: Beginnings of names; empty for all.
        say: Told of each row.
        again: Whether rows that are in the file are flown again.

    Returns:
        All rows that the file then holds of the chosen flights, in the list's order.
    """
    wanted = chosen(config.autopilot, only)
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    done = {row["row"]: row for row in map(json.loads, lines)}
    for scenario in wanted:
        if not again and all(row in done for row in scenario.rows):
            continue
        for result, version in run(config, scenario):
            row = {"autopilot": config.autopilot, "version": version, "wordwing": release(), **result.to_json()}
            done[result.row] = row
            say(line(row))
            _write(file, done.values())
    return [done[row] for scenario in wanted for row in scenario.rows if row in done]


def line(row: dict) -> str:
    """One row for a person."""
    reached = "" if row["x"] is None else f" [|x| {row['x']:.2f}, |y| {row['y']:.2f}]"
    return f"{'holds' if row['holds'] else 'FAILS'}  {row['row']}: {row['seen']}{reached}"


def _write(file: Path, rows: Iterable[dict]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    except OSError as error:
        raise unwritable(file, error) from None
