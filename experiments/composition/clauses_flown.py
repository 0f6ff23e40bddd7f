"""Which clauses do flights follow? Shares for each system, by the number of clauses or by the kind of clause.

Usage: python experiments/composition/clauses_flown.py number EVALUATION… > experiments/composition/flown-number.jsonl
       python experiments/composition/clauses_flown.py kind EVALUATION… > experiments/composition/flown-kind.jsonl
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import tyro

from wordwing.execution.episodes import find_episodes, read_episodes
from wordwing.execution.metrics import measure
from wordwing.language.meaning.judge import judge

LEAST = 25
"""Fewest clauses of a kind that are worth a line."""

NUMBERS = ("one", "two", "three or more")


def main(
    by: Annotated[Literal["number", "kind"], tyro.conf.Positional],
    evaluations: Annotated[list[Path], tyro.conf.Positional],
    /,
) -> None:
    """Print JSON lines.

    Args:
        by: Flights by their number of clauses, or clauses by their kind.
        evaluations: Folders or files of episodes, of corpora whose meanings are known.
    """
    found: dict[tuple[str, str], dict[str, list[tuple[float, ...]]]] = defaultdict(lambda: defaultdict(list))
    for flight in read_episodes(map(find_episodes, evaluations)):
        source, metrics = flight.provenance, measure(flight)
        if source is None or not source.meaning or metrics.followed is None:
            continue
        if by == "number":
            number = NUMBERS[min(len(source.meaning), len(NUMBERS)) - 1]
            found[source.corpus, number][source.system].append((metrics.success, metrics.followed, metrics.emd))
        else:
            done = judge(source.meaning, flight.path, flight.task.start_yaw, flight.task.layout).done
            for place, (clause, was_done) in enumerate(zip(source.meaning, done, strict=True), start=1):
                key = f"`{clause.kind}`", "last" if place == len(done) else "before the last"
                found[key][source.system].append((was_done,))
    heads = ("corpus", "clauses") if by == "number" else ("kind", "place")
    for key, systems in sorted(found.items(), key=lambda item: -len(next(iter(item[1].values())))):
        count = len(next(iter(systems.values())))
        line: dict[str, object] = {**dict(zip(heads, key, strict=True)), "n": count}
        for system, rows in systems.items():
            if by == "number":
                success, followed, distance = np.mean(rows, axis=0)
                shares = f"{100 * success:.0f} / {100 * followed:.0f} %"
                line[f"{system}: SR / followed, EMD"] = f"{shares}, {distance:.2f} m"
            else:
                line[f"{system}: done, %"] = round(100 * float(np.mean(rows)))
        if by == "number" or count >= LEAST:
            print(json.dumps(line))


if __name__ == "__main__":
    tyro.cli(main)
