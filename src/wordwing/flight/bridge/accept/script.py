"""A policy that flies a list of steps: `python -m wordwing.flight.bridge.accept.script FILE`.

Everything but the policy is as in `wordwing fly`: the guardian's process, the camera, the confirmation on a terminal,
the log.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import TypeAdapter
from torch import Tensor

from wordwing import interrupts
from wordwing.errors import WordwingError
from wordwing.flight.flying import fly_drone
from wordwing.flight.options import DroneOptions
from wordwing.frames import Pose, wrap_angle
from wordwing.interface import Action, Observation, Setpoint
from wordwing.validation import parse_json

AIMED = 0.08
"""Tolerance of a turn's final heading, radians."""

TURN_GAIN = 1.5
"""rad/s for each radian of heading error."""

LINE_GAIN, LINE_TURN = 1.5, 0.5
"""Correction of the heading for each metre beside a line, radians, and its limit."""


@dataclass(frozen=True)
class Step:
    """A setpoint for some time, a turn to a heading, or a line to follow."""

    forward: float = 0.0
    """m/s."""
    yaw_rate: float = 0.0
    """rad/s, positive turns left."""
    seconds: float = 0.0
    turn_to: float | None = None
    """A heading to turn to instead, however long that takes; radians, world."""
    line: tuple[float, float, float] | None = None
    """Turn so as to follow the line through x and y, metres, along a heading, radians, world."""


class Script:
    """A policy that takes steps one after the other, then stops."""

    needs_gold_path = False

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = list(steps)

    def reset(self, instructions: Sequence[str], start: Pose, gold_paths: Sequence[Tensor] | None = None) -> None:
        """Begin with the first step."""
        self._left = list(self._steps)
        self._since: float | None = None

    def act(self, observation: Observation) -> Action:
        """The setpoint of the current step."""
        now = float(observation.time[0])
        self._since = now if self._since is None else self._since
        while self._left:
            step = self._left[0]
            if step.turn_to is not None:
                error = float(wrap_angle(step.turn_to - observation.pose.yaw[0]))
                if abs(error) > AIMED:
                    return _action(0.0, TURN_GAIN * error)
            elif now - self._since < step.seconds:
                turn = step.yaw_rate if step.line is None else _turn_along(step.line, observation.pose)
                return _action(step.forward, turn)
            self._left.pop(0)
            self._since = now
        return Action(Setpoint.zero(1), torch.ones(1, dtype=torch.bool))


def _turn_along(line: tuple[float, float, float], pose: Pose) -> float:
    """The yaw rate that leads to a line and along it, rad/s."""
    x, y, heading = line
    dx, dy = float(pose.xy[0, 0]) - x, float(pose.xy[0, 1]) - y
    left = math.cos(heading) * dy - math.sin(heading) * dx
    aim = heading - min(max(LINE_GAIN * left, -LINE_TURN), LINE_TURN)
    return TURN_GAIN * float(wrap_angle(aim - pose.yaw[0]))


def _action(forward: float, yaw_rate: float) -> Action:
    setpoint = Setpoint(torch.tensor([forward]), torch.tensor([yaw_rate]))
    return Action(setpoint.clamp(), torch.zeros(1, dtype=torch.bool))


@dataclass(frozen=True)
class ScriptFile:
    """The file that `main` flies."""

    url: str
    options: DroneOptions
    steps: tuple[Step, ...]

    def save(self, path: Path) -> None:
        """Write it for `main`."""
        path.write_bytes(TypeAdapter(ScriptFile).dump_json(self))


def main() -> None:
    """Fly what a file says; exits as `wordwing fly` does."""
    try:
        script = parse_json(ScriptFile, Path(sys.argv[1]).read_bytes(), sys.argv[1])
        options, policy = script.options, Script(script.steps)
        fly_drone("fly as the script says", script.url, "script", options, None, Path(), policy)
    except WordwingError as error:
        print(f"wordwing: {error}", file=sys.stderr)
        raise SystemExit(error.status) from None
    except KeyboardInterrupt:
        interrupts.announce()
        raise SystemExit(interrupts.STATUS) from None


if __name__ == "__main__":
    with interrupts.answered():
        main()
