"""Batched quadrotor flight: a 6-DOF body under a velocity and yaw-rate controller, one Warp thread a drone.

The controller is the cascade of PX4 and ArduPilot: a target speed along the heading, shaped by acceleration and
jerk limits; a velocity loop that asks for tilt; an attitude loop that asks for body rates; rates and
thrust that answer with a first-order lag. Parameters are chosen so that steps answer as a real ArduCopter's do, and
as the rigid body of `wordwing.lab` does; both are tested. One thread computes one drone with scalar code, so a
drone's flight does not depend on how many others there are, to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
import warp as wp
from torch import Tensor

from wordwing.errors import WordwingError
from wordwing.frames import Pose
from wordwing.interface import CONTROL_PERIOD, FLIGHT_HEIGHT, Setpoint
from wordwing.sim.kernels.drone import GRAVITY, DroneParameters, Fleet, advance, come_to_rest, restrain
from wordwing.sim.kernels.raycast import Geoms, Worlds
from wordwing.sim.launch import launch, warp_device, warp_struct

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
    max_climb: float = 0.5
    """Limit of the climb rate, m/s (A: WP_SPD_UP as flown)."""
    max_climb_acceleration: float = 3.0
    """Limit of the climb-rate loop, m/s² (P: MPC_ACC_DOWN_MAX)."""
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
        self._fleet = warp_struct(
            Fleet,
            position=self.position,
            velocity=self.velocity,
            attitude=self.attitude,
            rates=self.rates,
            thrust=self.thrust,
            target=self.target,
            yaw_target=self.yaw_target,
        )
        names = [entry.name for entry in fields(config)]
        usual = torch.tensor([getattr(config, name) for name in names], dtype=torch.float32, device=device)
        self._values = usual.repeat(count, 1)  # [N, fields of the config], as an array of structs lies in memory
        self._response = torch.tensor([names.index(name) for name in RESPONSE_PARAMETERS], device=device)
        self._usual = usual[self._response]
        self._parameters = wp.array(
            ptr=self._values.data_ptr(), dtype=DroneParameters, shape=(count,), device=warp_device(device)
        )

    def tensors(self) -> tuple[Tensor, ...]:
        """The tensors of the state; kernels share their memory."""
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

    def begin(self, poses: Pose, which: Tensor) -> None:
        """Let the drones `which` [N] bool hover at rest at level poses [N], world frame; the others fly on."""
        rows = which[:, None]
        self.position.copy_(torch.where(rows, poses.position, self.position))
        self.attitude.copy_(torch.where(rows, poses.quaternion, self.attitude))
        for moving in (self.velocity, self.rates, self.target):
            moving.masked_fill_(rows, 0)
        for moving in (self.yaw_target, self.hits):
            moving.masked_fill_(which, 0)
        self.thrust.masked_fill_(which, float(GRAVITY))

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
        inputs = (self._fleet, self._parameters, round(REST / SUBSTEP), SUBSTEP, wp.from_torch(rest, dtype=wp.vec2))
        launch(come_to_rest, len(rest), inputs, self.device)
        return rest

    def advance(self, setpoint: Setpoint, seconds: float, worlds: Worlds, geoms: Geoms) -> None:
        """Fly all drones for a time under setpoints [N]."""
        inputs = (
            self._fleet,
            self._parameters,
            worlds,
            geoms,
            *self._arrays(setpoint),
            round(seconds / SUBSTEP),
            SUBSTEP,
            wp.from_torch(self.hits),
        )
        launch(advance, len(self.position), inputs, self.device)

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
        inputs = (
            self._fleet,
            self._parameters,
            *self._arrays(setpoint),
            wp.from_torch((kept - safety.margin).contiguous(), dtype=wp.vec2),
            round(safety.horizon / SUBSTEP),
            round(CONTROL_PERIOD / SUBSTEP),
            round(safety.braking / SUBSTEP),
            safety.choices,
            SUBSTEP,
            wp.from_torch(safe),
        )
        launch(restrain, len(self.position), inputs, self.device)
        return Setpoint(safe, setpoint.yaw_rate)

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
