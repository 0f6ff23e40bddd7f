"""Layouts, tours and sentences, chunk by chunk."""

import numpy as np

from wordwing.data.generating import BLOCK, SIZES, WORLDS, Chunk, Made
from wordwing.data.schema import Paragraph, Segment
from wordwing.data.tours.moves import Ground
from wordwing.data.tours.planning import LENGTHS, plan
from wordwing.language.writing.templates import pick, pick_weighted
from wordwing.language.writing.tour_writer import TourWriter, Visitor
from wordwing.world.catalogue import Corpus, landmarks, lexicon
from wordwing.world.layout import Layout
from wordwing.world.samplers import sample_layout

TWINS = 0.6
"""How often a layout has two things of a kind for certain: "the other barrel", "the nearer of the two palms"."""

TRIES = 300
"""Tours tried of one length, before another layout is taken."""


def make_tours(chunk: Chunk) -> Made:
    """Make one chunk: one instruction in a paragraph, each by another visitor; `BLOCK` of them share a layout."""
    split, block = chunk.split, BLOCK["tours"]
    numbers = list(SIZES).index("tours"), list(SIZES["tours"]).index(split)
    rng = np.random.default_rng([chunk.seed, *numbers, chunk.first])
    layouts: dict[str, Layout] = {}
    paragraphs: list[Paragraph] = []
    while len(paragraphs) < chunk.count:
        layout = _layout(rng)
        ground = Ground.of(layout)
        segments = [_segment(ground, split == "train", rng) for _ in range(min(block, chunk.count - len(paragraphs)))]
        name = f"tours-{split}-{chunk.first // block + len(layouts):04}"
        if None in segments:
            continue
        layouts[name] = layout
        for segment in filter(None, segments):
            number = chunk.first + len(paragraphs)
            paragraphs.append(Paragraph(f"tours-{split}-{number:05}", split, name, (segment,)))
    return layouts, paragraphs


def _layout(rng: np.random.Generator) -> Layout:
    world: Corpus = pick(WORLDS["tours"], rng)
    families: dict[str, list[str]] = {}
    for entry in landmarks(world):
        families.setdefault(lexicon()[entry.name].family, []).append(entry.name)
    several = [names for names in families.values() if len(names) > 1]
    twins = pick(several, rng)
    wanted = [twins[place] for place in rng.permutation(len(twins))[:2].tolist()] if rng.random() < TWINS else []
    return sample_layout(world, rng, wanted)


def _segment(ground: Ground, training: bool, rng: np.random.Generator) -> Segment | None:
    moves = 1 + pick_weighted(range(len(LENGTHS)), LENGTHS, rng)
    tours = (plan(ground, moves, rng) for _ in range(TRIES))
    planned = next((found for found in tours if found is not None), None)
    if planned is None:
        return None
    start, meaning = planned.start, planned.meaning
    text, others = TourWriter(ground.layout, Visitor.sample(rng), training, rng, start).write_tour(meaning)
    return Segment(text, start[:2], start.yaw, planned.path, meaning, alternatives=others)
