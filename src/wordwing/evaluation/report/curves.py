"""Learning curves of a training run: small multiples over its minutes, from what both processes logged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from pydantic import AliasChoices, AliasPath, BaseModel, Field

from wordwing.errors import WordwingError
from wordwing.evaluation.report.charts import plain_style, shade
from wordwing.files import read_json, replacing
from wordwing.learning.runtime.logs import SCALARS, read_scalars
from wordwing.learning.runtime.runs import MAX_SETTINGS
from wordwing.validation import parse
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
from wordwing.world.paths import Floats

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
"""Terms of the reward and their colours."""


@dataclass(frozen=True)
class Curve:
    """One line."""

    label: str
    """Empty for none."""
    minutes: Floats
    """[n] x values."""
    values: Floats
    """[n] y values; NaN leaves a gap."""
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


class ProcessLog:
    """What one process logged; empty if it has not logged anything yet."""

    def __init__(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take the rows of scalars.jsonl.

        Minutes [rows] since the process began are as logged and, where they are not, between the logged ones before
        and after, by the step.
        """
        self.rows = rows
        known = [row for row in rows if row.get("charts/minutes") is not None]
        if known:
            steps, logged = ([row[key] for row in known] for key in ("step", "charts/minutes"))
            between = np.interp([row["step"] for row in rows], steps, logged)
            self.minutes = np.array([row.get("charts/minutes") or at for row, at in zip(rows, between, strict=True)])
        else:
            self.minutes = np.array([(row["time"] - rows[0]["time"]) / 60 for row in rows], float)

    def series(self, name: str) -> tuple[Floats, Floats]:
        """Minutes and values [n] of the rows that have a name; what was not a number is NaN."""
        chosen = [number for number, row in enumerate(self.rows) if name in row]
        return self.minutes[chosen], np.array([self.rows[number][name] for number in chosen], float)

    def curves(
        self, *entries: tuple[str, str, Colour] | tuple[str, str, Colour, str], scale: float = 1.0
    ) -> list[Curve]:
        """The curves of entries (label, name, colour, style) that are logged."""
        found = [(self.series(name), label, *look) for label, name, *look in entries]
        return [
            Curve(label, minutes, scale * values, *look) for (minutes, values), label, *look in found if len(values)
        ]

    def corpora(self, prefix: str, suffix: str) -> list[tuple[str, Colour]]:
        """Corpora of which something is logged under prefix + corpus + suffix, and their colours."""
        spare = iter((GOLD, REDDISH_PURPLE, SKY_BLUE, GREY) * 9)
        names = dict.fromkeys(name for row in self.rows for name in row)
        logged = [name for name in names if name.startswith(prefix) and name.endswith(suffix)]
        found = [name.removeprefix(prefix).removesuffix(suffix) for name in logged]
        return [(name, CORPORA.get(name) or next(spare)) for name in found]


class TrainedWith(BaseModel):
    """What the curves need of run.json."""

    corpora: Annotated[list[str], Field(validation_alias=AliasPath("data", "corpora"))]
    initial_executions: Annotated[
        str, Field(validation_alias=AliasChoices(AliasPath("data", "initial_executions"), AliasPath("data", "first")))
    ]
    gold_distance: Annotated[float | None, Field(validation_alias=AliasPath("reinforcement", "gold_distance"))]
    seed: int
    command: str = "sureal"


@dataclass(frozen=True)
class TrainingRun:
    """The folder of a `wordwing train`."""

    name: str
    settings: TrainedWith
    a: ProcessLog
    b: ProcessLog

    @classmethod
    def read(cls, folder: Path) -> TrainingRun:
        """Read what was trained, and what both processes logged."""
        try:
            file = folder / "run.json"
            settings = parse(TrainedWith, read_json(file, MAX_SETTINGS, "run.json"), str(file))
        except WordwingError:
            raise WordwingError(
                f"{folder}: this is not a run of wordwing train; its run.json does not tell what was trained"
            ) from None
        logs = [folder / name for name in ("log-a", "log-b")]
        a, b = (ProcessLog(read_scalars(log) if (log / SCALARS).is_file() else []) for log in logs)
        if not a.rows and not b.rows:
            raise WordwingError(f"{folder}: nothing has been logged there yet")
        return cls(folder.resolve().name, settings, a, b)

    @property
    def heading(self) -> str:
        """Which run it is."""
        corpora = " and ".join(Path(name).name for name in self.settings.corpora)
        return f"{self.name}: wordwing train {self.settings.command}, {corpora}, seed {self.settings.seed}"

    @property
    def amounts(self) -> str:
        """How much it has learned from."""
        parts = [f"{self.minutes:.0f} minutes" if self.minutes >= 10 else f"{self.minutes:.1f} minutes"]
        if self.a.rows:
            parts.append(f"Process A: {self.a.rows[-1]['step']:,} updates")
        flights, decisions = (self.b.series(f"charts/{name}")[1] for name in ("flights", "global_step"))
        if len(flights):
            parts.append(f"Process B: {flights[-1]:,.0f} flights, {decisions[-1]:,.0f} decisions")
        return "; ".join(parts)

    @property
    def minutes(self) -> float:
        """How long it has run."""
        return max(float(log.minutes[-1]) for log in (self.a, self.b) if log.rows)


def panels(run: TrainingRun) -> list[Panel]:
    """All that is drawn, row by row."""
    a, b = run.a, run.b
    # Goals believed within 0.47 m of where they are after a full turn, with the text and without it.
    found = [
        curve
        for name, colour in a.corpora("look_around/", "_within")
        for curve in a.curves(
            (name, f"look_around/{name}_within", colour),
            ("", f"look_around/{name}_within_without_text", colour, "--"),
            scale=100,
        )
    ]
    # Dev flights that end within 0.47 m, and those that did everything that was said.
    success = b.curves(
        *((name, f"dev/{name}_success", colour) for name, colour in b.corpora("dev/", "_success")),
        ("followed, mean", "dev/followed", INK, "--"),
        ("ORACLE's", "dev/followed_by_oracle", GREY, ":"),
        scale=100,
    )
    return [
        Panel(
            "Visitation losses",
            "cross-entropy, nats",
            a.curves(
                ("trajectory", "supervised/trajectory", FLOWN),
                ("goal", "supervised/goal", VERMILLION),
                ("trajectory, lab", "supervised/lab_trajectory", SKY_BLUE, "--"),
                ("goal, lab", "supervised/lab_goal", GOLD, "--"),
            ),
            floor=None,
            noisy=True,
        ),
        Panel(
            "Auxiliary losses",
            "nats",
            a.curves(
                ("object", "supervised/object", FLOWN),
                ("grounding", "supervised/grounding", VERMILLION),
                ("mention", "supervised/mention", BLUISH_GREEN),
                ("Wasserstein", "supervised/wasserstein", REDDISH_PURPLE, "--"),
            ),
            noisy=True,
        ),
        Panel("Goals found, dev (dashed: no text)", "%", found),
        Panel(
            "Reward of a flight, by term",
            "",
            b.curves(
                *((name, f"rewards/{name}", colour) for name, colour in TERMS.items()),
                ("all", "charts/episodic_return", INK, "--"),
            ),
            floor=None,
            noisy=True,
        ),
        Panel("Length of a flight", "decisions", lengths(run), noisy=True),
        Panel("How flights end", "%", endings(run), stacked=True),
        Panel(
            "Demonstrations left in $D^S$",
            "%",
            a.curves(("of all instructions", "executions/demonstrations_left", FLOWN), scale=100),
        ),
        Panel("Success in dev flights (dashed: all followed)", "%", success),
        Panel("EMD in dev flights", "m", distances(b)),
    ]


def lengths(run: TrainingRun) -> list[Curve]:
    """Lengths of flights, beside those of the demonstrations."""
    curves = run.b.curves(("flights", "charts/episodic_length", FLOWN))
    demonstrated, share = (run.a.series(f"executions/{name}")[1] for name in ("length", "demonstrations_left"))
    if curves and len(share) and share[0] == 1 and run.settings.initial_executions == "demonstrations":
        ends = np.array([0.0, curves[0].minutes[-1]])
        curves.append(Curve("demonstrations, mean", ends, np.full(2, demonstrated[0]), GREY, ":"))
    return curves


def endings(run: TrainingRun) -> list[Curve]:
    """Flights that end by STOP, at the arena's edge, or otherwise, %."""
    minutes, stopped = run.b.series("charts/stopped")
    _minutes, left = run.b.series("charts/left_arena")
    if not len(stopped):
        return []
    otherwise = "out of steps" if run.settings.gold_distance is None else "out of steps, strayed"
    return [
        Curve("STOP", minutes, 100 * stopped, BLUISH_GREEN),
        Curve("left the arena", minutes, 100 * left, VERMILLION),
        Curve(otherwise, minutes, 100 * (1 - stopped - left), GOLD),
    ]


def distances(log: ProcessLog) -> list[Curve]:
    """EMD, beside AVERAGE's in the same flights; the band does not touch AVERAGE's line where the gap is certain."""
    minutes, mean = log.series("dev/emd")
    if not len(mean):
        return []
    gap, low, high = (log.series(f"dev/emd_gap{end}")[1] for end in ("", "_low", "_high"))
    average = mean + gap
    corpora = log.corpora("dev/", "_emd")
    return [
        Curve("AVERAGE", minutes, average, GREY, ":"),
        Curve("policy", minutes, mean, INK, band=(average - high, average - low)),
        *log.curves(*((name, f"dev/{name}_emd", colour, "--") for name, colour in corpora if len(corpora) > 1)),
    ]


@plain_style({"font.size": 10, "axes.edgecolor": "0.6", "xtick.color": "0.3", "ytick.color": "0.3"})
def draw_curves(folder: Path) -> Figure:
    """All panels of a run's folder, of a `wordwing train` that is under way or finished."""
    run = TrainingRun.read(folder)
    cloned, _loss = run.a.series("cloning/stop")
    flown, _length = run.b.series("charts/episodic_length")
    phases = ["grey strip: stage 2 is cloned"] * bool(len(cloned)) + ["dotted: Process B begins"] * bool(len(flown))
    caption = f"{run.amounts}  ({'; '.join(phases)})" if phases else run.amounts
    figure = Figure(SIZE, DPI, facecolor=shade(PAPER), layout=ConstrainedLayoutEngine(h_pad=0.1, w_pad=0.08))
    grid = figure.subplots(3, 3)
    figure.suptitle(f"{run.heading}\n", fontsize=15, fontweight="bold", x=0.01, ha="left", parse_math=False)
    figure.text(0.01, 0.955, caption, fontsize=10.5, color="0.3", ha="left", va="center")
    for axes, panel in zip(grid.flat, panels(run), strict=True):
        _draw_panel(axes, panel)
        if len(cloned):
            axes.axvspan(cloned[0], cloned[-1], color="0.9", linewidth=0, zorder=0)
        if len(flown):
            axes.axvline(flown[0], color="0.45", linewidth=1, linestyle=(0, (1, 2)), zorder=1)
        axes.set_xlim(0, max(1.02 * run.minutes, 1e-3))
    for axes in grid[-1]:
        axes.set_xlabel("minutes")
    return figure


def save_curves(run: Path, image: Path) -> None:
    """Write a run's curves as PNG; the same log gives the same bytes."""
    figure = draw_curves(run)
    with replacing(image) as temporary, plain_style():
        figure.savefig(temporary, format="png", facecolor=figure.get_facecolor(), metadata={"Software": None})


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
    window = 2 * (len(values) // 20) + 1
    return pd.Series(values).rolling(window, center=True, min_periods=1).mean().to_numpy()
