"""Two-level ray casting of landmark instances and their primitive geoms, in Warp.

A world is a short list of landmark instances with bounding spheres; the geoms of all landmarks are stored once.
A ray tests a world's spheres first and then only the geoms of the landmarks it may hit, so its cost does not
depend on the size of the catalogue. Inside a geom a ray sees the far wall, as MuJoCo's own ray casting does.

Landmarks do not stop a drone, but the time that it spends inside them is counted: `inside_landmark` says where that is.
"""

import warp as wp

wp.set_module_options({"enable_backward": False})

CAPSULE = wp.constant(3)
CYLINDER = wp.constant(5)
BOX = wp.constant(6)
"""Geom kinds, numbered as in MuJoCo's mjtGeom; all others are ellipsoids."""

FAR = wp.constant(1.0e6)
"""Distance of a miss, metres."""

LANDMARK = wp.constant(0)
GROUND = wp.constant(1)
FENCE = wp.constant(2)
SKY = wp.constant(3)
"""What a ray has hit."""


@wp.struct
class Geoms:
    """All landmarks' geoms, one after the other, in their landmarks' frames."""

    kind: wp.array(dtype=int)
    position: wp.array(dtype=wp.vec3)
    rotation: wp.array(dtype=wp.mat33)
    size: wp.array(dtype=wp.vec3)
    bound: wp.array(dtype=float)
    rgb: wp.array(dtype=wp.vec3)
    pattern: wp.array(dtype=int)
    repeat: wp.array(dtype=wp.vec2)
    second: wp.array(dtype=wp.vec3)
    shine: wp.array(dtype=wp.vec2)  # specular, emission


@wp.struct
class Worlds:
    """Which landmarks stand where: [N, K] slots, of which the first `count` are in use; and the lakes."""

    count: wp.array(dtype=int)
    first: wp.array2d(dtype=int)  # first geom of the landmark in the slot
    last: wp.array2d(dtype=int)  # one past its last geom
    place: wp.array2d(dtype=wp.vec3)  # landmark origin in the world
    turn: wp.array2d(dtype=wp.vec2)  # cosine and sine of the landmark's yaw
    ball: wp.array2d(dtype=wp.vec4)  # bounding sphere in the world: centre, radius
    wet: wp.array(dtype=int)  # whether there is any lake
    lakes: wp.array3d(dtype=int)  # [N, 100, 4] a bit for each cell of the lake mesh


@wp.struct
class Hit:
    """The nearest thing along a ray."""

    what: int
    distance: float
    slot: int
    geom: int


@wp.func
def nearest(enter: float, leave: float) -> float:
    """The first non-negative end of the stretch of a ray inside a convex solid, or FAR."""
    if enter > leave or leave < 0.0:
        return FAR
    return wp.where(enter >= 0.0, enter, leave)


@wp.func
def ray_ellipsoid(o: wp.vec3, d: wp.vec3, size: wp.vec3) -> float:
    """Distance along unit `d` from `o`, geom frame, to an ellipsoid with half axes `size`."""
    oo = wp.cw_div(o, size)
    dd = wp.cw_div(d, size)
    a = wp.dot(dd, dd)
    b = wp.dot(oo, dd)
    c = wp.dot(oo, oo) - 1.0
    disc = b * b - a * c
    if disc < 0.0:
        return FAR
    root = wp.sqrt(disc)
    return nearest((-b - root) / a, (-b + root) / a)


@wp.func
def slab(o: float, d: float, half: float) -> wp.vec2:
    """Where a ray enters and leaves |x| <= half."""
    if wp.abs(d) < 1.0e-9:
        return wp.where(wp.abs(o) <= half, wp.vec2(-FAR, FAR), wp.vec2(FAR, -FAR))
    near = (-half - o) / d
    far = (half - o) / d
    return wp.vec2(wp.min(near, far), wp.max(near, far))


@wp.func
def ray_box(o: wp.vec3, d: wp.vec3, size: wp.vec3) -> float:
    """Distance to a box with half sizes `size`."""
    x = slab(o[0], d[0], size[0])
    y = slab(o[1], d[1], size[1])
    z = slab(o[2], d[2], size[2])
    return nearest(wp.max(wp.max(x[0], y[0]), z[0]), wp.min(wp.min(x[1], y[1]), z[1]))


@wp.func
def tube(o: wp.vec3, d: wp.vec3, radius: float) -> wp.vec2:
    """Where a ray enters and leaves an endless cylinder about z."""
    a = d[0] * d[0] + d[1] * d[1]
    b = o[0] * d[0] + o[1] * d[1]
    c = o[0] * o[0] + o[1] * o[1] - radius * radius
    if a < 1.0e-12:
        return wp.where(c <= 0.0, wp.vec2(-FAR, FAR), wp.vec2(FAR, -FAR))
    disc = b * b - a * c
    if disc < 0.0:
        return wp.vec2(FAR, -FAR)
    root = wp.sqrt(disc)
    return wp.vec2((-b - root) / a, (-b + root) / a)


@wp.func
def ray_cylinder(o: wp.vec3, d: wp.vec3, radius: float, half: float) -> float:
    """Distance to a cylinder about z."""
    side = tube(o, d, radius)
    ends = slab(o[2], d[2], half)
    return nearest(wp.max(side[0], ends[0]), wp.min(side[1], ends[1]))


@wp.func
def ball(o: wp.vec3, d: wp.vec3, z: float, radius: float) -> wp.vec2:
    """Where a ray enters and leaves a sphere at height z on the z axis."""
    p = wp.vec3(o[0], o[1], o[2] - z)
    b = wp.dot(p, d)
    disc = b * b - wp.dot(p, p) + radius * radius
    if disc < 0.0:
        return wp.vec2(FAR, -FAR)
    root = wp.sqrt(disc)
    return wp.vec2(-b - root, -b + root)


@wp.func
def ray_capsule(o: wp.vec3, d: wp.vec3, radius: float, half: float) -> float:
    """Distance to a capsule about z: the union of a cylinder and two balls, which is convex."""
    side = tube(o, d, radius)
    ends = slab(o[2], d[2], half)
    enter = wp.max(side[0], ends[0])
    leave = wp.min(side[1], ends[1])
    if enter > leave:
        enter = FAR
        leave = -FAR
    top = ball(o, d, half, radius)
    bottom = ball(o, d, -half, radius)
    enter = wp.min(enter, wp.min(top[0], bottom[0]))
    leave = wp.max(leave, wp.max(top[1], bottom[1]))
    return nearest(enter, leave)


@wp.func
def ray_geom(geoms: Geoms, g: int, o: wp.vec3, d: wp.vec3) -> float:
    """Distance along a ray in the landmark's frame to geom `g`, or FAR."""
    to_centre = geoms.position[g] - o
    along = wp.dot(to_centre, d)
    bound = geoms.bound[g]
    if along < -bound or wp.dot(to_centre, to_centre) - along * along > bound * bound:
        return FAR
    rotation = geoms.rotation[g]
    lo = -(to_centre * rotation)  # a row vector times R is R transposed times a column
    ld = d * rotation
    size = geoms.size[g]
    kind = geoms.kind[g]
    if kind == BOX:
        return ray_box(lo, ld, size)
    if kind == CYLINDER:
        return ray_cylinder(lo, ld, size[0], size[1])
    if kind == CAPSULE:
        return ray_capsule(lo, ld, size[0], size[1])
    return ray_ellipsoid(lo, ld, size)


@wp.func
def direction_into_landmark(turn: wp.vec2, d: wp.vec3) -> wp.vec3:
    """A world direction in a landmark's frame."""
    return wp.vec3(turn[0] * d[0] + turn[1] * d[1], turn[0] * d[1] - turn[1] * d[0], d[2])


@wp.func
def into_landmark(place: wp.vec3, turn: wp.vec2, p: wp.vec3) -> wp.vec3:
    """A world point in a landmark's frame."""
    return direction_into_landmark(turn, p - place)


@wp.func
def direction_out_of_landmark(turn: wp.vec2, d: wp.vec3) -> wp.vec3:
    """A landmark-frame direction in the world."""
    return wp.vec3(turn[0] * d[0] - turn[1] * d[1], turn[1] * d[0] + turn[0] * d[1], d[2])


@wp.func
def may_hit(sphere: wp.vec4, o: wp.vec3, d: wp.vec3, within: float) -> bool:
    """Whether a ray comes through a bounding sphere before distance `within`."""
    c = wp.vec3(sphere[0], sphere[1], sphere[2]) - o
    along = wp.dot(c, d)
    r = sphere[3]
    return along > -r and along - r < within and wp.dot(c, c) - along * along < r * r


@wp.func
def occluded(worlds: Worlds, geoms: Geoms, world: int, o: wp.vec3, d: wp.vec3) -> bool:
    """Whether any landmark lies along a ray: a shadow test."""
    for slot in range(worlds.count[world]):
        if may_hit(worlds.ball[world, slot], o, d, FAR):
            turn = worlds.turn[world, slot]
            lo = into_landmark(worlds.place[world, slot], turn, o)
            ld = direction_into_landmark(turn, d)
            for g in range(worlds.first[world, slot], worlds.last[world, slot]):
                if ray_geom(geoms, g, lo, ld) < FAR:
                    return True
    return False


@wp.func
def fence_distance(o: wp.vec3, d: wp.vec3, half: float, height: float) -> float:
    """Distance to the inner side of the fences around |x|, |y| <= half, or FAR above them or from outside."""
    if wp.abs(o[0]) > half or wp.abs(o[1]) > half:
        return FAR
    x = slab(o[0], d[0], half)
    y = slab(o[1], d[1], half)
    t = wp.min(x[1], y[1])
    z = o[2] + t * d[2]
    return wp.where(z >= 0.0 and z <= height, t, FAR)


@wp.func
def cast(
    worlds: Worlds,
    geoms: Geoms,
    world: int,
    o: wp.vec3,
    d: wp.vec3,
    half: float,
    fence_height: float,
) -> Hit:
    """The nearest thing along a ray from `o` along unit `d`, world frame."""
    hit = Hit(SKY, FAR, -1, -1)
    if d[2] < -1.0e-6:
        hit = Hit(GROUND, -o[2] / d[2], -1, -1)
    fence = fence_distance(o, d, half, fence_height)
    if fence < hit.distance:
        hit = Hit(FENCE, fence, -1, -1)
    for slot in range(worlds.count[world]):
        if may_hit(worlds.ball[world, slot], o, d, hit.distance):
            turn = worlds.turn[world, slot]
            lo = into_landmark(worlds.place[world, slot], turn, o)
            ld = direction_into_landmark(turn, d)
            for g in range(worlds.first[world, slot], worlds.last[world, slot]):
                t = ray_geom(geoms, g, lo, ld)
                if t < hit.distance:
                    hit = Hit(LANDMARK, t, slot, g)
    return hit


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
