"""The packet filter of the served lab: which MAVLink packets it accepts, and from whom.

It accepts one companion at a time (PX4 only the first one until it reboots). It drops repeated and late packets,
packets that are corrupt, not finite or addressed to another system and, with a key, packets not signed with it.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterator
from typing import Any

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.flight.mavlink.signing import SIGNATURE, SIGNED, Verifier

PEER_TIMEOUT = 5.0
"""How long a companion may be silent before another sender is accepted, seconds."""

SEQUENCE_TIMEOUT = 1.0
"""After such a silence sequence numbers may restart, seconds: the companion may have been restarted."""

WINDOW = 128
"""How many of the 256 sequence numbers count as older than the newest one."""

SYSTEM, COMPONENT = 1, 1
"""The served lab's own ids."""

V1, V2 = 0xFE, 0xFD


class PacketFilter:
    """Parses datagrams into the messages that are accepted."""

    def __init__(
        self,
        key: bytes | None = None,
        signing_time: int = 0,
        *,
        params_bytewise: bool = False,
        first_peer_only: bool = False,
    ) -> None:
        """Begin without a companion.

        Args:
            key: [32] MAVLink 2 signing; None takes unsigned packets.
            signing_time: Our own time in MAVLink's 10 µs; a stream that begins more than a minute before it is old.
            params_bytewise: Whether the float of a PARAM_SET may hold the bytes of an integer, which may look like NaN.
            first_peer_only: Whether it accepts only the first peer until it reboots, as PX4 does.
        """
        self.dropped: Counter[str] = Counter()
        self._params_bytewise, self._first_peer_only, self._began = params_bytewise, first_peer_only, signing_time
        self._verifier = None if key is None else Verifier(key, signing_time)
        self._codec = mavlink.MAVLink(None)
        self.companion: Any = None
        """The address that is accepted and answered."""
        self._last_packet = -math.inf
        self._sequences: dict[tuple[int, int], tuple[int, float]] = {}

    @property
    def signing_time(self) -> int:
        """The latest signing time seen, in MAVLink's 10 µs."""
        return self._began if self._verifier is None else self._verifier.now

    def reset(self) -> None:
        """The autopilot has rebooted: with `first_peer_only` it waits for a new peer."""
        if self._first_peer_only:
            self.companion = None
            self._last_packet = -math.inf
            self._sequences.clear()

    def accept(self, datagram: bytes, sender: Hashable, time: float) -> list[Any]:
        """The accepted messages of a datagram, in order; the others are counted in `dropped` by reason."""
        messages = []
        for packet in self._packets(bytes(datagram)):
            message, problem = self._decoded(packet)
            problem = problem or self._foreign(sender, time) or self._overtaken(message, time)
            if problem is None:
                self._last_packet = time
                problem = self._unusable(message)
            if problem is None:
                messages.append(message)
            else:
                self.dropped[problem] += 1
        return messages

    def _packets(self, data: bytes) -> Iterator[bytes]:
        while data:
            header = {V1: 6, V2: 10}.get(data[0])
            if header is None or len(data) < header:
                self.dropped["garbage"] += 1
                return
            signed = data[0] == V2 and data[2] & SIGNED
            length = header + data[1] + 2 + (SIGNATURE if signed else 0)
            if len(data) < length or (data[0] == V2 and data[2] & ~SIGNED):
                self.dropped["garbage"] += 1
                return
            yield data[:length]
            data = data[length:]

    def _decoded(self, packet: bytes) -> tuple[Any, str | None]:
        """A message, and why it must be dropped, if it must."""
        try:
            message = self._codec.decode(bytearray(packet))
        except (mavlink.MAVError, ValueError, IndexError):
            return None, "broken"
        if message.get_msgId() < 0:  # not in the dialect, so its checksum cannot be known
            return None, "unknown"
        signed = self._verifier is None or self._verifier.accepts(packet)
        return message, None if signed else "signature"

    def _foreign(self, sender: Hashable, time: float) -> str | None:
        if sender != self.companion:
            if time - self._last_packet < PEER_TIMEOUT or (self._first_peer_only and self.companion is not None):
                return "other peer"
            self.companion = sender
            self._sequences.clear()
        return None

    def _overtaken(self, message: Any, time: float) -> str | None:
        source, sequence = (message.get_srcSystem(), message.get_srcComponent()), message.get_seq()
        newest, when = self._sequences.get(source, (sequence - 1, time))
        ahead = (sequence - newest) % 256
        if time - when <= SEQUENCE_TIMEOUT and (ahead == 0 or ahead >= 256 - WINDOW):
            return "old"
        self._sequences[source] = (sequence, time)
        return None

    def _unusable(self, message: Any) -> str | None:
        if getattr(message, "target_system", 0) not in (0, SYSTEM) or (
            getattr(message, "target_component", 0) not in (0, COMPONENT)
        ):
            return "not for us"
        disguised = self._params_bytewise and message.get_type() == "PARAM_SET" and message.param_type != 9
        finite = disguised or all(_finite(getattr(message, name)) for name in message.get_fieldnames())
        return None if finite else "not finite"


def _finite(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)
