"""ORACLE: follow the demonstration's path by a control rule (paper: Oracle implementation).

A dynamic goal runs 0.5 m ahead of the drone along the path, until it overlaps the path's end; a P-controller turns
towards it; the forward speed is a maximum minus a multiple of the angular velocity that the controller asks for, so a
drone that looks the wrong way turns on the spot first. `docs/paper.md` says where the authors' code differs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from wordwing.frames import Pose, wrap_angle
from wordwing.interface import MAX_FORWARD, MAX_YAW_RATE, Action, Observation, Setpoint


@dataclass(frozen=True)
class OracleConfig:
    """The oracle's constants."""

    lookahead: float = 0.5
    """Distance of the dynamic goal ahead of the drone along the path, metres (paper)."""
    yaw_gain: float = 2.0
    """Angular velocity for each radian between the heading and the dynamic goal, 1/s."""
    slowdown: float = 0.5
    """Forward speed lost for each rad/s of angular velocity asked for, metres."""
    stop_distance: float = 0.3
    """STOP when this much of the path is left, metres: about the way that braking takes."""
    window: float = 0.6
    """How far ahead on the path the drone may find itself in one step, metres; loops are not cut short."""


class Oracle:
    """Flies N drones along N paths that they are given."""

    needs_gold_path = True

    def __init__(self, config: OracleConfig | None = None) -> None:
        self.config = config or OracleConfig()

    def reset(
        self,
        instructions: Sequence[str],
        start: Pose,
        gold_paths: Sequence[Tensor] | None = None,
    ) -> None:
        """Begin N flights along N paths [P, 2], world frame metres."""
        if gold_paths is None or len(gold_paths) != len(start):
            raise ValueError("ORACLE flies along demonstrations: give it one path for each drone")
        device = start.position.device
        paths = [path.to(device, torch.float32).reshape(-1, 2) for path in gold_paths]
        longest = max(2, *map(len, paths))
        # Repeating the last point pads a path without changing its shape.
        padded = [torch.cat([path, path[-1:].expand(longest - len(path), 2)]) for path in paths]
        self._path = torch.stack(padded)  # [N, P, 2]
        steps = (self._path[:, 1:] - self._path[:, :-1]).norm(dim=-1)
        self._done = torch.zeros(len(paths), device=device)  # [N] metres of the path flown
        self._along = torch.cat([self._done[:, None], steps.cumsum(1)], 1)  # [N, P]

    def act(self, observation: Observation) -> Action:
        """Chase the dynamic goal."""
        config = self.config
        pose = observation.pose
        self._done = self._progress(pose.xy)
        goal = self._point(self._done + config.lookahead) - pose.xy  # [N, 2]
        bearing = torch.atan2(goal[:, 1].double(), goal[:, 0].double()).float()  # as in `Pose.yaw`
        error = wrap_angle(bearing - pose.yaw)
        asked = config.yaw_gain * error
        forward = (MAX_FORWARD - config.slowdown * asked.abs()).clamp(0.0, MAX_FORWARD)
        yaw_rate = asked.clamp(-MAX_YAW_RATE, MAX_YAW_RATE)
        stop = self._along[:, -1] - self._done <= config.stop_distance
        return Action(Setpoint(forward, yaw_rate), stop)

    def _progress(self, position: Tensor) -> Tensor:
        """[N] arc length of the point of each path nearest to the drone, between the last one and a window ahead."""
        a, b = self._path[:, :-1], self._path[:, 1:]  # [N, P-1, 2]
        begin, end = self._along[:, :-1], self._along[:, 1:]  # [N, P-1]
        first, last = self._done[:, None], self._done[:, None] + self.config.window
        edge = b - a
        length = edge.norm(dim=-1).clamp(min=1e-6)
        along = begin + ((position[:, None] - a) * edge).sum(-1) / length
        # Cutting each edge to the window, not dropping those that reach out of it: a drone that overshoots a corner is
        # nearest to where it has been, and would otherwise be taken to be a whole edge further on.
        along = along.maximum(begin.maximum(first)).minimum(end.minimum(last))
        nearest = a + ((along - begin) / length)[..., None] * edge
        distance = (nearest - position[:, None]).norm(dim=-1)
        distance = distance.masked_fill((end < first) | (begin > last), torch.inf)
        best = distance.argmin(dim=1, keepdim=True)
        return along.gather(1, best)[:, 0].maximum(self._done)

    def _point(self, along: Tensor) -> Tensor:
        """[N, 2] points at arc lengths [N], the end beyond it."""
        along = torch.minimum(along, self._along[:, -1])
        after = torch.searchsorted(self._along, along[:, None]).clamp(1, self._path.shape[1] - 1)
        before = after - 1
        s0, s1 = self._along.gather(1, before)[:, 0], self._along.gather(1, after)[:, 0]
        share = ((along - s0) / (s1 - s0).clamp(min=1e-9)).clamp(0.0, 1.0)
        index = torch.arange(len(along), device=along.device)
        p0, p1 = self._path[index, before[:, 0]], self._path[index, after[:, 0]]
        return p0 + share[:, None] * (p1 - p0)
