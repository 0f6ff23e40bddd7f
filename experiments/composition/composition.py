"""What makes stage 1 understand composition and order: variants with the same small budget.

Usage: python experiments/composition/composition.py train OUT DATASET… [--vary NAME=VALUE[+…]…] [--seeds N…]
       python experiments/composition/composition.py table OUT DATASET…     JSON lines of all runs

`train` trains stage 1 by the recipe `gpu` with half of its batch, once for each variation and seed, several at a time
on one GPU, and evaluates it on dev instructions after the first image and after a look around. OUT gets a policy and
the predictions of each run. Existing runs are skipped, so the same command resumes after an interruption.
"""

import json
import math
import multiprocessing
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro

from wordwing.data.dataset import Dataset
from wordwing.data.schema import Instruction
from wordwing.evaluation.report.bootstrap import Resampling
from wordwing.execution.metrics import succeeded
from wordwing.learning.algorithm1 import Supervised
from wordwing.learning.evaluator import FirstLooks, assess
from wordwing.learning.executions import initial_executions, lab_executions
from wordwing.learning.losses import GoldConfig
from wordwing.learning.paraphrases import training_paraphrases
from wordwing.learning.recipes.config import RunConfig
from wordwing.learning.recipes.initial import new_network
from wordwing.learning.recipes.presets import changed, gpu
from wordwing.learning.training_data import load_training_data
from wordwing.model.checkpoint import save_network
from wordwing.model.policy import PolicyNetwork

BUDGET = (
    "data.wordings=4",
    "supervised.executions=128",
    "supervised.contexts.shares=0.25,0.75",
    "supervised.average=0.998",
    "schedule.minutes=none",
)
"""Settings of every run. The average does not affect training; the last weights and their average are evaluated."""

LAB = "supervised.executions=96,supervised.cage_executions=16"
"""Settings of a run with lab data: the same number of executions in total."""

LOOKS = {"first look": 1, "look around": 6, "four looks around": 24}
"""Images of the surroundings taken at the start."""

NOTHING = "nothing"
"""Name of the baseline."""

ANSWERS = "answers.npz"


def train(
    out: Annotated[Path, tyro.conf.Positional],
    data: Annotated[list[Path], tyro.conf.Positional],
    /,
    vary: list[str] = [NOTHING],  # noqa: B006
    once: list[str] = [],  # noqa: B006
    seeds: list[int] = [0],  # noqa: B006
    updates: int = 1500,
    lanes: int = 3,
    count: int = 1000,
    minutes: float = math.inf,
    also: list[str] = [],  # noqa: B006
    device: str = "",
) -> None:
    """Train each variation with each seed.

    Args:
        out: Folder of policies and answers.
        data: Datasets; one of them the cage, with the lab's demonstrations.
        vary: What is changed in each run, settings as in --set with + between them; "lab" for a run with lab data.
        once: The same for runs with the first seed only.
        seeds: Of all random numbers.
        updates: Updates of each run.
        lanes: How many runs train at a time.
        count: Most dev instructions of each dataset and number of segments.
        minutes: Runs that take longer are abandoned.
        also: Further settings of all runs.
        device: "cpu" or "cuda"; by default CUDA where there is one.
    """
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    jobs = [(variation, seed) for seed in seeds for variation in (vary + once if seed == seeds[0] else vary)]
    jobs = [job for job in jobs if not (folder_of(out, *job) / ANSWERS).exists()]
    config = changed(gpu(), [f"data.corpora={','.join(map(str, data))}", *BUDGET, *also])
    given = (config, out, updates, count, time.time() + 60 * minutes, where)
    lanes = min(lanes, max(len(jobs), 1))
    with ProcessPoolExecutor(lanes, multiprocessing.get_context("spawn"), Lane.begin, given) as pool:
        for done in as_completed([pool.submit(Lane.work, job) for job in jobs]):
            done.result()


def folder_of(out: Path, variation: str, seed: int) -> Path:
    """Folder of a run."""
    return out / f"{variation.replace('=', '-')}-seed-{seed}"


class Lane:
    """A process that trains one variation after another."""

    here: "Lane"

    def __init__(self, config: RunConfig, out: Path, updates: int, count: int, deadline: float, device: str) -> None:
        """Load what all runs have in common."""
        began = time.monotonic()
        torch.set_num_threads(1)
        self.config, self.out, self.updates, self.deadline = config, out, updates, deadline
        self.device = torch.device(device)
        self.data = load_training_data(config.data, self.device)
        self.executions = initial_executions(self.data, config.data)
        self.lab = lab_executions(self.data, config.data)  # for those runs that have it
        self.paraphrases = training_paraphrases(self.data, config.data, mirrored=True)
        self.looks: dict[tuple[str, str], FirstLooks] = {}
        for dataset in self.data.datasets:
            for group, instructions in groups(dataset, count):
                tasks = [dataset.task(one) for one in instructions]
                for look, headings in LOOKS.items():
                    self.looks[group, look] = FirstLooks.of(tasks, self.data.vocabulary, self.device, headings)
        print(f"ready after {time.monotonic() - began:.0f} s", flush=True)

    @staticmethod
    def begin(*given: Any) -> None:
        """Load in a new process."""
        Lane.here = Lane(*given)

    @staticmethod
    def work(job: tuple[str, int]) -> None:
        """Train one; an exception does not end the others."""
        try:
            Lane.here.train(*job)
        except Exception:
            print(f"{job}: {traceback.format_exc()}", flush=True)

    def train(self, variation: str, seed: int) -> None:
        """Train one variation; nothing is saved if time runs out."""
        began = time.monotonic()
        torch.compiler.reset()  # else what was compiled for earlier runs would be kept, and counted
        changes = [one for one in variation.split("+") if one not in (NOTHING, "lab")]
        lab = self.lab if "lab" in variation.split("+") else None
        config = replace(changed(self.config, [*(LAB.split(",") if lab else []), *changes]), seed=seed)
        network = new_network(config, self.data, self.device)
        torch.manual_seed(seed + 1)
        parts = self.data.examples, self.executions, lab, config.supervised
        teacher = Supervised(network, *parts, seed, self.device.type == "cuda", self.paraphrases)
        answers: dict[str, np.ndarray] = {}
        for update in range(self.updates):
            figures = teacher.update(update / self.updates)
            if update % 50 == 1 and time.time() > self.deadline:
                print(f"{variation} {seed}: given up at update {update}", flush=True)
                return
            if update % 300 == 50:
                print(f"{variation} {seed}: at update {update} after {time.monotonic() - began:.0f} s", flush=True)
            if update + 1 in (self.updates // 2, self.updates):
                end = update + 1 == self.updates
                loss = float(figures["supervised/goal"])
                for weights, given in (("last", network), ("average", teacher.averaged)):
                    wanted = list(LOOKS) if end and weights == "average" else ["look around"]
                    answers |= self.asked(given, f"{'end' if end else 'half'}/{weights}", wanted)
        seconds = time.monotonic() - began
        about = {"changed": variation, "seed": seed, "updates": self.updates, "seconds": seconds, "loss": loss}
        folder = folder_of(self.out, variation, seed)
        card = f"# {variation}, seed {seed}\n\nStage 1 alone; stage 2 is untrained. Made by experiments/composition.\n"
        save_network(folder / "policy", teacher.averaged, self.data.vocabulary, card, torch.float16)
        (folder / "run.json").write_text(json.dumps(about))
        np.savez_compressed(folder / ANSWERS, **answers)  # type: ignore[arg-type]
        right = {
            name.removeprefix("end/average/look around/"): f"{100 * succeeded(values[0]).mean():.1f}"
            for name, values in answers.items()
            if name.startswith("end/average/look around/")
        }
        print(f"{variation} {seed}: {seconds:.0f} s, loss {loss:.2f}, {right}", flush=True)

    def asked(self, network: PolicyNetwork, prefix: str, wanted: list[str]) -> dict[str, np.ndarray]:
        """[4, N] goal error, share of the goal out of view, excess cross-entropies of trajectory and goal."""
        network.eval()
        found = {}
        for (group, look), looks in self.looks.items():
            if look in wanted:
                one = assess(network, looks, GoldConfig())
                excess = (one.cross_entropy - one.gold_entropy).unbind(1)
                values = torch.stack([one.goal_error, one.gold_unobserved, *excess])
                found[f"{prefix}/{look}/{group}"] = values.numpy().astype(np.float32)
        return found


def groups(dataset: Dataset, count: int) -> Iterator[tuple[str, list[Instruction]]]:
    """At most `count` instructions of each dev split and number of segments, by name."""
    for split in dataset.splits:
        if split.startswith("dev"):
            for segments in (1, 2):
                name = f"{dataset.name}{split.removeprefix('dev')} {segments}"
                yield name, chosen(dataset, segments, count, split=split)


def chosen(dataset: Dataset, segments: int, count: int, seed: int = 0, split: str = "dev") -> list[Instruction]:
    """At most `count` instructions of a split, always the same."""
    found = list(dataset.instructions(split, (segments,)))
    order = np.random.default_rng(seed).permutation(len(found))[:count]
    return [found[number] for number in sorted(order)]


def table(
    out: Annotated[Path, tyro.conf.Positional],
    data: Annotated[list[Path], tyro.conf.Positional],
    /,
    asked: list[str] = ["end/average/look around"],  # noqa: B006
    names: list[str] = [],  # noqa: B006
    baseline: str = NOTHING,
    count: int = 1000,
    long: bool = False,
) -> None:
    """Print a line for each variation: means over seeds, with the difference from the baseline.

    Intervals are over layouts, of the mean over seeds.

    Args:
        out: Folder of the runs.
        data: The datasets of the evaluation.
        asked: When, which weights, and after which look, as in the file of predictions; a line for each.
        names: Only these variations.
        baseline: What variations are compared with.
        count: As in `train`.
        long: A line for each group of instructions, too.
    """
    runs: dict[str, dict[int, dict[str, np.ndarray]]] = {}
    for file in sorted(out.glob(f"*/{ANSWERS}")):
        about = json.loads((file.parent / "run.json").read_text())
        runs.setdefault(about["changed"], {})[about["seed"]] = dict(np.load(file))
    homes = {
        group: [one.layout for one in instructions]
        for dataset in map(Dataset, data)
        for group, instructions in groups(dataset, count)
    }
    for variation in sorted(runs, key=lambda name: (name != baseline, len(name), name)):
        for key in asked if variation in (names or runs) else []:
            given: dict[str, object] = {"changed": variation if variation == NOTHING else f"`{variation}`"}
            given["seeds"] = len(runs[variation])
            if len(asked) > 1:
                given["asked"] = key
            row = dict(given)
            rows: dict[str, dict[str, object]] = {}
            for group, layouts in homes.items():
                found = dict(cells(runs[variation], runs[baseline], f"{key}/{group}", layouts))
                rows[group] = {"instructions": group, **found}
                row |= {f"{group}: {name}": cell for name, cell in found.items()}
            for line in [{**given, **part} for part in rows.values()] if long else [row]:
                print(json.dumps(line, ensure_ascii=False))


def cells(
    mine: dict[int, dict[str, np.ndarray]],
    base: dict[int, dict[str, np.ndarray]],
    key: str,
    layouts: list[str],
) -> Iterator[tuple[str, str]]:
    """The cells of one group of instructions: right goals and KL, each with the difference from the baseline."""
    resampling = Resampling(layouts)
    means = []
    for part in (mine, base):
        values = np.stack([answers[key] for answers in part.values()]).astype(float)  # [seeds, 4, N]
        seen = values[:, 1] < 0.5
        right = np.where(seen, succeeded(values[:, 0]), np.nan)
        means.append((100 * right.mean(0), values[:, 2].mean(0), values[:, 3].mean(0)))
    names = ("right, %", "KL of the trajectory", "KL of the goal")
    for name, ours, theirs in zip(names, *means, strict=True):
        digits = 1 if "%" in name else 2
        found, change = resampling.interval(ours), resampling.difference(ours, theirs)
        text = f"{found.mean:.{digits}f}"
        if mine is not base:
            text += f" ({change.low:+.{digits}f} to {change.high:+.{digits}f})"
        yield name, text


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict({"train": train, "table": table})
