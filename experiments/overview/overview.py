"""The table on the README's front page, as JSON lines: success, and instructions followed in full.

Usage: python experiments/overview/overview.py SYSTEM EVALUATION…     (folders with episodes.jsonl or episodes.jsonl.xz)
"""

import json
from pathlib import Path
from typing import Annotated

import tyro

from wordwing.evaluation.report.bootstrap import Estimate
from wordwing.evaluation.report.labels import title
from wordwing.evaluation.report.summary import summarise
from wordwing.evaluation.report.writing import measure_again, sort_folders
from wordwing.language.authors import author


def main(system: Annotated[str, tyro.conf.Positional], folders: Annotated[list[Path], tyro.conf.Positional], /) -> None:
    """Print a line for each corpus, split, domain and number of segments."""
    summary = summarise(measure_again(sort_folders(tuple(folders))))
    for origin in summary.origins:
        place = f"{origin.corpus}, {'unseen rooms' if origin.split == 'dev-unseen' else origin.domain}"
        for segments in summary.segments(origin):
            number = summary.estimate(origin, segments, system, "success").n
            row = {"world": place, "sentences by": author(origin.text).name, "segments": segments, "n": number}
            for metric in ("success", "followed"):
                for who in ("average", system, "oracle"):
                    if metric == "followed" or who != "oracle":
                        row[f"{metric}: {who if who == system else title(who)}"] = shown(
                            summary.estimate(origin, segments, who, metric), who == system
                        )
            print(json.dumps(row, ensure_ascii=False))


def shown(estimate: Estimate, interval: bool) -> str:
    """A percentage, with its interval if wanted; empty if it is unknown."""
    if estimate.mean is None:
        return ""
    assert estimate.low is not None
    assert estimate.high is not None
    between = f" ({100 * estimate.low:.0f}–{100 * estimate.high:.0f})" if interval else ""
    return f"{100 * estimate.mean:.0f} %{between}"


if __name__ == "__main__":
    tyro.cli(main)
