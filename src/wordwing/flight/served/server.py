"""The served lab in real time: MAVLink on a UDP port, its camera on a TCP port."""

from __future__ import annotations

import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable

from wordwing.errors import WordwingError
from wordwing.flight.options import MOCAP
from wordwing.flight.served.autopilot import TICK
from wordwing.flight.served.filming import film
from wordwing.flight.served.vehicle import ServedLab
from wordwing.flight.served.video import VideoServer

MOCAP_PORT = int(MOCAP.rpartition(":")[2])
"""Where a guardian listens to motion capture unless it is told otherwise."""

DATAGRAM = 2048
"""More than the largest MAVLink packet, bytes."""

LAG = 0.1
"""How far the lab may fall behind the clock before it lets time go, seconds: a slow machine makes a slow lab."""

SWITCH = 0.0005
"""After which a thread that computes lets another one run, seconds: drawing must not hold up the wire."""


class LabServer:
    """One served lab on this machine's ports. It runs in the caller's thread, the camera in another."""

    def __init__(
        self,
        lab: ServedLab,
        *,
        host: str = "127.0.0.1",
        port: int = 14550,
        video: int | None = 5600,
        mocap: int = MOCAP_PORT,
        speed: float = 1.0,
    ) -> None:
        """Bind; nothing moves before `run`.

        Args:
            lab: What is served.
            host: The address to listen on.
            port: For MAVLink over UDP; 0 takes a free one.
            video: For the camera over TCP; None serves no pictures.
            mocap: To which UDP port of the companion's machine the poses of motion capture are sent.
            speed: Seconds of lab time in a second.
        """
        self.lab = lab
        self.speed = speed
        self.mocap = mocap
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._socket = _bound(host, port)
        self.port: int = self._socket.getsockname()[1]
        try:
            self.video = None if video is None else VideoServer(host, video, lab.camera.size)
        except WordwingError:
            self._socket.close()
            raise

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Serve until `stop` is called or `until` says so after a tick; closes the ports."""
        sys.setswitchinterval(SWITCH)
        camera = threading.Thread(target=self._film, name="lab camera", daemon=True)
        try:
            if self.video is not None:
                camera.start()
            self._serve(until)
        finally:
            self._stopping.set()
            if self.video is not None:
                camera.join(5.0)
                self.video.close()
            self._socket.close()

    def stop(self) -> None:
        """End `run`, from another thread."""
        self._stopping.set()

    def _serve(self, until: Callable[[], bool]) -> None:
        began = time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            while not self._stopping.is_set() and not until():
                due = began + (self.lab.time + TICK) / self.speed
                now = time.monotonic()
                if now - due > LAG:
                    began += now - due - LAG
                if selector.select(max(0.0, due - now)):
                    self._hear()
                if time.monotonic() >= due:
                    with self._lock:
                        datagrams = self.lab.advance(TICK)
                    self._tell(datagrams)

    def _hear(self) -> None:
        for _datagram in range(100):
            try:
                data, sender = self._socket.recvfrom(DATAGRAM)
            except OSError:  # nothing more, or a companion that has gone
                return
            with self._lock:
                self.lab.receive(data, sender)

    def _tell(self, datagrams: list[bytes]) -> None:
        companion = self.lab.gate.companion
        if companion is None:
            return
        poses = [pose.to_json() for pose in self.lab.mocap.take()]
        guardian = (companion[0], self.mocap, *companion[2:])
        for datagram, place in [(one, companion) for one in datagrams] + [(pose, guardian) for pose in poses]:
            try:
                self._socket.sendto(datagram, place)
            except OSError:  # full buffers, or nobody there any more
                continue

    def _film(self) -> None:
        assert self.video is not None
        film(
            self.lab.camera, self.lab, self.video, self.lab.config.image_latency, self._stopping, self._lock, self.speed
        )


def _bound(host: str, port: int) -> socket.socket:
    made = None
    try:
        family, kind, protocol, _name, place = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
        made = socket.socket(family, kind, protocol)
        made.bind(place)
        made.setblocking(False)
    except socket.gaierror:
        raise WordwingError(f'--host is "{host}", which is no address of this machine') from None
    except OSError as error:
        if made is not None:
            made.close()
        why = (error.strerror or "unknown").lower()
        raise WordwingError(f"UDP port {port} of {host} cannot be used ({why}); choose another --port") from None
    return made
