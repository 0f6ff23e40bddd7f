"""Flights of the policy in training: velocities and STOP are drawn, and everything that PPO needs is kept.

R flights in N worlds, R ≥ N: a world whose flight has ended begins the next one, until all have been flown. Records lie
in [R, D] tensors, flight by flight. All flights are whole: each ends by STOP, with its last allowed decision, or by
leaving the arena (there is no safety rule in training, as in the paper).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from wordwing.devices import compile_once, precision
from wordwing.execution.packing import pack_pose
from wordwing.frames import ARENA_HALF, Pose, start_frame
from wordwing.interface import MAX_FORWARD, MAX_YAW_RATE, Observation
from wordwing.learning.emd import SparseMap, stop_emd
from wordwing.learning.examples import Examples, ExampleSet
from wordwing.learning.ppo import log_probability, sample
from wordwing.learning.rewards import Flown
from wordwing.learning.runtime.messages import Executed
from wordwing.model.ego import EgoView
from wordwing.model.layers import each
from wordwing.model.policy import Beliefs, PolicyNetwork, PolicyState
from wordwing.model.stage2 import Control, ValueNetwork, to_setpoint
from wordwing.sim.dynamics import ANSWERS
from wordwing.sim.simulator import Simulator

REFILL = 4
"""Decisions between two looks for worlds that are free; each look waits for the device."""


@dataclass(frozen=True)
class Records:
    """Decisions: [N] of one moment, or [R, D] of whole flights."""

    view: EgoView
    """What stage 2 saw."""
    action: Tensor
    """[..., 2] sampled forward velocity and yaw rate: shares, not clipped."""
    stop: Tensor
    """[...] bool, decided to STOP."""
    log_probability: Tensor
    """[...] of the decision."""
    value: Tensor
    """[...] expected return."""
    trajectory: SparseMap
    """[...] d^p before the decision."""
    stop_distance: Tensor
    """[...] metres from where the decision led to the goal as it was believed, the mean over d^g."""
    position: Tensor
    """[..., 2] where the decision led, start frame, metres; after STOP where the drone comes to rest."""
    pose: Tensor
    """[..., 6] int16 packed poses before the decision, world frame."""
    left: Tensor
    """[...] bool, it led out of the arena."""
    strayed: Tensor
    """[...] bool, it led too far from the demonstrated path, where that ends a flight."""


@dataclass(frozen=True)
class Rollouts:
    """R flights of up to D decisions."""

    example: Tensor
    """[R] int64, which instruction each followed."""
    records: Records
    """[R, D]."""
    length: Tensor
    """[R] int64, decisions of each flight."""

    @property
    def mask(self) -> Tensor:
        """[R, D] bool, where there was a decision."""
        return torch.arange(self.records.stop.shape[1], device=self.length.device) < self.length[:, None]

    @property
    def flown(self) -> Flown:
        """What rewards are computed from."""
        records = self.records
        first = torch.zeros_like(records.position[:, :1])  # a flight begins at the origin of its start frame
        limits = torch.tensor([MAX_FORWARD, MAX_YAW_RATE], device=first.device)
        return Flown(
            mask=self.mask,
            position=torch.cat([first, records.position], dim=1),
            trajectory=records.trajectory,
            stop_distance=records.stop_distance,
            unobserved=records.view.unobserved[..., 1],
            action=records.action * limits,
            stop=records.stop,
        )

    def executed(self, progress: float) -> Executed:
        """The flights as Process A wants them, on the CPU; `progress` is the share of B's updates that is done."""
        return Executed(self.example.cpu(), self.records.pose[self.mask].cpu(), self.length.cpu(), progress)


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
        unlike: float = 0.0,
    ) -> None:
        """Prepare N worlds.

        Args:
            network: Flies; on the examples' device.
            value_network: Says what it expects.
            examples: What may be flown.
            worlds: N.
            compiled: Whether to let torch compile the network, which takes half a minute.
            gold_distance: Flights end farther than this from the demonstrated path, metres, as in the authors'
                software; by default nothing about the demonstration enters.
            unlike: How different the drones are: each flight's answers setpoints by parameters that are up to 1 +
                `unlike` times the simulator's, or its fraction.
        """
        self.network, self.value_network, self.examples = network, value_network, examples
        self.worlds = worlds
        self.gold_distance = gold_distance
        self.unlike = unlike
        self.device = examples.device
        self.simulator = Simulator(worlds, self.device)
        self._forward: Callable[..., tuple[PolicyState, Beliefs]] = compile_once(network) if compiled else network

    @torch.no_grad()
    def fly(self, index: Tensor, generator: torch.Generator) -> Rollouts:
        """Fly examples `index` [R], R at least N.

        Args:
            index: [R] int64 on the device.
            generator: Of what is drawn, on the device.
        """
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
        book: Records | None = None
        for step in itertools.count():
            if step % REFILL == 0 and step:
                free = (flight == count).nonzero()[:, 0]
                if begun == count and len(free) == self.worlds:
                    break
                free = free[: count - begun]
                if len(free):
                    flight[free] = torch.arange(begun, begun + len(free), device=self.device)
                    decision[free] = 0
                    begun += len(free)
                    state, observation = self._begin(index[flight[free]], generator, free, state)
                else:
                    observation = self.simulator.observe()
            elif step:
                observation = self.simulator.observe()
            # Compiled code is for one layout in memory; a state comes in several.
            state = each(torch.Tensor.contiguous, state)
            with precision(self.device):
                state, beliefs = self._forward(state, observation.image, observation.pose, "sim")
            flying = flight < count
            made, ended = self._decide(state, beliefs, observation.pose, index[flight], decision, flying, generator)
            if book is None:
                book = _empty(made, (count + 1, self.examples.max_steps))
            each(lambda page, line: page.index_put_((flight, decision), line), book, made)  # noqa: B023
            length[flight] = decision + 1
            on = flying & ~ended
            flight = torch.where(on, flight, count)
            decision = torch.where(on, decision + 1, 0)
        assert book is not None
        records: Records = each(lambda page: page[:count], book)
        return Rollouts(index[:count], records, length[:count])

    def _begin(
        self,
        index: Tensor,
        generator: torch.Generator,
        worlds: Tensor | None = None,
        state: PolicyState | None = None,
    ) -> tuple[PolicyState, Observation]:
        """Begin flights of examples `index` [M] in worlds [M], by default in all."""
        if self.unlike:
            which = torch.arange(self.worlds, device=self.device) if worlds is None else worlds
            drawn = torch.rand(len(which), len(ANSWERS), device=self.device, generator=generator)
            self.simulator.drones.vary(which, (1 + self.unlike) ** (2 * drawn - 1))
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
        decision: Tensor,
        flying: Tensor,
        generator: torch.Generator,
    ) -> tuple[Records, Tensor]:
        """Draw decisions of N drones and carry them out; also returns whose flight is over, [N] bool.

        Args:
            state: What is remembered.
            beliefs: What is believed.
            pose: [N] world frame.
            index: [N] examples.
            decision: [N] how many were made before in these flights.
            flying: [N] bool, the others hover.
            generator: Of what is drawn.
        """
        chosen = self.examples.examples[index]
        control: Control = each(lambda tensor: tensor.float(), beliefs.control)
        action, stop = sample(control, generator)
        # Evaluation counts from where a drone comes to rest, and so does the stop reward.
        rest = self.simulator.drones.rest()
        self.simulator.step(to_setpoint(action).where(flying & ~stop))
        led_to = torch.where(stop[:, None], rest, self.simulator.pose.xy)  # world frame
        position = start_frame(state.start).unapply(torch.nn.functional.pad(led_to, (0, 1)))[:, :2]
        left = ~stop & (led_to.abs() > ARENA_HALF).any(1)
        records = Records(
            view=beliefs.view,
            action=action,
            stop=stop,
            log_probability=log_probability(control, action, stop),
            value=self.value_network(beliefs.view),
            trajectory=SparseMap.of(beliefs.visitation.trajectory),
            stop_distance=stop_emd(beliefs.visitation.goal, position),
            position=position,
            pose=pack_pose(pose, checked=False),  # a check would wait for the device
            left=left,
            strayed=self._strayed(chosen, led_to),
        )
        return records, stop | left | records.strayed | (decision + 1 >= chosen.steps)

    def _strayed(self, examples: Examples, position: Tensor) -> Tensor:
        """[N] bool, whether positions [N, 2] (world frame) are too far from the demonstrated paths."""
        if self.gold_distance is None:
            return torch.zeros_like(examples.layout, dtype=torch.bool)
        return (examples.points - position[:, None]).norm(dim=-1).amin(1) > self.gold_distance


def _empty(records: Records, rooms: tuple[int, int]) -> Records:
    """Room for records like those of one moment."""
    made: Any = each(lambda tensor: tensor.new_zeros(rooms + tensor.shape[1:]), records)
    return made
