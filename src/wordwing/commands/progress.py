"""Bars that show how far work is."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

T = TypeVar("T")


def track(rows: Iterable[T], title: str, total: int | None = None) -> Iterable[T]:
    """Go through rows, `total` of them where they do not know it, with a bar on stderr if somebody is looking."""
    from rich.console import Console
    from rich.progress import track

    return track(rows, title, total, console=Console(stderr=True), disable=not sys.stderr.isatty())


class Tick(Protocol):
    """What work calls to say how far it is."""

    def __call__(self, count: int, note: str = "") -> None:
        """So much has been done since the last call; `note` is what is worth knowing by now."""


@contextmanager
def bar(title: str, total: int, unit: str) -> Iterator[Tick]:
    """A bar on stderr for work that says itself how far it is, with rate and time left.

    Args:
        title: What is being done.
        total: How much there is to do.
        unit: What is counted: "flights".

    Yields:
        What to call with how much has been done since it was last called, and with a note to show.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(f"{{task.fields[rate]}} {unit}/s"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    console = Console(stderr=True)
    # Batches may come minutes apart; from those of the last 30 s alone no time would be left to tell.
    with Progress(*columns, console=console, speed_estimate_period=600, disable=not sys.stderr.isatty()) as shown:
        task = shown.add_task(title, total=total, rate="…", note="")
        began, done = time.monotonic(), 0

        def tick(count: int, note: str = "") -> None:
            nonlocal done
            done += count
            rate = f"{done / max(time.monotonic() - began, 1e-3):.1f}"
            shown.update(task, advance=count, rate=rate, note=note)

        yield tick
