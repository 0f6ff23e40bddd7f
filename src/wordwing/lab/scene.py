"""The lab as a MuJoCo model, drawn by MuJoCo Warp's renderer: no GL, no display.

The same landmarks at the same places as in `sim`, rebuilt and repainted, on dark mats between net walls, in a
hall with lamps; lakes are blue tarpaulins, painted into the floor's bitmap. The renderer compiles one kernel for
each combination of geom types, lights and model extent; all lab scenes share these, so only the first scene ever
drawn on a machine compiles.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import mujoco
import mujoco_warp as mjw
import numpy as np
import torch
import warp as wp
from numpy.typing import NDArray
from torch import Tensor

from wordwing.camera import Camera
from wordwing.frames import ARENA_SIZE, Pose, quaternion_multiply
from wordwing.lab.textures import MATS, bitmap, floor_bitmap, lake_floor_bitmap, needs_colour, tiling
from wordwing.sim.launch import warp_device
from wordwing.world.assets import BOX, CAPSULE, CYLINDER, PRIMITIVES, asset, materials
from wordwing.world.fences import FENCE_HEIGHT, FENCES, Fence
from wordwing.world.layout import Layout, Placement

NET_HEIGHT = 2.0
NET_MESH = 0.235
"""Height of the net walls and distance between their ropes, metres."""

ROPE = 0.012
"""Radius of the ropes, metres: with thinner ones, far nets break up into dashes."""

HALL_HALF = 4.5
"""Half the edge of the hall around the arena, metres."""

HALL = (
    ((HALL_HALF, 1.6, 1.0), (0.06, 0.45, 1.0), (0.44, 0.35, 0.28)),  # a door
    ((HALL_HALF, -2.0, 1.55), (0.06, 1.1, 0.45), (0.80, 0.86, 0.92)),  # a window
    ((4.1, -1.9, 0.35), (0.35, 0.8, 0.35), (0.52, 0.47, 0.40)),  # a bench
    ((-2.2, -HALL_HALF, 1.4), (1.0, 0.06, 0.5), (0.88, 0.88, 0.86)),  # a whiteboard
    ((2.0, -4.2, 0.9), (0.5, 0.25, 0.9), (0.42, 0.44, 0.46)),  # a locker
    ((-HALL_HALF, -1.2, 1.0), (0.06, 0.45, 1.0), (0.40, 0.44, 0.46)),  # a door
    ((-4.2, 2.0, 0.6), (0.25, 1.2, 0.6), (0.50, 0.42, 0.33)),  # a sideboard
    ((-1.0, HALL_HALF, 1.55), (1.1, 0.06, 0.45), (0.80, 0.86, 0.92)),  # a window
    ((2.2, 4.2, 0.75), (0.8, 0.25, 0.75), (0.36, 0.37, 0.40)),  # a rack
)
"""Furniture of the hall: centres and half sizes of boxes, metres, and their colours."""

RGB = mujoco.mjtTextureRole.mjTEXROLE_RGB
CAMERA_AXES = torch.tensor([0.5, 0.5, -0.5, -0.5])
"""Turns our camera frame (x forward, y left, z up) into MuJoCo's (x right, y up, looking along -z)."""


def lab_spec(layout: Layout) -> mujoco.MjSpec:
    """The hall, the nets and a layout's landmarks and lakes in their `lab` look; geoms named "SLOT/…" by landmark."""
    spec = mujoco.MjSpec()
    spec.stat.extent, spec.stat.center = 6.0, [0, 0, 0]
    _add_lights(spec)
    _add_hall(spec, layout)
    for fence in FENCES:
        _add_fence(spec, fence)
    for material in materials():
        if material.pattern and not needs_colour(material):
            _add_texture(spec, material.name, bitmap(material))
    for slot, placement in enumerate(layout.landmarks):
        _add_landmark(spec, slot, placement)
    for kind in sorted(PRIMITIVES):  # one of each kind below the floor: see the module's docstring
        spec.worldbody.add_geom(type=kind, size=[0.1, 0.1, 0.1], pos=[0, 0, -3])
    spec.worldbody.add_camera(name="drone")
    return spec


def _add_lights(spec: mujoco.MjSpec) -> None:
    """A row of lamps on one side that casts shadows, daylight from the other, and light walls all around."""
    headlight = spec.visual.headlight
    headlight.ambient = [0.55, 0.54, 0.52]
    headlight.diffuse = [0.10, 0.10, 0.10]
    headlight.specular = [0.0, 0.0, 0.0]
    directional = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
    spec.worldbody.add_light(
        type=directional,
        dir=[0.40, -0.55, -1.0],
        diffuse=[0.52, 0.50, 0.46],
        specular=[0.3, 0.3, 0.3],
        castshadow=True,
    )
    spec.worldbody.add_light(
        type=directional,
        dir=[-0.55, 0.35, -0.7],
        diffuse=[0.18, 0.19, 0.21],
        specular=[0.0, 0.0, 0.0],
        castshadow=False,
    )


def _add_texture(spec: mujoco.MjSpec, name: str, pixels: NDArray[np.uint8]) -> None:
    texture = spec.add_texture(
        name=name,
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        width=pixels.shape[1],
        height=pixels.shape[0],
        nchannel=3,
    )
    texture.data = pixels.tobytes()


def _add_hall(spec: mujoco.MjSpec, layout: Layout) -> None:
    _add_texture(spec, "floor", lake_floor_bitmap(layout, HALL_HALF) if layout.lakes else floor_bitmap())
    repeats = 1.0 if layout.lakes else 2 * HALL_HALF / MATS
    mats = spec.add_material(name="floor", texrepeat=[repeats, repeats], specular=0.0)
    mats.textures[RGB] = "floor"
    plane = mujoco.mjtGeom.mjGEOM_PLANE
    spec.worldbody.add_geom(type=plane, size=[HALL_HALF, HALL_HALF, 0.1], material="floor")
    spec.add_material(name="matt", specular=0.0)
    for x, y in ((1, 0), (-1, 0), (0, 1), (0, -1)):
        for low, high, paint in ((0.0, 1.1, (0.62, 0.68, 0.68)), (1.1, 3.2, (0.86, 0.86, 0.82))):
            centre = [x * (HALL_HALF + 0.05), y * (HALL_HALF + 0.05), (low + high) / 2]
            half = [HALL_HALF * abs(y) + 0.05, HALL_HALF * abs(x) + 0.05, (high - low) / 2]
            _add_solid(spec, BOX, half, paint, centre)
    for place, extent, paint in HALL:
        _add_solid(spec, BOX, extent, paint, place)


def _add_fence(spec: mujoco.MjSpec, fence: Fence) -> None:
    """A painted board on the bound, a net above it and a post at its start."""
    start, end = np.array(fence.start), np.array(fence.end)
    x, y = np.array(fence.middle) - 0.01 * np.array(fence.normal)  # the visible side stands on the bound
    half = [*(np.abs(end - start) / 2 + 0.01), FENCE_HEIGHT / 2]
    paint = 0.85 * np.array(fence.rgb) + 0.04
    _add_solid(spec, BOX, half, paint, [x, y, FENCE_HEIGHT / 2])
    shares = np.arange(NET_MESH / 2, ARENA_SIZE, NET_MESH) / ARENA_SIZE
    feet = [start + share * (end - start) for share in shares]
    levels = np.arange(FENCE_HEIGHT + NET_MESH, NET_HEIGHT, NET_MESH)
    ropes = [(*foot, FENCE_HEIGHT, *foot, NET_HEIGHT) for foot in feet] + [(*start, z, *end, z) for z in levels]
    for rope in ropes:
        spec.worldbody.add_geom(
            type=CAPSULE, size=[ROPE, 0, 0], fromto=rope, rgba=[0.50, 0.53, 0.52, 1], material="matt"
        )
    _add_solid(spec, CYLINDER, [0.035, NET_HEIGHT / 2, 0], (0.62, 0.63, 0.65), [*start, NET_HEIGHT / 2])


def _add_solid(
    spec: mujoco.MjSpec,
    kind: int,
    size: Sequence[float],
    rgb: Sequence[float] | NDArray[np.float64],
    centre: Sequence[float],
) -> None:
    spec.worldbody.add_geom(type=kind, size=size, pos=centre, rgba=[*rgb, 1.0], material="matt")


def _add_landmark(spec: mujoco.MjSpec, slot: int, placement: Placement) -> None:
    look = asset(placement.name, "lab")
    body = spec.worldbody.add_body(
        name=f"{slot}",
        pos=[placement.x, placement.y, placement.elevation],
        quat=[math.cos(placement.yaw / 2), 0, 0, math.sin(placement.yaw / 2)],
    )
    for index in range(len(look)):
        name, rgb = f"{slot}/{index}", look.rgb[index]
        kind, size = int(look.kind[index]), look.size[index]
        material = materials()[look.material[index]]
        surface = spec.add_material(name=name, specular=0.5 * material.specular, emission=0.6 * material.emission)
        if material.pattern:
            surface.textures[RGB] = material.name
            surface.texrepeat = tiling(material, kind, size)
        if needs_colour(material):
            _add_texture(spec, name, bitmap(material, rgb))
            surface.textures[RGB] = name
            rgb = np.ones(3)
        body.add_geom(
            name=name,
            type=kind,
            size=size,
            pos=look.position[index],
            quat=look.quaternion[index],
            material=name,
            rgba=[*rgb, 1.0],
        )


class LabScene:
    """One lab, drawn by a pinhole camera that is moved to a pose for each image, a ray a pixel."""

    def __init__(self, layout: Layout, camera: Camera, device: torch.device | str = "cpu") -> None:
        self.camera = camera
        self.model = lab_spec(layout).compile()
        self.model.cam_fovy[:] = camera.vertical_fov_deg
        data = mujoco.MjData(self.model)
        mujoco.mj_forward(self.model, data)
        size = (camera.config.width, camera.config.height)
        self._shape = (1, camera.config.height, camera.config.width)
        self._device = warp_device(torch.device(device))
        with wp.ScopedDevice(self._device):
            self._model, self._data = mjw.put_model(self.model), mjw.put_data(self.model, data)
            self._context = mjw.create_render_context(
                self.model,
                cam_res=size,
                render_rgb=True,
                render_depth=False,
                render_seg=True,
                use_shadows=True,
                use_fast_math=False,
                shadow_light_fraction=0.2,
            )
            mjw.refit_bvh(self._model, self._data, self._context)
        slots = [self.model.geom(index).name.partition("/")[0] for index in range(self.model.ngeom)]
        self._slot = np.array([int(slot) if slot else -1 for slot in slots])

    def draw(self, camera_pose: Pose) -> Tensor:
        """The image from one camera pose [1], world frame: [height, width, 3] float in [0, 1]."""
        return torch.from_numpy(self._render(camera_pose, mjw.get_rgb, wp.vec3))

    def segment(self, camera_pose: Pose) -> NDArray[np.int64]:
        """[height, width] slot of the landmark seen in each pixel, -1 where there is none."""
        geom = self._render(camera_pose, mjw.get_segmentation, wp.vec2i)[..., 0]
        return np.where(geom >= 0, self._slot[geom], -1)

    def _render(self, camera_pose: Pose, read: Callable[..., None], kind: type) -> NDArray[Any]:
        """[height, width, …] what a function of the renderer reads of the image from one camera pose [1]."""
        turned = quaternion_multiply(camera_pose.quaternion, CAMERA_AXES.to(camera_pose.quaternion))
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, turned[0].double().numpy())
        with wp.ScopedDevice(self._device):
            self._data.cam_xpos.assign(camera_pose.position.float().numpy().reshape(1, 1, 3))
            self._data.cam_xmat.assign(matrix.astype(np.float32).reshape(1, 1, 3, 3))
            mjw.render(self._model, self._data, self._context)
            out = wp.zeros(self._shape, dtype=kind)
            read(self._context, 0, out)
        return out.numpy()[0]
