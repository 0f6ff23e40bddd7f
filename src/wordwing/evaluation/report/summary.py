"""Many flights in few numbers: means with intervals, shares of a gap, paired differences.

Everything is for one corpus, author of the sentences, split and domain at a time; those are never mixed.
"""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from wordwing.errors import WordwingError
from wordwing.evaluation.report.bootstrap import NOTHING, RESAMPLES, Estimate, Resampling
from wordwing.evaluation.report.labels import Origin, ordered, ordered_origins, title
from wordwing.execution.execution import Provenance
from wordwing.execution.metrics import Metrics

SCHEMA = 1
"""Version of summary.json."""

Goal = Literal["all", "ahead", "not ahead", "in sight", "not in sight"]
"""Which instructions, by where their goal is seen from the start (`Metrics.goal_ahead`, `goal_in_sight`)."""
CLAUSES = ("1 clause", "2 clauses", "3 or more clauses")
"""Which instructions, by how much they say (`Metrics.clauses`)."""


@dataclass(frozen=True)
class Metric:
    """A field of `Metrics` that is averaged."""

    name: str
    title: str
    unit: Literal["%", "m", ""] = ""
    """In %: each flight has it or has it not, and the mean is a share from 0 to 1."""
    lower_is_better: bool = False

    @property
    def share(self) -> bool:
        """Whether each flight has it or has it not."""
        return self.unit == "%"


METRICS = {
    metric.name: metric
    for metric in (
        Metric("success", "SR", "%"),
        Metric("followed", "Followed", "%"),
        Metric("stopped", "ended by STOP", "%"),
        Metric("success_at_stop", "SR at STOP", "%"),
        Metric("distance", "NE", "m", lower_is_better=True),
        Metric("distance_at_stop", "NE at STOP", "m", lower_is_better=True),
        Metric("closest", "closest", "m", lower_is_better=True),
        Metric("oracle_success", "OSR", "%"),
        Metric("emd", "EMD", "m", lower_is_better=True),
        Metric("nemd", "NEMD", lower_is_better=True),
        Metric("semd", "SEMD"),
        Metric("length", "path length", "m"),
        Metric("spl", "SPL"),
        Metric("ndtw", "nDTW"),
        Metric("sdtw", "SDTW"),
        Metric("judge_path", "judge's path score"),
        Metric("judge_goal", "judge's goal score"),
        Metric("first_goal_error", "goal error, first look", "m", lower_is_better=True),
        Metric("last_goal_error", "goal error, last look", "m", lower_is_better=True),
        Metric("first_unobserved", "p_oob, first look"),
    )
}
GAP_METRICS = ("success", "emd")
COMPARED_METRICS = ("success", "followed", "emd", "judge_path", "judge_goal")
"""Metrics of which shares of the AVERAGE-to-ORACLE gap, and paired differences, are computed."""

FLIGHT = ("system", *Origin._fields, "segments", "id", "layout_id")
"""What a report keeps of a flight besides its `Metrics`: which system flew, and what."""

GROUP = (*Origin._fields, "segments", "goal", "clauses")
"""Which instructions an estimate is over. `segments` is a number or "both"."""


def flight_row(flight: Provenance, metrics: Metrics) -> dict[str, Any]:
    """What a report keeps of a flight."""
    return {**{key: getattr(flight, key) for key in FLIGHT}, **metrics.to_json()}


def flight_table(rows: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """A row for each flight, from what `flight_row` gives: columns `FLIGHT`, and those of `Metrics`."""
    return pd.DataFrame(rows, columns=[*FLIGHT, *(field.name for field in fields(Metrics))])


@dataclass(frozen=True)
class Summary:
    """All estimates, in the order in which they are shown."""

    estimates: pd.DataFrame
    """Columns `GROUP`, kind, system, minus, metric, and those of `Estimate`, NaN for None. Of kind "mean" a row is over
    a system's flights; of kind "gap closed" the share of the way from AVERAGE to ORACLE; of kind "difference" the
    system's mean less that of the system `minus`, over the instructions that both flew."""

    def select(self, origin: Origin | None = None, **values: Any) -> pd.DataFrame:
        """Estimates of an origin whose columns have these values; a list or tuple is a choice of values."""
        wanted = {**(origin._asdict() if origin else {}), **values}
        found = self.estimates
        for column, value in wanted.items():
            found = found[found[column].isin(value if isinstance(value, list | tuple) else [value])]
        return found

    def estimate(self, origin: Origin, segments: int | str, system: str, metric: str, **values: Any) -> Estimate:
        """One estimate, `NOTHING` if there is none: by default a mean over all instructions with so many segments.

        Args:
            origin: Which flights.
            segments: How many segments the instructions have, or "both".
            system: Which system flew.
            metric: Of `METRICS`.
            values: Values of other columns: kind, goal, clauses, minus.
        """
        defaults = {"kind": "mean", "goal": "all", "clauses": "all", "minus": ""}
        found = self.select(origin, segments=segments, system=system, metric=metric, **{**defaults, **values})
        for *ends, n in found[[*Estimate._fields]].itertuples(index=False):
            mean, low, high = (None if math.isnan(end) else end for end in ends)
            return Estimate(mean, low, high, n)
        return NOTHING

    @property
    def origins(self) -> list[Origin]:
        """Every origin of flights."""
        return [Origin(*row) for row in self.estimates[[*Origin._fields]].drop_duplicates().itertuples(index=False)]

    def systems(self, origin: Origin) -> list[str]:
        """The systems that flew its instructions."""
        return self.select(origin)["system"].unique().tolist()

    def segments(self, origin: Origin) -> list[int]:
        """The numbers of segments that its instructions have."""
        return sorted(set(self.select(origin)["segments"]) - {"both"})

    def to_json(self) -> str:
        """The text of summary.json; the same flights give the same bytes."""
        means, gaps, differences = (
            self.select(kind=kind).to_dict("records") for kind in ("mean", "gap closed", "difference")
        )
        figures: dict[tuple[Any, ...], dict[str, Any]] = {}
        for row in means:
            key = {column: row[column] for column in (*GROUP, "system")}
            figures.setdefault(tuple(key.values()), {**key, "metrics": {}})["metrics"][row["metric"]] = rounded(row)
        document = {
            "schema": SCHEMA,
            "resamples": RESAMPLES,
            "systems": {system: title(system) for system in ordered(self.estimates["system"])},
            "figures": list(figures.values()),
            "gap_closed": [rounded(row, *GROUP, "system", "metric") for row in gaps],
            "differences": [rounded(row, *GROUP, "system", "minus", "metric") for row in differences],
        }
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def rounded(row: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """A row of estimates as files have it: some of its keys, floats to six decimals, None for NaN."""
    ends = {key: None if math.isnan(row[key]) else round(row[key], 6) + 0.0 for key in ("mean", "low", "high")}
    return {**{key: row[key] for key in keys}, **ends, "n": row["n"]}  # + 0.0: not −0.0


def summarise(flights: pd.DataFrame) -> Summary:
    """Compute all estimates.

    Args:
        flights: Made by `flight_table`, in any order; each system must have flown an instruction at most once in each
            domain.
    """
    by_origin = {Origin(*key): own for key, own in flights.groupby([*Origin._fields])}
    rows = [row for origin in ordered_origins(by_origin) for row in _estimates(origin, by_origin[origin])]
    columns = [*GROUP, "kind", "system", "minus", "metric", *Estimate._fields]
    return Summary(pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(("mean", "low", "high"), float)))


def _estimates(origin: Origin, flights: pd.DataFrame) -> Iterator[tuple[Any, ...]]:
    """All rows of one origin."""
    _check(origin, flights)
    systems = ordered(flights["system"])
    tasks = flights.drop_duplicates("id").set_index("id").sort_index()
    wide = flights.pivot(index="id", columns="system", values=list(METRICS)).sort_index().astype(float)
    values = {key: wide[key].to_numpy() for key in wide.columns}  # [instructions] by metric and system
    for segments, goal, clauses, mask in _groups(tasks):
        draws = Resampling(tasks["layout_id"].to_numpy()[mask])
        column = {key: array[mask] for key, array in values.items()}
        present = [system for system in systems if not np.isnan(column["success", system]).all()]
        found: list[tuple[str, str, str, str, Estimate]] = [
            ("mean", system, "", name, draws.interval(column[name, system], metric.share))
            for system in present
            for name, metric in METRICS.items()
        ]
        if clauses == "all":
            found += [
                (
                    "difference",
                    later,
                    earlier,
                    name,
                    draws.difference(column[name, later], column[name, earlier], METRICS[name].share),
                )
                for earlier, later in combinations(present, 2)
                for name in COMPARED_METRICS
            ]
        found = [entry for entry in found if entry[-1].n]
        if goal == clauses == "all" and {"average", "oracle"} <= set(present):
            found += [
                (
                    "gap closed",
                    system,
                    "",
                    name,
                    draws.gap_closed(
                        column[name, system],
                        column[name, "average"],
                        column[name, "oracle"],
                        METRICS[name].lower_is_better,
                    ),
                )
                for system in present
                if system not in ("average", "oracle")
                for name in GAP_METRICS
            ]
        yield from ((*origin, segments, goal, clauses, *keys, *estimate) for *keys, estimate in found)


def _groups(tasks: pd.DataFrame) -> Iterator[tuple[int | str, Goal, str, NDArray[np.bool_]]]:
    """Segments, goal and clauses of each group that has an instruction, and a mask [instructions] of its instructions.

    Goals are split for each number of segments, clauses over all of them together.
    """
    everything = np.ones(len(tasks), bool)
    counts = sorted(tasks["segments"].unique().tolist())
    lengths = {count: (tasks["segments"] == count).to_numpy() for count in counts}
    if len(counts) > 1:
        lengths["both"] = everything
    ahead, in_sight = (tasks[name].to_numpy(bool) for name in ("goal_ahead", "goal_in_sight"))
    goals: dict[Goal, NDArray[np.bool_]] = {
        "all": everything,
        "ahead": ahead,
        "not ahead": ~ahead,
        "in sight": in_sight,
        "not in sight": ~in_sight,
    }
    said = tasks["clauses"].astype(float).clip(upper=len(CLAUSES)).to_numpy()  # NaN where it is not known
    groups = [(length, goal, "all", own & kind) for length, own in lengths.items() for goal, kind in goals.items()]
    groups += [(list(lengths)[-1], "all", clauses, said == count) for count, clauses in enumerate(CLAUSES, start=1)]
    yield from (group for group in groups if group[-1].any())


def _check(origin: Origin, flights: pd.DataFrame) -> None:
    """Raise if a system flew an instruction twice, or tasks of one name differ, as those of corpora of two seeds do."""
    tasks = flights.drop_duplicates(["id", "layout_id", "segments", "gold_length", "stop_emd", "clauses"])
    for name, own in tasks[tasks["id"].duplicated(keep=False)].groupby("id"):
        first, second, *_more = own["system"]
        raise WordwingError(
            f"{second} and {first} flew different tasks called {name} of {origin.corpus}; "
            "systems can be compared on the same dataset only"
        )
    for flight in flights[flights.duplicated(["system", "id"])].itertuples():
        raise WordwingError(
            f"{flight.system} flew {flight.id} of {origin.corpus} in {origin.domain} twice; "
            "report one flight of each system and instruction at a time"
        )
