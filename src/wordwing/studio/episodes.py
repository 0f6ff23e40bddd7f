"""Episodes that people asked to keep: files with names that nobody can guess, deleted after their time."""

import json
import logging
import os
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch

from wordwing.errors import WordwingError
from wordwing.execution.execution import Execution
from wordwing.files import write_text
from wordwing.frames import euler_from_quaternion
from wordwing.interface import CONTROL_PERIOD
from wordwing.studio.live import Ending, LiveFlight, Start
from wordwing.studio.messages import SharedLink, read_link, start_json

DAY = 86_400.0
DAYS = 30.0
"""How long episodes are kept by default."""

MAX_RECORD = 16_000_000
"""Of one episode, without its video, bytes."""

MAX_EPISODES = 1000
MAX_BYTES = 1_000_000_000
"""Of all kept files together, videos included."""

UNITS = "metres, radians, seconds; world frame, x up and y left in the view from above"

log = logging.getLogger("wordwing.studio")

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
            if not os.access(folder, os.W_OK | os.X_OK):
                raise WordwingError(f"{folder}: this folder must be writable, or episodes could not be kept")
            self.clean()
        except OSError as error:
            raise WordwingError(f"{folder}: episodes cannot be kept there ({error.strerror})") from None

    def keep(self, record: dict[str, Any]) -> str:
        """Write an episode; returns its name."""
        text = json.dumps(record, allow_nan=False, separators=(",", ":"))
        with self._lock:
            try:
                if not self._full(len(text)):
                    return self._write(text)
            except (OSError, WordwingError) as error:  # which says where the folder is: nothing for visitors
                log.warning("an episode could not be kept: %s", error)
                raise WordwingError("the server cannot keep this episode just now; download it instead") from None
        raise WordwingError("the server keeps as many episodes as it can; download this one instead")

    def _full(self, more: int) -> bool:
        """Whether there is no room for one more, of so many bytes."""
        files = self._files()
        count = sum(path.suffix == ".json" for path in files)
        return count >= MAX_EPISODES or sum(path.stat().st_size for path in files) + more > MAX_BYTES

    def _write(self, text: str) -> str:
        name = new_name()
        path = self.folder / f"{name}.json"
        write_text(path, text)
        os.utime(path, (self._clock(),) * 2)
        return name

    def path(self, name: str, kind: str = "json") -> Path | None:
        """The file of an episode, or None where there is none of that name; nothing else can be asked for."""
        if not _NAME.fullmatch(name) or kind not in ("json", "mp4"):
            return None
        path, record = self.folder / f"{name}.{kind}", self.folder / f"{name}.json"
        there = all(file.is_file() and not file.is_symlink() for file in (path, record))
        return path if there and not self._old(record) else None  # a video goes with its episode

    def video_path(self, name: str) -> Path:
        """Where the video of an episode goes."""
        if not _NAME.fullmatch(name):
            raise ValueError("no episode is called that")
        return self.folder / f"{name}.mp4"

    def link(self, name: str, policies: Sequence[str]) -> SharedLink | None:
        """All that decides the flights of an episode, to fly them again; None where it cannot be read."""
        path = self.path(name)
        if path is None:
            return None
        try:
            record = json.loads(path.read_text("utf-8") if path.stat().st_size <= MAX_RECORD else "")
            wanted = ("layout", "start", "seed", "vehicle", "policies", "texts")
            return read_link(json.dumps({key: record[key] for key in wanted}), policies)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def clean(self) -> int:
        """Delete what has been kept for too long; returns how many files that were. Other files are left alone."""
        gone = 0
        with self._lock:
            for path in sorted([*self._files(), *self._files(_HALF)]):  # a record comes before its video
                if self._old(path) or (_FILE.fullmatch(path.name) and not path.with_suffix(".json").exists()):
                    with suppress(OSError):  # the others go all the same, and this one another day
                        path.unlink()
                        gone += 1
        return gone

    def _files(self, kind: re.Pattern[str] = _FILE) -> list[Path]:
        with suppress(FileNotFoundError):  # somebody has deleted the folder; the next episode makes it again
            return [path for path in self.folder.iterdir() if kind.fullmatch(path.name) and path.is_file()]
        return []

    def _old(self, path: Path) -> bool:
        with suppress(OSError):
            return self._clock() - path.stat().st_mtime > self._seconds
        return False


def episode_json(start: Start, texts: Sequence[str], lanes: Sequence[LiveFlight]) -> dict[str, Any]:
    """An episode for people and programs, as the page's own download has it: what decides it, and what happened."""
    rounds = zip(*(lane.executions for lane in lanes), strict=True)
    lengths = [max(len(flight.positions) for flight in flights) for flights in rounds]
    begins = [sum(lengths[:number]) for number in range(len(lengths))]  # who has come to rest waits for the other
    return {
        "schema": 1,
        "kind": "wordwing studio episode",
        "units": UNITS,
        "control_period": CONTROL_PERIOD,
        **start_json(start),
        "policies": [lane.policies[-1] for lane in lanes],
        "texts": list(texts),
        "lanes": [
            {
                "policy": lane.policies[-1],
                "endings": [
                    {"instruction": number, **ending_json(ending)} for number, ending in enumerate(lane.endings)
                ],
                "states": [
                    state
                    for number, flight in enumerate(lane.executions)
                    for state in _states(flight, number, begins[number])
                ],
            }
            for lane in lanes
        ],
    }


def ending_json(ending: Ending) -> dict[str, Any]:
    """How a flight went, for the page and for an episode."""
    numbers = {"seconds": round(ending.seconds, 2), "metres": round(ending.metres, 3)}
    clauses = [{"words": words, "done": done} for words, done in ending.verdict.clauses]
    judged = {"verdict": ending.verdict.summary, "followed": ending.verdict.followed, "clauses": clauses}
    return {"reason": ending.reason, **numbers, **judged}


def _states(flight: Execution, number: int, begin: int) -> Iterator[dict[str, Any]]:
    """Every state of an instruction; while a drone comes to rest its last thought stays.

    Args:
        flight: The record.
        number: Which instruction it is.
        begin: Control periods between the first take-off and its first state.
    """
    turns = torch.stack(euler_from_quaternion(flight.pose.quaternion[0]), -1)
    decided = [] if flight.probabilities is None else flight.probabilities[0].tolist()
    goals, setpoints = flight.believed_goals.tolist(), flight.setpoints.tolist()
    for step, (position, turn) in enumerate(zip(flight.positions, turns.tolist(), strict=True)):
        stop, *unobserved = decided[min(step, len(decided) - 1)] if decided else (None,)
        yield {
            "instruction": number,
            "step": step,
            "time": round((begin + step) * CONTROL_PERIOD, 3),
            "pose": _rounded((*position.tolist(), *turn)),
            "setpoint": _rounded(setpoints[step]) if step < len(setpoints) else None,
            "stop": None if stop is None else _rounded([stop])[0],
            "stopped": step >= flight.end,
            "settling": step >= len(decided),
            "unobserved": _rounded(unobserved) if decided else None,
            "goal": _rounded(goals[min(step, len(goals) - 1)][:2]) if decided else None,
        }


def _rounded(numbers: Sequence[float]) -> list[float | None]:
    """To a micrometre or so; what is not a number becomes null."""
    return [round(number, 6) if abs(number) < 1e9 else None for number in numbers]
