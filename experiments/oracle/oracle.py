"""How well ORACLE follows sampled curved paths of 1 to 3 m, in both domains; one JSON line per figure.

Usage: python experiments/oracle/oracle.py [SIM_PATHS] [LAB_PATHS]     (500 and 40 by default)
"""

import json
import sys

import numpy as np

from wordwing.execution.execution import Execution
from wordwing.execution.metrics import emd, final_distance, succeeded, wilson
from wordwing.execution.runner import fly
from wordwing.lab.vehicle import LabVehicle
from wordwing.policies.oracle import Oracle
from wordwing.sim.simulator import Simulator
from wordwing.world.tasks import Task, sample_tasks


def interval(values: np.ndarray, rng: np.random.Generator) -> list[float]:
    """95 % interval of the mean: Wilson's for a share, a bootstrap's for lengths."""
    if values.dtype == bool:
        return [round(100 * bound, 2) for bound in wilson(int(values.sum()), len(values))]
    means = rng.choice(values, (2000, len(values))).mean(axis=1)
    return [round(float(bound), 3) for bound in np.percentile(means, [2.5, 97.5])]


def report(domain: str, flights: list[Execution]) -> None:
    """Print success rate and EMD with their intervals."""
    rng = np.random.default_rng(0)
    ends = np.array([final_distance(flight.path, flight.task.gold_path) for flight in flights])
    distances = np.array([emd(flight.path, flight.task.gold_path) for flight in flights])
    figures = {
        "success rate, %": succeeded(ends),
        "EMD, m": distances,
        "final distance, m": ends,
    }
    for figure, values in figures.items():
        mean = float(values.mean()) * (100 if values.dtype == bool else 1)
        row = {"figure": figure, "value": round(mean, 4), "interval_95": interval(values, rng)}
        print(json.dumps({**row, "policy": "ORACLE", "domain": domain, "n": len(flights)}), flush=True)


def fly_lab(seed: int, task: Task) -> Execution:
    """One flight in the lab, with poses as the lab's motion capture reported them."""
    with LabVehicle(task.layout, task.start_xy, task.start_yaw, seed=seed) as drone:
        return fly(Oracle(), drone, [task])[0]


def main() -> None:
    """Fly and report."""
    sim_paths = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    lab_paths = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    rng = np.random.default_rng(0)
    tasks = sample_tasks("field", sim_paths // 2, rng) + sample_tasks("cage", sim_paths - sim_paths // 2, rng)
    report("sim", fly(Oracle(), Simulator(len(tasks), draw=False), tasks))
    report("lab", [fly_lab(seed, task) for seed, task in enumerate(sample_tasks("cage", lab_paths, rng))])


if __name__ == "__main__":
    main()
