"""Length of flights compared with demonstrations, and its effect on EMD; JSON lines.

Usage: python experiments/shortcuts/shortcuts.py FOLDER… > experiments/shortcuts/shortcuts.jsonl

Folders are those of `wordwing evaluate`, or in results/. For the flights of each system: metres flown and
demonstrated, decisions, success and EMD, and EMD where a flight came to rest at its goal and where it did not.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from wordwing.evaluation.report.labels import ordered, title
from wordwing.execution.episodes import find_episodes, read_episodes
from wordwing.execution.execution import Execution
from wordwing.execution.metrics import measure
from wordwing.interface import Domain
from wordwing.world.paths import path_length

BASELINES = ("stop", "average", "oracle")


def main(folders: Annotated[list[Path], tyro.conf.Positional], /) -> None:
    """Print a line for each system, number of segments, domain, split and corpus."""
    for heading, flights in groups(folders):
        print(json.dumps(heading | row(flights)))


def groups(folders: list[Path]) -> Iterator[tuple[dict[str, object], list[Execution]]]:
    """Flights of one system, number of segments, domain, split and corpus at a time, and what they share."""
    found: dict[tuple[str, str, Domain, int], dict[str, list[Execution]]] = defaultdict(lambda: defaultdict(list))
    for episode in read_episodes([find_episodes(folder) for folder in folders]):
        flight = episode.provenance
        if flight.system not in BASELINES:
            found[flight.corpus, flight.split, flight.domain, flight.segments][flight.system].append(episode)
    for where, systems in sorted(found.items()):
        shared: dict[str, object] = dict(zip(("corpus", "split", "domain", "segments"), where, strict=True))
        for system in ordered(systems):
            yield shared | {"system": title(system), "n": len(systems[system])}, systems[system]


def row(flights: list[Execution]) -> dict[str, object]:
    """Means over one system's flights."""
    measures = [measure(flight) for flight in flights]
    at_the_goal = np.array([entry.success for entry in measures])
    emd = np.array([entry.emd for entry in measures])
    return {
        "flown, m": mean([path_length(flight.path.astype(np.float64)) for flight in flights]),
        "demonstrated, m": mean([path_length(flight.task.gold_path) for flight in flights]),
        "decisions": mean([flight.end for flight in flights], 1),
        "SR, %": mean(100 * at_the_goal, 1),
        "EMD, m": mean(emd, 3),
        "EMD at the goal, m": mean(emd[at_the_goal]),
        "EMD elsewhere, m": mean(emd[~at_the_goal]),
    }


def mean(values: object, decimals: int = 2) -> float:
    """Rounded for reading."""
    return round(float(np.mean(np.asarray(values, float))), decimals)


if __name__ == "__main__":
    tyro.cli(main)
