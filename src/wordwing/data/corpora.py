"""Corpora by name: built once into the user's cache, found there ever after."""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import chain
from pathlib import Path

from wordwing.data.dataset import SCHEMA, Dataset, Source, check_place, write_dataset
from wordwing.data.generating import SIZES, STEPS, Chunk, Generated, Made, chunks, collect, make
from wordwing.data.importers.houses import import_human_nav
from wordwing.data.schema import Paragraph
from wordwing.data.tours.making import make_tours
from wordwing.data.typed import PACKED as TYPED, unpack_typed
from wordwing.data.written import PACKED as WRITTEN, unpack
from wordwing.errors import WordwingError, did_you_mean
from wordwing.files import cache_folder
from wordwing.pool import shared
from wordwing.release import VERSION
from wordwing.world.layout import Layout

CORPORA = (*SIZES, "house", "written", "typed")

PACKED: dict[str, tuple[Path, Callable[[Path, Path], Dataset]]] = {
    "written": (WRITTEN, unpack),
    "typed": (TYPED, unpack_typed),
}
"""Corpora that come with wordwing: the file, and what makes a dataset of it."""

MINI = "dev-mini"
"""64 generated instructions that come with wordwing, of the dev splits of cage and field: enough for a quick look."""

REVISION = 1
"""Raised whenever the same seed makes another corpus."""


def corpus_folder(name: str, seed: int) -> Path:
    """Where a corpus of this version lies, or would lie."""
    edition = f"seed{seed}"
    if name in PACKED:
        edition = hashlib.sha256(PACKED[name][0].read_bytes()).hexdigest()[:12]
    return cache_folder() / f"{name}-{VERSION}-{SCHEMA}.{REVISION}-{edition}"


def corpus(name: str, seed: int = 0, tick: Callable[[int], None] = lambda paragraphs: None) -> Dataset:
    """A corpus from the cache, built first if it is not there.

    `house` is made of other people's sentences, which are not part of wordwing, so it must have been built before.
    Those of `written` and `typed` come with wordwing and are the same whatever the seed.
    """
    if name == MINI:
        return Dataset(Path(str(files("wordwing"))) / "data" / "dev_mini")
    if name not in CORPORA:
        known = (*CORPORA, MINI)
        hint = did_you_mean(name, known) or f"; there are {', '.join(known)}"
        raise WordwingError(f'there is no corpus "{name}"{hint}')
    folder = corpus_folder(name, seed)
    if (folder / "meta.json").is_file():
        return Dataset(folder)
    if name == "house":
        raise WordwingError(
            "the corpus house is not there yet: its sentences were written by people and are not part of wordwing; "
            "wordwing data build --house FOLDER makes it (docs/data.md says from what)"
        )
    if name in PACKED:
        path, unpacked = PACKED[name]
        return unpacked(path, folder)
    [generated] = [known for known in SIZES if known == name]
    [dataset] = build([Job(generated, folder, seed)], tick=tick)
    return dataset


@dataclass(frozen=True)
class Job:
    """A corpus to generate."""

    name: Generated
    folder: Path
    seed: int
    share: float = 1.0
    """Part of the paper's sizes, for trials."""


@dataclass(frozen=True)
class HouseJob:
    """The house corpus to import."""

    source: Path
    """A folder that `wordwing data import human-nav` reads."""
    folder: Path
    seed: int


def build(
    jobs: Sequence[Job | HouseJob], processes: int = 0, tick: Callable[[int], None] = lambda paragraphs: None
) -> list[Dataset]:
    """Build corpora side by side; the same however many processes share the work.

    Args:
        jobs: What to build and where.
        processes: How many share the work; 0 takes one for each core.
        tick: Told how many generated paragraphs have been made since it was last told.
    """
    for job in jobs:
        check_place(job.folder)
    parts = {
        job: [(job, chunk) for chunk in chunks(job.name, job.seed, job.share)] for job in jobs if isinstance(job, Job)
    }
    houses = [job for job in jobs if isinstance(job, HouseJob)]
    pieces: list[_Piece] = [*houses, *chain.from_iterable(parts.values())]  # the longest ones first
    made: dict[_Piece, Made] = {}
    killed = "a process that shared the work was killed, perhaps for lack of memory; try --processes 1"
    for piece, result in shared(_do, pieces, processes or os.cpu_count() or 1, killed):
        if isinstance(piece, HouseJob) or result is None:
            continue
        owner, chunk = piece
        made[piece] = result
        tick(chunk.count)
        if all(part in made for part in parts[owner]):
            _write(owner, *collect(made.pop(part) for part in parts[owner]))
    return [Dataset(job.folder) for job in jobs]


_Piece = HouseJob | tuple[Job, Chunk]


def _do(piece: _Piece) -> Made | None:
    if isinstance(piece, tuple):
        return make_tours(piece[1]) if piece[1].corpus == "tours" else make(piece[1])
    import_human_nav(piece.source, piece.folder, seed=piece.seed)
    return None


def _write(job: Job, layouts: dict[str, Layout], paragraphs: list[Paragraph]) -> None:
    command = f"wordwing data build --corpora {job.name} --seed {job.seed}"
    if job.share != 1:
        command += f" --share {job.share} --out DIR"
    source = Source(job.name, "generated", job.seed, command, steps=STEPS[job.name])
    write_dataset(job.folder, source, layouts, paragraphs)
