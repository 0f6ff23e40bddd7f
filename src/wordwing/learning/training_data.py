"""Everything that both processes learn from, loaded and put on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from wordwing.data.corpora import CORPORA, corpus
from wordwing.data.dataset import DERIVED, Dataset
from wordwing.data.demonstrations.archive import Demonstrations
from wordwing.data.demonstrations.flying import fly_sim
from wordwing.data.schema import Instruction
from wordwing.errors import WordwingError
from wordwing.language.tokenizer import Vocabulary
from wordwing.learning.examples import ExampleSet, example_set, read_instructions, vocabulary_of
from wordwing.learning.executions import Executions, LabExecutions
from wordwing.learning.runtime.config import DataConfig
from wordwing.learning.sayings import Sayings, sayings_of

Say = Callable[[str], None]


@dataclass(frozen=True)
class Material:
    """What a run learns from and is examined on."""

    datasets: list[Dataset]
    training: list[list[Instruction]]
    """Of each dataset."""
    vocabulary: Vocabulary
    examples: ExampleSet
    """Of the training instructions."""
    dev: list[list[Instruction]]
    """Of each dataset, drawn from its dev split."""


def open_datasets(config: DataConfig, say: Say = lambda sentence: None) -> list[Dataset]:
    """The datasets of a run; corpora that are not in the cache are built first.

    Args:
        config: Which.
        say: Told what takes long.
    """
    datasets = []
    for name in config.corpora:
        say(f"reading {name}")
        datasets.append(corpus(name, config.seed) if name in CORPORA else Dataset(name))
    names = [dataset.name for dataset in datasets]
    if len(set(names)) != len(names):
        raise WordwingError(f"the datasets are called {', '.join(names)}; each must have its own name")
    return datasets


def load_material(
    config: DataConfig, device: torch.device, say: Say = lambda sentence: None, known: Vocabulary | None = None
) -> Material:
    """Read datasets.

    Args:
        config: Which.
        device: Where examples go.
        say: Told what takes long.
        known: Words that are known already and keep their places.
    """
    datasets = open_datasets(config, say)
    training = [read_instructions(dataset, "train", config.limit, config.segments) for dataset in datasets]
    vocabulary = vocabulary_of(training, config.heard)
    if known is not None:
        vocabulary = known.extended(vocabulary)
    say(f"preparing {sum(map(len, training))} instructions")
    examples = example_set(datasets, training, vocabulary, device)
    return Material(datasets, training, vocabulary, examples, [_dev(dataset, config) for dataset in datasets])


def first_executions(material: Material, config: DataConfig, say: Say = lambda sentence: None) -> Executions:
    """What D^S begins with."""
    if config.first == "standing":
        return Executions.standing(material.examples, material.examples.max_steps + 1)
    demonstrations = {
        dataset.name: _demonstrations(dataset, part, material.examples.device, say)
        for dataset, part in zip(material.datasets, material.training, strict=True)
    }
    return Executions.demonstrated(material.examples, demonstrations)


def lab_executions(material: Material, config: DataConfig, say: Say = lambda sentence: None) -> LabExecutions | None:
    """D^R, or None where a run learns from `sim` only."""
    if config.lab == "none":
        return None
    cage = next((dataset for dataset in material.datasets if dataset.name == "cage"), None)
    if cage is None:
        raise WordwingError(
            "the lab's demonstrations are of the cage; add it to data.corpora, or take --ablate sim-only"
        )
    file = cage.folder / DERIVED / "lab-train.npz"
    if not file.is_file():
        raise WordwingError(
            f"{file}: the lab's demonstrations are not there; wordwing data demonstrate {cage.folder} --domain lab "
            "flies them, in about five minutes, and --ablate sim-only learns without them"
        )
    say("reading the lab's pictures")
    recorded = Demonstrations.load(file, cage, "lab")
    known = set(material.examples.ids[material.examples.corpora.index("cage")])
    chosen = [int(number) for number in recorded.subset(config.lab) if recorded.ids[number] in known]
    if not chosen:
        raise WordwingError(f"{file}: none of its flights is of a training instruction; data.limit leaves them out")
    return LabExecutions.recorded(material.examples, recorded, chosen)


def other_sayings(
    material: Material, config: DataConfig, mirrored: bool, say: Say = lambda sentence: None
) -> Sayings | None:
    """What else Process A hears of the examples, or None where nothing; mirrored flights have words of their own."""
    if config.wordings == 1 and not mirrored:
        return None
    say("putting instructions into other words")
    datasets, device = material.datasets, material.examples.device
    return sayings_of(datasets, material.training, material.vocabulary, device, config.wordings, config.seed)


def _dev(dataset: Dataset, config: DataConfig) -> list[Instruction]:
    split = "dev" if "dev" in dataset.splits else "train"
    found = read_instructions(dataset, split, None, config.segments)
    order = np.random.default_rng(0).permutation(len(found))[: config.dev]
    return [found[number] for number in sorted(order)]


def _demonstrations(dataset: Dataset, part: list[Instruction], device: torch.device, say: Say) -> Demonstrations:
    file = dataset.folder / DERIVED / "sim-train.npz"
    if file.is_file():
        return Demonstrations.load(file, dataset)
    say(f"flying ORACLE along {len(part)} paths of {dataset.name}")
    return fly_sim(dataset, part, device)
