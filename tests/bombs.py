"""Small files that become large in memory; a process of its own reads one, and says how much memory that took."""

import json
import lzma
import resource
import struct
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np

from wordwing.errors import WordwingError

MEGABYTE = 1_000_000


def png(width: int, height: int) -> bytes:
    """A black picture, packed piece by piece."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    packer = zlib.compressobj(9)
    line = bytes(1 + (width + 7) // 8)
    packed = b"".join(packer.compress(line) for _row in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)  # one bit a pixel
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def sparse(path: Path, begin: bytes, size: int) -> Path:
    """A file of many bytes that hardly needs the disk."""
    with open(path, "wb") as file:
        file.write(begin)
        file.truncate(size)
    return path


def write_log(folder: Path, observations: int, width: int, height: int) -> None:
    """A flight's log whose observations all show the same picture."""
    (folder / "frames").mkdir(parents=True)
    (folder / "frames" / "1.png").write_bytes(png(width, height))
    rows = [{"time": 0.0, "kind": "flight", "instruction": "go", "policy": "average"}]
    seen = {"kind": "observation", "position": [0, 0, 0.7], "quaternion": [0, 0, 0, 1], "frame": "1.png"}
    rows += [{"time": float(number), **seen} for number in range(observations)]
    (folder / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_archive(path: Path, rows: int) -> None:
    """A file of demonstrations with so many rows of zeros."""
    from wordwing.data.demonstrations.archive import Demonstrations, Header

    header = Header("sim", "cage", "0", "train", 50)
    one = np.zeros(1, np.int32)
    Demonstrations(header, ("a/0",), one, one > 0, np.zeros((1, 8), np.int16), np.zeros((1, 6), np.int16)).save(path)
    with zipfile.ZipFile(path) as given:
        kept = {name: given.read(name) for name in given.namelist() if name != "rows.npy"}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in kept.items():
            archive.writestr(name, data)
        with archive.open("rows.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<i2", "fortran_order": False, "shape": (8, rows)})
            for _piece in range(16 * rows // MEGABYTE):
                file.write(bytes(MEGABYTE))


def write_episodes(path: Path, size: int) -> None:
    """One endless line, packed."""
    with lzma.open(path, "wb", preset=0) as file:
        file.write(b'{"schema": 1, "system": "')
        for _piece in range(size // MEGABYTE):
            file.write(b"a" * MEGABYTE)


def read(what: str, path: Path) -> None:
    """Whatever a command would do with such a file."""
    if what == "log":
        from wordwing.flight.replay import read_flight

        read_flight(path)
    elif what == "demonstrations":
        from wordwing.data.demonstrations.archive import Demonstrations

        Demonstrations.load(path)
    elif what == "vocabulary":
        from wordwing.language.tokenizer import Vocabulary

        Vocabulary.load(path)
    elif what == "policy":
        from wordwing.model.checkpoint import load_network

        load_network(path)
    elif what == "dataset":
        from wordwing.data.dataset import Dataset

        Dataset(path)
    elif what == "episodes":
        from wordwing.execution.episodes import read_lines

        list(read_lines(path))


def grown() -> int:
    """Most memory that this process ever had, megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 // MEGABYTE


if __name__ == "__main__":
    # All that is imported comes before what is measured.
    import torch

    import wordwing.data.demonstrations.archive
    import wordwing.flight.replay
    import wordwing.model.checkpoint  # noqa: F401

    torch.zeros(1)
    for what, path in (argument.split("=", 1) for argument in sys.argv[1:]):
        before = grown()
        try:
            read(what, Path(path))
            said = "it was read"
        except WordwingError as error:
            said = str(error)
        except Exception as error:  # what a person would see as a traceback
            said = f"traceback: {type(error).__name__}"
        print(json.dumps([what, grown() - before, said]), flush=True)
