"""What a dataset is like in numbers: the paper's table of sizes, words, goals in view, clauses, alignments.

Everything is counted in one pass over the paragraphs, which are never all in memory.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

from wordwing.data.dataset import Dataset
from wordwing.data.schema import Instruction, Paragraph, Segment
from wordwing.frames import ARENA_SIZE
from wordwing.language.meaning.clauses import Kind
from wordwing.language.tokenizer import tokenize
from wordwing.world.paths import path_length
from wordwing.world.visibility import goal_ahead


class PaperRow(NamedTuple):
    """What the paper says about one split: numbers of paragraphs and instructions, mean tokens, mean path in metres."""

    paragraphs: int
    instructions: int
    tokens: float
    metres: float


PAPER: dict[str, tuple[str, dict[tuple[int, str], PaperRow]]] = {
    "field": (
        "LANI",
        {
            (1, "train"): PaperRow(4200, 19762, 11.04, 1.53),
            (1, "dev"): PaperRow(898, 4182, 10.94, 1.54),
            (1, "test"): PaperRow(902, 4260, 11.23, 1.53),
            (2, "train"): PaperRow(4200, 15919, 21.84, 3.07),
            (2, "dev"): PaperRow(898, 3366, 21.65, 3.10),
            (2, "test"): PaperRow(902, 3432, 22.26, 3.07),
        },
    ),
    "cage": (
        "REAL",
        {
            (1, "train"): PaperRow(698, 3245, 11.10, 1.00),
            (1, "dev"): PaperRow(150, 640, 11.47, 1.06),
            (1, "test"): PaperRow(149, 672, 11.31, 1.06),
            (2, "train"): PaperRow(698, 2582, 20.97, 1.91),
            (2, "dev"): PaperRow(150, 501, 21.42, 2.01),
            (2, "test"): PaperRow(149, 531, 21.28, 1.99),
        },
    ),
}
"""By corpus: the dataset that it stands for, and its sizes by segments and split (paper: Table of dataset and split
sizes, appendix Dataset Details)."""

PAPER_VISIBLE = 34, 72
"""Two-segment instructions of REAL whose goal is in view at the start, of how many (paper: Results)."""

HIT = ARENA_SIZE / 10
"""A guess hits the goal within this distance, metres: the paper's 0.47 m."""

GROWTH = (0.1, 0.25, 0.5, 1.0)
"""Shares of the training text after which word types are counted."""


@dataclass
class Row:
    """Instructions of one length in one split."""

    segments: int
    split: str
    paragraphs: int = 0
    """With at least one such instruction."""
    instructions: int = 0
    tokens: float = 0.0
    """Mean number of words."""
    metres: float = 0.0
    """Mean length of the demonstrated path."""
    visible: float = 0.0
    """Share of goals in view at the start."""
    reflected: float = 0.0
    """Share of goals that the start reflected through the arena's centre hits: high if windows give goals away."""
    paper: PaperRow | None = None


@dataclass
class Words:
    """The words of the training split, and what other splits have besides."""

    tokens: int
    types: int
    once: int
    """Types that occur once."""
    vocabulary: int
    """Words that a policy knows."""
    growth: dict[str, int]
    """Types after 10 %, 25 %, 50 % and all of the training text, in the file's order; keys in percent."""
    splits: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By split: tokens and types."""
    unknown: dict[str, float] = field(default_factory=dict)
    """By split: share of tokens that are not in the vocabulary."""
    unreadable: dict[str, float] = field(default_factory=dict)
    """The same after spelling has been repaired."""


@dataclass
class Aligned:
    """Landmarks that a sentence's words are aligned with and that stand in its layout, against those it means."""

    found: int = 0
    meant: int = 0
    both: int = 0

    @property
    def precision(self) -> float | None:
        """Share of those found that are meant; None of nothing."""
        return self.both / self.found if self.found else None

    @property
    def recall(self) -> float | None:
        """Share of those meant that are found; None of nothing."""
        return self.both / self.meant if self.meant else None


@dataclass
class Readers:
    """Whether readers who know the sentences, but not the path, say that a segment ends where it does."""

    readings: int = 0
    near: int = 0
    """Within `HIT` of its end."""


@dataclass
class Statistics:
    """Everything about one dataset."""

    folder: str
    source: str
    text: str
    """Who wrote the sentences: a kind of `language.authors`."""
    paper: str | None
    """The dataset of the paper that it stands for."""
    splits: dict[str, str]
    """What a split is, in words, where its name does not say it all."""
    rows: list[Row]
    words: Words
    sentences: int
    """In all splits; each one once, however many instructions it is in."""
    distinct: int
    """Different word by word, whatever the capitals and punctuation."""
    clauses: dict[Kind, float]
    """Share of the sentences with a known meaning that have such a clause, the commonest first."""
    known: int
    """Sentences with a known meaning."""
    landmarks: dict[int, int]
    """How many layouts, or scenes, have how many landmarks."""
    scenes: bool
    """Whether layouts are scenes, larger than the arena."""
    aligned: Aligned
    """On the split "dev"."""
    readers: dict[str, Readers]
    """By split, where it has been read."""

    def to_json(self) -> dict[str, Any]:
        """As `wordwing data stats --json` writes it."""
        document = asdict(self)
        for row, written in zip(self.rows, document["rows"], strict=True):
            written["paper"] = row.paper._asdict() if row.paper else None
        document["paper_visible"] = list(PAPER_VISIBLE)
        document["aligned"] |= {"precision": self.aligned.precision, "recall": self.aligned.recall}
        return document


def describe(dataset: Dataset, progress: Callable[[Iterator[Paragraph]], Iterable[Paragraph]] = iter) -> Statistics:
    """Count everything.

    Args:
        dataset: What to describe.
        progress: Wraps the paragraphs: a progress bar.
    """
    name, sizes = PAPER.get(dataset.name, (None, {}))
    keys = [(count, split) for count in (1, 2) for split in dataset.splits]
    rows = {key: Row(*key, paper=sizes.get(key)) for key in keys}
    text = _Text(dataset)
    clauses: Counter[Kind] = Counter()
    aligned = Aligned()
    readers: dict[str, Readers] = {}
    scenes = False
    for paragraph in progress(dataset.paragraphs()):
        scenes = scenes or paragraph.windows is not None
        for segment in paragraph.used_segments():
            text.read(segment.instruction, paragraph.split)
            for reading in segment.readings:
                own = readers.setdefault(paragraph.split, Readers())
                own.readings += 1
                own.near += math.dist(reading, segment.path[-1]) < HIT
            if segment.meaning is not None:
                text.known += 1
                clauses.update({clause.kind for clause in segment.meaning})
                if paragraph.split == "dev" and paragraph.windows is None:
                    _align(segment, dataset, paragraph.layout, aligned)
        instructions = list(paragraph.instructions())
        for instruction in instructions:
            _add(instruction, rows[instruction.segments, paragraph.split])
        for count in {instruction.segments for instruction in instructions}:
            rows[count, paragraph.split].paragraphs += 1
    for row in rows.values():
        for quantity in ("tokens", "metres", "visible", "reflected"):
            setattr(row, quantity, getattr(row, quantity) / max(row.instructions, 1))
    return Statistics(
        folder=str(dataset.folder),
        source=dataset.name,
        text=str(dataset.meta.get("text", "unknown")),
        paper=name,
        splits=dict(dataset.meta["splits"]),
        rows=list(rows.values()),
        words=text.words(),
        sentences=text.sentences,
        distinct=len(text.distinct),
        clauses={kind: count / text.known for kind, count in clauses.most_common()},
        known=text.known,
        landmarks=dict(sorted(Counter(dataset.landmark_counts.values()).items())),
        scenes=scenes,
        aligned=aligned,
        readers=readers,
    )


def _add(instruction: Instruction, row: Row) -> None:
    """Add to sums, which become means at the end."""
    segment = instruction.segment
    row.instructions += 1
    row.tokens += len(tokenize(segment.instruction))
    row.metres += path_length(segment.path)
    row.visible += goal_ahead(segment.start_xy, segment.start_yaw, segment.path[-1])
    x, y = segment.start_xy
    row.reflected += math.dist((-x, -y), segment.path[-1]) < HIT


def _align(segment: Segment, dataset: Dataset, layout: str, aligned: Aligned) -> None:
    names = [entry.name for entry in dataset.layout(layout).landmarks]
    found = dataset.alignment.mentioned(segment.instruction) & set(names)
    references = {entry for clause in segment.meaning or () for entry in clause.references}
    meant = {names[entry] for entry in references if isinstance(entry, int)}
    aligned.found += len(found)
    aligned.meant += len(meant)
    aligned.both += len(found & meant)


class _Text:
    """Counts words as sentences go by."""

    def __init__(self, dataset: Dataset) -> None:
        self.vocabulary = dataset.vocabulary
        self.counts: dict[str, Counter[str]] = {split: Counter() for split in dataset.splits}
        self.growth: list[tuple[int, int]] = []  # tokens and types after each sentence of training
        self.distinct: set[str] = set()
        self.sentences = self.known = 0

    def read(self, sentence: str, split: str) -> None:
        words = tokenize(sentence)
        self.sentences += 1
        self.distinct.add(" ".join(words))
        self.counts[split].update(words)
        if split == "train":
            before = self.growth[-1][0] if self.growth else 0
            self.growth.append((before + len(words), len(self.counts[split])))

    def words(self) -> Words:
        training = self.counts.get("train", Counter())
        total = training.total()
        growth = {
            f"{share:.0%}": next((types for tokens, types in self.growth if tokens >= share * total), 0)
            for share in GROWTH
        }
        words = Words(
            tokens=total,
            types=len(training),
            once=sum(1 for count in training.values() if count == 1),
            vocabulary=len(self.vocabulary) - 2,
            growth=growth,
            splits={split: (counts.total(), len(counts)) for split, counts in self.counts.items()},
        )
        for split, counts in self.counts.items():
            if split == "train" or not counts or not total:
                continue
            unknown = [word for word in counts if word not in self.vocabulary]
            lost = [word for word in unknown if self.vocabulary.repair(word) not in self.vocabulary]
            words.unknown[split] = sum(counts[word] for word in unknown) / counts.total()
            words.unreadable[split] = sum(counts[word] for word in lost) / counts.total()
        return words
