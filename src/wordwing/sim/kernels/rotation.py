"""Rotations by (w, x, y, z) quaternions, as in `wordwing.frames`."""

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.func
def rotate(q: wp.vec4, v: wp.vec3) -> wp.vec3:
    """A body vector in the world."""
    axis = wp.vec3(q[1], q[2], q[3])
    t = 2.0 * wp.cross(axis, v)
    return v + q[0] * t + wp.cross(axis, t)


@wp.func
def unrotate(q: wp.vec4, v: wp.vec3) -> wp.vec3:
    """A world vector in the body."""
    return rotate(wp.vec4(q[0], -q[1], -q[2], -q[3]), v)


@wp.func
def turned(q: wp.vec4, rates: wp.vec3, dt: float) -> wp.vec4:
    """An attitude after `dt` of body rates."""
    x = 0.5 * dt * rates[0]
    y = 0.5 * dt * rates[1]
    z = 0.5 * dt * rates[2]
    return wp.normalize(
        wp.vec4(
            q[0] - q[1] * x - q[2] * y - q[3] * z,
            q[1] + q[0] * x + q[2] * z - q[3] * y,
            q[2] + q[0] * y + q[3] * x - q[1] * z,
            q[3] + q[0] * z + q[1] * y - q[2] * x,
        )
    )
