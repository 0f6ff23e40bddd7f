"""The guardian's phases, and what it tells: its state and its events."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from wordwing.flight.parameters import Finding


class Phase(Enum):
    """Where a flight stands."""

    CONNECTING = "connecting"
    """On the floor; something still speaks against arming."""
    READY = "ready"
    """On the floor; nothing does."""
    TAKING_OFF = "taking off"
    HOLDING = "holding"
    """In the air, at zero velocity."""
    FLYING = "flying"
    """In the air, on a pilot's decision."""
    LANDING = "landing"
    LANDED = "landed"
    """Disarmed after a flight; final, nothing arms again."""
    RELEASED = "released"
    """In someone else's hands; final, nothing is sent any more but heartbeats, until it is disarmed."""
    LOST = "lost"
    """The autopilot is not heard any more."""


GROUND = (Phase.CONNECTING, Phase.READY)
"""Before a flight."""

FINAL = (Phase.LANDED, Phase.RELEASED)
"""After it."""

AIRBORNE = (Phase.TAKING_OFF, Phase.HOLDING, Phase.FLYING)
"""While limits can still bring the drone down."""


@dataclass(frozen=True)
class Event:
    """Something that a log should hold."""

    time: float
    """Seconds of our clock."""
    kind: str
    """"phase", "sent", "setpoint", "would send", "order", "refused", "told" or "note"."""
    text: str
    """In plain words."""
    values: dict[str, object] = field(default_factory=dict)
    """Numbers that belong to it."""

    def to_json(self) -> dict[str, object]:
        """One JSON object."""
        return {"time": round(self.time, 4), "kind": self.kind, "text": self.text, **self.values}


@dataclass(frozen=True)
class State:
    """What a pilot may know."""

    time: float
    """Seconds of our clock."""
    phase: Phase
    why: str
    """Why this phase."""
    done: bool
    """Whether nothing more will come of this flight."""
    unready: tuple[str, ...]
    """What speaks against arming; empty when the drone is ready or in flight."""
    autopilot: str | None
    system: int | None
    """MAVLink system id."""
    version: str | None
    lab: bool
    """Whether the vehicle says that it is wordwing's lab."""
    armed: bool
    mode: str
    battery: float | None
    """Share that remains."""
    pose: tuple[float, ...] | None
    """x, y, z in metres, roll, pitch, yaw in radians, world frame."""
    pose_time: float | None
    """When it was there, seconds of our clock."""
    pose_age: float | None
    """Seconds."""
    heartbeat_age: float | None
    """Seconds."""
    setpoint: tuple[float, float, float] | None
    """Forward m/s, yaw rate rad/s (left positive) and up m/s as last sent, after limits and safety."""
    decision_time: float | None
    """`made_at` of the decision that it came from; None for a hover."""
    parameters: tuple[Finding, ...]

    def to_json(self) -> dict[str, object]:
        """One JSON object."""
        return {**asdict(self), "phase": self.phase.value}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> State:
        """What `to_json` wrote, after a way through text."""
        values: dict[str, Any] = {}
        for name, value in document.items():
            values[name] = tuple(value) if isinstance(value, list) else value
        values["phase"] = Phase(document["phase"])
        values["parameters"] = tuple(Finding(**finding) for finding in document["parameters"])
        return cls(**values)
