"""Choose the 64 instructions of dev-mini from the dev splits of cage and field, and write them as a dataset.

Usage: python scripts/dev_mini.py [FOLDER]     (src/wordwing/data/dev_mini by default)

Pieces of two consecutive segments of dev paragraphs, one of each layout, make two instructions of one segment and one
of two: 21 of them and a single segment are 64 instructions. Those with the rarest kinds of clauses are
chosen first, so that every kind occurs.
"""

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from wordwing.data.corpora import corpus
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.schema import Paragraph
from wordwing.world.layout import Layout

PIECES = {"cage": 11, "field": 10}
"""Number of pieces of two segments from each corpus."""


def pieces(dataset: Dataset, rng: np.random.Generator) -> list[Paragraph]:
    """Two consecutive segments of each dev paragraph, in random order."""
    found = []
    for paragraph in dataset.paragraphs("dev"):
        if len(paragraph.segments) > 1:
            first = int(rng.integers(len(paragraph.segments) - 1))
            name = f"{paragraph.id}.{first}"
            found.append(replace(paragraph, id=name, segments=paragraph.segments[first : first + 2]))
    return [found[index] for index in rng.permutation(len(found))]


def kinds(paragraph: Paragraph) -> list[str]:
    """Kinds of all clauses."""
    return [clause.kind for segment in paragraph.segments for clause in segment.meaning or ()]


def choose(candidates: list[Paragraph], count: int, seen: Counter[str]) -> list[Paragraph]:
    """`count` candidates in different layouts, those with the rarest kinds first."""
    chosen: list[Paragraph] = []
    while len(chosen) < count:
        free = [entry for entry in candidates if entry.layout not in {other.layout for other in chosen}]
        best = min(free, key=lambda entry: (min(seen[kind] for kind in kinds(entry)), entry.id))
        seen.update(kinds(best))
        chosen.append(best)
    return chosen


def main() -> None:
    """Write the dataset."""
    home = Path(__file__).parent.parent / "src" / "wordwing" / "data" / "dev_mini"
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else home
    rng = np.random.default_rng(0)
    seen: Counter[str] = Counter()
    layouts: dict[str, Layout] = {}
    paragraphs: list[Paragraph] = []
    for name, count in PIECES.items():
        dataset = corpus(name)
        chosen = choose(pieces(dataset, rng), count + (name == "field"), seen)
        if name == "field":
            chosen[-1] = replace(chosen[-1], segments=chosen[-1].segments[:1])
        paragraphs += chosen
        layouts |= {entry.layout: dataset.layout(entry.layout) for entry in chosen}
    notes = ("A part of the dev splits of cage and field, seed 0: 64 instructions of one and two segments.",)
    source = Source("dev-mini", "generated", 0, "python scripts/dev_mini.py", notes=notes)
    made = write_dataset(folder, source, layouts, paragraphs)
    made.validate()
    counts = Counter(entry.segments for entry in made.instructions())
    print(f"{made.folder}: {counts[1]} instructions of one segment, {counts[2]} of two; clauses {dict(seen)}")


if __name__ == "__main__":
    main()
