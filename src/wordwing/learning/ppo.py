"""PPO's parts: the action distribution, returns and advantages, and L_PPO (paper: Process B; Schulman et al., 2017).

The shapes are checked where rows of N decisions meet, because [N] times [N, 1] is no error in torch: it is [N, N],
whose mean has next to nothing to do with the policy gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from wordwing.learning.recipes.limits import Positive, Rate, Share
from wordwing.model.ego import EgoView
from wordwing.model.layers import each
from wordwing.model.stage2 import Control, Stage2, ValueNetwork


@dataclass(frozen=True)
class PPOConfig:
    """How PPO learns; the paper's hyper-parameter table, except for the amount of data in an update."""

    clip: Positive = 0.1
    """How far from 1 the ratio of new to old probability may go and still be rewarded."""
    updates: Annotated[int, Field(ge=1, le=100_000)] = 8
    """Gradient updates for each iteration."""
    minibatch: int = 2048
    """Minibatch in each update; the paper has 2, of iterations of 20 flights."""
    value_weight: float = 1.0
    clip_value: bool = False
    """Whether a value may also move by no more than `clip`, which is then in units of the return."""
    entropy: float = 0.001
    """Weight of the entropy."""
    late_entropy: Share = 0.1
    """Factor on that weight in the second half of all iterations."""
    max_gradient_norm: Positive = 1.0
    """Of both networks together, or of each."""
    clip_apart: bool = False
    """Whether the gradients of stage 2 and of the value network are clipped apart: a large one of values then leaves
    the policy's as it is."""
    discount: Share = 0.99
    """γ."""
    gae_lambda: Share | None = None
    """λ of generalised advantages; None for returns less values, as in the paper."""
    learning_rate: Rate = 2.5e-4
    epsilon: Positive = 1e-5
    """Adam's."""
    target_kl: Positive | None = None
    """An iteration ends early once the policy is this far from the one that flew; None saves a wait for the device."""


def sample_action(control: Control, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sample action [N, 2], as shares of the limits, not clipped, and stop [N] bool; NaN never stops.

    Args:
        control: Of N contexts.
        generator: On the same device.
    """
    mean, probability = control.mean.detach(), control.stop_probability.detach()
    noise = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
    # Not torch.bernoulli, which ends the process where a probability is NaN.
    uniform = torch.rand(probability.shape, generator=generator, device=mean.device, dtype=probability.dtype)
    return mean + control.deviation.detach() * noise, uniform < probability


def log_prob(control: Control, action: Tensor, stop: Tensor) -> Tensor:
    """[N] log-probability of sampled actions; with STOP the velocities do not count, for they are not flown.

    Args:
        control: Of N contexts.
        action: [N, 2] forward velocity and yaw rate as they were sampled: shares, not clipped.
        stop: [N] bool.
    """
    count = _check_control(control)
    _check("action", action, (count, 2))
    _check("stop", stop, (count,), torch.bool)
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


def discounted_returns(reward: Tensor, mask: Tensor, discount: float) -> Tensor:
    """The sum of all rewards from a decision on, each later one worth less (Monte-Carlo, as in the paper).

    Args:
        reward: [R, D] that followed each decision; anything in the padding.
        mask: [R, D] bool, true for decisions, false for padding.
        discount: γ.

    Returns:
        [R, D], zero in the padding.
    """
    _check_rewards(reward, reward, mask)
    return _sums_from_here(torch.where(mask, reward, 0.0), discount)


def generalized_advantages(reward: Tensor, value: Tensor, mask: Tensor, discount: float, gae_lambda: float) -> Tensor:
    """GAE: how much better than the value network expected the flight went from a decision on.

    Args:
        reward: [R, D] that followed each decision; anything in the padding.
        value: [R, D] what the value network expected before each decision; anything in the padding.
        mask: [R, D] bool, true for decisions, false for padding.
        discount: γ.
        gae_lambda: λ; at 1 these are the returns less the values, at 0 each looks one decision ahead.

    Returns:
        [R, D], zero in the padding.
    """
    _check_rewards(reward, value, mask)
    value = torch.where(mask, value, 0.0)
    following = functional.pad(value[:, 1:], (0, 1))  # zero after the last decision
    delta = torch.where(mask, reward, 0.0) + discount * following - value
    return _sums_from_here(delta, discount * gae_lambda)


def _sums_from_here(terms: Tensor, factor: float) -> Tensor:
    """[R, D] Σ_k factor^k · terms[:, d + k]."""
    sums = []
    total = torch.zeros_like(terms[:, 0])
    for column in reversed(terms.unbind(1)):
        total = column + factor * total
        sums.append(total)
    return torch.stack(sums[::-1], dim=1)


def _check_rewards(reward: Tensor, value: Tensor, mask: Tensor) -> None:
    if reward.ndim != 2 or reward.shape[1] == 0 or value.shape != reward.shape or mask.shape != reward.shape:
        shapes = ", ".join(str(list(tensor.shape)) for tensor in (reward, value, mask))
        raise ValueError(f"reward, value and mask must be [R, D] with one R and one D of at least 1, not {shapes}")
    if mask.dtype != torch.bool:
        raise ValueError(f"a mask must be bool, not {mask.dtype}")


@dataclass(frozen=True)
class Decisions:
    """Decisions as they were made in flight: N of them, or [R, D] those of R flights."""

    view: EgoView
    """What stage 2 saw."""
    action: Tensor
    """[N, 2] sampled forward velocity and yaw rate: shares of the limits, not clipped."""
    stop: Tensor
    """[N] bool, decided STOP."""
    log_prob: Tensor
    """[N] of the decision, by the policy that flew."""
    value: Tensor
    """[N] expected return."""


@dataclass(frozen=True)
class Minibatch(Decisions):
    """N decisions of an iteration's rollouts, in any order."""

    returns: Tensor
    """[N]."""
    advantage: Tensor
    """[N]."""

    def __post_init__(self) -> None:
        count = len(self.action)
        _check("action", self.action, (count, 2))
        _check("stop", self.stop, (count,), torch.bool)
        for name in ("log_prob", "value", "returns", "advantage"):
            _check(name, getattr(self, name), (count,))
        for name in ("close", "whole", "unobserved"):
            part = getattr(self.view, name)
            _check(f"view.{name}", part, (count, *part.shape[1:]))

    def __len__(self) -> int:
        return len(self.action)

    def __getitem__(self, index: Tensor | slice) -> Minibatch:
        """Some of them."""
        return each(lambda tensor: tensor[index], self)


def ppo_loss(
    stage2: Stage2,
    value_network: ValueNetwork,
    minibatch: Minibatch,
    config: PPOConfig,
    entropy_weight: float | Tensor,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The clipped surrogate, the value's error and the entropy.

    Args:
        stage2: The policy that learns.
        value_network: Learns to expect the returns.
        minibatch: The advantages are already normalised.
        config: Clipping and weights.
        entropy_weight: Of this iteration.

    Returns:
        The loss [], and what it is made of, by CleanRL's names.
    """
    control, value = stage2(minibatch.view), value_network(minibatch.view)
    _check("the value network's output", value, (len(minibatch),))

    log_ratio = log_prob(control, minibatch.action, minibatch.stop) - minibatch.log_prob
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1 - config.clip, 1 + config.clip)
    policy_loss = -torch.minimum(minibatch.advantage * ratio, minibatch.advantage * clipped).mean()

    error = (value - minibatch.returns).square()
    if config.clip_value:
        near = minibatch.value + (value - minibatch.value).clamp(-config.clip, config.clip)
        error = torch.maximum(error, (near - minibatch.returns).square())
    value_loss = 0.5 * error.mean()

    mean_entropy = entropy(control).mean()
    loss = policy_loss + config.value_weight * value_loss - entropy_weight * mean_entropy
    metrics = {
        "losses/policy_loss": policy_loss,
        "losses/value_loss": value_loss,
        "losses/entropy": mean_entropy,
        "losses/old_approx_kl": -log_ratio.mean(),
        "losses/approx_kl": (ratio - 1 - log_ratio).mean(),
        "losses/clipfrac": ((ratio - 1).abs() > config.clip).float().mean(),
    }
    return loss, {name: metric.detach() for name, metric in metrics.items()}


def explained_variance(value: Tensor, returns: Tensor) -> Tensor:
    """[] 1 if values [N] are the returns [N], 0 if they know only the mean of them, NaN if all returns are the same."""
    _check("value", value, tuple(returns.shape))
    _mean, variance = moments(returns)
    _mean, left = moments(returns - value)
    return torch.where(variance > 0, 1 - left / variance, torch.nan)


def moments(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance [] of those numbers [N] that are finite: a flight gone wrong must not spoil all the others."""
    finite = numbers.isfinite()
    count = finite.sum()
    mean = torch.where(finite, numbers, 0.0).sum() / count
    return mean, torch.where(finite, numbers - mean, 0.0).square().sum() / count


def _check(name: str, tensor: Tensor, shape: tuple[int, ...], kind: torch.dtype | None = None) -> None:
    """Raise a ValueError about another shape or kind: [N] times [N, 1] is no error in torch but [N, N]."""
    if tuple(tensor.shape) != shape:
        raise ValueError(f"{name} must be {list(shape)}, not {list(tensor.shape)}")
    if kind not in (None, tensor.dtype):
        raise ValueError(f"{name} must be {str(kind).removeprefix('torch.')}, not {tensor.dtype}")


def _check_control(control: Control) -> int:
    """How many contexts it is for."""
    count = len(control.mean)
    _check("control.mean", control.mean, (count, 2))
    _check("control.deviation", control.deviation, (count, 2))
    _check("control.stop_logit", control.stop_logit, (count,))
    return count
