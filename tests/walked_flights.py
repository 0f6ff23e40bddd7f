"""Parts of random walks, as long as segments are, for tests of what is said about them."""

import math
from typing import NamedTuple

import numpy as np

from wordwing.language.meaning.flown_path import Track
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, path_length, points_along, resample
from wordwing.world.samplers import sample_layout
from wordwing.world.walks import WALK_CONFIGS, sample_walks


class Flight(NamedTuple):
    """What the judge is given besides a meaning."""

    path: Floats
    start_yaw: float
    layout: Layout

    @property
    def track(self) -> Track:
        """As the judge sees it."""
        return Track(*self)


def walked_flights(corpus: Corpus, layouts: int, rng: np.random.Generator, cuts: int = 3) -> list[list[Flight]]:
    """For each layout some parts of one walk in it."""
    places = [sample_layout(corpus, rng) for _ in range(layouts)]
    walks = sample_walks(places, rng, WALK_CONFIGS[corpus])
    return [
        [_cut(walk.points, layout, rng) for _ in range(cuts)]
        for layout, walk in zip(places, walks, strict=True)
        if walk is not None
    ]


def _cut(walk: Floats, layout: Layout, rng: np.random.Generator) -> Flight:
    """A part of a walk, a little smoothed, and entered about the way it goes or looking elsewhere."""
    even = resample(walk, 0.1)
    path = np.array([even[max(i - 2, 0) : i + 3].mean(axis=0) for i in range(len(even))])
    length = min(float(rng.uniform(0.5, 2.2)), path_length(path))
    begin = float(rng.uniform(0.0, path_length(path) - length))
    points = points_along(path, np.linspace(begin, begin + length, max(round(length / 0.1), 2)))
    ahead = math.atan2(*(points[1] - points[0])[::-1])
    yaw = ahead + rng.normal(0.0, 0.3) if rng.random() < 0.6 else rng.uniform(-math.pi, math.pi)
    return Flight(points, float(yaw), layout)
