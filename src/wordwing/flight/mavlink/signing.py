"""MAVLink 2 signing: keys, the time that signatures count in, and whether a packet is signed as it should be."""

import hashlib
import hmac
import time
from pathlib import Path

from wordwing.errors import WordwingError
from wordwing.files import read_bytes

KEY_BYTES = 32
"""Of a key."""

EPOCH = 1_420_070_400
"""Seconds from 1970 to 2015, where signing time begins."""

UNITS = 1e5
"""Of signing time in a second."""

MINUTE = round(60 * UNITS)
"""How far behind our own time a new signed stream may begin."""

MARK = 0xFD
"""First byte of a MAVLink 2 packet."""

SIGNED = 0x01
"""Bit of its third byte, and the only one of them that is known."""

SIGNATURE = 13
"""Bytes at the end of a signed packet: link, time (6 bytes), signature (6 bytes)."""


class Verifier:
    """Knows which packets are signed with a key and later than all before them.

    pymavlink's own check notes a packet's time before it has looked at the signature, so that anybody could shut the
    true sender out with one forged packet from the future.

    Args:
        key: [32].
        now: Our own signing time, in 10 µs; a stream that begins more than a minute before it is old.
    """

    def __init__(self, key: bytes, now: int = 0) -> None:
        self.now = now
        """The latest time that is known, ours or a sender's."""
        self._key = key
        self._streams: dict[tuple[int, int, int], int] = {}

    def accepts(self, packet: bytes) -> bool:
        """Whether a whole packet counts; one that does must not come again."""
        if len(packet) < 12 + SIGNATURE or packet[0] != MARK or not packet[2] & SIGNED:
            return False
        if not hmac.compare_digest(hashlib.sha256(self._key + packet[:-6]).digest()[:6], packet[-6:]):
            return False
        stream = (packet[-13], packet[5], packet[6])  # link, system, component
        stamp = int.from_bytes(packet[-12:-6], "little")
        if stamp <= self._streams.get(stream, self.now - MINUTE):
            return False
        self._streams[stream] = stamp
        self.now = max(self.now, stamp)
        return True


def signing_time() -> int:
    """Now, in 10 µs since 2015."""
    return round((time.time() - EPOCH) * UNITS)


def read_key(path: str | Path) -> bytes:
    """[32] the key in a file."""
    data = read_bytes(path, 4 * KEY_BYTES, "signing key")
    if len(data) == KEY_BYTES:
        return data
    try:
        key = bytes.fromhex(data.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise WordwingError(f"{path}: a signing key is 32 bytes or 64 hexadecimal digits")
    return key
