"""How fast both processes learn, each alone and both on one device; `wordwing bench learn`."""

import multiprocessing
import os
import queue
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from wordwing.bench import rate_of, report, synchronize
from wordwing.devices import device_title, find_device, missing_compiler
from wordwing.errors import WordwingError
from wordwing.interrupts import blocked
from wordwing.learning.algorithm1 import Supervised
from wordwing.learning.algorithm2 import Reinforcement
from wordwing.learning.executions import ExecutionSet, initial_executions
from wordwing.learning.paraphrases import training_paraphrases
from wordwing.learning.recipes.config import RunConfig
from wordwing.learning.recipes.presets import RECIPES, changed, paper
from wordwing.learning.rewards import rewards
from wordwing.learning.training_data import DataConfig, TrainingData, load_training_data, open_datasets
from wordwing.model.policy import PolicyNetwork
from wordwing.pool import die_with

PAPER_CONTEXTS, WARM_CONTEXTS, PAPER_FLIGHTS = 16e6, 9.3e6, 400e3
"""What the authors trained on: contexts in all, those before Process B began, and flights."""

FLIGHTS = 402
"""Of made-up lab demonstrations, noise for images, which cost as much as any."""

SMALL = RunConfig(
    supervised=replace(paper().supervised, executions=4, cage_executions=2, discriminator_images=2),
    reinforcement=replace(paper().reinforcement, flights=16, worlds=8),
)
"""For the CPU, where only the order of magnitude is of interest."""

SCALING = {
    "cuda": (
        *(f"reinforcement.worlds={worlds}" for worlds in (64, 128, 256, 512)),
        *(f"supervised.executions={executions}" for executions in (48, 96, 192, 384)),
        *(f"model.stage1.lingunet.channels={channels}" for channels in (24, 48, 96)),
    ),
    "cpu": ("reinforcement.worlds=4", "supervised.executions=2", "model.stage1.lingunet.channels=24"),
}
"""Settings whose cost `--scaling` shows, one at a time, beside those of the recipe."""

WAIT = 600.0
"""Seconds that a process waits for the other one."""


@dataclass(frozen=True)
class LearnBenchmark:
    """What to measure."""

    device: str
    seconds: float
    compiled: bool
    corpus: str
    limit: int | None
    seed: int
    recipe: str = "paper"
    """Whose batches, on CUDA."""
    changed: str = ""
    """A setting that is changed, as in --set."""


def bench_scaling(plan: LearnBenchmark) -> None:
    """`bench_learn` with the recipe as it is, and with each of `SCALING`."""
    for setting in ("", *SCALING[find_device(plan.device).type]):
        bench_learn(replace(plan, changed=setting))


def bench_learn(plan: LearnBenchmark) -> None:
    """Print one JSON line for each figure; see `wordwing bench learn --help`."""
    device = find_device(plan.device)
    able = device.type == "cuda" and not missing_compiler()
    plan = replace(plan, device=str(device), compiled=plan.compiled and able)
    open_datasets(_data(plan))  # built here, where it is done once
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2, timeout=WAIT)
    results: Any = context.Queue()
    given = (plan, barrier, results, os.getpid())
    children = [context.Process(target=_child, args=(name, *given)) for name in ("a", "b")]
    with blocked():
        for child in children:
            child.start()
    figures: dict[str, dict[str, Any]] = {}
    try:
        while len(figures) < 2:
            if any(child.exitcode not in (None, 0) for child in children):
                raise WordwingError("a process that was measured has ended; its message is above")
            with suppress(queue.Empty):
                name, found = results.get(timeout=1)
                figures[name] = found
    finally:
        for child in children:
            if child.is_alive() and len(figures) < 2:
                child.kill()
            child.join()
    _report(figures["a"], figures["b"], device, plan)


def _data(plan: LearnBenchmark) -> DataConfig:
    return DataConfig(corpora=(plan.corpus,), limit=plan.limit, dev=1, seed=plan.seed)


def _report(a: dict[str, Any], b: dict[str, Any], device: torch.device, plan: LearnBenchmark) -> None:
    where = {"device": device_title(device, 1), "compiled": plan.compiled, "corpus": plan.corpus}
    where |= {} if plan.recipe == "paper" else {"recipe": plan.recipe}
    where |= {"changed": plan.changed} if plan.changed else {}
    # The socket of NVIDIA's MPS, through which both processes compute at the same time (docs/performance.md).
    socket = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps")) / "control"
    where |= {"mps": True} if device.type == "cuda" and socket.exists() else {}
    starting = max(a["starting"], b["starting"])
    warm = WARM_CONTEXTS / a["alone"]
    flying = PAPER_FLIGHTS * b["length"] / b["together"]
    joint = max(flying, (PAPER_CONTEXTS - WARM_CONTEXTS) / a["together"])
    budget = {"warm_up": round(warm / 60, 2), "contexts": PAPER_CONTEXTS, "flights": PAPER_FLIGHTS}
    figures: dict[str, tuple[float, dict[str, Any]]] = {
        "Process A alone, contexts/s": (a["alone"], {key: a[key] for key in ("contexts", "peak_gib")}),
        "Process B alone, environment steps/s": (b["alone"], {key: b[key] for key in ("flights", "peak_gib")}),
        "share of an iteration of B: fly": (b["fly"], {}),
        "share of an iteration of B: reward": (b["reward"], {}),
        "share of an iteration of B: learn": (b["learn"], {}),
        "both together, contexts/s": (a["together"], {}),
        "both together, environment steps/s": (b["together"], {}),
        "decisions of a flight": (b["length"], {}),
        "seconds to start and compile": (starting, {}),
        "the paper's budget, minutes": ((starting + warm + joint) / 60, budget),
    }
    for figure, (value, more) in figures.items():
        report(figure, round(value, 3), **more, **where)


def _child(name: str, plan: LearnBenchmark, barrier: Any, results: Any, parent: int) -> None:
    """One of the two processes: get ready, be measured alone, then together with the other."""
    die_with(parent)
    began = time.monotonic()
    device = torch.device(plan.device)
    torch.set_num_threads(1)  # on the CPU two processes with two threads each would be in each other's way
    config = RECIPES[plan.recipe]() if device.type == "cuda" else SMALL
    config = changed(config, [plan.changed] if plan.changed else [])
    data = load_training_data(_data(plan), device)
    torch.manual_seed(plan.seed)
    network = PolicyNetwork(config.model, len(data.vocabulary)).to(device)
    work: _WorkA | _WorkB
    work = _WorkA(network, data, config, plan) if name == "a" else _WorkB(network, data, config, plan)
    work()
    work()  # what is compiled may depend on how the first result lies in memory
    synchronize(device)
    found: dict[str, Any] = {"starting": time.monotonic() - began}
    for turn in ("a", "b", "both"):
        barrier.wait()
        if turn in (name, "both"):
            done: list[int] = []
            rate = rate_of(lambda: done.append(work()), plan.seconds, device, warm_up=0)  # noqa: B023
            found["together" if turn == "both" else "alone"] = rate * sum(done) / len(done)
            found |= work.more() if turn == name else {}
    found["peak_gib"] = round(torch.cuda.max_memory_allocated(device) / 2**30, 2) if device.type == "cuda" else None
    results.put((name, found))


class _WorkA:
    """Process A's updates; counts contexts."""

    def __init__(self, network: PolicyNetwork, data: TrainingData, config: RunConfig, plan: LearnBenchmark) -> None:
        executions = initial_executions(data, config.data)
        lab = _noise(data, executions) if "cage" in data.examples.corpora else None
        paraphrases = training_paraphrases(data, config.data, config.supervised.contexts.mirrored > 0)
        parts = data.examples, executions, lab, config.supervised
        self.learner = Supervised(network, *parts, 0, plan.compiled, paraphrases)

    def __call__(self) -> int:
        self.learner.update()
        return self.learner.contexts_per_update

    def more(self) -> dict[str, Any]:
        return {"contexts": self.learner.contexts_per_update}


class _WorkB:
    """Process B's iterations; counts decisions."""

    def __init__(self, network: PolicyNetwork, data: TrainingData, config: RunConfig, plan: LearnBenchmark) -> None:
        self.learner = Reinforcement(network, data.examples, config.reinforcement, 0, plan.compiled)
        self.device = data.examples.device

    def __call__(self) -> int:
        before = self.learner.decisions
        self.learner.iterate()
        return self.learner.decisions - before

    def more(self) -> dict[str, Any]:
        """What an iteration is made of."""
        learner = self.learner
        generator = torch.Generator(self.device).manual_seed(0)
        spent: dict[str, float] = {}

        def timed(part: str, work: Callable[[], Any]) -> Any:
            synchronize(self.device)
            began = time.monotonic()
            done = work()
            synchronize(self.device)
            spent[part] = time.monotonic() - began
            return done

        rollouts = timed("fly", lambda: learner.collector.collect(learner.choose(), generator))
        reward = timed("reward", lambda: rewards(rollouts, learner.config.reward))
        timed("learn", lambda: learner.ppo.update(learner.advantages(rollouts, reward), generator, 0.0))
        total = sum(spent.values())
        length = float(rollouts.length.float().mean())
        shares = {part: seconds / total for part, seconds in spent.items()}
        return {**shares, "length": length, "flights": len(rollouts.example)}


def _noise(data: TrainingData, executions: ExecutionSet) -> ExecutionSet:
    """Lab flights whose images are noise, along cage demonstrations."""
    examples = data.examples
    chosen = examples.of("cage")[:FLIGHTS]
    own = executions[chosen]
    count = int(own.lengths.sum())
    images = torch.randint(0, 256, (count, 72, 128, 3), dtype=torch.uint8, device=examples.device)
    return ExecutionSet(own.poses, own.lengths, example=chosen, images=images)
