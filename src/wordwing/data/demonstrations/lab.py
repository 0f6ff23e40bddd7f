"""ORACLE in the lab: a few hundred flights, one at a time in each of a few processes, with pictures.

A flight takes seconds, so each paragraph's flights are written to a file of their own as soon as they have ended. Who
is interrupted goes on from there; when all are there they become one file.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from wordwing.data.dataset import Dataset
from wordwing.data.demonstrations.archive import Header, fingerprint
from wordwing.data.demonstrations.choosing import Choice
from wordwing.data.demonstrations.records import LabDemonstrations, encode
from wordwing.data.schema import Instruction
from wordwing.errors import WordwingError
from wordwing.execution.packing import pack_pose, pack_setpoint
from wordwing.execution.runner import fly
from wordwing.frames import Pose
from wordwing.interface import Setpoint
from wordwing.lab.vehicle import LabVehicle
from wordwing.policies.oracle import Oracle
from wordwing.pool import shared
from wordwing.world.tasks import Task

QUALITY = 85
"""Of the pictures: 34.3 dB at 2.0 KB each, where 80 has 33.5 dB at 1.6 KB and 90 has 35.1 dB at 2.6 KB; JPEG takes
2.7 KB for 33.3 dB."""


@dataclass(frozen=True)
class _Work:
    """The flights of one paragraph."""

    file: Path
    header: Header
    ids: tuple[str, ...]
    tasks: tuple[Task, ...]

    def done(self) -> LabDemonstrations | None:
        """Its flights, if they were flown already, just so."""
        try:
            made = LabDemonstrations.load(self.file)
        except WordwingError:
            return None
        return made if made.header == self.header and made.ids == self.ids else None


def fly_lab(
    dataset: Dataset,
    choice: Choice,
    file: Path,
    seed: int = 0,
    *,
    limit: int | None = None,
    processes: int = 1,
    tick: Callable[[int], None] = lambda flights: None,
) -> LabDemonstrations:
    """Fly the single segments of chosen paragraphs and write them to a file.

    Args:
        dataset: Where they come from.
        choice: Which.
        file: What to write; beside it a folder holds what has been flown, until all has.
        seed: Of gusts and noise, with the instruction's id: the flights do not depend on each other.
        limit: Fly only so many.
        processes: How many share the work.
        tick: Told how many flights have ended since it was last told, those of an earlier run first.
    """
    header = Header("lab", dataset.name, fingerprint(dataset), choice.paragraphs[0].split, dataset.steps, seed, QUALITY)
    parts = file.with_suffix(".parts")
    work = _work(dataset, single_segments(choice, limit), header, parts)
    waiting = []
    for entry in work:
        made = entry.done()
        if made is None:
            waiting.append(entry)
        else:
            tick(len(made))
    killed = f"a process that flew was killed; {parts} keeps what has been flown, and the same command goes on"
    for _entry, flights in shared(_fly_paragraph, waiting, processes, killed):
        tick(flights)
    flown = {entry.ids[0].rpartition("/")[0] for entry in work}
    subsets = {name: [entry for entry in ids if entry in flown] for name, ids in choice.subsets.items()}
    whole = LabDemonstrations.joined(
        replace(header, subsets=subsets), (LabDemonstrations.load(entry.file) for entry in work)
    )
    whole.save(file)
    shutil.rmtree(parts, ignore_errors=True)
    return whole


def single_segments(choice: Choice, limit: int | None = None) -> list[Instruction]:
    """The instructions that `fly_lab` flies, in its order."""
    singles = [single for paragraph in choice.paragraphs for single in paragraph.instructions((1,))]
    return singles[:limit]


def flight_seed(seed: int, name: str) -> int:
    """What the lab of one flight is seeded by."""
    return zlib.crc32(f"{seed} {name}".encode())


def _work(dataset: Dataset, singles: Sequence[Instruction], header: Header, parts: Path) -> list[_Work]:
    together: dict[str, list[Instruction]] = {}
    for single in singles:
        together.setdefault(single.id.rpartition("/")[0], []).append(single)
    return [
        _Work(
            parts / f"{number:04}.npz",
            header,
            tuple(single.id for single in group),
            tuple(dataset.task(single) for single in group),
        )
        for number, group in enumerate(together.values())
    ]


def _fly_paragraph(work: _Work) -> int:
    flights = [_fly(work.header, name, task) for name, task in zip(work.ids, work.tasks, strict=True)]
    LabDemonstrations.joined(work.header, flights).save(work.file)
    return len(flights)


def _fly(header: Header, name: str, task: Task) -> LabDemonstrations:
    """One flight, as the pilot flies any vehicle."""
    seed = flight_seed(header.seed or 0, name)
    with LabVehicle(task.layout, task.start_xy, task.start_yaw, seed=seed) as drone:
        [flight] = fly(Oracle(), drone, [task], max_steps=header.steps, keep_images=True)
    end = flight.end + 1
    poses = pack_pose(Pose(torch.from_numpy(flight.positions), torch.from_numpy(flight.quaternions)))
    sent = torch.from_numpy(flight.setpoints[:end])  # the last one is the standstill after STOP
    setpoints = pack_setpoint(Setpoint(sent[:, 0], sent[:, 1]))
    pictures = [encode(image, header.quality or QUALITY) for image in flight.images[0][:end]]
    return LabDemonstrations(
        header,
        (name,),
        np.array([flight.end], np.int32),
        np.array([flight.stopped]),
        torch.cat([poses[:end], setpoints], dim=-1).numpy(),
        poses[-1:].numpy(),
        sizes=np.array([len(picture) for picture in pictures], np.int32),
        pictures=np.frombuffer(b"".join(pictures), np.uint8),
    )
