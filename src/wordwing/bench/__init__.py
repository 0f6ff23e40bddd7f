"""Measuring speed, and saying of what."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


def rate_of(call: Callable[[], object], seconds: float, device: torch.device, warm_up: int = 1) -> float:
    """Calls a second, after some to warm up."""

    def wait() -> None:
        if device.type == "cuda":
            torch.cuda.synchronize(device)

    for _call in range(warm_up):
        call()
    wait()
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        call()
        calls += 1
        if calls % 8 == 0:
            wait()  # or thousands of launches would queue up behind the clock
    wait()
    return calls / (time.perf_counter() - start)
