"""A guardian and the served lab in one process and in simulated time, byte for byte as over a wire.

All that a flight over MAVLink has is there but sockets and the video's encoder: packets, parameters, modes, latencies,
faults. So a flight takes as long as the computer needs for it, and the same seed gives the same flight.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from wordwing.flight.calibration import Calibration
from wordwing.flight.camera_stream import CameraFrame, FrameBuffer
from wordwing.flight.guardian.guardian import TICK, Guardian
from wordwing.flight.guardian.protocol import GuardianState, Order, PilotDisconnected
from wordwing.flight.guardian.safety import FenceMargins, FlightLimits, Timeouts
from wordwing.flight.guardian_client import pose_from_numbers
from wordwing.flight.matching import PoseTrack
from wordwing.flight.mavlink.clock import ManualClock
from wordwing.flight.mavlink.messages import Codec
from wordwing.flight.mavlink_vehicle import MavlinkVehicle
from wordwing.flight.served.autopilot_profile import AutopilotName
from wordwing.flight.served.vehicle import ServedLab
from wordwing.interface import Domain, Environment
from wordwing.lab.vehicle import LabConfig
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task

STEP = 0.01
"""Seconds of the served lab's own ticks."""

PILOT = "pilot"
"""Who speaks to the lab."""


class LockstepClient:
    """Steers a served lab through a guardian. Time passes in `sleep` only."""

    def __init__(
        self,
        lab: ServedLab,
        limits: FlightLimits | None = None,
        timeouts: Timeouts | None = None,
        *,
        fence: FenceMargins | None = None,
        dry: bool = False,
        may_set_parameters: bool = False,
    ) -> None:
        self.clock = ManualClock()
        self.poses = PoseTrack()
        self.lab = lab
        self.guardian = Guardian(
            lab.frame,
            limits,
            timeouts,
            fence=fence,
            dry=dry,
            may_set_parameters=may_set_parameters,
            now=self.clock.now(),
        )
        self._codec = Codec()
        self._next_tick = self.clock.now()
        self._read_until = -math.inf
        self._closed = False

    @property
    def lost(self) -> str | None:
        """Why nobody can be asked any more."""
        return "it was closed" if self._closed else None

    def order(self, order: Order) -> None:
        """Ask for something."""
        if not self._closed:
            self.guardian.order(order, self.clock.now())

    def state(self) -> GuardianState:
        """What is known now."""
        return self.guardian.state(self.clock.now())

    def sleep(self, seconds: float) -> None:
        """Let time pass, the guardian ticking 20 times a second."""
        until = self.clock.now() + seconds
        while self._next_tick <= until + 1e-9:
            self._advance(self._next_tick - self.clock.now())
            for packet in self.guardian.tick(self.clock.now()):
                self.lab.receive(packet, PILOT)
            self._next_tick += TICK
        self._advance(until - self.clock.now())

    def close(self) -> None:
        """The pilot goes; what becomes of the drone shows as time goes on."""
        if not self._closed:
            self.order(PilotDisconnected())
            self._closed = True

    def _advance(self, seconds: float) -> None:
        until = self.clock.now() + seconds
        while (rest := until - self.clock.now()) > 1e-9:
            step = min(rest, STEP)  # in short steps, so that packets arrive when they should
            datagrams = self.lab.advance(step)
            self.clock.sleep(step)
            for datagram in datagrams:
                for message in self._codec.parse(datagram):
                    self.guardian.receive(message, self.clock.now())
            for pose in self.lab.mocap.take():
                self.guardian.hear_mocap(*pose, self.clock.now())
        self.clock.sleep(until - self.clock.now())
        for time, numbers in self.guardian.poses_since(self._read_until):
            self._read_until = time
            self.poses.add(time, pose_from_numbers(numbers))


class LockstepCamera:
    """The served lab's camera without an encoder; a picture is drawn when one looks."""

    failure: str | None = None
    """It has none that it could name."""

    def __init__(self, lab: ServedLab, clock: ManualClock) -> None:
        config = lab.config
        self._lab = lab
        self._clock = clock
        self._buffer = FrameBuffer(Calibration.of(config.camera.lens, config.image_latency))
        self._shown = -math.inf

    def start(self, timeout: float = 0.0) -> None:
        """There is nothing to open."""

    def latest(self) -> CameraFrame | None:
        """The newest picture."""
        self._look()
        return self._buffer.latest()

    def age(self, now: float) -> float:
        """Seconds since the newest picture was taken."""
        self._look()
        return self._buffer.age(now)

    def unchanged(self, now: float) -> float:
        """Seconds since what it shows last changed."""
        self._look()
        return self._buffer.unchanged(now)

    def close(self) -> None:
        """There is nothing to let go of."""

    def _look(self) -> None:
        if self._lab.time <= self._shown:
            return
        self._shown = self._lab.time
        raw, taken = self._lab.image()
        latency = self._buffer.calibration.latency
        # The lab's clock and ours both began at zero and have passed the same time.
        self._buffer.put(raw, min(taken + latency, self._clock.now()), taken)


def lockstep_vehicle(
    layout: Layout, start_xy: Sequence[float], start_yaw: float, seed: int, autopilot: AutopilotName
) -> MavlinkVehicle:
    """The lab over MAVLink in simulated time, as near to the fences as the in-process lab may come."""
    config = LabConfig()
    lab = ServedLab(layout, start_xy, start_yaw, seed=seed, autopilot=autopilot, config=config)
    guardian = LockstepClient(lab, fence=FenceMargins(config.fence_margin, config.side_margin, edge=0.0))
    return MavlinkVehicle(guardian, LockstepCamera(lab, guardian.clock), lambda _state: None, say=lambda _words: None)


@contextmanager
def open_lockstep(
    domain: Domain, tasks: Sequence[Task], *, autopilot: AutopilotName, seed: int = 0, **_others: object
) -> Iterator[Environment]:
    """The lab over MAVLink for the only task; called like `execution.environments.open_environment`."""
    [task] = tasks
    with lockstep_vehicle(task.layout, task.start_xy, task.start_yaw, seed, autopilot) as drone:
        yield drone
