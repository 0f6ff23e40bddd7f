"""A small cage to fly in, policies that nobody has trained, and flights that nobody has flown."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import ArrayLike

from small_policy import VOCABULARY, small_network
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.generating import Chunk, make
from wordwing.data.schema import Paragraph, Segment
from wordwing.evaluation.episodes import Episode
from wordwing.policies.learned import LearnedPolicy
from wordwing.world.layout import Layout


def small_cage(folder: Path, name: str = "cage", steps: int = 10, **sizes: int) -> Dataset:
    """Generated paragraphs, so many in each split; some of their paths are too long for 10 steps."""
    layouts, paragraphs = {}, []
    for split, size in sizes.items():
        more_layouts, more_paragraphs = make(Chunk("cage", split, 0, 0, size))
        layouts |= more_layouts
        paragraphs += more_paragraphs
    return write_dataset(folder, Source(name, "generated", 0, "a test", steps=steps), layouts, paragraphs)


def bare_dataset(folder: Path, paragraphs: list[tuple[str, str, str]], name: str = "bare") -> Dataset:
    """Paragraphs by id, split and layout, of one segment each, among no landmarks at all."""
    segment = Segment("go", (0.0, 0.0), 0.0, np.array([[0.0, 0.0], [1.0, 0.0]]))
    entries = [Paragraph(key, split, layout, (segment,)) for key, split, layout in paragraphs]
    layouts = {layout: Layout(()) for _key, _split, layout in paragraphs}
    return write_dataset(folder, Source(name, "generated", 0, "a test"), layouts, entries)


def save_policy(folder: Path, seed: int = 0, stop: float = 0.0) -> Path:
    """A policy in a folder; it stops the sooner the greater `stop` is."""
    network = small_network(seed)
    with torch.no_grad():
        network.stage2.network.last.bias[4] += stop
    LearnedPolicy(network, VOCABULARY).save(folder)
    return folder


def plain_episode(path: ArrayLike, **changes: object) -> Episode:
    """A level flight [P, 2] at 0.7 m that heads along x and stops at its end, one segment, among no landmarks."""
    flown = np.array(path, float)
    level = np.column_stack([flown, np.full(len(flown), 0.7), np.zeros((len(flown), 3))])
    plain = Episode(
        system="oracle",
        corpus="cage",
        text="generated",
        split="test",
        domain="sim",
        seed=0,
        id="cage-0001/2",
        segments=1,
        instruction="fly on",
        meaning=None,
        layout_id="cage-0001",
        layout=Layout(()),
        start=(flown[0, 0], flown[0, 1], 0.0),
        gold=flown,
        poses=level,
        setpoints=np.zeros((len(flown) - 1, 2)),
        decisions=len(flown) - 1,
        ended_by="stop",
        seconds_inside_landmarks=0.0,
        goals=np.zeros((0, 3)),
    )
    return replace(plain, **changes)
