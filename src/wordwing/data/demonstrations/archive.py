"""The file that demonstrations are kept in: a header and a few arrays in one compressed archive.

The header says which format and version it is, in which dataset the flights were flown (by a hash, so that they are
refused once the dataset is another) and how. Complaints are one sentence each.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wordwing.data.dataset import Dataset
from wordwing.errors import WordwingError
from wordwing.files import replacing
from wordwing.interface import Domain
from wordwing.release import VERSION

FORMAT = "wordwing demonstrations"

FORMAT_VERSION = 1
"""Of the format; other versions are refused."""

MAX_ARRAYS, MAX_TEXT = 512_000_000, 16_000_000
"""Most that all arrays, and those that hold text, may have unpacked, bytes."""

Array = NDArray[Any]


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
    """Of the lab's pictures, WebP's measure from 0 to 100."""
    subsets: Mapping[str, list[str]] = field(default_factory=dict)
    """Ids of the paragraphs in each part of the lab's set."""
    wordwing: str = VERSION
    """Version that flew them."""


_TYPES: dict[str, tuple[type, ...]] = {
    "domain": (str,),
    "dataset": (str,),
    "fingerprint": (str,),
    "split": (str,),
    "steps": (int,),
    "seed": (int, type(None)),
    "quality": (int, type(None)),
    "subsets": (dict,),
    "wordwing": (str,),
}


def fingerprint(dataset: Dataset) -> str:
    """A hash of all that a demonstration depends on: where things stand, and the paths."""
    digest = hashlib.sha256()
    for name in ("paragraphs.jsonl", "layouts.jsonl"):
        try:
            with open(dataset.folder / name, "rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise WordwingError(f"{dataset.folder / name}: cannot be read ({error.strerror})") from None
    return digest.hexdigest()


def write_archive(path: str | Path, header: Header, arrays: Mapping[str, Array]) -> None:
    """Write a file whole, or leave what was there; the same content makes the same bytes."""
    document = {"format": FORMAT, "version": FORMAT_VERSION, **asdict(header)}
    text = np.frombuffer(json.dumps(document, ensure_ascii=False).encode(), np.uint8)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez_compressed(file, allow_pickle=False, header=text, **arrays)


def read_archive(
    path: str | Path, domain: Domain, kinds: Mapping[str, tuple[str, int]]
) -> tuple[Header, dict[str, Array]]:
    """Read a file and check everything that does not depend on what its arrays mean.

    Args:
        path: The file.
        domain: Of the flights that are wanted.
        kinds: For each array its dtype and number of dimensions.
    """
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


def _read(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(f"{name}.npy") as file:
        array: Array = np.lib.format.read_array(file, allow_pickle=False)
        if file.read(1):  # reading to the end is also what checks the sum
            raise ValueError
    return array


def _header(text: Array, domain: Domain, path: str | Path) -> Header:
    row = json.loads(text.tobytes())
    if not isinstance(row, dict) or row.pop("format", None) != FORMAT:
        raise WordwingError(f"{path}: not a file of demonstrations")
    version = row.pop("version", None)
    if version != FORMAT_VERSION:
        raise WordwingError(
            f"{path}: the file's version is {version!r:.40}; this version of wordwing reads {FORMAT_VERSION}, "
            "and wordwing data demonstrate makes it again"
        )
    for key, types in _TYPES.items():
        if type(row.get(key)) not in types:
            raise WordwingError(f'{path}: "{key}" of the header is {row.get(key)!r:.40}')
    if row["domain"] != domain:
        raise WordwingError(f"{path}: these are {row['domain']:.10} demonstrations; {domain} ones are wanted")
    for name, ids in row["subsets"].items():
        if not isinstance(ids, list) or not all(isinstance(entry, str) for entry in ids):
            raise WordwingError(f'{path}: subset "{name:.40}" of the header must be a list of paragraphs')
    return Header(**{key: row[key] for key in _TYPES})


def check_dataset(path: str | Path, header: Header, dataset: Dataset) -> None:
    """Raise a `WordwingError` if flights were flown elsewhere than in a dataset as it is now."""
    if header.dataset != dataset.name:
        raise WordwingError(f"{path}: flown in the dataset {header.dataset!r:.60}, not in {dataset.name!r:.60}")
    if header.fingerprint != fingerprint(dataset):
        raise WordwingError(
            f"{path}: flown in another {dataset.name} than {dataset.folder} is now; "
            f"wordwing data demonstrate {dataset.folder} --domain {header.domain} makes it again"
        )
