"""What a pilot may ask of the guardian, in memory and as JSON. Orders are wishes: the guardian decides.

Times are seconds of the clock that both share (`SystemClock`, or one `ManualClock`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from wordwing.errors import WordwingError, shown


@dataclass(frozen=True)
class TakeOff:
    """Arm, climb, hover. Once in a guardian's life."""


@dataclass(frozen=True)
class Decision:
    """Fly this until the next one, or until it is too old."""

    forward: float
    """m/s along the heading."""
    yaw_rate: float
    """rad/s, positive turns left."""
    image_time: float
    """When the picture was taken that it was made from; of a frozen camera, when its picture last changed."""
    made_at: float
    """When it was made."""


@dataclass(frozen=True)
class Hold:
    """Hover on purpose. Say it again within three seconds, or the drone lands."""


@dataclass(frozen=True)
class Land:
    """Come down."""


@dataclass(frozen=True)
class SetParameters:
    """Write the parameters that are wrong; only if the guardian was made for it."""


@dataclass(frozen=True)
class Alive:
    """The pilot is there. Say it at least twice a second: without it there is no heartbeat, and then a landing."""


@dataclass(frozen=True)
class Gone:
    """The pilot's connection has closed."""


Order = TakeOff | Decision | Hold | Land | SetParameters | Alive | Gone

KINDS: dict[str, type[Order]] = {
    "take off": TakeOff,
    "decision": Decision,
    "hold": Hold,
    "land": Land,
    "set parameters": SetParameters,
    "alive": Alive,
    "gone": Gone,
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
