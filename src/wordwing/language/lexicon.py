"""The names of landmarks: how people refer to each kind, collected in `lexicon.json`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Names:
    """How people refer to a kind of landmark; phrases without article."""

    names: tuple[str, ...]
    """For who knows what it is, the commonest first."""
    looks: tuple[str, ...]
    """For who goes by colour and shape."""
    family: str
    """What it shares a plain noun with."""
    contrast: tuple[str, ...]
    """What tells it from its family."""


@cache
def lexicon() -> dict[str, Names]:
    """Names of every landmark that generated corpora use."""
    document = json.loads(files("wordwing.language").joinpath("lexicon.json").read_text("utf-8"))
    return {
        name: Names(tuple(row["names"]), tuple(row["looks"]), row["family"], tuple(row["contrast"]))
        for name, row in document.items()
    }
