"""The paper's own results, to stand beside ours (paper: Results; appendix Additional Results).

`paper.csv` has them by what they stand beside here: `cage` for the paper's REAL instructions and `field` for its full
LANI set, `lab` for its physical drone and `sim` for its simulator. Systems are called as the paper calls them, with
-50real and -10real for its indices. `n` is the number of flights as far as the percentages tell: the paper names 93 and
73 test instructions on its drone; 29.5 and 8.7 % are no shares of 92 and 72 flights, but 26 of 88 and 6 of 69; 56.2 and
25.9 % are none of 104 and 84.
"""

import math
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pandas as pd

from wordwing.data.subsets import SMALL
from wordwing.evaluation.report.labels import Origin, learned, title


class PaperResult(NamedTuple):
    """The paper's result of one system on instructions of one length."""

    success: float
    """SR, %."""
    emd: float
    """Metres."""
    n: int | None
    """Flights; None where the percentages do not tell."""


PAPER_RESULTS: dict[tuple[Any, ...], PaperResult] = {
    tuple(key): PaperResult(success, emd, None if math.isnan(n) else int(n))
    for *key, success, emd, n in pd.read_csv(Path(__file__).with_name("paper.csv")).itertuples(index=False)
}
"""All automated results of the paper, by corpus, domain, split, system and number of segments."""

STANDS_FOR = {"cage": "REAL", "field": "LANI"}
"""What the paper calls the instructions that a corpus stands beside."""


HUMAN_BEST_SCORES = {"AVERAGE": {"path": 15.8, "goal": 15.8}, "PVN2-SuReAL": {"path": 37.8, "goal": 39.72}}
"""Share of people's judgements with the best of five scores, %: physical drone, two segments. The other systems' are
only in the paper's chart."""


def paper_result(origin: Origin, system: str, segments: int | Literal["both"]) -> PaperResult | None:
    """The paper's result to stand beside ours, also for test-20 and dev-20: its own test and dev sets were small."""
    if segments == "both":
        return None
    split = origin.split.removesuffix(SMALL)
    return PAPER_RESULTS.get((origin.corpus, origin.domain, split, title(system), segments))


def paper_gap(origin: Origin, system: str, segments: int | Literal["both"]) -> tuple[float, float] | None:
    """Shares of the way from AVERAGE to ORACLE that a system of the paper went, in SR and in EMD, from rounded numbers.

    None for a baseline, and where the paper does not give all three.
    """
    own, average, oracle = (paper_result(origin, name, segments) for name in (system, "average", "oracle"))
    if not learned(system) or own is None or average is None or oracle is None:
        return None
    success = (own.success - average.success) / (oracle.success - average.success)
    return success, (own.emd - average.emd) / (oracle.emd - average.emd)
