"""Ctrl-C, whatever a process is doing just then."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from interrupting import Running, command

LINE = "wordwing: interrupted\n"

COMPILED = """
ready()
hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)  # half an hour without a look at signals
"""

DEAF = """
Path("working").touch()
while True:
    try:
        time.sleep(60)
    except BaseException:
        pass
"""

WRITING = """
from wordwing.files import replacing, replacing_folder
with replacing("file.json") as file, replacing_folder("folder") as folder:
    (folder / "part").touch()
    ready()
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""

PARENT = """
import subprocess
subprocess.Popen(["sleep", "600"])
with interrupts.blocked():
    subprocess.Popen(["sleep", "600"])
ready()
hashlib.pbkdf2_hmac("sha256", b"", b"", 2**31 - 1)
"""

SAVING = """
with interrupts.Deferred(lambda: print("saving", flush=True)) as interrupt:
    try:
        with interrupt.interruptible():
            ready()
            time.sleep(600)
    except KeyboardInterrupt:
        assert interrupt.came
    while os.path.exists("working"):
        time.sleep(0.01)
    os.mkdir("saved")
    raise KeyboardInterrupt
"""

ENDING = """
import atexit
def linger():
    import deaf
atexit.register(linger)
"""

SCRIPT = """
import hashlib, os, sys, time
from pathlib import Path
from wordwing import interrupts

def ready():
    Path("working").touch()

def work():
{work}

with interrupts.answered():
    try:
        work()
    except KeyboardInterrupt:
        interrupts.announce()
        sys.exit(interrupts.STATUS)
"""


def started(work: str, folder: Path) -> Running:
    """A process that does some work, once it does."""
    (folder / "deaf.py").write_text(f"import time\nfrom pathlib import Path\n{DEAF}")
    source = folder / "script.py"
    source.write_text(SCRIPT.format(work="\n".join(f"    {line}" for line in work.splitlines())))
    before = os.getcwd()
    os.chdir(folder)
    try:
        running = Running([str(source)], folder)
    finally:
        os.chdir(before)
    running.wait_until((folder / "working").exists)
    return running


WORK = {
    "sleeping": "ready()\ntime.sleep(600)",
    "compiled code": COMPILED,
    "catching everything": DEAF,
    "importing": "import deaf",
    "having children": PARENT,
    "ending": ENDING,
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK.keys())
def test_it_ends_with_one_line_whatever_a_process_does(work, tmp_path):
    with started(work, tmp_path) as running:
        running.interrupt()
        assert running.end() == LINE


def test_what_is_being_written_is_removed(tmp_path):
    with started(WRITING, tmp_path) as running:
        running.interrupt()
        assert running.end() == LINE
    assert {path.name for path in tmp_path.iterdir()} == {"script.py", "deaf.py", "working", "stdout", "stderr"}


def test_who_defers_it_is_not_ended_before_the_work_is_done(tmp_path):
    with started(SAVING, tmp_path) as running:
        running.interrupt()
        running.wait_until(lambda: running.says("saving"))
        (tmp_path / "working").unlink()
        assert running.end() == LINE
    assert (tmp_path / "saved").exists()


def test_who_defers_it_is_ended_by_a_second_one(tmp_path):
    with started(SAVING, tmp_path) as running:
        running.interrupt()
        running.wait_until(lambda: running.says("saving"))
        running.interrupt()
        assert running.end() == LINE
    assert not (tmp_path / "saved").exists()


def test_what_is_started_in_the_background_of_a_shell_ignores_it(tmp_path):
    """POSIX lets a shell without job control start what ends in & so that Ctrl-C is for others."""
    source = SCRIPT.format(work='    os.kill(os.getpid(), 2)\n    print("goes on")')
    done = subprocess.run(
        [sys.executable, "-c", source],
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "goes on\n", "")


@pytest.mark.parametrize("moment", ["first import", "torch"])
def test_a_command_that_is_still_importing_ends_with_one_line(moment, tmp_path):
    with Running(command("fly", "go", "--out", tmp_path / "out"), tmp_path) as running:
        if moment == "first import":
            running.wait_until(lambda: running.threads() > 1)  # the second one waits for Ctrl-C
        else:
            running.wait_until(lambda: running.has_loaded("libtorch_cpu"))
        running.interrupt()
        assert running.end() == LINE
    assert not (tmp_path / "out").exists()
