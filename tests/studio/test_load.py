import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "studio_load.py"


def loaded(*options):
    done = subprocess.run([sys.executable, str(SCRIPT), *options], capture_output=True, text=True, check=True)
    *visitors, total = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [error for row in visitors for error in row["errors"]] == []
    assert total["memory MiB, most"] < 2048
    return visitors, total


@pytest.mark.long
def test_eight_visitors_fly_for_two_minutes_and_lose_nothing():
    visitors, total = loaded("--seconds", "120")
    assert len(visitors) == 8
    assert all(row["layouts"] > 1 for row in visitors)
    assert total["least decisions/s"] >= 1
    # One picture kept of each decision would be 100 MiB in the second minute at 60 decisions a second.
    assert total["memory MiB, end"] < total["memory MiB, middle"] + 24


@pytest.mark.long
def test_memory_is_steady_in_the_lab():
    _visitors, total = loaded("--seconds", "120", "--vehicle", "lab")
    # A lab takes 8 MiB, and each visitor builds several; those of old layouts wait for the garbage collector.
    assert total["memory MiB, end"] < total["memory MiB, middle"] + 64


@pytest.mark.long
def test_one_visitor_gets_five_decisions_a_second():
    _visitors, total = loaded("--seconds", "30", "--visitors", "1")
    assert total["least decisions/s"] >= 5
