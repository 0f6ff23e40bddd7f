"""What the guardian sends and tells: packets for the link, events for the log."""

from __future__ import annotations

from wordwing.flight.messages import Codec, Message
from wordwing.flight.phases import Event


class Outbox:
    """Packets until they are taken, events until they are cleared. Nothing is sent without an event."""

    def __init__(self, codec: Codec) -> None:
        self.events: list[Event] = []
        self._codec = codec
        self._packets: list[bytes] = []

    def note(self, kind: str, text: str, now: float, **values: object) -> None:
        """Tell something."""
        self.events.append(Event(now, kind, text, values))

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
