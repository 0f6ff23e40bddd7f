"""Whether a goal can be seen at the start: by its bearing, as the paper has it, or really."""

import math
from collections.abc import Sequence

import mujoco
import numpy as np
import torch

from wordwing.camera import Camera, CameraConfig
from wordwing.frames import Pose
from wordwing.interface import FLIGHT_HEIGHT
from wordwing.world.assets import asset, rotation_matrix
from wordwing.world.layout import Layout, Placement
from wordwing.world.paths import Floats

HALF_VIEW = math.radians(CameraConfig().horizontal_fov_deg) / 2
"""A goal is ahead if it is less than this from the heading, radians: 42°."""

AT_GOAL = 0.05
"""Length of the end of the line of sight, metres, in which nothing hides the goal: what it meets there, like the thin
base of a landmark, is where the goal is."""


def goal_ahead(start_xy: Sequence[float], start_yaw: float, goal: Sequence[float] | Floats) -> bool:
    """Whether a goal is less than 42° from the heading at the start; one at the start is.

    This is the paper's "visible": how far it is, what stands between, and the blind spot before the drone's feet do
    not matter.

    Args:
        start_xy: x and y, metres.
        start_yaw: Radians, same frame.
        goal: x and y, metres, same frame.
    """
    dx, dy = goal[0] - start_xy[0], goal[1] - start_xy[1]
    if dx == dy == 0:
        return True
    return abs(math.remainder(math.atan2(dy, dx) - start_yaw, 2 * math.pi)) < HALF_VIEW


def goal_in_sight(layout: Layout, start_xy: Sequence[float], start_yaw: float, goal: Sequence[float] | Floats) -> bool:
    """Whether a goal's place on the ground is in the first image of a level drone, and no landmark hides it.

    Landmarks have their `sim` look for flights in the lab, too, so that an instruction is the same in both domains.
    What the line of sight meets in the last 5 cm before the goal hides nothing. A goal less than 0.78 m ahead
    is in the blind spot below the image.

    Args:
        layout: Where it flies.
        start_xy: x and y, metres, world frame.
        start_yaw: Radians, world frame.
        goal: x and y, metres, world frame; inside the arena, so no fence is in the way.
    """
    eye, place = np.array([*start_xy, FLIGHT_HEIGHT]), np.array([*goal, 0.0])
    camera = Camera()
    drone = Pose.level(torch.tensor(eye[:2]), torch.tensor(start_yaw, dtype=torch.float64), FLIGHT_HEIGHT)
    pixel, in_front = camera.project(torch.from_numpy(place), camera.pose(drone))
    if not (in_front and camera.contains(pixel)):
        return False
    line = place - eye
    free = float(np.linalg.norm(line)) - AT_GOAL
    direction = line / np.linalg.norm(line)
    return all(_meets(entry, eye, direction) >= free for entry in layout.landmarks)


def _meets(placement: Placement, eye: Floats, direction: Floats) -> float:
    """Distance at which a ray from a point [3] along a unit vector [3], world frame, meets a landmark; or inf."""
    cos, sin = math.cos(placement.yaw), math.sin(placement.yaw)
    turn = np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])  # world to landmark
    origin = turn @ (eye - [placement.x, placement.y, placement.elevation])
    ahead = turn @ direction
    geoms = asset(placement.name, "sim")
    hits = (
        mujoco.mju_rayGeom(position, rotation_matrix(quaternion).ravel(), size, origin, ahead, kind)
        for kind, quaternion, size, position in zip(
            geoms.kind, geoms.quaternion, geoms.size, geoms.position, strict=True
        )
    )
    return min((hit for hit in hits if hit >= 0), default=math.inf)
