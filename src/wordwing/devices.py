"""Where to compute."""

from __future__ import annotations

import torch

from wordwing.errors import WordwingError


def precision(device: torch.device) -> torch.autocast:
    """In the block networks compute in bf16 on CUDA, in single precision on the CPU."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def find_device(name: torch.device | str) -> torch.device:
    """A device that wordwing can run on, with its number."""
    try:
        device = torch.device(name)
    except RuntimeError:
        raise WordwingError(f'no device is called "{name}"; "cpu" and "cuda" are') from None
    if device.type not in ("cpu", "cuda"):
        raise WordwingError(f'wordwing runs on "cpu" and "cuda", not on "{name}"')
    if device.type == "cuda" and not torch.cuda.is_available():
        raise WordwingError('this machine has no CUDA device that torch can use; take "cpu"')
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise WordwingError(f'there is no "{name}"; the last CUDA device is "cuda:{torch.cuda.device_count() - 1}"')
    return torch.empty(0, device=device).device  # "cuda" becomes "cuda:0"
