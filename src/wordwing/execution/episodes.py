"""`episodes.jsonl`: one line for each execution of an evaluation, from which every metric can be computed again.

A line has all that a flight was given (instruction, layout, start, demonstration, meaning) and all that came of it
(poses, setpoints, what ended it, where the goal was believed to be), and its metrics. Lengths are kept to a tenth of a
millimetre, angles to a tenth of a milliradian.
"""

import itertools
import json
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field

from wordwing import files
from wordwing.errors import WordwingError
from wordwing.execution.execution import Execution, Provenance
from wordwing.execution.metrics import Metrics, as_kept, measure
from wordwing.frames import euler_from_quaternion, quaternion_from_euler
from wordwing.language.meaning.clauses import Meaning
from wordwing.validation import Array, Number, Pose2, Version1, parse, parse_json
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats
from wordwing.world.tasks import Task

EPISODES = "episodes.jsonl"
"""Its name in an evaluation's folder; with ".xz" behind it, it is compressed."""

SCHEMA = 1
"""Version of a line; other versions are refused."""

MAX_LINE, MAX_FLIGHTS = 4_000_000, 200_000
"""Longest line that is read, bytes, and most lines of a file: what is packed may be a thousand times as much."""

NEWER_METRICS = ("clauses", "followed")
"""Metrics that lines written before they existed do not have."""


@dataclass(frozen=True, kw_only=True)
class _Scored(Provenance):
    """What is read of a line for its metrics."""

    schema: Version1
    metrics: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class _Line(Provenance):
    """What a line must have besides metrics."""

    schema: Version1
    instruction: str | None = None
    layout: Annotated[dict[str, Any], Field(description="a layout, {…}")]
    start: Pose2
    gold: Annotated[Floats, Array(2, least=1)]
    poses: Annotated[Floats, Array(6, least=1)]
    setpoints: Annotated[Floats, Array(2, description="a list of rows of 2 finite numbers")]
    goals: Annotated[Floats, Array(3)]
    decisions: Annotated[int, Field(ge=0)]
    ended_by: Literal["stop", "steps"]
    seconds_inside_landmarks: Number | None = None

    def __post_init__(self) -> None:
        if len(self.poses) != len(self.setpoints) + 1 or self.decisions >= len(self.poses):
            raise ValueError("there must be one setpoint fewer than poses, and no more decisions")


def pose_rows(execution: Execution) -> Floats:
    """[T + 1, 6] x, y, z, roll, pitch, yaw of a batch of one, as a line keeps them."""
    angles = torch.stack(euler_from_quaternion(execution.pose.quaternion[0]), -1)
    return as_kept(torch.cat([execution.pose.position[0], angles], -1).double().numpy())


def episode_line(execution: Execution, metrics: dict[str, Any]) -> str:
    """A line of episodes.jsonl, with its end, of a batch of one whose provenance is known."""
    task, source = execution.task, execution.provenance
    inside = execution.seconds_inside_landmarks[0]
    row = {
        "schema": SCHEMA,
        **{name: getattr(source, name) for name in ("system", "corpus", "text", "split", "domain", "seed", "id")},
        "segments": source.segments,
        "instruction": None if source.withheld else task.instruction,
        "layout_id": source.layout_id,
        "start": [*task.start_xy, task.start_yaw],
        "gold": as_kept(task.gold_path).tolist(),
        "poses": pose_rows(execution).tolist(),
        "setpoints": as_kept(execution.setpoints).tolist(),
        "decisions": execution.end,
        "ended_by": "stop" if execution.stopped else "steps",
        "seconds_inside_landmarks": None if inside is None else round(inside, 2),
        "goals": as_kept(execution.believed_goals).tolist(),
        "layout": task.layout.to_document(),
        "meaning": None if source.meaning is None else _clauses(source.meaning),
        **({"alternatives": [_clauses(other) for other in source.alternatives]} if source.alternatives else {}),
        "metrics": metrics,
    }
    return json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n"


def _clauses(meaning: Meaning) -> list[dict[str, Any]]:
    return [clause.to_json() for clause in meaning]


def parse_episode(line: str | bytes, where: str) -> Execution:
    """Read and validate a line; metrics in it are left alone.

    Args:
        line: As in the file.
        where: Begins each complaint.
    """
    row = parse_json(_Line, line, where)
    layout = Layout.from_document(row.layout, f"{where}: layout")
    for clause in itertools.chain(row.meaning or (), *row.alternatives):
        clause.validate(len(layout.landmarks), where)
    roll, pitch, yaw = torch.from_numpy(row.poses[:, 3:].astype(np.float32)).unbind(-1)
    return Execution.single(
        task=Task(row.instruction or row.id, layout, row.start[:2], row.start[2], row.gold),
        positions=row.poses[:, :3].astype(np.float32),
        quaternions=quaternion_from_euler(roll, pitch, yaw).numpy(),
        setpoints=row.setpoints,
        decisions=row.decisions,
        ended_by=row.ended_by,
        seconds_inside_landmarks=row.seconds_inside_landmarks,
        goals=row.goals,
        provenance=_provenance(row, withheld=row.instruction is None),
    )


def _provenance(row: Provenance, withheld: bool) -> Provenance:
    values = {field.name: getattr(row, field.name) for field in fields(Provenance)}
    return Provenance(**{**values, "withheld": withheld})


def find_episodes(folder: str | Path) -> Path:
    """The file of episodes in a folder of an evaluation, compressed or not."""
    folder = Path(folder)
    for name in (EPISODES, f"{EPISODES}.xz"):
        if (folder / name).is_file():
            return folder / name
    if folder.is_file():
        return folder
    raise WordwingError(f"{folder}: there is no {EPISODES} in it; wordwing evaluate makes one")


def count_lines(file: Path) -> int:
    """How many flights a file has, or one more than it may have."""
    return sum(1 for _line in itertools.islice(files.read_lines(file, MAX_LINE), MAX_FLIGHTS + 1))


def read_lines(file: Path) -> Iterator[tuple[str, bytes]]:
    """Where each line of a file of episodes is, for complaints, and the line."""
    for number, line in enumerate(files.read_lines(file, MAX_LINE), start=1):
        if number > MAX_FLIGHTS:
            raise WordwingError(f"{file}: there are more than {MAX_FLIGHTS} flights in it")
        yield f"{file}: line {number}", line


def read_episodes(given: Iterable[Path]) -> Iterator[Execution]:
    """All flights of some files, each a batch of one."""
    for file in given:
        for where, line in read_lines(file):
            yield parse_episode(line, where)


def parse_metrics(line: bytes, where: str) -> tuple[Provenance, Metrics]:
    """Whose flight a line is, and its metrics; those that did not exist when it was written are computed.

    Args:
        line: As in the file.
        where: Begins each complaint.
    """
    row = parse_json(_Scored, line, where)
    if row.metrics.keys().isdisjoint(NEWER_METRICS):
        measured = measure(parse_episode(line, where))
        row.metrics.update({name: getattr(measured, name) for name in NEWER_METRICS})
    return _provenance(row, row.withheld), parse(Metrics, row.metrics, f"{where}: metrics")


# While the file is written: whole lines only, each flight once, in a fixed order.


class Line(NamedTuple):
    """Where a flight's line is in its file, and what it says about the flight."""

    begin: int
    """Bytes."""
    size: int
    metrics: Metrics


def append_lines(file: Path, text: str) -> None:
    """Write lines behind those of a file, and see to it that they are on the disk."""
    try:
        with open(file, "a", encoding="utf-8") as lines:
            lines.write(text)
            lines.flush()
            os.fsync(lines.fileno())
    except OSError as error:
        why = (error.strerror or "unknown").lower()
        raise WordwingError(f"{file}: cannot be written ({why}); the same command resumes from there") from None


def whole_lines(file: Path, systems: Collection[str], ids: Collection[str]) -> dict[tuple[str, str], Line]:
    """Lines of a file by system and instruction; one that was cut off is dropped, from the file too."""
    found: dict[tuple[str, str], Line] = {}
    if not file.is_file():
        return found
    begin = 0
    for number, line in enumerate(files.read_lines(file, MAX_LINE), start=1):
        if not line.endswith(b"\n"):
            break
        try:
            source, metrics = parse_metrics(line, f"{file}: line {number}")
        except WordwingError:
            raise WordwingError(f"{file}: line {number} is damaged; delete it, and the same command resumes") from None
        if source.system not in systems or source.id not in ids:
            raise WordwingError(
                f"{file}: line {number}, {source.id} flown by {source.system}, does not belong to this evaluation; "
                "delete it, and the same command resumes"
            )
        found[source.system, source.id] = Line(begin, len(line), metrics)
        begin += len(line)
    if begin < file.stat().st_size:
        os.truncate(file, begin)
    return found


def keep_lines(file: Path, lines: Iterable[Line]) -> None:
    """Keep some lines of a file, in their order."""
    with files.replacing(file) as temporary, open(file, "rb") as old, open(temporary, "wb") as new:
        for line in lines:
            old.seek(line.begin)
            new.write(old.read(line.size))


def sort_lines(file: Path, systems: Sequence[str], ids: Sequence[str]) -> None:
    """Bring lines into the order in which one process would have written them at one go, each once."""
    places = {name: place for place, name in enumerate(ids)}
    lines = whole_lines(file, systems, places)
    keys = sorted(lines, key=lambda key: (systems.index(key[0]), places[key[1]]))
    twice = sum(line.size for line in lines.values()) < file.stat().st_size
    if twice or keys != list(lines):
        keep_lines(file, [lines[key] for key in keys])
