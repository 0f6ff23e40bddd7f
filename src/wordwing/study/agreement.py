"""How much raters agree: Krippendorff's alpha for ordered scores."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wordwing.errors import WordwingError
from wordwing.study.questions import SCALE, Key
from wordwing.study.statistics import Judgement


def ordinal_alpha(judgements: Sequence[Judgement], key: Key) -> float | None:
    """Krippendorff's alpha of the raters' scores on one question, each flight a unit.

    1 is perfect agreement and 0 what chance would give. None where it is not defined: no flight has two judgements,
    or all scores are the same.
    """
    try:
        import krippendorff
    except ImportError:
        raise WordwingError(
            "the package krippendorff, which computes agreement, is not installed; pip install 'wordwing[studio]'"
        ) from None
    units = {unit: place for place, unit in enumerate(sorted({(own.instruction, own.system) for own in judgements}))}
    counts = np.zeros((len(units), len(SCALE)), int)
    for own in judgements:
        counts[units[own.instruction, own.system], getattr(own, key) - 1] += 1
    paired = counts[counts.sum(axis=1) > 1]
    if len(paired) == 0 or np.count_nonzero(paired.sum(axis=0)) < 2:
        return None
    return float(krippendorff.alpha(value_counts=paired, value_domain=list(SCALE), level_of_measurement="ordinal"))
