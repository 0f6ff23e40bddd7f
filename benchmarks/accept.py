"""The tables of docs/flight.md from what `wordwing flight accept` has written.

Usage: python benchmarks/accept.py out/accept    writes accept-ardupilot.jsonl and accept-px4.jsonl beside itself
"""

import json
import sys
from pathlib import Path

from wordwing.flight.bridge.accept.running import summarise

for file in sorted(Path(sys.argv[1]).glob("*.jsonl")):
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in summarise(rows))
    Path(__file__).with_name(f"accept-{file.name}").write_text(text, "utf-8")
