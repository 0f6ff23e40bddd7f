"""The tables of a report: the paper's two of automated results with its numbers beside ours, and what else is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, groupby
from typing import Any

from wordwing.evaluation.report.bootstrap import RESAMPLES, Estimate
from wordwing.evaluation.report.published import STANDS_FOR, Key, gap_closed, published
from wordwing.evaluation.report.summary import (
    COMPARED_METRICS,
    COUNTS,
    METRIC,
    Goal,
    Group,
    Metric,
    Origin,
    Segments,
    Summary,
    ablated,
    learned,
    segments_title,
    title,
)
from wordwing.evaluation.report.tables import Section, Table, csv_text, slug
from wordwing.execution.metrics import SUCCESS_DISTANCE
from wordwing.language.meaning.judge import DONE

METRES = ("distance", "distance_at_stop", "closest", "emd", "length", "first_goal_error", "last_goal_error")

END_METRICS = ("stopped", "success_at_stop", "distance", "oracle_success", "spl", "judge_goal")
PATH_METRICS = ("ndtw", "sdtw", "nemd", "semd", "judge_path")
BELIEF_METRICS = ("first_goal_error", "last_goal_error", "first_unobserved")
"""What the paper's tables leave out: where a flight ends, how it gets there, where the goal is believed to be."""

SIGHT: tuple[tuple[Goal, Goal, str], ...] = (
    ("ahead", "not ahead", "Ahead: within 42° of the drone's heading at the start, which the paper calls visible."),
    (
        "in sight",
        "not in sight",
        "In sight: the goal's place on the ground is in the first picture, and no landmark hides it.",
    ),
)

MAIN_TABLES = ("results", "followed", "gap", "differences")
"""How the names begin of those that a reader wants first."""

BOOTSTRAP = f"In brackets 95 % intervals: percentiles of {RESAMPLES:,} resamples of layouts"
INTERVALS = f"{BOOTSTRAP}; Wilson's where all flights of a share came out the same."
END = f"SR: flights that came to rest within {SUCCESS_DISTANCE} m of the demonstration's end."
FOLLOWED = (
    "Followed: flights that did everything that was said, in order, and came to rest where the last clause says; the "
    f"automatic judge, a program, gives every clause at least {DONE} of 1. ORACLE's share tells how often it does so "
    "for a flight along the demonstration."
)
NO_BOLD = "Nothing is bold: which system is better is for paired differences to say."

CSV_COLUMNS = (
    "corpus", "text", "split", "domain", "segments", "goal", "clauses", "system", "minus", "metric",
    "n", "mean", "low", "high", "paper",
)  # fmt: skip
"""Shares are from 0 to 1, lengths in metres. A row with "minus" is a paired difference, one whose metric ends in
"gap closed" a share of the way from AVERAGE to ORACLE."""


def report_tables(summary: Summary) -> list[Table]:
    """All tables, corpus by corpus; those that would be empty are left out."""
    tables: list[Table] = []
    for _corpus, found in groupby(summary.origins, key=lambda origin: (origin.corpus, origin.text)):
        origins = list(found)
        made = [
            automated(summary, origins),
            followed(summary, origins),
            gaps(summary, origins),
            differences(summary, origins),
            *(visibility(summary, origins, *kind) for kind in SIGHT),
            other_metrics(summary, origins, "end", "Where flights end", END_METRICS),
            other_metrics(summary, origins, "path", "How they get there", PATH_METRICS),
            other_metrics(summary, origins, "beliefs", "Where the goal is believed to be", BELIEF_METRICS),
        ]
        tables += [table for table in made if table is not None]
    names = [table.name for table in tables]
    return [
        replace(table, name=f"{table.name}-{place}") if table.name in names[:place] else table
        for place, table in enumerate(tables)
    ]


def automated(summary: Summary, origins: Sequence[Origin]) -> Table:
    """The paper's table of automated results: SR and EMD of one and of two segments, the paper's beside ours.

    Where meanings are known, who followed all that was said stands beside SR, which asks for the end alone.
    """
    counts = _counts(summary, origins)
    judged = _known(summary, origins, "followed")
    papers = any(_published(origin, system, 1) for origin in origins for system in summary.systems(origin))
    sections = []
    for origin in origins:
        rows = []
        for system in summary.systems(origin):
            cells = [title(system)]
            for count in counts:
                success, done, emd = (
                    _figure(summary, origin, count, system, name) for name in ("success", "followed", "emd")
                )
                paper = _published(origin, system, count)
                cells += [f"{success.n:,}" if success else "", _cell(success, "success")]
                cells += [f"{paper.success:.1f}" if paper else ""] * papers
                cells += [_cell(done, "followed")] * judged
                cells += [_cell(emd, "emd")]
                cells += [f"{paper.emd:.2f}" if paper else ""] * papers
            rows.append(tuple(cells))
        sections.append(Section(_heading(origin), tuple(rows)))
    each = ["n", "SR, %", *["paper's SR"] * papers, *["Followed, %"] * judged, "EMD, m", *["paper's EMD"] * papers]
    corpus = origins[0].corpus
    beside = f", beside the paper's on {STANDS_FOR[corpus]}" if papers else ""
    notes = [
        f"{END} EMD: earth mover's distance between flown and demonstrated path. n: flights.",
        FOLLOWED if judged else "",
        INTERVALS,
        NO_BOLD,
        _caveat(origins, papers),
    ]
    if papers:
        notes.append(_PAPER_NUMBERS[corpus])
    return Table(
        slug("results", corpus, origins[0].text),
        f"Automated results, {_subject(origins)}{beside}",
        tuple(note for note in notes if note),
        ("system", *each * len(counts)),
        tuple(sections),
        (("", 1), *((segments_title(count), len(each)) for count in counts)),
    )


def followed(summary: Summary, origins: Sequence[Origin]) -> Table | None:
    """Who did everything that was said, by how much was said, beside success, which asks for the end alone."""
    if not _known(summary, origins, "followed"):
        return None
    sections = []
    for origin in origins:
        rows = []
        segments: Segments = "both" if len(summary.segments(origin)) > 1 else summary.segments(origin)[0]
        for system in summary.systems(origin):
            cells = [title(system)]
            for clauses in COUNTS:
                group = Group(origin, segments, clauses=clauses)
                found = {name: summary.figures.get((group, system, name)) for name in ("success", "followed")}
                cells.append(f"{found['followed'].n:,}" if found["followed"] else "0")
                cells += [_cell(estimate, name) for name, estimate in found.items()]
            rows.append(tuple(cells))
        sections.append(Section(_heading(origin), tuple(rows)))
    return Table(
        slug("followed", origins[0].corpus, origins[0].text),
        f"Everything that was said, by how much was said, {_subject(origins)}",
        tuple(note for note in (f"{END} n: flights.", FOLLOWED, INTERVALS, _caveat(origins, False)) if note),
        ("system", *("n", "SR, %", "Followed, %") * len(COUNTS)),
        tuple(sections),
        (("", 1), *((clauses, 3) for clauses in COUNTS)),
    )


def gaps(summary: Summary, origins: Sequence[Origin]) -> Table | None:
    """The share of the way from AVERAGE to ORACLE that each policy goes, and the paper's from its numbers."""
    counts = _counts(summary, origins)
    papers = any(_paper_gap(origin, system, 1) for origin in origins for system in summary.systems(origin))
    sections = []
    for origin in origins:
        rows = []
        for system in filter(learned, summary.systems(origin)):
            cells = []
            for count in counts:
                paper = _paper_gap(origin, system, count)
                for place, name in enumerate(("success", "emd")):
                    estimate = summary.gaps.get((Group(origin, count), system, name))
                    cells.append("" if estimate is None else _text(estimate, 100, 0))
                    cells += [_number(100 * paper[place], 0) if paper else ""] * papers
            if any(cells):
                rows.append((title(system), *cells))
        sections.append(Section(_heading(origin), tuple(rows)))
    sections = [section for section in sections if section.rows]
    if not any(key[0].origin in origins and learned(key[1]) for key in summary.gaps):
        return None
    each = [name for metric in ("SR, %", "EMD, %") for name in (metric, *["paper's"] * papers)]
    notes = [
        "(system − AVERAGE) / (ORACLE − AVERAGE), of means over the instructions that all three flew: AVERAGE is 0 %, "
        "ORACLE 100 %.",
        f"{BOOTSTRAP}; none where ORACLE is not better than AVERAGE in all of them.",
        "The paper's shares are computed from its rounded numbers; its dev results have no AVERAGE or ORACLE."
        if papers
        else "",
        _caveat(origins, papers),
    ]
    return Table(
        slug("gap", origins[0].corpus, origins[0].text),
        f"Share of the gap between AVERAGE and ORACLE that is closed, {_subject(origins)}",
        tuple(note for note in notes if note),
        ("system", *each * len(counts)),
        tuple(sections),
        (("", 1), *((segments_title(count), len(each)) for count in counts)),
    )


def differences(summary: Summary, origins: Sequence[Origin]) -> Table | None:
    """Paired differences between policies, and with AVERAGE; of an ablation only with what it was taken from."""
    shown = [
        name
        for name in COMPARED_METRICS
        if any(key[0].origin in origins and key[3] == name for key in summary.differences)
    ]
    sections = []
    for origin in origins:
        systems = summary.systems(origin)
        for count in summary.segments(origin):
            rows = []
            for earlier, later in combinations(systems, 2):
                if not learned(later) or not (learned(earlier) or earlier == "average"):
                    continue
                if ablated(later) in systems and earlier != ablated(later):
                    continue
                found = [summary.differences.get((Group(origin, count), later, earlier, name)) for name in shown]
                cells = [_cell(estimate, name, signed=True) for estimate, name in zip(found, shown, strict=True)]
                if any(cells):
                    number = next(f"{estimate.n:,}" for estimate in found if estimate)
                    rows.append((f"{title(later)} − {title(earlier)}", number, *cells))
            if rows:
                sections.append(Section(f"{_heading(origin)}, {segments_title(count)}", tuple(rows)))
    if not sections:
        return None
    notes = [
        "The first system's mean less the second's, over the n instructions that both flew. More SR, more that is "
        "Followed and more of the automatic judge's scores are better, less EMD is better.",
        f"{BOOTSTRAP}. Each stands for itself: of many, some exclude zero by chance.",
        _caveat(origins, False),
    ]
    return Table(
        slug("differences", origins[0].corpus, origins[0].text),
        f"Paired differences between systems, {_subject(origins)}",
        tuple(note for note in notes if note),
        (
            "difference",
            "n",
            *(f"{METRIC[name].title}, points" if METRIC[name].share else _column(METRIC[name]) for name in shown),
        ),
        tuple(sections),
    )


def visibility(summary: Summary, origins: Sequence[Origin], seen: Goal, unseen: Goal, definition: str) -> Table:
    """Success and EMD where the goal can be seen at the start, and where it cannot."""
    sections = []
    for origin in origins:
        for count in summary.segments(origin):
            rows = []
            for system in summary.systems(origin):
                cells = [title(system)]
                for goal in (seen, unseen):
                    found = {name: _figure(summary, origin, count, system, name, goal) for name in ("success", "emd")}
                    cells.append(f"{found['success'].n:,}" if found["success"] else "0")
                    cells += [_cell(estimate, name) for name, estimate in found.items()]
                rows.append(tuple(cells))
            sections.append(Section(f"{_heading(origin)}, {segments_title(count)}", tuple(rows)))
    return Table(
        slug("sight" if seen == "in sight" else "ahead", origins[0].corpus, origins[0].text),
        f"Goal {seen} at the start or not, {_subject(origins)}",
        tuple(note for note in (definition, INTERVALS, _caveat(origins, False)) if note),
        ("system", *("n", "SR, %", "EMD, m") * 2),
        tuple(sections),
        (("", 1), (f"goal {seen}", 3), (f"goal {unseen}", 3)),
    )


def other_metrics(
    summary: Summary, origins: Sequence[Origin], name: str, heading: str, metrics: Sequence[str]
) -> Table | None:
    """Metrics that the paper does not report, for each system that has one of them."""
    known = {metric for group, _system, metric in summary.figures if group.origin in origins}
    shown = [metric for metric in metrics if metric in known]
    sections = []
    for origin in origins:
        for count in summary.segments(origin):
            rows = []
            for system in summary.systems(origin):
                found = [_figure(summary, origin, count, system, metric) for metric in shown]
                if number := next((f"{estimate.n:,}" for estimate in found if estimate), ""):
                    cells = [_cell(estimate, metric) for estimate, metric in zip(found, shown, strict=True)]
                    rows.append((title(system), number, *cells))
            if rows:
                sections.append(Section(f"{_heading(origin)}, {segments_title(count)}", tuple(rows)))
    if not sections:
        return None
    notes = [
        "Each metric's formula is in docs/metrics.md.",
        "The judge is wordwing's program, not people; its scores go from 0 to 1." if _judged(shown) else "",
        "Of what stage 1 of a policy believes at its first and last decision, so other systems are not here; p_oob is "
        "the probability that the goal has not been seen yet."
        if "first_goal_error" in shown
        else "",
        INTERVALS,
        _caveat(origins, False),
    ]
    return Table(
        slug(name, origins[0].corpus, origins[0].text),
        f"{heading}, {_subject(origins)}",
        tuple(note for note in notes if note),
        ("system", "n", *(_column(METRIC[metric]) for metric in shown)),
        tuple(sections),
    )


def to_csv(summary: Summary) -> str:
    """All figures, a row each; see `CSV_COLUMNS`."""
    rows: list[dict[str, Any]] = []
    for (group, system, metric), estimate in summary.figures.items():
        row = {**group.to_json(), "system": system, "metric": metric, **estimate.to_json()}
        paper = _published(group.origin, system, group.segments) if group.goal == group.clauses == "all" else None
        if paper and metric in ("success", "emd"):
            row["paper"] = round(paper.success / 100, 4) if metric == "success" else paper.emd
        rows.append(row)
    for (group, system, metric), estimate in summary.gaps.items():
        row = {**group.to_json(), "system": system, "metric": f"{metric} gap closed", **estimate.to_json()}
        theirs = _paper_gap(group.origin, system, group.segments)
        if theirs:
            row["paper"] = round(theirs[metric == "emd"], 4)
        rows.append(row)
    for (group, system, other, metric), estimate in summary.differences.items():
        rows.append({**group.to_json(), "system": system, "minus": other, "metric": metric, **estimate.to_json()})
    return csv_text(CSV_COLUMNS, [[row.get(column) for column in CSV_COLUMNS] for row in rows])


_PAPER_NUMBERS = {
    "cage": "The paper names 93 and 73 test instructions; its percentages are those of 92 and 72 flights (AVERAGE in "
    "its simulator: 88 and 69), in dev of 104 and 84 (but for noI).",
    "field": "The paper's are of its full LANI set, which includes its REAL instructions.",
}


def _counts(summary: Summary, origins: Iterable[Origin]) -> list[int]:
    return sorted({count for origin in origins for count in summary.segments(origin)})


def _figure(
    summary: Summary, origin: Origin, segments: Segments, system: str, metric: str, goal: Goal = "all"
) -> Estimate | None:
    return summary.figures.get((Group(origin, segments, goal), system, metric))


def _known(summary: Summary, origins: Sequence[Origin], metric: str) -> bool:
    return any(name == metric and group.origin in origins for group, _system, name in summary.figures)


def _published(origin: Origin, system: str, segments: Segments) -> Any:
    if segments == "both":
        return None
    return published(Key(origin.corpus, origin.domain, origin.split, title(system), segments))


def _paper_gap(origin: Origin, system: str, segments: Segments) -> tuple[float, float] | None:
    if segments == "both" or not learned(system):
        return None
    return gap_closed(Key(origin.corpus, origin.domain, origin.split, title(system), segments))


def _subject(origins: Sequence[Origin]) -> str:
    corpus, text = origins[0].corpus, origins[0].text
    author = {"generated": "generated sentences", "human": "sentences written by people"}
    return f"{corpus}, {author.get(text, f'sentences: {text}')}"


def _heading(origin: Origin) -> str:
    place = "lab (simulated stand-in)" if origin.domain == "lab" else origin.domain
    return f"{origin.split[:1].upper()}{origin.split[1:]}, {place}"


def _caveat(origins: Sequence[Origin], papers: bool) -> str:
    """What the flights were, said so that nobody takes them for something else."""
    domains = {origin.domain for origin in origins}
    facts = []
    if origins[0].text == "generated":
        facts.append("sentences were generated by a program" + ", the paper's written by people" * papers)
    if "sim" in domains and papers:
        facts.append("sim is not the paper's simulator, AirSim")
    if "lab" in domains:
        facts.append("lab is a simulated stand-in for the physical drone and cage; no real drone flew")
    if not facts:
        return ""
    joined = "; ".join(facts)
    return f"The data differ from the paper's: {joined}." if papers else f"{joined[:1].upper()}{joined[1:]}."


def _column(metric: Metric) -> str:
    unit = ", %" if metric.share else ", m" if metric.name in METRES else ""
    return f"{metric.title}{unit}"


def _judged(metrics: Iterable[str]) -> bool:
    return any(metric.startswith("judge") for metric in metrics)


def _cell(estimate: Estimate | None, metric: str, signed: bool = False) -> str:
    if estimate is None:
        return ""
    # A third decimal in differences, for a small one would seem to be none.
    return _text(estimate, 100, 1, signed) if METRIC[metric].share else _text(estimate, 1, 2 + signed, signed)


def _text(estimate: Estimate, scale: float, decimals: int, signed: bool = False) -> str:
    """As "53.3 (47.1–59.4)" or, with signs, "+2.0 (−3.1 to +7.0)"."""
    if estimate.mean is None:
        return ""
    mean = _number(scale * estimate.mean, decimals, signed)
    if estimate.low is None or estimate.high is None:
        return mean
    low, high = (_number(scale * end, decimals, signed) for end in (estimate.low, estimate.high))
    between = " to " if signed or estimate.low < 0 else "–"
    return f"{mean} ({low}{between}{high})"


def _number(value: float, decimals: int, signed: bool = False) -> str:
    text = f"{value:+z.{decimals}f}" if signed else f"{value:z.{decimals}f}"
    return text.replace("-", "−")
