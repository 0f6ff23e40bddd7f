"""What a policy's README says about how it was made: the beginning of its model card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from wordwing.devices import device_title
from wordwing.errors import WordwingError
from wordwing.learning.recipes.config import RunConfig
from wordwing.learning.training_data import TrainingData
from wordwing.model.checkpoint import policy_folder, read_card
from wordwing.release import release

MADE, MEASURED = "## How it was made", "## Measured while it was trained"


@dataclass(frozen=True)
class Work:
    """How much was done."""

    minutes: float
    """In all lives of the run, loading and examining included."""
    updates: int
    """Of stage 1."""
    flights: int
    decisions: int
    """In these flights."""


def card(
    command: str, config: RunConfig, data: TrainingData, device: torch.device, work: Work, marks: Mapping[str, float]
) -> str:
    """Markdown.

    Args:
        command: What was typed.
        config: Settings of the run.
        data: What it learned from.
        device: Where.
        work: How much.
        marks: Figures of its evaluator, by name.
    """
    for name, dataset in zip(config.data.corpora, data.datasets, strict=True):
        command = command.replace(name, dataset.name)  # where a dataset lies is nobody's business
    if config.start is not None:
        command = command.replace(config.start, policy_folder(config.start).name)
    lines = [
        "# A wordwing policy",
        "",
        MADE,
        "",
        f"- command: `{command}`",
        f"- version: wordwing {release()}; seed {config.seed}, of the corpora {config.data.seed}",
        *(f"- data: {_amount(data, number)}" for number in range(len(data.datasets))),
        f"- lab: {_lab(config)}",
        f"- hardware: {device_title(device, torch.get_num_threads())}; {work.minutes:.1f} minutes",
        f"- stage 1: {work.updates:,} supervised updates of {contexts_of(config):,} contexts",
        f"- stage 2: {_stage2(config, work)}",
        *([f"\n### Before that\n\n{_begun(config.start)}"] if config.start is not None else []),
        "",
        MEASURED,
        "",
        "In `sim`, on a sample of dev instructions:",
        "",
        *(f"- {name}: {value:.3f}" for name, value in marks.items()),
        "",
    ]
    return "\n".join(lines)


def how_made(card: str) -> str:
    """The section of a card that tells how its policy was made; empty if there is none."""
    _before, found, rest = card.partition(f"{MADE}\n")
    return rest.partition("\n## ")[0].strip() if found else ""


def contexts_of(config: RunConfig) -> int:
    """Contexts that an update of Process A learns from."""
    supervised = config.supervised
    both = 0 if config.data.lab == "none" else 2 * supervised.common
    return (supervised.executions + both) * supervised.contexts.images


def _amount(data: TrainingData, number: int) -> str:
    dataset, count = data.datasets[number], len(data.training[number])
    return f"{dataset.name}, {count:,} {dataset.meta['text']} instructions, in `sim`"


def _lab(config: RunConfig) -> str:
    shares = {"all": "all of", "half": "half of", "tenth": "a tenth of"}
    if config.data.lab == "none":
        return "none of its demonstrations"
    return f"{shares[config.data.lab]} its demonstrations, in a stand-in for a real cage"


def _stage2(config: RunConfig, work: Work) -> str:
    parts = [f"{config.schedule.cloned:,} updates of cloning"] if config.schedule.cloned else []
    if work.flights:
        parts.append(f"{work.flights:,} flights ({work.decisions:,} decisions)")
    return ", then ".join(parts) or "not trained"


def _begun(policy: str) -> str:
    """How the policy was made that a run went on from."""
    try:
        return how_made(read_card(policy)) or "Nothing is known of it."
    except WordwingError:
        return "Nothing is known of it."
