"""Scenes on the device: all landmarks' geoms once, and which of them stand where in every world."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import warp as wp
from torch import Tensor

from wordwing.sim.kernels.raycast import Geoms, Worlds
from wordwing.sim.kernels.textures import ABSOLUTE_SECOND, PATTERNS
from wordwing.sim.launch import warp_device
from wordwing.world.assets import ELLIPSOID, SPHERE, Asset, Look, asset, materials, rotation_matrix
from wordwing.world.catalogue import catalogue, landmark
from wordwing.world.layout import Layout

MAX_LANDMARKS = 40
"""Slots for landmarks in a world."""


@dataclass(frozen=True)
class PackedLayouts:
    """Many layouts as tensors, so that worlds can change layout on the device without Python."""

    count: Tensor
    """[L] int32, landmarks in each layout."""
    landmark: Tensor
    """[L, K] int64, catalogue index in each slot; 0 in unused slots."""
    place: Tensor
    """[L, K, 3] metres, world frame: centre and the height of what it stands on."""
    yaw: Tensor
    """[L, K] radians."""

    @classmethod
    def pack(cls, layouts: Sequence[Layout], device: torch.device | str = "cpu") -> PackedLayouts:
        """Pack layouts in order."""
        count = np.zeros(len(layouts), np.int32)
        index = np.zeros((len(layouts), MAX_LANDMARKS), np.int64)
        place = np.zeros((len(layouts), MAX_LANDMARKS, 3), np.float32)
        yaw = np.zeros((len(layouts), MAX_LANDMARKS), np.float32)
        for row, layout in enumerate(layouts):
            count[row] = len(layout.landmarks)
            for slot, placement in enumerate(layout.landmarks):
                index[row, slot] = landmark(placement.name).index
                place[row, slot] = placement.x, placement.y, placement.elevation
                yaw[row, slot] = placement.yaw
        tensors = (torch.from_numpy(array).to(device) for array in (count, index, place, yaw))
        return cls(*tensors)

    def __len__(self) -> int:
        return len(self.count)

    def take(self, index: Tensor) -> PackedLayouts:
        """The layouts at `index` [M], in that order."""
        return PackedLayouts(self.count[index], self.landmark[index], self.place[index], self.yaw[index])


class Scene:
    """The geoms of the catalogue and N worlds of landmarks on one device, as the kernels read them."""

    def __init__(self, num_worlds: int, device: torch.device, look: Look = "sim") -> None:
        self.device = device
        assets = [asset(entry.name, look) for entry in catalogue()]
        self._upload_geoms(assets)
        sizes = np.array([len(body) for body in assets])
        ends = np.cumsum(sizes)
        balls = np.array([_bounding_sphere(body) for body in assets])
        self._first = torch.from_numpy((ends - sizes).astype(np.int32)).to(device)
        self._last = torch.from_numpy(ends.astype(np.int32)).to(device)
        self._ball = torch.from_numpy(balls.astype(np.float32)).to(device)  # [landmarks, 4]

        slots = (num_worlds, MAX_LANDMARKS)
        self.count = torch.zeros(num_worlds, dtype=torch.int32, device=device)
        self.landmark = torch.zeros(slots, dtype=torch.int64, device=device)
        self.first = torch.zeros(slots, dtype=torch.int32, device=device)
        self.last = torch.zeros(slots, dtype=torch.int32, device=device)
        self.place_ = torch.zeros((*slots, 3), device=device)
        self.turn = torch.zeros((*slots, 2), device=device)
        self.ball = torch.zeros((*slots, 4), device=device)
        self.worlds = Worlds()
        self.worlds.count = wp.from_torch(self.count)
        self.worlds.first = wp.from_torch(self.first)
        self.worlds.last = wp.from_torch(self.last)
        self.worlds.place = wp.from_torch(self.place_, dtype=wp.vec3)
        self.worlds.turn = wp.from_torch(self.turn, dtype=wp.vec2)
        self.worlds.ball = wp.from_torch(self.ball, dtype=wp.vec4)

    def place(self, layouts: PackedLayouts, worlds: Tensor) -> None:
        """Put one layout into each of the worlds with indices `worlds` [M]."""
        turn = torch.stack([layouts.yaw.cos(), layouts.yaw.sin()], dim=-1)  # [M, K, 2]
        ball = self._ball[layouts.landmark]  # [M, K, 4]
        cos, sin = turn.unbind(-1)
        x, y, z, radius = ball.unbind(-1)
        turned = torch.stack([cos * x - sin * y, sin * x + cos * y, z], dim=-1)
        self.count[worlds] = layouts.count
        self.landmark[worlds] = layouts.landmark
        self.first[worlds] = self._first[layouts.landmark]
        self.last[worlds] = self._last[layouts.landmark]
        self.place_[worlds] = layouts.place
        self.turn[worlds] = turn
        self.ball[worlds] = torch.cat([layouts.place + turned, radius[..., None]], dim=-1)

    def _upload_geoms(self, assets: Sequence[Asset]) -> None:
        device = warp_device(self.device)

        def upload(rows: np.ndarray, dtype: object) -> wp.array:
            return wp.array(np.ascontiguousarray(rows), dtype=dtype, device=device)

        kind = np.concatenate([body.kind for body in assets])
        size = np.concatenate([body.size for body in assets])
        size[kind == SPHERE] = size[kind == SPHERE][:, :1]
        kind = np.where(kind == SPHERE, ELLIPSOID, kind)
        rgb = np.concatenate([body.rgb for body in assets])
        paint = [materials()[index] for body in assets for index in body.material]
        second = np.array([material.second for material in paint])
        multiplies = np.array([material.pattern not in ABSOLUTE_SECOND for material in paint])
        second[multiplies] *= rgb[multiplies]
        quaternions = np.concatenate([body.quaternion for body in assets])

        self.geoms = Geoms()
        self.geoms.kind = upload(kind.astype(np.int32), int)
        self.geoms.position = upload(np.concatenate([body.position for body in assets]), wp.vec3)
        self.geoms.rotation = upload(np.array([rotation_matrix(q) for q in quaternions]), wp.mat33)
        self.geoms.size = upload(size, wp.vec3)
        self.geoms.bound = upload(np.concatenate([body.bounding_radius() for body in assets]), float)
        self.geoms.rgb = upload(rgb, wp.vec3)
        self.geoms.pattern = upload(np.array([PATTERNS.index(material.pattern) for material in paint], np.int32), int)
        self.geoms.repeat = upload(np.array([material.repeat for material in paint]), wp.vec2)
        self.geoms.second = upload(second, wp.vec3)
        self.geoms.shine = upload(np.array([(material.specular, material.emission) for material in paint]), wp.vec2)


def _bounding_sphere(body: Asset) -> np.ndarray:
    """[4] centre (on the z axis) and radius of a sphere around all geoms, landmark frame."""
    points = body.surface_points()
    middle = np.array([0.0, 0.0, (points[:, 2].max() + points[:, 2].min()) / 2])
    reach = np.linalg.norm(body.position - middle, axis=-1) + body.bounding_radius()
    tight = np.linalg.norm(points - middle, axis=-1).max() * 1.02  # the cloud is dense, not complete
    return np.append(middle, min(reach.max(), tight))
