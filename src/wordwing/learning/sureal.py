"""SuReAL: both processes at once (paper: Learning).

`train_synchronously` runs them in turns in one process, the same to the last bit for the same seed on the CPU.
`train` gives each its own operating-system process; this one watches them, and shows how far they are.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from wordwing.errors import WordwingError
from wordwing.files import replacing
from wordwing.learning.config import RunConfig
from wordwing.learning.display import Display
from wordwing.learning.link import DirectLink, FolderLink, Pulse, read_pulse
from wordwing.learning.material import load_material
from wordwing.learning.processes import Place, ProcessA, ProcessB
from wordwing.learning.state import is_saved, load_state, save_state

EXCHANGE, RUN = "exchange", "run.json"
STATES = {"both": "state", "a": "state-a", "b": "state-b"}
"""Folders of the states of a run."""

PATIENCE = 60.0
"""Seconds that Process A is given to end after Process B has."""


@dataclass(frozen=True)
class Settings:
    """Where a run is and how it is carried out; nothing of this changes what it learns."""

    folder: Path
    device: torch.device
    compiled: bool = False
    threads: int | None = None
    """Of the CPU, for each process."""


def keep_config(folder: Path, config: RunConfig) -> None:
    """Write `run.json`, or complain that the folder holds another run."""
    path = folder / RUN
    wanted = config.to_json()
    if path.exists():
        try:
            found = json.loads(path.read_text("utf-8"))
        except (OSError, ValueError):
            raise WordwingError(f"{path}: this cannot be read; a new run needs another --out") from None
        if found != wanted:
            name = _difference(found, wanted)
            raise WordwingError(
                f"{folder}: another run is kept there, which differs in {name}; "
                "give its options to go on with it, or another --out for a new one"
            )
        return
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(wanted, indent=2) + "\n", "utf-8")


def train_synchronously(settings: Settings, config: RunConfig, until: str = "end") -> ProcessB | ProcessA:
    """Learn in one process.

    Args:
        settings: Where and how.
        config: What.
        until: "warm" ends when Process B could begin, for stage 1 alone and for behaviour cloning.

    Returns:
        The process that has the policy.
    """
    keep_config(settings.folder, config)
    with Display(settings.folder.name) as display:
        said: dict[str, Any] = {}

        def say(sentence: str) -> None:
            said["message"] = sentence
            display.show({"phase": "starting", **said}, None)

        material = load_material(config.data, settings.device, say)
        place = Place(settings.folder, settings.device, DirectLink(), settings.compiled, say)
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
            display.show(a.pulse(), b.pulse() if until == "end" else None)
            if time.monotonic() - saved > config.schedule.save_seconds:
                save()

        while not a.warm:
            a.work()
            between()
        if until == "warm":
            save()
            b.network.load_state_dict(a.network.state_dict())
            b.heard = a.teacher.updates
            return b
        if b.heard < 0:
            a.send()
        while not b.finished:
            b.work()
            for _update in range(config.schedule.updates_each):
                a.work()
            a.merge()
            between()
        save()
        b.keep("policy", {name: value for name, value in b.figures.items() if name.startswith("dev/")})
        return b


def train(settings: Settings, config: RunConfig) -> None:
    """Learn in two processes."""
    keep_config(settings.folder, config)
    exchange = settings.folder / EXCHANGE
    context = multiprocessing.get_context("spawn")
    processes = {
        name: context.Process(target=_live, args=(name, settings, config, os.getpid()), name=f"Process {name.upper()}")
        for name in ("a", "b")
    }
    for name in processes:
        (exchange / f"{name}.json").unlink(missing_ok=True)
    for process in processes.values():
        process.start()
    try:
        with Display(settings.folder.name) as display:
            ended: float | None = None
            while any(process.is_alive() for process in processes.values()):
                display.show(read_pulse(exchange, "a"), read_pulse(exchange, "b"))
                time.sleep(0.25)
                for name, process in processes.items():
                    if not process.is_alive() and process.exitcode != 0:
                        raise _vanished(name, process.exitcode, settings.folder)
                if not processes["b"].is_alive():
                    ended = ended or time.monotonic()
                    if time.monotonic() - ended > PATIENCE:
                        raise WordwingError("Process A did not end after Process B had; its last checkpoint is there")
            display.show(read_pulse(exchange, "a"), read_pulse(exchange, "b"))
        for name, process in processes.items():
            if process.exitcode != 0:
                raise _vanished(name, process.exitcode, settings.folder)
    finally:
        for process in processes.values():
            if process.is_alive():
                process.terminate()
        for process in processes.values():
            process.join(10)
            if process.is_alive():
                process.kill()


def _vanished(name: str, code: int | None, folder: Path) -> WordwingError:
    """What to say when one of the processes is gone."""
    said = (read_pulse(folder / EXCHANGE, name) or {}).get("error")
    if said:
        return WordwingError(str(said))
    how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with status {code}"
    return WordwingError(f"Process {name.upper()} {how}; the same command goes on from the last checkpoint")


def _live(name: str, settings: Settings, config: RunConfig, parent: int) -> None:
    """The life of one process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent, which ends both
    signal.signal(signal.SIGTERM, _leave)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    pulse = Pulse(settings.folder / EXCHANGE, name)
    try:
        (_live_a if name == "a" else _live_b)(settings, config, pulse, parent)
    except WordwingError as error:
        pulse.beat({"phase": "failed", "error": str(error)}, force=True)
        raise SystemExit(2) from None
    except torch.OutOfMemoryError:
        pulse.beat({"phase": "failed", "error": "the device's memory is too small; take smaller batches"}, force=True)
        raise SystemExit(2) from None


def _leave(*_: object) -> None:
    raise SystemExit(143)


def _live_a(settings: Settings, config: RunConfig, pulse: Pulse, parent: int) -> None:
    a = _born("a", ProcessA, settings, config, pulse)
    assert isinstance(a, ProcessA)
    if a.warm:
        a.send()

    def work() -> bool:
        was_warm = a.warm
        a.work()
        if a.warm and not was_warm:
            a.send()
        other = read_pulse(settings.folder / EXCHANGE, "b") if a.warm else None
        return (other or {}).get("phase") != "finished"

    _go_on(a, "a", settings, config, pulse, parent, work)


def _live_b(settings: Settings, config: RunConfig, pulse: Pulse, parent: int) -> None:
    b = _born("b", ProcessB, settings, config, pulse)
    assert isinstance(b, ProcessB)
    while not b.listen():
        pulse.beat(b.pulse())
        time.sleep(0.2)
        if os.getppid() != parent:
            raise SystemExit(1)

    def work() -> bool:
        b.work()
        return not b.finished

    if not b.finished:
        _go_on(b, "b", settings, config, pulse, parent, work)
    b.keep("policy", {name: value for name, value in b.figures.items() if name.startswith("dev/")})
    pulse.beat(b.pulse(), force=True)


def _born(
    name: str, kind: Callable[..., ProcessA | ProcessB], settings: Settings, config: RunConfig, pulse: Pulse
) -> ProcessA | ProcessB:
    """A process, as it was when it was last saved."""

    def say(sentence: str) -> None:
        pulse.beat({"phase": "starting", "message": sentence}, force=True)

    material = load_material(config.data, settings.device, say)
    link = FolderLink(settings.folder / EXCHANGE)
    process = kind(Place(settings.folder, settings.device, link, settings.compiled, say), config, material)
    state = settings.folder / STATES[name]
    if is_saved(state):
        process.restore(*load_state(state))
    return process


def _go_on(
    process: ProcessA | ProcessB,
    name: str,
    settings: Settings,
    config: RunConfig,
    pulse: Pulse,
    parent: int,
    work: Callable[[], bool],
) -> None:
    """Work until there is nothing left, and save now and then; without a parent nobody would ever end it."""
    state = settings.folder / STATES[name]
    saved = time.monotonic()
    on = True
    while on:
        on = work()
        pulse.beat(process.pulse())
        if os.getppid() != parent:
            raise SystemExit(1)
        if not on or time.monotonic() - saved > config.schedule.save_seconds:
            save_state(state, *process.state())
            saved = time.monotonic()


def _part(tensors: dict[str, torch.Tensor], name: str) -> dict[str, torch.Tensor]:
    return {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}


def _difference(found: Any, wanted: Any, name: str = "") -> str:
    """The first setting that two runs do not share, as its option is called."""
    if isinstance(found, dict) and isinstance(wanted, dict):
        for key in wanted:
            if found.get(key) != wanted[key]:
                return _difference(found.get(key), wanted[key], f"{name}.{key}" if name else key)
    return name or "its settings"
