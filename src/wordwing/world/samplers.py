"""Random layouts: LANI's field, the paper's REAL cage, and furnished rooms.

The authors place landmarks in units of a thousandth of the arena's edge; here lengths are metres,
rounded to millimetres so that layout files read well.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF, ARENA_SIZE, CONFIG_UNIT
from wordwing.world.catalogue import Corpus, Landmark, landmark, landmarks
from wordwing.world.fences import FENCES
from wordwing.world.layout import Layout, Placement
from wordwing.world.paths import Floats, Ints

GAP = 60 * CONFIG_UNIT
"""Least distance between the circles of two scattered landmarks, metres."""

FEW = 50
"""Places for a landmark tried at once before all the others."""

CAGE_RADIUS = 100 * CONFIG_UNIT
"""Keep-out radius of all landmarks in the cage, whatever the catalogue says, metres."""


MOST: dict[Corpus, int] = {"field": 13, "cage": 8, "house": 14}
"""Landmarks of a layout at most."""

ROOM_TRIES = 300
"""Rooms that are furnished in search of one with the pieces that are wanted; a rare pair is in one of fifty."""


def sample_layout(corpus: Corpus, rng: np.random.Generator, wanted: Sequence[str] = ()) -> Layout:
    """Draw a layout of a corpus; every one passes `Layout.validate`.

    `field` scatters 6-13 of LANI's 63 landmarks, `cage` 5-8 of the 15 in REAL: the paper's counts,
    both ends included (the authors' generator truncates a uniform real, so never reaches the upper
    end). `house` furnishes a kitchen, bedroom, bathroom or living room with 5-14 pieces.

    Args:
        corpus: Which kind of world.
        rng: Source of everything random.
        wanted: Names of landmarks that must be there.
    """
    known = {entry.name for entry in landmarks(corpus)}
    for name in wanted:
        if name not in known:
            raise WordwingError(f"no {corpus} has a {landmark(name).nouns[0]}")
    if len(set(wanted)) > (most := MOST[corpus]):
        raise WordwingError(f"{len(set(wanted))} landmarks are wanted in a {corpus}, where at most {most} have room")
    return (_house if corpus == "house" else partial(_scattered, corpus))(rng, tuple(dict.fromkeys(wanted)))


def _scattered(corpus: Corpus, rng: np.random.Generator, wanted: tuple[str, ...]) -> Layout:
    """A field or a cage."""
    least, edge, tries = (6, 90, 1000) if corpus == "field" else (5, 100, 100)
    count = max(int(rng.integers(least, MOST[corpus], endpoint=True)), len(wanted))
    while True:
        chosen = _draw(landmarks(corpus), count, rng, wanted)
        if corpus == "field":
            radii = reach = (np.array([kind.radius for kind in chosen]) * rng.uniform(1.0, 1.3, count)).round(4)
        else:  # the authors' last check asks as much room for the Container as its own radius needs
            radii = np.full(count, CAGE_RADIUS)
            reach = np.array([kind.radius if kind.name == "Container" else CAGE_RADIUS for kind in chosen])
        places = _scatter(reach, edge * CONFIG_UNIT, tries, rng)
        if places is not None:
            yaws = rng.uniform(-math.pi, math.pi, len(chosen)).round(3)
            rows = zip(chosen, places.tolist(), yaws.tolist(), radii.tolist(), strict=True)
            return Layout(tuple(Placement(kind.name, x, y, yaw, radius=radius) for kind, (x, y), yaw, radius in rows))


def _draw(pool: tuple[Landmark, ...], count: int, rng: np.random.Generator, wanted: tuple[str, ...]) -> list[Landmark]:
    """So many of a pool, those that are wanted in the place of the first."""
    drawn = [pool[index] for index in rng.choice(len(pool), count, replace=False)]
    others = [entry for entry in drawn if entry.name not in wanted]
    return [landmark(name) for name in wanted] + others[: count - len(wanted)]


def _scatter(reach: Floats, edge: float, tries: int, rng: np.random.Generator) -> Floats | None:
    """Drop circles one by one where they keep `GAP` from those before.

    Args:
        reach: [L] radii, metres.
        edge: Least distance of a centre from the fences, metres.
        tries: Places tried for each circle, more than `FEW`.
        rng: Source of the places.

    Returns:
        [L, 2] centres, metres, world frame; None if some circle found no place.
    """
    limit = round((ARENA_HALF - edge) * 1000)
    placed = np.empty((2, len(reach)))
    for index, radius in enumerate(reach):
        needed = np.square(radius + reach[:index] + GAP)[:, None]
        # Early circles find a place at once, the last ones hardly any.
        for block in (FEW, tries - FEW):
            candidates = rng.integers(-limit, limit, (2, block), endpoint=True) / 1000
            away = candidates[:, None] - placed[:, :index, None]  # [2, index, block]
            x, y = away * away
            free = (x + y >= needed).all(axis=0)
            if free[best := free.argmax()]:
                placed[:, index] = candidates[:, best]
                break
        else:
            return None
    return placed.T


@dataclass(frozen=True)
class Furnishing:
    """How many of one piece of furniture a kind of room has, and where they go."""

    name: str
    low: int
    high: int
    """Least and most of it in a room."""
    at: Literal["wall", "beside", "before", "on", "middle"] = "wall"
    """With its back to a wall; next to, in front of or on top of a host; or in mid-room."""
    hosts: tuple[str, ...] = ()
    """What it goes beside, before or on; without any of them in the room it is left out."""


ROOMS: dict[str, tuple[Furnishing, ...]] = {
    "kitchen": (
        Furnishing("CounterTop", 2, 3),
        Furnishing("Fridge", 1, 1),
        Furnishing("StoveBurner", 1, 1),
        Furnishing("SinkBasin", 1, 1),
        Furnishing("Cabinet", 1, 2),
        Furnishing("Drawer", 0, 1),
        Furnishing("SideTable", 0, 1),
        Furnishing("DiningTable", 0, 1, "middle"),
        Furnishing("GarbageCan", 1, 1, "beside", ("CounterTop", "Fridge", "Cabinet")),
        Furnishing("Microwave", 1, 1, "on", ("CounterTop",)),
        Furnishing("CoffeeMachine", 0, 1, "on", ("CounterTop",)),
    ),
    "bedroom": (
        Furnishing("Bed", 1, 1),
        Furnishing("Shelf", 1, 2),
        Furnishing("Drawer", 1, 1),
        Furnishing("Desk", 0, 1),
        Furnishing("Dresser", 0, 1),
        Furnishing("ArmChair", 0, 1),
        Furnishing("Cabinet", 0, 1),
        Furnishing("SideTable", 1, 2, "beside", ("Bed",)),
        Furnishing("GarbageCan", 0, 1, "beside", ("Desk", "Drawer")),
        Furnishing("Safe", 0, 1, "beside", ("Dresser", "Shelf")),
        Furnishing("DeskLamp", 1, 2, "on", ("Desk", "Dresser", "SideTable")),
    ),
    "bathroom": (
        Furnishing("Toilet", 1, 1),
        Furnishing("SinkBasin", 1, 2),
        Furnishing("BathtubBasin", 0, 1),
        Furnishing("CounterTop", 0, 1),
        Furnishing("Cabinet", 0, 2),
        Furnishing("Drawer", 0, 1),
        Furnishing("Shelf", 0, 1),
        Furnishing("ToiletPaperHanger", 1, 1, "beside", ("Toilet",)),
        Furnishing("HandTowelHolder", 1, 2, "beside", ("SinkBasin", "BathtubBasin")),
        Furnishing("GarbageCan", 1, 1, "beside", ("Toilet", "SinkBasin")),
    ),
    "living room": (
        Furnishing("Sofa", 1, 1),
        Furnishing("ArmChair", 1, 2),
        Furnishing("Shelf", 0, 1),
        Furnishing("Dresser", 0, 1),
        Furnishing("Drawer", 0, 1),
        Furnishing("Desk", 0, 1),
        Furnishing("CoffeeTable", 1, 1, "before", ("Sofa",)),
        Furnishing("Ottoman", 0, 1, "before", ("ArmChair",)),
        Furnishing("FloorLamp", 1, 1, "beside", ("Sofa", "ArmChair")),
        Furnishing("SideTable", 1, 2, "beside", ("Sofa", "ArmChair")),
        Furnishing("DiningTable", 0, 1, "middle"),
        Furnishing("DeskLamp", 0, 1, "on", ("Desk", "Dresser", "SideTable")),
    ),
}
"""Counts as in the rooms that the people of the `house` corpus wrote about; big pieces first."""


def _house(rng: np.random.Generator, wanted: tuple[str, ...]) -> Layout:
    for _ in range(ROOM_TRIES):
        furnishings = list(ROOMS.values())[rng.integers(len(ROOMS))]
        layout = None
        while layout is None:
            layout = _furnish(furnishings, rng)
        if set(wanted) <= {piece.name for piece in layout.landmarks}:
            return layout
    pieces = " and a ".join(landmark(name).nouns[0] for name in wanted)
    raise WordwingError(f"no room has a {pieces} in it")


def _furnish(furnishings: tuple[Furnishing, ...], rng: np.random.Generator) -> Layout | None:
    """Furnish three walls of a room (the fourth has the door); None if a piece finds no place."""
    walls = rng.permutation(len(FENCES))[:3]
    room: list[Placement] = []
    for item in furnishings:
        gap = 0.6 if item.at == "middle" else 0.02
        hosts = [piece for piece in room if piece.name in item.hosts]
        if item.hosts and not hosts:
            continue
        for _ in range(rng.integers(item.low, item.high, endpoint=True)):
            for _ in range(50):
                piece = _propose(item, hosts, walls, rng)
                if _fits(piece, room, gap):
                    room.append(piece)
                    break
            else:
                return None
    return Layout(tuple(room))


def _propose(item: Furnishing, hosts: list[Placement], walls: Ints, rng: np.random.Generator) -> Placement:
    """One random place for a piece, whether or not it is taken."""
    footprint = landmark(item.name).footprint
    if item.at == "middle":
        x, y = rng.uniform(-0.8, 0.8, 2)
        return _placement(item.name, x, y, rng.integers(4) * math.pi / 2)
    if item.at == "wall":
        fence = FENCES[rng.choice(walls)]
        along = rng.uniform(footprint / ARENA_SIZE, 1 - footprint / ARENA_SIZE)
        foot = np.array(fence.start) * (1 - along) + np.array(fence.end) * along
        x, y = foot + np.array(fence.normal) * footprint
        return _placement(item.name, x, y, math.atan2(fence.normal[1], fence.normal[0]))
    host = hosts[rng.integers(len(hosts))]
    if item.at == "on":
        return _placement(item.name, host.x, host.y, host.yaw, host.kind.height)
    front = np.array([math.cos(host.yaw), math.sin(host.yaw)])
    touching = host.kind.footprint + footprint
    if item.at == "before":
        offset = front * (touching + rng.uniform(0.15, 0.35))
    else:
        side = np.array([-front[1], front[0]]) * rng.choice([-1, 1])
        # Backs in line: the smaller piece goes nearer to the wall.
        offset = side * (touching + rng.uniform(0.03, 0.15)) + front * (footprint - host.kind.footprint)
    return _placement(item.name, host.x + offset[0], host.y + offset[1], host.yaw)


def _placement(name: str, x: float, y: float, yaw: float, elevation: float = 0.0) -> Placement:
    return Placement(name, round(float(x), 3), round(float(y), 3), round(float(yaw), 4), elevation)


def _fits(piece: Placement, room: list[Placement], gap: float) -> bool:
    """Whether a piece is inside the fences and `gap` metres from what stands at its height."""
    kind = piece.kind
    return max(abs(piece.x), abs(piece.y)) <= ARENA_HALF - kind.footprint + 1e-3 and all(
        math.hypot(piece.x - other.x, piece.y - other.y) >= kind.footprint + other.kind.footprint + gap
        or piece.elevation >= other.elevation + other.kind.height
        or other.elevation >= piece.elevation + kind.height
        for other in room
    )
