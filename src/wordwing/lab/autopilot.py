"""An autopilot as PX4 builds it: loops for velocity, attitude and body rate, and a mixer.

The setpoint is a speed along the *current* heading, a yaw rate and a height, as a MAVLink
stream of body-frame setpoints has it. The speed is shaped within limits of acceleration and jerk,
then turned by the heading into the velocity that the velocity loop tracks in the world; so a drone
that turns while it flies slips outwards, like a real one. The lab that is served over MAVLink also
uses the rest of `Guidance`: velocities in any direction, a climb rate, a position to hold.

Gains and limits come from [P] PX4's file for this airframe, `4070_aerofc`, and [D] PX4's defaults,
or are chosen so that the drone answers like [C] ArduCopter 4.8 with indoor parameters, to whose
measured step responses the tests hold it. PX4's integral and derivative terms on the body rate are
left out: without sensor noise and trim errors they have nothing to do.
"""

import math
from dataclasses import dataclass

from wordwing.lab.airframe import (
    GRAVITY,
    MOTOR_LAYOUT,
    AirframeConfig,
    BodyState,
    Vector,
    body_axes,
)

HEADING_LEAD = 0.35
"""How far the wanted heading may run ahead of the drone, radians."""

AT_REST = 0.02
"""Below this shaped speed, m/s, the drone has braked, and holds the position where it is."""


@dataclass(frozen=True)
class AutopilotConfig:
    """Gains and limits, from the outermost loop to the innermost."""

    max_speed: float = 1.0
    """Of the shaped setpoint, m/s [C, WP_SPD]."""
    max_acceleration: float = 0.8
    """Of the shaped setpoint, m/s², chosen after [C]."""
    max_jerk: float = 2.2
    """Of the shaped setpoint, m/s³, chosen after [C]. The parameters there are 1.5 m/s² and 5 m/s³,
    but its answer, measured over MAVLink, is slower than these alone would make it."""
    velocity_gain: float = 2.9
    """m/s² per m/s of horizontal error [P, MPC_XY_VEL_P 0.15 of full thrust, with hover at 0.5]."""
    velocity_integral: float = 2.0
    """m/s² per metre of integrated horizontal error, chosen after the speed of [C] in a turn."""
    max_tilt_deg: float = 20.0
    """Of the wanted thrust, degrees, for a small room: the least that MPC_TILTMAX_AIR may be."""

    hold_gain: float = 1.0
    """m/s per metre of distance from the position to hold [C, PSC_POSXY_P]; [D] has 0.95."""
    max_hold_speed: float = 0.5
    """Speed of the return to that position, m/s: a choice for a small room."""

    height_gain: float = 1.5
    """m/s per metre of height error [P, MPC_Z_P]."""
    max_climb: float = 0.5
    """m/s [C, WP_SPD_UP]."""
    max_descent: float = 0.3
    """m/s [C, LAND_SPD_MS]."""
    climb_gain: float = 4.0
    """m/s² per m/s of vertical error [D, MPC_Z_VEL_P_ACC]."""
    climb_integral: float = 2.0
    """m/s² per metre of integrated vertical error [D, MPC_Z_VEL_I_ACC]."""
    max_vertical_acceleration: float = 3.0
    """m/s² [D, MPC_ACC_DOWN_MAX]; it leaves the motors thrust and headroom to steer with."""

    attitude_gain: float = 8.0
    """rad/s of roll and pitch per radian of tilt error [P, MC_ROLL_P and MC_PITCH_P]."""
    max_tilt_rate: float = 3.8
    """rad/s of roll and pitch: 220 deg/s [D, MC_ROLLRATE_MAX]."""
    yaw_time_constant: float = 0.15
    """In which the shaped yaw rate approaches the wanted one, seconds [C, ATC_INPUT_TC]."""
    max_yaw_acceleration: float = 4.0
    """Of the shaped yaw rate, rad/s²: half of what the motors can do in hover."""
    yaw_gain: float = 4.0
    """rad/s per radian of heading error [P, MC_YAW_P]."""

    rate_gain: float = 25.0
    """rad/s² per rad/s of roll or pitch rate error: what MC_ROLLRATE_P 0.13 [P] amounts to with the
    thrust and inertia of our airframe."""
    yaw_rate_gain: float = 8.0
    """rad/s² per rad/s of yaw rate error. MC_YAWRATE_P 0.12 [P] amounts to 2.4, too slow to settle
    within half a second like [C]."""


@dataclass(frozen=True)
class Guidance:
    """Setpoint of the autopilot: a velocity, a heading or yaw rate, a height or climb rate."""

    forward: float = 0.0
    """m/s along `heading`."""
    left: float = 0.0
    """m/s to the left of it."""
    heading: float | None = None
    """A direction, radians, world; None for the drone's own, wherever it turns."""
    turning: bool = False
    """Whether a velocity that is still being shaped turns along with a change of `heading`."""
    yaw_rate: float = 0.0
    """Turn to the left, rad/s."""
    height: float | None = None
    """Of the centre of mass, metres; None to track `climb` alone."""
    climb: float = 0.0
    """m/s upwards, on top of what holds the height."""
    descent: float | None = None
    """The fastest that it may sink, m/s; the configured one if left out."""
    hold: bool = False
    """Whether to brake and then hold the position where it came to rest."""


class Autopilot:
    """Turns a state estimate and a setpoint into motor commands, once per timestep.

    It is configured for one airframe; the one it flies may differ a little, as after a change of
    battery, and the integrals make up for that. The estimate it flies on is exact: noise and
    latency of the pose that the policy sees are added elsewhere.
    """

    def __init__(self, airframe: AirframeConfig, config: AutopilotConfig) -> None:
        self.airframe = airframe
        self.config = config
        self.reset()

    def reset(self) -> None:
        """Reset all setpoints and integrals."""
        self._speed = (0.0, 0.0)
        self._acceleration = (0.0, 0.0)
        self._along: float | None = None
        self._place: tuple[float, float] | None = None
        self._velocity_integral = (0.0, 0.0)
        self._climb_integral = 0.0
        self._yaw_rate = 0.0
        self._heading: float | None = None

    def follow(self, state: BodyState, guidance: Guidance) -> tuple[float, float, float, float]:
        """Run all loops once.

        Returns:
            The thrust of each motor as a fraction of full thrust, in [0, 1].
        """
        config = self.config
        axes = body_axes(state.quaternion)
        heading = math.atan2(axes[0][1], axes[0][0])

        self._aim(guidance, heading)
        self._shape_speed(guidance.forward, guidance.left)
        thrust = self._wanted_thrust(state, heading, guidance)
        turn, turn_acceleration = self._wanted_turn(guidance.yaw_rate, heading)
        wanted_p, wanted_q, wanted_r = self._wanted_rates(axes, thrust, turn)
        p, q, r = state.body_rates
        return self._mix(
            self.airframe.mass * _dot(axes[2], thrust),
            config.rate_gain * (wanted_p - p),
            config.rate_gain * (wanted_q - q),
            config.yaw_rate_gain * (wanted_r - r) + turn_acceleration,
        )

    def _aim(self, guidance: Guidance, heading: float) -> None:
        """Express the shaped velocity along the direction in which the next one is given."""
        before, self._along = self._along, guidance.heading
        if guidance.turning or before == guidance.heading:
            return
        turn = (heading if before is None else before) - (heading if guidance.heading is None else guidance.heading)
        self._speed = _turned(self._speed, turn)
        self._acceleration = _turned(self._acceleration, turn)

    def _shape_speed(self, forward: float, left: float) -> None:
        """Follow the wanted speed within acceleration and jerk, as ArduPilot's shape_vel_accel."""
        (speed_x, acceleration_x), (speed_y, acceleration_y) = (
            self._shape(speed, acceleration, wanted)
            for speed, acceleration, wanted in zip(self._speed, self._acceleration, (forward, left), strict=True)
        )
        self._speed, self._acceleration = (speed_x, speed_y), (acceleration_x, acceleration_y)

    def _shape(self, speed: float, acceleration: float, goal: float) -> tuple[float, float]:
        config, dt = self.config, self.airframe.timestep
        error = _clamp(goal, config.max_speed) - speed
        wanted = _clamp(config.max_jerk / config.max_acceleration * error, config.max_acceleration)
        acceleration += _clamp(wanted - acceleration, config.max_jerk * dt)
        return speed + acceleration * dt, acceleration

    def _wanted_climb(self, state: BodyState, guidance: Guidance) -> float:
        config = self.config
        climb = guidance.climb
        if guidance.height is not None:
            climb += config.height_gain * (guidance.height - state.position[2])
        slowest = config.max_descent if guidance.descent is None else guidance.descent
        return min(max(climb, -slowest), config.max_climb)

    def _wanted_velocity(self, state: BodyState, heading: float, guidance: Guidance) -> tuple[float, float]:
        """The shaped velocity in the world, m/s, plus, with `hold`, the velocity back to the held position."""
        vx, vy = _turned(self._speed, heading if guidance.heading is None else guidance.heading)
        if not guidance.hold:
            self._place = None
            return vx, vy
        x, y, _z = state.position
        if self._place is None and math.hypot(vx, vy) < AT_REST:
            self._place = (x, y)
        if self._place is None:
            return vx, vy
        gain = self.config.hold_gain
        back = _shorten(gain * (self._place[0] - x), gain * (self._place[1] - y), self.config.max_hold_speed)
        return vx + back[0], vy + back[1]

    def _wanted_thrust(self, state: BodyState, heading: float, guidance: Guidance) -> Vector:
        """Thrust per mass in the world, m/s², to track the velocity and hold the height."""
        config, dt = self.config, self.airframe.timestep
        vx, vy, vz = state.velocity

        error = self._wanted_climb(state, guidance) - vz
        wanted = config.climb_gain * error + self._climb_integral
        az = _clamp(wanted, config.max_vertical_acceleration)
        if az == wanted:  # anti-windup, here and below
            self._climb_integral += config.climb_integral * error * dt

        wanted_vx, wanted_vy = self._wanted_velocity(state, heading, guidance)
        error_x, error_y = wanted_vx - vx, wanted_vy - vy
        sum_x, sum_y = self._velocity_integral
        ahead_x, ahead_y = _turned(self._acceleration, heading if guidance.heading is None else guidance.heading)
        wanted_x = ahead_x + config.velocity_gain * error_x + sum_x
        wanted_y = ahead_y + config.velocity_gain * error_y + sum_y
        steepest = (GRAVITY + az) * math.tan(math.radians(config.max_tilt_deg))
        ax, ay = _shorten(wanted_x, wanted_y, steepest)
        if (ax, ay) == (wanted_x, wanted_y):
            gain = config.velocity_integral * dt
            self._velocity_integral = (sum_x + gain * error_x, sum_y + gain * error_y)
        return ax, ay, GRAVITY + az

    def _wanted_turn(self, yaw_rate: float, heading: float) -> tuple[float, float]:
        """Rate and acceleration about the vertical that follow the setpoint and its heading."""
        config, dt = self.config, self.airframe.timestep
        approach = (yaw_rate - self._yaw_rate) / config.yaw_time_constant
        acceleration = _clamp(approach, config.max_yaw_acceleration)
        self._yaw_rate += acceleration * dt
        wanted = heading if self._heading is None else self._heading + self._yaw_rate * dt
        lead = _clamp(math.remainder(wanted - heading, math.tau), HEADING_LEAD)
        self._heading = heading + lead
        return self._yaw_rate + config.yaw_gain * lead, acceleration

    def _wanted_rates(self, axes: tuple[Vector, Vector, Vector], thrust: Vector, turn: float) -> Vector:
        """Body rates that bring the z axis onto the thrust by the shortest way, and turn."""
        x_axis, y_axis, z_axis = axes
        tx, ty, tz = _dot(x_axis, thrust), _dot(y_axis, thrust), _dot(z_axis, thrust)
        across = math.hypot(tx, ty)
        gain = self.config.attitude_gain * math.atan2(across, tz) / max(across, 1e-9)
        roll, pitch = _shorten(-gain * ty, gain * tx, self.config.max_tilt_rate)
        return roll + turn * x_axis[2], pitch + turn * y_axis[2], turn * z_axis[2]

    def _mix(self, lift: float, roll: float, pitch: float, yaw: float) -> tuple[float, float, float, float]:
        """Share a lift, newtons, and angular accelerations, rad/s², among the motors.

        What they cannot do together is cut: yaw first, then lift, roll and pitch last.
        """
        airframe, most = self.airframe, self.airframe.max_thrust
        inertia_x, inertia_y, inertia_z = airframe.inertia
        roll *= inertia_x / (4 * airframe.motor_offset)
        pitch *= inertia_y / (4 * airframe.motor_offset)
        yaw *= inertia_z / (4 * airframe.torque_ratio)

        used = abs(roll) + abs(pitch)
        if used > most / 2:
            roll, pitch, used = roll / used * most / 2, pitch / used * most / 2, most / 2
        lift = min(max(lift / 4, used), most - used)
        yaw = _clamp(yaw, min(lift, most - lift) - used)
        m1, m2, m3, m4 = ((lift + y * roll - x * pitch + spin * yaw) / most for x, y, spin in MOTOR_LAYOUT)
        return m1, m2, m3, m4


def _clamp(value: float, most: float) -> float:
    return min(max(value, -most), most)


def _shorten(x: float, y: float, most: float) -> tuple[float, float]:
    length = math.hypot(x, y)
    return (x, y) if length <= most else (x * most / length, y * most / length)


def _turned(vector: tuple[float, float], angle: float) -> tuple[float, float]:
    (x, y), cos, sin = vector, math.cos(angle), math.sin(angle)
    return x * cos - y * sin, x * sin + y * cos


def _dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
