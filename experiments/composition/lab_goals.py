"""Where stage 1 believes the goal to be in images of `sim` and of the lab, before any flight; JSON lines.

Usage: python experiments/composition/lab_goals.py POLICY… --data CAGE [--count N]

The same dev instructions from the same poses in both domains, after the first image and after a look around. The lab
is wordwing's stand-in for a real one. It takes some minutes on a CPU core, most of them for the lab's images.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro

from composition import LOOKS, chosen
from wordwing.data.dataset import Dataset
from wordwing.evaluation.report.bootstrap import Resampling
from wordwing.execution.metrics import succeeded
from wordwing.frames import start_frame
from wordwing.interface import Domain
from wordwing.learning.evaluator import FirstLooks, predict
from wordwing.learning.losses import GoldConfig
from wordwing.model.checkpoint import load_network
from wordwing.model.policy import PolicyNetwork
from wordwing.model.visitation import visitation

sys.path.append(str(Path(__file__).parents[1] / "landmark_probe"))
from landmark_probe import take_images

BATCH = 64


def main(
    policies: Annotated[list[str], tyro.conf.Positional],
    /,
    data: Path,
    count: int = 220,
    seed: int = 0,
) -> None:
    """Print a line for each number of segments, kind of look and policy.

    Args:
        policies: Names or folders.
        data: The cage.
        count: Dev instructions of each number of segments at most.
        seed: Of the selection and of the lab's noise.
    """
    dataset = Dataset(data)
    for segments in (1, 2):
        parts = chosen(dataset, segments, count, seed)
        tasks = [dataset.task(one) for one in parts]
        layouts = [task.layout for task in tasks]
        resampling = Resampling([one.layout for one in parts])
        for look in ("first look", "look around"):
            recorded: torch.Tensor | None = None
            for policy in policies:
                network, vocabulary = load_network(policy)
                sim = FirstLooks.of(tasks, vocabulary, "cpu", LOOKS[look])
                if recorded is None:
                    turns = range(LOOKS[look])
                    taken = [take_images(layouts, sim.pose[:, turn], "lab", seed + turn) for turn in turns]
                    recorded = torch.stack(taken, dim=1)
                both = believed(network, sim, "sim"), believed(network, replace(sim, image=recorded), "lab")
                folder = Path(policy)
                name = folder.parent.name if folder.name == "policy" else folder.name
                row = {"policy": name, "segments": segments, "look": look, "n": len(tasks)}
                print(json.dumps(row | compared(*both, resampling), ensure_ascii=False), flush=True)


@torch.no_grad()
def believed(network: PolicyNetwork, looks: FirstLooks, domain: Domain) -> np.ndarray:
    """[N, 2] metres: from the start to the likeliest goal, and from there to the demonstration's end."""
    network.eval()
    found = []
    for begin in range(0, len(looks), BATCH):
        part = looks[begin : begin + BATCH]
        outcome = predict(network, part, GoldConfig(), domain)
        plan = visitation(outcome.scores, outcome.observed)
        goal, end = plan.likeliest_goal, start_frame(part.start).unapply_xy(part.points[:, -1])
        found.append(torch.stack([goal.norm(dim=1), (goal - end).norm(dim=1)], dim=1))
    return torch.cat(found).numpy()


def compared(sim: np.ndarray, lab: np.ndarray, resampling: Resampling) -> dict:
    """How much closer to the start believed goals are in the lab, and how many are right; intervals over layouts."""
    right_sim, right_lab = (100.0 * succeeded(entry[:, 1]) for entry in (sim, lab))
    nearer = resampling.difference(sim[:, 0], lab[:, 0])
    fewer = resampling.difference(right_sim, right_lab)
    return {
        "right in sim, %": round(float(right_sim.mean()), 1),
        "right in the lab, %": round(float(right_lab.mean()), 1),
        "fewer in the lab, points": f"{fewer.mean:.1f} ({fewer.low:.1f} to {fewer.high:.1f})",
        "nearer to the start in the lab, m": f"{nearer.mean:.2f} ({nearer.low:.2f} to {nearer.high:.2f})",
    }


if __name__ == "__main__":
    tyro.cli(main)
