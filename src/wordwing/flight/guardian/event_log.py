"""A flight's `events.jsonl` and `flight.tlog`, written as it happens (format: `flight.logs`)."""

import json
import math
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from wordwing.files import unwritable

EVENTS, TLOG = "events.jsonl", "flight.tlog"


class AppendFile:
    """A file that grows by whole records, each in one write, so that a killed process loses none.

    A full disk ends the file, not the flight: `failed` then says why.
    """

    def __init__(self, path: str | Path) -> None:
        self.failed: str | None = None
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            raise unwritable(path, error) from None

    def append(self, record: bytes) -> None:
        """Add a record; with one write at the end of the file no other process gets in between."""
        if self.failed is not None or self._file < 0:
            return
        try:
            if os.write(self._file, record) < len(record):
                self.failed = "there is no more room"
        except OSError as error:
            self.failed = (error.strerror or "unknown").lower()

    def close(self) -> None:
        """Close the file; may be called twice."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


class TlogWriter(AppendFile):
    """A `.tlog` file, as ground stations keep them: each packet after its time, 8 bytes, big-endian, microseconds."""

    def write(self, packet: bytes, time: float) -> None:
        """Add one whole MAVLink packet that was sent or came at a time, seconds since 1970 (UTC)."""
        self.append(struct.pack(">Q", round(time * 1e6)) + packet)


class EventLog(AppendFile):
    """One process's part in a flight's log."""

    def __init__(self, folder: str | Path, *, tlog: bool = False) -> None:
        """Open a log, a new one or one that another process of the same flight has begun.

        Args:
            folder: Made if it is not there.
            tlog: Whether this process sees the packets, too.
        """
        self.folder = Path(folder)
        super().__init__(self.folder / EVENTS)
        self._tlog = TlogWriter(self.folder / TLOG) if tlog else None

    def event(self, time: float, kind: str, **values: object) -> None:
        """Write one line."""
        self.add({"time": round(time, 4), "kind": kind, **values})

    def add(self, row: Mapping[str, object]) -> None:
        """Write one line that has its time and kind, such as an event of the guardian's."""
        self.append((json.dumps(_plain(row), ensure_ascii=False, allow_nan=False) + "\n").encode())

    def packet(self, data: bytes, unix: float) -> None:
        """Write a MAVLink packet that was sent or came, at seconds since 1970."""
        if self._tlog is not None:
            self._tlog.write(data, unix)

    def close(self) -> None:
        """Close the files; may be called twice."""
        super().close()
        if self._tlog is not None:
            self._tlog.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _plain(value: object) -> Any:
    """A value as JSON has it; numbers that are not finite become null."""
    if hasattr(value, "tolist"):  # of numpy or torch
        return _plain(value.tolist())
    if isinstance(value, bool | int | str) or value is None:
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence | set | frozenset):
        return [_plain(entry) for entry in value]
    return str(value)
