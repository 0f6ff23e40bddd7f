"""The intrinsic reward of complete flights, in one batched call (paper: Reward Function).

It knows what the drone predicted and where it flew, never where it should have flown. What differs from the authors'
software: distances are metres, not cells; the path begins at the start; cells that were not observed do not count; the
first decision is rewarded for its step towards d^p as any other; exploration is rewarded in time.
"""

from dataclasses import dataclass, fields

import torch
from torch import Tensor
from torch.nn import functional

from wordwing.interface import MAX_FORWARD, MAX_YAW_RATE
from wordwing.learning.emd import Method, dirac_emd, emd, visited_weights
from wordwing.learning.rollouts import RolloutBuffer

FORWARD_RANGE, YAW_RATE_RANGE = (-0.5, 1.7), 2.0
"""What may be sampled without a penalty, m/s and rad/s (paper: Action Range)."""

MAX_ACTION_PENALTY = 2.0
"""One action is penalised for no more than this, m/s and rad/s together."""

CHUNK = 16_384
"""Transport problems that are solved at once, in some 400 MB."""


@dataclass(frozen=True)
class RewardConfig:
    """Weights of the reward's terms."""

    visitation: float = 2.04
    """λ_v, per metre; the paper's 0.3 is per cell of 0.147 m."""
    stop: float = 3.4
    """λ_s, per metre; the paper's 0.5 is per cell."""
    exploration: float = 1.0
    """λ_e, for coming to believe that the goal has been observed."""
    unobserved: float = 3.0
    """For ending while p_oob of the goal is 1; 1 in the paper, 3 in the authors' software."""
    action: float = 1.0
    """λ_a, per m/s and rad/s beyond what may be sampled."""
    step: float = 0.04
    """λ_step, what each decision costs."""
    one_plan: bool = False
    """Whether both distances of decision t's visitation reward are from d^p as predicted at t. In the paper the first
    is from that of t - 1, so that a plan which grows when more is observed costs reward."""


@dataclass(frozen=True)
class Rewards:
    """The terms [R, D] of each decision's reward, weighted; zero in the padding."""

    visitation: Tensor
    stop: Tensor
    exploration: Tensor
    unobserved: Tensor
    action: Tensor
    step: Tensor

    @property
    def terms(self) -> dict[str, Tensor]:
        """By name."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @property
    def total(self) -> Tensor:
        """[R, D] their sum: the reward."""
        return torch.stack(list(self.terms.values())).sum(0)

    def shares(self) -> dict[str, Tensor]:
        """Each term's part, a scalar, of the sum of all terms' absolute values; zero where there is none."""
        sizes = {name: term.abs().sum() for name, term in self.terms.items()}
        whole = torch.stack(list(sizes.values())).sum()
        return {name: torch.where(whole > 0, size / whole, 0.0) for name, size in sizes.items()}


def rewards(rollouts: RolloutBuffer, config: RewardConfig, method: Method = "auto") -> Rewards:
    """Reward every decision of some flights.

    A flight's end costs the same whatever brought it about: STOP, too many steps or the arena's edge. Else never
    stopping would be worth it.

    Args:
        rollouts: Complete flights.
        config: Weights.
        method: How to solve the transport problems, see `emd`.
    """
    mask, unobserved = rollouts.mask, rollouts.unobserved.float()
    end = mask & ~functional.pad(mask[:, 1:], (0, 1))
    before, after = visitation_distances(rollouts, config.one_plan, method)
    return Rewards(
        visitation=config.visitation * torch.where(mask, before - after, 0.0),
        stop=-config.stop * torch.where(end, rollouts.stop_distance, 0.0),
        exploration=config.exploration * exploration_reward(rollouts),
        unobserved=-config.unobserved * torch.where(end, unobserved, 0.0),
        action=-config.action * torch.where(mask & ~rollouts.stop, action_penalty(rollouts.action), 0.0),
        step=-config.step * mask.float(),
    )


def visitation_distances(
    rollouts: RolloutBuffer, one_plan: bool = False, method: Method = "auto"
) -> tuple[Tensor, Tensor]:
    """-φ_v before and after each decision, [R, D] metres; they mean nothing in the padding.

    After decision t: the distance of the path up to position t + 1 from d^p as predicted at t. Before it: the distance
    after the decision before, so that over a flight the rewards add up; before the first: from the start alone.

    Args:
        rollouts: Complete flights.
        one_plan: Before decision t is the distance of the path up to position t from d^p as predicted at t instead.
        method: How to solve the transport problems, see `emd`.
    """
    position = functional.pad(rollouts.position, (0, 0, 1, 0))  # [R, D + 1, 2]: a flight begins at the origin
    flight, decision = rollouts.mask.nonzero(as_tuple=True)

    def distances(ahead: int) -> Tensor:
        """[R, D] metres from d^p as predicted at t to the first t + `ahead` positions."""
        distance = torch.zeros_like(rollouts.mask, dtype=torch.float32)
        for chunk in zip(flight.split(CHUNK), decision.split(CHUNK), strict=True):
            path = position[chunk[0]]  # [C, D + 1, 2]
            weights = visited_weights(path, chunk[1] + ahead)
            distance[chunk] = emd(path, weights, rollouts.trajectory[chunk], method)
        return distance

    after = distances(2)
    if one_plan:
        return distances(1), after
    first = dirac_emd(position[:, 0], rollouts.trajectory[:, 0])
    return torch.cat([first[:, None], after[:, :-1]], dim=1), after


def exploration_reward(rollouts: RolloutBuffer) -> Tensor:
    """[R, D] how much each decision raised the belief that the goal has been observed, max over t' ≤ t of 1 - p_oob.

    The action at t decides what the drone has seen when it predicts at t + 1, and is paid for that: E(t + 1) - E(t), or
    nothing if the flight ends there. By the paper's indices the same payment comes two decisions later, in the authors'
    software one; paid in time it adds up to as much, and to the credit of the decision that earned it.
    """
    belief = (1 - rollouts.unobserved.float()).cummax(1).values
    return functional.pad(torch.where(rollouts.mask[:, 1:], belief.diff(dim=1), 0.0), (0, 1))


def action_penalty(action: Tensor) -> Tensor:
    """[...] how far sampled actions [..., 2], shares of the limits, exceed their range, m/s and rad/s, at most 2."""
    limits = torch.tensor([MAX_FORWARD, MAX_YAW_RATE], device=action.device)
    forward, yaw_rate = (action * limits).unbind(-1)
    low, high = FORWARD_RANGE
    beyond = (low - forward).relu() + (forward - high).relu() + (yaw_rate.abs() - YAW_RATE_RANGE).relu()
    return beyond.clamp(max=MAX_ACTION_PENALTY)
