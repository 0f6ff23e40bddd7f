"""Launching Warp kernels on torch tensors: one device name, torch's stream, no copies."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
import warp as wp
from torch import Tensor

wp.config.log_level = wp.LOG_INFO if os.environ.get("WORDWING_VERBOSE") else wp.LOG_ERROR


@contextmanager
def _native_silence() -> Iterator[None]:
    """Keep compiled code's messages off stderr."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)


# Warp's library warns on every start of a machine without CUDA, which is no mistake here.
with nullcontext() if torch.cuda.is_available() else _native_silence():
    wp.init()


def warp_device(device: torch.device) -> wp.Device:
    """Warp's name for a torch device."""
    return wp.device_from_torch(device)


def warp_struct(kind: Any, /, **fields: Any) -> Any:
    """A Warp struct of numbers, vectors and arrays, by name.

    Arrays share the memory of contiguous tensors; vectors lie in their last axes.
    """
    made = kind()
    for name, value in fields.items():
        is_array = isinstance(value, Tensor)
        setattr(made, name, wp.from_torch(value, dtype=kind.vars[name].type.dtype) if is_array else value)
    return made


def struct_array(kind: Any, rows: Tensor) -> wp.array:
    """A Warp array of N structs whose numbers are the rows of a contiguous tensor [N, numbers] and share its memory."""
    return wp.array(ptr=rows.data_ptr(), dtype=kind, shape=(len(rows),), device=warp_device(rows.device))


def launch(
    kernel: wp.Kernel,
    dim: int | Sequence[int],
    inputs: Sequence[Any],
    device: torch.device,
) -> None:
    """Run a kernel on the device's current torch stream, so that it orders with torch's own work."""
    where: dict[str, Any] = (
        {"stream": wp.stream_from_torch(torch.cuda.current_stream(device))}
        if device.type == "cuda"
        else {"device": warp_device(device)}
    )
    wp.launch(kernel, dim=dim, inputs=list(inputs), **where)
