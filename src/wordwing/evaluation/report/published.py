"""The paper's own numbers, to stand beside ours (paper: Results; appendix Additional Results).

They are keyed by what they stand beside here: `cage` for the paper's REAL instructions and `field` for its full LANI
set, `lab` for its physical drone and `sim` for its simulator.
"""

from __future__ import annotations

from typing import NamedTuple

from wordwing.data.subsets import SMALL
from wordwing.interface import Domain


class Published(NamedTuple):
    """Of one system on instructions of one length."""

    success: float
    """SR, %."""
    emd: float
    """Metres."""
    n: int | None
    """Flights, as far as the percentages tell; the paper names 93 and 73 test instructions on its drone."""


class Key(NamedTuple):
    """What a published figure is of."""

    corpus: str
    domain: Domain
    split: str
    system: str
    """As the paper calls it; with -50real and -10real for its indices."""
    segments: int


_Row = tuple[str, float, float, float, float]
"""System; SR and EMD of one segment, of two."""

_TABLES: dict[tuple[str, Domain, str], tuple[tuple[int | None, int | None], list[_Row]]] = {
    ("cage", "lab", "test"): (
        (92, 72),
        [
            ("AVERAGE", 37.0, 0.42, 16.7, 0.71),
            ("PVN-BC", 48.9, 0.42, 20.8, 0.61),
            ("PVN2-BC", 52.2, 0.37, 29.2, 0.59),
            ("PVN2-SuReAL", 56.5, 0.34, 30.6, 0.52),
            ("ORACLE", 100.0, 0.17, 91.7, 0.23),
        ],
    ),
    ("cage", "sim", "test"): (
        (92, 72),
        [
            ("AVERAGE", 29.5, 0.53, 8.7, 0.80),
            ("PVN-BC", 64.1, 0.31, 37.5, 0.59),
            ("PVN2-BC", 55.4, 0.34, 34.7, 0.58),
            ("PVN2-SuReAL", 53.3, 0.30, 33.3, 0.42),
            ("ORACLE", 100.0, 0.13, 98.6, 0.17),
        ],
    ),
    ("cage", "lab", "dev"): (
        (104, 84),
        [
            ("PVN2-SuReAL", 54.8, 0.32, 31.0, 0.50),
            ("PVN2-SuReAL-noU", 53.8, 0.30, 14.3, 0.56),
            ("PVN2-SuReAL-50real", 60.6, 0.29, 34.5, 0.44),
            ("PVN2-SuReAL-10real", 46.2, 0.33, 17.9, 0.56),
        ],
    ),
    ("cage", "sim", "dev"): (
        (104, 84),
        [
            ("PVN2-SuReAL", 48.1, 0.29, 39.3, 0.40),
            ("PVN2-SuReAL-noU", 53.8, 0.28, 27.4, 0.50),
            ("PVN2-SuReAL-noI", 56.2, 0.28, 25.9, 0.45),
        ],
    ),
    ("field", "sim", "test"): (
        (None, None),
        [
            ("STOP", 7.7, 0.76, 0.7, 1.29),
            ("AVERAGE", 13.0, 0.62, 5.8, 0.94),
            ("PVN-BC", 37.8, 0.47, 19.6, 0.76),
            ("PVN2-BC", 39.0, 0.43, 21.0, 0.72),
            ("PVN2-SuReAL", 37.2, 0.43, 21.5, 0.67),
            ("ORACLE", 98.6, 0.15, 93.9, 0.20),
        ],
    ),
    ("field", "sim", "dev"): (
        (None, None),
        [
            ("PVN2-SuReAL", 35.8, 0.44, 19.8, 0.68),
            ("PVN2-SuReAL-noExp", 38.5, 0.43, 15.8, 0.79),
            ("PVN2-SuReAL-noU", 26.1, 0.48, 7.0, 0.90),
        ],
    ),
}
"""By corpus, domain and split: flights of one and of two segments, and the rows in the paper's order."""

# 29.5 and 8.7 % are no share of 92 and 72 flights, but 26 of 88 and 6 of 69; 56.2 and 25.9 % are none of 104 and 84.
_OTHER_NUMBERS: dict[tuple[str, Domain, str, str], tuple[int | None, int | None]] = {
    ("cage", "sim", "test", "AVERAGE"): (88, 69),
    ("cage", "sim", "dev", "PVN2-SuReAL-noI"): (None, None),
}


def _published() -> dict[Key, Published]:
    found = {}
    for (corpus, domain, split), (numbers, rows) in _TABLES.items():
        for system, *figures in rows:
            own = _OTHER_NUMBERS.get((corpus, domain, split, system), numbers)
            for segments, success, emd, n in zip((1, 2), figures[::2], figures[1::2], own, strict=True):
                found[Key(corpus, domain, split, system, segments)] = Published(success, emd, n)
    return found


PUBLISHED = _published()
"""All automated results of the paper."""

STANDS_FOR = {"cage": "REAL", "field": "LANI"}
"""What the paper calls the instructions that a corpus stands beside."""


class FivePoints(NamedTuple):
    """Share of people's judgements with the best of five scores, %: physical drone, two segments."""

    goal: float
    path: float


HUMAN_FIVE_POINTS = {"AVERAGE": FivePoints(15.8, 15.8), "PVN2-SuReAL": FivePoints(39.72, 37.8)}
"""The other systems' are only in the paper's chart."""


def published(key: Key) -> Published | None:
    """What the paper has to stand beside a figure; its own test and dev were small, so also beside test-20, dev-20."""
    return PUBLISHED.get(key._replace(split=key.split.removesuffix(SMALL)))


def gap_closed(key: Key) -> tuple[float, float] | None:
    """Shares of the way from AVERAGE to ORACLE that a published system went, in SR and in EMD, from rounded numbers.

    None where the paper does not give all three.
    """
    three = [published(key._replace(system=name)) for name in (key.system, "AVERAGE", "ORACLE")]
    x, average, oracle = three
    if x is None or average is None or oracle is None:
        return None
    success = (x.success - average.success) / (oracle.success - average.success)
    return success, (x.emd - average.emd) / (oracle.emd - average.emd)
