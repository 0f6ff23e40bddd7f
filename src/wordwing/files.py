"""Writing files and folders whole or not at all, and reading what anyone may have written."""

from __future__ import annotations

import ctypes
import errno
import io
import json
import lzma
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from wordwing.errors import WordwingError, shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_XZ_MEMORY, _XZ_PIECE = 128 * 2**20, 2**16
"""Bytes: what a decoder may use (xz -9 needs 65 MiB), and what it is given at a time."""

SAFE_NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,59}"
SAFE_NAME_RULE = "a name of at most 60 letters (a to z), digits, _, . and -, and must not begin with . or -"
"""What `safe_name` lets through, as a regular expression and in words."""

unfinished: set[Path] = set()
"""What is being written under temporary names; it is removed when this process is interrupted."""


def cache_folder() -> Path:
    """Where corpora and compiled networks are kept: `$WORDWING_CACHE`, or `wordwing` in the user's cache."""
    chosen = os.environ.get("WORDWING_CACHE")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wordwing"


def safe_name(name: object, where: str) -> str:
    """A name that a file or the web gives and that a path may be made of; any other is refused in one sentence.

    Args:
        name: No slash, no "..", nothing hidden, nothing that could be an option of a command.
        where: Begins the complaint: 'meta.json: "source"'.
    """
    if isinstance(name, str) and re.fullmatch(SAFE_NAME, name):
        return name
    raise WordwingError(f"{where} is {shown(name)}; it must be {SAFE_NAME_RULE}")


def read_bytes(path: str | Path, most: int, what: str, missing: str = "") -> bytes:
    """All of a file; one that is too large is refused before it is read, and each mistake gives one sentence.

    Args:
        path: Where it is.
        most: Bytes at most.
        what: What it should be: "arena".
        missing: What to do where there is none.
    """
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = b"" if size > most else file.read(most + 1)  # a pipe does not tell its size
    except FileNotFoundError:
        raise WordwingError(f"{path}: there is no such file{'; ' * bool(missing)}{missing}") from None
    except IsADirectoryError:
        raise WordwingError(f"{path}: this is a folder, not a file{'; ' * bool(missing)}{missing}") from None
    except OSError as error:
        raise _unreadable(path, error) from None
    if max(size, len(data)) > most:
        raise WordwingError(f"{path}: the file has more than {most} bytes, so it is no {what}")
    return data


def read_text(path: str | Path, most: int, what: str, missing: str = "") -> str:
    """The text of a file in UTF-8; see `read_bytes`."""
    try:
        return read_bytes(path, most, what, missing).decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise WordwingError(f"{path}: byte {error.start} is not UTF-8 text; save the file as UTF-8") from None


def read_json(path: str | Path, most: int, what: str, missing: str = "") -> Any:
    """The content of a JSON file; see `read_bytes`. Python's objects may take 20 times the file's size."""
    text = read_text(path, most, what, missing)
    if not text.strip():
        raise WordwingError(f"{path}: the file is empty; it must be JSON")
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise WordwingError(
            f"{path}: not valid JSON at line {error.lineno}, column {error.colno} ({error.msg}); is the file complete?"
        ) from None
    except (RecursionError, ValueError) as error:  # brackets too deep; an integer too long
        raise WordwingError(f"{path}: not valid JSON ({error})") from None


def read_lines(path: str | Path, most_line: int, most: int | None = None) -> Iterator[bytes]:
    """The lines of a file, with their ends, one at a time; one whose name ends in .xz is unpacked.

    Args:
        path: Where it is.
        most_line: Bytes of a line at most.
        most: Bytes of all lines at most; None for as many as there are.
    """
    number = total = 0
    try:
        with open(path, "rb") as file, io.BufferedReader(_Xz(file)) if Path(path).suffix == ".xz" else file as lines:
            while line := lines.readline(most_line + 1):
                number, total = number + 1, total + len(line)
                if len(line) > most_line:
                    raise WordwingError(f"{path}: line {number} is longer than {most_line // 1_000_000} MB")
                if most is not None and total > most:
                    raise WordwingError(f"{path}: it has more than {most // 1_000_000} MB, unpacked")
                yield line
    except FileNotFoundError:
        raise WordwingError(f"{path}: there is no such file") from None
    except (lzma.LZMAError, EOFError) as error:
        raise WordwingError(f"{path}: after line {number}: not a whole xz file ({error})") from None
    except OSError as error:
        raise _unreadable(path, error) from None


def read_image(file: str | Path | BinaryIO, width: int, height: int, formats: tuple[str, ...]) -> NDArray[np.uint8]:
    """[height, width, 3] RGB; an image of another size is refused before it is unpacked.

    Args:
        file: Where it is, or its bytes.
        width: That it must have, pixels.
        height: That it must have, pixels.
        formats: Pillow's names of those that it may have.
    """
    import numpy as np  # not everybody who reads files needs these
    from PIL import Image

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=formats) as image:
                if image.size != (width, height):
                    raise WordwingError(f"an image is {image.width} × {image.height}, not {width} × {height}")
                return np.array(image.convert("RGB"))
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise WordwingError(f"an image is far larger than {width} × {height}") from None
    except (OSError, ValueError, SyntaxError) as error:
        raise WordwingError(f"an image is damaged ({error})") from None


class _Xz(io.RawIOBase):
    """What an xz file holds; unlike `lzma.open`, with a limit on the memory that its dictionary may take."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            packed = b""
            if self._decoder.eof:  # one file may have several streams, with zeros between them
                packed = (self._decoder.unused_data or self._file.read(_XZ_PIECE)).lstrip(b"\0")
                if not packed:
                    return 0
                self._decoder = lzma.LZMADecompressor(lzma.FORMAT_XZ, _XZ_MEMORY)
            elif self._decoder.needs_input:
                packed = self._file.read(_XZ_PIECE)
                if not packed:
                    raise EOFError("it ends too early")
            data = self._decoder.decompress(packed, len(buffer))
            if data:
                buffer[: len(data)] = data
                return len(data)


def _unreadable(path: str | Path, error: OSError) -> WordwingError:
    return WordwingError(f"{path}: the file cannot be read ({(error.strerror or 'unknown').lower()})")


@contextmanager
def replacing(path: str | Path, durable: bool = True) -> Iterator[Path]:
    """A temporary name beside `path` to write to; it becomes `path` when the block ends well.

    A killed process or a full disk leaves the old file, or none, never half of one.

    Args:
        path: What is replaced.
        durable: Whether a power cut must not, either; what is written every second need not wait for the disk.
    """
    path = Path(path)
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
        os.close(handle)
        with _removed_after(Path(name)) as temporary:
            yield temporary
            os.chmod(temporary, 0o666 & ~_umask())  # mkstemp's 0600 would hide results from colleagues
            if durable:
                _sync(temporary)
            os.replace(temporary, path)
            if durable:
                _sync_folder(path.parent)


def write_text(path: str | Path, text: str) -> None:
    """Write a file in UTF-8, whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, "utf-8")


@contextmanager
def replacing_folder(folder: str | Path) -> Iterator[Path]:
    """A temporary folder beside `folder` to fill; it takes the place of `folder` when the block ends well.

    A killed process, a full disk or a power cut leaves the old folder, or none, never half of one.
    """
    place = Path(folder).resolve()  # what a link points to is replaced, not the link
    with _writing(folder):
        place.parent.mkdir(parents=True, exist_ok=True)
        with _removed_after(Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}-"))) as temporary:
            yield temporary
            os.chmod(temporary, 0o777 & ~_umask())  # mkdtemp's 0700 would hide results from colleagues
            for inside, _folders, files in os.walk(temporary):
                for name in files:
                    _sync(Path(inside, name))
                _sync_folder(Path(inside))
            _swap(temporary, place)
            _sync_folder(place.parent)


def temporary_folder() -> AbstractContextManager[Path]:
    """A folder that is there while the block lasts, and not after an interrupt either."""
    return _removed_after(Path(tempfile.mkdtemp(prefix="wordwing-")))


def remove_unfinished() -> None:
    """Remove what is being written: this process ends before it is finished."""
    for path in list(unfinished):
        _remove(path)


@contextmanager
def _removed_after(path: Path) -> Iterator[Path]:
    """A temporary file or folder, which is removed after the block, or when this process is interrupted in it."""
    unfinished.add(path)
    try:
        yield path
    finally:
        _remove(path)
        unfinished.discard(path)


def _remove(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):
        path.unlink()


@contextmanager
def _writing(path: str | Path) -> Iterator[None]:
    """Turn what goes wrong while something is written into one sentence about `path`."""
    try:
        yield
    except OSError as error:
        raise unwritable(path, error) from None


def check_replaceable(folder: str | Path, names: Collection[str], mark: str, what: str) -> None:
    """Raise a `WordwingError` if something of the user's own would be lost with a folder.

    Args:
        folder: What is to be replaced; it need not be there.
        names: All that may be in it.
        mark: The one of them that must be.
        what: What such a folder is called.
    """
    found: list[str] = []
    with _writing(folder), suppress(FileNotFoundError):
        found = sorted(os.listdir(folder))
    foreign = [name for name in found if name not in names]
    if foreign or (found and mark not in found):
        raise WordwingError(
            f"{folder}: this is not {what} ({(foreign or found)[0]} is in it), so it is not replaced; "
            "choose another --out"
        )


@contextmanager
def locked(folder: str | Path, what: str, doing: str) -> Iterator[None]:
    """Keep a folder, made first if need be, from other commands of wordwing while the block runs.

    Args:
        folder: Where.
        what: What is kept in it: "a run".
        doing: What another command would be doing there: "training".
    """
    import fcntl  # not everywhere

    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(folder / ".lock", "w")  # noqa: SIM115
    except OSError as error:
        why = "it is a file" if folder.is_file() else error.strerror
        raise WordwingError(f"{folder}: {what} cannot be kept there ({why})") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            sentence = f"{folder}: another command is {doing} there; wait for it, or take another --out"
            raise WordwingError(sentence) from None
        yield


def unwritable(path: str | Path, error: OSError) -> WordwingError:
    """The sentence for a file that could not be written."""
    if error.errno == errno.ENOSPC:
        return WordwingError(f"{path}: the disk is full; nothing was changed")
    return WordwingError(f"{path}: cannot be written ({(error.strerror or 'unknown').lower()})")


def _swap(new: Path, folder: Path) -> None:
    """Put a folder in the place of another; at no time is there half of one. `new` may hold the old one afterwards."""
    if not folder.exists():
        os.replace(new, folder)
    elif not _exchange(new, folder):
        old = new.with_name(f"{new.name}-old")
        os.replace(folder, old)
        try:
            os.replace(new, folder)
        except BaseException:
            os.replace(old, folder)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Swap two folders at once, if the file system can: a killed process then leaves one of them in place, always."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    working_folder, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of <linux/fs.h>
    return rename is not None and rename(working_folder, os.fsencode(a), working_folder, os.fsencode(b), exchange) == 0


def _sync(path: Path) -> None:
    """Wait until all of a file is on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the file system can do that."""
    with suppress(OSError):
        _sync(folder)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
