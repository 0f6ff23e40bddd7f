"""The paper's safety rule for the lab's drone (paper: Quadcopter Safety)."""

import torch
from torch import Tensor

from wordwing.frames import ARENA_HALF, Pose
from wordwing.interface import Setpoint
from wordwing.sim.dynamics import DynamicsConfig, FleetState

AT_A_FENCE = 0.45
"""A drone flies at a fence, not along it, with more than this share of its speed towards it."""


class SafetyRule:
    """Predicts one drone with the simple model of `sim`; the lab's rigid body responds a little differently.

    Args:
        ahead: Metres from a fence that it flies at.
        aside: Metres from a fence that it flies along.
    """

    def __init__(self, ahead: float, aside: float) -> None:
        self.ahead, self.aside = ahead, aside
        self._model = FleetState(1, torch.device("cpu"), DynamicsConfig())

    def bounds(self, pose: Pose, setpoint: Setpoint) -> Tensor:
        """[1, 2] how far from the arena's centre the drone may go along x and along y, metres."""
        headings = torch.stack([_heading(pose.yaw), _heading(pose.yaw + setpoint.yaw_rate)])  # now, in a second
        outwards = (headings * pose.xy.sign()).amax(0)  # [1, 2]
        bounds = ARENA_HALF - torch.where(outwards > AT_A_FENCE, self.ahead, self.aside)
        # A drone that a gust has pushed out may fly back once it faces inwards, or it would hover there for ever.
        return torch.where(outwards < 0, bounds.maximum(pose.xy.abs() + 0.03), bounds)

    def restrain(self, setpoint: Setpoint, pose: Pose, velocity: Tensor, rates: Tensor) -> Setpoint:
        """The setpoint with its forward velocity reduced, to standstill if need be.

        Args:
            setpoint: [1] what the drone is asked to fly.
            pose: [1] of the drone, world frame.
            velocity: [3] m/s, world frame.
            rates: [3] body rates, rad/s.
        """
        model = self._model
        model.reset(pose, torch.arange(1))
        model.velocity[0] = velocity
        model.rates[0] = rates
        model.target[0, 0] = model.velocity[0, :2] @ _heading(pose.yaw)[0]
        model.yaw_target[0] = model.rates[0, 2]
        return model.restrain(setpoint, self.bounds(pose, setpoint))


def _heading(yaw: Tensor) -> Tensor:
    """[..., 2] horizontal unit vectors along yaws [...]."""
    return torch.stack([yaw.cos(), yaw.sin()], dim=-1)
