"""Motion capture into the autopilot: poses of the drone as ODOMETRY or VISION_POSITION_ESTIMATE, 30 to 50 a second.

Both autopilots take ODOMETRY in MAV_FRAME_LOCAL_FRD with a body in MAV_FRAME_BODY_FRD, which alone carries a velocity.
Nothing is made up: a pose that is old, broken or the same as the last one (systems repeat it when they lose sight of
the drone) is dropped, and the autopilot's own failsafe sees the gap.
"""

from __future__ import annotations

import itertools
import json
import math
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable
from typing import Literal, NamedTuple

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.errors import WordwingError
from wordwing.flight.mavlink.clock import Clock
from wordwing.flight.mavlink.geometry import Quaternion, Vector, conjugate, euler_from_quaternion, rotate, to_ned
from wordwing.flight.mavlink.link import MavlinkLink
from wordwing.flight.mavlink.messages import Codec, Message
from wordwing.flight.mavlink.vehicle_status import AUTOPILOT, failed

Kind = Literal["odometry", "vision"]
"""ODOMETRY or VISION_POSITION_ESTIMATE."""

SYSTEM, COMPONENT = 246, 197
"""MAVLink ids of the adapter: MAV_COMP_ID_VISUAL_INERTIAL_ODOMETRY. Not the pilot's system, and no heartbeat: the
autopilot's failsafe must not take this process for the pilot."""

LEAST_RATE, MOST_RATE = 30.0, 50.0
"""Poses a second that autopilots want."""

STALE = 0.1
"""Oldest pose that is sent, seconds."""

BASE = 0.1
"""Velocities are differences over about this long, seconds."""

GAP = 0.3
"""After this long without a pose a velocity would mean nothing, seconds."""

UNIT = 0.05
"""How far from 1 a quaternion's length may be."""

FAR = 1000.0
"""Metres; no hall is so large, and numbers without bounds do not fit into a message."""


class MocapSample(NamedTuple):
    """Where motion capture saw the drone, in its own frame."""

    time: float
    """On our clock, seconds."""
    position: Vector
    """Metres; x, y left, z up, or x, y up, z right."""
    quaternion: Quaternion
    """(w, x, y, z), body to frame."""

    def to_json(self, **more: object) -> bytes:
        """As `mocap.sources` reads it."""
        return json.dumps({**self._asdict(), **more}).encode()


class MocapSource(ABC):
    """A motion-capture system."""

    ended = False
    """Whether no more will come."""
    broken = 0
    """How much has come that is no pose."""

    @abstractmethod
    def read(self, timeout: float) -> list[MocapSample]:
        """What has come, oldest first; waits for it up to some seconds."""

    def close(self) -> None:
        """Release it; may be called twice."""
        self.ended = True


class PoseRelay:
    """Chooses which poses are sent on, and as what; knows neither sockets nor clocks."""

    def __init__(self, kind: Kind = "odometry", rate: float = 40.0, *, y_up: bool = False) -> None:
        """Begin with no pose.

        Args:
            kind: As what poses are sent.
            rate: How many a second at most.
            y_up: Whether y is up in the frame of motion capture, not z.
        """
        self.kind, self.rate, self.y_up = kind, rate, y_up
        self.sent = 0
        self.dropped: Counter[str] = Counter()
        """Why poses were not sent, and how many."""
        self._last: MocapSample | None = None
        self._due = -math.inf
        self._way: deque[tuple[float, Vector]] = deque()  # times and places of the last good poses

    def update(self, sample: MocapSample, now: float) -> Message | None:
        """The message for a pose; None if it must not be sent, or is not due."""
        if faults := self._faults(sample, now):
            self.dropped[faults[0]] += 1
            return None
        self._last = sample
        position, quaternion = self._turned(sample)
        velocity = self._velocity(sample.time, position)
        if sample.time < self._due - 1e-6:
            return None
        if self.kind == "odometry" and velocity is None:
            self.dropped["without a velocity yet"] += 1
            return None
        # The next one is due by the clock of the rate, not of this pose, so that 100 a second become 40 and not 33.
        period = 1 / self.rate
        self._due = (self._due if self._due > sample.time - period else sample.time) + period
        self.sent += 1
        if velocity is None or self.kind == "vision":
            return _vision(sample.time, position, quaternion)
        return _odometry(sample.time, position, quaternion, velocity)

    def upright(self, sample: MocapSample) -> bytes:
        """A pose with z up as JSON, as `mocap.sources` reads it."""
        return MocapSample(sample.time, *self._turned(sample)).to_json()

    def _faults(self, sample: MocapSample, now: float) -> list[str]:
        """Why a pose must not be sent."""
        last = self._last or sample._replace(time=-math.inf, position=(math.nan,) * 3)
        return failed(
            (not all(map(math.isfinite, (sample.time, *sample.position, *sample.quaternion))), "not finite"),
            (abs(math.hypot(*sample.quaternion) - 1) > UNIT, "no unit quaternion"),
            (now - sample.time > STALE, "too old"),
            (max(map(abs, sample.position)) > FAR, "too far away"),
            (sample.position == (0.0, 0.0, 0.0), "out of sight"),  # what some systems say then
            (sample.time <= last.time, "not newer than the last"),
            ((sample.position, sample.quaternion) == (last.position, last.quaternion), "the same as the last"),
        )

    def _turned(self, sample: MocapSample) -> tuple[Vector, Quaternion]:
        """Position and quaternion with z up, x forward, y left."""
        length = math.sqrt(sum(number * number for number in sample.quaternion))
        w, x, y, z = (number / length for number in sample.quaternion)
        if not self.y_up:
            return sample.position, (w, x, y, z)
        a, b, c = sample.position
        return (a, -c, b), (w, x, -z, y)

    def _velocity(self, time: float, position: Vector) -> Vector | None:
        """m/s over the last tenth of a second, same frame; None for half of that after a gap."""
        if self._way and time - self._way[-1][0] > GAP:
            self._way.clear()
        self._way.append((time, position))
        while len(self._way) > 2 and self._way[1][0] <= time - BASE:
            self._way.popleft()
        before, there = self._way[0]
        # Poses that come in a burst after a gap lie so near in time that their noise would be metres a second.
        if time - before < BASE / 2 - 1e-6:
            return None
        x, y, z = ((now - then) / (time - before) for now, then in zip(position, there, strict=True))
        return x, y, z


def _odometry(time: float, position: Vector, quaternion: Quaternion, velocity: Vector) -> Message:
    """ODOMETRY of a pose and a velocity with z up; what is not known of errors is NaN, as the message wants it."""
    unknown = [math.nan] + [0.0] * 20
    return mavlink.MAVLink_odometry_message(
        round(time * 1e6),
        mavlink.MAV_FRAME_LOCAL_FRD,
        mavlink.MAV_FRAME_BODY_FRD,
        *to_ned(position),
        _to_ned(quaternion),
        *to_ned(rotate(conjugate(quaternion), velocity)),
        math.nan,
        math.nan,
        math.nan,
        unknown,
        unknown,
        0,
        mavlink.MAV_ESTIMATOR_TYPE_VISION,  # PX4's estimator never reads what comes as MAV_ESTIMATOR_TYPE_MOCAP
    )


def _vision(time: float, position: Vector, quaternion: Quaternion) -> Message:
    """VISION_POSITION_ESTIMATE of a pose with z up."""
    return mavlink.MAVLink_vision_position_estimate_message(
        round(time * 1e6),
        *to_ned(position),
        *euler_from_quaternion(_to_ned(quaternion)),
        [math.nan] + [0.0] * 20,
    )


def _to_ned(quaternion: Quaternion) -> Quaternion:
    """FLU to world as FRD to NED: half a turn about x on both sides."""
    w, x, y, z = quaternion
    return w, x, -y, -z


def relay(
    source: MocapSource,
    link: MavlinkLink,
    pose_relay: PoseRelay,
    clock: Clock,
    say: Callable[[str], None] = lambda sentence: None,
    every: float = 5.0,
    origin: OriginSender | None = None,
    guardian: MavlinkLink | None = None,
) -> None:
    """Send poses on until the source ends or the link is lost.

    Args:
        source: Where they come from.
        link: Where they go.
        pose_relay: Chooses which of them are sent, and as what.
        clock: Whose times the source gives.
        say: Shows now and then how it goes.
        every: How often, seconds.
        origin: Where the room lies, for an autopilot that needs an origin.
        guardian: Where each pose that is sent goes too, as JSON, so that a guardian knows what the autopilot gets.
    """
    codec = Codec(stream=True, system=SYSTEM, component=COMPONENT)  # a stream's also reads datagrams

    def send(message: Message | None) -> None:
        if message is not None:
            link.send(codec.pack(message))

    begun, sent = clock.now(), 0
    while not source.ended and link.lost is None:
        for sample in source.read(0.1):
            message = pose_relay.update(sample, clock.now())
            send(message)
            if message is not None and guardian is not None:
                guardian.send(pose_relay.upright(sample))
        received = link.receive()  # nearly all that comes is not for us, but must not pile up
        if origin is not None:
            for message in itertools.chain.from_iterable(map(codec.parse, received)):
                origin.update(message)
            send(origin.due(clock.now()))
        seconds = clock.now() - begun
        if seconds >= every:
            say(report(pose_relay, (pose_relay.sent - sent) / seconds, source.broken))
            begun, sent = clock.now(), pose_relay.sent
    say(report(pose_relay, None, source.broken) + ("" if link.lost is None else f"; the link was lost ({link.lost})"))


def report(pose_relay: PoseRelay, rate: float | None = None, broken: int = 0) -> str:
    """How a relay does, in a sentence; `broken` is how much came that is no pose."""
    counts = {**pose_relay.dropped, **({"that are no poses": broken} if broken else {})}
    dropped = ", ".join(f"{count} {why}" for why, count in counts.items())
    count = f"{pose_relay.sent} poses sent" if rate is None else f"{rate:.0f} poses a second"
    slow = f"; autopilots want {LEAST_RATE:.0f} to {MOST_RATE:.0f}" if rate is not None and rate < LEAST_RATE else ""
    return count + slow + (f"; dropped: {dropped}" if dropped else "")


PERIOD = 1.0
"""How often the origin is sent, seconds: an autopilot ignores it until its estimator is aligned."""


class OriginSender:
    """Sends a disarmed autopilot its global origin until it reports one."""

    def __init__(self, latitude: float, longitude: float, altitude: float = 0.0) -> None:
        """Begin with nothing sent.

        Args:
            latitude: Degrees, north is positive.
            longitude: Degrees, east is positive.
            altitude: Above the sea, metres.
        """
        self.latitude, self.longitude, self.altitude = latitude, longitude, altitude
        self.known = False
        """Whether the autopilot has an origin, ours or another that it had before."""
        self._system: int | None = None
        self._armed = True  # until it says otherwise
        self._due = -math.inf

    @classmethod
    def parse(cls, text: str) -> OriginSender:
        """From "LATITUDE,LONGITUDE" or "LATITUDE,LONGITUDE,ALTITUDE"; each mistake gives one sentence."""
        wanted = "it must be LATITUDE,LONGITUDE or LATITUDE,LONGITUDE,ALTITUDE, as in 52.5,13.4,40"
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            numbers = []
        if len(numbers) not in (2, 3) or not all(map(math.isfinite, numbers)):
            raise WordwingError(f"--origin is {text[:80]!r}; {wanted}")
        if any(abs(number) > most for number, most in zip(numbers, (90, 180, 10_000), strict=False)):
            raise WordwingError(f"--origin is {text[:80]!r}, which is nowhere on Earth; {wanted}")
        return cls(*numbers)

    def update(self, message: Message) -> None:
        """Take in a message from the link."""
        if message.get_srcComponent() != AUTOPILOT:
            return
        if message.get_type() == "HEARTBEAT" and message.autopilot == mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA:
            self._system = message.get_srcSystem()
            self._armed = bool(message.base_mode & mavlink.MAV_MODE_FLAG_SAFETY_ARMED)
        elif message.get_type() == "GPS_GLOBAL_ORIGIN":
            self.known = True

    def due(self, now: float) -> Message | None:
        """What to send now, if anything."""
        if self.known or self._armed or self._system is None or now < self._due:
            return None
        self._due = now + PERIOD
        return mavlink.MAVLink_set_gps_global_origin_message(
            self._system,
            round(self.latitude * 1e7),
            round(self.longitude * 1e7),
            round(self.altitude * 1e3),
        )
