"""From walks in furnished rooms to a dataset: what the importers of house-like corpora share.

An importer reads its own format into raw furniture and paragraphs in the frame of their scene; here rooms are
furnished, windows placed, rooms held out and everything that had to be left out is counted.
"""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.furniture import FurnishingReport, furnish
from wordwing.data.importers.originals import Progress, silently
from wordwing.data.scenes import Scene, about, place_window
from wordwing.data.schema import Paragraph, Segment, Window, joined
from wordwing.errors import WordwingError
from wordwing.language.tokenizer import tokenize
from wordwing.world.paths import Floats, line_distance, lines_of, path_length

MIN_LENGTH = 0.25
"""Shortest path that is flown, metres; less is a turn on the spot, which is used only together with a neighbour."""

MAX_LENGTH = 12.0
"""Longest path, metres: along longer ones even ORACLE mostly runs out of steps."""

MAX_DEPTH = 0.05
"""How deep a path may enter a piece's footprint, metres."""

STEPS = 100
"""Most control steps of a flight in a house."""

EMPTY, SHORT, LONG = "without a sentence", "too short to fly", "too long to fly"
WIDE, THROUGH, APART = "too wide for the arena", "through furniture", "not end to end"
"""Why an instruction has no window."""

Pieces = Sequence[tuple[str, float, float]]
"""Names and raw centres of a room's furniture, metres, scene frame."""


@dataclass(frozen=True)
class Rooms:
    """A corpus as an importer read it."""

    furniture: Mapping[str, Pieces]
    """By scene."""
    paragraphs: Sequence[Paragraph]
    """Without windows; `layout` is the scene."""


@dataclass
class RoomCounts:
    """What an import kept and left out."""

    furniture: FurnishingReport = field(default_factory=FurnishingReport)
    kept: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Instructions by split and number of segments."""
    dropped: Counter[tuple[int, str]] = field(default_factory=Counter)
    """Instructions without a window, by number of segments and reason."""
    remarks: list[str] = field(default_factory=list)

    def notes(self) -> tuple[str, ...]:
        """Everything in sentences."""
        report = self.furniture
        moved = f"{len(report.moved)} moved"
        if report.moved:
            moved += f" by {np.mean(report.moved):.2f} m on average and {max(report.moved):.2f} m at most"
        notes = [
            f"furniture: {report.kept} of {report.pieces} pieces kept; {report.stacked} stand on others, {moved}; "
            f"left out: {_list(Counter(report.left_out))}"
        ]
        if report.unknown:
            notes.append(f"furniture that the catalogue does not have: {_list(Counter(report.unknown))}")
        for count, what in ((1, "single legs"), (2, "pairs of legs")):
            reasons = Counter({reason: n for (size, reason), n in self.dropped.items() if size == count})
            kept = Counter({split: n for (split, size), n in self.kept.items() if size == count})
            notes.append(f"{what} kept: {_list(kept)}; left out: {_list(reasons)}")
        return (*notes, *self.remarks)


def _list(counts: Counter[str]) -> str:
    """Counted things, most first, as in "13 Cabinet, 2 Drawer"."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {name}" for name, count in ranked) or "none"


def build(
    out: str | Path,
    rooms: Rooms,
    command: str,
    seed: int = 0,
    hold_out: int = 10,
    skip_unknown: bool = False,
    track: Progress = silently,
) -> Dataset:
    """Furnish the rooms, place windows and write the dataset.

    Args:
        out: The dataset's folder.
        rooms: What an importer read.
        command: What reads the same again; options are added to it. Where the dataset goes is no part of what it is.
        seed: Chooses windows and held-out rooms.
        hold_out: How many training rooms become the split `dev-unseen`.
        skip_unknown: Leave out furniture that the catalogue does not have, instead of complaining.
        track: Shows progress.
    """
    outcome = RoomCounts()
    walks = sorted(
        (entry for entry in rooms.paragraphs if entry.segments), key=lambda entry: (entry.split != "train", entry.split)
    )
    unseen = _unseen(walks, hold_out, seed, outcome)
    lines = _walked(walks)
    # A room of the training files is the same whatever other files there are.
    walked = {name: by_split.get("train", by_split["all"]) for name, by_split in lines.items()}
    furnished = {
        name: furnish(rooms.furniture[name], walked[name], f'scene "{name[:60]}"', skip_unknown)
        for name in track(sorted(lines), "rooms")
    }
    scenes = {name: scene for name, (scene, _) in furnished.items()}
    outcome.furniture = FurnishingReport.total(report for _, report in furnished.values())
    blocked = {name for name, scene in scenes.items() if _deepest(scene, lines[name]["all"]) > MAX_DEPTH}
    windows = _Windows(scenes, blocked, seed, outcome)
    # What is kept for tests stays so, whichever room it is in.
    walks = [
        replace(walk, split="dev-unseen") if walk.layout in unseen and walk.split in ("train", "dev") else walk
        for walk in walks
    ]
    entries = [entry for walk in track(walks, "windows") if (entry := windows.place(walk)).windows]
    if not entries:
        raise WordwingError(f"{out}: nothing was written, because no instruction can be flown")
    if len(entries) < len(rooms.paragraphs):
        outcome.remarks.append(
            f"paragraphs without an instruction that can be flown, left out: {len(rooms.paragraphs) - len(entries)}"
        )
    labels, shared = _labels(entries)
    command += f" --seed {seed} --hold-out {hold_out}" + " --skip-unknown" * skip_unknown
    source = Source("house", "human", seed, command, STEPS, labels, shared, outcome.notes())
    return write_dataset(out, source, scenes, entries)


def held_out(names: Collection[str], count: int, seed: int) -> set[str]:
    """Choose rooms, evenly over kinds of rooms where the names end in numbers whose hundreds say the kind."""
    rng = np.random.default_rng([seed, 1])
    numbers = {name: re.search(r"(\d{1,9})$", name) for name in names}
    kinds: dict[int, list[str]] = {}
    for name in sorted(names):
        match = numbers[name]
        kinds.setdefault(int(match[1]) // 100 if match and all(numbers.values()) else 0, []).append(name)
    queues = [[group[i] for i in rng.permutation(len(group))] for _, group in sorted(kinds.items())]
    chosen: set[str] = set()
    while len(chosen) < min(count, len(names)):
        for index in rng.permutation(len(queues)).tolist():
            if queues[index] and len(chosen) < count:
                chosen.add(queues[index].pop())
    return chosen


def _unseen(walks: Sequence[Paragraph], hold_out: int, seed: int, outcome: RoomCounts) -> set[str]:
    training = {entry.layout for entry in walks if entry.split == "train"}
    if hold_out and len(training) < 3 * hold_out:
        outcome.remarks.append(
            f"no rooms were held out: there are {len(training)} training rooms, and holding out {hold_out} "
            f"takes {3 * hold_out}"
        )
        return set()
    return held_out(training, hold_out, seed)


def _walked(paragraphs: Sequence[Paragraph]) -> dict[str, dict[str, Floats]]:
    """Straight lines [E, 2, 2] that people walked, each once and sorted, by scene: "train" and "all"."""
    found: defaultdict[str, defaultdict[str, list[Floats]]] = defaultdict(lambda: defaultdict(list))
    for entry in paragraphs:
        lines = [lines_of(segment.path).reshape(-1, 4) for segment in entry.segments]
        for key in ("all", "train") if entry.split == "train" else ("all",):
            found[entry.layout][key] += lines
    return {
        name: {key: np.unique(np.concatenate(value), axis=0).reshape(-1, 2, 2) for key, value in rows.items()}
        for name, rows in found.items()
    }


def _deepest(scene: Scene, lines: Floats) -> float:
    """How far lines [E, 2, 2] enter any piece's footprint at most, metres."""
    return float((scene.footprints - line_distance(scene.centres, lines)).max(initial=-np.inf))


class _Leg(NamedTuple):
    """What windows need to know of one or two segments; people's sentences for the same walk share it."""

    path: Floats
    """[P, 2] metres, scene frame."""
    keep: Floats
    """[K, 3] the furniture that it is about: x, y, footprint, metres, scene frame."""
    unfit: str | None
    """Why it cannot be flown."""


@dataclass
class _Windows:
    """Gives each instruction a window of its own, whatever else is imported."""

    scenes: Mapping[str, Scene]
    blocked: Collection[str]
    """Scenes in which some path runs through furniture."""
    seed: int
    outcome: RoomCounts
    _legs: dict[tuple[str, tuple[bytes, ...]], _Leg] = field(default_factory=dict)

    def place(self, entry: Paragraph) -> Paragraph:
        """The paragraph with windows."""
        windows = {}
        for count in (1, 2):
            for first in range(len(entry.segments) - count + 1):
                last = first + count - 1
                found = self._place(entry, first, last)
                if isinstance(found, Window):
                    windows[first, last] = found
                    self.outcome.kept[entry.split, count] += 1
                else:
                    self.outcome.dropped[count, found] += 1
        return replace(entry, windows=windows)

    def _place(self, entry: Paragraph, first: int, last: int) -> Window | str:
        """The window of an instruction, or why it has none."""
        segments = entry.segments[first : last + 1]
        if not all(tokenize(segment.instruction) for segment in segments):
            return EMPTY
        leg = self._leg(entry.layout, segments)
        if leg.unfit:
            return leg.unfit
        key = f"{self.seed}/{entry.id}/{first}-{last}".encode("utf-8", "surrogatepass")
        rng = np.random.default_rng(int.from_bytes(hashlib.blake2b(key, digest_size=16).digest(), "little"))
        return place_window(leg.path, leg.keep, rng) or WIDE

    def _leg(self, name: str, segments: tuple[Segment, ...]) -> _Leg:
        key = name, tuple(segment.path.tobytes() for segment in segments)
        if key not in self._legs:
            path = joined(segments).path
            self._legs[key] = _Leg(path, about(path, self.scenes[name]), self._unfit(name, segments, path))
        return self._legs[key]

    def _unfit(self, name: str, segments: tuple[Segment, ...], path: Floats) -> str | None:
        if any(np.abs(a.path[-1] - b.path[0]).max() > 1e-3 for a, b in pairwise(segments)):
            return APART
        length = path_length(path)
        if not MIN_LENGTH - 1e-6 <= length <= MAX_LENGTH + 1e-6:
            return SHORT if length < MIN_LENGTH else LONG
        return THROUGH if name in self.blocked and _deepest(self.scenes[name], lines_of(path)) > MAX_DEPTH else None


def _labels(entries: Sequence[Paragraph]) -> tuple[dict[str, str], tuple[str, ...]]:
    """What each split but training is, and which share rooms with training or a split before them."""
    rooms: dict[str, set[str]] = {}
    for entry in entries:
        rooms.setdefault(entry.split, set()).add(entry.layout)
    training = rooms.pop("train", set())
    labels, shared = {}, []
    for split, own in sorted(rooms.items()):
        if own <= training:
            labels[split] = "new tasks in rooms of the training split"
        elif own & training:
            labels[split] = f"new tasks, {len(own & training)} of its {len(own)} rooms in the training split"
        else:
            labels[split] = "rooms never seen in training"
        others = [name for name in sorted(rooms) if name < split and own & rooms[name] - training]
        if others:
            labels[split] += f", some of them those of {', '.join(others)}"
        if others or own & training:
            shared.append(split)
    return labels, tuple(shared)
