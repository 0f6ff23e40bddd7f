"""Process B: reinforcement learning of stage 2 with the intrinsic reward (paper: Algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from wordwing.learning.examples import ExampleSet
from wordwing.learning.ppo import PPO, Decisions, PPOConfig
from wordwing.learning.returns import generalised_advantages, returns
from wordwing.learning.rewards import RewardConfig, Rewards, rewards
from wordwing.learning.rollouts import Collector, Rollouts
from wordwing.learning.runtime.seeding import generator_of
from wordwing.model.policy import PolicyNetwork
from wordwing.model.stage2 import ValueNetwork

STRAYING = 1.0
"""What a flight pays that ends far from the demonstrated path, where that counts; as in the authors' software."""


@dataclass(frozen=True)
class ReinforcementConfig:
    """Process B."""

    flights: int = 20
    """N of the paper: rollouts in an iteration."""
    worlds: int = 20
    """That are flown in at once."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    gold_distance: float | None = None
    """Flights end farther than this from the demonstrated path, metres: 2.0 in the authors' software, which makes the
    demonstration part of the reward; by default nothing about it enters."""
    unlike: float = 0.0
    """How different the drones of the flights are: each answers setpoints by parameters that are up to 1 + `unlike`
    times the simulator's, or its fraction. Control that has flown many drones does not count on one's braking."""


class Reinforcement:
    """Stage 2's teacher: each `iterate` is one iteration of Algorithm 2's inner loop."""

    def __init__(
        self,
        network: PolicyNetwork,
        examples: ExampleSet,
        config: ReinforcementConfig,
        seed: int = 0,
        compiled: bool = False,
    ) -> None:
        """Prepare to fly.

        Args:
            network: Its stage 2 learns; its stage 1 is Process A's, whenever that sends a new one.
            examples: Instructions to fly.
            config: How.
            seed: Of all that is random.
            compiled: Whether to let torch compile the network and PPO's loss.
        """
        self.network, self.examples, self.config, self.seed = network, examples, config, seed
        self.device = examples.device
        self.value_network = ValueNetwork(network.config.stage2).to(self.device)
        self.ppo = PPO(network.stage2, self.value_network, config.ppo, compiled)
        worlds = min(config.worlds, config.flights)
        self.collector = Collector(
            network, self.value_network, examples, worlds, compiled, config.gold_distance, config.unlike
        )
        self.iterations = 0
        self.flights = 0
        """Flown so far."""
        self.decisions = 0
        """Made so far: environment steps."""

    def choose(self) -> Tensor:
        """[R] examples to fly next: all are flown once before any is flown twice."""
        total, count = len(self.examples), self.config.flights
        begin = self.iterations * count
        passes = range(begin // total, (begin + count - 1) // total + 1)
        orders = []
        for number in passes:
            generator = generator_of(self.device, self.seed, "order", number)
            orders.append(torch.randperm(total, device=self.device, generator=generator))
        offset = begin - passes[0] * total
        return torch.cat(orders)[offset : offset + count]

    def iterate(
        self, progress: float = 0.0, breakable: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> tuple[Rollouts, dict[str, Tensor]]:
        """Fly, pay and learn.

        Args:
            progress: Share of all learning that is done, for the schedule.
            breakable: Around what may be broken off, because nothing has changed yet.

        Returns:
            The flights, and figures to log, on the device.
        """
        generator = generator_of(self.device, self.seed, "reinforcement", self.iterations)
        with breakable():
            rollouts = self.collector.fly(self.choose(), generator)
        paid = rewards(rollouts.flown, self.config.reward)
        decisions = self.decisions_of(rollouts, paid)
        figures = self.ppo.update(decisions, generator, progress)
        self.iterations += 1
        self.flights += len(rollouts.example)
        self.decisions += len(decisions)
        return rollouts, figures | _figures(rollouts, paid)

    def decisions_of(self, rollouts: Rollouts, paid: Rewards) -> Decisions:
        """All that PPO learns from, in one row."""
        ppo, mask, records = self.config.ppo, rollouts.mask, rollouts.records
        reward = paid.total - STRAYING * records.strayed
        to_come = returns(reward, mask, ppo.discount)
        if ppo.gae is None:
            advantage = to_come - records.value
        else:
            advantage = generalised_advantages(reward, records.value, mask, ppo.discount, ppo.gae)
            to_come = advantage + records.value
        return Decisions(
            view=records.view[mask],
            action=records.action[mask],
            stop=records.stop[mask],
            log_probability=records.log_probability[mask],
            value=records.value[mask],
            returns=to_come[mask],
            advantage=advantage[mask],
        )

    def modules(self) -> dict[str, nn.Module]:
        """Everything that learns here, by name."""
        return {"stage2": self.network.stage2, "value": self.value_network}

    def optimizers(self) -> dict[str, torch.optim.Adam]:
        """By name."""
        return {"ppo": self.ppo.optimizer}


def _figures(rollouts: Rollouts, paid: Rewards) -> dict[str, Tensor]:
    """What happened in the flights."""
    records, mask = rollouts.records, rollouts.mask
    count = len(rollouts.example)
    last = rollouts.length[:, None] - 1
    stopped = records.stop.gather(1, last).float().mean()
    left = records.left.gather(1, last).float().mean()
    unobserved = records.view.unobserved[..., 1].gather(1, last).mean()
    shares = {f"rewards/share_{name}": share for name, share in paid.shares().items()}
    sums = {
        f"rewards/{name}": getattr(paid, name).sum() / count
        for name in ("visitation", "stop", "exploration", "unobserved", "action", "step")
    }
    return (
        shares
        | sums
        | {
            "charts/episodic_return": paid.total.sum() / count,
            "charts/episodic_length": rollouts.length.float().mean(),
            "charts/stopped": stopped,
            "charts/left_arena": left,
            "charts/unobserved_at_end": unobserved,
            "charts/stop_distance": records.stop_distance.gather(1, last).mean(),
            "charts/p_stop": records.stop.float().sum() / mask.sum(),
        }
    )
