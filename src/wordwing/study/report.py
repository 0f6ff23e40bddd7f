"""A study's report: what people said, as JSON, tables and charts.

report.json                everything
tables.md scores.csv       scores, tests and agreement; scores again for other programs
ratings.csv                every judgement; raters are numbers
charts/*.svg               how often each score was given
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from wordwing.errors import WordwingError
from wordwing.evaluation.report.charts import likert_chart
from wordwing.evaluation.report.labels import Origin, title
from wordwing.evaluation.report.tables import Section, Table, csv_text, render_table
from wordwing.files import check_replaceable, replacing_folder
from wordwing.language.authors import author
from wordwing.release import VERSION
from wordwing.study.database import StudySettings
from wordwing.study.questions import KEYS, SCALE, Key, Rating
from wordwing.study.statistics import (
    VISIBILITIES,
    Comparison,
    Visibility,
    compare,
    frequencies,
    ordinal_alpha,
    unclear_instructions,
    with_visibility,
)
from wordwing.study.store import Study

JSON, MARKDOWN, SCORES, RATINGS, CHARTS = "report.json", "tables.md", "scores.csv", "ratings.csv", "charts"

SCHEMA = 1
"""Version of report.json."""

CHARTED: dict[str, tuple[Key, ...]] = {"scores": ("goal", "path"), "efficiency": ("efficiency",)}
"""Questions of each kind of chart."""

GROUP_TITLES: dict[Visibility, str] = {
    "all": "all instructions",
    "ahead": "goal ahead at the start",
    "not ahead": "goal not ahead at the start",
}


@dataclass(frozen=True)
class RatedGroup:
    """What was found for some of the instructions."""

    visibility: Visibility
    instructions: int
    scores: pd.DataFrame
    """A row for each (system, question): how often each score from 1 to 5 was given, their number n, and the mean."""
    comparisons: tuple[Comparison, ...]
    alpha: dict[Key, float | None]

    @property
    def title(self) -> str:
        """What stands above its rows."""
        return f"{GROUP_TITLES[self.visibility]}, {self.instructions} of them"


@dataclass(frozen=True)
class Findings:
    """All that a report says."""

    settings: StudySettings
    ratings: pd.DataFrame
    """All, also those of excluded instructions: columns of `Rating`."""
    instructions: dict[str, tuple[str, int]]
    """Text and segments of each, by id."""
    raters: int
    finished: int
    excluded: tuple[str, ...]
    groups: tuple[RatedGroup, ...]

    def to_json(self) -> str:
        """The text of report.json."""
        document = {
            "schema": SCHEMA,
            "wordwing": VERSION,
            "study": {
                **{key: value for key, value in asdict(self.settings).items() if key != "salt"},
                "instructions": len(self.instructions),
                "items": len(self.instructions) * len(self.settings.systems),
            },
            "ratings": len(self.ratings),
            "raters": self.raters,
            "raters_finished": self.finished,
            "excluded": [{"id": name, "text": self.instructions[name][0]} for name in self.excluded],
            "groups": {
                group.visibility: {
                    "instructions": group.instructions,
                    "scores": [
                        {"system": system, "question": key, "n": int(n), "mean": mean if n else None, "counts": counts}
                        for (system, key), *counts, n, mean in group.scores.itertuples()
                    ],
                    "comparisons": [asdict(entry) for entry in group.comparisons],
                    "ordinal_alpha": group.alpha,
                }
                for group in self.groups
            },
        }
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def find(study: Study) -> Findings:
    """Compute everything from a study's ratings."""
    ratings = pd.DataFrame(study.ratings(), columns=Rating._fields)
    if ratings.empty:
        raise WordwingError(f"{study.file}: nobody has rated anything yet")
    excluded = unclear_instructions(ratings)
    kept = ratings[~ratings["instruction"].isin(excluded)]
    systems = study.settings.systems
    groups = []
    for visibility in VISIBILITIES:
        own = with_visibility(kept, visibility)
        counts = frequencies(own, systems)
        n = counts.sum(axis=1)
        scores = counts.assign(n=n, mean=counts @ SCALE / n)
        alpha = {key: ordinal_alpha(own, key) for key in KEYS}
        instructions = own["instruction"].nunique()
        groups.append(RatedGroup(visibility, instructions, scores, tuple(compare(own, systems)), alpha))
    raters, finished = study.raters()
    return Findings(study.settings, ratings, study.instructions(), raters, finished, tuple(excluded), tuple(groups))


def write_report(study: Study, out: Path) -> Findings:
    """Write everything into a folder, which only a report may be in; it is replaced."""
    check_replaceable(out, {JSON, MARKDOWN, SCORES, RATINGS, CHARTS}, JSON, "a study's report")
    found = find(study)
    texts = {
        JSON: found.to_json(),
        MARKDOWN: "\n".join(render_table(table, "md") for table in tables(found)),
        SCORES: _scores_csv(found),
        RATINGS: _ratings_csv(found),
    }
    texts |= {
        f"{CHARTS}/{kind}-{group.visibility.replace(' ', '-')}.svg": score_chart(group.scores, keys)
        for group in found.groups
        for kind, keys in CHARTED.items()
        if group.instructions
    }
    with replacing_folder(out) as folder:
        (folder / CHARTS).mkdir()
        for name, text in texts.items():
            (folder / name).write_text(text, "utf-8", newline="")
    return found


def score_chart(scores: pd.DataFrame, keys: tuple[Key, ...]) -> str:
    """People's scores of each system on some questions as SVG, drawn as the paper does.

    Args:
        scores: Of `RatedGroup`, systems from top to bottom.
        keys: The questions, from left to right.
    """
    judged = scores[scores["n"] > 0]
    panels = {
        f"{key} score, given by people": {
            f"{title(system)}\nn = {row['n']:.0f}": row[list(SCALE)].to_numpy() / row["n"]
            for system, row in judged.xs(key, level=1).iterrows()
        }
        for key in keys
    }
    return likert_chart(panels, "% of judgements")


def tables(found: Findings) -> list[Table]:
    """The tables of a report."""
    excluded = Section("", tuple((name, found.instructions[name][0]) for name in found.excluded))
    return [
        _overview(found),
        _score_table(found),
        *([_test_table(found)] if len(found.settings.systems) > 1 else []),
        _agreement_table(found),
        *[Table("excluded", "Excluded as unclear", (), ("instruction", "text"), (excluded,))] * bool(excluded.rows),
    ]


def _overview(found: Findings) -> Table:
    settings = found.settings
    per_item = len(found.instructions) * len(settings.systems)
    rows = (
        ("flights", Origin.of(settings).title),
        ("systems", ", ".join(map(title, settings.systems))),
        ("instructions", f"{len(found.instructions)}, of which {len(found.excluded)} excluded as unclear"),
        ("items", f"{per_item}, each to be judged by {settings.raters}"),
        ("judgements", f"{len(found.ratings)} of {per_item * settings.raters}"),
        ("raters", f"{found.raters}, of whom {found.finished} have finished"),
    )
    note = author(settings.text).note
    stand_in = "The lab is a simulated stand-in for the physical drone and cage; no real drone flew."
    notes = (*[f"The instructions were {note}."] * bool(note), *[stand_in] * (settings.domain == "lab"))
    return Table("study", "Human evaluation", notes, ("what", "how many"), (Section("", rows),))


def _score_table(found: Findings) -> Table:
    def rows(group: RatedGroup) -> Iterator[tuple[str, ...]]:
        by_question = group.scores.sort_index(level=1, key=lambda keys: keys.map(KEYS.index), sort_remaining=False)
        for (system, key), *counts, n, mean in by_question.itertuples():
            shares = [f"{100 * count / n:.1f}" if n else "" for count in counts]
            yield f"{title(system)}, {key}", f"{n:.0f}", f"{mean:.2f}" if n else "", *shares

    notes = (
        "n: judgements; the other columns: how often each score was given, %.",
        "Instructions that a majority of all their judgements calls unclear are left out for all systems.",
        "Ahead: within 42° of the drone's heading at the start, which the paper calls visible.",
        "The paper does not report efficiency, since many workers took correct behavior for efficient behavior.",
    )
    columns = ("system, question", "n", "mean", *(str(score) for score in SCALE))
    return Table(
        "scores",
        "Scores given by people",
        notes,
        columns,
        tuple(Section(group.title, tuple(rows(group))) for group in found.groups),
    )


def _test_table(found: Findings) -> Table:
    def row(entry: Comparison) -> tuple[str, ...]:
        return (
            f"{title(entry.system)} and {title(entry.other)}, {entry.key}",
            str(entry.instructions),
            str(entry.differing),
            "" if entry.difference is None else f"{entry.difference:+.2f}",
            "" if entry.statistic is None else f"{entry.statistic:g}",
            _p(entry.p),
            _p(entry.corrected),
        )

    notes = (
        "Wilcoxon's signed-rank test, two-sided, on instructions' mean scores; differing: instructions whose means are "
        "not the same, which are all that it uses. difference: of the first system less the second.",
        "Corrected: by Holm's method over all tests of the same group of instructions.",
    )
    columns = ("systems, question", "instructions", "differing", "difference", "W", "p", "p, corrected")
    sections = tuple(Section(group.title, tuple(map(row, group.comparisons))) for group in found.groups)
    return Table("tests", "Differences between systems", notes, columns, sections)


def _agreement_table(found: Findings) -> Table:
    rows = [
        (GROUP_TITLES[group.visibility], *("" if alpha is None else f"{alpha:.3f}" for alpha in group.alpha.values()))
        for group in found.groups
    ]
    note = "Krippendorff's alpha for ordered scores: 1 is perfect agreement, 0 what chance would give."
    return Table("agreement", "Agreement of raters", (note,), ("instructions", *KEYS), (Section("", tuple(rows)),))


def _p(value: float | None) -> str:
    return "" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _scores_csv(found: Findings) -> str:
    scores = pd.concat({group.visibility: group.scores for group in found.groups}, names=["goal", "system", "question"])
    columns = {score: f"score_{score}" for score in SCALE}
    return csv_text(scores[["n", "mean", *SCALE]].rename(columns=columns).reset_index())


def _ratings_csv(found: Findings) -> str:
    ratings = found.ratings.assign(
        segments=[found.instructions[name][1] for name in found.ratings["instruction"]],
        excluded=found.ratings["instruction"].isin(found.excluded),
    )
    return csv_text(ratings.astype(dict.fromkeys(("unclear", "goal_ahead", "excluded"), int)))
