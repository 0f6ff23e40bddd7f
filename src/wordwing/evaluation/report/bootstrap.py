"""How sure a mean over flights is: 95 % intervals by resampling layouts.

Instructions in one layout have much in common, and those of two segments contain those of one, so whole layouts are
drawn, with replacement, not flights. All systems meet the same draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordwing.execution.metrics import wilson

Values = Sequence[float | None] | NDArray[np.floating]
"""One for each instruction; None or NaN where there is none."""

RESAMPLES = 2000
LEVEL = 0.95

LEAST_GAP = 0.01
"""Between AVERAGE and ORACLE, of a share or in metres, for there to be something to close."""

UNIT = 1e-6
"""Values are taken to the nearest multiple, as `Measures` are rounded. Their sums are then those of whole numbers
and exact, so that neither the order of flights nor the machine changes a bit of a result."""


@dataclass(frozen=True)
class Estimate:
    """A mean over flights and its 95 % interval."""

    mean: float | None
    """None of nothing."""
    low: float | None
    """None where nothing can be said: lengths in a single layout, or a gap that may be no gap."""
    high: float | None
    n: int
    """How many flights it is of, or pairs of flights."""

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary, floats to six decimals."""
        numbers = {"mean": self.mean, "low": self.low, "high": self.high}
        return {**{key: _rounded(value) for key, value in numbers.items()}, "n": self.n}


NOTHING = Estimate(None, None, None, 0)


class Resampling:
    """Draws of layouts for a list of N instructions, in whatever order they are."""

    def __init__(self, codes: NDArray[np.integer], seed: int = 0) -> None:
        """Take [N] numbers of layouts, in the order of their names."""
        self.codes = codes
        self.seed = seed

    @classmethod
    def of(cls, layouts: Sequence[str], seed: int = 0) -> Resampling:
        """Of the layout that each instruction is flown in."""
        return cls(np.unique(np.array(layouts, dtype=str), return_inverse=True)[1], seed)

    def interval(self, values: Values, share: bool = False) -> Estimate:
        """The mean of what is there, and its percentile interval.

        Args:
            values: [N].
            share: They are 0 or 1. Where all are equal or there is one layout only, a bootstrap would claim
                certainty, and the interval is Wilson's.
        """
        [data], kept = _known(values)
        if not len(data):
            return NOTHING
        mean = _mean(data)
        if share and (self._layouts(kept) == 1 or data.min() == data.max()):
            low, high = wilson(int(data.sum()), len(data))
            return Estimate(mean, low, high, len(data))
        return self._estimate(mean, self._resample(kept, data)[:, 0], kept)

    def difference(self, a: Values, b: Values, share: bool = False) -> Estimate:
        """The mean of a − b over the instructions for which both are there.

        Args:
            a: [N] of one system.
            b: [N] of another.
            share: They are 0 or 1. Where all pairs differ alike, the interval allows for as large a share of
                exceptions as Wilson's for none of n.
        """
        [first, second], kept = _known(a, b)
        data = first - second
        if not len(data):
            return NOTHING
        mean = _mean(data)
        if share and data.min() == data.max():
            exceptions = wilson(0, len(data))[1]
            low = mean if mean < 0 else mean - exceptions
            high = mean if mean > 0 else mean + exceptions
            return Estimate(mean, low, high, len(data))
        return self._estimate(mean, self._resample(kept, data)[:, 0], kept)

    def gap_closed(self, values: Values, average: Values, oracle: Values, lower_is_better: bool = False) -> Estimate:
        """(values − average) / (oracle − average), of means over the instructions for which all three are there.

        The three are resampled together. There is no share of a gap where ORACLE is hardly better than AVERAGE, and no
        interval where it is not in every resample.
        """
        data, kept = _known(values, average, oracle)
        n = data.shape[1]
        sign = -1 if lower_is_better else 1
        if not n or sign * (_mean(data[2]) - _mean(data[1])) < LEAST_GAP:
            return Estimate(None, None, None, n)
        x, bottom, top = (_mean(row) for row in data)
        closed = (x - bottom) / (top - bottom)
        drawn, bottoms, tops = self._resample(kept, *data).T
        if (sign * (tops - bottoms) <= 0).any():
            return Estimate(closed, None, None, n)
        return self._estimate(closed, (drawn - bottoms) / (tops - bottoms), kept)

    def _layouts(self, kept: NDArray[np.bool_]) -> int:
        return len(np.unique(self.codes[kept]))

    def _resample(self, kept: NDArray[np.bool_], *columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Means [resamples, C] of C columns [n] over the flights of drawn layouts."""
        names, place = np.unique(self.codes[kept], return_inverse=True)
        sums = [np.bincount(place, np.rint(column / UNIT)) for column in columns]
        totals = _weights(len(names), self.seed) @ np.stack([*sums, np.bincount(place)], axis=1)
        return totals[:, :-1] / totals[:, -1:] * UNIT

    def _estimate(self, mean: float, resampled: NDArray[np.float64], kept: NDArray[np.bool_]) -> Estimate:
        """With percentiles of what came of the resamples; of one layout they would say nothing."""
        n = int(kept.sum())
        if self._layouts(kept) == 1:
            return Estimate(mean, None, None, n)
        low, high = np.quantile(resampled, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return Estimate(mean, float(low), float(high), n)


@lru_cache(maxsize=4)
def _weights(layouts: int, seed: int) -> NDArray[np.float64]:
    """How often each layout is drawn, [resamples, layouts], for any layouts of that number."""
    drawn = np.random.default_rng([seed, layouts]).integers(layouts, size=(RESAMPLES, layouts))
    cells = drawn + layouts * np.arange(RESAMPLES)[:, None]
    return np.bincount(cells.ravel(), minlength=RESAMPLES * layouts).reshape(drawn.shape).astype(float)


def _known(*columns: Values) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Columns [C, n] where all of them have a value, and a mask [N] of where that is."""
    data = np.array([np.array(column, dtype=float) for column in columns])  # None becomes NaN
    kept = ~np.isnan(data).any(axis=0)
    return data[:, kept], kept


def _mean(data: NDArray[np.float64]) -> float:
    return float(np.rint(data / UNIT).sum() / len(data) * UNIT)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6) + 0.0  # not −0.0
