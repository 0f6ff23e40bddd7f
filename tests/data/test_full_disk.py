"""A disk that fills up while corpora are built, at one place after another."""

import json
import subprocess
import sys

import pytest

ON_SMALL_DISKS = """
import functools, json, subprocess, sys
from pathlib import Path
from wordwing.cli import main
from wordwing.data import corpora
from wordwing.data.dataset import Dataset

corpora.make = functools.cache(corpora.make)  # what is written is the same each time
disk = Path(sys.argv[1])
for kilobytes in map(int, sys.argv[2:]):
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", disk], check=True)
    status = 0
    try:
        main(["data", "build", "--corpora", "cage", "errands", "--share", "0.001", "--processes", "1",
              "--out", str(disk / "corpora")])
    except SystemExit as stop:
        status = stop.code
    built = sorted((disk / "corpora").iterdir()) if (disk / "corpora").exists() else []
    for folder in built:
        Dataset(folder).validate()
    print(json.dumps({"status": status, "built": [folder.name for folder in built]}), file=sys.stderr)
    subprocess.run(["umount", disk], check=True)
"""


@pytest.mark.long
def test_a_build_ends_with_a_sentence_and_leaves_whole_corpora_only(tmp_path):
    sizes = [4, 8, 12, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96, 112, 128, 400]
    disk = tmp_path / "disk"
    disk.mkdir()
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*alone, "mount", "-t", "tmpfs", "tmpfs", str(disk)], capture_output=True).returncode:
        pytest.skip("this system lets nobody mount a small disk")
    done = subprocess.run(
        [*alone, sys.executable, "-c", ON_SMALL_DISKS, str(disk), *map(str, sizes)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    said = [line for line in lines if line.startswith("wordwing: ")]
    assert len(found) == len(sizes)
    assert len(found) + len(said) == len(lines), "nothing else was said"
    for row in found:
        assert (row["status"] == 0) == (len(row["built"]) == 2)
    assert len(said) == sum(row["status"] == 2 for row in found)
    assert all(line.endswith(": the disk is full; nothing was changed") for line in said)
    counts = [len(row["built"]) for row in found]
    assert counts == sorted(counts)
    assert set(counts) == {0, 1, 2}
