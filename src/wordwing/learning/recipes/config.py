"""A whole training run in one record: data, model, both processes and how long.

`presets` has some that work. A run's folder keeps its record in `run.json`, so that it can be resumed and repeated.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Annotated, Any

from pydantic import Field

from wordwing.errors import WordwingError
from wordwing.learning.cloning import CloningConfig
from wordwing.learning.contexts import ContextConfig
from wordwing.learning.losses import LossConfig
from wordwing.learning.ppo import PPOConfig
from wordwing.learning.recipes.limits import BatchSize, CountOrZero, Positive, Rate, Share
from wordwing.learning.rewards import RewardConfig
from wordwing.learning.training_data import DataConfig
from wordwing.model.checkpoint import wrong_switches
from wordwing.model.discriminator import DiscriminatorConfig
from wordwing.model.policy import ModelConfig

RENAMED = {
    "data.heard": "data.min_word_count",
    "supervised.contexts.pictures": "supervised.contexts.images",
    "supervised.discriminator_pictures": "supervised.discriminator_images",
    "supervised.late_pictures": "supervised.late_images",
    "reinforcement.unlike": "reinforcement.dynamics_randomization",
    "reinforcement.ppo.gae": "reinforcement.ppo.gae_lambda",
    "schedule.examine_every": "schedule.evaluate_every",
    "data.first": "data.initial_executions",
    "supervised.common": "supervised.cage_executions",
    "supervised.contexts.others": "supervised.contexts.foreign_motions",
    "supervised.contexts.forgotten": "supervised.contexts.word_dropout",
    "schedule.cloned": "schedule.cloning_updates",
    "schedule.updates_each": "schedule.updates_per_iteration",
    "schedule.look_every": "schedule.first_look_every",
}
"""Settings that version 0.1 called by other names, which are still understood."""


@dataclass(frozen=True)
class SupervisedConfig:
    """How Process A learns."""

    executions: BatchSize = 96
    """In a batch, of any corpus in `sim`; the paper has one execution of each domain."""
    cage_executions: BatchSize = 16
    """In a batch, of the cage in `sim`, and as many of the lab."""
    contexts: ContextConfig = field(default_factory=ContextConfig)
    losses: LossConfig = field(default_factory=LossConfig)
    discriminator: DiscriminatorConfig = field(default_factory=DiscriminatorConfig)
    discriminator_updates: Annotated[int, Field(ge=1, le=1000)] = 5
    """K_discr: updates of the discriminator for each of the model."""
    discriminator_images: BatchSize = 32
    """Of each domain, in one of its updates."""
    discriminator_rate: Rate = 1e-3
    learning_rate: Rate = 1e-3
    final_rate: Share = 1.0
    """Factor on both rates that a cosine reaches at the end; the paper's rate stays."""
    weight_decay: Share = 1e-6
    max_gradient_norm: Positive = 10.0
    """Far above what is usual; the paper has none."""
    average: Share = 0.0
    """Decay of the exponential average of stage 1's weights, which then is what Process B gets and what is kept; 0, as
    in the paper, for the weights themselves."""
    late_images: Annotated[int, Field(ge=0, le=1000)] = 0
    """Images of each execution in the last quarter of the training, of as many fewer executions, so that maps are
    learned from that have been updated as often as in flight; 0 for as many as before."""


@dataclass(frozen=True)
class ReinforcementConfig:
    """How Process B learns."""

    flights: Annotated[int, Field(ge=1, le=1_000_000)] = 20
    """N of the paper: rollouts in an iteration."""
    worlds: Annotated[int, Field(ge=1, le=100_000)] = 20
    """That are flown in at once."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    gold_distance: Positive | None = None
    """Flights end farther than this from the demonstrated path, metres: 2.0 in the authors' software, which makes the
    demonstration part of the reward; by default nothing about it enters."""
    dynamics_randomization: Share = 0.0
    """r: in each flight the parameters by which the drone answers setpoints are multiplied by factors from 1 / (1 + r)
    to 1 + r. A policy that has flown many drones does not count on how one of them brakes."""


@dataclass(frozen=True)
class ScheduleConfig:
    """How long, and how often what is done."""

    warm_up: CountOrZero = 1000
    """K_iter^B: updates of Process A before Process B begins."""
    cloning_updates: CountOrZero = 0
    """Updates in which stage 2 is cloned from ORACLE before Process B begins; the paper has none."""
    iterations: int = 20_000
    """Of Process B; with them training ends."""
    updates: int = 10_000
    """Of Process A in all, for its learning rate's schedule; it goes on as long as B does."""
    updates_per_iteration: CountOrZero = 1
    """Of Process A for each iteration of B, where one process does both."""
    send_every: int = 50
    """K_iter^SL: updates of A after which B gets new parameters."""
    minutes: Positive | None = None
    """Training also ends after this long, and its schedules are as long."""
    evaluate_every: int = 500
    """Iterations of B after which dev instructions are flown."""
    first_look_every: int = 500
    """Updates of A after which dev goals are predicted from the first image, with the text and without."""
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
    seed: CountOrZero = 0
    start: str | None = None
    """A policy to start from, by its name or folder: its weights and its vocabulary."""

    def to_json(self) -> dict[str, Any]:
        """As in `run.json`."""
        return json.loads(json.dumps(asdict(self)))

    @staticmethod
    def renamed(found: dict[str, Any]) -> dict[str, Any]:
        """The settings of an older version's `run.json` by their new names."""
        found = json.loads(json.dumps(found))
        for old, new in RENAMED.items():
            *groups, name = old.split(".")
            record = found
            for group in groups:
                record = record.get(group, {})
            if name in record:
                record[new.rpartition(".")[2]] = record.pop(name)
        return found


def settings_of(record: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All settings in a record, by their dotted names."""
    for entry in fields(record):
        value = getattr(record, entry.name)
        if is_dataclass(value):
            yield from settings_of(value, f"{prefix}{entry.name}.")
        else:
            yield f"{prefix}{entry.name}", value


def check_settings(config: RunConfig) -> None:
    """Raise a `WordwingError` about the first settings that do not go together."""
    contexts, stage2 = config.supervised.contexts, config.model.stage2
    if contexts.foreign_motions + contexts.look_arounds > 1:
        raise WordwingError("--set: supervised.contexts.foreign_motions and look_arounds are more than 1 together")
    given, corpora = len(contexts.shares), len(config.data.corpora)
    if given not in (0, corpora):
        raise WordwingError(
            f"--set: supervised.contexts.shares has {given} and data.corpora {corpora}; there must be one share for "
            "each corpus, or none at all"
        )
    if config.data.initial_executions == "standing" and config.schedule.cloning_updates:
        raise WordwingError(
            "drones that stand (data.initial_executions=standing, from-standing) show nothing to clone: "
            "schedule.cloning_updates must be 0, and train bc needs demonstrations"
        )
    if stage2.history and config.schedule.cloning_updates:
        raise WordwingError(
            "--set: a stage 2 with model.stage2.history cannot be cloned, because cloning shows it single poses; "
            "schedule.cloning_updates must be 0"
        )
    if config.model.stage1.text.vectors and config.data.tokenizer == 1:
        raise WordwingError("--set: model.stage1.text.vectors needs data.tokenizer=2")
    if stage2.first_deviation <= stage2.min_deviation:
        raise WordwingError("--set: model.stage2.first_deviation must be above model.stage2.min_deviation")
    if wrong := wrong_switches(config.model):
        raise WordwingError(f"--set: {wrong}")
