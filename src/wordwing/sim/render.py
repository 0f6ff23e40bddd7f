"""The `sim` camera: first-person and overhead pictures of N worlds, ray-cast straight into torch tensors."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
import warp as wp
from torch import Tensor

from wordwing.camera import Camera
from wordwing.frames import ARENA_HALF, Pose
from wordwing.sim.launch import launch, warp_device
from wordwing.sim.raycast import GROUND, LANDMARK, Geoms, Worlds, cast
from wordwing.sim.scene import Scene
from wordwing.sim.shading import Light, shade
from wordwing.world.fences import FENCE_HEIGHT, FENCES

wp.set_module_options({"enable_backward": False})


@dataclass(frozen=True)
class RenderConfig:
    """How the `sim` camera draws."""

    textures: bool = True
    """Draw procedural textures."""
    shadows: bool = False
    """Cast the sun's shadows: about half as fast."""
    samples: int = 1
    """Rays a pixel along each axis; 2 draws four rays a pixel and averages them."""
    sun_azimuth_deg: float = 35.0
    """Where the sun stands, degrees counter-clockwise from world x."""
    sun_elevation_deg: float = 55.0
    """How high it stands, degrees."""


@wp.func
def rotate(q: wp.vec4, v: wp.vec3) -> wp.vec3:
    """Rotate by a (w, x, y, z) quaternion."""
    axis = wp.vec3(q[1], q[2], q[3])
    t = 2.0 * wp.cross(axis, v)
    return v + q[0] * t + wp.cross(axis, t)


@wp.func
def pixel_ray(q: wp.vec4, u: float, v: float, width: int, height: int, focal: float) -> wp.vec3:
    """Unit direction through pixel coordinates (u, v), world frame."""
    left = (0.5 * float(width) - u) / focal
    up = (0.5 * float(height) - v) / focal
    return rotate(q, wp.normalize(wp.vec3(1.0, left, up)))


@wp.func
def to_byte(x: float) -> wp.uint8:
    """A channel in [0, 1] as a byte."""
    return wp.uint8(wp.clamp(x, 0.0, 1.0) * 255.0 + 0.5)


@wp.kernel
def draw_first_person(
    worlds: Worlds,
    geoms: Geoms,
    light: Light,
    fences: wp.array(dtype=wp.vec3),
    positions: wp.array(dtype=wp.vec3),
    quaternions: wp.array(dtype=wp.vec4),
    focal: float,
    samples: int,
    image: wp.array4d(dtype=wp.uint8),
):
    """One pixel of one world's camera picture."""
    world, row, column = wp.tid()
    width = image.shape[2]
    height = image.shape[1]
    o = positions[world]
    q = quaternions[world]
    rgb = wp.vec3(0.0, 0.0, 0.0)
    for i in range(samples):
        for j in range(samples):
            u = float(column) + (float(j) + 0.5) / float(samples)
            v = float(row) + (float(i) + 0.5) / float(samples)
            d = pixel_ray(q, u, v, width, height, focal)
            hit = cast(worlds, geoms, world, o, d, light.half, light.fence_height)
            rgb += shade(worlds, geoms, light, fences, world, o, d, hit)
    rgb = rgb / float(samples * samples)
    for channel in range(3):
        image[world, row, column, channel] = to_byte(rgb[channel])


@wp.kernel
def draw_overhead(
    worlds: Worlds,
    geoms: Geoms,
    light: Light,
    fences: wp.array(dtype=wp.vec3),
    extent: float,
    samples: int,
    image: wp.array4d(dtype=wp.uint8),
):
    """One pixel of one world's map, seen straight from above: x up, y left."""
    world, row, column = wp.tid()
    size = float(image.shape[1])
    rgb = wp.vec3(0.0, 0.0, 0.0)
    d = wp.vec3(0.0, 0.0, -1.0)
    for i in range(samples):
        for j in range(samples):
            x = extent * (0.5 - (float(row) + (float(i) + 0.5) / float(samples)) / size)
            y = extent * (0.5 - (float(column) + (float(j) + 0.5) / float(samples)) / size)
            ax = wp.abs(x)
            ay = wp.abs(y)
            if wp.max(ax, ay) > light.half and wp.max(ax, ay) < light.half + 0.06:
                side = wp.where(ax > ay, wp.where(x > 0.0, 0, 2), wp.where(y > 0.0, 3, 1))
                rgb += fences[side]
            else:
                o = wp.vec3(x, y, 10.0)
                hit = cast(worlds, geoms, world, o, d, light.half, light.fence_height)
                colour = shade(worlds, geoms, light, fences, world, o, d, hit)
                if wp.max(ax, ay) > light.half and hit.what == GROUND:
                    colour = 0.75 * colour
                rgb += colour
    rgb = rgb / float(samples * samples)
    for channel in range(3):
        image[world, row, column, channel] = to_byte(rgb[channel])


@wp.kernel
def probe_first_person(
    worlds: Worlds,
    geoms: Geoms,
    half: float,
    fence_height: float,
    positions: wp.array(dtype=wp.vec3),
    quaternions: wp.array(dtype=wp.vec4),
    focal: float,
    distance: wp.array3d(dtype=float),
    segmentation: wp.array3d(dtype=int),
):
    """Distance along a pixel's ray, and the slot of the landmark seen there."""
    world, row, column = wp.tid()
    o = positions[world]
    d = pixel_ray(
        quaternions[world],
        float(column) + 0.5,
        float(row) + 0.5,
        distance.shape[2],
        distance.shape[1],
        focal,
    )
    hit = cast(worlds, geoms, world, o, d, half, fence_height)
    distance[world, row, column] = hit.distance
    segmentation[world, row, column] = wp.where(hit.what == LANDMARK, hit.slot, -hit.what)


@dataclass
class Renderer:
    """Draws the worlds of a scene."""

    scene: Scene
    camera: Camera = field(default_factory=Camera)
    config: RenderConfig = field(default_factory=RenderConfig)

    def __post_init__(self) -> None:
        device = warp_device(self.scene.device)
        rgb = np.array([fence.rgb for fence in FENCES], np.float32)
        self._fences = wp.array(rgb, dtype=wp.vec3, device=device)
        self._light = _light(self.config, pixel=1.0 / self.camera.focal)

    def first_person(self, camera_poses: Pose, out: Tensor | None = None) -> Tensor:
        """Camera pictures from camera poses [N] in the world: [N, height, width, 3] uint8 on the device."""
        n, height, width = len(camera_poses), self.camera.config.height, self.camera.config.width
        if out is None:
            out = torch.empty((n, height, width, 3), dtype=torch.uint8, device=self.scene.device)
        inputs = (
            self.scene.worlds,
            self.scene.geoms,
            self._light,
            self._fences,
            *_pose_arrays(camera_poses),
            self.camera.focal,
            self.config.samples,
            wp.from_torch(out),
        )
        launch(draw_first_person, (n, height, width), inputs, self.scene.device)
        return out

    def probe(self, camera_poses: Pose) -> tuple[Tensor, Tensor]:
        """Geometry without paint, from camera poses [N].

        Returns:
            [N, height, width] float32 distance along each pixel's ray, metres (1e6 in the sky), and int32
            segmentation: the landmark's slot, or -1 ground, -2 fence, -3 sky.
        """
        shape = (len(camera_poses), self.camera.config.height, self.camera.config.width)
        distance = torch.empty(shape, device=self.scene.device)
        segmentation = torch.empty(shape, dtype=torch.int32, device=self.scene.device)
        inputs = (
            self.scene.worlds,
            self.scene.geoms,
            self._light.half,
            self._light.fence_height,
            *_pose_arrays(camera_poses),
            self.camera.focal,
            wp.from_torch(distance),
            wp.from_torch(segmentation),
        )
        launch(probe_first_person, shape, inputs, self.scene.device)
        return distance, segmentation

    def overhead(self, size: int = 512, extent: float = 5.0, samples: int = 2) -> Tensor:
        """Maps of all worlds from straight above, [N, size, size, 3] uint8: x up, y left, `extent` metres wide."""
        n = len(self.scene.count)
        out = torch.empty((n, size, size, 3), dtype=torch.uint8, device=self.scene.device)
        light = _light(self.config, pixel=0.1 * extent / size)  # the eye is 10 m up
        inputs = (
            self.scene.worlds,
            self.scene.geoms,
            light,
            self._fences,
            extent,
            samples,
            wp.from_torch(out),
        )
        launch(draw_overhead, (n, size, size), inputs, self.scene.device)
        return out


def _pose_arrays(poses: Pose) -> tuple[wp.array, wp.array]:
    position = poses.position.float().contiguous()
    quaternion = poses.quaternion.float().contiguous()
    return wp.from_torch(position, dtype=wp.vec3), wp.from_torch(quaternion, dtype=wp.vec4)


def _light(config: RenderConfig, pixel: float) -> Light:
    azimuth, elevation = math.radians(config.sun_azimuth_deg), math.radians(config.sun_elevation_deg)
    light = Light()
    light.sun = wp.vec3(
        math.cos(elevation) * math.cos(azimuth),
        math.cos(elevation) * math.sin(azimuth),
        math.sin(elevation),
    )
    light.sun_rgb = wp.vec3(0.42, 0.40, 0.36)
    light.ambient_rgb = wp.vec3(0.76, 0.77, 0.80)
    light.sky_rgb = wp.vec3(0.45, 0.66, 0.92)
    light.haze_rgb = wp.vec3(0.82, 0.88, 0.93)
    light.ground_rgb = wp.vec3(0.36, 0.52, 0.22)
    light.ground_second = wp.vec3(0.22, 0.35, 0.14)
    light.half = ARENA_HALF
    light.fence_height = FENCE_HEIGHT
    light.pixel = pixel
    light.textures = int(config.textures)
    light.shadows = int(config.shadows)
    return light
