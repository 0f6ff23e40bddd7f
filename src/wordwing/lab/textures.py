"""Bitmaps for the lab's surfaces: other textures than the `sim` camera draws, made from seeded noise.

A bitmap holds a few repeats of its pattern. MuJoCo lays it over a geom a number of times across (around, on
round geoms) and up, whatever the geom measures; `tiling` says how often, for bricks of a brick's size.
"""

import math
import zlib
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wordwing.sim.kernels.textures import ABSOLUTE_SECOND
from wordwing.world.assets import BOX, CAPSULE, CYLINDER, SPHERE, Material
from wordwing.world.layout import Layout

MATS = 2.0
"""Edge of the piece of floor that `floor_bitmap` shows, metres."""

Grey = NDArray[np.float64]

TARPAULIN = (0.20, 0.50, 0.68)
"""Paint of the lab's lakes: paler and greener than the blue fence."""

SIZE = 64
"""Edge of a bitmap, pixels; all tile seamlessly."""

REPEATS = {
    "planks": (3, 1),
    "grain": (8, 1),
    "bricks": (2, 4),
    "shingles": (2, 4),
    "stone": (5, 5),
    "leaves": (6, 6),
    "bands": (1, 1),
    "checker": (2, 2),
    "spots": (2, 2),
    "ribs": (1, 1),
    "weave": (8, 8),
    "camouflage": (3, 3),
    "metal": (2, 10),
    "rust": (4, 4),
}
"""Repeats of each pattern across and up its bitmap."""


def smooth_noise(rng: np.random.Generator, rough: tuple[float, float], size: int = SIZE) -> Grey:
    """[size, size] tileable noise in [0, 1] with `rough` bumps down and across."""
    frequency = np.fft.fftfreq(size) * size
    rows, columns = np.meshgrid(frequency / rough[0], frequency / rough[1], indexing="ij")
    envelope = np.exp(-(rows**2 + columns**2))
    field = np.fft.ifft2(np.fft.fft2(rng.standard_normal((size, size))) * envelope).real
    low, high = np.percentile(field, [2, 98])
    return np.clip((field - low) / (high - low), 0.0, 1.0)


def _near_whole(x: Grey, width: float) -> Grey:
    """1 within `width` of a whole number, 0 elsewhere."""
    return (np.abs(x - np.round(x)) < width).astype(np.float64)


def _masonry(rng: np.random.Generator, u: Grey, v: Grey) -> Grey:
    """Rows of blocks, every other row shifted by half a block."""
    joints = np.maximum(_near_whole(u + 0.5 * (np.floor(v) % 2), 0.06), _near_whole(v, 0.11))
    return np.maximum(joints, 0.5 * smooth_noise(rng, (6, 4)))


def _spots(rng: np.random.Generator, u: Grey, v: Grey) -> Grey:
    """Like the five of a die: one spot in the middle, a quarter of one in each corner."""
    even = np.hypot(u - np.round(u / 2) * 2, v - np.round(v / 2) * 2)
    odd = np.hypot(u - 1, v - 1)
    return (np.minimum(even, odd) < 0.45).astype(np.float64)


AMOUNTS: dict[str, Callable[[np.random.Generator, Grey, Grey], Grey]] = {
    "planks": lambda rng, u, v: np.maximum(_near_whole(u, 0.08), 0.8 * smooth_noise(rng, (2, 16))),
    "grain": lambda rng, u, v: 0.9 * smooth_noise(rng, (2, 12)),
    "bricks": _masonry,
    "shingles": _masonry,
    "stone": lambda rng, u, v: 0.6 * smooth_noise(rng, (5, 5)) + 0.4 * smooth_noise(rng, (20, 20)),
    "leaves": lambda rng, u, v: (smooth_noise(rng, (9, 9)) > 0.55) * (0.6 + 0.4 * smooth_noise(rng, (20, 20))),
    "bands": lambda rng, u, v: (v < 0.5).astype(np.float64),
    "checker": lambda rng, u, v: (np.floor(u) + np.floor(v)) % 2,
    "spots": _spots,
    "ribs": lambda rng, u, v: 0.5 + 0.5 * np.cos(2 * np.pi * u),
    "weave": lambda rng, u, v: 0.5 + 0.25 * np.sin(2 * np.pi * u) + 0.25 * np.sin(2 * np.pi * v),
    "camouflage": lambda rng, u, v: (smooth_noise(rng, (3, 3)) > 0.5).astype(np.float64),
    "metal": lambda rng, u, v: smooth_noise(rng, (24, 2)),
    "rust": lambda rng, u, v: np.clip(2 * smooth_noise(rng, (4, 4)) - 0.6, 0, 1),
}
"""How much of the second colour shows, [64, 64] in [0, 1], at repeats u across and v up; row 0 is the top."""


def bitmap(material: Material, rgb: NDArray[np.float64] | None = None) -> NDArray[np.uint8]:
    """[64, 64, 3] a material's pattern, to be multiplied by the geom's colour.

    A pattern whose second colour stands for itself needs the geom's colour `rgb` here, and a white geom.
    """
    rng = np.random.default_rng(zlib.crc32(f"lab {material.name}".encode()))
    row, column = np.mgrid[:SIZE, :SIZE] / SIZE
    across, up = REPEATS[material.pattern]
    amount = AMOUNTS[material.pattern](rng, across * column, up * row)[..., None]
    first = np.ones(3) if rgb is None else np.asarray(rgb)
    second = np.asarray(material.second)
    grime = 1 - 0.18 * smooth_noise(rng, (3, 3))[..., None]  # dirt
    return _bytes((first * (1 - amount) + second * amount) * grime)


def needs_colour(material: Material) -> bool:
    """Whether `bitmap` must be given the geom's colour."""
    return material.pattern in ABSOLUTE_SECOND


def tiling(material: Material, kind: int, size: NDArray[np.float64]) -> tuple[float, float]:
    """How often the bitmap goes across and up a geom of a MuJoCo type and size."""
    lengths = zip(REPEATS[material.pattern], material.repeat, _spans(kind, size), strict=True)
    across, up = (max(1.0, rate * length) / held for held, rate, length in lengths)  # at least one whole repeat
    if kind != BOX:
        across = max(1, round(across))  # or the seam would show
    return across, up


def _spans(kind: int, size: NDArray[np.float64]) -> tuple[float, float]:
    """Metres across and up over which MuJoCo spreads the texture of a geom."""
    x, y, z = map(float, size)
    if kind == BOX:
        # Every face has the same number of repeats; the larger ones are to look right.
        faces = ((x * y, x, y), (y * z, y, z), (x * z, x, z))
        area = sum(face[0] for face in faces)
        return (
            2 * sum(face[0] * face[1] for face in faces) / area,
            2 * sum(face[0] * face[2] for face in faces) / area,
        )
    if kind == CYLINDER and y < 0.5 * x:
        return 2 * x, 2 * x  # a disc, seen by its end
    if kind in (CYLINDER, CAPSULE):
        return 2 * math.pi * x, 2 * y
    if kind == SPHERE:
        y = z = x
    return math.pi * (x + y), math.pi * z


def floor_bitmap() -> NDArray[np.uint8]:
    """[128, 128, 3] four dark rubber mats of two makes."""
    rng = np.random.default_rng(7)
    row, column = np.mgrid[:128, :128] / 64
    seam = np.maximum(_near_whole(row, 0.02), _near_whole(column, 0.02))
    make = (np.floor(row) + np.floor(column)) % 2
    wear = 0.05 * smooth_noise(rng, (8, 8), 128) + 0.05 * rng.random((128, 128))
    tone = np.where(seam > 0, 0.24, 0.37 + 0.05 * make + wear)
    return _bytes(tone[..., None] * [0.91, 1.0, 1.07])


def lake_floor_bitmap(layout: Layout, half: float) -> NDArray[np.uint8]:
    """[P, P, 3] the mats of a whole floor with creased blue tarpaulins on them where a layout has lakes.

    Args:
        layout: Where the lakes are.
        half: Half the edge of the floor, metres; columns run along world x and rows against world y.
    """
    mats = floor_bitmap()
    size = round(2 * half / MATS * len(mats))
    repeats = -(-size // len(mats))
    floor = np.tile(mats, (repeats, repeats, 1))[:size, :size] / 255
    along = (np.arange(size) + 0.5) / size * 2 * half - half
    x, y = np.meshgrid(along, -along)  # [P, P]
    rng = np.random.default_rng(11)
    creases = np.maximum(_near_whole(x / 0.4, 0.03), _near_whole(y / 0.6, 0.02))
    tone = 0.82 + 0.22 * smooth_noise(rng, (28, 28), size) + 0.08 * creases
    lake = layout.lake_at(np.stack([x, y], axis=-1))[..., None]
    return _bytes(np.where(lake, tone[..., None] * TARPAULIN, floor))


def _bytes(rgb: NDArray[np.float64]) -> NDArray[np.uint8]:
    return (np.clip(rgb, 0, 1) * 255).round().astype(np.uint8)
