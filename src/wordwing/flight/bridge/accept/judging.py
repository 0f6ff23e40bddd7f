"""Measures of a trial: how far the drone came, when it stopped, landed and was disarmed, what was sent."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from wordwing.flight.bridge.accept.trial import Trial
from wordwing.flight.bridge.bridge import TruePoint
from wordwing.flight.guardian.safety import AT_REST
from wordwing.flight.logs import TLOG
from wordwing.flight.mavlink.flight_stacks import OUR_SYSTEM
from wordwing.flight.mavlink.messages import Codec, Message
from wordwing.frames import ARENA_HALF


@dataclass(frozen=True)
class Result:
    """One row of the table of results."""

    row: str
    seen: str
    """What was seen, in a few words with times."""
    holds: bool
    """Whether it is as `docs/flight.md` says."""
    x: float | None = None
    """Greatest |x| while it was armed, metres, world."""
    y: float | None = None
    values: dict[str, float] = field(default_factory=dict)
    """Numbers behind `seen`."""
    autopilot: str = ""
    version: str = ""
    """Of the autopilot."""
    wordwing: str = ""
    """Version of wordwing."""


def greatest_xy(trial: Trial, after: float = 0.0) -> tuple[float, float]:
    """Greatest |x| and |y| after a moment, metres, world."""
    points = [point for point in trial.bridge.recording.path if point.time >= after]
    return max(abs(point.x) for point in points), max(abs(point.y) for point in points)


def inside(x: float, y: float) -> bool:
    """Whether the drone's centre has stayed in the arena."""
    return max(x, y) <= ARENA_HALF


def to_fence(point: TruePoint) -> float:
    """How far the nearest fence is, metres; negative outside."""
    return ARENA_HALF - max(abs(point.x), abs(point.y))


def point_at(trial: Trial, time: float) -> TruePoint:
    """The true point nearest to a moment."""
    path = trial.bridge.recording.path
    return path[min(bisect_left(path, time, key=lambda point: point.time), len(path) - 1)]


def stopped_at(trial: Trial, after: float) -> float | None:
    """When the drone came to rest over the floor after a moment."""
    return next((p.time for p in trial.bridge.recording.path if p.time >= after and p.speed < AT_REST), None)


def duration(seconds: float | None) -> str:
    """A time in words, "never" for None."""
    return "never" if seconds is None else f"{seconds:.1f} s"


def elapsed(moment: float | None, begin: float) -> float | None:
    """Seconds from `begin` to a moment; None if there was none."""
    return None if moment is None else moment - begin


def within(seconds: float | None, most: float) -> bool:
    """Whether something happened in time."""
    return seconds is not None and seconds <= most


def pose_errors(trial: Trial) -> list[tuple[float, float]]:
    """Errors of the poses that the policy was shown: over the floor, and in height (estimate minus truth), metres."""
    errors = []
    for entry in trial.events():
        if entry.kind == "observation":
            x, y, z = entry.values["position"]
            true = point_at(trial, entry.values["image_time"])
            errors.append((math.hypot(x - true.x, y - true.y), z - true.z))
    return errors


def sent_packets(trial: Trial) -> Iterator[tuple[float, Message]]:
    """What we have sent in the newest flight, with times of the bridge's clock."""
    begun = next(entry for entry in trial.events() if entry.kind == "flight")
    offset = begun.time - begun.values["unix"]
    for stamp, message in read_tlog(trial.log / TLOG):
        if message.get_srcSystem() == OUR_SYSTEM:
            yield stamp + offset, message


def read_tlog(path: Path) -> Iterator[tuple[float, Message]]:
    """Times, seconds since 1970, and messages of a `.tlog`; an incomplete last packet is left out."""
    data, at, codec = path.read_bytes(), 0, Codec()
    while at + 20 <= len(data):
        stamp = int.from_bytes(data[at : at + 8], "big") / 1e6
        head, length = data[at + 8], data[at + 9]
        size = length + 8 if head == 0xFE else length + 12 + (13 if data[at + 10] & 1 else 0)
        for message in codec.parse(data[at + 8 : at + 8 + size]):
            yield stamp, message
        at += 8 + size
