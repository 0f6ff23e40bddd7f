"""Draw the worlds in which writers invent the sentences of the yardstick `typed`, and make a folder for each writer.

Usage: python scripts/typed_sheets.py OUT [--seed N]

A sheet shows a world from above, the drone at a random start, what its camera sees and a picture of each landmark.
`worlds.jsonl` beside the folders has layouts and starts, with the SHA-256 of the sheets. For the default seed
`scripts/typed/replies.jsonl` has what language models, one for each profile, replied, verbatim, and `meanings.jsonl`
what it means, by hand: alternatives of clauses, and a path that does it.
"""

import argparse
import json
import math
from pathlib import Path

import numpy as np
import torch

from wordwing.data.schema import Segment
from wordwing.data.written import Profile
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout
from wordwing.world.samplers import sample_layout
from wordwing.world.tasks import StartPose, sample_task_in
from written_sheets import brief, from_above, png, reader_sheet, write_file, write_lines

HOME = Path(__file__).parent / "typed"

WORLDS: tuple[Corpus, ...] = ("cage", "field", "house")

EACH = 20
"""Sheets of every writer."""

MOST_THINGS = 5
"""To do, in one sentence."""


def start_in(layout: Layout, world: Corpus, rng: np.random.Generator) -> StartPose:
    """Where a walk of the world's rules begins, with any heading."""
    x, y = sample_task_in(layout, world, rng).start_xy
    return StartPose(x, y, float(rng.uniform(-math.pi, math.pi)))


def main() -> None:
    """Draw everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=27)
    options = parser.parse_args()
    torch.set_num_threads(1)
    rng = np.random.default_rng(options.seed)
    worlds: list[dict[str, object]] = []
    for row in json.loads((HOME / "profiles.json").read_text("utf-8")):
        profile = Profile(row.pop("id"), row.pop("split"), row)
        folder, form = options.out / profile.id, []
        for number in range(EACH):
            world = WORLDS[number % len(WORLDS)]
            layout = sample_layout(world, rng)
            start = start_in(layout, world, rng)
            sheet = f"{number + 1:03}.png"
            here = Segment("", (start.x, start.y), start.yaw, np.array([start[:2]]))
            digest = write_file(folder / sheet, png(reader_sheet(from_above(layout), layout, here)))
            form.append({"sheet": sheet, "things": int(rng.integers(MOST_THINGS)) + 1, "sentence": ""})
            worlds.append(
                {
                    "id": f"typed-{profile.id}-{number + 1:02}",
                    "split": profile.split,
                    "world": world,
                    "sha256": digest,
                    "start": list(start),
                    "layout": layout.to_document(),
                }
            )
        write_lines(folder / "reply.jsonl", form)
        write_file(folder / "brief.md", brief(profile, HOME / "visitors.md").encode())
    write_lines(options.out / "worlds.jsonl", worlds)
    print(f"{options.out}: {len(worlds)} worlds")


if __name__ == "__main__":
    main()
