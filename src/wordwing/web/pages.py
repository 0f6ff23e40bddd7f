"""Pages on which people take part by a link of their own: what their servers share.

A participant's secret comes in a header, from the part of the address that browsers do not send, so neither logs nor
referrers hold it, and no cookie is set. Images and videos have ids of 128 random bits, which only those know who were
shown them.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import uvicorn
from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from wordwing.errors import WordwingError
from wordwing.web.database import DatabaseFormat
from wordwing.web.participants import RefusedRequestError, UnavailableError, UnknownError, invitation, token_hash
from wordwing.web.security import Bucket, Guard, HostNames, Limits, Scope, is_loopback, same
from wordwing.web.serving import Guarded, add_static, body, missing, server_of

MAX_REQUESTS = 400
"""That are answered at the same time."""

TOKEN = re.compile(r"[A-Za-z0-9_-]{16,200}")
"""What an invitation may look like."""


class Participation(Protocol):
    """What a page needs of what it serves."""

    file: Path

    @property
    def format(self) -> DatabaseFormat[Any]:
        """The kind of file."""

    @property
    def settings(self) -> Any:
        """With the `salt`, hex, that makes the invitation."""

    def token_hashes(self) -> set[bytes]:
        """Hashes of the tokens of all who have begun on the page."""

    def new_participant(self) -> str:
        """The token of somebody who begins."""

    def media_of(self, item_id: str, kind: Any) -> bytes:
        """An image or a video."""


Store = TypeVar("Store", bound=Participation)
Sent = TypeVar("Sent")


@dataclass
class PageConfig(Generic[Store]):
    """What a page is made with."""

    store: Store
    host: str = "127.0.0.1"
    port: int = 8081
    names: tuple[str, ...] = ()
    """Other names than the bound one by which it may be reached."""
    token: str | None = None
    """A visitor who has it may take part. None on this machine alone; elsewhere by default the file's own."""
    requests: Callable[[], Bucket] = field(default=lambda: Bucket(200, 600))
    changes: Callable[[], Bucket] = field(default=lambda: Bucket(10, 60))
    newcomers: Callable[[], Bucket] = field(default=lambda: Bucket(0.5, 60))
    """Rate limits of all that one participant, or one address, asks; of what changes something; and of newcomers."""

    def __post_init__(self) -> None:
        if self.token is not None and not TOKEN.fullmatch(self.token):
            raise WordwingError("--token must have 16 to 200 signs, each a letter, a digit, - or _")
        if self.token is None and (self.names or not is_loopback(self.host)):
            self.token = invitation(self.store.format.what, self.store.settings.salt)


class ParticipantPage(Guarded):
    """The page and what it asks for; everything passes through the guard."""

    def __init__(
        self,
        config: PageConfig[Any],
        static: Path,
        who: str,
        guide: Mapping[str, Any],
        types: Mapping[str, str],
        max_body: int,
    ) -> None:
        """Make the application, with what all such pages ask for.

        Args:
            config: What is served, and where.
            static: The page's own files.
            who: What a participant is called: "rater".
            guide: What the page says to everybody.
            types: Media types of images and videos by kind.
            max_body: Most bytes of a request.
        """
        super().__init__(redirect_slashes=False)
        self.config, self.who, self.types, self.max_body = config, who, types, max_body
        self.participants, self.shown = config.store.token_hashes(), set[str]()
        self.add_exception_handler(WordwingError, _explained)
        self.add_exception_handler(HTTPException, missing)
        self.add_exception_handler(RequestValidationError, missing)
        add_static(self, static)
        names = HostNames.of(config.host, config.port, config.names)
        limits = Limits(config.requests, config.changes, MAX_REQUESTS, bool(config.names))
        self.guard = Guard(self.unguarded, names, config.store.format.what, None, limits, self._known)
        self._add_routes({**guide, "invited": config.token is not None}, config.newcomers())

    def token(self, request: Request) -> str:
        """Whose request it is."""
        token = bearer(request.headers.get("authorization", ""))
        if not token:
            raise UnknownError("this is no participant's link")
        return token

    async def sent(self, request: Request, parse: Callable[[object], Sent]) -> Sent:
        """The JSON that was sent, as `parse` reads it."""
        try:
            return parse(json.loads((await body(request, self.max_body)).decode()))
        except (ValueError, RecursionError):
            raise RefusedRequestError("this is not JSON") from None
        except WordwingError as error:
            raise RefusedRequestError(str(error)) from None

    def _add_routes(self, guide: dict[str, Any], newcomers: Bucket) -> None:
        store, token = self.config.store, self.config.token

        @self.get("/guide")
        async def _guide() -> Response:
            return JSONResponse(guide)

        @self.post(f"/{self.who}s")
        async def begin(request: Request) -> Response:
            """A visitor with the invitation becomes a participant."""
            brought = await self.sent(request, lambda sent: sent.get("invitation") if isinstance(sent, dict) else None)
            if token is not None and not (isinstance(brought, str) and same(brought, token)):
                return missing()
            if not newcomers.take():
                return JSONResponse({"message": "many people are beginning just now; wait a little"}, 429)
            new = await run_in_threadpool(store.new_participant)
            self.participants.add(token_hash(new))
            return JSONResponse({self.who: new}, 201)

        @self.api_route("/media/{item_id}/{kind}", methods=["GET", "HEAD"])
        def media(request: Request, item_id: str, kind: str) -> Response:
            """Browsers fetch these themselves, without a participant's secret."""
            if kind not in self.types:
                return missing()
            return ranged(store.media_of(item_id, kind), self.types[kind], request.headers.get("range"))

    def _known(self, scope: Scope) -> str:
        """Who has sent a request, for the limits; one that another process has let in is a stranger here.

        Browsers fetch images and videos without the secret: the id of a shown item is known to its participants alone.
        """
        _slash, folder, item, *_more = f"{scope['path']}//".split("/")
        if folder == "media" and item in self.shown:
            return str(item)
        sent = [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == b"authorization"]
        found = token_hash(bearer(sent[0] if sent else ""))
        return found.hex() if found in self.participants else ""


def page_server(page: ParticipantPage) -> uvicorn.Server:
    """A server that is ready to run."""
    return server_of(page, page.config.host, page.config.port, ws="none")


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


def bearer(header: str) -> str:
    """The secret in a header; empty if there is none."""
    kind, _space, token = header.partition(" ")
    return token if kind.lower() == "bearer" and len(token) <= 200 else ""


def _explained(request: Request, error: Exception) -> Response:
    """The answer to a page when something cannot be done."""
    if isinstance(error, UnknownError):
        return missing()
    if isinstance(error, RefusedRequestError):
        return JSONResponse({"message": str(error)}, 400)
    if isinstance(error, UnavailableError):
        return JSONResponse({"state": error.state, "message": str(error)}, 409)
    # Other sentences are for the operator: they name files.
    what = request.app.config.store.format.what
    return JSONResponse({"message": f"the {what} cannot be used just now; try again in a minute"}, 503)
