"""The lab as a MuJoCo model, drawn by MuJoCo Warp's renderer: no GL, no display.

The same landmarks at the same places as in `sim`, rebuilt and repainted, on grey mats between net walls in a hall
with lamps. The renderer compiles one kernel for each combination of geom types and model extent; all lab scenes share
both, so only the first scene ever drawn on a machine compiles.
"""

from __future__ import annotations

import math

import mujoco
import mujoco_warp as mjw
import numpy as np
import torch
import warp as wp
from numpy.typing import NDArray
from torch import Tensor

from wordwing.camera import Camera
from wordwing.frames import ARENA_HALF, Pose, quaternion_multiply
from wordwing.sim.lab.textures import bitmap, floor_bitmap, needs_colour
from wordwing.sim.launch import warp_device
from wordwing.world.assets import BOX, CAPSULE, CYLINDER, PRIMITIVES, asset, materials
from wordwing.world.fences import FENCE_HEIGHT, FENCES
from wordwing.world.layout import Layout, Placement

NET_HEIGHT = 2.0
HALL_HALF = 4.5
RGB = mujoco.mjtTextureRole.mjTEXROLE_RGB
CAMERA_AXES = torch.tensor([0.5, 0.5, -0.5, -0.5])
"""Turns our camera frame (x forward, y left, z up) into MuJoCo's (x right, y up, looking along -z)."""


def lab_spec(layout: Layout) -> mujoco.MjSpec:
    """The hall, the nets and a layout's landmarks in their `lab` look; geoms named "SLOT/…" by landmark."""
    spec = mujoco.MjSpec()
    spec.stat.extent, spec.stat.center = 6.0, [0, 0, 0]
    spec.visual.headlight.ambient = [0.46, 0.45, 0.43]
    spec.visual.headlight.diffuse = [0.12, 0.12, 0.12]
    spec.visual.headlight.specular = [0.0, 0.0, 0.0]
    _add_materials(spec)
    _add_hall(spec)
    for slot, placement in enumerate(layout.landmarks):
        _add_landmark(spec, slot, placement)
    for kind in sorted(PRIMITIVES):  # one of each kind below the floor: see the module's docstring
        spec.worldbody.add_geom(type=kind, size=[0.1, 0.1, 0.1], pos=[0, 0, -3])
    spec.worldbody.add_camera(name="drone")
    return spec


def _texture(
    spec: mujoco.MjSpec, name: str, pixels: NDArray[np.uint8], repeat: tuple[float, float]
) -> None:
    """A texture and a material of the same name that shows it, `repeat` times a metre."""
    texture = spec.add_texture(
        name=name,
        type=mujoco.mjtTexture.mjTEXTURE_2D,
        width=pixels.shape[1],
        height=pixels.shape[0],
        nchannel=3,
    )
    texture.data = pixels.tobytes()
    material = spec.add_material(name=name, texuniform=True, texrepeat=repeat)
    material.textures[RGB] = name


def _add_materials(spec: mujoco.MjSpec) -> None:
    for material in materials():
        if not material.pattern or needs_colour(material):
            added = spec.add_material(name=material.name, specular=material.specular, shininess=0.5)
            added.emission = 0.6 * material.emission
        else:
            # MuJoCo counts repeats for each half size; a bitmap holds two or three repeats of the pattern.
            _texture(spec, material.name, bitmap(material), _repeats(material.repeat))
    _texture(spec, "floor", floor_bitmap(), (1.0, 1.0))


def _repeats(repeat: tuple[float, float]) -> tuple[float, float]:
    return tuple(max(1.0, 0.7 * number) for number in repeat)  # type: ignore[return-value]


def _add_hall(spec: mujoco.MjSpec) -> None:
    body = spec.worldbody
    half, far = ARENA_HALF, HALL_HALF
    body.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[far, far, 0.1], material="floor")
    for sign in (-1, 1):
        wall = {"type": BOX, "rgba": [0.78, 0.74, 0.68, 1]}
        body.add_geom(size=[0.05, far, 1.6], pos=[sign * far, 0, 1.6], **wall)
        body.add_geom(size=[far, 0.05, 1.6], pos=[0, sign * far, 1.6], **wall)
    for fence in FENCES:
        (x0, y0), (x1, y1) = fence.start, fence.end
        middle = np.array([*fence.middle, FENCE_HEIGHT / 2])
        middle[:2] -= 0.01 * np.array(fence.normal)  # the visible side stands on the bound
        size = [abs(x1 - x0) / 2 + 0.01, abs(y1 - y0) / 2 + 0.01, FENCE_HEIGHT / 2]
        paint = 0.78 * np.array(fence.rgb) + 0.07
        body.add_geom(type=BOX, size=size, pos=middle, rgba=[*paint, 1])
        rope = {"type": CAPSULE, "size": [0.008, 0, 0], "rgba": [0.25, 0.27, 0.25, 1]}
        for z in np.linspace(0.55, NET_HEIGHT, 6):
            body.add_geom(fromto=[x0, y0, z, x1, y1, z], **rope)
        for part in np.linspace(0.0, 1.0, 9):
            x, y = x0 + part * (x1 - x0), y0 + part * (y1 - y0)
            body.add_geom(fromto=[x, y, FENCE_HEIGHT, x, y, NET_HEIGHT], **rope)
        body.add_geom(
            type=CYLINDER,
            size=[0.035, NET_HEIGHT / 2, 0],
            pos=[x0, y0, NET_HEIGHT / 2],
            rgba=[0.35, 0.36, 0.38, 1],
        )
    body.add_light(
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        dir=[0.45, 0.25, -1.0],
        diffuse=[0.55, 0.53, 0.48],
        specular=[0.3, 0.3, 0.3],
        castshadow=True,
    )
    body.add_light(
        type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL,
        dir=[-0.5, -0.4, -0.8],
        diffuse=[0.22, 0.23, 0.25],
        castshadow=False,
    )


def _add_landmark(spec: mujoco.MjSpec, slot: int, placement: Placement) -> None:
    look = asset(placement.name, "lab")
    body = spec.worldbody.add_body(
        name=f"{slot}",
        pos=[placement.x, placement.y, placement.elevation],
        quat=[math.cos(placement.yaw / 2), 0, 0, math.sin(placement.yaw / 2)],
    )
    for index in range(len(look)):
        material = materials()[look.material[index]]
        name, rgba = material.name, [*look.rgb[index], 1.0]
        if needs_colour(material):
            name = f"{slot}/{index}"
            _texture(spec, name, bitmap(material, look.rgb[index]), _repeats(material.repeat))
            rgba = [1.0, 1.0, 1.0, 1.0]
        body.add_geom(
            name=f"{slot}/{index}",
            type=int(look.kind[index]),
            size=look.size[index],
            pos=look.position[index],
            quat=look.quaternion[index],
            material=name,
            rgba=rgba,
        )


class LabScene:
    """One lab, drawn by a pinhole camera that is moved to a pose for each picture."""

    def __init__(self, layout: Layout, camera: Camera, device: torch.device | str = "cpu") -> None:
        self.camera = camera
        self._device = warp_device(torch.device(device))
        model = lab_spec(layout).compile()
        model.cam_fovy[:] = camera.vertical_fov_deg
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        size = (camera.config.width, camera.config.height)
        self._shape = (1, camera.config.height, camera.config.width)
        with wp.ScopedDevice(self._device):
            self._model, self._data = mjw.put_model(model), mjw.put_data(model, data)
            self._context = mjw.create_render_context(
                model,
                cam_res=size,
                render_rgb=True,
                render_depth=False,
                render_seg=True,
                use_shadows=True,
                use_fast_math=False,
                background_color=(0.62, 0.62, 0.6, 1.0),
                samples_per_pixel=2,
            )
            mjw.refit_bvh(self._model, self._data, self._context)
        slots = [model.geom(index).name.partition("/")[0] for index in range(model.ngeom)]
        self._slot = np.array([int(slot) if slot else -1 for slot in slots])

    def draw(self, camera_pose: Pose) -> Tensor:
        """The picture from one camera pose [1], world frame: [height, width, 3] float in [0, 1]."""
        self._render(camera_pose)
        with wp.ScopedDevice(self._device):
            out = wp.zeros(self._shape, dtype=wp.vec3)
            mjw.get_rgb(self._context, 0, out)
        return torch.from_numpy(out.numpy()[0])

    def segment(self, camera_pose: Pose) -> NDArray[np.int64]:
        """[height, width] slot of the landmark seen in each pixel, -1 where there is none."""
        self._render(camera_pose)
        with wp.ScopedDevice(self._device):
            out = wp.zeros(self._shape, dtype=wp.vec2i)
            mjw.get_segmentation(self._context, 0, out)
        geom = out.numpy()[0, ..., 0]
        return np.where(geom >= 0, self._slot[geom], -1)

    def _render(self, camera_pose: Pose) -> None:
        turned = quaternion_multiply(camera_pose.quaternion, CAMERA_AXES.to(camera_pose.quaternion))
        matrix = np.zeros(9)
        mujoco.mju_quat2Mat(matrix, turned[0].double().numpy())
        with wp.ScopedDevice(self._device):
            self._data.cam_xpos.assign(camera_pose.position.float().numpy().reshape(1, 1, 3))
            self._data.cam_xmat.assign(matrix.astype(np.float32).reshape(1, 1, 3, 3))
            mjw.render(self._model, self._data, self._context)
