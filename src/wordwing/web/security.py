"""Who may talk to a server: token and cookie, rates, Host, Origin, headers and sizes, before all else runs.

Somebody who is known spends nothing of what strangers may, and one address nothing of another's, so that nobody is
locked out by who else comes.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import socket
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from starlette.requests import cookie_parser

Scope = MutableMapping[str, Any]
Event = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Event]]
Send = Callable[[Event], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

log = logging.getLogger("wordwing.web")

MAX_BODY = 1_000_000
"""Bytes of a request: a large layout file."""

MAX_KEPT = 4096
"""Visitors whose rates are remembered; who has not come for longest is forgotten first."""

STRANGERS_OF_ONE = 20
"""Requests of strangers at one address that are answered at the same time."""

LOCKED = """<!doctype html><html lang="en"><meta charset="utf-8"><title>wordwing {what}</title>
<h1>wordwing {what}</h1><p>This {what} opens with the link that was printed when it was started.</p>
<p>If you have just followed that link, <a href="/">go on to the {what}</a>.</p></html>
"""
# A cookie that is SameSite=Strict is not sent when a link in a chat or a mail leads here, redirects included; a click
# on this page sends it.

BUSY = """<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="{seconds}">
<title>wordwing {what}</title><h1>wordwing {what}</h1>
<p>Very many people are here just now. This page tries again by itself in {seconds} seconds.</p></html>
"""

BUSY_SECONDS = 5

STRANGER = "wordwing.stranger"
"""Where a request's scope says whether a stranger has sent it."""

PERMISSIONS = "accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), microphone=(), usb=()"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class HostNames:
    """What a server may be called in Host and Origin."""

    exact: frozenset[str]
    """Names with their ports, in lower case, as browsers send them."""
    any_address: bool = False
    """Whether any IP address will do: bound to all of a machine's. No DNS can be made to lie about those."""
    port: int = 8080

    @classmethod
    def of(cls, host: str, port: int, more: Iterable[str] = ()) -> HostNames:
        """Of a server that is bound to an address.

        Args:
            host: The address or name.
            port: The port.
            more: Other names, with ":port" where it is another, such as a reverse proxy's.
        """
        names = {"localhost", "127.0.0.1", "[::1]"} if is_loopback(host) else {_bracketed(host)}
        everywhere = host in ("0.0.0.0", "::", "")
        if everywhere:
            names = {"localhost", socket.gethostname(), f"{socket.gethostname()}.local", socket.getfqdn()}
        exact = {f"{name}:{port}" for name in names} | (names if port == 80 else set()) | set(more)
        return cls(frozenset(name.lower() for name in exact), everywhere, port)

    def __contains__(self, host: str) -> bool:
        if host.lower() in self.exact:
            return True
        if not self.any_address:
            return False
        try:
            name = ipaddress.ip_address(urlsplit(f"//{host}").hostname or "")
            return f"{_bracketed(str(name))}:{self.port}" == host.lower()  # as browsers write it, and nothing more
        except ValueError:
            return False


@dataclass
class Bucket:
    """A rate limit: so many a second, and so many at once."""

    rate: float
    burst: float
    clock: Callable[[], float] = time.monotonic
    _level: float = field(init=False)
    _since: float = field(init=False)

    def __post_init__(self) -> None:
        self._level, self._since = self.burst, self.clock()

    def take(self) -> bool:
        """Whether one more may go now; if so it is counted."""
        return self.wait(spend=False) <= 0 and self.wait() <= 0

    def wait(self, *, spend: bool = True) -> float:
        """Seconds until the next one may go; it is counted at once."""
        now = self.clock()
        self._level = min(self.burst, self._level + (now - self._since) * self.rate)
        self._since = now
        short = 1 - self._level
        if spend:
            self._level -= 1
        return max(0.0, short / self.rate)


@dataclass
class Limits:
    """What everybody may ask of a server."""

    requests: Callable[[], Bucket] = lambda: Bucket(200, 600)
    """The rate limit of all that one visitor asks."""
    changes: Callable[[], Bucket] = lambda: Bucket(5, 20)
    """That of all but GET."""
    at_once: int = 400
    """Requests that are answered at the same time: half of them of one address, and half of strangers."""
    proxied: bool = False
    """Whether a proxy stands in between: all come from its address, so that addresses have no limits of their own."""
    _buckets: OrderedDict[tuple[str, str], tuple[Bucket, Bucket]] = field(default_factory=OrderedDict, init=False)
    _active: Counter[tuple[bool, str]] = field(default_factory=Counter, init=False)

    def take(self, visitor: str, address: str, changing: bool) -> bool:
        """Whether a visitor may ask one more thing now; if so it is counted.

        Args:
            visitor: Who, where that is known; empty for strangers.
            address: From where.
            changing: Whether it is more than GET.
        """
        key = visitor, address
        if key not in self._buckets:
            self._buckets[key] = self.requests(), self.changes()
        self._buckets.move_to_end(key)
        requests, changes = self._buckets[key]
        if len(self._buckets) > MAX_KEPT:
            self._buckets.popitem(last=False)
        return requests.take() and (not changing or changes.take())

    @contextmanager
    def answering(self, address: str, stranger: bool) -> Iterator[bool]:
        """Whether there is room for one more request while the block runs; strangers always leave half of it.

        Args:
            address: From where.
            stranger: Whether nobody knows who.
        """
        key, half = (stranger, address), self.at_once // 2
        of_one = self.at_once if self.proxied else STRANGERS_OF_ONE if stranger else half
        strangers = sum(count for (strange, _address), count in self._active.items() if strange)
        if self._active.total() >= self.at_once or self._active[key] >= of_one or (stranger and strangers >= half):
            yield False
            return
        self._active[key] += 1
        try:
            yield True
        finally:
            self._active -= Counter([key])  # which keeps no zeros


def network_of(address: str) -> str:
    """Where somebody is, for limits: an IPv4 address, or of IPv6 the network, in which one machine has any address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)


class Guard:
    """ASGI middleware: everything passes here first."""

    def __init__(
        self,
        app: App,
        names: HostNames,
        what: str,
        token: str | None = None,
        limits: Limits | None = None,
        known: Callable[[Scope], str] | None = None,
    ) -> None:
        """Guard an application.

        Args:
            app: What is guarded.
            names: What it may be called.
            what: What people call it, such as "studio".
            token: What visitors must bring; None where only this machine can reach it.
            limits: Of all that is asked.
            known: Tells who has sent a request that needs no token, for the limits; "" for strangers. Where neither
                this nor a token tells them apart, those have a stranger's limits who send something.
        """
        self.app, self.names, self.what = app, names, what
        self._token, self._known = token, known
        self._limits = limits or Limits()
        self._cookie = f"wordwing-{what}-{names.port}"
        self._session = session_of(token) if token else ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or pass on with our headers."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        # First of all who it is: what strangers ask must not be counted against those who are known.
        brought = _token_in(scope) if self._token else None
        visitor = self._visitor(scope, brought)
        address = network_of(scope["client"][0]) if scope.get("client") else ""
        refusal = self._refusal(scope, visitor, address)
        if refusal is None and self._token and brought is not None:
            if same(brought, self._token):
                await self._welcome(scope, send)
                return
            refusal = (403, b"text/plain", f"this is not the {self.what}'s token\n".encode())
        elif refusal is None and self._token and not visitor:
            refusal = (401, b"text/html; charset=utf-8", LOCKED.format(what=self.what).encode())
        if refusal is not None:
            await self._refuse(scope, send, *refusal)
            return
        apart = self._known is not None or scope.get("method") == "POST"
        scope[STRANGER] = not visitor and apart
        with self._limits.answering(address, scope[STRANGER]) as room:
            if not room:
                await self._turn_away(scope, send)
            elif scope["type"] == "websocket":
                try:
                    await self.app(scope, receive, send)
                except Exception as error:
                    log.warning("a connection was broken off: %s", where(error))
            else:
                await self._answer(scope, receive, send)

    def _visitor(self, scope: Scope, brought: str | None) -> str:
        """Who it is, for the limits; "" for strangers."""
        if self._token is None:
            return self._known(scope) if self._known else ""
        return "visitor" if self._has_cookie(scope) or same(brought or "", self._token) else ""

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; what goes wrong there is not told in the log, since it may hold what somebody typed."""
        begun = False

        async def sending(event: Event) -> None:
            nonlocal begun
            begun = True
            await send(event)

        try:
            await self.app(scope, _limited(receive), self._with_headers(scope, sending))
        except asyncio.CancelledError:  # the server is closing
            if not begun:
                await self._turn_away(scope, send)
        except Exception as error:
            log.warning("a request was broken off: %s", where(error))
            if not begun:
                await self._refuse(scope, send, 500, b"text/plain", b"this was a fault of the server\n")

    def _refusal(self, scope: Scope, visitor: str, address: str) -> tuple[int, bytes, bytes] | None:
        """What is wrong with a request, but for the token."""
        plain = b"text/plain"
        hosts, origins = _headers(scope, b"host"), _headers(scope, b"origin")
        if len(hosts) != 1 or hosts[0] not in self.names:
            return 421, plain, f"the {self.what} is not called that; open the address that it printed\n".encode()
        websocket = scope["type"] == "websocket"
        changing = websocket or scope["method"] not in ("GET", "HEAD")
        scheme, separator, rest = origins[0].partition("://") if len(origins) == 1 else ("", "", "")
        own = scheme in ("http", "https") and separator and rest.lower() == hosts[0].lower()
        if (changing or origins) and not own:
            return 403, plain, f"this must come from the {self.what}'s own page\n".encode()
        if not self._limits.take(visitor, address, changing):
            return 429, plain, b"too many requests; wait a little\n"
        length = _headers(scope, b"content-length")
        if length and (len(length) > 1 or not length[0].isdecimal() or int(length[0][:12]) > MAX_BODY):
            return 413, plain, b"this is too large\n"
        return None

    def _has_cookie(self, scope: Scope) -> bool:
        """Whether the cookie is ours."""
        cookies = cookie_parser("; ".join(_headers(scope, b"cookie")))
        return same(cookies.get(self._cookie, ""), self._session)

    async def _welcome(self, scope: Scope, send: Send) -> None:
        """The token becomes a cookie and leaves the address."""
        cookie = f"{self._cookie}={self._session}; Path=/; HttpOnly; SameSite=Strict"
        await self._send(scope, send, 303, [(b"location", b"/"), (b"set-cookie", cookie.encode())])

    async def _turn_away(self, scope: Scope, send: Send) -> None:
        """Say that there is no room just now; a page that is told so tries again by itself."""
        text = BUSY.format(what=self.what, seconds=BUSY_SECONDS).encode()
        await self._refuse(scope, send, 503, b"text/html; charset=utf-8", text)

    async def _refuse(self, scope: Scope, send: Send, status: int, kind: bytes, body: bytes) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # before it was accepted: 403
            return
        headers = [(b"content-type", kind), (b"connection", b"close")]
        if status in (429, 503):
            headers.append((b"retry-after", str(BUSY_SECONDS).encode()))
        await self._send(scope, send, status, headers, body)

    async def _send(self, scope: Scope, send: Send, status: int, headers: Headers, body: bytes = b"") -> None:
        send = self._with_headers(scope, send)
        headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        ours = security_headers(next(iter(_headers(scope, b"host")), ""), self.names)

        async def sending(event: Event) -> None:
            if event["type"] == "http.response.start":
                given = list(event.get("headers", []))
                names = {name.lower() for name, _value in given}
                event = {**event, "headers": given + [(name, value) for name, value in ours if name not in names]}
            await send(event)

        return sending


def security_headers(host: str, names: HostNames) -> Headers:
    """Those of every answer; the page may load and reach nothing but this server."""
    sockets = f" ws://{host} wss://{host}" if host in names else ""
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        f"media-src 'self' blob:; font-src 'self'; manifest-src 'self'; connect-src 'self'{sockets}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return [
        (b"content-security-policy", policy.encode("latin-1")),
        (b"referrer-policy", b"no-referrer"),
        (b"x-content-type-options", b"nosniff"),
        (b"x-frame-options", b"DENY"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"permissions-policy", PERMISSIONS.encode()),
        (b"cache-control", b"no-store"),
    ]


def where(error: BaseException) -> str:
    """An error for the log: its kind and place. Its sentence may hold what somebody typed."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = "" if trace is None else f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    return f"{type(error).__name__}{place}"


def session_of(token: str) -> str:
    """The cookie's value: whoever learns it does not learn the token."""
    return hmac.new(token.encode(), b"wordwing session 1", hashlib.sha256).hexdigest()


def same(given: str, wanted: str) -> bool:
    """Whether two secrets are equal, in a time that does not tell how much of them is."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), wanted.encode())


def _limited(receive: Receive) -> Receive:
    """A body that ends the request when it grows too large."""
    total = 0

    async def receiving() -> Event:
        nonlocal total
        event = await receive()
        total += len(event.get("body", b""))
        return {"type": "http.disconnect"} if total > MAX_BODY else event

    return receiving


def _token_in(scope: Scope) -> str | None:
    """The token in the address of the page, if there is one."""
    if scope["type"] == "websocket" or scope["path"] != "/" or scope["method"] != "GET":
        return None
    try:
        query = parse_qs(scope.get("query_string", b"").decode("latin-1"), max_num_fields=10)
    except ValueError:
        return None
    return query.get("token", [None])[0]


def _headers(scope: Scope, name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in scope["headers"] if key.lower() == name]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
