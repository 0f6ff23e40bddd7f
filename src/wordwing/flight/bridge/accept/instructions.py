"""Instructions that the shipped policy flies on an autopilot's own simulation."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from wordwing.commands.lab import sample_start
from wordwing.flight.bridge.accept.judging import Result, duration, elapsed, greatest_xy, inside, point_at
from wordwing.flight.bridge.accept.scenarios import Scenario, Setting
from wordwing.flight.bridge.accept.trial import Trial, TrialError
from wordwing.world.samplers import sample_layout
from wordwing.world.tasks import Task

COUNT = 10

SUCCESS = 0.47
"""A flight succeeds if it stops so near to where its path ends, metres (paper: Evaluation)."""


class Instruction:
    """One of the instructions; its number chooses layout, start and words."""

    def __init__(self, number: int) -> None:
        self.row = f"instruction {number}"
        self.number = number

    @cached_property
    def task(self) -> Task:
        """What is flown."""
        rng = np.random.default_rng(self.number)
        return sample_start(sample_layout("cage", rng), "cage", rng)

    def setting(self) -> Setting:
        """Where it begins."""
        task = self.task
        return Setting((float(task.start_xy[0]), float(task.start_xy[1]), float(task.start_yaw)), task.layout)

    def fly(self, trial: Trial) -> Iterable[Result]:
        """Fly it by `wordwing fly`."""
        task = self.task
        trial.fly(task.instruction)
        begin = trial.wait_for_flight(120.0)
        terminal = trial.terminal
        assert terminal is not None
        trial.wait("the drone is disarmed", lambda: trial.disarmed_at(begin) is not None, 150.0)
        trial.wait("the pilot tells how it ended", lambda: "the drone is " in terminal.text, 20.0)
        end = next((entry for entry in trial.events() if entry.kind == "end"), None)
        if end is None:  # not the policy ended it
            lines = [line for line in terminal.text.splitlines() if "the drone is " in line]
            raise TrialError(f'"{task.instruction}": {"; ".join(lines)}')
        x, y = greatest_xy(trial)
        seen, goal = f'"{task.instruction}": ', task.gold_path[-1]
        at = point_at(trial, end.time)
        off = math.hypot(at.x - goal[0], at.y - goal[1])
        seen += f"ended by {end.values['by']} after {duration(elapsed(end.time, begin))}, {off:.2f} m from the goal"
        yield Result(self.row, seen, inside(x, y), x, y, {"goal": off, "success": float(off <= SUCCESS)})


def instructions() -> Iterable[Scenario]:
    """The flights."""
    for flown in map(Instruction, range(1, COUNT + 1)):
        yield Scenario(f"instruction-{flown.number}", flown.fly, (flown.row,), flown.setting)
