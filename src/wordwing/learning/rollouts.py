"""Rollouts of the policy in training: velocities and STOP are sampled, and all that PPO needs is kept.

R flights in N worlds, R ≥ N: a world whose flight has ended begins the next one, until all have been flown. Every
flight is complete: it ends by STOP, with its last allowed decision, or by leaving the arena (there is no safety rule in
training, as in the paper).

All that flights begin with is computed for all of them at once, before the first step. A step then asks the host for
nothing and always has the same shapes, whichever worlds begin a flight in it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from wordwing.devices import compile_once, precision
from wordwing.execution.packing import PackedExecutions, pack_pose
from wordwing.execution.runner import execute
from wordwing.frames import ARENA_HALF, Pose, start_frame
from wordwing.interface import Action
from wordwing.learning.emd import SparseMap, stop_emd
from wordwing.learning.ppo import Decisions, log_prob, sample_action
from wordwing.learning.runtime.messages import Rollouts
from wordwing.learning.training_data import ExampleSet
from wordwing.model.layers import each
from wordwing.model.mapping import SemanticMap, arena_cells, boundary_cells
from wordwing.model.policy import Beliefs, PolicyNetwork, PolicyState
from wordwing.model.stage1 import TextKernels
from wordwing.model.stage2 import Control, ValueNetwork, to_setpoint
from wordwing.sim.dynamics import RESPONSE_PARAMETERS
from wordwing.sim.scene import PackedLayouts
from wordwing.sim.simulator import Simulator

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
    buffer: dict[str, Any]
    """[R + 1, D] of each field of a `RolloutBuffer`; worlds without a flight write into row R."""

    @property
    def done(self) -> bool:
        """Whether all has been flown."""
        count = len(self.length) - 1
        return bool((self.begun == count) & (self.flight == count).all())


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
        self.simulator = Simulator(worlds, self.device)
        self._forward: Callable[..., tuple[PolicyState, Beliefs]] = compile_once(network) if compiled else network
        self._room = examples.max_steps  # asks the host, which a step must not

    @torch.no_grad()
    def collect(self, index: Tensor, generator: torch.Generator) -> RolloutBuffer:
        """Fly examples `index` [R] int64 on the device, R at least N, with the generator's samples."""
        count = len(index)
        if count < self.worlds:
            raise ValueError(f"{count} flights are too few for {self.worlds} worlds")
        self.network.eval()
        inputs, progress = self._inputs(torch.cat([index, index[-1:]])), self._progress(count)
        periods = CHECK_EVERY if self.device.type == "cuda" else 1
        while not progress.done:
            for _period in range(periods):
                self._step(inputs, progress, generator)
        kept = {name: each(lambda rows: rows[:count], rows) for name, rows in progress.buffer.items()}
        return RolloutBuffer(example=index, length=progress.length[:count], **kept)

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

    def _progress(self, count: int) -> RolloutProgress:
        """Before the first of so many flights."""
        channels = self.network.config.stage1.vision.channels
        flight = torch.full((self.worlds,), count, device=self.device)
        empty = SemanticMap.empty(self.worlds, channels, self.device)
        return RolloutProgress(
            flight=flight,
            decision=torch.zeros_like(flight),
            begun=torch.zeros_like(flight[0]),
            length=flight.new_zeros(count + 1),
            map=empty,
            observed=torch.zeros_like(empty.view_counts, dtype=torch.bool),
            buffer={},
        )

    def _step(self, inputs: FlightInputs, progress: RolloutProgress, generator: torch.Generator) -> None:
        """Begin flights in free worlds, decide, fly one control period, and write it down."""
        count = len(inputs.steps) - 1
        begins = self._begin_flights(inputs, progress, generator)
        flight, decision = progress.flight, progress.decision
        fresh = begins[:, None, None]
        state = PolicyState(
            start=each(lambda rows: rows[flight], inputs.start),
            kernels=each(lambda rows: rows[flight], inputs.kernels),
            map=SemanticMap(
                progress.map.features.masked_fill(fresh[:, None], 0), progress.map.view_counts.masked_fill(fresh, 0)
            ),
            observed=progress.observed & ~fresh,
            arena=inputs.arena[flight],
            boundary=inputs.boundary[flight],
        )
        observation = self.simulator.observe()
        with precision(self.device):
            state, beliefs = self._forward(state, observation.image, observation.pose, "sim")
        each(Tensor.copy_, progress.map, state.map)
        progress.observed.copy_(state.observed)
        flying = flight < count
        made = self._decide(state, beliefs, observation.pose, inputs.example[flight], flying, generator)
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

    def _begin_flights(self, inputs: FlightInputs, progress: RolloutProgress, generator: torch.Generator) -> Tensor:
        """Put the next flights into free worlds; returns which begin one, [N] bool."""
        count = len(inputs.steps) - 1
        free = progress.flight == count
        following = progress.begun + free.cumsum(0) - 1
        begins = free & (following < count)
        flight = progress.flight.copy_(torch.where(begins, following, progress.flight))
        progress.begun += begins.sum()
        self.simulator.begin(inputs.layouts.take(flight), each(lambda rows: rows[flight], inputs.start), begins)
        if self.dynamics_randomization:
            uniform = torch.rand(self.worlds, len(RESPONSE_PARAMETERS), device=self.device, generator=generator)
            self.simulator.drones.vary(begins, (1 + self.dynamics_randomization) ** (2 * uniform - 1))
        return begins

    def _decide(
        self,
        state: PolicyState,
        beliefs: Beliefs,
        pose: Pose,
        index: Tensor,
        flying: Tensor,
        generator: torch.Generator,
    ) -> dict[str, Any]:
        """Sample actions of N drones at poses [N], world frame, and fly them; returns a row [N] of the buffer.

        Args:
            state: Of the policy.
            beliefs: Of the policy.
            pose: World frame.
            index: [N] examples.
            flying: [N] bool, the others hover.
            generator: Of the samples.
        """
        control: Control = each(lambda tensor: tensor.float(), beliefs.control)
        action, stop = sample_action(control, generator)
        # Evaluation counts from where a drone comes to rest, and so does the stop reward.
        rest = self.simulator.drones.rest()
        execute(self.simulator, Action(to_setpoint(action), stop), flying, safety=False)
        led_to = torch.where(stop[:, None], rest, self.simulator.pose.xy)  # world frame
        position = start_frame(state.start).unapply_xy(led_to)
        strayed = torch.zeros_like(stop)
        if self.gold_distance is not None:
            points = self.examples.examples.points[index]
            strayed = (points - led_to[:, None]).norm(dim=-1).amin(1) > self.gold_distance
        return {
            "view": beliefs.view,
            "action": action,
            "stop": stop,
            "log_prob": log_prob(control, action, stop),
            "value": self.value_network(beliefs.view),
            "trajectory": SparseMap.of(beliefs.visitation.trajectory),
            "stop_distance": stop_emd(beliefs.visitation.goal, position),
            "position": position,
            "pose": pack_pose(pose, checked=False),  # a check would wait for the device
            "left_arena": ~stop & (led_to.abs() > ARENA_HALF).any(1),
            "strayed": strayed,
        }
