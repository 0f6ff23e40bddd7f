"""Plan the corpus `written`: paragraphs without words, who writes each of them, and who reads which segments.

Every paragraph has a layout of its own, of the cage or of the field, one as often as the other, and a path from the
project's walk sampler that is cut into four to six segments. Every writer writes as many paragraphs as every other.
A writer belongs to one split, so that splits share neither layouts nor writers. A tenth of the segments of every
writer are read by somebody else.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from wordwing.data.generating import CUTS
from wordwing.data.schema import Paragraph
from wordwing.data.segmenting import cut_segments
from wordwing.data.unwritten import World, segment_count, walked_layouts
from wordwing.data.written import Profile, Written
from wordwing.world.layout import Layout

WORLDS: tuple[World, ...] = ("cage", "field")

EACH = 13
"""Paragraphs that every writer writes of each kind of world."""

READ = 0.1
"""Share of the segments that somebody else reads."""

SEGMENTS = (4, 6)
"""Fewest and most segments in a paragraph."""

HOME = Path(__file__).parent / "written"


@dataclass(frozen=True)
class Assignment:
    """One paragraph for one writer."""

    writer: str
    sheet: str
    """File name of its sheet in the writer's folder."""
    world: World
    paragraph: Paragraph
    """Without instructions if it is still to be written."""
    layout: Layout


@dataclass(frozen=True)
class Reading:
    """One segment for one reader."""

    reader: str
    sheet: str
    """File name of its sheet in the reader's folder."""
    paragraph: str
    segment: int
    """From 0."""


@dataclass(frozen=True)
class Plan:
    """All the work."""

    assignments: tuple[Assignment, ...]
    readings: tuple[Reading, ...]


def profiles() -> tuple[Profile, ...]:
    """All writers, as `scripts/written/profiles.json` describes them."""
    rows = json.loads((HOME / "profiles.json").read_text("utf-8"))
    return tuple(Profile(row.pop("id"), row.pop("split"), row) for row in rows)


def make_plan(seed: int, writers: tuple[Profile, ...], packed: Mapping[str, Written]) -> Plan:
    """Sample layouts and paths, and share them out.

    Args:
        seed: The same one gives the same plan, on the same machine.
        writers: Who writes, and reads.
        packed: Paragraphs that have been written, by id; they stay where they are, whatever is sampled.
    """
    rng = np.random.default_rng(seed)
    walks = {world: walked_layouts(world, EACH * len(writers), SEGMENTS[0], rng) for world in WORLDS}
    assignments: list[Assignment] = []
    for writer in writers:
        worlds = [world for world in WORLDS for _ in range(EACH)]
        for number, index in enumerate(rng.permutation(len(worlds)).tolist(), start=1):
            world = worlds[index]
            layout, path = walks[world].pop()
            name = f"written-{writer.id}-{number:02}"
            segments = cut_segments(path, segment_count(world, path, SEGMENTS, rng), CUTS[world], rng)
            paragraph = Paragraph(name, writer.split, name, tuple(segments))
            if done := packed.get(name):
                world, paragraph, layout = done.world, done.paragraph(writer.split), Layout.from_document(done.layout)
            assignments.append(Assignment(writer.id, f"{number:03}.png", world, paragraph, layout))
    return Plan(tuple(assignments), tuple(_readings(assignments, writers, rng)))


def _readings(assignments: list[Assignment], writers: tuple[Profile, ...], rng: np.random.Generator) -> list[Reading]:
    """A tenth of each writer's segments, dealt to the other profiles in turn."""
    readings: list[Reading] = []
    counts = dict.fromkeys((writer.id for writer in writers), 0)
    for writer in writers:
        own = [entry.paragraph for entry in assignments if entry.writer == writer.id]
        segments = [(paragraph.id, number) for paragraph in own for number in range(len(paragraph.segments))]
        chosen = rng.choice(len(segments), round(READ * len(segments)), replace=False)
        for index in sorted(chosen.tolist()):
            others = [name for name in counts if name != writer.id]
            least = min(counts[name] for name in others)
            free = [name for name in others if counts[name] == least]
            reader = free[int(rng.integers(len(free)))]
            counts[reader] += 1
            readings.append(Reading(reader, f"{counts[reader]:03}.png", *segments[index]))
    return readings


def main() -> None:
    """Say how much work there is."""
    plan = make_plan(26, profiles(), {})
    for split, count in Counter(entry.paragraph.split for entry in plan.assignments).items():
        print(f"{split}: {count} paragraphs")
    print(f"{len(plan.readings)} readings")


if __name__ == "__main__":
    main()
