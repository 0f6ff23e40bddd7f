"""Batched quadrotor flight: a 6-DOF body under a velocity and yaw-rate controller, one Warp thread a drone.

The controller is the cascade of PX4 and ArduPilot: a target speed along the heading, shaped by acceleration and
jerk limits; a velocity loop that asks for tilt; an attitude loop that asks for body rates; rates and
thrust that answer with a first-order lag. Parameters are chosen so that steps answer as a real ArduCopter's do, and
as the rigid body of `wordwing.sim.lab` does; both are tested. One thread computes one drone with scalar code, so a
drone's flight does not depend on how many others there are, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
import warp as wp
from torch import Tensor

from wordwing.frames import Pose
from wordwing.interface import CONTROL_PERIOD, FLIGHT_HEIGHT, Setpoint
from wordwing.sim.kernels.drone import GRAVITY, Airframe, Fleet, advance, restrain
from wordwing.sim.kernels.raycast import Geoms, Worlds
from wordwing.sim.launch import launch

SUBSTEP = 0.01
"""Integration step, seconds."""


@dataclass(frozen=True)
class DynamicsConfig:
    """The quadrotor and its velocity controller.

    Sources: (A) fitted to the step responses of ArduCopter 4.8 with indoor parameters; (P) a default of PX4; (L) the
    lab's Intel Aero class airframe.
    """

    max_acceleration: float = 1.0
    """Limit of the target speed's acceleration, m/s² (A)."""
    max_jerk: float = 3.0
    """Limit of its jerk, m/s³ (A)."""
    speed_shaping: float = 2.0
    """How fast the target closes the gap to a setpoint that speeds up, 1/s (A)."""
    brake_shaping: float = 4.0
    """How fast it closes the gap to a setpoint that slows down, 1/s (A)."""
    velocity_gain: float = 3.0
    """Velocity loop, 1/s (A)."""
    height_gain: float = 1.5
    """Altitude hold, 1/s (P: MPC_Z_P is 1)."""
    climb_gain: float = 4.0
    """Climb-rate loop, 1/s (P: MPC_Z_VEL_P_ACC)."""
    max_tilt: float = 0.35
    """Tilt limit, rad (L)."""
    attitude_gain: float = 6.5
    """Attitude loop, 1/s (P: MC_ROLL_P)."""
    rate_lag: float = 0.05
    """Time constant of the body rates, s (L)."""
    thrust_lag: float = 0.04
    """Time constant of the motors, s (L)."""
    yaw_acceleration: float = 3.0
    """Slew limit of the yaw rate's target, rad/s² (A)."""
    drag: float = 0.25
    """Deceleration for each m/s of airspeed, 1/s (L)."""
    height: float = FLIGHT_HEIGHT
    """Altitude that is held, metres."""


class FleetState:
    """The states of N drones as torch tensors that Warp kernels read and write in place."""

    def __init__(self, count: int, device: torch.device, config: DynamicsConfig) -> None:
        self.device = device
        self.config = config
        self.position = torch.zeros(count, 3, device=device)
        self.velocity = torch.zeros(count, 3, device=device)
        self.attitude = torch.zeros(count, 4, device=device)
        self.rates = torch.zeros(count, 3, device=device)
        self.thrust = torch.zeros(count, device=device)
        self.target = torch.zeros(count, 2, device=device)
        self.yaw_target = torch.zeros(count, device=device)
        self.hits = torch.zeros(count, dtype=torch.int32, device=device)
        self._fleet = Fleet()
        self._fleet.position = wp.from_torch(self.position, dtype=wp.vec3)
        self._fleet.velocity = wp.from_torch(self.velocity, dtype=wp.vec3)
        self._fleet.attitude = wp.from_torch(self.attitude, dtype=wp.vec4)
        self._fleet.rates = wp.from_torch(self.rates, dtype=wp.vec3)
        self._fleet.thrust = wp.from_torch(self.thrust)
        self._fleet.target = wp.from_torch(self.target, dtype=wp.vec2)
        self._fleet.yaw_target = wp.from_torch(self.yaw_target)
        self._frame = Airframe()
        for entry in fields(config):
            setattr(self._frame, entry.name, getattr(config, entry.name))

    def tensors(self) -> tuple[Tensor, ...]:
        """All that changes in flight; the kernels hold on to these very tensors."""
        return (
            self.position,
            self.velocity,
            self.attitude,
            self.rates,
            self.thrust,
            self.target,
            self.yaw_target,
            self.hits,
        )

    def reset(self, poses: Pose, which: Tensor) -> None:
        """Let the drones with indices `which` [M] hover at rest at level poses [M], world frame."""
        self.position[which] = poses.position.to(self.device, torch.float32)
        self.attitude[which] = poses.quaternion.to(self.device, torch.float32)
        for moving in (self.velocity, self.rates, self.target, self.yaw_target, self.hits):
            moving[which] = 0
        self.thrust[which] = float(GRAVITY)

    def advance(self, setpoint: Setpoint, seconds: float, worlds: Worlds, geoms: Geoms) -> None:
        """Fly all drones for a time under setpoints [N]."""
        inputs = (
            self._fleet,
            self._frame,
            worlds,
            geoms,
            wp.from_torch(setpoint.forward.float().contiguous()),
            wp.from_torch(setpoint.yaw_rate.float().contiguous()),
            round(seconds / SUBSTEP),
            SUBSTEP,
            wp.from_torch(self.hits),
        )
        launch(advance, len(self.position), inputs, self.device)

    def restrain(self, setpoint: Setpoint, half: float) -> Setpoint:
        """The safety rule of the paper (Quadcopter Safety) for setpoints [N].

        Each setpoint is forward-simulated for one second; if the drone would leave |x|, |y| <= half, its forward
        velocity is reduced, to standstill if need be. The yaw rate is untouched. Besides, the drone must be able to
        brake inside after this control period, so that the rule can still be kept when it is next asked; a
        centimetre is left for what the prediction does not try.
        """
        safe = torch.empty_like(self.thrust)
        inputs = (
            self._fleet,
            self._frame,
            wp.from_torch(setpoint.forward.float().contiguous()),
            wp.from_torch(setpoint.yaw_rate.float().contiguous()),
            half - 0.01,
            round(1.0 / SUBSTEP),
            round(CONTROL_PERIOD / SUBSTEP),
            round(1.2 / SUBSTEP),
            8,
            SUBSTEP,
            wp.from_torch(safe),
        )
        launch(restrain, len(self.position), inputs, self.device)
        return Setpoint(safe, setpoint.yaw_rate)
