"""The studio as a web application: the routes of its protocol, and the server that runs it."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, WebSocket
from fastapi.responses import FileResponse, JSONResponse, PlainTextResponse, Response
from starlette.websockets import WebSocketDisconnect, WebSocketState

from wordwing.errors import WordwingError
from wordwing.evaluation.demo import STEPS
from wordwing.studio.crew import Crew
from wordwing.studio.episodes import DAY, DAYS, Episodes
from wordwing.studio.live import warm_up
from wordwing.studio.messages import MAX_MESSAGE, MalformedError, read_link, read_message
from wordwing.studio.videos import Films, QueueFullError
from wordwing.studio.visitors import LIMIT, GoneError, Hangar, Visitor
from wordwing.studio.workers import Workers
from wordwing.web.limits import Bucket, Limits
from wordwing.web.security import MAX_BODY, Guard, Names, is_loopback, where
from wordwing.web.serving import PATIENCE, Guarded, add_static, body, missing, refused, server_of
from wordwing.world.layout import Layout

STATIC = Path(__file__).parent / "static"

MAX_PAGES = 40
"""Pages that may be connected at the same time: two drones each in the lab, 10 MB each, still fit into 2 GiB."""

IDLE = 15 * 60.0
"""Seconds after which a page that says nothing is let go."""

log = logging.getLogger("wordwing.studio")


@dataclass
class Settings:
    """What a studio is made with."""

    crew: Crew
    folder: Path
    """Where episodes are kept."""
    host: str = "127.0.0.1"
    port: int = 8080
    token: str | None = None
    """None on this machine alone; elsewhere, and behind a proxy, by default a random one."""
    names: tuple[str, ...] = ()
    """Other names than the bound one by which it may be reached."""
    days: float = DAYS
    limit: int = LIMIT
    idle: float = IDLE
    steps: int = STEPS
    """Decisions that an instruction is given."""
    workers: int | None = None
    """Threads that fly; by default one a core."""
    clock: Callable[[], float] = time.time
    """Seconds since 1970, for the age of episodes."""
    requests: Callable[[], Bucket] = field(default=lambda: Bucket(200, 600))
    """Rate limits of all that one address asks, and of all that changes something."""
    changes: Callable[[], Bucket] = field(default=lambda: Bucket(5, 30))

    def __post_init__(self) -> None:
        # Another name is a proxy's: through it the whole world comes to this machine's own address.
        if self.token is None and (self.names or not is_loopback(self.host)):
            self.token = secrets.token_urlsafe(32)


def application(settings: Settings) -> FastAPI:
    """The studio; everything but its start and end passes through the guard."""
    episodes = Episodes(settings.folder, settings.days, settings.clock)
    hangar = Hangar(settings.crew, Workers(settings.workers), episodes, settings.limit, settings.steps)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await hangar.workers.fly(warm_up)
        app.state.films = Films(settings.crew, settings.folder, settings.steps)
        cleaning = asyncio.create_task(_clean_daily(hangar.episodes))
        try:
            yield
        finally:
            cleaning.cancel()
            await app.state.films.close()
            hangar.workers.close()

    app = Guarded(lifespan=lifespan)
    app.state.hangar, app.state.settings, app.state.pages = hangar, settings, 0
    add_static(app, STATIC)
    _add_pages(app, settings.crew)
    _add_episodes(app, hangar)
    _add_films(app, settings.crew)
    app.add_api_websocket_route("/ws", _socket)
    names = Names.of(settings.host, settings.port, settings.names)
    limits = Limits(settings.requests, settings.changes, 4 * MAX_PAGES, bool(settings.names))
    app.guard = Guard(app.unguarded, names, "studio", settings.token, limits)
    return app


def _add_pages(app: FastAPI, crew: Crew) -> None:
    @app.get("/cards/{name}")
    def card(name: str) -> Response:
        member = crew.get(name)
        return missing() if member is None else PlainTextResponse(member.card)

    @app.post("/layout")
    async def layout(request: Request) -> Response:
        """A layout file that somebody opened: validated, or refused with the reason."""
        try:
            text = (await body(request, MAX_BODY)).decode("utf-8-sig")
            opened = await app.state.hangar.workers.prepare(lambda: Layout.from_json(text, "this layout"))
        except UnicodeDecodeError as error:
            return refused(f"byte {error.start} of the file is not UTF-8 text; save the file as UTF-8")
        except WordwingError as error:
            return refused(str(error))
        return JSONResponse(json.loads(opened.to_json()))


def _add_episodes(app: FastAPI, hangar: Hangar) -> None:
    @app.get("/episodes/{file}")
    async def episode(file: str) -> Response:
        name, _dot, kind = file.rpartition(".")
        path = hangar.episodes.path(name, kind)
        if path is not None:
            kinds = {"json": "application/json", "mp4": "video/mp4"}
            return FileResponse(path, media_type=kinds[kind], filename=f"wordwing-{name[:6]}.{kind}")
        link = hangar.episodes.link(name, list(hangar.crew)) if kind == "mp4" else None
        if link is None:
            return missing()
        films: Films = app.state.films
        job = films.job(name)
        if job is not None and job.state == "failed":
            return _failed()
        try:
            films.add(link, name, hangar.episodes.film_path(name))
        except QueueFullError as error:
            return JSONResponse({"message": str(error)}, 429)
        job = films.job(name)
        return JSONResponse({"share": 0.0 if job is None else job.share}, 202)


def _add_films(app: FastAPI, crew: Crew) -> None:
    @app.post("/video")
    async def ask(request: Request) -> Response:
        """Fly a shared link again and film it."""
        try:
            link = read_link((await body(request, MAX_MESSAGE)).decode(), crew)
            return JSONResponse({"job": app.state.films.add(link)}, 202)
        except UnicodeDecodeError:
            return refused("the link is not UTF-8 text")
        except QueueFullError as error:
            return JSONResponse({"message": str(error)}, 429)
        except WordwingError as error:
            return refused(str(error))

    @app.get("/video/{name}")
    def fetch(name: str) -> Response:
        job = app.state.films.job(name)
        if job is None:
            return missing()
        if job.state == "failed":
            return _failed()
        if job.state == "done":
            return FileResponse(job.out, media_type="video/mp4", filename="wordwing.mp4")
        return JSONResponse({"share": job.share}, 202)


async def _socket(socket: WebSocket) -> None:
    """One page, from its connection to its end; nothing that it says harms another."""
    state = socket.app.state
    settings: Settings = state.settings
    await socket.accept()
    lock = asyncio.Lock()

    async def tell(message: dict[str, Any] | bytes) -> None:
        data = message if isinstance(message, bytes) else json.dumps(message, allow_nan=False)
        try:
            async with lock, asyncio.timeout(PATIENCE):
                await (socket.send_bytes(data) if isinstance(data, bytes) else socket.send_text(data))
        except (WebSocketDisconnect, RuntimeError, OSError, TimeoutError):
            raise GoneError from None

    if state.pages >= MAX_PAGES:
        with suppress(GoneError):
            text = f"{MAX_PAGES} pages are open, as many as there is room for; try again later"
            await tell({"type": "busy", "message": text, "limit": settings.limit})
        await _close(socket, 1013)
        return
    state.pages += 1
    visitor = Visitor(state.hangar, tell)
    try:
        await _close(socket, await _converse(socket, visitor, tell, settings))
    except (WebSocketDisconnect, GoneError):
        pass
    except Exception as error:
        log.warning("a connection was broken off: %s", where(error))
        await _close(socket, 1011)
    finally:
        state.pages -= 1
        await visitor.close()


async def _converse(
    socket: WebSocket, visitor: Visitor, tell: Callable[[dict[str, Any] | bytes], Any], settings: Settings
) -> int:
    """Answer a page's messages until it must go; returns the code to close with."""
    bucket = Bucket(20, 60)
    while True:
        await asyncio.sleep(bucket.wait())  # who says much is heard slowly
        try:
            event = await asyncio.wait_for(socket.receive(), settings.idle)
        except TimeoutError:
            await tell({"type": "error", "message": "nothing was said for long, so the connection was closed"})
            return 1001
        if event["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(event.get("code", 1005))
        try:
            text = event.get("text")
            if text is None:
                raise MalformedError("the message is not text", 1007)
            await visitor.handle(read_message(text, settings.crew))
        except MalformedError as error:
            await tell({"type": "error", "message": str(error)})
            return error.code
        except WordwingError as error:
            await tell({"type": "error", "message": str(error)})


async def _close(socket: WebSocket, code: int) -> None:
    if socket.application_state is WebSocketState.CONNECTED:
        with suppress(RuntimeError, OSError, TimeoutError):
            await asyncio.wait_for(socket.close(code), PATIENCE)


async def _clean_daily(episodes: Episodes) -> None:
    while True:
        await asyncio.sleep(DAY)
        await asyncio.to_thread(episodes.clean)


def _failed() -> Response:
    return JSONResponse({"message": "the film could not be made"}, 500)


def make_server(settings: Settings) -> uvicorn.Server:
    """A server that is ready to run; it takes small messages only."""
    gc.freeze()  # what has been loaded by now stays, and need not be looked through again and again
    return server_of(
        application(settings),
        settings.host,
        settings.port,
        ws_max_size=MAX_MESSAGE,
        ws_per_message_deflate=False,
        ws_ping_interval=20.0,
        ws_ping_timeout=30.0,
    )
