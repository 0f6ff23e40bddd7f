"""The MAVLink vehicle in lock-step with the served lab: what it shows, what it sends, when it gives up."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from served_flight import CALM, QUICK
from wordwing.errors import WordwingError
from wordwing.execution.runner import fly
from wordwing.flight.guardian.protocol import GuardianState, Land, Phase, TakeOff
from wordwing.flight.lockstep import LockstepCamera, LockstepClient
from wordwing.flight.logs import FlightLog, read_events
from wordwing.flight.mavlink_vehicle import MavlinkVehicle
from wordwing.flight.served import faults
from wordwing.flight.served.vehicle import ServedLab
from wordwing.interface import Action, FlightOverError, Observation, Setpoint
from wordwing.lab.camera import LabCamera, LabCameraConfig
from wordwing.lab.vehicle import LabConfig
from wordwing.lens import Rectifier
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import Task

START = (0.5, -0.4, 0.9)
BOXES = Layout((Placement("Box", 1.3, 0.5), Placement("Banana", -1.0, -0.8)))


class Ahead:
    """Flies straight on for some decisions, then stops."""

    needs_gold_path = False

    def __init__(self, decisions: int = 5) -> None:
        self.decisions = decisions

    def reset(self, instructions, start, gold_paths=None):
        self.left = self.decisions

    def act(self, observation: Observation) -> Action:
        self.left -= 1
        return Action(Setpoint(torch.tensor([0.4]), torch.tensor([0.0])), torch.tensor([self.left < 0]))


def vehicle_of(lab: ServedLab, **options) -> tuple[MavlinkVehicle, LockstepClient]:
    guardian = LockstepClient(lab, dry=options.get("dry", False), may_set_parameters=options.get("approve") is not None)
    confirm = options.pop("confirm", lambda state: None)
    made = MavlinkVehicle(guardian, LockstepCamera(lab, guardian.clock), confirm, say=lambda words: None, **options)
    return made, guardian


def served(autopilot: str = "ardupilot", config: LabConfig = QUICK, layout: Layout = BOXES, **options) -> ServedLab:
    return ServedLab(layout, START[:2], START[2], autopilot=autopilot, config=config, **options)


def task() -> Task:
    return Task("go", BOXES, START[:2], START[2], np.zeros((0, 2)))


@pytest.mark.parametrize("autopilot", ["ardupilot", "px4"])
def test_a_flight_takes_off_flies_stops_and_lands(autopilot):
    lab = served(autopilot)
    vehicle, guardian = vehicle_of(lab)
    with vehicle:
        assert lab.autopilot.airborne
        [flight] = fly(Ahead(), vehicle, [task()])
    assert (flight.ended_by[0], flight.end, flight.interrupted) == ("stop", 5, None)
    assert guardian.guardian.phase is Phase.LANDED
    assert not lab.armed
    moved = flight.positions[-1, :2] - flight.positions[0, :2]
    along = moved @ [math.cos(START[2]), math.sin(START[2])]
    assert 0.3 < along < 0.75  # 1.5 s at 0.4 m/s, less getting up to it, and braking
    assert abs(flight.positions[:, 2] - 0.7).max() < 0.1
    assert lab.true_pose.xy[0].numpy() == pytest.approx(flight.positions[-1, :2], abs=0.15)


def test_an_observation_shows_where_it_was_seen_from():
    quiet = LabCameraConfig(exposure_spread=0.0, flicker=0.0, read_noise=0.0, shot_noise=0.0, exposure_time=0.0)
    lab = served(config=replace(CALM, camera=quiet))
    vehicle, _guardian = vehicle_of(lab)
    with vehicle:
        vehicle.observe()
        for _ in range(6):
            vehicle.send(Setpoint(torch.tensor([0.3]), torch.tensor([-0.8])))
            vehicle.wait(0.3)
            seen = vehicle.observe()
        camera, straighten = LabCamera(BOXES, np.random.default_rng(0), quiet), Rectifier(quiet.lens)
        now = lab.true_pose
    shown = seen.image[0].float() / 255
    miss = (shown - straighten(camera.raw(seen.pose, seen.pose))).abs().mean()
    assert miss < 0.01
    assert (shown - straighten(camera.raw(now, now))).abs().mean() > 3 * miss  # a picture is 60 ms old


def test_decisions_are_a_control_period_apart_and_what_was_sent_comes_back():
    lab = served()
    vehicle, guardian = vehicle_of(lab)
    times, sent = [], []
    with vehicle:
        vehicle.observe()
        for _ in range(5):
            times.append(guardian.clock.now())
            sent.append(float(vehicle.send(Setpoint(torch.tensor([2.0]), torch.tensor([0.0]))).forward[0]))
            vehicle.wait(0.3)
            vehicle.observe()
    assert np.diff(times) == pytest.approx(0.3, abs=0.03)
    assert sent == sorted(sent)
    assert sent[0] <= 1.5 * 0.1 + 1e-6  # the acceleration limit over one tick, or two
    assert sent[-1] == pytest.approx(0.7)
    flown = [wanted.forward for time, wanted in lab.autopilot.accepted if time > times[-1] + 0.1]
    assert flown[0] == pytest.approx(0.7)


def test_a_drone_is_not_armed_unless_that_is_confirmed():
    def refuse(state: GuardianState) -> None:
        assert state.lab
        assert state.phase is Phase.READY
        assert state.pose is not None
        assert state.pose[:2] == pytest.approx(START[:2], abs=0.05)
        raise WordwingError("not today")

    lab = served()
    vehicle, guardian = vehicle_of(lab, confirm=refuse)
    with pytest.raises(WordwingError, match="not today"), vehicle:
        pass
    guardian.sleep(3.0)
    assert not lab.armed
    assert not [command for _time, command, _answer in lab.commands if command.command == 400]


def test_a_reason_to_wait_is_told_once_however_its_numbers_change(monkeypatch):
    monkeypatch.setattr("wordwing.flight.mavlink_vehicle.READY_WITHIN", 6.0)
    lab, said = ServedLab(BOXES, (2.1, 0.0), 0.0, config=QUICK), []
    guardian = LockstepClient(lab)
    vehicle = MavlinkVehicle(guardian, LockstepCamera(lab, guardian.clock), lambda state: None, say=said.append)
    with pytest.raises(WordwingError, match=r"not ready after 6 s: the drone is at \(2\.\d\d, -?0\.0\d\)"), vehicle:
        pass
    assert len([words for words in said if "the drone is at" in words]) == 1


def test_a_guardian_that_is_gone_before_the_take_off_has_refused_a_flight_and_not_aborted_one():
    lab = served()
    vehicle, guardian = vehicle_of(lab)
    guardian.lost = "it was closed"
    with pytest.raises(WordwingError, match="it was closed") as refusal, vehicle:
        pass
    assert refusal.value.status == 2
    assert not lab.commands


def test_a_take_off_order_that_is_lost_does_not_make_the_pilot_wait_for_ever():
    vehicle, guardian = vehicle_of(served())
    order = guardian.order
    guardian.order = lambda given: None if isinstance(given, TakeOff) else order(given)
    with pytest.raises(WordwingError, match="not armed: the order to take off was not taken"), vehicle:
        pass
    assert guardian.guardian.phase is Phase.READY


def test_a_guardian_that_dies_in_the_air_is_told_and_its_last_words_are_not_taken_for_the_drones_state():
    lab = served()
    vehicle, guardian = vehicle_of(lab)
    vehicle.connect()
    assert vehicle.state is not None
    guardian.lost = "it was closed"  # no order, no packet: as if it had been killed
    with pytest.raises(FlightOverError, match=r"own failsafe has the drone now; be ready to take over"):
        vehicle.observe()
    assert vehicle.state is None


def test_a_vehicle_that_is_let_go_of_while_it_lands_still_says_so():
    vehicle, guardian = vehicle_of(served())
    vehicle.connect()
    guardian.order(Land())
    vehicle.close()
    assert vehicle.state is not None
    assert vehicle.state.phase is Phase.LANDING


def test_a_refused_arming_is_told_in_the_autopilots_own_words():
    lab = served(faults=[faults.RefusedArming(0.0, why="Compasses inconsistent")])
    vehicle, _guardian = vehicle_of(lab)
    with pytest.raises(WordwingError, match=r"refused to arm.*Compasses inconsistent"), vehicle:
        pass
    assert not lab.armed


@pytest.mark.parametrize("autopilot", ["ardupilot", "px4"])
def test_wrong_failsafe_parameters_keep_it_on_the_floor_until_they_are_written(autopilot):
    vehicle, _guardian = vehicle_of(served(autopilot, factory=True))
    with pytest.raises(WordwingError, match=r"it must be.*--set-parameters"), vehicle:
        pass
    shown: list[GuardianState] = []
    lab = served(autopilot, factory=True)
    vehicle, _guardian = vehicle_of(lab, approve=shown.append)
    with vehicle:
        assert lab.autopilot.airborne
    names = {finding.name for finding in shown[0].parameters if not finding.right}
    assert ("GUID_TIMEOUT" if autopilot == "ardupilot" else "COM_OF_LOSS_T") in names


def test_a_takeover_ends_the_flight_with_a_record_of_what_was_flown():
    lab = served(faults=[faults.Takeover(9.0)])
    vehicle, guardian = vehicle_of(lab)
    with vehicle:
        [flight] = fly(Ahead(100), vehicle, [task()])
    assert flight.interrupted is not None
    assert "without our order" in flight.interrupted
    assert len(flight.positions) == len(flight.setpoints) + 1 == flight.end + 1
    assert guardian.guardian.phase is Phase.RELEASED
    assert lab.autopilot.mode.name == "LOITER"


def test_a_dry_run_decides_and_never_arms():
    lab = served()
    vehicle, guardian = vehicle_of(lab, dry=True)
    with vehicle:
        [flight] = fly(Ahead(), vehicle, [task()])
    assert flight.end == 5
    assert flight.setpoints[:5, 0].max() > 0.1
    assert not lab.autopilot.accepted
    assert not [command for _time, command, _answer in lab.commands if command.command in (400, 176, 22)]
    assert any(event.kind == "would send" for event in guardian.guardian.events)


def test_the_log_holds_each_observation_decision_and_what_became_of_it(tmp_path):
    lab = served()
    with FlightLog.fresh(tmp_path / "log") as log:
        vehicle, guardian = vehicle_of(lab, log=log)
        with vehicle:
            [flight] = fly(Ahead(), vehicle, [task()])
    events = read_events(tmp_path / "log")
    kinds = [event.kind for event in events]
    assert kinds.count("observation") == len(flight.positions)
    assert kinds.count("decision") == kinds.count("flown") == len(flight.setpoints)
    seen = [event for event in events if event.kind == "observation"]
    assert seen[-1].values["position"] == pytest.approx(flight.positions[-1].tolist(), abs=1e-5)
    assert all(event.values["frame"] is None for event in seen)
    assert not (tmp_path / "log" / "frames").exists()
    assert guardian.guardian.phase is Phase.LANDED


def test_nothing_can_be_flown_after_the_landing():
    vehicle, _guardian = vehicle_of(served())
    with vehicle:
        vehicle.observe()
        vehicle.land()
        with pytest.raises(FlightOverError, match="landed"):
            vehicle.send(Setpoint.zero(1))
