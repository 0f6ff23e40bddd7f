"""Small images that were looked at once, against which drawings are compared."""

from pathlib import Path

import numpy as np
from PIL import Image

FOLDER = Path(__file__).parent / "golden"

MOST_DIFFERING = 0.002
"""Share of pixels that may differ visibly: fonts and libraries round differently."""


def differing(image: Image.Image, name: str) -> float:
    """Share of pixels that differ by more than 40 of 255 in a channel from golden/NAME.png."""
    with Image.open(FOLDER / f"{name}.png") as expected:
        assert image.size == expected.size
        difference = np.abs(np.asarray(image.convert("RGB"), int) - np.asarray(expected.convert("RGB"), int))
    return float((difference.max(axis=-1) > 40).mean())


def looks_like(image: Image.Image, name: str) -> bool:
    """Whether a drawing is the one in golden/NAME.png but for a few pixels."""
    return differing(image, name) <= MOST_DIFFERING
