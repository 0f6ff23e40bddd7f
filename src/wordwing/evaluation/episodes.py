"""What `episodes.jsonl` holds: one line for each flight, from which every figure can be computed again.

A line has all that a flight was given (instruction, layout, start, demonstration, meaning) and all that came of it
(poses, setpoints, who ended it, where the goal was believed to be), and its metrics. Poses are rounded before they are
measured, so that whoever reads a line measures the same.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from wordwing import files
from wordwing.data.schema import are_numbers
from wordwing.errors import WordwingError, shown
from wordwing.execution.execution import Execution
from wordwing.frames import Pose, euler_from_quaternion, quaternion_from_euler
from wordwing.interface import Domain
from wordwing.language.meaning.clauses import Clause
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats
from wordwing.world.tasks import Task

EPISODES = "episodes.jsonl"
"""Its name in an evaluation's folder; with ".xz" behind it, it is compressed."""

SCHEMA = 1
"""Version of a line; other versions are refused."""

DECIMALS = 4
"""Lengths are kept to a tenth of a millimetre, angles to a tenth of a milliradian."""


MAX_LINE, MAX_FLIGHTS = 4_000_000, 200_000
"""Longest line that is read, bytes, and most lines of a file: what is packed may be a thousand times as much."""


@dataclass(frozen=True)
class Episode:
    """One flight of one system; metres, seconds and radians, world frame."""

    system: str
    """Who flew: "oracle", "pvn2-sureal", …"""
    corpus: str
    """The dataset's name."""
    text: str
    """Who wrote the instruction: "generated" or "human"."""
    split: str
    domain: Domain
    seed: int
    """Of the evaluation. From it and the id come gusts and noise in the lab; `sim` has nothing random."""
    id: str
    """The instruction's: paragraph and segments."""
    segments: int
    instruction: str | None
    """None where the sentence may not be passed on."""
    meaning: tuple[Clause, ...] | None
    """What it says, where that is known."""
    layout_id: str
    layout: Layout
    start: tuple[float, float, float]
    """x, y, yaw."""
    gold: Floats
    """[P, 2] the demonstration."""
    poses: Floats
    """[T + 1, 6] x, y, z, roll, pitch, yaw at every control period, down to rest."""
    setpoints: Floats
    """[T, 2] forward m/s and yaw rate rad/s as flown."""
    decisions: int
    """Index of the pose at which STOP was decided or the steps ran out."""
    ended_by: Literal["stop", "steps"]
    seconds_inside_landmarks: float | None
    goals: Floats
    """[D, 3] at each decision, STOP included: x and y of the likeliest goal among what has been observed, and p_oob.
    Empty for who believes nothing."""

    @property
    def path(self) -> Floats:
        """[T + 1, 2] the flown path down to rest."""
        return self.poses[:, :2]

    @property
    def flight(self) -> Execution:
        """The same as a flight without pictures, to draw or film."""
        roll, pitch, yaw = torch.from_numpy(self.poses[:, 3:].astype(np.float32)).unbind(-1)
        task = Task(self.instruction or self.id, self.layout, self.start[:2], self.start[2], self.gold)
        return Execution.single(
            task=task,
            positions=self.poses[:, :3].astype(np.float32),
            quaternions=quaternion_from_euler(roll, pitch, yaw).numpy(),
            setpoints=self.setpoints.astype(np.float32),
            decisions=self.decisions,
            ended_by=self.ended_by,
            seconds_inside_landmarks=self.seconds_inside_landmarks,
        )

    def to_json(self) -> dict[str, Any]:
        """A line of episodes.jsonl, without metrics."""
        row = {key: value for key, value in asdict(self).items() if key not in ("layout", "meaning")}
        row["layout"] = json.loads(self.layout.to_json())
        row["meaning"] = None if self.meaning is None else [clause.to_json() for clause in self.meaning]
        for key in ("gold", "poses", "setpoints", "goals"):
            row[key] = getattr(self, key).tolist()
        return {"schema": SCHEMA, **row, "start": list(self.start)}

    @classmethod
    def from_json(cls, row: Any, where: str) -> Episode:
        """Read and validate a line; metrics in it are left alone.

        Args:
            row: The parsed line.
            where: Begins each complaint.
        """
        if not isinstance(row, dict):
            raise WordwingError(f"{where}: a flight must be an object")
        if type(row.get("schema")) is not int or row["schema"] != SCHEMA:
            raise WordwingError(
                f"{where}: the flight's schema is {shown(row.get('schema'))}; this wordwing reads {SCHEMA}"
            )
        for key, (kinds, wanted) in _FIELDS.items():
            if type(row.get(key)) not in kinds:
                raise WordwingError(f'{where}: "{key}" is {shown(row.get(key))}; it must be {wanted}')
        if row.get("seconds_inside_landmarks") is not None and not are_numbers([row["seconds_inside_landmarks"]], 1):
            raise WordwingError(f'{where}: "seconds_inside_landmarks" must be a finite number or null')
        if row["domain"] not in ("sim", "lab") or row["ended_by"] not in ("stop", "steps"):
            raise WordwingError(f'{where}: "domain" must be sim or lab, and "ended_by" stop or steps')
        arrays: dict[str, Any] = {key: _array(row.get(key), columns, where, key) for key, columns in _ARRAYS.items()}
        if not are_numbers(row.get("start"), 3) or not len(arrays["gold"]):
            raise WordwingError(f'{where}: a flight needs "start", three numbers, and a "gold" path')
        if len(arrays["poses"]) != len(arrays["setpoints"]) + 1 or not 0 <= row["decisions"] < len(arrays["poses"]):
            raise WordwingError(f"{where}: there must be one setpoint fewer than poses, and no more decisions")
        layout = Layout.from_json(json.dumps(row["layout"]), f"{where}: layout")
        meaning = row.get("meaning")
        if meaning is not None:
            meaning = tuple(Clause.from_json(entry, len(layout.landmarks), where) for entry in meaning)
        x, y, yaw = (float(value) for value in row["start"])
        plain: dict[str, Any] = {key: row.get(key) for key in _FIELDS if key not in ("layout", "meaning")}
        return cls(**plain, **arrays, layout=layout, meaning=meaning, start=(x, y, yaw))


_FIELDS: dict[str, tuple[tuple[type, ...], str]] = {
    "system": ((str,), "a name"),
    "corpus": ((str,), "a name"),
    "text": ((str,), "generated or human"),
    "split": ((str,), "a name"),
    "domain": ((str,), "sim or lab"),
    "seed": ((int,), "a whole number"),
    "id": ((str,), "a name"),
    "segments": ((int,), "a whole number"),
    "instruction": ((str, type(None)), "a sentence or null"),
    "meaning": ((list, type(None)), "a list of clauses or null"),
    "layout_id": ((str,), "a name"),
    "layout": ((dict,), "a layout"),
    "decisions": ((int,), "a whole number"),
    "ended_by": ((str,), "stop or steps"),
    "seconds_inside_landmarks": ((float, int, type(None)), "a number or null"),
}
_ARRAYS = {"gold": 2, "poses": 6, "setpoints": 2, "goals": 3}


def rounded(flight: Execution) -> tuple[Floats, Floats]:
    """Poses [T + 1, 6] and setpoints [T, 2] of a flight as an episode keeps them."""
    pose = Pose(torch.from_numpy(flight.positions), torch.from_numpy(flight.quaternions))
    angles = torch.stack(euler_from_quaternion(pose.quaternion), -1)
    poses = torch.cat([pose.position, angles], -1).double().numpy()
    return _round(poses), _round(flight.setpoints.astype(float))


def _round(values: Floats) -> Floats:
    return np.round(values, DECIMALS) + 0.0  # not −0.0


def _array(value: object, columns: int, where: str, key: str) -> Floats:
    if not isinstance(value, list) or not all(are_numbers(entry, columns) for entry in value):
        raise WordwingError(f'{where}: "{key}" must be a list of rows of {columns} finite numbers')
    return np.array(value, float).reshape(-1, columns)


def episode_line(episode: Episode, metrics: dict[str, Any]) -> str:
    """A line of episodes.jsonl, with its end."""
    return json.dumps({**episode.to_json(), "metrics": metrics}, ensure_ascii=False, allow_nan=False) + "\n"


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


def read_lines(file: Path) -> Iterator[tuple[str, Any]]:
    """Where each line of a file of episodes is, for complaints, and what it holds."""
    for number, line in enumerate(files.read_lines(file, MAX_LINE), start=1):
        where = f"{file}: line {number}"
        if number > MAX_FLIGHTS:
            raise WordwingError(f"{file}: there are more than {MAX_FLIGHTS} flights in it")
        try:
            row = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError):
            raise WordwingError(f"{where} is not JSON; was it cut off?") from None
        yield where, row


def read_episodes(files: Iterable[Path]) -> Iterator[Episode]:
    """All flights of some files."""
    for file in files:
        for where, row in read_lines(file):
            yield Episode.from_json(row, where)


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not JSON")
