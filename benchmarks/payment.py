"""What the intrinsic reward pays for different ways of flying the same instructions; JSON lines.

Usage: python benchmarks/payment.py POLICY DATASET [--pilots NAME…] [--segments N] [--limit N]

Stage 1 of the policy plans, whoever flies: stage 2 of some policies as at test time, and ORACLE, which follows the
demonstration. If a flight along the demonstration is paid less than what a policy does, the reward is not for following
it; if it is paid more, the policy has not learned all that the reward asks for. Each term is its sum over a flight; the
plan's growth is what changes of the plan have cost, and not paid where `reward.one_plan`.
"""

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro

from wordwing.data.dataset import Dataset
from wordwing.execution.runner import start_poses
from wordwing.frames import ARENA_HALF, start_frame
from wordwing.interface import Action, Observation
from wordwing.learning.emd import SparseMap, stop_emd
from wordwing.learning.rewards import Flown, RewardConfig, rewards
from wordwing.learning.rollouts import coasting
from wordwing.model.checkpoint import load_network
from wordwing.model.layers import each
from wordwing.model.policy import Beliefs, PolicyNetwork
from wordwing.model.text import Tokens
from wordwing.policies.oracle import Oracle
from wordwing.sim.simulator import Simulator
from wordwing.world.paths import path_length
from wordwing.world.tasks import Task

ORACLE = "oracle"


def main(
    policy: Annotated[str, tyro.conf.Positional],
    data: Annotated[Path, tyro.conf.Positional],
    /,
    pilots: tuple[str, ...] = ("pvn2-sureal", "pvn2-bc", ORACLE),
    segments: int = 2,
    limit: int = 100,
    step: float = RewardConfig().step,
) -> None:
    """Fly, and print a line for each pilot.

    Args:
        policy: Whose stage 1 plans.
        data: A dataset; its dev split is flown.
        pilots: Policies whose stage 2 flies, or oracle.
        segments: Of the instructions.
        limit: How many.
        step: What a decision costs.
    """
    dataset = Dataset(data)
    chosen = list(dataset.instructions("dev", (segments,)))
    order = np.random.default_rng(0).permutation(len(chosen))[:limit]
    tasks = [dataset.task(chosen[number]) for number in order]
    network, vocabulary = load_network(policy)
    tokens = Tokens.encode([task.instruction for task in tasks], vocabulary, torch.device("cpu"))
    shown = np.mean([path_length(task.gold_path) for task in tasks])
    for pilot in pilots:
        flown = fly(network.eval(), tokens, tasks, pilot, dataset.steps)
        paid = rewards(flown, RewardConfig(step=step))
        at_once = rewards(flown, RewardConfig(step=step, one_plan=True))
        lengths = flown.position.diff(dim=1).norm(dim=-1).mul(flown.mask).sum(1)
        terms = {name: term.sum(1).mean().item() for name, term in paid.terms.items()}
        line = {
            "plans": policy,
            "flies": pilot,
            "corpus": dataset.name,
            "segments": segments,
            "n": len(tasks),
            "decisions": round(flown.mask.sum(1).float().mean().item(), 1),
            "flown, m": round(lengths.mean().item(), 2),
            "demonstrated, m": round(float(shown), 2),
        }
        line |= {name: round(value, 2) for name, value in terms.items()}
        line["all"] = round(sum(terms.values()), 2)
        line["the plan's growth"] = round(terms["visitation"] - at_once.visitation.sum(1).mean().item(), 2)
        print(json.dumps(line), flush=True)


@torch.no_grad()
def fly(network: PolicyNetwork, tokens: Tokens, tasks: list[Task], pilot: str, most: int) -> Flown:
    """One flight of each task, without the safety rule, as in training."""
    simulator = Simulator(len(tasks), "cpu")
    start = start_poses(tasks)
    observation = simulator.reset([task.layout for task in tasks], start)
    state = network.begin(tokens, observation.pose)
    oracle, stage2 = Oracle(), network.stage2
    if pilot == ORACLE:
        gold = [torch.from_numpy(np.asarray(task.gold_path, np.float32)) for task in tasks]
        oracle.reset([task.instruction for task in tasks], observation.pose, gold)
    else:
        stage2 = load_network(pilot)[0].eval().stage2

    def decide(beliefs: Beliefs, seen: Observation) -> Action:
        if pilot == ORACLE:
            return oracle.act(seen)
        control = stage2(beliefs.view)
        return Action(control.setpoint, control.stop_probability > network.config.stop_threshold)

    flying = torch.ones(len(tasks), dtype=torch.bool)
    pages: list[dict[str, torch.Tensor]] = []
    plans: list[SparseMap] = []
    while flying.any():
        state, beliefs = network(state, observation.image, observation.pose, "sim")
        action = decide(beliefs, observation)
        rest = observation.pose.xy + coasting(simulator.velocity[:, :2])
        simulator.step(action.setpoint.where(flying & ~action.stop))
        observation = simulator.observe()
        led_to = torch.where(action.stop[:, None], rest, observation.pose.xy)
        position = start_frame(state.start).unapply(torch.nn.functional.pad(led_to, (0, 1)))[:, :2]
        plans.append(SparseMap.of(beliefs.visitation.trajectory))
        pages.append(
            {
                "mask": flying,
                "position": position,
                "stop_distance": stop_emd(beliefs.visitation.goal, position),
                "unobserved": beliefs.visitation.unobserved[:, 1],
                "action": torch.stack([action.setpoint.forward, action.setpoint.yaw_rate], -1),
                "stop": action.stop,
            }
        )
        left = ~action.stop & (led_to.abs() > ARENA_HALF).any(1)
        flying = flying & ~action.stop & ~left & (len(pages) < most)
    book = {name: torch.stack([page[name] for page in pages], 1) for name in pages[0]}
    book["position"] = torch.cat([torch.zeros_like(book["position"][:, :1]), book["position"]], 1)
    trajectory = each(lambda *maps: torch.stack(maps, 1), *plans)
    return Flown(trajectory=trajectory, **book)


if __name__ == "__main__":
    tyro.cli(main)
