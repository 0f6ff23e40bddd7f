"""What all images share: paper and ink, a palette, a typeface, and where things lie in an overhead view."""

import io
import math
from functools import cache
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFont

from wordwing.files import replacing
from wordwing.frames import ARENA_HALF

INK = (32, 32, 32)
PAPER = (250, 250, 248)

Colour = tuple[int, int, int]

# Okabe and Ito's palette, which colour-blind people can tell apart.
FLOWN = (0, 114, 178)
GOLD = (230, 159, 0)
SKY_BLUE = (86, 180, 233)
BLUISH_GREEN = (0, 158, 115)
YELLOW = (240, 228, 66)
VERMILLION = (213, 94, 0)
REDDISH_PURPLE = (204, 121, 167)
GREY = (120, 120, 120)
LIGHT = (225, 225, 222)

MAP_EXTENT = 2 * ARENA_HALF + 0.3
"""Metres across an overhead image."""


@cache
def font(size: int) -> ImageFont.FreeTypeFont:
    """The typeface of every image: matplotlib's own, so that images are the same everywhere."""
    # Found without an import of matplotlib, which takes longer than to draw a frame.
    file = distribution("matplotlib").locate_file("matplotlib/mpl-data/fonts/ttf/DejaVuSans.ttf")
    return ImageFont.truetype(str(file), size)


def map_pixels(xy: NDArray[np.floating], size: int) -> NDArray[np.float64]:
    """World positions [..., 2] to (column, row) pixels of an overhead image, x up and y left."""
    return size * (0.5 - np.asarray(xy, np.float64)[..., ::-1] / MAP_EXTENT)


def drone_outline(xy: NDArray[np.floating], yaw: float, size: int, scale: float = 1.0) -> list[tuple[float, float]]:
    """The arrow that stands for a drone in an overhead image, pixels; `scale` makes it larger than in others."""
    arrow = scale * np.array([[0.19, 0.0], [-0.1, 0.08], [-0.04, 0.0], [-0.1, -0.08]])
    turn = np.array([[math.cos(yaw), -math.sin(yaw)], [math.sin(yaw), math.cos(yaw)]])
    return [(x, y) for x, y in map_pixels(np.asarray(xy) + arrow @ turn.T, size)]


def webp(image: Image.Image, quality: int, method: int) -> bytes:
    """An image as a small file; of methods, from 0 to 6, the last takes the longest."""
    out = io.BytesIO()
    image.save(out, "WEBP", quality=quality, method=method)
    return out.getvalue()


def save(image: Image.Image, path: Path) -> None:
    """Write an image whole or not at all."""
    with replacing(path) as temporary:
        image.save(temporary)
