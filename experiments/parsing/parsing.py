"""How well the parser (`language/parser/parsing.py`) understands sentences, as JSON lines for docs/data.md.

Usage: python experiments/parsing/parsing.py CORPUS_FOLDER… [--split dev] [--limit N] [--kinds] > LINES

In a generated corpus every sentence's meaning is known: the parsed one is compared with it clause by clause, and the
judge's verdicts by the two are compared, on the sentence's own demonstration and on another one in the same layout.
Sentences by people have no known meaning; there the verdict on the demonstration is all there is, beside that on the
demonstration of another sentence. `--kinds` counts last clauses by their kind instead, and says what the wrong ones
were taken for.
"""

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from wordwing.data.dataset import Dataset
from wordwing.data.judge_rates import Rate
from wordwing.data.schema import Instruction
from wordwing.language.meaning.clauses import Clause, Meaning
from wordwing.language.meaning.judge import judge
from wordwing.language.parser.parsing import Parsed, parse
from wordwing.world.layout import Layout

FOLLOWED = 0.5
"""Goal score from which a path ends as the sentence says."""
NEAR_ANGLE, NEAR_SHARE = math.radians(38), 0.35
"""Tolerance of an angle, and relative tolerance of a distance: those of the judge's full score."""


def same(one: Clause, other: Clause) -> bool:
    """Whether two clauses mean the same; between X and Y is between Y and X."""
    if (one.kind, one.side, set(one.references)) != (other.kind, other.side, set(other.references)):
        return False
    if one.amount is None or other.amount is None:
        return one.amount == other.amount
    return abs(one.amount - other.amount) <= (NEAR_SHARE * other.amount if one.kind == "forward" else NEAR_ANGLE)


def follows(meaning: Meaning, flown: Instruction, layout: Layout) -> bool:
    """The verdict in one word: whether a demonstration ends where a meaning says."""
    return judge(meaning, flown.segment.path, flown.segment.start_yaw, layout).goal >= FOLLOWED


def parsed(
    dataset: Dataset, split: str, limit: int | None, seed: int = 0
) -> Iterator[tuple[Instruction, Layout, Parsed]]:
    """Instructions of a split, in random order if there is a limit, with their parses."""
    entries = list(dataset.instructions(split))
    if limit is not None:
        entries = [entries[i] for i in np.random.default_rng(seed).permutation(len(entries))[:limit]]
    for entry in entries:
        layout = dataset.layout(entry.layout, entry.window)
        x, y = entry.segment.start_xy
        yield entry, layout, parse(entry.segment.instruction, layout, (float(x), float(y)))


def others(entries: list[Instruction], seed: int = 0) -> list[Instruction | None]:
    """For each instruction another one with as many segments, in the same layout unless that is a window of a scene."""
    alike = defaultdict(list)
    for entry in entries:
        alike[entry.layout if entry.window is None else "", entry.segments].append(entry)
    rng = np.random.default_rng(seed)
    found: list[Instruction | None] = []
    for entry in entries:
        group = [
            other for other in alike[entry.layout if entry.window is None else "", entry.segments] if other is not entry
        ]
        found.append(group[int(rng.integers(len(group)))] if group else None)
    return found


def rates(dataset: Dataset, split: str, limit: int | None) -> None:
    """Print how often the parser is right."""
    rows = list(parsed(dataset, split, limit))
    found: dict[tuple[int, str], Rate] = defaultdict(Rate)
    for (entry, layout, result), other in zip(rows, others([entry for entry, _, _ in rows]), strict=True):
        truth, meaning = entry.segment.meaning, result.meaning

        def count(rate: str, hit: bool, segments: int = entry.segments) -> None:
            found[segments, rate].count(hit)

        if truth:
            count("meaning right", len(meaning) == len(truth) and all(map(same, meaning, truth)))
            count("last clause right", bool(meaning) and same(meaning[-1], truth[-1]))
            count("own path followed by the parsed meaning", bool(meaning) and follows(meaning, entry, layout))
            if other is not None:
                agrees = bool(meaning) and follows(meaning, other, layout) == follows(truth, other, layout)
                count("same verdict on another path by the parsed and the true meaning", agrees)
            continue
        count("understood to the end", result.ends)
        if result.ends:
            count("own path followed, where understood to the end", follows(meaning, entry, layout))
            if other is not None:
                count("another path followed, where understood to the end", follows(meaning, other, layout))
    for (segments, rate), value in sorted(found.items(), key=lambda item: item[0][0]):
        low, high = value.interval
        row = {"corpus": dataset.name, "sentences": dataset.meta["text"], "split": split, "segments": segments}
        row |= {"rate": rate, "%": round(100 * value.share, 1)}
        print(json.dumps(row | {"95 % interval": f"{100 * low:.1f} to {100 * high:.1f}", "n": value.total}), flush=True)


def kinds(dataset: Dataset, split: str, limit: int | None) -> None:
    """Print how often the last clause is right, by its kind."""
    total: dict[str, Rate] = defaultdict(Rate)
    instead: dict[str, Counter[str]] = defaultdict(Counter)
    for entry, _, result in parsed(dataset, split, limit):
        truth = (entry.segment.meaning or (None,))[-1]
        if truth is None:
            continue
        right = bool(result.meaning) and same(result.meaning[-1], truth)
        total[truth.kind].count(right)
        if not right:
            instead[truth.kind][result.meaning[-1].kind if result.meaning else "nothing"] += 1
    for kind, rate in sorted(total.items()):
        wrong = ", ".join(f"{name} {number}" for name, number in instead[kind].most_common())
        row = {"corpus": dataset.name, "split": split, "last clause": kind, "right, %": round(100 * rate.share, 1)}
        print(json.dumps(row | {"n": rate.total, "instead": wrong}), flush=True)


def main() -> None:
    """Measure the given corpora."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folders", nargs="+", metavar="CORPUS_FOLDER")
    options.add_argument("--split", default="dev")
    options.add_argument("--limit", type=int)
    options.add_argument("--kinds", action="store_true")
    chosen = options.parse_args()
    for folder in chosen.folders:
        (kinds if chosen.kinds else rates)(Dataset(folder), chosen.split, chosen.limit)


if __name__ == "__main__":
    main()
