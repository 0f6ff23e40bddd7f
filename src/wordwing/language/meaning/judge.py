"""The judge: did a flown path do what the sentence says.

This is the automatic semantic evaluation that the paper's discussion asks for. The path is cut into consecutive
sections, one for each clause in order, so that the clauses' scores add up to the most; a section may be empty for
clauses that do not move. Only the meaning counts, not how near the path is to the demonstration. How well a section
does what a clause says is in `scores`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from wordwing.language.meaning.clauses import Meaning
from wordwing.language.meaning.flown_path import ALL, FIRST, LAST, Track, backwards
from wordwing.language.meaning.scores import score
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats

DONE_SCORE = 0.5
"""Score from which a clause counts as done."""


@dataclass(frozen=True)
class Judgement:
    """How well a path follows a meaning, each in [0, 1]."""

    clauses: tuple[float, ...]
    """For each clause how well its section does what it says."""
    goal: float
    """How well the path ends as the last clause says, whatever came before."""

    @property
    def done(self) -> tuple[bool, ...]:
        """For each clause whether its section does what it says."""
        # Rounded, so that a score on the edge counts alike on every machine.
        return tuple(round(value, 6) >= DONE_SCORE for value in self.clauses)

    @property
    def followed(self) -> bool:
        """Whether all that was said was done, in order; the last section ends where the path does."""
        return all(self.done)

    @property
    def path(self) -> float:
        """The clauses' mean: half of them done is half."""
        return sum(self.clauses) / len(self.clauses)

    @property
    def score(self) -> float:
        """The clauses' geometric mean: an instruction of which one clause was not done at all was not followed."""
        return math.prod(self.clauses) ** (1 / len(self.clauses))


def judge(
    meaning: Meaning, path: ArrayLike, start_yaw: float, layout: Layout, yaws: ArrayLike | None = None
) -> Judgement:
    """Judge a flown path.

    Args:
        meaning: What was to be done, in order; at least one clause.
        path: [P, 2] as flown, metres, world frame; at least one point, all finite.
        start_yaw: Heading at its beginning, radians, world frame.
        layout: Where it was flown.
        yaws: [P] headings, radians, world frame, of a path that has a position for every control period. Without them
            the drone is taken to look where it flies, and nobody knows how long it hovered.
    """
    points = np.asarray(path, float)
    if not meaning or points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise ValueError("judging needs at least one clause and a path [P, 2] of at least one point")
    if not (np.isfinite(points).all() and math.isfinite(start_yaw)):
        raise ValueError("judging needs finite positions and a finite heading")
    if yaws is not None and (np.shape(yaws) != (len(points),) or not np.isfinite(yaws).all()):
        raise ValueError("judging needs a finite heading for each position")
    track, last = Track(points, start_yaw, layout, yaws), len(meaning) - 1
    return judge_track(
        [
            score(clause, track, k == 0, FIRST if k == 0 < last else ALL, LAST if k == last else ALL)
            for k, clause in enumerate(meaning)
        ]
    )


def judge_best(
    meanings: Sequence[Meaning], path: ArrayLike, start_yaw: float, layout: Layout, yaws: ArrayLike | None = None
) -> tuple[Meaning, Judgement]:
    """Judge a flown path by the meaning that it follows best, where a sentence leaves something open; as `judge`."""
    judged = ((meaning, judge(meaning, path, start_yaw, layout, yaws)) for meaning in meanings)
    return max(judged, key=lambda found: (found[1].followed, found[1].path))


def judge_track(scores: Sequence[Floats]) -> Judgement:
    """Judge a track by the scores that its sections have for each clause, as `sections` takes them."""
    values = tuple(
        # Columns are counted from the end: the last clause may have the last one only.
        float(entry[begin, end - len(scores[-1])])
        for entry, (begin, end) in zip(scores, sections(scores), strict=True)
    )
    return Judgement(values, goal=float(scores[-1][:, -1].max()))


def sections(scores: Sequence[Floats]) -> list[tuple[int, int]]:
    """Cut a track into consecutive sections, one for each clause, whose scores add up to the most.

    Args:
        scores: For each clause [K, K], the scores of all sections. Of the first, if others follow, the first row
            [1, K] will do, and of the last the last column [K, 1].

    Returns:
        First and last point of each section; the first begins and the last ends where the track does.
    """
    size = len(scores[-1])
    best = scores[0][0]  # [K] of cuts that end at each point
    cuts = []
    for entry in scores[1:]:
        total = best[:, None] + np.where(backwards(size)[:, -entry.shape[1] :], -np.inf, entry)  # [K, K] or [K, 1]
        cuts.append(total.argmax(axis=0))
        best = total.max(axis=0)
    ends = [size - 1]
    for cut in reversed(cuts):
        ends.insert(0, int(cut[ends[0] - size]))
    return list(zip([0, *ends[:-1]], ends, strict=True))
