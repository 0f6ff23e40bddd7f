"""From moves to a path: bent around what stands in the way, smoothed, and judged by what it is meant to do."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.ndimage import gaussian_filter1d

from wordwing.data.segmenting import STORED
from wordwing.data.tours.moves import FINALS, MIDDLES, OPENINGS, ROOM, Ground, Maker, Tour
from wordwing.frames import ARENA_HALF
from wordwing.language.meaning.clauses import Clause, Side
from wordwing.language.meaning.facts import QUARTER, SLIGHT
from wordwing.language.meaning.flown_path import ALL, FIRST, LAST, Track, wrapped
from wordwing.language.meaning.judge import judge_track
from wordwing.language.meaning.scores import score
from wordwing.language.writing.templates import pick, pick_weighted
from wordwing.world.paths import Floats, lengths, path_length, resample
from wordwing.world.tasks import StartPose

LENGTHS = (0.16, 0.26, 0.28, 0.18, 0.12)
"""How often a tour has one to five moves."""

OPENED = 0.12
"""How often it begins with a move that goes by where the drone looks."""

STEP, BENDS = 0.05, ((0.15, 0.1), (0.12, 0.04), (0.08, 0.0))
"""Between points of a path while it is bent, metres, and scales of the smoothing after each bend, metres."""

SAFE, EDGE = 0.2, 0.2
"""Least distance of a path from footprints, and from the fences, metres."""

CUT, CUT_SAFE = 0.25, 0.15
"""Who flies a path cuts its corners, about as smoothing of this scale does; how near it may come to footprints then,
metres."""

START_ROOM = 0.37
"""Of a start from what stands around it, metres."""

SURE = 0.85
"""Score that the path must have in each clause."""

LONGEST = 90.0
"""Decisions that ORACLE may need, about: give or take 3, never 8 more."""

PER_METRE, PER_RADIAN, BESIDES = 5.2, 2.65, 7.0
"""Decisions that ORACLE needs for a metre, for a turn by a radian, and to set out and stop: fitted to 600 flights."""

TURN_SAID, TURN_LEAST = 0.4, 25 * math.pi / 180
"""How often a turn is mentioned that one makes on the spot, and from which angle on."""

ANGLES = tuple(degrees * math.pi / 180 for degrees in (30, 45, 60, 90, 120, 135, 150, 180))
"""Turns are said to be one of these."""

SPARED, AVOIDED = (0.5, 1.2), 0.15
"""How near to a landmark a path comes that is said to avoid it, metres, and how often this is said."""


@dataclass(frozen=True)
class Planned:
    """A tour to be put into words."""

    start: StartPose
    path: Floats
    """[P, 2] metres, world frame."""
    meaning: tuple[Clause, ...]


def plan(ground: Ground, count: int, rng: np.random.Generator) -> Planned | None:
    """Try to plan a tour of some moves from anywhere; None if what was drawn cannot be flown."""
    start = _start(ground, rng)
    if start is None:
        return None
    tour = Tour(ground, start, [], rng)
    for number in range(count):
        last = number == count - 1
        opens = number == 0 and not last and rng.random() < OPENED
        if not _extended(tour, FINALS if last else OPENINGS if opens else MIDDLES):
            return None
    if any(before.clauses[-1].kind == after.clauses[0].kind == "reach_fence" for before, after in pairwise(tour.moves)):
        return None  # two fences in a row are a corner
    points = np.vstack([[start[:2]], *(move.points for move in tour.moves)])
    if path_length(points) * PER_METRE > LONGEST:
        return None
    path = bent(points, ground)
    if path is None or _decisions(path, start.yaw) > LONGEST:
        return None
    cut = Track(_smoothed(path, CUT), start.yaw, ground.layout)
    path = resample(path, STORED).round(4)
    said = _meaning(tour, path, cut)
    return None if said is None else Planned(start, path, said)


def _start(ground: Ground, rng: np.random.Generator) -> StartPose | None:
    x, y = rng.uniform(-1, 1, 2) * (ARENA_HALF - ROOM)
    if ground.gaps(np.array([x, y])).min() < START_ROOM:
        return None
    return StartPose(round(x, 4), round(y, 4), round(float(rng.uniform(-math.pi, math.pi)), 5))


def _extended(tour: Tour, weights: dict[Maker, float]) -> bool:
    """Add a move of some that are possible; whether one of a few was."""
    makers = list(weights)
    for _ in range(4):
        move = pick_weighted(makers, [weights[maker] for maker in makers], tour.rng)(tour)
        if move is not None:
            tour.moves.append(move)
            return True
    return False


def bent(points: Floats, ground: Ground) -> Floats | None:
    """A path [Q, 2] through rough points [P, 2] that keeps clear of footprints and fences; None if there is none."""
    path = resample(points, STEP)
    if len(path) < 8:
        return None
    for scale, wider in BENDS:
        offset = path[1:-1, None] - ground.centres  # [Q, L, 2]
        away, rims = lengths(offset), ground.footprints + ROOM + wider
        rows, which = (away < rims).nonzero()
        if rows.size:
            path[1 + rows] = ground.centres[which] + offset[rows, which] * (rims[which] / away[rows, which])[:, None]
            path = resample(path, STEP)  # what is pushed out is stretched
        path = _smoothed(path, scale)
    if np.abs(path).max() > ARENA_HALF - EDGE:
        return None
    clear = ground.gaps(path).min() >= SAFE and ground.gaps(_smoothed(path, CUT)).min() >= CUT_SAFE
    return path if clear else None


def _smoothed(path: Floats, scale: float) -> Floats:
    """Points [P, 2], `STEP` apart, with the same ends."""
    count = min(round(4 * scale / STEP), len(path) - 1)
    begin, end = 2 * path[0] - path[count:0:-1], 2 * path[-1] - path[-2 : -count - 2 : -1]
    padded = np.concatenate([begin, path, end])
    return np.asarray(gaussian_filter1d(padded, scale / STEP, axis=0)[count : count + len(path)], float)


def _decisions(path: Floats, yaw: float) -> float:
    """About how many decisions ORACLE needs."""
    even = resample(path, 4 * STEP)
    steps = np.diff(even, axis=0)
    headings = np.concatenate([[yaw], np.arctan2(steps[:, 1], steps[:, 0])])
    turned = np.abs(wrapped(np.diff(headings))).sum()
    return path_length(path) * PER_METRE + float(turned) * PER_RADIAN + BESIDES


def _meaning(tour: Tour, path: Floats, cut: Track) -> tuple[Clause, ...] | None:
    """What the tour means, with turns and what it avoids, if its path does all that."""
    track = Track(path, tour.start.yaw, tour.ground.layout)
    said: list[tuple[Clause, bool]] = []  # and whether it may be left out
    if tour.rng.random() < TURN_SAID and tour.moves[0].clauses[0].kind not in ("move", "forward"):
        said += [(clause, True) for clause in _turn(float(wrapped(track.depart[0] - tour.start.yaw)), tour)]
    for number, move in enumerate(tour.moves):
        if number and len(move.points) and tour.rng.random() < 0.5 * TURN_SAID:
            said += [(clause, True) for clause in _corner(tour, number)]
        said += [(clause, False) for clause in move.clauses]
    if tour.rng.random() < AVOIDED:
        spoken = {reference for clause, _ in said for reference in clause.references}
        nearest = track.gaps.min(axis=1).tolist()
        spared = [place for place, gap in enumerate(nearest) if place not in spoken and SPARED[0] < gap < SPARED[1]]
        if spared:
            said.insert(min(1, len(said) - 1), (Clause("avoid", pick(spared, tour.rng)), False))
    while True:
        clauses = [clause for clause, _ in said]
        scores = next((found for way in (track, cut) if min(found := _judged(clauses, way)) < SURE), None)
        if scores is None:
            return tuple(clauses)
        kept = [entry for entry, value in zip(said, scores, strict=True) if not (entry[1] and value < SURE)]
        if len(kept) == len(said):
            return None
        said = kept


def _turn(angle: float, tour: Tour) -> list[Clause]:
    """A turn to begin with, where it is worth mentioning."""
    side: Side = "left" if angle > 0 else "right"
    first = tour.moves[0].clauses[0]
    chance = tour.rng.random()
    if abs(angle) < TURN_LEAST:
        return []
    if first.reference is not None and abs(angle) > 2 * TURN_LEAST and chance < 0.2 and first.kind in ("reach", "pass"):
        return [Clause("turn_to", first.reference)]
    if abs(angle) > 3 * math.pi / 4 and chance < 0.6:
        return [Clause("turn_around")]
    plain = SLIGHT if abs(angle) < 1.0 else QUARTER if abs(angle) < 2.2 else None
    if plain is None or chance < 0.5:
        return [
            Clause("turn", side=side, amount=round(min((abs(known - abs(angle)), known) for known in ANGLES)[1], 4))
        ]
    return [Clause("turn", side=side, amount=plain)]


def _corner(tour: Tour, number: int) -> list[Clause]:
    """A turn between two moves, where it is sharp."""
    before = np.vstack([[tour.start[:2]], *(move.points for move in tour.moves[:number])])
    after = tour.moves[number].points
    if len(before) < 2 or not len(after):
        return []
    (x, y), (u, v) = before[-1] - before[-2], after[0] - before[-1]
    angle = math.remainder(math.atan2(v, u) - math.atan2(y, x), 2 * math.pi)
    sharp = math.pi / 3 < abs(angle) < 2 * math.pi / 3
    return [Clause("turn", side="left" if angle > 0 else "right", amount=QUARTER)] if sharp else []


def _judged(meaning: Sequence[Clause], track: Track) -> tuple[float, ...]:
    """The judge's score of each clause."""
    last = len(meaning) - 1
    parts = [
        score(clause, track, k == 0, FIRST if k == 0 < last else ALL, LAST if k == last else ALL)
        for k, clause in enumerate(meaning)
    ]
    return judge_track(parts).clauses
