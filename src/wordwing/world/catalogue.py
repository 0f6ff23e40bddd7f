"""The landmark catalogue: 63 landmarks of LANI, 15 of them the paper's REAL set, and 26 pieces of furniture."""

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from wordwing.errors import WordwingError, did_you_mean

Corpus = Literal["field", "cage", "house"]
"""The kinds of worlds: LANI's field, the paper's REAL cage, furnished rooms."""


@dataclass(frozen=True)
class Landmark:
    """One kind of thing that can stand in the arena."""

    name: str
    """The LANI or AI2-THOR name, e.g. "WoodBarrel"."""
    set: Literal["field", "house"]
    """Which corpus it belongs to; the cage uses the part of `field` with a `cage` number."""
    radius: float
    """Radius of the circle that paths keep out of, metres."""
    footprint: float
    """Radius of the smallest circle around its centre that holds its geoms in both looks, metres."""
    height: float
    """Height of its highest point in either look, metres."""
    cage: int | None
    """Number 1-15 in the paper's REAL set and human evaluation, or None."""
    nouns: tuple[str, ...]
    """What people call it; the commonest first."""
    index: int
    """Position in the catalogue, and its class in every classifier."""


@cache
def catalogue() -> tuple[Landmark, ...]:
    """All landmarks, `field` before `house`, alphabetically."""
    rows = json.loads(files("wordwing.world").joinpath("catalogue.json").read_text("utf-8"))
    return tuple(Landmark(**{**row, "nouns": tuple(row["nouns"])}, index=index) for index, row in enumerate(rows))


@cache
def _by_name() -> dict[str, Landmark]:
    return {landmark.name: landmark for landmark in catalogue()}


def landmark(name: str) -> Landmark:
    """Look a landmark up by its exact name."""
    try:
        return _by_name()[name]
    except KeyError:
        hint = did_you_mean(name, list(_by_name()))
        count = len(catalogue())
        raise WordwingError(
            f'no landmark is called "{name}"{hint} ({count} names: wordwing data show landmarks)'
        ) from None


def landmarks(corpus: Corpus) -> tuple[Landmark, ...]:
    """The landmarks that layouts of a corpus are made of."""
    if corpus == "cage":
        numbered = (entry for entry in catalogue() if entry.cage is not None)
        return tuple(sorted(numbered, key=lambda entry: entry.cage or 0))
    return tuple(entry for entry in catalogue() if entry.set == corpus)


@dataclass(frozen=True)
class LandmarkNames:
    """How people refer to a kind of landmark; phrases without article."""

    names: tuple[str, ...]
    """From those who know what it is, the commonest first."""
    looks: tuple[str, ...]
    """From those who go by colour and shape."""
    family: str
    """What it shares a plain noun with."""
    contrast: tuple[str, ...]
    """What tells it from its family."""

    @property
    def phrases(self) -> tuple[str, ...]:
        """All of them but the family."""
        return self.names + self.looks + self.contrast


@cache
def lexicon() -> dict[str, LandmarkNames]:
    """How people refer to every landmark that generated corpora use."""
    document = json.loads(files("wordwing.world").joinpath("lexicon.json").read_text("utf-8"))
    return {
        name: LandmarkNames(tuple(row["names"]), tuple(row["looks"]), row["family"], tuple(row["contrast"]))
        for name, row in document.items()
    }
