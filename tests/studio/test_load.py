import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "studio_load.py"


@pytest.mark.long
def test_eight_visitors_fly_for_two_minutes_and_lose_nothing():
    done = subprocess.run([sys.executable, str(SCRIPT), "--seconds", "120"], capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    *visitors, total = rows
    assert len(visitors) == 8
    assert all(row["errors"] == [] for row in visitors)
    assert total["least decisions/s"] >= 1
    assert total["memory MiB, end"] < 2048
    assert total["memory MiB, end"] < 1.1 * total["memory MiB, middle"]  # steady


@pytest.mark.long
def test_one_visitor_gets_five_decisions_a_second():
    options = ["--seconds", "30", "--visitors", "1"]
    done = subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True, check=True)
    total = json.loads(done.stdout.splitlines()[-1])
    assert total["least decisions/s"] >= 5
