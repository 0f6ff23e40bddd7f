"""`wordwing data build`, `demonstrate`, `import` and `export`: where datasets come from and go to."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from wordwing.commands.common import bar, check_counts, track
from wordwing.commands.statistics import opened
from wordwing.errors import WordwingError

if TYPE_CHECKING:
    from wordwing.data.dataset import Dataset
    from wordwing.data.demonstrations.flying import DemonstrationSummary


def build(
    corpora: tuple[Literal["field", "cage", "errands", "tours"], ...] = ("field", "cage", "errands"),
    house: Path | None = None,
    seed: int = 0,
    out: Path | None = None,
    share: float = 1.0,
    processes: int = 0,
) -> None:
    """Build the corpora that policies are trained and tested on.

    The sentences of field, cage, errands and tours are generated, with a known meaning each; those of house were
    written by people and are read from a folder that you have (docs/data.md). The same seed makes the same corpora,
    byte for byte.

    Args:
        corpora: Which to generate.
        house: Folder with the human_nav data; house is built only if it is given.
        seed: Chooses layouts, paths and words.
        out: Folder that gets one folder for each corpus; without it they go to the cache, where --corpus finds them.
        share: Part of the paper's number of paragraphs to generate, for trials; needs --out.
        processes: How many share the work; 0 takes one for each core.
    """
    from wordwing.data.corpora import HouseJob, Job, build as build_corpora, corpus_folder
    from wordwing.data.generating import paragraph_count

    check_counts(seed=seed, processes=processes)
    if not 0 < share <= 1:
        raise WordwingError(f"--share is {share}; it must be more than 0 and at most 1")
    if share < 1 and out is None:
        raise WordwingError("--share needs --out: the cache holds whole corpora only")
    if house is not None and not house.is_dir():
        raise WordwingError(f"--house is {house}; there is no such folder")
    if not corpora and house is None:
        raise WordwingError("there is nothing to build; name --corpora, --house or both")

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

    In sim every instruction of one and two segments is flown, without images: they are drawn again when needed. In
    the lab 402 single segments of 100 training paragraphs are flown, with images; if it is interrupted, the same
    command goes on from there.

    Args:
        folder: A dataset.
        corpus: A corpus by name instead: field, cage, errands, tours, house, written; built first if it is not there.
        seed: Which corpus of that name; in the lab also which paragraphs, gusts and noise.
        domain: The batched simulator or the lab.
        splits: Which splits; by default all in sim, train in the lab, which flies no other.
        limit: Fly only the first so many instructions of each split.
        device: "cpu" or "cuda", for sim; by default CUDA where there is one.
        processes: How many share the work in the lab; 0 takes one for each core.
        out: Folder for the files; by default the folder demonstrations in the dataset's.
    """
    check_counts(seed=seed, limit=limit, processes=processes)
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
        spent = f"{time.monotonic() - began:.0f} s, {file.stat().st_size / 1e6:.2f} MB"
        print(f"{domain} {split}: {_sentence(summary)}, {spent}", file, sep="\n")


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


def human_nav(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    out: Path,
    seed: int = 0,
    hold_out: int = 10,
    skip_unknown: bool = False,
) -> None:
    """Import human_nav: sentences that people wrote for walks through furnished rooms.

    Args:
        folder: Where scenes.json and the splits, train.jsonl.xz and so on, are.
        out: Folder for the dataset.
        seed: Chooses where in its room each instruction's arena lies, and which rooms are held out.
        hold_out: How many training rooms become the split dev-unseen; 0 for none.
        skip_unknown: Leave out furniture that wordwing does not know, instead of stopping.
    """
    from wordwing.data.importers.houses import import_human_nav

    check_counts(seed=seed, hold_out=hold_out)
    _summary(import_human_nav(folder, out, seed, hold_out, skip_unknown, track))


def alfred(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    out: Path,
    seed: int = 0,
    hold_out: int = 10,
) -> None:
    """Import the "go to" instructions of ALFRED.

    Args:
        folder: ALFRED's json_2.1.0, or the folder that it is in.
        out: Folder for the dataset.
        seed: Chooses where in its room each instruction's arena lies, and which rooms are held out.
        hold_out: How many training rooms become the split dev-unseen; 0 for none.
    """
    from wordwing.data.importers.houses import import_alfred

    check_counts(seed=seed, hold_out=hold_out)
    _summary(import_alfred(folder, out, seed, hold_out, track))


def _summary(dataset: Dataset) -> None:
    """Say what was imported, what was not and why."""
    for split, counts in dataset.meta["counts"].items():
        label = dataset.meta["splits"].get(split)
        print(f"{split}: {', '.join(f'{n} {what}' for what, n in counts.items())}" + (f" ({label})" if label else ""))
    for note in dataset.meta["notes"]:
        print(note)
    print(dataset.folder)


def lani(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    out: Path,
    seed: int = 0,
    valid_only: bool = True,
    part: Literal["all", "field", "cage"] = "all",
    annotations: Literal["any", "6000", "4000"] = "any",
    resources: Path | None = None,
) -> None:
    """Import LANI as released with EMNLP 2018.

    Args:
        folder: The release: data/nav_drone is in it.
        out: Folder for the dataset.
        seed: Chooses where landmarks look, which the release does not say.
        valid_only: Leave out paragraphs that are marked invalid, as the authors do.
        part: The paper's REAL environments, 6000 to 6999 (cage), all others (field), or both (all).
        annotations: Which annotation files; by default 6000, or 4000 where those are not there.
        resources: The folder that the annotations' file names are relative to; by default it is searched for.
    """
    from wordwing.data.importers.lani import import_lani

    check_counts(seed=seed)
    _summary(import_lani(folder, out, seed, valid_only, part, annotations, resources, track))


def drif(
    folder: Annotated[Path, tyro.conf.Positional],
    /,
    out: Path,
    seed: int = 0,
    valid_only: bool = False,
    part: Literal["all", "field", "cage"] = "all",
    annotations: Literal["any", "7000", "6000", "4000"] = "any",
) -> None:
    """Import a drif workspace, as released with CoRL 2019 or written by `wordwing data export drif`.

    Args:
        folder: The workspace: configs is in it.
        out: Folder for the dataset.
        seed: Chooses where landmarks look, which the workspace does not say.
        valid_only: Leave out paragraphs that are marked invalid, which the authors keep.
        part: The paper's REAL environments, 6000 to 6999 (cage), all others (field), or both (all).
        annotations: Which annotation files; 4000 is annotation_results.json; by default the first that are there.
    """
    from wordwing.data.importers.lani import import_drif

    check_counts(seed=seed)
    _summary(import_drif(folder, out, seed, valid_only, part, annotations, track))


def export_drif(dataset: Annotated[Path, tyro.conf.Positional], /, out: Path) -> None:
    """Write a dataset as a workspace of the authors' CoRL 2019 format.

    Args:
        dataset: A dataset's folder; its layouts must be arenas, not rooms larger than one.
        out: Folder for the workspace; new, empty or an earlier export.
    """
    from wordwing.data import exporters
    from wordwing.data.dataset import Dataset

    for split, count in exporters.export_drif(Dataset(dataset), out, track).items():
        print(f"{split:12} {count} paragraphs")
    print(out)
