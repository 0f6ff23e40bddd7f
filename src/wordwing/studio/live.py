"""One drone that is flown decision by decision, while somebody watches.

What happens is what `evaluation.rollout.fly_tasks` and `flight.pilot.fly_vehicle` do, to the last bit; only who calls
when is turned round, so that a flight can wait between two decisions.
"""

from __future__ import annotations

import gc
import threading
from dataclasses import dataclass, field
from functools import cache
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from wordwing.errors import WordwingError
from wordwing.evaluation.demo import STEPS
from wordwing.execution.runner import SETTLE_STEPS, Flight, beliefs_of, start_poses
from wordwing.execution.verdict import Verdict, verdict
from wordwing.frames import Pose
from wordwing.interface import CONTROL_PERIOD, Domain, Observation, Setpoint
from wordwing.model.policy import Beliefs, LearnedPolicy
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


class Drone(Protocol):
    """What a live flight needs of a drone; time passes only in `fly`."""

    def restart(self) -> None:
        """Hover at the start, at time 0."""

    def observe(self) -> Observation:
        """What it sees now; in the lab each look draws new noise."""
        ...

    def fly(self, setpoint: Setpoint) -> Setpoint:
        """Fly one control period; returns what was flown after limits and safety."""
        ...


class SimDrone:
    """A drone in the simulator."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._simulator = Simulator(1)
        self.restart()

    def restart(self) -> None:
        """Hover at the start, at time 0."""
        task = Task("", self._start.layout, self._start.xy, self._start.yaw, np.zeros((1, 2)))
        self._simulator.reset([task.layout], start_poses([task]))

    def observe(self) -> Observation:
        """What it sees now."""
        return self._simulator.observe()

    def fly(self, setpoint: Setpoint) -> Setpoint:
        """Fly one control period."""
        return self._simulator.step(setpoint, safety=True)


_LAB = threading.Lock()
"""Held while a lab is built and first looked at: that may load and compile the renderer's kernels, for all threads."""


class LabDrone:
    """A drone in the lab."""

    def __init__(self, start: Start) -> None:
        from wordwing.lab.vehicle import LabVehicle  # MuJoCo takes its time

        with _LAB:
            gc.collect()  # a lab of 8 MiB is a ring of objects, which would stay until Python thinks of it
            self._vehicle = LabVehicle(start.layout, start.xy, start.yaw, seed=start.seed)
            self._vehicle.observe()
        self.restart()  # which begins the noise anew

    def restart(self) -> None:
        """Hover at the start, at time 0."""
        self._vehicle.connect()

    def observe(self) -> Observation:
        """What its camera and motion capture say now."""
        return self._vehicle.observe()

    def fly(self, setpoint: Setpoint) -> Setpoint:
        """Fly one control period."""
        sent = self._vehicle.send(setpoint)
        self._vehicle.wait(CONTROL_PERIOD)
        return sent


@cache
def warm_up() -> None:
    """Load the simulator's kernels, before several threads would do so at once."""
    drone = SimDrone(Start(Layout(()), (0.0, 0.0), 0.0))
    drone.fly(Setpoint.zero(1))
    drone.observe()
    overheads([Layout(())], 8)


def build_drone(start: Start) -> Drone:
    """A drone that hovers at its start."""
    return LabDrone(start) if start.vehicle == "lab" else SimDrone(start)


@dataclass(frozen=True)
class Moment:
    """A state of a flight, what the policy made of it and what was flown from there."""

    step: int
    """Control periods since the instruction began."""
    observation: Observation
    beliefs: Beliefs
    """Of the last decision: that of this state, unless it is `settling`."""
    goal: tuple[float, float]
    """x and y of the likeliest goal, world frame, metres."""
    frame: Pose
    """[1] where the policy's start frame comes from, world frame."""
    setpoint: tuple[float, float] | None
    """Forward m/s and yaw rate rad/s as flown from here; None where nothing more is flown."""
    stopped: bool
    """Whether the flight's end has been decided, here or before."""
    settling: bool
    """Whether the drone is only brought to rest: no decision was taken here."""


@dataclass(frozen=True)
class Ending:
    """How a flight went."""

    reason: Reason
    seconds: float
    """Until the end was decided."""
    metres: float
    """Flown, until rest."""
    verdict: Verdict


@dataclass
class Leg:
    """The record of one instruction: states at every control period until rest, and what was flown between them."""

    instruction: str
    policy: str
    """Its name."""
    positions: list[NDArray[np.float32]] = field(default_factory=list)
    """[3] each, world frame, metres."""
    quaternions: list[NDArray[np.float32]] = field(default_factory=list)
    """[4] each (w, x, y, z)."""
    setpoints: list[tuple[float, float]] = field(default_factory=list)
    stops: list[float] = field(default_factory=list)
    """The probability of STOP at each decision."""
    unobserved: list[tuple[float, float]] = field(default_factory=list)
    """p_oob of d^p and of d^g at each decision."""
    goals: list[tuple[float, float]] = field(default_factory=list)
    """The likeliest goal at each decision, world frame, metres."""
    decisions: int | None = None
    """Index of the state at which the end was decided."""
    reason: Reason | None = None
    ending: Ending | None = None
    """Once it has been judged."""


class LiveFlight:
    """A drone and its policy; instructions follow one another, each from where the last one ended."""

    def __init__(self, start: Start, drone: Drone | None = None, max_steps: int = STEPS, *, keep: bool = False) -> None:
        """Put a drone somewhere.

        Args:
            start: Where.
            drone: One that hovers there; by default a new one.
            max_steps: Decisions that an instruction is given.
            keep: Whether to keep pictures and beliefs, for films.
        """
        self.start = start
        self.legs: list[Leg] = []
        self.images: list[NDArray[np.uint8]] = []
        self.beliefs: list[Beliefs] = []
        self._drone = drone or build_drone(start)
        self._max_steps = max_steps
        self._keep = keep
        self._halted = False
        self._observation: Observation | None = None

    @property
    def flying(self) -> bool:
        """Whether an instruction is under way, coming to rest included."""
        return self._observation is not None

    @property
    def step(self) -> int:
        """Control periods since the instruction began."""
        return len(self.legs[-1].setpoints) if self.legs else 0

    def begin(self, instruction: str, policy: LearnedPolicy, name: str = "") -> None:
        """Begin an instruction where the drone is now; there the policy's start frame is."""
        if self.flying:
            raise WordwingError("the drone is flying; stop it before you tell it something new")
        observation = self._drone.observe()
        policy.reset([instruction], observation.pose)
        self._policy, self._frame = policy, observation.pose
        self.legs.append(Leg(instruction, name))
        self.images, self.beliefs = [], []
        self._halted = False
        self._see(observation)

    def halt(self) -> None:
        """Decide no more: come to rest."""
        self._halted = True

    def advance(self) -> Moment:
        """One decision, or one control period of coming to rest, and the flight to the next state."""
        observation, leg = self._observation, self.legs[-1] if self.legs else None
        if observation is None or leg is None:
            raise ValueError("begin comes before advance")
        setpoint, deciding = Setpoint.zero(1), False
        if leg.decisions is None:
            deciding = not self._halted and self.step < self._max_steps
            if deciding or self._policy.beliefs is None:  # stopped before its first thought it has one for the page
                action = self._policy.act(observation)
            if deciding:
                self._think(leg)
                if bool(action.stop[0]):
                    leg.decisions, leg.reason = self.step, "stop"
                else:
                    setpoint = action.setpoint
            else:
                leg.decisions, leg.reason = self.step, "stopped" if self._halted else "steps"
        beliefs = self._policy.beliefs
        assert beliefs is not None
        if self._keep and deciding:
            self.beliefs += beliefs_of(self._policy, 0)
        step, sent = self.step, None
        if leg.decisions is None or step < leg.decisions + SETTLE_STEPS:
            flown = self._drone.fly(setpoint)
            sent = float(flown.forward[0]), float(flown.yaw_rate[0])
            leg.setpoints.append(sent)
            self._see(self._drone.observe())
        else:
            self._observation = None  # and not before: other threads ask whether it flies
        goal = self._policy.goals()[0].tolist()
        return Moment(
            step=step,
            observation=observation,
            beliefs=beliefs,
            goal=(goal[0], goal[1]),
            frame=self._frame,
            setpoint=sent,
            stopped=leg.decisions is not None,
            settling=not deciding,
        )

    def restart(self) -> None:
        """Forget all flights and hover at the start."""
        self._observation = None
        self.legs, self.images, self.beliefs = [], [], []
        self._drone.restart()

    def flight(self) -> Flight:
        """The last instruction's, as evaluations have flights; pictures and beliefs are in it if they were kept.

        Its gold path is the start alone: nobody has flown before what was typed.
        """
        leg = self.legs[-1]
        if leg.decisions is None:
            raise ValueError("a flight is a record when it has ended")
        positions, quaternions = np.stack(leg.positions), np.stack(leg.quaternions)
        xy, yaw = self.start.xy, self.start.yaw
        if len(self.legs) > 1:
            x, y = positions[0, :2].tolist()
            xy, yaw = (x, y), float(self._frame.yaw[0])
        return Flight(
            task=Task(leg.instruction, self.start.layout, xy, yaw, np.array([xy])),
            positions=positions,
            quaternions=quaternions,
            setpoints=np.array(leg.setpoints, np.float32),
            decisions=leg.decisions,
            ended_by="stop" if leg.reason == "stop" else "steps",
            images=self.images,
            beliefs=self.beliefs,
            goals=np.array([(*goal, p) for goal, (_d, p) in zip(leg.goals, leg.unobserved, strict=True)]),
        )

    def ending(self) -> Ending:
        """How the last instruction went, as far as that can be judged."""
        flight, reason = self.flight(), self.legs[-1].reason
        assert reason is not None
        seconds, metres = flight.decisions * CONTROL_PERIOD, path_length(flight.path.astype(np.float64))
        said = Verdict(BY_HAND, None) if reason == "stopped" else verdict(flight)
        self.legs[-1].ending = ending = Ending(reason, seconds, metres, said)
        return ending

    def _see(self, observation: Observation) -> None:
        leg = self.legs[-1]
        self._observation = observation
        leg.positions.append(observation.pose.position[0].cpu().numpy().copy())
        leg.quaternions.append(observation.pose.quaternion[0].cpu().numpy().copy())
        if self._keep:
            self.images.append(observation.image[0].cpu().numpy().copy())

    def _think(self, leg: Leg) -> None:
        beliefs = self._policy.beliefs
        assert beliefs is not None
        along, at_goal = beliefs.visitation.unobserved[0].tolist()
        x, y, _p = self._policy.goals()[0].tolist()
        leg.stops.append(float(beliefs.control.stop_probability[0]))
        leg.unobserved.append((along, at_goal))
        leg.goals.append((x, y))
