"""From an annotated paragraph to segments with paths.

Where a follower's curve is there, segments are cut from it; else from the curve that the writer was shown; else moves
are replayed. A curve from which some segment's annotated start or end is more than `START_DISTANCE` away is not the
one that was followed (an environment may have several paragraphs, but has one curve), so the next in this order is
tried; if none fits, the first is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wordwing.data.importers.annotations import Entry
from wordwing.data.importers.curves import condensed, ends_along, replayed
from wordwing.data.importers.tally import Tally
from wordwing.data.importers.units import clipped
from wordwing.data.schema import MAX_TEXT, START_DISTANCE, Segment
from wordwing.errors import WordwingError
from wordwing.language.meaning.clauses import Clause
from wordwing.language.tokenizer import tokenize
from wordwing.world.paths import Floats

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


def best_cut(entry: Entry, curves: Sequence[tuple[str, Floats]], stride: float, tally: Tally) -> Cut | None:
    """The paths of a paragraph; None where there is nothing to make them of.

    Args:
        entry: The paragraph.
        curves: Origins and points [P, 2] of the curves there are, metres, world frame, the preferred first.
        stride: Length of a move F, metres.
        tally: Told about curves that do not fit.
    """
    if "spans" in entry.extra:
        return _own_cut(entry, curves)
    options = [cut_curve(points, origin, entry) for origin, points in curves]
    if (moved := cut_moves(entry, stride)) is not None:
        options.append(moved)
    fitting = [option for option in options if option.misfit(entry) <= START_DISTANCE]
    if options and not (fitting and fitting[0] is options[0]):
        what = "another path taken" if fitting else "taken nevertheless"
        tally.add(f"paragraphs more than {START_DISTANCE} m off the path preferred for them, {what}", entry.env)
    return next(iter(fitting or options), None)


def _own_cut(entry: Entry, curves: Sequence[tuple[str, Floats]]) -> Cut:
    """The paths that our own exporter wrote, exactly."""
    spans, count = entry.extra["spans"], len(entry.instructions)
    if not curves:
        raise WordwingError(f'{entry.where}: there is no curve file for "spans"')
    origin, points = curves[0]
    good = isinstance(spans, list) and len(spans) == count
    for span in spans if good else ():
        whole = isinstance(span, list) and len(span) == 2 and all(type(index) is int for index in span)
        good = good and whole and 0 <= span[0] <= span[1] < len(points)
    if not good:
        raise WordwingError(
            f'{entry.where}: "spans" must give the first and last of {len(points)} points for each of {count} segments'
        )
    path, outside = clipped(points)
    return Cut(origin, [path[first : last + 1] for first, last in spans], 0, outside)


def segments_of(entry: Entry, cut: Cut, landmarks: int | None, tally: Tally) -> list[list[Segment]]:
    """The segments that can be flown, in runs of truly consecutive ones.

    A segment without a path (it only turns, or ends where it starts) or without words is left out, and those before
    and after it do not follow one another.

    Args:
        entry: The paragraph.
        cut: Its paths.
        landmarks: How many its layout has; None if they are not those that meanings speak of.
        tally: Told what is left out and why.
    """
    runs: list[list[Segment]] = [[]]
    meanings = _meanings(entry, landmarks, tally)
    starts, outside = clipped(entry.starts)
    tally.add("path points out of the arena, moved to its edge", entry.env, cut.outside)
    tally.add("starts out of the arena, moved to its edge", entry.env, outside)
    tally.add("ends that differ from the nearest point of the whole path", entry.env, cut.differing)
    for index, (text, path, meaning) in enumerate(zip(entry.instructions, cut.paths, meanings, strict=True)):
        start, end = starts[index], entry.ends[index]
        if (reason := _unusable(text, path, start, own="spans" in entry.extra)) is not None:
            tally.add(f"segments {reason}, left out", entry.env)
            if runs[-1]:
                runs.append([])
            continue
        if math.dist(path[-1], end) > FAR_END:
            tally.add(f"segments whose annotated end is more than {FAR_END} m from their path", entry.env)
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


def _meanings(entry: Entry, landmarks: int | None, tally: Tally) -> list[tuple[Clause, ...] | None]:
    """What our own exporter says that each segment means."""
    rows, count = entry.extra.get("meaning"), len(entry.instructions)
    if rows is None:
        return [None] * count
    if landmarks is None:
        tally.add("paragraphs whose meaning is lost with landmarks of their layout", entry.env)
        return [None] * count
    if not isinstance(rows, list) or len(rows) != count or not all(isinstance(row, list | None) for row in rows):
        raise WordwingError(f'{entry.where}: "meaning" must have a list of clauses, or null, for each segment')
    return [
        None if row is None else tuple(Clause.from_json(clause, landmarks, entry.where) for clause in row)
        for row in rows
    ]
