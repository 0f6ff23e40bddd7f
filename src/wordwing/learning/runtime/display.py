"""Shows how far training is: a line for each process, on stderr."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

NAMES = {"a": "A stage 1", "b": "B stage 2"}

BAR = 16
"""Characters of a bar."""

SILENT = 20.0
"""Seconds after which a process that says nothing is called silent."""


class Display:
    """The status of both processes, in place on a terminal, elsewhere as a line now and then.

    A status has, all of it optional:

    - `phase`: "warm-up", "learning" or "waiting"
    - `done` and `total`: updates
    - `rates`: by unit, {"contexts/s": 15000.0}
    - `metrics`: the newest ones, {"loss": 0.12, "success": 0.4}
    - `message`: a sentence that stays on the screen
    - `time`: of this status, seconds since 1970
    """

    def __init__(
        self,
        title: str,
        console: Console | None = None,
        live: bool | None = None,
        every: float = 30.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare a display.

        Args:
            title: What is being done.
            console: Where to; stderr.
            live: Whether lines can be drawn over; as it is with stderr.
            every: Seconds between lines where they cannot.
            clock: Seconds.
        """
        self._title, self._every, self._clock = title, every, clock
        self._console = console or Console(stderr=True)
        live = sys.stderr.isatty() and not self._console.is_dumb_terminal if live is None else live
        self._live = Live(console=self._console, refresh_per_second=4) if live else None
        self._processes = {key: _Process(name) for key, name in NAMES.items()}
        self._began = clock()
        self._printed: float | None = None
        self._line = ""

    def __enter__(self) -> Self:
        self._began = self._clock()
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()
        elif self._line:  # the status since the last line
            self._print(self._line)

    def show(self, a: Mapping[str, Any] | None, b: Mapping[str, Any] | None) -> None:
        """Show the newest status of Process A and Process B; None if there is none yet."""
        now = self._clock()
        for process, status in zip(self._processes.values(), (a, b), strict=True):
            if status and (news := process.update(status, now)):
                self._print(f"{process.name}: {news}")
        if self._live:
            self._live.update(self._drawn(now))
            return
        if a is None and b is None:
            return
        states = [f"{process.name}: {', '.join(filter(None, process.parts(now)))}" for process in self._known()]
        self._line = f"{self._title}, {_span(now - self._began)}; {'; '.join(states)}"
        if self._printed is None or now - self._printed >= self._every:
            self._print(self._line)
            self._printed, self._line = now, ""

    def say(self, sentence: str) -> None:
        """A sentence that stays on the screen."""
        self._print(f"{self._title}: {sentence}")

    def _drawn(self, now: float) -> Group:
        """The title and a line for each process, part below part; a narrow window cuts off the ends."""
        rows = [process.parts(now) for process in self._known()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [Text(f"{self._title}, {_span(now - self._began)}", style="bold", no_wrap=True, overflow="ellipsis")]
        for process, row in zip(self._known(), rows, strict=True):
            full = round(BAR * process.share)
            cells = [part.ljust(width) for part, width in zip(row, widths, strict=True) if width]
            bar = (("━" * full, "green"), ("━" * (BAR - full), "dim"))
            parts = (process.name, "  ", *bar, "  ", "  ".join(cells))
            lines.append(Text.assemble(*parts, no_wrap=True, overflow="ellipsis"))
        return Group(*lines)

    def _known(self) -> list[_Process]:
        """Processes that have a status; stage 1 alone and behaviour cloning have no Process B."""
        return [process for process in self._processes.values() if process.started]

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


class _Process:
    """The newest status of one process, and how fast it has been since the display saw it begin its phase."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.phase = "starting"
        self.started = False
        self.done, self.total = 0.0, 0.0
        self.rates = self.metrics = ""
        self._message = ""
        self._updated = time.time()
        self._since: tuple[float, float] | None = None

    def update(self, status: Mapping[str, Any], now: float) -> str:
        """Take a new status; returns its message if that is new."""
        phase, done, total = (
            str(status.get("phase", self.phase)),
            _number(status.get("done")),
            _number(status.get("total")),
        )
        if self._since is None or (phase, total) != (self.phase, self.total) or done < self.done:
            self._since = (now, done)
        self.started, self.phase, self.done, self.total = True, phase, done, total
        self._updated = _number(status.get("time")) or time.time()
        self.rates = ", ".join(f"{_short(rate)} {unit}" for unit, rate in _entries(status.get("rates")))
        self.metrics = ", ".join(f"{name} {_short(value)}" for name, value in _entries(status.get("metrics")))
        message = str(status.get("message") or "")
        news = message if message != self._message else ""
        self._message = message or self._message
        return news

    @property
    def state(self) -> str:
        """What it does, and whether it has been silent for long."""
        silence = time.time() - self._updated
        ended = self.total and self.done >= self.total
        return f"{self.phase}, silent {_span(silence)}" if silence > SILENT and not ended else self.phase

    @property
    def share(self) -> float:
        """How much is done, from 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0

    def left(self, now: float) -> float | None:
        """Seconds until all is done, at the pace so far; None if that is unknown."""
        if self._since is None or not self.total or (self.done <= self._since[1] and self.done < self.total):
            return None
        began, done = self._since
        return (self.total - self.done) * (now - began) / max(self.done - done, 1e-9)

    def parts(self, now: float) -> tuple[str, str, str, str, str]:
        """All of it, for a line."""
        left = self.left(now)
        return (
            self.state,
            f"{self.done:,.0f}/{self.total:,.0f}" if self.total else "",
            f"{_span(left)} left" if left is not None else "",
            self.rates,
            self.metrics,
        )


def _entries(found: Any) -> list[tuple[str, Any]]:
    return list(found.items()) if isinstance(found, Mapping) else []


def _number(found: Any) -> float:
    return float(found) if isinstance(found, int | float) and math.isfinite(found) else 0.0


def _short(number: Any) -> str:
    """A number with three digits or all before the point: "0.123", "15,023"."""
    if not isinstance(number, int | float):
        return "–"
    return f"{number:,.0f}" if abs(number) >= 100 else f"{number:.3g}"


def _span(seconds: float) -> str:
    """Seconds as "1:02:03" or "2:03"."""
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02d}:{whole % 60:02d}" if hours else f"{minutes}:{whole % 60:02d}"
