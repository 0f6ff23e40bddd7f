"""Checks that several commands need, each with its sentence."""

from __future__ import annotations

import math
import signal
from pathlib import Path

from wordwing.errors import WordwingError

PICTURES = (".png", ".jpg", ".jpeg", ".webp")


def check_seed(seed: int) -> int:
    """Seeds are whole numbers from 0."""
    if seed < 0:
        raise WordwingError(f"--seed is {seed}; it must be 0 or more")
    return seed


def check_picture(path: Path) -> Path:
    """Pictures are written in formats that everybody can open."""
    if path.suffix.lower() not in PICTURES:
        raise WordwingError(f"--out is {path}; a picture's name must end in {', '.join(PICTURES)}")
    return path


def check_positive(name: str, value: float) -> float:
    """Numbers above zero, and not NaN or infinity."""
    if not (math.isfinite(value) and value > 0):
        raise WordwingError(f"--{name} is {value}; it must be more than 0")
    return value


def check_limit(limit: int | None) -> int | None:
    """How many at most; None is all."""
    if limit is not None and limit < 1:
        raise WordwingError(f"--limit is {limit}; it must be 1 or more")
    return limit


def check_processes(processes: int) -> int:
    """How many share the work; 0 stands for one on each core."""
    if processes < 0:
        raise WordwingError(f"--processes is {processes}; it must be 0 or more")
    return processes


def end_by_signals() -> None:
    """End as by Ctrl-C when terminated, and by Ctrl-C also in the background, where shells let it be ignored."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if not callable(signal.getsignal(signal.SIGINT)):
        signal.signal(signal.SIGINT, signal.default_int_handler)
