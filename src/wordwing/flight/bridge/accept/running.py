"""Flying the acceptance list: its instructions, which rows are still to be flown, and the table of results."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from wordwing.errors import WordwingError, did_you_mean
from wordwing.files import unwritable
from wordwing.flight.bridge.accept.judging import Result, duration, elapsed, greatest_xy, inside, point_at
from wordwing.flight.bridge.accept.scenarios import SCENARIOS, Scenario, StartCondition
from wordwing.flight.bridge.accept.trial import AcceptConfig, Trial, TrialError
from wordwing.flight.served.autopilot_profile import AutopilotName
from wordwing.flight.served.vehicle import sample_start
from wordwing.frames import ARENA_HALF
from wordwing.release import release
from wordwing.world.samplers import sample_layout
from wordwing.world.tasks import Task

TRIES = 3
"""How often a flight is begun that does not come to what it is about."""

COUNT = 10

SUCCESS = 0.47
"""A flight succeeds if it stops so near to where its path ends, metres (paper: Evaluation)."""

Row = dict[str, Any]
"""A line of the JSON lines that `running` writes."""

MANY = re.compile(r"(?P<kind>motion capture \w+, [\w ]+), \d+|(?P<other>instruction) \d+")
"""Rows of which there are several."""


class InstructionFlight:
    """One of the instructions; its number chooses layout, start and words."""

    def __init__(self, number: int) -> None:
        self.row = f"instruction {number}"
        self.number = number

    @cached_property
    def task(self) -> Task:
        """What is flown."""
        rng = np.random.default_rng(self.number)
        return sample_start(sample_layout("cage", rng), "cage", rng)

    def setting(self) -> StartCondition:
        """Where it begins."""
        task = self.task
        return StartCondition((float(task.start_xy[0]), float(task.start_xy[1]), float(task.start_yaw)), task.layout)

    def fly(self, trial: Trial) -> Iterable[Result]:
        """Fly it by `wordwing fly`."""
        task = self.task
        trial.fly(task.instruction)
        begin = trial.wait_for_flight(120.0)
        terminal = trial.terminal
        assert terminal is not None
        trial.wait("the drone is disarmed", lambda: trial.disarmed_at(begin) is not None, 150.0)
        trial.wait("the pilot tells how it ended", lambda: "the drone is " in terminal.text, 20.0)
        end = next((entry for entry in trial.events() if entry.kind == "end"), None)
        if end is None:  # not the policy ended it
            lines = [line for line in terminal.text.splitlines() if "the drone is " in line]
            raise TrialError(f'"{task.instruction}": {"; ".join(lines)}')
        x, y = greatest_xy(trial)
        seen, goal = f'"{task.instruction}": ', task.gold_path[-1]
        at = point_at(trial, end.time)
        off = math.hypot(at.x - goal[0], at.y - goal[1])
        seen += f"ended by {end.values['by']} after {duration(elapsed(end.time, begin))}, {off:.2f} m from the goal"
        yield Result(self.row, seen, inside(x, y), x, y, {"goal": off, "success": float(off <= SUCCESS)})


def instructions() -> Iterable[Scenario]:
    """The flights."""
    for flown in map(InstructionFlight, range(1, COUNT + 1)):
        yield Scenario(f"instruction-{flown.number}", flown.fly, (flown.row,), flown.setting)


def run(config: AcceptConfig, scenario: Scenario) -> Iterable[tuple[Result, str]]:
    """The rows of a flight, each with the autopilot's version.

    A flight that does not come to what it is about, often because of a busy machine, is tried again; the row says so.
    """
    setting = scenario.setting()
    for number in range(1, TRIES + 1):  # noqa: B007
        trouble, version, flown = None, "", []
        with closing(Trial(config, scenario.name, setting.start, setting.layout, scenario.parameters)) as trial:
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


def chosen(autopilot: AutopilotName, only: Sequence[str]) -> list[Scenario]:
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
            row = {"autopilot": config.autopilot, "version": version, "wordwing": release(), **asdict(result)}
            done[result.row] = row
            say(line(row))
            _write(file, done.values())
    return [done[row] for scenario in wanted for row in scenario.rows if row in done]


def line(row: dict) -> str:
    """One row for a person."""
    reached = "" if row["x"] is None else f" [|x| {row['x']:.2f}, |y| {row['y']:.2f}]"
    return f"{'holds' if row['holds'] else 'FAILS'}  {row['row']}: {row['seen']}{reached}"


def summarise(rows: Iterable[Row]) -> list[dict[str, str]]:
    """Lines with what was seen, the greatest |x| and |y| in metres, and the verdict; the versions come first."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        found = MANY.fullmatch(row["row"])
        name = row["row"] if found is None else found["kind"] or "instructions, by the shipped policy"
        groups.setdefault(name, []).append(row)
    lines = [_line(name, group) for name, group in groups.items()]
    versions = ", ".join(sorted({f"{row['version']}" for group in groups.values() for row in group}))
    ours = ", ".join(sorted({row["wordwing"] for group in groups.values() for row in group}))
    return [{"row": "versions", "seen": f"{versions}; wordwing {ours}", "x, m": "", "y, m": "", "holds": ""}, *lines]


def _line(name: str, group: Sequence[Row]) -> dict[str, str]:
    holds = sum(row["holds"] for row in group)
    several = len(group) > 1 or MANY.fullmatch(group[0]["row"]) is not None
    return {
        "row": name,
        "seen": _seen(group) if several else group[0]["seen"],
        "x, m": _greatest(group, "x"),
        "y, m": _greatest(group, "y"),
        "holds": f"{holds} of {len(group)}" if several else "yes" if holds else "**no**",
    }


def _seen(group: Sequence[Row]) -> str:
    """Several flights in a few words."""
    goals = [row["values"]["goal"] for row in group if "goal" in row["values"]]
    if goals or group[0]["row"].startswith("instruction"):
        successes = sum(row["values"].get("success", 0) for row in group)
        return f"{len(goals)} of {len(group)} flown to the end, {successes:.0f} of them within 0.47 m of the goal"
    inside = sum(max(row["x"], row["y"]) <= ARENA_HALF for row in group)
    times = sorted(row["values"]["land"] for row in group if "land" in row["values"])
    landed = f", LAND after {times[0]:.1f} to {times[-1]:.1f} s" if times else ""
    return f"{inside} of {len(group)} inside{landed}"


def _greatest(group: Sequence[Row], axis: str) -> str:
    known = [row[axis] for row in group if row[axis] is not None]
    return f"{max(known):.2f}" if known else ""


def to_text(lines: Sequence[dict[str, str]]) -> str:
    """A Markdown table."""
    keys = list(lines[0])
    head = ["| " + " | ".join(keys) + " |", "| --- " * len(keys) + "|"]
    return "\n".join([*head, *("| " + " | ".join(line[key] for key in keys) + " |" for line in lines)])


def _write(file: Path, rows: Iterable[dict]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    except OSError as error:
        raise unwritable(file, error) from None
