"""Random rotations and poses for tests."""

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
