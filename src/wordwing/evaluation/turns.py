"""Many flights in fewer worlds of the simulator, for policies that can begin some flights while others are under way.

A world whose drone has come to rest begins the next flight, so that none waits for the longest. On CUDA that is what
evaluation is made of. On the CPU a `Runner` flies a few at once: archived flights are flown again to the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wordwing.execution.execution import Execution
from wordwing.execution.runner import SETTLE_STEPS, decide, execute, start_poses
from wordwing.policies.learned import LearnedPolicy
from wordwing.sim.simulator import Simulator
from wordwing.world.tasks import Task

PARTS = {"position": 3, "quaternion": 4, "velocity": 3, "setpoint": 2, "goal": 3, "probabilities": 3, "inside": 1}
"""What is kept of a drone at each control period, and how many numbers."""


@dataclass
class _Flight:
    number: int
    task: Task
    end: int
    """Decisions until STOP, or until there may be no more."""
    stopped: bool = False
    rows: list[NDArray[np.float32]] = field(default_factory=list)

    @property
    def flying(self) -> bool:
        """Whether its end has not been decided."""
        return not self.stopped and len(self.rows) < self.end

    @property
    def rested(self) -> bool:
        return len(self.rows) > self.end + SETTLE_STEPS

    def execution(self) -> Execution:
        """What has been flown, as a `Runner` keeps it."""
        parts = np.split(np.stack(self.rows), np.cumsum(list(PARTS.values()))[:-1], axis=1)
        found = dict(zip(PARTS, parts, strict=True))
        decided = self.end + self.stopped
        return Execution.single(
            self.task,
            found["position"],
            found["quaternion"],
            found["setpoint"][:-1],
            self.end,
            "stop" if self.stopped else "steps",
            float(found["inside"][-1, 0]),
            goals=found["goal"][:decided],
            velocity=torch.from_numpy(found["velocity"][None]),
            probabilities=torch.from_numpy(found["probabilities"][None, :decided]),
        )


@torch.no_grad()
def fly_in_turns(
    policy: LearnedPolicy, simulator: Simulator, tasks: Sequence[Task], *, max_steps: int
) -> list[Execution]:
    """Fly tasks, at least as many as there are worlds, to rest; returns a batch of one for each."""
    waiting = iter(enumerate(tasks))
    done: dict[int, Execution] = {}
    flights: list[_Flight | None] = [None] * simulator.num_worlds
    while True:
        free = [world for world, flight in enumerate(flights) if flight is None]
        begun = {
            world: _Flight(number, task, max_steps)
            for world, (number, task) in zip(free, islice(waiting, len(free)), strict=False)
        }
        for world, new in begun.items():
            flights[world] = new
        if begun:
            drones = [flight.task for flight in begun.values()]
            _begin(policy, simulator, drones, None if len(begun) == len(flights) else torch.tensor(list(begun)))
        if not any(flights):
            return [done[number] for number in range(len(tasks))]
        flying = torch.tensor([flight is not None and flight.flying for flight in flights])
        rows, stops = _fly(policy, simulator, flying.to(simulator.device))
        for world, flight in enumerate(flights):
            if flight is not None:
                if flight.flying and stops[world]:
                    flight.end, flight.stopped = len(flight.rows), True
                flight.rows.append(rows[world])
                if flight.rested:
                    done[flight.number] = flight.execution()
                    flights[world] = None


def _begin(policy: LearnedPolicy, simulator: Simulator, tasks: list[Task], worlds: Tensor | None) -> None:
    """Begin flights in worlds [M], or in all."""
    pose = simulator.reset([task.layout for task in tasks], start_poses(tasks), worlds).pose
    start = pose if worlds is None else pose[worlds.to(simulator.device)]
    policy.reset([task.instruction for task in tasks], start, worlds=worlds)


def _fly(policy: LearnedPolicy, simulator: Simulator, flying: Tensor) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """One control period of N drones, of which some fly [N] bool: what is kept of each, [N, 19], and STOP, [N]."""
    observation, inside = simulator.observe(), simulator.seconds_inside_landmarks
    action = decide(policy, observation)
    assert policy.beliefs is not None
    assert observation.velocity is not None
    believed = policy.beliefs.control.stop_probability[:, None], policy.beliefs.visitation.unobserved
    flown = execute(simulator, action, flying)
    parts = (
        observation.pose.position,
        observation.pose.quaternion,
        observation.velocity,
        torch.stack([flown.forward, flown.yaw_rate], 1),
        policy.goals(),
        *believed,
        inside[:, None],
        action.stop[:, None],
    )
    rows = torch.cat([part.float() for part in parts], 1).cpu().numpy()  # the only thing that waits for the device
    return rows[:, :-1], rows[:, -1] > 0
