"""The records of a dataset: paragraphs of segments, and the instructions that come from them.

A segment is an instruction with its start and path. A paragraph is a walk of consecutive segments in one layout. From
it come single segments and pairs of consecutive segments (paper: Data Augmentation). Where the layout is a *scene*,
larger than the arena, each instruction has a `Window` of its own: a 4.7 m square of the scene that holds its path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF
from wordwing.language.meaning.clauses import Clause
from wordwing.world.paths import Floats, path_length

MAX_TEXT = 2000
"""Longest sentence, characters."""

MAX_POINTS = 10_000
"""Most points of one path."""

MAX_NUMBER = 1e6
"""Largest coordinate, metres, and angle, radians; beyond it is only nonsense."""

START_DISTANCE = 0.5
"""How far from the first point of its path a segment may start, metres: people's starts are not exactly on their
paths."""


@dataclass(frozen=True)
class Window:
    """A square of the arena's size in a scene; its centre is the arena's, its x axis the arena's."""

    x: float
    y: float
    """Its centre, metres, scene frame."""
    yaw: float
    """Where its x axis points, radians, scene frame."""

    def to_arena(self, points: Floats) -> Floats:
        """Points [..., 2] of the scene in the arena's frame, metres."""
        cos, sin = math.cos(self.yaw), math.sin(self.yaw)
        offset = np.asarray(points, float) - (self.x, self.y)
        return np.stack([offset[..., 0] * cos + offset[..., 1] * sin, offset[..., 1] * cos - offset[..., 0] * sin], -1)

    def yaw_to_arena(self, yaw: float) -> float:
        """A heading of the scene in the arena's frame, in [−π, π]."""
        return math.remainder(yaw - self.yaw, 2 * math.pi)


@dataclass(frozen=True)
class Segment:
    """One instruction: metres, radians, frame of the paragraph's layout."""

    instruction: str
    start_xy: tuple[float, float]
    start_yaw: float
    path: Floats
    """[P, 2] the demonstration; at least one point."""
    meaning: tuple[Clause, ...] | None = None
    """What it says, where that is known."""


@dataclass(frozen=True)
class Instruction:
    """What one flight is given, in the arena's frame; one segment or two."""

    id: str
    """Paragraph and segments: "cage-0012/2", "cage-0012/2-3"."""
    split: str
    layout: str
    """Id of the layout or scene."""
    window: Window | None
    """The part of the scene that is the arena; None where the layout is the arena."""
    segments: int
    """1 or 2."""
    segment: Segment
    """Text, start and path of the whole, in the arena's frame."""


@dataclass(frozen=True)
class Paragraph:
    """Consecutive segments in one layout."""

    id: str
    split: str
    layout: str
    segments: tuple[Segment, ...]
    windows: dict[tuple[int, int], Window] | None = None
    """In a scene: the window of each instruction that has one, by its first and last segment."""

    def instructions(self, counts: tuple[int, ...] = (1, 2)) -> Iterator[Instruction]:
        """Single segments, then pairs of consecutive ones; in a scene those that have a window.

        Args:
            counts: How many segments an instruction may have: (1,), (2,) or (1, 2).
        """
        for count in counts:
            for first in range(len(self.segments) - count + 1):
                last = first + count - 1
                if self.windows is not None and (first, last) not in self.windows:
                    continue
                window = self.windows[first, last] if self.windows is not None else None
                segment = joined(self.segments[first : last + 1])
                if window is not None:
                    [start] = window.to_arena(np.array([segment.start_xy])).tolist()
                    segment = replace(
                        segment,
                        start_xy=(start[0], start[1]),
                        start_yaw=window.yaw_to_arena(segment.start_yaw),
                        path=window.to_arena(segment.path),
                    )
                name = f"{self.id}/{first}" if count == 1 else f"{self.id}/{first}-{last}"
                yield Instruction(name, self.split, self.layout, window, count, segment)

    def used_segments(self) -> Iterator[Segment]:
        """Segments that are in some instruction: in a scene a leg may have a window with its neighbour only."""
        for index, segment in enumerate(self.segments):
            if self.windows is None or any(first <= index <= last for first, last in self.windows):
                yield segment

    def to_json(self) -> dict[str, Any]:
        """One line of paragraphs.jsonl; positions to a tenth of a millimetre."""
        row: dict[str, Any] = {"id": self.id, "split": self.split, "layout": self.layout}
        row["segments"] = [
            {
                "instruction": segment.instruction,
                "start": [*(round(v, 4) for v in segment.start_xy), round(segment.start_yaw, 5)],
                "path": np.asarray(segment.path).round(4).tolist(),
                **({} if segment.meaning is None else {"meaning": [clause.to_json() for clause in segment.meaning]}),
            }
            for segment in self.segments
        ]
        if self.windows is not None:
            row["windows"] = [
                {"segments": list(span), "at": [round(w.x, 4), round(w.y, 4), round(w.yaw, 5)]}
                for span, w in self.windows.items()
            ]
        return row

    @classmethod
    def from_json(cls, row: Any, landmarks: dict[str, int], where: str) -> Paragraph:
        """Read and validate one line.

        Args:
            row: The parsed line.
            landmarks: How many landmarks each known layout has.
            where: Begins each complaint.
        """
        if not isinstance(row, dict):
            raise WordwingError(f"{where}: a paragraph must be an object")
        for key in ("id", "split", "layout"):
            if not isinstance(row.get(key), str) or not row[key]:
                raise WordwingError(f'{where}: "{key}" is {row.get(key)!r:.60}; it must be a name')
        if row["layout"] not in landmarks:
            raise WordwingError(f'{where}: layout "{row["layout"][:60]}" is not in layouts.jsonl')
        if not isinstance(row.get("segments"), list):
            raise WordwingError(f'{where}: "segments" must be a list')
        windows = _windows(row["windows"], len(row["segments"]), where) if "windows" in row else None
        count = landmarks[row["layout"]]
        segments = tuple(
            _segment(entry, count, bounded=windows is None, where=f"{where}: segment {i}")
            for i, entry in enumerate(row["segments"])
        )
        return cls(row["id"], row["split"], row["layout"], segments, windows)


def joined(segments: tuple[Segment, ...]) -> Segment:
    """Consecutive segments as one: texts, paths and meanings end to end."""
    if len(segments) == 1:
        return segments[0]
    path = segments[0].path
    for segment in segments[1:]:
        same = np.allclose(path[-1], segment.path[0], atol=1e-3)
        path = np.concatenate([path, segment.path[1:] if same else segment.path])
    known = [segment.meaning for segment in segments if segment.meaning is not None]
    meaning = tuple(clause for part in known for clause in part) if len(known) == len(segments) else None
    text = " ".join(segment.instruction for segment in segments)
    return replace(segments[0], instruction=text, path=path, meaning=meaning)


def are_numbers(value: object, count: int) -> bool:
    """Whether a JSON value is a list of so many finite numbers that may be coordinates or angles."""
    return (
        isinstance(value, list)
        and len(value) == count
        and all(isinstance(v, int | float) and not isinstance(v, bool) and abs(v) <= MAX_NUMBER for v in value)
    )


def _segment(row: Any, landmarks: int, bounded: bool, where: str) -> Segment:
    if not isinstance(row, dict):
        raise WordwingError(f"{where} must be an object")
    text = row.get("instruction")
    if not isinstance(text, str) or len(text) > MAX_TEXT:
        raise WordwingError(f'{where}: "instruction" must be a text of at most {MAX_TEXT} characters')
    if not are_numbers(row.get("start"), 3):
        raise WordwingError(f'{where}: "start" must be [x, y, yaw] in metres and radians')
    points = row.get("path")
    if not isinstance(points, list) or not 1 <= len(points) <= MAX_POINTS or not all(are_numbers(p, 2) for p in points):
        raise WordwingError(f'{where}: "path" must be a list of 1 to {MAX_POINTS} points [x, y] in metres')
    path = np.array(points, float)
    x, y, yaw = map(float, row["start"])
    if bounded and max(np.abs(path).max(), abs(x), abs(y)) > ARENA_HALF + 1e-6:
        raise WordwingError(f"{where} leaves the arena; x and y must be between {-ARENA_HALF} and {ARENA_HALF}")
    if math.dist((x, y), path[0]) > START_DISTANCE + 1e-3:  # both were rounded
        raise WordwingError(
            f"{where} starts {math.dist((x, y), path[0]):.2f} m from its path; {START_DISTANCE} m is the most"
        )
    meaning = None
    if "meaning" in row:
        if not isinstance(row["meaning"], list):
            raise WordwingError(f'{where}: "meaning" must be a list of clauses')
        meaning = tuple(Clause.from_json(clause, landmarks, where) for clause in row["meaning"])
    return Segment(text, (x, y), yaw, path, meaning)


def _windows(rows: Any, segments: int, where: str) -> dict[tuple[int, int], Window]:
    if not isinstance(rows, list):
        raise WordwingError(f'{where}: "windows" must be a list')
    windows: dict[tuple[int, int], Window] = {}
    for row in rows:
        span: Any = row.get("segments") if isinstance(row, dict) else None
        whole = isinstance(span, list) and len(span) == 2 and all(type(v) is int for v in span)
        first, last = span if whole else (0, -1)
        if not 0 <= first <= last < segments or not are_numbers(row.get("at"), 3):
            raise WordwingError(
                f'{where}: a window must be {{"segments": [first, last], "at": [x, y, yaw]}}, of segments from 0'
            )
        if (first, last) in windows:
            raise WordwingError(f"{where}: there are two windows of segments {first} to {last}")
        windows[first, last] = Window(*map(float, row["at"]))
    return windows


def length(segment: Segment) -> float:
    """Length of the demonstrated path, metres."""
    return path_length(segment.path)
