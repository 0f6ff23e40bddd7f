"""Demonstrations as a policy learns from them: each pose with the decision that was taken from it."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from wordwing.data.dataset import Dataset
from wordwing.data.demonstrations.archive import Array, Header, check_dataset, read_archive, write_archive
from wordwing.errors import WordwingError
from wordwing.execution.packing import POSITION_STEP, SETPOINT_STEP, unpack_pose, unpack_setpoint
from wordwing.files import read_picture
from wordwing.frames import Pose
from wordwing.interface import MAX_FORWARD, MAX_YAW_RATE, Domain, Setpoint

COLUMNS = 8
"""Of a row: x, y, z, roll, pitch, yaw, forward, yaw rate, as `packing` has them."""

PICTURE = (72, 128, 3)
"""Height, width and colours."""


@dataclass(frozen=True)
class Batch:
    """B flights side by side, padded to the longest: L decisions."""

    pose: Pose
    """[B, L] world frame; the last one again where a flight has ended."""
    setpoint: Setpoint
    """[B, L] as flown from these poses; zero at STOP and where a flight has ended."""
    stop: Tensor
    """[B, L] bool, where STOP was decided."""
    mask: Tensor
    """[B, L] bool, where there was a decision."""


@dataclass(frozen=True, eq=False)
class Demonstrations:
    """Flights of ORACLE in `sim`, in the order of the dataset."""

    header: Header
    ids: tuple[str, ...]
    """[N] instructions."""
    decisions: NDArray[np.int32]
    """[N] T: at which pose STOP was decided, or the steps ran out."""
    stopped: NDArray[np.bool_]
    """[N] whether STOP ended it; else the steps ran out, and no decision belongs to its last pose."""
    rows: NDArray[np.int16]
    """[sum of T + 1, 8] packed poses, each with the setpoint flown from it; zero from the last pose of a flight."""
    rests: NDArray[np.int16]
    """[N, 6] packed poses where the drones came to rest."""
    _devices: dict[torch.device, tuple[Tensor, Tensor, Tensor]] = field(default_factory=dict, repr=False)

    domain: ClassVar[Domain] = "sim"
    arrays: ClassVar[dict[str, tuple[str, int]]] = {
        "ids": ("uint8", 1),
        "decisions": ("int32", 1),
        "stopped": ("bool", 1),
        "rows": ("int16", 2),
        "rests": ("int16", 2),
    }

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """[N + 1] where each flight's rows begin, and where the last one's end."""
        return np.concatenate([[0], np.cumsum(self.decisions + 1, dtype=np.int64)])

    def poses(self, index: int) -> Pose:
        """[T + 1] of one flight, world frame, to the one from which STOP was decided."""
        return unpack_pose(self._rows(index)[:, :6])

    def setpoints(self, index: int) -> Setpoint:
        """[T] of one flight: setpoint t was flown from pose t to pose t + 1."""
        return unpack_setpoint(self._rows(index)[:-1, 6:])

    def rest(self, index: int) -> Pose:
        """[] where one drone came to rest after STOP, world frame."""
        return unpack_pose(torch.from_numpy(self.rests[index]))

    def path(self, index: int) -> NDArray[np.float64]:
        """[T + 2, 2] where one drone flew, down to rest, metres, world frame."""
        packed = np.concatenate([self._rows(index).numpy()[:, :2], self.rests[index, None, :2]])
        return packed * POSITION_STEP

    def batch(self, indices: Sequence[int] | Tensor, device: torch.device | str = "cpu") -> Batch:
        """Some flights, padded, on a device; all rows are kept there from the first call on."""
        chosen = torch.as_tensor(indices, dtype=torch.int64, device="cpu")
        longest = int(self.decisions[chosen.numpy()].max(initial=0)) + 1
        rows, offsets, stopped = self._on(torch.device(device))
        chosen = chosen.to(rows.device)
        first, last = offsets[chosen, None], offsets[chosen + 1, None] - 1  # [B, 1]
        at = first + torch.arange(longest, device=rows.device)  # [B, L]
        packed = rows[at.minimum(last)]  # [B, L, 8]
        stop = (at == last) & stopped[chosen, None]
        return Batch(unpack_pose(packed[..., :6]), unpack_setpoint(packed[..., 6:]), stop, (at < last) | stop)

    def save(self, path: str | Path) -> None:
        """Write the file whole, or leave what was there."""
        write_archive(path, self.header, self._to_arrays())

    @classmethod
    def load(cls, path: str | Path, dataset: Dataset | None = None) -> Self:
        """Read and validate a file; each mistake in it gives one sentence.

        Args:
            path: The file.
            dataset: What the flights must have been flown in, as it is now.
        """
        header, arrays = read_archive(path, cls.domain, cls.arrays)
        if dataset is not None:
            check_dataset(path, header, dataset)
        made = cls._from_arrays(header, arrays, path)
        made._check(path)
        return made

    @classmethod
    def joined(cls, header: Header, parts: Iterable[Self]) -> Self:
        """The flights of several, one after the other."""
        given = list(parts)
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in given])
            for name in (entry.name for entry in fields(cls))
            if name not in ("header", "ids", "_devices")
        }
        return cls(header, tuple(name for part in given for name in part.ids), **columns)

    def _rows(self, index: int) -> Tensor:
        """[T + 1, 8] int16 of one flight."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no flight {index} among {len(self)}")
        begin, end = self.offsets[index % len(self)], self.offsets[index % len(self) + 1]
        return torch.from_numpy(self.rows[begin:end])

    def _on(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        """Rows, offsets and who stopped, on a device."""
        if device not in self._devices:
            arrays = (self.rows, self.offsets, self.stopped)
            rows, offsets, stopped = (torch.from_numpy(array).to(device) for array in arrays)
            self._devices[device] = rows, offsets, stopped
        return self._devices[device]

    def _to_arrays(self) -> dict[str, Array]:
        return {
            "ids": np.frombuffer(json.dumps(self.ids, ensure_ascii=False).encode(), np.uint8),
            "decisions": self.decisions,
            "stopped": self.stopped,
            "rows": np.ascontiguousarray(self.rows.T),  # a column after the other compresses best
            "rests": self.rests,
        }

    @classmethod
    def _from_arrays(cls, header: Header, arrays: dict[str, Array], path: str | Path) -> Self:
        try:
            ids = json.loads(arrays["ids"].tobytes())
        except (ValueError, RecursionError):
            ids = None
        if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
            raise WordwingError(f'{path}: "ids" must be a list of instructions')
        rows = np.ascontiguousarray(arrays["rows"].T)
        return cls(header, tuple(ids), arrays["decisions"], arrays["stopped"], rows, arrays["rests"])

    def _check(self, path: str | Path) -> None:
        """Raise a `WordwingError` if the arrays do not fit each other, or the limits of flight."""
        count = len(self.ids)
        if len(set(self.ids)) != count:
            raise WordwingError(f"{path}: an instruction is in it twice")
        if not len(self.decisions) == len(self.stopped) == len(self.rests) == count:
            raise WordwingError(f"{path}: its arrays are not of {count} flights each")
        if count and not 0 <= self.decisions.min() <= self.decisions.max() <= self.header.steps:
            raise WordwingError(f"{path}: a flight has more than {self.header.steps} steps, or less than none")
        if self.rests.shape[1] != 6 or self.rows.shape != (self.offsets[-1], COLUMNS):
            raise WordwingError(f"{path}: its rows are {list(self.rows.shape)}, not {[int(self.offsets[-1]), COLUMNS]}")
        forward, yaw_rate = self.rows[:, 6] * SETPOINT_STEP, self.rows[:, 7] * SETPOINT_STEP
        if ((forward < 0) | (forward > MAX_FORWARD + 1e-6) | (np.abs(yaw_rate) > MAX_YAW_RATE + 1e-6)).any():
            raise WordwingError(f"{path}: a setpoint is out of its limits")


@dataclass(frozen=True, eq=False)
class LabDemonstrations(Demonstrations):
    """Flights of ORACLE in the lab, with what its camera saw and the poses that its motion capture reported."""

    sizes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    """[sum of T + 1] bytes of each picture."""
    pictures: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    """[sum of sizes] WebP, one after the other."""

    domain: ClassVar[Domain] = "lab"
    arrays: ClassVar[dict[str, tuple[str, int]]] = {
        **Demonstrations.arrays,
        "sizes": ("int32", 1),
        "pictures": ("uint8", 1),
    }

    def images(self, index: int) -> Tensor:
        """[T + 1, 72, 128, 3] uint8 RGB of one flight: picture t was seen with pose t."""
        self._rows(index)  # complains about the index
        begin, end = self.offsets[index % len(self)], self.offsets[index % len(self) + 1]
        return torch.from_numpy(np.stack([self._picture(row) for row in range(begin, end)]))

    @property
    def subsets(self) -> tuple[str, ...]:
        """Names of the parts of the set, the whole first."""
        return ("all", *self.header.subsets)

    def subset(self, name: str) -> NDArray[np.int64]:
        """Indices of the flights in a part of the set."""
        if name == "all":
            return np.arange(len(self))
        if name not in self.header.subsets:
            raise WordwingError(f'there is no subset "{name}"; there are {", ".join(self.subsets)}')
        wanted = set(self.header.subsets[name])
        return np.array([i for i, entry in enumerate(self.ids) if entry.rpartition("/")[0] in wanted], np.int64)

    @cached_property
    def _begins(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.sizes, dtype=np.int64)])

    def _picture(self, row: int) -> NDArray[np.uint8]:
        return decode(self.pictures[self._begins[row] : self._begins[row + 1]].tobytes())

    def _to_arrays(self) -> dict[str, Array]:
        return {**super()._to_arrays(), "sizes": self.sizes, "pictures": self.pictures}

    @classmethod
    def _from_arrays(cls, header: Header, arrays: dict[str, Array], path: str | Path) -> Self:
        plain = Demonstrations._from_arrays(header, arrays, path)
        return cls(
            header,
            plain.ids,
            plain.decisions,
            plain.stopped,
            plain.rows,
            plain.rests,
            sizes=arrays["sizes"],
            pictures=arrays["pictures"],
        )

    def _check(self, path: str | Path) -> None:
        super()._check(path)
        whole = len(self.sizes) == len(self.rows) and (self.sizes > 0).all() and self.sizes.sum() == len(self.pictures)
        if not whole:
            raise WordwingError(f"{path}: there must be one picture for each of {len(self.rows)} poses")
        paragraphs = {name for ids in self.header.subsets.values() for name in ids}
        unknown = paragraphs - {name.rpartition("/")[0] for name in self.ids}
        if unknown:
            raise WordwingError(f'{path}: its subsets name the paragraph "{min(unknown)[:60]}", which is not in it')
        for row in range(len(self.sizes)):
            head = self.pictures[self._begins[row] : self._begins[row] + 12].tobytes()
            if head[:4] != b"RIFF" or head[8:] != b"WEBP":
                raise WordwingError(f"{path}: picture {row} is not WebP")


def encode(image: NDArray[np.uint8], quality: int) -> bytes:
    """A picture [72, 128, 3] RGB as WebP."""
    made = io.BytesIO()
    Image.fromarray(image).save(made, "WEBP", quality=quality, method=6)
    return made.getvalue()


def decode(data: bytes) -> NDArray[np.uint8]:
    """What `encode` made, [72, 128, 3] RGB."""
    height, width, _colours = PICTURE
    try:
        return read_picture(io.BytesIO(data), width, height, ("WEBP",))
    except WordwingError as error:
        raise WordwingError(f"of the demonstrations {error}") from None
