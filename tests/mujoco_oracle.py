"""The same worlds in MuJoCo, whose own ray casting (no GL) is the oracle for ours."""

import mujoco
import numpy as np

from wordwing.world.assets import asset
from wordwing.world.layout import Layout


def mujoco_world(layout: Layout) -> mujoco.MjModel:
    """A layout's landmarks in their `sim` look on an endless floor; geom 0 is the floor."""
    spec = mujoco.MjSpec()
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 0.1])
    for placement in layout.landmarks:
        body = spec.worldbody.add_body(
            pos=[placement.x, placement.y, placement.elevation],
            quat=[np.cos(placement.yaw / 2), 0, 0, np.sin(placement.yaw / 2)],
        )
        look = asset(placement.name)
        for kind, size, position, quaternion in zip(look.kind, look.size, look.position, look.quaternion, strict=True):
            body.add_geom(type=int(kind), size=size, pos=position, quat=quaternion)
    return spec.compile()


def slots_of_geoms(layout: Layout) -> np.ndarray:
    """[ngeom] the slot of the landmark that each geom of `mujoco_world` belongs to, -1 for the floor."""
    sizes = [len(asset(placement.name)) for placement in layout.landmarks]
    return np.concatenate([[-1], np.repeat(np.arange(len(sizes)), sizes)])


def cast(model: mujoco.MjModel, origin: np.ndarray, rays: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances [R] (-1 for a miss) and geom ids [R] along unit rays [R, 3]."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    geom, distance = np.zeros(len(rays), np.int32), np.zeros(len(rays))
    mujoco.mj_multiRay(
        model, data, origin.astype(float), rays.astype(float).ravel(), None, True, -1, geom, distance, None, len(rays),
        1e9,
    )  # fmt: skip
    return distance, geom
