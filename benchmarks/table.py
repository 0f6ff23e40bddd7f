"""Turn JSON lines of `wordwing bench` and of the scripts here into Markdown tables.

Usage: python benchmarks/table.py FILE.jsonl…
"""

import json
import sys
from pathlib import Path


def rows_of(file: Path) -> list[dict]:
    """All figures of a file that were measured."""
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    return [row for row in rows if "value" in row]


def number(value: float) -> str:
    """Three figures that matter, with thousands apart."""
    if value >= 1000:
        return f"{round(value, -(len(str(int(value))) - 3)):,.0f}"
    return f"{value:.3g}"


def table(rows: list[dict]) -> str:
    """One Markdown table; what all rows share stands above it."""
    keys = list(dict.fromkeys(key for row in rows for key in row))
    shared = {key for key in keys if all(key in row and row[key] == rows[0][key] for row in rows)} - {"figure", "value"}
    head = ", ".join(f"{key.replace('_', ' ')} {rows[0][key]}" for key in keys if key in shared)
    own = [key for key in keys if key not in shared and key not in ("figure", "value")]
    lines = [f"{head}:" if head else "", "", f"| figure | {' | '.join(own)} | value |", "| --- " * (len(own) + 2) + "|"]
    for row in rows:
        cells = [str(row.get(key, "")).replace("True", "yes").replace("False", "no") for key in own]
        lines.append(f"| {row['figure']} | {' | '.join(cells)} | {number(row['value'])} |")
    return "\n".join(lines).strip()


if __name__ == "__main__":
    print("\n\n".join(table(rows_of(Path(name))) for name in sys.argv[1:]))
