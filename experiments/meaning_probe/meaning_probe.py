"""How well does an instruction's meaning determine where to fly? A probe without text and images; JSON lines.

Usage: python experiments/meaning_probe/meaning_probe.py DATASET… [--device cuda]   (generated ones, with meanings)

It is given each instruction's meaning, clause by clause, with the places, headings and footprints of the landmarks that
it mentions and the places of all others, relative to the start: perfect parsing, perfect vision. A recurrent network
learns from the train splits of all datasets where demonstrations end, and where they lead in each quarter of the way,
as mixtures of Gaussians. The likeliest end is compared with dev's. The mixtures, as maps of 64 × 64 cells, are compared
with the gold distributions of stage 1 after it has seen everything: the same KL divergences, in nats. A policy has to
learn the same from text and images, and more. It takes three quarters of an hour on two CPU cores, minutes on a GPU.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import torch
import tyro
from torch import Tensor, nn

from wordwing.commands.common import bar
from wordwing.data.dataset import Dataset
from wordwing.data.schema import Instruction
from wordwing.data.subsets import instructions_of
from wordwing.execution.metrics import SUCCESS_DISTANCE, wilson
from wordwing.frames import Pose
from wordwing.language.meaning.clauses import COLOURS, KINDS, Clause, Reference
from wordwing.learning.losses import GoldConfig, gold_visitation
from wordwing.learning.training_data import POINTS, even_points
from wordwing.model.grid import START_GRID
from wordwing.model.mapping import arena_cells
from wordwing.world.layout import Layout

SIDES = ("left", "right", "front", "behind")
CLAUSES, LANDMARKS, GAUSSIANS = 12, 13, 12
"""Most clauses of an instruction and landmarks of a layout that are used; components of each mixture."""

PHASES = 4
"""Parts of the way, of which each has a mixture of its own; the last mixture is the end's."""

EPOCHS, BATCH, RATE, DECAY = 14, 256, 2e-3, 0.05

BLUR = GoldConfig().blur * START_GRID.cell
"""Standard deviation of what stage 1 is compared with, metres: what is predicted is blurred as much."""


class Batch(NamedTuple):
    """N instructions; metres, frame of each start."""

    clauses: Tensor
    """[N, CLAUSES, ·]."""
    counts: Tensor
    """[N] number of clauses."""
    places: Tensor
    """[N, ·] the arena's centre, its heading, and the landmarks' places, the nearest first."""
    path: Tensor
    """[N, 64, 2] along the demonstrations."""
    starts: Tensor
    """[N, 3] x, y and yaw in the arena."""
    segments: Tensor
    """[N]."""

    def take(self, chosen: Tensor) -> "Batch":
        """Some of them."""
        return Batch(*(part[chosen] for part in self))

    def to(self, device: str) -> "Batch":
        """All of them on a device."""
        return Batch(*(part.to(device) for part in self))

    def parts(self, count: int = 500) -> Iterator["Batch"]:
        """A few at a time."""
        for begin in range(0, len(self.counts), count):
            yield self.take(torch.arange(begin, min(begin + count, len(self.counts)), device=self.counts.device))


class Mixture(NamedTuple):
    """N times M mixtures of K round Gaussians over the plane."""

    log_weights: Tensor
    """[N, M, K]."""
    means: Tensor
    """[N, M, K, 2]."""
    log_sigmas: Tensor
    """[N, M, K]."""

    def log_density(self, points: Tensor, blur: float = 0.0) -> Tensor:
        """At points [N, M, P, 2]: [N, M, P], up to a constant."""
        variance = (2 * self.log_sigmas).exp() + blur**2
        square = (points[..., None, :] - self.means[:, :, None]).square().sum(-1)
        terms = self.log_weights - variance.log()
        return torch.logsumexp(terms[:, :, None] - square / (2 * variance[:, :, None]), -1)

    def likeliest(self) -> Tensor:
        """[N, M, 2] the mean with the greatest density."""
        best = self.log_density(self.means).argmax(-1)[..., None, None]
        return self.means.gather(2, best.expand(-1, -1, -1, 2))[:, :, 0]


class Probe(nn.Module):
    """Meanings to mixtures: one for each phase of the way, and one for its end."""

    def __init__(self, clause: int, places: int) -> None:
        super().__init__()
        self.clause = nn.Sequential(nn.Linear(clause + places, 256), nn.ReLU(), nn.Linear(256, 256))
        self.all = nn.GRU(256, 384, batch_first=True)
        mixtures = (PHASES + 1) * 4 * GAUSSIANS
        self.goal = nn.Sequential(nn.Linear(384 + places, 512), nn.ReLU(), nn.Linear(512, mixtures))

    def forward(self, batch: Batch) -> Mixture:
        """Where N instructions lead."""
        places = batch.places[:, None].expand(-1, CLAUSES, -1)
        read, _state = self.all(self.clause(torch.cat([batch.clauses, places], -1)))
        last = read[torch.arange(len(read), device=read.device), batch.counts - 1]
        parts = self.goal(torch.cat([last, batch.places], -1)).unflatten(-1, (PHASES + 1, GAUSSIANS, 4))
        return Mixture(parts[..., 0].log_softmax(-1), parts[..., 1:3], parts[..., 3].clamp(-3, 1))


def loss(found: Mixture, path: Tensor) -> Tensor:
    """The mean of -log density of the end, and of all points of the way in their phases."""
    phases = path.unflatten(1, (PHASES, -1))  # [N, PHASES, P, 2]
    end = path[:, -1:, None].expand(-1, 1, phases.shape[2], -1)
    return -found.log_density(torch.cat([phases, end], 1)).mean((0, 2)).sum()


def divergences(found: Mixture, batch: Batch) -> Tensor:
    """[N, 2] KL(gold ‖ predicted) of trajectory and goal, nats, as maps of which the whole arena has been seen."""
    start = Pose.level(batch.starts[:, :2], batch.starts[:, 2])
    yaw, origin = batch.starts[:, 2, None], batch.starts[:, None, :2]
    x, y = batch.path.unbind(-1)
    world = torch.stack([yaw.cos() * x - yaw.sin() * y, yaw.sin() * x + yaw.cos() * y], -1) + origin
    gold = gold_visitation(world, start, GoldConfig())
    cells = START_GRID.centres(str(world.device)).flatten(0, 1).expand(len(world), PHASES + 1, -1, -1)
    logs = found.log_density(cells, BLUR).masked_fill(~arena_cells(start).flatten(1)[:, None], -torch.inf)
    logs = logs.log_softmax(-1)
    trajectory = logs[:, :PHASES].logsumexp(1) - math.log(PHASES)
    wanted = torch.stack([gold.trajectory.flatten(1), gold.goal.flatten(1)], 1)
    terms = wanted * (wanted.clamp(min=1e-30).log() - torch.stack([trajectory, logs[:, PHASES]], 1))
    return terms.where(wanted > 0, 0.0).sum(-1)


def encoded(dataset: Dataset, split: str, limit: int | None = None) -> Batch:
    """The instructions of a split, or the first so many."""
    entries = list(instructions_of(dataset, split))[:limit]
    rows = [_encoded(entry, dataset.layout(entry.layout, entry.window)) for entry in entries]
    paths = even_points([_seen_path(entry) for entry in entries])
    clauses, counts, places, starts, segments = (torch.stack(parts) for parts in zip(*rows, strict=True))
    return Batch(clauses, counts, places, paths, starts, segments)


def _seen_path(entry: Instruction) -> np.ndarray:
    (x, y), yaw = entry.segment.start_xy, entry.segment.start_yaw
    offset, cos, sin = entry.segment.path - (x, y), math.cos(yaw), math.sin(yaw)
    return np.stack([offset[:, 0] * cos + offset[:, 1] * sin, offset[:, 1] * cos - offset[:, 0] * sin], -1)


def _encoded(entry: Instruction, layout: Layout) -> tuple[Tensor, ...]:
    segment = entry.segment
    assert segment.meaning, f"{entry.id}: only generated instructions have a meaning that is known"
    (x, y), cos, sin = segment.start_xy, math.cos(segment.start_yaw), math.sin(segment.start_yaw)

    def seen(px: float, py: float) -> list[float]:
        return [(px - x) * cos + (py - y) * sin, (py - y) * cos - (px - x) * sin]

    def place(reference: Reference | None) -> list[float]:
        fence = [float(reference == colour) for colour in COLOURS]
        if not isinstance(reference, int):
            return [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, *fence]
        landmark = layout.landmarks[reference]
        turned = landmark.yaw - segment.start_yaw
        looks = [math.cos(turned), math.sin(turned), landmark.kind.footprint]
        return [*seen(landmark.x, landmark.y), 1.0, *looks, *fence]

    def clause(given: Clause) -> list[float]:
        kind = [float(given.kind == name) for name in KINDS] + [float(given.side == name) for name in SIDES]
        return [*kind, given.amount or 0.0, *place(given.reference), *place(given.other)]

    clauses = torch.tensor([clause(given) for given in segment.meaning[-CLAUSES:]])
    count = len(clauses)
    near = sorted((seen(mark.x, mark.y) for mark in layout.landmarks), key=lambda spot: math.hypot(*spot))[:LANDMARKS]
    places = [*seen(0, 0), cos, sin, *(value for spot in near for value in spot), *[0.0] * 2 * (LANDMARKS - len(near))]
    padded = nn.functional.pad(clauses, (0, 0, 0, CLAUSES - count))
    starts = torch.tensor([x, y, segment.start_yaw])
    return padded, torch.tensor(count), torch.tensor(places), starts, torch.tensor(entry.segments)


def learn(train: Batch, epochs: float, seed: int) -> Probe:
    """A probe that has seen every instruction so many times."""
    torch.manual_seed(seed)
    probe = Probe(train.clauses.shape[-1], train.places.shape[-1]).to(train.places.device)
    optimizer = torch.optim.AdamW(probe.parameters(), RATE, weight_decay=DECAY)
    updates = max(int(epochs * len(train.counts)) // BATCH, 1)
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=updates)
    with bar("learning", updates, "updates") as tick:
        for _update in range(updates):
            batch = train.take(torch.randint(len(train.counts), (BATCH,), device=train.counts.device))
            value = loss(probe(batch), batch.path)
            optimizer.zero_grad()
            value.backward()
            nn.utils.clip_grad_norm_(probe.parameters(), 1.0)
            optimizer.step()
            rate.step()
            tick(1)
    return probe


@torch.no_grad()
def measured(probe: Probe, dev: Batch) -> tuple[Tensor, Tensor]:
    """[N] whether the likeliest end is right, and [N, 2] the divergences of trajectory and goal."""
    near, apart = [], []
    for part in dev.parts():
        found = probe(part)
        near.append((found.likeliest()[:, PHASES] - part.path[:, -1]).norm(dim=-1) <= SUCCESS_DISTANCE)
        apart.append(divergences(found, part))
    return torch.cat(near).cpu(), torch.cat(apart).cpu()


def main(
    folders: Annotated[list[Path], tyro.conf.Positional],
    /,
    epochs: float = EPOCHS,
    seed: int = 0,
    device: str = "cpu",
    limit: int | None = None,
) -> None:
    """Train the probe, and print how often it finds dev goals and how far its maps are from gold.

    Args:
        folders: Datasets with meanings.
        epochs: How often each instruction is seen.
        seed: Of the network and the batches.
        device: Where to learn: "cpu" or "cuda".
        limit: Only the first so many instructions of each split, for trials.
    """
    datasets = [Dataset(folder) for folder in folders]
    parts = [encoded(dataset, "train", limit) for dataset in datasets]
    train = Batch(*(torch.cat(kind) for kind in zip(*parts, strict=True))).to(device)
    assert train.path.shape[1] == POINTS
    probe = learn(train, epochs, seed)
    for dataset in datasets:
        dev = encoded(dataset, "dev", limit).to(device)
        near, apart = measured(probe, dev)
        segments, counts = dev.segments.cpu(), dev.counts.cpu()
        groups = [(one, "any", segments == one) for one in (1, 2)]
        groups += [(1, "1–2", counts < 3), (1, "3–4", (counts > 2) & (counts < 5)), (1, "5–", counts > 4)]
        for number, clauses, chosen in groups:
            chosen = chosen & (segments == number)
            if not chosen.any():
                continue
            found = near[chosen]
            low, high = wilson(int(found.sum()), len(found))
            row = {"corpus": dataset.name, "split": "dev", "segments": number, "clauses": clauses, "n": len(found)}
            row["goal within 0.47 m, %"] = round(100 * float(found.float().mean()), 1)
            row["95 %"] = f"{100 * low:.1f}–{100 * high:.1f}"
            trajectory, goal = apart[chosen].mean(0).tolist()
            row |= {"KL goal, nats": round(goal, 2), "KL trajectory, nats": round(trajectory, 2)}
            print(json.dumps(row, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    tyro.cli(main)
