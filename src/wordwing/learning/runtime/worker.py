"""What both processes of a run have in common: they measure time and speed, log, save and resume."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from wordwing.learning.runtime.checkpoints import (
    Tensors,
    flatten_optimizer,
    module_tensors,
    restore_modules,
    restore_optimizer,
)
from wordwing.learning.runtime.logs import MetricLog
from wordwing.learning.runtime.messages import Link
from wordwing.learning.runtime.updates import SkippedUpdates

RENAMED = {"heard": "stage1_version", "began": "warm_up_seconds", "examined": "evaluated", "marks": "dev_metrics"}
"""Counters that states of version 0.1 have under other names."""


@dataclass(frozen=True)
class RunContext:
    """Where a process works."""

    folder: Path
    device: torch.device
    link: Link
    compiled: bool = False
    say: Callable[[str], None] = lambda sentence: None
    command: str = "wordwing train sureal"
    """As it was typed."""
    interruptible: Callable[[], AbstractContextManager[None]] = nullcontext
    """Around work that may be interrupted, because it changes nothing that is saved."""


class Worker(ABC):
    """One process of a run; what it learns is its subclass's business."""

    name: str
    """Of its log's folder: "a" or "b"."""
    modules: Mapping[str, nn.Module]
    """All that are saved, by name."""
    optimizers: Mapping[str, Optimizer]
    """All of them, by name."""

    def __init__(self, context: RunContext) -> None:
        self.context = context
        self.skipped = SkippedUpdates(context.device)
        self.metrics: dict[str, float] = {}
        """The newest ones, by name."""
        self.rate = 0.0
        """Samples a second, between the last two measurements."""
        self._started, self._earlier_seconds = time.monotonic(), 0.0
        self._measured = self._started, 0.0
        self._log: MetricLog | None = None
        self._resumed_at = -1

    @abstractmethod
    def step(self) -> None:
        """Do the next piece of work; everything can be saved between two pieces."""

    @abstractmethod
    def status(self) -> dict[str, Any]:
        """What the display shows."""

    @property
    @abstractmethod
    def steps(self) -> int:
        """Steps by which the log counts."""

    @property
    @abstractmethod
    def samples(self) -> int:
        """What its speed is counted in."""

    @abstractmethod
    def counters(self) -> dict[str, Any]:
        """What else is saved, as JSON."""

    @abstractmethod
    def restore_counters(self, counters: Mapping[str, Any], tensors: Tensors) -> None:
        """Take back what `counters` and `extra_tensors` gave."""

    def extra_tensors(self) -> Tensors:
        """Tensors that are saved and are no module's."""
        return {}

    @property
    def seconds(self) -> float:
        """How long it has worked, earlier sessions of the run included."""
        return self._earlier_seconds + time.monotonic() - self._started

    @property
    def log(self) -> MetricLog:
        """Opened when the first line is written; lines later than the checkpoint that it resumed from are cut off."""
        if self._log is None:
            self._log = MetricLog(self.context.folder / f"log-{self.name}", self._resumed_at)
        return self._log

    def log_metrics(self, metrics: Mapping[str, float | Tensor]) -> None:
        """Log metrics at this step, and keep them for the display."""
        self.metrics |= self.log.scalars({**metrics, "charts/minutes": self.seconds / 60}, self.steps)

    def measure_rate(self) -> float:
        """Samples a second since this was last called."""
        now, (then, samples) = time.monotonic(), self._measured
        if now > then:
            self.rate = (self.samples - samples) / (now - then)
        self._measured = now, self.samples
        return self.rate

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """All that a checkpoint holds: tensors, and the rest as JSON."""
        tensors = module_tensors(self.modules) | self.extra_tensors()
        for name, optimizer in self.optimizers.items():
            tensors |= flatten_optimizer(optimizer, f"optimiser-{name}")
        return tensors, {**self.counters(), "skipped": float(self.skipped.total), "seconds": self.seconds}

    def restore(self, tensors: Tensors, counters: Mapping[str, Any]) -> None:
        """Resume from what `state` gave."""
        counters = {RENAMED.get(name, name): value for name, value in counters.items()}
        restore_modules(self.modules, tensors)
        for name, optimizer in self.optimizers.items():
            restore_optimizer(optimizer, tensors, f"optimiser-{name}")
        self.restore_counters(counters, tensors)
        self.skipped.total.fill_(counters["skipped"])
        self._started, self._earlier_seconds = time.monotonic(), counters["seconds"]
        self._measured = self._started, self.samples
        self._resumed_at = self.steps or -1
