"""A guardian and the served lab in one process and in simulated time, byte for byte as over a wire.

All that a flight over MAVLink has is there but sockets and the video's encoder: packets, parameters, modes, latencies,
faults. So a flight takes as long as the computer needs for it, and the same seed gives the same flight.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from wordwing.flight.calibration import Calibration
from wordwing.flight.camera_stream import CameraFrame, VideoSource
from wordwing.flight.guardian.guardian import TICK, Guardian
from wordwing.flight.guardian.process import GuardianLoop
from wordwing.flight.guardian.protocol import GuardianState, Order, PilotDisconnected
from wordwing.flight.guardian.safety import FenceMargins, FlightLimits, Timeouts
from wordwing.flight.guardian_client import GuardianClient
from wordwing.flight.mavlink.clock import ManualClock
from wordwing.flight.mavlink_vehicle import MavlinkVehicle
from wordwing.flight.mocap.relay import MocapSample, MocapSource
from wordwing.flight.served.autopilot_profile import AutopilotName
from wordwing.flight.served.vehicle import ServedLab
from wordwing.interface import Domain, Environment
from wordwing.lab.vehicle import LabConfig
from wordwing.world.tasks import Task

STEP = 0.01
"""Seconds of the served lab's own ticks."""

PILOT = "pilot"
"""The sender's name at the lab."""


class LabLink(MocapSource):
    """A link to a served lab, and its motion capture; waiting on it is what lets the lab's time pass."""

    lost: str | None = None

    def __init__(self, lab: ServedLab, clock: ManualClock) -> None:
        self._lab, self._clock = lab, clock

    def send(self, data: bytes) -> None:
        """Send one packet to the lab."""
        self._lab.receive(data, PILOT)

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        """Let time pass, and take what the lab sends meanwhile."""
        datagrams = self._lab.advance(timeout)
        self._clock.sleep(timeout)
        return datagrams

    def read(self, timeout: float) -> list[MocapSample]:
        """Poses of motion capture that have been measured."""
        return self._lab.mocap.take()


class LockstepClient(GuardianClient):
    """Flies a served lab through a guardian in this process. Time passes in `sleep` only."""

    clock: ManualClock

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
        clock = ManualClock()
        super().__init__(clock)
        self.lab = lab
        self.guardian = Guardian(
            lab.frame, limits, timeouts, fence=fence, dry=dry, may_set_parameters=may_set_parameters, now=clock.now()
        )
        link = LabLink(lab, clock)
        self._loop = GuardianLoop(self.guardian, link, link, clock)
        self._next_tick = clock.now()
        self._read_until = -math.inf

    def order(self, order: Order) -> None:
        """Send an order."""
        if self.lost is None:
            self.guardian.order(order, self.clock.now())

    def state(self) -> GuardianState:
        """What is known now."""
        return self.guardian.state(self.clock.now())

    def sleep(self, seconds: float) -> None:
        """Let time pass, the guardian ticking 20 times a second."""
        until = self.clock.now() + seconds
        while self._next_tick <= until + 1e-9:
            self._advance(self._next_tick - self.clock.now())
            self._loop.tick()
            self._next_tick += TICK
        self._advance(until - self.clock.now())

    def close(self) -> None:
        """The pilot disconnects; what becomes of the drone shows as time goes on."""
        self.order(PilotDisconnected())
        self.lost = "it was closed"

    def _advance(self, seconds: float) -> None:
        until = self.clock.now() + seconds
        while (rest := until - self.clock.now()) > 1e-9:
            self._loop.receive(min(rest, STEP))  # in short steps, so that packets arrive when they should
        self.clock.sleep(until - self.clock.now())
        poses = self.guardian.estimate.poses_since(self._read_until)
        self._read_until = poses[-1][0] if poses else self._read_until
        self._add_poses(poses)


class LockstepCamera(VideoSource):
    """The served lab's camera without an encoder; an image is drawn when one looks."""

    def __init__(self, lab: ServedLab, clock: ManualClock) -> None:
        super().__init__(Calibration.of(lab.config.camera.lens, lab.config.image_latency))
        self._lab, self._clock = lab, clock
        self._shown = -math.inf

    def latest(self) -> CameraFrame | None:
        """The newest image."""
        self._look()
        return super().latest()

    def unchanged(self, now: float) -> float:
        """Seconds since what it shows last changed."""
        self._look()
        return super().unchanged(now)

    def _look(self) -> None:
        if self._lab.time <= self._shown:
            return
        self._shown = self._lab.time
        raw, taken = self._lab.image()
        # The lab's clock and ours both began at zero and have passed the same time.
        self.put(raw, min(taken + self.calibration.latency, self._clock.now()), taken)


@contextmanager
def open_lockstep(
    domain: Domain, tasks: Sequence[Task], *, autopilot: AutopilotName, seed: int = 0, **_others: object
) -> Iterator[Environment]:
    """The lab over MAVLink in simulated time for the only task, as near to the fences as the in-process lab may come.

    It is called like `execution.environments.open_environment`.
    """
    [task] = tasks
    config = LabConfig()
    lab = ServedLab(task.layout, task.start_xy, task.start_yaw, seed=seed, autopilot=autopilot, config=config)
    client = LockstepClient(lab, fence=FenceMargins(config.fence_margin, config.side_margin, edge=0.0))
    camera = LockstepCamera(lab, client.clock)
    with MavlinkVehicle(client, camera, lambda _state: None, say=lambda _sentence: None) as drone:
        yield drone
