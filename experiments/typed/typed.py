"""The yardstick `typed`: how much of what visitors type is followed, by number and by kind of clauses.

Usage: python experiments/typed/typed.py lengths FOLDER… > experiments/typed/typed-lengths.jsonl
       python experiments/typed/typed.py kinds FOLDER… > experiments/typed/typed-kinds.jsonl

Folders have flights of `wordwing evaluate … --corpus typed`.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from wordwing.evaluation.clauses import clause_rates
from wordwing.evaluation.report.labels import title
from wordwing.execution.episodes import find_episodes, read_episodes
from wordwing.execution.execution import Execution
from wordwing.execution.metrics import judge_flight, wilson

MANY = 5
"""Meanings of so many clauses and more are one row."""


def lengths(flights: Sequence[Execution]) -> None:
    """A row for each system, kind of sentences and number of clauses of their meaning."""
    rows: dict[tuple[str, str, str], list[Execution]] = defaultdict(list)
    for flight in flights:
        system, own = title(flight.provenance.system), flight.provenance.id.startswith("typed-own")
        number = len(flight.provenance.meaning or ())
        author = "our own" if own else "visitors'"
        rows[system, author, "all"].append(flight)
        if not own:
            rows[system, author, f"{MANY} or more" if number >= MANY else str(number)].append(flight)
    order = {"our own": 0, "visitors'": 1}
    for (system, author, count), group in sorted(
        rows.items(), key=lambda row: (row[0][0], order[row[0][1]], row[0][2])
    ):
        judged = [found[1] for flight in group if (found := judge_flight(flight)) is not None]
        done = [value for one in judged for value in one.done]
        followed = sum(one.followed for one in judged)
        low, high = wilson(followed, len(judged))
        row = {
            "system": system,
            "sentences": author,
            "clauses": count,
            "n": len(judged),
            "followed, %": round(100 * followed / len(judged), 1),
            "95 % interval": f"{100 * low:.0f} to {100 * high:.0f}",
            "last clause done, %": round(100 * sum(one.done[-1] for one in judged) / len(judged), 1),
            "clauses done, %": round(100 * sum(done) / len(done), 1),
            "never stopped, %": round(100 * sum(not flight.stopped for flight in group) / len(group), 1),
        }
        print(json.dumps(row, ensure_ascii=False))


def kinds(flights: Sequence[Execution]) -> None:
    """A row for each kind of clause, systems beside each other."""
    rates = clause_rates(flights)
    for kind in dict.fromkeys(kind for own in rates.values() for kind in own):
        row: dict[str, object] = {
            "kind": kind,
            "clauses": max(own[kind].clauses for own in rates.values() if kind in own),
        }
        for system, own in rates.items():
            if kind in own:
                row[f"{title(system)}: done, %"] = round(100 * own[kind].share, 1)
                row[f"{title(system)}: mean score"] = round(own[kind].score, 2)
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    found = list(read_episodes([find_episodes(Path(folder)) for folder in sys.argv[2:]]))
    {"lengths": lengths, "kinds": kinds}[sys.argv[1]](found)
