"""Where a GPU's time goes: kernels of stage 1, of Process A and of Process B, by kind.

Usage: python benchmarks/kernels.py measure DATASET [--worlds N] [--flights N]
       python benchmarks/kernels.py plot LINES PICTURE

`measure` prints a JSON line for each kind of kernel in each piece of work; `plot` draws them.
"""

import json
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import matplotlib
import torch
import tyro
from torch.profiler import ProfilerActivity, profile

from wordwing.bench.model import VOCABULARY, RandomContexts, flying, training
from wordwing.devices import compile_once
from wordwing.learning.algorithm1 import Supervised
from wordwing.learning.algorithm2 import Reinforcement
from wordwing.learning.executions import initial_executions
from wordwing.learning.recipes.presets import gpu
from wordwing.learning.training_data import DataConfig, load_training_data
from wordwing.model.policy import ModelConfig, PolicyNetwork

KINDS = {
    "drawing and flying": r"draw_first_person|advance_|come_to_rest",
    "earth mover's distance": r"sinkhorn|c_transform",
    "changes of layout": r"nchwToNhwc|nhwcToNchw|nhwcAddPadding",
    "convolutions, backwards": r"wgrad|dgrad|ImplicitGemmConvolution",
    "convolutions": r"fprop|convolve_common|conv2d_grouped|implicit_convolve",
    "sampling maps": r"grid_sampl|reciprocal",
    "reading": r"RNN_|LSTM|elementWise_bp",
    "products of matrices": r"nvjet|[Gg]emm|gemv|splitK",
    "norms and averages": r"var_mean|_sub_sum|avg_pool|Welford",
    "all others": r"",
}
"""The first kind whose pattern a kernel's name has."""


def kind_of(kernel: str) -> str:
    """Of a kernel, by its name."""
    return next(kind for kind, pattern in KINDS.items() if re.search(pattern, kernel))


def by_kind(kernels: list[tuple[str, float]]) -> Iterator[dict[str, Any]]:
    """Milliseconds and number of kernels of each kind, from names and microseconds."""
    for kind in KINDS:
        spent = [microseconds for name, microseconds in kernels if kind_of(name) == kind]
        yield {"kind": kind, "ms": round(sum(spent) / 1000, 3), "kernels": len(spent)}


def measure(data: Annotated[Path, tyro.conf.Positional], /, worlds: int = 256, flights: int = 512) -> None:
    """Print where time goes on this machine's GPU.

    Args:
        data: Dataset to learn from, `sim` only.
        worlds: Of Process B.
        flights: In an iteration of Process B.
    """
    device, config = torch.device("cuda"), gpu()
    given = load_training_data(DataConfig(corpora=(str(data),), dev=1, lab="none"), device)
    network = PolicyNetwork(config.model, len(given.vocabulary)).to(device)
    learning = replace(config.reinforcement, worlds=worlds, flights=flights)
    b = Reinforcement(network, given.examples, learning, compiled=True)
    a = Supervised(network, given.examples, initial_executions(given, config.data), None, config.supervised, 0, True)
    plain = PolicyNetwork(ModelConfig(), VOCABULARY).to(device)
    works: dict[str, Callable[[], Any]] = {
        "a decision of 512 drones": flying(plain.eval(), RandomContexts.of(512, device), compile_once),
        "stage 1 learns from 1,024 contexts": training(plain.train(), RandomContexts.of(1024, device), compile_once),
        f"Process A, {a.contexts_per_update} contexts": a.update,
        f"Process B, {flights} flights in {worlds} worlds": b.iterate,
    }
    for work, call in works.items():
        for _warm in range(5):
            call()
        torch.cuda.synchronize()
        began = time.monotonic()
        for _time in range(5):
            call()
        torch.cuda.synchronize()
        whole = {"work": work, "wall ms": round(200 * (time.monotonic() - began), 2)}
        for line in by_kind(kernels_of(call)):
            print(json.dumps(whole | line), flush=True)


def kernels_of(call: Callable[[], Any]) -> list[tuple[str, float]]:
    """Names of all kernels that a call runs, and how long each takes, microseconds."""
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    return [
        (event["name"], event["dur"]) for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")
    ]


def plot(lines: Annotated[Path, tyro.conf.Positional], picture: Annotated[Path, tyro.conf.Positional], /) -> None:
    """Draw lines of `measure`, as shares of the wall time, with the time in which the GPU did nothing.

    Args:
        lines: JSON lines.
        picture: To write.
    """
    matplotlib.use("Agg")
    from matplotlib import pyplot

    found = [json.loads(line) for line in lines.read_text("utf-8").splitlines()]
    works = list(dict.fromkeys((line["work"], line.get("version", "")) for line in found))
    figure, axes = pyplot.subplots(figsize=(10, 0.9 + 0.5 * len(works)), layout="constrained")
    left = [0.0] * len(works)
    for kind, colour in zip(KINDS, pyplot.get_cmap("tab10").colors, strict=True):  # type: ignore[attr-defined]
        widths = [
            sum(line["ms"] for line in found if (line["work"], line.get("version", ""), line["kind"]) == (*work, kind))
            for work in works
        ]
        scaled = [width / wall_of(found, work) for width, work in zip(widths, works, strict=True)]
        axes.barh(range(len(works)), scaled, left=left, color=colour, label=kind)
        left = [begin + width for begin, width in zip(left, scaled, strict=True)]
    names = [
        f"{work}{f', {version}' if version else ''}\n{wall_of(found, (work, version)):.1f} ms"
        for work, version in works
    ]
    axes.set_yticks(range(len(works)), names, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("GPU time of kernels as a share of the wall time")
    axes.legend(fontsize=7, ncol=5, loc="lower center", bbox_to_anchor=(0.4, 1.0))
    figure.savefig(picture, dpi=110)


def wall_of(found: list[dict[str, Any]], work: tuple[str, str]) -> float:
    """Milliseconds that a piece of work takes."""
    return next(line["wall ms"] for line in found if (line["work"], line.get("version", "")) == work)


if __name__ == "__main__":
    tyro.extras.subcommand_cli_from_dict({"measure": measure, "plot": plot})
