"""SuReAL: Process A and Process B together (paper: Learning).

Process A sends stage-1 parameters to Process B, Process B sends rollouts to Process A. `train_synchronously` runs them
in turns in one process; on the CPU the same seed gives the same result to the last bit. `train` gives each its own
operating-system process.
"""

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Literal

import torch

from wordwing.interrupts import Deferred
from wordwing.learning.algorithm1 import ProcessA
from wordwing.learning.algorithm2 import ProcessB
from wordwing.learning.recipes.config import RunConfig
from wordwing.learning.recipes.initial import initial_vocabulary
from wordwing.learning.runtime.checkpoints import Tensors, is_saved, load_state, save_state
from wordwing.learning.runtime.display import Display
from wordwing.learning.runtime.messages import DirectLink, FolderLink, Heartbeat, Link, read_heartbeat
from wordwing.learning.runtime.processes import SAVING, run_processes, run_until_done
from wordwing.learning.runtime.runs import EXCHANGE, STATES, RunSettings
from wordwing.learning.runtime.worker import RunContext, Worker
from wordwing.learning.training_data import TrainingData, load_training_data, open_datasets
from wordwing.pool import check_parent


def train_synchronously(settings: RunSettings, config: RunConfig, until: Literal["warm", "end"] = "end") -> ProcessB:
    """Train in one process: `updates_per_iteration` updates of Process A for each iteration of Process B.

    Args:
        settings: Where and how.
        config: What.
        until: "warm" ends when Process B could begin, for stage 1 alone and for behaviour cloning.

    Returns:
        Process B, whose policy has been saved.
    """
    schedule, folder = config.schedule, settings.folder / STATES["both"]
    with Display(settings.folder.name) as display:
        interrupt = Deferred(partial(display.say, SAVING))
        given = _setup(settings, config, DirectLink(), interrupt, _starting(display))
        a, b = ProcessA(*given), ProcessB(*given)
        if is_saved(folder):
            tensors, counters = load_state(folder)
            a.restore(_part(tensors, "a."), counters["a"])
            b.restore(_part(tensors, "b."), counters["b"])
            display.say(f"resuming at update {a.steps}" + f", iteration {b.steps}" * (until == "end"))

        def step() -> bool:
            behind = a.supervised.updates < schedule.warm_up + schedule.updates_per_iteration * b.steps
            if a.warm and b.stage1_version < 0:
                a.send()
                b.pull_stage1()
            if not a.warm:
                a.step()
                if until == "end":
                    b.check_time()
            elif until == "warm":
                return False
            elif b.evaluation_due or not (behind or b.finished):
                b.step()
            elif behind:
                a.step()
            else:
                return False
            # Messages are not part of the state, so none may be under way when it is saved.
            a.merge()
            b.pull_stage1()
            return True

        def save() -> None:
            states = {"a": a.state(), "b": b.state()}
            tensors = {f"{name}.{key}": tensor for name, state in states.items() for key, tensor in state[0].items()}
            save_state(folder, tensors, {name: state[1] for name, state in states.items()})

        def show() -> None:
            if until == "end":
                display.show(a.status(), b.status())
            else:
                display.show({**a.status(), "phase": "finished", "total": 0} if a.warm else a.status(), None)

        run_until_done(step, save, show, schedule.save_seconds, interrupt)
        b.finish()
        return b


def train(settings: RunSettings, config: RunConfig) -> None:
    """Train in two processes; raises a `WordwingError` if one of them vanishes."""
    with Display(settings.folder.name) as display:
        open_datasets(config.data, _starting(display))  # built here, where it is done once
        targets = {"a": _process_a, "b": _process_b}
        run_processes(targets, settings.folder / EXCHANGE, display, settings, config)


def _process_a(heartbeat: Heartbeat, parent: int, settings: RunSettings, config: RunConfig) -> None:
    """Algorithm 1 in a process of its own, until Process B has finished."""
    stop = Deferred(number=signal.SIGTERM)
    a = ProcessA(*_setup_child(heartbeat, settings, config, stop))
    _resume(a, settings, "update")
    if a.warm:
        a.send()

    def step() -> bool:
        was_warm = a.warm
        a.step()
        if a.warm and not was_warm:
            a.send()  # launches Process B
        return (read_heartbeat(settings.folder / EXCHANGE, "b") or {}).get("phase") != "finished"

    def save() -> None:
        a.merge()
        save_state(settings.folder / STATES["a"], *a.state())

    run_until_done(step, save, partial(_beat, a, heartbeat, parent), config.schedule.save_seconds, stop)


def _process_b(heartbeat: Heartbeat, parent: int, settings: RunSettings, config: RunConfig) -> None:
    """Algorithm 2 in a process of its own, once Process A has sent parameters."""
    stop = Deferred(number=signal.SIGTERM)
    b = ProcessB(*_setup_child(heartbeat, settings, config, stop))
    _resume(b, settings, "iteration")

    def wait() -> bool:
        time.sleep(0.2)
        return not b.finished and not b.pull_stage1()

    def step() -> bool:
        b.step()
        return not b.finished

    def run(step: Callable[[], bool]) -> None:
        show = partial(_beat, b, heartbeat, parent)
        run_until_done(step, save, show, config.schedule.save_seconds, stop)

    def save() -> None:
        save_state(settings.folder / STATES["b"], *b.state())

    if not b.finished:
        b.prepare()
    if not b.finished and not b.pull_stage1():  # saved meanwhile, so that its time includes the warm-up when resumed
        run(wait)
    b.check_time()
    if not b.finished:
        run(step)
    heartbeat.beat(b.status(), force=True)  # Process A need not wait for the last evaluation
    b.finish()
    heartbeat.beat(b.status(), force=True)


def _setup(
    settings: RunSettings, config: RunConfig, link: Link, interrupt: Deferred, say: Callable[[str], None]
) -> tuple[RunContext, RunConfig, TrainingData]:
    """What a process is made from."""
    data = load_training_data(config.data, settings.device, say, initial_vocabulary(config))
    typed = settings.typed or f"wordwing train {settings.command}"
    context = RunContext(settings.folder, settings.device, link, settings.compiled, say, typed, interrupt.interruptible)
    return context, config, data


def _setup_child(
    heartbeat: Heartbeat, settings: RunSettings, config: RunConfig, stop: Deferred
) -> tuple[RunContext, RunConfig, TrainingData]:
    if settings.device.type == "cpu":  # two processes with two threads each would be in each other's way
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))

    def say(sentence: str) -> None:
        heartbeat.beat({"phase": "starting", "message": sentence}, force=True)

    return _setup(settings, config, FolderLink(settings.folder / EXCHANGE), stop, say)


def _resume(worker: Worker, settings: RunSettings, unit: str) -> None:
    folder = settings.folder / STATES[worker.name]
    if is_saved(folder):
        worker.restore(*load_state(folder))
        worker.context.say(f"resuming at {unit} {worker.steps}")


def _beat(worker: Worker, heartbeat: Heartbeat, parent: int) -> None:
    heartbeat.beat(worker.status())
    check_parent(parent)


def _starting(display: Display) -> Callable[[str], None]:
    """Shows what takes long before the processes can."""
    return lambda sentence: display.show({"phase": "starting", "message": sentence}, None)


def _part(tensors: Tensors, prefix: str) -> Tensors:
    return {key.removeprefix(prefix): value for key, value in tensors.items() if key.startswith(prefix)}
