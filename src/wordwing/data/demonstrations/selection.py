"""Which paragraphs are flown in the lab: 100 with 402 single segments, as the paper has, and smaller parts of them.

People re-arrange the cage once for each block of paragraphs that share a layout, so whole blocks are chosen. A tenth of
the paragraphs, inside half of them, already passes by every kind of landmark: ablations then vary how much was flown,
not what was seen.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from wordwing.data.dataset import Dataset
from wordwing.data.schema import Paragraph
from wordwing.errors import WordwingError
from wordwing.language.alignment import present
from wordwing.world.paths import Floats

PARAGRAPHS, SEGMENTS = 100, 402
"""Size of the set (paper: Demonstration Data, and its table of dataset sizes)."""

SUBSETS = {"half": 0.5, "tenth": 0.1}
"""Parts of the paragraphs, each inside the one before."""

CANDIDATES, REACH = 150, 1200
"""Most blocks that are chosen from, and most segments that they are looked at for; more would only take memory."""

TRIES, POOL = 200, 500
"""Random covers, each by so many paragraphs, of which the one in the fewest layouts is taken."""


@dataclass(frozen=True)
class Selection:
    """What to fly in the lab."""

    paragraphs: tuple[Paragraph, ...]
    """In the dataset's order."""
    subsets: dict[str, list[str]]
    """Ids of the paragraphs in each part."""


@dataclass(frozen=True, eq=False)
class _Entry:
    """A paragraph, where it is in the dataset, and what it counts."""

    index: int
    paragraph: Paragraph
    segments: int
    kinds: frozenset[str]
    """Landmarks within 1.41 m of its paths."""


_Block = tuple[_Entry, ...]


def select(dataset: Dataset, seed: int, paragraphs: int = PARAGRAPHS, segments: int = SEGMENTS) -> Selection:
    """Choose training paragraphs by a seed: all choices with these numbers are equally likely, given the tenth.

    Args:
        dataset: Where from.
        seed: Chooses.
        paragraphs: How many; all that there are, if they are fewer.
        segments: How many single segments they shall have; the nearest possible number, if none has as many.
    """
    rng = np.random.default_rng([seed, paragraphs, segments])
    entries = [entry for entry in _entries(dataset) if entry.segments]
    if not entries:
        raise WordwingError(f"{dataset.folder}: the split train has no single segments to fly")
    blocks = _blocks(entries)
    wanted = min(paragraphs, len(entries))
    few = max(1, round(SUBSETS["tenth"] * wanted))
    tenth = _cover(blocks, few, rng)
    homes = [block for block in blocks if set(block) & set(tenth)]
    if sum(map(len, homes)) > wanted:  # blocks so large that whole ones do not fit: paragraphs one by one
        blocks, homes = [(entry,) for entry in entries], [(entry,) for entry in tenth]
    others = [block for block in blocks if block not in homes]
    missing = segments - sum(entry.segments for block in homes for entry in block)
    chosen = [*homes, *_exactly(others, wanted - sum(map(len, homes)), missing, rng)]
    half = _part(chosen, tenth, max(few, round(SUBSETS["half"] * wanted)), rng)
    everything = sorted((entry for block in chosen for entry in block), key=lambda entry: entry.index)
    return Selection(
        tuple(entry.paragraph for entry in everything),
        {
            name: [entry.paragraph.id for entry in everything if entry in part]
            for name, part in (("half", half), ("tenth", tenth))
        },
    )


def _entries(dataset: Dataset) -> list[_Entry]:
    found = []
    for index, paragraph in enumerate(dataset.paragraphs("train")):
        singles = list(paragraph.instructions((1,)))
        near = (present(dataset.layout(single.layout, single.window), single.segment.path) for single in singles)
        found.append(_Entry(index, paragraph, len(singles), frozenset[str]().union(*near)))
    return found


def _blocks(entries: Sequence[_Entry]) -> list[_Block]:
    """Paragraphs that share a layout."""
    found: dict[str, list[_Entry]] = {}
    for entry in entries:
        found.setdefault(entry.paragraph.layout, []).append(entry)
    return [tuple(block) for block in found.values()]


def _kinds(entries: Sequence[_Entry]) -> frozenset[str]:
    return frozenset[str]().union(*(entry.kinds for entry in entries))


def _cover(blocks: Sequence[_Block], count: int, rng: np.random.Generator) -> _Block:
    """Some paragraphs that pass by as many kinds of landmarks as can be, in as few layouts as can be."""
    everything = _kinds([entry for block in blocks for entry in block])
    [(usual, _)] = Counter(map(len, blocks)).most_common(1)
    if count % usual == 0 and count // usual <= 2:
        whole = [block for block in blocks if len(block) == usual]
        kinds = [_kinds(block) for block in whole]
        groups = combinations(range(len(whole)), count // usual)
        fit = [group for group in groups if frozenset[str]().union(*(kinds[i] for i in group)) == everything]
        if fit:
            return tuple(entry for i in fit[rng.integers(len(fit))] for entry in whole[i])
    tries = [_greedy(blocks, everything, count, rng) for _ in range(TRIES)]
    return min(tries, key=lambda made: (-len(_kinds(made)), len({entry.paragraph.layout for entry in made})))


def _greedy(
    blocks: Sequence[_Block], everything: frozenset[str], count: int, rng: np.random.Generator
) -> tuple[_Entry, ...]:
    """A paragraph after the other: what shows most that is new, near what is taken already."""
    entries = [entry for block in blocks for entry in block]
    left = [entries[i] for i in rng.permutation(len(entries))[:POOL]]
    taken: list[_Entry] = []
    layouts: set[str] = set()
    missing = everything
    while len(taken) < count:
        best = max(left, key=lambda entry: (len(entry.kinds & missing), entry.paragraph.layout in layouts))
        left.remove(best)
        taken.append(best)
        layouts.add(best.paragraph.layout)
        missing -= best.kinds
    return tuple(sorted(taken, key=lambda entry: entry.index))


def _exactly(blocks: Sequence[_Block], paragraphs: int, segments: int, rng: np.random.Generator) -> list[_Block]:
    """Blocks with so many paragraphs and segments, or as near as can be; all such choices are equally likely."""
    shuffled = [blocks[i] for i in rng.permutation(len(blocks))][:CANDIDATES]
    sizes = [(len(block), sum(entry.segments for entry in block)) for block in shuffled]
    ways = _ways(sizes, paragraphs, min(sum(weight for _, weight in sizes), REACH))
    reachable = np.argwhere(ways[-1] > 0)  # [R, 2] paragraphs, segments
    miss = np.abs(reachable - (paragraphs, segments))
    p, s = reachable[np.lexsort((miss[:, 1], miss[:, 0]))[0]].tolist()
    chosen = []
    for index in reversed(range(len(shuffled))):
        size, weight = sizes[index]
        with_it = ways[index][p - size, s - weight] if p >= size and s >= weight else 0.0
        if rng.random() * ways[index + 1][p, s] < with_it:
            chosen.append(shuffled[index])
            p, s = p - size, s - weight
    return chosen


def _ways(sizes: Sequence[tuple[int, int]], paragraphs: int, segments: int) -> Floats:
    """[B + 1, P + 1, S + 1] in how many ways the first b of some blocks make up p paragraphs and s segments."""
    ways = np.zeros((len(sizes) + 1, paragraphs + 1, segments + 1))
    ways[0, 0, 0] = 1
    for index, (p, s) in enumerate(sizes):
        ways[index + 1] = ways[index]
        if p <= paragraphs and s <= segments:
            ways[index + 1, p:, s:] += ways[index, : paragraphs + 1 - p, : segments + 1 - s]
    return ways


def _part(chosen: Sequence[_Block], inside: _Block, count: int, rng: np.random.Generator) -> set[_Entry]:
    """So many paragraphs of chosen blocks, whole blocks first, those of `inside` among them."""
    part = set(inside)
    begun = [block for block in chosen if set(block) & part]
    others = [block for block in chosen if not set(block) & part]
    for block in [*begun, *(others[i] for i in rng.permutation(len(others)))]:
        new = [entry for entry in block if entry not in part]
        part.update(new[: count - len(part)])
    return part
