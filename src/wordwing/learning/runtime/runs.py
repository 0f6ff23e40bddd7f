"""The folder of a training run: whose it is, what is in it, and whether the run is finished.

    run.json           command and settings
    state              the last checkpoint; state-a and state-b where there are two processes
    exchange           what two processes send each other
    log-a, log-b       metrics and images, for TensorBoard
    best, policy       the policy that flew dev instructions best, and the last one

`policy` is written last, so a run that has it is finished.
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch

from wordwing.errors import WordwingError
from wordwing.files import locked, read_json, write_text
from wordwing.learning.runtime.checkpoints import tidy

RUN, EXCHANGE = "run.json", "exchange"

BEST, POLICY = "best", "policy"
"""Folders of the policy that flew dev instructions best, and of the last one."""

MAX_SETTINGS = 1_000_000
"""Largest run.json that is read, bytes."""

STATES = {"both": "state", "a": "state-a", "b": "state-b"}


@dataclass(frozen=True)
class RunSettings:
    """Where a run is and how it is carried out; what it learns is up to its configuration."""

    folder: Path
    device: torch.device
    compiled: bool = False
    synchronous: bool = True
    """Whether one process does the work of both."""
    command: str = "sureal"
    """Of `wordwing train`."""
    typed: str = ""
    """All of the command that decides what is learned, as a model card has it."""


class Configuration(Protocol):
    """What a run learns, as `run.json` keeps it."""

    def to_json(self) -> dict[str, Any]:
        """All settings."""

    @staticmethod
    def renamed(found: dict[str, Any]) -> dict[str, Any]:
        """The settings of an older version by their new names."""


@contextmanager
def opened(settings: RunSettings, config: Configuration) -> Iterator[bool]:
    """The folder of a run, which only one command may write to at a time.

    Complains if it is another run's. Yields whether the run is finished.
    """
    folder = settings.folder
    with locked(folder, "a run", "training"):
        known = _keep_config(settings, config)
        for name in (BEST, POLICY):
            tidy(folder / name)
        with enough_memory():
            yield known and (folder / POLICY).is_dir()


@contextmanager
def enough_memory() -> Iterator[None]:
    """Say in a sentence that memory was too small for what is done in the block."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:  # the CPU's and Warp's are told by their words alone
        known = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if not known and not re.search("can't allocate|ailed to allocate", str(error)):
            raise
        raise WordwingError(
            "there is not enough memory; a run with smaller batches needs less "
            "(supervised.executions, supervised.cage_executions, reinforcement.flights, reinforcement.worlds)"
        ) from None


def _keep_config(settings: RunSettings, config: Configuration) -> bool:
    """Write `run.json`, or complain that the folder holds another run; returns whether it was there."""
    path = settings.folder / RUN
    wanted = {"command": settings.command, "synchronous": settings.synchronous, **config.to_json()}
    there = [name for name in (*STATES.values(), BEST, POLICY) if (settings.folder / name).exists()]
    if path.exists():
        try:
            found = read_json(path, MAX_SETTINGS, "run.json")
        except WordwingError:
            raise WordwingError(f"{path}: this cannot be read; a new run needs another --out") from None
        if not isinstance(found, dict) or "command" not in found:
            raise WordwingError(f"{path}: this does not describe a training run; a new run needs another --out")
        if (found := config.renamed(found)) == wanted:
            return True
        # A mistyped setting can be corrected in the same folder as long as nothing has been learned there.
        if there:
            raise WordwingError(
                f"{settings.folder}: it holds another run, which differs in {_difference(found, wanted)}; "
                "give its options to resume it, or another --out for a new one"
            )
    elif there:
        raise WordwingError(
            f"{settings.folder / there[0]}: it is not known which run this belongs to; take another --out"
        )
    write_text(path, json.dumps(wanted, indent=2) + "\n")
    return False


def _difference(found: Any, wanted: Any, name: str = "") -> str:
    """The first setting that two runs do not share, as it is called in --set, with both values."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in (*wanted, *found):
            if key not in found or key not in wanted or found[key] != wanted[key]:
                return _difference(found.get(key), wanted.get(key), f"{name}.{key}" if name else key)
    return f"{name} ({_shown(found)} there, {_shown(wanted)} here)" if name else "its settings"


def _shown(value: Any) -> str:
    """A setting as it is given to --set."""
    if isinstance(value, list):
        return ",".join(map(str, value))
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value)[:60]
