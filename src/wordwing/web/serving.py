"""How pages are served: an application behind its guard, its files, bodies that are not too large, and the server.

A connection cannot be held open for nothing: if the header of a request does not arrive in time or is too long, or
nothing of an answer is read, it is closed. Connections that only wait have a limit of their own: the one that has
waited longest makes room for the next.
"""

import asyncio
import mimetypes
import signal
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.requests import ClientDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol

from wordwing.errors import WordwingError
from wordwing.interrupts import end_soon
from wordwing.web.security import STRANGER, Guard, Receive, Scope, Send, network_of

SHARED = Path(__file__).parent / "static"
"""What all pages look like."""

PATIENCE = 30.0
"""Seconds that a page may take to receive a message, or a body to arrive."""

STRANGERS_PATIENCE = 5.0
"""Seconds that a stranger's body may take."""

UNTOLD: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""No telemetry: it would hold addresses and what was typed."""


HEAD_BYTES = 16_384
"""Longest head of a request: its line and headers."""

HEAD_SECONDS = 10.0
"""How long the head may take to arrive, and a connection to stay open without one."""

STALLED_SECONDS = 30.0
"""How long an answer may wait until more of it is read."""

MAX_WAITING, MAX_WAITING_OF_ONE = 300, 100
"""Connections that wait for the head of a request, of all and of one address."""

WATCH_PERIOD = 0.5
"""Seconds between two looks at a connection."""


class Guarded(FastAPI):
    """An application whose guard comes before everything else, also before what FastAPI itself does with requests."""

    guard: Guard

    def __init__(self, **options: Any) -> None:
        super().__init__(docs_url=None, redoc_url=None, openapi_url=None, telemetry=UNTOLD, **options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer what the guard lets through."""
        await self.guard(scope, receive, send)

    async def unguarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """What the guard guards."""
        await super().__call__(scope, receive, send)


def add_static(app: FastAPI, folder: Path) -> None:
    """Serve the page at /, and under /static its other files and those that all pages share.

    Args:
        app: Where to.
        folder: With index.html.
    """
    # What a system calls JavaScript differs, and browsers refuse modules of other types.
    mimetypes.add_type("text/javascript", ".js")
    mimetypes.add_type("image/svg+xml", ".svg")
    files = StaticFiles(directory=folder, check_dir=False)
    files.all_directories.append(SHARED)
    app.mount("/static", files, "static")

    @app.get("/")
    def index() -> Response:
        return FileResponse(folder / "index.html", media_type="text/html; charset=utf-8")


async def body(request: Request, most: int) -> bytes:
    """A request's body, if it is not too large and does not dawdle.

    Args:
        request: Whose.
        most: Bytes.
    """
    parts, total = [], 0
    try:
        async with asyncio.timeout(STRANGERS_PATIENCE if request.scope[STRANGER] else PATIENCE):
            async for part in request.stream():
                total += len(part)
                if total > most:
                    raise WordwingError(f"this is larger than {most // 1000} kB")
                parts.append(part)
    except TimeoutError:
        raise WordwingError("this took too long to arrive") from None
    except ClientDisconnect:
        raise WordwingError("this did not arrive whole") from None
    return b"".join(parts)


def missing(*_: object) -> Response:
    """The answer about all that is not there, also as a handler of exceptions."""
    return JSONResponse({"message": "there is no such thing here"}, 404)


class LimitedProtocol(H11Protocol):
    """A connection to a browser, until it is closed or becomes a WebSocket."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A browser has connected."""
        super().connection_made(transport)
        self._address = network_of(self.client[0]) if self.client else ""
        self._since = self._taken = self.loop.time()
        self._unsent = 0
        self._lost = False
        self._make_room()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed."""
        self._lost = True
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """An answer has been sent: waiting begins anew, even if the answer was too quick to be seen by a watch."""
        self._since = self.loop.time()
        super().on_response_complete()

    @property
    def waits(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        """Close the connection that has waited longest, if too many wait."""
        waiting: list[Any] = [one for one in self.connections if isinstance(one, LimitedProtocol) and one.waits]
        own = [one for one in waiting if one._address == self._address]
        crowd = own if len(own) > MAX_WAITING_OF_ONE else waiting if len(waiting) > MAX_WAITING else None
        if crowd is not None:
            min(crowd, key=lambda one: one._since).transport.abort()

    def _watch(self) -> None:
        if self._lost or self.transport.get_protocol() is not self:  # a WebSocket's pings look after it
            return
        now, unsent = self.loop.time(), self.transport.get_write_buffer_size()
        if not unsent or unsent != self._unsent:
            self._unsent, self._taken = unsent, now
        if unsent or not self.waits:
            self._since = now
        if now - self._since > HEAD_SECONDS or (now - self._taken > STALLED_SECONDS and unsent):
            self.transport.abort()
        else:
            self.loop.call_later(WATCH_PERIOD, self._watch)


class Server(uvicorn.Server):
    """A server that Ctrl-C ends soon, whoever is still connected."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Take leave of visitors, for a moment."""
        if sig == signal.SIGINT:
            end_soon()
        super().handle_exit(sig, frame)


def server_of(app: FastAPI, host: str, port: int, **options: Any) -> uvicorn.Server:
    """A server that is ready to run: no access log, no name of its software.

    Args:
        app: What it serves.
        host: Where it listens.
        port: The same.
        options: Others of uvicorn's.
    """
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http=LimitedProtocol,
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=3,
        **options,
    )
    return Server(config)
