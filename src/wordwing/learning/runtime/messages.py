"""What Process A and Process B send to each other: stage-1 parameters one way, rollouts the other (paper: SuReAL).

Nothing else knows how messages travel. Between processes of one machine every message is a file, written under another
name and renamed: a process that is killed while it writes leaves neither half a message nor a lock behind.
"""

import json
import os
import re
import time
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, torch as safetensors
from torch import Tensor

from wordwing.errors import WordwingError
from wordwing.execution.packing import PackedExecutions
from wordwing.files import replacing

MAX_UNREAD = 64
"""Messages with rollouts that wait for a slow Process A; when there are more, the oldest are dropped."""

PARAMETERS = "parameters.safetensors"

ROLLOUTS = re.compile(r"rollouts-([0-9]+)\.safetensors")


@dataclass(frozen=True)
class Parameters:
    """Stage-1 parameters on their way from Process A to Process B."""

    version: int
    """How many updates of Process A made them."""
    weights: dict[str, Tensor]
    """By name, as a `state_dict` has them; received on the CPU."""


@dataclass(frozen=True)
class Rollouts:
    """M rollouts on their way from Process B to Process A, on the CPU."""

    example: Tensor
    """[M] int64, which examples were flown."""
    executions: PackedExecutions
    """M executions; setpoints are left out."""
    progress: float
    """Share of Process B's training that was done, from 0 to 1."""

    def __post_init__(self) -> None:
        poses, lengths = self.executions.poses, self.executions.lengths
        if self.example.dtype != torch.int64 or lengths.dtype != torch.int64 or poses.dtype != torch.int16:
            raise ValueError("its tensors have other dtypes")
        if self.example.dim() != 1 or self.example.shape != lengths.shape or poses.shape[::2] != (len(lengths), 6):
            raise ValueError("its shapes do not fit")
        if (lengths < 1).any() or (lengths > poses.shape[1]).any() or not 0 <= self.progress <= 1:
            raise ValueError("its numbers do not fit")


class Link(Protocol):
    """How messages travel; no call waits for the other side."""

    def send_parameters(self, parameters: Parameters) -> None:
        """Process A: send B new parameters; those that B has not taken yet are replaced."""

    def newest_parameters(self, after: int) -> Parameters | None:
        """Process B: the newest parameters, if they are of a later version than `after`."""

    def send_rollouts(self, rollouts: Rollouts) -> None:
        """Process B: send A rollouts."""

    def take_rollouts(self) -> list[Rollouts]:
        """Process A: all rollouts that were not taken yet, in the order in which they were sent."""


class DirectLink:
    """Carries messages inside one process."""

    def __init__(self) -> None:
        self._parameters: Parameters | None = None
        self._rollouts: deque[Rollouts] = deque(maxlen=MAX_UNREAD)

    def send_parameters(self, parameters: Parameters) -> None:
        """Send B new parameters, as they are now."""
        self._parameters = Parameters(parameters.version, _copies(parameters.weights))

    def newest_parameters(self, after: int) -> Parameters | None:
        """The newest parameters, if they are of a later version than `after`."""
        newest = self._parameters
        return newest if newest is not None and newest.version > after else None

    def send_rollouts(self, rollouts: Rollouts) -> None:
        """Send A rollouts."""
        self._rollouts.append(_from_tensors(_to_tensors(rollouts), rollouts.progress))

    def take_rollouts(self) -> list[Rollouts]:
        """All rollouts that were not taken yet."""
        taken = list(self._rollouts)
        self._rollouts.clear()
        return taken


class FolderLink:
    """Carries messages between two processes that see the same folder; each kind has one sender and one receiver.

    A message that cannot be read is dropped with a warning, so that it does not end the training.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._cleared: set[str] = set()
        self._number = 0
        self._file: tuple[int, ...] | None = None
        self._version = 0

    def send_parameters(self, parameters: Parameters) -> None:
        """Send B new parameters; raises a `WordwingError` if the disk is full."""
        self._write(PARAMETERS, _copies(parameters.weights), {"version": str(parameters.version)})

    def newest_parameters(self, after: int) -> Parameters | None:
        """The newest parameters, if they are of a later version than `after`; asking costs next to nothing."""
        path = self._folder / PARAMETERS
        file: tuple[int, ...] = ()
        try:
            status = path.stat()
            file = (status.st_ino, status.st_mtime_ns, status.st_size)
            if file == self._file and self._version <= after:
                return None
            weights, metadata = _read(path)
            self._file, self._version = file, int(metadata["version"])
        except FileNotFoundError:
            return None
        except _UNREADABLE as error:
            if file != self._file:
                _warn(path, error)
            self._file, self._version = file, after
            return None
        return Parameters(self._version, weights) if self._version > after else None

    def send_rollouts(self, rollouts: Rollouts) -> None:
        """Send A rollouts; raises a `WordwingError` if the disk is full."""
        waiting = self._waiting()
        self._number = max([self._number, *waiting]) + 1
        name = f"rollouts-{self._number:09d}.safetensors"
        self._write(name, _to_tensors(rollouts), {"progress": repr(float(rollouts.progress))})
        for number in sorted(waiting)[: max(0, len(waiting) + 1 - MAX_UNREAD)]:
            _unlink(waiting[number])

    def take_rollouts(self) -> list[Rollouts]:
        """All rollouts that were not taken yet, in order."""
        taken = []
        for _number, path in sorted(self._waiting().items()):
            try:
                tensors, metadata = _read(path)
                taken.append(_from_tensors(tensors, float(metadata["progress"])))
            except FileNotFoundError:  # B has dropped it just now
                continue
            except _UNREADABLE as error:
                _warn(path, error)
            _unlink(path)
        return taken

    def _waiting(self) -> dict[int, Path]:
        """Files with rollouts, by number."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return {}
        return {int(match[1]): self._folder / name for name in names if (match := ROLLOUTS.fullmatch(name))}

    def _write(self, name: str, tensors: dict[str, Tensor], metadata: dict[str, str]) -> None:
        """Write a message; the first of its kind removes what a killed sender left half written."""
        kind = re.split(r"\W", name)[0]
        if kind not in self._cleared:
            self._cleared.add(kind)
            for path in self._folder.glob(f".{kind}-*"):
                _unlink(path)
        data = safetensors.save(tensors, metadata)
        with replacing(self._folder / name, durable=False) as temporary:
            temporary.write_bytes(data)


def clear_exchange(folder: Path) -> None:
    """Remove messages and heartbeats, also those of older versions, and nothing else that may lie beside them."""
    for pattern in ("parameters.*", "rollouts-*", "executed-*", "[ab].json", ".parameters-*", ".rollouts-*", ".[ab]-*"):
        for path in folder.glob(pattern):
            _unlink(path)
    with suppress(OSError):
        folder.rmdir()


class Heartbeat:
    """A process's status, `a.json` or `b.json` beside the messages, for the process that watches it."""

    def __init__(
        self, folder: str | Path, name: str, every: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = Path(folder) / f"{name}.json"
        self._every, self._clock = every, clock
        self._last = -float("inf")
        for path in (self._path, *self._path.parent.glob(f".{name}-*.json")):  # of an earlier run
            _unlink(path)

    def beat(self, fields: Mapping[str, Any], force: bool = False) -> None:
        """Write the status, at most once a second; between, this costs nothing and reads no tensor.

        Args:
            fields: What `runtime.display` shows; tensors of one number may be among the numbers. The time is added to
                it, seconds since 1970.
            force: Write now, because there is something new: another phase, the end.
        """
        now = self._clock()
        if not force and now - self._last < self._every:
            return
        self._last = now
        text = json.dumps({"time": time.time(), **fields}, default=float)
        try:
            with replacing(self._path, durable=False) as temporary:
                temporary.write_text(text, "utf-8")
        except WordwingError:
            # A full disk has no room for another file; the old one's place is enough to say that it is full.
            with suppress(OSError), open(self._path, "r+b") as file:
                file.write(text.encode())
                file.truncate()


def read_heartbeat(folder: str | Path, name: str) -> dict[str, Any] | None:
    """The status that a process wrote last; None if it has not started."""
    try:
        fields = json.loads((Path(folder) / f"{name}.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


_UNREADABLE = (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError)


def _to_tensors(rollouts: Rollouts) -> dict[str, Tensor]:
    lengths = rollouts.executions.lengths
    return _copies({"example": rollouts.example, "rows": rollouts.executions.rows(), "lengths": lengths})


def _from_tensors(tensors: Mapping[str, Tensor], progress: float) -> Rollouts:
    """What `_to_tensors` was given; raises a ValueError if it does not fit together."""
    rows, lengths = tensors["rows"], tensors["lengths"]
    if rows.dim() != 2 or lengths.dtype != torch.int64 or rows.shape[1] != 6 or int(lengths.sum()) != len(rows):
        raise ValueError("its shapes do not fit")
    if (lengths < 1).any():  # before they become indices
        raise ValueError("its numbers do not fit")
    return Rollouts(tensors["example"], PackedExecutions.from_rows(rows, lengths), progress)


def _copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Contiguous, on the CPU, and apart from what the sender goes on to change."""
    return {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
    }


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """A message's tensors and metadata; raises one of `_UNREADABLE`."""
    data = path.read_bytes()
    tensors = safetensors.load(data)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return tensors, header["__metadata__"]


def _unlink(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)


def _warn(path: Path, error: BaseException) -> None:
    warnings.warn(f"{path}: a message was damaged and is dropped ({error})", RuntimeWarning, stacklevel=3)
