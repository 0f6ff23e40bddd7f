"""Which charts a report has for one origin of instructions, with their captions."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from wordwing.evaluation.report.charts import GOALS, distance_chart, gap_chart, judge_chart, visibility_chart
from wordwing.evaluation.report.labels import Origin, learned, ordered, segments_title, slug, title
from wordwing.evaluation.report.paper import HUMAN_BEST_SCORES, STANDS_FOR, paper_gap
from wordwing.evaluation.report.summary import GAP_METRICS, Summary
from wordwing.execution.metrics import SUCCESS_DISTANCE


@dataclass(frozen=True)
class Chart:
    """A chart and its captions."""

    name: str
    """Its file's name without the suffix; no two charts of a report share it."""
    title: str
    caption: str
    alt: str
    """The most important of it, for readers who cannot see it."""
    svg: str


def charts_of(origin: Origin, flights: pd.DataFrame, summary: Summary) -> list[Chart]:
    """All charts of one origin, as far as there is something to draw.

    Args:
        origin: Which flights.
        flights: All flights of a report (`summary.flight_table`).
        summary: All estimates of a report.
    """
    own = flights.groupby([*Origin._fields]).get_group(origin)
    systems = ordered(own["system"])
    own = own.sort_values("system", key=lambda column: column.map(systems.index), kind="stable")
    made = [_visibility(origin, summary), _gaps(origin, summary)]
    made += [_judged(origin, own, segments) for segments in sorted(summary.segments(origin), reverse=True)]
    made.append(_distances(origin, own))
    return [chart for chart in made if chart is not None]


def _visibility(origin: Origin, summary: Summary) -> Chart:
    found = summary.select(
        origin, kind="mean", goal=list(GOALS), segments=summary.segments(origin), metric=list(GAP_METRICS)
    )
    success = found[found["metric"] == "success"].groupby(["segments", "goal"], sort=False)
    said = [f"{segments_title(segments)}, goal {goal}: {_means(own)}" for (segments, goal), own in success]
    return Chart(
        slug(*origin, "visibility"),
        "Is the goal ahead at the start?",
        "Success and EMD where the goal lies within ±42° of the heading at the start, and where it does not. "
        "Lines are 95 % intervals.",
        f"Success by where the goal is. {'; '.join(said)}.",
        visibility_chart(found),
    )


def _gaps(origin: Origin, summary: Summary) -> Chart | None:
    # Without STOP, which falls so far behind AVERAGE that all others would be pressed together.
    systems = [system for system in summary.systems(origin) if learned(system)]
    found = summary.select(origin, kind="gap closed", segments=summary.segments(origin), system=systems)
    if found.empty:
        return None
    papers = [
        (segments, system, metric, share)
        for segments, system in found[["segments", "system"]].drop_duplicates().itertuples(index=False)
        for metric, share in zip(GAP_METRICS, paper_gap(origin, system, segments) or (), strict=False)
    ]
    caption = (
        "How much of the way from AVERAGE (0 %) to ORACLE (100 %) each system goes, in success and in EMD. "
        "Lines are 95 % intervals; those of few flights may reach beyond the chart."
    )
    if papers:
        caption += (
            f" Hollow marks are computed from the paper's numbers on {STANDS_FOR[origin.corpus]}: people's sentences, "
            f"{'in the simulator AirSim' if origin.domain == 'sim' else 'a physical drone in a cage'}."
        )
    success = found[found["metric"] == "success"].groupby("segments")
    said = [f"{segments_title(segments)}: {_means(own)}" for segments, own in success]
    return Chart(
        slug(*origin, "gap"),
        "The gap between AVERAGE and ORACLE",
        caption,
        f"Share of the gap in success that is closed. {'; '.join(said)}.",
        gap_chart(found, pd.DataFrame(papers, columns=["segments", "system", "metric", "mean"])),
    )


def _judged(origin: Origin, flights: pd.DataFrame, segments: int) -> Chart | None:
    own = flights[flights["segments"] == segments].dropna(subset=["judge_path", "judge_goal"])
    if own.empty:
        return None
    caption = (
        f"Instructions of {segments_title(segments)}. The judge is a program that compares a flown path with the "
        "meaning of its instruction; no person scored these flights. Its scores from 0 to 1 are put in five equal "
        "bins, 1 to 5. Bars lie so that the middle of score 3 is at zero, as in the paper's chart of people's scores."
    )
    if origin.corpus == "cage" and segments == 2:
        theirs = "; ".join(
            f"{system} {shares['path']:g} % and {shares['goal']:g} %" for system, shares in HUMAN_BEST_SCORES.items()
        )
        caption += f" People gave the paper's physical drone a 5 for path and goal: {theirs} of the time."
    best = (own["judge_path"] >= 0.8).groupby(own["system"], sort=False).mean()
    return Chart(
        slug(*origin, f"judge-{segments}"),
        f"Scores of the automatic judge, {segments_title(segments)}",
        caption,
        f"Share of flights with the judge's best path score: {_listed(100 * best, '{:.0f} %')}.",
        judge_chart(own),
    )


def _distances(origin: Origin, flights: pd.DataFrame) -> Chart:
    medians = {
        segments_title(segments): own.groupby("system", sort=False)["distance"].median()
        for segments, own in flights.groupby("segments")
    }
    said = [f"{heading}: {_listed(metres, '{:.2f} m')}" for heading, metres in medians.items()]
    return Chart(
        slug(*origin, "distance"),
        "How near is near enough?",
        f"Share of flights that come to rest within a distance of the goal. Success is sensitive to its threshold, "
        f"{SUCCESS_DISTANCE} m: where a line is steep, another threshold would give another success rate.",
        f"Median distance from the goal at rest. {'; '.join(said)}.",
        distance_chart(flights),
    )


def _means(estimates: pd.DataFrame) -> str:
    """Shares of systems in words: "STOP 3 %, ORACLE 97 %"."""
    return _listed(100 * estimates.set_index("system")["mean"].dropna(), "{:.0f} %")


def _listed(values: pd.Series[float], form: str) -> str:
    """A number for each system in words, in a form like "{:.0f} %"."""
    return ", ".join(f"{title(system)} {form.format(value)}" for system, value in values.items())
