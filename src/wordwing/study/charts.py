"""Charts of a study's report: how often each score was given, as the paper draws it."""

from __future__ import annotations

from collections.abc import Sequence

from wordwing.evaluation.report.charts import likert_chart
from wordwing.evaluation.report.labels import title
from wordwing.study.questions import Key
from wordwing.study.statistics import Scores

_HEADINGS: dict[Key, str] = {"path": "path score", "goal": "goal score", "efficiency": "efficiency score"}


def score_chart(scores: Sequence[Scores], keys: Sequence[Key]) -> str | None:
    """People's scores of each system on some questions, as SVG; None where nobody was scored.

    Args:
        scores: Of systems in the order from top to bottom.
        keys: The questions, from left to right.
    """
    judged = [entry for entry in scores if entry.n]
    if not judged:
        return None
    panels = {
        f"{_HEADINGS[key]}, given by people": {
            f"{title(entry.system)}\nn = {entry.n}": entry.shares for entry in judged if entry.key == key
        }
        for key in keys
    }
    return likert_chart(panels, "% of judgements")
