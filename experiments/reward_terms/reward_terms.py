"""What the intrinsic reward pays for different ways of flying the same instructions; JSON lines.

Usage: python experiments/reward_terms/reward_terms.py POLICY DATASET [--pilots NAME…] [--segments N] [--limit N]

Stage 1 of POLICY plans in every flight. Stage 2 of each of the pilots flies as at test time, and so does ORACLE, which
follows the demonstration. If a flight along the demonstration earns less than a policy's, the reward does not
favour following it; if it earns more, the policy has not maximised the reward. Each term is its sum over
a flight. The plan's growth is what visitation loses because plans change; `reward.one_plan` does not count it.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import tyro
from torch import Tensor

from wordwing.data.dataset import Dataset
from wordwing.execution.packing import pack_pose
from wordwing.execution.runner import Runner, start_poses
from wordwing.frames import ARENA_HALF, Pose, start_frame
from wordwing.interface import MAX_FORWARD, MAX_YAW_RATE, Action, Observation
from wordwing.learning.emd import SparseMap, stop_emd
from wordwing.learning.rewards import RewardConfig, rewards
from wordwing.learning.rollouts import RolloutBuffer
from wordwing.model.checkpoint import load_network
from wordwing.model.ego import EgoView
from wordwing.model.layers import each
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.oracle import Oracle
from wordwing.sim.simulator import Simulator
from wordwing.world.paths import path_length
from wordwing.world.tasks import Task

ORACLE = "oracle"


class Planned:
    """A policy that flies by another one's plans, and keeps the plans of all decisions."""

    needs_gold_path = True

    def __init__(self, planner: LearnedPolicy, pilot: str) -> None:
        """Fly with stage 2 of the policy `pilot`, or with ORACLE."""
        self.planner, self.oracle = planner, Oracle()
        self.stage2 = None if pilot == ORACLE else load_network(pilot)[0].eval().stage2
        self.trajectories: list[SparseMap] = []
        self.goal_maps: list[Tensor] = []
        self.views: list[EgoView] = []
        self.actions: list[Tensor] = []

    def reset(self, instructions: Sequence[str], start: Pose, gold_paths: Sequence[Tensor] | None = None) -> None:
        """Begin N flights."""
        self.planner.reset(instructions, start)
        self.oracle.reset(instructions, start, gold_paths)

    @torch.no_grad()
    def act(self, observation: Observation) -> Action:
        """Plan with one policy, decide with the other."""
        self.planner.act(observation)
        beliefs = self.planner.beliefs
        assert beliefs is not None
        if self.stage2 is None:
            action = self.oracle.act(observation)
        else:
            control = self.stage2(beliefs.view)
            action = Action(control.setpoint, control.stop_probability > self.planner.network.config.stop_threshold)
        self.trajectories.append(SparseMap.of(beliefs.visitation.trajectory))
        self.goal_maps.append(beliefs.visitation.goal)
        self.views.append(beliefs.view)
        self.actions.append(torch.stack([action.setpoint.forward, action.setpoint.yaw_rate], -1))
        return action


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
    demonstrated = np.mean([path_length(task.gold_path) for task in tasks])
    for pilot in pilots:
        flown = fly(Planned(LearnedPolicy.from_pretrained(policy), pilot), tasks, dataset.steps)
        paid = rewards(flown, RewardConfig(step=step))
        one_plan = rewards(flown, RewardConfig(step=step, one_plan=True))
        lengths = torch.nn.functional.pad(flown.position, (0, 0, 1, 0)).diff(dim=1).norm(dim=-1).mul(flown.mask).sum(1)
        terms = {name: term.sum(1).mean().item() for name, term in paid.terms.items()}
        line = {
            "plans": policy,
            "flies": pilot,
            "corpus": dataset.name,
            "segments": segments,
            "n": len(tasks),
            "decisions": round(flown.mask.sum(1).float().mean().item(), 1),
            "flown, m": round(lengths.mean().item(), 2),
            "demonstrated, m": round(float(demonstrated), 2),
        }
        line |= {name: round(value, 2) for name, value in terms.items()}
        line["all"] = round(sum(terms.values()), 2)
        line["the plan's growth"] = round(terms["visitation"] - one_plan.visitation.sum(1).mean().item(), 2)
        print(json.dumps(line), flush=True)


def fly(policy: Planned, tasks: list[Task], max_steps: int) -> RolloutBuffer:
    """Fly each task once, without the safety rule and to the arena's edge at most, as in training."""
    execution = Runner(policy, Simulator(len(tasks)), max_steps=max_steps, safety=False).run(tasks)
    flights, decisions = torch.arange(len(tasks)), len(policy.actions)
    stopped = torch.tensor([ended == "stop" for ended in execution.ended_by])
    stop = (torch.arange(decisions) == execution.decisions[:, None]) & stopped[:, None]  # [R, D]
    led_to = execution.pose.xy[:, 1 : decisions + 1].clone()
    led_to[stop] = execution.pose.xy[flights, execution.length][stop.any(1)]  # a drone that stops comes to rest there
    left = ~stop & (led_to.abs() > ARENA_HALF).any(-1)
    left_before = left.cumsum(1) - left.int() > 0
    mask = (torch.arange(decisions) < (execution.decisions + stopped)[:, None]) & ~left_before
    frame = start_frame(start_poses(tasks))
    position = torch.stack([frame.unapply_xy(led_to[:, number]) for number in range(decisions)], 1)
    distances = [stop_emd(goal, position[:, number]) for number, goal in enumerate(policy.goal_maps)]
    unused = torch.zeros_like(stop, dtype=torch.float32)
    return RolloutBuffer(
        example=flights,
        length=mask.sum(1),
        view=each(lambda *views: torch.stack(views, 1), *policy.views),
        action=torch.stack(policy.actions, 1) / torch.tensor([MAX_FORWARD, MAX_YAW_RATE]),
        stop=stop,
        log_prob=unused,
        value=unused,
        trajectory=each(lambda *maps: torch.stack(maps, 1), *policy.trajectories),
        stop_distance=torch.stack(distances, 1),
        position=position,
        pose=pack_pose(execution.pose[:, :decisions]),
        left_arena=left,
        strayed=torch.zeros_like(stop),
    )


if __name__ == "__main__":
    tyro.cli(main)
