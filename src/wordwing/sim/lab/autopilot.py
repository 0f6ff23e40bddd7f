"""An autopilot as PX4 and ArduPilot build it: velocity, attitude, body rate, mixer, one inside the other.

Where to go is said by a speed along the *current* heading, a yaw rate and a height, as a MAVLink stream of
body-frame setpoints does. The velocity setpoint is turned into the world and shaped there, so a drone that
turns while it flies slips a little outwards, like a real one.

Sources of gains and limits: [P] PX4's file for this airframe, `4070_aerofc`; [D] PX4's defaults; [C] ArduCopter
with the indoor parameters whose step responses the tests hold this autopilot to. PX4's integral and derivative
terms on the body rate are left out: without sensor noise and trim errors they have nothing to do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wordwing.sim.lab.airframe import (
    GRAVITY,
    MOTOR_LAYOUT,
    AirframeConfig,
    State,
    Vector,
    body_axes,
)


@dataclass(frozen=True)
class AutopilotConfig:
    """Gains and limits of the cascade."""

    max_speed: float = 1.0
    """Of the velocity setpoint, m/s [C, WP_SPD]."""
    max_acceleration: float = 1.5
    """Of the shaped velocity setpoint, m/s² [C, WP_ACC]."""
    max_jerk: float = 5.0
    """Of the shaped velocity setpoint, m/s³ [C, its default]."""
    velocity_gain: float = 1.8
    """m/s² per m/s of horizontal error [D, MPC_XY_VEL_P_ACC]."""
    velocity_integral: float = 0.4
    """m/s² per m of integrated horizontal error [D, MPC_XY_VEL_I_ACC]."""
    max_tilt_deg: float = 20.0
    """Of the wanted thrust, degrees: the least that PX4 allows [D, MPC_TILTMAX_AIR], for a small room."""

    height_gain: float = 1.5
    """m/s per m of height error [P, MPC_Z_P]."""
    max_climb: float = 0.5
    """m/s [C, WP_SPD_UP]."""
    max_descent: float = 0.3
    """m/s [C, LAND_SPD_MS]."""
    climb_gain: float = 4.0
    """m/s² per m/s of vertical error [D, MPC_Z_VEL_P_ACC]."""
    climb_integral: float = 2.0
    """m/s² per m of integrated vertical error [D, MPC_Z_VEL_I_ACC]."""
    max_vertical_acceleration: float = 3.0
    """m/s² [D, MPC_ACC_DOWN_MAX]; leaves the motors thrust and headroom to steer with."""

    attitude_gain: float = 8.0
    """rad/s of roll and pitch per rad of tilt error [P, MC_ROLL_P and MC_PITCH_P]."""
    max_tilt_rate: float = 3.8
    """rad/s of roll and pitch [D, MC_ROLLRATE_MAX of 220 deg/s]."""
    rate_gain: float = 25.0
    """rad/s² per rad/s of roll or pitch rate error: what MC_ROLLRATE_P 0.13 [P] amounts to with the
    thrust and inertia of our airframe."""

    yaw_time_constant: float = 0.15
    """Seconds in which the yaw rate setpoint approaches the wanted one [C, ATC_INPUT_TC]."""
    max_yaw_acceleration: float = 4.0
    """Of the yaw rate setpoint, rad/s²: half of what the motors can do in hover."""
    yaw_gain: float = 4.0
    """rad/s per rad of heading error [P, MC_YAW_P]."""
    yaw_rate_gain: float = 8.0
    """rad/s² per rad/s of yaw rate error. MC_YAWRATE_P 0.12 [P] amounts to 2.4, too slow for [C], whose yaw
    rate settles within half a second."""


HEADING_LEAD = 0.35
"""How far the wanted heading may run ahead of the real one, rad, when something holds the drone."""


class Autopilot:
    """Turns what an estimator knows and a pilot wants into motor commands, once per timestep.

    It is configured for one airframe; the one it flies may differ a little, as after a change of battery, and
    the integrals make up for that. The estimate it flies on is exact: noise and latency of the pose that the
    policy sees are added elsewhere.
    """

    def __init__(
        self,
        airframe: AirframeConfig = AirframeConfig(),
        config: AutopilotConfig = AutopilotConfig(),
    ) -> None:
        self.airframe = airframe
        self.config = config
        self.reset()

    def reset(self) -> None:
        """Forget all setpoints and integrals."""
        self._velocity = (0.0, 0.0)  # the shaped setpoint, world
        self._acceleration = (0.0, 0.0)  # its derivative
        self._velocity_integral = (0.0, 0.0)
        self._climb_integral = 0.0
        self._yaw_rate = 0.0  # the shaped setpoint
        self._heading: float | None = None  # its integral; None until the drone's own is known

    def update(
        self, state: State, forward: float, yaw_rate: float, height: float
    ) -> tuple[float, float, float, float]:
        """One turn of the loop.

        Args:
            state: Where the drone is and how it moves.
            forward: Wanted speed along the heading, m/s.
            yaw_rate: Wanted turn to the left, rad/s.
            height: Wanted height of the centre of mass, metres.

        Returns:
            The thrust of each motor as a fraction of full thrust, in [0, 1].
        """
        axes = body_axes(state.quaternion)
        heading = math.atan2(axes[0][1], axes[0][0])
        self._shape_velocity(forward, heading)
        thrust = self._thrust(state, height)
        turn = self._turn(yaw_rate, heading)
        rates = self._body_rates(axes, thrust, turn)
        return self._mix(axes, thrust, rates, state.body_rates)

    def _shape_velocity(self, forward: float, heading: float) -> None:
        """Let the setpoint follow the wanted velocity within acceleration and jerk, as ArduPilot does."""
        config, dt = self.config, self.airframe.timestep
        forward = _clamp(forward, config.max_speed)
        (vx, vy), (ax, ay) = self._velocity, self._acceleration
        approach = config.max_jerk / config.max_acceleration
        wanted_x, wanted_y = _limit(
            approach * (forward * math.cos(heading) - vx),
            approach * (forward * math.sin(heading) - vy),
            config.max_acceleration,
        )
        change_x, change_y = _limit(wanted_x - ax, wanted_y - ay, config.max_jerk * dt)
        ax, ay = ax + change_x, ay + change_y
        self._acceleration = (ax, ay)
        self._velocity = (vx + ax * dt, vy + ay * dt)

    def _thrust(self, state: State, height: float) -> Vector:
        """The wanted thrust per mass in the world, m/s²."""
        config, dt = self.config, self.airframe.timestep
        vx, vy, vz = state.velocity

        climb = config.height_gain * (height - state.position[2])
        error = min(max(climb, -config.max_descent), config.max_climb) - vz
        wanted = config.climb_gain * error + self._climb_integral
        az = _clamp(wanted, config.max_vertical_acceleration)
        if az == wanted:
            self._climb_integral += config.climb_integral * error * dt

        error_x, error_y = self._velocity[0] - vx, self._velocity[1] - vy
        sum_x, sum_y = self._velocity_integral
        wanted_x = self._acceleration[0] + config.velocity_gain * error_x + sum_x
        wanted_y = self._acceleration[1] + config.velocity_gain * error_y + sum_y
        steepest = (GRAVITY + az) * math.tan(math.radians(config.max_tilt_deg))
        ax, ay = _limit(wanted_x, wanted_y, steepest)
        if ax == wanted_x and ay == wanted_y:
            gain = config.velocity_integral * dt
            self._velocity_integral = (sum_x + gain * error_x, sum_y + gain * error_y)
        return ax, ay, GRAVITY + az

    def _turn(self, yaw_rate: float, heading: float) -> float:
        """The wanted rate about the vertical, rad/s: the shaped setpoint, and back to its heading."""
        config, dt = self.config, self.airframe.timestep
        approach = (yaw_rate - self._yaw_rate) / config.yaw_time_constant
        self._yaw_rate += _clamp(approach, config.max_yaw_acceleration) * dt
        wanted = heading if self._heading is None else self._heading + self._yaw_rate * dt
        lead = _clamp(math.remainder(wanted - heading, math.tau), HEADING_LEAD)
        self._heading = heading + lead
        return self._yaw_rate + config.yaw_gain * lead

    def _body_rates(
        self, axes: tuple[Vector, Vector, Vector], thrust: Vector, turn: float
    ) -> Vector:
        """Rates that bring the body's z axis onto the wanted thrust and turn about the vertical."""
        x_axis, y_axis, z_axis = axes
        tx, ty, tz = (_dot(axis, thrust) for axis in axes)
        sine = math.hypot(tx, ty)
        # The shortest turn has its axis at right angles to both; angle over sine is near 1 / |thrust|.
        scale = self.config.attitude_gain * math.atan2(sine, tz) / sine if sine > 1e-9 else 0.0
        roll, pitch = _limit(-scale * ty, scale * tx, self.config.max_tilt_rate)
        return roll + turn * x_axis[2], pitch + turn * y_axis[2], turn * z_axis[2]

    def _mix(
        self, axes: tuple[Vector, Vector, Vector], thrust: Vector, wanted: Vector, rates: Vector
    ) -> tuple[float, float, float, float]:
        """Share thrust and torque among the motors; roll and pitch go before height, height before yaw."""
        config, airframe = self.config, self.airframe
        inertia_x, inertia_y, inertia_z = airframe.inertia
        lever = 4 * airframe.motor_offset
        roll = inertia_x * config.rate_gain * (wanted[0] - rates[0]) / lever
        pitch = inertia_y * config.rate_gain * (wanted[1] - rates[1]) / lever
        yaw = inertia_z * config.yaw_rate_gain * (wanted[2] - rates[2]) / (4 * airframe.torque_ratio)

        most = airframe.max_thrust
        share = abs(roll) + abs(pitch)
        if share > most / 2:
            roll, pitch, share = roll * most / 2 / share, pitch * most / 2 / share, most / 2
        lift = min(max(airframe.mass * _dot(axes[2], thrust) / 4, share), most - share)
        yaw = _clamp(yaw, min(lift, most - lift) - share)
        m1, m2, m3, m4 = (
            (lift + y * roll - x * pitch + spin * yaw) / most for x, y, spin in MOTOR_LAYOUT
        )
        return m1, m2, m3, m4


def _clamp(value: float, most: float) -> float:
    return min(max(value, -most), most)


def _limit(x: float, y: float, most: float) -> tuple[float, float]:
    """Shorten a vector to a length."""
    length = math.hypot(x, y)
    return (x, y) if length <= most else (x * most / length, y * most / length)


def _dot(a: Vector, b: Vector) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
