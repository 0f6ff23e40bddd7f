"""What is lost if a word was never heard in training, with the table of word vectors and without.

Usage: python experiments/held_out_words/held_out_words.py OUT DATASET… [--seeds N…] [--minutes M] [--device cuda]

Stage 1 is trained by the recipe `gpu`, with half of its batch, four times for each seed: with training instructions
that have none of twelve words and with as many of any kind, each with plain embeddings and with the table
(`model.stage1.text.vectors`). It is evaluated on dev instructions that have one of the words, and on others. A line for
each kind of run and look is printed. OUT gets a file for each run; existing runs are skipped, so the same command
resumes after an interruption.
"""

import json
import multiprocessing
import re
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
import tyro
from numpy.typing import NDArray

from wordwing.data.dataset import Dataset
from wordwing.data.schema import Instruction
from wordwing.execution.metrics import succeeded
from wordwing.language.tokenizer import tokenize
from wordwing.learning.algorithm1 import Supervised
from wordwing.learning.evaluator import LOOKS_OF, FirstLooks, assess
from wordwing.learning.executions import initial_executions
from wordwing.learning.losses import GoldConfig
from wordwing.learning.paraphrases import training_paraphrases
from wordwing.learning.recipes.config import RunConfig
from wordwing.learning.recipes.initial import new_network
from wordwing.learning.recipes.presets import changed, gpu
from wordwing.learning.training_data import (
    DataConfig,
    TrainingData,
    example_set,
    open_datasets,
    read_instructions,
    vocabulary_of,
)
from wordwing.model.checkpoint import save_network
from wordwing.model.policy import PolicyNetwork

HELD_OUT = {
    "noun": r"(couch|refrigerator|boulder|gravestone|airplane|crate)(e?s)?",
    "verb": r"(proceed|veer|swing)(s|ing|ed)?",
    "preposition": r"alongside|beside|past",
}
"""Words that are left out, in all their forms. Others of the same meaning stay: sofa, fridge, rock, go, turn, next."""

BUDGET = (
    "data.wordings=1",  # the writer would use the words that are held out
    "data.lab=none",
    "data.tokenizer=2",
    "supervised.average=0.998",
    "schedule.minutes=none",
)
"""Settings of every run."""


def main(
    out: Annotated[Path, tyro.conf.Positional],
    data: Annotated[list[Path], tyro.conf.Positional],
    /,
    seeds: list[int] = [0],  # noqa: B006
    minutes: float = 4.0,
    updates: int = 3000,
    executions: int = 96,
    count: int = 2000,
    lanes: int = 1,
    also: list[str] = [],  # noqa: B006
    device: str = "",
) -> None:
    """Train and evaluate all runs.

    Args:
        out: Folder of the runs.
        data: Datasets.
        seeds: Of all random numbers.
        minutes: Time for the training of each run, from its second update on.
        updates: Of each run, if there is time.
        executions: In a batch.
        count: Most dev instructions with one of the words, and most without.
        lanes: How many runs train at a time.
        also: Further settings of all runs.
        device: "cpu" or "cuda"; by default CUDA where there is one.
    """
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    budget = [*BUDGET, f"data.corpora={','.join(map(str, data))}", f"supervised.executions={executions}", *also]
    out.mkdir(parents=True, exist_ok=True)
    jobs = [job for job in product((False, True), (False, True), seeds) if not file_of(out, *job).exists()]
    with ProcessPoolExecutor(lanes, multiprocessing.get_context("spawn")) as pool:
        runs = [pool.submit(run, out, *job, budget, minutes, updates, count, where) for job in jobs]
        for done in as_completed(runs):
            done.result()
    print_lines(out, seeds)


def file_of(out: Path, held_out: bool, vectors: bool, seed: int) -> Path:
    """Where the values of a run are."""
    return out / f"{'held-out' if held_out else 'heard'}-{'vectors' if vectors else 'plain'}-{seed}.npz"


def run(
    out: Path,
    held_out: bool,
    vectors: bool,
    seed: int,
    budget: list[str],
    minutes: float,
    updates: int,
    count: int,
    where: str,
) -> None:
    """Train and evaluate once."""
    torch.set_num_threads(1)
    device, file = torch.device(where), file_of(out, held_out, vectors, seed)
    config = replace(changed(gpu(), [*budget, f"model.stage1.text.vectors={str(vectors).lower()}"]), seed=seed)
    data = training_data(config.data, device, held_out)
    network, seconds = trained(config, data, minutes, updates)
    print(f"{file.stem}: {sum(map(len, data.training))} instructions, {seconds:.0f} s", flush=True)
    save_network(
        file.with_suffix(""), network, data.vocabulary, "# Stage 1 alone; stage 2 is untrained\n", torch.float16
    )
    np.savez_compressed(file, **evaluated(network, data, count, device))  # type: ignore[arg-type]


def training_data(config: DataConfig, device: torch.device, held_out: bool) -> TrainingData:
    """What is learned from: instructions without a word that is held out, or as many of any kind."""
    datasets = open_datasets(config)
    training = [read_instructions(dataset, "train", config.limit, config.segments) for dataset in datasets]
    without = [[one for one in part if not kinds(one)] for part in training]
    rng = np.random.default_rng(0)
    some = [sorted(rng.permutation(len(part))[: len(kept)]) for part, kept in zip(training, without, strict=True)]
    training = without if held_out else [[part[i] for i in order] for part, order in zip(training, some, strict=True)]
    vocabulary = vocabulary_of(training, config.min_word_count, config.tokenizer)
    assert not held_out or not any(map(kind_of, vocabulary.words))
    examples = example_set(datasets, training, vocabulary, device)
    return TrainingData(datasets, training, vocabulary, examples, [])


def say(sentence: str) -> None:
    """Show how far a run is; lines go to standard output."""
    print(sentence, file=sys.stderr, flush=True)


def kind_of(word: str) -> str:
    """What kind of a held-out word this is; empty for any other."""
    return next((kind for kind, words in HELD_OUT.items() if re.fullmatch(words, word)), "")


def kinds(instruction: Instruction) -> set[str]:
    """Kinds of the held-out words of an instruction."""
    return {kind_of(word) for word in tokenize(instruction.segment.instruction)} - {""}


def trained(config: RunConfig, data: TrainingData, minutes: float, updates: int) -> tuple[PolicyNetwork, float]:
    """A network whose stage 1 has learned, the average of its weights, and the seconds that it took."""
    network = new_network(config, data, data.examples.device)
    executions = initial_executions(data, config.data)
    paraphrases = training_paraphrases(data, config.data, config.supervised.contexts.mirrored > 0)
    torch.manual_seed(config.seed + 1)
    compiled = data.examples.device.type == "cuda"
    parts = data.examples, executions, None, config.supervised, config.seed, compiled, paraphrases
    teacher = Supervised(network, *parts)
    teacher.update()  # compiles
    began, progress = time.monotonic(), 0.0
    while progress < 1:
        metrics = teacher.update(progress)
        if teacher.updates % 250 == 0:
            say(f"update {teacher.updates}: loss {float(metrics['supervised/loss']):.2f}")
        progress = max(teacher.updates / updates, (time.monotonic() - began) / 60 / minutes)
    return teacher.averaged.eval(), time.monotonic() - began


def evaluated(network: PolicyNetwork, data: TrainingData, count: int, device: torch.device) -> dict[str, NDArray[Any]]:
    """For each look goal error, share of the goal out of view and KL of the goal of dev instructions, [3, N].

    And for each kind of words whether an instruction has some, [N] bool.
    """
    having: list[tuple[Dataset, Instruction]] = []
    others: list[tuple[Dataset, Instruction]] = []
    for dataset in data.datasets:
        for one in dataset.instructions("dev", (1, 2)):
            (having if kinds(one) else others).append((dataset, one))
    rng = np.random.default_rng(0)
    asked = [part[number] for part in (having, others) for number in sorted(rng.permutation(len(part))[:count])]
    tasks = [dataset.task(one) for dataset, one in asked]
    values: dict[str, NDArray[Any]] = {
        kind: np.array([kind in kinds(one) for _dataset, one in asked], bool) for kind in HELD_OUT
    }
    values["none"] = ~np.any(list(values.values()), axis=0)
    for look, headings in LOOKS_OF.items():
        found = assess(network, FirstLooks.of(tasks, data.vocabulary, device, headings), GoldConfig())
        excess = (found.cross_entropy - found.gold_entropy)[:, 1]
        values[look] = torch.stack([found.goal_error, found.gold_unobserved, excess]).numpy().astype(np.float32)
    return values


def print_lines(out: Path, seeds: list[int]) -> None:
    """A line for each kind of run and look: means over seeds."""
    for look, held_out, vectors in product(LOOKS_OF, (False, True), (False, True)):
        runs = [dict(np.load(file_of(out, held_out, vectors, seed))) for seed in seeds]
        row: dict[str, object] = {
            "look": look.replace("_", " "),
            "words in training": "held out" if held_out else "heard",
            "embedding": "with the table" if vectors else "plain",
            "seeds": len(seeds),
        }
        for kind in (*HELD_OUT, "none"):
            chosen = runs[0][kind]
            error, unobserved, excess = np.stack([values[look][:, chosen] for values in runs]).swapaxes(0, 1)
            right = succeeded(error)[unobserved < 0.5]
            row[f"{kind}: instructions"] = int(chosen.sum())
            row[f"{kind}: right, %"] = round(100 * float(right.mean()), 1) if len(right) else None
            row[f"{kind}: KL of the goal"] = round(float(excess.mean()), 2) if chosen.any() else None
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    tyro.cli(main)
