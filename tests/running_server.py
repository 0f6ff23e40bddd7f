"""A server that really listens, on a port of its own."""

import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import httpx
import uvicorn


class RunningServer:
    """In a thread, on loopback."""

    def __init__(self, make: Callable[[int], uvicorn.Server]) -> None:
        """Make a server for a port, and start it."""
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.socket.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.host}"
        self.server = make(self.port)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.socket]}, daemon=True)
        self.thread.start()
        wait_until(lambda: self.server.started)

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        assert not self.thread.is_alive()
        self.socket.close()

    def http(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=30, **options)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()


def send_raw(port: int, data: bytes) -> bytes:
    """What the server answers; it may hang up instead."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
            plain.sendall(data)
            if b"connection: close" not in data:
                plain.shutdown(socket.SHUT_WR)
            answer = b""
            while part := plain.recv(65_536):
                answer += part
            return answer
    except (ConnectionError, TimeoutError):
        return b""


def wait_until(condition: Any, seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
