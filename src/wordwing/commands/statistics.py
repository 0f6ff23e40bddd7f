"""`wordwing data stats` and `wordwing data judge`: datasets, and the judge, in numbers."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from wordwing.commands.common import bar, check_seed, track
from wordwing.errors import WordwingError
from wordwing.language.authors import author

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from wordwing.data.dataset import Dataset
    from wordwing.data.judge_rates import Rate, Rates
    from wordwing.data.statistics import Row, Statistics, Words


def stats(
    folders: Annotated[tuple[Path, ...], tyro.conf.Positional] = (),
    /,
    corpus: tuple[str, ...] = (),
    json: Path | None = None,
) -> None:
    """Say what datasets are like: sizes beside the paper's, words, goals in view, clauses, alignments.

    Args:
        folders: Datasets.
        corpus: Corpora by name: field, cage, errands, tours, house, written, typed.
        json: A file to write everything to as well.
    """
    from wordwing.data.statistics import describe

    datasets = [opened(folder, None) for folder in folders] + [opened(None, name) for name in corpus]
    if not datasets:
        raise WordwingError("which dataset? Name its folder, or a corpus: wordwing data stats --corpus cage")
    found = []
    for dataset in datasets:
        total = sum(row["paragraphs"] for row in dataset.meta["counts"].values())
        found.append(describe(dataset, partial(track, title="paragraphs", total=total)))
        _show(found[-1], plain_console())
    if json is not None:
        _write(json, [statistics.to_json() for statistics in found])


def judge(
    folder: Annotated[Path | None, tyro.conf.Positional] = None,
    /,
    corpus: str | None = None,
    split: str = "dev",
    seed: int = 0,
    json: Path | None = None,
) -> None:
    """Measure the judge: does it accept demonstrations, and reject other paths and mirrored ones?

    Args:
        folder: A dataset whose meanings are known.
        corpus: A corpus by name instead: field, cage, errands, tours.
        split: Which part of it.
        seed: Chooses the other path for each instruction.
        json: A file to write the rates to as well.
    """
    from wordwing.data.judge_rates import judge_rates

    dataset = opened(folder, corpus)
    rates = judge_rates(dataset, split, check_seed(seed), partial(track, title="instructions"))
    plain_console().print(_judge_table(rates, f"{dataset.name}, {split}: can the judge be trusted?"))
    if json is not None:
        document = {"source": dataset.name, "split": split, "seed": seed}
        _write(json, document | {"segments": {str(count): entry.to_json() for count, entry in rates.items()}})


def opened(folder: Path | None, corpus: str | None, seed: int = 0) -> Dataset:
    """The dataset in a folder, or a corpus by its name and seed; exactly one of the two must be given."""
    if (folder is None) == (corpus is None):
        raise WordwingError(
            "name one dataset: either its folder or --corpus and one of "
            "field, cage, errands, tours, house, written, typed"
        )
    if folder is not None:
        from wordwing.data.dataset import Dataset

        return Dataset(folder)
    from wordwing.data.corpora import corpus as by_name, corpus_folder
    from wordwing.data.generating import SIZES, paragraph_count

    assert corpus is not None
    if corpus not in SIZES or corpus_folder(corpus, seed).exists():
        return by_name(corpus, seed)
    with bar(f"building {corpus}", paragraph_count(corpus), "paragraphs") as tick:
        return by_name(corpus, seed, tick)


def plain_console() -> Console:
    """For tables that people read, on a screen or in a file."""
    from rich.console import Console

    # In a file or a pipe nothing is known about the width, and cut tables are no use to anybody. Names of folders and
    # datasets may have brackets, which are not rich's markup.
    width = None if sys.stdout.isatty() else 120
    return Console(width=width, highlight=False, markup=False, emoji=False)


def _write(path: Path, document: Any) -> None:
    from wordwing.files import write_text

    write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    print(path)


def plain_table(title: str, columns: Iterable[str], left: int = 1) -> Table:
    """A table whose first columns are text, the others numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for index, name in enumerate(columns):
        justify: Literal["left", "right"] = "left" if index < left or name == "kind" else "right"
        table.add_column(name, justify=justify, style="dim" if name in ("LANI", "REAL") else "", overflow="fold")
    return table


def _show(statistics: Statistics, console: Console) -> None:
    console.print(f"\n{statistics.source}  {statistics.folder}", style="bold")
    console.print(f"Sentences {author(statistics.text).how}.\n")
    console.print(_sizes(statistics), *_facts(statistics), sep="\n")
    if statistics.clauses:
        table = plain_table(f"Clauses, % of {statistics.known:,} sentences", ("kind", "%") * 3)
        cells = [cell for kind, share in statistics.clauses.items() for cell in (kind, f"{share:.1%}"[:-1])]
        for first in range(0, len(cells), 6):
            table.add_row(*cells[first : first + 6])
        console.print("\n", table, sep="")


def _sizes(statistics: Statistics) -> Table:
    """The paper's table of dataset and split sizes, ours with the paper's own numbers beside."""
    paper = statistics.paper
    names = ("paragraphs", "instructions", "tokens", "path, m")
    columns = [name for column in names for name in ([column, paper] if paper else [column])]
    table = plain_table("Sizes and means", ["segments", "split", *columns, "goal in view", "mirrored"], left=2)
    for row in statistics.rows:
        if row.instructions:
            table.add_row(*_size_cells(row, bool(paper)), end_section=row.split == statistics.rows[-1].split)
    return table


def _size_cells(row: Row, paper: bool) -> list[str]:
    ours = (row.paragraphs, row.instructions, row.tokens, row.metres)
    theirs: Sequence[float | None] = row.paper or (None,) * 4
    columns = zip(ours, theirs, strict=True) if paper else zip(ours, strict=True)
    cells = [
        "" if value is None else format(value, style)
        for values, style in zip(columns, (",d", ",d", ".2f", ".2f"), strict=True)
        for value in values
    ]
    return [str(row.segments), row.split, *cells, f"{row.visible:.1%}", f"{row.reflected:.1%}"]


def _facts(statistics: Statistics) -> Iterable[str]:
    """What no table is needed for, a line each."""
    from wordwing.data.statistics import PAPER_VISIBLE

    for split, note in statistics.splits.items():
        yield f"The split {split} has {note}."
    yield "Mirrored: goals within 0.47 m of the start reflected through the arena's centre; much of it would be a leak."
    if statistics.paper == "REAL":
        seen, of = PAPER_VISIBLE
        yield f"Goal in view at the start: {seen / of:.1%} ({seen} of {of}) of REAL's two-segment instructions."
    words = statistics.words
    yield f"Words: {', '.join(f'{split} {n:,} of {types:,} types' for split, (n, types) in words.splits.items())}."
    if words.tokens:
        yield from _training_words(words)
    share = statistics.distinct / max(statistics.sentences, 1)
    yield f"Sentences: {statistics.sentences:,}, of which {statistics.distinct:,} ({share:.1%}) are distinct."
    counts = statistics.landmarks
    if counts:
        total = sum(counts.values())
        mean = sum(number * times for number, times in counts.items()) / total
        kind = "scene" if statistics.scenes else "layout"
        yield f"Landmarks in a {kind}: {min(counts)} to {max(counts)}, {mean:.1f} on average, in {total:,} {kind}s."
    aligned = statistics.aligned
    if aligned.precision is not None and aligned.recall is not None:
        yield (
            f"Alignment on dev, against known meanings: precision {aligned.precision:.1%} of {aligned.found:,}, "
            f"recall {aligned.recall:.1%} of {aligned.meant:,}."
        )
    if statistics.readers:
        found = (
            f"{split} {own.near / own.readings:.1%} of {own.readings:,}" for split, own in statistics.readers.items()
        )
        yield f"Readers' places within 0.47 m of where a segment ends: {', '.join(found)}."


def _training_words(words: Words) -> Iterable[str]:
    """What a policy that is trained on them knows."""
    growth = ", ".join(f"{types:,} after {share}" for share, types in words.growth.items())
    yield f"Training words: {words.tokens:,}, of {words.types:,} types ({growth}); {words.once:,} types occur once."
    unknown = "; ".join(
        f"{split} {share:.2%}, {words.unreadable[split]:.2%} after repair" for split, share in words.unknown.items()
    )
    yield f"Vocabulary: {words.vocabulary:,} words. Unknown tokens: {unknown or 'none to read but training'}."


def _judge_table(rates: dict[int, Rates], title: str) -> Table:
    from wordwing.data.judge_rates import TARGETS

    head = [name for count in rates for name in (f"{count} segment{'s' * (count > 1)}", "95 %", "n")]
    table = plain_table(title, ["%", *head, "target"])
    rows = (
        ("demonstrations accepted", [entry.gold for entry in rates.values()], TARGETS["gold"]),
        ("other paths rejected", [entry.another for entry in rates.values()], TARGETS["another"]),
        ("mirrored clauses rejected", [entry.all_mirrored for entry in rates.values()], TARGETS["mirrored"]),
    )
    for label, found, target in rows:
        table.add_row(label, *(cell for rate in found for cell in _rate_cells(rate)), f"{100 * target:.0f}")
    for kind in sorted({kind for entry in rates.values() for kind in entry.mirrored}):
        cells = [
            _rate_cells(entry.mirrored[kind]) if kind in entry.mirrored else ["", "", "0"] for entry in rates.values()
        ]
        table.add_row(f"  {kind}", *(cell for row in cells for cell in row), "", style="dim")
    return table


def _rate_cells(rate: Rate) -> list[str]:
    low, high = rate.interval
    return [f"{100 * rate.share:.1f}" if rate.total else "", f"{100 * low:.1f}–{100 * high:.1f}", f"{rate.total:,}"]
