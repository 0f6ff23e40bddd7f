"""Rollouts of the policy in training: velocities and STOP are sampled, and all that PPO needs is kept.

R flights in N worlds, R ≥ N: a world whose flight has ended begins the next one, until all have been flown. The last
ones, which are few and long, move to a quarter of the worlds: those without a flight cost as much as any. Every flight
is complete: it ends by STOP, with its last allowed decision, or by leaving the arena (there is no safety rule in
training, as in the paper).

All that flights begin with is computed for all of them at once, before the first step. A step then asks the host for
nothing and always has the same shapes and the same memory, whichever worlds begin a flight in it: on CUDA it is a
graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor

from wordwing.devices import Aside, compile_once, precision, replayed
from wordwing.execution.packing import PackedExecutions, pack_pose
from wordwing.execution.runner import execute
from wordwing.frames import ARENA_HALF, Pose, start_frame
from wordwing.interface import Action
from wordwing.learning.emd import SparseMap, stop_emd
from wordwing.learning.ppo import Decisions, log_prob, sample_action
from wordwing.learning.runtime.messages import Rollouts
from wordwing.learning.training_data import ExampleSet
from wordwing.model.ego import EgoView
from wordwing.model.history import History
from wordwing.model.layers import each
from wordwing.model.mapping import SemanticMap, arena_cells, boundary_cells
from wordwing.model.policy import PolicyNetwork, PolicyState
from wordwing.model.stage1 import TextKernels
from wordwing.model.stage2 import Control, ValueNetwork, to_setpoint
from wordwing.model.visitation import Visitation
from wordwing.sim.dynamics import RESPONSE_PARAMETERS
from wordwing.sim.scene import PackedLayouts
from wordwing.sim.simulator import Simulator

Plan = tuple[Visitation, EgoView, Control]
"""What N decisions are made of."""

CHECK_EVERY = 8
"""Control periods on CUDA between two checks whether all has been flown; each check waits for the device."""


@dataclass(frozen=True)
class RolloutBuffer(Decisions):
    """R flights of up to D decisions; beyond `length` is padding."""

    example: Tensor
    """[R] int64, which instruction each follows."""
    length: Tensor
    """[R] int64, decisions of each flight."""
    trajectory: SparseMap
    """[R, D] d^p over observed cells, as predicted before the decision."""
    stop_distance: Tensor
    """[R, D] metres, `stop_emd` of the goal predicted before the decision and the position after it."""
    position: Tensor
    """[R, D, 2] after the decision, start frame, metres; after STOP where the drone comes to rest."""
    pose: Tensor
    """[R, D, 6] int16 packed poses before the decision, world frame."""
    left_arena: Tensor
    """[R, D] bool, the decision led out of the arena."""
    strayed: Tensor
    """[R, D] bool, it led too far from the demonstrated path, where that ends a flight."""

    @property
    def mask(self) -> Tensor:
        """[R, D] bool, where there was a decision."""
        return torch.arange(self.stop.shape[1], device=self.length.device) < self.length[:, None]

    @property
    def unobserved(self) -> Tensor:
        """[R, D] p_oob of the goal, as predicted before each decision."""
        return self.view.unobserved[..., 1]

    def message(self, progress: float) -> Rollouts:
        """The executions that Process A gets; `progress` is the share of Process B's training that is done."""
        return Rollouts(self.example.cpu(), PackedExecutions(self.pose, self.length).to("cpu"), progress)


@dataclass(frozen=True)
class FlightInputs:
    """What R flights begin with, and one more that worlds without a flight are given."""

    example: Tensor
    """[R + 1] int64."""
    steps: Tensor
    """[R + 1] decisions that each flight is allowed."""
    start: Pose
    """[R + 1] world frame."""
    kernels: TextKernels
    """Of R + 1 instructions."""
    arena: Tensor
    """[R + 1, 64, 64] bool, start frame."""
    boundary: Tensor
    """B^W [R + 1, 64, 64] bool, start frame."""
    layouts: PackedLayouts
    """[R + 1]."""


@dataclass
class RolloutProgress:
    """Which flights N worlds fly, and how far they are; changed in place."""

    simulator: Simulator
    """Of the N worlds."""
    flight: Tensor
    """[N] int64, R where a world has none."""
    decision: Tensor
    """[N] int64, of its flight."""
    begun: Tensor
    """[] int64, flights that have begun."""
    length: Tensor
    """[R + 1] int64, decisions made in each flight."""
    map: SemanticMap
    """S^W of N flights."""
    observed: Tensor
    """M^W [N, 64, 64] bool."""
    history: History | None
    """Of N flights, where stage 2 sees its history."""
    buffer: dict[str, Any]
    """[R + 1, D] of each field of a `RolloutBuffer`; worlds without a flight write into row R."""

    @property
    def left(self) -> int:
        """Flights that have not ended."""
        count = len(self.length) - 1
        return int(count - self.begun + (self.flight < count).sum())

    def restart(self) -> None:
        """As before the first flight."""
        self.flight.fill_(len(self.length) - 1)
        for tensor in (self.decision, self.begun, self.length):
            tensor.zero_()
        for rows in self.buffer.values():
            each(Tensor.zero_, rows)

    def take_over(self, other: RolloutProgress) -> None:
        """Go on with the flights of other worlds, no more than these are."""
        chosen = torch.argsort(other.flight)[: len(self.flight)]  # worlds without a flight come last
        each(lambda own, rows: own.copy_(rows[chosen]), self._of_worlds(), other._of_worlds())
        self.simulator.restore([rows[chosen] for rows in other.simulator.snapshot()])

    def _of_worlds(self) -> tuple[Any, ...]:
        return self.flight, self.decision, self.map, self.observed, self.history


@dataclass(frozen=True)
class RolloutStep:
    """A step of R flights, and the memory that it works in."""

    inputs: FlightInputs
    progress: RolloutProgress
    generator: torch.Generator
    run: Callable[[], None]


class Collector:
    """Flies instructions with networks that it does not change."""

    def __init__(
        self,
        network: PolicyNetwork,
        value_network: ValueNetwork,
        examples: ExampleSet,
        worlds: int,
        compiled: bool = False,
        gold_distance: float | None = None,
        dynamics_randomization: float = 0.0,
    ) -> None:
        """Prepare N worlds.

        Args:
            network: The policy; on the examples' device.
            value_network: Predicts returns.
            examples: What may be flown.
            worlds: N.
            compiled: Whether torch compiles the network, which takes half a minute.
            gold_distance: Flights end farther than this from the demonstrated path, metres, as in the authors'
                software; by default nothing about the demonstration enters.
            dynamics_randomization: r: in each flight the parameters by which the drone answers setpoints are
                multiplied by factors from 1 / (1 + r) to 1 + r.
        """
        self.network, self.value_network, self.examples = network, value_network, examples
        self.worlds, self.gold_distance, self.dynamics_randomization = worlds, gold_distance, dynamics_randomization
        self.device = examples.device
        self.simulators = [Simulator(count, self.device) for count in (worlds, max(1, worlds // 4))]
        wrap = compile_once if compiled else (lambda function: function)
        self._begin: Callable[..., Tensor] = wrap(self._begin_flights)
        self._plan: Callable[..., Plan] = wrap(self._planned)
        self._note: Callable[..., dict[str, Any]] = wrap(self._noted)
        self._measure: Callable[..., dict[str, Tensor]] = wrap(self._measured)
        self._aside = Aside(self.device)
        self._room = examples.max_steps  # asks the host, which a step must not
        self._prepared: list[RolloutStep] = []

    @torch.no_grad()
    def collect(self, index: Tensor, generator: torch.Generator) -> RolloutBuffer:
        """Fly examples `index` [R] int64 on the device, R at least N, with the generator's samples."""
        count = len(index)
        if count < self.worlds:
            raise ValueError(f"{count} flights are too few for {self.worlds} worlds")
        self.network.eval()
        inputs = self._inputs(torch.cat([index, index[-1:]]))
        if not self._prepared or len(self._prepared[0].progress.length) != count + 1:
            self._prepare(inputs)
        many, few = self._prepared
        each(Tensor.copy_, many.inputs, inputs)
        many.progress.restart()
        many.generator.set_state(generator.get_state())
        self._fly(many, len(few.progress.flight))
        few.progress.take_over(many.progress)
        self._fly(few, 0)
        generator.set_state(few.generator.get_state())
        # Copies: the next flights are written where these were.
        kept = {name: each(lambda rows: rows[:count].clone(), rows) for name, rows in few.progress.buffer.items()}
        return RolloutBuffer(example=index, length=few.progress.length[:count].clone(), **kept)

    def _fly(self, step: RolloutStep, left: int) -> None:
        """Fly until no more flights than that are left."""
        periods = CHECK_EVERY if self.device.type == "cuda" else 1
        while step.progress.left > left:
            for _period in range(periods):
                step.run()

    def _prepare(self, inputs: FlightInputs) -> None:
        """Memory for as many flights as these."""
        self._prepared = []  # first of all give back the memory of what was prepared before
        own, generator = each(Tensor.clone, inputs), torch.Generator(self.device)
        begun, length = inputs.steps.new_zeros(()), torch.zeros_like(inputs.steps)
        buffer: dict[str, Any] = {}
        for simulator in self.simulators:
            progress = self._progress(simulator, begun, length, buffer)
            run = replayed(partial(self._step, own, progress, generator), self.device, generator)
            self._prepared.append(RolloutStep(own, progress, generator, run))

    def _inputs(self, index: Tensor) -> FlightInputs:
        """Of flights of examples `index` [R + 1]."""
        chosen = self.examples.examples[index]
        with precision(self.device):
            kernels = self.network.stage1.encode_text(chosen.tokens)
        return FlightInputs(
            example=index,
            steps=chosen.steps,
            start=chosen.start,
            kernels=kernels,
            arena=arena_cells(chosen.start),
            boundary=boundary_cells(chosen.start),
            layouts=self.examples.layouts.take(chosen.layout),
        )

    def _progress(self, simulator: Simulator, begun: Tensor, length: Tensor, buffer: dict[str, Any]) -> RolloutProgress:
        """Worlds without a flight, and what they have in common with others."""
        channels, worlds = self.network.config.stage1.vision.channels, simulator.num_worlds
        flight = length.new_full((worlds,), len(length) - 1)
        empty = SemanticMap.empty(worlds, channels, self.device)
        return RolloutProgress(
            simulator=simulator,
            flight=flight,
            decision=torch.zeros_like(flight),
            begun=begun,
            length=length,
            map=empty,
            observed=torch.zeros_like(empty.view_counts, dtype=torch.bool),
            history=History.empty(worlds, self.device) if self.network.config.stage2.history else None,
            buffer=buffer,
        )

    def _step(self, inputs: FlightInputs, progress: RolloutProgress, generator: torch.Generator) -> None:
        """Begin flights in free worlds, decide, fly one control period, and write it down."""
        count, simulator = len(inputs.steps) - 1, progress.simulator
        begins = self._begin(simulator, inputs, progress.flight, progress.begun)
        if self.dynamics_randomization:
            shape = simulator.num_worlds, len(RESPONSE_PARAMETERS)
            uniform = torch.rand(shape, device=self.device, generator=generator)
            simulator.drones.vary(begins, (1 + self.dynamics_randomization) ** (2 * uniform - 1))
        flight, decision = progress.flight, progress.decision
        # Evaluation counts from where a drone comes to rest, and so does the stop reward.
        rest = self._aside.run(simulator.drones.rest)
        state = PolicyState(
            start=each(lambda rows: rows[flight], inputs.start),
            kernels=each(lambda rows: rows[flight], inputs.kernels),
            map=progress.map,
            observed=progress.observed,
            arena=inputs.arena[flight],
            boundary=inputs.boundary[flight],
            history=progress.history,
        )
        observation = simulator.observe()
        with precision(self.device):
            plan = self._plan(state, begins, observation.image, observation.pose)
        flying = flight < count
        made = self._decide(
            simulator, state.start, plan, observation.pose, rest, inputs.example[flight], flying, generator
        )
        room = (count + 1, self._room)
        for name, values in made.items():
            if name not in progress.buffer:
                progress.buffer[name] = each(lambda row: row.new_zeros(room + row.shape[1:]), values)
            each(lambda rows, row: rows.index_put_((flight, decision), row), progress.buffer[name], values)
        progress.length[flight] = decision + 1
        ended = made["stop"] | made["left_arena"] | made["strayed"] | (decision + 1 >= inputs.steps[flight])
        flies_on = flying & ~ended
        flight.masked_fill_(~flies_on, count)
        decision.add_(1).masked_fill_(~flies_on, 0)

    def _begin_flights(self, simulator: Simulator, inputs: FlightInputs, flight: Tensor, begun: Tensor) -> Tensor:
        """Put the next flights into free worlds; returns which begin one, [N] bool."""
        count = len(inputs.steps) - 1
        free = flight == count
        following = begun + free.cumsum(0) - 1
        begins = free & (following < count)
        flight.copy_(torch.where(begins, following, flight))
        begun.add_(begins.sum())
        simulator.begin(inputs.layouts.take(flight), each(lambda rows: rows[flight], inputs.start), begins)
        return begins

    def _planned(self, state: PolicyState, begins: Tensor, image: Tensor, pose: Pose) -> Plan:
        """What the policy makes of images [N] at poses [N], world frame; maps and M^W of the state change in place.

        Those of flights that begin, [N] bool, are emptied first. It returns no more than is needed: thus the compiler
        reads and writes maps but once.
        """
        fresh = begins[:, None, None]
        emptied = SemanticMap(
            state.map.features.masked_fill(fresh[:, None], 0), state.map.view_counts.masked_fill(fresh, 0)
        )
        history = state.history
        if history is not None:
            history = History(history.cells & ~fresh, history.last.masked_fill(begins[:, None], torch.nan))
        before = replace(state, map=emptied, observed=state.observed & ~fresh, history=history)
        after, beliefs = self.network(before, image, pose, "sim")
        state.map.features.copy_(after.map.features)
        state.map.view_counts.copy_(after.map.view_counts)
        state.observed.copy_(after.observed)
        each(Tensor.copy_, state.history, after.history)
        return beliefs.visitation, beliefs.view, beliefs.control

    def _decide(
        self,
        simulator: Simulator,
        start: Pose,
        plan: Plan,
        pose: Pose,
        rest: Tensor,
        index: Tensor,
        flying: Tensor,
        generator: torch.Generator,
    ) -> dict[str, Any]:
        """Sample actions of N drones at poses [N], world frame, and fly them; returns a row [N] of the buffer.

        Args:
            simulator: Of the N worlds.
            start: World frame.
            plan: Of the policy.
            pose: World frame.
            rest: [N, 2] where each would come to rest after STOP, world frame.
            index: [N] examples.
            flying: [N] bool, the others hover.
            generator: Of the samples.
        """
        visitation, view, control = plan
        control = each(lambda tensor: tensor.float(), control)
        action, stop = sample_action(control, generator)
        self._aside.run(lambda: execute(simulator, Action(to_setpoint(action), stop), flying, safety=False))
        noted = self._note(visitation, view, control, pose, action, stop)
        self._aside.wait()
        led_to = torch.where(stop[:, None], rest, simulator.pose.xy)  # world frame
        return noted | self._measure(start, visitation, led_to, stop, index)

    def _noted(
        self, visitation: Visitation, view: EgoView, control: Control, pose: Pose, action: Tensor, stop: Tensor
    ) -> dict[str, Any]:
        """What is known of N decisions before they are flown."""
        return {
            "view": view,
            "action": action,
            "stop": stop,
            "log_prob": log_prob(control, action, stop),
            "value": self.value_network(view),
            "trajectory": SparseMap.of(visitation.trajectory),
            "pose": pack_pose(pose, checked=False),  # a check would wait for the device
        }

    def _measured(
        self, start: Pose, visitation: Visitation, led_to: Tensor, stop: Tensor, index: Tensor
    ) -> dict[str, Tensor]:
        """Where N decisions led to, [N, 2] world frame, beside what was planned."""
        position = start_frame(start).unapply_xy(led_to)
        strayed = torch.zeros_like(stop)
        if self.gold_distance is not None:
            points = self.examples.examples.points[index]
            strayed = (points - led_to[:, None]).norm(dim=-1).amin(1) > self.gold_distance
        return {
            "stop_distance": stop_emd(visitation.goal, position),
            "position": position,
            "left_arena": ~stop & (led_to.abs() > ARENA_HALF).any(1),
            "strayed": strayed,
        }
