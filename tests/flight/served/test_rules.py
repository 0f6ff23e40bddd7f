"""What each autopilot refuses, ignores and does by itself."""

import math

import numpy as np
import pytest

from served_flight import Companion, empty_lab
from wordwing.flight.served.faults import LowBattery, PoseDropout, RefusedArming
from wordwing.flight.served.vehicle import ServedLab

BOTH = pytest.mark.parametrize("autopilot", ["ardupilot", "px4"])
ACCEPTED, TEMPORARILY_REJECTED, DENIED, UNSUPPORTED, FAILED = range(5)
REFUSED = {"ardupilot": FAILED, "px4": TEMPORARILY_REJECTED}
ARM, TAKEOFF, SET_MODE = 400, 22, 176
FORCE = 21196


def new(autopilot: str, seconds: float = 3.0, **options: object) -> tuple[ServedLab, Companion]:
    lab = empty_lab(autopilot, **options)
    companion = Companion(lab)
    companion.wait(seconds)
    return lab, companion


def airborne(autopilot: str, **options: object) -> tuple[ServedLab, Companion]:
    lab = empty_lab(autopilot, **options)
    companion = Companion(lab)
    companion.take_off()
    return lab, companion


def height(lab: ServedLab) -> float:
    return float(lab.true_pose.position[0, 2])


def speed(lab: ServedLab) -> float:
    return float(np.linalg.norm(lab.autopilot.flight.velocity))


def ready_mode(companion: Companion) -> int:
    return companion.mode(4) if companion.lab.profile.name == "ardupilot" else companion.mode(4, 2)


@BOTH
def test_without_a_local_position_it_neither_arms_nor_takes_the_mode(autopilot):
    lab, companion = new(autopilot, 1.0)
    assert ready_mode(companion) == REFUSED[autopilot]
    assert companion.command(ARM, 1) == REFUSED[autopilot]
    assert not lab.armed
    assert not companion.all("LOCAL_POSITION_NED")
    assert not companion.last("SYS_STATUS").onboard_control_sensors_health & 0x10000000
    companion.wait(2.0)
    assert ready_mode(companion) == ACCEPTED
    assert companion.command(ARM, 1) == ACCEPTED
    assert lab.armed


@BOTH
@pytest.mark.parametrize("fault", [LowBattery(0.0, level=10.0), RefusedArming(0.0), PoseDropout(-8.0)])
def test_it_refuses_to_arm_and_says_why(autopilot, fault):
    lab, companion = new(autopilot, faults=[fault])
    ready_mode(companion)
    assert companion.command(ARM, 1) == REFUSED[autopilot]
    assert not lab.armed
    companion.wait(0.5)
    prefix = "Arm: " if autopilot == "ardupilot" else "Arming denied: "
    assert any(text.startswith(prefix) for text in companion.texts())


@BOTH
def test_a_forced_arm_goes_past_the_checks_and_is_on_record(autopilot):
    lab, companion = new(autopilot, faults=[RefusedArming(0.0)])
    ready_mode(companion)
    assert companion.command(ARM, 1, FORCE) == ACCEPTED
    assert lab.armed
    _time, command, _answer = lab.commands[-1]
    assert (command.command, command.param1, command.param2) == (ARM, 1.0, FORCE)


@BOTH
def test_in_the_air_it_disarms_only_by_force_and_then_falls(autopilot):
    lab, companion = airborne(autopilot)
    assert companion.command(ARM, 0) == REFUSED[autopilot]
    assert lab.autopilot.airborne
    assert companion.command(ARM, 0, FORCE) == ACCEPTED
    companion.wait(1.0)
    assert not lab.armed
    assert height(lab) < 0.2


@BOTH
def test_armed_and_left_alone_it_disarms_after_10_seconds(autopilot):
    lab, companion = new(autopilot)
    companion.mode(4) if autopilot == "ardupilot" else companion.mode(3)
    assert companion.command(ARM, 1) == ACCEPTED
    companion.wait(9.5)
    assert lab.armed
    companion.wait(1.0)
    assert not lab.armed


@BOTH
def test_land_is_no_mode_to_arm_in(autopilot):
    lab, companion = new(autopilot)
    assert (companion.mode(9) if autopilot == "ardupilot" else companion.mode(4, 6)) == ACCEPTED
    assert companion.command(ARM, 1) == REFUSED[autopilot]
    assert not lab.armed


@BOTH
def test_modes_and_commands_that_it_does_not_know_are_refused(autopilot):
    lab, companion = new(autopilot)
    mode = lab.autopilot.mode.name
    assert companion.mode(99, 3) in (FAILED, DENIED)
    assert companion.mode(4.5) in (FAILED, DENIED)
    assert companion.command(SET_MODE, 0, 4) in (FAILED, DENIED)
    assert companion.command(31000) == UNSUPPORTED
    assert lab.autopilot.mode.name == mode


@pytest.mark.parametrize(("mode", "custom"), [(0, 0), (2, 2), (4, 4), (5, 5), (9, 9)])
def test_ardupilots_heartbeat_has_the_mode_number_of_do_set_mode(mode, custom):
    _lab, companion = new("ardupilot")
    assert companion.mode(mode) == ACCEPTED
    companion.wait(1.1)
    assert companion.last("HEARTBEAT").custom_mode == custom
    assert companion.last("HEARTBEAT").autopilot == 3


@pytest.mark.parametrize(
    ("main", "sub", "custom"),
    [
        (1, 0, 0x00010000),
        (3, 0, 0x00030000),
        (4, 2, 0x02040000),
        (4, 3, 0x03040000),
        (4, 6, 0x06040000),
        (7, 0, 0x70000),
    ],
)
def test_px4s_heartbeat_has_the_main_mode_in_byte_2_and_the_sub_mode_in_byte_3(main, sub, custom):
    _lab, companion = new("px4")
    assert companion.mode(main, sub) == ACCEPTED
    companion.wait(1.1)
    assert companion.last("HEARTBEAT").custom_mode == custom
    assert companion.last("HEARTBEAT").autopilot == 12


@pytest.mark.parametrize(("rate", "seconds", "answer"), [(20.0, 1.2, 0), (20.0, 0.8, 1), (1.5, 4.0, 1), (None, 0.0, 1)])
def test_px4_takes_offboard_only_after_a_second_of_setpoints_above_2_hz(rate, seconds, answer):
    lab, companion = new("px4")
    if rate is not None:
        for _ in range(round(seconds * rate)):
            companion.setpoint(0.0, 0.0)
            companion.wait(1 / rate, step=1 / rate)
    assert companion.mode(6) == answer
    assert (lab.autopilot.mode.name == "OFFBOARD") == (answer == 0)


def test_px4_does_not_take_offboard_after_the_stream_has_ended():
    lab, companion = new("px4")
    companion.fly(2.0, 0.0, 0.0)
    companion.wait(0.6)
    assert companion.mode(6) == TEMPORARILY_REJECTED
    assert lab.autopilot.mode.name == "MANUAL"


def test_px4_does_not_count_setpoints_in_a_frame_that_it_does_not_fly():
    _lab, companion = new("px4")
    companion.fly(2.0, 0.0, 0.0, frame=9)
    assert companion.mode(6) == TEMPORARILY_REJECTED


@BOTH
def test_setpoints_outside_its_guided_mode_are_ignored(autopilot):
    lab, companion = airborne(autopilot)
    assert (companion.mode(5) if autopilot == "ardupilot" else companion.mode(4, 3)) == ACCEPTED
    flown, before = len(lab.autopilot.accepted), lab.true_pose
    companion.fly(3.0, 0.5, 0.5)
    assert len(lab.autopilot.accepted) == flown
    assert (lab.true_pose.position - before.position).norm() < 0.05
    assert abs(float(lab.true_pose.yaw - before.yaw)) < 0.02


@BOTH
def test_setpoints_that_were_flown_are_on_record_in_our_frames(autopilot):
    lab, companion = airborne(autopilot)
    flown = len(lab.autopilot.accepted)
    companion.fly(0.5, 0.3, 0.2, 0.1, -0.05)
    assert len(lab.autopilot.accepted) - flown == 10
    time, wanted = lab.autopilot.accepted[-1]
    assert time == pytest.approx(lab.time - 0.05)
    assert (wanted.forward, wanted.left, wanted.up, wanted.yaw_rate) == pytest.approx((0.3, -0.1, 0.05, -0.2))


def test_a_frame_that_ardupilot_does_not_know_makes_it_hold_without_a_word():
    lab, companion = airborne("ardupilot")
    companion.fly(2.0, 0.5, 0.5)
    heard = len(companion.heard)
    companion.fly(2.0, 0.5, 0.5, frame=12)
    before = lab.true_pose
    companion.fly(2.0, 0.5, 0.5, frame=12)
    assert (lab.true_pose.position - before.position).norm() < 0.05
    assert abs(float(lab.true_pose.yaw - before.yaw)) < 0.02
    assert not [m for m in companion.heard[heard:] if m.get_type() in ("STATUSTEXT", "COMMAND_ACK")]


def test_a_frame_that_px4_does_not_know_is_as_if_nothing_came():
    lab, companion = airborne("px4")
    companion.fly(1.0, 0.3, 0.0, frame=12)
    assert lab.autopilot.mode.name == "LAND"


def test_a_type_mask_without_velocity_makes_ardupilot_hold():
    lab, companion = airborne("ardupilot")
    companion.fly(2.0, 0.5, 0.0)
    companion.fly(2.0, 0.5, 0.0, mask=0x0DF8)  # position only
    before = lab.true_pose.position
    companion.fly(1.0, 0.5, 0.0, mask=0x0DF8)
    assert (lab.true_pose.position - before).norm() < 0.05


def test_a_yaw_rate_that_the_mask_ignores_does_not_turn_it():
    lab, companion = airborne("ardupilot")
    companion.fly(2.0, 0.3, 0.5, mask=0x0DC7)
    assert abs(float(lab.true_pose.yaw)) < 0.01
    assert lab.autopilot.flight.velocity[0] == pytest.approx(0.3, abs=0.03)


def test_ardupilot_stops_after_guid_timeout_and_stays_in_guided():
    lab, companion = airborne("ardupilot")
    companion.fly(2.0, 0.5, 0.4)
    companion.wait(0.45)
    assert speed(lab) > 0.4
    companion.wait(1.5)
    assert speed(lab) < 0.05
    yaw = float(lab.true_pose.yaw)
    companion.wait(2.0)
    assert float(lab.true_pose.yaw) == pytest.approx(yaw, abs=0.02)
    assert lab.autopilot.mode.name == "GUIDED"
    assert lab.autopilot.airborne


@pytest.mark.parametrize(("action", "mode"), [(4, "LAND"), (5, "LOITER"), (0, "POSCTL")])
def test_px4_does_what_com_obl_rc_act_says_after_com_of_loss_t(action, mode):
    lab, companion = airborne("px4", parameters={"COM_OBL_RC_ACT": action})
    companion.fly(1.0, 0.3, 0.0)
    companion.wait(0.45)
    assert lab.autopilot.mode.name == "OFFBOARD"
    companion.wait(0.1)
    assert lab.autopilot.mode.name == mode
    companion.wait(8.0)
    assert lab.armed == (action != 4)


def test_any_setpoint_replaces_ardupilots_take_off():
    lab, companion = new("ardupilot")
    companion.mode(4)
    companion.command(ARM, 1)
    companion.command(TAKEOFF, 0, 0, 0, 0, 0, 0, 0.7)
    companion.wait(0.9)
    reached = height(lab)
    assert 0.2 < reached < 0.6
    companion.fly(3.0, 0.0, 0.0)
    assert height(lab) < reached + 0.2


def test_on_the_floor_ardupilot_does_not_take_off_by_setpoints():
    lab, companion = new("ardupilot")
    companion.mode(4)
    companion.command(ARM, 1)
    companion.fly(2.0, 0.0, 0.0, 0.0, -0.3)
    assert height(lab) < 0.12


def test_ardupilot_takes_off_only_armed_and_in_guided():
    lab, companion = new("ardupilot")
    assert companion.command(TAKEOFF, 0, 0, 0, 0, 0, 0, 0.7) == FAILED
    companion.mode(5)
    companion.command(ARM, 1)
    assert companion.command(TAKEOFF, 0, 0, 0, 0, 0, 0, 0.7) == FAILED
    companion.wait(1.0)
    assert height(lab) < 0.12


def test_px4_climbs_to_mis_takeoff_alt_and_goes_over_to_loiter():
    lab, companion = new("px4", parameters={"MIS_TAKEOFF_ALT": 1.0})
    assert companion.mode(4, 2) == ACCEPTED
    companion.wait(2.0)
    assert height(lab) < 0.12
    assert companion.command(ARM, 1) == ACCEPTED
    companion.wait(1.0)
    assert lab.autopilot.mode.name == "TAKEOFF"
    assert companion.last("EXTENDED_SYS_STATE").landed_state == 3
    companion.wait(4.0)
    assert lab.autopilot.mode.name == "LOITER"
    assert height(lab) == pytest.approx(1.11, abs=0.05)


def test_without_the_heartbeat_that_ardupilot_listens_for_it_lands():
    lab, companion = airborne("ardupilot")
    companion.beating = False
    silent = lab.time
    while lab.autopilot.mode.name == "GUIDED" and lab.time < silent + 6:
        companion.fly(0.05, 0.0, 0.0)
    assert lab.autopilot.mode.name == "LAND"
    assert 2.0 < lab.time - silent <= 3.1
    companion.wait(1.0)
    assert companion.last("HEARTBEAT").system_status == 5
    companion.wait(6.0)
    assert not lab.armed


@pytest.mark.parametrize("parameters", [{"FS_GCS_ENABLE": 0}, {"MAV_GCS_SYSID": 255}])
def test_a_failsafe_that_is_off_or_listens_for_another_does_nothing(parameters):
    lab, companion = airborne("ardupilot", parameters=parameters)
    companion.beating = False
    companion.fly(6.0, 0.0, 0.0)
    assert lab.autopilot.mode.name == "GUIDED"


def test_a_pilot_in_loiter_is_not_landed_for_a_lost_companion():
    lab, companion = airborne("ardupilot")
    companion.mode(5)
    companion.beating = False
    companion.wait(6.0)
    assert lab.autopilot.mode.name == "LOITER"


@BOTH
@pytest.mark.parametrize(("level", "lands"), [(15.0, False), (9.0, True)])
def test_it_lands_by_itself_when_the_battery_is_nearly_empty(autopilot, level, lands):
    lab, companion = airborne(autopilot, faults=[LowBattery(11.0, level=level)])
    companion.fly(4.0, 0.0, 0.0)
    assert companion.last("SYS_STATUS").battery_remaining == level
    assert (lab.autopilot.mode.name == "LAND") == lands


@BOTH
def test_after_a_landing_it_disarms_itself(autopilot):
    lab, companion = airborne(autopilot)
    (companion.mode(9)) if autopilot == "ardupilot" else companion.mode(4, 6)
    while height(lab) > 0.115:
        companion.wait(0.05)
    down = lab.time
    while lab.armed:
        companion.wait(0.05)
    assert lab.time - down == pytest.approx({"ardupilot": 0.3, "px4": 2.3}[autopilot], abs=0.4)


@BOTH
@pytest.mark.parametrize("wanted", [1e30, 50.0])
def test_absurd_but_finite_setpoints_are_limited(autopilot, wanted):
    lab, companion = airborne(autopilot)
    companion.fly(1.0, wanted, wanted, wanted, -wanted)
    assert np.linalg.norm(lab.autopilot.flight.velocity[:2]) < 1.6
    assert lab.autopilot.flight.velocity[2] < 0.7
    assert math.isfinite(height(lab))
    companion.land()
    assert not lab.armed
