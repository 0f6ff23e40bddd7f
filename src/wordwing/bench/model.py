"""What the policy costs: parameters, multiply-accumulates and time, for each of its parts.

Beside the default network stands the one with the authors' wide LingUNet. Instructions are read once for a flight, so
their cost is told apart from that of a step.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from wordwing.bench import rate_of, report
from wordwing.devices import compile_once, device_title, find_device, missing_compiler, precision
from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF, Pose
from wordwing.interface import FLIGHT_HEIGHT
from wordwing.learning.losses import GoldConfig, gold_visitation, observed_part
from wordwing.learning.training_data import POINTS
from wordwing.model.layers import count_parameters
from wordwing.model.lingunet import LingUNetConfig
from wordwing.model.policy import ModelConfig, PolicyNetwork, PolicyState
from wordwing.model.stage1 import Stage1Config
from wordwing.model.text import Tokens
from wordwing.model.visitation import Visitation, cross_entropy, visitation

THREADS = 2
"""Cores of a CPU that may be used; a drone's computer has no more to spare."""

VOCABULARY, WORDS = 2080, 25
"""Words that are known, as many as the authors', and words of an instruction."""

MAX_BATCH = 65_536

MIN_STEPS = 5
"""Of one drone, however slow: one time is no median."""

LINGUNETS = {"default": LingUNetConfig(), "wide": LingUNetConfig.wide()}

PER_FLIGHT = ("text", "grounding kernels", "LingUNet kernels")
"""How the names of the parts begin that work once for a flight; all others work at every step."""


Report = Callable[..., None]
"""`report`, with the network's name given."""

Wrap = Callable[[Any], Any]
"""Compiles a function, or leaves it as it is."""


def bench_model(batch: int, device_name: str, seconds: float, compiled: bool, seed: int) -> None:
    """Print one JSON line for each figure; see `wordwing bench model --help`."""
    device = find_device(device_name)
    batch = batch or (1024 if device.type == "cuda" else 8)
    if not 1 <= batch <= MAX_BATCH:
        raise WordwingError(f"--batch is {batch}; it must be from 1 to {MAX_BATCH}")
    threads = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        for name, config in LINGUNETS.items():
            torch.manual_seed(seed)
            network = PolicyNetwork(ModelConfig(Stage1Config(lingunet=config)), VOCABULARY)
            say = partial(report, lingunet=name)
            _report_costs(network, say)
            if device.type == "cpu":
                _report_latency(network, say, seconds)
            able = device.type == "cuda" and not missing_compiler()
            _report_rates(network, say, batch, device, seconds, compiled and able)
    finally:
        torch.set_num_threads(threads)


class RandomContexts(NamedTuple):
    """N made-up contexts of drones somewhere in the arena."""

    tokens: Tokens
    start: Pose
    image: Tensor
    pose: Pose
    gold: Visitation

    @classmethod
    def of(cls, count: int, device: torch.device | str = "cpu") -> RandomContexts:
        """Noise for images and texts; it costs as much as any other."""
        xy = torch.rand(2, count, 2, device=device).mul(2).sub(1) * 0.8 * ARENA_HALF
        start = Pose.level(xy[0], 2 * torch.pi * torch.rand(count, device=device), FLIGHT_HEIGHT)
        share = torch.linspace(0, 1, POINTS, device=device)[:, None]
        path = xy[0, :, None] + share * (xy[1] - xy[0])[:, None]
        return cls(
            tokens=Tokens(
                torch.randint(2, VOCABULARY, (count, WORDS), device=device), torch.full((count,), WORDS, device=device)
            ),
            start=start,
            image=torch.randint(0, 256, (count, 72, 128, 3), dtype=torch.uint8, device=device),
            pose=start,
            gold=gold_visitation(path, start, GoldConfig()),
        )


class PartMeter:
    """Charges what a clock counts to the part of a network that is at work, the innermost one."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.spent: dict[str, float] = {}
        self._clock = clock
        self._working: list[str] = []
        self._since = 0.0

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """The block is a part."""
        self._enter(name)
        yield
        self._leave()

    @contextmanager
    def watching(self, parts: dict[str, nn.Module]) -> Iterator[None]:
        """In the block, modules are parts."""
        with ExitStack() as hooks:
            for name, module in parts.items():
                hooks.enter_context(module.register_forward_pre_hook(lambda *_, name=name: self._enter(name)))
                hooks.enter_context(module.register_forward_hook(lambda *_: self._leave()))
            yield

    def _enter(self, part: str) -> None:
        self._charge()
        self._working.append(part)

    def _leave(self) -> None:
        self._charge()
        self._working.pop()

    def _charge(self) -> None:
        now = self._clock()
        if self._working:
            self.spent[self._working[-1]] = self.spent.get(self._working[-1], 0) + now - self._since
        self._since = now


def parts_of(network: PolicyNetwork) -> dict[str, nn.Module]:
    """The modules that are parts, inner ones before those that they are in."""
    stage1, lingunet = network.stage1, network.stage1.lingunet
    levels = {
        f"LingUNet {what} {k}": module
        for what, modules in (("kernels", lingunet.kernel), ("down", lingunet.down), ("up", lingunet.up))
        for k, module in enumerate(modules, start=1)
    }
    heads = {} if lingunet.head is None else {"LingUNet head": lingunet.head}
    return {
        "text": stage1.text,
        "grounding kernels": stage1.grounding.kernel,
        "vision": stage1.vision["sim"],
        "vision of the other domain": stage1.vision["lab"],
        "grounding": stage1.grounding,
        **levels,
        **heads,
        "LingUNet filters": lingunet,  # all that is in none of the above
        "control": network.stage2,
    }


def step(network: PolicyNetwork, state: PolicyState, contexts: RandomContexts, meter: PartMeter) -> PolicyState:
    """`PolicyNetwork.forward`, and which part of it is at work."""
    with meter.part("mapping"):
        features = network.stage1.encode_images(contexts.image, "sim")
        [state], _in_view, here = network.observe(state, features, contexts.pose[:, None])
    with meter.part("distributions"):
        _grounding_map, scores = network.stage1.predict(state.map.features, state.observed, state.kernels)
        plan = visitation(scores, network.stage1.support(state.observed))
    with meter.part("ego view"):
        view = network.view(plan, state.observed, state.arena, state.boundary, here)
    network.stage2(view)
    return state


@contextmanager
def counting() -> Iterator[Callable[[], int]]:
    """A clock of the multiply-accumulates in the block, so far; four for each number that is sampled from a map."""

    def sampled(*_: Any, out_shape: Any, **__: Any) -> int:
        return 2 * 4 * torch.Size(out_shape).numel()

    def read(words: Any, inputs: Any, hidden: Any, *_: Any, **__: Any) -> int:  # oneDNN's own LSTM
        return 2 * torch.Size(words[:2]).numel() * (torch.Size(inputs).numel() + torch.Size(hidden).numel())

    others = {torch.ops.aten.grid_sampler_2d: sampled, torch.ops.aten.mkldnn_rnn_layer: read}
    with FlopCounterMode(display=False, custom_mapping=others) as counter:
        yield lambda: counter.get_total_flops() // 2


@torch.no_grad()
def costs(network: PolicyNetwork) -> dict[str, tuple[int, int]]:
    """Parameters and multiply-accumulates of the parts, for one drone on the CPU."""
    contexts = RandomContexts.of(1)
    parts = parts_of(network)
    with counting() as clock:
        meter = PartMeter(clock)
        with meter.watching(parts):
            step(network, network.begin(contexts.tokens, contexts.start), contexts, meter)
    counted: set[Tensor] = set()
    parameters = {}
    for name, module in parts.items():
        own = set(module.parameters()) - counted
        parameters[name] = sum(parameter.numel() for parameter in own)
        counted |= own
    names = [*parts, *(name for name in meter.spent if name not in parts)]
    return {name: (parameters.get(name, 0), int(meter.spent.get(name, 0))) for name in names}


def _report_costs(network: PolicyNetwork, say: Report) -> None:
    figure = "multiply-accumulates"
    for part, (parameters, multiplications) in costs(network).items():
        say(
            figure,
            multiplications,
            part=part,
            per="flight" if part.startswith(PER_FLIGHT) else "step",
            parameters=parameters,
        )
    contexts = RandomContexts.of(1)
    with torch.no_grad(), counting() as clock:
        state = network.begin(contexts.tokens, contexts.start)
        begun = clock()
        network(state, contexts.image, contexts.pose, "sim")
        say(figure, begun, part="all", per="flight", words=WORDS)
        say(figure, clock() - begun, part="all", per="step")
    say("parameters", count_parameters(network))


@torch.no_grad()
def _report_latency(network: PolicyNetwork, say: Report, seconds: float) -> None:
    """One drone on the CPU: how long a step takes, and what in it."""
    where = {"device": device_title(torch.device("cpu"), THREADS), "batch": 1}
    contexts = RandomContexts.of(1)
    state = network.begin(contexts.tokens, contexts.start)
    for _step in range(3):
        state, _beliefs = network(state, contexts.image, contexts.pose, "sim")
    times: list[float] = []
    while sum(times) < seconds or len(times) < MIN_STEPS:
        start = time.perf_counter()
        state, _beliefs = network(state, contexts.image, contexts.pose, "sim")
        times.append(time.perf_counter() - start)
    slow = sorted(times)[int(0.9 * len(times))]
    median = round(1e3 * statistics.median(times), 2)
    say("ms for a step, median", median, p90=round(1e3 * slow, 2), steps=len(times), **where)
    meter = PartMeter(time.perf_counter)
    with meter.watching(parts_of(network)):
        for _time in times:
            state = step(network, state, contexts, meter)
    total = sum(meter.spent.values())
    for part, spent in meter.spent.items():
        say("share of a step", round(spent / total, 4), part=part, **where)


def objective(network: PolicyNetwork, state: PolicyState, contexts: RandomContexts) -> Tensor:
    """Cross-entropy of stage 1 after one more image, the mean over contexts."""
    features = network.stage1.encode_images(contexts.image, "sim")
    state, output = network.run_stage1(state, features, contexts.pose[:, None])
    gold = observed_part(contexts.gold, state.observed)
    return cross_entropy(output.scores, network.stage1.support(state.observed), gold).sum(-1).mean()


def flying(network: PolicyNetwork, contexts: RandomContexts, wrap: Wrap) -> Callable[[], None]:
    """Policy steps of many drones: each call looks, plans and decides once."""
    forward = wrap(network)
    with torch.no_grad(), precision(contexts.image.device):
        state = network.begin(contexts.tokens, contexts.start)

    @torch.no_grad()
    def call() -> None:
        nonlocal state
        with precision(contexts.image.device):
            state, _beliefs = forward(state, contexts.image, contexts.pose, "sim")

    return call


def training(network: PolicyNetwork, contexts: RandomContexts, wrap: Wrap) -> Callable[[], None]:
    """Updates of stage 1: each call reads, maps and plans for every context, and takes one step of Adam."""
    loss_of = wrap(partial(objective, network))
    optimizer = torch.optim.Adam(network.stage1.parameters(), lr=1e-4, fused=contexts.image.is_cuda)

    def call() -> None:
        optimizer.zero_grad()
        with precision(contexts.image.device):
            loss = loss_of(network.begin(contexts.tokens, contexts.start), contexts)
        loss.backward()
        optimizer.step()

    return call


def _report_rates(
    network: PolicyNetwork, say: Report, batch: int, device: torch.device, seconds: float, compiled: bool
) -> None:
    network.to(device)
    where = {
        "batch": batch,
        "precision": "bf16" if device.type == "cuda" else "float32",
        "device": device_title(device, THREADS),
    }
    for figure, work in (("forward contexts/s", flying), ("training contexts/s", training)):
        for compiling in (False, True)[: 1 + compiled]:
            tell = partial(say, figure, compiled=compiling, **where)
            try:
                rate, peak = _measure(work, network, batch, device, seconds, compiling)
            except torch.OutOfMemoryError:
                tell(skipped="the device's memory is too small; take a smaller --batch")
            except RuntimeError as error:
                if not compiling:
                    raise
                reason = str(error).strip().splitlines() or [type(error).__name__]
                tell(skipped=f"torch.compile failed: {reason[0]}")
            else:
                tell(round(rate, 2), **peak)


def _measure(
    work: Callable[[PolicyNetwork, RandomContexts, Wrap], Callable[[], None]],
    network: PolicyNetwork,
    batch: int,
    device: torch.device,
    seconds: float,
    compiling: bool,
) -> tuple[float, dict[str, float]]:
    """Contexts a second and, on CUDA, the greatest memory that was in use, GiB."""
    on_cuda = device.type == "cuda"
    if compiling:
        torch.compiler.reset()
    if on_cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)
    call = work(network, RandomContexts.of(batch, device), compile_once if compiling else lambda function: function)
    # The second call may still compile: it gets the first one's state, whose memory is laid out otherwise.
    rate = batch * rate_of(call, seconds, device, warm_up=3 if on_cuda else 1)
    return rate, {"peak_gib": round(torch.cuda.max_memory_allocated(device) / 2**30, 2)} if on_cuda else {}
