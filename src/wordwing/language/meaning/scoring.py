"""How well a section of a path does what one clause says: one function a kind, a score in [0, 1] for every section.

Each function returns a matrix [K, K] over sections from point i to point j. Thresholds come in pairs: full marks within
the first number, none from the second on, a line between.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from wordwing.language.meaning.clauses import Clause, Kind, Reference
from wordwing.language.meaning.flown_path import Track, falling, least, mean, wrapped
from wordwing.world.fences import FENCES
from wordwing.world.paths import Floats, lengths

DEGREE = math.pi / 180

NEAR_PASS = 0.7, 1.3
"""Distance from a landmark at which one still passes it, metres."""
NEAR_HUG = 0.35, 0.75
NEAR_CIRCLE = 0.55, 1.1
NEAR_END = 0.5, 1.0
"""Distance from a landmark at which one has reached it, metres."""
NEAR_FENCE = 0.6, 1.1
VIEWED_FROM = 0.7, 0.4
"""Distance from which a landmark's sides are told, metres."""
OVERRUN = 0.9, 1.8
"""How much farther a section may lead after the thing has been done, metres."""
TO_AND_FRO = 0.25, 0.6
"""Share of the way around a thing that may be flown back and forth."""
BENT = 0.45, 0.15
"""Share of the way around a thing by which the direction of flight must turn."""
TURNING_SPACE = 0.3, 0.8
"""How long a section may be on which a turn "on the spot" is flown, metres."""
FACING = 25 * DEGREE, 60 * DEGREE
SIDEWAYS = 35 * DEGREE, 70 * DEGREE
GAP_BETWEEN = 0.05, 0.4
"""How far from the line between two things one may fly and have gone between them, metres."""


def score(clause: Clause, track: Track, first: bool) -> Floats:
    """Score every section of a track for one clause.

    Args:
        clause: What was to be done.
        track: The path flown.
        first: Whether nothing comes before it, so that "forward" means the heading that the drone started with.

    Returns:
        [K, K] in [0, 1].
    """
    values = _SCORES[clause.kind](clause, track, first)  # [K] where only the last point of a section counts
    return np.broadcast_to(values, (len(track), len(track)))


def _sign(clause: Clause) -> float:
    return 1.0 if clause.side == "left" else -1.0


def _reference(clause: Clause) -> Reference:
    assert clause.reference is not None, clause
    return clause.reference


def _amount(clause: Clause) -> float:
    assert clause.amount is not None, clause
    return clause.amount


def _turn_by(track: Track, angle: float, full: float, zero: float) -> Floats:
    change = wrapped(track.depart - track.arrive[:, None])  # [K, K]
    right = falling(np.abs(wrapped(change - angle)), full, zero)
    return right * falling(track.length, *TURNING_SPACE)


def _turn(clause: Clause, track: Track, first: bool) -> Floats:
    amount = _amount(clause)
    return _turn_by(track, _sign(clause) * amount, min(0.6 * amount, 38 * DEGREE), min(amount, 75 * DEGREE))


def _turn_around(clause: Clause, track: Track, first: bool) -> Floats:
    return _turn_by(track, math.pi, 45 * DEGREE, 90 * DEGREE)


def _turn_to(clause: Clause, track: Track, first: bool) -> Floats:
    error = np.abs(wrapped(track.bearing(_reference(clause)) - track.depart))
    return falling(error, *FACING) * falling(track.length, *TURNING_SPACE)


def _straight(clause: Clause, track: Track, first: bool) -> Floats:
    direction = np.arctan2(track.chord[..., 1], track.chord[..., 0])
    heading = track.depart.copy()
    if first:
        heading[0] = track.start_yaw
    off = np.abs(wrapped(direction - heading[:, None]))
    bent = 1 - lengths(track.chord) / np.maximum(track.length, 1e-9)
    return falling(off, *FACING) * falling(bent, 0.12, 0.35) * (track.length > 0.1)


def _forward(clause: Clause, track: Track, first: bool) -> Floats:
    amount = _amount(clause)
    end = falling(np.abs(track.length - amount) / amount, 0.35, 0.9)
    return _straight(clause, track, first) * end


def _curve(clause: Clause, track: Track, first: bool) -> Floats:
    turned = _sign(clause) * track.turned
    enough = falling(-turned, -40 * DEGREE, -15 * DEGREE) * falling(turned, 200 * DEGREE, 270 * DEGREE)
    return enough * falling(-track.length, -0.3, -0.1)


def _swept(clause: Clause, track: Track) -> Floats:
    """[K, K] radians flown around the landmark with it on the clause's side."""
    polar = track.polar[int(_reference(clause))]
    return _sign(clause) * (polar - polar[:, None])


def _steady(clause: Clause, track: Track) -> Floats:
    """[K, K] how much of the way around is flown one way round, rather than to and fro."""
    polar = track.polar[int(_reference(clause))]
    way = np.concatenate([[0.0], np.abs(np.diff(polar)).cumsum()])
    back = 1 - _swept(clause, track) / np.maximum(way - way[:, None], 1e-9)
    return falling(back, *TO_AND_FRO)


def _closest(track: Track, reference: Reference) -> tuple[Floats, Floats]:
    """[K, K] the least distance, and the way flown since, metres."""
    nearest, where = least(track.gap(reference))
    return nearest, track.passed - track.passed[where]


def _pass(clause: Clause, track: Track, first: bool) -> Floats:
    swept = _swept(clause, track)
    nearest, since = _closest(track, _reference(clause))
    by = falling(-swept, -50 * DEGREE, -20 * DEGREE) * falling(swept, 225 * DEGREE, 300 * DEGREE)
    return by * falling(nearest, *NEAR_PASS) * falling(since, *OVERRUN)


def _circle(clause: Clause, track: Track, first: bool) -> Floats:
    error = np.abs(_swept(clause, track) - _amount(clause))
    near = falling(mean(track.gap(_reference(clause))), *NEAR_CIRCLE)
    amount = falling(error, 38 * DEGREE, 75 * DEGREE)
    # Straight past a thing leads around it too, as seen from it; who circles it also turns.
    turned = _sign(clause) * track.turned / _amount(clause)
    return near * amount * _steady(clause, track) * falling(-turned, *(-share for share in BENT))


def _hug(clause: Clause, track: Track, first: bool) -> Floats:
    near = falling(mean(track.gap(_reference(clause))), *NEAR_HUG)
    return near * falling(-_swept(clause, track), -45 * DEGREE, -20 * DEGREE) * _steady(clause, track)


def _line(clause: Clause, track: Track) -> tuple[Floats, Floats]:
    """The two ends [2] of the line between what a clause speaks of."""
    assert clause.reference is not None, clause
    assert clause.other is not None, clause
    middle = track.points[len(track) // 2]
    begin = track.place(clause.reference, middle)
    end = track.place(clause.other, begin)
    if isinstance(clause.reference, str):
        begin = track.place(clause.reference, end)
    return begin, end


def _distance_to_line(points: Floats, begin: Floats, end: Floats, inner: float) -> Floats:
    """[K] metres from points [K, 2] to the inner part of a line."""
    line = end - begin
    along = ((points - begin) @ line / max(float(line @ line), 1e-9)).clip(0.5 - inner / 2, 0.5 + inner / 2)
    return lengths(points - begin - along[:, None] * line)


def _between(clause: Clause, track: Track, first: bool) -> Floats:
    begin, end = _line(clause, track)
    line = end - begin
    side = (track.points - begin) @ np.array([-line[1], line[0]])  # [K] sign: which side of the line
    # Each step across the line counts by how near to its inner part it crosses; there and back again is nothing.
    before, after = side[:-1], side[1:]
    share = before / np.where(before == after, 1.0, before - after)
    crossing = track.points[:-1] + share[:, None] * np.diff(track.points, axis=0)  # [K - 1, 2]
    weight = falling(_distance_to_line(crossing, begin, end, inner=0.8), *GAP_BETWEEN)
    crossed = np.concatenate([[0.0], (weight * (np.sign(after) - np.sign(before)) / 2).cumsum()])  # [K]
    _, where = least(_distance_to_line(track.points, begin, end, inner=0.8))
    since = track.passed - track.passed[where]
    return np.abs(crossed - crossed[:, None]).clip(0.0, 1.0) * falling(since, *OVERRUN)


def _toward(clause: Clause, track: Track, first: bool) -> Floats:
    gap = track.gap(_reference(clause))
    nearer = (gap[:, None] - gap) / np.maximum(track.length, 1e-9)
    return falling(-nearer, -0.75, -0.3) * falling(-track.length, -0.3, -0.1)


def _reach(clause: Clause, track: Track, first: bool) -> Floats:
    return falling(track.gap(_reference(clause)), *NEAR_END)


_SIDES = {"front": math.pi, "behind": 0.0, "left": math.pi / 2, "right": -math.pi / 2}


def _reach_side(clause: Clause, track: Track, first: bool) -> Floats:
    assert clause.side is not None, clause
    bearing = track.bearing(_reference(clause))
    # Where the last point lies around the landmark, seen along the line from the first point to it.
    around = wrapped(bearing + math.pi - bearing[:, None])  # [K, K]
    right = falling(np.abs(wrapped(around - _SIDES[clause.side])), *SIDEWAYS)
    # Seen from close by, wherever one comes to a stop is "in front", so one must look at it from farther away.
    away = falling(-track.gap(_reference(clause)), -VIEWED_FROM[0], -VIEWED_FROM[1])
    return _reach(clause, track, first) * right * away[:, None]


def _reach_fence(clause: Clause, track: Track, first: bool) -> Floats:
    return falling(track.gap(_reference(clause)), *NEAR_FENCE)


def _reach_between(clause: Clause, track: Track, first: bool) -> Floats:
    return falling(_distance_to_line(track.points, *_line(clause, track), inner=0.4), 0.2, 0.55)


def _face(clause: Clause, track: Track, first: bool) -> Floats:
    error = np.abs(wrapped(track.bearing(_reference(clause)) - track.arrive))
    return falling(error, *FACING)


def _abeam(clause: Clause, track: Track, first: bool) -> Floats:
    reference = _reference(clause)
    aside = _sign(clause) * wrapped(track.bearing(reference) - track.arrive)
    return falling(np.abs(aside - math.pi / 2), *SIDEWAYS) * falling(track.gap(reference), *NEAR_PASS)


def _along(clause: Clause, track: Track, first: bool) -> Floats:
    colour = str(_reference(clause))
    [normal] = [np.array(fence.normal) for fence in FENCES if fence.colour == colour]
    # With the fence on the left its inward normal points to the drone's right.
    forward = _sign(clause) * np.array([-normal[1], normal[0]])
    straight = (track.chord @ forward) / np.maximum(track.length, 1e-9)
    near = falling(mean(track.gap(colour)), 0.9, 1.5)
    return near * falling(-straight, -0.85, -0.6) * falling(-track.length, -0.4, -0.2)


def _leave(clause: Clause, track: Track, first: bool) -> Floats:
    reference = _reference(clause)
    gap = track.gap(reference)
    behind = np.abs(wrapped(track.bearing(reference) - track.depart))
    farther = (gap - gap[:, None]) / np.maximum(track.length, 1e-9)
    begun = falling(-behind, -120 * DEGREE, -80 * DEGREE) * falling(gap, *NEAR_END)
    return begun[:, None] * falling(-farther, -0.7, -0.3) * falling(-track.length, -0.25, -0.1)


_SCORES: dict[Kind, Callable[[Clause, Track, bool], Floats]] = {
    "turn": _turn,
    "turn_around": _turn_around,
    "turn_to": _turn_to,
    "straight": _straight,
    "forward": _forward,
    "curve": _curve,
    "pass": _pass,
    "circle": _circle,
    "hug": _hug,
    "between": _between,
    "toward": _toward,
    "reach": _reach,
    "reach_side": _reach_side,
    "reach_fence": _reach_fence,
    "reach_between": _reach_between,
    "face": _face,
    "abeam": _abeam,
    "along": _along,
    "leave": _leave,
}
