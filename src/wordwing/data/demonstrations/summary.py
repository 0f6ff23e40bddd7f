"""How well demonstrations follow their paths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wordwing.data.demonstrations.records import Demonstrations
from wordwing.data.schema import Instruction
from wordwing.execution.metrics import emd, final_distance, succeeded, wilson

SAMPLE = 200
"""Flights whose EMD is taken; all would take longer than flying them."""


@dataclass(frozen=True)
class Summary:
    """Figures of some flights."""

    flights: int
    success: float
    """Share that came to rest within 0.47 m of the path's end."""
    interval: tuple[float, float]
    """Wilson's 95 % interval of it."""
    timed_out: int
    """Flights that ran out of steps."""
    steps: float
    """Mean number of setpoints."""
    emd: float
    """Mean over a sample, metres."""
    sampled: int
    """Flights in the sample."""


def summarise(demonstrations: Demonstrations, instructions: Sequence[Instruction]) -> Summary:
    """Figures of flights of these instructions, in their order."""
    gold = [instruction.segment.path for instruction in instructions]
    reached = [succeeded(final_distance(demonstrations.path(index), path)) for index, path in enumerate(gold)]
    count = len(demonstrations)
    sample = np.random.default_rng(0).choice(count, min(SAMPLE, count), replace=False)
    return Summary(
        flights=count,
        success=sum(reached) / count,
        interval=wilson(sum(reached), count),
        timed_out=int((~demonstrations.stopped).sum()),
        steps=float(demonstrations.decisions.mean()),
        emd=float(np.mean([emd(demonstrations.path(index), gold[index]) for index in sample.tolist()])),
        sampled=len(sample),
    )
