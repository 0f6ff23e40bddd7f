"""Writing files and folders whole or not at all, and reading small ones that anyone may have written."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from wordwing.errors import WordwingError


def read_small(path: str | Path, most: int, what: str, missing: str) -> str:
    """The text of a small file; each mistake gives one sentence.

    Args:
        path: Where it is.
        most: Bytes at most.
        what: What it should be: "arena".
        missing: What to do where there is none.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(most + 1)
    except FileNotFoundError:
        raise WordwingError(f"{path}: there is no such file; {missing}") from None
    except OSError as error:
        raise WordwingError(f"{path}: the file cannot be read ({(error.strerror or 'unknown').lower()})") from None
    if len(data) > most:
        raise WordwingError(f"{path}: the file has more than {most} bytes, so it is no {what}")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise WordwingError(f"{path}: this is not UTF-8 text") from None


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary name beside `path` to write to; it becomes `path` when the block ends well.

    A killed process or a full disk leaves the old file, or none, never half of one.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
        os.close(handle)
    except OSError as error:
        raise unwritable(path, error) from None
    temporary = Path(name)
    try:
        yield temporary
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp's 0600 would hide results from colleagues
        os.replace(temporary, path)
    except OSError as error:
        raise unwritable(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def replacing_folder(folder: str | Path) -> Iterator[Path]:
    """A temporary folder beside `folder` to fill; it takes the place of `folder` when the block ends well."""
    place = Path(folder).resolve()  # what a link points to is replaced, not the link
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}-"))
    except OSError as error:
        raise unwritable(folder, error) from None
    try:
        yield temporary
        os.chmod(temporary, 0o777 & ~_umask())  # mkdtemp's 0700 would hide results from colleagues
        _swap(temporary, place)
    except OSError as error:
        raise unwritable(folder, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def check_replaceable(folder: str | Path, names: Collection[str], mark: str, what: str) -> None:
    """Raise a `WordwingError` if something of the user's own would be lost with a folder.

    Args:
        folder: What is to be replaced; it need not be there.
        names: All that may be in it.
        mark: The one of them that must be.
        what: What such a folder is called.
    """
    try:
        found = sorted(os.listdir(folder))
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable(folder, error) from None
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


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
