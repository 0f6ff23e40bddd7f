"""A small cage, field and house to learn from, and what belongs to them, made once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from small_policy import CONFIG
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.demonstrations.archive import Demonstrations
from wordwing.data.demonstrations.flying import fly_sim
from wordwing.data.generating import Chunk, Generated, make
from wordwing.data.scenes import Scene
from wordwing.data.schema import Paragraph, Segment, Window
from wordwing.execution.packing import PackedExecutions, pack_pose
from wordwing.frames import Pose
from wordwing.language.tokenizer import Vocabulary
from wordwing.learning.executions import ExecutionSet
from wordwing.learning.runtime.messages import Rollouts
from wordwing.learning.training_data import DataConfig, ExampleSet, TrainingData, example_set, load_training_data
from wordwing.model.policy import ModelConfig, PolicyNetwork
from wordwing.world.layout import Placement
from wordwing.world.tasks import Task


@dataclass(frozen=True)
class SmallRun:
    """What a run learns from, and ORACLE's flights of it."""

    data: TrainingData
    demonstrations: dict[str, Demonstrations]

    @property
    def examples(self) -> ExampleSet:
        return self.data.examples

    def executions(self) -> ExecutionSet:
        """New ones, which a test may change."""
        return ExecutionSet.from_demonstrations(self.examples, self.demonstrations)

    def network(self, seed: int = 0, config: ModelConfig = CONFIG) -> PolicyNetwork:
        """A new one, whose plans depend on all it sees and reads."""
        return new_network(len(self.data.vocabulary), seed, config)

    def flight(self, number: int) -> Pose:
        """[T + 1] poses of ORACLE's flight of an example, as the demonstrations have them."""
        first = 0
        for name, ids in zip(self.examples.corpora, self.examples.ids, strict=True):
            if number < first + len(ids):
                given = self.demonstrations[name]
                return given.poses(given.ids.index(ids[number - first]))
            first += len(ids)
        raise IndexError(number)

    def lab(self, flights: int = 5, seed: int = 0) -> ExecutionSet:
        """Flights of the first cage examples, as in `sim`, with noise for images."""
        chosen, whole = self.examples.of("cage")[:flights], self.executions()
        flown = whole[chosen]
        shape = (int(flown.lengths.sum()), 72, 128, 3)
        noise = torch.randint(256, shape, dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))
        return ExecutionSet(flown.poses, flown.lengths, flown.setpoints, flown.stopped, chosen, noise)


def new_network(words: int, seed: int = 0, config: ModelConfig = CONFIG) -> PolicyNetwork:
    """An untrained network, whose plans depend on all it sees and reads."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = PolicyNetwork(config, words)
        with torch.no_grad():
            network.stage1.lingunet.up[0].second.weight.mul_(30)
    return network.eval()


def small_run(folder: Path) -> SmallRun:
    """Read datasets in a folder, new or as they were left there."""
    datasets = [_generated(folder, "cage", 6), _generated(folder, "field", 3), _house(folder)]
    names = tuple(str(dataset.folder) for dataset in datasets)
    data = load_training_data(DataConfig(names, lab="none", dev=5), torch.device("cpu"))
    flown = {dataset.name: fly_sim(dataset, part) for dataset, part in zip(data.datasets, data.training, strict=True)}
    return SmallRun(data, flown)


def _generated(folder: Path, name: Generated, paragraphs: int) -> Dataset:
    layouts, written = make(Chunk(name, "train", 0, 0, paragraphs))
    more_layouts, more_written = make(Chunk(name, "dev", 0, 0, 3))
    return write_dataset(
        folder / name, Source(name, "generated", 0, "a test"), layouts | more_layouts, written + more_written
    )


def _house(folder: Path) -> Dataset:
    """One room; every instruction has another part of it for an arena."""
    pieces = [("Sofa", 0.0, 2.0), ("Fridge", 1.0, -1.5), ("Bed", -1.8, -0.6), ("Toilet", 3.0, 1.0), ("Desk", 2.6, -1.6)]
    room = Scene(tuple(Placement(name, x, y, yaw=0.3 * x) for name, x, y in pieces))
    corners = np.array([[-0.5, 0.4], [0.6, 0.2], [1.6, 0.8], [2.2, -0.4]])
    windows = {
        (0, 0): Window(0.0, 0.0, 0.0),
        (1, 1): Window(1.0, 0.3, 1.1),
        (2, 2): Window(1.8, 0.2, -2.0),
        (0, 1): Window(0.4, 0.3, 0.6),
        (1, 2): Window(1.2, 0.1, math.pi / 2),
    }
    texts = ("Pass the sofa.", "Leave the fridge behind you.", "Stop in front of the sofa and the desk.")
    legs = tuple(
        Segment(text, (a[0], a[1]), 0.4 * number, np.stack([a, b]))
        for number, (text, a, b) in enumerate(zip(texts, corners[:-1].tolist(), corners[1:].tolist(), strict=True))
    )
    source = Source("house", "human", None, "a test", steps=70)
    return write_dataset(folder / "house", source, {"room": room}, [Paragraph("walk", "train", "room", legs, windows)])


def examples_of(tasks: Sequence[Task], folder: Path) -> tuple[ExampleSet, ExecutionSet, Vocabulary]:
    """Tasks as examples of the cage, ORACLE's flights of them, and all of their words."""
    layouts = {f"layout-{number}": task.layout for number, task in enumerate(tasks)}
    paragraphs = [
        Paragraph(
            f"walk-{number}",
            "train",
            f"layout-{number}",
            (Segment(task.instruction, task.start_xy, task.start_yaw, task.gold_path),),
        )
        for number, task in enumerate(tasks)
    ]
    dataset = write_dataset(folder / "cage", Source("cage", "generated", 0, "a test"), layouts, paragraphs)
    instructions = list(dataset.instructions("train"))
    vocabulary = Vocabulary.of([task.instruction for task in tasks], min_count=1)
    examples = example_set([dataset], [instructions], vocabulary)
    return examples, ExecutionSet.from_demonstrations(examples, {"cage": fly_sim(dataset, instructions)}), vocabulary


def random_rollouts(
    rng: np.random.Generator, index: Sequence[int], lengths: Sequence[int], progress: float
) -> Rollouts:
    """Flights through anywhere in the arena."""
    total = int(sum(lengths))
    xy = torch.from_numpy(rng.uniform(-2.3, 2.3, (total, 2))).float()
    yaw = torch.from_numpy(rng.uniform(-math.pi, math.pi, total)).float()
    rows = pack_pose(Pose.level(xy, yaw, 0.7))
    if not total:
        return Rollouts(
            torch.tensor([], dtype=torch.int64), PackedExecutions(rows[:, None], torch.tensor([]).long()), progress
        )
    return Rollouts(torch.tensor(index), PackedExecutions.from_rows(rows, torch.tensor(lengths)), progress)


def angle_between(a: Pose, b: Pose) -> Tensor:
    """[...] radians, exact where it is small; q and −q are the same rotation."""
    p, q = a.quaternion.double(), b.quaternion.double()
    return 4 * torch.asin(torch.minimum((p - q).norm(dim=-1), (p + q).norm(dim=-1)) / 2)
