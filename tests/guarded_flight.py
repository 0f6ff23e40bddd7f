"""A guardian and a served lab in lock-step, with a pilot made by hand."""

import math
from collections.abc import Callable
from typing import Any

from served_flight import QUICK
from wordwing.flight.guardian.guardian import TICK, Guardian
from wordwing.flight.guardian.process import GuardianLoop
from wordwing.flight.guardian.protocol import Decision, Hold, KeepAlive, Land, Order, Phase, TakeOff
from wordwing.flight.lockstep import LabLink
from wordwing.flight.mavlink.clock import ManualClock
from wordwing.flight.served.vehicle import ServedLab
from wordwing.world.layout import Layout


class GuardedFlight:
    """Time passes in `tick` only; the pilot is alive unless told otherwise."""

    def __init__(
        self,
        autopilot: str,
        start: tuple[float, float] = (0.0, 0.0),
        yaw: float = 0.0,
        seed: int = 0,
        faults: tuple[Any, ...] = (),
        **lab: Any,
    ) -> None:
        config = lab.pop("config", QUICK)
        options = {name: lab.pop(name) for name in ("dry", "may_set_parameters", "fence") if name in lab}
        self.lab = ServedLab(
            Layout(()), start, yaw, seed=seed, autopilot=autopilot, faults=faults, config=config, **lab
        )
        self.guardian = Guardian(self.lab.frame, **options)
        self.clock = ManualClock()
        self.link = LabLink(self.lab, self.clock)
        self.loop = GuardianLoop(self.guardian, self.link, self.link, self.clock)
        self.alive = True
        self.furthest = 0.0

    @property
    def now(self) -> float:
        return self.clock.now()

    @property
    def phase(self) -> Phase:
        return self.guardian.phase

    @property
    def height(self) -> float:
        return float(self.lab.true_pose.position[0, 2])

    def tick(self, order: Order | None = None) -> None:
        if self.alive:
            self.guardian.order(KeepAlive(), self.now)
        if order is not None:
            self.guardian.order(order, self.now)
        self.loop.tick()
        self.loop.receive(TICK)
        self.furthest = max(self.furthest, float(self.lab.true_pose.xy.abs().max()))

    def until(self, condition: Callable[[], bool], seconds: float = 40.0, order: Order | None = None) -> None:
        for _ in range(round(seconds / TICK)):
            if condition():
                return
            self.tick(order)
        raise AssertionError(f"still {self.phase} after {seconds} s: {self.story()[-6:]}")

    def until_phase(self, phase: Phase, seconds: float = 40.0, order: Order | None = None) -> None:
        self.until(lambda: self.phase is phase, seconds, order)

    def take_off(self) -> None:
        self.until_phase(Phase.READY)
        self.tick(TakeOff())
        self.until_phase(Phase.HOLDING)

    def hold(self, seconds: float) -> None:
        for _ in range(round(seconds / TICK)):
            self.tick(Hold())

    def fly(self, forward: float, yaw_rate: float, seconds: float) -> None:
        """Decide every 0.3 s from an image that is 0.1 s old."""
        for tick in range(round(seconds / TICK)):
            decision = Decision(forward, yaw_rate, self.now - 0.1, self.now)
            self.tick(decision if tick % 6 == 0 else None)

    def land(self) -> None:
        self.tick(Land())
        self.until_phase(Phase.LANDED)

    def story(self) -> list[str]:
        """All changes of phase, refusals and notes."""
        kinds = ("phase", "refused", "note", "would send")
        return [event.text for event in self.guardian.events if event.kind in kinds]


def square(flight: GuardedFlight, edge: float = 1.0, speed: float = 0.5) -> list[tuple[float, float]]:
    """Fly a square to the left; its corners as they were."""
    corners = []
    for _ in range(4):
        flight.fly(speed, 0.0, edge / speed)
        flight.fly(0.0, 0.0, 1.2)
        x, y = flight.lab.true_pose.xy[0].tolist()
        corners.append((x, y))
        flight.fly(0.0, math.pi / 4, 2.0)
        flight.fly(0.0, 0.0, 0.6)
    return corners
