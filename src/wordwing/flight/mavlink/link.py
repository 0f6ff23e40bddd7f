"""Transports under MAVLink: UDP, TCP and serial by a URL, and the `.tlog` file of what went over one.

| URL | what it does |
| --- | --- |
| `udp:HOST:PORT[:LOCALPORT]` (or `udpout:`) | speaks to that address, always from one port, and hears nobody else |
| `udpin:HOST:PORT` | listens there, and answers the first that speaks; others are not heard |
| `tcp:HOST:PORT` | connects to it |
| `serial:DEVICE[:BAUD]` | a serial port; needs pyserial |

Nothing here blocks a sender, and nothing queues up: what cannot be sent now is dropped, because an old setpoint that
arrives late is worse than none. After `open_link` nothing raises; `lost` says why a link is of no use any more.
"""

from __future__ import annotations

import errno
import os
import re
import select
import socket
import struct
import time
from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from wordwing.errors import WordwingError, did_you_mean
from wordwing.files import unwritable

SCHEMES = ("udp", "udpin", "udpout", "tcp", "serial")

ADDRESS = re.compile(r"(?P<host>\[[^][]+\]|[^][:]+):(?P<port>[0-9]{1,9})(:(?P<local>[0-9]{1,9}))?")
"""An IPv6 address is in brackets, because it has colons of its own: udp:[::1]:14550."""

LOCAL_PORTS = range(20_000, 30_000)
"""From which UDP links speak: one to port 14550 from 24550, unless told otherwise."""

BAUD = 115_200
"""Of a serial port, if nothing is said."""

CONNECT_SECONDS = 5.0
"""How long a TCP connection may take to come about."""

BIND_SECONDS = 4.0
"""How long to wait for a local UDP port that is in use."""

DATAGRAM = 65_536
MOST = 256
"""Largest datagram, and how many are taken at a time, so that a flood of them cannot stop the one who reads."""

EXTRA = "serial links need pyserial, which is not installed; run: pip install 'wordwing[flight]'"


class MavlinkLink(Protocol):
    """Bytes to and from an autopilot."""

    lost: str | None
    """Why the link is of no use any more, in a few words; None while it is."""

    def send(self, data: bytes) -> None:
        """Send one packet now or drop it."""
        ...

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        """What has come: datagrams or parts of a stream, oldest first; waits for it up to some seconds."""
        ...

    def close(self) -> None:
        """Let go of it; may be called twice."""
        ...


def open_link(url: str) -> MavlinkLink:
    """Open a link; a wrong URL or one that cannot be opened gives a `WordwingError`."""
    scheme, colon, rest = url.partition(":")
    if not colon or scheme not in SCHEMES:
        hint = did_you_mean(scheme, SCHEMES)
        raise WordwingError(
            f'"{url}" is no link{hint or "; it must begin with udp:, udpin:, tcp: or serial:"} '
            "(such as udp:127.0.0.1:14550 or serial:/dev/ttyACM0:921600)"
        )
    try:
        if scheme == "serial":
            return SerialLink(*_serial(url, rest))
        host, port, local = _address(url, rest, local=scheme in ("udp", "udpout"))
        if scheme == "tcp":
            return TcpLink(host, port)
        return UdpServer(host, port) if scheme == "udpin" else UdpClient(host, port, local)
    except socket.gaierror:
        raise WordwingError(f'"{url}" cannot be opened: no machine is called {host}') from None
    except OSError as error:
        why = (error.strerror or str(error) or "unknown").lower()
        raise WordwingError(f'"{url}" cannot be opened ({why})') from None


def _address(url: str, rest: str, *, local: bool) -> tuple[str, int, int | None]:
    """Host, port and, where the scheme may have one, the local port or None."""
    found = ADDRESS.fullmatch(rest)
    if found is None or (found["local"] is not None and not local):
        form = "HOST:PORT or HOST:PORT:LOCALPORT" if local else "HOST:PORT"
        raise WordwingError(f'"{url}" is no link; after the first colon must come {form}, as in 127.0.0.1:14550')
    ports = [int(found[name]) for name in ("port", "local") if found[name] is not None]
    for port in ports:
        if not 1 <= port <= 65535:
            raise WordwingError(f'"{url}" has port {port}; ports go from 1 to 65535')
    return found["host"].strip("[]"), ports[0], ports[1] if len(ports) > 1 else None


def _serial(url: str, rest: str) -> tuple[str, int]:
    device, colon, baud = rest.rpartition(":")
    if not colon:
        device, baud = rest, str(BAUD)
    if not device or not (baud.isascii() and baud.isdigit()) or not 1200 <= int(baud) <= 12_000_000:
        raise WordwingError(f'"{url}" is no link; a serial one is serial:DEVICE:BAUD, as in serial:/dev/ttyACM0:921600')
    return device, int(baud)


def _socket(host: str, port: int, *, listens: bool = False) -> tuple[socket.socket, Any]:
    """A UDP socket that never blocks, and the address in the family's own words."""
    flags = socket.AI_PASSIVE if listens else 0
    family, kind, protocol, _name, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=flags)[0]
    made = socket.socket(family, kind, protocol)
    made.setblocking(False)
    return made, place


class UdpClient:
    """Speaks to one address; the system drops what others send.

    PX4 answers nobody but the address and port that spoke first after it booted, so the port here must not change from
    one run to the next.
    """

    def __init__(self, host: str, port: int, local: int | None = None) -> None:
        self.lost: str | None = None
        self._socket, place = _socket(host, port)
        try:
            _bind(self._socket, LOCAL_PORTS[port % len(LOCAL_PORTS)] if local is None else local)
            self._socket.connect(place)
        except (OSError, WordwingError):
            self._socket.close()
            raise

    def send(self, data: bytes) -> None:
        """Send one datagram now or drop it."""
        try:
            self._socket.send(data)
        except OSError:  # full buffers, nobody there yet, no route just now: the next one may get through
            return

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        """Datagrams, oldest first."""
        found: list[bytes] = []
        if not _wait(self._socket, timeout):
            return found
        while len(found) < MOST:
            try:
                found.append(self._socket.recv(DATAGRAM))
            except ConnectionRefusedError:  # nobody listens there yet; says nothing about the next one
                continue
            except OSError:
                break
        return found

    def close(self) -> None:
        """Let go of the socket."""
        self.lost = self.lost or "it was closed"
        self._socket.close()


def _bind(made: socket.socket, port: int) -> None:
    """Take a local port, which an earlier run may hold for a moment longer.

    If it does not let go, no other port is tried: its guardian may still land the drone.
    """
    until = time.monotonic() + BIND_SECONDS
    while True:
        try:
            return made.bind(("::" if made.family == socket.AF_INET6 else "", port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        if time.monotonic() > until:
            raise WordwingError(
                f"UDP port {port} of this machine is in use: another wordwing may still speak to this drone; "
                "wait until it ends, or name another port: udp:HOST:PORT:LOCALPORT"
            )
        time.sleep(0.1)


class UdpServer:
    """Listens, and answers the first that speaks; whoever else speaks is not heard."""

    def __init__(self, host: str, port: int) -> None:
        self.lost: str | None = None
        self.peer: Any = None
        """Who spoke first; None until somebody does."""
        self._socket, place = _socket(host, port, listens=True)
        try:
            self._socket.bind(place)
        except OSError:
            self._socket.close()
            raise

    def send(self, data: bytes) -> None:
        """Send one datagram now or drop it; there is nobody to send to until somebody has spoken."""
        if self.peer is None:
            return
        try:
            self._socket.sendto(data, self.peer)
        except OSError:
            return

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        """Datagrams of the one who spoke first, oldest first."""
        found: list[bytes] = []
        if not _wait(self._socket, timeout):
            return found
        for _datagram in range(MOST):
            try:
                data, sender = self._socket.recvfrom(DATAGRAM)
            except ConnectionRefusedError:
                continue
            except OSError:
                break
            self.peer = self.peer or sender
            if sender == self.peer:
                found.append(data)
        return found

    def close(self) -> None:
        """Let go of the socket."""
        self.lost = self.lost or "it was closed"
        self._socket.close()


class _Stream(ABC):
    """A stream of bytes: a packet goes out whole, or not at all while an earlier one is still on its way."""

    lost: str | None = None
    _rest = b""
    """Of a packet that the system took only a part of."""

    def send(self, data: bytes) -> None:
        """Send one packet now or drop it."""
        if self.lost is not None:
            return
        try:
            if self._rest:
                self._rest = self._rest[self._write(self._rest) :]
            if not self._rest:
                self._rest = data[self._write(data) :]
                if len(self._rest) == len(data):
                    self._rest = b""  # nothing of it has gone out, so it can be dropped
        except OSError as error:
            self._fail(error)

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        """What has come, in pieces as they came; a piece need not begin with a message."""
        if self.lost is not None:
            return []
        try:
            piece = self._read(timeout)
        except OSError as error:
            self._fail(error)
            return []
        return [piece] if piece else []

    def _fail(self, error: OSError) -> None:
        self.lost = (error.strerror or str(error) or "unknown").lower()

    @abstractmethod
    def _write(self, data: bytes) -> int:
        """Give the system bytes; how many it took."""

    @abstractmethod
    def _read(self, timeout: float) -> bytes:
        """What has come within some seconds."""


class TcpLink(_Stream):
    """A TCP connection."""

    def __init__(self, host: str, port: int) -> None:
        self._socket = socket.create_connection((host, port), timeout=CONNECT_SECONDS)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket.setblocking(False)

    def _write(self, data: bytes) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0

    def _read(self, timeout: float) -> bytes:
        if not _wait(self._socket, timeout):
            return b""
        try:
            piece = self._socket.recv(DATAGRAM)
        except BlockingIOError:
            return b""
        if not piece:
            self.lost = "the other side closed it"
        return piece

    def close(self) -> None:
        """Let go of the connection."""
        self.lost = self.lost or "it was closed"
        self._socket.close()


class SerialLink(_Stream):
    """A serial port."""

    def __init__(self, device: str, baud: int) -> None:
        try:
            serial = import_module("serial")
        except ImportError:
            raise WordwingError(EXTRA) from None
        try:
            self._port = serial.Serial(device, baud, timeout=0, write_timeout=0)
        except (OSError, ValueError) as error:  # pyserial's own error is an OSError with a long text
            why = getattr(error, "strerror", None) or str(error)
            raise OSError(getattr(error, "errno", None), why.rpartition("]")[2].strip()) from None

    def _write(self, data: bytes) -> int:
        try:
            return os.write(self._port.fileno(), data)  # pyserial's own write waits for room, whatever its time-out
        except BlockingIOError:
            return 0

    def _read(self, timeout: float) -> bytes:
        if not _wait(self._port, timeout):
            return b""
        try:
            piece = os.read(self._port.fileno(), DATAGRAM)
        except BlockingIOError:
            return b""
        if not piece:
            self.lost = "the device was unplugged"
        return piece

    def close(self) -> None:
        """Let go of the port."""
        self.lost = self.lost or "it was closed"
        self._port.close()


def _wait(source: Any, timeout: float) -> bool:
    """Whether there is something to read, within some seconds."""
    try:
        poll = select.poll()  # unlike select it takes any number of open files
        poll.register(source, select.POLLIN)
        return bool(poll.poll(1000 * max(0.0, timeout)))
    except (OSError, ValueError):  # closed meanwhile
        return False


class TlogWriter:
    """A `.tlog` file, as ground stations keep them: each packet after its time, 8 bytes, big-endian, microseconds.

    A packet is written as soon as it is given, so that a killed process loses none. A full disk ends the file, not the
    flight: `failed` then says why.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.failed: str | None = None
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = open(path, "ab", buffering=0)  # noqa: SIM115
        except OSError as error:
            raise unwritable(path, error) from None

    def write(self, packet: bytes, time: float) -> None:
        """Add one whole MAVLink packet.

        Args:
            packet: Its bytes.
            time: When it was sent or came, seconds since 1970 (UTC).
        """
        if self.failed is not None or self._file.closed:
            return
        try:
            self._file.write(struct.pack(">Q", round(time * 1e6)) + packet)
        except OSError as error:
            self.failed = (error.strerror or "unknown").lower()

    def close(self) -> None:
        """Close the file; may be called twice."""
        self._file.close()
