"""How stage 2 learns when stage 1 stays as it is: what PPO needs, and what the reward's weights do; JSON lines.

Usage: python benchmarks/control.py POLICY DATASET… [--flights N] [--dev N] [--vary NAME=VALUE[,NAME=VALUE…]…]

Takes the policy's stage 1, a new stage 2, and flies the datasets' training instructions. Each `--vary` is one more run
with settings of `ReinforcementConfig` or `Stage2Config` changed: `reward.step=0.02`, `flights=256,ppo.updates=8`,
`stage2.first_stop=-5`. A line is printed for each examination: dev instructions flown as at test time. It takes minutes
on a GPU.
"""

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro

from wordwing.benchmarking import device_title
from wordwing.learning.config import DataConfig, RunConfig
from wordwing.learning.examination import Examination
from wordwing.learning.examples import example_set
from wordwing.learning.material import Material, load_material
from wordwing.learning.recipes import changed, paper
from wordwing.learning.reinforcement import Reinforcement
from wordwing.model.checkpoint import load_network
from wordwing.model.policy import LearnedPolicy, ModelConfig, PolicyNetwork


def main(
    policy: Annotated[Path, tyro.conf.Positional],
    data: Annotated[list[Path], tyro.conf.Positional],
    /,
    flights: int = 120_000,
    dev: int = 500,
    examine: int = 20_000,
    vary: list[str] = [],  # noqa: B006
    seed: int = 0,
    device: str = "",
) -> None:
    """Train stage 2 from scratch, once as in the recipe `paper` and once for each variation.

    Args:
        policy: Whose stage 1 plans.
        data: Datasets to fly.
        flights: Of each run.
        dev: Dev instructions of each dataset.
        examine: Flights between two examinations.
        vary: Settings of more runs.
        seed: Of everything random.
        device: "cpu" or "cuda"; by default CUDA where there is one.
    """
    where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    base = replace(paper(), data=DataConfig(corpora=tuple(map(str, data)), dev=dev), seed=seed)
    network, vocabulary = load_network(policy)
    material = load_material(base.data, where)
    # The policy reads by its own vocabulary, which may be of other corpora.
    examples = example_set(material.datasets, material.training, vocabulary, where)
    material = replace(material, vocabulary=vocabulary, examples=examples)
    for variation in ["", *vary]:
        config = changed(base, [_full(setting) for setting in variation.split(",") if setting])
        run(network, config, material, variation or "as in the recipe", flights, examine, where)


def _full(setting: str) -> str:
    return f"model.{setting}" if setting.startswith("stage2.") else f"reinforcement.{setting}"


def run(
    teacher: PolicyNetwork,
    config: RunConfig,
    material: Material,
    name: str,
    flights: int,
    examine: int,
    device: torch.device,
) -> None:
    """Train one stage 2 and print how well it flies."""
    torch.manual_seed(config.seed)
    model = ModelConfig(teacher.config.stage1, config.model.stage2, teacher.config.mapping)
    network = PolicyNetwork(model, len(material.vocabulary)).to(device)
    network.stage1.load_state_dict(teacher.stage1.state_dict())
    process = Reinforcement(network, material.examples, config.reinforcement, config.seed, device.type == "cuda")
    examination = Examination(material, device)
    began, due = time.monotonic(), 0
    while True:
        if process.flights >= due or process.flights >= flights:
            due = process.flights + examine
            marks = examination.fly(LearnedPolicy(network, material.vocabulary, "sim", device))
            line = {
                "run": name,
                "flights": process.flights,
                "device": device_title(device),
                "seconds": round(time.monotonic() - began, 1),
            }
            for corpus, found in marks.items():
                line |= {
                    f"{corpus} n": len(found.emd),
                    f"{corpus} success": round(found.success, 4),
                    f"{corpus} emd": round(float(np.mean(found.emd)), 4),
                }
            print(json.dumps(line), flush=True)
            if process.flights >= flights:
                return
        process.iterate(process.flights / flights)


if __name__ == "__main__":
    tyro.cli(main)
