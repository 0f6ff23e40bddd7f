"""SuReAL: both processes at once (paper: Learning).

`train_synchronously` runs them in turns in one process, the same to the last bit for the same seed on the CPU.
`train` gives each its own operating-system process; this one watches them, and shows how far they are.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Literal

import torch

from wordwing.errors import WordwingError
from wordwing.interrupts import Deferred, blocked
from wordwing.learning.process_a import ProcessA
from wordwing.learning.process_b import ProcessB
from wordwing.learning.runtime.checkpoints import is_saved, load_state, save_state
from wordwing.learning.runtime.config import RunConfig
from wordwing.learning.runtime.display import Display
from wordwing.learning.runtime.messages import DirectLink, FolderLink, Pulse, read_pulse
from wordwing.learning.runtime.processes import Place, Tensors
from wordwing.learning.runtime.runs import EXCHANGE, STATES, Settings, enough_memory
from wordwing.learning.runtime.starting import known_words
from wordwing.learning.training_data import Material, Say, load_material, open_datasets
from wordwing.pool import check_parent, die_with

PATIENCE = 60.0
"""Seconds that Process A is given to end after Process B has, and each of them to save after Ctrl-C."""

SAVING = "saving what has been learned; Ctrl-C again ends at once, without it"


def train_synchronously(settings: Settings, config: RunConfig, until: Literal["warm", "end"] = "end") -> ProcessB:
    """Learn in one process.

    Args:
        settings: Where and how.
        config: What.
        until: "warm" ends when Process B could begin, for stage 1 alone and for behaviour cloning.

    Returns:
        Process B, whose policy has been kept.
    """
    schedule, folder = config.schedule, settings.folder / STATES["both"]
    with Display(settings.folder.name) as display:
        say = _speaker(display)
        interrupt = Deferred(partial(display.say, SAVING))
        material = load_material(config.data, settings.device, say, known_words(config))
        place = Place(
            settings.folder, settings.device, DirectLink(), settings.compiled, say, settings.said, interrupt.breakable
        )
        a, b = ProcessA(place, config, material), ProcessB(place, config, material)
        if is_saved(folder):
            tensors, meta = load_state(folder)
            a.restore(_part(tensors, "a"), meta["a"])
            b.restore(_part(tensors, "b"), meta["b"])
            display.say(f"resuming at update {a.steps}" + f", iteration {b.teacher.iterations}" * (until == "end"))

        def save() -> None:
            of_a, of_b = a.state(), b.state()
            tensors = {f"a.{name}": tensor for name, tensor in of_a[0].items()}
            tensors |= {f"b.{name}": tensor for name, tensor in of_b[0].items()}
            save_state(folder, tensors, {"a": of_a[1], "b": of_b[1]})

        def work() -> bool:
            behind = a.teacher.updates < schedule.warm_up + schedule.updates_each * b.teacher.iterations
            if not a.warm:
                a.work()
                if until == "end":
                    b.check_time()
            elif until == "warm":
                if b.heard < 0:
                    a.send()
                    b.listen()
                return False
            elif b.examination_due or not (behind or b.finished):
                if b.heard < 0:
                    a.send()
                b.work()
            elif behind:
                a.work()
            else:
                return False
            # Messages are not part of the state, so none may be under way when it is saved.
            a.merge()
            b.listen()
            return True

        def show() -> None:
            if until == "end":
                display.show(a.pulse(), b.pulse())
            else:
                display.show({**a.pulse(), "phase": "finished", "total": 0} if a.warm else a.pulse(), None)

        _go_on(work, save, show, schedule.save_seconds, interrupt)
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
            with Deferred(partial(display.say, SAVING)) as interrupt:
                with blocked():
                    for process in processes.values():
                        process.start()
                _watch(processes, exchange, display, interrupt)
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


def _watch(
    processes: Mapping[str, BaseProcess], exchange: Path, display: Display, interrupt: Deferred | None = None
) -> None:
    """Wait until both processes have ended well, or have saved all because of Ctrl-C."""
    ended: float | None = None
    while True:
        alive = any(process.is_alive() for process in processes.values())
        display.show(read_pulse(exchange, "a"), read_pulse(exchange, "b"))
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
    """What to say when one of the processes is gone."""
    said = (read_pulse(exchange, name) or {}).get("error")
    if said:
        return WordwingError(str(said))
    how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    return WordwingError(f"Process {name.upper()} {how}; the same command goes on from the last checkpoint")


def _live(name: str, settings: Settings, config: RunConfig, parent: int) -> None:
    """The life of one process, which Ctrl-C does not reach; SIGTERM of its parent does."""
    signal.signal(signal.SIGTERM, _leave)
    die_with(parent)
    if settings.device.type == "cpu":  # two processes with two threads each would be in each other's way
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))
    pulse = Pulse(settings.folder / EXCHANGE, name)
    try:
        with enough_memory():
            (_live_a if name == "a" else _live_b)(settings, config, pulse, parent)
    except WordwingError as error:
        pulse.beat({"phase": "failed", "error": str(error)}, force=True)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGTERM) from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nothing is left to be done


def _leave(*_: object) -> None:
    raise SystemExit(128 + signal.SIGTERM)


def _live_a(settings: Settings, config: RunConfig, pulse: Pulse, parent: int) -> None:
    stop = Deferred(number=signal.SIGTERM)
    a = ProcessA(*_surroundings(settings, config, pulse, stop))
    state = settings.folder / STATES["a"]
    if is_saved(state):
        a.restore(*load_state(state))
        a.place.say(f"resuming at update {a.steps}")
    if a.warm:
        a.send()

    def work() -> bool:
        was_warm = a.warm
        a.work()
        if a.warm and not was_warm:
            a.send()
        return (read_pulse(settings.folder / EXCHANGE, "b") or {}).get("phase") != "finished"

    def save() -> None:
        a.merge()
        save_state(state, *a.state())

    def show() -> None:
        pulse.beat(a.pulse())
        check_parent(parent)

    _go_on(work, save, show, config.schedule.save_seconds, stop)


def _live_b(settings: Settings, config: RunConfig, pulse: Pulse, parent: int) -> None:
    stop = Deferred(number=signal.SIGTERM)
    b = ProcessB(*_surroundings(settings, config, pulse, stop))
    state = settings.folder / STATES["b"]
    if is_saved(state):
        b.restore(*load_state(state))
        b.place.say(f"resuming at iteration {b.teacher.iterations}")

    def wait() -> bool:
        time.sleep(0.2)
        return not b.finished and not b.listen()

    def work() -> bool:
        b.work()
        return not b.finished

    def save() -> None:
        save_state(state, *b.state())

    def show() -> None:
        pulse.beat(b.pulse())
        check_parent(parent)

    if not b.finished and not b.listen():  # saved meanwhile, or its clock would forget the warm-up of an earlier life
        _go_on(wait, save, show, config.schedule.save_seconds, stop)
    b.check_time()
    if not b.finished:
        _go_on(work, save, show, config.schedule.save_seconds, stop)
    pulse.beat(b.pulse(), force=True)  # Process A need not wait for the last examination
    b.finish()
    pulse.beat(b.pulse(), force=True)


def _surroundings(
    settings: Settings, config: RunConfig, pulse: Pulse, stop: Deferred
) -> tuple[Place, RunConfig, Material]:
    """What a process is born with."""

    def say(sentence: str) -> None:
        pulse.beat({"phase": "starting", "message": sentence}, force=True)

    material = load_material(config.data, settings.device, say, known_words(config))
    link = FolderLink(settings.folder / EXCHANGE)
    place = Place(settings.folder, settings.device, link, settings.compiled, say, settings.said, stop.breakable)
    return place, config, material


def _go_on(
    work: Callable[[], bool],
    save: Callable[[], None],
    show: Callable[[], None],
    save_seconds: float,
    interrupt: Deferred,
) -> None:
    """Work until there is nothing left, and save now and then, and when it is interrupted.

    Args:
        work: Does the next piece; returns whether there is more. All can be saved between two pieces.
        save: Writes a checkpoint.
        show: Tells how far it is.
        save_seconds: Between two checkpoints.
        interrupt: What ends it early, with KeyboardInterrupt.
    """
    saved = time.monotonic()

    def step() -> bool:
        nonlocal saved
        more = work()
        show()
        if time.monotonic() - saved > save_seconds:
            save()
            saved = time.monotonic()
        return more

    on = step()  # which may take minutes to compile; until then there is nothing to save
    with interrupt:
        while on:
            try:
                on = step()
            except KeyboardInterrupt:
                if not interrupt.came:
                    raise
            if interrupt.came:
                save()
                raise KeyboardInterrupt
        save()


def _part(tensors: Tensors, name: str) -> Tensors:
    return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
