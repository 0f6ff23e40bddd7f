"""Flies one instruction on a MAVLink drone: checks and confirmation before it, the report after it."""

import math
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from wordwing.devices import one_thread
from wordwing.errors import WordwingError
from wordwing.evaluation.demo import before_flight
from wordwing.execution.execution import Execution
from wordwing.execution.runner import fly
from wordwing.flight.arena import Arena
from wordwing.flight.calibration import Calibration
from wordwing.flight.camera_stream import CameraStream
from wordwing.flight.decision_latency import check_latency, decision_latency
from wordwing.flight.guardian.process import GuardianConfig
from wordwing.flight.guardian.protocol import GuardianState, Phase
from wordwing.flight.guardian_client import ProcessClient
from wordwing.flight.logs import EVENTS, FlightLog
from wordwing.flight.mavlink.clock import Clock, SystemClock
from wordwing.flight.mavlink.link import open_link
from wordwing.flight.mavlink_vehicle import MavlinkVehicle
from wordwing.flight.options import PREFIX, DroneOptions
from wordwing.flight.replay import replay
from wordwing.interface import FlightOverError, Policy, Setpoint, Vehicle
from wordwing.language.text_checks import word_issues
from wordwing.policies.learned import LearnedPolicy
from wordwing.policies.loading import BASELINES, load_policy
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task

STEPS = 100
"""Decisions that a flight is given."""

PATIENCE = 5.0
"""How long a dry run waits for something to look at, seconds."""


@one_thread()
def fly_drone(
    instruction: str,
    url: str,
    policy_name: str,
    options: DroneOptions,
    layout_file: Path | None,
    out: Path,
    policy: Policy | None = None,
) -> None:
    """Fly once over MAVLink, and make a video from its log; raises `FlightOverError` in the end if it ended early.

    Args:
        instruction: What the drone is to do, in plain English.
        url: Of the link, after `mavlink:`.
        policy_name: Who flies.
        options: How to reach the drone.
        layout_file: What stands in the arena, for the video and the judge alone; the policy does not see it.
        out: Folder of the video.
        policy: Flies instead of the one that is named; no video is made.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)  # shells let what runs in the background ignore it
    arena = Arena.load(options.arena)
    calibration = Calibration.load(options.calibration)
    if not options.camera:
        raise WordwingError("a drone needs its camera: --camera /dev/video0, or rtsp://…")
    open_link(url).close()  # a wrong address fails at once, and here
    layout = None if layout_file is None else Layout.load(layout_file)
    if policy_name in BASELINES:
        raise WordwingError(f"{policy_name} does not look; over MAVLink only learned policies fly")
    named, policy = policy is None, policy or load_policy(policy_name, "lab")
    if isinstance(policy, LearnedPolicy):
        marked = word_issues(instruction, policy.vocabulary)
        for sentence in before_flight(instruction, layout, marked, Path(policy_name).resolve().name):
            print(sentence, flush=True)
    decision_latency(policy, instruction, SystemClock())  # the first decisions of a process take longer
    folder = options.log or out / time.strftime("log-%Y%m%d-%H%M%S", time.gmtime())
    with FlightLog.fresh(folder, record=options.record) as log:
        guardian = ProcessClient(
            GuardianConfig(
                url,
                arena,
                options.mocap,
                log=str(folder.resolve()),
                key=None if options.sign is None else str(options.sign.resolve()),
                dry=options.dry_run,
                may_set_parameters=options.set_parameters,
                speed=options.speed,
            )
        )

        def check(state: GuardianState) -> None:
            """With everything running that runs in flight: camera, guardian, and the lab that renders images."""
            check_latency(decision_latency(policy, instruction, guardian.clock), lab=state.lab)
            confirm(state, instruction, options)

        vehicle = (DryVehicle if options.dry_run else MavlinkVehicle)(
            guardian,
            CameraStream(options.camera, calibration, guardian.clock),
            check,
            log=log,
            approve=approve if options.set_parameters else None,
            dry=options.dry_run,
        )
        log.begin(guardian.clock.now(), time.time(), instruction, policy_name, PREFIX + url, arena, layout)
        try:
            with vehicle:
                task = Task(instruction, layout or Layout(()), (0.0, 0.0), 0.0, np.zeros((0, 2)))
                flight = fly_logged(policy, vehicle, task, log, guardian.clock)
            early = report_end(flight, vehicle.state, dry=options.dry_run)
        finally:
            print(f"log: {folder / EVENTS}")
            if log.failed is not None:
                print(f"the log is not complete ({log.failed})")
    if named and not options.dry_run:
        try:
            replay(folder, out, policy_name)
        except WordwingError as error:  # a flight that ended before it began leaves no video
            print(f"no video: {error}")
    if early is not None:
        raise FlightOverError(early)


class DryVehicle(MavlinkVehicle):
    """A drone in a dry run: prints, at each decision, where it is and what would be sent."""

    def send(self, setpoint: Setpoint) -> Setpoint:
        """Print and return what would be sent."""
        would = super().send(setpoint)
        speed, turn = float(would.forward[0]), math.degrees(float(would.yaw_rate[0]))
        what = f"would send {speed:.2f} m/s forward, {turn:+.0f}°/s (left is +)"
        if self._refused:
            ages = f"its image was {self._image_age:.2f} s old, it took {self._thinking:.2f} s"
            what = f"would hover: the decision was refused ({ages})"
        self._say(f"at {_where(self.state)}: {what}")
        return would

    def _check(self) -> None:
        """No guardian ends a dry run, so that a camera that has died would be waited for without end."""
        super()._check()
        if self._guardian.clock.now() - max(self._begun, self._looked_at, self._sent_at) > PATIENCE:
            raise FlightOverError(f"no image with a pose of its moment has come for {PATIENCE:g} s")


def fly_logged(policy: Policy, vehicle: Vehicle, task: Task, log: FlightLog, clock: Clock) -> Execution:
    """Fly a task to its end. If the guardian ended it, the guardian's reason is in the log."""
    try:
        [flight] = fly(policy, vehicle, [task], max_steps=STEPS)
    except WordwingError as error:  # of a policy whose decisions make no sense
        raise FlightOverError(str(error)) from None
    if flight.interrupted is None:
        log.end(clock.now(), flight.ended_by[0], flight.end)
    return flight


def confirm(state: GuardianState, instruction: str, options: DroneOptions, ask: Callable[[str], str] = input) -> None:
    """Have a person at a terminal say that this drone may fly this now; raises if not."""
    if options.speed != 1 and not state.lab:
        raise WordwingError("--speed is for wordwing's lab, and this vehicle does not say that it is the lab")
    if options.yes and state.lab:
        return
    if options.yes:
        raise WordwingError("--yes is for wordwing's lab, and this vehicle does not say that it is the lab")
    if not sys.stdin.isatty():
        raise WordwingError("a real drone is armed only after a confirmation typed on a terminal; there is none")
    print(f"vehicle      system {state.system}, {state.autopilot} {state.version or ''}".rstrip())
    print(f"battery      {'unknown' if state.battery is None else f'{state.battery:.0%}'}")
    print(f"in the arena {_where(state)}")
    print(f'instruction  "{instruction}"')
    print("A safety pilot must be ready to take over. Nothing avoids obstacles.")
    wanted = f"fly {state.system}"
    if not _typed(wanted, f'Type "{wanted}" to arm it, anything else to leave it on the floor: ', ask):
        raise WordwingError("not confirmed; the drone stays on the floor")


def _where(state: GuardianState | None) -> str:
    if state is None or state.pose is None:
        return "an unknown place"
    x, y, z, _roll, _pitch, yaw = state.pose
    return f"x {x:.2f} m, y {y:.2f} m, height {z:.2f} m, heading {math.degrees(yaw):.0f}°"


def _typed(wanted: str, question: str, ask: Callable[[str], str]) -> bool:
    try:
        return ask(question).strip().lower() == wanted
    except EOFError:  # Ctrl-D
        return False


def approve(state: GuardianState, ask: Callable[[str], str] = input) -> None:
    """Show which parameters would be written, and ask; raises if they must not be."""
    for finding in state.parameters:
        if not finding.right and finding.value is not None:
            print(f"{finding.name}: {finding.value:g} → {finding.write:g} ({finding.why})")
    if state.lab:
        return
    if not sys.stdin.isatty() or not _typed("write", 'Type "write" to write them: ', ask):
        raise WordwingError("not confirmed; no parameter was written")


def report_end(flight: Execution, state: GuardianState | None, *, dry: bool) -> str | None:
    """Print what has become of the drone.

    Returns:
        Why the flight ended early; None if the policy ended it or its steps ran out, and the drone landed by our order.
    """
    if dry:
        ending = "it would have stopped" if flight.stopped else "it had not stopped"
        fastest = flight.setpoints[:, 0].max(initial=0.0)
        print(f"dry run: {flight.end} decisions, at most {fastest:.2f} m/s; {ending}; nothing was armed")
        return flight.interrupted
    end = "it is not known what has become of the drone; be ready to take over"
    if state is not None:
        end = f"the drone is {state.phase.value}: {state.why}"
    print(end, flush=True)
    landed = state is not None and state.phase is Phase.LANDED and state.reason == "ordered"
    return flight.interrupted if landed or flight.interrupted else f"the drone has not landed by our order: {end}"
