"""The studio as a web application: the routes of its protocol, and the server that runs it."""

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
from wordwing.studio.episodes import DAY, DAYS, Episodes
from wordwing.studio.live import warm_up
from wordwing.studio.messages import MAX_MESSAGE, MalformedError, read_link, read_message
from wordwing.studio.resources import MAX_FLYING, NamedPolicies, Resources, WorkerPool
from wordwing.studio.sessions import GoneError, Session
from wordwing.studio.videos import QueueFullError, VideoJob, VideoQueue
from wordwing.web.security import MAX_BODY, Bucket, Guard, HostNames, Limits, is_loopback, where
from wordwing.web.serving import PATIENCE, Guarded, add_static, body, missing, server_of
from wordwing.world.layout import Layout

STATIC = Path(__file__).parent / "static"

MAX_PAGES = 40
"""Pages that may be connected at the same time: two drones each in the lab, 10 MB each, still fit into 2 GiB."""

IDLE = 15 * 60.0
"""Seconds after which a page that says nothing is let go."""

log = logging.getLogger("wordwing.studio")


@dataclass
class StudioConfig:
    """What a studio is made with."""

    policies: NamedPolicies
    folder: Path
    """Where episodes are kept."""
    host: str = "127.0.0.1"
    port: int = 8080
    token: str | None = None
    """None on this machine alone; elsewhere, and behind a proxy, by default a random one."""
    names: tuple[str, ...] = ()
    """Other names than the bound one by which it may be reached."""
    days: float = DAYS
    limit: int = MAX_FLYING
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


def application(config: StudioConfig) -> FastAPI:
    """The studio; everything but its start and end passes through the guard."""
    episodes = Episodes(config.folder, config.days, config.clock)
    resources = Resources(config.policies, WorkerPool(config.workers), episodes, config.limit, config.steps)

    async def clean_daily() -> None:
        while True:
            await asyncio.sleep(DAY)
            try:
                await asyncio.to_thread(episodes.clean)
            except OSError as error:  # the folder may be readable again tomorrow
                log.warning("old episodes could not be deleted: %s", where(error))

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await resources.workers.fly(warm_up)
        app.state.videos = VideoQueue(config.policies, config.folder, config.steps)
        cleaning = asyncio.create_task(clean_daily())
        try:
            yield
        finally:
            cleaning.cancel()
            await app.state.videos.close()
            resources.workers.close()

    app = Guarded(lifespan=lifespan)
    app.state.resources, app.state.config, app.state.pages = resources, config, 0
    add_static(app, STATIC)
    _add_routes(app, resources)
    app.add_api_websocket_route("/ws", _socket)
    names = HostNames.of(config.host, config.port, config.names)
    limits = Limits(config.requests, config.changes, 4 * MAX_PAGES, bool(config.names))
    app.guard = Guard(app.unguarded, names, "studio", config.token, limits)
    return app


def _add_routes(app: FastAPI, resources: Resources) -> None:
    """Everything but the page and its socket; what is wrong with a request is one sentence."""
    policies, episodes = resources.policies, resources.episodes

    @app.exception_handler(WordwingError)
    def refuse(_request: Request, error: WordwingError) -> Response:
        return JSONResponse({"message": str(error)}, 429 if isinstance(error, QueueFullError) else 400)

    @app.get("/cards/{name}")
    def card(name: str) -> Response:
        return PlainTextResponse(policies[name].card) if name in policies else missing()

    @app.post("/layout")
    async def layout(request: Request) -> Response:
        """A layout file that somebody opened: validated, or refused with the reason."""
        text = await _text(request, MAX_BODY)
        opened = await resources.workers.prepare(lambda: Layout.from_json(text, "this layout"))
        return JSONResponse(json.loads(opened.to_json()))

    @app.get("/episodes/{file}")
    async def episode(file: str) -> Response:
        name, _dot, kind = file.rpartition(".")
        path = episodes.path(name, kind)
        if path is not None:
            kinds = {"json": "application/json", "mp4": "video/mp4"}
            return FileResponse(path, media_type=kinds[kind], filename=f"wordwing-{name[:6]}.{kind}")
        link = episodes.link(name, list(policies)) if kind == "mp4" else None
        if link is None:
            return missing()
        job = app.state.videos.job(name)
        if job is None or job.state == "done":
            app.state.videos.add(link, name, episodes.video_path(name))
        return _progress(app.state.videos.job(name))

    @app.post("/video")
    async def ask(request: Request) -> Response:
        """Fly a shared link again and render a video of it."""
        link = read_link(await _text(request, MAX_MESSAGE), policies)
        return JSONResponse({"job": app.state.videos.add(link)}, 202)

    @app.get("/video/{name}")
    def fetch(name: str) -> Response:
        job = app.state.videos.job(name)
        if job is not None and job.state == "done":
            return FileResponse(job.out, media_type="video/mp4", filename="wordwing.mp4")
        return missing() if job is None else _progress(job)


async def _text(request: Request, most: int) -> str:
    """A request's body, at most so many bytes of UTF-8."""
    try:
        return (await body(request, most)).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WordwingError(f"byte {error.start} is not UTF-8 text; save the file as UTF-8") from None


def _progress(job: VideoJob) -> Response:
    if job.state == "failed":
        return JSONResponse({"message": "the video could not be made"}, 500)
    return JSONResponse({"share": job.share}, 202)


async def _socket(socket: WebSocket) -> None:
    """One page, from its connection to its end; nothing that it says harms another."""
    state = socket.app.state
    config: StudioConfig = state.config
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
            await tell({"type": "busy", "message": text, "limit": config.limit})
        await _close(socket, 1013)
        return
    state.pages += 1
    session = Session(state.resources, tell)
    try:
        await _close(socket, await _converse(socket, session, tell, config))
    except (WebSocketDisconnect, GoneError):
        pass
    except Exception as error:
        log.warning("a connection was broken off: %s", where(error))
        await _close(socket, 1011)
    finally:
        state.pages -= 1
        await session.close()


async def _converse(
    socket: WebSocket, session: Session, tell: Callable[[dict[str, Any] | bytes], Any], config: StudioConfig
) -> int:
    """Answer a page's messages until it must go; returns the code to close with."""
    bucket = Bucket(20, 60)
    while True:
        await asyncio.sleep(bucket.wait())  # many messages are answered slowly
        try:
            event = await asyncio.wait_for(socket.receive(), config.idle)
        except TimeoutError:
            await tell({"type": "error", "message": "no message came for a long time, so the connection was closed"})
            return 1001
        if event["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(event.get("code", 1005))
        try:
            text = event.get("text")
            if text is None:
                raise MalformedError("the message is not text", 1007)
            await session.handle(read_message(text, config.policies))
        except MalformedError as error:
            await tell({"type": "error", "message": str(error)})
            return error.code
        except WordwingError as error:
            await tell({"type": "error", "message": str(error)})


async def _close(socket: WebSocket, code: int) -> None:
    if socket.application_state is WebSocketState.CONNECTED:
        with suppress(RuntimeError, OSError, TimeoutError):
            await asyncio.wait_for(socket.close(code), PATIENCE)


def make_server(config: StudioConfig) -> uvicorn.Server:
    """A server that is ready to run; it takes small messages only."""
    gc.freeze()  # what has been loaded by now stays, and need not be looked through again and again
    return server_of(
        application(config),
        config.host,
        config.port,
        ws_max_size=MAX_MESSAGE,
        ws_per_message_deflate=False,
        ws_ping_interval=20.0,
        ws_ping_timeout=30.0,
    )
