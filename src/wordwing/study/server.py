"""The page on which people rate, as a web application.

A rater's secret comes in a header, from the part of the address that browsers do not send, so neither logs nor
referrers hold it, and no cookie is set. Nothing that is sent tells who flew or what an object is called.
"""

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from wordwing.errors import WordwingError
from wordwing.study.questions import GUIDELINES, INTRODUCTION, QUESTIONS, TASK, UNCLEAR, parse_answers
from wordwing.study.store import (
    EnoughRatersError,
    FinishedError,
    Item,
    Media,
    Study,
    UnfinishedError,
    UnknownItemError,
    UnknownRaterError,
    UnpractisedError,
    token_hash,
)
from wordwing.web.security import Bucket, Guard, HostNames, Limits, Scope, is_loopback, same
from wordwing.web.serving import Guarded, add_static, body, missing, server_of

STATIC = Path(__file__).parent / "static"

MAX_BODY = 4_000
"""Bytes of a request: answers need about 100."""

MAX_REQUESTS = 400
"""That are answered at the same time."""

TYPES: dict[Media, str] = {"video": "video/mp4", "still": "image/webp", "legend": "image/webp"}

STATES: dict[type[Exception], str] = {
    EnoughRatersError: "full",
    UnpractisedError: "unpractised",
    FinishedError: "finished",
    UnfinishedError: "unfinished",
}
"""How the page is answered where something cannot be done now."""

TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")
"""What an invitation may look like."""


class _MalformedError(WordwingError):
    """What was sent makes no sense."""


@dataclass
class StudyConfig:
    """What the page of a study is made with."""

    study: Study
    host: str = "127.0.0.1"
    port: int = 8081
    names: tuple[str, ...] = ()
    """Other names than the bound one by which it may be reached."""
    token: str | None = None
    """A visitor who has it may become a rater. None on this machine alone; elsewhere by default the study's own."""
    requests: Callable[[], Bucket] = field(default=lambda: Bucket(200, 600))
    changes: Callable[[], Bucket] = field(default=lambda: Bucket(10, 60))
    newcomers: Callable[[], Bucket] = field(default=lambda: Bucket(0.5, 60))
    """Rate limits of all that one rater, or one address, asks; of what changes something; and of all new raters."""

    def __post_init__(self) -> None:
        if self.token is not None and not TOKEN.fullmatch(self.token):
            raise WordwingError("--token must have 16 to 200 signs, each a letter, a digit, - or _")
        if self.token is None and (self.names or not is_loopback(self.host)):
            self.token = invitation(self.study)


def invitation(study: Study) -> str:
    """The token with which a study invites, the same each time it is served: 256 bits that only its file tells."""
    secret = hmac.new(bytes.fromhex(study.settings.salt), b"wordwing study invitation 1", hashlib.sha256).digest()
    return base64.urlsafe_b64encode(secret).decode().rstrip("=")


def application(config: StudyConfig) -> FastAPI:
    """The page and what it asks for; everything passes through the guard."""
    app = Guarded(redirect_slashes=False)
    app.add_exception_handler(WordwingError, _explained)
    app.add_exception_handler(HTTPException, missing)
    app.add_exception_handler(RequestValidationError, missing)
    add_static(app, STATIC)
    raters, shown = config.study.rater_hashes(), set[str]()
    _add_routes(app, config, raters, shown)
    names = HostNames.of(config.host, config.port, config.names)
    limits = Limits(config.requests, config.changes, MAX_REQUESTS, bool(config.names))
    app.guard = Guard(app.unguarded, names, "study", None, limits, partial(_known, raters, shown))
    return app


def make_server(config: StudyConfig) -> uvicorn.Server:
    """A server that is ready to run."""
    return server_of(application(config), config.host, config.port, ws="none")


def guide(invited: bool) -> dict[str, Any]:
    """What the page says to everybody.

    Args:
        invited: Whether a rater needs the invitation to begin.
    """
    return {
        "introduction": INTRODUCTION,
        "task": TASK,
        "guidelines": GUIDELINES,
        "questions": [asdict(question) for question in QUESTIONS],
        "unclear": UNCLEAR,
        "invited": invited,
    }


def _add_routes(app: FastAPI, config: StudyConfig, raters: set[bytes], shown: set[str]) -> None:
    """All that the page asks for; new raters, and items that are shown, are noted for the limits."""
    study, newcomers = config.study, config.newcomers()
    content = guide(config.token is not None)

    def show(item: Item) -> dict[str, Any]:
        shown.add(item.id)
        return asdict(item)

    @app.get("/guide")
    async def _guide() -> Response:
        return JSONResponse(content)

    @app.post("/raters")
    async def begin(request: Request) -> Response:
        """A visitor with the invitation becomes a rater."""
        sent = await _json(request)
        brought = sent.get("invitation") if isinstance(sent, dict) else None
        if config.token is not None and not (isinstance(brought, str) and same(brought, config.token)):
            return missing()
        if not newcomers.take():
            return JSONResponse({"message": "many people are beginning just now; wait a little"}, 429)
        token = await run_in_threadpool(study.new_rater)
        raters.add(token_hash(token))
        return JSONResponse({"rater": token}, 201)

    @app.get("/rater")
    def rater(request: Request) -> Response:
        """How far a rater is, and which items are theirs."""
        token = _rater(request)
        order = [{"id": item, "rated": rated} for item, rated in study.order(token)]
        return JSONResponse({"progress": asdict(study.progress(token)), "order": order})

    @app.get("/rater/next")
    def following(request: Request) -> Response:
        """What the rater has not done yet; null when that is nothing."""
        item = study.next_item(_rater(request))
        return JSONResponse({"item": None if item is None else show(item)})

    @app.get("/rater/items/{item_id}")
    def item(request: Request, item_id: str) -> Response:
        return JSONResponse({"item": show(study.item(_rater(request), item_id))})

    @app.post("/rater/items/{item_id}")
    async def answer(request: Request, item_id: str) -> Response:
        """Keep answers, or say what there is to say about those to a practice item."""
        token, sent = _rater(request), await _json(request)

        def keep() -> dict[str, Any]:
            practice = study.item(token, item_id).practice
            try:
                answers = parse_answers(sent)
            except WordwingError as error:
                raise _MalformedError(str(error)) from None
            comments = None
            if practice:
                comments = [asdict(entry) for entry in study.practise(token, item_id, answers)]
            else:
                study.rate(token, item_id, answers)
            return {"feedback": comments, "progress": asdict(study.progress(token))}

        return JSONResponse(await run_in_threadpool(keep))

    @app.post("/rater/finish")
    def finish(request: Request) -> Response:
        token = _rater(request)
        study.finish(token)
        return JSONResponse({"progress": asdict(study.progress(token))})

    @app.api_route("/media/{item_id}/{kind}", methods=["GET", "HEAD"])
    def media(request: Request, item_id: str, kind: Media) -> Response:
        """Videos are fetched by the browser itself, without a rater's secret: an item's id is known to its raters."""
        return ranged(study.media_of(item_id, kind), TYPES[kind], request.headers.get("range"))


def ranged(content: bytes, kind: str, wanted: str | None) -> Response:
    """Bytes, or the range of them that is asked for; Safari plays no videos otherwise.

    Args:
        content: All there are.
        kind: Media type.
        wanted: The header; what is not one plain range is answered with everything.
    """
    headers = {"accept-ranges": "bytes"}
    found = re.fullmatch(r"bytes=([0-9]{0,12})-([0-9]{0,12})", wanted or "")
    if found is None or not any(found.groups()):
        return Response(content, 200, headers, kind)
    size = len(content)
    first, last = found.groups()
    begin = int(first) if first else max(size - int(last), 0)
    end = min(int(last), size - 1) if first and last else size - 1
    if first and last and int(last) < begin:
        return Response(content, 200, headers, kind)
    if begin >= size:
        return Response(b"", 416, {**headers, "content-range": f"bytes */{size}"}, kind)
    return Response(content[begin : end + 1], 206, {**headers, "content-range": f"bytes {begin}-{end}/{size}"}, kind)


def _rater(request: Request) -> str:
    token = _bearer(request.headers.get("authorization", ""))
    if not token:
        raise UnknownRaterError("this is not the link of a rater of this study")
    return token


def _known(raters: Collection[bytes], shown: Collection[str], scope: Scope) -> str:
    """Which rater has sent a request, for the limits; one that another process has let in is a stranger here.

    Browsers fetch images and videos without the secret: the id of a shown item is known to its raters alone.
    """
    _slash, folder, item, *_more = f"{scope['path']}//".split("/")
    if folder == "media" and item in shown:
        return item
    sent = [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == b"authorization"]
    found = token_hash(_bearer(sent[0] if sent else ""))
    return found.hex() if found in raters else ""


def _bearer(header: str) -> str:
    """The secret in a header; empty if there is none."""
    kind, _space, token = header.partition(" ")
    return token if kind.lower() == "bearer" and len(token) <= 200 else ""


async def _json(request: Request) -> object:
    """What was sent."""
    try:
        return json.loads((await body(request, MAX_BODY)).decode())
    except (ValueError, RecursionError):
        raise _MalformedError("this is not JSON") from None
    except WordwingError as error:
        raise _MalformedError(str(error)) from None


def _explained(_request: Request, error: Exception) -> Response:
    """The answer to a page when something cannot be done."""
    if isinstance(error, UnknownRaterError | UnknownItemError):
        return missing()
    if isinstance(error, _MalformedError):
        return JSONResponse({"message": str(error)}, 400)
    if type(error) in STATES:
        return JSONResponse({"state": STATES[type(error)], "message": str(error)}, 409)
    # Other sentences are for the operator of the study: they name files.
    return JSONResponse({"message": "the study cannot be used just now; try again in a minute"}, 503)
