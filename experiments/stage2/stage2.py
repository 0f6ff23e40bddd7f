"""Train stage 2 with a fixed stage 1: settings of PPO and weights of the reward; JSON lines.

Usage: python experiments/stage2/stage2.py POLICY DATASET… [--flights N] [--dev N] [--vary NAME=VALUE[,NAME=VALUE…]…]

Takes the policy's stage 1, a new stage 2 or with `--further` the policy's own, and flies the datasets' training
instructions. Each `--vary` is one run with settings of `ReinforcementConfig` or `Stage2Config` changed, or with "none"
changed: `reward.step=0.02`, `flights=256,ppo.updates=8`, `stage2.first_stop=-5`. At each evaluation dev instructions
are flown as at test time, and a line is printed: for each corpus the metrics of one and of two segments, then metres
flown and demonstrated. It takes minutes on a GPU.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro

from wordwing.execution.runner import fly
from wordwing.learning.algorithm2 import Reinforcement
from wordwing.learning.evaluator import FlightMetrics
from wordwing.learning.recipes.config import RunConfig
from wordwing.learning.recipes.presets import changed, gpu
from wordwing.learning.training_data import DataConfig, TrainingData, example_set, load_training_data
from wordwing.model.checkpoint import load_network, save_network
from wordwing.model.policy import ModelConfig, PolicyNetwork
from wordwing.policies.learned import LearnedPolicy
from wordwing.sim.simulator import Simulator
from wordwing.world.paths import path_length


def main(
    policy: Annotated[Path, tyro.conf.Positional],
    data: Annotated[list[Path], tyro.conf.Positional],
    /,
    flights: int = 160_000,
    limit: int = 20_000,
    dev: int = 500,
    examine: int = 40_000,
    vary: list[str] = ["none"],  # noqa: B006
    further: bool = False,
    keep: Path | None = None,
    seed: int = 0,
    device: str = "",
) -> None:
    """Train stage 2 by the recipe `gpu`, once for each variation.

    Args:
        policy: Provides stage 1.
        data: Datasets to fly.
        flights: Flights of each run.
        limit: Most training instructions of each dataset, so that none dominates.
        dev: Dev instructions of each dataset.
        examine: Flights between two evaluations.
        vary: What is changed in each run.
        further: Begin with the policy's own stage 2.
        keep: Folder for the trained policies.
        seed: Of all random numbers.
        device: "cpu" or "cuda"; by default CUDA where there is one.
    """
    where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    network, vocabulary = load_network(policy)
    recipe = gpu()
    base = replace(
        recipe,
        data=DataConfig(corpora=tuple(map(str, data)), dev=dev, limit=limit, lab="none"),
        model=replace(recipe.model, stage1=network.config.stage1),
        seed=seed,
    )
    training_data = load_training_data(base.data, where)
    # The policy reads by its own vocabulary, which may be of other corpora.
    examples = example_set(training_data.datasets, training_data.training, vocabulary, where)
    training_data = replace(training_data, vocabulary=vocabulary, examples=examples)
    for number, variation in enumerate(vary):
        settings = [] if variation == "none" else variation.split(",")
        config = changed(base, [_full(setting) for setting in settings])
        for learned in run(network, config, training_data, variation, flights, examine, where, further):
            if keep is not None:
                card = f"Stage 2 of {policy.name}, changed: {variation}\n"
                save_network(keep / f"{number}", learned, vocabulary, card)


def _full(setting: str) -> str:
    return f"model.{setting}" if setting.startswith("stage2.") else f"reinforcement.{setting}"


def run(
    teacher: PolicyNetwork,
    config: RunConfig,
    data: TrainingData,
    name: str,
    flights: int,
    examine: int,
    device: torch.device,
    further: bool,
) -> Iterator[PolicyNetwork]:
    """Train one stage 2 and print its metrics; yields the policy after each evaluation."""
    torch.manual_seed(config.seed)
    model = ModelConfig(teacher.config.stage1, config.model.stage2, teacher.config.mapping)
    network = PolicyNetwork(model, len(data.vocabulary)).to(device)
    network.stage1.load_state_dict(teacher.stage1.state_dict())
    if further:
        network.stage2.load_state_dict(teacher.stage2.state_dict())
    process = Reinforcement(network, data.examples, config.reinforcement, config.seed, device.type == "cuda")
    began, due = time.monotonic(), examine
    while process.flights < flights:
        _rollouts, figures = process.iterate(process.flights / flights)
        if process.flights < min(due, flights):
            continue
        due += examine
        line: dict[str, object] = {
            "changed": name,
            "flights": process.flights,
            "seconds": round(time.monotonic() - began),
            "decisions": round(float(figures["charts/episodic_length"]), 1),
        }
        line |= examined(LearnedPolicy(network, data.vocabulary, "sim", device), data, device)
        print(json.dumps(line), flush=True)
        yield network


def examined(policy: LearnedPolicy, data: TrainingData, device: torch.device) -> dict[str, str]:
    """Fly dev instructions of each corpus; metrics with one segment and with two."""
    found: dict[str, str] = {}
    for dataset, part in zip(data.datasets, data.dev, strict=True):
        tasks = [dataset.task(one) for one in part]
        flights = fly(policy, Simulator(len(tasks), device), tasks, max_steps=dataset.steps)
        groups = [
            [flight for flight, one in zip(flights, part, strict=True) if one.segments == segments]
            for segments in sorted({one.segments for one in part})
        ]
        marks = [FlightMetrics.of(group) for group in groups]
        flown = [np.mean([path_length(flight.path) for flight in group]) for group in groups]
        shown = [np.mean([path_length(flight.task.gold_path) for flight in group]) for group in groups]
        found |= {
            f"{dataset.name}: n": " / ".join(f"{len(group)}" for group in groups),
            f"{dataset.name}: SR, %": " / ".join(f"{100 * entry.success:.1f}" for entry in marks),
            f"{dataset.name}: EMD, m": " / ".join(f"{entry.emd.mean():.3f}" for entry in marks),
            f"{dataset.name}: flown, m": " / ".join(f"{length:.2f}" for length in flown),
            f"{dataset.name}: demonstrated, m": " / ".join(f"{length:.2f}" for length in shown),
        }
    return found


if __name__ == "__main__":
    tyro.cli(main)
