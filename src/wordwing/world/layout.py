"""Layouts: which landmarks and lakes lie where in the arena, and the JSON files that say so.

A layout file is `{"schema": 1, "arena": 4.7, "landmarks": [{"name": "Barrel", "x": 0.5, "y": -1.0,
"yaw": 0.0}, …]}`; `yaw`, `elevation` and `radius` may be left out. Everything that a person can get
wrong in one is answered with one sentence that names the file and the landmark, counted from 1.

Lakes are water on the ground, nothing that a drone could hit. A layout that has some also says
`"lakes": [[12, 30, 41], [13, 29, 42]]`: runs `[i, first j, last j]` of cells of a 100 × 100 mesh over the
arena, i along world x and j along world y, both ends included, each cell in one run only.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import ConfigDict, Field, GetPydanticSchema

from wordwing.errors import WordwingError, did_you_mean, shown
from wordwing.files import read_text, write_text
from wordwing.frames import ARENA_HALF, ARENA_SIZE
from wordwing.validation import Version1, numbered, parse, unique_keys
from wordwing.world.catalogue import Landmark, catalogue, landmark

SCHEMA = 1
"""Version of the file format."""

MAX_LANDMARKS = 40
MAX_BYTES = 1_000_000
"""Largest layout and largest file that is read; both far beyond what fits the arena."""

MAX_ELEVATION, MAX_YAW = 2.0, 100.0
"""Highest surface to stand on, metres, and largest turn, radians: beyond them is only nonsense."""

LAKE_MESH = 100
"""Cells along each edge of the arena that lakes are made of, as in LANI's layouts; 4.7 cm each."""

PROTRUSION = 0.05
"""How far a footprint may reach across the fence line, metres."""

OVERLAP = 0.01
"""How deep two landmarks may enter each other, sideways or in height, metres."""


_Metres = Annotated[float, Field(gt=-1e300, lt=1e300, description="a finite number of metres")]
_Radians = Annotated[float, Field(gt=-1e300, lt=1e300, description="a finite number of radians")]
_NoneOrMetres = Annotated[float | None, GetPydanticSchema(lambda _source, handler: handler(_Metres))]
"""None here, but never null in a file, where it is left out."""


@dataclass(frozen=True)
class Placement:
    """One landmark of a layout: what it is and where it stands."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    name: str
    """A name of the catalogue."""
    x: _Metres
    y: _Metres
    """Its centre, metres, world frame: origin at the arena's centre; in images x up, y left."""
    yaw: _Radians = 0.0
    """Where its front (local +x) points, radians, counter-clockwise from world x."""
    elevation: _Metres = 0.0
    """Height of the surface it stands on, metres; more than 0 for furniture on furniture."""
    radius: _NoneOrMetres = None
    """Radius of the circle that paths keep out of, metres; None for the catalogue's."""

    def to_json(self) -> dict[str, Any]:
        """As in a layout file: fields with default values left out."""
        return {field.name: value for field in fields(self) if (value := getattr(self, field.name)) != field.default}

    @property
    def kind(self) -> Landmark:
        """Its entry in the catalogue."""
        return landmark(self.name)

    @property
    def keep_out(self) -> float:
        """Radius of the circle that paths keep out of, metres."""
        return self.kind.radius if self.radius is None else self.radius

    def validate(self, where: str) -> None:
        """Raise a `WordwingError` if it could not stand there even alone.

        Args:
            where: Begins the sentence, e.g. "kitchen.json: landmark 3".
        """
        names = [entry.name for entry in catalogue()]
        if self.name not in names:
            # A name may be as long as a file; looking for its like takes quadratic time.
            hint = did_you_mean(self.name[:40], names) or ", which no landmark is"
            raise WordwingError(
                f"{where} is called {shown(self.name)}{hint} ({len(names)} names: wordwing data show landmarks)"
            )
        units = dict.fromkeys(("x", "y", "elevation", "radius"), "metres") | {"yaw": "radians"}
        for key, unit in units.items():
            value = getattr(self, key)
            if value is not None and not abs(value) < 1e300:
                raise WordwingError(f"{where}: {key} is {shown(value)}; it must be a finite number of {unit}")
        footprint, place = self.kind.footprint, f"at ({self.x:.2f}, {self.y:.2f})"
        extent = max(abs(self.x), abs(self.y))
        out = f"{extent + footprint - ARENA_HALF:.2f} m out of the arena"
        checks = (
            (
                extent < ARENA_HALF,
                f"{place} is outside the arena; x and y must be between {-ARENA_HALF} and {ARENA_HALF}",
            ),
            (
                extent + footprint <= ARENA_HALF + PROTRUSION,
                f"{place} reaches {out}; x and y must be between ±{ARENA_HALF - footprint:.2f}",
            ),
            (
                0 <= self.elevation <= MAX_ELEVATION,
                f"has elevation {self.elevation}; it must be between 0, the floor, and {MAX_ELEVATION} m",
            ),
            (abs(self.yaw) <= MAX_YAW, f"has yaw {self.yaw}; radians between ±{MAX_YAW} are enough"),
            (
                self.radius is None or footprint <= self.radius <= ARENA_HALF,
                f"has radius {self.radius}; it must be between its footprint, {footprint}, and {ARENA_HALF}",
            ),
        )
        if (mistake := next((sentence for good, sentence in checks if not good), None)) is not None:
            raise WordwingError(f"{where} ({self.name}) {mistake}")


_MeshIndex = Annotated[int, Field(ge=0, lt=LAKE_MESH)]
_Run = Annotated[
    tuple[_MeshIndex, _MeshIndex, _MeshIndex],
    Field(description=f"three whole numbers from 0 to {LAKE_MESH - 1}, [i, first j, last j]"),
]
Placements = Annotated[tuple[Placement, ...], numbered("landmark")]


@dataclass(frozen=True)
class _LayoutRow:
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    schema: Version1
    landmarks: Placements
    arena: _Metres = ARENA_SIZE
    lakes: Annotated[tuple[_Run, ...], numbered("lake run")] = ()


def check_overlaps(placements: Sequence[Placement], where: str, allowed: float) -> None:
    """Raise a `WordwingError` about the first two that overlap sideways by more than is allowed, and in height."""
    for (i, a), (j, b) in combinations(enumerate(placements, start=1), 2):
        if (overlap := overlap_of(a, b)) > allowed:
            raise WordwingError(
                f"{where}: landmark {j} ({b.name}) overlaps landmark {i} ({a.name}) by {overlap:.2f} m; "
                f"their centres must be at least {a.kind.footprint + b.kind.footprint:.2f} m apart"
            )


def overlap_of(a: Placement, b: Placement) -> float:
    """How deep two landmarks enter each other sideways, metres; at most 0 if they do not, or one is above the other."""
    overlap = a.kind.footprint + b.kind.footprint - math.hypot(a.x - b.x, a.y - b.y)
    low, high = (a, b) if a.elevation <= b.elevation else (b, a)
    return overlap if low.elevation + low.kind.height - high.elevation > OVERLAP else min(overlap, 0.0)


@dataclass(frozen=True)
class Layout:
    """The landmarks and lakes of one arena; making one checks nothing, `validate`, `load` and `save` do."""

    landmarks: tuple[Placement, ...]
    arena: float = ARENA_SIZE
    """Edge of the square arena, metres."""
    lakes: tuple[tuple[int, int], ...] = ()
    """Cells (i, j) of the lake mesh that are water, i along world x and j along y from -2.35 m; sorted, each once."""

    @property
    def centres(self) -> NDArray[np.float64]:
        """[L, 2] where the landmarks stand, metres, world frame."""
        return np.array([(entry.x, entry.y) for entry in self.landmarks], float).reshape(-1, 2)

    @property
    def keep_out(self) -> NDArray[np.float64]:
        """[L] radii of the circles that paths keep out of, metres."""
        return np.array([entry.keep_out for entry in self.landmarks], float)

    @property
    def footprints(self) -> NDArray[np.float64]:
        """[L] radii of their footprints, metres."""
        return np.array([entry.kind.footprint for entry in self.landmarks], float)

    def inside(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Whether points lie within any landmark's footprint circle, at whatever height.

        Args:
            points: [..., 2] metres, world frame.

        Returns:
            [...] bool.
        """
        offsets = np.asarray(points, float)[..., None, :] - self.centres  # [..., L, 2]
        return (np.linalg.norm(offsets, axis=-1) < self.footprints).any(axis=-1)

    @property
    def lake_mask(self) -> NDArray[np.bool_]:
        """[100, 100] which cells (i, j) of the lake mesh are water."""
        mask = np.zeros((LAKE_MESH, LAKE_MESH), bool)
        if self.lakes:
            mask[tuple(np.array(self.lakes).T)] = True
        return mask

    def lake_at(self, points: ArrayLike) -> NDArray[np.bool_]:
        """Whether there is a lake on the ground at points; never outside the arena.

        Args:
            points: [..., 2] metres, world frame.

        Returns:
            [...] bool.
        """
        cells = np.floor((np.asarray(points, float) + ARENA_HALF) * (LAKE_MESH / ARENA_SIZE))  # [..., 2]
        inside = np.all((cells >= 0) & (cells < LAKE_MESH), axis=-1, keepdims=True)  # [..., 1]
        i, j = np.moveaxis(np.where(inside, cells, 0).astype(int), -1, 0)
        return inside[..., 0] & self.lake_mask[i, j]

    def validate(self, where: str = "layout") -> None:
        """Raise a `WordwingError` about the first mistake.

        Args:
            where: Begins the sentence: the file, or what else the layout is.
        """
        if not math.isclose(self.arena, ARENA_SIZE, abs_tol=1e-9):
            raise WordwingError(f"{where}: the arena is {self.arena} m; the only size supported is {ARENA_SIZE}")
        if len(self.landmarks) > MAX_LANDMARKS:
            raise WordwingError(f"{where}: there are {len(self.landmarks)} landmarks; {MAX_LANDMARKS} is the most")
        for number, entry in enumerate(self.landmarks, start=1):
            entry.validate(f"{where}: landmark {number}")
        check_overlaps(self.landmarks, where, OVERLAP)
        before: tuple[int, int] | None = None
        for number, cell in enumerate(self.lakes, start=1):
            if len(cell) != 2 or not all(isinstance(index, int) and 0 <= index < LAKE_MESH for index in cell):
                raise WordwingError(
                    f"{where}: lake cell {number} is {shown(cell)}; "
                    f"a cell is two whole numbers from 0 to {LAKE_MESH - 1}"
                )
            if before is not None and cell <= before:
                raise WordwingError(
                    f"{where}: lake cell {number}, {cell}, comes after {before}; cells must be sorted, each once"
                )
            before = cell

    def to_json(self) -> str:
        """The text of a layout file: a landmark per line, lakes on one, fields with default values left out."""
        lines = [json.dumps(entry.to_json()) for entry in self.landmarks]
        rows = ",".join(f"\n    {line}" for line in lines) + ("\n  " if lines else "")
        lakes = f',\n  "lakes": {json.dumps(_runs(self.lakes))}' if self.lakes else ""
        return f'{{\n  "schema": {SCHEMA},\n  "arena": {self.arena},\n  "landmarks": [{rows}]{lakes}\n}}\n'

    @classmethod
    def from_json(cls, text: str, where: str = "layout") -> Layout:
        """Read and validate the text of a layout file; `where`, its name, begins each complaint."""
        return cls.from_document(_parse(text, where), where)

    def to_document(self) -> dict[str, Any]:
        """What `to_json` writes, before it is a text."""
        document = {"schema": SCHEMA, "arena": self.arena, "landmarks": [entry.to_json() for entry in self.landmarks]}
        return document | ({"lakes": _runs(self.lakes)} if self.lakes else {})

    @classmethod
    def from_document(cls, document: object, where: str = "layout") -> Layout:
        """`from_json` of what a JSON reader has returned already."""
        row = parse(_LayoutRow, document, where)
        layout = cls(row.landmarks, row.arena, _cells(row.lakes, where))
        layout.validate(where)
        return layout

    @classmethod
    def load(cls, path: str | Path) -> Layout:
        """Read and validate a layout file."""
        return cls.from_json(read_text(path, MAX_BYTES, "layout", "name a layout file"), str(path))

    def save(self, path: str | Path) -> None:
        """Write a layout file, all of it or nothing."""
        self.validate(str(path))
        write_text(path, self.to_json())


def _parse(text: str, where: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=unique_keys)
    except WordwingError as error:
        raise WordwingError(f"{where}: {error}") from None
    except json.JSONDecodeError as error:
        raise WordwingError(
            f"{where}: not valid JSON at line {error.lineno}, column {error.colno} ({error.msg})"
        ) from None
    except (RecursionError, ValueError) as error:  # brackets too deep; an integer too long
        raise WordwingError(f"{where}: not a layout ({error})") from None


def _runs(cells: tuple[tuple[int, int], ...]) -> list[list[int]]:
    """Sorted lake cells as runs [i, first j, last j], as few as can be."""
    runs: list[list[int]] = []
    for i, j in cells:
        if runs and runs[-1][0] == i and runs[-1][2] == j - 1:
            runs[-1][2] = j
        else:
            runs.append([i, j, j])
    return runs


def _cells(runs: Sequence[tuple[int, int, int]], where: str) -> tuple[tuple[int, int], ...]:
    """The lake cells of runs as a file has them, sorted, or a sentence about the first mistake."""
    cells: set[tuple[int, int]] = set()
    for number, (i, first, last) in enumerate(runs, start=1):
        which = f"{where}: lake run {number}"
        if first > last:
            raise WordwingError(f"{which} goes from j = {first} to {last}; the smaller one comes first")
        covered = {(i, j) for j in range(first, last + 1)}
        if twice := cells & covered:
            raise WordwingError(f"{which} covers cell {min(twice)} again; a cell may be in one run only")
        cells |= covered
    return tuple(sorted(cells))
