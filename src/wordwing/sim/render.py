"""The `sim` camera: first-person and overhead images of N worlds, ray-cast straight into torch tensors."""

import math
from dataclasses import dataclass, field
from typing import Any

import torch
import warp as wp
from torch import Tensor

from wordwing.camera import Camera
from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF, Pose
from wordwing.sim.kernels.image import draw_first_person, draw_overhead, probe_first_person
from wordwing.sim.kernels.shading import Light
from wordwing.sim.launch import launch, warp_struct
from wordwing.sim.scene import SimScene
from wordwing.world.fences import FENCE_HEIGHT, FENCES


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


@dataclass
class Renderer:
    """Draws the worlds of a scene."""

    scene: SimScene
    camera: Camera = field(default_factory=Camera)
    config: RenderConfig = field(default_factory=RenderConfig)

    def __post_init__(self) -> None:
        rgb = [fence.rgb for fence in FENCES]
        self._fences = wp.from_torch(torch.tensor(rgb, device=self.scene.device), dtype=wp.vec3)
        self._light = _light(self.config, pixel=1.0 / self.camera.focal)

    def first_person(self, camera_poses: Pose) -> Tensor:
        """Camera images from camera poses [N] in the world: [N, height, width, 3] uint8 on the device."""
        shape = (len(camera_poses), self.camera.config.height, self.camera.config.width)
        out = torch.empty((*shape, 3), dtype=torch.uint8, device=self.scene.device)
        view = (*self._pose_arrays(camera_poses), self.camera.focal, self.config.samples)
        self._launch(draw_first_person, shape, self._light, self._fences, *view, wp.from_torch(out))
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
        view = (*self._pose_arrays(camera_poses), self.camera.focal)
        self._launch(
            probe_first_person, shape, self._light, *view, wp.from_torch(distance), wp.from_torch(segmentation)
        )
        return distance, segmentation

    def _pose_arrays(self, poses: Pose) -> tuple[wp.array, wp.array]:
        """Camera poses as kernels read them; more poses than worlds would be drawn from beyond the scene."""
        if poses.position.shape != (self.scene.num_worlds, 3):
            raise WordwingError(
                f"a scene of {self.scene.num_worlds} worlds is drawn from as many camera poses, "
                f"not from {list(poses.position.shape[:-1])}"
            )
        position = poses.position.to(self.scene.device, torch.float32).contiguous()
        quaternion = poses.quaternion.to(self.scene.device, torch.float32).contiguous()
        return wp.from_torch(position, dtype=wp.vec3), wp.from_torch(quaternion, dtype=wp.vec4)

    def overhead(self, size: int = 512, extent: float = 5.0, samples: int = 2) -> Tensor:
        """Maps of all worlds from straight above, [N, size, size, 3] uint8: x up, y left, `extent` metres wide."""
        shape = (self.scene.num_worlds, size, size)
        out = torch.empty((*shape, 3), dtype=torch.uint8, device=self.scene.device)
        light = _light(self.config, pixel=0.1 * extent / size)  # the eye is 10 m up
        self._launch(draw_overhead, shape, light, self._fences, extent, samples, wp.from_torch(out))
        return out

    def _launch(self, kernel: wp.Kernel, shape: tuple[int, ...], *inputs: Any) -> None:
        """Run a kernel for each of so many pixels of the scene's worlds."""
        launch(kernel, shape, (self.scene.worlds, self.scene.geoms, *inputs), self.scene.device)


def _light(config: RenderConfig, pixel: float) -> Light:
    azimuth, elevation = math.radians(config.sun_azimuth_deg), math.radians(config.sun_elevation_deg)
    return warp_struct(
        Light,
        sun=wp.vec3(
            math.cos(elevation) * math.cos(azimuth),
            math.cos(elevation) * math.sin(azimuth),
            math.sin(elevation),
        ),
        sun_rgb=wp.vec3(0.38, 0.36, 0.33),
        ambient_rgb=wp.vec3(0.86, 0.87, 0.90),
        sky_rgb=wp.vec3(0.45, 0.66, 0.92),
        haze_rgb=wp.vec3(0.82, 0.88, 0.93),
        ground_rgb=wp.vec3(0.36, 0.52, 0.22),
        ground_second=wp.vec3(0.22, 0.35, 0.14),
        water_rgb=wp.vec3(0.16, 0.43, 0.58),
        water_second=wp.vec3(0.30, 0.57, 0.68),
        half=ARENA_HALF,
        fence_height=FENCE_HEIGHT,
        pixel=pixel,
        textures=int(config.textures),
        shadows=int(config.shadows),
    )
