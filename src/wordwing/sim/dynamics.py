"""Batched quadrotor flight: a 6-DOF body under a velocity and yaw-rate controller, one Warp thread a drone.

The controller is the cascade of PX4 and ArduPilot: a target speed along the heading, shaped by acceleration and
jerk limits; a velocity loop that asks for tilt; an attitude loop that asks for body rates; rates and
thrust that answer with a first-order lag. Parameters are chosen so that steps answer as a real ArduCopter's do, and
as the rigid body of `wordwing.lab` does; both are tested. One thread computes one drone with scalar code, so a
drone's flight does not depend on how many others there are, to the last bit.
"""

from dataclasses import astuple, dataclass, fields
from typing import Any

import torch
import warp as wp
from torch import Tensor

from wordwing.errors import WordwingError
from wordwing.frames import Pose
from wordwing.interface import CONTROL_PERIOD, Setpoint
from wordwing.sim.kernels.drone import (
    GRAVITY,
    Drone,
    DroneParameters,
    DynamicsConfig as DynamicsConfig,
    advance,
    come_to_rest,
    restrain,
)
from wordwing.sim.kernels.raycast import Geoms, Worlds
from wordwing.sim.launch import launch, struct_array

SUBSTEP = 0.01
"""Integration step, seconds."""

RESPONSE_PARAMETERS = (
    "max_acceleration",
    "max_jerk",
    "speed_shaping",
    "brake_shaping",
    "velocity_gain",
    "yaw_acceleration",
)
"""Parameters that decide how a drone responds to setpoints; they differ between autopilots."""

REST = 1.8
"""Seconds within which a drone comes to rest after STOP; evaluation waits as long."""


@dataclass(frozen=True)
class SafetyConfig:
    """How far ahead the safety rule looks."""

    horizon: float = 1.0
    """Seconds that a setpoint is forward-simulated for (paper)."""
    braking: float = 1.2
    """Seconds of braking that are simulated after this control period; from full speed it takes less."""
    choices: int = 8
    """Even fractions of the forward velocity that are tried before standstill."""
    margin: float = 0.01
    """Margin for turns that the prediction does not try, metres."""


class FleetState:
    """The states of N drones as torch tensors that Warp kernels read and write in place."""

    def __init__(self, count: int, device: torch.device, config: DynamicsConfig) -> None:
        self.device, self.config = device, config
        self._states = torch.zeros(count, 17, device=device)  # of a `Drone` each, as an array of structs lies in memory
        self.position, self.velocity, self.attitude, self.rates, thrust, self.target, yaw_target = self._states.split(
            (3, 3, 4, 3, 1, 2, 1), dim=1
        )
        self.thrust, self.yaw_target = thrust[:, 0], yaw_target[:, 0]
        self.hits = torch.zeros(count, dtype=torch.int32, device=device)
        usual = torch.tensor(astuple(config), device=device)
        self._values = usual.repeat(count, 1)  # [N, fields of the config], as such an array lies there, too
        names = [entry.name for entry in fields(config)]
        self._response = torch.tensor([names.index(name) for name in RESPONSE_PARAMETERS], device=device)
        self._usual = usual[self._response]
        self._drones, self._parameters = struct_array(Drone, self._states), struct_array(DroneParameters, self._values)

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the state and of what the drones are like; kernels share their memory."""
        return self._states, self.hits, self._values

    def reset(self, poses: Pose, which: Tensor) -> None:
        """Let the drones with indices `which` [M] hover at rest at level poses [M], world frame."""
        self._states[which] = self._hovering(poses)
        self.hits[which] = 0

    def begin(self, poses: Pose, which: Tensor) -> None:
        """Let the drones `which` [N] bool hover at rest at level poses [N], world frame; the others fly on."""
        self._states.copy_(torch.where(which[:, None], self._hovering(poses), self._states))
        self.hits.masked_fill_(which, 0)

    def _hovering(self, poses: Pose) -> Tensor:
        """[M, 17] the states of drones that hover at rest at level poses [M]."""
        position, quaternion = (part.to(self.device, torch.float32) for part in (poses.position, poses.quaternion))
        still = torch.zeros_like(position)
        thrust = torch.full_like(position[:, :1], float(GRAVITY))
        return torch.cat([position, still, quaternion, still, thrust, still], dim=1)

    def vary(self, which: Tensor, factors: Tensor) -> None:
        """Randomise how the drones `which` [N] bool respond to setpoints from now on.

        Args:
            which: The others stay as they are.
            factors: [N, len(RESPONSE_PARAMETERS)] by which their parameters differ from the config's; positive.
        """
        now = self._values[:, self._response]
        self._values[:, self._response] = torch.where(which[:, None], self._usual * factors, now)

    def rest(self) -> Tensor:
        """[N, 2] where the drones would come to rest if they were told to stop now, metres, world frame."""
        rest = torch.empty_like(self.position[:, :2])
        self._launch(come_to_rest, round(REST / SUBSTEP), SUBSTEP, wp.from_torch(rest, dtype=wp.vec2))
        return rest

    def advance(self, setpoint: Setpoint, seconds: float, worlds: Worlds, geoms: Geoms) -> None:
        """Fly all drones for a time under setpoints [N]."""
        steps = (round(seconds / SUBSTEP), SUBSTEP)
        self._launch(advance, worlds, geoms, *self._arrays(setpoint), *steps, wp.from_torch(self.hits))

    def restrain(self, setpoint: Setpoint, bounds: float | Tensor, safety: SafetyConfig | None = None) -> Setpoint:
        """The safety rule of the paper (Quadcopter Safety) for setpoints [N].

        Each setpoint is forward-simulated for one second; if the drone would leave its bounds, its forward velocity is
        reduced, to standstill if need be. The yaw rate is untouched. Besides, the drone must be able to brake inside
        after this control period, so that the rule can still be kept when it is next asked.

        Args:
            setpoint: [N] what the drones are asked to fly.
            bounds: How far they may go from the arena's centre along x and along y, metres: one number or [N, 2].
            safety: How far ahead the rule looks.
        """
        safety = safety or SafetyConfig()
        safe = torch.empty_like(self.thrust)
        kept = bounds if isinstance(bounds, Tensor) else torch.full_like(self.position[:, :2], bounds)
        if kept.shape != (len(self.thrust), 2):
            raise WordwingError(f"{len(self.thrust)} drones need as many pairs of bounds, not {list(kept.shape)}")
        self._launch(
            restrain,
            *self._arrays(setpoint),
            wp.from_torch((kept - safety.margin).contiguous(), dtype=wp.vec2),
            *(round(seconds / SUBSTEP) for seconds in (safety.horizon, CONTROL_PERIOD, safety.braking)),
            safety.choices,
            SUBSTEP,
            wp.from_torch(safe),
        )
        return Setpoint(safe, setpoint.yaw_rate)

    def _launch(self, kernel: wp.Kernel, *inputs: Any) -> None:
        """Run a kernel for each drone."""
        launch(kernel, len(self.hits), (self._drones, self._parameters, *inputs), self.device)

    def _arrays(self, setpoint: Setpoint) -> tuple[wp.array, wp.array]:
        """The setpoints as kernels read them; a batch of another size would be read beyond its end."""
        expected = self.thrust.shape
        if setpoint.forward.shape != expected or setpoint.yaw_rate.shape != expected:
            raise WordwingError(
                f"{len(self.thrust)} drones need setpoints of shape {list(expected)}, "
                f"not {list(setpoint.forward.shape)} and {list(setpoint.yaw_rate.shape)}"
            )
        forward = setpoint.forward.detach().to(self.device, torch.float32).contiguous()
        yaw_rate = setpoint.yaw_rate.detach().to(self.device, torch.float32).contiguous()
        return wp.from_torch(forward), wp.from_torch(yaw_rate)
