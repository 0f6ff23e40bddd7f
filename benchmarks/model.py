"""The cost of each part of the policy and of the authors' network, from lines of `wordwing bench model` on a CPU.

Usage: wordwing bench model > LINES; python benchmarks/model.py parts LINES > benchmarks/model-parts.jsonl
                                     python benchmarks/model.py rates LINES > benchmarks/model-cpu.jsonl
"""

import json
import re
import sys
from pathlib import Path

PARTS = {
    "text": r"text",
    "vision, of one domain": r"vision",
    "projection and accumulation": r"mapping",
    "grounding": r"grounding.*",
    "LingUNet: down": r"LingUNet down \d",
    "LingUNet: text kernels and filters": r"LingUNet (kernels \d|filters)",
    "LingUNet: up, H_2": r"LingUNet up 2",
    "LingUNet: up, all others": r"LingUNet up [1345]",
    "LingUNet: unobserved head": r"LingUNet head",
    "distributions": r"distributions",
    "turning the maps": r"ego view",
    "control": r"control",
}
"""Rows of the table, with patterns of the names of parts in the lines."""

AUTHORS = {
    "text": 124_400,
    "vision, of one domain": 111_872,
    "grounding": 4_896,
    "LingUNet: down": 192_500,
    "LingUNet: text kernels and filters": 352_512,
    "LingUNet: up, H_2": 756_224,
    "LingUNet: up, all others": 150_520,
    "LingUNet: unobserved head": 40_626,
    "control": 36_648,
}
"""Number of parameters in the authors' network."""


def main() -> None:
    """Print rows of one kind."""
    if len(sys.argv) != 3 or sys.argv[1] not in ("parts", "rates"):
        sys.exit(__doc__)
    kind, file = sys.argv[1:]
    rows = [json.loads(line) for line in Path(file).read_text("utf-8").splitlines()]
    if kind == "rates":
        kept = ("ms for a step, median", "forward contexts/s", "training contexts/s")
        chosen = [row for row in rows if row["figure"] in kept]
    else:
        chosen = [entry(rows, part, pattern) for part, pattern in PARTS.items()]
        chosen.append(total(chosen))
    for row in chosen:
        print(json.dumps(row, ensure_ascii=False))


def entry(rows: list[dict], part: str, pattern: str) -> dict:
    """One line of the table of parts."""

    def of(figure: str, lingunet: str, key: str = "value") -> float:
        mine = (row for row in rows if row["figure"] == figure and row["lingunet"] == lingunet)
        return sum(row[key] for row in mine if re.fullmatch(pattern, row.get("part", "")))

    work = "multiply-accumulates"
    return {
        "part": part,
        "parameters": of(work, "default", "parameters"),
        "wide": of(work, "wide", "parameters"),
        "authors'": AUTHORS.get(part, 0),
        "million multiply-accumulates": round(of(work, "default") / 1e6, 2),
        "wide ": round(of(work, "wide") / 1e6, 2),
        "% of a step's time": round(100 * of("share of a step", "default"), 1),
    }


def total(parts: list[dict]) -> dict:
    """The sum of all lines."""
    return {key: "all" if key == "part" else round(sum(row[key] for row in parts), 2) for key in parts[0]}


if __name__ == "__main__":
    main()
