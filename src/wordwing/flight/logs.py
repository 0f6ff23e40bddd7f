"""Logs of flights: a folder with `events.jsonl`, `flight.tlog` and, only if asked for, the images that were seen.

`events.jsonl` has one JSON object a line, each with `time` (seconds of the clock that all processes of a flight share)
and `kind`; the others depend on the kind. These are written here:

| kind | values |
| --- | --- |
| `flight` | `instruction`, `policy`, `vehicle`, `arena`, `layout` (null if not known), `unix` (the moment in UTC) |
| `observation` | `number`, `position` and `quaternion` (world frame), `image_time`, `gap`, `frame` (a file, or null) |
| `decision` | `forward`, `yaw_rate`, `stop` |
| `flown` | `forward`, `yaw_rate` as they were really sent |
| `end` | `by` ("stop" or "steps"), `decisions` |

The guardian adds what it sends and why (`guardian.protocol.GuardianEvent`). Several processes may write to one log:
each line is one write at the end of the file.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from wordwing.errors import WordwingError
from wordwing.files import read_image, read_lines, unwritable
from wordwing.flight.arena import Arena
from wordwing.flight.guardian.event_log import EVENTS as EVENTS, TLOG as TLOG, EventLog
from wordwing.flight.matching import MatchedObservation
from wordwing.interface import Setpoint
from wordwing.world.layout import Layout

FRAMES = "frames"

MAX_LINE, MAX_EVENTS = 1_000_000, 64_000_000
"""Longest line, and most of all lines, that is read of a log, bytes; an hour takes about 40 MB."""


class FlightLog(EventLog):
    """The pilot's part in a flight's log: what was seen, decided and flown."""

    def __init__(self, folder: str | Path, *, record: bool = False, tlog: bool = False) -> None:
        """Open a log; where `record` is true, images are kept: they show people."""
        try:
            (Path(folder) / FRAMES if record else Path(folder)).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(folder, error) from None
        super().__init__(folder, tlog=tlog)
        self.record = record
        self._observations = 0

    @classmethod
    def fresh(cls, folder: str | Path, *, record: bool = False, tlog: bool = False) -> FlightLog:
        """Open a log that nothing may have been written to before."""
        if (Path(folder) / EVENTS).exists():
            raise WordwingError(f"{folder}: there is the log of another flight; choose another --log")
        return cls(folder, record=record, tlog=tlog)

    def begin(
        self,
        time: float,
        unix: float,
        instruction: str,
        policy: str,
        vehicle: str,
        arena: Arena | None = None,
        layout: Layout | None = None,
    ) -> None:
        """What this is a flight of."""
        self.event(
            time,
            "flight",
            unix=unix,
            instruction=instruction,
            policy=policy,
            vehicle=vehicle,
            arena=None if arena is None else json.loads(arena.to_json()),
            layout=None if layout is None else layout.to_document(),
        )

    def observation(self, time: float, seen: MatchedObservation) -> None:
        """What the policy was shown, its image only if images are kept."""
        self._observations += 1
        name = None
        if self.record and self.failed is None:
            name = f"{FRAMES}/{self._observations:05d}.png"
            try:
                Image.fromarray(seen.frame.image.numpy()).save(self.folder / name, compress_level=1)
            except OSError as error:
                self.failed, name = (error.strerror or "unknown").lower(), None
        self.event(
            time,
            "observation",
            number=self._observations,
            position=seen.pose.position,
            quaternion=seen.pose.quaternion,
            image_time=round(seen.frame.taken, 4),
            gap=round(seen.gap, 4),
            frame=name,
        )

    def decision(self, time: float, setpoint: Setpoint, stop: bool) -> None:
        """What the policy decided."""
        self.event(
            time, "decision", forward=float(setpoint.forward[0]), yaw_rate=float(setpoint.yaw_rate[0]), stop=stop
        )

    def flown(self, time: float, setpoint: Setpoint) -> None:
        """What was really sent for it."""
        self.event(time, "flown", forward=float(setpoint.forward[0]), yaw_rate=float(setpoint.yaw_rate[0]))

    def end(self, time: float, by: str, decisions: int) -> None:
        """How the policy's part of the flight ended."""
        self.event(time, "end", by=by, decisions=decisions)


@dataclass(frozen=True)
class LoggedEvent:
    """One line of `events.jsonl`."""

    time: float
    kind: str
    values: dict[str, Any] = field(default_factory=dict)
    line: int = 0
    """Counted from 1."""


def read_events(folder: str | Path) -> list[LoggedEvent]:
    """The events of a log in the order in which they were written; half a last line is left out.

    Args:
        folder: Of the log, or its `events.jsonl`.
    """
    path = Path(folder) / EVENTS if Path(folder).is_dir() else Path(folder)
    if not path.exists():
        raise WordwingError(f"{folder}: this is no log of a flight, there is no {EVENTS} in it")
    found = []
    for number, line in enumerate(read_lines(path, MAX_LINE, MAX_EVENTS), start=1):
        if not line.strip(b"\0 \r\n"):
            continue  # a computer that lost its power may leave zeros
        try:
            document = json.loads(line)
            time, kind = document.pop("time"), document.pop("kind")
            if not isinstance(kind, str) or isinstance(time, bool) or not isinstance(time, int | float):
                raise ValueError("time and kind are wrong")
            time = float(time)
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError, OverflowError):
            if not line.endswith(b"\n"):  # torn off in the middle of being written
                break
            raise WordwingError(f"{path}: line {number} is damaged") from None
        found.append(LoggedEvent(time, kind, document, number))
    return found


def load_frame(folder: Path, name: str) -> Tensor | None:
    """[72, 128, 3] uint8 a recorded image; None if it is not there, whole and of that size."""
    try:
        place = folder / FRAMES / Path(name).name  # nowhere else, whatever the log says
        return torch.from_numpy(read_image(place, 128, 72, ("PNG",)))
    except WordwingError:
        return None
