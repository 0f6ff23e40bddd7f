"""The served lab's camera as a stream over TCP: MJPEG in FFmpeg's NUT container.

Of what PyAV reads this came with the least delay: 2 ms from an image to its decoded copy, on loopback, at 10 images
a second. H.264 in MPEG-TS took 100 to 200 ms, MJPEG in Matroska 100 ms, because their readers wait for the beginning of
the next image. A stream's times are lab times.
"""

from __future__ import annotations

import socket
from fractions import Fraction
from typing import Any, Literal

import av
import numpy as np
from numpy.typing import NDArray

from wordwing.errors import WordwingError

RATE = 10.0
"""Images in a second of lab time."""

TIME_BASE = Fraction(1, 1000)
QUALITY = {"qmin": "2", "qmax": "3"}
"""FFmpeg's best for JPEG."""

MAX_CLIENTS = 4
SEND_TIMEOUT = 0.2
"""How long sending an image to a client may take before it is disconnected, seconds."""


def bind_socket(host: str, port: int, protocol: Literal["UDP", "TCP"], option: str) -> socket.socket:
    """A socket that never blocks, bound to a port of this machine; 0 takes a free one.

    Args:
        host: The address to listen on.
        port: The port.
        protocol: Of the socket.
        option: By which the user chooses another port, if this one cannot be used.
    """
    made = None
    try:
        wanted = socket.SOCK_DGRAM if protocol == "UDP" else socket.SOCK_STREAM
        family, kind, number, _name, address = socket.getaddrinfo(host, port, type=wanted)[0]
        made = socket.socket(family, kind, number)
        if protocol == "TCP":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.setblocking(False)
    except socket.gaierror:
        raise WordwingError(f'--host is "{host}", which is no address of this machine') from None
    except OSError as error:
        if made is not None:
            made.close()
        why = (error.strerror or "unknown").lower()
        sentence = f"{protocol} port {port} of {host} cannot be used ({why}); choose another {option}"
        raise WordwingError(sentence) from None
    return made


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
        self._clients: list[_Client] = []
        self._listener = bind_socket(host, port, "TCP", "--video")
        self._listener.listen(MAX_CLIENTS)
        self.port: int = self._listener.getsockname()[1]

    @property
    def has_clients(self) -> bool:
        """Whether a client is connected."""
        return bool(self._clients)

    def accept_client(self) -> None:
        """Accept a waiting client, if any; too many are refused."""
        try:
            connection, _address = self._listener.accept()
        except OSError:  # nobody
            return
        if len(self._clients) >= MAX_CLIENTS:
            connection.close()
        else:
            self._clients.append(_Client(connection, self._size))

    def send(self, image: NDArray[np.uint8], time: float) -> None:
        """Send an image.

        Args:
            image: [H, W, 3] RGB.
            time: When its shutter closed, lab time.
        """
        for client in self._clients:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            frame.pts, frame.time_base = round(time / TIME_BASE), TIME_BASE
            client.send(frame)
            if client.gone:
                client.close()
        self._clients = [client for client in self._clients if not client.gone]

    def close(self) -> None:
        """Disconnect all clients."""
        for client in self._clients:
            client.close()
        self._clients = []
        self._listener.close()
