"""Does a policy understand its training instructions better than others? After a look around, as JSON lines.

Usage: python experiments/memorization/memorization.py POLICY DATASET…

For instructions of train and dev alike: the drone turns once on the spot, and its belief about where to stop, and to
pass, is compared with the demonstration. A difference between the splits is memorisation; what train lacks to 100 % was
not learned, or the instruction does not determine it. It takes ten minutes on a CPU core.
"""

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro

from wordwing.data.dataset import Dataset
from wordwing.execution.metrics import succeeded, wilson
from wordwing.learning.evaluator import LOOKS_OF, FirstLooks, assess
from wordwing.learning.losses import GoldConfig
from wordwing.model.checkpoint import load_network


def main(
    policy: Annotated[str, tyro.conf.Positional],
    folders: Annotated[list[Path], tyro.conf.Positional],
    /,
    count: int = 200,
    seed: int = 0,
) -> None:
    """Print a line for each dataset, number of segments and split."""
    network, vocabulary = load_network(policy)
    network.eval()
    for dataset in map(Dataset, folders):
        for segments in (1, 2):
            for split in ("train", "dev"):
                found = list(dataset.instructions(split, (segments,)))
                chosen = np.random.default_rng(seed).permutation(len(found))[:count]
                tasks = [dataset.task(found[number]) for number in chosen]
                looks = FirstLooks.of(tasks, vocabulary, torch.device("cpu"), LOOKS_OF["look_around"])
                seen = assess(network, looks, GoldConfig(), 64)
                divergence = (seen.cross_entropy - seen.gold_entropy).mean(0)
                near = succeeded(seen.goal_error[seen.gold_unobserved < 0.5])
                low, high = wilson(int(near.sum()), len(near))
                row: dict[str, object] = {"corpus": dataset.name, "segments": segments, "split": split, "n": len(near)}
                row["goal within 0.47 m, %"] = (
                    f"{100 * float(near.float().mean()):.1f} ({100 * low:.1f}–{100 * high:.1f})"
                )
                row["KL goal, nats"], row["KL trajectory, nats"] = (round(float(divergence[k]), 2) for k in (1, 0))
                print(json.dumps(row, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    tyro.cli(main)
