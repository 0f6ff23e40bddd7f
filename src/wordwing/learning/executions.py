"""D^S and D^R: the executions that Process A learns from, one for each instruction (paper: Learning).

`sim` images are rendered again from the poses, `lab` images were recorded. D^S begins with demonstrations; rollouts of
Process B replace them, but slowly, so that the random flights of an untrained stage 2 do not wipe them out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from wordwing.data.dataset import DERIVED
from wordwing.data.demonstrations.archive import Demonstrations
from wordwing.data.demonstrations.flying import fly_sim
from wordwing.errors import WordwingError
from wordwing.execution.packing import PackedExecutions, pack_pose
from wordwing.learning.runtime.messages import Rollouts
from wordwing.learning.training_data import DataConfig, ExampleSet, Say, TrainingData
from wordwing.model.layers import each

TURNOVERS = 10
"""How often all of D^S may be replaced while Process B learns."""


@dataclass(eq=False)
class ExecutionSet(PackedExecutions):
    """N executions of training examples on one device."""

    example: Tensor | None = None
    """[N] int64, which example each is of; by default execution n is of example n."""
    images: Tensor | None = None
    """[sum of lengths, 72, 128, 3] uint8 as recorded, execution by execution; None in `sim`."""

    def __post_init__(self) -> None:
        if self.example is None:
            self.example = torch.arange(len(self), device=self.lengths.device)
        self.is_rollout = torch.zeros_like(self.lengths, dtype=torch.bool)
        """[N] whether it is a rollout of Process B."""
        self.kept = torch.zeros_like(self.is_rollout)
        """[N] whether it is never replaced."""
        self.merged = 0
        """Rollouts merged so far."""
        self.first_image = torch.cumsum(self.lengths, 0) - self.lengths
        """[N] int64, where the images of each execution begin."""

    def __getitem__(self, index: Tensor) -> Self:
        """Executions `index` [M], copied, without images."""
        picked = super().__getitem__(index)
        picked.example = None if self.example is None else self.example[index]
        return picked

    @classmethod
    def standing(cls, examples: ExampleSet, room: int = 1) -> Self:
        """Executions of a policy that always stops: one pose each, the start, with room for `room` poses."""
        poses = pack_pose(examples.examples.start)[:, None].repeat(1, room, 1)
        return cls(poses, torch.ones(len(examples), dtype=torch.int64, device=poses.device))

    @classmethod
    def from_demonstrations(cls, examples: ExampleSet, demonstrations: Mapping[str, Demonstrations]) -> Self:
        """Take ORACLE's executions of every dataset; there is room for as many poses as a rollout can have."""
        parts = []
        for name, ids in zip(examples.corpora, examples.ids, strict=True):
            given = demonstrations[name]
            number_of = {one: number for number, one in enumerate(given.ids)}
            if missing := [one for one in ids if one not in number_of]:
                raise WordwingError(f"{name}: there is no demonstration of the instruction {missing[0]!r}")
            parts.append(given.packed([number_of[one] for one in ids], examples.max_steps + 1))
        whole: PackedExecutions = each(lambda *tensors: torch.cat(tensors).to(examples.device), *parts)
        return cls(whole.poses, whole.lengths, whole.setpoints, whole.stopped)

    @classmethod
    def from_lab(cls, examples: ExampleSet, demonstrations: Demonstrations, chosen: Sequence[int]) -> Self:
        """Take flights `chosen` of the lab, with their images; each is of one of the cage's training instructions."""
        at = dict(zip(examples.ids[examples.corpora.index("cage")], examples.of("cage").tolist(), strict=True))
        names = [demonstrations.ids[number] for number in chosen]
        if missing := [one for one in names if one not in at]:
            raise WordwingError(f'cage: the lab flew the instruction "{missing[0]}", which is not among the examples')
        packed = demonstrations.packed(chosen).to(examples.device)
        images = torch.cat([demonstrations.images(number) for number in chosen]).to(examples.device)
        example = torch.tensor([at[one] for one in names], device=examples.device)
        return cls(packed.poses, packed.lengths, packed.setpoints, packed.stopped, example, images)

    @property
    def demonstrations_left(self) -> Tensor:
        """[] share of the instructions whose execution has not been replaced."""
        return 1 - self.is_rollout.float().mean()

    def sample_frames(self, index: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """[E, count] int64: which poses of executions `index` [E] to look from, the first one always, in order.

        The flight is cut into equal parts and a pose is drawn from each; a short one gives some poses twice.
        """
        length = self.lengths[index, None]  # [E, 1]
        shape = (len(index), count - 1)
        share = torch.arange(count - 1, device=length.device) + torch.rand(
            shape, device=length.device, generator=generator
        )
        later = 1 + (share / max(count - 1, 1) * (length - 1)).long()
        return torch.cat([torch.zeros_like(length), later.minimum(length - 1)], dim=1)

    def sample_poses(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw executions [count] int64 and a pose number of each, [count, 1] int64."""
        device = self.lengths.device
        index = torch.randint(len(self), (count,), device=device, generator=generator)
        share = torch.rand(count, 1, device=device, generator=generator)
        return index, (share * self.lengths[index, None]).long()

    def image(self, index: Tensor, frames: Tensor) -> Tensor:
        """[E, K, 72, 128, 3] uint8: recorded images number `frames` [E, K] of executions `index` [E]."""
        if self.images is None:
            raise ValueError("no images of these executions were recorded")
        return self.images[self.first_image[index, None] + frames]

    def oracle_actions(self, index: Tensor, frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What ORACLE decided at poses number `frames` [E, K] of executions `index` [E].

        Returns:
            Setpoints [E, K, 2], m/s and rad/s; whether it was STOP, [E, K] bool; and whether this is known, [E, K]
            bool: it is not for rollouts and for drones that never flew, nor where ORACLE's steps had run out.
        """
        last = frames == self.lengths[index, None] - 1
        if self.setpoints is None:
            unknown = torch.zeros_like(last)
            return torch.zeros(*frames.shape, 2, device=frames.device), unknown, unknown
        flown = self.setpoint(index, frames)
        stopped = True if self.stopped is None else self.stopped[index, None]
        known = ~self.is_rollout[index, None] & (stopped | ~last)
        return torch.stack([flown.forward, flown.yaw_rate], dim=-1) * known[..., None], last & known, known

    def merge(self, rollouts: Rollouts) -> int:
        """MERGE of Algorithm 2: put rollouts in the place of what was there; returns how many.

        At most ten turnovers of the whole set are merged over all of Process B's training, evenly; the rest of a
        message is dropped.
        """
        # Of an instruction that was flown twice the last flight counts; two rows written to one place might be mixed.
        replaceable = ~self.kept[rollouts.example.to(self.kept.device)].cpu()
        flown = zip(rollouts.example.tolist(), replaceable.tolist(), strict=True)
        newest = {example: row for row, (example, free) in enumerate(flown) if free}
        allowed = int(TURNOVERS * rollouts.progress * len(self)) - self.merged
        count = max(0, min(allowed, len(newest)))
        if count:
            self._replace(rollouts, torch.tensor(list(newest.values())[:count]))
            self.merged += count
        return count

    def keep(self, share: float) -> None:
        """Never replace a share of the executions, evenly spread."""
        number = torch.arange(len(self) + 1, device=self.kept.device, dtype=torch.float64)
        self.kept = (number * share).floor().diff() > 0

    def rollouts(self) -> Rollouts:
        """All rollouts that are in the set now, on the CPU, to be saved; `restore` takes them back."""
        example = self.is_rollout.nonzero()[:, 0]
        return Rollouts(example.cpu(), PackedExecutions(self.poses[example], self.lengths[example]).to("cpu"), 1.0)

    def restore(self, rollouts: Rollouts, merged: int) -> None:
        """Resume with the rollouts that were saved, after `merged` had been merged."""
        self._replace(rollouts, torch.arange(len(rollouts.example)))
        self.merged = merged

    def _replace(self, rollouts: Rollouts, rows: Tensor) -> None:
        """Put rollouts `rows` [M] in the place of what was there; longer ones are cut off."""
        example, flown = rollouts.example[rows].to(self.poses.device), rollouts.executions[rows]
        padded = PackedExecutions.from_rows(flown.rows(), flown.lengths, most=self.poses.shape[1]).to(example.device)
        self.poses[example], self.lengths[example] = padded.poses, padded.lengths
        self.is_rollout[example] = True


def initial_executions(data: TrainingData, config: DataConfig, say: Say = lambda sentence: None) -> ExecutionSet:
    """What D^S begins with."""
    examples = data.examples
    if config.initial_executions == "standing":
        return ExecutionSet.standing(examples, examples.max_steps + 1)
    demonstrations = {}
    for dataset, part in zip(data.datasets, data.training, strict=True):
        file = dataset.folder / DERIVED / "sim-train.npz"
        if file.is_file():
            demonstrations[dataset.name] = Demonstrations.load(file, dataset)
        else:
            say(f"flying ORACLE along {len(part)} paths of {dataset.name}")
            demonstrations[dataset.name] = fly_sim(dataset, part, examples.device)
    return ExecutionSet.from_demonstrations(examples, demonstrations)


def lab_executions(data: TrainingData, config: DataConfig, say: Say = lambda sentence: None) -> ExecutionSet | None:
    """D^R, or None where a run learns from `sim` only."""
    if config.lab == "none":
        return None
    cage = next((dataset for dataset in data.datasets if dataset.name == "cage"), None)
    if cage is None:
        raise WordwingError(
            "the lab's demonstrations are of the cage; add it to data.corpora, or take --ablate sim-only"
        )
    file = cage.folder / DERIVED / "lab-train.npz"
    if not file.is_file():
        raise WordwingError(
            f"{file}: the lab's demonstrations are not there; wordwing data demonstrate {cage.folder} --domain lab "
            "flies them, in about five minutes, and --ablate sim-only learns without them"
        )
    say("reading the lab's images")
    recorded = Demonstrations.load(file, cage, "lab")
    known = set(data.examples.ids[data.examples.corpora.index("cage")])
    chosen = [int(number) for number in recorded.subset(config.lab) if recorded.ids[number] in known]
    if not chosen:
        raise WordwingError(f"{file}: none of its flights follows a training instruction; data.limit leaves them out")
    return ExecutionSet.from_lab(data.examples, recorded, chosen)
