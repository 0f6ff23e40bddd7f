"""Rollouts of the policy in training: velocities and STOP are sampled, and all that PPO needs is kept.

R flights in N worlds, R ≥ N: a world whose flight has ended begins the next one, until all have been flown. Every
flight is complete: it ends by STOP, with its last allowed decision, or by leaving the arena (there is no safety rule in
training, as in the paper).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from wordwing.devices import compile_once, precision
from wordwing.execution.packing import PackedExecutions, pack_pose
from wordwing.execution.runner import execute
from wordwing.frames import ARENA_HALF, Pose, start_frame
from wordwing.interface import Action, Observation
from wordwing.learning.emd import SparseMap, stop_emd
from wordwing.learning.ppo import log_prob, sample_action
from wordwing.learning.runtime.messages import Rollouts
from wordwing.learning.training_data import ExampleSet
from wordwing.model.ego import EgoView
from wordwing.model.layers import each
from wordwing.model.policy import Beliefs, PolicyNetwork, PolicyState
from wordwing.model.stage2 import Control, ValueNetwork, to_setpoint
from wordwing.sim.dynamics import RESPONSE_PARAMETERS
from wordwing.sim.simulator import Simulator

REFILL_EVERY = 4
"""Control periods between two checks for free worlds; each check waits for the device."""


@dataclass(frozen=True)
class RolloutBuffer:
    """R flights of up to D decisions; beyond `length` is padding."""

    example: Tensor
    """[R] int64, which instruction each follows."""
    length: Tensor
    """[R] int64, decisions of each flight."""
    view: EgoView
    """[R, D] what stage 2 saw."""
    action: Tensor
    """[R, D, 2] sampled forward velocity and yaw rate: shares of the limits, not clipped."""
    stop: Tensor
    """[R, D] bool, decided STOP."""
    log_prob: Tensor
    """[R, D] of the decision."""
    value: Tensor
    """[R, D] expected return."""
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

    @torch.no_grad()
    def collect(self, index: Tensor, generator: torch.Generator) -> RolloutBuffer:
        """Fly examples `index` [R] int64 on the device, R at least N, with the generator's samples."""
        count = len(index)
        if count < self.worlds:
            raise ValueError(f"{count} flights are too few for {self.worlds} worlds")
        self.network.eval()
        # Worlds without a flight write into row R, which is thrown away.
        index = torch.cat([index, index[-1:]])
        flight = torch.arange(self.worlds, device=self.device)  # [N]
        decision = torch.zeros_like(flight)  # [N] of its flight
        length = torch.zeros_like(index)
        state, observation = self._begin(index[: self.worlds], generator)
        begun = self.worlds
        buffer: dict[str, Any] = {}
        for step in itertools.count():
            free = flight[:0]
            if step and step % REFILL_EVERY == 0:
                free = (flight == count).nonzero()[:, 0]
                if begun == count and len(free) == self.worlds:
                    break
                free = free[: count - begun]
            if len(free):
                flight[free] = torch.arange(begun, begun + len(free), device=self.device)
                decision[free] = 0
                begun += len(free)
                state, observation = self._begin(index[flight[free]], generator, free, state)
            elif step:
                observation = self.simulator.observe()
            # Compiled code is for one layout in memory; a state comes in several.
            state = each(torch.Tensor.contiguous, state)
            with precision(self.device):
                state, beliefs = self._forward(state, observation.image, observation.pose, "sim")
            flying = flight < count
            made = self._decide(state, beliefs, observation.pose, index[flight], flying, generator)
            room = (count + 1, self.examples.max_steps)
            for name, values in made.items():
                if name not in buffer:
                    buffer[name] = each(lambda row: row.new_zeros(room + row.shape[1:]), values)  # noqa: B023
                each(lambda rows, row: rows.index_put_((flight, decision), row), buffer[name], values)  # noqa: B023
            length[flight] = decision + 1
            ended = made["stop"] | made["left_arena"] | made["strayed"]
            ended = ended | (decision + 1 >= self.examples.examples.steps[index[flight]])
            flies_on = flying & ~ended
            flight = torch.where(flies_on, flight, count)
            decision = torch.where(flies_on, decision + 1, 0)
        kept = {name: each(lambda rows: rows[:count], rows) for name, rows in buffer.items()}
        return RolloutBuffer(index[:count], length[:count], **kept)

    def _begin(
        self,
        index: Tensor,
        generator: torch.Generator,
        worlds: Tensor | None = None,
        state: PolicyState | None = None,
    ) -> tuple[PolicyState, Observation]:
        """Begin flights of examples `index` [M] in worlds [M], by default in all."""
        if self.dynamics_randomization:
            which = torch.arange(self.worlds, device=self.device) if worlds is None else worlds
            uniform = torch.rand(len(which), len(RESPONSE_PARAMETERS), device=self.device, generator=generator)
            self.simulator.drones.vary(which, (1 + self.dynamics_randomization) ** (2 * uniform - 1))
        chosen = self.examples.examples[index]
        observation = self.simulator.reset(self.examples.layouts.take(chosen.layout), chosen.start, worlds)
        with precision(self.device):
            fresh = self.network.begin(chosen.tokens, chosen.start)
        return (fresh if state is None or worlds is None else state.put(worlds, fresh)), observation

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
        position = start_frame(state.start).unapply(functional.pad(led_to, (0, 1)))[:, :2]
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
