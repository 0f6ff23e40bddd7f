"""A small cage to fly in, and policies that nobody has trained."""

from pathlib import Path

import numpy as np
import torch

from small_policy import VOCABULARY, small_network
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.generating import Chunk, make
from wordwing.data.schema import Paragraph, Segment
from wordwing.model.policy import LearnedPolicy
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
