"""PPO: how stage 2 and its value network learn from flights (paper: Process B; Schulman et al., 2017).

Everything is one row of N decisions. The shapes are checked where rows meet, because [N] times [N, 1] is no error in
torch: it is [N, N], whose mean has next to nothing to do with the policy gradient.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional

from wordwing.devices import compile_once
from wordwing.learning.stepping import adam, step
from wordwing.model.ego import EgoView
from wordwing.model.layers import each
from wordwing.model.stage2 import Control, Stage2, ValueNetwork

Statistics = dict[str, Tensor]
"""0-dim tensors by their TensorBoard names, which are CleanRL's."""


@dataclass(frozen=True)
class PPOConfig:
    """How PPO learns; the paper's hyper-parameter table, except for the amount of data in an update."""

    clip: float = 0.1
    """How far from 1 the ratio of new to old probability may go and still be rewarded."""
    updates: int = 8
    """Gradient updates for each iteration."""
    minibatch: int = 2048
    """Decisions in each update; the paper has 2, of iterations of 20 flights."""
    value_weight: float = 1.0
    clip_value: bool = False
    """Whether a value may also move by no more than `clip`, which is then in units of the return."""
    entropy: float = 0.001
    """Weight of the entropy."""
    late_entropy: float = 0.1
    """Factor on that weight in the second half of all iterations."""
    max_gradient_norm: float = 1.0
    """Of both networks together."""
    discount: float = 0.99
    """γ."""
    gae: float | None = None
    """λ of generalised advantages; None for returns less values, as in the paper."""
    learning_rate: float = 2.5e-4
    epsilon: float = 1e-5
    """Adam's."""
    target_kl: float | None = None
    """An iteration ends early once the policy is this far from the one that flew; None saves a wait for the device."""


def log_probability(control: Control, action: Tensor, stop: Tensor) -> Tensor:
    """The logarithm of how likely decisions were; with STOP the velocities do not count, for nobody flies them.

    Args:
        control: Of N contexts.
        action: [N, 2] forward velocity and yaw rate as they were sampled: shares, not clipped.
        stop: [N] bool.

    Returns:
        [N].
    """
    count = _check_control(control)
    _check("action", action, (count, 2))
    _check_stop(stop, count)
    scores = (action - control.mean) / control.deviation
    velocities = (-0.5 * scores.square() - control.deviation.log() - 0.5 * math.log(2 * math.pi)).sum(1)
    flies_on = functional.logsigmoid(-control.stop_logit) + velocities
    return torch.where(stop, functional.logsigmoid(control.stop_logit), flies_on)


def entropy(control: Control) -> Tensor:
    """[N] nats, exact: that of the stop, and that of the velocities as often as they count."""
    _check_control(control)
    logit = control.stop_logit
    stops, flies_on = torch.sigmoid(logit), torch.sigmoid(-logit)
    bernoulli = -stops * functional.logsigmoid(logit) - flies_on * functional.logsigmoid(-logit)
    normals = (control.deviation.log() + 0.5 * math.log(2 * math.pi * math.e)).sum(1)
    return bernoulli + flies_on * normals


def sample(control: Control, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw decisions: action [N, 2] in shares, not clipped, and stop [N] bool; NaN never stops.

    Args:
        control: Of N contexts.
        generator: On the same device.
    """
    mean, chance = control.mean.detach(), control.stop_probability.detach()
    noise = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
    # Not torch.bernoulli, which ends the process where a chance is NaN.
    drawn = torch.rand(chance.shape, generator=generator, device=chance.device, dtype=chance.dtype)
    return mean + control.deviation.detach() * noise, drawn < chance


@dataclass(frozen=True)
class Decisions:
    """N decisions of an iteration's flights, in any order."""

    view: EgoView
    """What the drone knew."""
    action: Tensor
    """[N, 2] sampled forward velocity and yaw rate: shares, not clipped."""
    stop: Tensor
    """[N] bool."""
    log_probability: Tensor
    """[N] of the policy that flew."""
    value: Tensor
    """[N] what the value network expected then."""
    returns: Tensor
    """[N]."""
    advantage: Tensor
    """[N]."""

    def __post_init__(self) -> None:
        count = len(self.action)
        _check("action", self.action, (count, 2))
        _check_stop(self.stop, count)
        for name in ("log_probability", "value", "returns", "advantage"):
            _check(name, getattr(self, name), (count,))
        for name in ("close", "whole", "unobserved"):
            part = getattr(self.view, name)
            _check(f"view.{name}", part, (count, *part.shape[1:]))

    def __len__(self) -> int:
        return len(self.action)

    def __getitem__(self, index: Tensor | slice) -> Decisions:
        """Some of them."""
        return each(lambda tensor: tensor[index], self)


def ppo_loss(
    stage2: Stage2,
    value_network: ValueNetwork,
    decisions: Decisions,
    config: PPOConfig,
    entropy_weight: float | Tensor,
) -> tuple[Tensor, Statistics]:
    """The clipped surrogate, the value's error and the entropy.

    Args:
        stage2: The policy that learns.
        value_network: Learns to expect the returns.
        decisions: A minibatch; the advantages are already normalised.
        config: Clipping and weights.
        entropy_weight: Of this iteration.

    Returns:
        The loss [], and what it is made of.
    """
    control, value = stage2(decisions.view), value_network(decisions.view)
    _check("the value network's output", value, (len(decisions),))

    log_ratio = log_probability(control, decisions.action, decisions.stop) - decisions.log_probability
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
    policy_loss = -torch.minimum(decisions.advantage * ratio, decisions.advantage * clipped).mean()

    error = (value - decisions.returns).square()
    if config.clip_value:
        near = decisions.value + (value - decisions.value).clamp(-config.clip, config.clip)
        error = torch.maximum(error, (near - decisions.returns).square())
    value_loss = 0.5 * error.mean()

    spread = entropy(control).mean()
    loss = policy_loss + config.value_weight * value_loss - entropy_weight * spread
    statistics = {
        "losses/policy_loss": policy_loss,
        "losses/value_loss": value_loss,
        "losses/entropy": spread,
        "losses/old_approx_kl": -log_ratio.mean(),
        "losses/approx_kl": (ratio - 1 - log_ratio).mean(),
        "losses/clipfrac": ((ratio - 1).abs() > config.clip).float().mean(),
    }
    return loss, {name: statistic.detach() for name, statistic in statistics.items()}


class PPO:
    """Stage 2, the value network, and the one optimiser of both."""

    def __init__(self, stage2: Stage2, value_network: ValueNetwork, config: PPOConfig, compiled: bool = False) -> None:
        """Prepare to learn; `compiled` has torch make a CUDA graph of the loss, whose kernels are tiny and many."""
        self.stage2 = stage2
        self.value_network = value_network
        self.config = config
        self.parameters = [*stage2.parameters(), *value_network.parameters()]
        self.optimizer = adam(self.parameters, config.learning_rate, epsilon=config.epsilon)
        self._loss: Callable[..., tuple[Tensor, Statistics]] = (
            compile_once(ppo_loss, "reduce-overhead") if compiled else ppo_loss
        )

    def update(self, decisions: Decisions, generator: torch.Generator, progress: float) -> Statistics:
        """Learn from an iteration's flights.

        An update whose loss or gradient is not finite is left out and counted: it changes neither the parameters nor
        what Adam remembers.

        Args:
            decisions: All of the iteration's; the advantages are not yet normalised.
            generator: Of the shuffling, on the same device.
            progress: Share of all iterations that is over, from 0 to 1.

        Returns:
            Means over the updates that were made, NaN if there was none; how many were left out.
        """
        config = self.config
        weight = decisions.value.new_full((), config.entropy * (config.late_entropy if progress >= 0.5 else 1.0))
        normal = _normalised(decisions)
        sums: Statistics = {}
        made, skipped = decisions.value.new_zeros(()), decisions.value.new_zeros(())
        for chosen in _minibatches(len(decisions), config, generator, decisions.value.device):
            loss, statistics = self._loss(self.stage2, self.value_network, normal[chosen], config, weight)
            statistics["losses/gradient_norm"], lost = step(self.optimizer, loss, None, config.max_gradient_norm)
            made, skipped = made + ~lost, skipped + lost
            for name, statistic in statistics.items():
                sums[name] = sums.get(name, 0.0) + torch.where(lost, 0.0, statistic)
            if config.target_kl is not None and statistics["losses/approx_kl"] > config.target_kl:
                break
        return {name: total / made for name, total in sums.items()} | {
            "losses/skipped_updates": skipped,
            "losses/explained_variance": explained_variance(decisions.value, decisions.returns),
            "charts/learning_rate": made.new_full((), self.optimizer.param_groups[0]["lr"]),
        }


def explained_variance(value: Tensor, returns: Tensor) -> Tensor:
    """[] 1 if values [N] are the returns [N], 0 if they know only the mean of them, NaN if all returns are the same."""
    _check("value", value, tuple(returns.shape))
    _mean, variance = _moments(returns)
    _mean, left = _moments(returns - value)
    return torch.where(variance > 0, 1 - left / variance, torch.nan)


def _minibatches(count: int, config: PPOConfig, generator: torch.Generator, device: torch.device) -> Iterator[Tensor]:
    """Indices of each update's decisions: all are used once before any is used twice."""
    size = min(config.minibatch, count)
    passes = math.ceil(config.updates * size / count)
    order = torch.cat([torch.randperm(count, generator=generator, device=device) for _pass in range(passes)])
    yield from order[: config.updates * size].split(size)


def _normalised(decisions: Decisions) -> Decisions:
    """Advantages of mean 0 and deviation 1 over the whole iteration, as far as they are finite."""
    mean, variance = _moments(decisions.advantage)
    return replace(decisions, advantage=(decisions.advantage - mean) / (variance.sqrt() + 1e-5))


def _moments(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance [] of those numbers [N] that are finite: a flight gone wrong must not spoil all the others."""
    finite = numbers.isfinite()
    count = finite.sum()
    mean = torch.where(finite, numbers, 0.0).sum() / count
    return mean, torch.where(finite, numbers - mean, 0.0).square().sum() / count


def _check(name: str, tensor: Tensor, shape: tuple[int, ...]) -> None:
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} must be {list(shape)}, not {list(tensor.shape)}")


def _check_stop(stop: Tensor, count: int) -> None:
    _check("stop", stop, (count,))
    if stop.dtype != torch.bool:
        raise ValueError(f"stop must be bool, not {stop.dtype}")


def _check_control(control: Control) -> int:
    """How many contexts it is for."""
    count = len(control.mean)
    _check("control.mean", control.mean, (count, 2))
    _check("control.deviation", control.deviation, (count, 2))
    _check("control.stop_logit", control.stop_logit, (count,))
    return count
