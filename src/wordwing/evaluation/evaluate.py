"""Flying every system on the same instructions, and keeping all of it, line by line.

    evaluation.json    what is flown, and who flies
    episodes.jsonl     a line for each flight
    summary.json       means and intervals, computed from the lines

Instructions are cut into pieces that do not depend on what has been flown already, and a piece's lines are written at
once when it has been flown. Who is interrupted goes on with the next piece, and comes to the same end.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from wordwing.data.dataset import Dataset
from wordwing.data.schema import Instruction
from wordwing.data.subsets import instructions_of
from wordwing.errors import WordwingError
from wordwing.evaluation import ledger
from wordwing.evaluation.episodes import DECIMALS, EPISODES, Episode, episode_line, read_lines, rounded
from wordwing.evaluation.measures import Measures, measure, measures_of
from wordwing.evaluation.report.labels import SUMMARY
from wordwing.evaluation.systems import System
from wordwing.execution.environments import flight_seed
from wordwing.execution.execution import Execution
from wordwing.execution.runner import fly
from wordwing.files import locked, read_json, replacing
from wordwing.interface import Domain, Policy
from wordwing.lab.vehicle import LabVehicle
from wordwing.pool import shared
from wordwing.release import VERSION
from wordwing.sim.simulator import Simulator
from wordwing.world.tasks import Task

if TYPE_CHECKING:
    from wordwing.evaluation.report.summary import Summary

EVALUATION = "evaluation.json"

SCHEMA = 1
"""Version of evaluation.json."""

MAX_SETTINGS = 1_000_000
"""Largest evaluation.json that is read, bytes."""

WORLDS = {"cpu": 32, "cuda": 512}
"""Flights of a piece in `sim` where pictures are looked at."""

BLIND_WORLDS = 256
"""Where nobody looks at pictures."""

LAB_FLIGHTS = 2
"""Of a piece in the lab, where a flight takes seconds."""

Tick = Callable[[System, list[Measures]], None]


Wire = Literal["ardupilot", "px4"]
"""Whose manners the lab has when it is flown over MAVLink."""


@dataclass(frozen=True)
class Settings:
    """What is flown."""

    dataset: Dataset
    split: str
    """Of the dataset, or a fixed part of one: "test-20"."""
    segments: tuple[int, ...] = (1, 2)
    domain: Domain = "sim"
    limit: int | None = None
    """Only so many instructions, chosen by the seed."""
    seed: int = 0
    """Of the choice, and of gusts and noise in the lab."""
    device: str = "cpu"
    """For `sim`: "cpu" or "cuda"."""
    processes: int = 1
    """That share the work in the lab."""
    wire: Wire | None = None
    """Fly the lab over MAVLink, in lock-step, with this autopilot's manners; None for the lab in-process."""

    def instructions(self) -> list[Instruction]:
        """In the dataset's order."""
        found = list(instructions_of(self.dataset, self.split, self.segments))
        if self.limit is not None and self.limit < len(found):
            chosen = np.random.default_rng(self.seed).choice(len(found), self.limit, replace=False)
            found = [found[index] for index in np.sort(chosen)]
        if not found:
            raise WordwingError(f"{self.dataset.folder}: the split {self.split} has no such instructions to fly")
        return found

    def to_json(self) -> dict[str, Any]:
        """What must be the same for flights to stand in one folder."""
        return {
            "schema": SCHEMA,
            "wordwing": VERSION,
            "corpus": self.dataset.name,
            "dataset": self.dataset.fingerprint,
            "split": self.split,
            "segments": list(self.segments),
            "domain": self.domain,
            "limit": self.limit,
            "seed": self.seed,
            "device": self.device if self.domain == "sim" else "cpu",
            **({} if self.wire is None else {"wire": self.wire}),
        }


@dataclass(frozen=True)
class Piece:
    """Flights of one system that are flown and written together."""

    system: System
    settings: Settings
    instructions: tuple[Instruction, ...]


def evaluate(
    settings: Settings, systems: Sequence[System], folder: Path, tick: Tick = lambda system, measures: None
) -> Summary:
    """Fly all systems, or those that have not flown yet, and write everything.

    Args:
        settings: What is flown.
        systems: Who flies.
        folder: New, or that of an evaluation with the same settings: more systems are added to it.
        tick: Told of every flight, those of an earlier run first.

    Returns:
        What is in summary.json: of all systems that have flown in the folder.
    """
    from wordwing.evaluation.report.summary import (  # pandas, which flying does not need
        flight_row,
        flight_table,
        summarise,
    )

    instructions = settings.instructions()
    with locked(folder, "an evaluation", "evaluating"):
        names = _keep_settings(folder / EVALUATION, settings, systems)
        file, ids = folder / EPISODES, [entry.id for entry in instructions]
        flown = ledger.whole_lines(file, names, set(ids))
        waiting = []
        for system in systems:
            for piece in pieces(system, settings, instructions):
                keys = [(system.name, entry.id) for entry in piece.instructions]
                if all(key in flown for key in keys):
                    tick(system, [flown[key].measures for key in keys])
                else:
                    waiting.append(piece)
        again = {(piece.system.name, entry.id) for piece in waiting for entry in piece.instructions}
        if again & flown.keys():  # half a piece is flown again, so that it comes out as if it had never been cut
            ledger.keep(file, [line for key, line in flown.items() if key not in again])
        for piece, episodes in _flown(waiting, settings):
            measures = [measure(episode) for episode in episodes]
            text = "".join(
                episode_line(episode, entry.to_json()) for episode, entry in zip(episodes, measures, strict=True)
            )
            ledger.append(file, text)
            tick(piece.system, measures)
        ledger.sort(file, names, ids)
        summary = summarise(flight_table(flight_row(row, measures_of(row, where)) for where, row in read_lines(file)))
        with replacing(folder / SUMMARY) as temporary:
            temporary.write_text(summary.to_json(), "utf-8")
    return summary


def pieces(system: System, settings: Settings, instructions: Sequence[Instruction]) -> Iterator[Piece]:
    """Cut instructions; the cut does not depend on what has been flown."""
    size = LAB_FLIGHTS
    if settings.domain == "sim":
        size = WORLDS[settings.device] if system.looks else BLIND_WORLDS
    for begin in range(0, len(instructions), size):
        yield Piece(system, settings, tuple(instructions[begin : begin + size]))


def _flown(waiting: Sequence[Piece], settings: Settings) -> Iterator[tuple[Piece, list[Episode]]]:
    if settings.domain == "lab":
        killed = "a process that flew was killed; what has been flown is kept, and the same command goes on"
        yield from shared(fly_piece, waiting, settings.processes, killed)
    else:
        yield from ((piece, fly_piece(piece)) for piece in waiting)


def fly_piece(piece: Piece) -> list[Episode]:
    """Fly some instructions."""
    settings = piece.settings
    dataset, device = settings.dataset, settings.device if settings.domain == "sim" else "cpu"
    policy = _loaded(piece.system, settings.domain, device)
    tasks = [dataset.task(entry) for entry in piece.instructions]
    if settings.domain == "sim":
        simulator = _simulator(len(tasks), device, piece.system.looks)
        flights = fly(policy, simulator, tasks, max_steps=dataset.steps)
    else:
        seeds = [flight_seed(settings.seed, entry.id) for entry in piece.instructions]
        flown = _lab_flight if settings.wire is None else partial(_wire_flight, settings.wire)
        flights = [flown(policy, task, seed, dataset.steps) for task, seed in zip(tasks, seeds, strict=True)]
    return [episode_of(flight, entry, piece) for flight, entry in zip(flights, piece.instructions, strict=True)]


@lru_cache(maxsize=1)
def _loaded(system: System, domain: Domain, device: str) -> Policy:
    return system.load(domain, device)


@lru_cache(maxsize=2)
def _simulator(worlds: int, device: str, draw: bool) -> Simulator:
    return Simulator(worlds, device, draw=draw)


def _lab_flight(policy: Policy, task: Task, seed: int, steps: int) -> Execution:
    with LabVehicle(task.layout, task.start_xy, task.start_yaw, seed=seed) as drone:
        return fly(policy, drone, [task], max_steps=steps)[0]


def _wire_flight(autopilot: Wire, policy: Policy, task: Task, seed: int, steps: int) -> Execution:
    from wordwing.flight.lockstep import lockstep_vehicle  # needs the extra `flight`, unlike all else here

    with lockstep_vehicle(task.layout, task.start_xy, task.start_yaw, seed, autopilot) as drone:
        return fly(policy, drone, [task], max_steps=steps)[0]


def episode_of(flight: Execution, instruction: Instruction, piece: Piece) -> Episode:
    """What a line keeps of a flight."""
    settings, segment = piece.settings, instruction.segment
    poses, setpoints = rounded(flight)
    inside = flight.seconds_inside_landmarks[0]
    return Episode(
        system=piece.system.name,
        corpus=settings.dataset.name,
        text=str(settings.dataset.meta.get("text", "unknown")),
        split=settings.split,
        domain=settings.domain,
        seed=settings.seed,
        id=instruction.id,
        segments=instruction.segments,
        instruction=segment.instruction,
        meaning=segment.meaning,
        layout_id=instruction.layout,
        layout=flight.task.layout,
        start=(*segment.start_xy, segment.start_yaw),
        gold=np.round(segment.path, DECIMALS) + 0.0,
        poses=poses,
        setpoints=setpoints,
        decisions=flight.end,
        ended_by="stop" if flight.stopped else "steps",
        seconds_inside_landmarks=None if inside is None else round(inside, 2),
        goals=np.round(flight.believed_goals, DECIMALS) + 0.0,
    )


def _keep_settings(path: Path, settings: Settings, systems: Sequence[System]) -> list[str]:
    """Write evaluation.json, or complain that the folder holds another evaluation; returns who flies in it."""
    document = {**settings.to_json(), "systems": {system.name: system.fingerprint for system in systems}}
    if path.is_file():
        try:
            known = read_json(path, MAX_SETTINGS, "evaluation.json")
            before = dict(known["systems"])
        except (WordwingError, KeyError, TypeError, ValueError):
            raise WordwingError(f"{path}: damaged; take another --out") from None
        for key, value in settings.to_json().items():
            if known.get(key) != value:
                raise WordwingError(
                    f"{path.parent}: this is an evaluation with {key} {known.get(key)}, not {value}; take another --out"
                )
        for system in systems:
            if before.get(system.name, system.fingerprint) != system.fingerprint:
                raise WordwingError(
                    f'{path.parent}: another "{system.name}" has flown here; name this one NAME=POLICY, '
                    "or take another --out"
                )
        document["systems"] = {**before, **document["systems"]}
    elif (path.parent / EPISODES).exists():
        raise WordwingError(f"{path.parent}: there are flights in it but no {EVALUATION}; take another --out")
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", "utf-8")
    return list(document["systems"])
