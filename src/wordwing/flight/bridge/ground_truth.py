"""Ground truth of a simulated drone, from messages that an unpatched autopilot simulator sends.

ArduPilot sends SIM_STATE, PX4 (simulation in hardware) HIL_STATE_QUATERNION. Both cut positions off at 1e-7 degrees,
which is 11 mm, but send the true velocity besides: between two steps the position follows the velocity, so that it
moves smoothly and stays within a centimetre. Neither has a time of its own; a pose is of the moment at which it came.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from wordwing.flight.mavlink.messages import Message
from wordwing.flight.served.autopilot_profile import AutopilotName
from wordwing.frames import Pose, ned_to_world, quaternion_to_ned

SIM_STATE, HIL_STATE_QUATERNION = 108, 115
"""Message ids."""

MESSAGES: dict[AutopilotName, int] = {"ardupilot": SIM_STATE, "px4": HIL_STATE_QUATERNION}
"""Which message carries the ground truth."""

DEGREES = 1e-7
"""Of latitude and longitude in one unit of a message."""

GAIN = 0.5
"""How fast the position is drawn to the middle of the step that was sent, 1/s."""


@dataclass(frozen=True)
class Fix:
    """Position, velocity and attitude in a message."""

    latitude: tuple[int, ...]
    """In units of 1e-7 degrees, cut off towards zero; more than one if it is ambiguous."""
    longitude: tuple[int, ...]
    """The same."""
    altitude: float
    """Metres, cut off downwards."""
    altitude_step: float
    """Metres."""
    velocity: tuple[float, float, float]
    """North, east, down, m/s."""
    quaternion: tuple[float, float, float, float]
    """(w, x, y, z), FRD body to NED."""


@dataclass(frozen=True)
class TruePose:
    """The drone at a moment; x north, y west, z up, from where it was first seen."""

    time: float
    """On our clock, seconds."""
    pose: Pose
    """[] in double."""
    velocity: Tensor
    """[3] m/s."""


def read_fix(message: Message) -> Fix | None:
    """Read a message; None if it carries no ground truth."""
    kind = message.get_type()
    if kind == "SIM_STATE":
        return Fix(
            _candidates(message.lat_int),
            _candidates(message.lon_int),
            message.alt,
            0.01,
            (message.vn, message.ve, message.vd),
            (message.q1, message.q2, message.q3, message.q4),
        )
    if kind == "HIL_STATE_QUATERNION":
        w, x, y, z = message.attitude_quaternion
        # Truncated to whole centimetres a second: half of one is missing on average.
        north, east, down = ((v + 0.5 * ((v > 0) - (v < 0))) / 100 for v in (message.vx, message.vy, message.vz))
        velocity = (north, east, down)
        return Fix((message.lat,), (message.lon,), message.alt / 1000, 0.001, velocity, (w, x, y, z))
    return None


def _candidates(sent: int) -> tuple[int, ...]:
    """ArduPilot turns whole units into degrees and back and cuts them off again, which often takes one away."""
    step = 1 if sent >= 0 else -1
    return tuple(n for n in (sent, sent + step) if int(n * 1e-7 * 1e7) == sent) or (sent,)


class _Axis:
    """One coordinate, estimated from its quantised value and its velocity."""

    def __init__(self, step: float) -> None:
        self.step = step
        """Metres."""
        self.value = 0.0
        """Metres."""
        self._velocity = 0.0

    def follow(self, centres: list[float], velocity: float, seconds: float) -> None:
        """Update the estimate.

        Args:
            centres: Of the steps that may have been sent, metres.
            velocity: m/s.
            seconds: Since the last time.
        """
        self.value += 0.5 * (velocity + self._velocity) * seconds
        self._velocity = velocity
        error = min((centre - self.value for centre in centres), key=abs)
        if abs(error) > self.step:  # a moment without messages, or a drone that was put elsewhere
            self.value += error - math.copysign(self.step, error)
        self.value += min(1.0, GAIN * seconds) * error


class GroundTruth:
    """Tracks the true pose of one drone."""

    def __init__(self, autopilot: AutopilotName) -> None:
        self._autopilot = autopilot
        self._first: Fix | None = None
        self._time = 0.0
        self._axes: list[_Axis] = []
        self._metres: tuple[float, float] = (0.0, 0.0)

    def update(self, message: Message, now: float) -> TruePose | None:
        """The true pose at the time of a message; None if it carries none."""
        fix = read_fix(message)
        if fix is None:
            return None
        if self._first is None:
            self._first, self._time = fix, now
            self._metres = _metres(self._autopilot, fix.latitude[0] * DEGREES)
            self._axes = [_Axis(self._metres[0]), _Axis(self._metres[1]), _Axis(fix.altitude_step)]
        first, seconds = self._first, now - self._time
        self._time = now
        steps = [
            self._step_centres(fix.latitude, first.latitude[0], self._metres[0]),
            self._step_centres(fix.longitude, first.longitude[0], self._metres[1]),
            [first.altitude - fix.altitude],
        ]
        for axis, centres, velocity in zip(self._axes, steps, fix.velocity, strict=True):
            axis.follow(centres, velocity, seconds)
        ned = torch.tensor([axis.value for axis in self._axes], dtype=torch.float64)
        quaternion = torch.tensor(fix.quaternion, dtype=torch.float64)
        pose = Pose(ned_to_world(ned), quaternion_to_ned(quaternion / quaternion.norm()))
        return TruePose(now, pose, ned_to_world(torch.tensor(fix.velocity, dtype=torch.float64)))

    def _step_centres(self, units: tuple[int, ...], first: int, metres: float) -> list[float]:
        """Middles of quantisation steps, metres from the first one."""
        if self._autopilot == "px4":  # it cuts off the whole coordinate
            return [(unit - first) * metres for unit in units]
        # ArduPilot cuts off the way from where it began, so that the step there is twice as wide.
        return [(unit - first + 0.5 * ((unit > first) - (unit < first))) * metres for unit in units]


def _metres(autopilot: AutopilotName, latitude: float) -> tuple[float, float]:
    """How long one unit is to the north and to the east, metres: ArduPilot's earth is a sphere, PX4's an ellipsoid."""
    if autopilot == "ardupilot":
        north = 0.011131884502145034
        return north, north * math.cos(math.radians(latitude))
    equator, eccentricity2 = 6378137.0, 6.69437999014e-3
    narrow = 1 - eccentricity2 * math.sin(math.radians(latitude)) ** 2
    unit = math.radians(DEGREES)
    north = equator * (1 - eccentricity2) / narrow**1.5
    return north * unit, equator / math.sqrt(narrow) * math.cos(math.radians(latitude)) * unit
