"""Beliefs as colours, turned to lie as the overhead view does: what belief videos are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wordwing.frames import Pose, start_frame
from wordwing.model.grid import START_GRID
from wordwing.model.policy import Beliefs
from wordwing.viz.drawing import MAP_EXTENT

Bytes = NDArray[np.uint8]
Floats = NDArray[np.float64]

# Björn Ottosson's OKLab, in which equal steps look equal: linear sRGB to three cone-like responses, and their cube
# roots to lightness (0 to 1) and two opponent axes, green to red and blue to yellow.
_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_OPPONENTS = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def to_oklab(colours: NDArray[np.generic]) -> Floats:
    """Bytes of sRGB [..., 3] to OKLab."""
    share = np.asarray(colours, np.float64) / 255
    light = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return np.cbrt(light @ _CONES.T) @ _OPPONENTS.T


def from_oklab(lab: Floats) -> Bytes:
    """OKLab [..., 3] to the nearest sRGB bytes."""
    light = (lab @ np.linalg.inv(_OPPONENTS).T) ** 3 @ np.linalg.inv(_CONES).T
    light = light.clip(0, 1)
    share = np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055)
    return np.rint(255 * share).astype(np.uint8)


@cache
def ramp(colour: tuple[int, ...], darkest: float = 0.3) -> Bytes:
    """[256, 3] from a dark shade of a colour to the colour itself, in steps that look equal."""
    end = to_oklab(np.array(colour))
    start = end * [darkest / end[0], 0.5, 0.5]
    return from_oklab(start + (end - start) * np.linspace(0, 1, 256)[:, None])


def glowing(ground: Bytes, relief: Floats, amount: Floats, colour: tuple[int, ...]) -> Bytes:
    """An image [S, S, 3] with amounts [S, S], 0 to 1, laid over it in a colour's ramp; at 0 the ground is seen.

    From 0.2 up only its relief [S, S, 1] is: how much lighter each pixel is than those around it. So landmarks can be
    made out under the paint, and their tone does not change that of what is to be compared.
    """
    # Fainter ones change no byte; nor does NaN, for the beliefs of a network that has gone wrong are to be seen, too.
    seen = np.flatnonzero(amount > 1e-4)
    share, height = (values.ravel()[seen].astype(np.float32) for values in (amount, relief))
    step, cover = np.rint(255 * share.clip(max=1)).astype(np.uint8), (5 * share).clip(max=1)
    image = ground.copy()
    for channel, tones in zip(image.reshape(-1, 3).T, ramp(colour).astype(np.float32).T, strict=True):
        below, paint = channel[seen], tones[step]
        # In place: these are some of the largest arrays of a frame, and there are several for each.
        paint += height
        paint -= below
        paint *= cover
        paint += below
        channel[seen] = np.rint(paint, out=paint).clip(0, 255, out=paint)
    return image


@dataclass(frozen=True)
class FeatureColours:
    """A fixed projection of feature vectors to colours, for one flight.

    The three directions in which the features of a flight vary most (PCA), the first shown as lightness, the second
    from blue to yellow, the third from green to red: what varies most can be seen by everyone. It is fitted once to
    all cells of all states, so a colour means the same in image, map and time; in another flight it means another.
    """

    mean: Floats
    """[C]."""
    axes: Floats
    """[C, 3]."""
    deviation: Floats
    """[3] along each axis; colours reach two deviations each way."""

    @classmethod
    def fit(cls, features: NDArray[np.floating]) -> FeatureColours:
        """Of features [K, C], of which there may be none."""
        known = np.asarray(features, np.float64)
        known = known[np.isfinite(known).all(axis=1)]
        if not len(known):
            known = np.zeros((1, known.shape[1]))
        mean = known.mean(axis=0)
        variance, vectors = np.linalg.eigh((known - mean).T @ (known - mean) / len(known))
        axes = vectors[:, :-4:-1]
        axes = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(3)])  # else their signs are up to chance
        return cls(mean, axes, np.sqrt(variance[:-4:-1].clip(1e-12)))

    def __call__(self, features: NDArray[np.floating]) -> Bytes:
        """Features [..., C] to colours [..., 3]."""
        along = np.nan_to_num((features - self.mean) @ self.axes / (2 * self.deviation))
        lightness, blue_yellow, green_red = np.moveaxis(along.clip(-1, 1), -1, 0)
        return from_oklab(np.stack([0.62 + 0.28 * lightness, 0.11 * green_red, 0.14 * blue_yellow], axis=-1))


def cells_of(features: Tensor) -> NDArray[np.float32]:
    """[1, C, h, w] to [h, w, C]."""
    return features[0].permute(1, 2, 0).float().cpu().numpy()


def shown_cells(belief: Beliefs) -> NDArray[np.bool_]:
    """[64, 64] cells of the arena that have features; those of the blind spot count as observed and have none."""
    return (belief.arena[0] & (belief.semantic_map[0] != 0).any(0)).cpu().numpy()


class WorldView:
    """Maps of the start frame, seen as an overhead image shows the world: x up, y left, 5 m across."""

    def __init__(self, start: Pose, size: int) -> None:
        """Find the map under each of size × size pixels, for a flight that starts at a pose, world frame."""
        along = MAP_EXTENT * (0.5 - (torch.arange(size) + 0.5) / size)
        x, y = torch.meshgrid(along, along, indexing="ij")
        self.points = start_frame(start).unapply(torch.stack([x, y, torch.zeros_like(x)], dim=-1))[..., :2]
        """[S, S, 2] of the pixels' centres, start frame, metres."""
        rows, columns = START_GRID.place(self.points).round().long().clamp(0, START_GRID.cells - 1).unbind(-1)
        on_map = START_GRID.contains(self.points)
        self.cell = torch.where(on_map, START_GRID.cells * rows + columns, START_GRID.cells**2).numpy()
        """[S, S] number of the cell under each pixel; off the map that after the last."""

    def smooth(self, cells: Tensor) -> Floats:
        """Maps [C, 64, 64], bilinear between cell centres: [C, S, S]."""
        return START_GRID.sample(cells[None], self.points[None])[0].numpy()

    def blocks(self, colours: Bytes, elsewhere: Sequence[int]) -> Bytes:
        """A map of colours [64, 64, 3], each cell as it is: [S, S, 3], in one colour off the map."""
        return np.concatenate([colours.reshape(-1, 3), np.array([elsewhere], np.uint8)]).take(self.cell, axis=0)
