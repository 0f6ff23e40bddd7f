"""ORACLE along every instruction's path: in `sim` thousands of worlds at once, in the lab a few hundred flights.

A flight of the lab takes seconds, so each paragraph's flights are written to a file of their own as soon as they have
ended. An interrupted command goes on from there; when all are there they become one file.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from wordwing.data.dataset import DERIVED, Dataset
from wordwing.data.demonstrations.archive import QUALITY, Demonstrations, Header
from wordwing.data.demonstrations.selection import Selection
from wordwing.data.schema import Instruction
from wordwing.devices import find_device
from wordwing.errors import WordwingError
from wordwing.execution.environments import flight_seed, open_environment
from wordwing.execution.metrics import emd, final_distance, succeeded, wilson
from wordwing.execution.packing import unpack_setpoint
from wordwing.execution.runner import Runner
from wordwing.policies.baselines import MEAN_ACTIONS, MeanAction
from wordwing.policies.oracle import Oracle
from wordwing.pool import shared
from wordwing.world.layout import Layout
from wordwing.world.paths import path_length
from wordwing.world.tasks import Task

WORLDS = {"cpu": 1024, "cuda": 32_768}
"""Flights at once. They do not depend on each other, so this changes how fast they are, not what they are."""

SAMPLE = 200
"""Flights whose EMD is taken; all would take longer than flying them."""


def fly_sim(
    dataset: Dataset,
    instructions: Sequence[Instruction],
    device: torch.device | str = "cpu",
    tick: Callable[[int], None] = lambda flights: None,
) -> Demonstrations:
    """Fly instructions of one split of a dataset, the safety rule on.

    Args:
        dataset: Where they come from.
        instructions: In the order in which their flights will be.
        device: Where to fly.
        tick: Told how many flights have ended since it was last told.
    """
    splits = {instruction.split for instruction in instructions}
    if len(splits) != 1:
        raise WordwingError(f"{dataset.folder}: demonstrations are of one split, not of {len(splits)}")
    header = Header("sim", dataset.name, dataset.fingerprint, splits.pop(), dataset.steps)
    where = find_device(device)
    # Flights of like length end together, so that little hovering is simulated.
    order = np.argsort([path_length(instruction.segment.path) for instruction in instructions], kind="stable")
    # Landmarks are seen, never hit, and ORACLE does not look: a world without any gives the same flight sooner.
    segments = [instructions[index].segment for index in order]
    tasks = [Task(part.instruction, Layout(()), part.start_xy, part.start_yaw, part.path) for part in segments]
    ids = [instructions[index].id for index in order]
    parts = []
    for begin in range(0, len(tasks), WORLDS[where.type]):
        chosen = slice(begin, begin + WORLDS[where.type])
        with open_environment("sim", tasks[chosen], device=where, draw=False) as environment:
            execution = Runner(Oracle(), environment, max_steps=dataset.steps).run(tasks[chosen])
        parts.append(Demonstrations.of(header, ids[chosen], execution))
        tick(len(parts[-1]))
    return Demonstrations.joined(header, parts).take(np.argsort(order))


@dataclass(frozen=True)
class _Paragraph:
    """The flights of one paragraph in the lab."""

    file: Path
    header: Header
    ids: tuple[str, ...]
    tasks: tuple[Task, ...]

    def done(self) -> Demonstrations | None:
        """Its flights, if they were flown already, just so."""
        try:
            made = Demonstrations.load(self.file, domain="lab")
        except WordwingError:
            return None
        return made if made.header == self.header and made.ids == self.ids else None


def fly_lab(
    dataset: Dataset,
    selection: Selection,
    file: Path,
    seed: int = 0,
    *,
    limit: int | None = None,
    processes: int = 1,
    tick: Callable[[int], None] = lambda flights: None,
) -> Demonstrations:
    """Fly the single segments of selected paragraphs and write them to a file.

    Args:
        dataset: Where they come from.
        selection: Which.
        file: What to write; beside it a folder holds what has been flown, until all has.
        seed: Of gusts and noise, with the instruction's id: the flights do not depend on each other.
        limit: Fly only so many.
        processes: How many share the work.
        tick: Told how many flights have ended since it was last told, those of an earlier run first.
    """
    split = selection.paragraphs[0].split
    header = Header("lab", dataset.name, dataset.fingerprint, split, dataset.steps, seed, QUALITY)
    parts = file.with_suffix(".parts")
    together: dict[str, list[Instruction]] = {}
    for single in single_segments(selection, limit):
        together.setdefault(single.id.rpartition("/")[0], []).append(single)
    paragraphs = [
        _Paragraph(
            parts / f"{number:04}.npz",
            header,
            tuple(single.id for single in group),
            tuple(dataset.task(single) for single in group),
        )
        for number, group in enumerate(together.values())
    ]
    waiting = []
    for paragraph in paragraphs:
        made = paragraph.done()
        if made is None:
            waiting.append(paragraph)
        else:
            tick(len(made))
    killed = f"a process that flew was killed; {parts} keeps what has been flown, and the same command resumes"
    for _paragraph, flights in shared(_fly_paragraph, waiting, processes, killed):
        tick(flights)
    subsets = {name: [entry for entry in ids if entry in together] for name, ids in selection.subsets.items()}
    whole = Demonstrations.joined(
        replace(header, subsets=subsets), (Demonstrations.load(entry.file, domain="lab") for entry in paragraphs)
    )
    whole.save(file)
    shutil.rmtree(parts, ignore_errors=True)
    return whole


def single_segments(selection: Selection, limit: int | None = None) -> list[Instruction]:
    """The instructions that `fly_lab` flies, in its order."""
    return [single for paragraph in selection.paragraphs for single in paragraph.instructions((1,))][:limit]


def _fly_paragraph(work: _Paragraph) -> int:
    flights = []
    for name, task in zip(work.ids, work.tasks, strict=True):
        with open_environment("lab", [task], seed=flight_seed(work.header.seed or 0, name)) as drone:
            execution = Runner(Oracle(), drone, max_steps=work.header.steps, keep_images=True).run([task])
        flights.append(Demonstrations.of(work.header, [name], execution))
    Demonstrations.joined(work.header, flights).save(work.file)
    return len(flights)


def training_mean_action(
    dataset: Dataset, device: torch.device | str = "cpu", say: Callable[[str], None] = lambda sentence: None
) -> MeanAction:
    """AVERAGE's constants for a dataset, from ORACLE's training demonstrations in `sim` (paper: Systems)."""
    if dataset.name in MEAN_ACTIONS:
        return MEAN_ACTIONS[dataset.name]
    if "train" not in dataset.splits:
        raise WordwingError(f"{dataset.folder}: AVERAGE is the mean action of the split train, and there is none")
    file = dataset.folder / DERIVED / "sim-train.npz"
    if file.is_file():
        return mean_action(Demonstrations.load(file, dataset))
    say("flying ORACLE along all training paths, for AVERAGE; wordwing data demonstrate would keep them")
    return mean_action(fly_sim(dataset, list(dataset.instructions("train")), device))


def mean_action(demonstrations: Demonstrations) -> MeanAction:
    """Average what ORACLE did: over all decisions but STOP, and over all flights."""
    flown = np.ones(len(demonstrations.rows), bool)
    flown[demonstrations.offsets[1:] - 1] = False  # at the last pose of a flight nothing more was flown
    setpoints = unpack_setpoint(torch.from_numpy(demonstrations.rows[flown, 6:]))
    forward, yaw_rate = setpoints.forward.double().mean(), setpoints.yaw_rate.double().mean()
    return MeanAction(
        round(float(forward), 3), round(float(yaw_rate), 3), round(float(demonstrations.decisions.mean()))
    )


@dataclass(frozen=True)
class DemonstrationSummary:
    """How well demonstrations follow their paths."""

    flights: int
    success: float
    """Share that came to rest within 0.47 m of the path's end."""
    interval: tuple[float, float]
    """Wilson's 95 % interval of it."""
    timed_out: int
    """Flights that ran out of steps."""
    steps: float
    """Mean number of setpoints."""
    emd: float
    """Mean over a sample, metres."""
    sampled: int
    """Flights in the sample."""


def summarise(demonstrations: Demonstrations, instructions: Sequence[Instruction]) -> DemonstrationSummary:
    """Summarise flights of these instructions, in their order."""
    gold = [instruction.segment.path for instruction in instructions]
    reached = [succeeded(final_distance(demonstrations.path(index), path)) for index, path in enumerate(gold)]
    count = len(demonstrations)
    sample = np.random.default_rng(0).choice(count, min(SAMPLE, count), replace=False)
    return DemonstrationSummary(
        flights=count,
        success=sum(reached) / count,
        interval=wilson(sum(reached), count),
        timed_out=int((~demonstrations.stopped).sum()),
        steps=float(demonstrations.decisions.mean()),
        emd=float(np.mean([emd(demonstrations.path(index), gold[index]) for index in sample.tolist()])),
        sampled=len(sample),
    )
