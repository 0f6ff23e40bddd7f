"""Which stage limits a policy: compare the believed goal at STOP with the true one; JSON lines.

Usage: python experiments/beliefs/beliefs.py EVALUATION…

Takes folders of `wordwing evaluate`. A belief is right if the likeliest goal at the last decision is within 0.47 m of
the demonstration's end, the success distance.
"""

import json
from itertools import groupby
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from wordwing.execution.episodes import find_episodes, read_episodes
from wordwing.execution.metrics import succeeded


def main(folders: Annotated[list[Path], tyro.conf.Positional], /) -> None:
    """Print a line for each system with beliefs, corpus and number of segments."""
    episodes = [one for one in read_episodes([find_episodes(folder) for folder in folders]) if len(one.believed_goals)]

    def key(episode):
        flight = episode.provenance
        return flight.corpus, flight.split, flight.domain, flight.system, flight.segments

    for (corpus, split, domain, system, segments), group in groupby(sorted(episodes, key=key), key):
        flights = list(group)
        believed = np.array([one.believed_goals[-1, :2] for one in flights])
        rest = np.array([one.path[-1] for one in flights])
        goal = np.array([one.task.gold_path[-1] for one in flights])
        right = succeeded(np.linalg.norm(believed - goal, axis=1))
        success = succeeded(np.linalg.norm(rest - goal, axis=1))
        row = {
            "system": system,
            "corpus": corpus,
            "split": split,
            "domain": domain,
            "segments": segments,
            "n": len(flights),
            "SR, %": percent(success),
            "belief right, %": percent(right),
            "SR where right, %": percent(success[right]),
            "SR where wrong, %": percent(success[~right]),
            "from rest to belief, median m": round(float(np.median(np.linalg.norm(believed - rest, axis=1))), 2),
        }
        print(json.dumps(row, ensure_ascii=False))


def percent(flags: np.ndarray) -> float | None:
    """Percentage of true flags, to a tenth; None for no flags."""
    return round(100 * float(flags.mean()), 1) if len(flags) else None


if __name__ == "__main__":
    tyro.cli(main)
