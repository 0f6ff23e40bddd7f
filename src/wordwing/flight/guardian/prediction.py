"""The paper's forward simulation for one drone (paper: Quadcopter Safety): `sim.dynamics` in plain floats.

The guardian's process has neither torch nor Warp. A test compares this with the kernels of `sim`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wordwing.constants import CONTROL_PERIOD, FLIGHT_HEIGHT
from wordwing.flight.mavlink.geometry import PlainPose, Quaternion, Vector, rotate, single

GRAVITY = 9.81
SUBSTEP = 0.01
"""Integration step, seconds."""

HORIZON, BRAKING, PERIOD = round(1.0 / SUBSTEP), round(1.2 / SUBSTEP), round(CONTROL_PERIOD / SUBSTEP)
"""Substeps that a setpoint is simulated for; that braking after this control period is; of this period."""

CHOICES = 8
"""Even fractions of the forward velocity that are tried before standstill."""

KEPT = 0.01
"""Metres kept for turns that the prediction does not try."""

SLACK = 0.002
"""How much further out a drone beyond the bound may drift while it turns back, metres."""

# The values of `sim.dynamics.DynamicsConfig`, where their sources are named.
MAX_ACCELERATION, MAX_JERK, SPEED_SHAPING, BRAKE_SHAPING = 1.0, 3.0, 2.0, 4.0
VELOCITY_GAIN, HEIGHT_GAIN, CLIMB_GAIN, MAX_CLIMB, MAX_CLIMB_ACCELERATION = 3.0, 1.5, 4.0, 0.5, 3.0
MAX_TILT, ATTITUDE_GAIN, RATE_LAG, THRUST_LAG, YAW_ACCELERATION, DRAG = 0.35, 6.5, 0.05, 0.04, 3.0, 0.25

RATE_BLEND, THRUST_BLEND = SUBSTEP / (RATE_LAG + SUBSTEP), SUBSTEP / (THRUST_LAG + SUBSTEP)
TILT_TANGENT = math.tan(MAX_TILT)


class DroneState(NamedTuple):
    """One drone under its velocity controller, world frame."""

    position: Vector
    velocity: Vector
    attitude: Quaternion
    rates: Vector
    """Body rates, rad/s."""
    speed: float
    """Target speed along the heading, m/s."""
    acceleration: float = 0.0
    """Of that target, m/s²."""
    yaw_target: float = 0.0
    """rad/s."""
    thrust: float = GRAVITY
    """m/s², along body z."""

    @classmethod
    def of(cls, pose: PlainPose, velocity: Vector, rates: Vector) -> DroneState:
        """A drone whose controller's targets are what it does now."""
        speed = velocity[0] * math.cos(pose.yaw) + velocity[1] * math.sin(pose.yaw)
        return cls(pose.position, velocity, pose.quaternion, rates, single(speed), yaw_target=rates[2])

    def step(self, forward: float, yaw_rate: float) -> DroneState:
        """One substep of controller and rigid body under a setpoint, m/s and rad/s."""
        # Every tick of the guardian takes hundreds of these, so nothing is called that a line can say.
        (x, y, z), (vx, vy, vz), q, (p, r, s), speed, acceleration, yaw_target, thrust = self
        a, b, c, d = q
        # Body x and z in the world.
        ahead_x, ahead_y = 1 - 2 * c * c - 2 * d * d, 2 * a * d + 2 * b * c
        up_x, up_y, up_z = 2 * a * c + 2 * b * d, 2 * c * d - 2 * a * b, 1 - 2 * b * b - 2 * c * c
        level = max(math.hypot(ahead_x, ahead_y), 1e-6)
        hx, hy = ahead_x / level, ahead_y / level
        wanted = _within((BRAKE_SHAPING if forward < speed else SPEED_SHAPING) * (forward - speed), MAX_ACCELERATION)
        acceleration += _within(wanted - acceleration, MAX_JERK * SUBSTEP)
        speed += acceleration * SUBSTEP
        # Velocity loop, with the drag that will be met fed forward.
        ax = acceleration * hx + VELOCITY_GAIN * (speed * hx - vx) + DRAG * vx
        ay = acceleration * hy + VELOCITY_GAIN * (speed * hy - vy) + DRAG * vy
        climb = _within(HEIGHT_GAIN * (FLIGHT_HEIGHT - z), MAX_CLIMB)
        az = GRAVITY + _within(CLIMB_GAIN * (climb - vz), MAX_CLIMB_ACCELERATION) + DRAG * vz
        cut = min(1.0, TILT_TANGENT * az / max(math.hypot(ax, ay), 1e-6))
        fx, fy = ax * cut, ay * cut
        # Attitude loop: the body rates that bring body z onto the force.
        norm = math.sqrt(fx * fx + fy * fy + az * az)
        lean_x, lean_y, _ = rotate((a, -b, -c, -d), (fx / norm, fy / norm, az / norm))
        yaw_target += _within(yaw_rate - yaw_target, YAW_ACCELERATION * SUBSTEP)
        p += RATE_BLEND * (-ATTITUDE_GAIN * lean_y - p)
        r += RATE_BLEND * (ATTITUDE_GAIN * lean_x - r)
        s += RATE_BLEND * (yaw_target - s)
        thrust += THRUST_BLEND * (fx * up_x + fy * up_y + az * up_z - thrust)
        vx += SUBSTEP * (thrust * up_x - DRAG * vx)
        vy += SUBSTEP * (thrust * up_y - DRAG * vy)
        vz += SUBSTEP * (thrust * up_z - DRAG * vz - GRAVITY)
        position = x + SUBSTEP * vx, y + SUBSTEP * vy, z + SUBSTEP * vz
        return DroneState(
            position, (vx, vy, vz), _turned(q, p, r, s), (p, r, s), speed, acceleration, yaw_target, thrust
        )


def largest_safe_speed(drone: DroneState, forward: float, yaw_rate: float, bounds: tuple[float, float]) -> float:
    """The largest of eight even fractions of a forward velocity that keeps a drone inside |x|, |y| <= bounds, metres.

    The setpoint is simulated for one second. Besides, the drone must be able to brake inside after this control period,
    whichever way it turns then, so that the rule can still be kept when it is next asked.
    """
    # A drone that is already further out may come back, but not go further still.
    x = max(bounds[0] - KEPT, abs(drone.position[0]) + SLACK)
    y = max(bounds[1] - KEPT, abs(drone.position[1]) + SLACK)
    for choice in range(CHOICES):
        speed = forward * (1 - choice / CHOICES)
        held: list[DroneState] = []
        if _fly(drone, speed, yaw_rate, HORIZON, x, y, held) and all(
            _fly(held[PERIOD - 1], 0.0, turn, BRAKING, x, y) for turn in (-1.0, 1.0)
        ):
            return speed
    return 0.0


def _fly(
    drone: DroneState,
    forward: float,
    yaw_rate: float,
    substeps: int,
    x: float,
    y: float,
    flown: list[DroneState] | None = None,
) -> bool:
    """Whether a drone stays inside |x|, |y| for some substeps; its states are added to `flown`."""
    for _ in range(substeps):
        drone = drone.step(forward, yaw_rate)
        if abs(drone.position[0]) > x or abs(drone.position[1]) > y:
            return False
        if flown is not None:
            flown.append(drone)
    return True


def _within(value: float, most: float) -> float:
    return -most if value < -most else most if value > most else value


def _turned(q: Quaternion, p: float, r: float, s: float) -> Quaternion:
    """An attitude after one substep of body rates."""
    half = 0.5 * SUBSTEP
    x, y, z = half * p, half * r, half * s
    a, b, c, d = q
    w, i = a - b * x - c * y - d * z, b + a * x + c * z - d * y
    j, k = c + a * y + d * x - b * z, d + a * z + b * y - c * x
    norm = math.sqrt(w * w + i * i + j * j + k * k)
    return w / norm, i / norm, j / norm, k / norm
