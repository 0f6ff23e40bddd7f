"""HTTP connections that cannot be held for nothing.

Whoever does not send the whole head of a request in time, sends one that is too long, or does not take the answer, is
hung up on. Connections that only wait have a limit of their own: the one that has waited longest makes room for the
next, so that those who ask for something always get in.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from wordwing.web.limits import network_of

HEAD_BYTES = 16_384
"""Longest head of a request: its line and headers."""

HEAD_SECONDS = 10.0
"""How long the head may take to arrive, and a connection to stay open without one."""

STALLED_SECONDS = 30.0
"""How long an answer may wait for somebody to take more of it."""

MAX_WAITING, MAX_WAITING_OF_ONE = 300, 100
"""Connections that wait for the head of a request, of all and of one address."""

EVERY = 0.5
"""Seconds between two looks at a connection."""


class LimitedProtocol(H11Protocol):
    """A connection to a browser, until it is closed or becomes a WebSocket."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Somebody has come."""
        super().connection_made(transport)
        self._address = network_of(self.client[0]) if self.client else ""
        self._since = self._taken = self.loop.time()
        self._unsent = 0
        self._lost = False
        self._make_room()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Somebody has gone."""
        self._lost = True
        super().connection_lost(exc)

    @property
    def waits(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def _make_room(self) -> None:
        """Hang up on who has waited longest, if too many wait."""
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
            self.loop.call_later(EVERY, self._watch)
