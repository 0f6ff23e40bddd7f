"""How far the judge can be trusted: three rates on a dataset whose meanings are known.

*Gold*: a demonstration follows its own instruction (score ≥ 0.95). *Another*: the demonstration of another instruction
in the same layout does not (score < 0.5). *Mirrored*: where a clause says left or right, the flight that does it the
other way round does not do it (score < 0.5).

A mirror must keep everything but the side, or the clause would fail for some other reason, and it must change every
path that the clause is true of: a straight flight past a landmark, mirrored at its own heading, would stay what it is.
So where the mirror stands depends on the clause:

    pass, circle, hug,     through the section's beginning and the landmark's centre: keeps all distances from the
    abeam, reach_side      landmark and reverses the way around it, so that a pass on the left becomes one on the right
    turn                   along the heading at the section's beginning: reverses the turn
    curve                  along the direction in which the section begins: reverses the bend
    along, abeam a fence   along the fence's normal, through the section's beginning: keeps the distance from the fence
                           and reverses the direction in which it is flown along

The section is the one that the judge gives to the clause, and mirrored it is scored for that clause as a whole.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from wordwing.data.dataset import Dataset
from wordwing.data.schema import Instruction, Segment
from wordwing.errors import WordwingError
from wordwing.execution.metrics import wilson
from wordwing.language.meaning.clauses import Clause, Kind
from wordwing.language.meaning.flown_path import Track
from wordwing.language.meaning.judge import judge, sections
from wordwing.language.meaning.scores import score
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats

FOLLOWED_SCORE, MISSED_SCORE = 0.95, 0.5
"""Score from which a path follows an instruction, and below which it does not."""

TARGETS = {"gold": 0.98, "another": 0.90, "mirrored": 1.0}
"""What these rates should be at least."""


@dataclass
class Rate:
    """How often something was so."""

    hits: int = 0
    total: int = 0

    def count(self, hit: bool) -> None:
        """Take one more case."""
        self.hits += hit
        self.total += 1

    @property
    def share(self) -> float:
        """NaN of nothing."""
        return self.hits / self.total if self.total else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's 95 % interval; (0, 1) of nothing."""
        return wilson(self.hits, self.total)

    def to_json(self) -> dict[str, object]:
        """Share, number and interval; the share of nothing is null."""
        share = self.share if self.total else None
        return {"share": share, "hits": self.hits, "n": self.total, "interval": list(self.interval)}


@dataclass
class Rates:
    """The judge's rates on instructions of one length."""

    gold: Rate = field(default_factory=Rate)
    another: Rate = field(default_factory=Rate)
    mirrored: dict[Kind, Rate] = field(default_factory=dict)
    """By the kind of clause."""
    missed: list[str] = field(default_factory=list)
    """Ids of instructions whose own demonstration does not follow them."""
    unmirrored: list[tuple[str, int]] = field(default_factory=list)
    """Ids, and the clause's place, where the mirrored path does as the clause says."""

    @property
    def all_mirrored(self) -> Rate:
        """Of all kinds together."""
        rates = self.mirrored.values()
        return Rate(sum(rate.hits for rate in rates), sum(rate.total for rate in rates))

    def to_json(self) -> dict[str, object]:
        """Everything but the cases."""
        kinds = {kind: rate.to_json() for kind, rate in sorted(self.mirrored.items())}
        rows = {"gold": self.gold, "another": self.another, "mirrored": self.all_mirrored}
        return {name: rate.to_json() for name, rate in rows.items()} | {"mirrored_by_kind": kinds}


def judge_rates(
    dataset: Dataset,
    split: str,
    seed: int = 0,
    progress: Callable[[Sequence[Instruction]], Iterable[Instruction]] = iter,
) -> dict[int, Rates]:
    """Measure the judge.

    Args:
        dataset: With meanings, and without scenes: a meaning's numbers are those of a whole layout.
        split: Which part of it.
        seed: Chooses the other instruction for each.
        progress: Wraps the instructions: a progress bar.

    Returns:
        Rates for one and for two segments.
    """
    known = [entry for entry in dataset.instructions(split) if entry.segment.meaning and entry.window is None]
    if not known:
        raise WordwingError(
            f'{dataset.folder}: no meaning is known in the split "{split}", so there is nothing to judge by; '
            "generated corpora have them: wordwing data judge --corpus cage"
        )
    alike: dict[tuple[str, int], list[Instruction]] = {}
    for entry in known:
        alike.setdefault((entry.layout, entry.segments), []).append(entry)
    rng = np.random.default_rng(seed)
    rates = {1: Rates(), 2: Rates()}
    for entry in progress(known):
        others = [other for other in alike[entry.layout, entry.segments] if other is not entry]
        chosen = others[int(rng.integers(len(others)))] if others else None
        _count(entry, chosen, dataset.layout(entry.layout), rates[entry.segments])
    return rates


def _count(entry: Instruction, other: Instruction | None, layout: Layout, rates: Rates) -> None:
    segment = entry.segment
    assert segment.meaning, entry.id
    follows = _score(segment.meaning, segment, layout) >= FOLLOWED_SCORE
    rates.gold.count(follows)
    if not follows:
        rates.missed.append(entry.id)
    if other is not None:
        rates.another.count(_score(segment.meaning, other.segment, layout) < MISSED_SCORE)
    for place, (clause, mirrored) in enumerate(mirrored_scores(segment, layout)):
        if mirrored is not None:
            rates.mirrored.setdefault(clause.kind, Rate()).count(mirrored < MISSED_SCORE)
            if mirrored >= MISSED_SCORE:
                rates.unmirrored.append((entry.id, place))


def _score(meaning: Sequence[Clause], flown: Segment, layout: Layout) -> float:
    return judge(meaning, flown.path, flown.start_yaw, layout).score


def mirrored_scores(segment: Segment, layout: Layout) -> Iterator[tuple[Clause, float | None]]:
    """How well the mirrored path does what each clause says, in [0, 1]; None for a clause without a left or right.

    Args:
        segment: Path and start heading, metres and radians, world frame, with a meaning.
        layout: Where it was flown.
    """
    meaning = segment.meaning or ()
    track = Track(segment.path, segment.start_yaw, layout)
    bounds = sections([score(clause, track, first=k == 0) for k, clause in enumerate(meaning)])
    for k, (clause, (begin, end)) in enumerate(zip(meaning, bounds, strict=True)):
        if not clause.handed:
            yield clause, None
            continue
        path, yaw = mirror(segment.path, segment.start_yaw, track.points[begin], mirror_line(clause, track, begin))
        yield clause, float(score(clause, Track(path, yaw, layout), first=k == 0)[begin, end])


def mirror_line(clause: Clause, track: Track, begin: int) -> float:
    """Direction of the mirror through a section's beginning, radians, world frame; which one, the module says."""
    if clause.reference is not None:
        return float(track.bearing(clause.reference)[begin])
    return float(track.arrive[begin] if clause.kind == "turn" else track.depart[begin])


def mirror(path: Floats, yaw: float, at: Floats, line: float) -> tuple[Floats, float]:
    """A path [P, 2] and its start heading, mirrored at the line through a point [2] in a direction; any frame."""
    cos, sin = math.cos(2 * line), math.sin(2 * line)
    return (np.asarray(path, float) - at) @ np.array([[cos, sin], [sin, -cos]]) + at, 2 * line - yaw
