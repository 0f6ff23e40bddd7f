"""D^S and D^R: one execution for each instruction, as the poses that its drone had (paper: Learning).

`sim` pictures are drawn again from the poses, `lab` pictures were recorded. Demonstrations come first; rollouts of
Process B take their place, but slowly, so that the random flights of an untrained stage 2 do not wipe them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from wordwing.data.demonstrations.archive import Demonstrations
from wordwing.errors import WordwingError
from wordwing.execution.packing import pack_pose, unpack_pose, unpack_setpoint
from wordwing.frames import Pose
from wordwing.learning.examples import ExampleSet
from wordwing.learning.runtime.messages import Executed

TURNOVERS = 10
"""How often all of D^S may be replaced while Process B learns."""


class Executions:
    """N executions of N instructions on a device."""

    def __init__(
        self, poses: Tensor, lengths: Tensor, setpoints: Tensor | None = None, stopped: Tensor | None = None
    ) -> None:
        """Keep packed poses.

        Args:
            poses: [N, L, 6] int16, as `packing` has them, padded with anything.
            lengths: [N] int64, poses of each; at least one.
            setpoints: [N, L, 2] int16, flown from these poses, to clone ORACLE.
            stopped: [N] bool, whether ORACLE decided to STOP at the last pose, as it does by default; else its steps
                had run out there.
        """
        self.poses, self.lengths, self.setpoints = poses, lengths, setpoints
        self.stopped = torch.ones_like(lengths, dtype=torch.bool) if stopped is None else stopped
        self.rolled = torch.zeros_like(lengths, dtype=torch.bool)
        """[N] whether it is a rollout."""
        self.merged = 0
        """Rollouts that have been taken over so far."""

    def __len__(self) -> int:
        return len(self.lengths)

    @classmethod
    def standing(cls, examples: ExampleSet, longest: int = 1) -> Executions:
        """Of a policy that always stops: one pose each, the start; room for `longest` poses."""
        poses = pack_pose(examples.examples.start)[:, None].repeat(1, longest, 1)
        return cls(poses, torch.ones(len(examples), dtype=torch.int64, device=poses.device))

    @classmethod
    def demonstrated(cls, examples: ExampleSet, demonstrations: Mapping[str, Demonstrations]) -> Executions:
        """ORACLE's, of every dataset; room for as many poses as a rollout can have."""
        longest = examples.max_steps + 1
        rows = np.zeros((len(examples), longest, 8), np.int16)
        lengths = np.zeros(len(examples), np.int64)
        stopped = np.zeros(len(examples), bool)
        first = 0
        for name, ids in zip(examples.corpora, examples.ids, strict=True):
            given = demonstrations[name]
            at = {one: number for number, one in enumerate(given.ids)}
            try:
                chosen = np.array([at[one] for one in ids])
            except KeyError as missing:
                raise WordwingError(f"{name}: there is no demonstration of the instruction {missing}") from None
            count = np.minimum(given.decisions[chosen] + 1, longest)
            begin = given.offsets[chosen]
            at_most = np.minimum(np.arange(longest), count[:, None] - 1)  # [n, L]
            rows[first : first + len(ids)] = given.rows[begin[:, None] + at_most]
            lengths[first : first + len(ids)] = count
            stopped[first : first + len(ids)] = given.stopped[chosen]
            first += len(ids)
        packed = torch.from_numpy(rows).to(examples.device)
        poses, setpoints = packed[..., :6].contiguous(), packed[..., 6:].contiguous()
        length, ended = (torch.from_numpy(array).to(examples.device) for array in (lengths, stopped))
        return cls(poses, length, setpoints, ended)

    def copy(self, index: Tensor) -> Executions:
        """Executions `index` [M] as they are now, whatever becomes of these."""
        setpoints = None if self.setpoints is None else self.setpoints[index]
        return Executions(self.poses[index], self.lengths[index], setpoints, self.stopped[index])

    @property
    def demonstrations_left(self) -> Tensor:
        """[] share of the instructions whose execution is still the first one."""
        return 1 - self.rolled.float().mean()

    def frames(self, index: Tensor, count: int, generator: torch.Generator) -> Tensor:
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

    def anywhere(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Executions [count] int64 and one pose of each, [count, 1] int64, any of them."""
        device = self.lengths.device
        which = torch.randint(len(self), (count,), device=device, generator=generator)
        share = torch.rand(count, 1, device=device, generator=generator)
        return which, (share * self.lengths[which, None]).long()

    def at(self, index: Tensor, frames: Tensor) -> Pose:
        """[E, K] poses number `frames` [E, K] of executions `index` [E], world frame."""
        return unpack_pose(self.poses[index[:, None], frames])

    def decisions(self, index: Tensor, frames: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What ORACLE decided at those poses.

        Returns:
            Setpoints [E, K, 2], m/s and rad/s; whether it was STOP, [E, K] bool; and whether this is known, [E, K]
            bool: of rollouts and of drones that never flew it is not, nor where ORACLE's steps had run out.
        """
        last = frames == self.lengths[index, None] - 1
        if self.setpoints is None:
            nobody = torch.zeros_like(last)
            return torch.zeros(*frames.shape, 2, device=frames.device), nobody, nobody
        flown = unpack_setpoint(self.setpoints[index[:, None], frames])
        known = ~self.rolled[index, None] & (self.stopped[index, None] | ~last)
        return torch.stack([flown.forward, flown.yaw_rate], dim=-1) * known[..., None], last & known, known

    def merge(self, executed: Executed) -> int:
        """Put rollouts in the place of what was there; returns how many.

        No more than ten turnovers of the whole set in all of B's updates, evenly: the rest of a message is dropped.
        """
        # Of an instruction that was flown twice the last flight counts; two rows written to one place might be mixed.
        newest = {example: row for row, example in enumerate(executed.index.tolist())}
        allowed = int(TURNOVERS * executed.progress * len(self)) - self.merged
        count = max(0, min(allowed, len(newest)))
        if count == 0:
            return 0
        chosen = torch.tensor(list(newest.values())[:count])
        index, lengths = executed.index[chosen], executed.lengths[chosen].clamp(max=self.poses.shape[1])
        first = (torch.cumsum(executed.lengths, 0) - executed.lengths)[chosen]
        steps = torch.arange(self.poses.shape[1]).minimum(lengths[:, None] - 1)  # [M, L]
        rows = executed.rows[first[:, None] + steps]
        device = self.poses.device
        index = index.to(device)
        self.poses[index] = rows.to(device)
        self.lengths[index] = lengths.to(device)
        self.rolled[index] = True
        self.merged += count
        return count

    def replaced(self) -> Executed:
        """All rollouts that are in the set now, to be kept; `restore` takes them back."""
        index = self.rolled.nonzero()[:, 0]
        lengths = self.lengths[index]
        part = torch.arange(self.poses.shape[1], device=index.device) < lengths[:, None]
        return Executed(index.cpu(), self.poses[index][part].cpu(), lengths.cpu(), progress=1.0)

    def restore(self, executed: Executed, merged: int) -> None:
        """Go on from what `replaced` gave, of which `merged` had been taken over."""
        self.merged = -len(self) * TURNOVERS  # this time nothing is dropped
        self.merge(executed)
        self.merged = merged


class LabExecutions:
    """D^R: what the lab's camera recorded, on a device."""

    def __init__(self, example: Tensor, executions: Executions, images: Tensor) -> None:
        """Keep flights.

        Args:
            example: [N] int64, which example each flight is of.
            executions: N of them.
            images: [sum of lengths, 72, 128, 3] uint8, flight by flight.
        """
        self.example, self.executions, self.images = example, executions, images
        self.first = torch.cumsum(executions.lengths, 0) - executions.lengths
        """[N] int64, where each flight's pictures begin."""

    @classmethod
    def recorded(cls, examples: ExampleSet, demonstrations: Demonstrations, chosen: Sequence[int]) -> LabExecutions:
        """Flights of the lab.

        Args:
            examples: The cage's training instructions are among them.
            demonstrations: The flights, each of one of these instructions.
            chosen: Which flights.
        """
        at = dict(zip(examples.ids[examples.corpora.index("cage")], examples.of("cage").tolist(), strict=True))
        names = [demonstrations.ids[number] for number in chosen]
        if missing := [one for one in names if one not in at]:
            raise WordwingError(f'cage: the lab flew the instruction "{missing[0]}", which is not among the examples')
        images = [demonstrations.images(number) for number in chosen]
        device = examples.device
        packed = demonstrations.packed(chosen).to(device)
        executions = Executions(packed.poses, packed.lengths, packed.setpoints, packed.stopped)
        return cls(torch.tensor([at[one] for one in names], device=device), executions, torch.cat(images).to(device))

    def __len__(self) -> int:
        return len(self.example)

    def pictures(self, index: Tensor, frames: Tensor) -> Tensor:
        """[E, K, 72, 128, 3] uint8: pictures number `frames` [E, K] of flights `index` [E]."""
        return self.images[self.first[index, None] + frames]
