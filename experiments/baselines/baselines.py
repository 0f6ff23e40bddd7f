"""AVERAGE and ORACLE with other constants on the cage's test split; a JSON line each.

Usage: python experiments/baselines/baselines.py
"""

import json

import numpy as np

from wordwing.data.corpora import corpus
from wordwing.data.dataset import Dataset
from wordwing.data.demonstrations.flying import fly_sim, mean_action
from wordwing.execution.metrics import emd, final_distance, succeeded
from wordwing.execution.runner import fly
from wordwing.interface import Policy
from wordwing.policies.baselines import MEAN_ACTIONS, Average
from wordwing.policies.oracle import Oracle, OracleConfig
from wordwing.sim.simulator import Simulator
from wordwing.world.paths import path_length


def variants(dataset: Dataset) -> dict[tuple[str, str], Policy]:
    """Policies by name and constants."""
    one, two = (mean_action(fly_sim(dataset, list(dataset.instructions("train", (count,))))) for count in (1, 2))
    return {
        ("AVERAGE", "of both, pooled: the default"): Average(*MEAN_ACTIONS["cage"]),
        ("AVERAGE", "of one segment"): Average(*one),
        ("AVERAGE", "of two segments"): Average(*two),
        ("AVERAGE", "the authors' 0.385 m/s and 20 steps"): Average(0.385, -0.008, 20),
        ("ORACLE", "lookahead 0.5 m, STOP 0.3 m before the end: the default"): Oracle(),
        ("ORACLE", "lookahead 0.7 m, as in the authors' software"): Oracle(OracleConfig(lookahead=0.7)),
        ("ORACLE", "the same, STOP 0.15 m before the end"): Oracle(OracleConfig(lookahead=0.7, stop_distance=0.15)),
    }


def main() -> None:
    """Fly all of them."""
    dataset = corpus("cage")
    test = {count: [dataset.task(entry) for entry in dataset.instructions("test", (count,))] for count in (1, 2)}
    for (system, constants), policy in variants(dataset).items():
        row: dict[str, object] = {"system": system, "constants": constants}
        for count, tasks in test.items():
            flights = fly(policy, Simulator(len(tasks), draw=False), tasks)
            paths = [(flight.path, flight.task.gold_path) for flight in flights]
            ends = [succeeded(final_distance(*pair)) for pair in paths]
            row[f"flown {count}, m"] = f"{np.mean([path_length(flown) for flown, _gold in paths]):.2f}"
            row[f"SR {count}, %"] = f"{100 * np.mean(ends):.1f}"
            row[f"EMD {count}, m"] = f"{np.mean([emd(*pair) for pair in paths]):.2f}"
        print(json.dumps(row), flush=True)
    for count, tasks in test.items():
        low, median, high = np.percentile([path_length(task.gold_path) for task in tasks], [10, 50, 90]).round(2)
        print(json.dumps({"figure": f"length of {count}, m", "median": median, "p10": low, "p90": high}))


if __name__ == "__main__":
    main()
