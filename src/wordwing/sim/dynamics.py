"""Batched quadrotor flight: a 6-DOF body under a velocity and yaw-rate controller, one Warp thread a drone.

The controller is the cascade of PX4 and ArduPilot: a velocity target that follows the heading, shaped by
acceleration and jerk limits; a velocity loop that asks for tilt; an attitude loop that asks for body rates; rates and
thrust that answer with a first-order lag. Parameters are chosen so that steps answer as a real ArduCopter's do, and
as the rigid body of `wordwing.sim.lab` does; both are tested. One thread computes one drone with scalar code, so a
drone's flight does not depend on how many others there are, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
import warp as wp
from torch import Tensor

from wordwing.frames import Pose
from wordwing.interface import CONTROL_PERIOD, FLIGHT_HEIGHT, Setpoint
from wordwing.sim.launch import launch
from wordwing.sim.raycast import Geoms, Worlds
from wordwing.sim.contact import inside_landmark

wp.set_module_options({"enable_backward": False})

SUBSTEP = 0.01
"""Integration step, seconds."""

GRAVITY = wp.constant(9.81)


@dataclass(frozen=True)
class DynamicsConfig:
    """The quadrotor and its velocity controller.

    Sources: (A) fitted to the step responses of ArduCopter 4.8 with indoor parameters; (P) a default of PX4; (L) the
    lab's Intel Aero class airframe.
    """

    max_acceleration: float = 1.0
    """Limit of the velocity target's acceleration, m/s² (A)."""
    max_jerk: float = 3.0
    """Limit of its jerk, m/s³ (A)."""
    velocity_shaping: float = 2.0
    """How fast the target closes the gap to a setpoint that speeds up, 1/s (A)."""
    brake_shaping: float = 4.0
    """How fast it closes the gap to a setpoint that slows down, 1/s (A)."""
    velocity_gain: float = 3.0
    """Velocity loop, 1/s (A)."""
    height_gain: float = 1.5
    """Altitude hold, 1/s (P: MPC_Z_P is 1)."""
    climb_gain: float = 4.0
    """Climb-rate loop, 1/s (P: MPC_Z_VEL_P_ACC)."""
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


@wp.struct
class Airframe:
    """`DynamicsConfig` on the device; the fields have its names."""

    max_acceleration: float
    max_jerk: float
    velocity_shaping: float
    brake_shaping: float
    velocity_gain: float
    height_gain: float
    climb_gain: float
    max_tilt: float
    attitude_gain: float
    rate_lag: float
    thrust_lag: float
    yaw_acceleration: float
    drag: float
    height: float


@wp.struct
class Drone:
    """The state of one drone."""

    position: wp.vec3  # world, m
    velocity: wp.vec3  # world, m/s
    attitude: wp.vec4  # (w, x, y, z), body to world
    rates: wp.vec3  # body, rad/s
    thrust: float  # m/s², along body z
    target: wp.vec4  # velocity target x, y in m/s and its acceleration, world
    yaw_target: float  # rad/s


@wp.struct
class Fleet:
    """The states of all drones, [N] each."""

    position: wp.array(dtype=wp.vec3)
    velocity: wp.array(dtype=wp.vec3)
    attitude: wp.array(dtype=wp.vec4)
    rates: wp.array(dtype=wp.vec3)
    thrust: wp.array(dtype=float)
    target: wp.array(dtype=wp.vec4)
    yaw_target: wp.array(dtype=float)


@wp.func
def load(fleet: Fleet, i: int) -> Drone:
    """One drone out of the fleet."""
    drone = Drone()
    drone.position = fleet.position[i]
    drone.velocity = fleet.velocity[i]
    drone.attitude = fleet.attitude[i]
    drone.rates = fleet.rates[i]
    drone.thrust = fleet.thrust[i]
    drone.target = fleet.target[i]
    drone.yaw_target = fleet.yaw_target[i]
    return drone


@wp.func
def store(fleet: Fleet, i: int, drone: Drone):
    """One drone back into the fleet."""
    fleet.position[i] = drone.position
    fleet.velocity[i] = drone.velocity
    fleet.attitude[i] = drone.attitude
    fleet.rates[i] = drone.rates
    fleet.thrust[i] = drone.thrust
    fleet.target[i] = drone.target
    fleet.yaw_target[i] = drone.yaw_target


@wp.func
def shape_velocity(frame: Airframe, target: wp.vec4, vx: float, vy: float, dt: float) -> wp.vec4:
    """Move the velocity target towards (vx, vy) within the acceleration and jerk limits."""
    slower = vx * vx + vy * vy < target[0] * target[0] + target[1] * target[1] - 1.0e-4
    shaping = wp.where(slower, frame.brake_shaping, frame.velocity_shaping)
    ax = shaping * (vx - target[0])
    ay = shaping * (vy - target[1])
    size = wp.sqrt(ax * ax + ay * ay)
    cut = wp.min(1.0, frame.max_acceleration / wp.max(size, 1.0e-6))
    jx = ax * cut - target[2]
    jy = ay * cut - target[3]
    size = wp.sqrt(jx * jx + jy * jy)
    cut = wp.min(1.0, frame.max_jerk * dt / wp.max(size, 1.0e-9))
    ax = target[2] + jx * cut
    ay = target[3] + jy * cut
    return wp.vec4(target[0] + ax * dt, target[1] + ay * dt, ax, ay)


@wp.func
def quat_rotate(q: wp.vec4, v: wp.vec3) -> wp.vec3:
    """Body vector to world."""
    axis = wp.vec3(q[1], q[2], q[3])
    t = 2.0 * wp.cross(axis, v)
    return v + q[0] * t + wp.cross(axis, t)


@wp.func
def quat_unrotate(q: wp.vec4, v: wp.vec3) -> wp.vec3:
    """World vector to body."""
    return quat_rotate(wp.vec4(q[0], -q[1], -q[2], -q[3]), v)


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


@wp.func
def fly(frame: Airframe, drone: Drone, forward: float, yaw_rate: float, dt: float) -> Drone:
    """One substep of controller and rigid body under a body-frame setpoint."""
    q = drone.attitude
    ahead = quat_rotate(q, wp.vec3(1.0, 0.0, 0.0))
    level = wp.max(wp.sqrt(ahead[0] * ahead[0] + ahead[1] * ahead[1]), 1.0e-6)
    v = drone.velocity
    target = shape_velocity(
        frame, drone.target, forward * ahead[0] / level, forward * ahead[1] / level, dt
    )
    # Velocity loop, with the drag that will be met fed forward.
    ax = target[2] + frame.velocity_gain * (target[0] - v[0]) + frame.drag * v[0]
    ay = target[3] + frame.velocity_gain * (target[1] - v[1]) + frame.drag * v[1]
    climb = wp.clamp(frame.height_gain * (frame.height - drone.position[2]), -0.5, 0.5)
    az = GRAVITY + wp.clamp(frame.climb_gain * (climb - v[2]), -3.0, 3.0) + frame.drag * v[2]
    sideways = wp.sqrt(ax * ax + ay * ay)
    cut = wp.min(1.0, wp.tan(frame.max_tilt) * az / wp.max(sideways, 1.0e-6))
    force = wp.vec3(ax * cut, ay * cut, az)
    # Attitude loop: the body rates that bring body z onto the force.
    wanted = quat_unrotate(q, wp.normalize(force))
    roll_rate = -frame.attitude_gain * wanted[1]
    pitch_rate = frame.attitude_gain * wanted[0]
    most = frame.yaw_acceleration * dt
    drone.yaw_target += wp.clamp(yaw_rate - drone.yaw_target, -most, most)
    blend = dt / (frame.rate_lag + dt)
    drone.rates += blend * (wp.vec3(roll_rate, pitch_rate, drone.yaw_target) - drone.rates)
    up = quat_rotate(q, wp.vec3(0.0, 0.0, 1.0))
    blend = dt / (frame.thrust_lag + dt)
    drone.thrust += blend * (wp.dot(force, up) - drone.thrust)
    drone.velocity = v + dt * (drone.thrust * up - frame.drag * v - wp.vec3(0.0, 0.0, GRAVITY))
    drone.position += dt * drone.velocity
    drone.attitude = turned(q, drone.rates, dt)
    drone.target = target
    return drone


@wp.kernel
def advance(
    fleet: Fleet,
    frame: Airframe,
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
    drone = load(fleet, i)
    for _step in range(substeps):
        drone = fly(frame, drone, forward[i], yaw_rate[i], dt)
        if inside_landmark(worlds, geoms, i, drone.position):
            hits[i] += 1
    store(fleet, i, drone)


@wp.func
def outside(position: wp.vec3, half: float) -> bool:
    """Whether a position is beyond the fences."""
    return wp.abs(position[0]) > half or wp.abs(position[1]) > half


@wp.kernel
def restrain(
    fleet: Fleet,
    frame: Airframe,
    forward: wp.array(dtype=float),
    yaw_rate: wp.array(dtype=float),
    half: float,
    horizon: int,
    period: int,
    braking: int,
    choices: int,
    dt: float,
    safe: wp.array(dtype=float),
):
    """The largest forward velocity of `choices` even fractions that keeps a drone inside |x|, |y| <= half."""
    i = wp.tid()
    found = float(0.0)
    done = bool(False)
    for k in range(choices):
        if not done:
            speed = forward[i] * (1.0 - float(k) / float(choices))
            drone = load(fleet, i)
            crossed = bool(False)
            for step in range(horizon):
                drone = fly(frame, drone, speed, yaw_rate[i], dt)
                crossed = crossed or outside(drone.position, half)
            # A turn may carry the drone along a fence that it would meet if it had to brake after this period.
            drone = load(fleet, i)
            for step in range(period + braking):
                drone = fly(frame, drone, wp.where(step < period, speed, 0.0), yaw_rate[i], dt)
                crossed = crossed or outside(drone.position, half)
            if not crossed:
                found = speed
                done = True
    safe[i] = found


class FleetState:
    """The states of N drones as torch tensors that Warp kernels read and write in place."""

    def __init__(self, count: int, device: torch.device, config: DynamicsConfig) -> None:
        self.device = device
        self.config = config
        self.position = torch.zeros(count, 3, device=device)
        self.velocity = torch.zeros(count, 3, device=device)
        self.attitude = torch.zeros(count, 4, device=device)
        self.rates = torch.zeros(count, 3, device=device)
        self.thrust = torch.zeros(count, device=device)
        self.target = torch.zeros(count, 4, device=device)
        self.yaw_target = torch.zeros(count, device=device)
        self.hits = torch.zeros(count, dtype=torch.int32, device=device)
        self._fleet = Fleet()
        self._fleet.position = wp.from_torch(self.position, dtype=wp.vec3)
        self._fleet.velocity = wp.from_torch(self.velocity, dtype=wp.vec3)
        self._fleet.attitude = wp.from_torch(self.attitude, dtype=wp.vec4)
        self._fleet.rates = wp.from_torch(self.rates, dtype=wp.vec3)
        self._fleet.thrust = wp.from_torch(self.thrust)
        self._fleet.target = wp.from_torch(self.target, dtype=wp.vec4)
        self._fleet.yaw_target = wp.from_torch(self.yaw_target)
        self._frame = Airframe()
        for entry in fields(config):
            setattr(self._frame, entry.name, getattr(config, entry.name))

    def reset(self, poses: Pose, which: Tensor) -> None:
        """Let the drones with indices `which` [M] hover at rest at level poses [M], world frame."""
        self.position[which] = poses.position.to(self.device, torch.float32)
        self.attitude[which] = poses.quaternion.to(self.device, torch.float32)
        for moving in (self.velocity, self.rates, self.target, self.yaw_target, self.hits):
            moving[which] = 0
        self.thrust[which] = 9.81

    def advance(self, setpoint: Setpoint, seconds: float, worlds: Worlds, geoms: Geoms) -> None:
        """Fly all drones for a time under setpoints [N]."""
        inputs = (
            self._fleet,
            self._frame,
            worlds,
            geoms,
            wp.from_torch(setpoint.forward.float().contiguous()),
            wp.from_torch(setpoint.yaw_rate.float().contiguous()),
            round(seconds / SUBSTEP),
            SUBSTEP,
            wp.from_torch(self.hits),
        )
        launch(advance, len(self.position), inputs, self.device)

    def restrain(self, setpoint: Setpoint, half: float) -> Setpoint:
        """The safety rule of the paper (Quadcopter Safety) for setpoints [N].

        Each setpoint is forward-simulated for one second; if the drone would leave |x|, |y| <= half, its forward
        velocity is reduced, to standstill if need be. The yaw rate is untouched. Besides, the drone must be able to
        brake inside after this control period, so that the rule can still be kept when it is next asked.
        """
        safe = torch.empty_like(self.thrust)
        inputs = (
            self._fleet,
            self._frame,
            wp.from_torch(setpoint.forward.float().contiguous()),
            wp.from_torch(setpoint.yaw_rate.float().contiguous()),
            half,
            round(1.0 / SUBSTEP),
            round(CONTROL_PERIOD / SUBSTEP),
            round(1.5 / SUBSTEP),
            8,
            SUBSTEP,
            wp.from_torch(safe),
        )
        launch(restrain, len(self.position), inputs, self.device)
        return Setpoint(safe, setpoint.yaw_rate)
