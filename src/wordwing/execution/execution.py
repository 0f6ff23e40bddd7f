"""Ξ, the paper's execution: what N drones did, from the first observation until they came to rest.

One record for everything that flies or reads flights: the simulator, the lab, a MAVLink drone, demonstrations,
evaluation, the studio and the videos. The leading dimension is the batch, and one flight is a batch of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wordwing.frames import Pose, euler_from_quaternion
from wordwing.interface import Domain, Setpoint
from wordwing.language.meaning.clauses import Clause
from wordwing.model.policy import Beliefs
from wordwing.world.tasks import Task

EndedBy = Literal["stop", "steps", "operator"]
"""Why a flight ended: its policy decided STOP, its decisions were used up, or a person stopped it."""


@dataclass(frozen=True)
class Provenance:
    """Where an execution comes from: who flew which instruction of which dataset, and how."""

    system: str
    """Who flew: "oracle", "pvn2-sureal", …"""
    corpus: str
    """The dataset's name."""
    text: str
    """Who wrote the instruction: a kind of `language.authors`."""
    split: str
    domain: Domain
    seed: int
    """Of the evaluation. Gusts and noise of the lab follow from it and the id; `sim` is deterministic."""
    id: str
    """The instruction's: paragraph and segments."""
    segments: int
    layout_id: str
    meaning: tuple[Clause, ...] | None = None
    """What the instruction says, where that is known."""
    alternatives: tuple[tuple[Clause, ...], ...] = ()
    """What it may mean as well: whoever does that has followed it, too."""
    withheld: bool = False
    """The sentence may not be passed on; lines hold null in its place."""


UNKNOWN = Provenance("", "", "", "", "sim", 0, "", 1, "")
"""Of flights outside an evaluation."""


@dataclass(frozen=True, eq=False)
class Execution:
    """N executions of N tasks, padded to the longest: T control periods."""

    tasks: tuple[Task, ...]
    pose: Pose
    """[N, T + 1] at every control period until rest, world frame."""
    setpoint: Setpoint
    """[N, T] as flown, after limits and safety."""
    decisions: Tensor
    """[N] int64, index of the pose at which STOP was decided or the flight was ended."""
    length: Tensor
    """[N] int64, control periods until rest, at most T."""
    ended_by: tuple[EndedBy, ...]
    velocity: Tensor | None = None
    """[N, T + 1, 3] m/s, world frame; None where the environment does not report it."""
    goals: Tensor | None = None
    """[N, D, 3] at each decision, STOP included: x and y of the likeliest goal, world frame, and p_oob; None for a
    policy without beliefs."""
    probabilities: Tensor | None = None
    """[N, D, 3] at each decision: of STOP, and p_oob of d^p and of d^g; None for a policy without beliefs."""
    seconds_inside_landmarks: tuple[float | None, ...] = ()
    """How long each flew through landmarks; None where that is not known."""
    images: tuple[tuple[NDArray[np.uint8], ...], ...] = ()
    """What each drone saw at each pose, [72, 128, 3], if it was kept."""
    beliefs: tuple[tuple[Beliefs, ...], ...] = ()
    """What a learned policy made of it at each decision, STOP included, if it was kept; batches of one."""
    interrupted: str | None = None
    """Why the vehicle ended the flight; None if it did not."""
    provenance: Provenance = UNKNOWN
    """Of one flight of an evaluation."""

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Execution]:
        """Each flight as a batch of one, on the CPU, without padding."""
        host = replace(
            self,
            pose=self.pose.to("cpu"),
            setpoint=self.setpoint.to("cpu"),
            decisions=self.decisions.cpu(),
            length=self.length.cpu(),
            velocity=None if self.velocity is None else self.velocity.cpu(),
            goals=None if self.goals is None else self.goals.cpu(),
            probabilities=None if self.probabilities is None else self.probabilities.cpu(),
        )
        return (host[index] for index in range(len(self)))

    def __getitem__(self, index: int) -> Execution:
        """One flight as a batch of one, without padding; a negative index counts from the end."""
        index = range(len(self))[index]
        end, decided = int(self.length[index]), int(self.decisions[index]) + (self.ended_by[index] == "stop")
        one = slice(index, index + 1)
        return replace(
            self,
            tasks=self.tasks[one],
            pose=self.pose[one, : end + 1],
            setpoint=Setpoint(self.setpoint.forward[one, :end], self.setpoint.yaw_rate[one, :end]),
            decisions=self.decisions[one],
            length=self.length[one],
            ended_by=self.ended_by[one],
            velocity=None if self.velocity is None else self.velocity[one, : end + 1],
            goals=None if self.goals is None else self.goals[one, :decided],
            probabilities=None if self.probabilities is None else self.probabilities[one, :decided],
            seconds_inside_landmarks=self.seconds_inside_landmarks[one],
            images=self.images[one],
            beliefs=self.beliefs[one],
        )

    @classmethod
    def single(
        cls,
        task: Task,
        positions: NDArray[Any],
        quaternions: NDArray[Any],
        setpoints: NDArray[Any],
        decisions: int,
        ended_by: EndedBy,
        seconds_inside_landmarks: float | None = None,
        images: Sequence[NDArray[np.uint8]] = (),
        beliefs: Sequence[Beliefs] = (),
        goals: NDArray[Any] | None = None,
        **others: Any,
    ) -> Execution:
        """A batch of one from arrays: positions [T + 1, 3], quaternions [T + 1, 4], setpoints [T, 2], goals [D, 3]."""
        forward, yaw_rate = torch.from_numpy(np.asarray(setpoints, np.float32).reshape(1, -1, 2)).unbind(-1)
        return cls(
            tasks=(task,),
            pose=Pose(torch.from_numpy(positions[None]), torch.from_numpy(quaternions[None])),
            setpoint=Setpoint(forward, yaw_rate),
            decisions=torch.tensor([decisions]),
            length=torch.tensor([len(setpoints)]),
            ended_by=(ended_by,),
            goals=None if goals is None else torch.from_numpy(np.asarray(goals, float).reshape(1, -1, 3)),
            seconds_inside_landmarks=(seconds_inside_landmarks,),
            images=(tuple(images),),
            beliefs=(tuple(beliefs),),
            **others,
        )

    # Of a batch of one, as numpy arrays: for metrics, tables and drawings.

    @property
    def task(self) -> Task:
        """What the only drone was told."""
        [task] = self.tasks
        return task

    @property
    def positions(self) -> NDArray[Any]:
        """[T + 1, 3] world frame, metres, of the only drone."""
        return self.pose.position[0].numpy()

    @property
    def quaternions(self) -> NDArray[Any]:
        """[T + 1, 4] (w, x, y, z) of the only drone."""
        return self.pose.quaternion[0].numpy()

    @property
    def path(self) -> NDArray[Any]:
        """[T + 1, 2] the path of the only drone until rest."""
        return self.positions[:, :2]

    @property
    def yaws(self) -> NDArray[Any]:
        """[T + 1] headings of the only drone, radians, world frame."""
        return euler_from_quaternion(self.pose.quaternion[0])[2].numpy()

    @property
    def setpoints(self) -> NDArray[np.float32]:
        """[T, 2] forward m/s and yaw rate rad/s, as flown by the only drone."""
        return torch.stack([self.setpoint.forward[0], self.setpoint.yaw_rate[0]], dim=-1).numpy()

    @property
    def end(self) -> int:
        """Index of the pose at which the only drone's end was decided."""
        return int(self.decisions[0])

    @property
    def stopped(self) -> bool:
        """Whether the only drone's policy decided STOP."""
        return self.ended_by == ("stop",)

    @property
    def believed_goals(self) -> NDArray[np.float64]:
        """[D, 3] `goals` of the only drone; none for a policy without beliefs."""
        return np.zeros((0, 3)) if self.goals is None else self.goals[0].double().numpy()
