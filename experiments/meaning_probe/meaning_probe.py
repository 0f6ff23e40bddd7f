"""How well does an instruction's meaning determine where to stop? A probe without text and images; JSON lines.

Usage: python experiments/meaning_probe/meaning_probe.py DATASET…     (generated ones, whose meanings are known)

It is given each instruction's meaning, clause by clause, with the positions of the landmarks that it mentions and of
all others, relative to the start: perfect parsing, perfect vision. A recurrent network learns from the train splits of
all datasets where demonstrations end, as a mixture of Gaussians, and its likeliest position is compared with dev's.
A policy has to learn the same from text and images, and more. It takes a quarter of an hour on two CPU cores.
"""

import json
import math
from pathlib import Path
from typing import Annotated, NamedTuple

import torch
import tyro
from torch import Tensor, nn

from wordwing.commands.common import bar
from wordwing.data.dataset import Dataset
from wordwing.data.schema import Instruction
from wordwing.data.subsets import instructions_of
from wordwing.execution.metrics import SUCCESS_DISTANCE, wilson
from wordwing.language.meaning.clauses import COLOURS, KINDS, Clause, Reference
from wordwing.world.layout import Layout

SIDES = ("left", "right", "front", "behind")
CLAUSES, LANDMARKS, GAUSSIANS = 12, 13, 12
"""Most clauses of an instruction and landmarks of a layout that are used; components of the mixture."""

EPOCHS, BATCH, RATE, DECAY = 14, 256, 2e-3, 0.05


class Batch(NamedTuple):
    """N instructions; metres, frame of each start."""

    clauses: Tensor
    """[N, CLAUSES, ·]."""
    counts: Tensor
    """[N] number of clauses."""
    places: Tensor
    """[N, ·] the arena's centre, its heading, and the landmarks' places, the nearest first."""
    goals: Tensor
    """[N, 2] where the demonstrations end."""
    segments: Tensor
    """[N]."""

    def take(self, chosen: Tensor) -> "Batch":
        """Some of them."""
        return Batch(*(part[chosen] for part in self))


class Mixture(NamedTuple):
    """N mixtures of K round Gaussians over the plane."""

    log_weights: Tensor
    """[N, K]."""
    means: Tensor
    """[N, K, 2]."""
    log_sigmas: Tensor
    """[N, K]."""

    def log_density(self, points: Tensor) -> Tensor:
        """At points [N, P, 2]: [N, P], up to a constant."""
        square = (points[:, :, None] - self.means[:, None]).square().sum(-1)
        terms = self.log_weights[:, None] - 2 * self.log_sigmas[:, None]
        return torch.logsumexp(terms - square / (2 * (2 * self.log_sigmas[:, None]).exp()), -1)

    def likeliest(self) -> Tensor:
        """[N, 2] the mean with the greatest density."""
        best = self.log_density(self.means).argmax(-1)
        return self.means[torch.arange(len(best)), best]


class Probe(nn.Module):
    """Meanings to mixtures."""

    def __init__(self, clause: int, places: int) -> None:
        super().__init__()
        self.clause = nn.Sequential(nn.Linear(clause + places, 256), nn.ReLU(), nn.Linear(256, 256))
        self.all = nn.GRU(256, 384, batch_first=True)
        self.goal = nn.Sequential(nn.Linear(384 + places, 256), nn.ReLU(), nn.Linear(256, 4 * GAUSSIANS))

    def forward(self, batch: Batch) -> Mixture:
        """Where N instructions end."""
        places = batch.places[:, None].expand(-1, CLAUSES, -1)
        read, _state = self.all(self.clause(torch.cat([batch.clauses, places], -1)))
        last = read[torch.arange(len(read)), batch.counts - 1]
        parts = self.goal(torch.cat([last, batch.places], -1)).unflatten(-1, (GAUSSIANS, 4))
        return Mixture(parts[..., 0].log_softmax(-1), parts[..., 1:3], parts[..., 3].clamp(-3, 1))


def encoded(dataset: Dataset, split: str) -> Batch:
    """All instructions of a split."""
    rows = [_encoded(entry, dataset.layout(entry.layout, entry.window)) for entry in instructions_of(dataset, split)]
    return Batch(*(torch.stack(parts) for parts in zip(*rows, strict=True)))


def _encoded(entry: Instruction, layout: Layout) -> tuple[Tensor, ...]:
    segment = entry.segment
    assert segment.meaning, f"{entry.id}: only generated instructions have a meaning that is known"
    (x, y), cos, sin = segment.start_xy, math.cos(segment.start_yaw), math.sin(segment.start_yaw)

    def seen(px: float, py: float) -> list[float]:
        return [(px - x) * cos + (py - y) * sin, (py - y) * cos - (px - x) * sin]

    def place(reference: Reference | None) -> list[float]:
        fence = [float(reference == colour) for colour in COLOURS]
        if not isinstance(reference, int):
            return [0.0, 0.0, 0.0, *fence]
        landmark = layout.landmarks[reference]
        return [*seen(landmark.x, landmark.y), 1.0, *fence]

    def clause(given: Clause) -> list[float]:
        kind = [float(given.kind == name) for name in KINDS] + [float(given.side == name) for name in SIDES]
        return [*kind, given.amount or 0.0, *place(given.reference), *place(given.other)]

    clauses = torch.tensor([clause(given) for given in segment.meaning[-CLAUSES:]])
    count = len(clauses)
    near = sorted((seen(mark.x, mark.y) for mark in layout.landmarks), key=lambda spot: math.hypot(*spot))[:LANDMARKS]
    places = [*seen(0, 0), cos, sin, *(value for spot in near for value in spot), *[0.0] * 2 * (LANDMARKS - len(near))]
    goal = seen(*(float(value) for value in segment.path[-1]))
    padded = nn.functional.pad(clauses, (0, 0, 0, CLAUSES - count))
    return padded, torch.tensor(count), torch.tensor(places), torch.tensor(goal), torch.tensor(entry.segments)


def main(folders: Annotated[list[Path], tyro.conf.Positional], /, epochs: int = EPOCHS, seed: int = 0) -> None:
    """Train the probe, and print how often it finds dev goals."""
    torch.manual_seed(seed)
    datasets = [Dataset(folder) for folder in folders]
    parts = [encoded(dataset, "train") for dataset in datasets]
    train = Batch(*(torch.cat(kind) for kind in zip(*parts, strict=True)))
    probe = Probe(train.clauses.shape[-1], train.places.shape[-1])
    optimizer = torch.optim.AdamW(probe.parameters(), RATE, weight_decay=DECAY)
    updates = epochs * len(train.goals) // BATCH
    rate = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=updates)
    with bar("learning", updates, "updates") as tick:
        for _update in range(updates):
            batch = train.take(torch.randint(len(train.goals), (BATCH,)))
            loss = -probe(batch).log_density(batch.goals[:, None]).mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(probe.parameters(), 1.0)
            optimizer.step()
            rate.step()
            tick(1)
    for dataset in datasets:
        dev = encoded(dataset, "dev")
        with torch.no_grad():
            near = (probe(dev).likeliest() - dev.goals).norm(dim=-1) <= SUCCESS_DISTANCE
        for segments in (1, 2):
            found = near[dev.segments == segments]
            low, high = wilson(int(found.sum()), len(found))
            row = {"corpus": dataset.name, "split": "dev", "segments": segments, "n": len(found)}
            share = round(100 * float(found.float().mean()), 1)
            span = f"{100 * low:.1f}–{100 * high:.1f}"
            print(json.dumps(row | {"goal within 0.47 m, %": share, "95 %": span}, ensure_ascii=False))


if __name__ == "__main__":
    tyro.cli(main)
