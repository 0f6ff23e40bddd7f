"""Threads that fly: every decision of every visitor is one short piece of work in one queue."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch

T = TypeVar("T")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Workers:
    """A thread a core for decisions, and one thread for all that is prepared meanwhile.

    A visitor has at most one piece of work in the queue, which is first in, first out: so visitors take turns. What is
    prepared (random layouts, overhead pictures, unknown words) waits in a queue of its own and holds up no flight.
    """

    def __init__(self, count: int | None = None) -> None:
        self.count = count or cores()
        # One thread of torch's each: eight visitors on two cores get as many decisions as with two, and the last bits
        # of a flight do not depend on how many cores there are.
        alone = partial(torch.set_num_threads, 1)
        self._flying = ThreadPoolExecutor(self.count, "studio-fly", alone)
        self._preparing = ThreadPoolExecutor(1, "studio-prepare", alone)

    async def fly(self, work: Callable[[], T]) -> T:
        """Do a piece of work of a flight."""
        return await asyncio.get_running_loop().run_in_executor(self._flying, work)

    async def prepare(self, work: Callable[[], T]) -> T:
        """Do anything else."""
        return await asyncio.get_running_loop().run_in_executor(self._preparing, work)

    def close(self) -> None:
        """Finish what is being done and drop the rest."""
        for pool in (self._flying, self._preparing):
            pool.shutdown(wait=False, cancel_futures=True)
