"""Whether a point lies inside a landmark: landmarks do not stop a drone, but the time inside them is counted."""

import warp as wp

from wordwing.sim.kernels.raycast import BOX, CAPSULE, CYLINDER, Geoms, Worlds, into_landmark

wp.set_module_options({"enable_backward": False})


@wp.func
def inside_geom(geoms: Geoms, g: int, p: wp.vec3) -> bool:
    """Whether a point in the landmark's frame lies inside geom `g`."""
    q = (p - geoms.position[g]) * geoms.rotation[g]
    size = geoms.size[g]
    kind = geoms.kind[g]
    if kind == BOX:
        return wp.abs(q[0]) <= size[0] and wp.abs(q[1]) <= size[1] and wp.abs(q[2]) <= size[2]
    if kind == CYLINDER:
        return q[0] * q[0] + q[1] * q[1] <= size[0] * size[0] and wp.abs(q[2]) <= size[1]
    if kind == CAPSULE:
        z = q[2] - wp.clamp(q[2], -size[1], size[1])
        return q[0] * q[0] + q[1] * q[1] + z * z <= size[0] * size[0]
    scaled = wp.cw_div(q, size)
    return wp.dot(scaled, scaled) <= 1.0


@wp.func
def inside_landmark(worlds: Worlds, geoms: Geoms, world: int, p: wp.vec3) -> bool:
    """Whether a point in the world lies inside any landmark."""
    for slot in range(worlds.count[world]):
        sphere = worlds.ball[world, slot]
        away = p - wp.vec3(sphere[0], sphere[1], sphere[2])
        if wp.dot(away, away) <= sphere[3] * sphere[3]:
            local = into_landmark(worlds.place[world, slot], worlds.turn[world, slot], p)
            for g in range(worlds.first[world, slot], worlds.last[world, slot]):
                if inside_geom(geoms, g, local):
                    return True
    return False
