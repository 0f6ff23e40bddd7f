"""Whether a flight misses its goal because of its plan or because of its landing; JSON lines.

Usage: python experiments/shortcuts/landing.py FOLDER… [--segments N…] > experiments/shortcuts/landing.jsonl

Folders are those of `wordwing evaluate`, or in results/. For the flights of each system: the last forward velocity,
how far the drone flew on after STOP, the distance between the likeliest goal of its last plan and the demonstration's
end, and the distance of the rest position from either.
"""

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from shortcuts import groups, mean
from wordwing.execution.execution import Execution


def main(folders: Annotated[list[Path], tyro.conf.Positional], /, segments: tuple[int, ...] = (1, 2)) -> None:
    """Print a line for each system, number of segments, domain, split and corpus."""
    for heading, flights in groups(folders):
        if heading["segments"] in segments:
            print(json.dumps(heading | row(flights)))


def row(flights: list[Execution]) -> dict[str, object]:
    """Means over one system's flights."""
    rest = np.array([flight.path[-1] for flight in flights])
    decided = np.array([flight.path[flight.end] for flight in flights])
    planned = np.array([flight.believed_goals[-1, :2] for flight in flights])
    true = np.array([flight.task.gold_path[-1] for flight in flights])
    return {
        "last velocity, m/s": mean([_last_velocity(flight) for flight in flights]),
        "flown on, m": mean(_apart(rest, decided)),
        "planned goal off, m": mean(_apart(planned, true)),
        "landed off that, m": mean(_apart(rest, planned)),
        "landed off the goal, m": mean(_apart(rest, true)),
    }


def _last_velocity(flight: Execution) -> float:
    return float(flight.setpoints[flight.end - 1, 0]) if flight.end else 0.0


def _apart(some: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.hypot(*(some - others).T)


if __name__ == "__main__":
    tyro.cli(main)
