"""Making a collection: layouts, paths cut into segments, and everything that people see of them."""

import json
import math
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordwing.collect.database import COLLECTION, CollectionSettings, Role
from wordwing.collect.drawing import Route, draw_route, video_poses
from wordwing.data.generating import CUTS
from wordwing.data.schema import Segment
from wordwing.data.segmenting import cut_segments
from wordwing.data.statistics import HIT
from wordwing.data.unwritten import World, segment_count, walked_layouts, walked_paths
from wordwing.data.written import read_written
from wordwing.errors import WordwingError
from wordwing.files import replacing
from wordwing.pool import shared
from wordwing.release import VERSION
from wordwing.web.database import check_new, new_database
from wordwing.web.participants import new_id
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats

TRIES = 20
"""Walks that are tried in a layout of one's own for each path."""

ROLES: tuple[Role, ...] = ("write", "follow")

PLAIN = HIT / 2
"""Paths to practise following on are those whose sentence led a reader at least this near, metres."""


@dataclass(frozen=True)
class CollectionPlan:
    """What is to be written about."""

    settings: CollectionSettings
    layouts: dict[str, tuple[str, Layout]]
    """Split and layout by id."""
    paths: tuple[tuple[str, tuple[Segment, ...]], ...]
    """The id of a layout, and the segments of a path in it, still without words."""
    practice: tuple[tuple[Layout, Segment], ...]
    """Segments with a sentence: to write about and to follow, in turn."""

    @property
    def segments(self) -> int:
        """How many sentences are wanted."""
        return sum(len(segments) for _layout, segments in self.paths)


def plan(
    settings: CollectionSettings,
    world: World,
    paths: int,
    segments: tuple[int, int],
    own: Sequence[Layout] = (),
    dev: float = 0.1,
    test: float = 0.1,
    practice: int = 1,
) -> CollectionPlan:
    """Choose layouts and paths.

    Args:
        settings: With the seed of every choice.
        world: The kind of random layouts, and how paths in layouts of one's own are walked.
        paths: How many.
        segments: Fewest and most in a path.
        own: Layouts; without any each path has a random one.
        dev: Share of the layouts that belongs to the split dev.
        test: The same of test.
        practice: How many segments people practise writing about, and how many following.
    """
    rng = np.random.default_rng(settings.seed)
    fewest = segments[0]
    walked = (
        _walked_in(own, world, paths, fewest, rng)
        if own
        else [(str(number), *found) for number, found in enumerate(walked_layouts(world, paths, fewest, rng))]
    )
    names = list(dict.fromkeys(name for name, _layout, _path in walked))
    splits = dict(zip(names, _splits(len(names), dev, test, rng), strict=True))
    label = {name: f"{settings.name}-{number:04}" for number, name in enumerate(names, start=1)}
    return CollectionPlan(
        settings,
        {label[name]: (splits[name], layout) for name, layout, _path in walked},
        tuple(
            (label[name], tuple(cut_segments(path, segment_count(world, path, segments, rng), CUTS[world], rng)))
            for name, _layout, path in walked
        ),
        tuple(_practice(practice, rng)),
    )


def create_collection(
    made: CollectionPlan, out: Path, processes: int = 1, tick: Callable[[int], None] = lambda paths: None
) -> None:
    """Draw everything and write the collection, all of it or nothing.

    Args:
        made: What is to be written about.
        out: The collection's file; nothing may be there.
        processes: How many share the drawing.
        tick: Called with the number of paths drawn since the last call.
    """
    check_new(out)
    routes: list[tuple[str, Role | None, Route]] = [
        (f"practice-{number}", ROLES[number % 2], _route(layout, (segment,)))
        for number, (layout, segment) in enumerate(made.practice)
    ]
    routes += [(name, None, _route(made.layouts[name][1], segments)) for name, segments in made.paths]
    killed = "a process that drew paths was killed, perhaps because memory ran out; try --processes 1"
    with replacing(out) as temporary:
        with new_database(COLLECTION, made.settings, temporary, out) as connection:
            for number, (name, practice, route) in enumerate(routes, start=1):
                split = "practice" if practice else made.layouts[name][0]
                row = name, split, route.layout.to_json()
                connection.execute("INSERT OR IGNORE INTO layouts VALUES (?, ?, ?)", row)
                path = number, name, practice, route.writing[0], route.following[0]
                connection.execute("INSERT INTO paths VALUES (?, ?, ?, ?, ?)", path)
                connection.executemany(
                    "INSERT INTO segments (path, place, start, points, poses, example, writing, following)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    [(number, place, *row) for place, row in enumerate(_segment_rows(route))],
                )
            for _piece, drawn in shared(draw_route, [route for *_what, route in routes], processes, killed):
                rows = [(*key, content) for key, content in drawn.items()]
                connection.executemany("INSERT INTO media VALUES (?, ?, ?)", rows)
                tick(1)
        check_new(out)


def _segment_rows(route: Route) -> Iterator[tuple[str | None, ...]]:
    for segment, writing, following in zip(route.segments, route.writing[1:], route.following[1:], strict=True):
        yield (
            json.dumps([*segment.start_xy, segment.start_yaw]),
            json.dumps(np.round(segment.path, 4).tolist()),
            json.dumps(video_poses(segment)),
            segment.instruction or None,
            writing,
            following,
        )


def new_settings(name: str, text: str, tries: int, seed: int) -> CollectionSettings:
    """Of a new collection, with a secret of its own."""
    return CollectionSettings(name, text, tries, seed, VERSION, secrets.token_hex(32))


def _route(layout: Layout, segments: tuple[Segment, ...]) -> Route:
    writing, following = (tuple(new_id() for _ in range(len(segments) + 1)) for _role in ("write", "follow"))
    return Route(layout, segments, writing, following)


def _walked_in(
    own: Sequence[Layout], world: World, paths: int, fewest: int, rng: np.random.Generator
) -> list[tuple[str, Layout, Floats]]:
    """So many paths, dealt to layouts of one's own in turn."""
    wanted = [number % len(own) for number in range(paths)]
    found = []
    for number in wanted:
        tries = walked_paths([own[number]] * TRIES, world, fewest, rng)
        path = next((path for path in tries if path is not None), None)
        if path is None:
            raise WordwingError(
                f"--layouts: in layout {number + 1} no path of {fewest} segments was found; it needs at least three "
                "landmarks on the floor with room to fly between them, or fewer --segments"
            )
        found.append((str(number), own[number], path))
    return found


def _splits(count: int, dev: float, test: float, rng: np.random.Generator) -> list[str]:
    """A split for each layout; of two or fewer all are for training."""
    held = {"dev": dev, "test": test} if count > 2 else {}
    sizes = {split: max(round(share * count), 1) for split, share in held.items() if share > 0}
    names = [split for split, size in sizes.items() for _ in range(size)]
    names = [*names[: max(count - 1, 0)], *["train"] * (count - len(names))]
    return [names[place] for place in rng.permutation(count)]


def _practice(count: int, rng: np.random.Generator) -> list[tuple[Layout, Segment]]:
    """Segments of `written` that a reader has understood; as many to write about as to follow."""
    if not count:
        return []
    profiles, entries = read_written()
    training = {profile.id for profile in profiles if profile.split == "train"}
    plain = [
        (entry, reading.segment)
        for entry in entries
        for reading in entry.readings
        if entry.writer in training
        and reading.segment == 0
        and math.dist((reading.x, reading.y), entry.paragraph("train").segments[0].path[-1]) < PLAIN
    ]
    chosen = rng.choice(len(plain), 2 * count, replace=False).tolist()
    return [
        (Layout.from_document(entry.layout, entry.id), entry.paragraph("train").segments[number])
        for entry, number in (plain[place] for place in chosen)
    ]
