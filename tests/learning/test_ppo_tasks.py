"""PPO learns to turn, to fly and to stop."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from wordwing.frames import Pose
from wordwing.learning.algorithm2 import PPO
from wordwing.learning.ppo import (
    Minibatch,
    PPOConfig,
    discounted_returns,
    generalized_advantages,
    log_prob,
    sample_action,
)
from wordwing.model.ego import EgoView, ego_view
from wordwing.model.grid import START_GRID
from wordwing.model.layers import each
from wordwing.model.stage2 import Stage2, Stage2Config, ValueNetwork, to_setpoint
from wordwing.model.visitation import Visitation


def decide(ppo: PPO, view: EgoView, generator: torch.Generator) -> dict[str, Tensor]:
    """What the policy does in N contexts, and what PPO will ask about it."""
    with torch.no_grad():
        control = ppo.stage2(view)
        action, stop = sample_action(control, generator)
        log, value = log_prob(control, action, stop), ppo.value_network(view)
    return {"action": action, "stop": stop, "log_prob": log, "value": value}


def test_a_bandit_that_pays_for_speed_turn_and_stop_is_solved():
    torch.manual_seed(0)
    ppo = PPO(
        Stage2(Stage2Config()), ValueNetwork(Stage2Config()), PPOConfig(minibatch=128, clip=0.2, learning_rate=3e-3)
    )
    generator = torch.Generator().manual_seed(0)
    # Something far to the left, far to the right, and right here.
    views = EgoView(torch.zeros(3, 2, 16, 16), torch.zeros(3, 4, 24, 24), torch.zeros(3, 2))
    views.whole[0, 1, 12, 6] = views.whole[1, 1, 12, 18] = 1.0
    views.whole[2, 1, 11:13, 11:13] = 0.25
    views.close[2, 1, 7:9, 7:9] = 0.25
    wanted = torch.tensor([[0.8, 0.6], [0.2, -0.6], [0.5, 0.0]])
    for iteration in range(40):
        kind = torch.randint(3, (256,), generator=generator)
        made = decide(ppo, views[kind], generator)
        missed = (made["action"] - wanted[kind]).square().sum(1)
        reward = torch.where(made["stop"], torch.where(kind == 2, 1.0, -1.0), -missed)
        worth = discounted_returns(reward[:, None], torch.ones(256, 1, dtype=torch.bool), 0.99)[:, 0]
        decisions = Minibatch(views[kind], returns=worth, advantage=worth - made["value"], **made)
        ppo.update(decisions, generator, iteration / 40)
    control = ppo.stage2(views)
    assert np.allclose(control.mean[:2].detach(), wanted[:2], atol=0.2)
    assert (control.stop_probability > 0.5).tolist() == [False, False, True]


@dataclass
class Flights:
    """What N point masses did in an empty world, each with one bright cell to fly to."""

    decisions: Minibatch
    first_distance: Tensor
    """[N] metres."""
    last_distance: Tensor
    """[N] metres."""


def fly_to_bright_cells(ppo: PPO, count: int, generator: torch.Generator, steps: int = 20) -> Flights:
    """Fly from the origin, heading anywhere, until STOP or for 20 decisions of 0.3 s."""
    cell = torch.randint(24, 40, (count, 2), generator=generator)  # within 1.2 m each way
    goal = START_GRID.centres()[cell[:, 0], cell[:, 1]]
    bright = torch.zeros(count, 64, 64)
    bright[torch.arange(count), cell[:, 0], cell[:, 1]] = 1.0
    none = torch.zeros(1, 64, 64, dtype=torch.bool)
    xy, yaw = torch.zeros(count, 2), (2 * torch.rand(count, generator=generator) - 1) * math.pi
    flying = torch.ones(count, dtype=torch.bool)
    rewards, masks, views, made = [], [], [], []
    for step in range(steps):
        [who] = flying.nonzero(as_tuple=True)
        plan = Visitation(bright[who], bright[who], torch.zeros(len(who), 2))
        nowhere = none.expand(len(who), 64, 64)
        views.append(ego_view(plan, nowhere, nowhere, Pose.level(xy[who], yaw[who])))
        made.append(decide(ppo, views[-1], generator))
        before = (xy - goal).norm(dim=1)
        setpoint = to_setpoint(made[-1]["action"]).where(~made[-1]["stop"])
        yaw[who] += 0.3 * setpoint.yaw_rate
        xy[who] += 0.3 * setpoint.forward[:, None] * torch.stack([yaw[who].cos(), yaw[who].sin()], dim=1)
        after = (xy - goal).norm(dim=1)
        masks.append(flying)
        flying = flying.index_put((who,), ~made[-1]["stop"] & (step < steps - 1))
        rewards.append(before - after - 0.02 - 2 * after * ~flying)
        if not flying.any():
            break
    mask = torch.stack(masks, dim=1)
    joined = {name: torch.cat([some[name] for some in made]) for name in made[0]}
    value = torch.zeros(mask.T.shape).masked_scatter(mask.T, joined["value"]).T
    reward, config = torch.stack(rewards, dim=1), ppo.config
    decisions = Minibatch(
        each(lambda *parts: torch.cat(parts), *views),
        returns=discounted_returns(reward, mask, config.discount).T[mask.T],
        advantage=generalized_advantages(reward, value, mask, config.discount, config.gae_lambda or 1.0).T[mask.T],
        **joined,
    )
    return Flights(decisions, goal.norm(dim=1), after)


def test_flying_to_a_bright_cell_is_learned():
    torch.manual_seed(0)
    config = PPOConfig(updates=16, minibatch=128, clip=0.2, learning_rate=3e-3, gae_lambda=0.9)
    ppo, generator = PPO(Stage2(Stage2Config()), ValueNetwork(Stage2Config()), config), torch.Generator().manual_seed(0)
    for iteration in range(30):
        ppo.update(fly_to_bright_cells(ppo, 64, generator).decisions, generator, iteration / 30)
    flights = fly_to_bright_cells(ppo, 100, generator)
    assert flights.first_distance.mean() > 0.8
    assert flights.last_distance.mean() < 0.35
