"""How fast metrics are computed on one core; one JSON line per figure.

EMD and nDTW are measured on curved paths of 3 m, 151 points each; whole flights are ORACLE's and AVERAGE's on
two-segment instructions of the cage in `sim`, with all metrics of `wordwing.execution.metrics`.

Usage: OMP_NUM_THREADS=1 python benchmarks/path_metrics.py [SECONDS]     (5 for each figure by default)
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import cycle

import numpy as np
import torch

from wordwing.bench import rate_of
from wordwing.data.generating import Chunk, make
from wordwing.devices import device_title
from wordwing.execution.execution import Execution, Provenance
from wordwing.execution.metrics import emd, evenly, measure, ndtw
from wordwing.execution.runner import fly
from wordwing.policies.baselines import MEAN_ACTIONS, Average
from wordwing.policies.oracle import Oracle
from wordwing.sim.simulator import Simulator
from wordwing.world.tasks import Task

CPU = torch.device("cpu")


def winding_path(rng: np.random.Generator) -> np.ndarray:
    """[31, 2] from the origin, 3 m long."""
    heading = np.cumsum(rng.normal(0, 0.25, 30))
    steps = 0.1 * np.stack([np.cos(heading), np.sin(heading)], axis=1)
    return np.concatenate([np.zeros((1, 2)), steps.cumsum(axis=0)])


def flights(paragraphs: int = 20) -> list[Execution]:
    """Flights of generated two-segment instructions."""
    layouts, written = make(Chunk("cage", "test", 0, 0, paragraphs))
    instructions = [entry for paragraph in written for entry in paragraph.instructions((2,))]
    tasks = [
        Task(part.instruction, layouts[entry.layout], part.start_xy, part.start_yaw, part.path)
        for entry in instructions
        for part in [entry.segment]
    ]
    episodes = []
    for name, policy in (("oracle", Oracle()), ("average", Average(*MEAN_ACTIONS["cage"]))):
        flown = fly(policy, Simulator(len(tasks), draw=False), tasks)
        for entry, flight in zip(instructions, flown, strict=True):
            part = entry.segment
            source = Provenance(name, "cage", "generated", "test", "sim", 0, entry.id, 2, entry.layout, part.meaning)
            episodes.append(replace(flight, provenance=source))
    return episodes


def report(figure: str, calls: Sequence[Callable[[], object]], seconds: float, **notes: object) -> None:
    """Print how many of these calls, in turn, are done per second."""
    turn = cycle(calls)
    rate = rate_of(lambda: next(turn)(), seconds, CPU)
    row = {"figure": figure, "value": round(rate, 1), **notes, "device": device_title(CPU)}
    print(json.dumps(row), flush=True)


def main() -> None:
    """Measure and report."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    pairs = [(winding_path(rng), winding_path(rng)) for _ in range(200)]
    points = len(evenly(pairs[0][0]))
    report("EMD/s", [partial(emd, *pair) for pair in pairs], seconds, pairs=len(pairs), points=points)
    report("nDTW/s", [partial(ndtw, *pair) for pair in pairs], seconds, pairs=len(pairs), points=points)
    flown = flights()
    length = round(float(np.mean([measure(episode).length for episode in flown])), 2)
    calls = [partial(measure, episode) for episode in flown]
    report("flights/s, all metrics", calls, seconds, flights=len(flown), mean_length_m=length)


if __name__ == "__main__":
    main()
