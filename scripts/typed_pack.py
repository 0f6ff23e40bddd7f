"""Pack the yardstick `typed`: worlds, what was typed there, and what it means.

Usage: python scripts/typed_pack.py OUT

OUT is what `scripts/typed_sheets.py OUT` made. To the visitors' sentences (`typed/replies.jsonl` and `meanings.jsonl`
beside it) come the project's own (`typed/own.jsonl`), in the worlds where `experiments/own_sentences` flies them.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from wordwing.data.typed import PACKED, Typed, write_typed
from wordwing.data.written import Profile
from wordwing.files import read_lines
from wordwing.language.text_checks import sample_named_task
from wordwing.validation import parse

HOME = Path(__file__).parent / "typed"

OWN = Profile("own", "dev", {"person": "the developers of wordwing", "habits": "other words, word order and slips"})


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Of a file of JSON lines."""
    return map(json.loads, read_lines(path, 1_000_000))


def visitors() -> list[Profile]:
    """Those of `typed/profiles.json`."""
    found = json.loads((HOME / "profiles.json").read_text("utf-8"))
    return [Profile(row.pop("id"), row.pop("split"), row) for row in found]


def typed(worlds: Path) -> Iterator[Typed]:
    """What visitors typed."""
    replies = {row["id"]: row["sentence"] for row in rows(HOME / "replies.jsonl")}
    meanings = {row["id"]: row for row in rows(HOME / "meanings.jsonl")}
    for world in rows(worlds):
        name = world["id"]
        del world["split"]
        given = world | meanings[name] | {"visitor": name.split("-")[1], "sentence": replies[name]}
        yield parse(Typed, given, name)


def own() -> Iterator[Typed]:
    """The project's own sentences."""
    for number, row in enumerate(rows(HOME / "own.jsonl")):
        world, task = sample_named_task(row["sentence"], None, np.random.default_rng([0, number]))
        start = [*task.start_xy, task.start_yaw]
        given = row | {"visitor": OWN.id, "world": world, "layout": task.layout.to_document(), "start": start}
        yield parse(Typed, given, row["id"])


def main() -> None:
    """Write the packed file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    sentences = [*typed(options.out / "worlds.jsonl"), *own()]
    write_typed([*visitors(), OWN], sentences)
    print(f"{PACKED}: {len(sentences)} sentences, {PACKED.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
