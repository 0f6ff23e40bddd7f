"""Random rotations, poses and lakes for tests."""

import numpy as np
import torch
from numpy.typing import NDArray

from wordwing.frames import Pose, quaternion_from_euler


def random_quaternions(rng: np.random.Generator, count: int) -> NDArray[np.float64]:
    """[count, 4] unit quaternions, evenly over all rotations."""
    quaternions = rng.standard_normal((count, 4))
    return quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True)


def random_poses(rng: np.random.Generator, count: int, reach: float = 2.0, tilt: float = 0.3) -> Pose:
    """[count] drone poses inside the arena at about flight height, tilted by up to `tilt` rad."""
    xyz = np.column_stack([rng.uniform(-reach, reach, (count, 2)), rng.uniform(0.5, 0.9, count)])
    roll, pitch = torch.from_numpy(rng.uniform(-tilt, tilt, (2, count))).float()
    yaw = torch.from_numpy(rng.uniform(-np.pi, np.pi, count)).float()
    return Pose(torch.from_numpy(xyz).float(), quaternion_from_euler(roll, pitch, yaw))


def random_lakes(rng: np.random.Generator) -> tuple[tuple[int, int], ...]:
    """Sorted cells of three round lakes, some puddles of one cell and the arena's corners."""
    i, j = np.mgrid[:100, :100]
    wet = rng.random((100, 100)) < 0.005
    for x, y, radius in rng.uniform([0, 0, 8], [100, 100, 20], (3, 3)):
        wet |= np.hypot(i - x, j - y) < radius
    wet[:: len(wet) - 1, :: len(wet) - 1] = True
    return tuple((int(x), int(y)) for x, y in np.argwhere(wet))
