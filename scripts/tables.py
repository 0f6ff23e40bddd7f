"""Turn JSON lines of `wordwing bench` and of the scripts here into Markdown tables.

Usage: python scripts/tables.py FILE.jsonl…     prints tables
       python scripts/tables.py DOCUMENT.md…    fills in tables at <!-- table FILE.jsonl -->,
                                                  and those of `wordwing report` at <!-- report NAME FOLDER… -->
"""

import json
import re
import sys
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent


def rows_of(file: Path) -> list[dict]:
    """All rows of a file: measured figures, or rows of another table."""
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip()]
    return [row for row in rows if "value" in row or "figure" not in row]


def number(value: float) -> str:
    """Three significant digits, with thousands separators."""
    if value >= 1000:
        return f"{round(value, -(len(str(int(value))) - 3)):,.0f}"
    return f"{value:.3g}"


def cell(value: object) -> str:
    """One cell, formatted for reading."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " to ".join(number(entry) for entry in value)
    return f"{value:,.0f}" if isinstance(value, float) and value >= 1000 else str(value)


def plain(value: object) -> str:
    """A cell as it is, with thousands separators."""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def table(rows: list[dict]) -> str:
    """One Markdown table, below the columns that all figures share. Rows that are not figures keep their columns."""
    if "figure" not in rows[0]:
        keys = list(dict.fromkeys(key for row in rows for key in row))
        lines = ["| " + " | ".join(keys) + " |", "| --- " * len(keys) + "|"]
        return "\n".join(lines + ["| " + " | ".join(plain(row.get(key, "")) for key in keys) + " |" for row in rows])
    keys = list(dict.fromkeys(key for row in rows for key in row))
    shared = {key for key in keys if all(key in row and row[key] == rows[0][key] for row in rows)} - {"figure", "value"}
    head = ", ".join(f"{key.replace('_', ' ')} {cell(rows[0][key])}" for key in keys if key in shared)
    own = [key for key in keys if key not in shared and key not in ("figure", "value")]
    titles = " | ".join(key.replace("_", " ") for key in own)
    lines = [f"{head}:" if head else "", "", f"| figure | {titles} | value |", "| --- " * (len(own) + 2) + "|"]
    for row in rows:
        cells = " | ".join(cell(row.get(key, "")) for key in own)
        lines.append(f"| {row['figure']} | {cells} | {number(row['value'])} |")
    return "\n".join(lines).strip()


@cache
def reported(folders: str) -> dict[str, str]:
    """Tables of `wordwing report` on some folders, by name."""
    from wordwing.evaluation.report.results import report_tables
    from wordwing.evaluation.report.summary import summarise
    from wordwing.evaluation.report.tables import render_table
    from wordwing.evaluation.report.writing import measure_again, sort_folders

    flights = measure_again(sort_folders([ROOT / folder for folder in folders.split()]))
    return {entry.name: render_table(entry, "md") for entry in report_tables(summarise(flights))}


def fill(document: str, reports: bool = True) -> str:
    """A document with all its tables filled in; without `reports`, which are slow, those stay as they are."""

    def filled(found: re.Match[str]) -> str:
        return f"<!-- table {found[1]} -->\n{table(rows_of(ROOT / found[1]))}\n<!-- end -->"

    def filled_report(found: re.Match[str]) -> str:
        return f"<!-- report {found[1]} {found[2]} -->\n{reported(found[2])[found[1]].strip()}\n<!-- end -->"

    document = re.sub(r"<!-- table (\S+) -->\n.*?<!-- end -->", filled, document, flags=re.DOTALL)
    if not reports:
        return document
    return re.sub(r"<!-- report (\S+) (\S.*?) -->\n.*?<!-- end -->", filled_report, document, flags=re.DOTALL)


def main() -> None:
    """Print tables, or fill documents."""
    for name in map(Path, sys.argv[1:]):
        if name.suffix == ".md":
            name.write_text(fill(name.read_text("utf-8")), "utf-8")
        else:
            print(table(rows_of(name)) + "\n")


if __name__ == "__main__":
    main()
