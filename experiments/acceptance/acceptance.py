"""Summarise what `wordwing flight accept` has written, as JSON lines for the tables of docs/flight.md.

Usage: python experiments/acceptance/acceptance.py out/accept     writes ardupilot.jsonl and px4.jsonl beside itself
"""

import json
import sys
from pathlib import Path

from wordwing.flight.bridge.accept.running import read_results, summarise


def main() -> None:
    """Summarise each autopilot's file."""
    for file in sorted(Path(sys.argv[1]).glob("*.jsonl")):
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in summarise(read_results(file)))
        Path(__file__).with_name(file.name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
