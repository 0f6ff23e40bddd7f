"""What a pilot may order of the guardian, in memory and as JSON. The guardian decides what of it is flown.

Times are seconds of the clock that both share (`SystemClock`, or one `ManualClock`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import Any, Literal

from wordwing.errors import WordwingError, shown
from wordwing.flight.mavlink.messages import Codec, Message
from wordwing.flight.mavlink.parameters import ParameterFinding


@dataclass(frozen=True)
class TakeOff:
    """Arm, climb, hover. A guardian does it once."""


@dataclass(frozen=True)
class Decision:
    """Fly this until the next one, or until it is too old."""

    forward: float
    """m/s along the heading."""
    yaw_rate: float
    """rad/s, positive turns left."""
    image_time: float
    """When the image was taken that it was made from; of a frozen camera, when its image last changed."""
    made_at: float
    """When it was made."""


@dataclass(frozen=True)
class Hold:
    """Hover on purpose. Send it again within three seconds, or the drone lands."""


@dataclass(frozen=True)
class Land:
    """Come down."""


@dataclass(frozen=True)
class SetParameters:
    """Write the parameters that are wrong; only if the guardian was made for it."""


@dataclass(frozen=True)
class KeepAlive:
    """The pilot is there. Send it at least twice a second: without it there is no heartbeat, and then a landing."""


@dataclass(frozen=True)
class PilotDisconnected:
    """The pilot's connection has closed."""


Order = TakeOff | Decision | Hold | Land | SetParameters | KeepAlive | PilotDisconnected

KINDS: dict[str, type[Order]] = {
    "take off": TakeOff,
    "decision": Decision,
    "hold": Hold,
    "land": Land,
    "set parameters": SetParameters,
    "alive": KeepAlive,
    "gone": PilotDisconnected,
}


def to_json(order: Order) -> dict[str, object]:
    """An order as a JSON object: {"order": "decision", "forward": 0.5, …}."""
    name = next(name for name, kind in KINDS.items() if kind is type(order))
    return {"order": name, **asdict(order)}


def from_json(document: object) -> Order:
    """The order that `to_json` wrote; a `WordwingError` for anything else."""
    name = document.get("order") if isinstance(document, Mapping) else None
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None or not isinstance(document, Mapping):
        raise WordwingError(f"an order must be one of {', '.join(KINDS)}, not {shown(name or document)}")
    values = {}
    for entry in fields(kind):
        value = document.get(entry.name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise WordwingError(f"{entry.name} of a {name} must be a number, not {shown(value)}")
        values[entry.name] = float(value)
    return kind(**values)


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
    """The autopilot has fallen silent."""


GROUND = (Phase.CONNECTING, Phase.READY)
"""Before a flight."""

FINAL = (Phase.LANDED, Phase.RELEASED)
"""After it."""

AIRBORNE = (Phase.TAKING_OFF, Phase.HOLDING, Phase.FLYING)
"""While limits can still bring the drone down."""


PhaseReason = Literal["ordered", "no decision", "old pose"]
"""Why a phase has begun, where a program acts on it: no program reads the sentence beside it."""


@dataclass(frozen=True)
class GuardianEvent:
    """Something that a log should hold."""

    time: float
    """Seconds of our clock."""
    kind: str
    """"phase", "sent", "setpoint", "would send", "order", "refused", "told" or "note"."""
    text: str
    """For people."""
    values: dict[str, object] = field(default_factory=dict)
    """Numbers that belong to it."""

    def to_json(self) -> dict[str, object]:
        """One JSON object."""
        return {"time": round(self.time, 4), "kind": self.kind, "text": self.text, **self.values}


@dataclass(frozen=True)
class GuardianState:
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
    parameters: tuple[ParameterFinding, ...]
    reason: PhaseReason | None = None
    """Of `why`, for programs."""

    def to_json(self) -> dict[str, object]:
        """One JSON object."""
        return {**asdict(self), "phase": self.phase.value}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> GuardianState:
        """What `to_json` wrote, after a way through text."""
        values: dict[str, Any] = {}
        for name, value in document.items():
            values[name] = tuple(value) if isinstance(value, list) else value
        values["phase"] = Phase(document["phase"])
        values["parameters"] = tuple(ParameterFinding(**finding) for finding in document["parameters"])
        return cls(**values)


class Outbox:
    """Packets until they are taken, events until they are cleared. Nothing is sent without an event."""

    def __init__(self, codec: Codec) -> None:
        self.events: list[GuardianEvent] = []
        self._codec = codec
        self._packets: list[bytes] = []

    def note(self, kind: str, text: str, now: float, **values: object) -> None:
        """Add an event."""
        self.events.append(GuardianEvent(now, kind, text, values))

    def send(self, message: Message, now: float) -> None:
        """Send a command or a question."""
        self.note("sent", in_words(message), now)
        self._packets.append(self._codec.pack(message))

    def send_quietly(self, message: Message) -> None:
        """Send something that has its own event, or a heartbeat, which would fill a log with nothing."""
        self._packets.append(self._codec.pack(message))

    def take(self) -> list[bytes]:
        """All packets since it was last asked."""
        packets, self._packets = self._packets, []
        return packets


def in_words(message: Message) -> str:
    """One of our messages for people: its name and its fields."""
    fields = {name: value for name, value in message.to_dict().items() if name != "mavpackettype"}
    return f"{message.get_type()} {', '.join(f'{name}={value}' for name, value in fields.items())}"
