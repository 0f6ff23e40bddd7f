"""Procedural textures as Warp functions: patterns are computed where a ray lands, never looked up.

`u` runs around or along a geom and `v` up it, both in repeats of the pattern. Each function returns how much of
the second colour shows, in [0, 1].
"""

import warp as wp

wp.set_module_options({"enable_backward": False})

PATTERNS = (
    "",
    "planks",
    "grain",
    "bricks",
    "stone",
    "leaves",
    "bands",
    "ribs",
    "checker",
    "spots",
    "shingles",
    "metal",
    "rust",
    "weave",
    "camouflage",
    "grass",
    "pickets",
    "ripples",
)
"""Names of the patterns in the order of the numbers that `pattern_value` switches on."""

ABSOLUTE_SECOND = ("bands", "checker", "spots")
"""Patterns whose second colour stands for itself instead of multiplying the first."""


@wp.func
def hash_cell(x: int, y: int, seed: int) -> float:
    """A number in [0, 1) for an integer cell, the same on every device."""
    h = wp.uint32(x) * wp.uint32(374761393) + wp.uint32(y) * wp.uint32(668265263)
    h = h + wp.uint32(seed) * wp.uint32(1103515245)
    h = (h ^ (h >> wp.uint32(13))) * wp.uint32(1274126177)
    h = h ^ (h >> wp.uint32(16))
    return float(h & wp.uint32(0xFFFFFF)) / 16777216.0


@wp.func
def value_noise(u: float, v: float, seed: int) -> float:
    """Smooth noise in [0, 1] with one bump a unit."""
    fu = wp.floor(u)
    fv = wp.floor(v)
    iu = int(fu)
    iv = int(fv)
    a = u - fu
    b = v - fv
    a = a * a * (3.0 - 2.0 * a)
    b = b * b * (3.0 - 2.0 * b)
    low = wp.lerp(hash_cell(iu, iv, seed), hash_cell(iu + 1, iv, seed), a)
    high = wp.lerp(hash_cell(iu, iv + 1, seed), hash_cell(iu + 1, iv + 1, seed), a)
    return wp.lerp(low, high, b)


@wp.func
def groove(x: float, width: float) -> float:
    """1 within `width` of an integer, 0 elsewhere."""
    return wp.where(wp.abs(x - wp.round(x)) < width, 1.0, 0.0)


@wp.func
def bonded(u: float, v: float, joint: float) -> float:
    """Rows of blocks, every other row shifted by half a block; 1 in the joints, a little shade between blocks."""
    row = wp.floor(v)
    shifted = u + 0.5 * (row - 2.0 * wp.floor(row * 0.5))
    joints = wp.max(groove(shifted, joint), groove(v, joint * 1.6))
    return wp.max(joints, 0.45 * hash_cell(int(wp.floor(shifted)), int(row), 5))


@wp.func
def pattern_value(pattern: int, u: float, v: float) -> float:
    """How much of the second colour shows at (u, v)."""
    if pattern == 1:  # planks: grooves between boards, each board its own tone
        board = hash_cell(int(wp.floor(u)), 0, 1)
        return wp.max(groove(u, 0.09), 0.45 * board + 0.3 * value_noise(u * 3.0, v, 2) - 0.1)
    if pattern == 2:  # grain
        return wp.clamp(1.6 * value_noise(u, v, 3) - 0.4, 0.0, 1.0)
    if pattern == 3:  # bricks
        return bonded(u, v, 0.08)
    if pattern == 4:  # stone
        return wp.clamp(
            1.5 * (0.6 * value_noise(u, v, 4) + 0.4 * value_noise(u * 2.7, v * 2.7, 5)) - 0.3,
            0.0,
            1.0,
        )
    if pattern == 5:  # leaves
        return wp.where(
            value_noise(u, v, 6) + 0.35 * value_noise(u * 2.3, v * 2.3, 7) > 0.68,
            1.0,
            0.15 * hash_cell(int(wp.floor(u * 2.0)), int(wp.floor(v * 2.0)), 8),
        )
    if pattern == 6:  # bands
        return wp.where(v - wp.floor(v) < 0.5, 1.0, 0.0)
    if pattern == 7:  # ribs
        return 0.5 + 0.5 * wp.sin(6.2831853 * u)
    if pattern == 8:  # checker
        sum = wp.floor(u) + wp.floor(v)
        return sum - 2.0 * wp.floor(sum * 0.5)
    if pattern == 9:  # spots
        du = u - wp.floor(u) - 0.3 - 0.4 * hash_cell(int(wp.floor(u)), int(wp.floor(v)), 9)
        dv = v - wp.floor(v) - 0.3 - 0.4 * hash_cell(int(wp.floor(u)), int(wp.floor(v)), 10)
        return wp.where(du * du + dv * dv < 0.075, 1.0, 0.0)
    if pattern == 10:  # shingles
        return wp.max(bonded(u, v, 0.06), 0.6 * (v - wp.floor(v)))
    if pattern == 11:  # metal
        return value_noise(u, v, 11)
    if pattern == 12:  # rust
        return wp.clamp(
            4.0 * (0.7 * value_noise(u, v, 12) + 0.3 * value_noise(u * 3.0, v * 3.0, 13)) - 1.9,
            0.0,
            1.0,
        )
    if pattern == 13:  # weave
        return 0.5 + 0.5 * wp.sin(6.2831853 * u) * wp.sin(6.2831853 * v)
    if pattern == 14:  # camouflage
        return wp.where(value_noise(u, v, 14) > 0.52, 1.0, 0.0)
    if pattern == 15:  # grass
        tufts = value_noise(u * 5.0, v * 5.0, 15)
        return wp.clamp(0.55 * value_noise(u * 0.8, v * 0.8, 16) + 0.6 * tufts - 0.1, 0.0, 1.0)
    if pattern == 16:  # pickets
        return wp.max(groove(u, 0.12), groove(v, 0.05))
    if pattern == 17:  # ripples: crests about a repeat apart that wander and break off
        bend = 1.6 * value_noise(0.6 * u, 0.4 * v, 17) + 0.4 * value_noise(1.7 * u, 0.9 * v, 18)
        crest = 0.5 + 0.5 * wp.sin(6.2831853 * (0.15 * u + v + bend))
        calm = value_noise(1.3 * u, 1.3 * v, 19)
        return wp.clamp(1.9 * crest * crest * calm - 0.1, 0.0, 1.0)
    return 0.0
