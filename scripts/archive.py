"""Archive evaluations in results/: one compressed file, without people's sentences.

Usage: python scripts/archive.py OUT EVALUATION…

Takes the flights of several folders of `wordwing evaluate`, of one dataset, split and domain, and writes
OUT/episodes.jsonl.xz, which `wordwing report` reads as any other. Of instructions that people wrote only the id is
kept: the sentence is in the corpus.
"""

import json
import lzma
from pathlib import Path
from typing import Annotated

import tyro

from wordwing.errors import WordwingError
from wordwing.evaluation.report.labels import ordered
from wordwing.execution.episodes import EPISODES, find_episodes, parse_episode, read_lines
from wordwing.files import replacing


def main(out: Annotated[Path, tyro.conf.Positional], folders: Annotated[list[Path], tyro.conf.Positional], /) -> None:
    """Write the archive."""
    rows = [
        (parse_episode(line, where).provenance, json.loads(line))
        for folder in folders
        for where, line in read_lines(find_episodes(folder))
    ]
    origins = {(flight.corpus, flight.text, flight.split, flight.domain) for flight, _row in rows}
    if len(origins) != 1:
        raise WordwingError(f"the folders are of {len(origins)} datasets, splits and domains; archive one at a time")
    place = {name: number for number, name in enumerate(ordered(flight.system for flight, _row in rows))}
    rows.sort(key=lambda entry: (place[entry[0].system], entry[0].id))
    with (
        replacing(out / f"{EPISODES}.xz") as temporary,
        lzma.open(temporary, "wt", preset=9, encoding="utf-8") as lines,
    ):
        for flight, row in rows:
            row.pop("metrics", None)
            kept = row | {"instruction": None} if flight.text == "human" else row
            lines.write(json.dumps(kept, ensure_ascii=False, separators=(",", ":")) + "\n")
    size = (out / f"{EPISODES}.xz").stat().st_size
    print(f"{out / EPISODES}.xz: {len(rows):,} flights, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    tyro.cli(main)
