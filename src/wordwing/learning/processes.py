"""Process A and Process B as they run: what each keeps, logs, sends and saves.

Each can be killed at any moment; the same command goes on from the last state that was saved whole.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from wordwing import __version__
from wordwing.errors import WordwingError
from wordwing.learning.cloning import Cloning
from wordwing.learning.config import RunConfig
from wordwing.learning.contexts import ContextSource
from wordwing.learning.examination import Examination
from wordwing.learning.link import Executed, Link, Parameters
from wordwing.learning.logbook import Logbook
from wordwing.learning.material import Material, Say, first_executions, lab_executions
from wordwing.learning.reinforcement import Reinforcement
from wordwing.learning.state import flatten_optimiser, restore_optimiser, squeeze, unsqueeze
from wordwing.learning.supervised import Supervised
from wordwing.model.checkpoint import save_network
from wordwing.model.policy import LearnedPolicy, PolicyNetwork

Tensors = dict[str, Tensor]

HOPELESS = 50
"""So many updates in a row that had to be left out end a run: it would not get better."""


@dataclass(frozen=True)
class Place:
    """Where a process works."""

    folder: Path
    device: torch.device
    link: Link
    compiled: bool = False
    say: Say = lambda sentence: None


class Clock:
    """Seconds that a process has worked, over all of its lives."""

    def __init__(self) -> None:
        self._before = 0.0
        self._since = time.monotonic()

    @property
    def seconds(self) -> float:
        """So far."""
        return self._before + time.monotonic() - self._since

    def go_on(self, seconds: float) -> None:
        """Go on from a saved time."""
        self._before, self._since = seconds, time.monotonic()


class Meter:
    """How fast counts grow, over the last while."""

    def __init__(self) -> None:
        self._at, self._count = time.monotonic(), 0.0
        self.rate = 0.0

    def read(self, count: float) -> float:
        """Counts a second since it was last read."""
        now = time.monotonic()
        if now > self._at:
            self.rate = (count - self._count) / (now - self._at)
        self._at, self._count = now, count
        return self.rate


def new_network(config: RunConfig, material: Material, device: torch.device) -> PolicyNetwork:
    """A network to begin with; the same for the same seed."""
    torch.manual_seed(config.seed)
    return PolicyNetwork(config.model, len(material.vocabulary)).to(device)


class ProcessA:
    """Supervised learning of stage 1, D^S and, where asked for, cloning of stage 2."""

    def __init__(self, place: Place, config: RunConfig, material: Material) -> None:
        self.place, self.config, self.material = place, config, material
        self.network = new_network(config, material, place.device)
        self.executions = first_executions(material, config.data, place.say)
        lab = lab_executions(material, config.data, place.say)
        torch.manual_seed(config.seed + 1)
        self.teacher = Supervised(
            self.network, material.examples, self.executions, lab, config.supervised, config.seed, place.compiled
        )
        own = replace(config.supervised.contexts, others=0.0, look_arounds=0.0)
        self.cloning = Cloning(
            self.network,
            ContextSource(material.examples, self.executions, lab, own, self.teacher.source.sizes),
            config.cloning,
            config.supervised.losses.gold,
            config.seed,
        )
        self.examination = Examination(material, place.device)
        self.clock, self.meter = Clock(), Meter()
        self.figures: dict[str, float] = {}
        self.lengths = 0.0
        self._log: Logbook | None = None
        self._skipped = 0.0

    @property
    def log(self) -> Logbook:
        """Opened when the first line is written, so that a resumed process cuts off what came after its state."""
        if self._log is None:
            self._log = Logbook(self.place.folder / "log-a", self.teacher.updates)
        return self._log

    @property
    def warm(self) -> bool:
        """Whether Process B may begin."""
        schedule = self.config.schedule
        return self.teacher.updates >= schedule.warm_up and self.cloning.updates >= schedule.cloned

    @property
    def phase(self) -> str:
        """For the display."""
        if self.teacher.updates < self.config.schedule.warm_up:
            return "warm-up"
        return "learning" if self.warm else "cloning"

    @property
    def progress(self) -> float:
        """Share of its learning that is done, by updates or by time."""
        schedule = self.config.schedule
        by_time = self.clock.seconds / 60 / schedule.minutes if schedule.minutes else 0.0
        return min(1.0, max(self.teacher.updates / schedule.updates, by_time))

    def work(self) -> None:
        """One update."""
        schedule = self.config.schedule
        self.merge()
        if self.phase == "cloning":
            figures, step = self.cloning.update(), self.teacher.updates + self.cloning.updates
        else:
            figures, step = self.teacher.update(self.progress), self.teacher.updates
        if step % schedule.log_every == 0:
            self._note(figures, step)
        if self.phase != "cloning" and self.teacher.updates % schedule.look_every == 0:
            looks = self.examination.first_looks(self.network, self.config.supervised.losses.gold)
            self.log.scalars(looks, step)
            self.figures |= looks
        if self.warm and self.teacher.updates % schedule.send_every == 0:
            self.send()

    def send(self) -> None:
        """Give Process B the network as it is."""
        weights = {name: tensor.detach() for name, tensor in self.network.state_dict().items()}
        self.place.link.send_parameters(Parameters(self.teacher.updates, weights))

    def merge(self) -> None:
        """Take over what Process B has flown."""
        for executed in self.place.link.take_executed():
            if self.config.data.first == "standing" or self.warm:
                self.executions.merge(executed)
            self.lengths = float(executed.lengths.float().mean())

    def _note(self, figures: Mapping[str, Any], step: int) -> None:
        rate = self.meter.read(self.teacher.updates * self.teacher.contexts)
        self.log.scalars(
            {
                **figures,
                "charts/contexts_per_second": rate,
                "executions/demonstrations_left": self.executions.demonstrations_left,
                "executions/merged": float(self.executions.merged),
                "executions/length": self.executions.lengths.float().mean(),
                "executions/rollout_length": self.lengths,
                "charts/minutes": self.clock.seconds / 60,
            },
            step,
        )
        self.figures = {name: float(value) for name, value in figures.items()}
        name = next(name for name in figures if name.endswith("skipped_updates"))
        self._skipped = self._skipped + 1 if self.figures[name] else 0
        if self._skipped >= HOPELESS:
            raise WordwingError(
                f"{self.place.folder}: losses have not been numbers for long; a smaller learning rate may help"
            )

    def pulse(self) -> dict[str, Any]:
        """What the display shows."""
        schedule = self.config.schedule
        warming = self.phase == "warm-up"
        wanted = ("supervised/loss", "supervised/goal", "cloning/stop", "cloning/velocity")
        return {
            "phase": self.phase,
            "done": self.cloning.updates if self.phase == "cloning" else self.teacher.updates,
            "total": schedule.cloned if self.phase == "cloning" else schedule.warm_up if warming else schedule.updates,
            "rates": {"contexts/s": self.meter.rate},
            "figures": {name.partition("/")[2]: self.figures[name] for name in wanted if name in self.figures},
        }

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """All of it."""
        kept = self.executions.replaced()
        tensors = _states(self.teacher.modules() | {"stage2": self.network.stage2})
        optimizers = self.teacher.optimizers() | {"cloning": self.cloning.optimizer}
        for name, optimizer in optimizers.items():
            tensors |= flatten_optimiser(optimizer, f"optimiser-{name}")
        tensors |= {
            "executions.index": kept.index,
            "executions.lengths": kept.lengths,
            "executions.rows": squeeze(kept.rows.numpy()),
        }
        return tensors, {
            "updates": self.teacher.updates,
            "cloned": self.cloning.updates,
            "merged": self.executions.merged,
            "seconds": self.clock.seconds,
        }

    def restore(self, tensors: Tensors, meta: Mapping[str, Any]) -> None:
        """Go on from a state."""
        _restore(self.teacher.modules() | {"stage2": self.network.stage2}, tensors)
        for name, optimizer in (self.teacher.optimizers() | {"cloning": self.cloning.optimizer}).items():
            restore_optimiser(optimizer, tensors, f"optimiser-{name}")
        rows = torch.from_numpy(unsqueeze(tensors["executions.rows"]))
        index, lengths = tensors["executions.index"], tensors["executions.lengths"]
        self.executions.restore(Executed(index, rows, lengths, progress=1.0), meta["merged"])
        self.teacher.updates, self.cloning.updates = meta["updates"], meta["cloned"]
        self.clock.go_on(meta["seconds"])
        self.meter.read(self.teacher.updates * self.teacher.contexts)


class ProcessB:
    """Reinforcement learning of stage 2; also examines and keeps policies, since it has both stages."""

    def __init__(self, place: Place, config: RunConfig, material: Material) -> None:
        self.place, self.config, self.material = place, config, material
        self.network = new_network(config, material, place.device)
        torch.manual_seed(config.seed + 2)
        self.teacher = Reinforcement(self.network, material.examples, config.reinforcement, config.seed, place.compiled)
        self.examination = Examination(material, place.device)
        self.clock, self.meter = Clock(), Meter()
        self.heard = -1
        """Update of Process A that stage 1 is of."""
        self.began = 0.0
        """Seconds on the clock when the first parameters came."""
        self.best = -1.0
        """Success of the best policy so far."""
        self.figures: dict[str, float] = {}
        self._log: Logbook | None = None
        self._skipped = 0.0

    @property
    def log(self) -> Logbook:
        """Opened when the first line is written."""
        if self._log is None:
            self._log = Logbook(self.place.folder / "log-b", self.teacher.iterations)
        return self._log

    @property
    def progress(self) -> float:
        """Share of its learning that is done, by iterations or by time."""
        schedule = self.config.schedule
        by_time = 0.0
        if schedule.minutes:
            by_time = (self.clock.seconds - self.began) / max(60 * schedule.minutes - self.began, 1e-9)
        return min(1.0, max(self.teacher.iterations / schedule.iterations, by_time))

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to do."""
        return self.progress >= 1

    def listen(self) -> bool:
        """Take Process A's newest parameters; returns whether there have ever been any."""
        newest = self.place.link.newest_parameters(self.heard)
        if newest is not None:
            stage1 = {name: tensor for name, tensor in newest.weights.items() if name.startswith("stage1.")}
            if self.teacher.iterations == 0:  # it may have been cloned
                stage1 = newest.weights
            self.network.load_state_dict(stage1, strict=False)
            if self.heard < 0 and self.teacher.iterations == 0:
                self.began = self.clock.seconds
            self.heard = newest.update
        return self.heard >= 0

    def work(self) -> None:
        """One iteration."""
        schedule = self.config.schedule
        self.listen()
        rollouts, figures = self.teacher.iterate(self.progress)
        self.place.link.send_executed(rollouts.executed(self.progress))
        step = self.teacher.iterations
        if step % schedule.log_every == 0 or step == 1:
            self._note(figures, step)
        if step % schedule.examine_every == 0 or self.finished:
            self.examine()

    def examine(self) -> dict[str, float]:
        """Fly dev instructions; keep the policy if none was better."""
        policy = self.policy()
        marks = self.examination.fly(policy)
        figures = self.examination.figures(marks)
        gap, low, high = self.examination.gap(marks)
        figures |= {"dev/emd_gap": gap, "dev/emd_gap_low": low, "dev/emd_gap_high": high}
        self.log.scalars({**figures, "charts/minutes": self.clock.seconds / 60}, self.teacher.iterations)
        self.log.picture("beliefs", self.examination.picture(policy), self.teacher.iterations)
        self.figures |= figures
        if figures["dev/success"] >= self.best:
            self.best = figures["dev/success"]
            self.keep("best", figures)
        return figures

    def policy(self) -> LearnedPolicy:
        """The policy as it is."""
        return LearnedPolicy(self.network, self.material.vocabulary, "sim", self.place.device)

    def keep(self, name: str, figures: Mapping[str, float]) -> None:
        """Write the policy into the run's folder."""
        card = model_card(self.config, self.teacher, self.heard, figures)
        save_network(self.place.folder / name, self.network, self.material.vocabulary, card)

    def _note(self, figures: Mapping[str, Any], step: int) -> None:
        rate = self.meter.read(self.teacher.decisions)
        self.log.scalars(
            {
                **figures,
                "charts/SPS": rate,
                "charts/flights": float(self.teacher.flights),
                "charts/global_step": float(self.teacher.decisions),
                "charts/stage1_update": float(self.heard),
                "charts/minutes": self.clock.seconds / 60,
            },
            step,
        )
        self.figures |= {name: float(value) for name, value in figures.items()}
        self._skipped = self._skipped + 1 if self.figures["losses/skipped_updates"] else 0
        if self._skipped >= HOPELESS:
            raise WordwingError(
                f"{self.place.folder}: losses have not been numbers for long; a smaller learning rate may help"
            )

    def pulse(self) -> dict[str, Any]:
        """What the display shows."""
        wanted = {
            "charts/episodic_return": "return",
            "charts/episodic_length": "decisions",
            "dev/success": "success",
            "dev/emd": "EMD",
        }
        return {
            "phase": "waiting" if self.heard < 0 else "finished" if self.finished else "learning",
            "done": round(1000 * self.progress),
            "total": 1000,
            "rates": {"steps/s": self.meter.rate},
            "figures": {short: self.figures[name] for name, short in wanted.items() if name in self.figures},
        }

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """All of it, stage 1 as it was last heard of included."""
        tensors = _states(self.teacher.modules() | {"stage1": self.network.stage1})
        for name, optimizer in self.teacher.optimizers().items():
            tensors |= flatten_optimiser(optimizer, f"optimiser-{name}")
        return tensors, {
            "iterations": self.teacher.iterations,
            "flights": self.teacher.flights,
            "decisions": self.teacher.decisions,
            "heard": self.heard,
            "began": self.began,
            "best": self.best,
            "seconds": self.clock.seconds,
        }

    def restore(self, tensors: Tensors, meta: Mapping[str, Any]) -> None:
        """Go on from a state."""
        _restore(self.teacher.modules() | {"stage1": self.network.stage1}, tensors)
        for name, optimizer in self.teacher.optimizers().items():
            restore_optimiser(optimizer, tensors, f"optimiser-{name}")
        self.teacher.iterations, self.teacher.flights = meta["iterations"], meta["flights"]
        self.teacher.decisions = meta["decisions"]
        self.heard, self.began, self.best = meta["heard"], meta["began"], meta["best"]
        self.clock.go_on(meta["seconds"])
        self.meter.read(self.teacher.decisions)


def model_card(config: RunConfig, teacher: Reinforcement, heard: int, figures: Mapping[str, float]) -> str:
    """What a policy's README says about how it was made."""
    lab = {"none": "no lab demonstrations"}.get(config.data.lab, f"lab demonstrations: {config.data.lab}")
    lines = [
        "# A wordwing policy",
        "",
        f"Made by `wordwing train sureal`, wordwing {__version__}, seed {config.seed}.",
        f"Corpora: {', '.join(config.data.corpora)} (seed {config.data.seed}); {lab}.",
        f"Stage 1 after {heard:,} supervised updates, stage 2 after {teacher.flights:,} flights "
        f"({teacher.decisions:,} decisions).",
        "",
        "Measured in `sim` while it was trained, on a sample of dev instructions:",
        "",
        *(f"- {name}: {value:.3f}" for name, value in figures.items()),
        "",
    ]
    return "\n".join(lines)


def _states(modules: Mapping[str, nn.Module]) -> Tensors:
    return {
        f"{name}.{key}": tensor.detach()
        for name, module in modules.items()
        for key, tensor in module.state_dict().items()
    }


def _restore(modules: Mapping[str, nn.Module], tensors: Tensors) -> None:
    for name, module in modules.items():
        found = {key.removeprefix(f"{name}."): value for key, value in tensors.items() if key.startswith(f"{name}.")}
        try:
            module.load_state_dict(found)
        except RuntimeError:
            raise WordwingError(f"the saved state is of another network: its {name} does not fit") from None
