"""Where the arena lies in the autopilot's local frame, and the file that says so, `arena.json`.

A file is `{"schema": 1, "north": 1.2, "east": -0.4, "heading_deg": 37.0, "floor_down": 0.05}`: the arena's centre in
the autopilot's local NED frame, metres; the compass heading of the world's +x axis, which points at the red fence; how
far the floor is below the local frame's origin, metres. `margin`, `side_margin` and `fences` may be left out. Each
mistake in one is answered with one sentence that names the file.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from wordwing.constants import ARENA_HALF
from wordwing.errors import WordwingError, did_you_mean, shown
from wordwing.files import read_text, replacing
from wordwing.flight.mavlink.geometry import (
    PlainPose,
    Quaternion,
    Vector,
    add,
    conjugate,
    multiply,
    quaternion_from_euler,
    rotate,
    to_ned,
)
from wordwing.world.fences import FENCES

SCHEMA = 1
"""Version of the file format."""

MAX_BYTES = 100_000
"""Largest file that is read; far beyond what one can hold."""

RANGES = {
    "north": (-1000.0, 1000.0, "metres"),
    "east": (-1000.0, 1000.0, "metres"),
    "heading_deg": (-360.0, 360.0, "degrees"),
    "floor_down": (-100.0, 100.0, "metres"),
    "margin": (0.35, 1.5, "metres"),
    "side_margin": (0.35, 1.5, "metres"),
}
"""What the numbers may be. Nearer to a fence than 0.35 m a real drone's hull and its overshoot do not fit."""

COLOURS = tuple(fence.colour for fence in FENCES)
"""Of the fences, clockwise seen from above, from the one that +x points at."""


@dataclass(frozen=True)
class ArenaFrame:
    """A square arena of 4.7 m in the autopilot's local frame; making one checks nothing, `load` and `save` do.

    The *local frame* here is the autopilot's local NED turned z up: x north, y west, z up (`frames.ned_to_world`).
    The *world frame* has its origin on the floor at the arena's centre and its +x axis through the red fence.
    """

    north: float = 0.0
    """Of the arena's centre, metres."""
    east: float = 0.0
    """Of the arena's centre, metres."""
    heading_deg: float = 0.0
    """Where the world's +x axis points, degrees clockwise from the local frame's north."""
    floor_down: float = 0.0
    """How far the floor is below the local frame's origin, metres; negative if it is above."""
    margin: float = 0.35
    """Where safety stops a drone that flies at a fence, metres before it."""
    side_margin: float = 0.35
    """Where it stops a drone that flies along a fence, metres before it."""
    fences: tuple[str | None, ...] = COLOURS
    """Colours of the fences, clockwise seen from above, from the one that +x points at; None where it has none."""

    @property
    def half(self) -> float:
        """Half the edge of the arena, metres."""
        return ARENA_HALF

    @cached_property
    def _inverse(self) -> PlainPose:
        """The local frame's pose in the world frame."""
        yaw = (-math.radians(self.heading_deg) + math.pi) % (2 * math.pi) - math.pi
        back = conjugate(quaternion_from_euler(0.0, 0.0, yaw))
        x, y, z = rotate(back, to_ned((self.north, self.east, self.floor_down)))
        return PlainPose((-x, -y, -z), back)

    def world_pose(self, position: Vector, quaternion: Quaternion) -> PlainPose:
        """A pose in the local frame with z up, in the world frame, where heights are above the floor."""
        inverse = self._inverse
        turned = rotate(inverse.quaternion, position)
        return PlainPose(add(inverse.position, turned), multiply(inverse.quaternion, quaternion))

    def world_velocity(self, velocity: Vector) -> Vector:
        """A velocity in the local frame with z up, m/s, in the world frame."""
        return rotate(self._inverse.quaternion, velocity)

    def rounded(self) -> Self:
        """The same to a millimetre and a hundredth of a degree, as a person would write it."""
        values = {name: round(getattr(self, name), 3) for name in RANGES}
        return type(self)(**{**values, "heading_deg": round(self.heading_deg, 2)}, fences=self.fences)

    def validate(self, where: str = "arena") -> None:
        """Raise a `WordwingError` about the first mistake; `where` begins the sentence."""
        for name, (least, most, unit) in RANGES.items():
            value = getattr(self, name)
            if not _is_number(value) or not least <= value <= most:  # NaN is not, either
                raise WordwingError(
                    f"{where}: {name} is {shown(value)}; it must be a number of {unit} from {least:g} to {most:g}"
                )
        _check_fences(self.fences, where)

    def to_json(self) -> str:
        """The text of a file."""
        values = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return json.dumps({"schema": SCHEMA, **values, "fences": list(self.fences)}, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str, where: str = "arena") -> Self:
        """Read what `to_json` made; `where` begins each complaint."""
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise WordwingError(f"{where}: this is not JSON ({error})") from None
        if not isinstance(document, dict):
            raise WordwingError(f'{where}: this is {shown(document)}; it must be an object, {{"schema": {SCHEMA}, …}}')
        names = [entry.name for entry in fields(cls)]
        for name in document:
            if name not in ("schema", *names):
                raise WordwingError(f"{where}: there is an unknown entry {shown(name)}{did_you_mean(name[:40], names)}")
        for name in ("schema", "north", "east", "heading_deg", "floor_down"):
            if name not in document:
                raise WordwingError(f'{where}: there is no "{name}"')
        version = document.pop("schema")
        if type(version) is not int or version != SCHEMA:
            raise WordwingError(f"{where}: the schema is {shown(version)}; this wordwing reads {SCHEMA}")
        if "fences" in document:
            document["fences"] = _colours(document["fences"], where)
        arena = cls(**document)
        arena.validate(where)
        return cls(**{**document, **{name: float(getattr(arena, name)) for name in RANGES}})

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file; each mistake gives one sentence."""
        return cls.from_json(read_text(path, MAX_BYTES, "arena", "wordwing flight check --write makes one"), str(path))

    def save(self, path: str | Path) -> None:
        """Write a file, all of it or nothing."""
        self.validate(str(path))
        with replacing(path) as temporary:
            temporary.write_text(self.to_json(), "utf-8")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _colours(value: Any, where: str) -> tuple[str | None, ...]:
    """Fences as a file has them."""
    if not isinstance(value, list) or any(colour is not None and not isinstance(colour, str) for colour in value):
        raise WordwingError(f"{where}: fences is {shown(value)}; it must be a list of four colours or null")
    return tuple(value)


def _check_fences(fences: tuple[str | None, ...], where: str) -> None:
    if len(fences) != len(COLOURS):
        raise WordwingError(f"{where}: there are {len(fences)} fences; an arena has {len(COLOURS)}")
    for colour in fences:
        if colour is not None and colour not in COLOURS:
            hint = did_you_mean(colour[:40], COLOURS) or f"; the colours are {', '.join(COLOURS)}"
            raise WordwingError(f"{where}: a fence is {shown(colour)}{hint}")
    if all(colour in (None, name) for colour, name in zip(fences, COLOURS, strict=True)):
        return
    for turns in range(1, 4):
        order = COLOURS[-turns:] + COLOURS[:-turns]
        if all(colour in (None, name) for colour, name in zip(fences, order, strict=True)):
            raise WordwingError(
                f"{where}: +x must point at the red fence; add {90 * turns} to heading_deg and leave fences out"
            )
    raise WordwingError(
        f"{where}: clockwise from above the fences are {', '.join(str(colour) for colour in fences)}; "
        f"instructions mean {', '.join(COLOURS)}"
    )
