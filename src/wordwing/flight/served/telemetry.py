"""Telemetry of the served lab: its state in MAVLink messages, each at its own rate."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.flight.arena import Arena
from wordwing.flight.mavlink.geometry import (
    PlainPose,
    Quaternion,
    Vector,
    add,
    conjugate,
    euler_from_quaternion,
    multiply,
    quaternion_from_euler,
    quaternion_to_ned,
    rotate,
    scale,
    to_ned,
)
from wordwing.flight.mavlink.parse_message import LAB
from wordwing.flight.served.autopilot import BOOT, ServedAutopilot
from wordwing.flight.served.faults import FaultSchedule, PoseDropout
from wordwing.lab.vehicle import LabConfig

VELOCITY_NOISE = 0.01
"""Standard deviation of each component of the velocity, m/s."""

MOST_HEIGHT_BIAS = 0.09
"""Greatest bias of the estimated height, metres; it differs from boot to boot, as ArduCopter's did."""

EKF_FLAGS, EKF_FLAGS_BLIND = 831, 165
"""ArduPilot: all estimates are valid; only attitude and height are (constant position mode)."""

ESTIMATOR_FLAGS, ESTIMATOR_FLAGS_BLIND = 367, 111
"""PX4 on motion capture: no absolute position; without motion capture: no predicted relative position either."""

BLIND_SHOWS = 0.8
"""After so long PX4 reports that motion capture is lost, seconds; ArduPilot only when its failsafe acts."""

PREARM_CHECK = 0x10000000
SENSORS = 0x2F  # gyroscopes, accelerometers, magnetometers, barometer and vision position
CUSTOM, ARMED = 1, 128

RATES: dict[int, float] = {
    mavlink.MAVLINK_MSG_ID_HEARTBEAT: 1.0,
    mavlink.MAVLINK_MSG_ID_SYS_STATUS: 1.0,
    mavlink.MAVLINK_MSG_ID_BATTERY_STATUS: 0.5,
    mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED: 10.0,
    mavlink.MAVLINK_MSG_ID_ATTITUDE: 10.0,
    mavlink.MAVLINK_MSG_ID_EXTENDED_SYS_STATE: 1.0,
    mavlink.MAVLINK_MSG_ID_EKF_STATUS_REPORT: 1.0,
    mavlink.MAVLINK_MSG_ID_ESTIMATOR_STATUS: 1.0,
    mavlink.MAVLINK_MSG_ID_ODOMETRY: 0.0,
    mavlink.MAVLINK_MSG_ID_AUTOPILOT_VERSION: 0.0,
}
"""Default rates, Hz; 0 is only on request."""

POSITIONS = (mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED, mavlink.MAVLINK_MSG_ID_ODOMETRY)
"""Messages that are sent only while there is a position."""

FASTEST = 100.0
"""Hz."""


class Telemetry:
    """Makes messages of the autopilot's state, with motion capture's noise and delay."""

    def __init__(
        self, autopilot: ServedAutopilot, config: LabConfig, arena: Arena, faults: FaultSchedule, seed: int
    ) -> None:
        self._autopilot, self._config, self._arena, self._faults = autopilot, config, arena, faults
        self._rng = np.random.default_rng([seed, 14])
        self._height_bias = MOST_HEIGHT_BIAS * self._rng.random()
        self._variance = 0.0
        ardupilot = autopilot.profile.name == "ardupilot"
        self._makers: dict[int, Callable[[], Any]] = {
            mavlink.MAVLINK_MSG_ID_HEARTBEAT: self._heartbeat,
            mavlink.MAVLINK_MSG_ID_SYS_STATUS: self._sys_status,
            mavlink.MAVLINK_MSG_ID_BATTERY_STATUS: self._battery_status,
            mavlink.MAVLINK_MSG_ID_LOCAL_POSITION_NED: self._local_position,
            mavlink.MAVLINK_MSG_ID_ATTITUDE: self._attitude,
            mavlink.MAVLINK_MSG_ID_EXTENDED_SYS_STATE: self._extended_sys_state,
            mavlink.MAVLINK_MSG_ID_ODOMETRY: self._odometry,
            mavlink.MAVLINK_MSG_ID_AUTOPILOT_VERSION: self._autopilot_version,
            **(
                {mavlink.MAVLINK_MSG_ID_EKF_STATUS_REPORT: self._ekf_status}
                if ardupilot
                else {mavlink.MAVLINK_MSG_ID_ESTIMATOR_STATUS: self._estimator_status}
            ),
        }
        self.reset()

    def reset(self) -> None:
        """Reset all rates to their defaults."""
        self._rates = {kind: RATES[kind] for kind in self._makers}
        self._due = dict.fromkeys(self._makers, self._autopilot.time)

    def set_interval(self, kind: int, microseconds: float) -> bool:
        """Execute SET_MESSAGE_INTERVAL: -1 is never, 0 the default; returns whether there is such a message."""
        if kind not in self._makers:
            return False
        rate = 1e6 / microseconds if microseconds > 0 else RATES[kind]
        self._rates[kind] = min(rate, FASTEST) if microseconds >= 0 else 0.0
        self._due[kind] = self._autopilot.time
        return True

    def due(self) -> list[Any]:
        """All messages that are to be sent now."""
        messages = []
        for kind, rate in self._rates.items():
            if rate > 0 and self._autopilot.time >= self._due[kind] - 1e-6:
                # Not "now plus an interval": a rate that the ticks do not divide would sink.
                self._due[kind] = max(self._due[kind] + 1 / rate, self._autopilot.time - 1 / rate)
                messages.append(self.make(kind))
        return [message for message in messages if message is not None]

    def knows(self, kind: int) -> bool:
        """Whether there is such a message."""
        return kind in self._makers

    def make(self, kind: int) -> Any | None:
        """One message by its number; None if it is not known or there is nothing to send."""
        silent = kind not in self._makers or (kind in POSITIONS and not self._position_sent)
        return None if silent else self._makers[kind]()

    def _heartbeat(self) -> Any:
        autopilot = self._autopilot
        armed_status = mavlink.MAV_STATE_CRITICAL if autopilot.failsafe else mavlink.MAV_STATE_ACTIVE
        status = armed_status if autopilot.armed else mavlink.MAV_STATE_STANDBY
        base = CUSTOM | (ARMED if autopilot.armed else 0)
        return mavlink.MAVLink_heartbeat_message(
            mavlink.MAV_TYPE_QUADROTOR, autopilot.profile.stack.autopilot, base, autopilot.mode.custom, status, 3
        )

    def _sys_status(self) -> Any:
        autopilot = self._autopilot
        ready = autopilot.prearm_failure() is None and not (autopilot.refusal and autopilot.refusal.shown)
        health = SENSORS | (PREARM_CHECK if ready else 0)
        everything = SENSORS | PREARM_CHECK
        return mavlink.MAVLink_sys_status_message(
            everything,
            everything,
            health,
            200,
            round(1000 * autopilot.volts),
            -1,
            round(autopilot.battery),
            0,
            0,
            0,
            0,
            0,
            0,
        )

    def _battery_status(self) -> Any:
        cell = round(1000 * self._autopilot.volts / 4)
        return mavlink.MAVLink_battery_status_message(
            0, mavlink.MAV_BATTERY_FUNCTION_ALL, mavlink.MAV_BATTERY_TYPE_LIPO, 32767, [cell] * 4 + [65535] * 6,
            -1, -1, -1, round(self._autopilot.battery),
        )  # fmt: skip

    def _local_position(self) -> Any:
        position, velocity = to_ned(self._position()), to_ned(self._velocity())
        return mavlink.MAVLink_local_position_ned_message(self._milliseconds, *position, *velocity)

    def _attitude(self) -> Any:
        angles = euler_from_quaternion(quaternion_to_ned(self._quaternion()))
        return mavlink.MAVLink_attitude_message(self._milliseconds, *angles, *self._rates_frd())

    def _odometry(self) -> Any:
        quaternion = self._quaternion()
        velocity = to_ned(rotate(conjugate(quaternion), self._velocity()))
        unknown = [math.nan] + [0.0] * 20
        return mavlink.MAVLink_odometry_message(
            self._milliseconds * 1000, mavlink.MAV_FRAME_LOCAL_NED, mavlink.MAV_FRAME_BODY_FRD,
            *to_ned(self._position()), quaternion_to_ned(quaternion), *velocity,
            *self._rates_frd(), unknown, unknown, 0, mavlink.MAV_ESTIMATOR_TYPE_MOCAP,
        )  # fmt: skip

    def _extended_sys_state(self) -> Any:
        autopilot = self._autopilot
        states = (
            (not autopilot.airborne, mavlink.MAV_LANDED_STATE_ON_GROUND),
            (autopilot.climbing, mavlink.MAV_LANDED_STATE_TAKEOFF),
            (autopilot.landing, mavlink.MAV_LANDED_STATE_LANDING),
            (True, mavlink.MAV_LANDED_STATE_IN_AIR),
        )
        return mavlink.MAVLink_extended_sys_state_message(0, next(state for holds, state in states if holds))

    def _ekf_status(self) -> Any:
        flags = EKF_FLAGS if self._autopilot.position_valid else EKF_FLAGS_BLIND
        if self._autopilot.mocap_lost_since is None:  # without measurements nothing changes it
            self._variance = 0.02 + 0.01 * self._rng.random()
        return mavlink.MAVLink_ekf_status_report_message(flags, self._variance, self._variance, 0.02, 0.02, 0.0)

    def _estimator_status(self) -> Any:
        autopilot = self._autopilot
        blind = autopilot.mocap_lost_since is not None and autopilot.time - autopilot.mocap_lost_since > BLIND_SHOWS
        fine = autopilot.position_valid and not blind
        flags = ESTIMATOR_FLAGS if fine else ESTIMATOR_FLAGS_BLIND
        ratio, accuracy = (0.02 + 0.01 * self._rng.random(), 0.01) if fine else (math.nan, 1.0)
        return mavlink.MAVLink_estimator_status_message(
            self._milliseconds * 1000, flags, 0.02, ratio, 0.02, 0.02, 0.02, 0.0, accuracy, 0.01
        )

    def _autopilot_version(self) -> Any:
        capabilities = (
            mavlink.MAV_PROTOCOL_CAPABILITY_MAVLINK2 | mavlink.MAV_PROTOCOL_CAPABILITY_SET_POSITION_TARGET_LOCAL_NED
        )
        return mavlink.MAVLink_autopilot_version_message(
            capabilities, self._autopilot.profile.version, 0, 0, 0, LAB, bytes(8), bytes(8), 0, 0, 0
        )

    @property
    def _position_sent(self) -> bool:
        if self._autopilot.time - self._autopilot.booted < BOOT:
            return False
        fault = self._faults.active(PoseDropout, self._autopilot.time)
        return fault is None or fault.reported

    @property
    def _measured_at(self) -> float:
        """When the newest pose was measured, lab time."""
        return max(self._autopilot.time - self._config.pose_latency, -self._config.flight.memory)

    @property
    def _milliseconds(self) -> int:
        return max(0, round(1000 * (self._measured_at - self._autopilot.booted)))

    def _position(self) -> Vector:
        """Metres, local frame with z up."""
        now, pose = self._autopilot.time, self._measured
        dx, dy = self._faults.estimate_offset(now)
        noise = self._noise(self._config.position_noise)
        position = add(add(pose.position, noise), (dx, dy, self._height_bias))
        return self._arena.local_pose(position, pose.quaternion).position

    def _quaternion(self) -> Quaternion:
        """Body (x forward, y left, z up) to local frame with z up."""
        pose = self._measured
        tilt = quaternion_from_euler(*self._noise(self._config.attitude_noise))
        return multiply(self._arena.local_pose(pose.position, pose.quaternion).quaternion, tilt)

    def _velocity(self) -> Vector:
        """m/s, local frame with z up."""
        flight = self._autopilot.flight
        velocity = add(flight.state_at(self._measured_at).velocity, self._noise(VELOCITY_NOISE))
        return self._arena.local_velocity(add(velocity, flight.drift or (0.0, 0.0, 0.0)))

    def _rates_frd(self) -> Vector:
        return to_ned(self._autopilot.flight.state_at(self._measured_at).body_rates)

    @property
    def _measured(self) -> PlainPose:
        """The newest pose of motion capture, world frame, without its noise."""
        return PlainPose.of(*self._autopilot.flight.pose_at(self._measured_at))

    def _noise(self, deviation: float) -> Vector:
        """Noise of a standard deviation on each axis."""
        x, y, z = self._rng.standard_normal(3).tolist()
        return scale(deviation, (x, y, z))
