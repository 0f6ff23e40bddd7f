"""What a sender process is told at its start, as JSON: the link, the arena, the margins, the log."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from wordwing.flight.arena import Arena
from wordwing.flight.options import MOCAP
from wordwing.flight.safety import Fence


@dataclass(frozen=True)
class Setup:
    """One flight's link."""

    url: str
    """As `link.open_link` takes it."""
    arena: Arena
    mocap: str = MOCAP
    """Where the poses of motion capture come to, as `mocap_sources.open_source` takes it."""
    fence: Fence | None = None
    """Other margins than the arena's, for the lab."""
    log: str | None = None
    """Folder for `events.jsonl` and `flight.tlog`; None keeps no log."""
    key: str | None = None
    """File with a key for MAVLink 2 signing: 32 bytes, or 64 hexadecimal digits."""
    dry: bool = False
    may_set_parameters: bool = False
    speed: float = 1.0
    """Of the clock; other than 1 only for a lab that is served at that speed."""

    def to_json(self) -> str:
        """One JSON object."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Setup:
        """What `to_json` wrote."""
        document: dict[str, Any] = json.loads(text)
        arena = document.pop("arena")
        fence = document.pop("fence")
        return cls(
            arena=Arena(**{**arena, "fences": tuple(arena["fences"])}),
            fence=None if fence is None else Fence(**fence),
            **document,
        )
