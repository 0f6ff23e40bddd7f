"""Training runs that work, and switches that make others of them (paper: Results, ablations)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from wordwing.errors import WordwingError, did_you_mean
from wordwing.learning.contexts import ContextConfig
from wordwing.learning.ppo import PPOConfig
from wordwing.learning.recipes.config import RENAMED, ReinforcementConfig, RunConfig, ScheduleConfig, SupervisedConfig
from wordwing.learning.recipes.limits import check_settings, settings_of
from wordwing.learning.training_data import DataConfig
from wordwing.model.lingunet import LingUNetConfig
from wordwing.model.policy import ModelConfig
from wordwing.model.stage1 import Stage1Config
from wordwing.model.text import TextConfig
from wordwing.model.vision import VisionConfig


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
            cloned=100,
            iterations=28,
            updates=760,
            updates_each=4,
            send_every=20,
            evaluate_every=8,
            look_every=150,
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
            updates_each=6_700_000 // contexts * reinforcement.flights // 400_000,
            send_every=50,
            evaluate_every=25,
            log_every=5,
        ),
    )


def gpu() -> RunConfig:
    """Twenty-five minutes of one large GPU, with what was found to learn more in them (docs/experiments.md)."""
    config = paper()
    contexts = replace(config.supervised.contexts, images=4, mirrored=0.5, forgotten=0.05)
    return replace(
        config,
        data=replace(config.data, min_word_count=5, wordings=8),
        model=replace(config.model, stage1=replace(config.model.stage1, text=TextConfig(words=128, hidden=128))),
        supervised=replace(
            config.supervised,
            executions=192,
            common=32,
            contexts=contexts,
            learning_rate=3e-3,
            final_rate=0.05,
        ),
        # PPO stays near the policy that flew, so few flights and often teach more than many and seldom.
        reinforcement=replace(
            config.reinforcement,
            flights=512,
            worlds=512,
            ppo=replace(config.reinforcement.ppo, updates=12),
        ),
        schedule=replace(
            config.schedule,
            warm_up=12_500,
            iterations=1_000_000,
            updates=50_000,
            minutes=25.0,
            evaluate_every=80,
            look_every=1000,
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


def ablated(config: RunConfig, ablation: str) -> RunConfig:
    """A run without something; see `wordwing train sureal --help` for what each means."""
    data, stage1, losses = config.data, config.model.stage1, config.supervised.losses
    reward = config.reinforcement.reward
    changes: dict[str, Callable[[], RunConfig]] = {
        "no-instruction": lambda: _with_stage1(config, replace(stage1, blank="instruction")),
        "no-image": lambda: _with_stage1(config, replace(stage1, blank="image")),
        "no-exploration": lambda: replace(
            config,
            reinforcement=replace(config.reinforcement, reward=replace(reward, exploration=0.0, unobserved=0.0)),
        ),
        "no-discriminator": lambda: replace(
            config, supervised=replace(config.supervised, losses=replace(losses, wasserstein=0.0))
        ),
        "sim-only": lambda: replace(config, data=replace(data, lab="none")),
        "half-lab": lambda: replace(config, data=replace(data, lab="half")),
        "tenth-lab": lambda: replace(config, data=replace(data, lab="tenth")),
        "gold-path-end": lambda: replace(config, reinforcement=replace(config.reinforcement, gold_distance=2.0)),
        # Nobody could clone a drone that never flew.
        "from-standing": lambda: replace(
            config, data=replace(data, first="standing"), schedule=replace(config.schedule, cloned=0)
        ),
        "pvn": lambda: _with_stage1(config, replace(stage1, observability=False)),
    }
    if ablation not in changes:
        known = ", ".join(changes)
        raise WordwingError(f'no ablation is called "{ablation}"{did_you_mean(ablation, list(changes))} ({known})')
    return changes[ablation]()


def _with_stage1(config: RunConfig, stage1: Stage1Config) -> RunConfig:
    return replace(config, model=replace(config.model, stage1=stage1))


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
    value, kind = getattr(record, first), get_type_hints(type(record))[first]
    if is_dataclass(value):
        if not rest:
            inner = ", ".join(f"{name}.{entry.name}" for entry in fields(value))
            raise WordwingError(f"--set: {name} is a group of settings: {inner}")
        return replace(record, **{first: _changed(value, rest, text, name)})
    if rest:
        raise WordwingError(f"--set: {name.rpartition('.')[0]} is no group of settings")
    return replace(record, **{first: _parsed(text, kind, name)})


def _parsed(text: str, kind: Any, name: str) -> Any:
    """A value of a given type from what was typed."""
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        if text.lower() == "none":
            return None
        [kind] = [option for option in get_args(kind) if option is not NoneType]
        return _parsed(text, kind, name)
    if origin is tuple:
        return tuple(_parsed(part, get_args(kind)[0], name) for part in text.split(",") if part)
    if origin is Literal:
        if text in get_args(kind):
            return text
        raise WordwingError(f"--set: {name} is {text}; it must be one of {', '.join(get_args(kind))}")
    if kind is str:
        return text
    try:
        value = json.loads(text.lower() if kind is bool else text)
    except ValueError:
        value = None
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or value != value:
        words = {int: "a whole number", float: "a number", bool: "true or false"}
        raise WordwingError(f"--set: {name} is {text}; it must be {words[kind]}")
    return value
