"""Paths of LANI and the drif workspace: from curve files, annotated ends and moves to segments.

`random_curve_<id>.json` is the curve that a writer was shown, `anno_curve_<id>.json` the one that a follower took:
`{"x_array": […], "z_array": […]}`. A follower moved in steps F of one length and turns L and R of 15°; each gave a
point, so turns stand there as the same point again and again.

Where a follower's curve is there, segments are cut from it; else from the curve that the writer was shown; else moves
are replayed. A curve from which some segment's annotated start or end is more than `START_DISTANCE` away is not the
one that was followed (an environment may have several paragraphs, but has one curve), so the next in this order is
tried; if none fits, the first is taken.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
from pydantic import Field

from wordwing.data.importers.annotations import Entry
from wordwing.data.importers.originals import MAX_FILE, UNITY_METRE, ImportNotes, LenientNumbers, check_lengths, clipped
from wordwing.data.schema import MAX_POINTS, MAX_TEXT, START_DISTANCE, Segment
from wordwing.errors import WordwingError
from wordwing.files import read_json
from wordwing.language.meaning.clauses import Clause
from wordwing.language.tokenizer import tokenize
from wordwing.validation import parse
from wordwing.world.paths import Floats, Ints, lengths

STRIDES = (1.0, 1.5)
"""What a step F may be, Unity metres; releases and tools differ."""

TURN = math.radians(15)
"""How far L and R turn, radians."""

SAME = 1e-6
"""Points no farther apart are one, metres."""


@dataclass(frozen=True)
class _Curve:
    x_array: Annotated[LenientNumbers, Field(max_length=MAX_POINTS)]
    z_array: LenientNumbers

    def __post_init__(self) -> None:
        check_lengths(vars(self))


def read_curve(path: Path) -> Floats:
    """[P, 2] x and z of a curve file, in its units; P may be 0."""
    curve = parse(_Curve, read_json(path, MAX_FILE, "curve"), str(path))
    return np.array([curve.x_array, curve.z_array], float).T


def condensed(path: Floats) -> Floats:
    """Points [P, 2] without those that repeat the one before."""
    if not len(path):
        return path
    return path[np.concatenate([[True], lengths(np.diff(path, axis=0)) > SAME])]


def ends_along(path: Floats, ends: Floats) -> tuple[Ints, int]:
    """Where on a path segments end: in order along it, and together as near to the annotated ends as can be.

    Args:
        path: [P, 2] at least one point.
        ends: [S, 2] annotated ends.

    Returns:
        [S] indices of path points, non-decreasing, with the least sum of squared distances, and how many of them the
        nearest point of the whole path differs from. That is what the authors take, and where paths come near
        themselves it can lie before the segment's start.
    """
    distances = lengths(path - ends[:, None])  # [S, P]
    total = np.zeros(len(path))  # [P] least sum so far with all ends up to this point
    choices = []  # for each end and last point allowed: where it is
    for row in distances**2:
        total = total + row
        least = np.minimum.accumulate(total)
        better = np.concatenate([[True], total[1:] < least[:-1]])
        choices.append(np.maximum.accumulate(np.where(better, np.arange(len(path)), 0)))
        total = least
    indices, last = [], len(path) - 1
    for choice in reversed(choices):
        last = int(choice[last])
        indices.append(last)
    found = np.array(indices[::-1], int)
    return found, int((found != distances.argmin(axis=1)).sum())


def replayed(start: Floats, yaw: float, moves: str, stride: float) -> Floats:
    """The path of moves from a pose.

    Args:
        start: [2] metres, world frame.
        yaw: Radians, world frame.
        moves: Letters F, L and R.
        stride: Length of a step F, metres.

    Returns:
        [1 + F, 2] the start and the place after each step.
    """
    letters = np.array(list(moves), dtype="U1")
    turns = (letters == "L").astype(int) - (letters == "R").astype(int)
    heading = yaw + TURN * turns.cumsum()[letters == "F"]  # one for each step
    steps = stride * np.stack([np.cos(heading), np.sin(heading)], axis=-1)
    return np.asarray(start + np.concatenate([np.zeros((1, 2)), steps]).cumsum(axis=0), float)


def find_stride(entries: Iterable[Entry], notes: ImportNotes) -> float:
    """The length of a step F, metres: the one of `STRIDES` whose replays end nearest to the annotated ends.

    The median decides, because moves against fences and landmarks were blocked and no replay knows of it.
    """
    missed: dict[float, list[float]] = {stride: [] for stride in STRIDES}
    for entry in entries:
        for start, yaw, end, moves in zip(entry.starts, entry.yaws, entry.ends, entry.moves or (), strict=False):
            if "F" in moves:
                for stride, distances in missed.items():
                    distances.append(math.dist(replayed(start, float(yaw), moves, stride * UNITY_METRE)[-1], end))
    if not missed[STRIDES[0]]:
        return STRIDES[0] * UNITY_METRE
    medians = {stride: float(np.median(distances)) for stride, distances in missed.items()}
    best = min(medians, key=lambda stride: (medians[stride], stride))
    others = ", ".join(f"{stride} m: {median:.3f} m" for stride, median in medians.items() if stride != best)
    notes.facts.append(
        f"a move F is {best} Unity m: replayed, {len(missed[best])} segments end {medians[best]:.3f} m "
        f"from where they should, in the median ({others})"
    )
    return best * UNITY_METRE


FAR_END = 0.47
"""Annotated ends farther than this from their paths are counted, metres: the radius of success."""


@dataclass(frozen=True)
class Cut:
    """The paths of a paragraph's segments; metres, world frame."""

    origin: str
    """What they were made of."""
    paths: list[Floats]
    """[S] of [P, 2]; one point where a segment has no path."""
    differing: int = 0
    """Ends that an unconstrained search puts elsewhere."""
    outside: int = 0
    """Points moved into the arena."""

    def misfit(self, entry: Entry) -> float:
        """Greatest distance of an annotated start or end from that of its path, metres."""
        rows = zip(self.paths, entry.starts, entry.ends, strict=True)
        return max((max(math.dist(p[0], start), math.dist(p[-1], end)) for p, start, end in rows), default=0.0)


def cut_curve(curve: Floats, origin: str, entry: Entry) -> Cut:
    """Cut a curve [P, 2] at the points nearest to the annotated ends."""
    path, outside = clipped(curve)
    path = condensed(path)
    ends, differing = ends_along(path, entry.ends)
    starts = [0, *ends[:-1]]
    return Cut(origin, [path[a : b + 1] for a, b in zip(starts, ends, strict=True)], differing, outside)


def cut_moves(entry: Entry, stride: float) -> Cut | None:
    """Replay each segment from its own start; None where there are no moves."""
    if entry.moves is None:
        return None
    rows = zip(entry.starts, entry.yaws, entry.moves, strict=True)
    paths = [clipped(replayed(start, float(yaw), moves, stride)) for start, yaw, moves in rows]
    return Cut("replayed from moves", [condensed(path) for path, _ in paths], 0, sum(n for _, n in paths))


def best_cut(entry: Entry, curves: Sequence[tuple[str, Floats]], stride: float, notes: ImportNotes) -> Cut | None:
    """The paths of a paragraph; None where there is nothing to make them of.

    Args:
        entry: The paragraph.
        curves: Origins and points [P, 2] of the curves there are, metres, world frame, the preferred first.
        stride: Length of a move F, metres.
        notes: Told about curves that do not fit.
    """
    if entry.row.wordwing.spans is not None:
        return _own_cut(entry, curves)
    options = [cut_curve(points, origin, entry) for origin, points in curves]
    if (moved := cut_moves(entry, stride)) is not None:
        options.append(moved)
    fitting = [option for option in options if option.misfit(entry) <= START_DISTANCE]
    if options and not (fitting and fitting[0] is options[0]):
        what = "another path taken" if fitting else "taken nevertheless"
        notes.add(f"paragraphs more than {START_DISTANCE} m off the path preferred for them, {what}", entry.env)
    return next(iter(fitting or options), None)


def _own_cut(entry: Entry, curves: Sequence[tuple[str, Floats]]) -> Cut:
    """The paths that our own exporter wrote, exactly."""
    spans = entry.row.wordwing.spans or []
    if not curves:
        raise WordwingError(f'{entry.where}: there is no curve file for "spans"')
    origin, points = curves[0]
    if not all(0 <= first <= last < len(points) for first, last in spans):
        raise WordwingError(f'{entry.where}: "spans" must give the first and last of {len(points)} points')
    path, outside = clipped(points)
    return Cut(origin, [path[first : last + 1] for first, last in spans], 0, outside)


def segments_of(entry: Entry, cut: Cut, landmarks: int | None, notes: ImportNotes) -> list[list[Segment]]:
    """The segments that can be flown, in runs of truly consecutive ones.

    A segment without a path (it only turns, or ends where it starts) or without words is left out, and those before
    and after it do not follow one another.

    Args:
        entry: The paragraph.
        cut: Its paths.
        landmarks: How many its layout has; None if they are not those that meanings speak of.
        notes: Told what is left out and why.
    """
    runs: list[list[Segment]] = [[]]
    meanings = _meanings(entry, landmarks, notes)
    starts, outside = clipped(entry.starts)
    notes.add("path points out of the arena, moved to its edge", entry.env, cut.outside)
    notes.add("starts out of the arena, moved to its edge", entry.env, outside)
    notes.add("ends that differ from the nearest point of the whole path", entry.env, cut.differing)
    for index, (text, path, meaning) in enumerate(zip(entry.row.instructions, cut.paths, meanings, strict=True)):
        start, end = starts[index], entry.ends[index]
        if (reason := _unusable(text, path, start, own=entry.row.wordwing.spans is not None)) is not None:
            notes.add(f"segments {reason}, left out", entry.env)
            if runs[-1]:
                runs.append([])
            continue
        if math.dist(path[-1], end) > FAR_END:
            notes.add(f"segments whose annotated end is more than {FAR_END} m from their path", entry.env)
        runs[-1].append(Segment(text, (float(start[0]), float(start[1])), float(entry.yaws[index]), path, meaning))
    return [run for run in runs if run]


def _unusable(text: str, path: Floats, start: Floats, own: bool) -> str | None:
    if len(text) > MAX_TEXT:
        return f"of more than {MAX_TEXT} characters"
    if math.dist(start, path[0]) > START_DISTANCE - 1e-3:  # to stay valid when rounded
        return f"that start more than {START_DISTANCE} m from their path"
    if not own and not tokenize(text):
        return "without words"
    if not own and len(path) < 2:
        return "without a path"
    return None


def _meanings(entry: Entry, landmarks: int | None, notes: ImportNotes) -> list[tuple[Clause, ...] | None]:
    """What our own exporter says that each segment means."""
    meanings = entry.row.wordwing.meaning or [None] * len(entry.row.instructions)
    if landmarks is None and any(meanings):
        notes.add("paragraphs whose meaning is lost with landmarks of their layout", entry.env)
        return [None] * len(meanings)
    for clause in (clause for meaning in meanings for clause in meaning or ()):
        clause.validate(landmarks or 0, entry.where)
    return meanings
