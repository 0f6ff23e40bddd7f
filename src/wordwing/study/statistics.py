"""What judgements say: the paper's exclusion rule, frequencies and means, and tests between systems.

Tests are Wilcoxon's signed-rank tests on the instructions' mean scores, with Holm's correction over all tests of one
group of instructions.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from wordwing.study.questions import KEYS, SCALE, Key

Visibility = Literal["all", "ahead", "not ahead"]
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)
"""Which instructions: all, or by whether the goal is ahead at the start, within 42° of the heading (the paper's
"visible")."""

TESTED: tuple[Key, ...] = ("path", "goal")
"""The paper found that workers cannot judge efficiency, so it is described but not tested."""

EXACT = 50
"""Up to so many differing instructions a test is exact."""


@dataclass(frozen=True)
class Judgement:
    """What one rater said about one flight."""

    rater: int
    instruction: str
    """Its id."""
    system: str
    path: int
    goal: int
    efficiency: int
    """Scores from 1 to 5."""
    unclear: bool
    goal_ahead: bool
    """Of the instruction: its goal is within 42° of the heading at the start."""
    seconds: float = 0.0


def unclear_instructions(judgements: Iterable[Judgement]) -> list[str]:
    """Instructions that the majority of raters, over all systems' flights together, call unclear.

    Half of them is no majority.
    """
    votes: dict[str, list[bool]] = defaultdict(list)
    for judgement in judgements:
        votes[judgement.instruction].append(judgement.unclear)
    return sorted(name for name, own in votes.items() if 2 * sum(own) > len(own))


def without(judgements: Iterable[Judgement], excluded: Iterable[str]) -> list[Judgement]:
    """Judgements of all other instructions."""
    out = set(excluded)
    return [judgement for judgement in judgements if judgement.instruction not in out]


def seen(judgements: Iterable[Judgement], visibility: Visibility) -> list[Judgement]:
    """Judgements of the instructions of one group."""
    return [
        judgement for judgement in judgements if visibility == "all" or judgement.goal_ahead == (visibility == "ahead")
    ]


@dataclass(frozen=True)
class Scores:
    """How one system was scored on one question."""

    system: str
    key: Key
    counts: tuple[int, ...]
    """Of the scores 1 to 5."""

    @property
    def n(self) -> int:
        """Judgements."""
        return sum(self.counts)

    @property
    def shares(self) -> NDArray[np.float64]:
        """[5] from 0 to 1; nothing where there are no judgements."""
        return np.array(self.counts) / max(self.n, 1)

    @property
    def mean(self) -> float | None:
        """None where there are no judgements."""
        return sum(score * count for score, count in zip(SCALE, self.counts, strict=True)) / self.n if self.n else None


def frequencies(judgements: Sequence[Judgement], systems: Sequence[str]) -> list[Scores]:
    """How often each system got each score on each question."""
    found = []
    for system in systems:
        own = [judgement for judgement in judgements if judgement.system == system]
        for key in KEYS:
            given = [getattr(judgement, key) for judgement in own]
            found.append(Scores(system, key, tuple(given.count(score) for score in SCALE)))
    return found


@dataclass(frozen=True)
class Comparison:
    """Two systems on one question, instruction by instruction."""

    key: Key
    system: str
    other: str
    instructions: int
    """That both were judged on."""
    differing: int
    """Those where the means are not the same; the test uses no others."""
    difference: float | None
    """Mean of the instructions' differences, `system` less `other`."""
    statistic: float | None
    """Wilcoxon's W: the lesser of the sums of ranks of positive and of negative differences."""
    p: float | None
    """Two-sided; 1 where all are the same, None where there is nothing to compare."""
    corrected: float | None = None
    """By Holm's method."""


def instruction_means(judgements: Iterable[Judgement], key: Key) -> dict[tuple[str, str], float]:
    """Mean score of each system on each instruction; the key is (system, instruction)."""
    given: dict[tuple[str, str], list[int]] = defaultdict(list)
    for judgement in judgements:
        given[judgement.system, judgement.instruction].append(getattr(judgement, key))
    return {place: sum(scores) / len(scores) for place, scores in given.items()}


def compare(judgements: Sequence[Judgement], systems: Sequence[str]) -> list[Comparison]:
    """Test all pairs of systems on path and goal; the family of Holm's correction is all of these tests."""
    found = []
    for key in TESTED:
        means = instruction_means(judgements, key)
        for system, other in combinations(systems, 2):
            both = sorted(name for who, name in means if who == system and (other, name) in means)
            found.append(_compare(key, system, other, [(means[system, name], means[other, name]) for name in both]))
    corrected = holm([entry.p for entry in found])
    return [replace(entry, corrected=value) for entry, value in zip(found, corrected, strict=True)]


def _compare(key: Key, system: str, other: str, pairs: Sequence[tuple[float, float]]) -> Comparison:
    if not pairs:
        return Comparison(key, system, other, 0, 0, None, None, None)
    # Means of few small numbers: a difference in the last bits is none, and equal ones must tie.
    differences = np.round([mine - theirs for mine, theirs in pairs], 9)
    differing, mean = int(np.count_nonzero(differences)), float(differences.mean())
    if not differing:
        return Comparison(key, system, other, len(pairs), 0, 0.0, 0.0, 1.0)
    statistic, p = signed_rank(differences[differences != 0])
    return Comparison(key, system, other, len(pairs), differing, mean, statistic, p)


def signed_rank(differences: NDArray[np.float64]) -> tuple[float, float]:
    """Wilcoxon's W and its two-sided p-value for differences [n], none of them zero.

    Means of few scores tie all the time, which the exact distribution in scipy does not allow for; here it is that of
    the tied ranks themselves. For many differences scipy's normal approximation serves.
    """
    from scipy.stats import rankdata, wilcoxon

    if len(differences) > EXACT:
        result = wilcoxon(differences, method="approx")
        return float(result.statistic), float(result.pvalue)
    doubled = np.rint(2 * rankdata(np.abs(differences))).astype(int)  # whole also where they tie
    least = min(int(doubled[differences > 0].sum()), int(doubled[differences < 0].sum()))
    chances = np.zeros(doubled.sum() + 1)  # of each sum of the ranks of positive differences, if signs were tossed
    chances[0] = 1.0
    for rank in doubled:
        moved = np.concatenate([np.zeros(rank), chances[:-rank]])
        chances = (chances + moved) / 2
    return least / 2, min(1.0, 2 * float(chances[: least + 1].sum()))


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction of p-values; None is no test."""
    known = sorted((value, place) for place, value in enumerate(p) if value is not None and not math.isnan(value))
    corrected: list[float | None] = [None] * len(p)
    highest = 0.0
    for rank, (value, place) in enumerate(known):
        highest = max(highest, min(1.0, (len(known) - rank) * value))
        corrected[place] = highest
    return corrected
