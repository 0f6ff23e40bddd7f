"""What the served lab says about itself: signs, frames, rates, noise and delay."""

import math
from dataclasses import replace

import numpy as np
import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from scipy.spatial.transform import Rotation

from served_flight import CALM, QUICK, Companion, empty_lab
from wordwing.flight.arena import Arena
from wordwing.flight.mocap.relay import MocapSample, PoseRelay
from wordwing.flight.served.vehicle import ServedLab
from wordwing.world.layout import Layout

BOTH = pytest.mark.parametrize("autopilot", ["ardupilot", "px4"])
INTERVAL, REQUEST = 511, 512
HEARTBEAT, SYS_STATUS, ATTITUDE, LOCAL_POSITION, VERSION, EKF, ODOMETRY = 0, 1, 30, 32, 148, 193, 331
HERE = Arena(north=3.0, east=-2.0, heading_deg=90.0, floor_down=0.5)
"""The world's +x points east, its +y north; the floor is half a metre below the origin."""


def ned(position: np.ndarray) -> list[float]:
    """Where a place of the world is in the local frame of HERE, by hand."""
    x, y, z = position
    return [3.0 + y, -2.0 + x, 0.5 - z]


@BOTH
def test_the_local_position_is_north_east_down_of_its_own_origin(autopilot):
    lab = ServedLab(Layout(()), (1.0, -0.5), 0.3, autopilot=autopilot, config=CALM, frame=HERE)
    companion = Companion(lab)
    companion.wait(3.0)
    message = companion.last("LOCAL_POSITION_NED")
    north, east, down = ned([1.0, -0.5, 0.11])
    assert (message.x, message.y) == pytest.approx((north, east), abs=0.002)
    assert 0 <= down - message.z <= 0.09  # an estimate's height is off, as ArduCopter's was
    pose = lab.mocap.take()[-1]
    assert pose.position == pytest.approx((north, -east, -down), abs=0.002)  # motion capture's is not


@BOTH
def test_an_autopilot_that_is_fed_by_our_adapter_knows_where_it_is(autopilot):
    lab = empty_lab(autopilot, external_mocap=True, config=QUICK)
    companion, chosen, packer = Companion(lab), PoseRelay(), mavlink.MAVLink(None, 246, 197)
    companion.wait(4.0)
    assert lab.autopilot.prearm_failure() == "Need Position Estimate"
    for _ in range(20):
        companion.wait(0.1)
        for pose in lab.mocap.take():
            message = chosen.update(MocapSample(*pose), pose.time)
            if message is not None:
                lab.receive_mocap(message.pack(packer))
    assert lab.autopilot.prearm_failure() is None


@BOTH
def test_heading_and_rates_are_clockwise_and_speeds_along_north_east_down(autopilot):
    lab = ServedLab(Layout(()), (0.0, 0.0), 0.0, autopilot=autopilot, config=CALM, frame=HERE)
    companion = Companion(lab)
    companion.take_off()
    attitude = companion.last("ATTITUDE")
    assert attitude.yaw == pytest.approx(math.pi / 2, abs=0.01)  # east
    companion.command(INTERVAL, LOCAL_POSITION, 20_000)
    companion.command(INTERVAL, ATTITUDE, 20_000)
    companion.fly(1.5, 0.5, 0.0, 0.0, -0.2)
    message = companion.last("LOCAL_POSITION_NED")
    assert [message.vx, message.vy, message.vz] == pytest.approx([0.0, 0.48, -0.2], abs=0.05)
    companion.fly(0.4, 0.0, 0.0)
    braking = companion.last("ATTITUDE")
    assert braking.pitch > 0.02  # nose up
    companion.fly(1.0, 0.0, 0.6)
    attitude = companion.last("ATTITUDE")
    assert attitude.yawspeed == pytest.approx(0.6, abs=0.05)
    assert attitude.yaw > math.pi / 2 + 0.3
    companion.fly(0.4, 0.0, 0.0, 0.5)
    assert companion.last("ATTITUDE").roll > 0.02  # right side down


@BOTH
def test_odometry_agrees_with_position_and_attitude_by_scipy(autopilot):
    lab = empty_lab(autopilot)
    companion = Companion(lab)
    companion.take_off()
    assert not companion.all("ODOMETRY")
    assert companion.command(INTERVAL, ODOMETRY, 10_000) == 0
    companion.command(INTERVAL, LOCAL_POSITION, 10_000)
    companion.command(INTERVAL, ATTITUDE, 10_000)
    companion.fly(2.0, 0.5, 0.5)
    odometry, attitude = companion.last("ODOMETRY"), companion.last("ATTITUDE")
    position = companion.last("LOCAL_POSITION_NED")
    assert (odometry.frame_id, odometry.child_frame_id) == (1, 12)
    assert [odometry.x, odometry.y, odometry.z] == pytest.approx([position.x, position.y, position.z], abs=1e-5)
    turn = Rotation.from_quat(odometry.q, scalar_first=True)
    euler = turn.as_euler("ZYX")
    assert euler == pytest.approx([attitude.yaw, attitude.pitch, attitude.roll], abs=1e-5)
    velocity = turn.apply([odometry.vx, odometry.vy, odometry.vz])
    assert velocity == pytest.approx([position.vx, position.vy, position.vz], abs=0.08)


@BOTH
def test_poses_are_of_30_milliseconds_ago_and_stamped_so(autopilot):
    lab = empty_lab(autopilot, frame=Arena())
    companion = Companion(lab)
    companion.take_off()
    companion.command(INTERVAL, LOCAL_POSITION, 10_000)
    companion.fly(1.5, 0.5, 0.0)
    true = {}
    for _ in range(20):
        companion.setpoint(0.5, 0.0)
        companion.wait(0.01, step=0.01)
        true[round(lab.time, 2)] = float(lab.true_pose.position[0, 0])
    message = companion.last("LOCAL_POSITION_NED")
    then = round(lab.time - 0.03, 2)
    assert message.time_boot_ms == round(1000 * then)
    assert message.x == pytest.approx(true[then], abs=1e-4)
    assert abs(message.x - true[round(lab.time, 2)]) > 0.01


def test_poses_have_motion_captures_noise():
    lab = empty_lab("px4", config=replace(CALM, position_noise=0.003, attitude_noise=0.003))
    companion = Companion(lab)
    companion.wait(3.0)
    companion.command(INTERVAL, LOCAL_POSITION, 10_000)
    companion.command(INTERVAL, ATTITUDE, 10_000)
    companion.wait(6.0)
    positions = np.array([[m.x, m.y, m.z] for m in companion.all("LOCAL_POSITION_NED")])
    angles = np.array([[m.roll, m.pitch, m.yaw] for m in companion.all("ATTITUDE")])
    assert positions.std(axis=0) == pytest.approx([0.003] * 3, rel=0.15)
    assert angles.std(axis=0) == pytest.approx([0.003] * 3, rel=0.15)


@BOTH
@pytest.mark.parametrize(
    ("message", "rate"), [(HEARTBEAT, 10.0), (ATTITUDE, 50.0), (LOCAL_POSITION, 30.0), (SYS_STATUS, 2.0)]
)
def test_messages_come_at_the_rate_that_was_asked_for(autopilot, message, rate):
    companion = Companion(empty_lab(autopilot))
    companion.wait(3.0)
    assert companion.command(INTERVAL, message, 1e6 / rate) == 0
    before = len(companion.heard)
    companion.wait(6.0)
    count = sum(m.get_msgId() == message for m in companion.heard[before:])
    assert count / 6 == pytest.approx(rate, rel=0.05)
    assert companion.command(INTERVAL, message, -1) == 0
    before = len(companion.heard)
    companion.wait(2.0)
    assert not [m for m in companion.heard[before:] if m.get_msgId() == message]


@BOTH
def test_messages_that_it_does_not_have_are_refused(autopilot):
    companion = Companion(empty_lab(autopilot))
    assert companion.command(INTERVAL, 33, 100_000) == 4  # GLOBAL_POSITION_INT: there is no GPS
    assert companion.command(REQUEST, 33) == 4


def test_only_ardupilot_has_an_ekf_status_report():
    ardupilot, px4 = (Companion(empty_lab(autopilot)) for autopilot in ("ardupilot", "px4"))
    ardupilot.wait(1.5)
    assert ardupilot.last("EKF_STATUS_REPORT").flags != 831
    ardupilot.wait(2.0)
    assert ardupilot.last("EKF_STATUS_REPORT").flags == 831
    px4.wait(3.0)
    assert not px4.all("EKF_STATUS_REPORT")
    assert px4.command(REQUEST, EKF) == 4


@BOTH
def test_it_says_that_it_is_wordwings_lab(autopilot):
    companion = Companion(empty_lab(autopilot))
    assert companion.command(REQUEST, VERSION) == 0
    assert bytes(companion.last("AUTOPILOT_VERSION").flight_custom_version) == b"wordwing"


@BOTH
def test_the_heartbeat_shows_arming_and_the_landed_state_follows_the_flight(autopilot):
    companion = Companion(empty_lab(autopilot))
    companion.wait(3.0)
    companion.command(INTERVAL, 245, 100_000)
    companion.command(INTERVAL, HEARTBEAT, 100_000)
    companion.wait(0.2)
    assert companion.last("HEARTBEAT").base_mode == 1
    assert companion.last("HEARTBEAT").type == 2
    assert companion.last("EXTENDED_SYS_STATE").landed_state == 1
    companion.take_off()
    companion.fly(0.2, 0.0, 0.0)
    assert companion.last("HEARTBEAT").base_mode == 129
    assert companion.last("EXTENDED_SYS_STATE").landed_state == 2
    companion.land()
    states = [m.landed_state for m in companion.all("EXTENDED_SYS_STATE")]
    assert [state for i, state in enumerate(states) if i == 0 or states[i - 1] != state] == [1, 3, 2, 4, 1]
    assert companion.last("HEARTBEAT").base_mode == 1


@BOTH
def test_each_datagram_holds_one_packet_and_sequence_numbers_count(autopilot):
    lab = empty_lab(autopilot, config=QUICK)
    packets = lab.advance(30.0)
    parser = mavlink.MAVLink(None)
    assert [parser.decode(bytearray(packet)).get_seq() for packet in packets] == [i % 256 for i in range(len(packets))]
    assert {packet[5:7] for packet in packets} == {b"\x01\x01"}


def test_its_arena_file_is_the_true_one(tmp_path):
    lab = empty_lab("ardupilot")
    (tmp_path / "arena.json").write_text(lab.frame.to_json())
    arena = Arena.load(tmp_path / "arena.json")
    assert arena == lab.frame
    assert (arena.north, arena.east) != (0.0, 0.0)
    assert arena.heading_deg % 90 != 0
