"""The gusts against the statistics they were asked for."""

import math

import numpy as np
import pytest

from wordwing.lab.wind import Wind, WindConfig


def gusts(config: WindConfig, seed: int, steps: int, timestep: float = 0.002) -> np.ndarray:
    wind = Wind(config, timestep)
    wind.reset(seed)
    return np.array([wind.step() for _ in range(steps)])


def test_gusts_have_the_mean_deviation_and_time_scale_asked_for():
    config = WindConfig(mean=(1.0, -0.5, 0.2), standard_deviation=0.4, time_scale=0.05)
    air = gusts(config, seed=0, steps=50_000)  # 2000 time scales
    assert air.mean(axis=0) == pytest.approx(np.array(config.mean), abs=0.04)
    assert air.std(axis=0) == pytest.approx(np.array([0.4, 0.4, 0.2]), rel=0.05)
    correlation = np.corrcoef(air[:-25, 0], air[25:, 0])[0, 1]
    assert correlation == pytest.approx(math.exp(-1.0), abs=0.06)


def test_the_first_moment_is_as_gusty_as_any_other():
    config = WindConfig(standard_deviation=1.0)
    first = np.array([gusts(config, seed, steps=1)[0] for seed in range(1000)])
    assert first.std(axis=0) == pytest.approx(np.array([1.0, 1.0, 0.5]), rel=0.1)


def test_a_seed_decides_the_wind():
    config = WindConfig()
    assert np.array_equal(gusts(config, 7, 100), gusts(config, 7, 100))
    assert not np.array_equal(gusts(config, 7, 100), gusts(config, 8, 100))


def test_calm_air_stands_still():
    assert not gusts(WindConfig(standard_deviation=0.0), 3, 100).any()
