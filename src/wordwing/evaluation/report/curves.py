"""Learning curves of a training run: small multiples over its minutes, from what both processes logged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from numpy.typing import NDArray

from wordwing.errors import WordwingError
from wordwing.evaluation.report.charts import plain_style, shade
from wordwing.files import read_json, replacing
from wordwing.learning.runtime.logs import SCALARS, read_scalars
from wordwing.learning.runtime.runs import MAX_SETTINGS
from wordwing.viz.drawing import (
    BLUISH_GREEN,
    FLOWN,
    GOLD,
    GREY,
    INK,
    PAPER,
    REDDISH_PURPLE,
    SKY_BLUE,
    VERMILLION,
    Colour,
)

Floats = NDArray[np.float64]

SIZE, DPI = (12.8, 10.6), 125
"""Inches and pixels an inch: 1600 pixels wide."""

SMOOTHED = 25
"""From so many points on, a noisy curve is faint, with its running mean over a tenth of them on top."""

CORPORA = {"cage": FLOWN, "field": VERMILLION, "house": BLUISH_GREEN}

TERMS = {
    "visitation": FLOWN,
    "stop": VERMILLION,
    "exploration": BLUISH_GREEN,
    "unobserved": REDDISH_PURPLE,
    "action": GREY,
    "step": GOLD,
}
"""Of the reward."""


@dataclass(frozen=True)
class Curve:
    """One line."""

    label: str
    """None of its own where it is empty."""
    minutes: Floats
    """[n]."""
    values: Floats
    """[n]; NaN leaves a gap."""
    colour: Colour
    style: str = "-"
    band: tuple[Floats, Floats] | None = None
    """[n] each, the 95 % interval of the gap to AVERAGE, put around the curve."""


@dataclass(frozen=True)
class Panel:
    """One of the multiples."""

    title: str
    unit: str
    curves: list[Curve]
    stacked: bool = False
    """Whether the curves are parts of 100 %."""
    floor: float | None = 0.0
    """Where the axis begins if no value is below; None is near the least value."""
    noisy: bool = False
    """Whether each point is of one batch, so that a running mean tells more."""


@dataclass(frozen=True)
class Log:
    """What one process logged."""

    rows: list[dict[str, Any]]
    minutes: Floats = field(init=False)
    """[rows] since the process began."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "minutes", _minutes(self.rows))

    @classmethod
    def read(cls, folder: Path) -> Log:
        """Of a folder; empty if the process has not logged anything yet."""
        return cls(read_scalars(folder) if (folder / SCALARS).is_file() else [])

    @property
    def names(self) -> list[str]:
        """Of all that is logged."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def series(self, name: str) -> tuple[Floats, Floats]:
        """Minutes and values [n] of the rows that have a name; what was not a number is NaN."""
        chosen = [number for number, row in enumerate(self.rows) if name in row]
        values = [math.nan if self.rows[number][name] is None else float(self.rows[number][name]) for number in chosen]
        return self.minutes[chosen], np.array(values, float)

    def curve(self, label: str, name: str, colour: Colour, style: str = "-", scale: float = 1.0) -> list[Curve]:
        """The curve of a name, or none."""
        minutes, values = self.series(name)
        return [Curve(label, minutes, scale * values, colour, style)] if len(values) else []


def _minutes(rows: Sequence[dict[str, Any]]) -> Floats:
    """[rows] minutes: as logged, and where they are not, between the logged ones before and after, by the step."""
    known = [row for row in rows if row.get("charts/minutes") is not None]
    if not known:
        return np.array([(row["time"] - rows[0]["time"]) / 60 for row in rows], float)
    steps, minutes = ([row[key] for row in known] for key in ("step", "charts/minutes"))
    between = np.interp([row["step"] for row in rows], steps, minutes)
    return np.array([row.get("charts/minutes") or other for row, other in zip(rows, between, strict=True)])


@dataclass(frozen=True)
class Run:
    """A run's folder."""

    name: str
    settings: dict[str, Any]
    """As in run.json."""
    a: Log
    b: Log

    @classmethod
    def read(cls, folder: Path) -> Run:
        """Of a `wordwing train`."""
        try:
            settings = read_json(folder / "run.json", MAX_SETTINGS, "run.json")
        except WordwingError:
            raise WordwingError(f"{folder}: this is no run of wordwing train; its run.json cannot be read") from None
        if not _is_run(settings):
            raise WordwingError(
                f"{folder}: this is no run of wordwing train; its run.json does not tell what was trained"
            )
        run = cls(folder.resolve().name, settings, Log.read(folder / "log-a"), Log.read(folder / "log-b"))
        if not run.a.rows and not run.b.rows:
            raise WordwingError(f"{folder}: nothing has been logged there yet")
        return run

    @property
    def corpora(self) -> list[str]:
        """Names of the datasets."""
        return [Path(name).name for name in self.settings["data"]["corpora"]]

    @property
    def heading(self) -> str:
        """Which run it is."""
        command = f"wordwing train {self.settings.get('command', 'sureal')}"
        return f"{self.name}: {command}, {' and '.join(self.corpora)}, seed {self.settings['seed']}"

    @property
    def amounts(self) -> str:
        """How much it has learned from."""
        minutes = max((log.minutes[-1] for log in (self.a, self.b) if log.rows), default=0.0)
        parts = [f"{minutes:.0f} minutes" if minutes >= 10 else f"{minutes:.1f} minutes"]
        if self.a.rows:
            parts.append(f"Process A: {self.a.rows[-1]['step']:,} updates")
        flights, decisions = (self.b.series(f"charts/{name}")[1] for name in ("flights", "global_step"))
        if len(flights):
            parts.append(f"Process B: {flights[-1]:,.0f} flights, {decisions[-1]:,.0f} decisions")
        return "; ".join(parts)


def _is_run(settings: Any) -> bool:
    """Whether run.json has all that is drawn of it."""
    try:
        corpora, _first = settings["data"]["corpora"], settings["data"]["first"]
        _gold, _seed = settings["reinforcement"]["gold_distance"], settings["seed"]
    except (KeyError, TypeError, IndexError):
        return False
    return isinstance(corpora, list) and all(isinstance(name, str) for name in corpora)


def panels(run: Run) -> list[Panel]:
    """All that is drawn, row by row."""
    a, b = run.a, run.b
    visitation = [
        *a.curve("trajectory", "supervised/trajectory", FLOWN),
        *a.curve("goal", "supervised/goal", VERMILLION),
        *a.curve("trajectory, lab", "supervised/lab_trajectory", SKY_BLUE, "--"),
        *a.curve("goal, lab", "supervised/lab_goal", GOLD, "--"),
    ]
    auxiliary = [
        *a.curve("object", "supervised/object", FLOWN),
        *a.curve("grounding", "supervised/grounding", VERMILLION),
        *a.curve("mention", "supervised/mention", BLUISH_GREEN),
        *a.curve("Wasserstein", "supervised/wasserstein", REDDISH_PURPLE, "--"),
    ]
    terms = [curve for name, colour in TERMS.items() for curve in b.curve(name, f"rewards/{name}", colour)]
    return [
        Panel("Visitation losses", "cross-entropy, nats", visitation, floor=None, noisy=True),
        Panel("Auxiliary losses", "nats", auxiliary, noisy=True),
        Panel("Goals found, dev (dashed: no text)", "%", looks_around(run)),
        Panel("Reward of a flight, by term", "", [*terms, *returns(b)], floor=None, noisy=True),
        Panel("Length of a flight", "decisions", lengths(run), noisy=True),
        Panel("How flights end", "%", endings(run), stacked=True),
        Panel("Demonstrations left in $D^S$", "%", demonstrations(a)),
        Panel("Success in dev flights (dashed: all followed)", "%", successes(run)),
        Panel("EMD in dev flights", "m", distances(run)),
    ]


def looks_around(run: Run) -> list[Curve]:
    """Share of goals believed within 0.47 m of where they are after a full turn, with the text and without it."""
    curves = []
    for name, colour in _corpora(run.a, "look_around/", "_within"):
        curves += run.a.curve(name, f"look_around/{name}_within", colour, scale=100)
        curves += run.a.curve("", f"look_around/{name}_within_without_text", colour, "--", scale=100)
    return curves


def returns(log: Log) -> list[Curve]:
    """The sum of all terms."""
    return log.curve("all", "charts/episodic_return", INK, "--")


def lengths(run: Run) -> list[Curve]:
    """Of flights, beside the demonstrations'."""
    curves = run.b.curve("flights", "charts/episodic_length", FLOWN)
    demonstrated, share = (run.a.series(f"executions/{name}")[1] for name in ("length", "demonstrations_left"))
    if curves and len(share) and share[0] == 1 and run.settings["data"]["first"] == "demonstrations":
        ends = np.array([0.0, curves[0].minutes[-1]])
        curves.append(Curve("demonstrations, mean", ends, np.full(2, demonstrated[0]), GREY, ":"))
    return curves


def endings(run: Run) -> list[Curve]:
    """By STOP, at the arena's edge, or otherwise, %."""
    minutes, stopped = run.b.series("charts/stopped")
    _minutes, left = run.b.series("charts/left_arena")
    if not len(stopped):
        return []
    otherwise = "out of steps" if run.settings["reinforcement"]["gold_distance"] is None else "out of steps, strayed"
    return [
        Curve("STOP", minutes, 100 * stopped, BLUISH_GREEN),
        Curve("left the arena", minutes, 100 * left, VERMILLION),
        Curve(otherwise, minutes, 100 * (1 - stopped - left), GOLD),
    ]


def demonstrations(log: Log) -> list[Curve]:
    """Share of the instructions whose execution is still the first one."""
    return log.curve("of all instructions", "executions/demonstrations_left", FLOWN, scale=100)


def successes(run: Run) -> list[Curve]:
    """Share of dev flights that end within 0.47 m, and of those that did everything that was said."""
    curves = [
        curve
        for name, colour in _corpora(run.b, "dev/", "_success")
        for curve in run.b.curve(name, f"dev/{name}_success", colour, scale=100)
    ]
    curves += run.b.curve("followed, mean", "dev/followed", INK, "--", scale=100)
    return curves + run.b.curve("ORACLE's", "dev/followed_by_oracle", GREY, ":", scale=100)


def distances(run: Run) -> list[Curve]:
    """EMD, beside AVERAGE's in the same flights; the band does not touch AVERAGE's line where the gap is certain."""
    minutes, mean = run.b.series("dev/emd")
    if not len(mean):
        return []
    gap, low, high = (run.b.series(f"dev/emd_gap{end}")[1] for end in ("", "_low", "_high"))
    average = mean + gap
    curves = [Curve("AVERAGE", minutes, average, GREY, ":")]
    curves.append(Curve("policy", minutes, mean, INK, band=(average - high, average - low)))
    corpora = _corpora(run.b, "dev/", "_emd")
    if len(corpora) > 1:
        curves += [curve for name, colour in corpora for curve in run.b.curve(name, f"dev/{name}_emd", colour, "--")]
    return curves


def _corpora(log: Log, prefix: str, suffix: str) -> list[tuple[str, Colour]]:
    """Corpora of which a figure is logged, and their colours."""
    spare = iter((GOLD, REDDISH_PURPLE, SKY_BLUE, GREY) * 9)
    logged = [name for name in log.names if name.startswith(prefix) and name.endswith(suffix)]
    found = [name.removeprefix(prefix).removesuffix(suffix) for name in logged]
    return [(name, CORPORA.get(name) or next(spare)) for name in found]


def draw_curves(run: Path) -> Figure:
    """All panels of a run's folder, of a `wordwing train` that is under way or finished."""
    read = Run.read(run)
    with plain_style({"font.size": 10, "axes.edgecolor": "0.6", "xtick.color": "0.3", "ytick.color": "0.3"}):
        figure = Figure(SIZE, DPI, facecolor=shade(PAPER), layout=ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.08))
        grid = figure.subplots(3, 3)
        figure.suptitle(f"{read.heading}\n", fontsize=15, fontweight="bold", x=0.01, ha="left", parse_math=False)
        figure.text(0.01, 0.955, _caption(read), fontsize=10.5, color="0.3", ha="left", va="center")
        last = max(log.minutes[-1] for log in (read.a, read.b) if log.rows)
        for axes, panel in zip(grid.flat, panels(read), strict=True):
            _draw_panel(axes, panel)
            _mark_phases(axes, read)
            axes.set_xlim(0, max(1.02 * last, 1e-3))
        for axes in grid[-1]:
            axes.set_xlabel("minutes")
    return figure


def save_curves(run: Path, picture: Path) -> None:
    """Write a run's curves as PNG; the same log gives the same bytes."""
    figure = draw_curves(run)
    with replacing(picture) as temporary, plain_style():
        figure.savefig(temporary, format="png", facecolor=figure.get_facecolor(), metadata={"Software": None})


def _caption(run: Run) -> str:
    marks = []
    if cloned(run) is not None:
        marks.append("grey strip: stage 2 is cloned")
    if run.b.rows and run.b.series("charts/episodic_length")[0].size:
        marks.append("dotted: Process B begins")
    return f"{run.amounts}  ({'; '.join(marks)})" if marks else run.amounts


def cloned(run: Run) -> tuple[float, float] | None:
    """From when to when stage 2 is cloned, minutes."""
    minutes, _loss = run.a.series("cloning/stop")
    return (float(minutes[0]), float(minutes[-1])) if len(minutes) else None


def _mark_phases(axes: Axes, run: Run) -> None:
    if (span := cloned(run)) is not None:
        axes.axvspan(*span, color="0.9", linewidth=0, zorder=0)
    minutes, _length = run.b.series("charts/episodic_length")
    if len(minutes):
        axes.axvline(minutes[0], color="0.45", linewidth=1, linestyle=(0, (1, 2)), zorder=1)


def _draw_panel(axes: Axes, panel: Panel) -> None:
    axes.set_title(panel.title, loc="left", fontsize=11.5, fontweight="bold")
    axes.set_ylabel(panel.unit)
    axes.spines[["top", "right"]].set_visible(False)
    if not panel.curves:
        axes.text(0.5, 0.5, "nothing logged", transform=axes.transAxes, ha="center", color="0.5")
        axes.set_yticks([])
        return
    if panel.stacked:
        parts = [curve.values for curve in panel.curves]
        colours, labels = [shade(curve.colour) for curve in panel.curves], [curve.label for curve in panel.curves]
        axes.stackplot(panel.curves[0].minutes, parts, labels=labels, colors=colours, alpha=0.75)
    else:
        axes.grid(axis="y", color="0.9", linewidth=0.8)
        axes.set_axisbelow(True)
        for curve in panel.curves:
            _draw_curve(axes, curve, panel.noisy)
    if panel.unit == "%":
        axes.set_ylim(0, 100 if panel.stacked else 103)
    elif panel.floor is not None and not any((curve.values < panel.floor).any() for curve in panel.curves):
        axes.set_ylim(panel.floor, axes.get_ylim()[1] * 1.06)
    if sum(bool(curve.label) for curve in panel.curves) > 1:
        legend = axes.legend(frameon=False, fontsize=9, ncols=2 if len(panel.curves) > 4 else 1, handlelength=1.8)
        for text in legend.get_texts():
            text.set_parse_math(False)  # a corpus may be called a$b


def _draw_curve(axes: Axes, curve: Curve, noisy: bool) -> None:
    colour = shade(curve.colour)
    if curve.band is not None:
        axes.fill_between(curve.minutes, *curve.band, color=colour, alpha=0.15, linewidth=0, label="95 % of the gap")
    few = len(curve.values) < SMOOTHED
    values = curve.values
    if noisy and not few:
        axes.plot(curve.minutes, values, color=colour, linewidth=0.8, alpha=0.25)
        values = smoothed(values)
    marker = "o" if few and curve.style != ":" else None
    axes.plot(curve.minutes, values, curve.style, color=colour, marker=marker, markersize=3.5, label=curve.label)


def smoothed(values: Floats) -> Floats:
    """Running means [n] over a tenth of n values, fewer at both ends; NaN counts for nothing."""
    half = len(values) // 20
    windows = [values[max(0, at - half) : at + half + 1] for at in range(len(values))]
    return np.array([np.nanmean(part) if np.isfinite(part).any() else math.nan for part in windows])
