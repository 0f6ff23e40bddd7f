"""Episodes that visitors asked to keep: files with names that nobody can guess, deleted after their time."""

from __future__ import annotations

import json
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from wordwing.errors import WordwingError
from wordwing.files import replacing
from wordwing.studio.live import Leg, LiveFlight, Start
from wordwing.studio.messages import Link, read_link, start_json

DAY = 86_400.0
DAYS = 30.0
"""How long episodes are kept by default."""

MAX_EPISODES = 1000
MAX_BYTES = 1_000_000_000
"""Of all kept files together, films included."""

_NAME = re.compile(r"[A-Za-z0-9_-]{22}", re.ASCII)
_FILE = re.compile(r"([A-Za-z0-9_-]{22})\.(json|mp4)", re.ASCII)
_HALF = re.compile(r"\.[A-Za-z0-9_-]{22}-.*\.(json|mp4)", re.ASCII)
"""What a killed server leaves of a file that it was writing."""


def data_folder() -> Path:
    """Where episodes are kept unless told otherwise: `wordwing/studio` in the user's data folder."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "wordwing" / "studio"


def new_name() -> str:
    """128 random bits, as they can stand in an address."""
    return secrets.token_urlsafe(16)


class Episodes:
    """A folder of kept episodes."""

    def __init__(self, folder: Path, days: float = DAYS, clock: Callable[[], float] = time.time) -> None:
        """Open a folder, made first if need be, and delete what is too old.

        Args:
            folder: Where.
            days: How long episodes are kept.
            clock: Seconds since 1970.
        """
        self.folder = folder
        self._seconds = days * DAY
        self._clock = clock
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise WordwingError(f"{folder}: episodes cannot be kept there ({error.strerror})") from None
        self.clean()

    def keep(self, record: dict[str, Any]) -> str:
        """Write an episode; returns its name."""
        text = json.dumps(record, allow_nan=False, separators=(",", ":"))
        with self._lock:
            sizes = [path.stat().st_size for path in self._files()]
            count = sum(path.suffix == ".json" for path in self._files())
            if count >= MAX_EPISODES or sum(sizes) + len(text) > MAX_BYTES:
                raise WordwingError("the server keeps as many episodes as it can; download this one instead")
            name = new_name()
            path = self.folder / f"{name}.json"
            with replacing(path) as temporary:
                temporary.write_text(text, "utf-8")
            self._stamp(path)
        return name

    def path(self, name: str, kind: str = "json") -> Path | None:
        """The file of an episode, or None where there is none of that name; nothing else can be asked for."""
        if not _NAME.fullmatch(name) or kind not in ("json", "mp4"):
            return None
        path, record = self.folder / f"{name}.{kind}", self.folder / f"{name}.json"
        there = all(file.is_file() and not file.is_symlink() for file in (path, record))
        return path if there and not self._old(record) else None  # a film goes with its episode

    def film_path(self, name: str) -> Path:
        """Where the film of an episode goes."""
        if not _NAME.fullmatch(name):
            raise ValueError("no episode is called that")
        return self.folder / f"{name}.mp4"

    def link(self, name: str, policies: Sequence[str]) -> Link | None:
        """All that decides the flights of an episode, to fly them again; None where it cannot be read."""
        path = self.path(name)
        if path is None:
            return None
        try:
            record = json.loads(path.read_text("utf-8"))
            wanted = ("layout", "start", "seed", "vehicle", "policies", "texts")
            return read_link(json.dumps({key: record[key] for key in wanted}), policies)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def clean(self) -> int:
        """Delete what has been kept for too long; returns how many files that were. Other files are left alone."""
        gone = 0
        with self._lock:
            for path in sorted([*self._files(), *self._halves()]):  # a record comes before its film
                if self._old(path) or (_FILE.fullmatch(path.name) and not path.with_suffix(".json").exists()):
                    path.unlink(missing_ok=True)
                    gone += 1
        return gone

    def _files(self) -> list[Path]:
        return [path for path in self.folder.iterdir() if _FILE.fullmatch(path.name) and path.is_file()]

    def _halves(self) -> list[Path]:
        return [path for path in self.folder.iterdir() if _HALF.fullmatch(path.name) and path.is_file()]

    def _old(self, path: Path) -> bool:
        try:
            return self._clock() - path.stat().st_mtime > self._seconds
        except OSError:
            return False

    def _stamp(self, path: Path) -> None:
        now = self._clock()
        os.utime(path, (now, now))


def episode_json(
    start: Start, policies: Sequence[str], texts: Sequence[str], lanes: Sequence[LiveFlight]
) -> dict[str, Any]:
    """An episode for people and programs: what decides it, and what happened."""
    return {
        "version": 1,
        **start_json(start),
        "policies": list(policies),
        "texts": list(texts),
        "lanes": [[_leg(leg) for leg in lane.legs] for lane in lanes],
    }


def _leg(leg: Leg) -> dict[str, Any]:
    return {
        "instruction": leg.instruction,
        "policy": leg.policy,
        "ended_by": leg.reason,
        "decisions": leg.decisions,
        "positions": [_rounded(position.tolist()) for position in leg.positions],
        "quaternions": [_rounded(quaternion.tolist()) for quaternion in leg.quaternions],
        "setpoints": [_rounded(setpoint) for setpoint in leg.setpoints],
        "stop": _rounded(leg.stops),
        "unobserved": [_rounded(pair) for pair in leg.unobserved],
        "goals": [_rounded(goal) for goal in leg.goals],
    }


def _rounded(numbers: Sequence[float]) -> list[float | None]:
    """To a micrometre or so; what is not a number becomes null."""
    return [round(number, 6) if abs(number) < 1e9 else None for number in numbers]
