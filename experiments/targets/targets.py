"""The targets of a policy in `sim`, and what it reached, as JSON lines.

Usage: python experiments/targets/targets.py SYSTEM EVALUATION…     (folders with episodes.jsonl or episodes.jsonl.xz)

Both are shares of the gap between AVERAGE and ORACLE that is closed, with 95 % intervals over layouts. The paper's own,
of its simulated test set, are 34 % (SR) and 58 % (EMD) for one segment, 27 % and 60 % for two.
"""

import json
from pathlib import Path
from typing import Annotated

import tyro

from wordwing.evaluation.report.summary import summarise
from wordwing.evaluation.report.writing import measure_again, sort_folders

GENERATED = {1: (75, 80), 2: (55, 72)}
TARGETS = {
    ("cage", "dev"): GENERATED,
    ("field", "dev"): GENERATED,
    ("house", "dev"): {1: (50, 70), 2: (35, 60)},
}
"""SR and EMD, per cent, by corpus, split and segments; set before training."""


def main(system: Annotated[str, tyro.conf.Positional], folders: Annotated[list[Path], tyro.conf.Positional], /) -> None:
    """Print a line for each corpus, split and number of segments."""
    summary = summarise(measure_again(sort_folders(tuple(folders))))
    for origin in summary.origins:
        if origin.domain != "sim":
            continue
        for segments in summary.segments(origin):
            row = {"corpus": origin.corpus, "sentences": origin.text, "split": origin.split, "segments": segments}
            meant = TARGETS.get((origin.corpus, origin.split), {}).get(segments)
            for place, (metric, name) in enumerate((("success", "SR"), ("emd", "EMD"))):
                closed = summary.estimate(origin, segments, system, metric, kind="gap closed")
                assert closed.mean is not None
                assert closed.low is not None
                assert closed.high is not None
                row["n"] = closed.n
                row[f"{name} closed, %"] = f"{100 * closed.mean:.0f} ({100 * closed.low:.0f}–{100 * closed.high:.0f})"
                if meant is not None:
                    row[f"{name} meant, %"] = meant[place]
                    row[f"{name} reached"] = "yes" if 100 * closed.mean >= meant[place] else "no"
            print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    tyro.cli(main)
