"""The lab as a vehicle: flown through the same interface as a real drone, in-process, in lock-step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from wordwing.flight.vehicle import Vehicle
from wordwing.frames import ARENA_HALF, Pose, quaternion_from_euler, quaternion_multiply
from wordwing.interface import Observation, Setpoint
from wordwing.sim.dynamics import DynamicsConfig, FleetState
from wordwing.sim.lab.camera import LabCamera, LabCameraConfig
from wordwing.sim.lab.flight import LabFlight, LabFlightConfig
from wordwing.world.layout import Layout


@dataclass(frozen=True)
class LabConfig:
    """The lab's imperfections besides wind and lens."""

    flight: LabFlightConfig = field(default_factory=LabFlightConfig)
    camera: LabCameraConfig = field(default_factory=LabCameraConfig)
    pose_latency: float = 0.03
    """Age of the newest pose, seconds: a motion-capture system and a radio link."""
    image_latency: float = 0.06
    """Age of the newest picture, seconds."""
    position_noise: float = 0.003
    """Standard deviation of a pose's position on each axis, metres: under a centimetre, as the paper's Vicon."""
    attitude_noise: float = 0.003
    """Standard deviation of a pose's roll, pitch and yaw, radians."""


class LabVehicle(Vehicle):
    """One drone in one lab; the same seed gives the same flight."""

    def __init__(
        self,
        layout: Layout,
        start_xy: Sequence[float],
        start_yaw: float,
        seed: int = 0,
        config: LabConfig | None = None,
        *,
        safety: bool = True,
    ) -> None:
        self.config = config = config or LabConfig()
        self._start = (float(start_xy[0]), float(start_xy[1]), float(start_yaw))
        self._seed = seed
        self._safety = safety
        self._rng = np.random.default_rng([seed, 1])
        self._camera = LabCamera(layout, np.random.default_rng([seed, 2]), config.camera)
        self._flight = LabFlight(config.flight)
        # Safety predicts with the simple model; the true body answers a little differently.
        self._model = FleetState(1, torch.device("cpu"), DynamicsConfig())
        self._setpoint = Setpoint.zero(1)

    def connect(self) -> None:
        """Hover at the start."""
        x, y, yaw = self._start
        self._flight.reset((x, y), yaw, self._seed)
        self._setpoint = Setpoint.zero(1)

    def observe(self) -> Observation:
        """The newest picture and pose, each as old as its latency."""
        now = self._flight.time
        pose = self._pose_at(now - self.config.pose_latency)
        noise = self._rng.standard_normal(6)
        wobble = torch.from_numpy(noise[3:] * self.config.attitude_noise).float()
        noisy = Pose(
            pose.position + torch.from_numpy(noise[:3] * self.config.position_noise).float(),
            quaternion_multiply(pose.quaternion, quaternion_from_euler(*wobble)[None]),
        )
        shot = now - self.config.image_latency
        opened = self._pose_at(shot - self.config.camera.exposure_time)
        image = self._camera.take(opened, self._pose_at(shot))
        return Observation(image[None], noisy, torch.tensor([now]))

    def send(self, setpoint: Setpoint) -> Setpoint:
        """Limits and the paper's safety rule, then the autopilot."""
        sent = setpoint.clamp()
        if self._safety:
            self._copy_state()
            sent = self._model.restrain(sent, ARENA_HALF)
        self._setpoint = sent
        return sent

    def wait(self, seconds: float) -> None:
        """Fly the last setpoint for some simulated seconds."""
        self._flight.advance(seconds, float(self._setpoint.forward[0]), float(self._setpoint.yaw_rate[0]))

    def land(self) -> None:
        """Come down at the autopilot's pace."""
        self._flight.land()

    def close(self) -> None:
        """Nothing to let go of."""

    @property
    def true_pose(self) -> Pose:
        """[1] where the drone really is, world frame."""
        return self._pose_at(self._flight.time)

    def _pose_at(self, time: float) -> Pose:
        position, quaternion = self._flight.pose_at(max(time, -self.config.flight.memory))
        return Pose(torch.tensor(position[None]).float(), torch.tensor(quaternion[None]).float())

    def _copy_state(self) -> None:
        """Put the drone's state into the model that safety predicts with."""
        flight = self._flight
        pose = self.true_pose
        self._model.reset(pose, torch.arange(1))
        velocity = torch.from_numpy(flight.velocity).float()
        self._model.velocity[0] = velocity
        self._model.rates[0] = torch.from_numpy(flight.body_rates).float()
        ahead = torch.stack([pose.yaw[0].cos(), pose.yaw[0].sin()])
        self._model.target[0, 0] = velocity[:2] @ ahead
        self._model.yaw_target[0] = self._model.rates[0, 2]
