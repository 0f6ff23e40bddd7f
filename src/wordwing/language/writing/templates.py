"""Ways of saying things: the voices of several people, as templates.

A voice (`voices/NAME.json`) is how one person speaks: imperatives for every kind of clause (`do`), what follows "until"
(`until`), how sentences begin, go on and end, and words for distances, parts of a circle and places. In a template
`{X}` stands for a noun phrase, `[words]` may be left out and `(a|b)` is one of its parts. A fifth of the templates for
every kind are kept from training, so that dev and test have sentences of a form that no policy has read.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

T = TypeVar("T")

VOICES = ("quick", "plain", "terse", "chatty", "sloppy", "vivid")
HELD_OUT = 5
"""One template in this many is kept for dev and test."""

_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_CHOICE = re.compile(r"\(([^()]*)\)")


@dataclass(frozen=True)
class Voice:
    """How one person speaks."""

    name: str
    do: dict[str, list[str]]
    """Imperatives by kind of clause (and `turn_slight`)."""
    until: dict[str, list[str]]
    """What follows "until", for kinds that can end a movement."""
    openers: list[str]
    joins: list[str]
    closers: list[str]
    distances: dict[str, list[str]]
    amounts: dict[str, list[str]]
    where: dict[str, list[str]]
    clock: dict[str, list[str]]
    """By the side on which the thing circled is."""


@cache
def voice(name: str) -> Voice:
    """Read a voice of the package."""
    text = files("wordwing.language.writing").joinpath(f"voices/{name}.json").read_text("utf-8")
    return Voice(name, **json.loads(text))


@cache
def held_out() -> frozenset[tuple[str, str, str]]:
    """(form, kind, template) of those that training never sees: a fifth of each form and kind, chosen by hash."""
    kept: set[tuple[str, str, str]] = set()
    for form in ("do", "until"):
        for kind in getattr(voice(VOICES[0]), form):
            templates = {template for name in VOICES for template in getattr(voice(name), form)[kind]}
            ranked = sorted(templates, key=lambda template: hashlib.sha256(template.encode()).hexdigest())
            kept.update((form, kind, template) for template in ranked[: max(len(ranked) // HELD_OUT, 1)])
    return frozenset(kept)


@cache
def templates(name: str, form: str, kind: str, training: bool) -> tuple[str, ...]:
    """The templates of a voice for a kind of clause, without those held out when writing for training."""
    return tuple(t for t in getattr(voice(name), form)[kind] if not (training and (form, kind, t) in held_out()))


def expand(template: str, rng: np.random.Generator) -> str:
    """Decide a template's options and choices."""
    text = _OPTIONAL.sub(lambda match: match[1] if rng.random() < 0.5 else "", template)
    text = _CHOICE.sub(lambda match: pick(match[1].split("|"), rng), text)
    return " ".join(text.split())


def pick(options: Sequence[T], rng: np.random.Generator) -> T:
    """One of some options, each as likely as the others."""
    return options[int(rng.integers(len(options)))]


def pick_weighted(options: Sequence[T], weights: ArrayLike, rng: np.random.Generator) -> T:
    """One of some options, each as likely as its weight says; as `rng.choice` picks, which checks much for one draw."""
    chances = np.asarray(weights)
    passed = (chances / chances.sum()).cumsum()
    return options[int((passed / passed[-1]).searchsorted(rng.random(), side="right"))]
