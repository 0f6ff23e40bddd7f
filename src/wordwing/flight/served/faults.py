"""Faults that can be injected into a drone, its link, its motion capture and its camera.

Each has a start and a duration, seconds: of lab time in the served lab, after arming around an autopilot's own
simulation. Everything random in them comes from one seed.
"""

import heapq
import itertools
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from wordwing.errors import WordwingError, did_you_mean
from wordwing.lab.airframe import Vector
from wordwing.lab.wind import Wind, WindConfig

LinkDirection = Literal["in", "out", "both"]
"""To the vehicle, from it, or both."""


@dataclass(frozen=True)
class Fault:
    """Base of all faults."""

    start: float
    """When, seconds of lab time."""
    duration: float = math.inf
    """For how long, seconds."""

    def active(self, time: float) -> bool:
        """Whether it is active at a time."""
        return self.start <= time < self.start + self.duration


@dataclass(frozen=True)
class LinkFault(Fault):
    """Base of the faults of the link between pilot and autopilot, which then must go through the bridge."""

    direction: LinkDirection = "both"


@dataclass(frozen=True)
class PacketLoss(LinkFault):
    """Some packets never arrive."""

    share: float = 0.5
    """Of all packets, in [0, 1]; 1 is a dead link."""


@dataclass(frozen=True)
class Delay(LinkFault):
    """All packets arrive later, in their order."""

    seconds: float = 0.3


@dataclass(frozen=True)
class Reordering(LinkFault):
    """Some packets are overtaken by later ones."""

    share: float = 0.3
    """Of all packets."""
    seconds: float = 0.12
    """By how much they are late at most."""


@dataclass(frozen=True)
class FrozenCamera(Fault):
    """The camera stops delivering new images."""

    still: bool = True
    """Whether the last image is repeated with new timestamps; otherwise no image comes."""


@dataclass(frozen=True)
class PoseJump(Fault):
    """The measured position jumps; the autopilot's estimate follows within four seconds."""

    offset: tuple[float, float] = (1.0, 0.5)
    """Error of the measured position, metres, world."""


@dataclass(frozen=True)
class PoseDrift(Fault):
    """The measured position, and the autopilot's estimate, drift in a random direction."""

    speed: float = 0.05
    """m/s."""


@dataclass(frozen=True)
class PoseDropout(Fault):
    """Motion capture loses the drone. It flies on dead reckoning, and its velocity error grows."""

    drift: float = 0.03
    """Growth of the velocity error, m/s for each second, in a random direction."""
    reported: bool = True
    """Whether the dead-reckoned position is still sent, as by real autopilots; otherwise LOCAL_POSITION_NED stops."""


@dataclass(frozen=True)
class LowBattery(Fault):
    """The battery is nearly empty."""

    level: float = 15.0
    """Percent left, at most."""


@dataclass(frozen=True)
class WindFault(Fault):
    """Wind on top of the lab's own."""

    mean: tuple[float, float] = (0.0, 0.0)
    """m/s, world."""
    gusts: float = 0.4
    """Standard deviation of each horizontal component, m/s."""
    most: float = 1.0
    """Limit of the wind speed, m/s."""


@dataclass(frozen=True)
class RefusedArming(Fault):
    """The autopilot refuses to arm."""

    why: str = "Compasses inconsistent"
    shown: bool = False
    """Whether the pre-arm bit of SYS_STATUS shows it."""


@dataclass(frozen=True)
class Takeover(Fault):
    """The safety pilot changes the mode by the transmitter, once, and flies from then on; the lab then hovers."""

    stabilize: bool = False
    """Whether to the mode without position hold, STABILIZE or STABILIZED, instead of LOITER or POSCTL."""


@dataclass(frozen=True)
class Reboot(Fault):
    """The autopilot reboots, once. Its clock goes back to 0 and its mode to the first; in the air it then lands.

    During `duration` it sends nothing; a real drone would fall.
    """

    duration: float = 1.0


@dataclass(frozen=True)
class MocapFreeze(Fault):
    """Motion capture repeats the last pose, exactly, with new times."""


@dataclass(frozen=True)
class MocapJump(Fault):
    """The measured position jumps."""

    distance: float = 0.6
    """Metres."""
    bearing: float = 0.0
    """Of the measured position from the true one, radians, world."""

    def offset(self, _time: float) -> tuple[float, float]:
        """Error of the measured position, metres, world."""
        return self.distance * math.cos(self.bearing), self.distance * math.sin(self.bearing)


@dataclass(frozen=True)
class MocapDrift(Fault):
    """The measured position drifts."""

    speed: float = 0.1
    """m/s."""
    bearing: float = 0.0
    """Radians, world."""

    def offset(self, time: float) -> tuple[float, float]:
        """Error of the measured position, metres, world."""
        distance = self.speed * (time - self.start)
        return distance * math.cos(self.bearing), distance * math.sin(self.bearing)


FaultKinds = Mapping[str, tuple[type[Fault], str | None]]
"""Fault classes by their names on the command line, with the field that `=VALUE` sets."""

LAB_FAULTS: FaultKinds = {
    "loss": (PacketLoss, "share"),
    "delay": (Delay, "seconds"),
    "reordering": (Reordering, "share"),
    "camera": (FrozenCamera, None),
    "jump": (PoseJump, None),
    "drift": (PoseDrift, None),
    "dropout": (PoseDropout, "drift"),
    "battery": (LowBattery, "level"),
    "wind": (WindFault, "gusts"),
    "arming": (RefusedArming, None),
    "takeover": (Takeover, None),
    "reboot": (Reboot, None),
}
"""Faults of the served lab."""

SITL_FAULTS: FaultKinds = {
    "loss": (PacketLoss, "share"),
    "delay": (Delay, "seconds"),
    "reordering": (Reordering, "share"),
    "camera": (FrozenCamera, None),
    "dropout": (PoseDropout, None),
    "freeze": (MocapFreeze, None),
    "jump": (MocapJump, "distance"),
    "drift": (MocapDrift, "speed"),
    "battery": (LowBattery, "level"),
    "takeover": (Takeover, None),
    "reboot": (Reboot, None),
}
"""Faults around an autopilot's own simulation."""

FAULT = re.compile(r"(?P<kind>[a-z]+)@(?P<start>[0-9.]+)(\+(?P<duration>[0-9.]+))?(=(?P<value>[0-9.]+))?")

SMOOTHED = 4.0
"""How long the estimate takes to follow a jump of the measured position, seconds."""

F = TypeVar("F", bound=Fault)
L = TypeVar("L", bound=LinkFault)


def parse_fault(text: str, kinds: FaultKinds = LAB_FAULTS) -> Fault:
    """Parse a fault from the command line, `KIND@START[+DURATION][=VALUE]`."""
    found = FAULT.fullmatch(text)
    if found is None:
        raise WordwingError(f'--fault is "{text}"; it must be like takeover@20 or loss@15+2=0.8')
    kind = found["kind"]
    if kind not in kinds:
        hint = did_you_mean(kind, list(kinds)) or f"; the kinds are {', '.join(kinds)}"
        raise WordwingError(f'--fault is "{text}"; there is no fault "{kind}"{hint}')
    fault, value_field = kinds[kind]
    numbers: dict[str, float] = {}
    for name, field in (("start", "start"), ("duration", "duration"), ("value", value_field)):
        if found[name] is None:
            continue
        if field is None:
            raise WordwingError(f'--fault is "{text}"; a fault "{kind}" has no value')
        try:
            numbers[field] = float(found[name])
        except ValueError:
            raise WordwingError(f'--fault is "{text}"; "{found[name]}" is not a number') from None
    if numbers.get("share", 0.0) > 1.0:
        raise WordwingError(f'--fault is "{text}"; a share must be from 0 to 1')
    return fault(**numbers)


class FaultSchedule:
    """The faults of one flight, with their random directions and winds."""

    def __init__(self, faults: Iterable[Fault], seed: int, tick: float) -> None:
        self._faults = tuple(faults)
        self._done: set[int] = set()
        rng = np.random.default_rng([seed, 11])
        angle = rng.uniform(-math.pi, math.pi)
        self._drift = (math.cos(angle), math.sin(angle))
        self._winds = {
            index: Wind(WindConfig((*fault.mean, 0.0), fault.gusts, 0.0), tick)
            for index, fault in enumerate(self._faults)
            if isinstance(fault, WindFault)
        }
        for index, wind in self._winds.items():
            wind.reset(int(rng.integers(2**31)) + index)

    def add(self, fault: Fault) -> None:
        """Add a fault; not wind, which must be given from the start."""
        self._faults = (*self._faults, fault)

    def active(self, kind: type[F], time: float) -> F | None:
        """The active fault of a kind, if any."""
        return next((fault for fault in self._faults if isinstance(fault, kind) and fault.active(time)), None)

    def trigger(self, kind: type[F], time: float) -> F | None:
        """Like `active`, but returns each fault only once."""
        for index, fault in enumerate(self._faults):
            if isinstance(fault, kind) and fault.active(time) and index not in self._done:
                self._done.add(index)
                return fault
        return None

    def velocity_error(self, time: float) -> Vector | None:
        """Error of the autopilot's velocity estimate, m/s, world; None while motion capture works."""
        dropout, drift = self.active(PoseDropout, time), self.active(PoseDrift, time)
        if dropout is None and drift is None:
            return None
        speed = 0.0 if dropout is None else dropout.drift * (time - dropout.start)
        speed += 0.0 if drift is None else drift.speed
        return self._drift[0] * speed, self._drift[1] * speed, 0.0

    def measured_offset(self, time: float) -> tuple[float, float]:
        """Error of the position that motion capture measures, metres, world."""
        jump, drift = self.active(PoseJump, time), self.active(PoseDrift, time)
        x, y = (0.0, 0.0) if jump is None else jump.offset
        drifted = 0.0 if drift is None else drift.speed * (time - drift.start)
        x, y = x + self._drift[0] * drifted, y + self._drift[1] * drifted
        for fault in (self.active(MocapJump, time), self.active(MocapDrift, time)):
            dx, dy = (0.0, 0.0) if fault is None else fault.offset(time)
            x, y = x + dx, y + dy
        return x, y

    def estimate_offset(self, time: float) -> tuple[float, float]:
        """Error of the autopilot's position estimate, metres, world."""
        x, y = self.measured_offset(time)
        jump, dropout = self.active(PoseJump, time), self.active(PoseDropout, time)
        if jump is not None:
            missing = 1 - min(1.0, (time - jump.start) / SMOOTHED)
            x, y = x - missing * jump.offset[0], y - missing * jump.offset[1]
        reckoned = 0.0 if dropout is None else dropout.drift * (time - dropout.start) ** 2 / 2
        return x + self._drift[0] * reckoned, y + self._drift[1] * reckoned

    def gust(self, time: float) -> Vector | None:
        """Wind on top of the lab's own, m/s, world; must be called once per tick."""
        blowing = None
        for index, wind in self._winds.items():
            fault = self._faults[index]
            x, y, _z = wind.step()
            if isinstance(fault, WindFault) and fault.active(time):
                strength = math.hypot(x, y)
                share = min(1.0, fault.most / strength) if strength > 0 else 0.0
                blowing = (x * share, y * share, 0.0)
        return blowing


class LossyChannel:
    """One direction of the link, which loses, delays and reorders packets."""

    def __init__(self, faults: FaultSchedule, direction: LinkDirection, seed: int) -> None:
        self._faults, self._direction = faults, direction
        self._rng = np.random.default_rng([seed, 12 if direction == "in" else 13])
        self._waiting: list[tuple[float, int, object]] = []
        self._count = itertools.count()

    def send(self, packet: object, time: float) -> None:
        """Send a packet at a time."""
        loss, delay = self._fault(PacketLoss, time), self._fault(Delay, time)
        if loss is not None and self._rng.random() < loss.share:
            return
        due = time + (delay.seconds if delay is not None else 0.0)
        reordering = self._fault(Reordering, time)
        if reordering is not None and self._rng.random() < reordering.share:
            due += reordering.seconds * self._rng.random()
        heapq.heappush(self._waiting, (due, next(self._count), packet))

    def receive(self, time: float) -> list:
        """All packets that have arrived by a time."""
        arrived = []
        while self._waiting and self._waiting[0][0] <= time + 1e-9:
            arrived.append(heapq.heappop(self._waiting)[2])
        return arrived

    def _fault(self, kind: type[L], time: float) -> L | None:
        fault = self._faults.active(kind, time)
        return fault if fault is not None and fault.direction in (self._direction, "both") else None
