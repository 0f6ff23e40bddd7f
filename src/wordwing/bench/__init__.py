"""Measuring speed, and saying of what."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable

import torch


def device_title(device: torch.device, cores: int = 1) -> str:
    """What a person calls the device, of which `cores` are at work if it is a CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{'one core' if cores == 1 else f'{cores} cores'} of {_cpu_name()}"


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        return names[0]
    except (OSError, IndexError):
        return platform.processor() or "an unknown CPU"


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
