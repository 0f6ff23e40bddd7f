"""`wordwing data build`: the corpora, into the cache or a folder."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Literal

from wordwing.commands.options import check_processes, check_seed
from wordwing.commands.progress import bar


def build(
    corpora: tuple[Literal["field", "cage", "errands"], ...] = ("field", "cage", "errands"),
    house: Path | None = None,
    seed: int = 0,
    out: Path | None = None,
    share: float = 1.0,
    processes: int = 0,
) -> None:
    """Build the corpora that policies are trained and tested on.

    The sentences of field, cage and errands are generated, with a known meaning each; those of house were written by
    people and are read from a folder that you have (docs/data.md). The same seed makes the same corpora, byte for byte.

    Args:
        corpora: Which to generate.
        house: Folder with the human_nav data; house is built only if it is given.
        seed: Chooses layouts, paths and words.
        out: Folder that gets one folder for each corpus; without it they go to the cache, where --corpus finds them.
        share: Part of the paper's number of paragraphs to generate, for trials; needs --out.
        processes: How many share the work; 0 takes one for each core.
    """
    from wordwing.data.corpora import HouseJob, Job, corpus_folder
    from wordwing.data.corpora import build as build_corpora
    from wordwing.data.generating import paragraph_count
    from wordwing.errors import WordwingError

    check_seed(seed)
    if not 0 < share <= 1:
        raise WordwingError(f"--share is {share}; it must be more than 0 and at most 1")
    if share < 1 and out is None:
        raise WordwingError("--share needs --out: the cache holds whole corpora only")
    if house is not None and not house.is_dir():
        raise WordwingError(f"--house is {house}; there is no such folder")
    if not corpora and house is None:
        raise WordwingError("there is nothing to build; name --corpora, --house or both")
    check_processes(processes)

    def folder(name: str) -> Path:
        return corpus_folder(name, seed) if out is None else out / name

    jobs: list[Job | HouseJob] = [Job(name, folder(name), seed, share) for name in dict.fromkeys(corpora)]
    if house is not None:
        jobs.append(HouseJob(house, folder("house"), seed))
    began = time.monotonic()
    total = sum(paragraph_count(job.name, job.share) for job in jobs if isinstance(job, Job))
    with bar("corpora", total, "paragraphs") as tick:
        datasets = build_corpora(jobs, processes, tick)
    for dataset in datasets:
        counts = ", ".join(f"{split} {row['instructions']}" for split, row in dataset.meta["counts"].items())
        print(f"{dataset.name} ({dataset.meta['text']} sentences): {counts} instructions in {dataset.folder}")
    print(f"{time.monotonic() - began:.0f} s")
