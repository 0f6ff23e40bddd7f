"""Paths through layouts that nobody has described yet: what writers are given."""

import numpy as np

from wordwing.data.generating import CUTS
from wordwing.data.segmenting import SHORTEST, smooth
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, path_length
from wordwing.world.samplers import sample_layout
from wordwing.world.walks import WALK_CONFIGS, sample_walks

ROOM = 1.5
"""A path is at least this much longer than its fewest segments at their shortest."""


def walked_layouts(world: Corpus, count: int, fewest: int, rng: np.random.Generator) -> list[tuple[Layout, Floats]]:
    """So many random layouts, each with a smooth path that is long enough to be cut.

    Args:
        world: What kind of layouts.
        count: How many.
        fewest: Segments that a path must have at least.
        rng: Source of every choice.
    """
    found: list[tuple[Layout, Floats]] = []
    while len(found) < count:
        layouts = [sample_layout(world, rng) for _ in range(count - len(found))]
        walked = zip(layouts, walked_paths(layouts, world, fewest, rng), strict=True)
        found += [(layout, path) for layout, path in walked if path is not None]
    return found


def walked_paths(layouts: list[Layout], world: Corpus, fewest: int, rng: np.random.Generator) -> list[Floats | None]:
    """For each layout a smooth path [P, 2], metres; None where none was found or it is too short to be cut."""
    paths = [None if walk is None else smooth(walk.points) for walk in sample_walks(layouts, rng, WALK_CONFIGS[world])]
    return [path if path is not None and path_length(path) > ROOM * fewest * SHORTEST else None for path in paths]


def segment_count(world: Corpus, path: Floats, span: tuple[int, int], rng: np.random.Generator) -> int:
    """How many segments of about the corpus's usual length a path is cut into, from the fewest to the most."""
    length = CUTS["cage" if world == "house" else world].length
    return int(np.clip(round(rng.normal(path_length(path) / length, 0.5) + 0.4), *span))
