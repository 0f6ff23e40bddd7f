"""`wordwing data demonstrate`: ORACLE along the paths of a dataset."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wordwing.commands.options import check_limit, check_processes, check_seed
from wordwing.commands.progress import bar
from wordwing.commands.statistics import opened
from wordwing.errors import WordwingError

if TYPE_CHECKING:
    from wordwing.data.dataset import Dataset
    from wordwing.data.demonstrations.summary import Summary


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
        if domain == "sim":
            summary = _sim(dataset, split, limit, device, file)
        else:
            summary = _lab(dataset, seed, limit, processes, file)
        print(f"{domain} {split}: {_sentence(summary)}, {time.monotonic() - began:.0f} s, {_megabytes(file)}")
        print(file)


def _sim(dataset: Dataset, split: str, limit: int | None, device: str, file: Path) -> Summary:
    import torch

    from wordwing.data.demonstrations.sim import fly_sim
    from wordwing.data.demonstrations.summary import summarise

    instructions = list(dataset.instructions(split))[:limit]
    if not instructions:
        raise WordwingError(f"{dataset.folder}: the split {split} has no instructions to fly")
    with bar(f"sim {split}", len(instructions), "flights") as tick:
        made = fly_sim(dataset, instructions, device or ("cuda" if torch.cuda.is_available() else "cpu"), tick)
    made.save(file)
    return summarise(made, instructions)


def _lab(dataset: Dataset, seed: int, limit: int | None, processes: int, file: Path) -> Summary:
    from wordwing.data.demonstrations.choosing import choose
    from wordwing.data.demonstrations.lab import fly_lab, single_segments
    from wordwing.data.demonstrations.summary import summarise

    choice = choose(dataset, seed)
    singles = single_segments(choice, limit)
    workers = processes or os.cpu_count() or 1
    with bar("lab train", len(singles), "flights") as tick:
        made = fly_lab(dataset, choice, file, seed, limit=limit, processes=workers, tick=tick)
    return summarise(made, singles)


def _sentence(summary: Summary) -> str:
    low, high = (100 * bound for bound in summary.interval)
    late = f" ({summary.timed_out} ran out of steps)" if summary.timed_out else ""
    return (
        f"{summary.flights} flights, success {100 * summary.success:.1f} % (95 % interval {low:.1f} to {high:.1f})"
        f"{late}, {summary.steps:.1f} steps on average, EMD {summary.emd:.3f} m in {summary.sampled} of them"
    )


def _megabytes(file: Path) -> str:
    return f"{file.stat().st_size / 1e6:.2f} MB"
