"""Wind: gusts around a mean.

The gusts have the along-wind spectrum of the Dryden model (MIL-F-8785C, MIL-HDBK-1797): white noise
through a first-order filter, also known as an Ornstein-Uhlenbeck process. Dryden's time scale is a
length over the airspeed; a drone that hovers has hardly any, so the time scale is given directly.
For simplicity the axes across the wind, of second order there, have the same filter.
"""

import math
from dataclasses import dataclass

import numpy as np

from wordwing.lab.airframe import Vector


@dataclass(frozen=True)
class WindConfig:
    """How the air moves. The defaults are a guess: a closed room that the drone itself stirs."""

    mean: Vector = (0.0, 0.0, 0.0)
    """m/s, world."""
    standard_deviation: float = 0.2
    """Of each horizontal component of the gusts, m/s; 0 for calm air."""
    vertical_ratio: float = 0.5
    """Standard deviation of vertical over horizontal gusts: the specification's at the ground."""
    time_scale: float = 1.0
    """In which a gust decays to 1/e on average, seconds."""


class Wind:
    """The wind of one flight, chosen by a seed. It changes in `step` only."""

    def __init__(self, config: WindConfig, timestep: float) -> None:
        self.config = config
        self._keep = math.exp(-timestep / config.time_scale)
        self._stir = math.sqrt(1 - self._keep**2)
        self.reset(0)

    def reset(self, seed: int) -> None:
        """Begin anew with a seed; the first gust is as strong as later ones."""
        self._random = np.random.default_rng(seed)
        self._gust = self._noise()

    def step(self) -> Vector:
        """The velocity of the air for one timestep, m/s, world."""
        (mx, my, mz), (gx, gy, gz) = self.config.mean, self._gust
        nx, ny, nz = self._noise()
        keep, stir = self._keep, self._stir
        self._gust = (keep * gx + stir * nx, keep * gy + stir * ny, keep * gz + stir * nz)
        return mx + gx, my + gy, mz + gz

    def _noise(self) -> Vector:
        x, y, z = self._random.standard_normal(3).tolist()
        deviation = self.config.standard_deviation
        return deviation * x, deviation * y, deviation * self.config.vertical_ratio * z
