"""Where motion capture comes from: JSON over UDP, a recorded file, or Vicon, OptiTrack and others.

| source | what it is |
| --- | --- |
| `udp:HOST:PORT` | receives datagrams there, each one JSON object |
| `file:PATH` | the same objects, one a line, played at their own pace |
| `motioncapture:TYPE:HOST` | the `motioncapture` package: vicon, optitrack, qualisys, vrpn … |

An object is `{"time": 12.34, "name": "drone", "position": [x, y, z], "quaternion": [w, x, y, z]}`: seconds by any clock
(may be left out of datagrams), the rigid body's name (may be left out), metres, body to frame.
"""

import json
import math
import threading
from collections import deque
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from wordwing.errors import WordwingError, did_you_mean
from wordwing.files import read_text
from wordwing.flight.mavlink.clock import Clock, ClockSync
from wordwing.flight.mavlink.link import open_link
from wordwing.flight.mocap.relay import MocapSample, MocapSource

SCHEMES = ("udp", "file", "motioncapture")

MAX_BYTES = 64_000_000
"""Largest recording that is read: at 100 Hz an hour or more."""

MOST = 10**18
"""Largest whole number that is read."""

EXTRA = "this source needs the package motioncapture, which is not installed; run: pip install motioncapture"


def open_source(source: str, clock: Clock, body: str | None = None) -> MocapSource:
    """Open a source; a wrong one gives a `WordwingError`.

    Args:
        source: As in the table above.
        clock: Whose times its poses have.
        body: Name of the rigid body; None for any.
    """
    scheme, colon, rest = source.partition(":")
    if not colon or scheme not in SCHEMES:
        hint = did_you_mean(scheme, SCHEMES) or "; it must begin with udp:, file: or motioncapture:"
        raise WordwingError(f'"{source}" is no source of motion capture{hint} (such as udp:0.0.0.0:9000)')
    if scheme == "udp":
        return UdpSource(rest, clock, body)
    if scheme == "file":
        return FileSource(Path(rest), clock, body)
    kind, colon, host = rest.partition(":")
    if not kind or not host:
        raise WordwingError(
            f'"{source}" is no source; it must be motioncapture:TYPE:HOST, as in motioncapture:vicon:vicon'
        )
    if body is None:
        raise WordwingError(
            f'"{source}" is for wordwing flight mocap, whose --body must name the drone\'s rigid body; '
            "it copies each pose to --guardian, where wordwing fly receives it without --mocap"
        )
    return PackageSource(kind, host, clock, body)


def parse(text: str | bytes, body: str | None) -> tuple[float | None, MocapSample] | None:
    """An object's own time and its pose, with time 0; None for another body.

    A mistake gives a `ValueError`; numbers that are not finite do not, since they are dropped, and counted, later.
    """
    document = json.loads(text)
    if not isinstance(document, dict):
        raise ValueError("it must be an object")
    if body is not None and document.get("name", body) != body:
        return None
    time = document.get("time")
    if time is not None and (not _is_number(time) or not math.isfinite(time)):
        raise ValueError('"time" must be a number of seconds')
    position, quaternion = _numbers(document, "position", 3), _numbers(document, "quaternion", 4)
    return time, MocapSample(0.0, (position[0], position[1], position[2]), (*quaternion,))  # type: ignore[arg-type]


def _numbers(document: dict[str, Any], name: str, count: int) -> list[float]:
    values = document.get(name)
    if not isinstance(values, list) or len(values) != count or not all(_is_number(value) for value in values):
        raise ValueError(f'"{name}" must be a list of {count} numbers')
    return [float(value) for value in values]


def _is_number(value: object) -> bool:
    """Whether it is one, and one that a float can hold."""
    return type(value) is float or (type(value) is int and abs(value) < MOST)


class UdpSource(MocapSource):
    """Datagrams from the first that sends some; those that are no poses are counted and left out."""

    def __init__(self, place: str, clock: Clock, body: str | None = None) -> None:
        self._clock, self._body = clock, body
        self._link = open_link(f"udpin:{place}")
        self._sync = ClockSync()

    def read(self, timeout: float) -> list[MocapSample]:
        """Poses that have come; one whose own time shows that it waited somewhere is as old as it is."""
        found = []
        for data in self._link.receive(timeout):
            now = self._clock.now()
            try:
                parsed = parse(data, self._body)
            except (ValueError, RecursionError):
                self.broken += 1
                continue
            if parsed is None:
                continue
            time, sample = parsed
            if time is not None:
                self._sync.add(time, now)
            found.append(sample._replace(time=now if time is None else time + self._sync.offset))
        return found

    def close(self) -> None:
        """Stop listening."""
        self._link.close()


class FileSource(MocapSource):
    """A recording, played at its own pace from the first read on; each line must have its time."""

    def __init__(self, path: Path, clock: Clock, body: str | None = None) -> None:
        self._clock = clock
        self._rows = deque(_rows(path, body))
        self._first = self._rows[0][0]
        self._begun: float | None = None

    def read(self, timeout: float) -> list[MocapSample]:
        """Poses whose time has come."""
        if not self._rows:
            self.ended = True
            return []
        if self._begun is None:
            self._begun = self._clock.now()
        due = self._begun + self._rows[0][0] - self._first
        self._clock.sleep(min(timeout, due - self._clock.now()))
        found = []
        while self._rows and (due := self._begun + self._rows[0][0] - self._first) <= self._clock.now() + 1e-9:
            found.append(self._rows.popleft()[1]._replace(time=due))
        return found


def _rows(path: Path, body: str | None) -> Iterator[tuple[float, MocapSample]]:
    last = -math.inf
    text = read_text(path, MAX_BYTES, "recording of motion capture")
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            parsed = parse(line, body)
        except (ValueError, RecursionError) as error:
            raise WordwingError(f"{path}: line {number} is no pose ({error})") from None
        if parsed is None:
            continue
        time, sample = parsed
        if time is None:
            raise WordwingError(f'{path}: line {number} has no "time"')
        if time < last:
            raise WordwingError(f"{path}: line {number} is of {time:g} s, before the line above it")
        last = time
        yield time, sample
    if last == -math.inf:
        raise WordwingError(f"{path}: there is no pose{f' of {body}' if body else ''} in it")


class PackageSource(MocapSource):
    """A system that the `motioncapture` package supports. It is read in a thread, because it blocks."""

    def __init__(self, kind: str, host: str, clock: Clock, body: str) -> None:
        try:
            package = import_module("motioncapture")
        except ImportError:
            raise WordwingError(EXTRA) from None
        try:
            self._system: Any = package.connect(kind, {"hostname": host})
        except Exception as error:  # it raises whatever its C++ parts do
            raise WordwingError(f"motion capture at {host} cannot be reached ({error})") from None
        self._clock, self._body = clock, body
        self._found: deque[MocapSample] = deque(maxlen=100)
        self._failure: str | None = None
        self._arrived = threading.Event()
        threading.Thread(target=self._run, name="motion capture", daemon=True).start()

    def _run(self) -> None:
        while not self.ended:
            try:
                self._system.waitForNextFrame()
                now = self._clock.now()
                seen = self._system.rigidBodies.get(self._body)
                if seen is not None:
                    x, y, z = (float(value) for value in seen.position)
                    turn = seen.rotation
                    quaternion = float(turn.w), float(turn.x), float(turn.y), float(turn.z)
                    self._found.append(MocapSample(now, (x, y, z), quaternion))
            except Exception as error:  # what it raises depends on which system it is
                self._failure = str(error) or type(error).__name__
                break
            finally:
                self._arrived.set()

    def read(self, timeout: float) -> list[MocapSample]:
        """Poses that have come; a `WordwingError` when the system has gone away."""
        self._arrived.wait(timeout)
        self._arrived.clear()
        found = [self._found.popleft() for _ in range(len(self._found))]
        if not found and self._failure is not None:
            raise WordwingError(f"motion capture has gone away ({self._failure})")
        return found
