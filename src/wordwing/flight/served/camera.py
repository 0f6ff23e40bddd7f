"""The served camera: an image is exposed at once, rendered later, and streamed at the camera's rate and latency.

The stream is MJPEG in FFmpeg's NUT container over TCP. Of what PyAV reads this came with the least delay: 2 ms from an
image to its decoded copy, on loopback, at 10 images a second. H.264 in MPEG-TS took 100 to 200 ms, MJPEG in Matroska
100 ms, because their readers wait for the beginning of the next image. A stream's times are lab times.
"""

import socket
import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import av
import numpy as np
import torch
from numpy.typing import NDArray

from wordwing.flight.served.faults import FaultSchedule, FrozenCamera
from wordwing.frames import Pose
from wordwing.lab.camera import LabCamera
from wordwing.lab.vehicle import LabConfig
from wordwing.web.sockets import bind_socket
from wordwing.world.layout import Layout

RATE = 10.0
"""Images in a second of lab time."""

TIME_BASE = Fraction(1, 1000)
QUALITY = {"qmin": "2", "qmax": "3"}
"""FFmpeg's best for JPEG."""

MAX_CLIENTS = 4
SEND_TIMEOUT = 0.2
"""How long sending an image to a client may take before it is disconnected, seconds."""


class CameraMount(Protocol):
    """The vehicle that carries the camera."""

    @property
    def time(self) -> float:
        """Now, lab time."""

    def pose_at(self, time: float) -> Pose:
        """[1] its true pose at a moment of the last half second, world frame."""


@dataclass(frozen=True)
class Exposure:
    """An image that has been taken but not rendered yet."""

    opened: Pose
    """[1] of the drone when the shutter opened, world frame."""
    closed: Pose
    """[1] when it closed."""
    time: float
    """When it closed, lab time."""
    frozen: FrozenCamera | None
    """The fault of the camera, if any."""


class ServedCamera:
    """Takes the images of one flight."""

    def __init__(self, layout: Layout, config: LabConfig, mount: CameraMount, faults: FaultSchedule, seed: int) -> None:
        self._layout, self._config, self._mount, self._faults, self._seed = layout, config, mount, faults, seed
        self._last: tuple[NDArray[np.uint8], float] | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the raw images."""
        sensor = self._config.camera.lens.sensor
        return sensor.width, sensor.height

    def expose(self, age: float | None = None) -> Exposure:
        """Take an image whose shutter closed some seconds ago; by default the newest that can have arrived by now."""
        now, pose_at = self._mount.time, self._mount.pose_at
        closed = now - (self._config.image_latency if age is None else age)
        opened = closed - self._config.camera.exposure_time
        frozen = self._faults.active(FrozenCamera, now)
        return Exposure(pose_at(opened), pose_at(closed), closed, frozen)

    def render(self, exposure: Exposure) -> tuple[NDArray[np.uint8], float]:
        """The raw image [H, W, 3] RGB, and when its shutter closed, lab time; a frozen camera repeats an older one."""
        if exposure.frozen is not None and self._last is not None:
            return (self._last[0], exposure.time) if exposure.frozen.still else self._last
        light = self._camera.raw(exposure.opened, exposure.closed)
        self._last = ((light * 255).round().to(torch.uint8).numpy(), exposure.time)
        return self._last

    @cached_property
    def _camera(self) -> LabCamera:
        # Created on first use: many flights need no image.
        camera = LabCamera(self._layout, np.random.default_rng(self._seed), self._config.camera)
        camera.begin(np.random.default_rng([self._seed, 2]))
        return camera


class _Client:
    """One connection and its own stream, from its header on."""

    def __init__(self, connection: socket.socket, size: tuple[int, int]) -> None:
        self.connection = connection
        connection.settimeout(SEND_TIMEOUT)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._container: Any = av.open(self, "w", format="nut", options={"flush_packets": "1"}, buffer_size=4096)
        self._stream = self._container.add_stream("mjpeg", rate=round(RATE), options=QUALITY)
        self._stream.width, self._stream.height = size
        self._stream.pix_fmt = "yuvj444p"
        self._stream.time_base = self._stream.codec_context.time_base = TIME_BASE
        self.gone = False

    def write(self, data: bytes) -> int:
        """Write as a file does; PyAV calls it."""
        if not self.gone:
            try:
                self.connection.sendall(data)
            except OSError:
                self.gone = True
        return len(data)

    def send(self, frame: av.VideoFrame) -> None:
        for packet in self._stream.encode(frame):
            self._container.mux(packet)

    def close(self) -> None:
        self.gone = True  # the end of the file has nobody to go to
        self._container.close()
        self.connection.close()


class VideoServer:
    """Sends each image to all connected clients."""

    def __init__(self, host: str, port: int, size: tuple[int, int]) -> None:
        """Bind.

        Args:
            host: The address to listen on.
            port: 0 takes a free one.
            size: Width and height of the images.
        """
        self._size = size
        self.clients: list[_Client] = []
        """Who is connected."""
        self._listener = bind_socket(host, port, "TCP", "--video")
        self._listener.listen(MAX_CLIENTS)
        self.port: int = self._listener.getsockname()[1]

    def accept_client(self) -> None:
        """Accept a waiting client, if any; too many are refused."""
        try:
            connection, _address = self._listener.accept()
        except OSError:  # nobody
            return
        if len(self.clients) >= MAX_CLIENTS:
            connection.close()
        else:
            self.clients.append(_Client(connection, self._size))

    def send(self, image: NDArray[np.uint8], time: float) -> None:
        """Send an image.

        Args:
            image: [H, W, 3] RGB.
            time: When its shutter closed, lab time.
        """
        for client in self.clients:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            frame.pts, frame.time_base = round(time / TIME_BASE), TIME_BASE
            client.send(frame)
            if client.gone:
                client.close()
        self.clients = [client for client in self.clients if not client.gone]

    def close(self) -> None:
        """Disconnect all clients."""
        for client in self.clients:
            client.close()
        self.clients = []
        self._listener.close()


def stream_camera(
    camera: ServedCamera,
    mount: CameraMount,
    video: VideoServer,
    latency: float,
    stopping: threading.Event,
    lock: AbstractContextManager[object],
    speed: float = 1.0,
) -> None:
    """Take images until told to stop; a slow machine drops some.

    Args:
        camera: Takes them.
        mount: The vehicle, whose time counts.
        video: Where they go.
        latency: How old an image is when it is sent, seconds.
        stopping: Ends it.
        lock: Held while the mount must not move.
        speed: How many of the mount's seconds pass in one.
    """
    last_time, next_time = -1.0, 0.0
    while not stopping.wait(0.005 / speed):
        video.accept_client()
        if mount.time < next_time or not video.clients:
            continue
        next_time = max(next_time + 1 / RATE, mount.time)
        with lock:
            exposure = camera.expose(age=0.0)
        image, closed = camera.render(exposure)
        # Rendering takes part of the latency that a real camera and its link have.
        while mount.time < exposure.time + latency and not stopping.wait(0.002 / speed):
            pass
        if closed > last_time:
            last_time = closed
            video.send(image, closed)
