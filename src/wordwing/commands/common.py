"""What several commands share: checks of options, each with its error message, and progress bars."""

import math
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from wordwing.errors import WordwingError
from wordwing.web.sockets import bind_socket

if TYPE_CHECKING:  # an extra's packages, which other commands do without
    from uvicorn import Server

    from wordwing.web.pages import PageConfig, Participation

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")

PACKAGES = {"studio": ("fastapi", "uvicorn", "websockets"), "flight": ("pymavlink",)}
"""What the extras of wordwing install."""

FROM_ZERO = ("seed", "processes", "hold_out", "practice", "videos")
"""Options that may be 0; 0 processes stand for one on each core."""

T = TypeVar("T")


def check_counts(**counts: int | None) -> None:
    """Whole numbers from 1, where None means all, and those of `FROM_ZERO` from 0."""
    for name, count in counts.items():
        least = 0 if name in FROM_ZERO else 1
        if count is not None and count < least:
            raise WordwingError(f"--{name.replace('_', '-')} is {count}; it must be {least} or more")


def check_seed(seed: int) -> int:
    """Seeds are whole numbers from 0."""
    check_counts(seed=seed)
    return seed


def check_range(name: str, value: float, least: int, most: int, unit: str = "") -> None:
    """Numbers from `least` to `most`, and not NaN."""
    if not least <= value <= most:
        raise WordwingError(f"--{name} is {value}; it must be from {least} to {most}{unit}")


def check_port(port: int, name: str = "port") -> None:
    """UDP and TCP ports that can be named."""
    check_range(name, port, 1, 65535)


def check_positive(name: str, value: float) -> float:
    """Numbers above zero, and not NaN or infinity."""
    if not (math.isfinite(value) and value > 0):
        raise WordwingError(f"--{name} is {value}; it must be more than 0")
    return value


def check_image(path: Path) -> Path:
    """Images are written in formats that everybody can open."""
    if path.suffix.lower() not in IMAGE_SUFFIXES:
        raise WordwingError(f"--out is {path}; an image's name must end in {', '.join(IMAGE_SUFFIXES)}")
    return path


def check_packages(what: str, extra: str) -> None:
    """The packages of an optional extra must be installed."""
    if not all(map(find_spec, PACKAGES[extra])):
        raise WordwingError(f"{what} needs packages that are not installed; run: pip install 'wordwing[{extra}]'")


def reachable(host: str) -> str:
    """The name by which others reach an address that is listened on, as it stands in a URL."""
    name = socket.gethostname() if host in ("0.0.0.0", "::", "") else host
    return f"[{name}]" if ":" in name else name


def address(host: str, port: int, token: str | None) -> str:
    """What to type into a browser."""
    return f"http://{reachable(host)}:{port}/" + (f"?token={token}" if token else "")


def invitations(host: str, port: int, names: Sequence[str], token: str | None) -> list[str]:
    """Links to give to participants; under other names the page is behind a proxy, which must speak HTTPS."""
    places = [f"https://{name}/" for name in names] or [address(host, port, None)]
    return [place + (f"#invitation={token}" if token else "") for place in places]


def serve_page(
    make_server: "Callable[[PageConfig[Any]], Server]",
    store: "Participation",
    whom: str,
    host: str,
    port: int,
    names: tuple[str, ...],
    token: str | None,
) -> None:
    """Serve a page on which people take part until Ctrl-C, and print the link that invites them.

    Args:
        make_server: Of the page.
        store: What people's work is kept in.
        whom: Who is invited, in words.
        host: Which address to listen on.
        port: Which port.
        names: Other names by which browsers may reach it.
        token: What the invitation holds; by default what the file tells.
    """
    from wordwing.web.pages import PageConfig

    file = store.file
    if not (os.access(file, os.W_OK) and os.access(file.resolve().parent, os.W_OK)):
        raise WordwingError(f"{file}: this and its folder must be writable, or what people do could not be kept")
    bind_socket(host, port, "TCP", "--port").close()
    config = PageConfig(store, host, port, names, token)
    server = make_server(config)
    links = " or ".join(invitations(host, port, names, config.token))
    print(f"invite {whom} with {links}", "close it with Ctrl+C", sep="\n", flush=True)
    server.run()


def end_by_signals() -> None:
    """End as by Ctrl-C when terminated, and by Ctrl-C also in the background, where shells let it be ignored."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
