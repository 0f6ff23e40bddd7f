"""How exact and how fast the batched earth mover's distance is, on maps such as rewards meet.

Plans are made from demonstrated paths: turned, stretched, blurred, mixed with another plan and with smooth noise, and
cut to what the drone has seen. Flights follow the same paths, more or less.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from wordwing.bench import rate_of, report
from wordwing.camera import Camera
from wordwing.devices import device_title, find_device
from wordwing.errors import WordwingError
from wordwing.frames import Pose, start_frame
from wordwing.interface import CONTROL_PERIOD, FLIGHT_HEIGHT, MAX_FORWARD
from wordwing.learning.emd import SparseMap, batched_emd, exact_emd, visited_weights
from wordwing.learning.losses import GoldConfig, gold_visitation
from wordwing.learning.training_data import POINTS, even_points
from wordwing.model.grid import START_GRID
from wordwing.model.layers import each
from wordwing.model.mapping import MappingConfig, arena_cells, visible_ground
from wordwing.world.tasks import Task, sample_tasks

KINDS = {"typical": 0.5, "peaked": 0.125, "spread": 0.125, "followed": 0.125, "far": 0.125}
"""Plans of which kind, and how many of them.

Peaked plans are a cell or a few, spread ones reach over most of what has been seen. A followed plan lies exactly along
the flight; from a far one the drone has flown away.
"""

DECISIONS = 100
"""Of the longest flight."""

TASKS = 48
"""Demonstrations that plans are made from."""

GROUP = 64
"""Plans that are made at once, with one blur."""

LOOKS = 6
"""Images of a flight that have shown the ground."""

ALL_CELLS = 1100
"""More than the arena has, wherever the start is."""

MAX_MAPS, CUDA_BATCH, CPU_BATCH = 100_000, 16_384, 64

LIMIT, LIMIT_MM = 0.02, 5.0
"""An error beyond both of these is called large."""


def bench_emd(maps: int, device_name: str, seconds: float, seed: int) -> None:
    """Print one JSON line for each figure; see `wordwing bench emd --help`."""
    device = find_device(device_name)
    maps = maps or (2048 if device.type == "cuda" else 256)
    if not 1 <= maps <= MAX_MAPS:
        raise WordwingError(f"--maps is {maps}; it must be from 1 to {MAX_MAPS}")
    rng = np.random.default_rng(seed)
    tasks = [*sample_tasks("field", TASKS // 2, rng), *sample_tasks("cage", TASKS // 2, rng)]
    problems = make_problems(tasks, maps, rng)
    points, weights, cells = problems.points, problems.weights, SparseMap.of(problems.likely)
    there = each(lambda tensor: tensor.to(device), (points, weights, cells))
    scene = {
        "maps": maps,
        "points": round((weights > 0).sum(1).double().mean().item(), 1),
        "cells": round((cells.weight > 0).sum(1).double().mean().item(), 1),
    }
    batched = batched_emd(*there).double().cpu()
    exact = exact_emd(points.double(), weights.double(), cells)
    whole = exact_emd(points.double(), weights.double(), SparseMap.of(problems.likely, ALL_CELLS))
    for kind in ("all", *KINDS):
        chosen = (exact > 0) & ((kind == "all") | (problems.kind == [*KINDS, "all"].index(kind)))
        if chosen.any():
            how = {"kind": kind, **scene}
            _report_error("error of batched, %", batched[chosen], exact[chosen], device=device_title(device), **how)
            _report_error("change by keeping few cells, %", exact[chosen], whole[chosen], **how)
    _report_rate("exact maps/s", exact_emd, (points, weights, cells), CPU_BATCH, seconds, scene)
    batch = CUDA_BATCH if device.type == "cuda" else CPU_BATCH
    _report_rate("batched maps/s", batched_emd, there, batch, seconds, scene)


def _report_error(figure: str, found: Tensor, true: Tensor, **more: Any) -> None:
    """Relative error, and the same in millimetres."""
    millimetres = 1e3 * (found - true).abs()
    percent = 100 * (found - true).abs() / true
    large = (percent > 100 * LIMIT) & (millimetres > LIMIT_MM)
    report(
        figure,
        round(percent.mean().item(), 3),
        p99=round(percent.quantile(0.99).item(), 3),
        max=round(percent.max().item(), 3),
        mean_mm=round(millimetres.mean().item(), 2),
        p99_mm=round(millimetres.quantile(0.99).item(), 2),
        max_mm=round(millimetres.max().item(), 2),
        large=round(large.double().mean().item(), 4),
        median_emd_m=round(true.median().item(), 3),
        **more,
    )


def _report_rate(figure: str, function: Any, problems: Any, batch: int, seconds: float, scene: dict[str, Any]) -> None:
    """Maps a second, as many at once as `batch`, the same ones over and over if there are too few."""
    device = problems[0].device
    again = torch.arange(batch, device=device) % len(problems[0])
    call = partial(function, *each(lambda tensor: tensor[again], problems))
    rate = batch * rate_of(call, seconds, device)
    report(figure, round(rate, 1), batch=batch, **scene, device=device_title(device))


@dataclass(frozen=True)
class Problems:
    """N flights so far and the plans that they are compared with, in the start frame."""

    points: Tensor
    """[N, 101, 2] where the drone has been, metres."""
    weights: Tensor
    """[N, 101]."""
    likely: Tensor
    """[N, 64, 64] d^p over observed cells; sums to anything."""
    kind: Tensor
    """[N] place in `KINDS`."""


def make_problems(tasks: Sequence[Task], count: int, rng: np.random.Generator) -> Problems:
    """Draw `count` problems from the demonstrations of some tasks."""
    groups = [_group(tasks, min(GROUP, count - begin), rng) for begin in range(0, count, GROUP)]
    return each(lambda *tensors: torch.cat(tensors), *groups)


def _group(tasks: Sequence[Task], count: int, rng: np.random.Generator) -> Problems:
    chosen = [tasks[i] for i in rng.integers(len(tasks), size=count)]
    kind = torch.from_numpy(rng.choice(len(KINDS), count, p=list(KINDS.values())))
    is_kind = {name: kind == number for number, name in enumerate(KINDS)}
    xy = torch.tensor([task.start_xy for task in chosen], dtype=torch.float32)
    yaw = torch.tensor([task.start_yaw for task in chosen], dtype=torch.float32)
    start = Pose.level(xy, yaw, FLIGHT_HEIGHT)
    points = even_points([task.gold_path for task in chosen])
    meant = start_frame(start)[:, None].unapply_xy(points)  # [count, 64, 2] start frame
    decisions = torch.from_numpy(rng.integers(1, DECISIONS + 1, count))
    flown = _fly(meant, decisions, is_kind["far"], rng)
    believed = _distorted(meant, 0.2, 0.1, rng)
    along = (torch.linspace(0, 1, POINTS) * decisions[:, None]).round().long()
    believed = torch.where(is_kind["followed"][:, None, None], _picked(flown, along), believed)
    likely = _plan(believed, start, is_kind, rng) * (_seen(flown, decisions, rng) & arena_cells(start))
    return Problems(flown, visited_weights(flown, decisions + 1), likely, kind)


def _fly(meant: Tensor, decisions: Tensor, away: Tensor, rng: np.random.Generator) -> Tensor:
    """[N, 101, 2] flights along paths [N, 64, 2], as far as they come, turning on the spot three times in ten."""
    count = len(meant)
    fastest = rng.uniform(0.1, 1.0, (count, 1)) * MAX_FORWARD * CONTROL_PERIOD
    steps = fastest * rng.uniform(size=(count, DECISIONS)) * (rng.random((count, DECISIONS)) < 0.7)
    steps *= np.arange(DECISIONS) < decisions.numpy()[:, None]
    spacing = (meant[:, 1:] - meant[:, :-1]).norm(dim=-1).mean(1, keepdim=True)
    passed = functional.pad(torch.from_numpy(steps).cumsum(1), (1, 0)) / spacing
    flown = _distorted(_picked(meant, passed.round().long().clamp(max=POINTS - 1)), 0.35, 0.15, rng)
    drift = functional.pad(_normal(rng, count, DECISIONS, 2), (0, 0, 1, 0)).cumsum(1)
    return torch.where(away[:, None, None], -flown, flown) + 0.01 * drift


def _plan(points: Tensor, start: Pose, is_kind: dict[str, Tensor], rng: np.random.Generator) -> Tensor:
    """[N, 64, 64] a belief about paths [N, 64, 2]."""
    count = len(points)
    unsure = (~is_kind["followed"])[:, None, None]
    blur = GoldConfig(float(rng.uniform(0.3, 2.5)))
    world = start_frame(start)[:, None].apply_xy(points)
    likely = gold_visitation(world, start, blur).trajectory
    other = unsure * torch.from_numpy(0.5 * rng.uniform(size=(count, 1, 1)) ** 2).float()
    likely = (1 - other) * likely + other * likely.roll(1, 0)
    noise = functional.interpolate(_normal(rng, count, 1, 8, 8), (START_GRID.cells,) * 2, mode="bicubic")[:, 0]
    likely = likely * (unsure * torch.from_numpy(rng.uniform(0, 1.5, (count, 1, 1))).float() * noise).exp()
    likely = likely + unsure * torch.from_numpy(10 ** rng.uniform(-7, -4, (count, 1, 1))).float()
    power = 1 + 5 * is_kind["peaked"].float() - 0.85 * is_kind["spread"].float()
    return (likely / likely.amax((1, 2), keepdim=True)) ** power[:, None, None]


def _seen(flown: Tensor, decisions: Tensor, rng: np.random.Generator) -> Tensor:
    """[N, 64, 64] bool: cells that images from along the flights [N, 101, 2] have shown."""
    seen = torch.zeros(len(flown), START_GRID.cells, START_GRID.cells, dtype=torch.bool)
    for share in np.linspace(0, 1, LOOKS):
        now = (share * (decisions - 1)).round().long()[:, None]
        here, ahead = _picked(flown, now)[:, 0], _picked(flown, (now + 3).clamp(max=DECISIONS))[:, 0]
        along, left = (ahead - here).unbind(-1)
        heading = torch.atan2(left, along) + 0.3 * _normal(rng, len(flown))
        seen |= visible_ground(Pose.level(here, heading, FLIGHT_HEIGHT), Camera(), MappingConfig()).covered
    return seen


def _distorted(paths: Tensor, turn: float, stretch: float, rng: np.random.Generator) -> Tensor:
    """Paths [N, P, 2] turned about the start and stretched by random amounts."""
    angle = turn * _normal(rng, len(paths), 1)
    x, y = (paths * (stretch * _normal(rng, len(paths), 1, 1)).exp()).unbind(-1)
    cos, sin = angle.cos(), angle.sin()
    return torch.stack([cos * x - sin * y, sin * x + cos * y], dim=-1)


def _picked(paths: Tensor, index: Tensor) -> Tensor:
    """Points [N, Q, 2] of paths [N, P, 2] by their numbers [N, Q]."""
    return paths.gather(1, index[..., None].expand(-1, -1, 2))


def _normal(rng: np.random.Generator, *shape: int) -> Tensor:
    return torch.from_numpy(rng.standard_normal(shape)).float()
