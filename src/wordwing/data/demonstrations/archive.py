"""The file that demonstrations are kept in: a header and a few arrays in one compressed archive.

The header says which format and version it is, in which dataset the flights were flown (by a hash, so that they are
refused once the dataset is another) and how. The arrays are packed executions one after the other; those of the lab
have images too.
"""

import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from wordwing.data.dataset import Dataset
from wordwing.errors import WordwingError, shown
from wordwing.execution.execution import Execution
from wordwing.execution.packing import (
    POSITION_STEP,
    SETPOINT_STEP,
    PackedExecutions,
    pack_pose,
    unpack_pose,
    unpack_setpoint,
)
from wordwing.files import read_image, replacing
from wordwing.frames import Pose
from wordwing.interface import MAX_FORWARD, MAX_YAW_RATE, Domain, Setpoint
from wordwing.release import VERSION
from wordwing.validation import parse, parse_json

FORMAT = "wordwing demonstrations"

FORMAT_VERSION = 1
"""Of the format; other versions are refused."""

MAX_ARRAYS, MAX_TEXT = 512_000_000, 16_000_000
"""Most that all arrays, and those that hold text, may have unpacked, bytes."""

IMAGE = (72, 128, 3)
"""Height, width and colours."""

QUALITY = 85
"""Of the lab's images: 34.3 dB at 2.0 KB each, where 80 has 33.5 dB at 1.6 KB and 90 has 35.1 dB at 2.6 KB; JPEG takes
2.7 KB for 33.3 dB."""


@dataclass(frozen=True)
class Header:
    """What flights are of, and how they were flown."""

    domain: Domain
    dataset: str
    """The dataset's name."""
    fingerprint: str
    """Hash of the dataset's layouts and paragraphs."""
    split: str
    steps: int
    """Most decisions that a flight was given."""
    seed: int | None = None
    """Of the lab's choice of paragraphs, gusts and noise; `sim` has nothing random."""
    quality: int | None = None
    """Of the lab's images, WebP's measure from 0 to 100."""
    subsets: dict[str, list[str]] = field(default_factory=dict)
    """Ids of the paragraphs in each part of the lab's set."""
    wordwing: str = VERSION
    """Version that flew them."""


@dataclass(frozen=True, eq=False)
class Demonstrations:
    """N flights of ORACLE, in the order of the dataset.

    `sim` flights hold poses and setpoints, their images are drawn again when needed. Flights of the lab hold the images
    of its camera and the poses that its motion capture reported.
    """

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
    sizes: NDArray[np.int32] | None = None
    """[sum of T + 1] bytes of each image; None in `sim`."""
    pictures: NDArray[np.uint8] | None = None
    """[sum of sizes] WebP, one after the other; None in `sim`."""

    @classmethod
    def of(cls, header: Header, ids: Sequence[str], execution: Execution) -> Self:
        """Pack executions [N]; those of the lab must have kept their images."""
        packed = PackedExecutions.of(execution)
        worlds = torch.arange(len(ids), device=packed.poses.device)
        rests = pack_pose(execution.pose[worlds, execution.length.to(worlds.device)])
        lengths = packed.lengths.tolist()
        images = [
            encode(image, header.quality or QUALITY)
            for flight, length in zip(execution.images, lengths, strict=True)
            for image in flight[:length]
        ]
        return cls(
            header,
            tuple(ids),
            np.array(lengths, np.int32) - np.int32(1),
            np.array([by == "stop" for by in execution.ended_by]),
            packed.rows().cpu().numpy(),
            rests.cpu().numpy(),
            np.array([len(image) for image in images], np.int32) if header.domain == "lab" else None,
            np.frombuffer(b"".join(images), np.uint8) if header.domain == "lab" else None,
        )

    @classmethod
    def joined(cls, header: Header, parts: Iterable[Self]) -> Self:
        """The flights of several, one after the other."""
        given = list(parts)
        names = _arrays(header.domain)
        columns: dict[str, Any] = {name: np.concatenate([getattr(part, name) for part in given]) for name in names}
        return cls(header, tuple(name for part in given for name in part.ids), **columns)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """[N + 1] where each flight's rows begin, and where the last one's end."""
        return np.concatenate([[0], np.cumsum(self.decisions + 1, dtype=np.int64)])

    def poses(self, index: int) -> Pose:
        """[T + 1] of one flight, world frame, to the one from which STOP was decided."""
        return unpack_pose(torch.from_numpy(self.rows[self._span(index), :6]))

    def setpoints(self, index: int) -> Setpoint:
        """[T] of one flight: setpoint t was flown from pose t to pose t + 1."""
        return unpack_setpoint(torch.from_numpy(self.rows[self._span(index), 6:][:-1]))

    def rest(self, index: int) -> Pose:
        """[] where one drone came to rest after STOP, world frame."""
        return unpack_pose(torch.from_numpy(self.rests[index]))

    def path(self, index: int) -> NDArray[np.float64]:
        """[T + 2, 2] where one drone flew, until rest, metres, world frame."""
        return np.concatenate([self.rows[self._span(index), :2], self.rests[index, None, :2]]) * POSITION_STEP

    def images(self, index: int) -> Tensor:
        """[T + 1, 72, 128, 3] uint8 RGB of one flight of the lab: image t was seen with pose t."""
        rows = self._span(index)
        return torch.from_numpy(np.stack([decode(self._image(row)) for row in range(rows.start, rows.stop)]))

    def packed(self, indices: Sequence[int] | NDArray[Any], most: int | None = None) -> PackedExecutions:
        """Flights `indices` [M] padded, on the CPU.

        Args:
            indices: Which.
            most: Room for so many poses, and longer flights are cut off; by default the longest of them.
        """
        taken = self.take(indices)
        rows, ends, stopped = map(torch.from_numpy, (taken.rows, taken.decisions, taken.stopped))
        return PackedExecutions.from_rows(rows, ends.long() + 1, stopped, most)

    def take(self, indices: Sequence[int] | NDArray[Any]) -> Self:
        """Flights `indices` in this order, without images."""
        rows = np.concatenate([self.rows[self._span(int(index))] for index in indices])
        ids = tuple(self.ids[index] for index in indices)
        return type(self)(self.header, ids, self.decisions[indices], self.stopped[indices], rows, self.rests[indices])

    @property
    def subsets(self) -> tuple[str, ...]:
        """Names of the parts of the lab's set, the whole first."""
        return ("all", *self.header.subsets)

    def subset(self, name: str) -> NDArray[np.int64]:
        """Indices of the flights in a part of the lab's set."""
        if name == "all":
            return np.arange(len(self))
        if name not in self.header.subsets:
            raise WordwingError(f'there is no subset "{name}"; there are {", ".join(self.subsets)}')
        wanted = set(self.header.subsets[name])
        return np.array([i for i, entry in enumerate(self.ids) if entry.rpartition("/")[0] in wanted], np.int64)

    def save(self, path: str | Path) -> None:
        """Write the file whole, or leave what was there; the same content makes the same bytes."""
        document = {"format": FORMAT, "version": FORMAT_VERSION, **asdict(self.header)}
        arrays: dict[str, Any] = {name: getattr(self, name) for name in _arrays(self.header.domain)}
        arrays["rows"] = np.ascontiguousarray(self.rows.T)  # a column after the other compresses best
        with replacing(path) as temporary, open(temporary, "wb") as file:
            np.savez_compressed(file, allow_pickle=False, header=_text(document), ids=_text(self.ids), **arrays)

    @classmethod
    def load(cls, path: str | Path, dataset: Dataset | None = None, domain: Domain = "sim") -> Self:
        """Read and validate a file; each mistake in it gives one sentence.

        Args:
            path: The file.
            dataset: What the flights must have been flown in, as it is now.
            domain: Where they must have been flown.
        """
        header, arrays = _read_archive(path, domain)
        if dataset is not None:
            _check_dataset(path, header, dataset)
        ids = parse_json(list[str], arrays.pop("ids").tobytes(), f'{path}: "ids"')
        arrays["rows"] = np.ascontiguousarray(arrays["rows"].T)
        made = cls(header, tuple(ids), **arrays)
        made._check(path)
        return made

    def _span(self, index: int) -> slice:
        """Which rows are of one flight."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"there is no flight {index} among {len(self)}")
        return slice(int(self.offsets[index % len(self)]), int(self.offsets[index % len(self) + 1]))

    @cached_property
    def _begins(self) -> NDArray[np.int64]:
        """[sum of T + 2] where each image begins."""
        return np.concatenate([[0], np.cumsum([] if self.sizes is None else self.sizes, dtype=np.int64)])

    def _image(self, row: int) -> bytes:
        if self.pictures is None:
            raise ValueError("demonstrations of `sim` have no images; draw them")
        return self.pictures[self._begins[row] : self._begins[row + 1]].tobytes()

    def _check(self, path: str | Path) -> None:
        """Raise a `WordwingError` if the arrays do not fit each other, or the limits of flight."""
        count = len(self.ids)
        if len(set(self.ids)) != count:
            raise WordwingError(f"{path}: an instruction is in it twice")
        if not len(self.decisions) == len(self.stopped) == len(self.rests) == count:
            raise WordwingError(f"{path}: its arrays are not of {count} flights each")
        if count and not 0 <= self.decisions.min() <= self.decisions.max() <= self.header.steps:
            raise WordwingError(f"{path}: a flight has more than {self.header.steps} steps, or fewer than 0")
        if self.rests.shape[1] != 6 or self.rows.shape != (self.offsets[-1], 8):
            raise WordwingError(f"{path}: its rows are {list(self.rows.shape)}, not {[int(self.offsets[-1]), 8]}")
        forward, yaw_rate = self.rows[:, 6] * SETPOINT_STEP, self.rows[:, 7] * SETPOINT_STEP
        if ((forward < 0) | (forward > MAX_FORWARD + 1e-6) | (np.abs(yaw_rate) > MAX_YAW_RATE + 1e-6)).any():
            raise WordwingError(f"{path}: a setpoint is out of its limits")
        if self.sizes is None or self.pictures is None:
            return
        whole = len(self.sizes) == len(self.rows) and (self.sizes > 0).all() and self.sizes.sum() == len(self.pictures)
        if not whole:
            raise WordwingError(f"{path}: there must be one image for each of {len(self.rows)} poses")
        paragraphs = {name for ids in self.header.subsets.values() for name in ids}
        if unknown := paragraphs - {name.rpartition("/")[0] for name in self.ids}:
            raise WordwingError(f'{path}: its subsets name the paragraph "{min(unknown)[:60]}", which is not in it')
        for row in range(len(self.sizes)):
            head = self._image(row)[:12]
            if head[:4] != b"RIFF" or head[8:] != b"WEBP":
                raise WordwingError(f"{path}: image {row} is not WebP")


def encode(image: NDArray[np.uint8], quality: int) -> bytes:
    """An image [72, 128, 3] RGB as WebP."""
    made = io.BytesIO()
    Image.fromarray(image).save(made, "WEBP", quality=quality, method=6)
    return made.getvalue()


def decode(data: bytes) -> NDArray[np.uint8]:
    """What `encode` made, [72, 128, 3] RGB."""
    height, width, _colours = IMAGE
    try:
        return read_image(io.BytesIO(data), width, height, ("WEBP",))
    except WordwingError as error:
        raise WordwingError(f"a file of demonstrations: {error}") from None


def _arrays(domain: Domain) -> dict[str, tuple[str, int]]:
    """Type and number of dimensions of each array of a file; those of the lab have images too."""
    flights = {"decisions": ("int32", 1), "stopped": ("bool", 1), "rows": ("int16", 2), "rests": ("int16", 2)}
    return flights | ({"sizes": ("int32", 1), "pictures": ("uint8", 1)} if domain == "lab" else {})


def _text(document: Any) -> NDArray[Any]:
    """A JSON document as bytes [n]."""
    return np.frombuffer(json.dumps(document, ensure_ascii=False).encode(), np.uint8)


def _read_archive(path: str | Path, domain: Domain) -> tuple[Header, dict[str, Any]]:
    """Read a file and check everything that does not depend on what its arrays mean."""
    kinds = {"ids": ("uint8", 1)} | _arrays(domain)
    try:
        with zipfile.ZipFile(path) as archive:
            _check_sizes(archive, path)
            header = _header(_read(archive, "header"), domain, path)
            arrays = {name: _read(archive, name) for name in kinds}
    except FileNotFoundError:
        raise WordwingError(f"{path}: there is no such file; wordwing data demonstrate makes one") from None
    except OSError as error:
        raise WordwingError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, KeyError, MemoryError, NotImplementedError):
        raise WordwingError(
            f"{path}: damaged, or not a file of demonstrations; wordwing data demonstrate makes it again"
        ) from None
    for name, (dtype, dimensions) in kinds.items():
        found = arrays[name]
        if found.dtype != np.dtype(dtype) or found.ndim != dimensions:
            raise WordwingError(
                f'{path}: "{name}" is {found.dtype} with {found.ndim} dimensions, not {dtype} with {dimensions}'
            )
    return header, arrays


def _check_sizes(archive: zipfile.ZipFile, path: str | Path) -> None:
    """Raise a `WordwingError` if the arrays would take much memory: what is packed may be a thousand times as much."""
    sizes = {info.filename: info.file_size for info in archive.infolist()}
    for name in ("header", "ids"):  # JSON, which takes 20 times as much
        if sizes.get(f"{name}.npy", 0) > MAX_TEXT:
            raise WordwingError(f'{path}: "{name}" has more than {MAX_TEXT // 1_000_000} MB, unpacked')
    if sum(sizes.values()) > MAX_ARRAYS:
        raise WordwingError(f"{path}: its arrays have more than {MAX_ARRAYS // 1_000_000} MB, unpacked")


def _read(archive: zipfile.ZipFile, name: str) -> NDArray[Any]:
    with archive.open(f"{name}.npy") as file:
        array: NDArray[Any] = np.lib.format.read_array(file, allow_pickle=False)
        if file.read(1):  # reading to the end is also what checks the sum
            raise ValueError
    return array


def _header(text: NDArray[Any], domain: Domain, path: str | Path) -> Header:
    row = json.loads(text.tobytes())
    if not isinstance(row, dict) or row.get("format") != FORMAT:
        raise WordwingError(f"{path}: not a file of demonstrations")
    if row.get("version") != FORMAT_VERSION:
        raise WordwingError(
            f"{path}: the file's version is {shown(row.get('version'))}; this version of wordwing reads "
            f"{FORMAT_VERSION}, and wordwing data demonstrate makes it again"
        )
    header = parse(Header, row, f"{path}: the header")
    if header.domain != domain:
        raise WordwingError(f"{path}: these are {header.domain} demonstrations; {domain} ones are wanted")
    return header


def _check_dataset(path: str | Path, header: Header, dataset: Dataset) -> None:
    """Raise a `WordwingError` if flights were flown elsewhere than in a dataset as it is now."""
    if header.dataset != dataset.name:
        raise WordwingError(f"{path}: flown in the dataset {header.dataset!r:.60}, not in {dataset.name!r:.60}")
    if header.fingerprint != dataset.fingerprint:
        raise WordwingError(
            f"{path}: flown in another {dataset.name} than {dataset.folder} is now; "
            f"wordwing data demonstrate {dataset.folder} --domain {header.domain} makes it again"
        )
