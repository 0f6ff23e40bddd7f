"""Where to compute."""

import os
import platform
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import torch

from wordwing.errors import WordwingError
from wordwing.files import cache_folder


def precision(device: torch.device) -> torch.autocast:
    """In the block networks compute in bf16 on a GPU that does, else in single precision."""
    able = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.autocast(device.type, torch.bfloat16, enabled=able)


def missing_compiler() -> str:
    """What torch lacks on this machine to compile for CUDA; empty if it has all."""
    if find_spec("triton") is None:
        return "Triton is not installed"
    if not any(map(shutil.which, (os.environ.get("CC", "cc"), "gcc", "clang"))):
        return "there is no C compiler, such as gcc"
    return ""


def compile_once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as torch compiles it for the shapes of its first call; the compiler keeps its advice to itself.

    What it compiles is kept in the cache for the next time: the temporary folder, where it would be, is often emptied.
    """
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", str(cache_folder() / "compiled"))
    warnings.filterwarnings("ignore", category=UserWarning, module=r"torch\._(dynamo|inductor)")
    # Trying several tile sizes of each kernel takes longer than the best of them ever saves.
    return torch.compile(function, fullgraph=True, dynamic=False, options={"triton.autotune_pointwise": False})


def replayed(function: Callable[[], None], device: torch.device, *generators: torch.Generator) -> Callable[[], None]:
    """A function that reads and writes the same memory in each call, on CUDA as a graph.

    Launching hundreds of small kernels one by one takes several times as long as running them.

    Args:
        function: Its random numbers come from torch's own generator or from `generators`.
        device: Where it works; on the CPU it stays what it is.
        generators: On that device.
    """
    return function if device.type == "cpu" else _Replayed(function, device, *generators)


class _Replayed:
    """A function that is a CUDA graph from the fourth call on; before, compilers and libraries prepare themselves."""

    PREPARING = 3

    def __init__(self, function: Callable[[], None], device: torch.device, *generators: torch.Generator) -> None:
        self._function, self._generators, self._calls = function, generators, 0
        self._stream = torch.cuda.Stream(device)
        self._graph: torch.cuda.CUDAGraph | None = None

    def __call__(self) -> None:
        """Run it; nothing waits for the device."""
        self._calls += 1
        if self._calls <= self.PREPARING:
            self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
            with torch.cuda.stream(self._stream):
                self._function()
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)
        else:
            if self._graph is None:
                self._graph = self._captured()
            self._graph.replay()

    def _captured(self) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        for generator in self._generators:
            graph.register_generator_state(generator)
        # Other threads, such as those that send messages, may go on using the device meanwhile.
        with torch.cuda.graph(graph, stream=self._stream, capture_error_mode="thread_local"):
            self._function()
        return graph


class Aside:
    """Runs kernels beside those that follow, on a CUDA stream of their own, until they are waited for."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def run(self, function: Callable[[], Any]) -> Any:
        """Call a function; what it works with must be kept until `wait`."""
        if self._stream is None:
            return function()
        self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        with torch.cuda.stream(self._stream):
            return function()

    def wait(self) -> None:
        """What follows begins after what has been run."""
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)


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


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread: on a busy machine several wait for each other, longer than they compute."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with suppress(RuntimeError):  # can be said once, and before anything has been computed
        torch.set_num_interop_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


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
