"""Where the arena lies in the autopilot's local frame: `arena.json`, and a fit to measured positions.

A file is `{"schema": 1, "north": 1.2, "east": -0.4, "heading_deg": 37.0, "floor_down": 0.05}`: the arena's centre in
the autopilot's local NED frame, metres; the compass heading of the world's +x axis, which points at the red fence; how
far the floor is below the local frame's origin, metres. `margin`, `side_margin` and `fences` may be left out.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import torch
from pydantic import ConfigDict, Field
from torch import Tensor

from wordwing.files import read_text, write_text
from wordwing.flight.mavlink.geometry import MARGIN, ArenaFrame
from wordwing.frames import Pose, heading_to_yaw, ned_to_world, quaternion_rotate, world_to_ned, yaw_to_heading
from wordwing.validation import parse, parse_json

MAX_BYTES = 100_000
"""Largest file that is read; far beyond what one can hold."""

Colour = Literal["red", "white", "blue", "yellow"]
Fences = Annotated[tuple[Colour | None, ...], Field(min_length=4, max_length=4)]
COLOURS: Fences = ("red", "white", "blue", "yellow")
"""Of the fences, clockwise seen from above, from the one that +x points at (`world.fences.FENCES`)."""

Coordinate = Annotated[float, Field(ge=-1000, le=1000, description="a number of metres from -1000 to 1000")]
Margin = Annotated[float, Field(ge=MARGIN, le=1.5, description=f"a number of metres from {MARGIN} to 1.5")]


@dataclass(frozen=True)
class ArenaFile:
    """The keys of `arena.json`."""

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    schema: Annotated[int, Field(ge=1, le=1, description="1, which this wordwing reads")]
    """Version of the file format."""
    north: Coordinate
    east: Coordinate
    heading_deg: Annotated[float, Field(ge=-360, le=360, description="a number of degrees from -360 to 360")]
    floor_down: Annotated[float, Field(ge=-100, le=100, description="a number of metres from -100 to 100")]
    margin: Margin = MARGIN
    side_margin: Margin = MARGIN
    fences: Fences = COLOURS

    def __post_init__(self) -> None:
        """Instructions name fences, so the colours must stand in their order."""
        orders = [COLOURS[4 - turns :] + COLOURS[: 4 - turns] for turns in range(4)]
        fits = [all(a in (None, b) for a, b in zip(self.fences, order, strict=True)) for order in orders]
        if not any(fits):
            raise ValueError(
                f"clockwise from above the fences are {', '.join(map(str, self.fences))}; "
                f"instructions mean {', '.join(map(str, COLOURS))}"
            )
        if turns := fits.index(True):
            raise ValueError(f"+x must point at the red fence; add {90 * turns} to heading_deg and leave fences out")


@dataclass(frozen=True)
class Arena(ArenaFrame):
    """`ArenaFrame` with torch: poses in the local frame, a least-squares fit, and a file; only the file is checked."""

    fences: Fences = COLOURS
    """Colours of the fences, clockwise seen from above, from the one that +x points at; None where it has none."""

    @cached_property
    def frame(self) -> Pose:
        """The world frame's pose in the local frame, in double; `frame @ pose` is the inverse of `world_pose`."""
        place = torch.tensor([self.north, self.east, self.floor_down], dtype=torch.float64)
        yaw = heading_to_yaw(torch.tensor(self.heading_deg, dtype=torch.float64))
        centre = ned_to_world(place)
        return Pose.level(centre[:2], yaw, centre[2])

    @classmethod
    def fit(
        cls,
        places: Tensor | Sequence[Sequence[float]],
        positions_up: Tensor | Sequence[Sequence[float]],
        like: Arena | None = None,
    ) -> Arena:
        """The arena for which known places are where the autopilot says they are, by least squares.

        Args:
            places: [N, 3] where the drone really was, metres, world frame; at least two apart from each other.
            positions_up: [N, 3] where the autopilot said it was, metres, local frame with z up.
            like: Gives margins and fences.
        """
        known = torch.as_tensor(places, dtype=torch.float64)
        found = torch.as_tensor(positions_up, dtype=torch.float64)
        if known.shape != found.shape or known.ndim != 2 or known.shape[1] != 3:
            raise ValueError(f"places and positions must be [N, 3], not {list(known.shape)} and {list(found.shape)}")
        known_middle, found_middle = known.mean(0), found.mean(0)
        (x, y), (u, v) = (known - known_middle)[:, :2].T, (found - found_middle)[:, :2].T
        if float((x.square() + y.square()).sum()) < 0.01:
            raise ValueError("an arena needs two places that are apart from each other")
        yaw = torch.atan2((x * v - y * u).sum(), (x * u + y * v).sum())  # of the world frame in the local frame
        turned = quaternion_rotate(Pose.level(yaw.new_zeros(2), yaw).quaternion, known_middle)
        north, east, down = world_to_ned(found_middle - turned).tolist()
        heading = float(yaw_to_heading(yaw))
        return replace(like or cls(), north=north, east=east, heading_deg=heading, floor_down=down)

    def rounded(self) -> Arena:
        """The same to a millimetre and a hundredth of a degree, as a person would write it."""
        metres = {
            name: round(getattr(self, name), 3) for name in ("north", "east", "floor_down", "margin", "side_margin")
        }
        return replace(self, heading_deg=round(self.heading_deg, 2), **metres)

    def to_json(self) -> str:
        """The text of a file."""
        return json.dumps({"schema": 1, **asdict(self)}, indent=2) + "\n"

    @classmethod
    def load(cls, path: str | Path) -> Arena:
        """Read a file; each mistake gives one sentence."""
        text = read_text(path, MAX_BYTES, "arena", "wordwing flight check --write makes one")
        values = asdict(parse_json(ArenaFile, text, str(path)))
        del values["schema"]
        return cls(**values)

    def save(self, path: str | Path) -> None:
        """Write a file, all of it or nothing; an arena that cannot be gives one sentence."""
        parse(ArenaFile, json.loads(self.to_json()), str(path))
        write_text(path, self.to_json())
