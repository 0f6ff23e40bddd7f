"""Flies the acceptance list: which flights are chosen and still to be flown, and the table of results."""

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path

import numpy as np

from wordwing.errors import WordwingError, did_you_mean
from wordwing.files import read_text, write_text
from wordwing.flight.bridge.accept.scenarios import SCENARIOS, Scenario, StartCondition
from wordwing.flight.bridge.accept.trial import (
    AcceptConfig,
    Result,
    Trial,
    TrialError,
    duration,
    elapsed,
    greatest_xy,
    inside,
    point_at,
)
from wordwing.flight.served.autopilot_profile import AutopilotName
from wordwing.flight.served.vehicle import sample_start
from wordwing.release import release
from wordwing.validation import parse_json
from wordwing.world.samplers import sample_layout
from wordwing.world.tasks import Task

TRIES = 3
"""How often a flight is tried that fails before it is judged."""

COUNT = 10
"""Instructions that are flown."""

SUCCESS = 0.47
"""A flight succeeds if it stops so near to where its path ends, metres (paper: Evaluation)."""

MAX_FILE = 10_000_000
"""Largest file of results that is read, bytes."""

MANY = re.compile(r"(?P<kind>motion capture \w+, [\w ]+), \d+|(?P<other>instruction) \d+")
"""Rows that are summarised together."""


def instruction_flight(number: int) -> Scenario:
    """Fly one of the instructions by `wordwing fly`; its number chooses layout, start and words."""
    row = f"instruction {number}"

    @cache
    def task() -> Task:
        rng = np.random.default_rng(number)
        return sample_start(sample_layout("cage", rng), "cage", rng)

    def start() -> StartCondition:
        x, y = map(float, task().start_xy)
        return StartCondition((x, y, float(task().start_yaw)), task().layout)

    def fly(trial: Trial) -> Iterable[Result]:
        instruction, goal = task().instruction, task().gold_path[-1]
        trial.fly(instruction)
        begin = trial.wait_for_flight(120.0)
        trial.wait("the drone is disarmed", lambda: trial.disarmed_at(begin) is not None, 150.0)
        trial.wait("the pilot tells how it ended", lambda: "the drone is " in trial.pilot.text, 20.0)
        end = next((entry for entry in trial.events() if entry.kind == "end"), None)
        if end is None:  # the policy did not end it
            lines = [line for line in trial.pilot.text.splitlines() if "the drone is " in line]
            raise TrialError(f'"{instruction}": {"; ".join(lines)}')
        x, y = greatest_xy(trial)
        at = point_at(trial, end.time)
        off = math.hypot(at.x - goal[0], at.y - goal[1])
        ended = f"ended by {end.values['by']} after {duration(elapsed(end.time, begin))}, {off:.2f} m from the goal"
        values = {"goal": off, "success": float(off <= SUCCESS)}
        yield Result(row, f'"{instruction}": {ended}', inside(x, y), x, y, values)

    return Scenario(f"instruction-{number}", fly, (row,), start)


def run(config: AcceptConfig, scenario: Scenario) -> Iterable[Result]:
    """The rows of a flight.

    A flight that fails before it is judged, often because of a busy machine, is tried again; the row says so.
    """
    setting = scenario.setting()
    for number in range(1, TRIES + 1):  # noqa: B007
        trouble, version, judged, x, y, flown = None, "", False, None, None, []
        try:
            with closing(Trial(config, scenario.name, setting.start, setting.layout, scenario.parameters)) as trial:
                try:
                    flown = list(scenario.fly(trial))
                finally:
                    version, judged, (x, y) = trial.bridge.version, trial.marked is not None, greatest_xy(trial)
        except TrialError as error:  # also of a simulation that does not boot
            trouble = str(error)
        if trouble is None or judged:
            break
    tried = f" (try {number})" * (number > 1)
    if trouble is not None:
        flown = [Result(row, trouble, False, x, y) for row in scenario.rows]
    for result in flown:
        seen = result.seen + tried
        yield replace(result, seen=seen, autopilot=config.autopilot, version=version, wordwing=release())


def chosen(autopilot: AutopilotName, only: Sequence[str]) -> list[Scenario]:
    """The flights whose name, or one of whose rows, begins with one of `only`; all if that is empty."""
    listed = (*SCENARIOS, *map(instruction_flight, range(1, COUNT + 1)))
    every = [entry for entry in listed if entry.only in (None, autopilot)]
    if not only:
        return every
    names = [name for entry in every for name in (entry.name, *entry.rows)]
    for word in only:
        if not any(name.startswith(word) for name in names):
            raise WordwingError(f'--only is "{word}"; no row begins so{did_you_mean(word, names)}')
    return [entry for entry in every if any(name.startswith(tuple(only)) for name in (entry.name, *entry.rows))]


def run_all(
    config: AcceptConfig, file: Path, only: Sequence[str], say: Callable[[str], None], *, again: bool
) -> list[Result]:
    """Fly what is chosen and not in the file yet; each row is written at once.

    Args:
        config: What all flights share.
        file: JSON lines, one a row.
        only: Beginnings of names; empty for all.
        say: Prints each row.
        again: Whether rows that are in the file are flown again.

    Returns:
        All results of the chosen flights, in the list's order.
    """
    wanted = chosen(config.autopilot, only)
    done = {result.row: result for result in (read_results(file) if file.exists() else ())}
    for scenario in wanted:
        if not again and all(row in done for row in scenario.rows):
            continue
        for result in run(config, scenario):
            done[result.row] = result
            reached = "" if result.x is None else f" [|x| {result.x:.2f}, |y| {result.y:.2f}]"
            say(f"{'holds' if result.holds else 'FAILS'}  {result.row}: {result.seen}{reached}")
            _write(file, done.values())
    return [done[row] for scenario in wanted for row in scenario.rows if row in done]


def read_results(file: Path) -> list[Result]:
    """The rows that `run_all` has written into a file."""
    lines = read_text(file, MAX_FILE, "acceptance results").splitlines()
    return [parse_json(Result, text, f"{file}: line {number}") for number, text in enumerate(lines, start=1)]


def summarise(results: Iterable[Result]) -> list[dict[str, str]]:
    """Lines with what was seen, the greatest |x| and |y| in metres, and the verdict; the versions come first."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        found = MANY.fullmatch(result.row)
        name = result.row if found is None else found["kind"] or "instructions, by the shipped policy"
        groups.setdefault(name, []).append(result)
    every = [result for group in groups.values() for result in group]
    versions, ours = (
        ", ".join(sorted({getattr(one, name) for one in every} - {""})) for name in ("version", "wordwing")
    )
    first = {"row": "versions", "seen": f"{versions}; wordwing {ours}", "x, m": "", "y, m": "", "holds": ""}
    return [first, *(_line(name, group) for name, group in groups.items())]


def _line(name: str, group: Sequence[Result]) -> dict[str, str]:
    holds = sum(result.holds for result in group)
    several = len(group) > 1 or MANY.fullmatch(group[0].row) is not None
    xs, ys = ([value for result in group if (value := getattr(result, axis)) is not None] for axis in "xy")
    return {
        "row": name,
        "seen": _seen(group) if several else group[0].seen,
        "x, m": f"{max(xs):.2f}" if xs else "",
        "y, m": f"{max(ys):.2f}" if ys else "",
        "holds": f"{holds} of {len(group)}" if several else "yes" if holds else "**no**",
    }


def _seen(group: Sequence[Result]) -> str:
    """Summary of several flights."""
    goals = [result.values["goal"] for result in group if "goal" in result.values]
    if goals or group[0].row.startswith("instruction"):
        successes = sum(result.values.get("success", 0) for result in group)
        return f"{len(goals)} of {len(group)} flown to the end, {successes:.0f} of them within 0.47 m of the goal"
    stayed = sum(inside(result.x or 0.0, result.y or 0.0) for result in group)
    times = sorted(result.values["land"] for result in group if "land" in result.values)
    landed = f", LAND after {times[0]:.1f} to {times[-1]:.1f} s" if times else ""
    return f"{stayed} of {len(group)} inside{landed}"


def to_text(lines: Sequence[dict[str, str]]) -> str:
    """A Markdown table."""
    keys = list(lines[0])
    head = ["| " + " | ".join(keys) + " |", "| --- " * len(keys) + "|"]
    return "\n".join([*head, *("| " + " | ".join(line[key] for key in keys) + " |" for line in lines)])


def _write(file: Path, results: Iterable[Result]) -> None:
    write_text(file, "".join(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in results))
