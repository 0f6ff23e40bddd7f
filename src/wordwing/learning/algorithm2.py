"""Process B: reinforcement learning of stage 2 with PPO and the intrinsic reward (paper: Algorithm 2).

`Reinforcement.iterate` is the inner loop's body, lines 5 to 10 of the paper's box, with CleanRL's PPO in `PPO.update`.
`ProcessB.step` is what stands around it: lines 2 and 3, 11 and 12, and the evaluation of the policy, since it has both
stages.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Any

import torch
from torch import Tensor, nn

from wordwing.devices import compile_once, replayed
from wordwing.errors import WordwingError
from wordwing.learning.evaluator import Evaluator
from wordwing.learning.ppo import (
    Decisions,
    Minibatch,
    PPOConfig,
    discounted_returns,
    explained_variance,
    generalized_advantages,
    moments,
    ppo_loss,
)
from wordwing.learning.recipes.cards import card
from wordwing.learning.recipes.config import ReinforcementConfig, RunConfig
from wordwing.learning.recipes.initial import new_network
from wordwing.learning.rewards import Rewards, rewards
from wordwing.learning.rollouts import Collector, RolloutBuffer
from wordwing.learning.runtime.checkpoints import Tensors, restore_modules
from wordwing.learning.runtime.runs import BEST, POLICY
from wordwing.learning.runtime.updates import adam, generator_of, optimizer_step
from wordwing.learning.runtime.worker import RunContext, Worker
from wordwing.learning.training_data import ExampleSet, TrainingData
from wordwing.model.checkpoint import save_network
from wordwing.model.layers import each
from wordwing.model.policy import PolicyNetwork
from wordwing.model.stage2 import Stage2, ValueNetwork
from wordwing.policies.learned import LearnedPolicy

STRAY_PENALTY = 1.0
"""Cost of ending far from the demonstrated path, where that ends flights; as in the authors' software."""


@dataclass(frozen=True)
class PPOUpdate:
    """A gradient update, and the memory that it works in."""

    minibatch: Minibatch
    entropy_weight: Tensor
    """[]."""
    newest: dict[str, Tensor] = field(default_factory=dict)
    """Metrics of the update that was made last, [] each."""
    sums: dict[str, Tensor] = field(default_factory=dict)
    """Their sums over all updates that were not skipped, and `made`, how many these are."""


class PPO:
    """Stage 2, the value network, and the one optimizer of both."""

    def __init__(self, stage2: Stage2, value_network: ValueNetwork, config: PPOConfig, compiled: bool = False) -> None:
        """Prepare to learn; `compiled` has torch compile the loss of whole minibatches."""
        self.stage2, self.value_network, self.config = stage2, value_network, config
        self.parameters = [*stage2.parameters(), *value_network.parameters()]
        first = list(stage2.parameters()) if config.clip_apart else self.parameters
        self.optimizer = adam(first, config.learning_rate, epsilon=config.epsilon)
        if config.clip_apart:
            self.optimizer.add_param_group({"params": list(value_network.parameters())})
        self._loss: Callable[..., tuple[Tensor, dict[str, Tensor]]] = compile_once(ppo_loss) if compiled else ppo_loss
        self._prepared: tuple[PPOUpdate, Callable[[], None]] | None = None

    def update(self, decisions: Minibatch, generator: torch.Generator, progress: float) -> dict[str, Tensor]:
        """Lines 7 to 10: learn from an iteration's rollouts.

        An update whose loss or gradient is not finite is skipped and counted: it changes neither the parameters nor
        Adam's moments.

        Args:
            decisions: All of the iteration's; the advantages are not yet normalized.
            generator: Of the shuffling, on the same device.
            progress: Share of the training that is done, from 0 to 1.

        Returns:
            Means over the updates that were made, NaN if there was none; how many were skipped.
        """
        config, ran = self.config, 0
        mean, variance = moments(decisions.advantage)
        batch = replace(decisions, advantage=(decisions.advantage - mean) / (variance.sqrt() + 1e-5))
        update, run = self._prepare(batch[: config.minibatch])
        update.entropy_weight.fill_(config.entropy * (config.late_entropy if progress >= 0.5 else 1.0))
        each(Tensor.zero_, tuple(update.sums.values()))
        for indices in self._minibatches(len(batch), generator):
            # Lines 8–10: X ~ Ξ_1 … Ξ_N; ξ, ν ← ADAM(∇ L_PPO(X, V))
            each(Tensor.copy_, update.minibatch, batch[indices])
            run()
            ran += 1
            if config.target_kl is not None and update.newest["losses/approx_kl"] > config.target_kl:
                break
        sums = dict(update.sums)
        made = sums.pop("made")
        return {name: total / made for name, total in sums.items()} | {
            "losses/skipped_updates": ran - made,
            "losses/explained_variance": explained_variance(decisions.value, decisions.returns),
            "charts/learning_rate": made.new_full((), config.learning_rate),
        }

    def _prepare(self, minibatch: Minibatch) -> tuple[PPOUpdate, Callable[[], None]]:
        """Memory for minibatches as large as this one, and what learns from it."""
        config, device = self.config, minibatch.value.device
        whole = len(minibatch) == config.minibatch
        if whole and self._prepared is not None:
            return self._prepared
        update = PPOUpdate(each(Tensor.clone, minibatch), minibatch.value.new_zeros(()))
        loss_of = self._loss if whole else ppo_loss

        def learn() -> None:
            given = (self.stage2, self.value_network, update.minibatch, config, update.entropy_weight)
            loss, metrics = loss_of(*given)
            metrics["losses/gradient_norm"], lost = optimizer_step(self.optimizer, loss, config.max_gradient_norm)
            update.newest.update(metrics, made=torch.ones_like(loss.detach()))
            for name, metric in update.newest.items():
                update.sums.setdefault(name, torch.zeros_like(metric)).add_(torch.where(lost, 0.0, metric))

        # Few decisions come in iterations of ever other sizes, for each of which there would be another graph.
        prepared = update, replayed(learn, device if whole else torch.device("cpu"))
        if whole:
            self._prepared = prepared
        return prepared

    def _minibatches(self, count: int, generator: torch.Generator) -> Iterator[Tensor]:
        """Indices of each update's decisions: all are used once before any is used twice."""
        size = min(self.config.minibatch, count)
        passes = math.ceil(self.config.updates * size / count)
        device = generator.device
        order = torch.cat([torch.randperm(count, generator=generator, device=device) for _pass in range(passes)])
        yield from order[: self.config.updates * size].split(size)


class Reinforcement:
    """Reinforcement learning of stage 2: each `iterate` is one iteration of Algorithm 2's inner loop."""

    def __init__(
        self,
        network: PolicyNetwork,
        examples: ExampleSet,
        config: ReinforcementConfig,
        seed: int = 0,
        compiled: bool = False,
    ) -> None:
        """Require stage 2 with its parameters, the value function V, and stage 1 for `sim`.

        Args:
            network: Its stage 2 learns; its stage 1 is Process A's newest.
            examples: Instructions to fly.
            config: How.
            seed: Of all random numbers.
            compiled: Whether torch compiles the network and PPO's loss.
        """
        self.network, self.examples, self.config, self.seed = network, examples, config, seed
        self.device = examples.device
        self.value_network = ValueNetwork(network.config.stage2).to(self.device)
        self.ppo = PPO(network.stage2, self.value_network, config.ppo, compiled)
        self.collector = Collector(
            network,
            self.value_network,
            examples,
            min(config.worlds, config.flights),
            compiled,
            config.gold_distance,
            config.dynamics_randomization,
        )
        self.iterations = 0
        self.flights = 0
        """Flown so far."""
        self.decisions = 0
        """Made so far: CleanRL's global_step."""

    def choose(self) -> Tensor:
        """[N] examples to fly next: all are flown once before any is flown twice."""
        total, count = len(self.examples), self.config.flights
        begin = self.iterations * count
        passes = range(begin // total, (begin + count - 1) // total + 1)
        generators = (generator_of(self.device, self.seed, "order", number) for number in passes)
        orders = [torch.randperm(total, device=self.device, generator=generator) for generator in generators]
        offset = begin - passes[0] * total
        return torch.cat(orders)[offset : offset + count]

    def iterate(
        self, progress: float = 0.0, interruptible: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> tuple[RolloutBuffer, dict[str, Tensor]]:
        """Collect rollouts, compute rewards and advantages, update.

        Args:
            progress: Share of the training that is done, for the schedule.
            interruptible: Around what may be interrupted, because nothing has changed yet.

        Returns:
            The rollouts, and metrics to log, on the device.
        """
        generator = generator_of(self.device, self.seed, "reinforcement", self.iterations)
        # Lines 5–6: Ξ^(1), …, Ξ^(N) ~ g(f_S(·))
        with interruptible():
            rollouts = self.collector.collect(self.choose(), generator)
        reward = rewards(rollouts, self.config.reward)
        decisions = self.advantages(rollouts, reward)
        metrics = self.ppo.update(decisions, generator, progress)  # lines 7–10
        self.iterations += 1
        self.flights += len(rollouts.example)
        self.decisions += len(decisions)
        return rollouts, metrics | _rollout_metrics(rollouts, reward)

    @torch.no_grad()
    def prepare(self) -> None:
        """Have everything compiled before it is needed: an iteration that leaves all as it was."""

        def tensors() -> list[Tensor]:
            remembered = (tensor for state in self.ppo.optimizer.state.values() for tensor in state.values())
            return [*self.ppo.parameters, *remembered]

        before = {id(tensor): tensor.clone() for tensor in tensors()}
        done = self.iterations, self.flights, self.decisions
        with torch.enable_grad():
            self.iterate()
        self.iterations, self.flights, self.decisions = done
        for tensor in tensors():  # in place, since graphs go on using them; Adam begins with zeros
            tensor.copy_(before.get(id(tensor), torch.zeros_like(tensor)))

    def advantages(self, rollouts: RolloutBuffer, reward: Rewards) -> Minibatch:
        """All decisions in one row, with their returns and advantages."""
        ppo, mask = self.config.ppo, rollouts.mask
        total = reward.total - STRAY_PENALTY * rollouts.strayed
        if ppo.gae_lambda is None:
            returns = discounted_returns(total, mask, ppo.discount)
            advantage = returns - rollouts.value
        else:
            advantage = generalized_advantages(total, rollouts.value, mask, ppo.discount, ppo.gae_lambda)
            returns = advantage + rollouts.value
        kept = {entry.name: getattr(rollouts, entry.name)[mask] for entry in fields(Decisions)}
        return Minibatch(**kept, returns=returns[mask], advantage=advantage[mask])


def _rollout_metrics(rollouts: RolloutBuffer, reward: Rewards) -> dict[str, Tensor]:
    """What happened in the rollouts."""
    count, last = len(rollouts.example), rollouts.length[:, None] - 1
    return {
        **{f"rewards/share_{name}": share for name, share in reward.shares().items()},
        **{f"rewards/{name}": term.sum() / count for name, term in reward.terms.items()},
        "charts/episodic_return": reward.total.sum() / count,
        "charts/episodic_length": rollouts.length.float().mean(),
        "charts/stopped": rollouts.stop.gather(1, last).float().mean(),
        "charts/left_arena": rollouts.left_arena.gather(1, last).float().mean(),
        "charts/unobserved_at_end": rollouts.unobserved.gather(1, last).mean(),
        "charts/stop_distance": rollouts.stop_distance.gather(1, last).mean(),
        "charts/p_stop": rollouts.stop.float().sum() / rollouts.mask.sum(),
    }


class ProcessB(Worker):
    """Reinforcement learning of stage 2, with the stage 1 that Process A sends; evaluates and keeps policies.

    It can be killed at any moment; the same command resumes from the last checkpoint.
    """

    name = "b"

    def __init__(self, context: RunContext, config: RunConfig, data: TrainingData) -> None:
        super().__init__(context)
        self.config, self.data = config, data
        self.network = new_network(config, data, context.device)
        self.copies_vision = config.data.lab == "none" and (config.start is None or self.network.stage1.same_vision)
        """Whether nothing is known of the lab, neither here nor by the policy that the run starts from."""
        torch.manual_seed(config.seed + 2)
        self.reinforcement = Reinforcement(
            self.network, data.examples, config.reinforcement, config.seed, context.compiled
        )
        self.modules = {
            "stage2": self.network.stage2,
            "value": self.reinforcement.value_network,
            "stage1": self.network.stage1,
        }
        self.optimizers = {"ppo": self.reinforcement.ppo.optimizer}
        self.evaluator = Evaluator(data, context.device)
        self.stage1_version = -1
        """Updates of Process A that made stage 1."""
        self.warm_up_seconds = 0.0
        """Time until the first parameters came."""
        self.best = -1.0
        """Success of the best policy so far."""
        self.evaluated = -1
        """Iteration whose policy was evaluated last."""
        self.dev_metrics: dict[str, float] = {}
        """Of that evaluation."""
        self._pulled = -1

    def prepare(self) -> None:
        """Compile while Process A warms up, instead of afterwards."""
        if self.context.compiled:
            self.context.say("compiling")
            with self.context.interruptible():
                self.reinforcement.prepare()

    def step(self) -> None:
        """One iteration, or the evaluation that follows it."""
        if self.evaluation_due:
            self.evaluate()
            return
        self.pull_stage1()  # lines 2–3
        rollouts, metrics = self.reinforcement.iterate(self.progress, self.context.interruptible)  # lines 5–10
        # Lines 11–12: D^S ← MERGE(D^S, {Ξ_1, …, Ξ_N}), which Process A does
        self.context.link.send_rollouts(rollouts.message(self.progress))
        # Means over no updates are NaN. One flight gone wrong can spoil many updates, but not all of many iterations.
        self.skipped.count(metrics["losses/skipped_updates"], metrics["losses/policy_loss"].isnan())
        self.skipped.check(self.context.folder)
        if self.steps % self.config.schedule.log_every == 0 or self.steps == 1:
            self.log_metrics(
                {
                    **metrics,
                    "losses/skipped_updates": self.skipped.total,
                    "charts/SPS": self.measure_rate(),
                    "charts/flights": float(self.reinforcement.flights),
                    "charts/global_step": float(self.reinforcement.decisions),
                    "charts/stage1_update": float(self.stage1_version),
                }
            )

    def pull_stage1(self) -> bool:
        """f_S ← f_S^B: take Process A's newest parameters; returns whether there have been any since the start.

        After a restart it takes whatever comes first: Process A may have resumed from a checkpoint that is older than
        the parameters pulled before.
        """
        newest = self.context.link.newest_parameters(self._pulled)
        if newest is not None:
            pulled: dict[str, nn.Module] = {"stage1": self.network.stage1}
            if not self.reinforcement.iterations:  # stage 2 is Process A's too: it may have been cloned
                pulled["stage2"] = self.network.stage2
                if self.stage1_version < 0:
                    self.warm_up_seconds = self.seconds
            restore_modules(pulled, newest.weights)
            self._pulled = self.stage1_version = newest.version
        return self._pulled >= 0

    @property
    def progress(self) -> float:
        """Share of its training that is done, by iterations or by time."""
        schedule, by_time = self.config.schedule, 0.0
        if schedule.minutes:
            rest = max(60 * schedule.minutes - self.warm_up_seconds, 1e-9)
            by_time = (self.seconds - self.warm_up_seconds) / rest
        return min(1.0, max(self.reinforcement.iterations / schedule.iterations, by_time))

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to learn."""
        return self.progress >= 1

    def check_time(self) -> None:
        """Raise a `WordwingError` if time is over before there was a stage 1 to fly with."""
        schedule = self.config.schedule
        if self.finished and self.stage1_version < 0:
            raise WordwingError(
                f"{self.context.folder}: schedule.minutes is {schedule.minutes:g}, and the warm-up takes longer "
                f"(schedule.warm_up is {schedule.warm_up} updates); change one of them, in another --out"
            )

    @property
    def evaluation_due(self) -> bool:
        """Whether the policy is to be evaluated before it learns on."""
        done = self.reinforcement.iterations
        return done > 0 and done % self.config.schedule.evaluate_every == 0 and self.evaluated != done

    def evaluate(self) -> None:
        """Fly dev instructions; keep the policy if none was better."""
        policy = self.policy()
        with self.context.interruptible():
            metrics, image = self.evaluator.evaluate(policy)
        self.dev_metrics, self.evaluated = metrics, self.reinforcement.iterations
        self.log.scalars({**metrics, "charts/minutes": self.seconds / 60}, self.evaluated)
        self.log.image("beliefs", image, self.evaluated)
        if metrics["dev/success"] >= self.best:
            self.best = metrics["dev/success"]
            self.save_policy(BEST)

    def finish(self) -> None:
        """Evaluate and save the last policy."""
        if self.evaluated != self.reinforcement.iterations:
            self.evaluate()
        self.save_policy(POLICY)

    def policy(self) -> LearnedPolicy:
        """The policy as it is."""
        return LearnedPolicy(self.network, self.data.vocabulary, "sim", self.context.device)

    def save_policy(self, name: str) -> None:
        """Write the policy and its card into the run's folder."""
        if self.copies_vision:
            self.network.stage1.copy_vision()
        text = card(
            self.context.command,
            self.config,
            self.data,
            self.context.device,
            self.dev_metrics,
            minutes=self.seconds / 60,
            updates=max(self.stage1_version, 0),
            flights=self.reinforcement.flights,
            decisions=self.reinforcement.decisions,
        )
        save_network(self.context.folder / name, self.network, self.data.vocabulary, text)

    @property
    def steps(self) -> int:
        """Iterations."""
        return self.reinforcement.iterations

    @property
    def samples(self) -> int:
        """Decisions."""
        return self.reinforcement.decisions

    def status(self) -> dict[str, Any]:
        """What the display shows."""
        shown = {
            "charts/episodic_return": "return",
            "charts/episodic_length": "decisions",
            "dev/success": "success",
            "dev/followed": "followed",
            "dev/emd": "EMD",
        }
        metrics = self.metrics | self.dev_metrics
        waiting = self.stage1_version < 0 and not self.finished
        return {
            "phase": "waiting" if waiting else "finished" if self.finished else "learning",
            "done": round(1000 * self.progress),
            "total": 1000,
            "rates": {"steps/s": self.rate},
            "metrics": {short: metrics[name] for name, short in shown.items() if name in metrics},
        }

    def counters(self) -> dict[str, Any]:
        """How far it is."""
        done = {name: getattr(self.reinforcement, name) for name in ("iterations", "flights", "decisions")}
        names = ("stage1_version", "warm_up_seconds", "best", "evaluated", "dev_metrics")
        return done | {name: getattr(self, name) for name in names}

    def restore_counters(self, counters: Mapping[str, Any], tensors: Tensors) -> None:
        """Resume."""
        for name in self.counters():
            setattr(self.reinforcement if hasattr(self.reinforcement, name) else self, name, counters[name])
