"""Flying every system on the same instructions, and keeping all of it, line by line.

    evaluation.json    what is flown, and by which systems
    episodes.jsonl     a line for each flight
    summary.json       means and intervals, computed from the lines

Instructions are cut into batches that do not depend on what has been flown already, and the lines of a batch are
written at once when it has been flown. An interrupted evaluation goes on with the next batch, and comes to the same
end.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from wordwing.data.dataset import Dataset
from wordwing.data.schema import Instruction
from wordwing.data.subsets import instructions_of
from wordwing.errors import WordwingError
from wordwing.evaluation.report.labels import SUMMARY
from wordwing.evaluation.systems import System, find_systems
from wordwing.evaluation.turns import fly_in_turns
from wordwing.execution.environments import flight_seed, open_environment
from wordwing.execution.episodes import (
    EPISODES,
    append_lines,
    episode_line,
    keep_lines,
    parse_metrics,
    read_lines,
    sort_lines,
    whole_lines,
)
from wordwing.execution.execution import Execution, Provenance
from wordwing.execution.metrics import Metrics, measure
from wordwing.execution.runner import Runner
from wordwing.files import locked, read_json, write_text
from wordwing.interface import Domain, Environment, Policy
from wordwing.policies.learned import LearnedPolicy
from wordwing.pool import shared
from wordwing.release import VERSION
from wordwing.sim.simulator import Simulator
from wordwing.validation import parse

if TYPE_CHECKING:
    from wordwing.evaluation.report.summary import Summary

EVALUATION = "evaluation.json"

SCHEMA = 1
"""Version of evaluation.json."""

MAX_CONFIG = 1_000_000
"""Largest evaluation.json that is read, bytes."""

FLIGHTS = {"cpu": 32, "cuda": 8192}
"""Of a batch in `sim` whose policy looks at images."""

WORLDS = 512
"""In which the flights of a larger batch are flown in turns."""

BLIND_WORLDS = 256
"""Of a batch in `sim` whose policy does not."""

MEASURING = {"cpu": 1, "cuda": os.cpu_count() or 1}
"""Processes that measure what has been flown in `sim`: a CPU has enough to do with flying."""

MEASURED = 256
"""Flights that one of them is given at a time; a batch on the CPU has no more."""

LAB_FLIGHTS = 2
"""Of a batch in the lab, where a flight takes seconds."""

KILLED = "a process that flew was killed; what has been flown is kept, and the same command resumes"

Tick = Callable[[System, list[Metrics]], None]

Measured = tuple[str, Metrics]
"""A flight's line of episodes.jsonl, and its metrics."""


@dataclass(frozen=True)
class EvaluationConfig:
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
    """For `sim`: "cpu", "cuda" or one of several, as "cuda:1"."""
    processes: int = 1
    """That share the work in the lab."""
    wire: str | None = None
    """The autopilot, where the lab is flown over MAVLink by `open_environment`; None for the lab in-process."""
    open_environment: Callable[..., AbstractContextManager[Environment]] = open_environment
    """Opens the worlds of a batch; called like `execution.environments.open_environment`."""

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


def evaluate_policies(
    policies: Sequence[str], dataset: Dataset, out: str | Path, split: str = "dev", **options: Any
) -> Summary:
    """Fly policies on the instructions of a split, measure every flight and write episodes.jsonl and summary.json.

    Args:
        policies: Names or folders, as `wordwing evaluate` takes them: "oracle", "pvn2-sureal", "mine=out/run/best".
        dataset: Whose instructions are flown.
        out: The folder for results; the same call resumes in it, and other policies are added to it.
        split: Of the dataset.
        options: Further fields of `EvaluationConfig`: `domain`, `segments`, `limit`, `seed`, `device`.
    """
    config = EvaluationConfig(dataset, split, **options)
    return evaluate(config, find_systems(policies, dataset, config.device), Path(out))


@dataclass(frozen=True)
class _Kept:
    """What evaluation.json must have besides the configuration."""

    systems: dict[str, str]
    """Fingerprints by name."""


@dataclass(frozen=True)
class FlightBatch:
    """Flights of one system that are flown and written together."""

    system: System
    config: EvaluationConfig
    instructions: tuple[Instruction, ...]


def evaluate(
    config: EvaluationConfig, systems: Sequence[System], folder: Path, tick: Tick = lambda system, metrics: None
) -> Summary:
    """Fly all systems, or those that have not flown yet, and write everything.

    Args:
        config: What is flown.
        systems: What flies: policies by name.
        folder: New, or that of an evaluation with the same configuration: more systems are added to it.
        tick: Told of every flight, those of an earlier run first.

    Returns:
        What is in summary.json: of all systems that have flown in the folder.
    """
    from wordwing.evaluation.report.summary import (  # pandas, which flying does not need
        flight_row,
        flight_table,
        summarise,
    )

    instructions = config.instructions()
    with locked(folder, "an evaluation", "evaluating"):
        names = _keep_config(folder / EVALUATION, config, systems)
        file, ids = folder / EPISODES, [entry.id for entry in instructions]
        flown = whole_lines(file, names, set(ids))
        waiting = []
        for system in systems:
            for batch in batches(system, config, instructions):
                keys = [(system.name, entry.id) for entry in batch.instructions]
                if all(key in flown for key in keys):
                    tick(system, [flown[key].metrics for key in keys])
                else:
                    waiting.append(batch)
        again = {(batch.system.name, entry.id) for batch in waiting for entry in batch.instructions}
        if again & flown.keys():  # half a batch is flown again, so that it comes out as if it had never been cut
            keep_lines(file, [line for key, line in flown.items() if key not in again])
        by_name = {system.name: system for system in systems}
        for name, flights in _flown(config, waiting):
            append_lines(file, "".join(line for line, _metrics in flights))
            tick(by_name[name], [metrics for _line, metrics in flights])
        sort_lines(file, names, ids)
        summary = summarise(flight_table(flight_row(*parse_metrics(line, where)) for where, line in read_lines(file)))
        write_text(folder / SUMMARY, summary.to_json())
    return summary


def batches(system: System, config: EvaluationConfig, instructions: Sequence[Instruction]) -> Iterator[FlightBatch]:
    """Cut instructions; the cut does not depend on what has been flown."""
    size = LAB_FLIGHTS
    if config.domain == "sim":
        size = FLIGHTS[torch.device(config.device).type] if system.needs_images else BLIND_WORLDS
    for begin in range(0, len(instructions), size):
        yield FlightBatch(system, config, tuple(instructions[begin : begin + size]))


def _flown(config: EvaluationConfig, waiting: Sequence[FlightBatch]) -> Iterator[tuple[str, list[Measured]]]:
    """Fly and measure batches: the name of each one's system, and its flights, in any order.

    Processes share flights in the lab, where flying takes long. On CUDA measuring does, so processes share that.
    """
    if config.domain == "lab":
        for batch, flights in shared(fly_and_measure, waiting, config.processes, KILLED):
            yield batch.system.name, flights
        return
    parts = (part for flown in map(fly_batch, waiting) for part in batched(flown, MEASURED))
    count = sum(math.ceil(len(batch.instructions) / MEASURED) for batch in waiting)
    processes = min(count, MEASURING[torch.device(config.device).type])
    for executions, flights in shared(measure_all, parts, processes, KILLED):
        yield executions[0].provenance.system, flights


def fly_and_measure(batch: FlightBatch) -> list[Measured]:
    """Fly some instructions and measure each flight."""
    return measure_all(fly_batch(batch))


def fly_batch(batch: FlightBatch) -> list[Execution]:
    """Fly some instructions, in `sim` all at once or in turns; returns each flight on the CPU."""
    config, tasks = batch.config, [batch.config.dataset.task(entry) for entry in batch.instructions]
    device = config.device if config.domain == "sim" else "cpu"
    policy = _load(batch.system, config.domain, device)
    worlds = min(len(tasks), WORLDS) if config.domain == "sim" else 1
    flights: list[Execution] = []
    while len(flights) < len(tasks):
        chosen = tasks[len(flights) :][:worlds]
        seed = flight_seed(config.seed, batch.instructions[len(flights)].id)  # of the lab, where it is the only one
        with config.open_environment(
            config.domain, chosen, seed=seed, device=device, draw=batch.system.needs_images, reuse=True
        ) as environment:
            if len(tasks) > worlds and isinstance(environment, Simulator) and isinstance(policy, LearnedPolicy):
                flights = fly_in_turns(policy, environment, tasks, max_steps=config.dataset.steps)
            else:
                flights += Runner(policy, environment, max_steps=config.dataset.steps).run(chosen)
    return [
        replace(flight, provenance=_provenance(entry, batch))
        for flight, entry in zip(flights, batch.instructions, strict=True)
    ]


def batched(flights: Sequence[Execution], size: int) -> Iterator[Sequence[Execution]]:
    """So many at a time."""
    return (flights[begin : begin + size] for begin in range(0, len(flights), size))


def measure_all(flights: Sequence[Execution]) -> list[Measured]:
    """Measure flights, each a batch of one."""
    return [(episode_line(flight, metrics.to_json()), metrics) for flight in flights for metrics in [measure(flight)]]


@lru_cache(maxsize=1)
def _load(system: System, domain: Domain, device: str) -> Policy:
    return system.load(domain, device)


def _provenance(instruction: Instruction, batch: FlightBatch) -> Provenance:
    config = batch.config
    return Provenance(
        system=batch.system.name,
        corpus=config.dataset.name,
        text=str(config.dataset.meta.get("text", "unknown")),
        split=config.split,
        domain=config.domain,
        seed=config.seed,
        id=instruction.id,
        segments=instruction.segments,
        layout_id=instruction.layout,
        meaning=instruction.segment.meaning,
        alternatives=instruction.segment.alternatives,
    )


def _keep_config(path: Path, config: EvaluationConfig, systems: Sequence[System]) -> list[str]:
    """Write evaluation.json, or complain that the folder holds another evaluation; returns the names of its systems."""
    document = {**config.to_json(), "systems": {system.name: system.fingerprint for system in systems}}
    if path.is_file():
        try:
            known = read_json(path, MAX_CONFIG, "evaluation.json")
            before = parse(_Kept, known, str(path)).systems
        except WordwingError:
            raise WordwingError(f"{path}: damaged; take another --out") from None
        for key, value in config.to_json().items():
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
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return list(document["systems"])
