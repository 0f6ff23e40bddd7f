"""A place where an instruction can be flown: a random layout that has what it speaks of."""

from __future__ import annotations

import numpy as np

from wordwing.language.missing_landmarks import CORPORA, spoken_of
from wordwing.world.catalogue import Corpus
from wordwing.world.samplers import sample_layout
from wordwing.world.tasks import StartPose, Task, sample_task_in


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
