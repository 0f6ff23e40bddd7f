"""Process A as it runs: supervised learning of stage 1, what it keeps, logs, sends and saves (paper: Algorithm 1).

It can be killed at any moment; the same command goes on from the last state that was saved whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from wordwing.learning.algorithm1 import Supervised
from wordwing.learning.cloning import Cloning
from wordwing.learning.contexts import ContextSource
from wordwing.learning.evaluator import Examination
from wordwing.learning.runtime.checkpoints import flatten_optimiser, restore_optimiser, squeeze, unsqueeze
from wordwing.learning.runtime.config import RunConfig
from wordwing.learning.runtime.logs import Logbook
from wordwing.learning.runtime.messages import Executed, Parameters
from wordwing.learning.runtime.processes import (
    Clock,
    Meter,
    Place,
    Skips,
    Tensors,
    module_tensors,
    new_network,
    restore_modules,
)
from wordwing.learning.training_data import Material, first_executions, lab_executions, other_sayings

CHECK_EVERY = 10
"""Updates between two looks whether losses are numbers, each of which waits for the device."""


class ProcessA:
    """Supervised learning of stage 1, D^S and, where asked for, cloning of stage 2."""

    def __init__(self, place: Place, config: RunConfig, material: Material) -> None:
        self.clock = Clock()
        self.place, self.config, self.material = place, config, material
        self.network = new_network(config, material, place.device)
        self.executions = first_executions(material, config.data, place.say)
        lab = lab_executions(material, config.data, place.say)
        sayings = other_sayings(material, config.data, config.supervised.contexts.mirrored > 0, place.say)
        torch.manual_seed(config.seed + 1)
        self.teacher = Supervised(
            self.network,
            material.examples,
            self.executions,
            lab,
            config.supervised,
            config.seed,
            place.compiled,
            sayings,
        )
        own = replace(config.supervised.contexts, others=0.0, look_arounds=0.0)
        self.cloning = Cloning(
            self.teacher.averaged,
            ContextSource(material.examples, self.executions, lab, own, self.teacher.source.sizes, sayings),
            config.cloning,
            config.supervised.losses.gold,
            config.seed,
        )
        self.examination = Examination(material, place.device)
        self.meter, self.skips = Meter(), Skips(place.device)
        self.figures: dict[str, float] = {}
        self.lengths = 0.0
        """Mean length of the rollouts that came last."""
        self._log: Logbook | None = None
        self._restored = -1

    @property
    def steps(self) -> int:
        """Updates of both kinds, by which the log counts."""
        return self.teacher.updates + self.cloning.updates

    @property
    def log(self) -> Logbook:
        """Opened when the first line is written; what came after the state that is gone on from is cut off."""
        if self._log is None:
            self._log = Logbook(self.place.folder / "log-a", self._restored)
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
        schedule, cloning = self.config.schedule, self.phase == "cloning"
        self.merge()
        figures: Mapping[str, Tensor] = self.cloning.update() if cloning else self.teacher.update(self.progress)
        skipped = "cloning/skipped_updates" if cloning else "supervised/skipped_updates"
        self.skips.count(figures[skipped])
        if self.steps % CHECK_EVERY == 0:
            self.skips.check(self.place.folder)
        if self.steps % schedule.log_every == 0:
            self._note({**figures, skipped: self.skips.total})
        if not cloning and self.teacher.updates % schedule.look_every == 0:
            with self.place.breakable():
                looks = self.examination.first_looks(self.teacher.averaged, self.config.supervised.losses.gold)
            self.log.scalars(looks, self.steps)
            self.figures |= looks
        if self.warm and self.teacher.updates % schedule.send_every == 0:
            self.send()

    def send(self) -> None:
        """Give Process B what has been learned so far."""
        weights = {name: tensor.detach() for name, tensor in self.teacher.averaged.state_dict().items()}
        self.place.link.send_parameters(Parameters(self.teacher.updates, weights))

    def merge(self) -> None:
        """Take over what Process B has flown."""
        for executed in self.place.link.take_executed():
            self.executions.merge(executed)
            self.lengths = float(executed.lengths.float().mean())

    def _note(self, figures: Mapping[str, Tensor]) -> None:
        self.log.scalars(
            {
                **figures,
                "charts/contexts_per_second": self.meter.read(self.steps * self.teacher.contexts),
                "executions/demonstrations_left": self.executions.demonstrations_left,
                "executions/merged": float(self.executions.merged),
                "executions/length": self.executions.lengths.float().mean(),
                "executions/rollout_length": self.lengths,
                "charts/minutes": self.clock.seconds / 60,
            },
            self.steps,
        )
        self.figures |= {name: float(value) for name, value in figures.items()}

    def pulse(self) -> dict[str, Any]:
        """What the display shows."""
        schedule = self.config.schedule
        # Where the clock ends a run, nobody knows how many updates there will be.
        learned = (round(1000 * self.progress), 1000) if schedule.minutes else (self.teacher.updates, schedule.updates)
        done, total, wanted = {
            "warm-up": (self.teacher.updates, schedule.warm_up, ("supervised/loss", "supervised/goal")),
            "cloning": (self.cloning.updates, schedule.cloned, ("cloning/stop", "cloning/velocity")),
            "learning": (*learned, ("supervised/loss", "supervised/goal")),
        }[self.phase]
        return {
            "phase": self.phase,
            "done": done,
            "total": total,
            "rates": {"contexts/s": self.meter.rate},
            "figures": {name.partition("/")[2]: self.figures[name] for name in wanted if name in self.figures},
        }

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """All of it."""
        kept = self.executions.replaced()
        tensors = module_tensors(self.teacher.modules() | {"stage2": self.network.stage2})
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
            "skipped": float(self.skips.total),
            "seconds": self.clock.seconds,
        }

    def restore(self, tensors: Tensors, meta: Mapping[str, Any]) -> None:
        """Go on from a state."""
        restore_modules(self.teacher.modules() | {"stage2": self.network.stage2}, tensors)
        for name, optimizer in (self.teacher.optimizers() | {"cloning": self.cloning.optimizer}).items():
            restore_optimiser(optimizer, tensors, f"optimiser-{name}")
        rows = torch.from_numpy(unsqueeze(tensors["executions.rows"]))
        index, lengths = tensors["executions.index"], tensors["executions.lengths"]
        self.executions.restore(Executed(index, rows, lengths, progress=1.0), meta["merged"])
        self.teacher.updates, self.cloning.updates = meta["updates"], meta["cloned"]
        self.skips.go_on(meta["skipped"])
        self.clock.go_on(meta["seconds"])
        self.meter.go_on(self.steps * self.teacher.contexts)
        self._restored = self.steps
