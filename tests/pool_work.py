"""Work for processes that are spawned: they import it by its name."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from wordwing.errors import WordwingError
from wordwing.files import replacing


def squared(number: int) -> tuple[int, int, str | None]:
    """A square, and who computed it with how many threads."""
    return number * number, os.getpid(), os.environ.get("OMP_NUM_THREADS")


def doubled(tensors: Any) -> Any:
    """Two of each."""
    return [tensor + tensor for tensor in tensors]


def marked(piece: tuple[str, int, float]) -> int:
    """Leave a mark in a folder when piece `number` begins, and another one when it has ended so much later."""
    folder, number, seconds = piece
    (Path(folder) / f"begun-{number}").write_text(str(os.getpid()))
    time.sleep(seconds)
    (Path(folder) / f"ended-{number}").touch()
    return number


def written(piece: tuple[str, int]) -> None:
    """Write a file for as long as nobody says otherwise."""
    folder, number = piece
    with replacing(Path(folder) / f"{number}.json"):
        time.sleep(600)


def die(_piece: object) -> None:
    """End this process, as for lack of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def killed(number: int) -> int:
    """Die at the third piece, as for lack of memory."""
    if number == 2:
        die(number)
    return number


def mistaken(number: int) -> int:
    """Complain about the third piece."""
    if number == 2:
        raise WordwingError("piece 2 is wrong")
    return number
