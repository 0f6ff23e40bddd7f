"""Transports under MAVLink: UDP, TCP and serial by a URL.

| URL | what it does |
| --- | --- |
| `udp:HOST:PORT[:LOCALPORT]` (or `udpout:`) | sends to that address, always from one port, and receives from it alone |
| `udpin:HOST:PORT` | binds to it, and answers the first sender; packets of others are dropped |
| `tcp:HOST:PORT` | connects to it |
| `serial:DEVICE[:BAUD]` | a serial port; needs pyserial |

Nothing here blocks a sender, and nothing queues up: what cannot be sent now is dropped, because an old setpoint that
arrives late is worse than none. After `open_link` nothing raises; `lost` says why a link is of no use any more.
"""

import errno
import os
import re
import select
import socket
import time
from contextlib import suppress
from importlib import import_module
from typing import Any, Protocol

from wordwing.errors import WordwingError, did_you_mean

SCHEMES = ("udp", "udpin", "udpout", "tcp", "serial")

BYTE_STREAMS = ("tcp:", "serial:")
"""How URLs of links begin whose bytes do not come packet by packet."""

ADDRESS = re.compile(r"(?P<host>\[[^][]+\]|[^][:]+):(?P<port>[0-9]{1,9})(:(?P<local>[0-9]{1,9}))?")
"""An IPv6 address is in brackets, because it has colons of its own: udp:[::1]:14550."""

LOCAL_PORTS = range(20_000, 30_000)
"""Local ports of UDP links: 24550 for one to port 14550, unless the URL names another."""

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

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        """What has come: datagrams or parts of a stream, oldest first; waits for it up to some seconds."""

    def close(self) -> None:
        """Release it; may be called twice."""


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
            return StreamLink(_open_serial(url, rest), "the device was unplugged")
        host, port, local = _address(url, rest, local=scheme in ("udp", "udpout"))
        if scheme == "tcp":
            made = socket.create_connection((host, port), timeout=CONNECT_SECONDS)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setblocking(False)
            return StreamLink(made, "the other side closed it")
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


class UdpServer:
    """Receives on a local address, and answers the first sender; datagrams of others are dropped."""

    _flags: int = socket.AI_PASSIVE
    _address: Any

    def __init__(self, host: str, port: int) -> None:
        self.lost: str | None = None
        self.peer: Any = None
        """Who sent first; None until somebody has."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM, flags=self._flags)
        family, kind, protocol, _name, self._address = found[0]
        self._socket = socket.socket(family, kind, protocol)
        self._socket.setblocking(False)
        try:
            self._bind()
        except (OSError, WordwingError):
            self._socket.close()
            raise

    def _bind(self) -> None:
        self._socket.bind(self._address)

    def send(self, data: bytes) -> None:
        """Send one datagram now or drop it; there is nobody to send to until somebody has sent one."""
        if self.peer is not None:
            with suppress(OSError):  # full buffers, nobody there yet, no route just now: the next one may get through
                self._socket.sendto(data, self.peer)

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        """Datagrams of the peer, oldest first."""
        found: list[bytes] = []
        if not _wait(self._socket, timeout):
            return found
        for _datagram in range(MOST):
            try:
                data, sender = self._socket.recvfrom(DATAGRAM)
            except ConnectionRefusedError:  # nobody listens there yet; says nothing about the next one
                continue
            except OSError:
                break
            self.peer = self.peer or sender
            if sender == self.peer:
                found.append(data)
        return found

    def close(self) -> None:
        """Release the socket."""
        self.lost = self.lost or "it was closed"
        self._socket.close()


class UdpClient(UdpServer):
    """Sends to one address; the system drops what others send.

    PX4 answers nobody but the address and port that sent first after it booted, so the port here must not change from
    one run to the next.
    """

    _flags = 0

    def __init__(self, host: str, port: int, local: int | None = None) -> None:
        self._local = LOCAL_PORTS[port % len(LOCAL_PORTS)] if local is None else local
        super().__init__(host, port)

    def send(self, data: bytes) -> None:
        """Send one datagram now or drop it."""
        with suppress(OSError):
            self._socket.send(data)

    def _bind(self) -> None:
        """Take the local port, which an earlier run may hold for a moment longer.

        If it does not release it, no other port is tried: its guardian may still land the drone.
        """
        until = time.monotonic() + BIND_SECONDS
        while True:
            try:
                self._socket.bind(("::" if self._socket.family == socket.AF_INET6 else "", self._local))
                return self._socket.connect(self._address)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
            if time.monotonic() > until:
                raise WordwingError(
                    f"UDP port {self._local} of this machine is in use: another wordwing may still speak to this "
                    "drone; wait until it ends, or name another port: udp:HOST:PORT:LOCALPORT"
                )
            time.sleep(0.1)


def _open_serial(url: str, rest: str) -> Any:
    device, baud = rest.rsplit(":", 1) if ":" in rest else (rest, str(BAUD))
    if not device or not (baud.isascii() and baud.isdigit()) or not 1200 <= int(baud) <= 12_000_000:
        raise WordwingError(f'"{url}" is no link; a serial one is serial:DEVICE:BAUD, as in serial:/dev/ttyACM0:921600')
    try:
        serial = import_module("serial")
    except ImportError:
        raise WordwingError(EXTRA) from None
    try:
        return serial.Serial(device, int(baud), timeout=0, write_timeout=0)
    except (OSError, ValueError) as error:  # pyserial's own error is an OSError with a long text
        why = getattr(error, "strerror", None) or str(error)
        raise OSError(getattr(error, "errno", None), why.rpartition("]")[2].strip()) from None


class StreamLink:
    """A stream of bytes: a packet goes out whole, or not at all while an earlier one is still on its way.

    Args:
        handle: A TCP socket or a serial port that does not block. It is read and written by its file descriptor,
            because pyserial's own write waits for room, whatever its time-out.
        ended: What an end of the stream means, in words.
    """

    def __init__(self, handle: Any, ended: str) -> None:
        self.lost: str | None = None
        self._handle, self._ended = handle, ended
        self._rest = b""  # of a packet that the system took only a part of

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
        if self.lost is not None or not _wait(self._handle, timeout):
            return []
        try:
            piece = os.read(self._handle.fileno(), DATAGRAM)
        except BlockingIOError:
            return []
        except OSError as error:
            self._fail(error)
            return []
        if not piece:
            self.lost = self._ended
        return [piece] if piece else []

    def close(self) -> None:
        """Release the connection or the port."""
        self.lost = self.lost or "it was closed"
        self._handle.close()

    def _fail(self, error: OSError) -> None:
        self.lost = (error.strerror or str(error) or "unknown").lower()

    def _write(self, data: bytes) -> int:
        """Give the system bytes; how many it took."""
        try:
            return os.write(self._handle.fileno(), data)
        except BlockingIOError:
            return 0


def _wait(source: Any, timeout: float) -> bool:
    """Whether there is something to read, within some seconds."""
    try:
        poll = select.poll()  # unlike select it takes any number of open files
        poll.register(source, select.POLLIN)
        return bool(poll.poll(1000 * max(0.0, timeout)))
    except (OSError, ValueError):  # closed meanwhile
        return False
