"""Which values the settings of a run may have: said before hours of training, not by a traceback in them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from wordwing.errors import WordwingError
from wordwing.learning.recipes.config import RunConfig
from wordwing.model.checkpoint import RANGES, wrong_switches

ZERO_TOO = {
    "seed",
    "data.seed",
    "supervised.late_images",
    "schedule.warm_up",
    "schedule.cloned",
    "schedule.updates_each",
}
"""Whole numbers that may be 0; all others are at least 1."""

AT_MOST = {
    "data.wordings": 100,
    "supervised.executions": 10_000,
    "supervised.common": 10_000,
    "supervised.contexts.images": 1000,
    "supervised.late_images": 1000,
    "supervised.discriminator_updates": 1000,
    "supervised.discriminator_images": 10_000,
    "reinforcement.flights": 1_000_000,
    "reinforcement.worlds": 100_000,
    "reinforcement.ppo.updates": 100_000,
}
"""Whole numbers by which memory grows: more is a slip of the finger."""

MOST = 10**15
"""All other numbers are at most this, which fits into whatever they are put into."""

POSITIVE = {
    "supervised.losses.gold.blur",
    "supervised.discriminator_rate",
    "supervised.learning_rate",
    "supervised.max_gradient_norm",
    "reinforcement.gold_distance",
    "reinforcement.ppo.clip",
    "reinforcement.ppo.max_gradient_norm",
    "reinforcement.ppo.learning_rate",
    "reinforcement.ppo.epsilon",
    "reinforcement.ppo.target_kl",
    "cloning.learning_rate",
    "cloning.max_gradient_norm",
    "schedule.minutes",
}
"""Numbers that may not be 0; no number is negative, except for some of the model's."""

SHARES = {
    "supervised.contexts.others",
    "supervised.contexts.look_arounds",
    "supervised.contexts.mirrored",
    "supervised.contexts.forgotten",
    "supervised.final_rate",
    "supervised.discriminator_rate",
    "supervised.learning_rate",
    "supervised.weight_decay",
    "supervised.average",
    "reinforcement.dynamics_randomization",
    "reinforcement.ppo.late_entropy",
    "reinforcement.ppo.learning_rate",
    "reinforcement.ppo.discount",
    "reinforcement.ppo.gae_lambda",
    "cloning.gold",
    "cloning.learning_rate",
}
"""Numbers that are at most 1."""


def check_settings(config: RunConfig) -> None:
    """Raise a `WordwingError` about the first setting that makes no sense."""
    for name, value in settings_of(config):
        if wanted := _wrong(name, value):
            shown = ",".join(map(str, value)) or "empty" if isinstance(value, tuple) else value
            raise WordwingError(f"--set: {name} is {shown}; it must be {wanted}")
    contexts, stage2 = config.supervised.contexts, config.model.stage2
    if contexts.others + contexts.look_arounds > 1:
        raise WordwingError("--set: supervised.contexts.others and look_arounds are more than 1 together")
    given, corpora = len(contexts.shares), len(config.data.corpora)
    if given not in (0, corpora):
        raise WordwingError(
            f"--set: supervised.contexts.shares has {given} and data.corpora {corpora}; there must be one share for "
            "each corpus, or none at all"
        )
    if config.data.first == "standing" and config.schedule.cloned:
        raise WordwingError(
            "drones that stand (data.first=standing, from-standing) show nothing to clone: "
            "schedule.cloned must be 0, and train bc needs demonstrations"
        )
    if stage2.first_deviation <= stage2.min_deviation:
        raise WordwingError("--set: model.stage2.first_deviation must be above model.stage2.min_deviation")
    if wrong := wrong_switches(config.model):
        raise WordwingError(f"--set: {wrong}")


def settings_of(record: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """All settings in a record, by their dotted names."""
    for entry in fields(record):
        value = getattr(record, entry.name)
        if is_dataclass(value):
            yield from settings_of(value, f"{prefix}{entry.name}.")
        else:
            yield f"{prefix}{entry.name}", value


def _wrong(name: str, value: Any) -> str:
    """What a value must be, or nothing if it is."""
    if isinstance(value, tuple):
        if name == "data.segments" and not (value and set(value) <= {1, 2}):
            return "1, 2 or 1,2"
        if name == "supervised.contexts.shares":
            return "" if all(0 < share < math.inf for share in value) else "numbers above 0"
        return "" if value else "one name or several"
    if value is None or isinstance(value, bool | str):
        return ""
    if name.startswith("model."):
        least, most = RANGES[name.rpartition(".")[2]]
        return "" if least <= value <= most else f"from {least:g} to {most:g}"
    if isinstance(value, int):
        least, most = 0 if name in ZERO_TOO else 1, AT_MOST.get(name, MOST)
        return f"at least {least}" if value < least else f"at most {most:,}" if value > most else ""
    if not math.isfinite(value):
        return "a number"
    if value < 0 or (name in POSITIVE and value == 0):
        return "more than 0" if name in POSITIVE else "at least 0"
    most = 1 if name in SHARES else MOST
    return f"at most {most:,}" if value > most else ""
