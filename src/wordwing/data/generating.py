"""The generated corpora: layouts, walks and sentences.

`field` and `cage` stand for LANI and REAL, in the paper's numbers: a walk goes from landmark to neighbouring landmark
and is cut into short segments, most of which end in what the drone sees. `errands` are what people type:
the drone stands anywhere, looks anywhere, and is sent to something, wherever that is. Two in a row make a paragraph.
`tours`, which are planned and not walked, are made in `tours.making`.

Work is cut into chunks that are seeded by what they are, so the result is the same however many processes share it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from wordwing.data.schema import Paragraph, Segment
from wordwing.data.segmenting import CutConfig, heading, smooth, write_segments
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, lengths
from wordwing.world.samplers import sample_layout
from wordwing.world.walks import WALK_CONFIGS, Walk, WalkConfig, sample_walks

Generated = Literal["field", "cage", "errands", "tours"]

SIZES: dict[Generated, dict[str, int]] = {
    "field": {"train": 4200, "dev": 898, "test": 902},
    "cage": {"train": 698, "dev": 150, "test": 149},
    "errands": {"train": 6000, "dev": 300, "test": 300},
    "tours": {"train": 20_000, "dev": 1000, "test": 1000},
}
"""Paragraphs in each split; of field and cage by the paper's table of dataset and split sizes."""

CUTS: dict[Generated, CutConfig] = {
    "field": CutConfig(1.65, segments=4.8),
    "cage": CutConfig(1.07, segments=4.9),
    "errands": CutConfig(100.0, looks_away=1.0),  # no cut: an errand ends where its walk does
}

BLOCK: dict[Generated, int] = {"field": 1, "cage": 5, "errands": 1, "tours": 25}
"""Paragraphs that share a layout, each beginning where the one before ends; those of tours begin anywhere."""

WALKS: dict[Generated, int] = {"field": 1, "cage": 1, "errands": 2}
"""Walks in a paragraph."""

WORLDS: dict[Generated, tuple[Corpus, ...]] = {
    "field": ("field",),
    "cage": ("cage",),
    "errands": ("cage", "field"),
    "tours": ("cage", "field"),
}
"""Kinds of layouts, one as often as the other."""

RULES: dict[Generated, WalkConfig] = {
    "field": WALK_CONFIGS["field"],
    "cage": WALK_CONFIGS["cage"],
    "errands": WALK_CONFIGS["errand"],
}

STEPS: dict[Generated, int] = {"field": 50, "cage": 50, "errands": 100, "tours": 100}
"""Most control steps that a flight is given; a drone that has to look around first needs more."""

TRIES = 8
"""Writers that try their hand at a path."""

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
    totals = {split: max(round(size * share), BLOCK[corpus]) for split, size in SIZES[corpus].items()}
    return [
        Chunk(corpus, split, seed, first, min(CHUNK, total - first))
        for split, total in totals.items()
        for first in range(0, total, CHUNK)
    ]


def collect(results: Iterable[Made]) -> Made:
    """Put what `make` returned together, in the order of the chunks."""
    made = list(results)
    layouts = {name: layout for layouts, _ in made for name, layout in layouts.items()}
    return layouts, [paragraph for _, paragraphs in made for paragraph in paragraphs]


def make(chunk: Chunk) -> Made:
    """Make one chunk of walks."""
    corpus, split, block = chunk.corpus, chunk.split, BLOCK[chunk.corpus]
    rng = np.random.default_rng([chunk.seed, list(SIZES).index(corpus), list(SIZES[corpus]).index(split), chunk.first])
    layouts: dict[str, Layout] = {}
    paragraphs: list[Paragraph] = []
    while len(paragraphs) < chunk.count:
        for layout, walks in _walked_layouts(corpus, chunk.count - len(paragraphs), rng):
            written = _write_block(layout, [smooth(walk) for walk in walks], chunk, rng)
            if written is None:
                continue  # there was a path that no writer found anything to say about
            number = chunk.first // block + len(layouts)
            name = f"{corpus}-{split}-{number:04}"
            layouts[name] = layout
            for index, segments in enumerate(written[: chunk.count - len(paragraphs)]):
                paragraphs.append(Paragraph(f"{corpus}-{split}-{number * block + index:05}", split, name, segments))
    return layouts, paragraphs


def _write_block(
    layout: Layout, paths: list[Floats], chunk: Chunk, rng: np.random.Generator
) -> list[tuple[Segment, ...]] | None:
    """The paragraphs of one layout, each by another writer; None if one of them cannot be written."""
    written = []
    each = WALKS[chunk.corpus]
    for first in range(0, len(paths), each):
        segments: list[Segment] = []
        for path in paths[first : first + each]:
            found = _write(layout, path, paths, segments, chunk, rng)
            if not found:
                return None
            segments += found
        written.append(tuple(segments))
    return written


def _write(
    layout: Layout,
    path: Floats,
    paths: list[Floats],
    before: list[Segment],
    chunk: Chunk,
    rng: np.random.Generator,
) -> list[Segment]:
    """What one of several writers finds to say of a path that goes on from some segments; [] if none of them does."""
    rivals = [other for other in paths if other is not path] or paths
    yaw = heading(before[-1].path) if before else None
    training = chunk.split == "train"
    tries = (write_segments(layout, path, rivals, CUTS[chunk.corpus], training, rng, yaw) for _ in range(TRIES))
    return next(filter(None, tries), [])


def _walked_layouts(
    corpus: Generated, paragraphs: int, rng: np.random.Generator
) -> Iterator[tuple[Layout, list[Floats]]]:
    """About as many layouts, with the walks of their block, as some paragraphs need; at most that many.

    Walks are cut to the length of a paragraph before the next one begins where they end.
    """
    block = BLOCK[corpus]
    layouts = [sample_layout(_world(corpus, rng), rng) for _ in range(-(-paragraphs // block))]
    walks: list[list[Walk]] = [[] for _ in layouts]
    alive = list(range(len(layouts)))
    for turn in range(min(block, paragraphs) * WALKS[corpus]):
        starts = None if turn == 0 else [walks[index][-1] for index in alive]
        found = sample_walks([layouts[index] for index in alive], rng, RULES[corpus], starts=starts)
        for index, walk in zip(alive, found, strict=True):
            if walk is not None:
                walks[index].append(_shortened(walk, layouts[index], CUTS[corpus].sample_length(rng)))
        alive = [index for index, walk in zip(alive, found, strict=True) if walk is not None]
    for index in alive:
        yield layouts[index], [walk.points for walk in walks[index]]


def _world(corpus: Generated, rng: np.random.Generator) -> Corpus:
    worlds = WORLDS[corpus]
    return worlds[int(rng.integers(len(worlds)))] if len(worlds) > 1 else worlds[0]


def _shortened(walk: Walk, layout: Layout, length: float) -> Walk:
    """The first part of a walk, at most about `length` metres long; it has visited what it ends nearest to."""
    passed = lengths(np.diff(walk.points, axis=0)).cumsum()
    points = walk.points[: int(np.searchsorted(passed, length)) + 2]
    if len(points) == len(walk.points):
        return walk
    return Walk(points, (int(lengths(layout.centres - points[-1]).argmin()),))
