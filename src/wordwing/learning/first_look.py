"""What can be planned from the start: the smallest test of whether stage 1 learns, and of what it learns from.

A drone that has not moved yet, or has turned on the spot once, cannot betray by its flight where the goal is. So the
goal's distance from the prediction, with the text and with it blanked, says how much was understood.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from wordwing.devices import precision
from wordwing.frames import Pose, start_frame
from wordwing.interface import FLIGHT_HEIGHT, Domain
from wordwing.language.tokenizer import Vocabulary
from wordwing.learning.gold import GoldConfig, even_points, gold_visitation, observed_part
from wordwing.model.grid import START_GRID
from wordwing.model.layers import each
from wordwing.model.policy import PolicyNetwork
from wordwing.model.text import Tokens
from wordwing.model.visitation import Scores, Visitation, cross_entropy, entropy, visitation
from wordwing.sim.scene import PackedLayouts
from wordwing.sim.simulator import Simulator
from wordwing.world.tasks import Task

WORLDS = 2048
"""Pictures that are drawn at once."""


@dataclass(frozen=True)
class FirstLooks:
    """N instructions, K pictures that their drones see from the start, and the paths that they mean; on one device."""

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
        """Draw what the drones of some tasks see in `sim`: ahead, or in so many directions all around."""
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

    def silent(self) -> FirstLooks:
        """The same without any instruction."""
        return replace(self, tokens=self.tokens.blank())


@dataclass(frozen=True)
class Outcome:
    """What stage 1 predicted for N first looks beside what it was asked for."""

    scores: Scores
    observed: Tensor
    """[N, 64, 64] bool, the cells that both reach over."""
    gold: Visitation
    goal_unobserved: Tensor
    """[N] how much of the goal lies where the drone has not looked, whether or not the policy minds."""

    @property
    def loss(self) -> Tensor:
        """[N, 2] cross-entropies of trajectory and goal, nats; of the trajectory the mean over its phases."""
        return cross_entropy(self.scores, self.observed, self.gold)


def predict(network: PolicyNetwork, looks: FirstLooks, config: GoldConfig, domain: Domain = "sim") -> Outcome:
    """Look, and plan once; pictures may be another domain's than those that were drawn."""
    state = network.begin(looks.tokens, looks.start)
    features = network.stage1.encode_images(looks.image.flatten(0, 1), domain)
    state = network.observe(state, features, looks.pose)[0][-1]
    _grounding_map, scores = network.stage1.predict(state.map.features, state.observed, state.kernels)
    support = network.stage1.support(state.observed)
    gold = gold_visitation(looks.points, looks.start, config, network.config.stage1.phases)
    in_view = observed_part(gold, state.observed)
    return Outcome(scores, support, observed_part(gold, support), in_view.unobserved[:, 1])


def fit(
    network: PolicyNetwork,
    looks: FirstLooks,
    steps: int,
    batch: int,
    rate: float,
    gold: GoldConfig,
    seed: int = 0,
    tick: Callable[[int, float], None] = lambda step, loss: None,
) -> None:
    """Train stage 1 on first looks with Adam, the learning rate falling to zero along a cosine.

    Args:
        network: Whose stage 1 is trained, in place.
        looks: On the network's device.
        steps: Updates.
        batch: First looks in each, drawn without replacement.
        rate: Learning rate.
        gold: How sure the gold distributions are.
        seed: Of the order.
        tick: Told the number of the update and its loss every 50 of them.
    """
    device = looks.points.device
    optimizer = torch.optim.Adam(network.stage1.parameters(), rate, fused=device.type == "cuda")
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    order = torch.Generator().manual_seed(seed)
    waiting = torch.empty(0, dtype=torch.int64)
    network.train()
    for step in range(steps):
        if len(waiting) < batch:
            waiting = torch.randperm(len(looks), generator=order)
        index, waiting = waiting[:batch], waiting[batch:]
        with precision(device):
            loss = predict(network, looks[index.to(device)], gold).loss.sum(1).mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step + 1 == steps:
            tick(step, loss.item())
    network.eval()


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
        best = START_GRID.centres(device).flatten(0, 1)[plan.goal.flatten(1).argmax(1)]  # [B, 2]
        end = start_frame(part.start).unapply(torch.nn.functional.pad(part.points[:, -1], (0, 1)))[:, :2]
        error = (best - end).norm(dim=1)
        whole = outcome.gold.unordered  # so that networks with and without phases are compared by the same figures
        loss = cross_entropy(outcome.scores, outcome.observed, whole)
        figures = (loss, entropy(whole), error, plan.unobserved[:, 1], outcome.goal_unobserved)
        parts.append([figure.float().cpu() for figure in figures])
    return Assessment(*(torch.cat(column) for column in zip(*parts, strict=True)))
