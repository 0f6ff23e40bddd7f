"""The served lab in real time: MAVLink on a UDP port, its camera on a TCP port."""

from __future__ import annotations

import selectors
import socket
import sys
import threading
import time
from collections.abc import Callable

from wordwing.errors import WordwingError
from wordwing.flight.served.autopilot import TICK
from wordwing.flight.served.vehicle import ServedLab
from wordwing.flight.served.video import RATE, VideoServer

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
        speed: float = 1.0,
    ) -> None:
        """Bind; nothing moves before `run`.

        Args:
            lab: What is served.
            host: The address to listen on.
            port: For MAVLink over UDP; 0 takes a free one.
            video: For the camera over TCP; None serves no pictures.
            speed: Seconds of lab time in a second.
        """
        self.lab = lab
        self.speed = speed
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
        for datagram in datagrams:
            try:
                self._socket.sendto(datagram, companion)
            except OSError:  # full buffers, or nobody there any more
                return

    def _film(self) -> None:
        """Pictures at the camera's rate, in lab time; a slow machine drops some."""
        assert self.video is not None
        latency = self.lab.config.image_latency
        last_time, next_time = -1.0, 0.0
        while not self._stopping.wait(0.005 / self.speed):
            self.video.welcome()
            if self.lab.time < next_time or not self.video.watched:
                continue
            next_time = max(next_time + 1 / RATE, self.lab.time)
            with self._lock:
                exposure = self.lab.camera.expose(age=0.0)
            picture, closed = self.lab.camera.develop(exposure)
            # Drawing takes a part of the time that a real camera and its link take.
            while self.lab.time < exposure.time + latency and not self._stopping.wait(0.002 / self.speed):
                pass
            if closed > last_time:
                last_time = closed
                self.video.show(picture, closed)


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
