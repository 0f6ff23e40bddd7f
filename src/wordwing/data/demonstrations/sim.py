"""ORACLE in `sim` along every instruction's path: thousands of worlds at once, dynamics only."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from wordwing.data.dataset import DERIVED, Dataset
from wordwing.data.demonstrations.archive import Array, Header, fingerprint
from wordwing.data.demonstrations.records import Demonstrations
from wordwing.data.schema import Instruction, length
from wordwing.devices import find_device
from wordwing.errors import WordwingError
from wordwing.execution.packing import pack_pose, pack_setpoint, unpack_setpoint
from wordwing.execution.runner import SETTLE_STEPS
from wordwing.frames import Pose
from wordwing.interface import Setpoint
from wordwing.policies.baselines import MEAN_ACTIONS, MeanAction
from wordwing.policies.oracle import Oracle
from wordwing.sim.scene import PackedLayouts
from wordwing.sim.simulator import Simulator
from wordwing.world.layout import Layout

WORLDS = {"cpu": 1024, "cuda": 32_768}
"""Flights at once. They do not depend on each other, so this changes how fast they are, not what they are."""

LOOK = 5
"""Steps between two looks whether anybody still flies, each of which waits for the device."""


def fly_sim(
    dataset: Dataset,
    instructions: Sequence[Instruction],
    device: torch.device | str = "cpu",
    tick: Callable[[int], None] = lambda flights: None,
) -> Demonstrations:
    """Fly instructions of one split of a dataset, the safety rule on.

    Args:
        dataset: Where they come from.
        instructions: In the order in which their flights will be.
        device: Where to fly.
        tick: Told how many flights have ended since it was last told.
    """
    splits = {instruction.split for instruction in instructions}
    if len(splits) != 1:
        raise WordwingError(f"{dataset.folder}: demonstrations are of one split, not of {len(splits)}")
    header = Header("sim", dataset.name, fingerprint(dataset), splits.pop(), dataset.steps)
    where = find_device(device)
    # Those of like length end together, and nobody's hovering is simulated for long.
    order = np.argsort([length(instruction.segment) for instruction in instructions], kind="stable")
    rows: list[Array] = [np.zeros(0)] * len(instructions)
    decisions = np.zeros(len(instructions), np.int32)
    stopped = np.zeros(len(instructions), bool)
    rests = np.zeros((len(instructions), 6), np.int16)
    worlds = WORLDS[where.type]
    for begin in range(0, len(order), worlds):
        chosen = order[begin : begin + worlds]
        flat, decisions[chosen], stopped[chosen], rests[chosen] = _fly(
            [instructions[index] for index in chosen], dataset.steps, where
        )
        ends = np.cumsum(decisions[chosen] + 1)
        for index, part in zip(chosen, np.split(flat, ends[:-1]), strict=True):
            rows[index] = part
        tick(len(chosen))
    ids = tuple(instruction.id for instruction in instructions)
    return Demonstrations(header, ids, decisions, stopped, np.concatenate(rows), rests)


@torch.no_grad()
def _fly(instructions: Sequence[Instruction], steps: int, device: torch.device) -> tuple[Array, Array, Array, Array]:
    """Fly N instructions at once: rows [sum of T + 1, 8], T [N], who stopped [N], rests [N, 6]; as `Demonstrations`."""
    n = len(instructions)
    segments = [instruction.segment for instruction in instructions]
    xy = torch.tensor([segment.start_xy for segment in segments], dtype=torch.float32)
    yaw = torch.tensor([segment.start_yaw for segment in segments], dtype=torch.float32)
    simulator = Simulator(n, device, draw=False)
    # Landmarks are seen, never hit, and nobody looks: a world without any gives the same flight sooner.
    empty = PackedLayouts.pack([Layout(())], device).take(torch.zeros(n, dtype=torch.int64, device=device))
    observation = simulator.reset(empty, Pose.level(xy, yaw))
    oracle = Oracle()
    paths = [torch.from_numpy(segment.path.astype(np.float32)) for segment in segments]
    oracle.reset([segment.instruction for segment in segments], observation.pose, gold_paths=paths)

    flying = torch.ones(n, dtype=torch.bool, device=device)
    decisions = torch.full((n,), steps, device=device)
    poses, setpoints = [observation.pose], []
    for step in range(steps):
        if step % LOOK == 0 and not bool(flying.any()):
            break
        action = oracle.act(observation)
        decisions = torch.where(flying & action.stop, step, decisions)
        flying = flying & ~action.stop
        setpoints.append(simulator.step(action.setpoint.where(flying), safety=True))
        observation = simulator.observe()
        poses.append(observation.pose)
    for _period in range(SETTLE_STEPS):
        setpoints.append(simulator.step(Setpoint.zero(n, device)))  # a standstill is safe
        poses.append(simulator.pose)

    states = pack_pose(Pose.stack(poses))  # [S + 1, N, 6]
    flown = Setpoint(
        torch.stack([setpoint.forward for setpoint in setpoints]),
        torch.stack([setpoint.yaw_rate for setpoint in setpoints]),
    )
    rows = torch.cat([states[:-1], pack_setpoint(flown)], dim=-1).transpose(0, 1)  # [N, S, 8]
    part_of_flight = torch.arange(rows.shape[1], device=device) <= decisions[:, None]
    rests = states[decisions + SETTLE_STEPS, torch.arange(n, device=device)]
    tensors = rows[part_of_flight], decisions, ~flying, rests
    flat, ends, stopped, resting = (tensor.cpu().numpy() for tensor in tensors)
    return flat, ends, stopped, resting


def training_mean_action(
    dataset: Dataset, device: torch.device | str = "cpu", say: Callable[[str], None] = lambda sentence: None
) -> MeanAction:
    """AVERAGE's constants for a dataset, from ORACLE's training demonstrations in `sim` (paper: Systems)."""
    if dataset.name in MEAN_ACTIONS:
        return MEAN_ACTIONS[dataset.name]
    if "train" not in dataset.splits:
        raise WordwingError(f"{dataset.folder}: AVERAGE is the average of training, and there is no split train")
    file = dataset.folder / DERIVED / "sim-train.npz"
    if file.is_file():
        return mean_action(Demonstrations.load(file, dataset))
    say("flying ORACLE along all training paths, for AVERAGE; wordwing data demonstrate would keep them")
    return mean_action(fly_sim(dataset, list(dataset.instructions("train")), device))


def mean_action(demonstrations: Demonstrations) -> MeanAction:
    """Average what ORACLE did: over all decisions but STOP, and over all flights."""
    flown = np.ones(len(demonstrations.rows), bool)
    flown[demonstrations.offsets[1:] - 1] = False  # at the last pose of a flight nothing more was flown
    setpoints = unpack_setpoint(torch.from_numpy(demonstrations.rows[flown, 6:]))
    forward, yaw_rate = setpoints.forward.double().mean(), setpoints.yaw_rate.double().mean()
    return MeanAction(
        round(float(forward), 3), round(float(yaw_rate), 3), round(float(demonstrations.decisions.mean()))
    )
