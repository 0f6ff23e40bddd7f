"""Scenes on the device: the geoms of all landmarks, and the landmarks and lakes of every world."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import torch
from torch import Tensor

from wordwing.errors import WordwingError
from wordwing.sim.kernels.raycast import Geoms, Worlds
from wordwing.sim.kernels.textures import ABSOLUTE_SECOND, PATTERNS
from wordwing.sim.launch import warp_struct
from wordwing.world.assets import ELLIPSOID, SPHERE, Asset, asset, materials, rotation_matrix
from wordwing.world.catalogue import catalogue, landmark
from wordwing.world.layout import LAKE_MESH, MAX_LANDMARKS, Layout

LAKE_WORDS = 4
"""32-bit words for a row of the lake mesh, a bit a cell."""


@dataclass(frozen=True)
class PackedLayouts:
    """Many layouts as tensors, so that worlds can change layout on the device without Python."""

    count: Tensor
    """[L] int32, landmarks in each layout."""
    landmark: Tensor
    """[L, K] int64, catalogue index in each slot; 0 in unused slots."""
    place: Tensor
    """[L, K, 3] metres, world frame: centre and the height of what it stands on."""
    turn: Tensor
    """[L, K, 2] cosine and sine of the yaw."""
    lakes: Tensor
    """[L, 100, 4] int32, bit j % 32 of word [i, j // 32] set where cell (i, j) is water; [L, 0, 4] without lakes."""

    @classmethod
    def pack(cls, layouts: Sequence[Layout], device: torch.device | str = "cpu") -> PackedLayouts:
        """Pack layouts in order."""
        count = np.zeros(len(layouts), np.int32)
        index = np.zeros((len(layouts), MAX_LANDMARKS), np.int64)
        place = np.zeros((len(layouts), MAX_LANDMARKS, 3), np.float32)
        turn = np.zeros((len(layouts), MAX_LANDMARKS, 2), np.float32)
        rows = LAKE_MESH if any(layout.lakes for layout in layouts) else 0
        lakes = np.zeros((len(layouts), rows, LAKE_WORDS), np.int32)
        for row, layout in enumerate(layouts):
            if len(layout.landmarks) > MAX_LANDMARKS:
                raise WordwingError(
                    f"layout {row + 1} has {len(layout.landmarks)} landmarks; {MAX_LANDMARKS} are the most"
                )
            count[row] = len(layout.landmarks)
            for slot, placement in enumerate(layout.landmarks):
                index[row, slot] = landmark(placement.name).index
                place[row, slot] = placement.x, placement.y, placement.elevation
                turn[row, slot] = math.cos(placement.yaw), math.sin(placement.yaw)
            if layout.lakes:
                lakes[row] = _lake_bits(layout)
        tensors = (torch.from_numpy(array).to(device) for array in (count, index, place, turn, lakes))
        return cls(*tensors)

    def __len__(self) -> int:
        return len(self.count)

    def take(self, index: Tensor) -> PackedLayouts:
        """The layouts at `index` [M], in that order."""
        return PackedLayouts(
            self.count[index], self.landmark[index], self.place[index], self.turn[index], self.lakes[index]
        )


@dataclass(frozen=True)
class Catalogue:
    """The geoms of all landmarks on one device, shared by every scene there."""

    geoms: Geoms
    first: Tensor
    """[landmarks] int32, first geom of each landmark."""
    last: Tensor
    """[landmarks] int32, one past its last geom."""
    ball: Tensor
    """[landmarks, 4] bounding sphere in the landmark's frame: centre and radius, metres."""


@cache
def catalogue_on(device: torch.device) -> Catalogue:
    """Upload the catalogue once."""
    assets = [asset(entry.name) for entry in catalogue()]
    sizes = np.array([len(body) for body in assets])
    ends = np.cumsum(sizes)
    balls = np.array([_bounding_sphere(body) for body in assets])
    return Catalogue(
        geoms=_upload(assets, device),
        first=torch.from_numpy((ends - sizes).astype(np.int32)).to(device),
        last=torch.from_numpy(ends.astype(np.int32)).to(device),
        ball=torch.from_numpy(balls.astype(np.float32)).to(device),
    )


class SimScene:
    """N worlds of landmarks and lakes on one device, as the kernels read them."""

    def __init__(self, num_worlds: int, device: torch.device) -> None:
        self.num_worlds, self.device = num_worlds, device
        self._catalogue = catalogue_on(device)
        self.geoms = self._catalogue.geoms
        integers, floats = (partial(torch.zeros, dtype=kind, device=device) for kind in (torch.int32, torch.float32))
        self.tensors = {
            "count": integers(num_worlds),
            "first": integers(num_worlds, MAX_LANDMARKS),
            "last": integers(num_worlds, MAX_LANDMARKS),
            "place": floats(num_worlds, MAX_LANDMARKS, 3),
            "turn": floats(num_worlds, MAX_LANDMARKS, 2),
            "ball": floats(num_worlds, MAX_LANDMARKS, 4),
            "wet": integers(num_worlds),
            "lakes": integers(num_worlds, LAKE_MESH, LAKE_WORDS),
        }
        """[N, …] each, by the names in `Worlds`."""
        self.worlds = warp_struct(Worlds, **self.tensors)

    @classmethod
    def of(cls, layouts: Sequence[Layout], device: torch.device | str = "cpu") -> SimScene:
        """One world for each layout."""
        scene = cls(len(layouts), torch.device(device))
        scene.place(PackedLayouts.pack(layouts, device), torch.arange(len(layouts)))
        return scene

    def place(self, layouts: PackedLayouts, worlds: Tensor | slice) -> None:
        """Put one layout into each of the worlds with indices `worlds` [M]."""
        ball = self._catalogue.ball[layouts.landmark]  # [M, K, 4]
        cos, sin = layouts.turn.unbind(-1)
        x, y, z, radius = ball.unbind(-1)
        turned = torch.stack([cos * x - sin * y, sin * x + cos * y, z], dim=-1)
        placed = {
            "count": layouts.count,
            "first": self._catalogue.first[layouts.landmark],
            "last": self._catalogue.last[layouts.landmark],
            "place": layouts.place,
            "turn": layouts.turn,
            "ball": torch.cat([layouts.place + turned, radius[..., None]], dim=-1),
            "wet": (layouts.lakes != 0).flatten(1).any(dim=-1).int(),
        }
        if layouts.lakes.shape[1]:  # without any, kernels do not read the worlds' old lakes
            placed["lakes"] = layouts.lakes
        for name, rows in placed.items():
            self.tensors[name][worlds] = rows


def _lake_bits(layout: Layout) -> np.ndarray:
    """[100, 4] int32, a layout's lakes as `PackedLayouts` keeps them."""
    padded = np.zeros((LAKE_MESH, 32 * LAKE_WORDS), bool)
    padded[:, :LAKE_MESH] = layout.lake_mask
    return np.packbits(padded, axis=-1, bitorder="little").view("<i4")


def _upload(assets: Sequence[Asset], device: torch.device) -> Geoms:
    """All assets' geoms, one after the other."""
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

    columns: dict[str, np.ndarray] = {
        "kind": kind,
        "position": np.concatenate([body.position for body in assets]),
        "rotation": np.array([rotation_matrix(q) for q in quaternions]),
        "size": size,
        "bound": np.concatenate([body.bounding_radius() for body in assets]),
        "rgb": rgb,
        "pattern": np.array([PATTERNS.index(material.pattern) for material in paint]),
        "repeat": np.array([material.repeat for material in paint]),
        "second": second,
        "shine": np.array([(material.specular, material.emission) for material in paint]),
    }
    types = {name: np.int32 if name in ("kind", "pattern") else np.float32 for name in columns}
    tensors = {name: torch.from_numpy(rows.astype(types[name])).to(device) for name, rows in columns.items()}
    return warp_struct(Geoms, **tensors)


def _bounding_sphere(body: Asset) -> np.ndarray:
    """[4] centre (on the z axis) and radius of a sphere around all geoms, landmark frame."""
    points = body.surface_points()
    middle = np.array([0.0, 0.0, (points[:, 2].max() + points[:, 2].min()) / 2])
    reach = np.linalg.norm(body.position - middle, axis=-1) + body.bounding_radius()
    tight = np.linalg.norm(points - middle, axis=-1).max() * 1.02  # the cloud is dense, not complete
    return np.append(middle, min(reach.max(), tight))
