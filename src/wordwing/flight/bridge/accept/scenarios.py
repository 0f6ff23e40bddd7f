"""The acceptance list, row by row. A scenario is one flight and gives one or more rows."""

import math
import re
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from wordwing.flight.bridge.accept.script import Step
from wordwing.flight.bridge.accept.trial import (
    Result,
    Trial,
    TrialError,
    duration,
    elapsed,
    greatest_xy,
    inside,
    point_at,
    pose_errors,
    sent_packets,
    stopped_at,
    to_fence,
    within,
)
from wordwing.flight.served.autopilot_profile import AutopilotName
from wordwing.flight.served.faults import Fault, FrozenCamera, MocapDrift, MocapFreeze, MocapJump, PoseDropout
from wordwing.frames import ARENA_HALF
from wordwing.interface import FLIGHT_HEIGHT, MAX_FORWARD
from wordwing.world.layout import Layout

HULL = 0.15
"""Half the width of a small drone, metres: nearer to a fence its hull touches it."""

DOWN_WITHIN = 20.0
"""How long a landing from the flight height may take, seconds."""

AFTER_TAKEOVER = 8.0
"""How long a drone is watched after the safety pilot has taken over, seconds."""

JUMP, DRIFT = 0.6, 0.02
"""Injected jump and drift of motion capture: metres, and m/s."""

NEAR, NEAR_MOST = 0.5, 0.6
"""Planned distance of flights along a fence, and the greatest at which a fault is injected, metres."""

SIGN = 30.0
"""Tolerance of the direction of flight, degrees: a wrong sign or frame would be off by 60 or more."""

FULL_SPEED, RUN_UP = 0.55, 1.2
"""A drone counts as at full speed when it is faster than this, m/s, after so many metres."""


@dataclass(frozen=True)
class StartCondition:
    """Where a flight begins."""

    start: tuple[float, float, float] = (-1.0, 0.0, 0.0)
    """x, y in metres and heading in radians, world."""
    layout: Layout | None = None
    """What stands in the arena."""


@dataclass(frozen=True)
class Scenario:
    """One flight."""

    name: str
    fly: Callable[[Trial], Iterable[Result]]
    rows: tuple[str, ...]
    """The rows that it gives."""
    setting: Callable[[], StartCondition] = StartCondition
    """Where it begins; called when it is flown."""
    parameters: Mapping[str, float] = field(default_factory=dict)
    """Of the autopilot before the flight."""
    only: AutopilotName | None = None
    """The autopilot that it is about; None for both."""


def first_flight(trial: Trial) -> Iterable[Result]:
    """A dry run, then a flight with stock failsafe parameters: connecting, arming, taking off, flying, landing."""
    trial.fly([Step(seconds=0.6)], dry=True)
    dry = trial.wait_for_end()
    began = trial.bridge.recording.path[0].time
    trial.fly(
        [
            Step(forward=0.5, seconds=3.0),
            Step(yaw_rate=0.5, seconds=3.0),
            Step(yaw_rate=-0.5, seconds=1.5),
            Step(forward=0.3, seconds=1.2),
        ]
    )
    trial.wait_for_flight()
    status = trial.wait_for_end()
    x, y = greatest_xy(trial)
    events = trial.events()
    heard = next((e.time for e in events if e.kind == "note" and e.values["text"].startswith("heard")), None)
    heard_after = elapsed(heard, trial.began)
    yield Result("connect", f"heard {duration(heard_after)} after the command, after a dry run", dry == 0)
    errors = pose_errors(trial)
    off = statistics.median(error for error, _height in errors)
    ready = elapsed(trial.phase_at("ready"), began)
    yield Result(
        "motion capture fused",
        f"ready {duration(ready)} after boot; told {100 * off:.1f} cm from the truth (median of {len(errors)})",
        off < 0.05,
    )
    written = re.findall(r"^(\w+): \S+ → \S+", trial.pilot.text, re.MULTILINE)
    yield Result("parameters", f"{len(written)} stock values refused and written: {', '.join(written)}", bool(written))
    taking, hovering = trial.phase_at("taking off"), trial.phase_at("holding")
    armed = next((time for time, _mode, armed in trial.bridge.recording.modes if armed), None)
    if taking is None or armed is None:
        raise TrialError("it was never armed")
    yield Result("arming", f"armed {duration(elapsed(armed, taking))} after the order", True)
    path = [point for point in trial.bridge.recording.path if point.time >= armed]
    up = [point for point in path if hovering is not None and point.time <= hovering]
    drift = max(math.hypot(point.x - path[0].x, point.y - path[0].y) for point in up) if up else math.inf
    highest = max(point.z for point in path)
    yield Result(
        "take-off",
        f"hovers after {duration(elapsed(hovering, taking))}, at most {highest:.2f} m high, {drift:.2f} m sideways",
        hovering is not None and drift < 0.25 and highest < 1.0,
        values={"sideways": drift, "highest": highest},
    )
    yield flown_setpoints(trial)
    heights = [height for _error, height in errors]
    true = [point_at(trial, e.values["image_time"]).z for e in events if e.kind == "observation"]
    yield Result(
        "height",
        f"asked for {FLIGHT_HEIGHT:.2f} m, true {min(true):.2f} to {max(true):.2f} m; told at most "
        f"{max(map(abs, heights)):.2f} m wrong",
        max(map(abs, heights)) < 0.1,
        values={"least": min(true), "most": max(true)},
    )
    ordered = next((e.time for e in events if e.kind == "order" and e.values["text"] == "land"), None)
    down = trial.disarmed_at(ordered or armed)
    if ordered is None:
        raise TrialError("the policy never came to its STOP")
    slid = math.hypot(*_between(trial, ordered, trial.now))
    yield Result(
        "STOP, land, disarm",
        f"disarmed {duration(elapsed(down, ordered))} after STOP, {slid:.2f} m from there; exit status {status}",
        down is not None and status == 0 and slid < 0.3,
        x,
        y,
    )


def _between(trial: Trial, begin: float, end: float) -> tuple[float, float]:
    a, b = point_at(trial, begin), point_at(trial, end)
    return b.x - a.x, b.y - a.y


def flown_setpoints(trial: Trial) -> Result:
    """Whether forward is forward and left is left, by the decisions that were flown."""
    decided = [(e.time, e.values["forward"], e.values["yaw_rate"]) for e in trial.events() if e.kind == "decision"]
    ahead = [time for time, forward, _turn in decided if forward > 0.4]
    left = [time for time, _forward, turn in decided if turn > 0.4]
    if not ahead or not left:
        raise TrialError(f"it was down before it had flown ahead and turned: {trial.events()[-1].values.get('text')}")
    begin = ahead[-1] - 1.5  # it has accelerated by then
    dx, dy = _between(trial, begin, ahead[-1])
    aside = math.degrees(math.remainder(math.atan2(dy, dx) - point_at(trial, begin).yaw, math.tau))
    speed = math.hypot(dx, dy) / (ahead[-1] - begin)
    turned = math.remainder(point_at(trial, left[-1]).yaw - point_at(trial, left[0] + 0.3).yaw, math.tau)
    rate = turned / (left[-1] - left[0] - 0.3)
    return Result(
        "setpoints and yaw sign",
        f"0.5 m/s forward: {speed:.2f} m/s, {aside:+.0f}° off; 0.5 rad/s left: {rate:+.2f} rad/s",
        abs(aside) < SIGN and 0.35 < speed < 0.65 and 0.35 < rate < 0.65,
    )


def full_speed_at_a_fence(trial: Trial) -> Iterable[Result]:
    """Fly straight at the red fence at full speed, and go on asking for it."""
    trial.fly([Step(forward=MAX_FORWARD, seconds=8.0)])
    begun = trial.wait_for_flight()
    trial.wait_for_end()
    x, y = greatest_xy(trial)
    flying = [point for point in trial.bridge.recording.path if point.time > begun]
    fastest = max(point.speed for point in flying)
    yield Result(
        "full speed at a fence",
        f"at {fastest:.2f} m/s, came to {ARENA_HALF - x:.2f} m from it, down {ARENA_HALF - flying[-1].x:.2f} m from it",
        ARENA_HALF - x > HULL and fastest > 0.5,
        x,
        y,
    )


def _cruise(trial: Trial, seconds: float = 25.0, speed: float = 0.3) -> float:
    """Fly slowly ahead; returns when the drone moves."""
    trial.fly([Step(forward=speed, seconds=seconds)])
    trial.wait_for_flight()
    trial.wait("the drone moves", lambda: trial.point.speed > 0.7 * speed, 15.0)
    return trial.mark()


def _landing_result(trial: Trial, row: str, begin: float, hold: float | None, land: float) -> Result:
    """The row of something that must bring the drone down, and to rest over the floor within three seconds.

    Args:
        trial: The flight.
        row: Its name.
        begin: When it happened.
        hold: Within how many seconds the guardian must hold; None if it is not asked.
        land: Within how many seconds the land mode must show.
    """
    trial.wait("the drone is disarmed", lambda: trial.disarmed_at(begin) is not None, 60.0)
    landing = elapsed(trial.mode_at(trial.stack.land_mode, begin), begin)
    disarmed = elapsed(trial.disarmed_at(begin), begin)
    still = elapsed(stopped_at(trial, begin), begin)
    held = elapsed(trial.phase_at("holding", begin), begin)
    x, y = greatest_xy(trial)
    seen = f"at rest {duration(still)}, LAND {duration(landing)}, disarmed {duration(disarmed)}"
    holds = within(landing, land) and within(disarmed, land + DOWN_WITHIN) and within(still, 3.0) and inside(x, y)
    if hold is not None:
        seen, holds = f"hold {duration(held)}, {seen}", holds and within(held, hold)
    return Result(row, seen, holds, x, y)


def ctrl_c(trial: Trial) -> Iterable[Result]:
    """Press Ctrl-C in the pilot's terminal."""
    begin = _cruise(trial)
    trial.pilot.interrupt()
    result = _landing_result(trial, "Ctrl-C", begin, None, 1.0)
    status = trial.wait_for_end(20.0)
    yield replace(result, seen=f"{result.seen}, exit status {status}", holds=result.holds and status == 130)


def lands_after(
    name: str,
    row: str,
    cause: Callable[[Trial, float], None],
    hold: float | None,
    land: float,
    *,
    parameters: Mapping[str, float] | None = None,
    only: AutopilotName | None = None,
) -> Scenario:
    """A flight in which something happens that must bring the drone down.

    Args:
        name: Of the flight.
        row: Its row.
        cause: Makes it happen, at a time of the bridge's clock.
        hold: Within how many seconds the guardian must hold; None if it is not asked.
        land: Within how many seconds the land mode must show.
        parameters: Of the autopilot.
        only: The autopilot that it is about; None for both.
    """

    def fly(trial: Trial) -> Iterable[Result]:
        begin = _cruise(trial)
        cause(trial, begin)
        yield _landing_result(trial, row, begin, hold, land)

    return Scenario(name, fly, (row,), parameters=parameters or {}, only=only)


def taken_over(trial: Trial, brake: bool = False) -> Iterable[Result]:
    """The safety pilot moves the mode switch, to ArduPilot's BRAKE if asked, and flies from then on."""
    begin = _cruise(trial)
    trial.bridge.take_over(brake=brake)
    released = trial.wait("the drone is released", lambda: trial.phase_at("released") is not None, 10.0)
    trial.wait("a while", lambda: trial.now > begin + AFTER_TAKEOVER, 2 * AFTER_TAKEOVER)
    said = trial.phase_at("released") or released
    modes = [(time, mode) for time, mode, _armed in trial.bridge.recording.modes if time >= begin]
    taken = modes[0][0] if modes else begin
    later = modes[-1][1] if modes else -1
    kinds = sorted({message.get_type() for time, message in sent_packets(trial) if time > said + 0.1})
    beats = [time for time, message in sent_packets(trial) if message.get_type() == "HEARTBEAT" and time > said]
    x, y = greatest_xy(trial)
    name = trial.stack.mode_name
    kept = len(modes) == 1 and later != trial.stack.land_mode
    yield Result(
        "pilot takes over" + " (BRAKE)" * brake,
        f"released {duration(elapsed(said, taken))} after {name(modes[0][1] if modes else -1)} showed; "
        f"then sent: {', '.join(kinds) or 'nothing'} ({len(beats)} heartbeats in {AFTER_TAKEOVER:g} s); "
        f"after {AFTER_TAKEOVER:g} s in {name(later)}",
        kept and set(kinds) <= {"HEARTBEAT"} and within(elapsed(said, taken), 0.5) and inside(x, y),
        x,
        y,
    )


@dataclass(frozen=True)
class MocapFaultFlight:
    """A flight at full speed in which motion capture goes wrong."""

    kind: str
    """stops, freezes, jumps or drifts."""
    near: bool
    """Whether it flies within 0.6 m along a fence, or through the middle."""
    number: int
    """Of the flight."""

    @property
    def row(self) -> str:
        """Its name."""
        return f"motion capture {self.kind}, {'near a fence' if self.near else 'in the middle'}, {self.number}"

    @property
    def start(self) -> tuple[float, float, float]:
        """Where the flight begins, and its heading: along one of the four fences, or by the centre."""
        heading = math.pi / 2 * (self.number % 4)
        aside = ARENA_HALF - NEAR if self.near else 0.3 * (self.number % 3 - 1)
        x, y = -1.5, -aside  # the fence on the right
        cos, sin = math.cos(heading), math.sin(heading)
        return cos * x - sin * y, sin * x + cos * y, heading

    def fault(self, now: float) -> Fault:
        """The fault; a wrong position is further from the fence than the true one, so that it leads the drone there."""
        inwards = math.pi / 2 * (self.number % 4) + math.pi / 2
        return {
            "stops": PoseDropout(now),
            "freezes": MocapFreeze(now),
            "jumps": MocapJump(now, distance=JUMP, bearing=inwards),
            "drifts": MocapDrift(now, speed=DRIFT, bearing=inwards),
        }[self.kind]

    def fly(self, trial: Trial) -> Iterable[Result]:
        """Fly at full speed, inject the fault, and go on asking for full speed."""
        trial.fly([Step(forward=MAX_FORWARD, seconds=8.0, line=self.start)])
        trial.wait_for_flight()
        trial.wait("full speed", lambda: self._at_full_speed(trial), 10.0)
        begin, at = trial.mark(), trial.point
        trial.bridge.faults.add(self.fault(begin))
        trial.wait("the drone is disarmed", lambda: trial.disarmed_at(begin) is not None, 90.0)
        why = next(
            (e.values["text"] for e in trial.events() if e.kind == "phase" and "landing" in e.values["text"]), ""
        )
        landing = elapsed(trial.mode_at(trial.stack.land_mode, begin), begin)
        disarmed = elapsed(trial.disarmed_at(begin), begin)
        x, y = greatest_xy(trial)
        yield Result(
            self.row,
            f"at {at.speed:.2f} m/s, {to_fence(at):.2f} m from a fence: LAND {duration(landing)}, "
            f"disarmed {duration(disarmed)}, down {to_fence(trial.point):.2f} m from a fence ({why})",
            inside(x, y) and (self.kind == "drifts" or within(landing, 1.5)),
            x,
            y,
            {"land": landing if landing is not None else math.inf},
        )

    def _at_full_speed(self, trial: Trial) -> bool:
        point = trial.point
        flown = math.dist((point.x, point.y), self.start[:2])
        return flown > RUN_UP and point.speed > FULL_SPEED and (not self.near or to_fence(point) <= NEAR_MOST)

    def scenario(self) -> Scenario:
        """As a scenario."""
        return Scenario(f"mocap-{self.kind}-{self.number}", self.fly, (self.row,), lambda: StartCondition(self.start))


MOCAP_FAULT_FLIGHTS = tuple(
    MocapFaultFlight(kind, (number + index) % 2 == 0, number)
    for number in range(5)
    for index, kind in enumerate(("stops", "freezes", "jumps", "drifts"))
)
"""Twenty flights, half of them near a fence."""

SCENARIOS: tuple[Scenario, ...] = (
    Scenario(
        "first",
        first_flight,
        (
            "connect",
            "motion capture fused",
            "parameters",
            "arming",
            "take-off",
            "setpoints and yaw sign",
            "height",
            "STOP, land, disarm",
        ),
        lambda: StartCondition((-0.5, -0.3, 0.4)),
    ),
    Scenario("fence", full_speed_at_a_fence, ("full speed at a fence",), lambda: StartCondition((-1.2, 0.2, 0.0))),
    Scenario("ctrl-c", ctrl_c, ("Ctrl-C",)),
    lands_after("pilot-killed", "pilot SIGKILL", lambda trial, _now: trial.pilot.kill(children=False), 0.3, 2.0),
    lands_after(
        "all-killed", "pilot and guardian killed", lambda trial, _now: trial.pilot.kill(children=True), None, 4.0
    ),
    lands_after(  # any system from 245 to 255 counts as a ground station, and another one sends heartbeats beside us
        "all-killed-gcs",
        "the same, MAV_GCS_SYSID_HI 255 before",
        lambda trial, _now: trial.pilot.kill(children=True),
        None,
        4.0,
        parameters={"MAV_GCS_SYSID_HI": 255},
        only="ardupilot",
    ),
    lands_after(
        "camera-frozen", "camera frozen", lambda trial, now: trial.bridge.faults.add(FrozenCamera(now)), 1.5, 6.0
    ),
    lands_after(
        "camera-silent",
        "camera silent",
        lambda trial, now: trial.bridge.faults.add(FrozenCamera(now, still=False)),
        1.5,
        6.0,
    ),
    Scenario("takeover", taken_over, ("pilot takes over",)),
    Scenario("takeover-brake", partial(taken_over, brake=True), ("pilot takes over (BRAKE)",), only="ardupilot"),
    *(flight.scenario() for flight in MOCAP_FAULT_FLIGHTS),
)
"""The whole list except the instructions."""
