"""The served lab in real time: MAVLink on a UDP port, its camera on a TCP port."""

import math
import os
import select
import selectors
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TextIO

from wordwing.errors import WordwingError
from wordwing.flight.options import MOCAP
from wordwing.flight.served.autopilot import TICK
from wordwing.flight.served.camera import VideoServer, stream_camera
from wordwing.flight.served.vehicle import ServedLab
from wordwing.web.sockets import bind_socket

MOCAP_PORT = int(MOCAP.rpartition(":")[2])
"""Where a guardian listens to motion capture by default."""

DATAGRAM = 2048
"""More than the largest MAVLink packet, bytes."""

LAG = 0.1
"""How far the lab may fall behind the clock before simulated time slows down, seconds."""

SWITCH = 0.0005
"""Switch interval of threads, seconds: rendering must not delay packets."""


PLACEMENT_HELP = (
    "type where the drone is put down, X Y or X Y DEGREES: metres from the centre, and where its nose points"
)


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
            video: For the camera over TCP; None serves no images.
            mocap: To which UDP port of the companion's machine the poses of motion capture are sent.
            speed: Seconds of lab time in a second.
        """
        self.lab, self.speed, self.mocap = lab, speed, mocap
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._socket = bind_socket(host, port, "UDP", "--port")
        self.port: int = self._socket.getsockname()[1]
        try:
            self.video = None if video is None else VideoServer(host, video, lab.camera.size)
        except WordwingError:
            self._socket.close()
            raise

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Serve until `stop` is called or `until` says so after a tick; closes the ports."""
        sys.setswitchinterval(SWITCH)
        with ExitStack() as opened:
            opened.callback(self._socket.close)
            if self.video is not None:
                opened.callback(self.video.close)
                latency, speed = self.lab.config.image_latency, self.speed
                streamed = (self.lab.camera, self.lab, self.video, latency, self._stopping, self._lock, speed)
                camera = threading.Thread(target=stream_camera, args=streamed, name="lab camera", daemon=True)
                camera.start()
                opened.callback(camera.join, 5.0)
            opened.callback(self._stopping.set)
            self._serve(until)

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
                    self._receive()
                if time.monotonic() >= due:
                    with self._lock:
                        datagrams = self.lab.advance(TICK)
                    self._send(datagrams)

    def _receive(self) -> None:
        for _datagram in range(100):
            try:
                data, sender = self._socket.recvfrom(DATAGRAM)
            except OSError:  # nothing more, or a companion that has gone
                return
            with self._lock:
                self.lab.receive(data, sender)

    def _send(self, datagrams: list[bytes]) -> None:
        companion = self.lab.packet_filter.companion
        if companion is None:
            return
        poses = [pose.to_json() for pose in self.lab.mocap.take()]
        guardian = (companion[0], self.mocap, *companion[2:])
        for datagram, place in [(one, companion) for one in datagrams] + [(pose, guardian) for pose in poses]:
            try:
                self._socket.sendto(datagram, place)
            except OSError:  # full buffers, or nobody there any more
                continue


def parse_placement(line: str) -> tuple[float, float, float]:
    """Parse a position: x and y in metres and a heading in radians (0 if there is none), world frame."""
    try:
        numbers = [float(word) for word in line.split()]
    except ValueError:
        numbers = []
    if len(numbers) not in (2, 3) or not all(map(math.isfinite, numbers)):
        raise WordwingError(f'"{line.strip()[:40]}" is not a position; {PLACEMENT_HELP}')
    x, y, degrees = [*numbers, 0.0][:3]
    return x, y, math.radians(degrees)


class PlacementReader:
    """Reads lines that say where to put the disarmed drone."""

    def __init__(self, lab: ServedLab, lines: TextIO, say: Callable[[str], None] = print) -> None:
        """Prepare.

        Args:
            lab: Whose drone it is.
            lines: A terminal, or a pipe.
            say: Prints what was done.
        """
        self._lab, self._lines, self._say = lab, lines, say
        self._rest, self._ended = b"", False

    def poll(self) -> bool:
        """Move the drone if lines have come, without waiting for any. Always False: the lab goes on."""
        if not self._ended and select.select([self._lines], [], [], 0)[0]:
            data = os.read(self._lines.fileno(), 4096)  # not `readline`: `select` does not see what that has buffered
            self._ended = not data
            *lines, self._rest = (self._rest + (data or b"\n")).split(b"\n")
            for line in lines:
                if line.strip():
                    self._say(self._move(line.decode("utf-8", "replace")))
        return False

    def _move(self, line: str) -> str:
        try:
            x, y, yaw = parse_placement(line)
            self._lab.place((x, y), yaw)
        except WordwingError as error:
            return str(error)
        return f"the drone stands at ({x:g}, {y:g}), its nose at {math.degrees(yaw):g}°"
