"""Patterns without a camera: their kernel function on any points."""

import numpy as np
import torch
import warp as wp

from wordwing.sim.kernels.textures import PATTERNS, pattern_value
from wordwing.sim.launch import launch

CPU = torch.device("cpu")


@wp.kernel
def draw_pattern(pattern: int, u: wp.array(dtype=float), v: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = pattern_value(pattern, u[i], v[i])


def pattern_at(name: str, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """A pattern at points (u, v), in repeats."""
    out = torch.zeros(u.size)
    arrays = [wp.from_torch(torch.from_numpy(np.ascontiguousarray(axis, np.float32).ravel())) for axis in (u, v)]
    launch(draw_pattern, u.size, (PATTERNS.index(name), *arrays, wp.from_torch(out)), CPU)
    return out.numpy().reshape(u.shape)
