"""A studio that really listens, on a port of its own, and a page that really talks to it."""

import json
import struct
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from websockets.sync.client import ClientConnection, connect

from running_server import RunningServer
from small_policy import VOCABULARY, small_network
from wordwing.model.checkpoint import save_network
from wordwing.studio.resources import NamedPolicies, load_policies
from wordwing.studio.server import StudioConfig, make_server
from wordwing.web.security import Bucket

LAYOUT = {
    "schema": 1,
    "landmarks": [
        {"name": "Barrel", "x": 1.0, "y": 0.5},
        {"name": "Anvil", "x": -1.0, "y": 1.0, "yaw": 0.5},
        {"name": "Pumpkin", "x": 0.0, "y": -1.2},
    ],
}
START = {"x": -1.5, "y": -0.5, "yaw": 0.3}


def small_policies(folder: Path) -> NamedPolicies:
    """Two small policies that have learned nothing."""
    for seed in (0, 1):
        save_network(folder / f"small{seed}", small_network(seed), VOCABULARY, f"# small{seed}\n\nA card.\n")
    return load_policies([str(folder / "small0"), f"other={folder / 'small1'}"])


class RunningStudio(RunningServer):
    """A studio in a thread, on loopback."""

    def __init__(self, policies: NamedPolicies, folder: Path, **settings: Any) -> None:
        generous = {"requests": lambda: Bucket(1e6, 1e6), "changes": lambda: Bucket(1e6, 1e6)}

        def make(port: int) -> uvicorn.Server:
            self.settings = StudioConfig(policies, folder, port=port, **{**generous, **settings})
            return make_server(self.settings)

        super().__init__(make)

    @property
    def resources(self) -> Any:
        return self.server.config.app.state.resources

    def page(self, **options: Any) -> "Page":
        options = {"origin": self.url, "max_size": None, "open_timeout": 20, **options}
        return Page(connect(f"ws://{self.host}/ws", **options))


class Page:
    """What a browser's page does."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.frames: list[tuple[dict[str, Any], dict[str, np.ndarray]]] = []

    def say(self, type: str, **content: Any) -> None:
        self.connection.send(json.dumps({"type": type, **content}))

    def hear(self, timeout: float = 30) -> dict[str, Any]:
        """The next message that is no decision."""
        end = time.monotonic() + timeout
        while True:
            message = self.connection.recv(max(end - time.monotonic(), 0))
            if isinstance(message, str):
                return json.loads(message)
            self.frames.append(decoded(message))

    def listen(self, seconds: float) -> int:
        """How many decisions there are within a time."""
        count, end = len(self.frames), time.monotonic() + seconds
        with suppress(TimeoutError):
            while True:
                self.hear(end - time.monotonic())
        return len(self.frames) - count

    def until(self, type: str, timeout: float = 60, **content: Any) -> dict[str, Any]:
        """The next message of a type with a content; others are passed over."""
        end = time.monotonic() + timeout
        while True:
            message = self.hear(end - time.monotonic())
            if message["type"] == type and all(message[key] == value for key, value in content.items()):
                return message

    def place(
        self, vehicle: str = "sim", seed: int = 0, start: dict[str, float] = START, layout: dict[str, Any] = LAYOUT
    ) -> dict[str, Any]:
        self.say("place", layout=layout, start=start, seed=seed, vehicle=vehicle)
        return self.hear()

    def fly(self, text: str = "go to the barrel", policies: tuple[str, ...] = ("small0",), **content: Any) -> None:
        self.say("fly", text=text, policies=list(policies), **content)

    def __enter__(self) -> "Page":
        self.connection.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self.connection.__exit__(*error)


def poses(page: Page, lane: int = 0) -> list[list[float]]:
    """x, y, z, roll, pitch and yaw at each decision that a page has seen."""
    return [header["pose"] for header, _arrays in page.frames if header["lane"] == lane]


def decoded(message: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A decision's header and arrays, read as the protocol says."""
    (length,) = struct.unpack_from("<I", message)
    header = json.loads(message[4 : 4 + length])
    place, arrays = 4 + length, {}
    for entry in header["arrays"]:
        assert entry["type"] == "uint8"
        count = int(np.prod(entry["shape"]))
        arrays[entry["name"]] = np.frombuffer(message, np.uint8, count, place).reshape(entry["shape"])
        place += count
    assert place == len(message)
    return header, arrays
