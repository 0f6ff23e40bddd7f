"""How much a server does for whom: rates and numbers of requests, for each visitor and address by itself.

Somebody who is known spends nothing of what strangers may, and one address nothing of another's, so that nobody is
locked out by who else comes.
"""

from __future__ import annotations

import ipaddress
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

MAX_KEPT = 4096
"""Visitors whose rates are remembered; who has not come for longest is forgotten first."""

STRANGERS_OF_ONE = 20
"""Requests of strangers at one address that are answered at the same time."""


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
            self._active[key] -= 1
            if not self._active[key]:
                del self._active[key]


def network_of(address: str) -> str:
    """Where somebody is, for limits: an IPv4 address, or of IPv6 the network, in which one machine has any address."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is None:
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
