"""Paths read off stage 1's plans, compared with demonstration and instruction; JSON lines.

Usage: python experiments/composition/planned_paths.py POLICY… --data DATASET… [--count N]

After a look around, before any flight. Without phases the path is the cheapest one along d^p from the start to the
likeliest goal; with phases it leads through the middle of each in turn. A path follows the instruction if the judge
scores every clause at least 0.5. Two references plan nothing: a straight line to the true goal, and the demonstration.
It takes some minutes for each policy on a CPU core.
"""

import json
import math
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

from composition import LOOKS, chosen
from wordwing.data.dataset import Dataset
from wordwing.data.schema import Instruction
from wordwing.evaluation.report.bootstrap import Resampling
from wordwing.execution.metrics import emd
from wordwing.frames import start_frame
from wordwing.language.meaning.judge import judge
from wordwing.learning.evaluator import FirstLooks, predict
from wordwing.learning.losses import GoldConfig
from wordwing.model.checkpoint import load_network
from wordwing.model.grid import START_GRID
from wordwing.model.layers import each
from wordwing.model.policy import PolicyNetwork
from wordwing.model.visitation import Visitation, visitation
from wordwing.world.paths import Floats
from wordwing.world.tasks import Task

GROUPS: dict[str, Callable[[Instruction], bool]] = {
    "one segment": lambda one: one.segments == 1,
    "two segments": lambda one: one.segments == 2,
    "one or two clauses": lambda one: len(one.segment.meaning or ()) <= 2,
    "three clauses or more": lambda one: len(one.segment.meaning or ()) >= 3,
}

BATCH = 64

FIGURES = ("EMD of the planned path, m", "followed, %")

DONE = 0.5
"""Score from which a clause counts as done."""

FLOOR = 1e-3
"""Added to probabilities, as a share of the greatest, so that detours are limited."""


def main(
    policies: Annotated[list[str], tyro.conf.Positional],
    /,
    data: list[Path],
    count: int = 200,
    seed: int = 0,
) -> None:
    """Print a line for each planner, dataset and group of instructions.

    Args:
        policies: Names or folders; of folders NAME-seed-N/policy the mean over N is taken. The first one's name is what
            all others are compared with.
        data: Datasets whose meanings are known.
        count: Dev instructions of each dataset and number of segments at most.
        seed: Of the selection.
    """
    for dataset in map(Dataset, data):
        parts = [one for segments in (1, 2) for one in chosen(dataset, segments, count, seed)]
        tasks = [dataset.task(one) for one in parts]
        found: dict[str, list[np.ndarray]] = {}
        for policy in policies:
            network, vocabulary = load_network(policy)
            looks = FirstLooks.of(tasks, vocabulary, "cpu", LOOKS["look around"])
            batches = (looks[begin : begin + BATCH] for begin in range(0, len(tasks), BATCH))
            paths = [path for batch in batches for path in planned(network.eval(), batch)]
            found.setdefault(name_of(Path(policy)), []).append(worth(parts, tasks, paths))
            print(f"{dataset.name}: {policy}", file=sys.stderr, flush=True)
        baseline = next(iter(found.values()))
        found["straight to the true goal"] = [worth(parts, tasks, [task.gold_path[[0, -1]] for task in tasks])]
        found["the demonstration"] = [worth(parts, tasks, [task.gold_path for task in tasks])]
        for name, seeds in found.items():
            for row in rows(parts, np.mean(seeds, 0), np.mean(baseline, 0)):
                head = {"planner": name, "seeds": len(seeds), "corpus": dataset.name}
                print(json.dumps(head | row, ensure_ascii=False), flush=True)


def name_of(policy: Path) -> str:
    """Name of a policy without its seed."""
    name = policy.parent.name if policy.name == "policy" else policy.name
    return name.rpartition("-seed-")[0] or name


def worth(parts: list[Instruction], tasks: list[Task], paths: list[Floats]) -> np.ndarray:
    """[2, N] EMD from the demonstration, metres, and whether the whole instruction is followed, 0 or 100."""
    both = list(zip(paths, tasks, strict=True))
    distances = [emd(path, task.gold_path) for path, task in both]
    followed = [100.0 * followed_by(path, one, task) for (path, task), one in zip(both, parts, strict=True)]
    return np.array([distances, followed])


def rows(parts: list[Instruction], values: np.ndarray, baseline: np.ndarray) -> Iterator[dict]:
    """Means of each group and, in brackets, the difference from the baseline, 95 % over layouts."""
    for group, test in GROUPS.items():
        mine = np.array([test(one) for one in parts])
        resampling = Resampling([one.layout for one, is_mine in zip(parts, mine, strict=True) if is_mine])
        row: dict[str, object] = {"group": group, "n": int(mine.sum())}
        for name, digits, ours, theirs in zip(FIGURES, (3, 1), values, baseline, strict=True):
            text = f"{ours[mine].mean():.{digits}f}"
            if ours is not theirs and not np.array_equal(ours, theirs):
                change = resampling.difference(ours[mine], theirs[mine])
                text += f" ({change.low:+.{digits}f} to {change.high:+.{digits}f})"
            row[name] = text
        yield row


def followed_by(path: Floats, one: Instruction, task: Task) -> bool:
    """Whether a path follows the whole instruction."""
    assert one.segment.meaning
    return min(judge(one.segment.meaning, path, task.start_yaw, task.layout).clauses) >= DONE


@torch.no_grad()
def planned(network: PolicyNetwork, looks: FirstLooks) -> list[Floats]:
    """The paths [P, 2] read off plans, world frame."""
    outcome = predict(network, looks, GoldConfig())
    plans = visitation(outcome.scores, outcome.observed)
    found = []
    for number in range(len(looks)):
        plan: Visitation = each(lambda tensor: tensor[number : number + 1], plans)  # noqa: B023
        points = torch.from_numpy(way(plan)).float()
        frame = start_frame(looks.start[number : number + 1])
        found.append(frame.apply_xy(points).numpy().astype(float))
    return found


def way(plan: Visitation) -> Floats:
    """Path [P, 2] along one plan from the start to the likeliest goal, start frame, metres."""
    centres = START_GRID.centres().flatten(0, 1)
    start, goal = int(centres.norm(dim=1).argmin()), int(plan.goal[0].argmax())
    phases = [plan.trajectory[0]] if plan.phases is None else list(plan.phases[0])
    if plan.phases is None:
        stops, maps = [start, goal], phases
    else:
        stops = [start, *map(middle, phases), goal]
        maps = [phases[0], *((one + other) / 2 for one, other in pairwise(phases)), phases[-1]]
    legs = [cheapest(mass.numpy(), *ends) for mass, ends in zip(maps, pairwise(stops), strict=True)]
    return np.concatenate([np.zeros((1, 2)), centres.numpy()[np.concatenate(legs)]])


def middle(phase: Tensor) -> int:
    """The geometric median of a distribution [64, 64], among its likely cells."""
    mass = phase.flatten()
    likely = (mass >= 0.05 * mass.max()).nonzero()[:, 0]
    places = START_GRID.centres().flatten(0, 1)[likely]
    return int(likely[(torch.cdist(places, places) @ mass[likely]).argmin()])


def cheapest(mass: np.ndarray, first: int, last: int) -> np.ndarray:
    """Cells [P] from one to another with the least sum of length over probability [64, 64]."""
    cells = len(mass)
    number = np.arange(cells * cells).reshape(cells, cells)
    cost = 1 / (mass.astype(float) / max(float(mass.max()), 1e-12) + FLOOR)
    edges = []
    for down, right in ((0, 1), (1, 0), (1, 1), (1, -1)):
        here = (slice(0, cells - down), slice(max(0, -right), cells - max(0, right)))
        there = (slice(down, cells), slice(max(0, right), cells - max(0, -right)))
        steps = math.hypot(down, right) * (cost[here] + cost[there]) / 2
        edges.append((steps.ravel(), number[here].ravel(), number[there].ravel()))
    weights, rows_, columns = (np.concatenate(column) for column in zip(*edges, strict=True))
    graph = coo_array((weights, (rows_, columns)), shape=(cells * cells,) * 2).tocsr()
    before = dijkstra(graph, directed=False, indices=first, return_predecessors=True)[1]
    found = [last]
    while found[-1] != first:
        found.append(int(before[found[-1]]))
    return np.array(found[::-1])


if __name__ == "__main__":
    tyro.cli(main)
