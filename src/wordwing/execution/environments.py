"""Which environment a domain is: the one place where the simulator or the lab is chosen.

A drone on MAVLink is an environment too; `wordwing.flight` connects to it.
"""

import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from typing import Any

import torch

from wordwing.interface import Domain, Environment, Vehicle
from wordwing.sim.simulator import Simulator
from wordwing.world.tasks import Task


def build_environment(
    domain: Domain,
    tasks: Sequence[Task],
    *,
    seed: int = 0,
    device: torch.device | str = "cpu",
    draw: bool = True,
    reuse: bool = False,
) -> Environment:
    """Worlds for tasks [N] to be flown in; a `Vehicle` among them is not connected yet.

    Args:
        domain: "sim" for the batched simulator, "lab" for the lab, where N is 1.
        tasks: What will be flown.
        seed: Of gusts and noise in the lab.
        device: Where to simulate.
        draw: False leaves images of `sim` black, for policies that do not look.
        reuse: Take the simulator that flew as many tasks before; for callers that have one open at a time.
    """
    if domain == "sim":
        return (_simulator if reuse else Simulator)(len(tasks), device, draw=draw)
    from wordwing.lab.vehicle import LabVehicle  # MuJoCo takes seconds to import

    [task] = tasks
    return LabVehicle(task.layout, task.start_xy, task.start_yaw, seed=seed)


@contextmanager
def open_environment(domain: Domain, tasks: Sequence[Task], **options: Any) -> Iterator[Environment]:
    """`build_environment`, connected in the block."""
    environment = build_environment(domain, tasks, **options)
    with environment if isinstance(environment, Vehicle) else nullcontext():
        yield environment


_simulator = lru_cache(maxsize=2)(Simulator)


def flight_seed(seed: int, name: str) -> int:
    """What the lab of one flight is seeded by: the evaluation's seed and the instruction's id."""
    return zlib.crc32(f"{seed} {name}".encode())
