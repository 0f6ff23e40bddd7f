"""How sure a share is."""

from __future__ import annotations

from scipy.stats import binomtest


def wilson(hits: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share; (0, 1) of nothing."""
    if not total:
        return 0.0, 1.0
    bounds = binomtest(hits, total).proportion_ci(method="wilson")
    return float(bounds.low), float(bounds.high)
