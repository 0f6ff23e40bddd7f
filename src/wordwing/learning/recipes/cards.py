"""What a policy's README says about how it was made: the beginning of its model card."""

import re
from collections.abc import Mapping

import torch

from wordwing.devices import device_title
from wordwing.errors import WordwingError
from wordwing.learning.recipes.config import RunConfig
from wordwing.learning.training_data import TrainingData
from wordwing.model.checkpoint import policy_folder, read_card
from wordwing.release import release

MADE, MEASURED = "## How it was made", "## Measured while it was trained"


def card(
    command: str,
    config: RunConfig,
    data: TrainingData,
    device: torch.device,
    metrics: Mapping[str, float],
    *,
    minutes: float,
    updates: int,
    flights: int,
    decisions: int,
) -> str:
    """Write a model card, Markdown.

    Args:
        command: As it was typed.
        config: Settings of the run.
        data: What it learned from.
        device: Where it was trained.
        metrics: Of its evaluation, by name.
        minutes: All sessions of the run, loading and evaluation included.
        updates: Of stage 1.
        flights: Of Process B.
        decisions: In these flights.
    """
    for name, dataset in zip(config.data.corpora, data.datasets, strict=True):
        command = _renamed(command, name, dataset.name)  # where a dataset lies is private
    if config.start is not None:
        command = _renamed(command, config.start, policy_folder(config.start).name)
    supervised, lab = config.supervised, config.data.lab
    cage = 0 if lab == "none" else 2 * supervised.cage_executions
    contexts = (supervised.executions + cage) * supervised.contexts.images
    recorded = {"all": "all of", "half": "half of", "tenth": "a tenth of", "none": "none of"}[lab]
    stage2 = [f"{config.schedule.cloning_updates:,} updates of cloning"] * bool(config.schedule.cloning_updates)
    stage2 += [f"{flights:,} flights ({decisions:,} decisions)"] * bool(flights)
    lines = [
        "# A wordwing policy",
        "",
        MADE,
        "",
        f"- command: `{command}`",
        f"- version: wordwing {release()}; seed {config.seed}, of the corpora {config.data.seed}",
        *(
            f"- data: {dataset.name}, {len(part):,} {dataset.meta['text']} instructions, in `sim`"
            for dataset, part in zip(data.datasets, data.training, strict=True)
        ),
        f"- lab: {recorded} its demonstrations{', in a stand-in for a real cage' * (lab != 'none')}",
        f"- hardware: {device_title(device, torch.get_num_threads())}; {minutes:.1f} minutes",
        f"- stage 1: {updates:,} supervised updates of {contexts:,} contexts",
        f"- stage 2: {', then '.join(stage2) or 'not trained'}",
        *([f"\n### Before that\n\n{_how_start_was_made(config.start)}"] if config.start is not None else []),
        "",
        MEASURED,
        "",
        "In `sim`, on a sample of dev instructions:",
        "",
        *(f"- {name}: {value:.3f}" for name, value in metrics.items()),
        "",
    ]
    return "\n".join(lines)


def _renamed(command: str, path: str, name: str) -> str:
    """A command with another name for an argument, or for an item of a list in one."""
    return re.sub(rf"(?<![^\s,=]){re.escape(path)}(?![^\s,])", lambda _match: name, command)


def how_made(card: str) -> str:
    """The section of a card that tells how its policy was made; empty if there is none."""
    _before, found, rest = card.partition(f"{MADE}\n")
    return rest.partition("\n## ")[0].strip() if found else ""


def _how_start_was_made(policy: str) -> str:
    """How the policy was made that a run started from."""
    try:
        return how_made(read_card(policy)) or "Nothing is known of it."
    except WordwingError:
        return "Nothing is known of it."
