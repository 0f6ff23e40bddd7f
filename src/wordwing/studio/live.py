"""One drone that is flown decision by decision, while somebody watches: a `Runner` that waits between two steps."""

import gc
import threading
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np

from wordwing.errors import WordwingError
from wordwing.evaluation.demo import STEPS
from wordwing.execution.environments import build_environment
from wordwing.execution.execution import Execution
from wordwing.execution.runner import Runner, Transition, fly, start_poses
from wordwing.execution.verdict import Verdict, verdict
from wordwing.interface import CONTROL_PERIOD, Domain, Environment, Vehicle
from wordwing.policies.baselines import Stop
from wordwing.policies.learned import LearnedPolicy
from wordwing.sim.simulator import Simulator
from wordwing.viz.overhead import overheads
from wordwing.world.layout import Layout
from wordwing.world.paths import path_length
from wordwing.world.tasks import Task

Reason = Literal["stop", "steps", "stopped"]
"""Why a flight ended: its policy decided STOP, its decisions were used up, or somebody stopped it."""

BY_HAND = "not judged: it was stopped by hand"


@dataclass(frozen=True)
class Start:
    """Where drones are put."""

    layout: Layout
    xy: tuple[float, float]
    """World frame, metres."""
    yaw: float
    """World frame, radians."""
    seed: int = 0
    """Of gusts and noise in the lab."""
    vehicle: Domain = "sim"


_LAB = threading.Lock()
"""Held while a lab is built and first observed: that may load and compile the renderer's kernels, for all threads."""


@cache
def warm_up() -> None:
    """Load the simulator's kernels, before several threads would do so at once."""
    empty = Layout(())
    fly(Stop(), Simulator(1), [Task("", empty, (0.0, 0.0), 0.0, np.zeros((1, 2)))])
    overheads([empty], 8)


@dataclass(frozen=True)
class Ending:
    """How a flight went."""

    reason: Reason
    seconds: float
    """Until the end was decided."""
    metres: float
    """Flown, until rest."""
    verdict: Verdict


class LiveFlight:
    """A drone and its policy; instructions follow one another, each from where the last one ended."""

    def __init__(
        self, start: Start, environment: Environment | None = None, max_steps: int = STEPS, *, keep: bool = False
    ) -> None:
        """Put a drone somewhere.

        Args:
            start: Where.
            environment: Of one world; by default a new one.
            max_steps: Decisions that an instruction is given.
            keep: Whether to keep images and beliefs of the last instruction, for videos.
        """
        self.start = start
        self.executions: list[Execution] = []
        """What has been flown, instruction by instruction."""
        self._environment = environment or self._built()
        self._max_steps, self._keep = max_steps, keep
        self.restart()

    def _built(self) -> Environment:
        """A world with a drone, which `restart` puts at its start."""
        if self.start.vehicle == "sim":
            return build_environment("sim", [self._task("")])
        with _LAB:
            gc.collect()  # a lab of 8 MiB is a ring of objects, which would stay until the next collection
            environment = build_environment("lab", [self._task("")], seed=self.start.seed)
            environment.observe()
        return environment

    def restart(self) -> None:
        """Forget all flights and hover at the start, at time 0."""
        self.executions = []
        self.policies: list[str] = []
        """Names of the policies that flew them."""
        self.endings: list[Ending] = []
        """How they went, as far as that has been judged."""
        self.flying = False
        """Whether an instruction is under way, coming to rest included."""
        self._runner: Runner | None = None
        if isinstance(self._environment, Vehicle):
            self._environment.connect()
        else:
            self._environment.reset([self.start.layout], start_poses([self._task("")]))

    @property
    def step(self) -> int:
        """Control periods since the instruction began."""
        return 0 if self._runner is None else self._runner.steps

    def begin(self, instruction: str, policy: LearnedPolicy, name: str = "") -> None:
        """Begin an instruction where the drone is now: there lies the policy's start frame."""
        if self.flying:
            raise WordwingError("the drone is flying; stop it before you tell it something new")
        observation = self._environment.observe()
        self.frame = observation.pose
        """[1] where the policy's start frame lies, world frame."""
        self._runner = Runner(policy, self._environment, max_steps=self._max_steps, keep_images=self._keep)
        self._runner.reset([self._task(instruction)], observation)
        self.policies.append(name)
        self.flying = True

    def halt(self) -> None:
        """Decide no more: come to rest."""
        if self._runner is not None:
            self._runner.halt()

    def advance(self) -> Transition:
        """One decision, or one control period of coming to rest; the last one is of the drone at rest."""
        if self._runner is None or not self.flying:
            raise ValueError("begin comes before advance")
        if not self._runner.done:
            return self._runner.step()
        self.executions = [replace(one, images=(), beliefs=()) for one in self.executions]  # only the last one's
        self.executions += list(self._runner.execution())
        self.flying = False  # and not before: other threads ask whether it flies
        return self._runner.last()

    def ending(self) -> Ending:
        """How the last instruction went, as far as that can be judged."""
        execution = self.executions[-1]
        ended_by = execution.ended_by[0]
        reason: Reason = "stopped" if ended_by == "operator" else ended_by
        seconds, metres = execution.end * CONTROL_PERIOD, path_length(execution.path.astype(np.float64))
        judged = Verdict(BY_HAND, None) if reason == "stopped" else verdict(execution)
        self.endings = [*self.endings[: len(self.executions) - 1], Ending(reason, seconds, metres, judged)]
        return self.endings[-1]

    def _task(self, instruction: str) -> Task:
        """What is flown from here on; its gold path is the start alone: there is no demonstration of typed words."""
        xy, yaw = self.start.xy, self.start.yaw
        if self.executions:
            x, y = self.frame.xy[0].tolist()
            xy, yaw = (x, y), float(self.frame.yaw[0])
        return Task(instruction, self.start.layout, xy, yaw, np.array([xy]))
