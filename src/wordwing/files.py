"""Writing files whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wordwing.errors import WordwingError


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


def unwritable(path: str | Path, error: OSError) -> WordwingError:
    """The sentence for a file that could not be written."""
    if error.errno == errno.ENOSPC:
        return WordwingError(f"{path}: the disk is full; nothing was changed")
    return WordwingError(f"{path}: cannot be written ({(error.strerror or 'unknown').lower()})")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
