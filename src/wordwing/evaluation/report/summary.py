"""Many flights in few numbers: means with intervals, shares of a gap, paired differences.

Everything is for one corpus, author of the sentences, split and domain at a time; those are never mixed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from operator import attrgetter
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wordwing.errors import WordwingError
from wordwing.evaluation.episodes import Episode
from wordwing.evaluation.measures import Measures
from wordwing.evaluation.report.bootstrap import RESAMPLES, Estimate, Resampling
from wordwing.interface import Domain

SUMMARY = "summary.json"
"""Its name in an evaluation's folder."""

SCHEMA = 1

TITLES = {
    "stop": "STOP",
    "average": "AVERAGE",
    "pvn-bc": "PVN-BC",
    "pvn2-bc": "PVN2-BC",
    "pvn2-sureal": "PVN2-SuReAL",
    "pvn2-sureal-no-exploration": "PVN2-SuReAL-noExp",
    "pvn2-sureal-no-instruction": "PVN2-SuReAL-noU",
    "pvn2-sureal-no-image": "PVN2-SuReAL-noI",
    "pvn2-sureal-half-lab": "PVN2-SuReAL-50real",
    "pvn2-sureal-tenth-lab": "PVN2-SuReAL-10real",
    "pvn2-sureal-sim-only": "PVN2-SuReAL-simOnly",
    "pvn2-sureal-no-discriminator": "PVN2-SuReAL-noDisc",
    "pvn2-sureal-from-standing": "PVN2-SuReAL-noDemo",
    "oracle": "ORACLE",
}
"""Systems as the paper calls them, in the order of its tables, and three that it does not have; systems of other names
stand before ORACLE."""

NOT_LEARNED = ("stop", "average", "oracle")

Segments = int | Literal["both"]
Goal = Literal["all", "ahead", "not ahead", "in sight", "not in sight"]
GOALS: tuple[Goal, ...] = ("all", "ahead", "not ahead", "in sight", "not in sight")
"""Which instructions, by where their goal is seen from the start (`Measures.goal_ahead`, `goal_in_sight`)."""
Clauses = Literal["all", "1 clause", "2 clauses", "3 or more clauses"]
COUNTS: tuple[Clauses, ...] = ("1 clause", "2 clauses", "3 or more clauses")
"""Which instructions, by how much they say (`Measures.clauses`)."""


@dataclass(frozen=True)
class Metric:
    """A field of `Measures` that is averaged."""

    name: str
    title: str
    share: bool = False
    """Each flight has it or has it not; shown in %."""
    lower_is_better: bool = False


METRICS = (
    Metric("success", "SR", share=True),
    Metric("followed", "Followed", share=True),
    Metric("stopped", "ended by STOP", share=True),
    Metric("success_at_stop", "SR at STOP", share=True),
    Metric("distance", "NE", lower_is_better=True),
    Metric("distance_at_stop", "NE at STOP", lower_is_better=True),
    Metric("closest", "closest", lower_is_better=True),
    Metric("oracle_success", "OSR", share=True),
    Metric("emd", "EMD", lower_is_better=True),
    Metric("nemd", "NEMD", lower_is_better=True),
    Metric("semd", "SEMD"),
    Metric("length", "path length"),
    Metric("spl", "SPL"),
    Metric("ndtw", "nDTW"),
    Metric("sdtw", "SDTW"),
    Metric("judge_path", "judge's path score"),
    Metric("judge_goal", "judge's goal score"),
    Metric("first_goal_error", "goal error, first look", lower_is_better=True),
    Metric("last_goal_error", "goal error, last look", lower_is_better=True),
    Metric("first_unobserved", "p_oob, first look"),
)
METRIC = {metric.name: metric for metric in METRICS}
GAP_METRICS = ("success", "emd")
COMPARED_METRICS = ("success", "followed", "emd", "judge_path", "judge_goal")
"""Of what shares of the AVERAGE-to-ORACLE gap and paired differences are computed."""


@dataclass(frozen=True)
class Score:
    """What a report keeps of a flight: whose it was, of what, and its measures."""

    system: str
    corpus: str
    text: str
    split: str
    domain: Domain
    segments: int
    id: str
    layout: str
    measures: Measures

    @classmethod
    def of(cls, episode: Episode, measures: Measures) -> Score:
        """Of an episode that has been measured."""
        return cls(
            system=episode.system,
            corpus=episode.corpus,
            text=episode.text,
            split=episode.split,
            domain=episode.domain,
            segments=episode.segments,
            id=episode.id,
            layout=episode.layout_id,
            measures=measures,
        )

    @property
    def origin(self) -> Origin:
        """What it is summed up with."""
        return Origin(self.corpus, self.text, self.split, self.domain)


@dataclass(frozen=True)
class Origin:
    """Where instructions are from, and in which domain they were flown."""

    corpus: str
    text: str
    """Who wrote them: "generated" or "human"."""
    split: str
    domain: Domain


@dataclass(frozen=True)
class Group:
    """Which instructions a figure is of."""

    origin: Origin
    segments: Segments
    goal: Goal = "all"
    clauses: Clauses = "all"

    def to_json(self) -> dict[str, Any]:
        """A plain dictionary."""
        return {**asdict(self.origin), "segments": self.segments, "goal": self.goal, "clauses": self.clauses}


@dataclass(frozen=True)
class Summary:
    """All figures, each by what it is of, in the order in which they are to be shown."""

    figures: dict[tuple[Group, str, str], Estimate]
    """By group, system and metric."""
    gaps: dict[tuple[Group, str, str], Estimate]
    """Shares of the way from AVERAGE to ORACLE, by group, system and metric."""
    differences: dict[tuple[Group, str, str, str], Estimate]
    """By group, two systems and metric: the first system's less the second's, over the instructions both flew."""

    @property
    def origins(self) -> list[Origin]:
        """All that was flown."""
        return list(dict.fromkeys(group.origin for group, _system, _metric in self.figures))

    def systems(self, origin: Origin) -> list[str]:
        """Those that flew its instructions."""
        return list(dict.fromkeys(system for group, system, _metric in self.figures if group.origin == origin))

    def segments(self, origin: Origin) -> list[int]:
        """How many segments its instructions have."""
        counts = {group.segments for group, *_ in self.figures if group.origin == origin}
        return sorted(count for count in counts if count != "both")

    def to_json(self) -> str:
        """The text of summary.json; the same flights give the same bytes."""
        systems = sorted({system for _group, system, _metric in self.figures}, key=_system_order)
        figures: dict[tuple[Group, str], dict[str, Any]] = {}
        for (group, system, metric), estimate in self.figures.items():
            row = figures.setdefault((group, system), {**group.to_json(), "system": system, "metrics": {}})
            row["metrics"][metric] = estimate.to_json()
        document = {
            "schema": SCHEMA,
            "resamples": RESAMPLES,
            "systems": {system: title(system) for system in systems},
            "figures": list(figures.values()),
            "gap_closed": [
                {**group.to_json(), "system": system, "metric": metric, **estimate.to_json()}
                for (group, system, metric), estimate in self.gaps.items()
            ],
            "differences": [
                {**group.to_json(), "system": a, "minus": b, "metric": metric, **estimate.to_json()}
                for (group, a, b, metric), estimate in self.differences.items()
            ],
        }
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def title(system: str) -> str:
    """A system's name in tables."""
    return TITLES.get(system, system)


def segments_title(count: int) -> str:
    """A number of segments in words."""
    return "1 segment" if count == 1 else f"{count} segments"


def learned(system: str) -> bool:
    """Whether a system is a policy, not one of the paper's three that learn nothing."""
    return system not in NOT_LEARNED


def ablated(system: str) -> str | None:
    """The system of which this one is an ablation, if it is one."""
    return "pvn2-sureal" if system in TITLES and system.startswith("pvn2-sureal-") else None


def ordered(systems: Iterable[str]) -> list[str]:
    """Systems in the order of tables."""
    return sorted(set(systems), key=_system_order)


def summarise(scores: Iterable[Score]) -> Summary:
    """Compute all figures of some flights.

    Args:
        scores: In any order; each system must have flown an instruction at most once in each domain.
    """
    by_origin: dict[Origin, list[Score]] = {}
    for score in scores:
        by_origin.setdefault(score.origin, []).append(score)
    summary = Summary({}, {}, {})
    for origin in sorted(by_origin, key=_origin_order):
        flown = _Flown(origin, by_origin[origin])
        for group, mask in flown.groups():
            _add_group(summary, group, flown, mask)
    return summary


class _Flown:
    """The flights of one origin as columns over its N instructions."""

    def __init__(self, origin: Origin, scores: Sequence[Score]) -> None:
        self.origin = origin
        self.systems = ordered(score.system for score in scores)
        any_score = {score.id: score for score in scores}
        ids = sorted(any_score)
        self.layouts = np.array([any_score[name].layout for name in ids])
        self.segments = np.array([any_score[name].segments for name in ids])
        self.ahead = np.array([any_score[name].measures.goal_ahead for name in ids])
        self.in_sight = np.array([any_score[name].measures.goal_in_sight for name in ids])
        self.clauses = np.array([any_score[name].measures.clauses or 0 for name in ids])
        """0 where they are not known."""
        by_system: dict[str, dict[str, Measures]] = {system: {} for system in self.systems}
        for score in scores:
            _check_same_task(score, any_score[score.id])
            if score.id in by_system[score.system]:
                raise WordwingError(
                    f"{score.system} flew {score.id} of {origin.corpus} in {origin.domain} twice; "
                    "report one flight of each system and instruction at a time"
                )
            by_system[score.system][score.id] = score.measures
        self.columns = {
            (system, metric.name): _column([found.get(name) for name in ids], metric.name)
            for system, found in by_system.items()
            for metric in METRICS
        }

    def groups(self) -> Iterator[tuple[Group, NDArray[np.bool_]]]:
        """Each group that has an instruction, and a mask [N] of its instructions.

        Goals are told apart for each number of segments; how much is said, for all of them together.
        """
        counts = sorted(set(self.segments.tolist()))
        lengths: list[Segments] = [*counts, "both"] if len(counts) > 1 else [*counts]
        kinds = {
            "all": np.ones_like(self.ahead),
            "ahead": self.ahead,
            "not ahead": ~self.ahead,
            "in sight": self.in_sight,
            "not in sight": ~self.in_sight,
        }
        for segments in lengths:
            long = np.ones_like(self.ahead) if segments == "both" else self.segments == segments
            for goal in GOALS:
                mask = long & kinds[goal]
                if mask.any():
                    yield Group(self.origin, segments, goal), mask
        for count, clauses in enumerate(COUNTS, start=1):
            mask = self.clauses >= count if clauses == COUNTS[-1] else self.clauses == count
            if mask.any():
                yield Group(self.origin, lengths[-1], clauses=clauses), mask


def _add_group(summary: Summary, group: Group, flown: _Flown, mask: NDArray[np.bool_]) -> None:
    draws = Resampling.of(flown.layouts[mask].tolist())
    column = {key: values[mask] for key, values in flown.columns.items()}
    present = [system for system in flown.systems if not np.isnan(column[system, "success"]).all()]
    for system in present:
        for metric in METRICS:
            estimate = draws.interval(column[system, metric.name], metric.share)
            if estimate.n:
                summary.figures[group, system, metric.name] = estimate
    if group.clauses != "all":
        return
    if group.goal == "all" and {"average", "oracle"} <= set(present):
        for system in present:
            for name in GAP_METRICS if system not in ("average", "oracle") else ():
                x, average, oracle = (column[who, name] for who in (system, "average", "oracle"))
                summary.gaps[group, system, name] = draws.gap_closed(x, average, oracle, METRIC[name].lower_is_better)
    for earlier, later in combinations(present, 2):
        for name in COMPARED_METRICS:
            estimate = draws.difference(column[later, name], column[earlier, name], METRIC[name].share)
            if estimate.n:
                summary.differences[group, later, earlier, name] = estimate


def _column(measures: Sequence[Measures | None], name: str) -> NDArray[np.float64]:
    """A metric of [N] flights; NaN where there is no flight or it has no such value."""
    value = attrgetter(name)
    return np.array([None if found is None else value(found) for found in measures], dtype=float)


def _check_same_task(score: Score, other: Score) -> None:
    """Raise if two systems flew tasks of the same name that are not the same, such as corpora of different seeds."""
    keys = attrgetter("layout", "segments", "measures.gold_length", "measures.stop_emd", "measures.clauses")
    if keys(score) != keys(other):
        raise WordwingError(
            f"{score.system} and {other.system} flew different tasks called {score.id} of {score.corpus}; "
            "systems can be compared on the same dataset only"
        )


def _system_order(system: str) -> tuple[int, str]:
    names = list(TITLES)
    if system in TITLES:
        return names.index(system) + (system == "oracle"), system
    return len(names) - 1, system


def _origin_order(origin: Origin) -> tuple[Any, ...]:
    """As the paper's tables: test first, then dev; the drone, then the simulator."""
    corpora, splits = ("cage", "field", "house"), ("test", "test-20", "dev", "dev-20")
    return (
        _place(origin.corpus, corpora),
        origin.text,
        _place(origin.split, splits),
        ("lab", "sim").index(origin.domain),
    )


def _place(name: str, known: Sequence[str]) -> tuple[int, str]:
    return (known.index(name) if name in known else len(known)), name
