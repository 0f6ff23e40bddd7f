"""A whole training run in one record: data, model, both processes and how long.

`recipes` has some that work. A run's folder keeps its record in `run.json`, so that it can be resumed and repeated.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from wordwing.learning.algorithm1 import SupervisedConfig
from wordwing.learning.algorithm2 import ReinforcementConfig
from wordwing.learning.cloning import CloningConfig
from wordwing.model.policy import ModelConfig


@dataclass(frozen=True)
class DataConfig:
    """What is learned from."""

    corpora: tuple[str, ...] = ("cage", "field")
    """Names of corpora, or folders of datasets."""
    segments: tuple[int, ...] = (1, 2)
    """How many segments instructions have."""
    limit: int | None = None
    """Only the first so many training instructions of each corpus."""
    heard: int = 2
    """How often a word must stand in training instructions to be known. Typing mistakes that are known as words are not
    repaired."""
    wordings: int = 1
    """Ways in which Process A hears each generated training instruction; what people wrote it hears as it is."""
    lab: Literal["all", "half", "tenth", "none"] = "all"
    """Which of the lab's demonstrations; without any, there is no discriminator either."""
    first: Literal["demonstrations", "standing"] = "demonstrations"
    """What D^S begins with: ORACLE's flights, or those of a policy that always stops."""
    dev: int = 100
    """Dev instructions of each corpus that are flown to choose the best policy."""
    seed: int = 0
    """Of the corpora."""


@dataclass(frozen=True)
class ScheduleConfig:
    """How long, and how often what is done."""

    warm_up: int = 1000
    """K_iter^B: updates of Process A before Process B begins."""
    cloned: int = 0
    """Updates in which stage 2 is cloned from ORACLE before Process B begins; the paper has none."""
    iterations: int = 20_000
    """Of Process B; with them training ends."""
    updates: int = 10_000
    """Of Process A in all, for its learning rate's schedule; it goes on as long as B does."""
    updates_each: int = 1
    """Of Process A for each iteration of B, where one process does both."""
    send_every: int = 50
    """K_iter^SL: updates of A after which B gets new parameters."""
    minutes: float | None = None
    """Training also ends after this long, and its schedules are as long."""
    examine_every: int = 500
    """Iterations of B after which dev instructions are flown."""
    look_every: int = 500
    """Updates of A after which dev goals are predicted from the first picture, with the text and without."""
    log_every: int = 20
    """Updates and iterations between two lines of the log."""
    save_seconds: float = 120.0
    """Between two checkpoints."""


@dataclass(frozen=True)
class RunConfig:
    """All that decides what a run learns."""

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    supervised: SupervisedConfig = field(default_factory=SupervisedConfig)
    reinforcement: ReinforcementConfig = field(default_factory=ReinforcementConfig)
    cloning: CloningConfig = field(default_factory=CloningConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    seed: int = 0
    start: str | None = None
    """A policy to go on from, by its name or folder: its weights and its words."""

    def to_json(self) -> dict[str, Any]:
        """As in `run.json`."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain
