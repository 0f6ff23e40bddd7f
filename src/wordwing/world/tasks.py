"""Tasks: a layout, a start, an instruction and the path that it means."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, get_args

import numpy as np

from wordwing.frames import ARENA_HALF
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, path_length, points_along
from wordwing.world.samplers import sample_layout
from wordwing.world.walks import WALK_CONFIGS, WalkConfig, sample_walks

SPACING, HEADING_REACH = 0.02, 0.2
"""Distance between the points of a stretch, and along which its first heading is taken, metres."""


START_MARGIN = 0.1
"""How near to a fence a drone may start, metres."""

CLEARANCE = 0.3
"""Between where a drone starts or stops and landmarks and fences, metres, where no walk says so."""


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


class StartPose(NamedTuple):
    """Where a drone begins."""

    x: float
    y: float
    """World frame, metres."""
    yaw: float
    """World frame, radians."""


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
        found = sample_stretches(layouts, rng, WALK_CONFIGS[corpus])
        for layout, stretch in zip(layouts, found, strict=True):
            if stretch is not None:
                tasks.append(_task(layout, stretch, rng))
    return tasks


def sample_task_in(layout: Layout, corpus: Corpus, rng: np.random.Generator, start: StartPose | None = None) -> Task:
    """Draw a flight of 1 to 3 m in a given layout, by a corpus's rules or, where none fits, by another's.

    Where no walk fits, as among one or two landmarks, and where a start is given, the path leads straight to a landmark
    or, where there is none, to the middle of the arena.
    """
    if start is None:
        for rules in dict.fromkeys([corpus, *get_args(Corpus)]):
            [stretch] = sample_stretches([layout], rng, WALK_CONFIGS[rules])
            if stretch is not None:
                return _task(layout, stretch, rng)
    return _straight_task(layout, rng, start)


def _straight_task(layout: Layout, rng: np.random.Generator, start: StartPose | None) -> Task:
    """A flight straight to a landmark that is drawn, ending before it; from a start, or from a random one."""
    here = np.array(start[:2]) if start is not None else _free_place(layout, rng)
    place = int(rng.integers(len(layout.landmarks))) if layout.landmarks else None
    goal = np.zeros(2) if place is None else layout.centres[place]
    away = 0.0 if place is None else layout.landmarks[place].kind.footprint + CLEARANCE
    whole = float(np.linalg.norm(goal - here))
    length = max(whole - away, 0.0)
    path = here + np.linspace(0.0, length, round(length / SPACING) + 1)[:, None] * (goal - here) / max(whole, 1e-9)
    yaw = start.yaw if start is not None else float(rng.uniform(-math.pi, math.pi))
    name = "middle" if place is None else rng.choice(layout.landmarks[place].kind.nouns)
    x, y = here.tolist()
    return Task(f"fly to the {name}", layout, (x, y), yaw, path)


def _free_place(layout: Layout, rng: np.random.Generator) -> Floats:
    """A place in the arena clear of its landmarks, if there is one, the clearest of many otherwise."""
    places = rng.uniform(-1, 1, (100, 2)) * (ARENA_HALF - CLEARANCE)
    if not layout.landmarks:
        return places[0]
    clear = (np.linalg.norm(places[:, None] - layout.centres, axis=-1) - layout.footprints).min(axis=1)
    return places[int(np.argmax(clear.clip(max=CLEARANCE)))]  # of those that are clear enough the first


def _task(layout: Layout, stretch: Stretch, rng: np.random.Generator) -> Task:
    nearest = np.linalg.norm(layout.centres - stretch.path[-1], axis=-1).argmin()
    instruction = f"fly to the {rng.choice(layout.landmarks[nearest].kind.nouns)}"
    x, y = stretch.path[0].tolist()
    return Task(instruction, layout, (x, y), stretch.start_yaw, stretch.path)
