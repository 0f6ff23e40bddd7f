"""`wordwing data build` and `wordwing data demonstrate`: corpora, and ORACLE's flights along their paths."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wordwing.commands.common import bar, check_limit, check_processes, check_seed
from wordwing.commands.statistics import opened
from wordwing.errors import WordwingError

if TYPE_CHECKING:
    from wordwing.data.dataset import Dataset
    from wordwing.data.demonstrations.flying import DemonstrationSummary


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


def demonstrate(
    folder: Annotated[Path | None, tyro.conf.Positional] = None,
    /,
    corpus: str | None = None,
    seed: int = 0,
    domain: Literal["sim", "lab"] = "sim",
    splits: tuple[str, ...] = (),
    limit: int | None = None,
    device: str = "",
    processes: int = 0,
    out: Path | None = None,
) -> None:
    """Fly ORACLE along the path of every instruction and keep poses and setpoints, to learn from.

    In sim every instruction of one and two segments is flown, without pictures: they are drawn again when needed. In
    the lab 402 single segments of 100 training paragraphs are flown, with pictures; if it is interrupted, the same
    command goes on from there.

    Args:
        folder: A dataset.
        corpus: A corpus by name instead: field, cage, house; built first if it is not there.
        seed: Which corpus of that name; in the lab also which paragraphs, gusts and noise.
        domain: The batched simulator or the lab.
        splits: Which splits; by default all in sim, train in the lab, which flies no other.
        limit: Fly only the first so many instructions of each split.
        device: "cpu" or "cuda", for sim; by default CUDA where there is one.
        processes: How many share the work in the lab; 0 takes one for each core.
        out: Folder for the files; by default the folder demonstrations in the dataset's.
    """
    check_seed(seed)
    check_limit(limit)
    check_processes(processes)
    from wordwing.data.dataset import DERIVED

    dataset = opened(folder, corpus, seed)
    chosen = splits or (("train",) if domain == "lab" else tuple(dataset.splits))
    for split in chosen:
        if split not in dataset.splits:
            raise WordwingError(f'{dataset.folder}: there is no split "{split}"; there are {", ".join(dataset.splits)}')
        if domain == "lab" and split != "train":
            raise WordwingError(f"--splits has {split}; the lab flies demonstrations of train only")
    place = dataset.folder / DERIVED if out is None else out
    for split in dict.fromkeys(chosen):
        # A trial must not pass for the whole.
        name = f"{domain}-{split}" if limit is None else f"{domain}-{split}-first{limit}"
        file = place / f"{name}.npz"
        began = time.monotonic()
        summary = _fly(dataset, split, domain, seed, limit, device, processes, file)
        size = f"{file.stat().st_size / 1e6:.2f} MB"
        print(f"{domain} {split}: {_sentence(summary)}, {time.monotonic() - began:.0f} s, {size}")
        print(file)


def _fly(
    dataset: Dataset, split: str, domain: str, seed: int, limit: int | None, device: str, processes: int, file: Path
) -> DemonstrationSummary:
    """Fly the demonstrations of a split into a file."""
    from wordwing.data.demonstrations.flying import fly_lab, fly_sim, single_segments, summarise
    from wordwing.data.demonstrations.selection import select
    from wordwing.devices import find_device

    if domain == "sim":
        instructions = list(dataset.instructions(split))[:limit]
        if not instructions:
            raise WordwingError(f"{dataset.folder}: the split {split} has no instructions to fly")
        with bar(f"sim {split}", len(instructions), "flights") as tick:
            made = fly_sim(dataset, instructions, find_device(device), tick)
        made.save(file)
    else:
        selection = select(dataset, seed)
        instructions = single_segments(selection, limit)
        workers = processes or os.cpu_count() or 1
        with bar("lab train", len(instructions), "flights") as tick:
            made = fly_lab(dataset, selection, file, seed, limit=limit, processes=workers, tick=tick)
    return summarise(made, instructions)


def _sentence(summary: DemonstrationSummary) -> str:
    low, high = (100 * bound for bound in summary.interval)
    late = f" ({summary.timed_out} ran out of steps)" if summary.timed_out else ""
    return (
        f"{summary.flights} flights, success {100 * summary.success:.1f} % (95 % interval {low:.1f} to {high:.1f})"
        f"{late}, {summary.steps:.1f} steps on average, EMD {summary.emd:.3f} m in {summary.sampled} of them"
    )
