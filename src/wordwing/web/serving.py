"""How pages are served: an application behind its guard, its files, bodies that are not too large, and the server."""

from __future__ import annotations

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

from wordwing.errors import WordwingError
from wordwing.interrupts import end_soon
from wordwing.web.connections import HEAD_BYTES, LimitedProtocol
from wordwing.web.security import STRANGER, Guard, Receive, Scope, Send

SHARED = Path(__file__).parent / "static"
"""What all pages look like."""

PATIENCE = 30.0
"""Seconds that a page may take to receive a message, or a body to arrive."""

STRANGERS_PATIENCE = 5.0
"""Seconds that a stranger's body may take."""

UNTOLD: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
"""No telemetry: it would hold addresses and what was typed."""


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


def missing() -> Response:
    """The answer about all that is not there."""
    return JSONResponse({"message": "there is no such thing here"}, 404)


def refused(message: str) -> Response:
    """The answer to what makes no sense."""
    return JSONResponse({"message": message}, 400)


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
