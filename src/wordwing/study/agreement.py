"""How much raters agree: Krippendorff's alpha for ordered scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wordwing.study.questions import SCALE, Key
from wordwing.study.statistics import Judgement


def ordinal_alpha(judgements: Sequence[Judgement], key: Key) -> float | None:
    """Krippendorff's alpha of the raters' scores on one question, each flight a unit.

    1 is perfect agreement and 0 what chance would give. None where it is not defined: no flight has two judgements,
    or all scores are the same.
    """
    units = {unit: place for place, unit in enumerate(sorted({(own.instruction, own.system) for own in judgements}))}
    counts = np.zeros((len(units), len(SCALE)))
    for own in judgements:
        counts[units[own.instruction, own.system], getattr(own, key) - 1] += 1
    paired = counts[counts.sum(axis=1) > 1]
    if len(paired) == 0 or np.count_nonzero(paired.sum(axis=0)) < 2:
        return None
    return _alpha(paired)


def _alpha(counts: NDArray[np.float64]) -> float:
    """1 − observed / expected disagreement (Krippendorff, "Computing Krippendorff's Alpha-Reliability", 2011).

    Args:
        counts: [units, scores] how often each score was given to each unit; twice or more to every unit.
    """
    total = counts.sum(axis=0)  # [scores]
    # The ordinal difference of two scores: how many were given from the one to the other, of their own only half.
    before = np.cumsum(total) - total / 2
    difference = (before[:, None] - before) ** 2  # [scores, scores]
    observed = np.einsum("uc,uk,ck,u->", counts, counts, difference, 1 / (counts.sum(axis=1) - 1))
    expected = total @ difference @ total / (total.sum() - 1)
    return float(1 - observed / expected)
