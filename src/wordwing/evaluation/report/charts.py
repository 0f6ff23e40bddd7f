"""Charts of a report, as SVG, with their captions: visibility, the judge's scores, the gap closed, distances.

Systems stand from top to bottom in the order in which a table names them first. The same input gives the same bytes.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from wordwing.evaluation.report.labels import Origin, learned, ordered, segments_title, slug, title
from wordwing.evaluation.report.paper import HUMAN_BEST_SCORES, STANDS_FOR, paper_gap
from wordwing.evaluation.report.summary import GAP_METRICS, Summary
from wordwing.execution.metrics import SUCCESS_DISTANCE
from wordwing.viz.drawing import (
    BLUISH_GREEN,
    FLOWN,
    GOLD,
    GREY,
    INK,
    REDDISH_PURPLE,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
    Colour,
)

WIDTH = 7.4
"""The width of every chart, inches."""

FARTHEST = 2.0
"""Where the axis of distances ends, metres."""

LIKERT = ((178, 24, 43), (239, 138, 98), (217, 217, 217), (103, 169, 207), (33, 102, 172))
"""From score 1 to 5: ColorBrewer's RdBu with a grey middle, which colour-blind people can tell apart."""

TITLED = {
    "STOP": GREY,
    "AVERAGE": SKY_BLUE,
    "PVN-BC": REDDISH_PURPLE,
    "PVN2-BC": BLUISH_GREEN,
    "PVN2-SuReAL": VERMILLION,
    "ORACLE": INK,
}
"""Colours of systems that are the same in every report."""


Style = Literal["-", "--", ":", "-."]
"""A line style of matplotlib."""

GOALS = {"ahead": "goal ahead at the start", "not ahead": "goal not ahead"}
"""Where the goal may be, and what the legend calls it."""


@contextmanager
def plain_style(more: Mapping[str, Any] | None = None) -> Iterator[None]:
    """Matplotlib as it comes, whatever the user has configured, with what all charts share, and more."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        parameters: Any = matplotlib.rcParams
        parameters.update({"font.family": "DejaVu Sans", "svg.fonttype": "path", "svg.hashsalt": "wordwing"})
        parameters.update(more or {})
        yield


_CHART: dict[str, Any] = {
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": "0.6",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": "0.3",
    "ytick.color": "0.15",
    "grid.color": "0.9",
    "legend.frameon": False,
    "text.color": "0.13",
    "text.parse_math": False,  # a system may be called a$b
}


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


@plain_style(_CHART)
def visibility_chart(means: pd.DataFrame) -> str:
    """Success and EMD where the goal is ahead at the start and where it is not, by number of segments.

    Args:
        means: Estimates of one origin (`Summary.estimates`): metrics success and emd, goals of `GOALS`.
    """
    systems, counts = (list(means[column].unique()) for column in ("system", "segments"))
    panels = (("success", 100.0, "success, %"), ("emd", 1.0, "EMD, m (less is better)"))
    figure = _figure(2 * (0.24 * len(systems) + 0.62) + 0.35)
    grid = figure.subplots(2, len(counts), squeeze=False, sharex="row", sharey=True)
    for column, count in enumerate(counts):
        own = means[means["segments"] == count]
        for axes, (metric, scale, label) in zip(grid[:, column], panels, strict=True):
            found = own[own["metric"] == metric]
            _dots(axes, systems, [found[found["goal"] == goal] for goal in GOALS], scale)
            axes.set_xlabel(label)
        flights = own[own["metric"] == "success"]
        spans = [f"{_span(flights['n'][flights['goal'] == goal].tolist())} {goal}" for goal in GOALS]
        grid[0, column].set_title(f"{segments_title(count)}\n{', '.join(spans)}")
    grid[0, 0].set_xlim(-3, 103)  # and the others of its row, which share it
    grid[1, 0].set_xlim(left=0)
    handles = [_legend_marker(label, *look) for label, look in zip(GOALS.values(), _LOOKS, strict=True)]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return _svg(figure)


@plain_style(_CHART)
def gap_chart(shares: pd.DataFrame, papers: pd.DataFrame) -> str:
    """How much of the way from AVERAGE to ORACLE each system goes; ours full, the paper's hollow.

    Args:
        shares: Estimates of one origin (`Summary.estimates`): metrics success and emd; 1 is all of the way.
        papers: The paper's: columns segments, system, metric, mean.
    """
    systems, counts = (list(shares[column].unique()) for column in ("system", "segments"))
    papers = papers[papers["system"].isin(systems)]
    figure = _figure(0.34 * len(systems) + 1.15)
    [grid] = figure.subplots(1, len(counts), squeeze=False, sharex=True, sharey=True)
    for axes, count in zip(grid, counts, strict=True):
        ours, theirs = (table[table["segments"] == count] for table in (shares, papers))
        _dots(axes, systems, [ours[ours["metric"] == metric] for metric in GAP_METRICS], 100.0)
        for place, (metric, (colour, marker)) in enumerate(zip(GAP_METRICS, _LOOKS, strict=True)):
            own = theirs[theirs["metric"] == metric]
            rows = [systems.index(system) + _offset(place) for system in own["system"]]
            hollow = {"mfc": "white", "mec": shade(colour), "ms": 5.5, "mew": 1.3, "ls": "none"}
            axes.plot((100 * own["mean"]).tolist(), rows, marker, **hollow)
        for at, name in ((0, "AVERAGE"), (100, "ORACLE")):
            axes.axvline(at, color="0.45", linewidth=1, zorder=1)
            axes.text(at, 1.0, name, transform=axes.get_xaxis_transform(), ha="center", va="bottom", color="0.35")
        axes.set_title(segments_title(count), pad=14)
        axes.set(xlabel="% of the gap closed", xlim=gap_limits(shares, papers))
    handles = [
        _legend_marker(f"{name}, {whose}", *look, full=full)
        for whose, full in (("ours", True), *([("the paper's", False)] if len(papers) else []))
        for name, look in zip(("success", "EMD"), _LOOKS, strict=True)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    return _svg(figure)


def gap_limits(shares: pd.DataFrame, papers: pd.DataFrame) -> tuple[float, float]:
    """Ends of the axis, %: all means are in it, but an interval of few flights does not press the rest together."""
    means = [0.0, 1.0, *papers["mean"], *shares["mean"].dropna()]
    lows, highs = shares["low"].dropna().clip(lower=-1.0), shares["high"].dropna().clip(upper=2.0)
    return 100 * min(*means, *lows) - 8, 100 * max(*means, *highs) + 8


def score_shares(scores: Sequence[float]) -> NDArray[np.float64]:
    """[5] shares of the scores 1 to 5: the judge's scores [n] in [0, 1], in five equal bins."""
    bins = np.minimum((5 * np.asarray(scores, float)).astype(int), 4)
    return np.bincount(bins, minlength=5) / max(len(bins), 1)


def judge_chart(flights: pd.DataFrame) -> str:
    """How often the automatic judge gives each score, as the paper draws people's scores.

    Args:
        flights: Columns system, judge_path and judge_goal, which are in [0, 1].
    """
    systems = [(f"{title(name)}\nn = {len(own)}", own) for name, own in flights.groupby("system", sort=False)]
    panels = {
        f"{name} score of the automatic judge": {
            label: score_shares(own[f"judge_{name}"].tolist()) for label, own in systems
        }
        for name in ("path", "goal")
    }
    return likert_chart(panels, "% of flights")


@plain_style(_CHART)
def likert_chart(panels: Mapping[str, Mapping[str, NDArray[np.float64]]], across: str) -> str:
    """How often each score is given, as the paper draws people's scores.

    A bar lies so that the middle of its score 3 is at zero: what is good is right of it, what is bad left.

    Args:
        panels: By title, and by the label of each row, the same in all of them, [5] shares of the scores 1 to 5.
        across: What is written below: "% of flights".
    """
    labels = list(next(iter(panels.values())))
    figure = _figure(0.38 * len(labels) + 1.05)
    [grid] = figure.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True)
    for axes, (heading, rows) in zip(grid, panels.items(), strict=True):
        for row, label in enumerate(labels):
            _likert(axes, row, rows[label])
        axes.axvline(0, color="0.3", linewidth=0.8, zorder=0)  # not across the numbers
        axes.set(title=heading, xlabel=across, xlim=(-100, 118), xticks=[-100, -50, 0, 50, 100])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _at: f"{abs(value):.0f}"))
        axes.text(118, -0.72, "mean", ha="right", color="0.35")
        _rows(axes, labels)
    words = ("1 (worst)", "2", "3", "4", "5 (best)")
    handles = [Patch(color=shade(colour), label=word) for colour, word in zip(LIKERT, words, strict=True)]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, handlelength=1.2)
    return _svg(figure)


@plain_style(_CHART)
def distance_chart(flights: pd.DataFrame) -> str:
    """Share of flights that rest within a distance of the goal, for each distance.

    Args:
        flights: Columns segments, system and distance: how far from the goal the flight rests, metres.
    """
    systems = list(flights["system"].unique())
    titles = [title(system) for system in systems]
    looks = dict(zip(systems, system_looks(titles), strict=True))
    columns = max(1, min(5, int(WIDTH / (0.55 + 0.065 * max(map(len, titles))))))  # inches, a letter's too
    reaches = np.arange(0, round(100 * FARTHEST) + 1) / 100  # every centimetre, however many flights there are
    counts = flights.groupby("segments")
    figure = _figure(3.0 + 0.2 * ((len(systems) - 1) // columns))
    [grid] = figure.subplots(1, len(counts), squeeze=False, sharey=True)
    for axes, (count, own) in zip(grid, counts, strict=True):
        axes.axvline(SUCCESS_DISTANCE, color="0.45", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        mark = {"transform": axes.get_xaxis_transform(), "ha": "left", "va": "bottom", "color": "0.35"}
        axes.text(SUCCESS_DISTANCE - 0.02, 1.0, f"{SUCCESS_DISTANCE} m: success", **mark)
        distances = {system: found["distance"].tolist() for system, found in own.groupby("system", sort=False)}
        for system in filter(distances.__contains__, systems):
            colour, style = looks[system]
            axes.plot(reaches, 100 * shares_within(distances[system], reaches), style, color=shade(colour), lw=1.6)
        axes.grid(axis="y")
        axes.set_title(f"{segments_title(count)}, n = {_span([*map(len, distances.values())])}", pad=14)
        axes.set(xlim=(0, FARTHEST), ylim=(0, 102), xlabel="distance from the goal at rest, m")
    grid[0].set_ylabel("% of flights within it")
    handles = [
        Line2D([], [], color=shade(colour), linestyle=style, linewidth=1.8, label=label)
        for label, (colour, style) in zip(titles, looks.values(), strict=True)
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), columns))
    return _svg(figure)


def shares_within(distances: Sequence[float], reaches: NDArray[np.float64]) -> NDArray[np.float64]:
    """[k] shares of flights that rest nearer than each of k distances, metres."""
    return np.searchsorted(np.sort(np.asarray(distances, float)), reaches, side="left") / max(len(distances), 1)


def system_looks(systems: Sequence[str]) -> list[tuple[Colour, Style]]:
    """A colour and a line style for each system; those of the paper keep theirs, and no two have the same."""
    styles: tuple[Style, ...] = ("-", "--", ":", "-.")
    spare = ((colour, style) for style in styles for colour in (FLOWN, GOLD, REDDISH_PURPLE, YELLOW))
    found: list[tuple[Colour, Style]] = []
    for name in systems:
        known: tuple[Colour, Style] | None = (TITLED[name], "-") if name in TITLED else None
        found.append(known or next((look for look in spare if look not in found), (GREY, "-.")))
    return found


def shade(colour: Colour) -> tuple[float, float, float]:
    """A colour as matplotlib has them."""
    red, green, blue = colour
    return red / 255, green / 255, blue / 255


_LOOKS: tuple[tuple[Colour, str], ...] = ((FLOWN, "o"), (VERMILLION, "D"))
"""Colour and marker of the two things that a row of dots compares."""


def _figure(height: float) -> Figure:
    return Figure((WIDTH, height), facecolor="white", layout="constrained")


def _svg(figure: Figure) -> str:
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return out.getvalue()


def _span(counts: Sequence[int]) -> str:
    low, high = min(counts, default=0), max(counts, default=0)
    return str(low) if low == high else f"{low} to {high}"


def _offset(place: int) -> float:
    """How far below the middle of its row the first or second of two marks lies, so that neither hides the other."""
    return 0.3 * (place - 0.5)


def _dots(axes: Axes, systems: Sequence[str], series: Sequence[pd.DataFrame], scale: float) -> None:
    """Means with whiskers, a row for each system; the two series are tables of estimates."""
    _rows(axes, [title(system) for system in systems])
    axes.grid(axis="x")
    for place, (estimates, (colour, marker)) in enumerate(zip(series, _LOOKS, strict=True)):
        for row in estimates[estimates["mean"].notna()].itertuples():
            y = systems.index(row.system) + _offset(place)
            ends = [scale * (row.mean if math.isnan(end) else end) for end in (row.low, row.high)]
            axes.plot(ends, [y, y], color=shade(colour), linewidth=1.6, solid_capstyle="butt")
            axes.plot(scale * row.mean, y, marker, color=shade(colour), ms=5)


def _rows(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(max(len(labels), 1) - 0.45, -0.55)


def _legend_marker(label: str, colour: Colour, marker: str, full: bool = True) -> Line2D:
    face = shade(colour) if full else "white"
    return Line2D([], [], marker=marker, mfc=face, mec=shade(colour), mew=1.3, ms=5.5, ls="none", label=label)


def _likert(axes: Axes, row: int, shares: NDArray[np.float64]) -> None:
    """One system's bar, and its mean score at the right."""
    left = -100 * (shares[0] + shares[1] + shares[2] / 2)
    for score, (colour, share) in enumerate(zip(LIKERT, 100 * shares, strict=True)):
        axes.barh(row, share, 0.62, left, color=shade(colour), edgecolor="white", linewidth=0.5)
        if share >= 9:
            ink = "white" if score in (0, 4) else "0.1"
            axes.text(left + share / 2, row, f"{share:.0f}", ha="center", va="center", color=ink, fontsize=7.5)
        left += share
    axes.text(118, row, f"{shares @ np.arange(1, 6):.1f}", ha="right", va="center", fontweight="bold")
