"""Landmark bodies: MJCF files of primitive geoms, read through MuJoCo, in two looks.

Every landmark is one file in `landmarks/`, its centre at the origin, its front along +x, standing on z = 0. The
`sim` look is the file as written. The `lab` look is the same thing built again by somebody else: smaller by up
to an eighth, every part a few per cent off, and painted with other tints; `wordwing.lab` adds other textures.
"""

import colorsys
import zlib
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import as_file, files
from typing import Literal

import mujoco
import numpy as np
from numpy.typing import NDArray

from wordwing.world.catalogue import landmark

Look = Literal["sim", "lab"]

SPHERE = int(mujoco.mjtGeom.mjGEOM_SPHERE)
CAPSULE = int(mujoco.mjtGeom.mjGEOM_CAPSULE)
ELLIPSOID = int(mujoco.mjtGeom.mjGEOM_ELLIPSOID)
CYLINDER = int(mujoco.mjtGeom.mjGEOM_CYLINDER)
BOX = int(mujoco.mjtGeom.mjGEOM_BOX)
PRIMITIVES = {SPHERE, CAPSULE, ELLIPSOID, CYLINDER, BOX}


@dataclass(frozen=True)
class Material:
    """How the surface of a geom is painted, besides its colour."""

    name: str
    pattern: str
    """Name of a procedural pattern, "" for none."""
    repeat: tuple[float, float]
    """Repeats a metre along (or around) the geom and up it."""
    second: tuple[float, float, float]
    """Second colour: absolute for bands, spots and checker, else a multiple of the first."""
    specular: float
    emission: float


@dataclass(frozen=True)
class Asset:
    """The geoms of one landmark in its own frame: origin on the floor, x to its front, z up, metres."""

    name: str
    kind: NDArray[np.int32]
    """[G] MuJoCo geom types, one of `PRIMITIVES`."""
    position: NDArray[np.float64]
    """[G, 3] geom centres."""
    quaternion: NDArray[np.float64]
    """[G, 4] (w, x, y, z), geom frame to landmark frame."""
    size: NDArray[np.float64]
    """[G, 3] half sizes and radii as MuJoCo has them."""
    rgb: NDArray[np.float64]
    """[G, 3] colours in [0, 1]."""
    material: NDArray[np.int32]
    """[G] index into `materials()`."""

    def __len__(self) -> int:
        return len(self.kind)

    def half_extents(self) -> NDArray[np.float64]:
        """[G, 3] half sizes of each geom's box in its own frame."""
        half = self.size.copy()
        round_ = (self.kind == CYLINDER) | (self.kind == CAPSULE)
        half[round_] = np.stack([self.size[round_, 0]] * 2 + [self.size[round_, 1]], axis=-1)
        half[self.kind == CAPSULE, 2] += self.size[self.kind == CAPSULE, 0]
        half[self.kind == SPHERE] = self.size[self.kind == SPHERE, :1]
        return half

    def bounding_radius(self) -> NDArray[np.float64]:
        """[G] radius of a sphere around each geom's centre that holds it."""
        half = self.half_extents()
        diagonal = np.linalg.norm(half, axis=-1)
        ring = np.hypot(half[:, 0], half[:, 2])  # a cylinder's rim, nearer than its box's corners
        smooth = half.max(axis=-1)
        return np.select([self.kind == BOX, self.kind == CYLINDER], [diagonal, ring], default=smooth)

    def surface_points(self) -> NDArray[np.float64]:
        """[P, 3] points densely covering all geoms' surfaces, landmark frame: for extents and tests."""
        clouds = [
            rotation_matrix(quaternion) @ _surface(int(kind), size).T + position[:, None]
            for kind, quaternion, size, position in zip(
                self.kind, self.quaternion, self.size, self.position, strict=True
            )
        ]
        return np.concatenate([cloud.T for cloud in clouds])

    def contains(self, points: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Whether points [P, 3], landmark frame, lie inside any geom: [P]."""
        inside = np.zeros(len(points), bool)
        for kind, quaternion, size, position in zip(self.kind, self.quaternion, self.size, self.position, strict=True):
            x, y, z = ((points - position) @ rotation_matrix(quaternion)).T
            if kind == BOX:
                inside |= (np.abs(x) <= size[0]) & (np.abs(y) <= size[1]) & (np.abs(z) <= size[2])
            elif kind == CYLINDER:
                inside |= (np.hypot(x, y) <= size[0]) & (np.abs(z) <= size[1])
            elif kind == CAPSULE:
                inside |= np.hypot(np.hypot(x, y), z - z.clip(-size[1], size[1])) <= size[0]
            else:
                a, b, c = size if kind == ELLIPSOID else size[[0, 0, 0]]
                inside |= (x / a) ** 2 + (y / b) ** 2 + (z / c) ** 2 <= 1
        return inside


def rotation_matrix(quaternion: NDArray[np.float64]) -> NDArray[np.float64]:
    """[3, 3] rotation of a (w, x, y, z) quaternion."""
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, quaternion)
    return matrix.reshape(3, 3)


@cache
def _unit_cube() -> NDArray[np.float64]:
    """[P, 3] points on the surface of a cube, -1 to 1."""
    grid = np.linspace(-1, 1, 7)
    cube = np.stack(np.meshgrid(grid, grid, grid), axis=-1).reshape(-1, 3)
    return cube[np.abs(cube).max(axis=-1) == 1]


@cache
def _unit_ball() -> NDArray[np.float64]:
    """[P, 3] points on a sphere of radius 1."""
    a, b = np.meshgrid(np.linspace(0, 2 * np.pi, 48, endpoint=False), np.linspace(0, np.pi, 25))
    return np.stack([np.sin(b) * np.cos(a), np.sin(b) * np.sin(a), np.cos(b)], axis=-1).reshape(-1, 3)


def _surface(kind: int, size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points [P, 3] on the surface of one geom in its own frame."""
    if kind == BOX:
        return _unit_cube() * size
    if kind == CYLINDER:
        rim = np.tile(_unit_ball()[12 * 48 : 13 * 48] * size[0], (9, 1))  # the equator
        rim[:, 2] = np.linspace(-size[1], size[1], 9).repeat(48)
        return rim
    if kind == CAPSULE:
        ends = _unit_ball() * size[0]
        ends[:, 2] += np.sign(ends[:, 2]) * size[1]
        return ends
    return _unit_ball() * (size[0] if kind == SPHERE else size)


def _rgb(values: NDArray[np.float64]) -> tuple[float, float, float]:
    red, green, blue = map(float, values)
    return red, green, blue


@cache
def materials() -> tuple[Material, ...]:
    """Every material of `landmarks/materials.xml`."""
    with as_file(files("wordwing.world") / "landmarks") as folder:
        text = '<mujoco><include file="materials.xml"/></mujoco>'
        include = {"materials.xml": (folder / "materials.xml").read_bytes()}
        spec = mujoco.MjSpec.from_string(text, include=include)
    second = {texture.name: _rgb(texture.rgb2) for texture in spec.textures}
    return tuple(
        Material(
            name=material.name,
            pattern=(pattern := material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB]),
            repeat=(float(material.texrepeat[0]), float(material.texrepeat[1])),
            second=second.get(pattern, (1.0, 1.0, 1.0)),
            specular=float(material.specular) if material.specular > 0.5 else 0.0,
            emission=float(material.emission),
        )
        for material in spec.materials
    )


@cache
def asset(name: str, look: Look = "sim") -> Asset:
    """The geoms of a landmark of the catalogue in one of its looks."""
    landmark(name)
    as_built = _read(name)
    return as_built if look == "sim" else rebuilt(as_built)


def _read(name: str) -> Asset:
    with as_file(files("wordwing.world") / "landmarks") as folder:
        model = mujoco.MjSpec.from_file(str(folder / f"{name}.xml")).compile()
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)  # geoms may sit in nested bodies
    if not set(model.geom_type.tolist()) <= PRIMITIVES:
        raise ValueError(f"{name}.xml: only sphere, capsule, ellipsoid, cylinder and box geoms are drawn")
    quaternion = np.zeros((model.ngeom, 4))
    for index in range(model.ngeom):
        mujoco.mju_mat2Quat(quaternion[index], data.geom_xmat[index])
    index_of = {material.name: index for index, material in enumerate(materials())}
    names = [model.material(i).name if i >= 0 else "plain" for i in model.geom_matid]
    return Asset(
        name=name,
        kind=model.geom_type.astype(np.int32),
        position=data.geom_xpos.copy(),
        quaternion=quaternion,
        size=model.geom_size.copy(),
        rgb=model.geom_rgba[:, :3].astype(np.float64),
        material=np.array([index_of[name] for name in names], np.int32),
    )


def rebuilt(original: Asset) -> Asset:
    """The `lab` look: the same landmark built and painted by somebody else, reproducibly.

    Never larger than the original, so both looks share one footprint.
    """
    rng = np.random.default_rng(zlib.crc32(original.name.encode()))
    scale = rng.uniform(0.88, 0.96)
    parts = rng.uniform(0.95, 1.04, (len(original), 3))
    parts[original.kind != BOX] = parts[original.kind != BOX][:, [0, 0, 0]]  # round stays round
    paint = {}  # parts of one colour stay of one colour
    for colour in dict.fromkeys(map(tuple, original.rgb.round(3))):
        hue, saturation, value = colorsys.rgb_to_hsv(*colour)
        hue = (hue + rng.uniform(-0.03, 0.03)) % 1.0
        saturation *= rng.uniform(0.7, 0.95)
        value = min(1.0, value * rng.uniform(0.75, 1.05))
        paint[colour] = colorsys.hsv_to_rgb(hue, saturation, value)
    return replace(
        original,
        position=original.position * scale,
        size=original.size * parts * scale,
        rgb=np.array([paint[tuple(colour)] for colour in original.rgb.round(3)]),
    )
