"""Fixed parts of splits: the 20 paragraphs that are few enough to be flown one at a time (paper: Results)."""

import hashlib
from collections.abc import Iterator

from wordwing.data.dataset import Dataset
from wordwing.data.schema import Instruction, Paragraph
from wordwing.errors import WordwingError

SMALL = "-20"
"""What is put behind a split's name for the 20 of its paragraphs that are always the same."""

LAYOUTS, EACH = 10, 2
"""As the paper's were drawn: two paragraphs in each of ten layouts."""


def splits_of(dataset: Dataset) -> list[str]:
    """Names of all splits, and of their fixed parts."""
    return [*dataset.splits, *(f"{split}{SMALL}" for split in dataset.splits if split != "train")]


def paragraphs_of(dataset: Dataset, split: str) -> Iterator[Paragraph]:
    """Paragraphs of a split or, for a name such as "test-20", of its fixed part."""
    if split in dataset.splits:
        yield from dataset.paragraphs(split)
        return
    if split not in splits_of(dataset):
        raise WordwingError(f'{dataset.folder}: there is no split "{split}"; there are {", ".join(splits_of(dataset))}')
    paragraphs = list(dataset.paragraphs(split.removesuffix(SMALL)))
    chosen = _chosen(paragraphs)
    yield from (paragraph for paragraph in paragraphs if paragraph.id in chosen)


def instructions_of(dataset: Dataset, split: str, counts: tuple[int, ...] = (1, 2)) -> Iterator[Instruction]:
    """Instructions of so many segments in a split or its fixed part, paragraph by paragraph."""
    for paragraph in paragraphs_of(dataset, split):
        yield from paragraph.instructions(counts)


def _chosen(paragraphs: list[Paragraph]) -> set[str]:
    """Ids of the fixed part, by a hash of all ids: it changes only when the paragraphs do."""
    blocks: dict[str, list[str]] = {}
    for paragraph in sorted(paragraphs, key=lambda entry: _hash(entry.id)):
        blocks.setdefault(paragraph.layout, []).append(paragraph.id)
    ranked = sorted(blocks.items(), key=lambda block: (len(block[1]) < EACH, _hash(block[0])))
    chosen = [name for _layout, ids in ranked[:LAYOUTS] for name in ids[:EACH]]
    others = [name for _layout, ids in ranked for name in ids if name not in chosen]
    return {*chosen, *others[: LAYOUTS * EACH - len(chosen)]}


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
