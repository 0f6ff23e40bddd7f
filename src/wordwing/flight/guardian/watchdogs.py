"""What keeps a drone on the floor, and what brings it down. Each answer is a sentence; none of it waits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wordwing.flight.guardian.pose_history import PoseHistory
from wordwing.flight.guardian.safety import FenceMargins, FlightLimits, Motion, Timeouts
from wordwing.flight.mavlink.geometry import MARGIN, euler_from_quaternion
from wordwing.flight.mavlink.parameters import ParameterCheck
from wordwing.flight.mavlink.vehicle_status import VehicleStatus

TINY = 1e-6
"""Sums of ticks are not exact, seconds."""

CALM = 2.0
"""How long poses must not have jumped before a start, seconds."""


@dataclass(frozen=True)
class Watchdogs:
    """All limits together."""

    limits: FlightLimits
    timeouts: Timeouts
    fence: FenceMargins

    def unready(
        self,
        vehicle: VehicleStatus,
        parameters: ParameterCheck | None,
        estimate: PoseHistory,
        motion: Motion | None,
        now: float,
    ) -> list[str]:
        """All that speaks against arming, in words; nothing if the drone may start."""
        reasons = vehicle.unready(now)
        if vehicle.stack is None or vehicle.refusal is not None:
            return reasons
        if vehicle.silence(now) > self.timeouts.heartbeat:
            reasons.append(f"the autopilot has been silent for {vehicle.silence(now):.1f} s")
        if not vehicle.is_lab and min(self.fence.ahead, self.fence.aside) < MARGIN:
            reasons.append(
                f"margins under {MARGIN} m are for the lab, and this vehicle does not say that it is the lab"
            )
        battery = vehicle.battery
        if battery is None:
            reasons.append("the battery's charge is not known")
        elif battery < self.limits.start_battery:
            reasons.append(f"the battery has {battery:.0%}; it must have {self.limits.start_battery:.0%}")
        reasons += self._badly_placed(estimate, motion, now)
        if parameters is None or not parameters.complete:
            reasons.append("the parameters are being read")
        else:
            reasons += [str(finding) for finding in parameters.findings() if not finding.right]
        return reasons

    def must_land(
        self, vehicle: VehicleStatus, estimate: PoseHistory, motion: Motion | None, armed_at: float, now: float
    ) -> str | None:
        """Why the drone must come down now, or None."""
        limits, age = self.limits, estimate.age(now)
        if motion is None or age > self.timeouts.pose + TINY:
            return f"the newest pose is {age:.2f} s old"
        if vehicle.lost_its_place:
            return "the autopilot's estimator has lost its position"
        if estimate.jumped_at >= armed_at:
            return estimate.jump
        tilt = _tilt(motion)
        if tilt > limits.tilt:
            return f"the drone is tilted by {math.degrees(tilt):.0f}°"
        if motion.reach > self.fence.half - self.fence.edge:
            return f"the drone is {self.fence.half - motion.reach:.2f} m from a fence"
        if motion.height > limits.ceiling:
            return f"the drone is {motion.height:.2f} m high"
        battery = vehicle.battery
        if battery is not None and battery < limits.battery:
            return f"the battery has {battery:.0%}"
        if now - armed_at > limits.flight_time:
            return f"it has been flying for {limits.flight_time:g} s"
        return None

    def _badly_placed(self, estimate: PoseHistory, motion: Motion | None, now: float) -> list[str]:
        age = estimate.age(now)
        if motion is None or math.isinf(age):
            return ["there is no local position and attitude yet"]
        reasons = []
        if age > self.timeouts.pose + TINY:
            reasons.append(f"the newest pose is {age:.2f} s old")
        if now - estimate.jumped_at < CALM:
            reasons.append(f"{estimate.jump}")
        inside = self.fence.half - min(self.fence.ahead, self.fence.aside)
        if motion.reach > inside:
            x, y = motion.pose.position[:2]
            reasons.append(f"the drone is at ({x:.2f}, {y:.2f}); it must start within {inside:.2f} m of the centre")
        if abs(motion.height) > self.limits.start_height:
            reasons.append(f"the drone is {motion.height:.2f} m above the floor; it must stand on it")
        if _tilt(motion) > self.limits.start_tilt:
            reasons.append(f"the drone is tilted by {math.degrees(_tilt(motion)):.0f}°; it must stand level")
        told = estimate.newest()
        speed = max(math.hypot(*motion.velocity), math.hypot(*told.velocity) if told else 0.0)
        if speed > self.limits.start_speed:
            reasons.append(f"the drone moves at {speed:.1f} m/s; it must stand still")
        return reasons


class TickWatchdog:
    """Whether the guardian itself was away: a computer that is busy, stopped or asleep."""

    def __init__(self, timeouts: Timeouts, now: float) -> None:
        self._timeouts = timeouts
        self._ticked_at = now
        self._woke_at = -math.inf

    def tick(self, now: float) -> str | None:
        """To be asked at each tick; tells how long it was away, if that was too long."""
        gap, self._ticked_at = now - self._ticked_at, now
        if gap > self._timeouts.daze:
            self._woke_at = now
        return f"the guardian was away for {gap:.2f} s" if gap > self._timeouts.tick else None

    def dazed(self, heartbeat_at: float, now: float) -> bool:
        """Whether somebody else may have the drone by now, because no heartbeat has come since a long absence.

        Those that had been waiting may be old: buffers that were full have lost the newer ones.
        """
        return heartbeat_at <= self._woke_at and now - self._woke_at <= self._timeouts.heartbeat


def _tilt(motion: Motion) -> float:
    """Roll or pitch, radians, whichever is more."""
    roll, pitch, _ = euler_from_quaternion(motion.pose.quaternion)
    return max(abs(roll), abs(pitch))
