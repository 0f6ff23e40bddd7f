"""Means over flights with 95 % intervals, by resampling layouts (a cluster bootstrap).

Instructions in one layout have much in common, and those of two segments contain those of one, so whole layouts are
drawn, with replacement, not flights. All systems meet the same draws.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wordwing.execution.metrics import wilson

Values = Sequence[float | None] | NDArray[np.floating]
"""One for each instruction; None or NaN where there is none."""

RESAMPLES = 2000
LEVEL = 0.95

LEAST_GAP = 0.01
"""Between AVERAGE and ORACLE, as a share or in metres, for there to be something to close."""

UNIT = 1e-6
"""Values are taken to the nearest multiple, as `Metrics` are rounded. Their sums are then those of whole numbers
and exact, so that neither the order of flights nor the machine changes a bit of a result."""


class Estimate(NamedTuple):
    """A mean over flights and its 95 % interval."""

    mean: float | None
    """None without flights."""
    low: float | None
    """None where nothing can be said: lengths in a single layout, or a gap that may be no gap."""
    high: float | None
    n: int
    """How many flights, or pairs of flights, it is the mean of."""


NOTHING = Estimate(None, None, None, 0)


class Resampling:
    """Draws of layouts for a list of N instructions, in whatever order they are."""

    def __init__(self, layouts: Sequence[str] | NDArray[np.str_], seed: int = 0) -> None:
        """Take the layout [N] that each instruction is flown in."""
        self.codes = np.unique(np.asarray(layouts, dtype=str), return_inverse=True)[1]
        self.seed = seed

    def interval(self, values: Values, share: bool = False) -> Estimate:
        """The mean of the values [N] that are there, and its percentile interval.

        Args:
            values: [N].
            share: They are 0 or 1. Where all are equal or there is one layout only, a bootstrap would claim
                certainty, and the interval is Wilson's.
        """
        [data], codes = self._known(values)
        if not len(data):
            return NOTHING
        if share and (codes.max() == 0 or data.min() == data.max()):
            return Estimate(_mean(data), *wilson(int(data.sum()), len(data)), len(data))
        return _estimate(_mean(data), self._resample(codes, data)[:, 0], codes)

    def difference(self, a: Values, b: Values, share: bool = False) -> Estimate:
        """The mean of a − b over the instructions for which both are there.

        Args:
            a: [N] of one system.
            b: [N] of another.
            share: They are 0 or 1. Where all pairs differ alike, the interval allows for as large a share of
                exceptions as Wilson's for none of n.
        """
        [first, second], codes = self._known(a, b)
        data = first - second
        if not len(data):
            return NOTHING
        mean = _mean(data)
        if share and data.min() == data.max():
            exceptions = wilson(0, len(data))[1]
            low, high = (mean if mean < 0 else mean - exceptions), (mean if mean > 0 else mean + exceptions)
            return Estimate(mean, low, high, len(data))
        return _estimate(mean, self._resample(codes, data)[:, 0], codes)

    def gap_closed(self, values: Values, average: Values, oracle: Values, lower_is_better: bool = False) -> Estimate:
        """(values − average) / (oracle − average), of means over the instructions for which all three are there.

        The three are resampled together. There is no share of a gap where ORACLE is hardly better than AVERAGE, and no
        interval where it is not in every resample.
        """
        data, codes = self._known(values, average, oracle)
        sign = -1 if lower_is_better else 1
        if not len(codes) or sign * (_mean(data[2]) - _mean(data[1])) < LEAST_GAP:
            return Estimate(None, None, None, len(codes))
        x, bottom, top = (_mean(row) for row in data)
        closed = (x - bottom) / (top - bottom)
        drawn, bottoms, tops = self._resample(codes, *data).T
        if (sign * (tops - bottoms) <= 0).any():
            return Estimate(closed, None, None, len(codes))
        return _estimate(closed, (drawn - bottoms) / (tops - bottoms), codes)

    def _known(self, *columns: Values) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Columns [C, n] where all of them have a value, and their layouts' numbers [n] from 0 on, without gaps."""
        data = np.array([np.array(column, dtype=float) for column in columns])  # None becomes NaN
        kept = ~np.isnan(data).any(axis=0)
        return data[:, kept], np.unique(self.codes[kept], return_inverse=True)[1]

    def _resample(self, codes: NDArray[np.int64], *columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Means [resamples, C] of C columns [n] over the flights of drawn layouts."""
        sums = [np.bincount(codes, np.rint(column / UNIT)) for column in columns]
        totals = _weights(codes.max() + 1, self.seed) @ np.stack([*sums, np.bincount(codes)], axis=1)
        return totals[:, :-1] / totals[:, -1:] * UNIT


@lru_cache(maxsize=4)
def _weights(layouts: int, seed: int) -> NDArray[np.float64]:
    """How often each layout is drawn, [resamples, layouts], for any layouts of that number."""
    drawn = np.random.default_rng([seed, layouts]).integers(layouts, size=(RESAMPLES, layouts))
    cells = drawn + layouts * np.arange(RESAMPLES)[:, None]
    return np.bincount(cells.ravel(), minlength=RESAMPLES * layouts).reshape(drawn.shape).astype(float)


def _mean(data: NDArray[np.float64]) -> float:
    return float(np.rint(data / UNIT).sum() / len(data) * UNIT)


def _estimate(mean: float, resampled: NDArray[np.float64], codes: NDArray[np.int64]) -> Estimate:
    """A mean with percentiles of the resamples; those of a single layout would say nothing."""
    if codes.max() == 0:
        return Estimate(mean, None, None, len(codes))
    low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(mean, float(low), float(high), len(codes))
