"""A study's report: what people said, as JSON, tables and charts.

report.json                all figures
tables.md scores.csv       scores, tests and agreement; scores again for other programs
ratings.csv                every judgement; raters are numbers
charts/*.svg               how often each score was given
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from wordwing.errors import WordwingError
from wordwing.evaluation.report.labels import Origin, title
from wordwing.evaluation.report.tables import Section, Table, csv_text, render_table
from wordwing.files import check_replaceable, replacing_folder
from wordwing.release import VERSION
from wordwing.study.agreement import ordinal_alpha
from wordwing.study.charts import score_chart
from wordwing.study.database import Settings
from wordwing.study.questions import KEYS, SCALE, Key
from wordwing.study.statistics import (
    VISIBILITIES,
    Comparison,
    Judgement,
    Scores,
    Visibility,
    compare,
    frequencies,
    seen,
    unclear_instructions,
    without,
)
from wordwing.study.store import Study

JSON, MARKDOWN, SCORES, RATINGS, CHARTS = "report.json", "tables.md", "scores.csv", "ratings.csv", "charts"

SCHEMA = 1
"""Version of report.json."""

GROUP_TITLES: dict[Visibility, str] = {
    "all": "all instructions",
    "ahead": "goal ahead at the start",
    "not ahead": "goal not ahead at the start",
}


@dataclass(frozen=True)
class Group:
    """What was found for some of the instructions."""

    visibility: Visibility
    instructions: int
    scores: tuple[Scores, ...]
    comparisons: tuple[Comparison, ...]
    alpha: dict[Key, float | None]


@dataclass(frozen=True)
class Findings:
    """All that a report says."""

    settings: Settings
    judgements: tuple[Judgement, ...]
    """All, those of excluded instructions, too."""
    instructions: dict[str, tuple[str, int]]
    """Text and segments of each, by id."""
    raters: int
    finished: int
    excluded: tuple[str, ...]
    groups: tuple[Group, ...]

    def to_json(self) -> str:
        """The text of report.json."""
        settings: dict[str, Any] = {key: value for key, value in asdict(self.settings).items() if key != "salt"}
        document = {
            "schema": SCHEMA,
            "wordwing": VERSION,
            "study": {
                **settings,
                "instructions": len(self.instructions),
                "items": len(self.instructions) * len(self.settings.systems),
            },
            "ratings": len(self.judgements),
            "raters": self.raters,
            "raters_finished": self.finished,
            "excluded": [{"id": name, "text": self.instructions[name][0]} for name in self.excluded],
            "groups": {
                group.visibility: {
                    "instructions": group.instructions,
                    "scores": [_score_row(entry) for entry in group.scores],
                    "comparisons": [asdict(entry) for entry in group.comparisons],
                    "ordinal_alpha": group.alpha,
                }
                for group in self.groups
            },
        }
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def find(study: Study) -> Findings:
    """Compute everything from a study's ratings."""
    judgements = study.judgements()
    if not judgements:
        raise WordwingError(f"{study.file}: nobody has rated anything yet")
    excluded = unclear_instructions(judgements)
    kept = without(judgements, excluded)
    systems = study.settings.systems
    groups = []
    for visibility in VISIBILITIES:
        own = seen(kept, visibility)
        groups.append(
            Group(
                visibility,
                len({judgement.instruction for judgement in own}),
                tuple(frequencies(own, systems)),
                tuple(compare(own, systems)),
                {key: ordinal_alpha(own, key) for key in KEYS},
            )
        )
    raters, finished = study.raters()
    return Findings(
        study.settings, tuple(judgements), study.instructions(), raters, finished, tuple(excluded), tuple(groups)
    )


def write_report(study: Study, out: Path) -> Findings:
    """Write everything into a folder, which only a report may be in; it is replaced."""
    check_replaceable(out, {JSON, MARKDOWN, SCORES, RATINGS, CHARTS}, JSON, "a study's report")
    found = find(study)
    with replacing_folder(out) as folder:
        (folder / JSON).write_text(found.to_json(), "utf-8")
        (folder / MARKDOWN).write_text("\n".join(render_table(table, "md") for table in tables(found)), "utf-8")
        (folder / SCORES).write_text(_scores_csv(found), "utf-8", newline="")
        (folder / RATINGS).write_text(_ratings_csv(found), "utf-8", newline="")
        (folder / CHARTS).mkdir()
        for group in found.groups:
            name = group.visibility.replace(" ", "-")
            _draw(folder / CHARTS / f"scores-{name}.svg", score_chart(group.scores, ("goal", "path")))
            _draw(folder / CHARTS / f"efficiency-{name}.svg", score_chart(group.scores, ("efficiency",)))
    return found


def tables(found: Findings) -> list[Table]:
    """The tables of a report."""
    made = [_overview(found), _score_table(found)]
    if len(found.settings.systems) > 1:
        made.append(_test_table(found))
    return [*made, _agreement_table(found), *_excluded_table(found)]


def _overview(found: Findings) -> Table:
    settings = found.settings
    origin = Origin(settings.corpus, settings.text, settings.split, settings.domain).title
    per_item = len(found.instructions) * len(settings.systems)
    rows = (
        ("flights", origin),
        ("systems", ", ".join(map(title, settings.systems))),
        ("instructions", f"{len(found.instructions)}, of which {len(found.excluded)} excluded as unclear"),
        ("items", f"{per_item}, each to be judged by {settings.raters}"),
        ("judgements", f"{len(found.judgements)} of {per_item * settings.raters}"),
        ("raters", f"{found.raters}, of whom {found.finished} have finished"),
    )
    facts = []
    if settings.text == "generated":
        facts.append("The instructions were written by a program, not by people.")
    if settings.domain == "lab":
        facts.append("The lab is a simulated stand-in for the physical drone and cage; no real drone flew.")
    return Table("study", "Human evaluation", tuple(facts), ("what", "how many"), (Section("", rows),))


def _score_table(found: Findings) -> Table:
    sections = []
    for group in found.groups:
        rows = [
            (
                f"{title(entry.system)}, {entry.key}",
                str(entry.n),
                "" if entry.mean is None else f"{entry.mean:.2f}",
                *(f"{100 * share:.1f}" if entry.n else "" for share in entry.shares),
            )
            for key in KEYS
            for entry in group.scores
            if entry.key == key
        ]
        sections.append(Section(_heading(group), tuple(rows)))
    notes = (
        "n: judgements; the other columns: how often each score was given, %.",
        "Instructions that a majority of all their judgements calls unclear are left out for all systems.",
        "Ahead: within 42° of the drone's heading at the start, which the paper calls visible.",
        "The paper does not report efficiency, since many workers took correct behavior for efficient behavior.",
    )
    columns = ("system, question", "n", "mean", *(str(score) for score in SCALE))
    return Table("scores", "Scores given by people", notes, columns, tuple(sections))


def _test_table(found: Findings) -> Table:
    sections = []
    for group in found.groups:
        rows = [
            (
                f"{title(entry.system)} and {title(entry.other)}, {entry.key}",
                str(entry.instructions),
                str(entry.differing),
                "" if entry.difference is None else f"{entry.difference:+.2f}",
                "" if entry.statistic is None else f"{entry.statistic:g}",
                _p(entry.p),
                _p(entry.corrected),
            )
            for entry in group.comparisons
        ]
        sections.append(Section(_heading(group), tuple(rows)))
    notes = (
        "Wilcoxon's signed-rank test, two-sided, on instructions' mean scores; differing: instructions whose means are "
        "not the same, which are all that it uses. difference: of the first system less the second.",
        "Corrected: by Holm's method over all tests of the same group of instructions.",
    )
    columns = ("systems, question", "instructions", "differing", "difference", "W", "p", "p, corrected")
    return Table("tests", "Differences between systems", notes, columns, tuple(sections))


def _agreement_table(found: Findings) -> Table:
    rows = [
        (GROUP_TITLES[group.visibility], *("" if alpha is None else f"{alpha:.3f}" for alpha in group.alpha.values()))
        for group in found.groups
    ]
    note = "Krippendorff's alpha for ordered scores: 1 is perfect agreement, 0 what chance would give."
    return Table("agreement", "Agreement of raters", (note,), ("instructions", *KEYS), (Section("", tuple(rows)),))


def _excluded_table(found: Findings) -> Iterable[Table]:
    if found.excluded:
        rows = tuple((name, found.instructions[name][0]) for name in found.excluded)
        yield Table("excluded", "Excluded as unclear", (), ("instruction", "text"), (Section("", rows),))


def _heading(group: Group) -> str:
    return f"{GROUP_TITLES[group.visibility]}, {group.instructions} of them"


def _p(value: float | None) -> str:
    return "" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _score_row(entry: Scores) -> dict[str, Any]:
    return {"system": entry.system, "question": entry.key, "n": entry.n, "mean": entry.mean, "counts": entry.counts}


def _scores_csv(found: Findings) -> str:
    rows = [
        (group.visibility, entry.system, entry.key, entry.n, "" if entry.mean is None else entry.mean, *entry.counts)
        for group in found.groups
        for entry in group.scores
    ]
    columns = ["goal", "system", "question", "n", "mean", *(f"score_{score}" for score in SCALE)]
    return csv_text(pd.DataFrame(rows, columns=columns))


def _ratings_csv(found: Findings) -> str:
    excluded = set(found.excluded)
    rows = [
        (*asdict(judgement).values(), found.instructions[judgement.instruction][1], judgement.instruction in excluded)
        for judgement in found.judgements
    ]
    columns = ["rater", "instruction", "system", *KEYS, "unclear", "goal_ahead", "seconds", "segments", "excluded"]
    flags = dict.fromkeys(("unclear", "goal_ahead", "excluded"), int)
    return csv_text(pd.DataFrame(rows, columns=columns).astype(flags))


def _draw(file: Path, svg: str | None) -> None:
    if svg is not None:
        file.write_text(svg, "utf-8")
