"""Bitmaps for the lab's surfaces: other textures than the `sim` camera draws, made from seeded noise."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray

from wordwing.sim.kernels.textures import ABSOLUTE_SECOND
from wordwing.world.assets import Material

SIZE = 64
"""Edge of a bitmap, pixels; all tile seamlessly."""


def smooth_noise(rng: np.random.Generator, rough: tuple[float, float]) -> NDArray[np.float64]:
    """[64, 64] tileable noise in [0, 1] with `rough` bumps down and across."""
    frequency = np.fft.fftfreq(SIZE) * SIZE
    rows, columns = np.meshgrid(frequency / rough[0], frequency / rough[1], indexing="ij")
    envelope = np.exp(-(rows**2 + columns**2))
    field = np.fft.ifft2(np.fft.fft2(rng.standard_normal((SIZE, SIZE))) * envelope).real
    low, high = np.percentile(field, [2, 98])
    return np.clip((field - low) / (high - low), 0.0, 1.0)


def _amount(pattern: str, rng: np.random.Generator) -> NDArray[np.float64]:
    """[64, 64] how much of the second colour shows; one repeat of the pattern."""
    row, column = np.mgrid[:SIZE, :SIZE] / SIZE
    speckle = smooth_noise(rng, (20, 20))
    if pattern in ("planks", "grain"):
        gap = (np.abs(column * 3 - np.round(column * 3)) < 0.06) * (pattern == "planks")
        return np.maximum(gap, 0.8 * smooth_noise(rng, (2, 16)))
    if pattern in ("bricks", "shingles"):
        shift = column * 2 + 0.5 * (np.floor(row * 4) % 2)
        joint = (np.abs(shift - np.round(shift)) < 0.05) | (
            np.abs(row * 4 - np.round(row * 4)) < 0.1
        )
        return np.maximum(joint, 0.5 * smooth_noise(rng, (6, 4)))
    if pattern == "leaves":
        return (smooth_noise(rng, (9, 9)) > 0.55) * (0.6 + 0.4 * speckle)
    if pattern == "bands":
        return np.where(row < 0.5, 1.0, 0.0)
    if pattern == "checker":
        return (np.floor(row * 2) + np.floor(column * 2)) % 2
    if pattern == "spots":
        return ((row - 0.5) ** 2 + (column - 0.5) ** 2 < 0.08) * 1.0
    if pattern == "ribs":
        return 0.5 + 0.5 * np.cos(2 * np.pi * column)
    if pattern == "weave":
        return 0.5 + 0.25 * np.sin(16 * np.pi * row) + 0.25 * np.sin(16 * np.pi * column)
    if pattern == "camouflage":
        return (smooth_noise(rng, (3, 3)) > 0.5) * 1.0
    if pattern == "metal":
        return smooth_noise(rng, (24, 2))
    if pattern == "rust":
        return np.clip(2 * smooth_noise(rng, (4, 4)) - 0.6, 0, 1)
    return 0.6 * smooth_noise(rng, (5, 5)) + 0.4 * speckle


def bitmap(material: Material, rgb: NDArray[np.float64] | None = None) -> NDArray[np.uint8]:
    """[64, 64, 3] one repeat of a material's pattern, to be multiplied by the geom's colour.

    A pattern whose second colour stands for itself needs the geom's colour `rgb` here, and a white geom.
    """
    rng = np.random.default_rng(zlib.crc32(f"lab {material.name}".encode()))
    amount = _amount(material.pattern, rng)[..., None]
    first = np.ones(3) if rgb is None else np.asarray(rgb)
    second = np.asarray(material.second)
    grime = 1 - 0.18 * smooth_noise(rng, (3, 3))[..., None]  # nothing in a lab is clean
    return (np.clip((first * (1 - amount) + second * amount) * grime, 0, 1) * 255).astype(np.uint8)


def needs_colour(material: Material) -> bool:
    """Whether `bitmap` must be given the geom's colour."""
    return material.pattern in ABSOLUTE_SECOND


def floor_bitmap() -> NDArray[np.uint8]:
    """[64, 64, 3] grey rubber mats, two to a repeat on each axis."""
    rng = np.random.default_rng(7)
    row, column = np.mgrid[:SIZE, :SIZE] / SIZE
    seam = (np.abs(row * 2 - np.round(row * 2)) < 0.03) | (
        np.abs(column * 2 - np.round(column * 2)) < 0.03
    )
    tone = 0.40 + 0.16 * smooth_noise(rng, (6, 6)) + 0.06 * rng.random((SIZE, SIZE))
    return (np.clip(np.where(seam, 0.22, tone), 0, 1)[..., None] * [250, 250, 255]).astype(np.uint8)
