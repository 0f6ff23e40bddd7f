"""What a text names, what of it does not stand in a layout, and in which kinds of worlds all of it can stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import get_args

import numpy as np

from wordwing.language.parser.reference_resolution import mentions
from wordwing.language.parser.spelling import plain, words_of
from wordwing.world.catalogue import Corpus, landmarks
from wordwing.world.layout import Layout, Placement
from wordwing.world.samplers import sample_layout
from wordwing.world.tasks import StartPose, Task, sample_task_in

CORPORA: tuple[Corpus, ...] = ("cage", "field", "house")
"""The smallest world first: it is the one that all policies know."""

assert set(CORPORA) == set(get_args(Corpus))


@dataclass(frozen=True)
class Absent:
    """What is spoken of and not there."""

    names: tuple[str, ...] = ()
    """As they were typed, in order, each once."""
    worlds: tuple[Corpus, ...] = ()
    """Kinds of worlds that have all that the text names; () where nothing is absent, or no kind has all."""


def absent(text: str, layout: Layout) -> Absent:
    """What a text names that does not stand in a layout.

    Only what some landmark is called counts: a word that is no name at all is an unknown word, and a policy that has
    heard of it may still do something sensible.
    """
    text = plain(text)
    words = words_of(text, layout)
    names: dict[str, None] = {}
    fitting = set(CORPORA)
    for mention in mentions(words, layout):
        worlds = _worlds(mention.phrase)
        if mention.pronoun or not worlds:
            continue
        fitting &= worlds
        if not mention.candidates:
            names[" ".join(text[words[mention.first].start : words[mention.last].stop].split())] = None
    return Absent(tuple(names), tuple(corpus for corpus in CORPORA if names and corpus in fitting))


@lru_cache(maxsize=4096)
def _worlds(phrase: tuple[str, ...]) -> frozenset[Corpus]:
    """Kinds of worlds that have something that is called so."""
    called = "the " + " ".join(phrase)  # the article makes a single word a name
    return frozenset(corpus for corpus in CORPORA if spoken_of(called, corpus))


def absent_sentence(text: str, layout: Layout) -> str | None:
    """What is missing and what is there instead, before anybody flies; None where nothing is missing."""
    missing = absent(text, layout)
    if not missing.names:
        return None
    called = " or ".join(f'"{name}"' for name in missing.names)
    there = ", ".join(dict.fromkeys(entry.kind.nouns[0] for entry in layout.landmarks)) or "nothing"
    return f"nothing in the layout is called {called}; what stands there: {there}"


def spoken_of(instruction: str, corpus: Corpus) -> Sequence[str]:
    """Names of a corpus's landmarks that an instruction speaks of, in order, each once."""
    layout = everything(corpus)
    named = [mention.candidates[:1] for mention in mentions(words_of(instruction, layout), layout)]
    return list(dict.fromkeys(layout.landmarks[one].name for some in named for one in some if isinstance(one, int)))


def everything(corpus: Corpus) -> Layout:
    """One of each landmark of a corpus, in rows: to look names up in, not to fly in."""
    kinds = landmarks(corpus)
    edge = math.ceil(math.sqrt(len(kinds)))
    return Layout(
        tuple(Placement(kind.name, place // edge * 1.0, place % edge * 1.0, 0.0) for place, kind in enumerate(kinds))
    )


def stage(
    instruction: str, corpus: Corpus | None, rng: np.random.Generator, start: StartPose | None = None
) -> tuple[Corpus, Task]:
    """A start in a random layout with the landmarks that an instruction names, as far as there are such.

    Args:
        instruction: In plain English.
        corpus: Which kind of world; by default the first of cage, field and house that has most of what is named.
        rng: Source of everything random.
        start: Where the drone begins; by default where a random walk does.
    """
    found = {name: spoken_of(instruction, name) for name in (CORPORA if corpus is None else (corpus,))}
    chosen = max(found, key=lambda name: len(found[name]))  # of equals the first
    task = sample_task_in(sample_layout(chosen, rng, found[chosen]), chosen, rng, start)
    return chosen, task
