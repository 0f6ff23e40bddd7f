"""How work is carried out: saved now and then and when interrupted, in this process or in child processes."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from wordwing.errors import WordwingError
from wordwing.interrupts import Deferred, blocked
from wordwing.learning.runtime.display import Display
from wordwing.learning.runtime.messages import Heartbeat, clear_exchange, read_heartbeat
from wordwing.learning.runtime.runs import enough_memory
from wordwing.pool import die_with

PATIENCE = 60.0
"""Seconds that Process A is given to end after Process B has, and each of them to save after Ctrl-C."""

SAVING = "saving what has been learned; Ctrl-C again ends at once, without it"


def run_until_done(
    step: Callable[[], bool],
    save: Callable[[], None],
    show: Callable[[], None],
    save_seconds: float,
    interrupt: Deferred,
) -> None:
    """Work until there is nothing left; save now and then, and when interrupted.

    Args:
        step: Does the next piece of work; returns whether there is more. Everything can be saved between two pieces.
        save: Writes a checkpoint.
        show: Shows how far it is.
        save_seconds: Between two checkpoints.
        interrupt: Ends it early, with KeyboardInterrupt.
    """
    saved = time.monotonic()

    def work() -> bool:
        nonlocal saved
        more = step()
        show()
        if time.monotonic() - saved > save_seconds:
            save()
            saved = time.monotonic()
        return more

    more = work()  # which may take minutes to compile; until then there is nothing to save
    with interrupt:
        while more:
            try:
                more = work()
            except KeyboardInterrupt:
                if not interrupt.came:
                    raise
            if interrupt.came:
                save()
                raise KeyboardInterrupt
        save()


def run_processes(targets: Mapping[str, Callable[..., None]], exchange: Path, display: Display, *given: Any) -> None:
    """Run Process A and Process B as children to their end; raises a `WordwingError` if one of them vanishes.

    Args:
        targets: "a" and "b": functions of a heartbeat, this process's id and `given`, found in their modules by name.
        exchange: Folder of messages and heartbeats.
        display: Shows how far they are.
        given: Can be pickled.
    """
    clear_exchange(exchange)  # stale messages of a previous run must not be taken for new ones
    context = multiprocessing.get_context("spawn")
    processes: dict[str, BaseProcess] = {
        name: context.Process(target=_child, args=(name, target, exchange, os.getpid(), *given))
        for name, target in targets.items()
    }
    try:
        with Deferred(partial(display.say, SAVING)) as interrupt:
            with blocked():
                for process in processes.values():
                    process.start()
            _watch(processes, exchange, display, interrupt)
    finally:
        _end(processes.values())
    clear_exchange(exchange)


def _watch(
    processes: Mapping[str, BaseProcess], exchange: Path, display: Display, interrupt: Deferred | None = None
) -> None:
    """Wait until both processes have ended well, or have saved everything because of Ctrl-C."""
    ended: float | None = None
    while True:
        alive = any(process.is_alive() for process in processes.values())
        display.show(read_heartbeat(exchange, "a"), read_heartbeat(exchange, "b"))
        for name, process in processes.items():
            if process.exitcode not in (None, 0):
                raise _vanished(name, process.exitcode or 0, exchange)
        if not alive:
            return
        if interrupt is not None and interrupt.came:
            for name in ("b", "a"):  # so that Process A has all that Process B has sent
                processes[name].terminate()
                processes[name].join(PATIENCE)
            raise KeyboardInterrupt
        if processes["b"].exitcode == 0:
            ended = ended or time.monotonic()
            if time.monotonic() - ended > PATIENCE:
                return
        time.sleep(0.25)


def _vanished(name: str, code: int, exchange: Path) -> WordwingError:
    """Why one of the processes is gone: its own error, if it left one."""
    error = (read_heartbeat(exchange, name) or {}).get("error")
    if error:
        return WordwingError(str(error))
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    return WordwingError(f"Process {name.upper()} {how}; the same command resumes from the last checkpoint")


def _end(processes: Iterable[BaseProcess]) -> None:
    """Make sure that no process is left."""
    started = [process for process in processes if process.pid is not None]
    for process in started:
        process.terminate()
    for process in started:
        process.join(10)
        process.kill()
        process.join()


def _child(name: str, target: Callable[..., None], exchange: Path, parent: int, *given: Any) -> None:
    """What one child process does; Ctrl-C does not reach it, its parent's SIGTERM does."""

    def leave(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)
    die_with(parent)
    heartbeat = Heartbeat(exchange, name)
    try:
        with enough_memory():
            target(heartbeat, parent, *given)
    except WordwingError as error:
        heartbeat.beat({"phase": "failed", "error": str(error)}, force=True)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGTERM) from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing is left to be done
