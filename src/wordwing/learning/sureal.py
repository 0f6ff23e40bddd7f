"""SuReAL: both processes at once (paper: Learning).

`train_synchronously` runs them in turns in one process, the same to the last bit for the same seed on the CPU.
`train` gives each its own operating-system process; this one watches them, and shows how far they are.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

import torch

from wordwing.errors import WordwingError
from wordwing.learning.config import RunConfig
from wordwing.learning.display import Display
from wordwing.learning.link import DirectLink, FolderLink, Pulse, read_pulse
from wordwing.learning.material import Material, Say, load_material, open_datasets
from wordwing.learning.process_a import ProcessA
from wordwing.learning.process_b import ProcessB
from wordwing.learning.processes import Place, Tensors
from wordwing.learning.runs import EXCHANGE, STATES, Settings, enough_memory
from wordwing.learning.starting import known_words
from wordwing.learning.state import is_saved, load_state, save_state

PATIENCE = 60.0
"""Seconds that Process A is given to end after Process B has; all that it could still save is not needed any more."""


def train_synchronously(settings: Settings, config: RunConfig, until: Literal["warm", "end"] = "end") -> ProcessB:
    """Learn in one process.

    Args:
        settings: Where and how.
        config: What.
        until: "warm" ends when Process B could begin, for stage 1 alone and for behaviour cloning.

    Returns:
        Process B, whose policy has been kept.
    """
    with Display(settings.folder.name) as display:
        say = _speaker(display)
        material = load_material(config.data, settings.device, say, known_words(config))
        place = Place(settings.folder, settings.device, DirectLink(), settings.compiled, say, settings.said)
        a, b = ProcessA(place, config, material), ProcessB(place, config, material)
        state = settings.folder / STATES["both"]
        if is_saved(state):
            tensors, meta = load_state(state)
            a.restore(_part(tensors, "a"), meta["a"])
            b.restore(_part(tensors, "b"), meta["b"])
        saved = time.monotonic()

        def save() -> None:
            nonlocal saved
            of_a, of_b = a.state(), b.state()
            tensors = {f"a.{name}": tensor for name, tensor in of_a[0].items()}
            tensors |= {f"b.{name}": tensor for name, tensor in of_b[0].items()}
            save_state(state, tensors, {"a": of_a[1], "b": of_b[1]})
            saved = time.monotonic()

        def between() -> None:
            if until == "end":
                display.show(a.pulse(), b.pulse())
            else:
                display.show({**a.pulse(), "phase": "finished", "total": 0} if a.warm else a.pulse(), None)
            if time.monotonic() - saved > config.schedule.save_seconds:
                save()

        while not a.warm:
            a.work()
            between()
            if until == "end":
                b.check_time()
        if b.heard < 0:
            a.send()
        if until == "warm":
            b.listen()
        while until == "end" and not b.finished:
            b.work()
            for _update in range(config.schedule.updates_each):
                a.work()
            # Messages are not part of the state, so none may be under way when it is saved.
            a.merge()
            b.listen()
            between()
        save()
        b.finish()
        return b


def train(settings: Settings, config: RunConfig) -> None:
    """Learn in two processes; raises a `WordwingError` if one of them vanishes."""
    exchange = settings.folder / EXCHANGE
    _clear(exchange)  # nobody may take what was sent in an earlier life for new
    context = multiprocessing.get_context("spawn")
    processes: dict[str, BaseProcess] = {
        name: context.Process(target=_live, args=(name, settings, config, os.getpid()), name=f"Process {name.upper()}")
        for name in ("a", "b")
    }
    with Display(settings.folder.name) as display:
        open_datasets(config.data, _speaker(display))  # built here, where it is done once
        try:
            for process in processes.values():
                process.start()
            _watch(processes, exchange, display)
        finally:
            _end(processes.values())
    _clear(exchange)


def _speaker(display: Display) -> Say:
    """Says what takes long before the processes can."""
    return lambda sentence: display.show({"phase": "starting", "message": sentence}, None)


def _clear(exchange: Path) -> None:
    """Remove messages and signs of life, and nothing that somebody else may have put beside them."""
    for pattern in ("parameters.*", "executed-*", "[ab].json", ".parameters-*", ".executed-*", ".[ab]-*"):
        for path in exchange.glob(pattern):
            with suppress(OSError):
                path.unlink()
    with suppress(OSError):
        exchange.rmdir()


def _end(processes: Iterable[BaseProcess]) -> None:
    """Make sure that no process is left."""
    begun = [process for process in processes if process.pid is not None]
    for process in begun:
        process.terminate()
    for process in begun:
        process.join(10)
        process.kill()
        process.join()


def _watch(processes: Mapping[str, BaseProcess], exchange: Path, display: Display) -> None:
    """Wait until both processes have ended well."""
    ended: float | None = None
    while True:
        alive = any(process.is_alive() for process in processes.values())
        display.show(read_pulse(exchange, "a"), read_pulse(exchange, "b"))
        for name, process in processes.items():
            if process.exitcode not in (None, 0):
                raise _vanished(name, process.exitcode or 0, exchange)
        if not alive:
            return
        if processes["b"].exitcode == 0:
            ended = ended or time.monotonic()
            if time.monotonic() - ended > PATIENCE:
                return
        time.sleep(0.25)


def _vanished(name: str, code: int, exchange: Path) -> WordwingError:
    """What to say when one of the processes is gone."""
    said = (read_pulse(exchange, name) or {}).get("error")
    if said:
        return WordwingError(str(said))
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    return WordwingError(f"Process {name.upper()} {how}; the same command goes on from the last checkpoint")


def _live(name: str, settings: Settings, config: RunConfig, parent: int) -> None:
    """The life of one process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends both
    signal.signal(signal.SIGTERM, _leave)
    _die_with(parent)
    if settings.device.type == "cpu":  # two processes with two threads each would be in each other's way
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))
    pulse = Pulse(settings.folder / EXCHANGE, name)
    try:
        with enough_memory():
            (_live_a if name == "a" else _live_b)(settings, config, pulse, parent)
    except WordwingError as error:
        pulse.beat({"phase": "failed", "error": str(error)}, force=True)
        raise SystemExit(2) from None


def _leave(*_: object) -> None:
    raise SystemExit(143)


def _die_with(parent: int) -> None:
    """Let the system end this process with its parent: an orphan would write into the folder of whoever comes next."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    _check_parent(parent)  # which may have ended before that, or on another system


def _check_parent(parent: int) -> None:
    if os.getppid() != parent:
        raise SystemExit(1)


def _live_a(settings: Settings, config: RunConfig, pulse: Pulse, parent: int) -> None:
    a = ProcessA(*_surroundings(settings, config, pulse))
    _restore(a, settings.folder / STATES["a"])
    if a.warm:
        a.send()

    def work() -> bool:
        was_warm = a.warm
        a.work()
        if a.warm and not was_warm:
            a.send()
        return (read_pulse(settings.folder / EXCHANGE, "b") or {}).get("phase") != "finished"

    _go_on(a, settings.folder / STATES["a"], config.schedule.save_seconds, pulse, parent, work)


def _live_b(settings: Settings, config: RunConfig, pulse: Pulse, parent: int) -> None:
    b = ProcessB(*_surroundings(settings, config, pulse))
    _restore(b, settings.folder / STATES["b"])

    def wait() -> bool:
        time.sleep(0.2)
        return not b.finished and not b.listen()

    def work() -> bool:
        b.work()
        return not b.finished

    go_on = partial(_go_on, b, settings.folder / STATES["b"], config.schedule.save_seconds, pulse, parent)
    if not b.finished and not b.listen():
        go_on(wait)  # saved meanwhile, or its clock would forget the warm-up of an earlier life
    b.check_time()
    if not b.finished:
        go_on(work)
    pulse.beat(b.pulse(), force=True)  # Process A need not wait for the last examination
    b.finish()
    pulse.beat(b.pulse(), force=True)


def _surroundings(settings: Settings, config: RunConfig, pulse: Pulse) -> tuple[Place, RunConfig, Material]:
    """What a process is born with."""

    def say(sentence: str) -> None:
        pulse.beat({"phase": "starting", "message": sentence}, force=True)

    material = load_material(config.data, settings.device, say, known_words(config))
    link = FolderLink(settings.folder / EXCHANGE)
    return Place(settings.folder, settings.device, link, settings.compiled, say, settings.said), config, material


def _restore(process: ProcessA | ProcessB, state: Path) -> None:
    """Make a process what it was when it was last saved."""
    if is_saved(state):
        process.restore(*load_state(state))


def _go_on(
    process: ProcessA | ProcessB, state: Path, save_seconds: float, pulse: Pulse, parent: int, work: Callable[[], bool]
) -> None:
    """Work until there is nothing left, and save now and then."""
    saved = time.monotonic()
    on = True
    while on:
        on = work()
        pulse.beat(process.pulse())
        _check_parent(parent)
        if not on or time.monotonic() - saved > save_seconds:
            save_state(state, *process.state())
            saved = time.monotonic()


def _part(tensors: Tensors, name: str) -> Tensors:
    return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
