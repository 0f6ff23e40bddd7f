"""Where to compute."""

import platform
import warnings
from collections.abc import Callable
from typing import Any

import torch

from wordwing.errors import WordwingError


def precision(device: torch.device) -> torch.autocast:
    """In the block networks compute in bf16 on CUDA, in single precision on the CPU."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def compile_once(function: Callable[..., Any], mode: str | None = None) -> Callable[..., Any]:
    """The function as torch compiles it for the shapes of its first call; the compiler keeps its advice to itself."""
    warnings.filterwarnings("ignore", category=UserWarning, module=r"torch\._(dynamo|inductor)")
    return torch.compile(function, fullgraph=True, dynamic=False, mode=mode)


def find_device(name: torch.device | str = "") -> torch.device:
    """A device that wordwing can run on, with its number; by default CUDA where there is one."""
    try:
        device = torch.device(name or ("cuda" if torch.cuda.is_available() else "cpu"))
    except RuntimeError:
        raise WordwingError(f'no device is called "{name}"; "cpu" and "cuda" are') from None
    if device.type not in ("cpu", "cuda"):
        raise WordwingError(f'wordwing runs on "cpu" and "cuda", not on "{name}"')
    if device.type == "cuda" and not torch.cuda.is_available():
        raise WordwingError('this machine has no CUDA device that torch can use; take "cpu"')
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise WordwingError(f'there is no "{name}"; the last CUDA device is "cuda:{torch.cuda.device_count() - 1}"')
    return torch.empty(0, device=device).device  # "cuda" becomes "cuda:0"


def device_title(device: torch.device, cores: int = 1) -> str:
    """Name the device as people do; `cores` are at work if it is a CPU."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{'one core' if cores == 1 else f'{cores} cores'} of {_cpu_name()}"


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "an unknown CPU"
