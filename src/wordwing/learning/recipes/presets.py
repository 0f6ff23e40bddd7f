"""Training runs that work, and switches that make others of them (paper: Results, ablations)."""

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import Field

from wordwing.errors import WordwingError, did_you_mean
from wordwing.learning.contexts import ContextConfig
from wordwing.learning.ppo import PPOConfig
from wordwing.learning.recipes.config import (
    RENAMED,
    ReinforcementConfig,
    RunConfig,
    ScheduleConfig,
    SupervisedConfig,
    check_settings,
    settings_of,
)
from wordwing.learning.recipes.limits import Count, NonNegative
from wordwing.learning.training_data import DataConfig
from wordwing.model.checkpoint import RANGES
from wordwing.model.lingunet import LingUNetConfig
from wordwing.model.policy import ModelConfig
from wordwing.model.stage1 import Stage1Config
from wordwing.model.text import TextConfig
from wordwing.model.vision import VisionConfig
from wordwing.validation import parse_json


def quick() -> RunConfig:
    """Two CPU cores, a quarter of an hour: a slim network, one-segment instructions of the cage, `sim` only."""
    slim = Stage1Config(
        vision=VisionConfig(channels=12),
        text=TextConfig(words=32, hidden=32),
        lingunet=LingUNetConfig(channels=16, filtered=8, last=16),
        grounding=4,
    )
    return RunConfig(
        data=DataConfig(corpora=("cage",), segments=(1,), lab="none", dev=60),
        model=ModelConfig(stage1=slim),
        supervised=SupervisedConfig(
            executions=16, contexts=ContextConfig(images=4), learning_rate=2e-3, final_rate=0.05
        ),
        reinforcement=ReinforcementConfig(flights=48, worlds=8, ppo=PPOConfig(updates=12, minibatch=256)),
        schedule=ScheduleConfig(
            warm_up=650,
            cloning_updates=100,
            iterations=28,
            updates=760,
            updates_per_iteration=4,
            send_every=20,
            evaluate_every=8,
            first_look_every=150,
            log_every=10,
        ),
    )


def paper() -> RunConfig:
    """The paper's amounts, counted in samples: 16 million contexts, 400,000 flights; in batches that suit a GPU."""
    supervised = SupervisedConfig()
    contexts = 128 * supervised.contexts.images
    reinforcement = ReinforcementConfig(flights=2048, worlds=1024, ppo=PPOConfig(updates=64, minibatch=2048))
    return RunConfig(
        supervised=supervised,
        reinforcement=reinforcement,
        schedule=ScheduleConfig(
            warm_up=9_300_000 // contexts,
            iterations=400_000 // reinforcement.flights,
            updates=16_000_000 // contexts,
            updates_per_iteration=6_700_000 // contexts * reinforcement.flights // 400_000,
            send_every=50,
            evaluate_every=25,
            log_every=5,
        ),
    )


def gpu() -> RunConfig:
    """Twenty-five minutes of one large GPU, with what was found to learn more in them (docs/experiments.md)."""
    config = paper()
    contexts = replace(config.supervised.contexts, images=4, mirrored=0.5, word_dropout=0.05)
    return replace(
        config,
        data=replace(config.data, min_word_count=5, wordings=8),
        model=replace(config.model, stage1=replace(config.model.stage1, text=TextConfig(words=128, hidden=128))),
        supervised=replace(
            config.supervised,
            executions=192,
            cage_executions=32,
            contexts=contexts,
            learning_rate=3e-3,
            final_rate=0.05,
        ),
        # PPO stays near the policy that flew, so few flights and often teach more than many and seldom.
        reinforcement=replace(
            config.reinforcement,
            flights=512,
            worlds=256,
            ppo=replace(config.reinforcement.ppo, updates=12),
        ),
        schedule=replace(
            config.schedule,
            warm_up=12_500,
            iterations=1_000_000,
            updates=50_000,
            minutes=25.0,
            evaluate_every=80,
            first_look_every=1000,
            log_every=20,
        ),
    )


RECIPES: dict[str, Callable[[], RunConfig]] = {"quick": quick, "paper": paper, "gpu": gpu}

RIVALS = (("no-instruction", "no-image"), ("sim-only", "half-lab", "tenth-lab"))
"""Ablations that change the same setting, so that only the last of them would count."""


def check_ablations(ablations: Sequence[str]) -> None:
    """Raise a `WordwingError` about ablations that cannot be had together."""
    for rivals in RIVALS:
        chosen = [name for name in rivals if name in ablations]
        if len(chosen) > 1:
            raise WordwingError(f"--ablate has {' and '.join(chosen)}, which change the same setting; take one of them")


ABLATIONS = {
    "no-instruction": ["model.stage1.blank=instruction"],
    "no-image": ["model.stage1.blank=image"],
    "no-exploration": ["reinforcement.reward.exploration=0", "reinforcement.reward.unobserved=0"],
    "no-discriminator": ["supervised.losses.wasserstein=0"],
    "sim-only": ["data.lab=none"],
    "half-lab": ["data.lab=half"],
    "tenth-lab": ["data.lab=tenth"],
    "gold-path-end": ["reinforcement.gold_distance=2"],
    # Nothing can be cloned from a drone that never flew.
    "from-standing": ["data.initial_executions=standing", "schedule.cloning_updates=0"],
    "pvn": ["model.stage1.observability=false"],
}
"""What each ablation sets; `wordwing train sureal --help` says what it means."""


def ablated(config: RunConfig, ablation: str) -> RunConfig:
    """A run without something."""
    if ablation not in ABLATIONS:
        known = ", ".join(ABLATIONS)
        raise WordwingError(f'no ablation is called "{ablation}"{did_you_mean(ablation, list(ABLATIONS))} ({known})')
    return changed(config, ABLATIONS[ablation])


def changed(config: RunConfig, settings: Sequence[str]) -> RunConfig:
    """A run with some settings changed: "schedule.minutes=10", "data.corpora=cage,house", "data.limit=none"."""
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise WordwingError(f'--set has "{setting}"; a setting is changed by NAME=VALUE, as in schedule.minutes=10')
        name = RENAMED.get(name, name)
        meant = [known for known, _value in settings_of(config) if known.endswith(f".{name}")]
        if meant and name not in {entry.name for entry in fields(config)}:
            raise WordwingError(f'--set: there is no setting "{name}"; did you mean {" or ".join(meant)}?')
        config = _changed(config, name.split("."), text, name)
    check_settings(config)
    return config


def _changed(record: Any, path: list[str], text: str, name: str) -> Any:
    names = [entry.name for entry in fields(record)]
    first, rest = path[0], path[1:]
    if first not in names:
        raise WordwingError(f'--set: there is no setting "{name}"{did_you_mean(first, names)} ({", ".join(names)})')
    value = getattr(record, first)
    if is_dataclass(value):
        if not rest:
            inner = ", ".join(f"{name}.{entry.name}" for entry in fields(value))
            raise WordwingError(f"--set: {name} is a group of settings: {inner}")
        return replace(record, **{first: _changed(value, rest, text, name)})
    if rest:
        raise WordwingError(f"--set: {name.rpartition('.')[0]} is not a group of settings")
    kind = get_type_hints(type(record), include_extras=True)[first]
    if get_origin(kind) in (Union, UnionType):
        if text.lower() == "none":
            return replace(record, **{first: None})
        kind = get_args(kind)[0]
    if name.startswith("model.") and kind in (int, float):
        least, most = RANGES[first]
        kind = Annotated[kind, Field(ge=least, le=most)]
    kind = {int: Count, float: NonNegative}.get(kind, kind)
    return replace(record, **{first: parse_json(kind, _to_json(text, kind), f"--set {name}")})


def _to_json(text: str, kind: Any) -> str:
    """What was typed, as JSON that may be read as a type."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _to_json(text, arguments[0])
    if origin is tuple:
        return f"[{', '.join(_to_json(part, arguments[0]) for part in text.split(',') if part)}]"
    if kind is str or (origin is Literal and isinstance(arguments[0], str)):
        return json.dumps(text)
    try:
        return json.dumps(json.loads(text.lower()))
    except ValueError:
        return json.dumps(text)
