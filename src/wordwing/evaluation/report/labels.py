"""What systems and sets of flights are called in tables and charts, and the order in which they stand there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from wordwing.interface import Domain

SUMMARY = "summary.json"
"""Its name in an evaluation's folder."""

TITLES = {
    "stop": "STOP",
    "average": "AVERAGE",
    "pvn-bc": "PVN-BC",
    "pvn2-bc": "PVN2-BC",
    "pvn2-sureal": "PVN2-SuReAL",
    "pvn2-sureal-no-exploration": "PVN2-SuReAL-noExp",
    "pvn2-sureal-no-instruction": "PVN2-SuReAL-noU",
    "pvn2-sureal-no-image": "PVN2-SuReAL-noI",
    "pvn2-sureal-half-lab": "PVN2-SuReAL-50real",
    "pvn2-sureal-tenth-lab": "PVN2-SuReAL-10real",
    "pvn2-sureal-sim-only": "PVN2-SuReAL-simOnly",
    "pvn2-sureal-no-discriminator": "PVN2-SuReAL-noDisc",
    "pvn2-sureal-from-standing": "PVN2-SuReAL-noDemo",
    "oracle": "ORACLE",
}
"""Systems as the paper calls them, in the order of its tables, and three that it does not have. Systems with other
names stand before ORACLE."""

NOT_LEARNED = ("stop", "average", "oracle")


class Origin(NamedTuple):
    """Where instructions are from and in which domain they were flown; flights of two origins are never averaged."""

    corpus: str
    text: str
    """Who wrote them: a kind of `language.authors`."""
    split: str
    domain: Domain

    @classmethod
    def of(cls, described: Any) -> Origin:
        """That of a flight's provenance or of a study's settings."""
        return cls(*(getattr(described, field) for field in cls._fields))

    @property
    def title(self) -> str:
        """The origin in words: "cage test, sim, generated instructions"."""
        domain = "sim" if self.domain == "sim" else "lab stand-in"
        return f"{self.corpus} {self.split}, {domain}, {self.text} instructions"


def title(system: str) -> str:
    """A system's name in tables."""
    return TITLES.get(system, system)


def segments_title(count: int) -> str:
    """A number of segments in words."""
    return "1 segment" if count == 1 else f"{count} segments"


def learned(system: str) -> bool:
    """Whether a system is a learned policy, not one of the paper's three baselines."""
    return system not in NOT_LEARNED


def ablated(system: str) -> str | None:
    """The system of which this one is an ablation, if it is one."""
    return "pvn2-sureal" if system in TITLES and system.startswith("pvn2-sureal-") else None


def ordered(systems: Iterable[str]) -> list[str]:
    """Systems in the order of tables, each once."""
    *known, oracle = TITLES
    return sorted(set(systems), key=lambda system: (system == oracle, _position(system, known)))


def ordered_origins(origins: Iterable[Origin]) -> list[Origin]:
    """Origins in the order of the paper's tables, each once: test, then dev; the drone, then the simulator."""
    corpora, splits = ("cage", "field", "house"), ("test", "test-20", "dev", "dev-20")
    return sorted(
        set(origins),
        key=lambda origin: (
            _position(origin.corpus, corpora),
            origin.text,
            _position(origin.split, splits),
            origin.domain,
        ),
    )


def slug(*parts: str) -> str:
    """A name for files and links: "field-generated"."""
    return re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")


def _position(name: str, known: Sequence[str]) -> tuple[int, str]:
    return (known.index(name) if name in known else len(known)), name
