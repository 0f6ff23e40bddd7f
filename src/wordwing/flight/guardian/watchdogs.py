"""What keeps a drone on the floor, and what brings it down. Each answer is a sentence; none of it waits."""

import math
from dataclasses import dataclass

from wordwing.flight.guardian.pose_history import TINY, PoseHistory
from wordwing.flight.guardian.safety import FenceMargins, FlightLimits, Motion, Timeouts
from wordwing.flight.mavlink.geometry import MARGIN, euler_from_quaternion
from wordwing.flight.mavlink.parameters import ParameterCheck
from wordwing.flight.mavlink.vehicle_status import VehicleStatus, failed, first_failed

CALM = 2.0
"""How long poses must not have jumped before a start, seconds."""


@dataclass(frozen=True)
class Watchdogs:
    """Checks of the drone against all limits together."""

    limits: FlightLimits
    timeouts: Timeouts
    fence: FenceMargins

    def unready(
        self,
        vehicle: VehicleStatus,
        parameters: ParameterCheck | None,
        history: PoseHistory,
        motion: Motion | None,
        now: float,
    ) -> list[str]:
        """All that speaks against arming, in words; nothing if the drone may start."""
        reasons = vehicle.unready(now)
        if vehicle.stack is None or vehicle.refusal is not None:
            return reasons
        silence, least = vehicle.silence(now), self.limits.start_battery
        battery = math.nan if vehicle.battery is None else vehicle.battery
        near = not vehicle.is_lab and min(self.fence.ahead, self.fence.aside) < MARGIN
        reasons += failed(
            (silence > self.timeouts.heartbeat, f"the autopilot has been silent for {silence:.1f} s"),
            (near, f"margins under {MARGIN} m are for the lab, and this vehicle does not say that it is the lab"),
            (math.isnan(battery), "the battery's charge is not known"),
            (battery < least, f"the battery has {battery:.0%}; it must have {least:.0%}"),
        )
        reasons += self._badly_placed(history, motion, now)
        if parameters is None or not parameters.complete:
            return [*reasons, "the parameters are being read"]
        return reasons + [str(finding) for finding in parameters.findings() if not finding.right]

    def must_land(
        self, vehicle: VehicleStatus, history: PoseHistory, motion: Motion | None, armed_at: float, now: float
    ) -> str | None:
        """Why the drone must come down now, or None."""
        limits, fence = self.limits, self.fence
        if motion is None or self.old_pose(history, now):
            return f"the newest pose is {history.age(now):.2f} s old"
        battery = math.nan if vehicle.battery is None else vehicle.battery
        tilt, gap = _tilt(motion), fence.half - motion.reach
        return first_failed(
            (vehicle.lost_position, "the autopilot's estimator has lost its position"),
            (history.jumped_at >= armed_at, f"{history.jump}"),
            (tilt > limits.tilt, f"the drone is tilted by {math.degrees(tilt):.0f}°"),
            (motion.reach > fence.half - fence.edge, f"the drone is {gap:.2f} m from a fence"),
            (motion.height > limits.ceiling, f"the drone is {motion.height:.2f} m high"),
            (battery < limits.battery, f"the battery has {battery:.0%}"),
            (now - armed_at > limits.flight_time, f"it has been flying for {limits.flight_time:g} s"),
        )

    def old_pose(self, history: PoseHistory, now: float) -> bool:
        """Whether it has been too long since the newest pose."""
        return history.age(now) > self.timeouts.pose + TINY

    def _badly_placed(self, history: PoseHistory, motion: Motion | None, now: float) -> list[str]:
        age, limits, newest = history.age(now), self.limits, history.newest()
        if motion is None or newest is None or math.isinf(age):
            return ["there is no local position and attitude yet"]
        inside = self.fence.half - min(self.fence.ahead, self.fence.aside)
        (x, y, height), tilt = motion.pose.position, _tilt(motion)
        speed = max(math.hypot(*motion.velocity), math.hypot(*newest.velocity))
        return failed(
            (self.old_pose(history, now), f"the newest pose is {age:.2f} s old"),
            (now - history.jumped_at < CALM, f"{history.jump}"),
            (
                motion.reach > inside,
                f"the drone is at ({x:.2f}, {y:.2f}); it must start within {inside:.2f} m of the centre",
            ),
            (
                abs(height) > limits.start_height,
                f"the drone is {height:.2f} m above the floor; it must stand on it",
            ),
            (
                tilt > limits.start_tilt,
                f"the drone is tilted by {math.degrees(tilt):.0f}°; it must stand level",
            ),
            (speed > limits.start_speed, f"the drone moves at {speed:.1f} m/s; it must stand still"),
        )


class TickWatchdog:
    """Whether the guardian itself was late: a computer that is busy, stopped or asleep."""

    def __init__(self, timeouts: Timeouts, now: float) -> None:
        self._timeouts, self._ticked_at, self._woke_at = timeouts, now, -math.inf

    def tick(self, now: float) -> str | None:
        """To be asked at each tick; tells how long it was away, if that was too long."""
        gap, self._ticked_at = now - self._ticked_at, now
        if gap > self._timeouts.outage:
            self._woke_at = now
        return f"the guardian was away for {gap:.2f} s" if gap > self._timeouts.tick else None

    def outdated(self, heartbeat_at: float, now: float) -> bool:
        """Whether somebody else may have the drone by now, because no heartbeat has come since a long absence.

        Those that had been waiting may be old: buffers that were full have lost the newer ones.
        """
        return heartbeat_at <= self._woke_at and now - self._woke_at <= self._timeouts.heartbeat


def _tilt(motion: Motion) -> float:
    """Roll or pitch, radians, whichever is more."""
    roll, pitch, _ = euler_from_quaternion(motion.pose.quaternion)
    return max(abs(roll), abs(pitch))
