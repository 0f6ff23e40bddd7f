"""What can go wrong around a real autopilot's simulation: the faults of `lab serve`, and those of motion capture.

Times count from the moment at which the drone was armed, seconds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from wordwing.flight.served.faults import (
    Delay,
    Fault,
    FrozenCamera,
    LowBattery,
    PacketLoss,
    PoseDropout,
    Reboot,
    Reordering,
    Takeover,
)


@dataclass(frozen=True)
class MocapFreeze(Fault):
    """Motion capture repeats the last pose, exactly, with new times."""


@dataclass(frozen=True)
class MocapJump(Fault):
    """Motion capture takes the drone for something beside it."""

    distance: float = 0.6
    """Metres."""
    direction: float = 0.0
    """Of the wrong position from the true one, radians, world."""


@dataclass(frozen=True)
class MocapDrift(Fault):
    """Motion capture drifts away."""

    speed: float = 0.1
    """m/s."""
    direction: float = 0.0
    """Radians, world."""


KINDS: dict[str, tuple[type[Fault], str | None]] = {
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
"""All faults by the names that commands use, and which number `=VALUE` sets."""

LINK_FAULTS = (PacketLoss, Delay, Reordering)
"""Those of the link between pilot and autopilot."""


def since(fault: Fault, armed_at: float) -> Fault:
    """The same fault with its times on the clock on which the drone was armed at a moment."""
    return replace(fault, start=fault.start + armed_at)


def offset(fault: MocapJump | MocapDrift, time: float) -> tuple[float, float]:
    """By how much motion capture is wrong, metres, world."""
    distance = fault.distance if isinstance(fault, MocapJump) else fault.speed * (time - fault.start)
    return distance * math.cos(fault.direction), distance * math.sin(fault.direction)
