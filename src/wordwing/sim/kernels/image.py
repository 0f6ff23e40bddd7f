"""The pixels: one Warp thread each for first-person images, overhead maps, and geometry without paint."""

import warp as wp

from wordwing.sim.kernels.raycast import GROUND, LANDMARK, Geoms, Worlds, cast
from wordwing.sim.kernels.rotation import rotate
from wordwing.sim.kernels.shading import Light, fence_side, shade

wp.set_module_options({"enable_backward": False})


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
    """One pixel of one world's camera image."""
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
            reach = wp.max(wp.abs(x), wp.abs(y))
            if reach > light.half and reach < light.half + 0.06:
                rgb += fences[fence_side(x, y)]
            else:
                o = wp.vec3(x, y, 10.0)
                hit = cast(worlds, geoms, world, o, d, light.half, light.fence_height)
                colour = shade(worlds, geoms, light, fences, world, o, d, hit)
                if reach > light.half and hit.what == GROUND:
                    colour = 0.75 * colour
                rgb += colour
    rgb = rgb / float(samples * samples)
    for channel in range(3):
        image[world, row, column, channel] = to_byte(rgb[channel])


@wp.kernel
def probe_first_person(
    worlds: Worlds,
    geoms: Geoms,
    light: Light,
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
    hit = cast(worlds, geoms, world, o, d, light.half, light.fence_height)
    distance[world, row, column] = hit.distance
    segmentation[world, row, column] = wp.where(hit.what == LANDMARK, hit.slot, -hit.what)
