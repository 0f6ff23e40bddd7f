"""One drone's flight, a substep at a time: parameters, controller cascade, rigid body (see `wordwing.sim.dynamics`)."""

from dataclasses import dataclass

import warp as wp

from wordwing.constants import FLIGHT_HEIGHT
from wordwing.sim.kernels.raycast import Geoms, Worlds, inside_landmark
from wordwing.sim.kernels.rotation import rotate, turned, unrotate

wp.set_module_options({"enable_backward": False})

GRAVITY = wp.constant(9.81)

SLACK = wp.constant(0.002)
"""How much further out a drone beyond the bound may drift while it turns back, metres."""


@dataclass(frozen=True)
class DynamicsConfig:
    """The quadrotor and its velocity controller.

    Sources: (A) fitted to the step responses of ArduCopter 4.8 with indoor parameters; (P) a default of PX4; (L) the
    lab's Intel Aero class airframe.
    """

    max_acceleration: float = 1.0
    """Limit of the target speed's acceleration, m/s² (A)."""
    max_jerk: float = 3.0
    """Limit of its jerk, m/s³ (A)."""
    speed_shaping: float = 2.0
    """How fast the target closes the gap to a setpoint that speeds up, 1/s (A)."""
    brake_shaping: float = 4.0
    """How fast it closes the gap to a setpoint that slows down, 1/s (A)."""
    velocity_gain: float = 3.0
    """Velocity loop, 1/s (A)."""
    height_gain: float = 1.5
    """Altitude hold, 1/s (P: MPC_Z_P is 1)."""
    climb_gain: float = 4.0
    """Climb-rate loop, 1/s (P: MPC_Z_VEL_P_ACC)."""
    max_climb: float = 0.5
    """Limit of the climb rate, m/s (A: WP_SPD_UP as flown)."""
    max_climb_acceleration: float = 3.0
    """Limit of the climb-rate loop, m/s² (P: MPC_ACC_DOWN_MAX)."""
    max_tilt: float = 0.35
    """Tilt limit, rad (L)."""
    attitude_gain: float = 6.5
    """Attitude loop, 1/s (P: MC_ROLL_P)."""
    rate_lag: float = 0.05
    """Time constant of the body rates, s (L)."""
    thrust_lag: float = 0.04
    """Time constant of the motors, s (L)."""
    yaw_acceleration: float = 3.0
    """Slew limit of the yaw rate's target, rad/s² (A)."""
    drag: float = 0.25
    """Deceleration for each m/s of airspeed, 1/s (L)."""
    height: float = FLIGHT_HEIGHT
    """Altitude that is held, metres."""


DroneParameters = wp.struct(DynamicsConfig)
"""`DynamicsConfig` on the device."""


@wp.struct
class Drone:
    """The state of one drone; in memory, numbers of 32 bits in this order."""

    position: wp.vec3  # world, m
    velocity: wp.vec3  # world, m/s
    attitude: wp.vec4  # (w, x, y, z), body to world
    rates: wp.vec3  # body, rad/s
    thrust: float  # m/s², along body z
    target: wp.vec2  # speed along the heading, m/s, and its acceleration
    yaw_target: float  # rad/s


@wp.func
def shape_speed(parameters: DroneParameters, target: wp.vec2, forward: float, dt: float) -> wp.vec2:
    """Move the target speed and its acceleration towards a setpoint within the acceleration and jerk limits."""
    shaping = wp.where(forward < target[0], parameters.brake_shaping, parameters.speed_shaping)
    wanted = shaping * (forward - target[0])
    wanted = wp.clamp(wanted, -parameters.max_acceleration, parameters.max_acceleration)
    most = parameters.max_jerk * dt
    acceleration = target[1] + wp.clamp(wanted - target[1], -most, most)
    return wp.vec2(target[0] + acceleration * dt, acceleration)


@wp.func
def fly(parameters: DroneParameters, drone: Drone, forward: float, yaw_rate: float, dt: float) -> Drone:
    """One substep of controller and rigid body under a body-frame setpoint."""
    q = drone.attitude
    ahead = rotate(q, wp.vec3(1.0, 0.0, 0.0))
    level = wp.max(wp.sqrt(ahead[0] * ahead[0] + ahead[1] * ahead[1]), 1.0e-6)
    v = drone.velocity
    hx = ahead[0] / level
    hy = ahead[1] / level
    target = shape_speed(parameters, drone.target, forward, dt)
    # Velocity loop, with the drag that will be met fed forward.
    ax = target[1] * hx + parameters.velocity_gain * (target[0] * hx - v[0]) + parameters.drag * v[0]
    ay = target[1] * hy + parameters.velocity_gain * (target[0] * hy - v[1]) + parameters.drag * v[1]
    climb = parameters.height_gain * (parameters.height - drone.position[2])
    climb = wp.clamp(climb, -parameters.max_climb, parameters.max_climb)
    lift = wp.clamp(
        parameters.climb_gain * (climb - v[2]), -parameters.max_climb_acceleration, parameters.max_climb_acceleration
    )
    az = GRAVITY + lift + parameters.drag * v[2]
    sideways = wp.sqrt(ax * ax + ay * ay)
    cut = wp.min(1.0, wp.tan(parameters.max_tilt) * az / wp.max(sideways, 1.0e-6))
    force = wp.vec3(ax * cut, ay * cut, az)
    # Attitude loop: the body rates that bring body z onto the force.
    wanted = unrotate(q, wp.normalize(force))
    roll_rate = -parameters.attitude_gain * wanted[1]
    pitch_rate = parameters.attitude_gain * wanted[0]
    most = parameters.yaw_acceleration * dt
    drone.yaw_target += wp.clamp(yaw_rate - drone.yaw_target, -most, most)
    blend = dt / (parameters.rate_lag + dt)
    drone.rates += blend * (wp.vec3(roll_rate, pitch_rate, drone.yaw_target) - drone.rates)
    up = rotate(q, wp.vec3(0.0, 0.0, 1.0))
    blend = dt / (parameters.thrust_lag + dt)
    drone.thrust += blend * (wp.dot(force, up) - drone.thrust)
    drone.velocity = v + dt * (drone.thrust * up - parameters.drag * v - wp.vec3(0.0, 0.0, GRAVITY))
    drone.position += dt * drone.velocity
    drone.attitude = turned(q, drone.rates, dt)
    drone.target = target
    return drone


@wp.kernel
def advance(
    drones: wp.array(dtype=Drone),
    parameters: wp.array(dtype=DroneParameters),
    worlds: Worlds,
    geoms: Geoms,
    forward: wp.array(dtype=float),
    yaw_rate: wp.array(dtype=float),
    substeps: int,
    dt: float,
    hits: wp.array(dtype=int),
):
    """Fly every drone for some substeps, counting those that it spends inside a landmark."""
    i = wp.tid()
    drone = drones[i]
    for _step in range(substeps):
        drone = fly(parameters[i], drone, forward[i], yaw_rate[i], dt)
        if inside_landmark(worlds, geoms, i, drone.position):
            hits[i] += 1
    drones[i] = drone


@wp.kernel
def come_to_rest(
    drones: wp.array(dtype=Drone),
    parameters: wp.array(dtype=DroneParameters),
    substeps: int,
    dt: float,
    rest: wp.array(dtype=wp.vec2),
):
    """Where every drone would be if it were told to stop now, some substeps later."""
    i = wp.tid()
    drone = drones[i]
    for _step in range(substeps):
        drone = fly(parameters[i], drone, 0.0, 0.0, dt)
    rest[i] = wp.vec2(drone.position[0], drone.position[1])


@wp.func
def beyond(position: wp.vec3, bound: wp.vec2) -> bool:
    """Whether a position is outside |x| <= bound[0], |y| <= bound[1]."""
    return wp.abs(position[0]) > bound[0] or wp.abs(position[1]) > bound[1]


@wp.func
def stays_inside(
    parameters: DroneParameters,
    start: Drone,
    forward: float,
    yaw_rate: float,
    later_yaw_rate: float,
    held: int,
    braking: int,
    dt: float,
    bound: wp.vec2,
) -> bool:
    """Whether a drone stays inside that holds a setpoint for `held` substeps and then brakes while turning."""
    drone = start
    inside = bool(True)
    for step in range(held + braking):
        speed = wp.where(step < held, forward, 0.0)
        turn = wp.where(step < held, yaw_rate, later_yaw_rate)
        drone = fly(parameters, drone, speed, turn, dt)
        inside = inside and not beyond(drone.position, bound)
    return inside


@wp.kernel
def restrain(
    drones: wp.array(dtype=Drone),
    parameters: wp.array(dtype=DroneParameters),
    forward: wp.array(dtype=float),
    yaw_rate: wp.array(dtype=float),
    bounds: wp.array(dtype=wp.vec2),
    horizon: int,
    period: int,
    braking: int,
    choices: int,
    dt: float,
    safe: wp.array(dtype=float),
):
    """The largest forward velocity of `choices` even fractions that keeps a drone inside its bounds along x and y."""
    i = wp.tid()
    drone = drones[i]
    # A drone that is already further out may come back, but not go further still.
    x = wp.max(bounds[i][0], wp.abs(drone.position[0]) + SLACK)
    y = wp.max(bounds[i][1], wp.abs(drone.position[1]) + SLACK)
    bound = wp.vec2(x, y)
    turn = yaw_rate[i]
    found = float(0.0)
    done = bool(False)
    for k in range(choices):
        if not done:
            speed = forward[i] * (1.0 - float(k) / float(choices))
            # A turn may carry the drone along a fence that it would meet if it had to brake after this period,
            # whichever way it is told to turn then.
            if (
                stays_inside(parameters[i], drone, speed, turn, turn, horizon, 0, dt, bound)
                and stays_inside(parameters[i], drone, speed, turn, -1.0, period, braking, dt, bound)
                and stays_inside(parameters[i], drone, speed, turn, 1.0, period, braking, dt, bound)
            ):
                found = speed
                done = True
    safe[i] = found
