"""MAVLink 2 signing: keys and the time that signatures count in."""

from __future__ import annotations

import time
from pathlib import Path

from wordwing.errors import WordwingError

KEY_BYTES = 32
"""Of a key."""

EPOCH = 1_420_070_400
"""Seconds from 1970 to 2015, where signing time begins."""

UNITS = 1e5
"""Of signing time in a second."""


def signing_time() -> int:
    """Now, in 10 µs since 2015."""
    return round((time.time() - EPOCH) * UNITS)


def read_key(path: str | Path) -> bytes:
    """[32] the key in a file."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise WordwingError(f"{path}: the key cannot be read ({(error.strerror or 'unknown').lower()})") from None
    if len(data) == KEY_BYTES:
        return data
    try:
        key = bytes.fromhex(data.decode("ascii").strip())
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise WordwingError(f"{path}: a signing key is 32 bytes or 64 hexadecimal digits")
    return key
