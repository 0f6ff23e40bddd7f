"""Scenes: the furniture of a room that is larger than the arena, and the window of it that an instruction is flown in.

A window centred on a path would give the goal away: it would be the start reflected through the centre. So windows lie
anywhere, and any way round, where the path can be flown and what the sentence is likely about can be seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from wordwing.data.schema import Window
from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF
from wordwing.validation import parse
from wordwing.world.layout import MAX_LANDMARKS, OVERLAP, Layout, Placement, Placements, check_overlaps, overlap_of
from wordwing.world.paths import Bools, Floats, lengths

MAX_PIECES = 500
"""Most pieces of one scene."""

MAX_DISTANCE = 1000.0
"""Farthest from a scene's origin that a piece may stand, metres."""

TOUCH = OVERLAP - 1e-6
"""How deep two pieces may enter each other, metres: what a layout allows, less what turning a window rounds."""


@dataclass(frozen=True)
class Scene:
    """Furniture that stands without overlaps; making one checks nothing, `validate` and `from_json` do."""

    landmarks: tuple[Placement, ...]
    """Metres and radians, frame of the scene, which is the frame of its paragraphs."""

    def cut(self, window: Window) -> Layout:
        """The pieces whose footprint lies in a window, in the arena's frame; the layout is always valid.

        A piece whose host is cut away stands on the floor if there is room, else it is left out. Of more pieces than a
        layout may have, those nearest to the window's centre are kept.
        """
        if not self.landmarks:
            return Layout(())
        places = window.to_arena(self.centres)  # [L, 2]
        [chosen] = np.nonzero(np.abs(places).max(axis=1) + self.footprints <= ARENA_HALF + 1e-9)
        if len(chosen) > MAX_LANDMARKS:
            chosen = chosen[np.argsort(np.hypot(*places[chosen].T), kind="stable")[:MAX_LANDMARKS]]
        elevations: dict[int, float] = {}
        fallen = []
        for index in sorted(chosen.tolist(), key=lambda i: self.landmarks[i].elevation):
            if self._hosts[index] is None or self._hosts[index] in elevations:
                elevations[index] = self.landmarks[index].elevation
            else:
                fallen.append(index)
        # Those that stay where they are come first: nothing loses its place to a piece that falls.
        for index in fallen:
            host = self._hosts[index]
            under = (
                elevations[host] + self.landmarks[host].kind.height if host is not None and host in elevations else 0.0
            )
            if self._room(index, under, elevations):
                elevations[index] = under
        landmarks = []
        for index in sorted(elevations):
            piece, (x, y) = self.landmarks[index], places[index].tolist()
            yaw = window.yaw_to_arena(piece.yaw)
            landmarks.append(Placement(piece.name, x, y, yaw, elevations[index], piece.radius))
        return Layout(tuple(landmarks))

    def validate(self, where: str = "scene") -> None:
        """Raise a `WordwingError` about the first mistake; `where` begins the sentence."""
        if len(self.landmarks) > MAX_PIECES:
            raise WordwingError(f"{where}: there are {len(self.landmarks)} landmarks; {MAX_PIECES} is the most")
        for number, entry in enumerate(self.landmarks, start=1):
            # A scene has no fences: everything but the place must be right.
            replace(entry, x=0.0, y=0.0).validate(f"{where}: landmark {number}")
            if not max(abs(entry.x), abs(entry.y)) <= MAX_DISTANCE:
                raise WordwingError(
                    f"{where}: landmark {number} ({entry.name}) is at ({entry.x:.6g}, {entry.y:.6g}); "
                    f"x and y must be between ±{MAX_DISTANCE:g} m"
                )
        check_overlaps(self.landmarks, where, TOUCH)

    def to_json(self) -> list[dict[str, Any]]:
        """The landmarks as in a layout file: fields with default values left out."""
        return [entry.to_json() for entry in self.landmarks]

    @classmethod
    def from_json(cls, rows: Any, where: str) -> Scene:
        """Read and validate what `to_json` made.

        Args:
            rows: The parsed list of landmarks.
            where: Begins each complaint.
        """
        scene = cls(parse(Placements, rows, where))
        scene.validate(where)
        return scene

    @cached_property
    def centres(self) -> Floats:
        """[L, 2] where the pieces stand, metres."""
        return np.array([(entry.x, entry.y) for entry in self.landmarks], float).reshape(-1, 2)

    @cached_property
    def footprints(self) -> Floats:
        """[L] radii of their footprints, metres."""
        return np.array([entry.kind.footprint for entry in self.landmarks], float)

    @cached_property
    def _hosts(self) -> tuple[int | None, ...]:
        """For each piece what it stands on: the nearest one under it whose top is where it begins."""
        return tuple(self._host(entry) for entry in self.landmarks)

    def _host(self, entry: Placement) -> int | None:
        if entry.elevation <= 0:
            return None
        below = [
            (math.hypot(other.x - entry.x, other.y - entry.y), index)
            for index, other in enumerate(self.landmarks)
            if other is not entry
            and abs(other.elevation + other.kind.height - entry.elevation) <= OVERLAP
            and math.hypot(other.x - entry.x, other.y - entry.y) < other.kind.footprint + entry.kind.footprint
        ]
        return min(below)[1] if below else None

    def _room(self, index: int, elevation: float, others: dict[int, float]) -> bool:
        """Whether a piece may stand where it is at another height, among others at theirs."""
        piece = replace(self.landmarks[index], elevation=elevation)
        others_there = (replace(self.landmarks[i], elevation=e) for i, e in others.items())
        return all(overlap_of(piece, other) <= TOUCH for other in others_there)


MARGIN = 0.2
"""Least distance of a path from the fences, metres: drones do not track a path exactly."""

END_REACH, START_REACH = 1.2, 0.6
"""A leg is about the furniture whose centre is this near to its end or start, metres. The more must be seen, the more
the window centres on the path; with 0.8 m the reflected start is within 0.47 m of 5 % of the goals of house."""

ROUNDING = 2e-4
"""What storing a window to a tenth of a millimetre may take from its margins, metres."""

YAWS = 64
"""Directions that are tried for one window, evenly over a quarter turn, which is all that a square has."""


def about(path: Floats, scene: Scene) -> Floats:
    """The furniture that a leg is about: [K, 3] x, y, footprint, metres, scene frame; the nearest to its end first."""
    from_end = lengths(scene.centres - path[-1])
    near = (from_end <= END_REACH) | (lengths(scene.centres - path[0]) <= START_REACH)
    order = np.argsort(from_end, kind="stable")
    circles = np.column_stack([scene.centres, scene.footprints])
    return circles[order[near[order]]]


def place_window(path: Floats, keep: Floats, rng: np.random.Generator) -> Window | None:
    """Draw a window that holds a path and as much of its furniture as any does: a direction, then a place, evenly.

    Args:
        path: [P, 2] metres, scene frame.
        keep: [K, 3] x, y, footprint of what should be seen, metres, scene frame; what matters more comes first. Where
            not everything fits, a piece is given up rather than one before it.
        rng: Source of direction and offset.

    Returns:
        The window, to a tenth of a millimetre as datasets store it; None if the path fits no window.
    """
    yaws = (np.arange(YAWS) + rng.random()) * (math.pi / 2 / YAWS)  # [Y]
    cos, sin = np.cos(yaws), np.sin(yaws)
    axes = np.stack([np.concatenate([cos, -sin]), np.concatenate([sin, cos])])  # [2, 2 Y] all u axes, then all v axes
    along = path @ axes  # [P, 2 Y]
    low = along.max(axis=0) - (ARENA_HALF - MARGIN - ROUNDING)  # [2 Y] where the centre may lie
    high = along.min(axis=0) + (ARENA_HALF - MARGIN - ROUNDING)
    fits = _both(low <= high)  # [Y]
    if not fits.any():
        return None
    places = keep[:, :2] @ axes  # [K, 2 Y]
    reach = ARENA_HALF - ROUNDING - keep[:, 2:]
    lowest, highest = places - reach, places + reach
    all_low = np.maximum(low, lowest.max(axis=0, initial=-np.inf))
    all_high = np.minimum(high, highest.min(axis=0, initial=np.inf))
    all_fit = _both(all_low <= all_high)
    if all_fit.any():
        low, high, fits = all_low, all_high, all_fit
    else:
        for piece_low, piece_high in zip(lowest, highest, strict=True):
            lower, higher = np.maximum(low, piece_low), np.minimum(high, piece_high)
            holds = _both(lower <= higher)
            if holds.any():
                low, high, fits = lower, higher, holds
    [possible] = np.nonzero(fits)
    chosen = int(possible[rng.integers(len(possible))])
    across = np.array([chosen, chosen + YAWS])
    u, v = (low[across] + rng.random(2) * (high - low)[across]).tolist()
    x, y = u * cos[chosen] - v * sin[chosen], u * sin[chosen] + v * cos[chosen]
    yaw = math.remainder(yaws[chosen] + int(rng.integers(4)) * math.pi / 2, 2 * math.pi)
    return Window(round(float(x), 4), round(float(y), 4), round(yaw, 5))


def _both(condition: Bools) -> Bools:
    """Where a condition [2 Y] holds along both axes: [Y]."""
    return condition[:YAWS] & condition[YAWS:]
