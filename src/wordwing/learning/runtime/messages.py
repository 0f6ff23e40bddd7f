"""What Process A and Process B send to each other: stage-1 parameters one way, executions the other (paper: SuReAL).

Nothing else knows how messages travel. Between processes of one machine every message is a file, written under another
name and renamed: a process that is killed while it writes leaves no half message and no lock behind.
"""

from __future__ import annotations

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
from safetensors import SafetensorError
from safetensors import torch as safetensors
from torch import Tensor

from wordwing.errors import WordwingError
from wordwing.files import replacing

MAX_UNREAD = 64
"""Messages with executions that wait for a slow Process A; when there are more, the oldest are dropped."""

PARAMETERS = "parameters.safetensors"

EXECUTED = re.compile(r"executed-([0-9]+)\.safetensors")


@dataclass(frozen=True)
class Parameters:
    """Stage-1 parameters on their way from Process A to Process B."""

    update: int
    """How many updates of Process A made them."""
    weights: dict[str, Tensor]
    """By name, as a `state_dict` has them; received on the CPU."""


@dataclass(frozen=True)
class Executed:
    """M rollouts on their way from Process B to Process A."""

    index: Tensor
    """[M] int64, which instructions were followed."""
    rows: Tensor
    """[sum of lengths, 6] int16, world frame, poses as `wordwing.execution.packing` packs them."""
    lengths: Tensor
    """[M] int64, how many poses each rollout has."""
    progress: float
    """Share of Process B's updates that were done, from 0 to 1."""


class Link(Protocol):
    """How messages travel; no call waits for the other side."""

    def send_parameters(self, parameters: Parameters) -> None:
        """Process A: give B new parameters; those that B has not taken yet are replaced."""

    def newest_parameters(self, after: int) -> Parameters | None:
        """Process B: the newest parameters, if they are of a later update than `after`."""

    def send_executed(self, executed: Executed) -> None:
        """Process B: give A rollouts."""

    def take_executed(self) -> list[Executed]:
        """Process A: all rollouts that were not taken yet, in the order in which they were sent."""


class DirectLink:
    """Inside one process."""

    def __init__(self) -> None:
        self._parameters: Parameters | None = None
        self._executed: deque[Executed] = deque(maxlen=MAX_UNREAD)

    def send_parameters(self, parameters: Parameters) -> None:
        """Give B new parameters, as they are now."""
        self._parameters = Parameters(parameters.update, _copies(parameters.weights))

    def newest_parameters(self, after: int) -> Parameters | None:
        """The newest parameters, if they are of a later update than `after`."""
        newest = self._parameters
        return newest if newest is not None and newest.update > after else None

    def send_executed(self, executed: Executed) -> None:
        """Give A rollouts."""
        self._executed.append(Executed(**_tensors(executed), progress=executed.progress))

    def take_executed(self) -> list[Executed]:
        """All rollouts that were not taken yet."""
        taken = list(self._executed)
        self._executed.clear()
        return taken


class FolderLink:
    """Between two processes that see the same folder; each kind of message has one sender and one receiver.

    A message that cannot be read is dropped with a warning, so that it does not end the training.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._cleared: set[str] = set()
        self._number = 0
        self._file: tuple[int, ...] | None = None
        self._update = 0

    def send_parameters(self, parameters: Parameters) -> None:
        """Give B new parameters; raises a `WordwingError` if the disk is full."""
        self._clear("parameters")
        self._write(PARAMETERS, _copies(parameters.weights), {"update": str(parameters.update)})

    def newest_parameters(self, after: int) -> Parameters | None:
        """The newest parameters, if they are of a later update than `after`; asking costs next to nothing."""
        path = self._folder / PARAMETERS
        file: tuple[int, ...] = ()
        try:
            status = path.stat()
            file = (status.st_ino, status.st_mtime_ns, status.st_size)
            if file == self._file and self._update <= after:
                return None
            weights, metadata = _read(path)
            self._file, self._update = file, int(metadata["update"])
        except FileNotFoundError:
            return None
        except _UNREADABLE as error:
            if file != self._file:
                _warn(path, error)
            self._file, self._update = file, after
            return None
        return Parameters(self._update, weights) if self._update > after else None

    def send_executed(self, executed: Executed) -> None:
        """Give A rollouts; raises a `WordwingError` if the disk is full."""
        tensors = _tensors(executed)
        self._clear("executed")
        waiting = self._waiting()
        self._number = max([self._number, *waiting]) + 1
        name = f"executed-{self._number:09d}.safetensors"
        self._write(name, tensors, {"progress": repr(float(executed.progress))})
        for number in sorted(waiting)[: max(0, len(waiting) + 1 - MAX_UNREAD)]:
            with suppress(OSError):
                waiting[number].unlink(missing_ok=True)

    def take_executed(self) -> list[Executed]:
        """All rollouts that were not taken yet, in order."""
        taken = []
        for _number, path in sorted(self._waiting().items()):
            try:
                tensors, metadata = _read(path)
                progress = float(metadata["progress"])
                _check(**tensors, progress=progress)
                taken.append(Executed(**tensors, progress=progress))
            except FileNotFoundError:  # B has dropped it just now
                continue
            except _UNREADABLE as error:
                _warn(path, error)
            with suppress(OSError):
                path.unlink(missing_ok=True)
        return taken

    def _waiting(self) -> dict[int, Path]:
        """Files with executions, by number."""
        try:
            names = os.listdir(self._folder)
        except OSError:
            return {}
        return {int(match[1]): self._folder / name for name in names if (match := EXECUTED.fullmatch(name))}

    def _write(self, name: str, tensors: Mapping[str, Tensor], metadata: dict[str, str]) -> None:
        data = safetensors.save(dict(tensors), metadata)
        with replacing(self._folder / name, durable=False) as temporary:
            temporary.write_bytes(data)

    def _clear(self, kind: str) -> None:
        """Remove what a killed sender of this kind left half written."""
        if kind not in self._cleared:
            self._cleared.add(kind)
            for path in self._folder.glob(f".{kind}-*"):
                with suppress(OSError):
                    path.unlink(missing_ok=True)


class Pulse:
    """A process's sign of life, `a.json` or `b.json` beside the messages: what it is doing, for whoever watches."""

    def __init__(
        self, folder: str | Path, name: str, every: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = Path(folder) / f"{name}.json"
        self._every, self._clock = every, clock
        self._last = -float("inf")
        for path in (self._path, *self._path.parent.glob(f".{name}-*.json")):  # an earlier run's
            with suppress(OSError):
                path.unlink(missing_ok=True)

    def beat(self, fields: Mapping[str, Any], force: bool = False) -> None:
        """Write what is going on, at most once a second; between, this costs nothing and looks at no tensor.

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


def read_pulse(folder: str | Path, name: str) -> dict[str, Any] | None:
    """What a process wrote last; nothing if it has not begun."""
    try:
        fields = json.loads((Path(folder) / f"{name}.json").read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


_UNREADABLE = (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError)


def _tensors(executed: Executed) -> dict[str, Tensor]:
    """Copies of what a message holds, checked by the sender, who can say where a mistake comes from."""
    tensors = _copies({"index": executed.index, "rows": executed.rows, "lengths": executed.lengths})
    _check(**tensors, progress=executed.progress)
    return tensors


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


def _check(index: Tensor, rows: Tensor, lengths: Tensor, progress: float) -> None:
    """Raise a ValueError if a message does not fit together."""
    if index.dtype != torch.int64 or lengths.dtype != torch.int64 or rows.dtype != torch.int16:
        raise ValueError("its numbers are of other kinds")
    if index.dim() != 1 or index.shape != lengths.shape or rows.dim() != 2 or rows.shape[1] != 6:
        raise ValueError("its shapes do not fit")
    if (lengths < 1).any() or int(lengths.sum()) != len(rows) or not 0 <= progress <= 1:
        raise ValueError("its numbers do not fit")


def _warn(path: Path, error: BaseException) -> None:
    warnings.warn(f"{path}: a message was damaged and is dropped ({error})", RuntimeWarning, stacklevel=3)
