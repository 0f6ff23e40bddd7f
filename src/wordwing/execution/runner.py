"""The one loop: observe, act, step, until every drone has come to rest.

Evaluation, demonstrations, the studio and a pilot of a real drone call it, all at once by `Runner.run` or one control
period at a time by `Runner.step`. Where actions do not come from a `Policy` (Gymnasium, PPO's samples) `execute` is the
same step.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from wordwing.execution.execution import EndedBy, Execution
from wordwing.frames import Pose
from wordwing.interface import Action, Environment, FlightOverError, Observation, Policy, Setpoint
from wordwing.model.policy import Beliefs
from wordwing.world.tasks import Task

MAX_STEPS = 50
"""Decisions before a flight is ended (100 on house)."""

SETTLE_STEPS = 6
"""Control periods that a drone is given to come to rest after its flight has ended."""


def start_poses(tasks: Sequence[Task]) -> Pose:
    """[N] start poses on the floor, world frame."""
    xy = torch.tensor([task.start_xy for task in tasks], dtype=torch.float32)
    yaw = torch.tensor([task.start_yaw for task in tasks], dtype=torch.float32)
    return Pose.level(xy, yaw)


def decide(policy: Policy, observation: Observation) -> Action:
    """Ask a policy for its decisions: in a flight, in a replay, and where its latency is measured."""
    return policy.act(observation)


def execute(environment: Environment, action: Action, flying: Tensor, *, safety: bool = True) -> Setpoint:
    """Fly one control period: drones that fly [N] bool and do not STOP follow their setpoints, the others hover.

    Returns:
        The setpoints as flown, after limits and safety.
    """
    return environment.step(action.setpoint.where(flying & ~action.stop), safety=safety)


@dataclass(frozen=True)
class Transition:
    """One control period of N drones: what was observed, decided and flown."""

    step: int
    """Control periods since the flights began."""
    observation: Observation
    """Before the decision."""
    action: Action | None
    """None while the drones only come to rest."""
    setpoint: Setpoint | None
    """As flown; None where nothing more was flown."""
    beliefs: Beliefs | None
    """Of the last decision, for a policy that has beliefs."""
    goals: Tensor | None
    """[N, 3] likeliest goals of the last decision: x, y, world frame, and p_oob."""


class Runner:
    """Flies N tasks with a policy in the N worlds of an environment, one control period at a time.

    A drone that has stopped hovers, and all are given time to come to rest. If a vehicle ends the flight, the record
    ends there and says why.
    """

    def __init__(
        self,
        policy: Policy,
        environment: Environment,
        *,
        max_steps: int = MAX_STEPS,
        safety: bool = True,
        keep_images: bool = False,
    ) -> None:
        """Prepare flights.

        Args:
            policy: Decides.
            environment: Where it flies.
            max_steps: Decisions before a flight is ended.
            safety: Slow down drones that would leave the arena (paper: Quadcopter Safety).
            keep_images: Keep images and beliefs, for videos.
        """
        self.policy, self.environment = policy, environment
        self.max_steps, self.safety, self.keep_images = max_steps, safety, keep_images
        self.done = True

    def run(self, tasks: Sequence[Task]) -> Execution:
        """Fly tasks [N] to their end."""
        self.reset(tasks)
        while not self.done:
            self.step()
        return self.execution()

    def reset(self, tasks: Sequence[Task], observation: Observation | None = None) -> None:
        """Begin to fly tasks [N], one in each world.

        Args:
            tasks: One for each world.
            observation: What the drones observe now, to begin where they are instead of at their starts.
        """
        self.tasks = tuple(tasks)
        if observation is None:
            observation = self.environment.reset([task.layout for task in tasks], start_poses(tasks))
        self.observation = observation
        gold = [torch.from_numpy(np.asarray(task.gold_path, np.float32)) for task in tasks]
        self.policy.reset(
            [task.instruction for task in tasks],
            self.observation.pose,
            gold_paths=gold if self.policy.needs_gold_path else None,
        )
        device = self.observation.pose.position.device
        self.flying = torch.ones(len(tasks), dtype=torch.bool, device=device)
        """[N] bool, whose end has not been decided."""
        self._decisions = torch.full((len(tasks),), self.max_steps, device=device)
        self._stopped = torch.zeros_like(self.flying)
        self._poses: list[Pose] = []
        self._velocities: list[Tensor] = []
        self._inside: list[Tensor] = []
        self._setpoints: list[Tensor] = []
        self._goals: list[Tensor] = []
        self._probabilities: list[Tensor] = []
        self._images: list[NDArray[np.uint8]] = []
        self._beliefs: list[list[Beliefs]] = [[] for _task in tasks]
        self._interrupted: str | None = None
        self._halting = False
        self._halted: int | None = None
        self._settled = 0
        self.done = False
        self._record(self.observation)

    @property
    def steps(self) -> int:
        """Control periods flown since the start."""
        return len(self._setpoints)

    def halt(self) -> None:
        """End the flights: from the next step on decide no more and come to rest. Other threads may call it."""
        self._halting = True

    def step(self) -> Transition:
        """One decision, or one control period of coming to rest, and the flight to the next observation."""
        if self.done:
            raise ValueError("the flights have ended; reset comes first")
        step, observation = self.steps, self.observation
        if self._halting and self._halted is None:
            self._halted = step
        deciding = self._halted is None and step < self.max_steps and bool(self.flying.any())
        n, device = len(self.tasks), self.flying.device
        action = Action(Setpoint.zero(n, device), torch.ones_like(self.flying))
        if deciding or step == 0:  # a flight that is halted before its first decision still has beliefs to show
            decided = decide(self.policy, observation)
            if deciding:
                action = decided
                self._decide(action, step)
        self._settled += not deciding or not bool(self.flying.any())
        flown = None
        try:
            flown = execute(self.environment, action, self.flying, safety=self.safety)
            self.observation = self.environment.observe()
        except FlightOverError as over:  # what nothing was observed after was not flown
            self._interrupted, self.done = str(over), True
            flown = None
        else:
            self._setpoints.append(torch.stack([flown.forward, flown.yaw_rate], dim=-1))
            self._record(self.observation)
            self.done = self._settled == SETTLE_STEPS
        return self._transition(step, observation, action if deciding else None, flown)

    def last(self) -> Transition:
        """The drones at rest, from where nothing more is flown."""
        return self._transition(self.steps, self.observation, None, None)

    def execution(self) -> Execution:
        """What has been flown, once it is done."""
        if not self.done:
            raise ValueError("an execution is a record of flights that have ended")
        n = len(self.tasks)
        steps = self.steps
        ends = self._decisions if self._halted is None else self._decisions.clamp(max=self._halted)
        ends = ends.clamp(max=steps).cpu()
        length = (ends + SETTLE_STEPS).clamp(max=steps)
        stopped = self._stopped.tolist()
        unfinished: EndedBy = "steps" if self._halted is None else "operator"
        inside = torch.stack(self._inside).cpu() if self._inside else None  # [T + 1, N]
        flown = torch.stack(self._setpoints) if self._setpoints else torch.zeros(0, n, 2)  # [T, N, 2]
        poses = Pose.stack(self._poses)  # [T + 1, N]
        return Execution(
            tasks=self.tasks,
            pose=Pose(poses.position.transpose(0, 1), poses.quaternion.transpose(0, 1)),
            setpoint=Setpoint(flown[..., 0].T, flown[..., 1].T),
            decisions=ends,
            length=length,
            ended_by=tuple("stop" if stop else unfinished for stop in stopped),
            velocity=torch.stack(self._velocities).transpose(0, 1) if self._velocities else None,
            goals=torch.stack(self._goals).transpose(0, 1) if self._goals else None,
            probabilities=torch.stack(self._probabilities).transpose(0, 1) if self._probabilities else None,
            seconds_inside_landmarks=(None,) * n if inside is None else tuple(inside[length, torch.arange(n)].tolist()),
            images=tuple(
                tuple(image[world] for image in self._images[: end + 1]) for world, end in enumerate(length.tolist())
            ),
            beliefs=tuple(map(tuple, self._beliefs)),
            interrupted=self._interrupted,
        )

    def _decide(self, action: Action, step: int) -> None:
        """Note a decision, and what is believed with it."""
        goals, beliefs = believed_goals(self.policy), getattr(self.policy, "beliefs", None)
        self._goals += [] if goals is None else [goals]
        if isinstance(beliefs, Beliefs):
            stop = beliefs.control.stop_probability[:, None].float()
            self._probabilities.append(torch.cat([stop, beliefs.visitation.unobserved.float()], dim=1))
        if self.keep_images:
            for world in self.flying.nonzero()[:, 0].tolist():
                self._beliefs[world] += beliefs_of(self.policy, world)
        stopping = self.flying & action.stop.to(self.flying.device)
        self._decisions[stopping] = step
        self._stopped |= stopping
        self.flying = self.flying & ~stopping

    def _transition(
        self, step: int, observation: Observation, action: Action | None, flown: Setpoint | None
    ) -> Transition:
        beliefs = getattr(self.policy, "beliefs", None)
        return Transition(step, observation, action, flown, beliefs, believed_goals(self.policy))

    def _record(self, observation: Observation) -> None:
        """Note where the drones are."""
        self._poses.append(observation.pose)
        self._velocities += [] if observation.velocity is None else [observation.velocity]
        inside = self.environment.seconds_inside_landmarks
        self._inside += [] if inside is None else [inside]
        self._images += [observation.image.cpu().numpy()] if self.keep_images else []


def fly(
    policy: Policy,
    environment: Environment,
    tasks: Sequence[Task],
    *,
    max_steps: int = MAX_STEPS,
    safety: bool = True,
    keep_images: bool = False,
) -> list[Execution]:
    """Fly one task in each world of an environment, to rest; returns a batch of one for each."""
    runner = Runner(policy, environment, max_steps=max_steps, safety=safety, keep_images=keep_images)
    return list(runner.run(tasks))


def beliefs_of(policy: Policy, index: int) -> list[Beliefs]:
    """What a policy believes now of one of its drones; empty for a policy without beliefs."""
    beliefs: Beliefs | None = getattr(policy, "beliefs", None)
    return [] if beliefs is None else [beliefs.of(index)]


def believed_goals(policy: Policy) -> Tensor | None:
    """[N, 3] where a policy believes the goals of its drones to be now; None for a policy without beliefs."""
    return policy.goals() if hasattr(policy, "goals") else None
