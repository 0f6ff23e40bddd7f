"""What surrounds a flight over MAVLink: what is asked before it, and what its log says after it."""

import io
import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

pytest.importorskip("pymavlink")

from command_line import refused
from served_flight import CALM
from wordwing.cli import main
from wordwing.errors import WordwingError
from wordwing.execution.execution import Execution
from wordwing.execution.runner import fly
from wordwing.flight.flying import DryVehicle, approve, confirm, fly_logged, report_end
from wordwing.flight.guardian.protocol import GuardianState, Phase
from wordwing.flight.lockstep import LockstepCamera, LockstepClient
from wordwing.flight.logs import FlightLog, read_events
from wordwing.flight.mavlink.clock import ManualClock
from wordwing.flight.mavlink.parameters import ParameterFinding
from wordwing.flight.mavlink_vehicle import MavlinkVehicle
from wordwing.flight.options import DroneOptions
from wordwing.flight.served.faults import FrozenCamera, LowBattery, Takeover
from wordwing.flight.served.vehicle import ServedLab
from wordwing.frames import Pose
from wordwing.interface import Action, FlightOverError, Observation, Setpoint, Vehicle
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task

WRONG = ParameterFinding("GUID_TIMEOUT", 3.0, "from 0.1 to 0.5", 0.5, right=False, why="it must stop soon")
REAL = GuardianState(
    time=10.0,
    phase=Phase.READY,
    why="nothing speaks against arming",
    done=False,
    unready=(),
    autopilot="ArduPilot",
    system=7,
    version="4.8.0",
    lab=False,
    armed=False,
    mode="GUIDED",
    battery=0.83,
    pose=(0.5, -1.25, 0.1, 0.0, 0.0, np.pi / 2),
    pose_time=10.0,
    pose_age=0.0,
    heartbeat_age=0.1,
    setpoint=None,
    decision_time=None,
    parameters=(WRONG,),
)
LAB = replace(REAL, lab=True)
TASK = Task("go", Layout(()), (0.0, 0.0), 0.0, np.zeros((0, 2)))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setattr("sys.stdin", Terminal())


def nobody(question: str) -> str:
    raise AssertionError(question)


def gone(question: str) -> str:
    raise EOFError


def test_the_confirmation_shows_vehicle_battery_place_and_instruction(terminal, capsys):
    asked = []
    confirm(REAL, "go to the barrel", DroneOptions(), lambda question: asked.append(question) or " Fly 7 ")
    said = capsys.readouterr().out
    for shown in ("system 7, ArduPilot 4.8.0", "83%", "x 0.50 m, y -1.25 m", "heading 90°", '"go to the barrel"'):
        assert shown in said
    assert 'Type "fly 7" to arm it' in asked[0]


@pytest.mark.parametrize("answer", ["", "y", "yes", "fly", "fly 1", "fly 77"])
def test_anything_else_leaves_the_drone_on_the_floor(answer, terminal):
    with pytest.raises(WordwingError, match="not confirmed; the drone stays on the floor"):
        confirm(REAL, "go", DroneOptions(), lambda question: answer)


def test_a_closed_keyboard_confirms_nothing(terminal):
    with pytest.raises(WordwingError, match="not confirmed; the drone stays on the floor"):
        confirm(REAL, "go", DroneOptions(), gone)
    with pytest.raises(WordwingError, match="not confirmed; no parameter was written"):
        approve(REAL, gone)


def test_yes_is_for_the_lab_alone(terminal):
    confirm(LAB, "go", DroneOptions(yes=True), nobody)
    with pytest.raises(WordwingError, match="--yes is for wordwing's lab"):
        confirm(REAL, "go", DroneOptions(yes=True), nobody)


def test_another_clock_is_for_the_lab_alone(terminal):
    confirm(LAB, "go", DroneOptions(yes=True, speed=2.0), nobody)
    with pytest.raises(WordwingError, match="--speed is for wordwing's lab"):
        confirm(REAL, "go", DroneOptions(speed=2.0), nobody)


def test_parameters_are_written_only_after_old_and_new_were_shown_and_confirmed(terminal, capsys):
    approve(REAL, lambda question: "write")
    assert "GUID_TIMEOUT: 3 → 0.5 (it must stop soon)" in capsys.readouterr().out
    with pytest.raises(WordwingError, match="not confirmed; no parameter was written"):
        approve(REAL, lambda question: "yes")


@pytest.mark.parametrize("speed", ["0", "nan", "-1", "inf"])
def test_a_clock_that_cannot_run_is_refused(speed, capsys):
    said = refused(capsys, "fly", "go", "--vehicle", "mavlink:udp:127.0.0.1:9", "--speed", speed)
    assert "it must be more than 0" in said


class Fragile(Vehicle):
    """Stands still, and ends the flight after some observations."""

    def __init__(self, observations: int) -> None:
        self.left = observations

    def connect(self) -> None: ...

    def observe(self) -> Observation:
        self.left -= 1
        if self.left < 0:
            raise FlightOverError("the flight is over, released: somebody took over")
        pose = Pose.level(torch.zeros(1, 2), torch.zeros(1), 0.7)
        return Observation(torch.zeros(1, 72, 128, 3, dtype=torch.uint8), pose, torch.zeros(1))

    def send(self, setpoint: Setpoint) -> Setpoint:
        return setpoint

    def wait(self, seconds: float) -> None: ...

    def land(self) -> None: ...

    def close(self) -> None: ...


class Stops:
    """After some decisions."""

    needs_gold_path = False

    def __init__(self, decisions: int = 2) -> None:
        self.decisions = decisions

    def reset(self, instructions, start, gold_paths=None):
        self.left = self.decisions

    def act(self, observation: Observation) -> Action:
        self.left -= 1
        return Action(Setpoint.zero(1), torch.tensor([self.left < 0]))


def test_a_dry_run_tells_what_would_be_sent_and_from_where():
    lab = ServedLab(Layout(()), (1.0, -0.5), math.pi / 2, config=CALM)
    guardian, said = LockstepClient(lab, dry=True), []
    vehicle = DryVehicle(guardian, LockstepCamera(lab, guardian.clock), nobody, say=said.append, dry=True)
    with vehicle:
        vehicle.observe()
        sent = vehicle.send(Setpoint(torch.tensor([0.05]), torch.tensor([-0.1])))
    assert float(sent.forward[0]) == pytest.approx(0.05)
    assert said[-1] == (
        "at x 1.00 m, y -0.50 m, height 0.11 m, heading 90°: would send 0.05 m/s forward, -6°/s (left is +)"
    )
    assert not lab.armed
    assert not lab.autopilot.accepted


class Slow(Stops):
    """Takes so long that its images are old."""

    def __init__(self, guardian: LockstepClient, seconds: float, decisions: int = 2) -> None:
        super().__init__(decisions)
        self.guardian, self.seconds = guardian, seconds

    def act(self, observation: Observation) -> Action:
        self.guardian.sleep(self.seconds)
        return super().act(observation)


def test_a_dry_run_whose_decisions_are_all_refused_says_so_and_comes_to_its_end(capsys):
    lab = ServedLab(Layout(()), (1.0, -0.5), math.pi / 2, config=CALM)
    guardian, said = LockstepClient(lab, dry=True), []
    vehicle = DryVehicle(guardian, LockstepCamera(lab, guardian.clock), nobody, say=said.append, dry=True)
    with vehicle:
        [flight] = fly(Slow(guardian, 0.6), vehicle, [TASK])
    report_end(flight, vehicle.state, dry=True)
    refusals = [words for words in said if "would hover" in words]
    assert len(refusals) == 3  # two decisions, and the standstill after a STOP that took as long
    assert "the decision was refused (its image was 0.66 s old, it took 0.60 s)" in refusals[0]
    assert not flight.setpoints.any()
    assert "dry run: 2 decisions, at most 0.00 m/s; it would have stopped" in capsys.readouterr().out


class Blind:
    """A camera that has died."""

    failure = "connection refused"

    def start(self, timeout: float = 10.0) -> None: ...

    def latest(self) -> None: ...

    def unchanged(self, now: float) -> float:
        return math.inf

    def close(self) -> None: ...


def test_a_dry_run_does_not_wait_for_ever_for_an_image():
    guardian = LockstepClient(ServedLab(Layout(()), (0.0, 0.0), 0.0, config=CALM), dry=True)
    vehicle = DryVehicle(guardian, Blind(), nobody, say=lambda words: None, dry=True)
    with vehicle, pytest.raises(FlightOverError, match="no image with a pose of its moment has come for 5 s"):
        vehicle.observe()


@pytest.mark.parametrize(
    ("faults", "early"),
    [
        ((), None),
        ((Takeover(8.0),), "released: the mode is LOITER without our order"),
        ((FrozenCamera(7.0, still=False),), "landing: it has hovered for 3 s.*the camera has shown nothing new for"),
        ((LowBattery(8.0, level=18.0),), "landing: the battery has 18%"),
    ],
)
def test_only_a_flight_that_its_policy_ended_and_that_landed_by_our_order_has_not_ended_early(faults, early, capsys):
    lab = ServedLab(Layout(()), (0.0, 0.0), 0.0, config=CALM, faults=faults)
    guardian = LockstepClient(lab)
    vehicle = MavlinkVehicle(guardian, LockstepCamera(lab, guardian.clock), lambda state: None, say=lambda words: None)
    with vehicle:
        [flight] = fly(Stops(30), vehicle, [TASK])
    found = report_end(flight, vehicle.state, dry=False)
    assert found == early or re.search(early, found)
    assert "the drone is " in capsys.readouterr().out


@pytest.mark.parametrize(("seconds", "why"), [(1.35, "the pilot has been silent for"), (0.7, "it has hovered for")])
def test_a_flight_that_slow_decisions_end_tells_how_long_they_took(seconds, why):
    lab = ServedLab(Layout(()), (0.0, 0.0), 0.0, config=CALM)
    guardian = LockstepClient(lab)
    vehicle = MavlinkVehicle(guardian, LockstepCamera(lab, guardian.clock), lambda state: None, say=lambda words: None)
    with vehicle:
        [flight] = fly(Slow(guardian, seconds, 30), vehicle, [TASK])
    assert why in flight.interrupted
    assert f"a decision took {seconds:.2f} s and may take 0.3 s; this machine is probably busy" in flight.interrupted


STOPPED = Execution.single(TASK, np.zeros((1, 3)), np.zeros((1, 4)), np.zeros((0, 2)), 0, "stop")
"""By its policy, after nothing."""


@pytest.mark.parametrize(
    ("phase", "why"),
    [
        (Phase.RELEASED, "the mode is STABILIZE without our order"),
        (Phase.LOST, "the autopilot has been silent for 2.1 s"),
        (Phase.LANDING, "the pilot ordered it"),
        (Phase.LANDED, "disarmed; it came down because the battery has 18%"),
        (None, "be ready to take over"),
    ],
)
def test_a_drone_that_did_not_land_by_our_order_ends_a_flight_early_whatever_its_policy_did(phase, why, capsys):
    state = None if phase is None else replace(REAL, phase=phase, why=why)
    assert why in report_end(STOPPED, state, dry=False)
    assert why in capsys.readouterr().out  # at once, before any film is made


def test_a_landing_by_our_order_is_known_by_its_reason_not_by_its_words(capsys):
    state = replace(REAL, phase=Phase.LANDED, why="in other words", reason="ordered")
    assert report_end(STOPPED, state, dry=False) is None
    assert report_end(STOPPED, replace(state, phase=Phase.LANDING), dry=False) is not None


def test_an_aborted_flight_has_an_exit_status_of_its_own(monkeypatch, capsys):
    def fly(*_: object) -> None:
        raise FlightOverError("the flight is over, landing: the battery has 18%")

    monkeypatch.setattr("wordwing.flight.flying.fly_drone", fly)
    with pytest.raises(SystemExit) as end:
        main(["fly", "go", "--vehicle", "mavlink:udp:127.0.0.1:9"])
    assert end.value.code == 3
    assert capsys.readouterr().err == "wordwing: the flight is over, landing: the battery has 18%\n"


@pytest.mark.parametrize(("observations", "ends"), [(100, [("stop", 2)]), (2, [])])
def test_only_a_flight_that_its_policy_ended_has_such_an_end_in_its_log(observations, ends, tmp_path):
    with FlightLog.fresh(tmp_path) as log:
        flight = fly_logged(Stops(), Fragile(observations), TASK, log, ManualClock(5.0))
    assert (flight.interrupted is None) == bool(ends)
    found = [(event.values["by"], event.values["decisions"]) for event in read_events(tmp_path)]
    assert found == ends
