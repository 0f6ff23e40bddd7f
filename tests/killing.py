"""Child processes that are killed while they work."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

ZYGOTE = """
import ctypes, os, signal, sys

def say(text):
    os.write(1, f"{{text}}\\n".encode())

{setup}

def work():
{work}

for _line in sys.stdin:
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: it does not outlive its parent
        try:
            work()
        finally:
            os._exit(1)
    say(f"child {{child}}")
    say(f"ended {{os.waitpid(child, 0)[1]}}")
"""
"""Forks a child for each line that it is sent: importing torch takes seconds, and is done once."""


class Victims:
    """Children that all do the same work, one after the other."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout

    def kill_one_after(self, seconds: float, said: int = 1) -> list[str]:
        """Start a child and kill it so long after it has said so many lines; returns all lines that it said."""
        self._stdin.write("\n")
        self._stdin.flush()
        lines: list[str] = []
        child, killed = 0, False
        while True:
            line = self._stdout.readline().rstrip("\n")
            word, _, rest = line.partition(" ")
            if word == "child":
                child = int(rest)
            elif word == "ended":
                assert os.WTERMSIG(int(rest)) == signal.SIGKILL, "it ended by itself"
                return lines
            else:
                assert word, "the children's parent has died"
                lines.append(line)
            if child and len(lines) >= said and not killed:
                time.sleep(seconds)
                os.kill(child, signal.SIGKILL)
                killed = True


@contextmanager
def victims(setup: str, work: str) -> Iterator[Victims]:
    """Children for as long as the block lasts.

    Args:
        setup: Source of what is done once, before any child: imports.
        work: Source of what each child does until it is killed; `say(text)` sends a line to the test.
    """
    indented = "\n".join(f"    {line}" for line in work.strip("\n").splitlines())
    source = ZYGOTE.format(setup=setup, work=indented)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # where the test's own modules are, too
    process = subprocess.Popen(
        [sys.executable, "-c", source], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        yield Victims(process)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
