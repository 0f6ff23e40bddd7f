"""The tables of a report: the paper's two of automated results with its numbers beside ours, and what else is known.

A table is made by pivoting estimates: each becomes a cell of text, with the row and the column that it belongs to.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import pandas as pd

from wordwing.evaluation.report.bootstrap import RESAMPLES
from wordwing.evaluation.report.labels import Origin, ablated, learned, segments_title, slug, title
from wordwing.evaluation.report.paper import STANDS_FOR, paper_gap, paper_result
from wordwing.evaluation.report.summary import CLAUSES, COMPARED_METRICS, GROUP, METRICS, Goal, Summary, rounded
from wordwing.evaluation.report.tables import Section, Table, csv_text
from wordwing.execution.metrics import SUCCESS_DISTANCE
from wordwing.language.authors import author
from wordwing.language.meaning.judge import DONE_SCORE

END_METRICS = ("stopped", "success_at_stop", "distance", "oracle_success", "spl", "judge_goal")
PATH_METRICS = ("ndtw", "sdtw", "nemd", "semd", "judge_path")
BELIEF_METRICS = ("first_goal_error", "last_goal_error", "first_unobserved")
"""What the paper's tables leave out: where a flight ends, how it gets there, where the goal is believed to be."""

SIGHT: tuple[tuple[Goal, Goal, str], ...] = (
    ("ahead", "not ahead", "Ahead: within 42° of the drone's heading at the start, which the paper calls visible."),
    (
        "in sight",
        "not in sight",
        "In sight: the goal's position on the ground is in the first image, and no landmark hides it.",
    ),
)

MAIN_TABLES = ("results", "followed", "gap", "differences")
"""How the names of the tables begin that a reader wants first."""

BOOTSTRAP = f"In brackets 95 % intervals: percentiles of {RESAMPLES:,} resamples of layouts"
INTERVALS = f"{BOOTSTRAP}; Wilson's if all flights had the same outcome."
END = f"SR: flights that came to rest within {SUCCESS_DISTANCE} m of the demonstration's end."
FOLLOWED = (
    "Followed: flights that followed the whole instruction in order and came to rest where its last clause says; the "
    f"automatic judge, a program, scores every clause at least {DONE_SCORE} of 1. ORACLE's share is how often it does "
    "so for a flight along the demonstration."
)
NO_BOLD = "Nothing is in bold: the paired differences show which system is better."
PAPER_FLIGHTS = {
    "cage": "The paper names 93 and 73 test instructions; its percentages are those of 92 and 72 flights (AVERAGE in "
    "its simulator: 88 and 69), in dev of 104 and 84 (except for noI).",
    "field": "The paper's are of its full LANI set, which includes its REAL instructions.",
}

ROW = ["split", "domain", "segments", "system", "minus"]
"""What a row of a table is of; rows that share the first three are a section. `segments` is 0 where a section has
instructions of all lengths."""


def report_tables(summary: Summary) -> list[Table]:
    """All tables, corpus by corpus; those that would be empty are left out."""
    tables: list[Table] = []
    for own in by_corpus(summary):
        made = [
            automated(own),
            followed(own),
            gaps(own),
            differences(own),
            *(visibility(own, *kind) for kind in SIGHT),
            other_metrics(own, "end", "Where flights end", END_METRICS),
            other_metrics(own, "path", "How they get there", PATH_METRICS),
            other_metrics(own, "beliefs", "Where the goal is believed to be", BELIEF_METRICS),
        ]
        tables += [table for table in made if table is not None]
    names = [table.name for table in tables]
    return [
        replace(table, name=f"{table.name}-{place}") if table.name in names[:place] else table
        for place, table in enumerate(tables)
    ]


def by_corpus(summary: Summary) -> list[Summary]:
    """A summary for each corpus and author of its sentences: what the tables below are made of."""
    keys = dict.fromkeys(origin[:2] for origin in summary.origins)
    return [Summary(summary.select(corpus=corpus, text=text)) for corpus, text in keys]


def automated(summary: Summary) -> Table:
    """The paper's table of automated results: SR and EMD of one and of two segments, the paper's beside ours.

    Where meanings are known, the share of flights that followed all that was said stands beside SR, which asks for the
    end alone.
    """
    found = _by_segments(summary.select(kind="mean", goal="all", clauses="all", metric=["success", "followed", "emd"]))
    papers = [
        (*row, segments_title(count), column, text)
        for row, origin, system, count in _paper_rows(summary)
        if (paper := paper_result(origin, system, count))
        for column, text in (("paper's SR", f"{paper.success:.1f}"), ("paper's EMD", f"{paper.emd:.2f}"))
    ]
    judged = "followed" in set(found["metric"])
    beside = bool(papers)
    each = ["n", "SR, %", *["paper's SR"] * beside, *["Followed, %"] * judged, "EMD, m", *["paper's EMD"] * beside]
    origins = summary.origins
    corpus = origins[0].corpus
    return _table(
        origins,
        "results",
        "Automated results",
        [
            f"{END} EMD: earth mover's distance between flown and demonstrated path. n: flights.",
            FOLLOWED if judged else "",
            INTERVALS,
            NO_BOLD,
            _caveat(origins, bool(papers)),
            PAPER_FLIGHTS[corpus] if papers else "",
        ],
        pd.concat([_numbers(found[found["metric"] == "success"]), _cells(found), _texts(papers)]),
        [(segments_title(count), name) for count in _counts(summary) for name in each],
        _rows(summary),
        after=f", beside the paper's on {STANDS_FOR[corpus]}" if papers else "",
    )


def followed(summary: Summary) -> Table | None:
    """The share of flights that followed the whole instruction, by its number of clauses, beside success."""
    found = summary.select(kind="mean", clauses=CLAUSES, metric=["success", "followed"])
    if summary.select(kind="mean", metric="followed").empty:
        return None
    found = found.assign(segments=0, span=found["clauses"])
    return _table(
        summary.origins,
        "followed",
        "Instructions followed in full, by number of clauses",
        [f"{END} n: flights.", FOLLOWED, INTERVALS, _caveat(summary.origins, False)],
        pd.concat([_numbers(found[found["metric"] == "followed"]), _cells(found)]),
        [(clauses, name) for clauses in CLAUSES for name in ("n", "SR, %", "Followed, %")],
        _rows(summary),
        no_flights="0",
    )


def gaps(summary: Summary) -> Table | None:
    """The share of the way from AVERAGE to ORACLE that each policy goes, and the paper's from its numbers."""
    systems = [system for system in summary.estimates["system"].unique() if learned(system)]
    found = _by_segments(summary.select(kind="gap closed", system=systems))
    papers = [
        (*row, segments_title(count), f"paper's {name}", _number(100 * share, 0))
        for row, origin, system, count in _paper_rows(summary)
        if (shares := paper_gap(origin, system, count))
        for name, share in zip(("SR", "EMD"), shares, strict=True)
    ]
    if found["mean"].isna().all():
        return None
    each = [name for metric in ("SR", "EMD") for name in (f"{metric}, %", *[f"paper's {metric}"] * bool(papers))]
    table = _table(
        summary.origins,
        "gap",
        "Share of the gap between AVERAGE and ORACLE that is closed",
        [
            "(system − AVERAGE) / (ORACLE − AVERAGE), of means over the instructions that all three flew: AVERAGE is "
            "0 %, ORACLE 100 %.",
            f"{BOOTSTRAP}; none where ORACLE is not better than AVERAGE in all of them.",
            "The paper's shares are computed from its rounded numbers; its dev results have no AVERAGE or ORACLE."
            if papers
            else "",
            _caveat(summary.origins, bool(papers)),
        ],
        pd.concat([_cells(found), _texts(papers)]),
        [(segments_title(count), name) for count in _counts(summary) for name in each],
        _rows(summary),
        no_flights=None,
    )
    return replace(table, columns=tuple("paper's" if name.startswith("paper's") else name for name in table.columns))


def differences(summary: Summary) -> Table | None:
    """Paired differences between policies, and with AVERAGE; of an ablation only with what it was taken from."""
    found = summary.select(kind="difference", goal="all", segments=_counts(summary)).assign(span="")
    shown = [name for name in COMPARED_METRICS if name in set(found["metric"])]
    systems = {origin[2:]: summary.systems(origin) for origin in summary.origins}
    found = found[[_compared(row, systems[row.split, row.domain]) for row in found.itertuples()]]
    if found.empty:
        return None
    return _table(
        summary.origins,
        "differences",
        "Paired differences between systems",
        [
            "The first system's mean minus the second's, over the n instructions that both flew. Higher is better for "
            "SR, Followed and the automatic judge's scores, lower for EMD.",
            f"{BOOTSTRAP}. They are not corrected for multiple comparisons: some exclude zero by chance.",
            _caveat(summary.origins, False),
        ],
        pd.concat([_numbers(found.drop_duplicates(ROW)), _cells(found)]),
        [("", "n"), *(("", _column("difference", name)) for name in shown)],
        pd.MultiIndex.from_frame(found[ROW].drop_duplicates()),
        first="difference",
    )


def _compared(row: Any, systems: Sequence[str]) -> bool:
    if ablated(row.system) in systems:
        return row.minus == ablated(row.system)
    return learned(row.system) and (learned(row.minus) or row.minus == "average")


def visibility(summary: Summary, seen: Goal, unseen: Goal, definition: str) -> Table:
    """Success and EMD where the goal can be seen at the start, and where it cannot."""
    found = summary.select(
        kind="mean", goal=[seen, unseen], segments=_counts(summary), metric=["success", "emd"], clauses="all"
    )
    found = found.assign(span="goal " + found["goal"])
    return _table(
        summary.origins,
        "sight" if seen == "in sight" else "ahead",
        f"Goal {seen} at the start or not",
        [definition, INTERVALS, _caveat(summary.origins, False)],
        pd.concat([_numbers(found[found["metric"] == "success"]), _cells(found)]),
        [(f"goal {goal}", name) for goal in (seen, unseen) for name in ("n", "SR, %", "EMD, m")],
        _rows(summary, by_segments=True),
        no_flights="0",
    )


def other_metrics(summary: Summary, name: str, heading: str, metrics: Sequence[str]) -> Table | None:
    """Metrics that the paper does not report, for each system that has one of them."""
    found = summary.select(
        kind="mean", goal="all", clauses="all", segments=_counts(summary), metric=list(metrics)
    ).assign(span="")
    if found.empty:
        return None
    shown = [metric for metric in metrics if metric in set(found["metric"])]
    found = found.sort_values("metric", key=lambda column: column.map(shown.index), kind="stable")
    return _table(
        summary.origins,
        name,
        heading,
        [
            "Each metric's formula is in docs/metrics.md.",
            "The judge is wordwing's program, not people; its scores go from 0 to 1."
            if any(metric.startswith("judge") for metric in shown)
            else "",
            "Beliefs of a policy's stage 1 at its first and last decision, which other systems do not have; p_oob is "
            "the probability that the goal has not been observed yet."
            if "first_goal_error" in shown
            else "",
            INTERVALS,
            _caveat(summary.origins, False),
        ],
        pd.concat([_numbers(found.drop_duplicates(ROW)), _cells(found)]),
        [("", "n"), *(("", _column("mean", metric)) for metric in shown)],
        _rows(summary, by_segments=True),
        no_flights=None,
    )


def to_csv(summary: Summary) -> str:
    """All estimates, a row each, with the paper's result where it has one.

    Shares are from 0 to 1, lengths in metres. A row with "minus" is a paired difference, one whose metric ends in
    "gap closed" a share of the way from AVERAGE to ORACLE.
    """
    rows = summary.estimates.to_dict("records")
    table = pd.DataFrame({**row, **rounded(row), "paper": _beside(row)} for row in rows)
    table["metric"] += table["kind"].map({"gap closed": " gap closed"}).fillna("")
    order = {"mean": 0, "gap closed": 1, "difference": 2}
    table = table.sort_values("kind", key=lambda kinds: kinds.map(order), kind="stable")
    return csv_text(table[[*GROUP, "system", "minus", "metric", "n", "mean", "low", "high", "paper"]])


def _beside(row: dict[str, Any]) -> float | None:
    """The paper's value of an estimate, where it has one."""
    key = Origin(*(row[field] for field in Origin._fields)), row["system"], row["segments"]
    result, gap = paper_result(*key), paper_gap(*key)
    if row["kind"] == "gap closed" and gap:
        return round(gap[row["metric"] == "emd"], 4)
    if row["kind"] == "mean" and result and row["goal"] == row["clauses"] == "all":
        return {"success": round(result.success / 100, 4), "emd": result.emd}.get(row["metric"])
    return None


def _table(
    origins: Sequence[Origin],
    name: str,
    heading: str,
    notes: Sequence[str],
    cells: pd.DataFrame,
    columns: Sequence[tuple[str, str]],
    rows: pd.MultiIndex,
    no_flights: str | None = "",
    first: str = "system",
    after: str = "",
) -> Table:
    """Pivot cells of text into a table.

    Args:
        origins: Of one corpus and author.
        name: What the table's name begins with.
        heading: What its title begins with.
        notes: Sentences; empty ones are left out.
        cells: Columns `ROW`, span, column, text.
        columns: Span and title of each column but the first.
        rows: All rows that may be there, in order.
        no_flights: What stands in a column "n" without flights; None leaves out rows without a cell.
        first: Title of the first column.
        after: What its title ends with.
    """
    wide = cells.pivot_table("text", ROW, ["span", "column"], "first", sort=False)
    wide = wide.reindex(index=rows, columns=pd.MultiIndex.from_tuples(columns))
    wide = wide[wide.notna().any(axis=1)] if no_flights is None else wide
    wide = wide.apply(lambda column: column.fillna(no_flights or "" if column.name[1] == "n" else ""))
    sections = []
    for (split, domain, segments), own in wide.groupby(level=ROW[:3], sort=False):
        place = "lab (simulated stand-in)" if domain == "lab" else domain
        above = f"{split[:1].upper()}{split[1:]}, {place}" + (f", {segments_title(segments)}" if segments else "")
        labels = [title(system) + (f" − {title(minus)}" if minus else "") for *_section, system, minus in own.index]
        sections.append(Section(above, tuple((label, *row) for label, row in zip(labels, own.to_numpy(), strict=True))))
    corpus, text = origins[0][:2]
    spans = [(text, len(list(group))) for text, group in groupby(span for span, _column in columns)]
    return Table(
        slug(name, corpus, text),
        f"{heading}, {corpus}, {author(text).sentences}{after}",
        tuple(note for note in notes if note),
        (first, *(column for _span, column in columns)),
        tuple(sections),
        (("", 1), *spans) if columns[0][0] else (),
    )


def _counts(summary: Summary) -> list[int]:
    return sorted({count for origin in summary.origins for count in summary.segments(origin)})


def _by_segments(found: pd.DataFrame) -> pd.DataFrame:
    """Estimates side by side for each number of segments, in one section."""
    found = found[found["segments"] != "both"]
    return found.assign(span=found["segments"].map(segments_title), segments=0)


def _rows(summary: Summary, by_segments: bool = False) -> pd.MultiIndex:
    """Every system of every origin; with `by_segments` in a section for each number of segments."""
    return pd.MultiIndex.from_tuples(
        [
            (origin.split, origin.domain, count, system, "")
            for origin in summary.origins
            for count in (summary.segments(origin) if by_segments else [0])
            for system in summary.systems(origin)
        ],
        names=ROW,
    )


def _paper_rows(summary: Summary) -> list[tuple[tuple[Any, ...], Origin, str, int]]:
    """Rows of a table, and what of the paper may stand in them: origin, system and number of segments."""
    return [
        ((origin.split, origin.domain, 0, system, ""), origin, system, count)
        for origin in summary.origins
        for system in summary.systems(origin)
        for count in _counts(summary)
    ]


def _texts(cells: Sequence[tuple[Any, ...]]) -> pd.DataFrame:
    return pd.DataFrame(cells, columns=[*ROW, "span", "column", "text"])


def _numbers(found: pd.DataFrame) -> pd.DataFrame:
    """Cells with the number of flights."""
    return found.assign(column="n", text=found["n"].map("{:,}".format))


def _cells(found: pd.DataFrame) -> pd.DataFrame:
    """Cells with the estimates; those without a mean are left out."""
    found = found[found["mean"].notna()]
    columns = [_column(row.kind, row.metric) for row in found.itertuples()]
    return found.assign(column=columns, text=[_text(row) for row in found.itertuples()])


def _column(kind: str, metric: str) -> str:
    share = {"mean": "%", "gap closed": "%", "difference": "points"}[kind]
    unit = share if METRICS[metric].share or kind == "gap closed" else METRICS[metric].unit
    return f"{METRICS[metric].title}, {unit}" if unit else METRICS[metric].title


def _text(row: Any) -> str:
    """An estimate as "53.3 (47.1–59.4)" or, with signs, "+2.0 (−3.1 to +7.0)"."""
    signed = row.kind == "difference"
    # A third decimal in differences, for a small one would seem to be none.
    scale, decimals = (100, 1) if METRICS[row.metric].share else (1, 2 + signed)
    if row.kind == "gap closed":
        scale, decimals = 100, 0
    mean, low, high = (_number(scale * value, decimals, signed) for value in (row.mean, row.low, row.high))
    between = " to " if signed or row.low < 0 else "–"
    return mean if math.isnan(row.low) else f"{mean} ({low}{between}{high})"


def _number(value: float, decimals: int, signed: bool = False) -> str:
    return f"{value:{'+' * signed}z.{decimals}f}".replace("-", "−")


def _caveat(origins: Sequence[Origin], papers: bool) -> str:
    """Where sentences and flights come from, and how that differs from the paper."""
    domains = {origin.domain for origin in origins}
    written = f"sentences were {author(origins[0].text).how}" + ", the paper's written by people" * papers
    facts = {
        written: origins[0].text != "human",
        "sim is not the paper's simulator, AirSim": "sim" in domains and papers,
        "lab is a simulated stand-in for the physical drone and cage; no real drone flew": "lab" in domains,
    }
    joined = "; ".join(fact for fact, holds in facts.items() if holds)
    if not joined:
        return ""
    return f"The data differ from the paper's: {joined}." if papers else f"{joined[:1].upper()}{joined[1:]}."
