"""Process B as it runs: reinforcement learning of stage 2, what it keeps, logs, sends and saves (paper: Algorithm 2).

It also examines and keeps policies, since it has both stages. It can be killed at any moment; the same command goes on
from the last state that was saved whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from wordwing.errors import WordwingError
from wordwing.learning.algorithm2 import Reinforcement
from wordwing.learning.evaluator import Examination
from wordwing.learning.runtime.cards import Work, card
from wordwing.learning.runtime.checkpoints import flatten_optimiser, restore_optimiser
from wordwing.learning.runtime.config import RunConfig
from wordwing.learning.runtime.logs import Logbook
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
from wordwing.learning.training_data import Material
from wordwing.model.checkpoint import save_network
from wordwing.policies.learned import LearnedPolicy

BEST, POLICY = "best", "policy"
"""Folders of the policy that flew dev instructions best, and of the last one."""


class ProcessB:
    """Reinforcement learning of stage 2, with the stage 1 that Process A sends."""

    def __init__(self, place: Place, config: RunConfig, material: Material) -> None:
        self.place, self.config, self.material = place, config, material
        self.network = new_network(config, material, place.device)
        self.copies_vision = config.data.lab == "none" and (config.start is None or self.network.stage1.same_vision)
        """Whether nothing is known of the lab, neither here nor by the policy that it goes on from."""
        torch.manual_seed(config.seed + 2)
        self.teacher = Reinforcement(self.network, material.examples, config.reinforcement, config.seed, place.compiled)
        self.examination = Examination(material, place.device)
        self.clock, self.meter, self.skips = Clock(), Meter(), Skips(place.device)
        self.heard = -1
        """Update of Process A that stage 1 is of."""
        self.began = 0.0
        """Seconds on the clock when the first parameters came."""
        self.best = -1.0
        """Success of the best policy so far."""
        self.examined = -1
        """Iteration whose policy was examined last."""
        self.marks: dict[str, float] = {}
        """What that examination found."""
        self.figures: dict[str, float] = {}
        self._last = -1
        self._log: Logbook | None = None
        self._restored = -1

    @property
    def log(self) -> Logbook:
        """Opened when the first line is written; what came after the state that is gone on from is cut off."""
        if self._log is None:
            self._log = Logbook(self.place.folder / "log-b", self._restored)
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
        """Whether there is nothing left to learn."""
        return self.progress >= 1

    def check_time(self) -> None:
        """Raise a `WordwingError` if time is over before there was a stage 1 to fly with."""
        schedule = self.config.schedule
        if self.finished and self.heard < 0:
            raise WordwingError(
                f"{self.place.folder}: schedule.minutes is {schedule.minutes:g}, and the warm-up takes longer "
                f"(schedule.warm_up is {schedule.warm_up} updates); change one of them, in another --out"
            )

    def listen(self) -> bool:
        """Take Process A's newest parameters; returns whether there have been any in this life.

        A new life takes whatever comes first: Process A may have gone on from a checkpoint that is older than what was
        heard before.
        """
        newest = self.place.link.newest_parameters(self._last)
        if newest is not None:
            weights = newest.weights
            if self.teacher.iterations:  # before, stage 2 is Process A's too: it may have been cloned
                weights = {name: tensor for name, tensor in weights.items() if name.startswith("stage1.")}
            elif self.heard < 0:
                self.began = self.clock.seconds
            self.network.load_state_dict(weights, strict=False)
            self._last = self.heard = newest.update
        return self._last >= 0

    @property
    def examination_due(self) -> bool:
        """Whether the policy is to be examined before it learns on."""
        done = self.teacher.iterations
        return done > 0 and done % self.config.schedule.examine_every == 0 and self.examined != done

    def work(self) -> None:
        """One iteration, or the examination that follows it."""
        if self.examination_due:
            self.examine()
            return
        schedule = self.config.schedule
        self.listen()
        rollouts, figures = self.teacher.iterate(self.progress, self.place.breakable)
        self.place.link.send_executed(rollouts.executed(self.progress))
        # Means over no updates are NaN. One flight gone wrong can spoil many updates, but not all of many iterations.
        self.skips.count(figures["losses/skipped_updates"], figures["losses/policy_loss"].isnan())
        self.skips.check(self.place.folder)
        step = self.teacher.iterations
        if step % schedule.log_every == 0 or step == 1:
            self._note({**figures, "losses/skipped_updates": self.skips.total})

    def finish(self) -> None:
        """Keep the last policy, and know how good it is."""
        if self.examined != self.teacher.iterations:
            self.examine()
        self.keep(POLICY)

    def examine(self) -> None:
        """Fly dev instructions; keep the policy if none was better."""
        policy = self.policy()
        with self.place.breakable():
            marks = self.examination.fly(policy)
            gap, low, high = self.examination.gap(marks)
            picture = self.examination.picture(policy)
        self.marks = self.examination.figures(marks)
        self.marks |= {"dev/emd_gap": gap, "dev/emd_gap_low": low, "dev/emd_gap_high": high}
        self.examined = self.teacher.iterations
        self.log.scalars({**self.marks, "charts/minutes": self.clock.seconds / 60}, self.examined)
        self.log.picture("beliefs", picture, self.examined)
        if self.marks["dev/success"] >= self.best:
            self.best = self.marks["dev/success"]
            self.keep(BEST)

    def policy(self) -> LearnedPolicy:
        """The policy as it is."""
        return LearnedPolicy(self.network, self.material.vocabulary, "sim", self.place.device)

    def keep(self, name: str) -> None:
        """Write the policy into the run's folder."""
        if self.copies_vision:
            self.network.stage1.copy_vision()
        save_network(self.place.folder / name, self.network, self.material.vocabulary, self.card())

    def card(self) -> str:
        """What a policy's README says about how it was made."""
        work = Work(self.clock.seconds / 60, max(self.heard, 0), self.teacher.flights, self.teacher.decisions)
        return card(self.place.command, self.config, self.material, self.place.device, work, self.marks)

    def _note(self, figures: Mapping[str, Tensor]) -> None:
        self.log.scalars(
            {
                **figures,
                "charts/SPS": self.meter.read(self.teacher.decisions),
                "charts/flights": float(self.teacher.flights),
                "charts/global_step": float(self.teacher.decisions),
                "charts/stage1_update": float(self.heard),
                "charts/minutes": self.clock.seconds / 60,
            },
            self.teacher.iterations,
        )
        self.figures |= {name: float(value) for name, value in figures.items()}

    def pulse(self) -> dict[str, Any]:
        """What the display shows."""
        wanted = {
            "charts/episodic_return": "return",
            "charts/episodic_length": "decisions",
            "dev/success": "success",
            "dev/followed": "followed",
            "dev/emd": "EMD",
        }
        known = self.figures | self.marks
        waiting = self.heard < 0 and not self.finished
        return {
            "phase": "waiting" if waiting else "finished" if self.finished else "learning",
            "done": round(1000 * self.progress),
            "total": 1000,
            "rates": {"steps/s": self.meter.rate},
            "figures": {short: known[name] for name, short in wanted.items() if name in known},
        }

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """All of it, stage 1 as it was last heard of included."""
        tensors = module_tensors(self.teacher.modules() | {"stage1": self.network.stage1})
        for name, optimizer in self.teacher.optimizers().items():
            tensors |= flatten_optimiser(optimizer, f"optimiser-{name}")
        return tensors, {
            "iterations": self.teacher.iterations,
            "flights": self.teacher.flights,
            "decisions": self.teacher.decisions,
            "heard": self.heard,
            "began": self.began,
            "best": self.best,
            "examined": self.examined,
            "marks": self.marks,
            "skipped": float(self.skips.total),
            "seconds": self.clock.seconds,
        }

    def restore(self, tensors: Tensors, meta: Mapping[str, Any]) -> None:
        """Go on from a state."""
        restore_modules(self.teacher.modules() | {"stage1": self.network.stage1}, tensors)
        for name, optimizer in self.teacher.optimizers().items():
            restore_optimiser(optimizer, tensors, f"optimiser-{name}")
        self.teacher.iterations, self.teacher.flights = meta["iterations"], meta["flights"]
        self.teacher.decisions = meta["decisions"]
        self.heard, self.began = meta["heard"], meta["began"]
        self.best, self.examined, self.marks = meta["best"], meta["examined"], meta["marks"]
        self.skips.go_on(meta["skipped"])
        self.clock.go_on(meta["seconds"])
        self.meter.go_on(self.teacher.decisions)
        self._restored = self.teacher.iterations or -1
