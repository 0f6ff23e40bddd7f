"""Tasks: a layout, a start, an instruction and the path that it means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np

from wordwing.errors import WordwingError
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, path_length, points_along
from wordwing.world.samplers import sample_layout
from wordwing.world.walks import WalkConfig, sample_walks

SPACING, HEADING_REACH = 0.02, 0.2
"""Distance between the points of a stretch, and along which its first heading is taken, metres."""


@dataclass(frozen=True)
class Task:
    """One flight to fly."""

    instruction: str
    layout: Layout
    start_xy: tuple[float, float]
    """World frame, metres."""
    start_yaw: float
    """World frame, radians."""
    gold_path: Floats
    """[P, 2] the demonstration, world frame, metres."""


class Stretch(NamedTuple):
    """A part of a walk and the heading to begin it with."""

    path: Floats
    """[P, 2] every 2 cm, metres, world frame."""
    start_yaw: float
    """Radians, world frame, along the first 0.2 m."""


def sample_stretches(
    layouts: Sequence[Layout],
    rng: np.random.Generator,
    config: WalkConfig,
    length: tuple[float, float] = (1.0, 3.0),
    attempts: int = 3000,
) -> list[Stretch | None]:
    """Cut a stretch of random length from anywhere in a random walk, for each layout.

    Args:
        layouts: The arenas; the same one may occur several times.
        rng: Source of everything random.
        config: Rules of the walks.
        length: Least and greatest length of a stretch, metres.
        attempts: Candidate walks per layout before giving up.

    Returns:
        For each layout a stretch, or None where no walk was found or it is too short.
    """
    walks = sample_walks(layouts, rng, config, attempts)
    return [None if walk is None else _cut(walk.points, length, rng) for walk in walks]


def _cut(path: Floats, length: tuple[float, float], rng: np.random.Generator) -> Stretch | None:
    whole = path_length(path)
    if whole < length[0]:
        return None
    wanted = rng.uniform(length[0], min(length[1], whole))
    begin = rng.uniform(0.0, whole - wanted)
    stretch = points_along(path, begin + np.linspace(0.0, wanted, round(wanted / SPACING) + 1))
    ahead = points_along(path, np.array([begin + min(HEADING_REACH, wanted)]))[0] - stretch[0]
    return Stretch(stretch, math.atan2(ahead[1], ahead[0]))


def sample_tasks(corpus: Corpus, count: int, rng: np.random.Generator) -> list[Task]:
    """Draw layouts of a corpus with a flight of 1 to 3 m in each.

    A layout that leaves no room for a flight is replaced by another. The instructions are generated
    and name only the goal, by the landmark nearest to the end of the path: "fly to the barrel". One
    task takes 0.1 to 0.3 s, a hundred at once 2 to 4 s.
    """
    tasks: list[Task] = []
    while len(tasks) < count:
        layouts = [sample_layout(corpus, rng) for _ in range(count - len(tasks))]
        found = sample_stretches(layouts, rng, WalkConfig.of(corpus))
        for layout, stretch in zip(layouts, found, strict=True):
            if stretch is not None:
                tasks.append(_task(layout, stretch, rng))
    return tasks


def sample_task_in(layout: Layout, corpus: Corpus, rng: np.random.Generator) -> Task:
    """Draw a flight of 1 to 3 m in a given layout, by a corpus's rules or, where none fits, by another's."""
    for rules in dict.fromkeys([corpus, *get_args(Corpus)]):
        [stretch] = sample_stretches([layout], rng, WalkConfig.of(rules))
        if stretch is not None:
            return _task(layout, stretch, rng)
    raise WordwingError(
        "no path fits this layout; at least three landmarks must stand on the floor, with open floor between them"
    )


def _task(layout: Layout, stretch: Stretch, rng: np.random.Generator) -> Task:
    nearest = np.linalg.norm(layout.centres - stretch.path[-1], axis=-1).argmin()
    instruction = f"fly to the {rng.choice(layout.landmarks[nearest].kind.nouns)}"
    x, y = stretch.path[0].tolist()
    return Task(instruction, layout, (x, y), stretch.start_yaw, stretch.path)
