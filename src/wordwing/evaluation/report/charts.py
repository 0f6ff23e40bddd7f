"""Charts of a report, as SVG: visibility, the judge's scores, the gap closed, distances from the goal.

Systems are given by the titles that are written beside them, from top to bottom. The same input gives the same bytes.
"""

from __future__ import annotations

import io
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, Protocol

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from wordwing.evaluation.report.summary import segments_title
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
"""Of every chart, inches."""

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


class Interval(Protocol):
    """A mean with its 95 % interval."""

    @property
    def mean(self) -> float | None:
        """None or NaN where there is nothing."""

    @property
    def low(self) -> float | None:
        """Lower end."""

    @property
    def high(self) -> float | None:
        """Upper end."""

    @property
    def n(self) -> int:
        """Flights that it is of."""


Style = Literal["-", "--", ":", "-."]
"""Of a line."""

Intervals = Mapping[str, Interval]
"""By system."""


class Visibility(NamedTuple):
    """What is drawn of one number of segments: means by system, the goal ahead at the start or not."""

    success: tuple[Intervals, Intervals]
    """Shares 0 to 1."""
    emd: tuple[Intervals, Intervals]
    """Metres."""


class Gaps(NamedTuple):
    """Shares of the gap between AVERAGE and ORACLE that systems close, for one number of segments; 1 is all of it."""

    success: Intervals
    emd: Intervals
    paper_success: Mapping[str, float]
    paper_emd: Mapping[str, float]


class Judged(NamedTuple):
    """The judge's scores of one system's flights, each [n] in [0, 1]."""

    path: Sequence[float]
    goal: Sequence[float]


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


def visibility_chart(segments: Mapping[int, Visibility]) -> str:
    """Success and EMD where the goal is ahead at the start and where it is not, by number of segments."""
    systems = _systems(part for entry in segments.values() for pair in entry for part in pair)
    names = ("goal ahead at the start", "goal not ahead")
    with plain_style(_CHART):
        figure = _figure(2 * (0.24 * len(systems) + 0.62) + 0.35)
        grid = figure.subplots(2, len(segments), squeeze=False, sharex="row", sharey=True)
        for column, (count, entry) in enumerate(segments.items()):
            for row, (pair, scale) in enumerate(((entry.success, 100.0), (entry.emd, 1.0))):
                axes: Axes = grid[row, column]
                _dots(axes, systems, [(part, *look) for part, look in zip(pair, _LOOKS, strict=True)], scale)
                axes.set_xlabel("success, %" if row == 0 else "EMD, m (less is better)")
            ahead, behind = (_counts(part) for part in entry.success)
            grid[0, column].set_title(f"{segments_title(count)}\n{ahead} ahead, {behind} not ahead")
        for axes in grid[0]:
            axes.set_xlim(-3, 103)
        for axes in grid[1]:
            axes.set_xlim(left=0)
        marks = [_mark(label, colour, marker, True) for label, (colour, marker) in zip(names, _LOOKS, strict=True)]
        figure.legend(handles=marks, loc="outside lower center", ncols=2)
        return _svg(figure)


def gap_chart(segments: Mapping[int, Gaps]) -> str:
    """How much of the way from AVERAGE to ORACLE each system goes; ours full, the paper's hollow."""
    systems = _systems(part for entry in segments.values() for part in (entry.success, entry.emd))
    with plain_style(_CHART):
        figure = _figure(0.34 * len(systems) + 1.15)
        [grid] = figure.subplots(1, len(segments), squeeze=False, sharex=True, sharey=True)
        papers = False
        for axes, (count, entry) in zip(grid, segments.items(), strict=True):
            looks = zip((entry.success, entry.emd), _LOOKS, strict=True)
            _dots(axes, systems, [(part, *look) for part, look in looks], 100.0)
            for place, (part, (colour, marker)) in enumerate(
                zip((entry.paper_success, entry.paper_emd), _LOOKS, strict=True)
            ):
                shown = {title: 100 * value for title, value in part.items() if title in systems}
                rows = [systems.index(title) + _offset(place, 2) for title in shown]
                axes.plot(
                    list(shown.values()), rows, marker, mfc="white", mec=shade(colour), ms=5.5, mew=1.3, ls="none"
                )
                papers |= bool(shown)
            for at, name in ((0, "AVERAGE"), (100, "ORACLE")):
                axes.axvline(at, color="0.45", linewidth=1, zorder=1)
                axes.text(at, 1.0, name, transform=axes.get_xaxis_transform(), ha="center", va="bottom", color="0.35")
            axes.set_title(segments_title(count), pad=14)
            axes.set_xlabel("% of the gap closed")
        low, high = gap_reach(segments.values())
        for axes in grid:
            axes.set_xlim(low, high)
        marks = [_mark(f"{name}, ours", *look, True) for name, look in zip(("success", "EMD"), _LOOKS, strict=True)]
        if papers:
            marks += [
                _mark(f"{name}, the paper's", *look, False)
                for name, look in zip(("success", "EMD"), _LOOKS, strict=True)
            ]
        figure.legend(handles=marks, loc="outside lower center", ncols=4)
        return _svg(figure)


def gap_reach(entries: Collection[Gaps]) -> tuple[float, float]:
    """Ends of the axis, %: all means are in it, but an interval of few flights does not press the rest together."""
    shares = [entry for gaps in entries for part in (gaps.success, gaps.emd) for entry in part.values()]
    papers = [share for gaps in entries for part in (gaps.paper_success, gaps.paper_emd) for share in part.values()]
    means = [0.0, 1.0, *papers, *(entry.mean for entry in shares if entry.mean is not None)]
    lows = [max(entry.low, -1.0) for entry in shares if entry.low is not None]
    highs = [min(entry.high, 2.0) for entry in shares if entry.high is not None]
    return 100 * min(*means, *lows) - 8, 100 * max(*means, *highs) + 8


def score_shares(scores: Sequence[float]) -> NDArray[np.float64]:
    """[5] shares of the scores 1 to 5: the judge's scores [n] in [0, 1], in five equal bins."""
    bins = np.minimum((5 * np.asarray(scores, float)).astype(int), 4)
    return np.bincount(bins, minlength=5) / max(len(bins), 1)


def judge_chart(judged: Mapping[str, Judged]) -> str:
    """How often the automatic judge gives each score, as the paper draws people's scores."""
    systems = {title: entry for title, entry in judged.items() if len(entry.path)}
    panels = {
        f"{name} score of the automatic judge": {
            f"{title}\nn = {len(entry.path)}": score_shares(getattr(entry, name)) for title, entry in systems.items()
        }
        for name in Judged._fields
    }
    return likert_chart(panels, "% of flights")


def likert_chart(panels: Mapping[str, Mapping[str, NDArray[np.float64]]], across: str) -> str:
    """How often each score is given, as the paper draws people's scores.

    A bar lies so that the middle of its score 3 is at zero: what is good is right of it, what is bad left.

    Args:
        panels: By title, and by the label of each row, the same in all of them, [5] shares of the scores 1 to 5.
        across: What is written below: "% of flights".
    """
    labels = list(next(iter(panels.values())))
    with plain_style(_CHART):
        figure = _figure(0.38 * len(labels) + 1.05)
        [grid] = figure.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True)
        for axes, (heading, rows) in zip(grid, panels.items(), strict=True):
            for row, label in enumerate(labels):
                _likert(axes, row, rows[label])
            axes.set_title(heading)
            axes.axvline(0, color="0.3", linewidth=0.8, zorder=0)  # not across the numbers
            axes.set_xlim(-100, 118)
            axes.set_xticks([-100, -50, 0, 50, 100])
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _at: f"{abs(value):.0f}"))
            axes.set_xlabel(across)
            axes.text(118, -0.72, "mean", ha="right", color="0.35")
            _rows(axes, labels)
        words = ("1 (worst)", "2", "3", "4", "5 (best)")
        handles = [Patch(color=shade(colour), label=word) for colour, word in zip(LIKERT, words, strict=True)]
        figure.legend(handles=handles, loc="outside lower center", ncols=5, handlelength=1.2)
        return _svg(figure)


def distance_chart(segments: Mapping[int, Mapping[str, Sequence[float]]]) -> str:
    """Share of flights that rest within a distance of the goal, for each distance.

    Args:
        segments: For each number of segments and system, the flights' distances from the goal at rest, metres.
    """
    systems = list(dict.fromkeys(title for entry in segments.values() for title in entry))
    looks = dict(zip(systems, system_looks(systems), strict=True))
    columns = max(1, min(5, int(WIDTH / (0.55 + 0.065 * max(map(len, systems), default=0)))))  # inches, a letter's too
    reaches = np.arange(0, round(100 * FARTHEST) + 1) / 100  # every centimetre, however many flights there are
    with plain_style(_CHART):
        figure = _figure(3.0 + 0.2 * ((len(systems) - 1) // columns))
        [grid] = figure.subplots(1, len(segments), squeeze=False, sharey=True)
        for axes, (count, entry) in zip(grid, segments.items(), strict=True):
            axes.axvline(SUCCESS_DISTANCE, color="0.45", linewidth=1, linestyle=(0, (4, 3)), zorder=1)
            mark = {"transform": axes.get_xaxis_transform(), "ha": "left", "va": "bottom", "color": "0.35"}
            axes.text(SUCCESS_DISTANCE - 0.02, 1.0, f"{SUCCESS_DISTANCE} m: success", **mark)
            for title, distances in entry.items():
                colour, style = looks[title]
                axes.plot(reaches, 100 * shares_within(distances, reaches), style, color=shade(colour), linewidth=1.6)
            axes.grid(axis="y")
            axes.set_xlim(0, FARTHEST)
            axes.set_ylim(0, 102)
            axes.set_title(f"{segments_title(count)}, n = {_span([len(part) for part in entry.values()])}", pad=14)
            axes.set_xlabel("distance from the goal at rest, m")
        grid[0].set_ylabel("% of flights within it")
        handles = [
            Line2D([], [], color=shade(colour), linestyle=style, linewidth=1.8, label=title)
            for title, (colour, style) in looks.items()
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), columns) or 1)
        return _svg(figure)


def shares_within(distances: Sequence[float], reaches: NDArray[np.float64]) -> NDArray[np.float64]:
    """[k] shares of flights that rest nearer than each of k distances, metres."""
    return np.searchsorted(np.sort(np.asarray(distances, float)), reaches, side="left") / max(len(distances), 1)


def system_looks(systems: Sequence[str]) -> list[tuple[Colour, Style]]:
    """A colour and a line style for each system; those of the paper keep theirs, and no two have the same."""
    styles: tuple[Style, ...] = ("-", "--", ":", "-.")
    spare = ((colour, style) for style in styles for colour in (FLOWN, GOLD, REDDISH_PURPLE, YELLOW))
    found: list[tuple[Colour, Style]] = []
    for title in systems:
        known: tuple[Colour, Style] | None = (TITLED[title], "-") if title in TITLED else None
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


def _systems(parts: Any) -> list[str]:
    return list(dict.fromkeys(title for part in parts for title in part))


def _counts(intervals: Intervals) -> str:
    return _span([entry.n for entry in intervals.values()])


def _span(counts: Sequence[int]) -> str:
    if not counts:
        return "0"
    return str(counts[0]) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _offset(place: int, of: int) -> float:
    """How far below the middle of its row a mark lies, so that marks of one row do not hide each other."""
    return 0.3 * (place - (of - 1) / 2)


def _dots(axes: Axes, systems: Sequence[str], series: Sequence[tuple[Intervals, Colour, str]], scale: float) -> None:
    """Means with whiskers, a row for each system."""
    _rows(axes, systems)
    axes.grid(axis="x")
    for place, (intervals, colour, marker) in enumerate(series):
        for row, title in enumerate(systems):
            entry = intervals.get(title)
            if entry is None or entry.mean is None or math.isnan(entry.mean):
                continue
            y = row + _offset(place, len(series))
            low, high = (entry.mean if end is None or math.isnan(end) else end for end in (entry.low, entry.high))
            axes.plot([scale * low, scale * high], [y, y], color=shade(colour), linewidth=1.6, solid_capstyle="butt")
            axes.plot(scale * entry.mean, y, marker, color=shade(colour), ms=5)


def _rows(axes: Axes, labels: Sequence[str]) -> None:
    axes.set_yticks(range(len(labels)), labels)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(max(len(labels), 1) - 0.45, -0.55)


def _mark(label: str, colour: Colour, marker: str, full: bool) -> Line2D:
    face = shade(colour) if full else "white"
    return Line2D([], [], marker=marker, mfc=face, mec=shade(colour), mew=1.3, ms=5.5, ls="none", label=label)


def _likert(axes: Axes, row: int, shares: NDArray[np.float64]) -> None:
    """One system's bar, and its mean score at the right."""
    left = -100 * (shares[0] + shares[1] + shares[2] / 2)
    for score, share in enumerate(100 * shares):
        colour = LIKERT[score]
        axes.barh(row, share, 0.62, left, color=shade(colour), edgecolor="white", linewidth=0.5)
        if share >= 9:
            ink = "white" if score in (0, 4) else "0.1"
            axes.text(left + share / 2, row, f"{share:.0f}", ha="center", va="center", color=ink, fontsize=7.5)
        left += share
    axes.text(118, row, f"{shares @ np.arange(1, 6):.1f}", ha="right", va="center", fontweight="bold")
