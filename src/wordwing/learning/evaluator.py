"""How good a policy is while it learns: flights of dev instructions, and what stage 1 predicts from the start.

Losses do not tell: an execution gives away its goal by where it goes. A drone that has not moved yet, or has only
turned on the spot, gives nothing away. So the goal's distance from the prediction, with the text and with it blanked,
says how much was understood.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wordwing.data.demonstrations.flying import training_mean_action
from wordwing.devices import precision
from wordwing.execution.execution import Execution
from wordwing.execution.metrics import emd, final_distance, succeeded
from wordwing.execution.runner import fly, start_poses
from wordwing.frames import Pose, start_frame
from wordwing.interface import FLIGHT_HEIGHT, Domain, Policy
from wordwing.language.meaning.clauses import Meaning
from wordwing.language.meaning.judge import judge
from wordwing.language.tokenizer import Vocabulary
from wordwing.learning.losses import GoldConfig, gold_visitation, observed_part
from wordwing.learning.training_data import TrainingData, even_points
from wordwing.model.layers import each
from wordwing.model.policy import PolicyNetwork
from wordwing.model.text import Tokens
from wordwing.model.visitation import Scores, Visitation, cross_entropy, entropy, visitation
from wordwing.policies.baselines import Average
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.oracle import Oracle
from wordwing.sim.render import RenderConfig
from wordwing.sim.scene import PackedLayouts
from wordwing.sim.simulator import Simulator
from wordwing.viz.animation import MAP_SIZE, still_states
from wordwing.viz.belief_video import belief_frames, belief_strip
from wordwing.viz.drawing import MAP_EXTENT
from wordwing.world.tasks import Task

WORLDS = 2048
"""Images that are rendered at once."""


@dataclass(frozen=True)
class FirstLooks:
    """N instructions, K images that their drones see from the start, and the gold paths; on one device."""

    tokens: Tokens
    """[N]."""
    image: Tensor
    """[N, K, 72, 128, 3] uint8, as drawn of `sim`."""
    pose: Pose
    """[N, K] where they are from, world frame."""
    start: Pose
    """[N] world frame, at flight height."""
    points: Tensor
    """[N, 64, 2] along the demonstrations, world frame, metres."""

    @classmethod
    def of(
        cls, tasks: Sequence[Task], vocabulary: Vocabulary, device: torch.device | str = "cpu", headings: int = 1
    ) -> FirstLooks:
        """Render what the drones of some tasks see in `sim`: ahead, or in so many directions all around."""
        xy = torch.tensor([task.start_xy for task in tasks], dtype=torch.float32)
        yaw = torch.tensor([task.start_yaw for task in tasks], dtype=torch.float32)
        turns = 2 * math.pi / headings * torch.arange(headings)
        pose = Pose.level(xy[:, None].expand(-1, headings, -1), yaw[:, None] + turns, FLIGHT_HEIGHT)
        images = []
        for begin in range(0, len(tasks), WORLDS):
            layouts = [task.layout for task in tasks[begin : begin + WORLDS]]
            simulator = Simulator(len(layouts), device)
            packed = PackedLayouts.pack(layouts, device)
            seen = [simulator.reset(packed, pose[begin : begin + WORLDS, turn]).image for turn in range(headings)]
            images.append(torch.stack(seen, dim=1))
        return cls(
            tokens=Tokens.encode([task.instruction for task in tasks], vocabulary, device),
            image=torch.cat(images),
            pose=pose.to(device),
            start=pose[:, 0].to(device),
            points=even_points([task.gold_path for task in tasks]).to(device),
        )

    def __len__(self) -> int:
        return len(self.points)

    def __getitem__(self, index: Tensor | slice) -> FirstLooks:
        """Some of them."""
        return each(lambda tensor: tensor[index], self)


@dataclass(frozen=True)
class Outcome:
    """What stage 1 predicted for N first looks beside what it was asked for."""

    scores: Scores
    observed: Tensor
    """[N, 64, 64] bool, the cells that both reach over."""
    gold: Visitation
    goal_unobserved: Tensor
    """[N] how much of the goal lies where the drone has not looked, whether or not the policy minds."""


def predict(network: PolicyNetwork, looks: FirstLooks, config: GoldConfig, domain: Domain = "sim") -> Outcome:
    """Observe K images and predict once; the images may be replaced by another domain's."""
    state = network.begin(looks.tokens, looks.start)
    features = network.stage1.encode_images(looks.image.flatten(0, 1), domain)
    state = network.observe(state, features, looks.pose)[0][-1]
    _grounding_map, scores = network.stage1.predict(state.map.features, state.observed, state.kernels)
    support = network.stage1.support(state.observed)
    gold = gold_visitation(looks.points, looks.start, config, network.config.stage1.phases)
    in_view = observed_part(gold, state.observed)
    return Outcome(scores, support, observed_part(gold, support), in_view.unobserved[:, 1])


@dataclass(frozen=True)
class Assessment:
    """How well N first looks were understood."""

    cross_entropy: Tensor
    """[N, 2] of trajectory and goal, nats."""
    gold_entropy: Tensor
    """[N, 2] the least that it could be."""
    goal_error: Tensor
    """[N] from the likeliest cell of the goal to the end of the path, metres, start frame."""
    unobserved: Tensor
    """[N] predicted p_oob of the goal."""
    gold_unobserved: Tensor
    """[N] how much of the goal really lies where the drone has not looked."""


@torch.no_grad()
def assess(network: PolicyNetwork, looks: FirstLooks, gold: GoldConfig, batch: int = 512) -> Assessment:
    """Compare predictions with what was meant."""
    device = looks.points.device
    parts = []
    for begin in range(0, len(looks), batch):
        part = looks[begin : begin + batch]
        with precision(device):
            outcome = predict(network, part, gold)
        plan = visitation(outcome.scores, outcome.observed)
        error = (plan.likeliest_goal - start_frame(part.start).unapply_xy(part.points[:, -1])).norm(dim=1)
        whole = outcome.gold.unordered  # so that networks with and without phases are compared by the same metrics
        loss = cross_entropy(outcome.scores, outcome.observed, whole)
        columns = (loss, entropy(whole), error, plan.unobserved[:, 1], outcome.goal_unobserved)
        parts.append([column.float().cpu() for column in columns])
    return Assessment(*(torch.cat(column) for column in zip(*parts, strict=True)))


LOOKS = 1000
"""Dev instructions of each corpus at most."""

LOOKS_OF = {"first_look": 1, "look_around": 6}
"""How many images all around a drone takes at the start, by the name in the log."""


@dataclass(frozen=True)
class FlightMetrics:
    """Metrics of n flights."""

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
    def of(cls, flights: Sequence[Execution], meanings: Sequence[Meaning | None] = ()) -> FlightMetrics:
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


class Evaluator:
    """Flies dev instructions of every corpus, always the same."""

    def __init__(self, data: TrainingData, device: torch.device) -> None:
        self.data, self.device = data, device
        parts = {dataset.name: (dataset, part) for dataset, part in zip(data.datasets, data.dev, strict=True)}
        self.tasks: dict[str, list[Task]] = {
            name: [dataset.task(one) for one in part] for name, (dataset, part) in parts.items()
        }
        # A meaning's numbers are those of a whole layout, not of a window of a scene.
        self.meanings: dict[str, list[Meaning | None]] = {
            name: [one.segment.meaning if one.window is None else None for one in part]
            for name, (_dataset, part) in parts.items()
        }
        self.steps = {name: dataset.steps for name, (dataset, _part) in parts.items()}
        self._overheads: dict[int, NDArray[np.uint8]] = {}  # by the number of a task

    def evaluate(self, policy: LearnedPolicy) -> tuple[dict[str, float], NDArray[np.uint8]]:
        """Metrics of the policy's flights by their names in the log, and an image of what it believes in one."""
        flown = self.fly(policy)
        gap, low, high = self.gap(flown)
        gaps = {"dev/emd_gap": gap, "dev/emd_gap_low": low, "dev/emd_gap_high": high}
        return self.metrics(flown) | gaps, self.image(policy)

    def fly(self, policy: Policy) -> dict[str, FlightMetrics]:
        """Fly all instructions as at test time: safety rule on, down to rest."""
        return {name: self._fly(policy, name) for name in self.tasks}

    @cached_property
    def average(self) -> dict[str, FlightMetrics]:
        """AVERAGE's metrics; flown once."""
        actions = {dataset.name: training_mean_action(dataset, self.device) for dataset in self.data.datasets}
        return {name: self._fly(Average(*actions[name]), name) for name in self.tasks}

    @cached_property
    def looks(self) -> dict[str, FirstLooks]:
        """What drones see at the start, by how often they look and the corpus; rendered once."""
        return {
            f"{kind}/{name}": FirstLooks.of(tasks[:LOOKS], self.data.vocabulary, self.device, headings)
            for name, tasks in self.tasks.items()
            for kind, headings in LOOKS_OF.items()
        }

    @cached_property
    def oracle(self) -> dict[str, FlightMetrics]:
        """ORACLE's metrics; flown once."""
        return {name: self._fly(Oracle(), name, draw=False) for name in self.tasks}

    def _fly(self, policy: Policy, name: str, draw: bool = True) -> FlightMetrics:
        tasks = self.tasks[name]
        simulator = Simulator(len(tasks), self.device, draw=draw)
        return FlightMetrics.of(fly(policy, simulator, tasks, max_steps=self.steps[name]), self.meanings[name])

    def gap(self, flown: dict[str, FlightMetrics]) -> tuple[float, float, float]:
        """By how much EMD is smaller than AVERAGE's in the same flights, metres: mean and 95 % interval."""
        return mean_interval(np.concatenate([self.average[name].emd - found.emd for name, found in flown.items()]))

    def metrics(self, flown: dict[str, FlightMetrics]) -> dict[str, float]:
        """Metrics to log. Where meanings are known, the share that followed the instruction, and ORACLE's share."""
        metrics: dict[str, float] = {}
        for name, found in flown.items():
            means: dict[str, NDArray[Any]] = {"emd": found.emd, "distance": found.distance}
            if len(found.followed):
                means |= {"followed": found.followed, "followed_by_oracle": self.oracle[name].followed}
            metrics[f"dev/{name}_success"] = found.success
            metrics |= {f"dev/{name}_{kind}": float(values.mean()) for kind, values in means.items()}
        for kind in ("success", "followed", "followed_by_oracle", "emd"):
            if found_in := [value for name, value in metrics.items() if name.endswith(f"_{kind}")]:
                metrics[f"dev/{kind}"] = float(np.mean(found_in))
        return metrics

    def first_looks(self, network: PolicyNetwork, gold: GoldConfig) -> dict[str, float]:
        """Where the goal is believed to be before the drone moves: with the text, and with every word unknown."""
        network.eval()
        metrics: dict[str, float] = {}
        for label, looks in self.looks.items():
            wordless = replace(looks, tokens=looks.tokens.blank())
            metrics |= _goal_metrics(f"{label}_{{}}", assess(network, looks, gold))
            metrics |= _goal_metrics(f"{label}_{{}}_without_text", assess(network, wordless, gold))
        return metrics

    def image(self, policy: LearnedPolicy, number: int = 0) -> NDArray[np.uint8]:
        """[H, W, 3] what the policy believes in one flight."""
        name = next(iter(self.tasks))
        task = self.tasks[name][number % len(self.tasks[name])]
        [flight] = fly(policy, Simulator(1, self.device), [task], max_steps=self.steps[name], keep_images=True)
        if number not in self._overheads:
            viewer = Simulator(1, self.device, render=RenderConfig(shadows=True))  # for people, not for policies
            viewer.reset([task.layout], start_poses([task]))
            self._overheads[number] = viewer.overhead(MAP_SIZE, MAP_EXTENT)[0].cpu().numpy()
        overhead = self._overheads[number]
        frames = list(belief_frames(flight, overhead, name, states=still_states(flight)))
        return np.asarray(belief_strip(flight, frames, overhead, name).convert("RGB"))


def _goal_metrics(label: str, found: Assessment) -> dict[str, float]:
    """Errors and hits of the goals in view, and the divergence of all; `label` has a gap for the metric's name."""
    error = found.goal_error[found.gold_unobserved < 0.5]
    divergence = (found.cross_entropy - found.gold_entropy).mean(0)
    return {
        label.format("error"): float(error.mean()),
        label.format("within"): float(succeeded(error).float().mean()),
        label.format("goal_kl"): float(divergence[1]),
    }
