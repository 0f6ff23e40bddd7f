"""Archive evaluations in results/: one compressed file, without people's sentences.

Usage: python scripts/archive.py OUT EVALUATION…

Takes the flights of several folders of `wordwing evaluate`, of one dataset, split and domain, and writes
OUT/episodes.jsonl.xz, which `wordwing report` reads as any other. Of instructions that people wrote only the id is
kept: the sentence is in the corpus.
"""

import json
import lzma
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import tyro

from wordwing.errors import WordwingError
from wordwing.evaluation.episodes import EPISODES, find_episodes, read_episodes
from wordwing.evaluation.report.labels import ordered
from wordwing.files import replacing


def main(out: Annotated[Path, tyro.conf.Positional], folders: Annotated[list[Path], tyro.conf.Positional], /) -> None:
    """Write the archive."""
    episodes = list(read_episodes([find_episodes(folder) for folder in folders]))
    origins = {(episode.corpus, episode.text, episode.split, episode.domain) for episode in episodes}
    if len(origins) != 1:
        raise WordwingError(f"the folders are of {len(origins)} datasets, splits and domains; archive one at a time")
    place = {name: number for number, name in enumerate(ordered(episode.system for episode in episodes))}
    episodes.sort(key=lambda episode: (place[episode.system], episode.id))
    with (
        replacing(out / f"{EPISODES}.xz") as temporary,
        lzma.open(temporary, "wt", preset=9, encoding="utf-8") as lines,
    ):
        for episode in episodes:
            kept = replace(episode, instruction=None) if episode.text == "human" else episode
            lines.write(json.dumps(kept.to_json(), ensure_ascii=False, separators=(",", ":")) + "\n")
    size = (out / f"{EPISODES}.xz").stat().st_size
    print(f"{out / EPISODES}.xz: {len(episodes):,} flights, {size / 1e6:.2f} MB")


if __name__ == "__main__":
    tyro.cli(main)
