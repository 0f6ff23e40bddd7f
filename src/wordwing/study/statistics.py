"""What ratings say: the paper's exclusion rule, frequencies and means, tests between systems, agreement of raters.

Ratings are a table with the columns of `questions.Rating`. Tests are Wilcoxon's signed-rank tests on the
instructions' mean scores, with Holm's correction over all tests of one group of instructions.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import rankdata, wilcoxon

from wordwing.study.questions import KEYS, SCALE, Key

Visibility = Literal["all", "ahead", "not ahead"]
VISIBILITIES: tuple[Visibility, ...] = get_args(Visibility)
"""Which instructions: all, or by whether the goal is ahead at the start, within 42° of the heading (the paper's
"visible")."""

TESTED: tuple[Key, ...] = ("path", "goal")
"""The paper found that workers cannot judge efficiency, so it is described but not tested."""

EXACT = 50
"""Up to so many differing instructions a test is exact."""


def unclear_instructions(ratings: pd.DataFrame) -> list[str]:
    """Instructions that the majority of raters, over all systems' flights together, call unclear.

    Half of them is no majority.
    """
    votes = ratings.groupby("instruction")["unclear"].mean()
    return votes.index[votes > 0.5].tolist()


def with_visibility(ratings: pd.DataFrame, visibility: Visibility) -> pd.DataFrame:
    """Judgements of the instructions of one group."""
    return ratings if visibility == "all" else ratings[ratings["goal_ahead"] == (visibility == "ahead")]


def frequencies(ratings: pd.DataFrame, systems: Sequence[str]) -> pd.DataFrame:
    """How often each system got each score on each question: a row for each system and question, a column a score."""
    given = ratings.melt("system", list(KEYS), var_name="question", value_name="score")
    rows = pd.MultiIndex.from_product([systems, KEYS])
    return pd.crosstab([given["system"], given["question"]], given["score"]).reindex(rows, columns=SCALE, fill_value=0)


@dataclass(frozen=True)
class Comparison:
    """Two systems on one question, instruction by instruction."""

    key: Key
    system: str
    other: str
    instructions: int
    """Instructions that both were judged on."""
    differing: int
    """Instructions where the means differ; the test uses no others."""
    difference: float | None
    """Mean of the instructions' differences, `system` less `other`."""
    statistic: float | None
    """Wilcoxon's W: the lesser of the sums of ranks of positive and of negative differences."""
    p: float | None
    """Two-sided; 1 where all are the same, None where there is nothing to compare."""
    corrected: float | None = None
    """By Holm's method."""


def compare(ratings: pd.DataFrame, systems: Sequence[str]) -> list[Comparison]:
    """Test all pairs of systems on path and goal; the family of Holm's correction is all of these tests."""
    found = []
    for key in TESTED:
        means = ratings.groupby(["instruction", "system"])[key].mean().unstack().reindex(columns=systems)
        for system, other in combinations(systems, 2):
            # Means of few small numbers: a difference in the last bits is none, and equal ones must tie.
            differences = (means[system] - means[other]).dropna().round(9).to_numpy()
            differing = differences[differences != 0]
            statistic, p, mean = None, None, None
            if len(differences):
                mean = float(differences.mean())
                statistic, p = signed_rank(differing) if len(differing) else (0.0, 1.0)
            found.append(Comparison(key, system, other, len(differences), len(differing), mean, statistic, p))
    corrected = holm([entry.p for entry in found])
    return [replace(entry, corrected=value) for entry, value in zip(found, corrected, strict=True)]


def signed_rank(differences: NDArray[np.float64]) -> tuple[float, float]:
    """Wilcoxon's W and its two-sided p-value for differences [n], none of them zero.

    Means of few scores tie all the time, which the exact distribution in scipy does not allow for; here it is that of
    the tied ranks themselves. For many differences scipy's normal approximation serves.
    """
    if len(differences) > EXACT:
        result = wilcoxon(differences, method="approx")
        return float(result.statistic), float(result.pvalue)
    doubled = np.rint(2 * rankdata(np.abs(differences))).astype(int)  # whole also where they tie
    least = min(int(doubled[differences > 0].sum()), int(doubled[differences < 0].sum()))
    chances = np.zeros(doubled.sum() + 1)  # of each sum of the ranks of positive differences, if signs were tossed
    chances[0] = 1.0
    for rank in doubled:
        chances = (chances + np.concatenate([np.zeros(rank), chances[:-rank]])) / 2
    return least / 2, min(1.0, 2 * float(chances[: least + 1].sum()))


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction of p-values; None is no test."""
    known = pd.Series(p, dtype=float).dropna().sort_values(kind="stable")
    corrected = (known * np.arange(len(known), 0, -1)).clip(upper=1.0).cummax()
    return [float(corrected[place]) if place in corrected else None for place in range(len(p))]


def ordinal_alpha(ratings: pd.DataFrame, key: Key) -> float | None:
    """Krippendorff's alpha of the raters' scores on one question, each flight a unit.

    It is 1 − observed / expected disagreement ("Computing Krippendorff's Alpha-Reliability", 2011): 1 is perfect
    agreement and 0 what chance would give. None where it is not defined: no flight has two ratings, or all scores
    are the same.
    """
    given = pd.crosstab([ratings["instruction"], ratings["system"]], ratings[key])
    counts = given.reindex(columns=SCALE, fill_value=0).to_numpy(float)  # [flights, scores]
    counts = counts[counts.sum(axis=1) > 1]
    total = counts.sum(axis=0)  # [scores]
    if np.count_nonzero(total) < 2:
        return None
    # The ordinal difference of two scores: how many were given from the one to the other, of their own only half.
    before = np.cumsum(total) - total / 2
    difference = (before[:, None] - before) ** 2  # [scores, scores]
    observed = np.einsum("uc,uk,ck,u->", counts, counts, difference, 1 / (counts.sum(axis=1) - 1))
    expected = total @ difference @ total / (total.sum() - 1)
    return float(1 - observed / expected)
