"""The lab as a vehicle: flown through the same interface as a real drone, in-process, in lock-step."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from wordwing.frames import Pose, quaternion_from_euler, quaternion_multiply
from wordwing.interface import Observation, Setpoint, Vehicle
from wordwing.lab.camera import LabCamera, LabCameraConfig
from wordwing.lab.flight import LabFlight, LabFlightConfig
from wordwing.lab.safety import SafetyRule
from wordwing.world.assets import asset
from wordwing.world.layout import Layout


@dataclass(frozen=True)
class LabConfig:
    """The lab's imperfections besides wind and lens."""

    flight: LabFlightConfig = field(default_factory=LabFlightConfig)
    camera: LabCameraConfig = field(default_factory=LabCameraConfig)
    pose_latency: float = 0.03
    """Age of the newest pose, seconds: a motion-capture system and a radio link."""
    image_latency: float = 0.06
    """Time since the newest image's shutter closed, seconds."""
    position_noise: float = 0.003
    """Standard deviation of a pose's position on each axis, metres: under a centimetre, as the paper's Vicon."""
    attitude_noise: float = 0.003
    """Standard deviation of a pose's roll, pitch and yaw, radians."""
    fence_margin: float = 0.3
    """Where safety stops a drone that flies at a fence, metres before it: room for its hull, for gusts, and for
    errors of the simple model by which safety predicts."""
    side_margin: float = 0.1
    """Where it stops a drone that flies along a fence, metres before it: paths may run close to one."""


TICK = 0.05
"""Period of the test whether the drone is inside a landmark, seconds."""


class LabVehicle(Vehicle):
    """One drone in one lab; the same seed gives the same flight, each time it connects."""

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
        oldest = max(config.pose_latency, config.image_latency + config.camera.exposure_time)
        if oldest > config.flight.memory:
            raise ValueError(
                f"a pose {oldest} s old is needed, but the flight remembers {config.flight.memory} s; "
                "lower the latencies or raise LabFlightConfig.memory"
            )
        self._start_xy = (float(start_xy[0]), float(start_xy[1]))
        self._start_yaw = float(start_yaw)
        self._layout = layout
        self._seed = seed
        self._rule = SafetyRule(config.fence_margin, config.side_margin) if safety else None
        self._flight = LabFlight(config.flight)
        self._camera = LabCamera(layout, np.random.default_rng(seed), config.camera)
        self.connect()

    def connect(self) -> None:
        """Hover at the start, at time 0."""
        self._flight.reset(self._start_xy, self._start_yaw, self._seed)
        self._rng = np.random.default_rng([self._seed, 1])
        self._camera.begin(np.random.default_rng([self._seed, 2]))
        self._setpoint = Setpoint.zero(1)
        self._seconds_inside = 0.0

    def observe(self) -> Observation:
        """The newest image and pose, each as old as its latency."""
        now = self._flight.time
        closed = now - self.config.image_latency
        opened = closed - self.config.camera.exposure_time
        image = self._camera.take(self._pose_at(opened), self._pose_at(closed))
        pose = self._with_noise(self._pose_at(now - self.config.pose_latency))
        velocity = torch.from_numpy(self._flight.velocity).float()[None]
        return Observation(image[None], pose, torch.tensor([now]), velocity)

    def send(self, setpoint: Setpoint) -> Setpoint:
        """Apply the limits and the paper's safety rule, and keep the setpoint for `wait`."""
        sent = Setpoint(setpoint.forward.detach().cpu(), setpoint.yaw_rate.detach().cpu()).clamp()
        if self._rule is not None:
            flight = self._flight
            velocity, rates = torch.from_numpy(flight.velocity), torch.from_numpy(flight.body_rates)
            sent = self._rule.restrain(sent, self.true_pose, velocity, rates)
        self._setpoint = sent
        return sent

    def wait(self, seconds: float) -> None:
        """Fly the last setpoint for some simulated seconds."""
        forward, yaw_rate = float(self._setpoint.forward[0]), float(self._setpoint.yaw_rate[0])
        ticks, rest = divmod(round(seconds, 6), TICK)
        for part in [TICK] * int(ticks) + [rest]:
            self._flight.advance(part, forward, yaw_rate)
            self._seconds_inside += part * self._inside_landmark()

    def land(self) -> None:
        """Land at the autopilot's landing speed."""
        self._flight.land()

    def close(self) -> None:
        """Do nothing: there is no connection to close."""

    @property
    def time(self) -> float:
        """Simulated seconds since it connected."""
        return self._flight.time

    @property
    def flying(self) -> bool:
        """Whether the motors run."""
        return self._flight.motors_on

    @property
    def seconds_inside_landmarks(self) -> Tensor:
        """[1] how long it has been flying through landmarks since it connected."""
        return torch.tensor([self._seconds_inside], dtype=torch.float64)

    @property
    def true_pose(self) -> Pose:
        """[1] where the drone really is, world frame."""
        return self._pose_at(self._flight.time)

    def _inside_landmark(self) -> bool:
        """Whether the drone's centre is inside a landmark now."""
        position = self._flight.position
        for placement in self._layout.landmarks:
            x, y, z = position - [placement.x, placement.y, placement.elevation]
            cos, sin = math.cos(placement.yaw), math.sin(placement.yaw)
            local = np.array([[cos * x + sin * y, cos * y - sin * x, z]])
            if math.hypot(x, y) < placement.kind.footprint and asset(placement.name, "lab").contains(local)[0]:
                return True
        return False

    def _pose_at(self, time: float) -> Pose:
        # The memory reaches back a little beyond the start of a flight.
        position, quaternion = self._flight.pose_at(max(time, -self.config.flight.memory))
        return Pose(torch.tensor(position[None]).float(), torch.tensor(quaternion[None]).float())

    def _with_noise(self, pose: Pose) -> Pose:
        """The pose as motion capture measures it."""
        offset, angles = torch.from_numpy(self._rng.standard_normal((2, 1, 3), np.float32))
        wobble = quaternion_from_euler(*(self.config.attitude_noise * angles).unbind(-1))
        return Pose(
            pose.position + self.config.position_noise * offset,
            quaternion_multiply(pose.quaternion, wobble),
        )
