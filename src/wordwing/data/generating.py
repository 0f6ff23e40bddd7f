"""The generated corpora `field` and `cage`: layouts, walks and sentences, in the paper's numbers.

Work is cut into chunks that are seeded by what they are, so the result is the same however many processes share it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wordwing.data.schema import Paragraph, Segment
from wordwing.data.segmenting import CutConfig, smooth, write_segments
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats
from wordwing.world.samplers import sample_layout
from wordwing.world.walks import Walk, WalkConfig, sample_walks

Generated = Literal["field", "cage"]

SIZES: dict[Generated, dict[str, int]] = {
    "field": {"train": 4200, "dev": 898, "test": 902},
    "cage": {"train": 698, "dev": 150, "test": 149},
}
"""Paragraphs in each split (paper: Table of dataset and split sizes)."""

CUTS: dict[Generated, CutConfig] = {"field": CutConfig(length=1.56), "cage": CutConfig(length=1.06)}

BLOCK: dict[Generated, int] = {"field": 1, "cage": 5}
"""Paragraphs that share a layout, each beginning where the one before ends."""

CHUNK = 50
"""Paragraphs made together."""


@dataclass(frozen=True)
class Chunk:
    """Some paragraphs of one split."""

    corpus: Generated
    split: str
    seed: int
    first: int
    count: int


Made = tuple[dict[str, Layout], list[Paragraph]]


def paragraph_count(corpus: Generated, share: float = 1.0) -> int:
    """How many paragraphs a corpus has."""
    return sum(chunk.count for chunk in chunks(corpus, 0, share))


def chunks(corpus: Generated, seed: int, share: float = 1.0) -> list[Chunk]:
    """All the work for a corpus, or for a share of it."""
    found = []
    for split, size in SIZES[corpus].items():
        total = max(round(size * share), BLOCK[corpus])
        for first in range(0, total, CHUNK):
            found.append(Chunk(corpus, split, seed, first, min(CHUNK, total - first)))
    return found


def collect(results: Iterable[Made], tick: Callable[[int], None] = lambda made: None) -> Made:
    """Put chunks together in their order.

    Args:
        results: What `make` returned.
        tick: Told how many paragraphs each chunk has brought: a progress bar.
    """
    layouts: dict[str, Layout] = {}
    paragraphs: list[Paragraph] = []
    for made in results:
        layouts |= made[0]
        paragraphs += made[1]
        tick(len(made[1]))
    return layouts, paragraphs


def make(chunk: Chunk) -> Made:
    """Make one chunk."""
    corpus, split = chunk.corpus, chunk.split
    kinds = list(SIZES), list(SIZES[corpus])
    rng = np.random.default_rng([chunk.seed, kinds[0].index(corpus), kinds[1].index(split), chunk.first])
    layouts: dict[str, Layout] = {}
    paragraphs: list[Paragraph] = []
    block = BLOCK[corpus]
    for number, (layout, walks) in enumerate(_walked_layouts(corpus, chunk.count, rng), start=chunk.first // block):
        name = f"{corpus}-{split}-{number:04}"
        layouts[name] = layout
        paths = [smooth(walk) for walk in walks]
        for index, path in enumerate(paths):
            identity = f"{corpus}-{split}-{number * block + index:05}"
            rivals = [other for other in paths if other is not path] or paths
            segments: list[Segment] = []
            while len(segments) < 2:  # a start of which nobody can say anything is rare; another writer finds words
                segments = write_segments(layout, path, rivals, CUTS[corpus], split == "train", rng)
            paragraphs.append(Paragraph(identity, split, name, tuple(segments)))
    return layouts, paragraphs


def _walked_layouts(
    corpus: Generated, paragraphs: int, rng: np.random.Generator
) -> Iterator[tuple[Layout, list[Floats]]]:
    """Layouts with the walks of their block, until there are enough for some paragraphs."""
    block, config = BLOCK[corpus], WalkConfig.of(corpus)
    while paragraphs > 0:
        blocks = -(-paragraphs // block)
        layouts = [sample_layout(corpus, rng) for _ in range(blocks)]
        walks: list[list[Walk]] = [[] for _ in layouts]
        alive = list(range(blocks))
        for turn in range(min(block, paragraphs)):
            starts = None if turn == 0 else [walks[index][-1] for index in alive]
            found = sample_walks([layouts[index] for index in alive], rng, config, starts=starts)
            for index, walk in zip(alive, found, strict=True):
                if walk is not None:
                    walks[index].append(walk)
            alive = [index for index, walk in zip(alive, found, strict=True) if walk is not None]
        for index in alive:
            made = walks[index][:paragraphs]
            paragraphs -= len(made)
            if made:
                yield layouts[index], [walk.points for walk in made]
