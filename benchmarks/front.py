"""The table on the README's front page, as JSON lines: how many flights succeed.

Usage: python benchmarks/front.py SYSTEM EVALUATION…     (folders with episodes.jsonl or episodes.jsonl.xz)
"""

import json
from pathlib import Path
from typing import Annotated

import tyro

from wordwing.evaluation.report.summary import Group, summarise
from wordwing.evaluation.report.writing import rescore, sorted_folders

WRITERS = {"generated": "a program", "human": "people"}


def main(system: Annotated[str, tyro.conf.Positional], folders: Annotated[list[Path], tyro.conf.Positional], /) -> None:
    """Print a line for each corpus, split, domain and number of segments."""
    summary = summarise(rescore(sorted_folders(tuple(folders))))
    for origin in summary.origins:
        place = f"{origin.corpus}, {'unseen rooms' if origin.split == 'dev-unseen' else origin.domain}"
        row: dict[str, str] = {"world": place, "sentences by": WRITERS[origin.text]}
        for segments in summary.segments(origin):
            shown = "one segment" if segments == 1 else "two segments"
            found = summary.figures[Group(origin, segments), system, "success"]
            average = summary.figures[Group(origin, segments), "average", "success"]
            row[f"{shown}: AVERAGE"] = f"{100 * average.mean:.0f} %"
            row[f"{shown}: {system}"] = f"{100 * found.mean:.0f} % ({100 * found.low:.0f}–{100 * found.high:.0f})"
            row[f"{shown}: n"] = str(found.n)
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    tyro.cli(main)
