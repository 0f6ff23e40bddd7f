"""Flying tasks: a policy in the batched simulator, with a record of every flight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wordwing.frames import Pose
from wordwing.interface import Policy, Setpoint
from wordwing.sim.simulator import Simulator
from wordwing.world.tasks import Task

if TYPE_CHECKING:
    from wordwing.model.policy import Beliefs

MAX_STEPS = 50
"""Decisions before a flight is ended (100 on house)."""

SETTLE_STEPS = 6
"""Control periods that a drone is given to come to rest after its flight has ended."""


@dataclass
class Flight:
    """What happened: states at every control period until rest, and the setpoints between them."""

    task: Task
    positions: NDArray[np.float32]
    """[T + 1, 3] world frame, metres."""
    quaternions: NDArray[np.float32]
    """[T + 1, 4] (w, x, y, z)."""
    setpoints: NDArray[np.float32]
    """[T, 2] forward m/s and yaw rate rad/s as flown."""
    decisions: int
    """Index of the state at which STOP was decided or the flight was ended."""
    ended_by: Literal["stop", "steps"]
    seconds_inside_landmarks: float | None = None
    """How long it flew through landmarks; None where nobody can know."""
    images: list[NDArray[np.uint8]] = field(default_factory=list)
    """What the drone saw at each state, when asked for."""
    beliefs: list[Beliefs] = field(default_factory=list)
    """What a learned policy made of it at each decision, STOP included; kept with the images."""
    goals: NDArray[np.float64] = field(default_factory=lambda: np.zeros((0, 3)))
    """[D, 3] at each decision, STOP included: x and y of the likeliest goal, world frame, and p_oob; empty for a policy
    without beliefs."""
    interrupted: str | None = None
    """Why the vehicle ended the flight; None if it did not."""

    @property
    def path(self) -> NDArray[np.float32]:
        """[T + 1, 2] the flown path down to rest."""
        return self.positions[:, :2]


def beliefs_of(policy: Policy, index: int) -> list[Beliefs]:
    """What a policy believes now of one of its drones; nothing for a policy without beliefs."""
    beliefs: Beliefs | None = getattr(policy, "beliefs", None)
    return [] if beliefs is None else [beliefs.of(index)]


def goals_of(policy: Policy) -> Tensor | None:
    """[N, 3] where a policy believes the goals of its drones to be now; None for a policy without beliefs."""
    goals: Tensor | None = policy.goals() if hasattr(policy, "goals") else None
    return goals


def start_poses(tasks: Sequence[Task]) -> Pose:
    """[N] start poses on the floor, world frame."""
    xy = torch.tensor([task.start_xy for task in tasks], dtype=torch.float32)
    yaw = torch.tensor([task.start_yaw for task in tasks], dtype=torch.float32)
    return Pose.level(xy, yaw)


def fly_tasks(
    policy: Policy,
    simulator: Simulator,
    tasks: Sequence[Task],
    *,
    max_steps: int = MAX_STEPS,
    safety: bool = True,
    keep_images: bool = False,
) -> list[Flight]:
    """Fly one task in each world of a simulator, at most `max_steps` decisions each.

    A drone that has stopped is told to hover; all are given time to come to rest.
    """
    observation = simulator.reset([task.layout for task in tasks], start_poses(tasks))
    gold = [torch.from_numpy(np.asarray(task.gold_path, np.float32)) for task in tasks]
    policy.reset(
        [task.instruction for task in tasks],
        observation.pose,
        gold_paths=gold if policy.needs_gold_path else None,
    )
    n = len(tasks)
    flying = torch.ones(n, dtype=torch.bool, device=simulator.device)
    decisions = torch.full((n,), max_steps, device=simulator.device)
    stopped = torch.zeros_like(flying)
    states, setpoints, images = [observation.pose], [], [observation.image.cpu()] * keep_images
    beliefs: list[list[Beliefs]] = [[] for _task in tasks]
    goals: list[Tensor] = []
    inside = [simulator.seconds_inside_landmarks]
    step = 0
    settled = 0
    while settled < SETTLE_STEPS:
        setpoint = Setpoint.zero(n, simulator.device)
        if step < max_steps and bool(flying.any()):
            action = policy.act(observation)
            believed = goals_of(policy)
            goals += [] if believed is None else [believed]
            if keep_images:
                for i in flying.nonzero()[:, 0].tolist():
                    beliefs[i] += beliefs_of(policy, i)
            stopping = flying & action.stop
            decisions[stopping] = step
            stopped |= stopping
            flying &= ~stopping
            setpoint = action.setpoint.where(flying)
        else:
            settled += 1
        flown = simulator.step(setpoint, safety=safety)
        observation = simulator.observe()
        setpoints.append(torch.stack([flown.forward, flown.yaw_rate], dim=-1))
        states.append(observation.pose)
        inside.append(simulator.seconds_inside_landmarks)
        if keep_images:
            images.append(observation.image.cpu())
        step += 1
    history = Pose.stack(states).to("cpu")  # [T + 1, N]
    flown_setpoints = torch.stack(setpoints).cpu()  # [T, N, 2]
    inside_until = torch.stack(inside).cpu()  # [T + 1, N]
    believed_goals = torch.stack(goals).double().cpu().numpy() if goals else np.zeros((0, n, 3))  # [D, N, 3]
    flights = []
    for i, task in enumerate(tasks):
        end = int(decisions[i]) + SETTLE_STEPS
        flights.append(
            Flight(
                task=task,
                positions=history.position[: end + 1, i].numpy(),
                quaternions=history.quaternion[: end + 1, i].numpy(),
                setpoints=flown_setpoints[:end, i].numpy(),
                decisions=int(decisions[i]),
                ended_by="stop" if bool(stopped[i]) else "steps",
                seconds_inside_landmarks=float(inside_until[end, i]),
                images=[image[i].numpy() for image in images[: end + 1]],
                beliefs=beliefs[i],
                goals=believed_goals[: int(decisions[i]) + bool(stopped[i]), i],
            )
        )
    return flights
