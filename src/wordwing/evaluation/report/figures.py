"""Which charts a report has for one origin of instructions, with what is said below them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from wordwing.evaluation.report.bootstrap import Estimate
from wordwing.evaluation.report.charts import (
    Gaps,
    Intervals,
    Judged,
    Visibility,
    distance_chart,
    gap_chart,
    judge_chart,
    visibility_chart,
)
from wordwing.evaluation.report.published import HUMAN_FIVE_POINTS, STANDS_FOR, Key, gap_closed
from wordwing.evaluation.report.summary import (
    GAP_METRICS,
    Goal,
    Group,
    Origin,
    Score,
    Summary,
    learned,
    ordered,
    segments_title,
    title,
)
from wordwing.evaluation.report.tables import slug
from wordwing.execution.metrics import SUCCESS_DISTANCE


@dataclass(frozen=True)
class Chart:
    """A chart and its words."""

    name: str
    """Of a file, without its end; another one for each chart of a report."""
    title: str
    caption: str
    alt: str
    """The most important of it, for who cannot see it."""
    svg: str


def charts_of(origin: Origin, scores: Iterable[Score], summary: Summary) -> list[Chart]:
    """All charts of one origin, as far as there is something to draw.

    Args:
        origin: Which flights.
        scores: All flights of a report.
        summary: All figures of a report.
    """
    own = [score for score in scores if score.origin == origin]
    made = [
        _visibility(origin, summary),
        _gaps(origin, summary),
        *(_judged(origin, own, segments) for segments in sorted(summary.segments(origin), reverse=True)),
        _distances(origin, own),
    ]
    return [chart for chart in made if chart is not None]


def origin_title(origin: Origin) -> str:
    """An origin in words: "cage test, sim, generated instructions"."""
    where = "sim" if origin.domain == "sim" else "lab stand-in"
    return f"{origin.corpus} {origin.split}, {where}, {origin.text} instructions"


def _name(origin: Origin, chart: str) -> str:
    return slug(origin.corpus, origin.text, origin.split, origin.domain, chart)


def _figures(summary: Summary, group: Group, metric: str) -> dict[str, Estimate]:
    """By title, in the order of tables."""
    return {
        title(system): summary.figures[group, system, metric]
        for system in summary.systems(group.origin)
        if (group, system, metric) in summary.figures
    }


def _visibility(origin: Origin, summary: Summary) -> Chart | None:
    goals: tuple[Goal, Goal] = ("ahead", "not ahead")
    drawn = {}
    for segments in summary.segments(origin):
        ahead, behind = (Group(origin, segments, goal) for goal in goals)
        drawn[segments] = Visibility(
            (_figures(summary, ahead, "success"), _figures(summary, behind, "success")),
            (_figures(summary, ahead, "emd"), _figures(summary, behind, "emd")),
        )
    if not drawn:
        return None
    said = [
        f"{segments_title(segments)}, goal {goal}: {_listed(part, 100, ' %', 0)}"
        for segments, entry in drawn.items()
        for goal, part in zip(goals, entry.success, strict=True)
        if part
    ]
    caption = (
        "Success and EMD where the goal lies within ±42° of the heading at the start, and where it does not. "
        "Lines are 95 % intervals."
    )
    alt = f"Success by where the goal is. {'; '.join(said)}."
    return Chart(_name(origin, "visibility"), "Is the goal ahead at the start?", caption, alt, visibility_chart(drawn))


def _gaps(origin: Origin, summary: Summary) -> Chart | None:
    drawn: dict[int, Gaps] = {}
    for segments in summary.segments(origin):
        group = Group(origin, segments)
        systems = [system for system in _learned(summary, origin) if (group, system, "success") in summary.gaps]
        success, emd = (
            {title(system): summary.gaps[group, system, name] for system in systems} for name in GAP_METRICS
        )
        papers = {
            title(system): gap_closed(Key(origin.corpus, origin.domain, origin.split, title(system), segments))
            for system in systems
        }
        known = {name: shares for name, shares in papers.items() if shares is not None}
        paper_success, paper_emd = ({name: shares[k] for name, shares in known.items()} for k in (0, 1))
        if systems:
            drawn[segments] = Gaps(success, emd, paper_success, paper_emd)
    if not drawn:
        return None
    caption = (
        "How much of the way from AVERAGE (0 %) to ORACLE (100 %) each system goes, in success and in EMD. "
        "Lines are 95 % intervals; those of few flights may reach beyond the picture."
    )
    if any(entry.paper_success for entry in drawn.values()):
        caption += (
            f" Hollow marks are computed from the paper's numbers on {STANDS_FOR[origin.corpus]}: people's sentences, "
            f"{'in the simulator AirSim' if origin.domain == 'sim' else 'a physical drone in a cage'}."
        )
    said = [f"{segments_title(segments)}: {_listed(entry.success, 100, ' %', 0)}" for segments, entry in drawn.items()]
    alt = f"Share of the gap in success that is closed. {'; '.join(said)}."
    return Chart(_name(origin, "gap"), "The gap between AVERAGE and ORACLE", caption, alt, gap_chart(drawn))


def _learned(summary: Summary, origin: Origin) -> list[str]:
    # Without STOP, which falls so far behind AVERAGE that all others would be pressed together.
    return [system for system in summary.systems(origin) if learned(system)]


def _judged(origin: Origin, scores: Sequence[Score], segments: int) -> Chart | None:
    by_system: dict[str, tuple[list[float], list[float]]] = {}
    for score in scores:
        path, goal = score.measures.judge_path, score.measures.judge_goal
        if score.segments == segments and path is not None and goal is not None:
            paths, goals = by_system.setdefault(score.system, ([], []))
            paths.append(path)
            goals.append(goal)
    if not by_system:
        return None
    drawn = {title(system): Judged(*by_system[system]) for system in ordered(by_system)}
    caption = (
        f"Instructions of {segments_title(segments)}. The judge is a program that compares a flown path with the "
        "meaning of its instruction; no person scored these flights. Its scores from 0 to 1 are put in five equal "
        "bins, 1 to 5. Bars lie so that the middle of score 3 is at zero, as in the paper's chart of people's scores."
    )
    if origin.corpus == "cage" and segments == 2:
        theirs = "; ".join(
            f"{system} {shares.path:g} % and {shares.goal:g} %" for system, shares in HUMAN_FIVE_POINTS.items()
        )
        caption += f" People gave the paper's physical drone a 5 for path and goal: {theirs} of the time."
    best = {name: sum(value >= 0.8 for value in entry.path) / len(entry.path) for name, entry in drawn.items()}
    said = ", ".join(f"{name} {100 * share:.0f} %" for name, share in best.items())
    return Chart(
        _name(origin, f"judge-{segments}"),
        f"Scores of the automatic judge, {segments_title(segments)}",
        caption,
        f"Share of flights with the judge's best path score: {said}.",
        judge_chart(drawn),
    )


def _distances(origin: Origin, scores: Sequence[Score]) -> Chart | None:
    drawn: dict[int, dict[str, list[float]]] = {}
    systems = ordered(score.system for score in scores)
    for segments in sorted({score.segments for score in scores}):
        for system in systems:
            own = [score.measures.distance for score in scores if (score.segments, score.system) == (segments, system)]
            if own:
                drawn.setdefault(segments, {})[title(system)] = own
    if not drawn:
        return None
    said = [
        f"{segments_title(segments)}: " + ", ".join(f"{name} {median(part):.2f} m" for name, part in entry.items())
        for segments, entry in drawn.items()
    ]
    caption = (
        f"Share of flights that come to rest within a distance of the goal. Success is sensitive to its threshold, "
        f"{SUCCESS_DISTANCE} m: where a line is steep, another threshold would give another success rate."
    )
    return Chart(
        _name(origin, "distance"),
        "How near is near enough?",
        caption,
        f"Median distance from the goal at rest. {'; '.join(said)}.",
        distance_chart(drawn),
    )


def _listed(part: Intervals, scale: float, unit: str, decimals: int) -> str:
    known = {name: entry.mean for name, entry in part.items() if entry.mean is not None}
    return ", ".join(f"{name} {scale * mean:.{decimals}f}{unit}" for name, mean in known.items())
