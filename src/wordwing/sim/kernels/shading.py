"""Colour of a ray's hit: surface coordinates, procedural texture, sun, sky and shadows, in Warp."""

import warp as wp

from wordwing.sim.kernels.raycast import (
    BOX,
    CAPSULE,
    CYLINDER,
    FENCE,
    GROUND,
    LANDMARK,
    Geoms,
    Hit,
    Worlds,
    direction_out_of_landmark,
    into_landmark,
    occluded,
)
from wordwing.sim.kernels.textures import pattern_value

wp.set_module_options({"enable_backward": False})

TAU = wp.constant(6.283185307179586)
GRASS = wp.constant(15)
PICKETS = wp.constant(16)
RIPPLES = wp.constant(17)


@wp.struct
class Light:
    """One sun, an even sky, and the arena that they shine on."""

    sun: wp.vec3  # unit vector towards the sun, world frame
    sun_rgb: wp.vec3
    ambient_rgb: wp.vec3
    sky_rgb: wp.vec3  # the sky overhead
    haze_rgb: wp.vec3  # the sky at the horizon
    ground_rgb: wp.vec3
    ground_second: wp.vec3
    water_rgb: wp.vec3
    water_second: wp.vec3  # the crests of ripples
    half: float  # half edge of the arena, metres
    fence_height: float
    pixel: float  # radians that a pixel spans, for fading textures out before they alias
    textures: int
    shadows: int


@wp.struct
class Surface:
    """A geom's surface at a point: outward normal and texture coordinates in metres."""

    normal: wp.vec3
    u: float
    v: float
    around: float  # girth of a round geom in metres, 0 for flat faces


@wp.func
def surface(kind: int, size: wp.vec3, p: wp.vec3) -> Surface:
    """The surface of a geom at a point on it, geom frame."""
    if kind == BOX:
        q = wp.vec3(wp.abs(p[0]) / size[0], wp.abs(p[1]) / size[1], wp.abs(p[2]) / size[2])
        if q[0] >= q[1] and q[0] >= q[2]:
            return Surface(wp.vec3(wp.sign(p[0]), 0.0, 0.0), p[1], p[2], 0.0)
        if q[1] >= q[2]:
            return Surface(wp.vec3(0.0, wp.sign(p[1]), 0.0), p[0], p[2], 0.0)
        return Surface(wp.vec3(0.0, 0.0, wp.sign(p[2])), p[0], p[1], 0.0)
    rho = wp.sqrt(p[0] * p[0] + p[1] * p[1])
    if kind == CYLINDER and size[1] - wp.abs(p[2]) < size[0] - rho:
        return Surface(wp.vec3(0.0, 0.0, wp.sign(p[2])), p[0], p[1], 0.0)
    normal = wp.vec3(p[0], p[1], 0.0) / wp.max(rho, 1.0e-9)
    around = TAU * size[0]
    if kind == CAPSULE:
        normal = wp.normalize(wp.vec3(p[0], p[1], p[2] - wp.clamp(p[2], -size[1], size[1])))
    elif kind != CYLINDER:
        normal = wp.normalize(wp.cw_div(p, wp.cw_mul(size, size)))
        around = 0.5 * TAU * (size[0] + size[1])
    return Surface(normal, wp.atan2(p[1], p[0]) / TAU * around, p[2], around)


@wp.func
def textured(pattern: int, repeat: wp.vec2, base: wp.vec3, second: wp.vec3, s: Surface, footprint: float) -> wp.vec3:
    """The base colour with its pattern on it; `footprint` is the size of a pixel there in metres."""
    frequency_u = repeat[0]
    if s.around > 0.0:
        # A whole number of repeats around, or the seam would show.
        frequency_u = wp.max(1.0, wp.round(repeat[0] * s.around)) / s.around
    amount = pattern_value(pattern, s.u * frequency_u, s.v * repeat[1])
    fade = wp.clamp(1.6 - 1.2 * footprint * wp.max(repeat[0], repeat[1]), 0.0, 1.0)
    amount = wp.lerp(0.4, amount, fade)
    return wp.lerp(base, second, amount)


@wp.func
def sky(light: Light, d: wp.vec3) -> wp.vec3:
    """The colour of the sky along a direction."""
    return wp.lerp(light.haze_rgb, light.sky_rgb, wp.clamp(2.5 * d[2], 0.0, 1.0))


@wp.func
def fence_surface(p: wp.vec3) -> Surface:
    """The inner side of the fence nearest to a point on it."""
    if wp.abs(p[0]) > wp.abs(p[1]):
        return Surface(wp.vec3(-wp.sign(p[0]), 0.0, 0.0), p[1], p[2], 0.0)
    return Surface(wp.vec3(0.0, -wp.sign(p[1]), 0.0), p[0], p[2], 0.0)


@wp.func
def fence_side(x: float, y: float) -> int:
    """The number of the fence nearest to a point on it, as they are ordered in `wordwing.world.fences`."""
    return wp.where(wp.abs(x) > wp.abs(y), wp.where(x > 0.0, 0, 2), wp.where(y > 0.0, 3, 1))


@wp.func
def in_lake(worlds: Worlds, world: int, p: wp.vec3, half: float) -> bool:
    """Whether a point of the ground is water."""
    if worlds.wet[world] == 0:
        return False
    cells = worlds.lakes.shape[1]
    i = int(wp.floor((p[0] + half) * (0.5 * float(cells) / half)))
    j = int(wp.floor((p[1] + half) * (0.5 * float(cells) / half)))
    if i < 0 or i >= cells or j < 0 or j >= cells:
        return False
    return ((worlds.lakes[world, i, j >> 5] >> (j & 31)) & 1) != 0


@wp.func
def shade(
    worlds: Worlds,
    geoms: Geoms,
    light: Light,
    fences: wp.array(dtype=wp.vec3),
    world: int,
    o: wp.vec3,
    d: wp.vec3,
    hit: Hit,
) -> wp.vec3:
    """The colour seen along a ray that ended in `hit`, each channel in [0, 1]."""
    p = o + hit.distance * d
    footprint = light.pixel * hit.distance
    normal = wp.vec3(0.0, 0.0, 1.0)
    base = light.ground_rgb
    specular = float(0.0)
    mirror = float(0.0)
    if hit.what == LANDMARK:
        g = hit.geom
        turn = worlds.turn[world, hit.slot]
        rotation = geoms.rotation[g]
        local = (into_landmark(worlds.place[world, hit.slot], turn, p) - geoms.position[g]) * rotation
        s = surface(geoms.kind[g], geoms.size[g], local)
        base = geoms.rgb[g]
        shine = geoms.shine[g]
        if shine[1] > 0.0:
            return base
        specular = shine[0]
        if light.textures != 0 and geoms.pattern[g] != 0:
            base = textured(geoms.pattern[g], geoms.repeat[g], base, geoms.second[g], s, footprint)
        normal = direction_out_of_landmark(turn, rotation * s.normal)
        if wp.dot(normal, d) > 0.0:
            normal = -normal
    elif hit.what == FENCE:
        s = fence_surface(p)
        normal = s.normal
        base = fences[fence_side(p[0], p[1])]
        if light.textures != 0:
            base = textured(PICKETS, wp.vec2(6.0, 5.0), base, 0.6 * base, s, footprint)
    elif hit.what == GROUND:
        water = in_lake(worlds, world, p, light.half)
        if water:
            base = light.water_rgb
        if light.textures != 0:
            s = Surface(normal, p[0], p[1], 0.0)
            if water:
                base = textured(RIPPLES, wp.vec2(6.0, 6.0), base, light.water_second, s, footprint)
                mirror = 0.08 + 0.5 * wp.pow(1.0 + d[2], 4.0)  # more of the sky the flatter one looks
            else:
                base = textured(GRASS, wp.vec2(4.0, 4.0), base, light.ground_second, s, footprint)
    else:
        return sky(light, d)
    facing = wp.max(wp.dot(normal, light.sun), 0.0)
    if light.shadows != 0 and facing > 0.0:
        if occluded(worlds, geoms, world, p + 1.0e-3 * normal, light.sun):
            facing = 0.0
            specular = 0.0
    lit = (0.78 + 0.22 * normal[2]) * light.ambient_rgb + facing * light.sun_rgb
    rgb = wp.cw_mul(base, lit)
    if specular > 0.0:
        glint = wp.max(wp.dot(wp.normalize(light.sun - d), normal), 0.0)
        glint = wp.pow(glint, 24.0) * specular * 0.5
        rgb = rgb + wp.vec3(glint, glint, glint)
    if mirror > 0.0:
        rgb = wp.lerp(rgb, sky(light, wp.vec3(d[0], d[1], -d[2])), mirror)
    return rgb
