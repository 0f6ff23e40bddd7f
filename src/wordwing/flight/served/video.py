"""The served lab's camera as a stream over TCP: MJPEG in FFmpeg's NUT container.

Of what PyAV reads this came with the least delay: 2 ms from a picture to its decoded copy, on loopback, at 10 pictures
a second. H.264 in MPEG-TS took 100 to 200 ms, MJPEG in Matroska 100 ms, because their readers wait for the beginning of
the next picture. A stream's times are lab times.
"""

from __future__ import annotations

import socket
from fractions import Fraction
from typing import Any

import av
import numpy as np
from numpy.typing import NDArray

from wordwing.errors import WordwingError

RATE = 10.0
"""Pictures in a second of lab time."""

TIME_BASE = Fraction(1, 1000)
QUALITY = {"qmin": "2", "qmax": "3"}
"""FFmpeg's best for JPEG."""

MOST_WATCHERS = 4
PATIENCE = 0.2
"""How long a watcher may keep a picture waiting before it is sent away, seconds."""


class _Watcher:
    """One connection and its own stream, from its header on."""

    def __init__(self, connection: socket.socket, size: tuple[int, int]) -> None:
        self.connection = connection
        connection.settimeout(PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._container: Any = av.open(self, "w", format="nut", options={"flush_packets": "1"}, buffer_size=4096)
        self._stream = self._container.add_stream("mjpeg", rate=round(RATE), options=QUALITY)
        self._stream.width, self._stream.height = size
        self._stream.pix_fmt = "yuvj444p"
        self._stream.time_base = self._stream.codec_context.time_base = TIME_BASE
        self.gone = False

    def write(self, data: bytes) -> int:
        """For PyAV, which takes us for a file."""
        if not self.gone:
            try:
                self.connection.sendall(data)
            except OSError:
                self.gone = True
        return len(data)

    def show(self, frame: av.VideoFrame) -> None:
        for packet in self._stream.encode(frame):
            self._container.mux(packet)

    def close(self) -> None:
        self.gone = True  # the end of the file has nobody to go to
        self._container.close()
        self.connection.close()


class VideoServer:
    """Sends each picture to all who are connected."""

    def __init__(self, host: str, port: int, size: tuple[int, int]) -> None:
        """Bind.

        Args:
            host: The address to listen on.
            port: 0 takes a free one.
            size: Width and height of the pictures.
        """
        self._size = size
        self._watchers: list[_Watcher] = []
        self._door: socket.socket | None = None
        try:
            family, kind, protocol, _name, place = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            self._door = socket.socket(family, kind, protocol)
            self._door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._door.bind(place)
            self._door.listen(MOST_WATCHERS)
            self._door.setblocking(False)
        except OSError as error:
            if self._door is not None:
                self._door.close()
            why = (error.strerror or "unknown").lower()
            raise WordwingError(f"TCP port {port} of {host} cannot be used ({why}); choose another --video") from None
        self.port: int = self._door.getsockname()[1]

    @property
    def watched(self) -> bool:
        """Whether anyone is connected."""
        return bool(self._watchers)

    def welcome(self) -> None:
        """Let in who is waiting at the door."""
        assert self._door is not None
        try:
            connection, _address = self._door.accept()
        except OSError:  # nobody
            return
        if len(self._watchers) >= MOST_WATCHERS:
            connection.close()
        else:
            self._watchers.append(_Watcher(connection, self._size))

    def show(self, picture: NDArray[np.uint8], time: float) -> None:
        """Send a picture.

        Args:
            picture: [H, W, 3] RGB.
            time: When its shutter closed, lab time.
        """
        for watcher in self._watchers:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture), format="rgb24")
            frame.pts, frame.time_base = round(time / TIME_BASE), TIME_BASE
            watcher.show(frame)
            if watcher.gone:
                watcher.close()
        self._watchers = [watcher for watcher in self._watchers if not watcher.gone]

    def close(self) -> None:
        """Send everybody away."""
        for watcher in self._watchers:
            watcher.close()
        self._watchers = []
        if self._door is not None:
            self._door.close()
