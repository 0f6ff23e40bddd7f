"""What both processes learn from, on one device: instructions, their starts, their gold paths and the layouts.

An example is an instruction without its execution; `executions` has those. Nothing here is copied to the host again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from wordwing.data.corpora import CORPORA, corpus
from wordwing.data.dataset import Dataset
from wordwing.data.schema import Instruction
from wordwing.errors import WordwingError
from wordwing.frames import Pose
from wordwing.interface import FLIGHT_HEIGHT
from wordwing.language.tokenizer import Tokenizer, Vocabulary
from wordwing.learning.recipes.limits import CountOrZero, Share
from wordwing.model.layers import each
from wordwing.model.text import Tokens
from wordwing.sim.scene import PackedLayouts
from wordwing.world.catalogue import catalogue
from wordwing.world.paths import Floats, path_length, points_along


@dataclass(frozen=True)
class DataConfig:
    """What is learned from."""

    corpora: Annotated[tuple[str, ...], Field(min_length=1, description="one name or several")] = ("cage", "field")
    """Names of corpora, or folders of datasets."""
    segments: Annotated[tuple[Literal[1, 2], ...], Field(min_length=1, description="1, 2 or 1,2")] = (1, 2)
    """How many segments instructions have."""
    limit: int | None = None
    """Only the first so many training instructions of each corpus."""
    min_word_count: int = 2
    """How often a word must occur in training instructions to be in the vocabulary. Typing mistakes that are in it are
    not repaired."""
    tokenizer: Tokenizer = 1
    """1 for words alone; 2 for numbers, units and clock directions, too, and for words beyond the vocabulary."""
    wordings: Annotated[int, Field(ge=1, le=100)] = 1
    """Texts of each generated training instruction, the paraphrases included; what people wrote is not paraphrased."""
    lab: Literal["all", "half", "tenth", "none"] = "all"
    """Which of the lab's demonstrations; without any, there is no discriminator either."""
    initial_executions: Literal["demonstrations", "standing"] = "demonstrations"
    """What D^S begins with: ORACLE's flights, or those of a policy that always stops."""
    kept_demonstrations: Share = 0.0
    """Share of the instructions whose first execution stays in D^S for good. Without it ten turnovers leave none."""
    dev: int = 100
    """Dev instructions of each corpus that are flown to choose the best policy."""
    seed: CountOrZero = 0
    """Of the corpora."""


POINTS = 64
"""Even points that stand for a path; some 5 cm apart on a long one."""


@dataclass(frozen=True)
class Examples:
    """N instructions."""

    tokens: Tokens
    """[N]."""
    start: Pose
    """[N] world frame, level, at flight height."""
    points: Tensor
    """[N, 64, 2] along the demonstrated paths, world frame, metres."""
    layout: Tensor
    """[N] int64, which of the packed layouts is around."""
    mentioned: Tensor
    """[N, 89] bool, kinds of landmarks that the words are aligned with, in the catalogue's order."""
    steps: Tensor
    """[N] int64, most decisions that a flight is given."""
    corpus: Tensor
    """[N] int64, which dataset it is of."""

    def __len__(self) -> int:
        return len(self.layout)

    def __getitem__(self, index: Tensor | slice) -> Examples:
        """Some of them."""
        return each(lambda tensor: tensor[index], self)


@dataclass(frozen=True)
class ExampleSet:
    """Examples of one or several datasets, and what they refer to."""

    examples: Examples
    layouts: PackedLayouts
    ids: tuple[tuple[str, ...], ...]
    """Of each dataset's instructions, in order."""
    corpora: tuple[str, ...]
    """Names of the datasets."""

    def __len__(self) -> int:
        return len(self.examples)

    @property
    def device(self) -> torch.device:
        """Where everything is."""
        return self.examples.points.device

    @property
    def max_steps(self) -> int:
        """Most decisions that any flight is given."""
        return int(self.examples.steps.max())

    def of(self, corpus: str) -> Tensor:
        """[M] int64 indices of one dataset's examples."""
        if corpus not in self.corpora:
            raise WordwingError(f"there are no examples of {corpus}; there are some of {', '.join(self.corpora)}")
        return (self.examples.corpus == self.corpora.index(corpus)).nonzero()[:, 0]


def read_instructions(
    dataset: Dataset, split: str, limit: int | None = None, counts: tuple[int, ...] = (1, 2)
) -> list[Instruction]:
    """The first instructions of a split, all of them by default."""
    found = list(islice(dataset.instructions(split, counts), limit))
    if not found:
        raise WordwingError(f"{dataset.folder}: the split {split} has no instructions to learn from")
    return found


def vocabulary_of(
    instructions: Sequence[Sequence[Instruction]], min_count: int, tokenizer: Tokenizer = 1
) -> Vocabulary:
    """The words that training instructions have in them at least `min_count` times, of all datasets together.

    Pairs only say again what single segments say; if they counted, hardly any word would be rare enough to be unknown.
    """
    counted = ([one for one in part if one.segments == 1] or part for part in instructions)
    return Vocabulary.of([one.segment.instruction for part in counted for one in part], min_count, tokenizer)


def even_points(paths: Sequence[Floats]) -> Tensor:
    """Paths [P, 2] as points [N, 64, 2] at even distances, both ends included."""
    return torch.from_numpy(
        np.stack([points_along(path, np.linspace(0, path_length(path), POINTS)) for path in paths]).astype(np.float32)
    )


def example_set(
    datasets: Sequence[Dataset],
    instructions: Sequence[Sequence[Instruction]],
    vocabulary: Vocabulary,
    device: torch.device | str = "cpu",
) -> ExampleSet:
    """Put instructions of some datasets on a device.

    Args:
        datasets: Where they are from.
        instructions: Those of each dataset.
        vocabulary: The words that are known.
        device: Where to.
    """
    parts = list(zip(datasets, instructions, strict=True))
    places = [(dataset, one.layout, one.window) for dataset, part in parts for one in part]
    numbers = {place: number for number, place in enumerate(dict.fromkeys(places))}
    layouts = [dataset.layout(name, window) for dataset, name, window in numbers]
    mentioned = [dataset.alignment.mentioned(one.segment.instruction) for dataset, part in parts for one in part]
    counts = torch.tensor([len(part) for part in instructions], device=device)
    segments = [one.segment for part in instructions for one in part]
    xy = torch.tensor([segment.start_xy for segment in segments], dtype=torch.float32)
    yaw = torch.tensor([segment.start_yaw for segment in segments], dtype=torch.float32)
    examples = Examples(
        tokens=Tokens.encode([segment.instruction for segment in segments], vocabulary, device),
        start=Pose.level(xy, yaw, FLIGHT_HEIGHT).to(device),
        points=even_points([segment.path for segment in segments]).to(device),
        layout=torch.tensor([numbers[place] for place in places], device=device),
        mentioned=kinds_among(mentioned).to(device),
        steps=torch.tensor([dataset.steps for dataset in datasets], device=device).repeat_interleave(counts),
        corpus=torch.arange(len(datasets), device=device).repeat_interleave(counts),
    )
    ids = tuple(tuple(one.id for one in part) for part in instructions)
    return ExampleSet(examples, PackedLayouts.pack(layouts, device), ids, tuple(dataset.name for dataset in datasets))


def kinds_among(names: Sequence[Collection[str]]) -> Tensor:
    """[N, 89] bool: which kinds of landmarks, in the catalogue's order, are among the names of each text."""
    order = {entry.name: index for index, entry in enumerate(catalogue())}
    table = np.zeros((len(names), len(order)), bool)
    for row, found in zip(table, names, strict=True):
        row[[order[name] for name in found]] = True
    return torch.from_numpy(table)


Say = Callable[[str], None]


@dataclass(frozen=True)
class TrainingData:
    """What a run learns from and is evaluated on."""

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


def load_training_data(
    config: DataConfig, device: torch.device, say: Say = lambda sentence: None, known: Vocabulary | None = None
) -> TrainingData:
    """Read datasets.

    Args:
        config: Which.
        device: Where examples go.
        say: Told what takes long.
        known: Words that are known already and keep their places.
    """
    datasets = open_datasets(config, say)
    training = [read_instructions(dataset, "train", config.limit, config.segments) for dataset in datasets]
    vocabulary = vocabulary_of(training, config.min_word_count, known.tokenizer if known else config.tokenizer)
    if known is not None:
        vocabulary = known.extended(vocabulary)
    say(f"preparing {sum(map(len, training))} instructions")
    examples = example_set(datasets, training, vocabulary, device)
    return TrainingData(datasets, training, vocabulary, examples, [_dev(dataset, config) for dataset in datasets])


def _dev(dataset: Dataset, config: DataConfig) -> list[Instruction]:
    split = "dev" if "dev" in dataset.splits else "train"
    found = read_instructions(dataset, split, None, config.segments)
    order = np.random.default_rng(0).permutation(len(found))[: config.dev]
    return [found[number] for number in sorted(order)]
