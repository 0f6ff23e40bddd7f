"""A place where an instruction can be flown: a random layout that has what it speaks of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import get_args

import numpy as np

from wordwing.language.reference import mentions
from wordwing.language.spelling import words_of
from wordwing.world.catalogue import Corpus, landmarks
from wordwing.world.layout import Layout, Placement
from wordwing.world.samplers import sample_layout
from wordwing.world.tasks import Task, sample_task_in

CORPORA: tuple[Corpus, ...] = ("cage", "field", "house")
"""The smallest world first: it is the one that all policies know."""

assert set(CORPORA) == set(get_args(Corpus))


def stage(instruction: str, corpus: Corpus | None, rng: np.random.Generator) -> tuple[Corpus, Task]:
    """A start in a random layout with the landmarks that an instruction names, as far as there are such.

    Args:
        instruction: In plain English.
        corpus: Which kind of world; by default the first of cage, field and house that has most of what is named.
        rng: Source of everything random.
    """
    found = {name: spoken_of(instruction, name) for name in (CORPORA if corpus is None else (corpus,))}
    chosen = max(found, key=lambda name: len(found[name]))  # of equals the first
    task = sample_task_in(sample_layout(chosen, rng, found[chosen]), chosen, rng)
    return chosen, task


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
