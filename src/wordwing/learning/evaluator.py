"""How good a policy is while it learns: flights of dev instructions, and what it makes of the first picture.

Losses do not tell: an execution betrays its goal by where it goes. A flight of one's own, and a first picture, cannot.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from wordwing.data.demonstrations.flying import training_mean_action
from wordwing.execution.execution import Execution
from wordwing.execution.metrics import emd, final_distance, succeeded
from wordwing.execution.runner import fly, start_poses
from wordwing.interface import Policy
from wordwing.language.meaning.clauses import Meaning
from wordwing.language.meaning.judge import judge
from wordwing.learning.first_look import Assessment, FirstLooks, assess
from wordwing.learning.gold import GoldConfig
from wordwing.learning.training_data import Material
from wordwing.model.policy import PolicyNetwork
from wordwing.policies.baselines import Average
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.oracle import Oracle
from wordwing.sim.render import RenderConfig
from wordwing.sim.simulator import Simulator
from wordwing.viz.animation import MAP_SIZE, still_states
from wordwing.viz.belief_video import belief_frames, belief_strip
from wordwing.viz.drawing import MAP_EXTENT
from wordwing.world.tasks import Task

LOOKS = 1000
"""First pictures of each corpus at most."""

LOOKS_OF = {"first_look": 1, "look_around": 6}
"""How many pictures all around a drone takes at the start, by what it is called in the log."""


@dataclass(frozen=True)
class Marks:
    """Of n flights."""

    emd: NDArray[np.float64]
    """[n] metres."""
    distance: NDArray[np.float64]
    """[n] from the end of the demonstration, metres."""
    followed: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, bool))
    """[m] whether everything that was said was done, for the flights of known meaning."""

    @property
    def success(self) -> float:
        """Share that ended within 0.47 m."""
        return float(succeeded(self.distance).mean())

    @classmethod
    def of(cls, flights: Sequence[Execution], meanings: Sequence[Meaning | None] = ()) -> Marks:
        """Measure flights; of each the meaning, where it is known."""
        judged = [
            judge(meaning, flight.path, flight.task.start_yaw, flight.task.layout).followed
            for flight, meaning in zip(flights, meanings, strict=False)
            if meaning
        ]
        return cls(
            np.array([emd(flight.path, flight.task.gold_path) for flight in flights]),
            np.array([final_distance(flight.path, flight.task.gold_path) for flight in flights]),
            np.array(judged, bool),
        )


def mean_interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Mean of n values and its normal 95 % interval; unbounded for fewer than two."""
    mean = float(values.mean())
    half = 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values)) if len(values) > 1 else math.inf
    return mean, mean - half, mean + half


class Examination:
    """Dev instructions of every corpus, always the same."""

    def __init__(self, material: Material, device: torch.device) -> None:
        self.material, self.device = material, device
        self.tasks: dict[str, list[Task]] = {
            dataset.name: [dataset.task(one) for one in part]
            for dataset, part in zip(material.datasets, material.dev, strict=True)
        }
        # A meaning's numbers are those of a whole layout, not of a window of a scene.
        self.meanings: dict[str, list[Meaning | None]] = {
            dataset.name: [one.segment.meaning if one.window is None else None for one in part]
            for dataset, part in zip(material.datasets, material.dev, strict=True)
        }
        self.steps = {dataset.name: dataset.steps for dataset in material.datasets}
        self._looks: dict[tuple[str, str], FirstLooks] = {}
        self._average: dict[str, Marks] = {}
        self._oracle: dict[str, Marks] = {}

    def fly(self, policy: Policy) -> dict[str, Marks]:
        """Fly all of them as at test time: safety rule on, down to rest."""
        return {name: self._marks(policy, name) for name in self.tasks}

    def average(self) -> dict[str, Marks]:
        """AVERAGE's marks; flown once."""
        if not self._average:
            actions = {dataset.name: training_mean_action(dataset, self.device) for dataset in self.material.datasets}
            self._average = {name: self._marks(Average(*actions[name]), name) for name in self.tasks}
        return self._average

    def oracle(self) -> dict[str, Marks]:
        """ORACLE's marks; flown once."""
        if not self._oracle:
            self._oracle = {name: self._marks(Oracle(), name, draw=False) for name in self.tasks}
        return self._oracle

    def _marks(self, policy: Policy, name: str, draw: bool = True) -> Marks:
        tasks = self.tasks[name]
        simulator = Simulator(len(tasks), self.device, draw=draw)
        return Marks.of(fly(policy, simulator, tasks, max_steps=self.steps[name]), self.meanings[name])

    def gap(self, marks: dict[str, Marks]) -> tuple[float, float, float]:
        """By how much EMD is smaller than AVERAGE's in the same flights, metres: mean and 95 % interval."""
        average = self.average()
        return mean_interval(np.concatenate([average[name].emd - marks[name].emd for name in marks]))

    def figures(self, marks: dict[str, Marks]) -> dict[str, float]:
        """To log; who followed everything that was said is known where meanings are, ORACLE's share beside it."""
        figures = {}
        oracle = self.oracle() if any(len(given.followed) for given in marks.values()) else {}
        for name, given in marks.items():
            figures[f"dev/{name}_success"] = given.success
            figures[f"dev/{name}_emd"] = float(given.emd.mean())
            figures[f"dev/{name}_distance"] = float(given.distance.mean())
            if len(given.followed):
                figures[f"dev/{name}_followed"] = float(given.followed.mean())
                figures[f"dev/{name}_followed_by_oracle"] = float(oracle[name].followed.mean())
        figures["dev/success"] = float(np.mean([given.success for given in marks.values()]))
        for who in ("followed", "followed_by_oracle") if oracle else ():
            figures[f"dev/{who}"] = float(np.mean([figures[key] for key in figures if key.endswith(f"_{who}")]))
        figures["dev/emd"] = float(np.mean([given.emd.mean() for given in marks.values()]))
        return figures

    def first_looks(self, network: PolicyNetwork, gold: GoldConfig) -> dict[str, float]:
        """Where the goal is believed to be before the drone moves: with the text, and with every word unknown."""
        network.eval()
        figures: dict[str, float] = {}
        for name, tasks in self.tasks.items():
            for kind, headings in LOOKS_OF.items():
                if (name, kind) not in self._looks:
                    drawn = FirstLooks.of(tasks[:LOOKS], self.material.vocabulary, self.device, headings)
                    self._looks[name, kind] = drawn
                looks = self._looks[name, kind]
                figures |= _understood(f"{kind}/{name}_{{}}", assess(network, looks, gold))
                figures |= _understood(f"{kind}/{name}_{{}}_without_text", assess(network, looks.silent(), gold))
        return figures

    def picture(self, policy: LearnedPolicy, number: int = 0) -> NDArray[np.uint8]:
        """[H, W, 3] what the policy thinks in one flight."""
        name = next(iter(self.tasks))
        task = self.tasks[name][number % len(self.tasks[name])]
        [flight] = fly(policy, Simulator(1, self.device), [task], max_steps=self.steps[name], keep_images=True)
        viewer = Simulator(1, self.device, render=RenderConfig(shadows=True))  # for people, not for policies
        viewer.reset([task.layout], start_poses([task]))
        overhead = viewer.overhead(MAP_SIZE, MAP_EXTENT)[0].cpu().numpy()
        frames = list(belief_frames(flight, overhead, name, states=still_states(flight)))
        return np.asarray(belief_strip(flight, frames, overhead, name).convert("RGB"))


def _understood(label: str, found: Assessment) -> dict[str, float]:
    """Errors and hits of the goals that are in view, and the divergence of all; `label` has a gap for the figure."""
    error = found.goal_error[found.gold_unobserved < 0.5]
    divergence = (found.cross_entropy - found.gold_entropy).mean(0)
    return {
        label.format("error"): float(error.mean()),
        label.format("within"): float(succeeded(error).float().mean()),
        label.format("goal_kl"): float(divergence[1]),
    }
