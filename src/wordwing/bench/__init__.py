"""Speed: one JSON line for each figure, with the conditions under which it was measured."""

import json
import time
from collections.abc import Callable
from typing import Any

import torch


def report(figure: str, value: float | None = None, **conditions: Any) -> None:
    """Print a figure; without a value it was skipped, and a condition says why."""
    row = {"figure": figure, **({} if value is None else {"value": value}), **conditions}
    print(json.dumps(row), flush=True)


def synchronize(device: torch.device) -> None:
    """Wait until a device has done what it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def rate_of(call: Callable[[], object], seconds: float, device: torch.device, warm_up: int = 1) -> float:
    """Calls a second, after some to warm up."""
    for _call in range(warm_up):
        call()
    synchronize(device)
    start, calls = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        call()
        calls += 1
        if calls % 8 == 0:
            synchronize(device)  # or thousands of launches would queue up behind the clock
    synchronize(device)
    return calls / (time.perf_counter() - start)
