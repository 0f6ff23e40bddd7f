"""Commands that are interrupted while they work, as a terminal does it: all of their processes at once."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

SECONDS = 120.0
"""To wait for what should come soon, on a busy machine."""


class Running:
    """A process in a session of its own, whose output goes to files in a folder."""

    def __init__(self, arguments: list[str], folder: Path, stdin: int = subprocess.DEVNULL) -> None:
        self.out, self.err = folder / "stdout", folder / "stderr"
        with open(self.out, "wb") as out, open(self.err, "wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=stdin,
                stdout=out,
                stderr=err,
                start_new_session=True,
                preexec_fn=_listen_to_interrupts,
            )

    def wait_until(self, condition: Callable[[], object]) -> None:
        """Wait for a state that can be seen from outside."""
        wait_for(lambda: bool(condition()) or self.process.poll() is not None, SECONDS)
        assert self.process.poll() is None, f"it has ended: {self.said()}"
        assert condition(), f"it never came to that: {self.said()}"

    def wait_until_said(self, words: str) -> None:
        """Wait for words; it may end soon after them."""
        assert wait_for(lambda: self.says(words), SECONDS), self.said()

    def says(self, words: str) -> bool:
        """Whether it has said something."""
        return words in self.said()

    def said(self) -> str:
        """All that it has said."""
        return self.out.read_text() + self.err.read_text()

    def threads(self) -> int:
        """How many it has."""
        return len(_listed(f"/proc/{self.process.pid}/task"))

    def has_loaded(self, library: str) -> bool:
        """Whether a library of compiled code is in its memory."""
        try:
            return library in Path(f"/proc/{self.process.pid}/maps").read_text()
        except OSError:
            return False

    def reads(self, file: Path) -> bool:
        """Whether it has a file open."""
        folder = f"/proc/{self.process.pid}/fd"
        return any(_target(f"{folder}/{name}") == str(file) for name in _listed(folder))

    def members(self) -> list[str]:
        """Command lines of all living processes of its session."""
        found = []
        for name in filter(str.isdecimal, _listed("/proc")):
            try:
                # The name in brackets may hold anything; after it come the state, the parent, group and session.
                state, _parent, _group, session = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == self.process.pid and state != "Z":
                    found.append(Path(f"/proc/{name}/cmdline").read_bytes().replace(b"\0", b" ").decode())
            except (OSError, ValueError):
                continue
        return found

    def interrupt(self) -> None:
        """Ctrl-C."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self) -> str:
        """Wait for the end of all of its processes; returns what was said on stderr. It must have been interrupted."""
        assert wait_for(lambda: self.process.poll() is not None, SECONDS), f"Ctrl-C did not end it: {self.said()}"
        said = self.err.read_text()
        assert self.process.returncode == 130, said
        assert "Traceback" not in said
        assert wait_for(lambda: not self.members(), SECONDS), f"orphans are left: {self.members()}"
        return said

    def __enter__(self) -> "Running":
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def command(*arguments: str | Path) -> list[str]:
    """The command line of a wordwing command."""
    return ["-m", "wordwing", *map(str, arguments)]


def wait_for(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether something becomes true in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


def _listed(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _target(link: str) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _listen_to_interrupts() -> None:
    """Shells let what runs in the background ignore them, and so would its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
