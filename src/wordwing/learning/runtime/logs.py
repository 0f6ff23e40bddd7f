"""Metrics and images of a run, for TensorBoard and, the metrics, as lines of JSON for plots.

Everything is written at once, in the calling thread. TensorBoard's own writer has a queue and a thread: what is in the
queue is lost with a killed process, and a full disk ends in the thread's traceback.
"""

import errno
import io
import json
import math
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # type: ignore[import-untyped]
from tensorboard.compat.proto.summary_pb2 import Summary  # type: ignore[import-untyped]
from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]
from torch import Tensor

from wordwing.errors import WordwingError
from wordwing.files import read_lines, replacing, unwritable

SCALARS = "scalars.jsonl"

MAX_LINE, MAX_SCALARS = 1_000_000, 256_000_000
"""Longest line, and most of all lines, that is read, bytes."""

EVENTS = "events.out.tfevents."
"""How names of TensorBoard's files begin; the time follows, and they are read in the order of their names."""


class MetricLog:
    """The log of one process."""

    def __init__(self, folder: str | Path, start_step: int = -1) -> None:
        """Open a folder's log, or begin one.

        Args:
            folder: Of this process alone.
            start_step: Step of the checkpoint that the process resumes from: later steps are cut off. By default all
                are.
        """
        self._folder = Path(folder)
        self._lines_path = self._folder / SCALARS
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._cut(start_step)
            self._events_path = self._next_events()
            self._lines: BinaryIO = open(self._lines_path, "ab")  # noqa: SIM115
            self._events: BinaryIO = open(self._events_path, "ab")  # noqa: SIM115
        except OSError as error:
            raise _complaint(self._folder, error) from None
        self._write_event(Event(file_version="brain.Event:2"))
        # TensorBoard forgets what earlier files have of this step and later ones.
        self._write_event(Event(step=start_step + 1, session_log=SessionLog(status=SessionLog.START)))

    def scalars(self, values: Mapping[str, float | Tensor], step: int) -> dict[str, float]:
        """Log numbers.

        Args:
            values: By name, as TensorBoard groups them: "losses/value_loss". Tensors of one number are fetched from
                their device together. NaN and infinity are null in JSON.
            step: Of all of them.

        Returns:
            The numbers that were logged.
        """
        numbers = _fetched(values)
        row = {name: number if math.isfinite(number) else None for name, number in numbers.items()}
        self._write(self._lines, self._lines_path, _line({"step": step, "time": round(time.time(), 3), **row}))
        entries = [Summary.Value(tag=name, simple_value=number) for name, number in numbers.items()]
        self._write_event(Event(step=step, summary=Summary(value=entries)))
        return numbers

    def image(self, name: str, image: NDArray[np.uint8], step: int) -> None:
        """Log an image, [H, W, 3] uint8."""
        if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3:
            raise ValueError(f"an image is [H, W, 3] uint8, not {list(image.shape)} {image.dtype}")
        png, (height, width, _) = io.BytesIO(), image.shape
        Image.fromarray(image).save(png, "PNG", compress_level=1)  # a run is not to wait for the last tenth of a size
        logged = Summary.Image(height=height, width=width, colorspace=3, encoded_image_string=png.getvalue())
        self._write_event(Event(step=step, summary=Summary(value=[Summary.Value(tag=name, image=logged)])))

    def close(self) -> None:
        """Close the files; everything is in them already."""
        for file in (self._lines, self._events):
            with suppress(OSError):
                file.close()

    def _write_event(self, event: Event) -> None:
        event.wall_time = time.time()
        record = io.BytesIO()
        RecordWriter(record).write(event.SerializeToString())
        self._write(self._events, self._events_path, record.getvalue())

    def _write(self, file: BinaryIO, path: Path, data: bytes) -> None:
        try:
            file.write(data)
            file.flush()
        except OSError as error:
            self.close()
            raise _complaint(path, error) from None

    def _cut(self, start_step: int) -> None:
        """Forget lines of later steps, and what a killed process left of a line."""
        if not self._lines_path.exists():
            return
        kept = [_line(row) for row in _rows(self._lines_path) if row["step"] <= start_step]
        with replacing(self._lines_path) as temporary:
            temporary.write_bytes(b"".join(kept))

    def _next_events(self) -> Path:
        """A file whose name comes after those that are there, however soon after them it is opened."""
        stamps = [path.name.removeprefix(EVENTS).split(".")[0] for path in self._folder.glob(f"{EVENTS}*")]
        latest = max((int(stamp) for stamp in stamps if stamp.isdecimal()), default=0)
        return self._folder / f"{EVENTS}{max(int(time.time()), latest + 1):010d}.wordwing"


def read_scalars(folder: str | Path) -> list[dict[str, Any]]:
    """The rows of a folder's log: "step", "time" (seconds since 1970) and numbers, or None, by name."""
    return list(_rows(Path(folder) / SCALARS))


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for line in read_lines(path, MAX_LINE, MAX_SCALARS):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):  # the last line of a process that was killed, or whose disk was full
            continue
        if isinstance(row, dict) and _are_scalars(row):
            yield row


def _are_scalars(row: dict[str, Any]) -> bool:
    numbers = all(value is None or isinstance(value, int | float) for value in row.values())
    return numbers and isinstance(row.get("step"), int) and row.get("time") is not None


def _line(row: Mapping[str, Any]) -> bytes:
    return (json.dumps(row) + "\n").encode()


def _fetched(values: Mapping[str, float | Tensor]) -> dict[str, float]:
    """All as numbers, with one wait for the device."""
    tensors = [value.detach().reshape(()).double() for value in values.values() if isinstance(value, Tensor)]
    numbers = iter(torch.stack(tensors).tolist() if tensors else [])
    return {name: next(numbers) if isinstance(value, Tensor) else float(value) for name, value in values.items()}


def _complaint(path: Path, error: OSError) -> WordwingError:
    if error.errno == errno.ENOSPC:
        return WordwingError(
            f"{path}: the disk is full; make room and run the same command again, it resumes from its last checkpoint"
        )
    return unwritable(path, error)
