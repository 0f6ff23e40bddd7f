"""What stage 1 learns to plan from the first image, and what it needs for that; JSON lines for docs/results.md.

Usage: python experiments/first_look/first_look.py train OUT DATASET… [--steps N] [--variants NAME…]   compares variants
       python experiments/first_look/first_look.py overfit     8 start poses with 4 instructions each; minutes on a CPU
       python experiments/first_look/first_look.py plot LINES IMAGE     how well p_oob is calibrated

`train` takes the train and dev splits of dataset folders (`wordwing data build`) and writes OUT/first-look.jsonl and
OUT/calibration.jsonl, and each variant's policy; minutes on a GPU.
"""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO, Annotated

import numpy as np
import torch
import tyro

from wordwing.data.dataset import Dataset
from wordwing.devices import precision
from wordwing.execution.metrics import succeeded
from wordwing.language.tokenizer import Vocabulary
from wordwing.learning.evaluator import Assessment, FirstLooks, assess, predict
from wordwing.learning.losses import GoldConfig
from wordwing.model.lingunet import LingUNetConfig
from wordwing.model.policy import ModelConfig, PolicyNetwork
from wordwing.model.stage1 import Stage1Config
from wordwing.model.visitation import cross_entropy
from wordwing.policies.learned import LearnedPolicy
from wordwing.world.samplers import sample_layout
from wordwing.world.tasks import Task

VARIANTS = {
    "PVN2": Stage1Config(),
    "wide LingUNet": Stage1Config(lingunet=LingUNetConfig.wide()),
    "M as input": Stage1Config(mask_input=True),
    "no instruction": Stage1Config(blank="instruction"),
    "no image": Stage1Config(blank="image"),
    "PVN": Stage1Config(observability=False),
}

BINS = 10
"""Bins of the calibration, evenly spaced in the predicted p_oob."""


def train(
    out: Annotated[Path, tyro.conf.Positional],
    data: Annotated[list[Path], tyro.conf.Positional],
    /,
    steps: int = 1000,
    batch: int = 512,
    rate: float = 1e-3,
    grounding: int = 8,
    variants: list[str] = list(VARIANTS),  # noqa: B006
    limit: int = 1_000_000,
) -> None:
    """Train each variant on the same first images of all corpora, and evaluate it on their dev splits."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    datasets = [Dataset(folder) for folder in data]
    tasks = {
        dataset.name: {split: tasks_of(dataset, split, limit) for split in ("train", "dev")} for dataset in datasets
    }
    training = [task for splits in tasks.values() for task in splits["train"]]
    vocabulary = Vocabulary.of([task.instruction for task in training])
    looks = FirstLooks.of(training, vocabulary, device)
    dev = {name: FirstLooks.of(splits["dev"], vocabulary, device) for name, splits in tasks.items()}
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "first-look.jsonl", "w") as table, open(out / "calibration.jsonl", "w") as calibration:
        for variant in variants:
            torch.manual_seed(0)
            network = PolicyNetwork(ModelConfig(replace(VARIANTS[variant], grounding=grounding)), len(vocabulary)).to(
                device
            )
            began = time.monotonic()
            fit(network, looks, steps, batch, rate, GoldConfig(), tick=said(variant, began))
            seconds = time.monotonic() - began
            for name, part in dev.items():
                found = assess(network, part, GoldConfig())
                entry = {"variant": variant, "corpus": name, "n": len(part)}
                print_row(table, entry | figures(found) | {"training, s": round(seconds)})
                for row in reliability(found):
                    print_row(calibration, {"variant": variant, "corpus": name} | row)
            card = f"# {variant}, first looks only\n\nStage 2 is untrained. Made by experiments/first_look.\n"
            LearnedPolicy(network, vocabulary).save(out / variant.replace(" ", "-"), card)


def fit(
    network: PolicyNetwork,
    looks: FirstLooks,
    steps: int,
    batch: int,
    rate: float,
    gold: GoldConfig,
    seed: int = 0,
    tick: Callable[[int, float], None] = lambda step, loss: None,
) -> None:
    """Train stage 1 on first looks with Adam, the learning rate falling to zero along a cosine.

    Args:
        network: Whose stage 1 is trained, in place.
        looks: On the network's device.
        steps: Updates.
        batch: First looks in each, drawn without replacement.
        rate: Learning rate.
        gold: How sure the gold distributions are.
        seed: Of the order.
        tick: Told the number of the update and its loss every 50 of them.
    """
    device = looks.points.device
    optimizer = torch.optim.Adam(network.stage1.parameters(), rate, fused=device.type == "cuda")
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    order = torch.Generator().manual_seed(seed)
    waiting = torch.empty(0, dtype=torch.int64)
    network.train()
    for step in range(steps):
        if len(waiting) < batch:
            waiting = torch.randperm(len(looks), generator=order)
        index, waiting = waiting[:batch], waiting[batch:]
        with precision(device):
            outcome = predict(network, looks[index.to(device)], gold)
            loss = cross_entropy(outcome.scores, outcome.observed, outcome.gold).sum(1).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step + 1 == steps:
            tick(step, loss.item())
    network.eval()


def tasks_of(dataset: Dataset, split: str, limit: int) -> list[Task]:
    """All instructions of a split, one and two segments, or the first few."""
    chosen = [entry for entry, _number in zip(dataset.instructions(split), range(limit), strict=False)]
    return [dataset.task(entry) for entry in chosen]


def said(variant: str, began: float) -> Callable[[int, float], None]:
    """Print the progress of training."""

    def tick(step: int, loss: float) -> None:
        if step % 500 == 0:
            print(f"{variant}: step {step}, loss {loss:.3f}, {time.monotonic() - began:.0f} s", flush=True)

    return tick


def figures(found: Assessment) -> dict:
    """Means over first looks; goal errors where most of the goal is in view."""
    seen = found.gold_unobserved < 0.5
    excess = (found.cross_entropy - found.gold_entropy).mean(0)
    hits = succeeded(found.goal_error[seen]).float().mean()
    gap = (found.unobserved - found.gold_unobserved).abs().mean()
    return {
        "KL trajectory, nats": round(float(excess[0]), 3),
        "KL goal, nats": round(float(excess[1]), 3),
        "goal in view, n": int(seen.sum()),
        "its median error, m": round(float(found.goal_error[seen].median()), 2),
        "within 0.47 m, %": round(100 * float(hits), 1),
        "mean error of p_oob": round(float(gap), 3),
    }


def reliability(found: Assessment) -> list[dict]:
    """Predicted beside true p_oob of the goal, in bins of the prediction."""
    place = (found.unobserved * BINS).long().clamp(0, BINS - 1)
    rows = []
    for number in range(BINS):
        chosen = place == number
        if chosen.any():
            predicted, true = found.unobserved[chosen].mean(), found.gold_unobserved[chosen].mean()
            error = 1.96 * float(found.gold_unobserved[chosen].std(correction=0)) / int(chosen.sum()) ** 0.5
            rows.append({"predicted": float(predicted), "true": float(true), "±": error, "n": int(chosen.sum())})
    return [{key: round(value, 4) for key, value in row.items()} for row in rows]


def print_row(file: IO[str], row: dict) -> None:
    """Write a line to the file and to standard output."""
    line = json.dumps(row, ensure_ascii=False)
    print(line, file=file, flush=True)
    print(line, flush=True)


def overfit(steps: int = 500, batch: int = 8, rate: float = 1e-3, seed: int = 0) -> None:
    """Check that stage 1 distinguishes four instructions from the same pose, and does not without reading them."""
    tasks = four_ways(seed)
    vocabulary = Vocabulary.of([task.instruction for task in tasks], min_count=1)
    looks = FirstLooks.of(tasks, vocabulary)
    torch.manual_seed(seed)
    network = PolicyNetwork(ModelConfig(), len(vocabulary))
    blind = excess_without_reading(network, looks)
    fit(network, looks, steps, batch, rate, GoldConfig(), seed, said("overfit", time.monotonic()))
    found = assess(network, looks, GoldConfig())
    excess = (found.cross_entropy - found.gold_entropy).mean(0)
    for number, distribution in enumerate(("trajectory", "goal")):
        row = {
            "distribution": distribution,
            "entropy of gold, nats": round(float(found.gold_entropy.mean(0)[number]), 3),
            "cross-entropy above it": round(float(excess[number]), 3),
            "least without reading": round(float(blind[number]), 3),
        }
        print(json.dumps(row, ensure_ascii=False), flush=True)


@torch.no_grad()
def excess_without_reading(network: PolicyNetwork, looks: FirstLooks) -> torch.Tensor:
    """[2] the least mean KL of a model that predicts the same for all four instructions.

    The mean of the four gold distributions attains it.
    """
    gold = predict(network, looks, GoldConfig()).gold
    joint = torch.cat([gold.cells.flatten(2), gold.unobserved[..., None]], dim=-1)  # [N, 2, 4097]
    mean = joint.unflatten(0, (-1, 4)).mean(1, keepdim=True).expand(-1, 4, -1, -1).flatten(0, 1)
    return (torch.special.xlogy(joint, joint) - torch.special.xlogy(joint, mean)).sum(-1).mean(0)


def four_ways(seed: int, places: int = 8) -> list[Task]:
    """Start poses in random cages, each with four landmarks to go to, which have different names."""
    rng = np.random.default_rng(seed)
    tasks = []
    for _place in range(places):
        layout = sample_layout("cage", rng)
        xy = rng.uniform(-1.8, 1.8, 2)
        while layout.inside(xy):
            xy = rng.uniform(-1.8, 1.8, 2)
        yaw = float(np.arctan2(-xy[1], -xy[0]) + rng.uniform(-0.6, 0.6))
        named = {entry.kind.nouns[0]: entry for entry in layout.landmarks}
        for noun, entry in list(named.items())[:4]:
            way = np.array([entry.x, entry.y]) - xy
            end = xy + way * max(1 - 0.45 / np.hypot(*way), 0.1)
            tasks.append(Task(f"go to the {noun}", layout, (float(xy[0]), float(xy[1])), yaw, np.stack([xy, end])))
    return tasks


def plot(file: Annotated[Path, tyro.conf.Positional], image: Annotated[Path, tyro.conf.Positional], /) -> None:
    """Draw predicted beside true p_oob of the goal."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    figure, axes = pyplot.subplots(figsize=(5.2, 5), dpi=150, layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=1, label="perfect")
    colours = {"field": "#0072B2", "cage": "#E69F00", "house": "#009E73"}
    markers = {"field": "o", "cage": "s", "house": "^"}
    for corpus, colour in colours.items():
        chosen = [row for row in rows if row["corpus"] == corpus and row["variant"] == "PVN2"]
        if chosen:
            x, y, error = ([row[key] for row in chosen] for key in ("predicted", "true", "±"))
            total = sum(row["n"] for row in chosen)
            label = f"{corpus} dev, n = {total:,}"
            axes.errorbar(x, y, error, color=colour, marker=markers[corpus], markersize=4, capsize=2, label=label)
    axes.set(xlabel="predicted p_oob of the goal", ylabel="share of the goal that was not in view")
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", title="Does it know what it has not seen?")
    axes.legend(frameon=False)
    figure.savefig(image)


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict({"train": train, "overfit": overfit, "plot": plot})
