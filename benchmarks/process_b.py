"""Profile one iteration of Process B with torch's profiler; a table as text.

Usage: python benchmarks/process_b.py DATASET [--flights N] [--worlds N] [--out FOLDER] [--device NAME]

Prints decisions/s without the profiler, then for each part of an iteration: wall time, GPU time of the kernels that it
launched, the number of kernels, and how often the host waited. OUT gets the table and, with
`--trace`, the trace that it was made from, for chrome://tracing.
"""

import bisect
import gzip
import json
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from torch.profiler import ProfilerActivity, profile, record_function

from wordwing.learning import algorithm2
from wordwing.learning.algorithm2 import Reinforcement
from wordwing.learning.recipes.presets import gpu
from wordwing.learning.training_data import DataConfig, load_training_data
from wordwing.model.policy import PolicyNetwork

WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy")
"""Prefixes of the calls in which the host waits for the device; asynchronous copies do not count."""

REST = "the rest"


def main(
    data: Annotated[Path, tyro.conf.Positional],
    /,
    flights: int = 512,
    worlds: int = 512,
    iterations: int = 4,
    limit: int | None = None,
    trace: bool = False,
    out: Path = Path("out/process-b"),
    device: str = "",
) -> None:
    """Run iterations of the recipe `gpu` with an untrained network.

    Args:
        data: Dataset to fly.
        flights: Flights per iteration.
        worlds: Number of worlds.
        iterations: How many are timed before one is profiled.
        limit: Use only this many instructions.
        trace: Keep the trace.
        out: Folder for the table.
        device: "cpu" or "cuda"; by default CUDA where there is one.
    """
    where = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    config = gpu()
    training_data = load_training_data(DataConfig(corpora=(str(data),), limit=limit, dev=1, lab="none"), where)
    torch.manual_seed(0)
    network = PolicyNetwork(config.model, len(training_data.vocabulary)).to(where)
    learned = replace(config.reinforcement, flights=flights, worlds=worlds)
    began = time.monotonic()
    process = Reinforcement(network, training_data.examples, learned, 0, where.type == "cuda")
    for _warm in range(2):
        process.iterate()
    finish(where)
    lines = [f"start and compile: {time.monotonic() - began:.0f} s"]
    before, began = process.decisions, time.monotonic()
    for _iteration in range(iterations):
        process.iterate()
    finish(where)
    seconds = time.monotonic() - began
    made = process.decisions - before
    lines.append(f"{iterations} iterations of {flights} flights in {worlds} worlds: {made / seconds:,.0f} decisions/s")
    lines.append(f"an iteration: {1000 * seconds / iterations:.1f} ms, {made / iterations:,.0f} decisions")
    steps = count_steps(process)
    mark(process)
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if where.type == "cuda" else [])]
    before = process.decisions
    with profile(activities=activities) as profiler:
        process.iterate()
        finish(where)
    share = (process.decisions - before) / (steps[0] * process.collector.worlds)
    lines.append(f"{steps[0]} steps of all worlds, {100 * share:.0f} % of them a decision of a flight")
    out.mkdir(parents=True, exist_ok=True)
    path = out / "trace.json"
    profiler.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    lines += report(events, steps[0])
    text = "\n".join(lines) + "\n"
    (out / "process-b.txt").write_text(text)
    print(text, flush=True)
    if trace:
        with gzip.open(out / "trace.json.gz", "wb") as packed:
            packed.write(path.read_bytes())
    path.unlink()


def finish(device: torch.device) -> None:
    """Wait for the device."""
    if device.type == "cuda":
        torch.cuda.synchronize()


def count_steps(process: Reinforcement) -> list[int]:
    """Count the calls of the network from now on: one per step of all worlds."""
    steps, decide = [0], process.collector._decide

    def counted(*given: Any) -> Any:
        steps[0] += 1
        return decide(*given)

    process.collector.__dict__["_decide"] = counted
    return steps


def mark(process: Reinforcement) -> None:
    """Name the parts of an iteration in the trace."""
    collector, simulator = process.collector, process.collector.simulator
    named(collector, "collect", "fly: the rest")
    named(collector, "_begin", "fly: begin flights")
    named(collector, "_forward", "fly: stage 1 and 2")
    named(collector, "_decide", "fly: decide and record")
    named(collector, "value_network", "fly: value network")
    named(simulator, "step", "fly: simulator step")
    named(simulator, "observe", "fly: render images")
    named(simulator.drones, "rest", "fly: where it would rest")
    named(process.ppo, "update", "learn")
    named(algorithm2, "rewards", "reward")


def named(owner: Any, name: str, label: str) -> None:
    """Label a call in the trace."""
    call: Callable[..., Any] = getattr(owner, name)

    def labelled(*given: Any, **more: Any) -> Any:
        with record_function(f"part {label}"):
            return call(*given, **more)

    owner.__dict__[name] = labelled


@dataclass
class Part:
    """Costs of one part of an iteration."""

    calls: int = 0
    wall: float = 0.0
    """Milliseconds of the host, excluding nested parts."""
    busy: float = 0.0
    """Milliseconds of GPU time."""
    kernels: int = 0
    waits: int = 0
    waited: float = 0.0
    """Milliseconds in which the host waited."""
    top: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """Milliseconds of GPU time by kernel."""


def report(events: list[dict], steps: int) -> list[str]:
    """The table of a trace, as lines."""
    parts, moments, labels = host_times(events)

    def inside(moment: float) -> Part:
        """The innermost part at a time on the host."""
        place = bisect.bisect_right(moments, moment) - 1
        return parts[labels[place] if place >= 0 else REST]

    launched: dict[int, float] = {}
    for event in events:
        if event.get("cat") in ("cuda_runtime", "cuda_driver"):
            launched[event["args"].get("correlation", -1)] = event["ts"]
            if event["name"].startswith(WAITS) and "Async" not in event["name"]:
                part = inside(event["ts"])
                part.waits += 1
                part.waited += event["dur"] / 1000
    kernels = [event for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    for event in kernels:
        part = inside(launched.get(event["args"].get("correlation", -2), -1.0))
        part.busy += event["dur"] / 1000
        part.kernels += 1
        part.top[event["name"][:70]] += event["dur"] / 1000
    lines = [f"under the profiler, {steps} steps of all worlds; per step:"]
    if kernels:
        whole = max(one["ts"] + one["dur"] for one in kernels) - min(one["ts"] for one in kernels)
        lines.append(f"the GPU was busy in {100 * covered(kernels) / whole:.0f} % of {whole / 1000:.0f} ms")
    head = ("part", "calls", "host ms", "of it waiting", "waits", "GPU ms", "kernels")
    lines.append("{:28}{:>8}{:>10}{:>15}{:>8}{:>10}{:>10}".format(*head))
    for label, part in sorted(parts.items(), key=lambda entry: -entry[1].wall):
        per = [figure / max(steps, 1) for figure in (part.wall, part.waited, part.waits, part.busy, part.kernels)]
        lines.append("{:28}{:8}{:10.3f}{:15.3f}{:8.2f}{:10.3f}{:10.1f}".format(label, part.calls, *per))
    lines.append("kernels that took longest, GPU ms per step:")
    tops = [(took / max(steps, 1), label, name) for label, part in parts.items() for name, took in part.top.items()]
    lines += [f"{took:10.4f}  {label:28}{name}" for took, label, name in sorted(tops, reverse=True)[:40]]
    return lines


def host_times(events: list[dict]) -> tuple[dict[str, Part], list[float], list[str]]:
    """Parts with calls and wall time; and times on the host with the innermost part that begins at each."""
    edges = []
    for event in events:
        if event.get("cat") == "user_annotation" and event["name"].startswith("part "):
            label = event["name"].removeprefix("part ")
            edges += [(event["ts"], True, label), (event["ts"] + event["dur"], False, label)]
    parts: dict[str, Part] = defaultdict(Part)
    open_parts, labels = [REST], list[str]()
    moments: list[float] = []
    for moment, begins, label in sorted(edges, key=lambda edge: edge[:2]):
        if moments:
            parts[open_parts[-1]].wall += (moment - moments[-1]) / 1000
        if begins:
            open_parts.append(label)
            parts[label].calls += 1
        else:
            open_parts.pop()
        moments.append(moment)
        labels.append(open_parts[-1])
    return parts, moments, labels


def covered(events: list[dict]) -> float:
    """Microseconds covered by at least one of these events."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted((event["ts"], event["ts"] + event["dur"]) for event in events):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


if __name__ == "__main__":
    tyro.cli(main)
