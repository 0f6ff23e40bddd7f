"""Collections that take no time to make: nothing of them is drawn; and what people do with them."""

import json
import sqlite3
from collections.abc import Callable
from functools import cache
from pathlib import Path
from unittest.mock import patch

import numpy as np

from small_study import tiny_media
from wordwing.collect import create
from wordwing.collect.create import CollectionPlan, create_collection, new_settings
from wordwing.collect.drawing import Drawn, Route
from wordwing.collect.store import Assigned, Collection
from wordwing.data.schema import Segment
from wordwing.world.layout import Layout, Placement

LAYOUT = Layout((Placement("Barrel", 1.0, 0.5), Placement("Gorilla", -1.0, 1.2), Placement("Boat", 0.0, -1.5)))
EXAMPLE = "turn to the barrel and stop beside it"
LENGTH = 0.8
"""Of a segment, metres."""


@cache
def tiny_images() -> dict[str, bytes]:
    legend, (video, still) = tiny_media()
    return {"map": legend, "legend": legend, "video": video, "still": still, "view": still}


def undrawn(route: Route) -> Drawn:
    """Images that a browser can show, whatever they are of."""
    kinds = {"writing": (("map", "legend"), ("video", "still")), "following": (("map", "legend"), ("view",))}
    return {
        (name, kind): tiny_images()[kind]
        for role, (whole, part) in kinds.items()
        for place, name in enumerate(getattr(route, role))
        for kind in (part if place else whole)
    }


def straight(x: float, y: float, text: str = "") -> Segment:
    """Ahead from a place, along x."""
    path = np.array([[x + step, y] for step in np.linspace(0.0, LENGTH, 5)])
    return Segment(text, (x, y), 0.0, path)


def small_collection(
    file: Path,
    paths: int = 2,
    segments: int = 2,
    tries: int = 2,
    practice: int = 0,
    clock: Callable[[], float] | None = None,
    splits: tuple[str, ...] = ("train", "dev"),
) -> Collection:
    """A collection of straight paths along x, each beside the one before; `practice` to write and as many to follow."""
    layouts = {f"l{number}": (split, LAYOUT) for number, split in enumerate(splits)}
    rows = tuple(
        (
            f"l{number % len(splits)}",
            tuple(straight(-2.0 + LENGTH * place, -2.0 + 0.3 * (number % 14)) for place in range(segments)),
        )
        for number in range(paths)
    )
    examples = tuple((LAYOUT, straight(0.0, 0.1 * number, EXAMPLE)) for number in range(2 * practice))
    made = CollectionPlan(new_settings("mine", "human", tries, 5), layouts, rows, examples)
    with patch.object(create, "draw_route", undrawn):
        create_collection(made, file)
    return Collection(file, clock) if clock else Collection(file)


def ends(file: Path) -> dict[str, list[float]]:
    """Where segments end, by the id of what their follower sees."""
    with sqlite3.connect(file) as connection:
        rows = connection.execute("SELECT following, points FROM segments").fetchall()
    return {name: json.loads(points)[-1] for name, points in rows}


def write_all(collection: Collection, token: str, work: Assigned, text: str = "go past the barrel, part") -> None:
    """A writer's whole task."""
    for part in work.parts:
        if part.yours:
            collection.keep(token, work.id, part.place, f"{text} {part.place}")
    collection.send(token, work.id)


def draw_to(collection: Collection, token: str, work: Assigned, off: float = 0.0) -> None:
    """One sentence followed, to a place so far beyond the right one, metres."""
    part = work.parts[-1]
    x, y = ends(collection.file)[part.media]
    collection.follow(token, work.id, part.place, (part.start[:2], (x - off, y)))


def act(collection: Collection, token: str, off: float = 0.0) -> str | None:
    """Do the next thing that there is to do; returns what it was."""
    work = collection.work(token)
    if work is None:
        return None
    if work.role == "write":
        write_all(collection, token, work)
    else:
        draw_to(collection, token, work, off)
    return work.role
