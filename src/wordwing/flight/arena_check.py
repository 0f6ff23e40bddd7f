"""Is the arena where the autopilot thinks it is? The operator carries the disarmed drone to known places.

At the centre and at two corners beside the red fence the drone stands still with its nose towards that fence. Three
places that are not in a line also show a frame that is mirrored; the nose shows a heading that is not the drone's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from wordwing.errors import WordwingError
from wordwing.flight.arena import Arena
from wordwing.flight.mavlink.clock import Clock
from wordwing.flight.mavlink.flight_stacks import INVALID, flight_stack
from wordwing.flight.mavlink.geometry import quaternion_from_euler
from wordwing.flight.mavlink.link import MavlinkLink
from wordwing.flight.mavlink.messages import Codec, MessageFactory, heartbeat
from wordwing.flight.mavlink.parse_message import Attitude, Position, VehicleHeartbeat, parse_message
from wordwing.flight.mavlink.vehicle_status import AUTOPILOT
from wordwing.flight.mocap.relay import MocapSource
from wordwing.frames import ARENA_HALF

TOLERANCE = 0.1
"""How far from its place the drone may seem to be, metres."""

HEADING_TOLERANCE = math.radians(10)
"""How far from the red fence its nose may seem to point, radians."""

SECONDS = 2.0
"""How long the drone is looked at in each place."""

STILL, STILL_HEADING = 0.03, math.radians(3)
"""How far it may seem to move meanwhile, metres and radians from first to last and side to side."""

LEAST = 10
"""Readings that are needed in that time."""


class MovedError(WordwingError):
    """The drone did not stand still; asking again may help."""


@dataclass(frozen=True)
class PoseReading:
    """The pose that the autopilot reports at one moment, local frame with z up."""

    position: tuple[float, float, float]
    """Metres."""
    yaw: float
    """Radians, counter-clockwise from north."""
    armed: bool


@dataclass(frozen=True)
class CheckPoint:
    """Where the operator puts the drone."""

    name: str
    where: str
    """In words."""
    x: float
    y: float
    """Metres, world frame."""


def places(inset: float) -> tuple[CheckPoint, ...]:
    """The centre and two corners; there the drone stands so many metres from both fences."""
    near = ARENA_HALF - inset
    away = f"{inset:.2f} m from both fences" if inset else "where the fences meet"
    return (
        CheckPoint("centre", "the centre of the arena", 0.0, 0.0),
        CheckPoint("red-yellow corner", f"the corner of the red and the yellow fence, {away}", near, near),
        CheckPoint("red-white corner", f"the corner of the red and the white fence, {away}", near, -near),
    )


def measure(drone: MavlinkDrone, seconds: float = SECONDS) -> PoseReading:
    """The mean of some seconds of a drone that stands still and is not armed; else a `WordwingError`."""
    found = drone.readings(seconds)
    if any(reading.armed for reading in found):
        raise WordwingError("the drone is armed; never carry an armed drone: disarm it and begin again")
    if len(found) < LEAST:
        raise WordwingError(
            f"the autopilot gave {len(found)} poses in {seconds:g} s; it needs a local position (motion capture) "
            "before the arena can be checked"
        )
    positions = np.array([reading.position for reading in found])
    yaws = np.array([reading.yaw for reading in found])
    if not (np.isfinite(positions).all() and np.isfinite(yaws).all()):
        raise WordwingError("the autopilot's poses are not finite")
    mean = math.atan2(np.sin(yaws).mean(), np.cos(yaws).mean())
    moved = float(np.ptp(positions, axis=0).max())
    turned = float(np.ptp([math.remainder(yaw - mean, math.tau) for yaw in yaws]))
    if moved > STILL or turned > STILL_HEADING:
        raise MovedError(
            f"the drone moved by {moved:.3f} m and {math.degrees(turned):.1f}°; put it down and let go of it"
        )
    x, y, z = positions.mean(axis=0).tolist()
    return PoseReading((x, y, z), mean, armed=False)


@dataclass(frozen=True)
class PointError:
    """One place, as it should be and as it is."""

    place: CheckPoint
    found: tuple[float, float, float]
    """Metres, world frame."""
    error: float
    """Metres from where it should be."""
    heading: float
    """Radians from the direction of the red fence."""


def compare(arena: Arena, visited: Sequence[tuple[CheckPoint, PoseReading]], stand: float) -> list[PointError]:
    """What an arena makes of readings.

    Args:
        arena: Where the arena is said to lie.
        visited: Places and what was read there.
        stand: Height of the autopilot's own place above the floor when the drone stands, metres.
    """
    rows = []
    for place, reading in visited:
        pose = arena.world_pose(reading.position, quaternion_from_euler(0.0, 0.0, reading.yaw))
        error = math.dist(pose.position, (place.x, place.y, stand))
        rows.append(PointError(place, pose.position, error, pose.yaw))
    return rows


def wrong(rows: Sequence[PointError]) -> str | None:
    """What is worst about rows that are not all good, in a few words; None if they are."""
    far, turned = max(rows, key=lambda row: row.error), max(rows, key=lambda row: abs(row.heading))
    if far.error > TOLERANCE:
        return f"{far.error:.2f} m off at the {far.place.name} ({TOLERANCE} m is the most)"
    if abs(turned.heading) > HEADING_TOLERANCE:
        off, most = math.degrees(abs(turned.heading)), math.degrees(HEADING_TOLERANCE)
        return f"the nose is {off:.0f}° off at the {turned.place.name} ({most:.0f}° is the most)"
    return None


def fitted(visited: Sequence[tuple[CheckPoint, PoseReading]], stand: float, like: Arena | None = None) -> Arena:
    """The arena that fits readings best, rounded as a person would write it."""
    known = [(place.x, place.y, stand) for place, _ in visited]
    return Arena.fit(known, [reading.position for _, reading in visited], like).rounded()


def table(rows: Sequence[PointError], stand: float) -> str:
    """What was found, for people."""
    lines = [f"{'place':<18} {'should be (x, y, z)':>22} {'is':>22} {'off by':>8} {'nose off':>9}"]
    for row in rows:
        should = f"{row.place.x:+.2f} {row.place.y:+.2f} {stand:.2f}"
        found = "{:+.2f} {:+.2f} {:.2f}".format(*row.found)
        mark = "" if wrong([row]) is None else "  <-"
        heading = f"{math.degrees(row.heading):+.1f}°"
        lines.append(f"{row.place.name:<18} {should:>22} {found:>22} {row.error:>6.2f} m {heading:>9}{mark}")
    return "\n".join(lines)


def visit(
    drone: MavlinkDrone,
    where: Sequence[CheckPoint],
    ask: Callable[[str], None],
    say: Callable[[str], None],
    attempts: int = 3,
) -> list[tuple[CheckPoint, PoseReading]]:
    """Have the operator carry the drone from place to place.

    Args:
        drone: It.
        where: In which order.
        ask: Shows a sentence and comes back when the operator has done it.
        say: Shows a sentence.
        attempts: How often a drone that moved is looked at in each place.
    """
    visited = []
    for place in where:
        for attempt in range(1, attempts + 1):
            ask(f"put the disarmed drone down at {place.where}, its nose towards the red fence, and press Enter")
            try:
                visited.append((place, measure(drone)))
                break
            except MovedError as error:
                if attempt == attempts:
                    raise
                say(str(error))
    return visited


class MavlinkDrone:
    """A drone on a link, which is only asked to send its pose more often."""

    def __init__(
        self, link: MavlinkLink, clock: Clock, codec: Codec | None = None, mocap: MocapSource | None = None
    ) -> None:
        """Nothing is sent yet.

        Args:
            link: To the autopilot.
            clock: Whose seconds count.
            codec: Bytes to messages and back; None for a link of datagrams without signing.
            mocap: Whose heights count, as they do in flight: the autopilot's own are off by some centimetres, and
                differently after each boot. None takes the autopilot's.
        """
        self._link, self._clock, self._mocap = link, clock, mocap
        self._height: float | None = None
        self._codec = codec or Codec()
        self._factory: MessageFactory | None = None  # for the first autopilot on the link
        self._heartbeat_at = -math.inf
        self._armed = False
        self._yaw: float | None = None

    def connect(self, timeout: float = 10.0) -> None:
        """Wait for the autopilot and for where it is; a `WordwingError` says what did not come."""
        end = self._clock.now() + timeout
        found = False
        while self._clock.now() < end and not (found and self._factory is not None):
            found |= bool(self._receive(0.1))
        if self._factory is None:
            raise WordwingError(f"no autopilot was heard for {timeout:g} s ({self._link.lost or 'nothing came'})")
        if not found:
            raise WordwingError(
                f"{self._factory.stack.name} gives no local position and attitude; is motion capture on?"
                if self._mocap is None or self._height is not None
                else "no motion capture was heard; wordwing flight mocap must run, and send it where --mocap says"
            )

    def idle(self) -> None:
        """Keep the link alive while the operator walks, and drop what comes meanwhile."""
        self._receive(0.0)

    def readings(self, seconds: float) -> list[PoseReading]:
        """The poses that it reports during the next seconds."""
        for _bite in range(1000):  # what came while the operator walked
            if not self._link.receive():
                break
        end = self._clock.now() + seconds
        found = []
        while self._clock.now() < end:
            found += self._receive(min(0.1, end - self._clock.now()))
        return found + self._receive(0.0)  # what has come while this process had to wait

    def _receive(self, timeout: float) -> list[PoseReading]:
        now = self._clock.now()
        if now >= self._heartbeat_at + 1.0:
            self._heartbeat_at = now
            self._link.send(self._codec.pack(heartbeat()))
            if self._factory is not None:  # again and again: a packet may get lost
                for message in (32, 30):  # LOCAL_POSITION_NED, ATTITUDE
                    self._link.send(self._codec.pack(self._factory.interval(message, 20.0)))
        found = []
        for pose in self._mocap.read(0.0) if self._mocap is not None else ():
            self._height = pose.position[2]
        measured = self._mocap is None or self._height is not None
        for data in self._link.receive(timeout):
            for message in self._codec.parse(data):
                system = message.get_srcSystem()
                foreign = self._factory is not None and self._factory.system != system
                if message.get_srcComponent() != AUTOPILOT or foreign:
                    continue  # a camera, or another drone
                match parse_message(message):
                    case VehicleHeartbeat() as beat if beat.autopilot != INVALID:
                        self._armed = beat.armed
                        if self._factory is None:
                            self._factory = MessageFactory(flight_stack(beat.autopilot), system)
                            self._heartbeat_at = -math.inf
                    case Attitude(angles=(_, _, yaw)) if self._factory is not None:
                        self._yaw = yaw
                    case Position(position=(x, y, z)) if self._yaw is not None and measured:
                        height = z if self._height is None else self._height
                        found.append(PoseReading((x, y, height), self._yaw, self._armed))
        return found
