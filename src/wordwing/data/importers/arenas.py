"""Layout files of LANI and the drif workspace (`random_config_<id>.json`) as layouts.

A file has parallel lists `landmarkName`, `xPos`, `zPos` (0 to 1000), `radius` and `isEnabled`, and may have
`lakeCoords`, cells `{"x": …, "y": …}` of a 100 × 100 mesh along x and z. Radii may be left out, and flags, which then
are true. Nothing says where landmarks look; yaws are drawn, seeded by the environment.

Landmarks whose footprints, which are ours, overlap or reach out of the arena are moved as little as possible. Where
that takes more than `MAX_NUDGE` the one with the smaller footprint is left out, because the larger is more likely to
be what people steered by.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from wordwing.data.importers.originals import (
    MAX_FILE,
    ImportNotes,
    LenientFlags,
    LenientNumber,
    LenientNumbers,
    check_lengths,
    to_arena,
)
from wordwing.errors import WordwingError
from wordwing.files import read_json
from wordwing.frames import ARENA_HALF, CONFIG_UNIT
from wordwing.validation import parse
from wordwing.world.catalogue import catalogue, landmark
from wordwing.world.layout import LAKE_MESH, MAX_LANDMARKS, OVERLAP, PROTRUSION, Layout, Placement
from wordwing.world.paths import Floats

MAX_NUDGE = 0.25
"""Farthest that a landmark is moved to make it stand, metres."""

ROUNDS = 200
"""Times that overlapping landmarks are pushed apart before one is left out."""


@dataclass(frozen=True)
class OwnLayout:
    """What our own exporter added, for which the format has no place."""

    layout: str = ""
    """The layout's id."""
    landmarks: list[dict[Literal["yaw", "elevation", "radius"], LenientNumber | None]] | None = None
    """[L] metres and radians."""


@dataclass(frozen=True)
class LakeCell:
    """A cell of the mesh, or out of it."""

    x: LenientNumber
    y: LenientNumber


@dataclass(frozen=True)
class Config:
    """A layout file of L landmarks."""

    names: Annotated[list[str], Field(alias="landmarkName", description="a list of names")]
    x: Annotated[LenientNumbers, Field(alias="xPos")]
    """[L] layout units."""
    z: Annotated[LenientNumbers, Field(alias="zPos")]
    radii: Annotated[LenientNumbers | None, Field(alias="radius")] = None
    """[L] layout units."""
    enabled: Annotated[LenientFlags | None, Field(alias="isEnabled")] = None
    lakes: Annotated[list[LakeCell] | None, Field(alias="lakeCoords")] = None
    wordwing: OwnLayout | None = None

    def __post_init__(self) -> None:
        own = self.wordwing.landmarks if self.wordwing else None
        lists = {"landmarkName": self.names, "xPos": self.x, "zPos": self.z, "radius": self.radii}
        check_lengths(lists | {"isEnabled": self.enabled, "wordwing": own})

    @property
    def cells(self) -> tuple[tuple[int, int], ...]:
        """The lakes' cells, also those out of the mesh; sorted, each once."""
        return tuple(sorted({(math.floor(cell.x), math.floor(cell.y)) for cell in self.lakes or ()}))

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for files of one and the same arena: which landmarks and lakes are where.

        Radii are left out: an arena is not another one because its invisible circles are. Our own exports count in
        order, because meanings name landmarks by their number.
        """
        enabled = self.enabled or [True] * len(self.names)
        places = zip(self.names, self.x, self.z, enabled, strict=True)
        rows = [(name, round(x, 3), round(z, 3)) for name, x, z, on in places if on]
        if self.wordwing is None:
            return (*sorted(rows), self.cells)
        return (*rows, self.cells, repr(self.wordwing.landmarks))


def read_config(path: Path) -> Config:
    """Read a layout file."""
    return parse(Config, read_json(path, MAX_FILE, "layout"), str(path))


def to_layout(config: Config, env: str, seed: int, notes: ImportNotes) -> tuple[Layout, bool]:
    """Make a layout that stands.

    Args:
        config: The file's content.
        env: The environment; with `seed` it decides where landmarks look.
        seed: Another one turns all landmarks.
        notes: Told what was moved, changed and left out.

    Returns:
        The layout, which passes `Layout.validate`, and whether each landmark of the file is in it, in its place.
    """
    rng = np.random.default_rng([seed, *env.encode()])
    yaws = rng.uniform(-math.pi, math.pi, len(config.names)).round(3)
    centres = to_arena(np.array([config.x, config.z], float).T, unity=False).round(5)
    own: list[Any] | None = config.wordwing.landmarks if config.wordwing else None
    known = {entry.name for entry in catalogue()}
    placed: list[Placement] = []
    for index, (name, (x, y), yaw) in enumerate(zip(config.names, centres.tolist(), yaws.tolist(), strict=True)):
        if config.enabled is not None and not config.enabled[index]:
            notes.add("disabled landmarks, left out", env)
        elif name not in known:
            notes.add("unknown landmarks, left out", name[:40])
        else:
            entry = Placement(name, x, y, yaw, radius=_radius(config, index, env, notes))
            given = own[index].items() if own else ()
            placed.append(replace(entry, **{k: v for k, v in given if v is not None or k == "radius"}))
    cells = config.cells
    lakes = tuple(cell for cell in cells if all(0 <= index < LAKE_MESH for index in cell))
    notes.add("lake cells out of the arena, left out", env, len(cells) - len(lakes))
    layout = Layout(tuple(placed), lakes=lakes)
    try:
        layout.validate()
    except WordwingError:
        layout = replace(layout, landmarks=_standing(placed, env, notes))
        layout.validate(f"the layout of {env}")
    return layout, len(layout.landmarks) == len(config.names)


def _radius(config: Config, index: int, env: str, notes: ImportNotes) -> float | None:
    """A landmark's keep-out radius in metres, at least its footprint."""
    if config.radii is None:
        return None
    wanted = config.radii[index] * CONFIG_UNIT
    radius = min(max(wanted, landmark(config.names[index]).footprint), ARENA_HALF)
    if abs(radius - wanted) > 1e-6:
        notes.add("radii smaller than the landmark, enlarged, or larger than the arena", env)
    return round(radius, 5)


def _standing(placed: list[Placement], env: str, notes: ImportNotes) -> tuple[Placement, ...]:
    """The landmarks moved into the arena and apart, the fewest possible left out."""
    kept = []
    for entry, inside in zip(placed, _inside(placed), strict=True):
        if math.dist((entry.x, entry.y), inside) > MAX_NUDGE:
            notes.add("landmarks out of the arena, left out", f"{entry.name} in {env}")
        else:
            kept.append(entry)
    notes.add("landmarks beyond the greatest number, left out", env, len(kept[MAX_LANDMARKS:]))
    kept = kept[:MAX_LANDMARKS]
    while True:
        moved, overlaps = _pushed(kept)
        far = [math.hypot(a.x - b.x, a.y - b.y) for a, b in zip(kept, moved, strict=True)]
        if not overlaps.any() and max(far, default=0.0) <= MAX_NUDGE:
            break
        # Where pushing got all apart, but too far, the pair that overlapped most to begin with gives way.
        depth = overlaps if overlaps.any() else _overlaps(kept, _inside(kept))
        pair = np.unravel_index(depth.argmax(), depth.shape)
        lesser = min((int(index) for index in pair), key=lambda index: (kept[index].kind.footprint, -index))
        notes.add("landmarks overlapping others, left out", f"{kept[lesser].name} in {env}")
        del kept[lesser]
    notes.add(f"landmarks moved, by {MAX_NUDGE} m at most, to stand", env, sum(distance > 1e-6 for distance in far))
    return tuple(moved)


def _pushed(placed: list[Placement]) -> tuple[list[Placement], Floats]:
    """Landmarks pushed into the arena and apart, and by how much each pair still overlaps, [L, L] metres."""
    footprints = np.array([entry.kind.footprint for entry in placed])
    centres = _inside(placed)
    overlaps = _overlaps(placed, centres)
    for _ in range(ROUNDS):
        if not overlaps.any():
            break
        for i, j in np.argwhere(np.triu(overlaps)):
            apart = centres[i] - centres[j]
            length = math.hypot(*apart)
            # Two at one place part along x.
            direction = apart / length if length > 1e-6 else np.array([1.0, 0.0])
            push = direction * (footprints[i] + footprints[j] - OVERLAP / 2 - length) / 2
            centres[i] += push
            centres[j] -= push
        centres = _inside(placed, centres)
        overlaps = _overlaps(placed, centres)
    places = centres.round(5).tolist()
    return [replace(entry, x=x, y=y) for entry, (x, y) in zip(placed, places, strict=True)], overlaps


def _inside(placed: list[Placement], centres: Floats | None = None) -> Floats:
    """[L, 2] centres, by default the landmarks' own, moved to where footprints are in the arena."""
    if centres is None:
        centres = np.array([(entry.x, entry.y) for entry in placed], float).reshape(-1, 2)
    footprints = np.array([entry.kind.footprint for entry in placed], float)
    limit = np.minimum(ARENA_HALF + PROTRUSION - footprints, ARENA_HALF)[:, None] - 1e-4
    return centres.clip(-limit, limit)


def _overlaps(placed: list[Placement], centres: Floats) -> Floats:
    """[L, L] metres by which each pair of landmarks overlaps more than a layout allows; 0 where it does not."""
    footprints = np.array([entry.kind.footprint for entry in placed])
    bottoms = np.array([entry.elevation for entry in placed])
    tops = bottoms + [entry.kind.height for entry in placed]
    depth = footprints[:, None] + footprints - np.linalg.norm(centres[:, None] - centres, axis=-1)
    lower = bottoms[:, None] <= bottoms
    shared = np.where(lower, tops[:, None] - bottoms, tops - bottoms[:, None])
    wrong = (depth > OVERLAP * 0.9) & (shared > OVERLAP)
    np.fill_diagonal(wrong, False)
    return np.where(wrong, depth, 0.0)
