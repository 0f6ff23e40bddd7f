"""The records of a dataset: paragraphs of segments, and the instructions that come from them.

A segment is an instruction with its start and path. A paragraph is a walk of consecutive segments in one layout. From
it come single segments and pairs of consecutive segments (paper: Data Augmentation). Where the layout is a *scene*,
larger than the arena, each instruction has a `Window` of its own: a 4.7 m square of the scene that holds its path.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF
from wordwing.language.meaning.clauses import Clause
from wordwing.validation import Array, Label, Point, Pose2, numbered, parse_json
from wordwing.world.paths import Floats

MAX_TEXT = 2000
"""Longest sentence, characters."""

MAX_POINTS = 10_000
"""Most points of one path."""

MAX_ALTERNATIVES = 15
"""Most things that a sentence may mean as well."""

START_DISTANCE = 0.5
"""How far from the first point of its path a segment may start, metres: people's starts are not exactly on their
paths."""

_ABSENT: Any = None
"""The value of a key that may be missing, but not null."""


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
    readings: tuple[tuple[float, float], ...] = ()
    """Where readers who did not see the path say that it leads."""
    alternatives: tuple[tuple[Clause, ...], ...] = ()
    """What it may mean as well: whoever does that has followed it, too."""


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
                        readings=(),
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
                **({} if segment.meaning is None else {"meaning": _clauses(segment.meaning)}),
                **(
                    {"alternatives": [_clauses(other) for other in segment.alternatives]}
                    if segment.alternatives
                    else {}
                ),
                **({"readings": np.round(segment.readings, 4).tolist()} if segment.readings else {}),
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
    def from_json(cls, line: str | bytes, landmarks: dict[str, int], where: str) -> Paragraph:
        """Read and validate one line.

        Args:
            line: Of paragraphs.jsonl.
            landmarks: How many landmarks each known layout has.
            where: Begins each complaint.
        """
        row = parse_json(_ParagraphRow, line, where)
        if row.layout not in landmarks:
            raise WordwingError(f'{where}: layout "{row.layout[:60]}" is not in layouts.jsonl')
        windows: dict[tuple[int, int], Window] = {}
        for (first, last), at in ((window.segments, window.at) for window in row.windows or ()):
            if not 0 <= first <= last < len(row.segments):
                raise WordwingError(f"{where}: a window is of segments {first} to {last}, which are not there")
            if (first, last) in windows:
                raise WordwingError(f"{where}: there are two windows of segments {first} to {last}")
            windows[first, last] = Window(*at)
        for number, segment in enumerate(row.segments):
            segment.check(landmarks[row.layout], bounded=row.windows is None, where=f"{where}: segment {number}")
        segments = tuple(
            Segment(one.instruction, one.start[:2], one.start[2], one.path, one.meaning, one.readings, one.alternatives)
            for one in row.segments
        )
        return cls(row.id, row.split, row.layout, segments, None if row.windows is None else windows)


def joined(segments: tuple[Segment, ...]) -> Segment:
    """Consecutive segments as one: texts, paths and meanings end to end, where none of them has alternatives."""
    if len(segments) == 1:
        return segments[0]
    path = segments[0].path
    for segment in segments[1:]:
        same = np.allclose(path[-1], segment.path[0], atol=1e-3)
        path = np.concatenate([path, segment.path[1:] if same else segment.path])
    # Of parts that leave something open, all that they may mean together is too much to try.
    known = [segment.meaning for segment in segments if segment.meaning is not None and not segment.alternatives]
    meaning = tuple(clause for part in known for clause in part) if len(known) == len(segments) else None
    text = " ".join(segment.instruction for segment in segments)
    return replace(segments[0], instruction=text, path=path, meaning=meaning, readings=(), alternatives=())


def _clauses(meaning: tuple[Clause, ...]) -> list[dict[str, Any]]:
    return [clause.to_json() for clause in meaning]


@dataclass(frozen=True)
class _SegmentRow:
    instruction: Annotated[str, Field(max_length=MAX_TEXT)]
    start: Pose2
    path: Annotated[Floats, Array(2, least=1, most=MAX_POINTS)]
    meaning: Annotated[tuple[Clause, ...], numbered("clause")] = _ABSENT
    alternatives: Annotated[tuple[tuple[Clause, ...], ...], Field(max_length=MAX_ALTERNATIVES)] = ()
    readings: tuple[Point, ...] = ()

    def check(self, landmarks: int, bounded: bool, where: str) -> None:
        """Raise a `WordwingError` if it cannot be flown, or means what is not there."""
        x, y, _yaw = self.start
        if bounded and max(np.abs(self.path).max(), abs(x), abs(y)) > ARENA_HALF + 1e-6:
            raise WordwingError(f"{where} leaves the arena; x and y must be between {-ARENA_HALF} and {ARENA_HALF}")
        distance = math.dist((x, y), self.path[0])
        if distance > START_DISTANCE + 1e-3:  # both were rounded
            raise WordwingError(f"{where} starts {distance:.2f} m from its path; {START_DISTANCE} m is the most")
        if self.alternatives and not self.meaning:
            raise WordwingError(f"{where} has alternatives to a meaning, but no meaning")
        for clause in chain(self.meaning or (), *self.alternatives):
            clause.validate(landmarks, where)


@dataclass(frozen=True)
class _WindowRow:
    segments: Annotated[tuple[int, int], Field(description="[first, last], segments from 0")]
    at: Pose2


@dataclass(frozen=True)
class _ParagraphRow:
    id: Label
    split: Label
    layout: Label
    segments: Annotated[tuple[_SegmentRow, ...], numbered("segment", first=0)]
    windows: tuple[_WindowRow, ...] = _ABSENT
