"""Phrases for tours (`tours.json`): for kinds of clauses that the voices do not have, and for what else visitors say.

As in the voices' templates `{X}` stands for a noun phrase. A fifth of the phrases of each kind are kept from training.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from wordwing.language.writing.templates import HELD_OUT


@dataclass(frozen=True)
class Phrases:
    """What visitors say in tours."""

    do: Mapping[str, tuple[str, ...]]
    """By kind of clause, of reference or of mistake."""
    words: Mapping[str, Sequence[str]]
    """What goes between them and around them."""
    ordinals: Sequence[Sequence[str]]
    """Ways to count."""
    parts: Mapping[str, Mapping[str, Sequence[str]]]
    """Of landmarks by name: what their own front and back are called."""
    plurals: Mapping[str, str]
    """Those that are not formed by an s."""
    short: Mapping[str, str]
    """Words, and how they are shortened."""


@cache
def phrases(training: bool) -> Phrases:
    """All phrases, or those of which one may write for training."""
    text = files("wordwing.language.writing").joinpath("tours.json").read_text("utf-8")
    known = Phrases(**json.loads(text))
    return replace(known, do={kind: _kept(entries, training) for kind, entries in known.do.items()})


def _kept(entries: Sequence[str], training: bool) -> tuple[str, ...]:
    ranked = sorted(entries, key=lambda entry: hashlib.sha256(entry.encode()).hexdigest())
    return tuple(ranked[len(ranked) // HELD_OUT * training :])
