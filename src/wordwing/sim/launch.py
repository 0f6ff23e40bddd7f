"""Launching Warp kernels on torch tensors: one device name, torch's stream, no copies."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import torch
import warp as wp

wp.config.log_level = wp.LOG_INFO if os.environ.get("WORDWING_VERBOSE") else wp.LOG_ERROR
wp.init()


def warp_device(device: torch.device) -> wp.Device:
    """Warp's name for a torch device."""
    return wp.device_from_torch(device)


def launch(
    kernel: wp.Kernel,
    dim: int | Sequence[int],
    inputs: Sequence[Any],
    device: torch.device,
) -> None:
    """Run a kernel on the device's current torch stream, so that it orders with torch's own work."""
    on_cuda = device.type == "cuda"
    stream = wp.stream_from_torch(torch.cuda.current_stream(device)) if on_cuda else None
    with wp.ScopedStream(stream) if on_cuda else nullcontext():
        wp.launch(kernel, dim=dim, inputs=list(inputs), device=warp_device(device))
