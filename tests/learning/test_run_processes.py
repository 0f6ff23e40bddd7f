"""What becomes of a run when its processes end, are killed, fail or are interrupted: real ones, that do nothing."""

import io
import multiprocessing
import os
import signal
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from wordwing.errors import WordwingError
from wordwing.interrupts import Deferred
from wordwing.learning.runtime import processes as module
from wordwing.learning.runtime.display import Display
from wordwing.learning.runtime.messages import Heartbeat

WELL, FAILS, LINGERS = (sys.exit, (0,)), (os._exit, (3,)), (time.sleep, (60,))


class Run:
    """Two processes and the one that watches them."""

    def __init__(self, exchange: Path, **work) -> None:
        self.exchange = exchange
        context = multiprocessing.get_context("spawn")
        self.processes = {name: context.Process(target=target, args=args) for name, (target, args) in work.items()}
        for process in self.processes.values():
            process.start()

    def watch(self, interrupt: Deferred | None = None) -> None:
        display = Display("run", Console(file=io.StringIO()))
        try:
            module._watch(self.processes, self.exchange, display, interrupt)
        finally:
            module._end(self.processes.values())
        assert not any(process.is_alive() for process in self.processes.values())


def test_a_run_ends_when_both_processes_have(tmp_path):
    Run(tmp_path, a=WELL, b=WELL).watch()


def test_a_process_that_fails_or_is_killed_ends_the_run_and_is_named(tmp_path):
    with pytest.raises(WordwingError, match="Process A ended with status 3; the same command resumes"):
        Run(tmp_path, a=FAILS, b=LINGERS).watch()
    killed = Run(tmp_path, a=LINGERS, b=LINGERS)
    killed.processes["b"].kill()
    with pytest.raises(WordwingError, match="Process B was killed by SIGKILL"):
        killed.watch()
    Heartbeat(tmp_path, "a").beat({"phase": "failed", "error": "the disk is full"}, force=True)
    with pytest.raises(WordwingError, match=r"^the disk is full$"):
        Run(tmp_path, a=FAILS, b=LINGERS).watch()


def test_process_a_is_not_waited_for_without_end_once_b_has_finished(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.1)
    Run(tmp_path, a=LINGERS, b=WELL).watch()


def test_ctrl_c_ends_both(tmp_path):
    said = []
    with Deferred(partial(said.append, "saving")) as interrupt:
        run = Run(tmp_path, a=LINGERS, b=LINGERS)
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            run.watch(interrupt)
    assert said == ["saving"]
