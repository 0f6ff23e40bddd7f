"""Our messages byte by byte, by the offsets of the MAVLink specification, and theirs read back."""

import hashlib
import math
import struct

import numpy as np
import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink
from scipy.spatial.transform import Rotation

from wordwing.flight.mavlink.flight_stacks import ARDUPILOT, FLIGHT_STACKS, PX4
from wordwing.flight.mavlink.messages import Codec, MessageFactory, heartbeat
from wordwing.flight.mavlink.parse_message import (
    Attitude,
    Battery,
    CommandAck,
    Estimator,
    InvalidMessage,
    LandedState,
    ParameterValue,
    Position,
    StatusText,
    SystemStatus,
    VehicleHeartbeat,
    Version,
    parse_message,
)

COMMAND_LONG = "<7fHBBB"  # parameters 1 to 7, command, target system, target component, confirmation


def body(packet: bytes, message_id: int, size: int) -> bytes:
    """The payload of a MAVLink 2 packet from us, with the zeros back that the protocol cuts off."""
    assert packet[0] == 0xFD
    assert (packet[5], packet[6]) == (245, 191)
    assert packet[7] | packet[8] << 8 | packet[9] << 16 == message_id
    payload = packet[10 : 10 + packet[1]]
    assert len(packet) == 12 + len(payload)
    return payload.ljust(size, b"\0")


def command(message) -> tuple:
    return struct.unpack(COMMAND_LONG, body(Codec().pack(message), 76, 33))


@pytest.mark.parametrize("stack", FLIGHT_STACKS)
def test_a_setpoint_on_the_wire_is_velocity_ahead_and_down_and_a_clockwise_yaw_rate(stack):
    packet = Codec().pack(MessageFactory(stack, 7).setpoint(0.5, 0.3, 0.2, 123456))
    payload = body(packet, 84, 53)
    assert struct.unpack_from("<I", payload, 0) == (123456,)
    assert struct.unpack_from("<3f", payload, 4) == (0.0, 0.0, 0.0)
    vx, vy, vz = struct.unpack_from("<3f", payload, 16)
    assert (vx, vy, vz) == pytest.approx((0.5, 0.0, -0.2))
    assert struct.unpack_from("<3f", payload, 28) == (0.0, 0.0, 0.0)
    yaw, yaw_rate = struct.unpack_from("<2f", payload, 40)
    assert (yaw, yaw_rate) == pytest.approx((0.0, -0.3))
    assert struct.unpack_from("<H", payload, 48) == (0x5C7,)
    target_system, target_component, frame = payload[50:53]
    assert (target_system, target_component, frame) == (7, 1, 8)


def test_a_hover_has_no_minus_zeros():
    payload = body(Codec().pack(MessageFactory(PX4, 1).setpoint(0.0, 0.0, 0.0, 0)), 84, 53)
    assert payload[:48] == bytes(48)


def test_a_setpoint_that_is_not_finite_is_never_made():
    for broken in ((math.nan, 0.0, 0.0), (0.0, math.inf, 0.0), (0.0, 0.0, math.nan)):
        with pytest.raises(ValueError, match="finite"):
            MessageFactory(PX4, 1).setpoint(*broken, 0)


def test_our_heartbeat_is_that_of_an_onboard_controller():
    payload = body(Codec().pack(heartbeat()), 0, 9)
    custom_mode, kind, autopilot, base_mode, status, version = struct.unpack("<IBBBBB", payload)
    assert (custom_mode, kind, autopilot, base_mode, status, version) == (0, 18, 8, 0, 4, 3)


def test_arming_is_never_forced():
    for again in range(5):
        values = command(MessageFactory(ARDUPILOT, 1).arm(again))
        assert values == (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 400, 1, 1, again)


def test_commands_have_their_parameters_where_the_specification_has_them():
    ardupilot, px4 = MessageFactory(ARDUPILOT, 3), MessageFactory(PX4, 3)
    assert command(ardupilot.mode(9)) == (1, 9, 0, 0, 0, 0, 0, 176, 3, 1, 0)
    assert command(px4.mode(4 << 16 | 6 << 24, 2)) == (1, 4, 6, 0, 0, 0, 0, 176, 3, 1, 2)
    assert command(ardupilot.take_off(0.75)) == (0, 0, 0, 0, 0, 0, 0.75, 22, 3, 1, 0)
    assert command(px4.interval(32, 50.0)) == (32, 20000, 0, 0, 0, 0, 0, 511, 3, 1, 0)
    assert command(px4.request(148)) == (148, 0, 0, 0, 0, 0, 0, 512, 3, 1, 0)


def test_parameters_are_asked_for_and_set_by_name():
    asked = body(Codec().pack(MessageFactory(PX4, 9).read_parameter("COM_OF_LOSS_T")), 20, 20)
    assert struct.unpack("<hBB16s", asked) == (-1, 9, 1, b"COM_OF_LOSS_T\0\0\0")
    whole = body(Codec().pack(MessageFactory(PX4, 9).write_parameter("NAV_RCL_ACT", 3, 6)), 23, 23)
    assert struct.unpack("<iBB16sB", whole) == (3, 9, 1, b"NAV_RCL_ACT\0\0\0\0\0", 6)
    cast = body(Codec().pack(MessageFactory(ARDUPILOT, 9).write_parameter("FS_GCS_ENABLE", 5, 2)), 23, 23)
    assert struct.unpack("<fBB16sB", cast) == (5.0, 9, 1, b"FS_GCS_ENABLE\0\0\0", 2)


def test_packets_are_numbered_one_after_the_other():
    codec = Codec()
    assert [codec.pack(heartbeat())[4] for _ in range(258)] == [*range(256), 0, 1]


def theirs(message) -> object:
    """What is read of a message after a way over the wire."""
    packet = message.pack(mavlink.MAVLink(None, 1, 1))
    (parsed,) = Codec().parse(packet)
    told = parse_message(parsed)
    return told


def test_a_local_position_is_turned_up():
    told = theirs(mavlink.MAVLink_local_position_ned_message(2500, 1.0, 2.0, -3.0, 0.25, -0.5, 0.75))
    assert told == Position(2.5, (1.0, -2.0, 3.0), (0.25, 0.5, -0.75))


def test_an_attitude_is_that_of_the_same_body_with_z_up():
    roll, pitch, yaw = 0.1, -0.3, 2.0
    told = theirs(mavlink.MAVLink_attitude_message(40, roll, pitch, yaw, 0.5, 0.25, -0.125))
    assert isinstance(told, Attitude)
    assert told.boot == 0.04
    assert told.rates == (0.5, -0.25, 0.125)
    flip = np.diag([1.0, -1.0, -1.0])
    ned = Rotation.from_euler("ZYX", [yaw, pitch, roll]).as_matrix()
    up = Rotation.from_euler("ZYX", told.angles[::-1]).as_matrix()
    assert up == pytest.approx(flip @ ned @ flip, abs=1e-6)
    assert told.angles[1] > 0  # the nose points down


def test_odometry_has_its_velocity_in_the_body():
    east = Rotation.from_euler("Z", math.pi / 2).as_quat(scalar_first=True).tolist()
    unknown = [math.nan] * 21
    message = mavlink.MAVLink_odometry_message(
        1_500_000, 1, 12, 1.0, 2.0, -3.0, east, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, unknown, unknown
    )
    told = theirs(message)
    assert isinstance(told, Position)
    assert (told.boot, told.position) == (1.5, (1.0, -2.0, 3.0))
    assert told.velocity == pytest.approx((0.0, -0.5, 0.0), abs=1e-6)  # ahead is east, to the right of north
    message.frame_id = 20
    assert parse_message(message) is None


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (mavlink.MAVLink_heartbeat_message(2, 3, 128 + 1, 4, 4, 3), VehicleHeartbeat(2, 3, True, 4, 4)),
        (mavlink.MAVLink_heartbeat_message(2, 12, 1 + 64, 393216, 3, 3), VehicleHeartbeat(2, 12, False, 393216, 3)),
        (mavlink.MAVLink_ekf_status_report_message(831, 0, 0.25, 0, 0, 0), Estimator(831, 0.25)),
        (mavlink.MAVLink_extended_sys_state_message(0, 2), LandedState(2)),
        (mavlink.MAVLink_command_ack_message(400, 4), CommandAck(400, 4)),
        (mavlink.MAVLink_command_ack_message(400, 0, 0, 0, 245, 191), CommandAck(400, 0)),
        (mavlink.MAVLink_param_value_message(b"GUID_TIMEOUT", 0.5, 9, 1, 0), ParameterValue("GUID_TIMEOUT", 0.5, 9)),
        (mavlink.MAVLink_statustext_message(4, b"PreArm: no"), StatusText(4, "PreArm: no")),
        (mavlink.MAVLink_battery_status_message(1, 0, 0, 0, [0] * 10, 0, 0, 0, 37), Battery(1, 0.37)),
        (mavlink.MAVLink_battery_status_message(0, 0, 0, 0, [0] * 10, 0, 0, 0, -1), Battery(0, None)),
        (mavlink.MAVLink_sys_status_message(1 << 28, 0, 1 << 28, 0, 0, 0, 80, *[0] * 6), SystemStatus(True, 0.8)),
        (mavlink.MAVLink_sys_status_message(1 << 28, 0, 0, 0, 0, 0, -1, *[0] * 6), SystemStatus(False, None)),
        (mavlink.MAVLink_sys_status_message(0, 0, 1 << 28, 0, 0, 0, 0, *[0] * 6), SystemStatus(None, 0.0)),
    ],
)
def test_what_they_say_is_read(message, told):
    assert theirs(message) == told


def test_the_lab_says_that_it_is_the_lab():
    for custom, lab in ((b"wordwing", True), (b"deadbeef", False)):
        message = mavlink.MAVLink_autopilot_version_message(
            0, 0x04080100, 0, 0, 0, list(custom), [0] * 8, [0] * 8, 0, 0, 0
        )
        assert theirs(message) == Version(lab, "4.8.1")


def test_answers_to_others_are_not_ours():
    for system, component in ((255, 190), (245, 1)):
        assert parse_message(mavlink.MAVLink_command_ack_message(400, 0, 0, 0, system, component)) is None


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_not_finite_spoils_its_message(broken):
    assert theirs(mavlink.MAVLink_local_position_ned_message(0, 1.0, broken, 0, 0, 0, 0)) == InvalidMessage(
        "LOCAL_POSITION_NED"
    )
    assert theirs(mavlink.MAVLink_local_position_ned_message(0, 1.0, 0, 0, 0, 0, broken)) == InvalidMessage(
        "LOCAL_POSITION_NED"
    )
    assert theirs(mavlink.MAVLink_attitude_message(0, 0, 0, broken, 0, 0, 0)) == InvalidMessage("ATTITUDE")


def test_the_bytes_of_px4s_integers_are_not_taken_for_a_broken_number():
    minus_one = struct.unpack("<f", b"\xff\xff\xff\xff")[0]
    told = theirs(mavlink.MAVLink_param_value_message(b"COM_X", minus_one, 6, 1, 0))
    assert isinstance(told, ParameterValue)
    assert PX4.decode(told.field, told.kind) == -1


def test_messages_that_do_not_matter_are_passed_over():
    assert parse_message(mavlink.MAVLink_vfr_hud_message(0, 0, 0, 0, 0, 0)) is None


def test_half_a_datagram_does_not_swallow_the_next():
    packet = mavlink.MAVLink_heartbeat_message(2, 3, 0, 4, 4, 3).pack(mavlink.MAVLink(None, 1, 1))
    codec = Codec()
    assert codec.parse(packet[:9]) == []
    assert len(codec.parse(packet)) == 1
    assert len(codec.parse(packet + packet)) == 2


def test_a_stream_may_cut_packets_anywhere():
    packet = bytes(mavlink.MAVLink_heartbeat_message(2, 3, 0, 4, 4, 3).pack(mavlink.MAVLink(None, 1, 1)))
    codec, found = Codec(stream=True), []
    for byte in packet * 3:
        found += codec.parse(bytes([byte]))
    assert len(found) == 3


def test_no_bytes_stop_the_parser(rng):
    codec = Codec()
    good = bytes(mavlink.MAVLink_statustext_message(4, b"hello there").pack(mavlink.MAVLink(None, 1, 1)))
    for _ in range(2000):
        spoilt = bytearray(good)
        spoilt[rng.integers(len(spoilt))] = rng.integers(256)
        for message in codec.parse(bytes(spoilt[: rng.integers(1, len(good) + 1)])):
            parse_message(message)
        codec.parse(b"\xfd" + rng.bytes(int(rng.integers(0, 60))))
    assert len(codec.parse(good)) == 1


def test_signed_packets_carry_the_signature_of_the_specification_and_unsigned_ones_are_dropped():
    key = bytes(range(32))
    packet = Codec(key=key, signed_at=1000.0).pack(heartbeat())
    assert packet[2] == 1  # MAVLINK_IFLAG_SIGNED
    expected = hashlib.sha256(key + packet[:-6]).digest()[:6]
    assert packet[-6:] == expected
    assert int.from_bytes(packet[-12:-6], "little") >= 1000 * 100_000  # in units of 10 µs
    theirs_unsigned = mavlink.MAVLink_heartbeat_message(2, 3, 0, 4, 4, 3).pack(mavlink.MAVLink(None, 1, 1))
    assert Codec(key=key, signed_at=1000.0).parse(theirs_unsigned) == []
    assert len(Codec(key=key, signed_at=1000.0).parse(packet)) == 1
    assert Codec(key=bytes(32), signed_at=1000.0).parse(packet) == []


def signed_by_hand(stamp: int, key: bytes, system: int = 1, link: int = 0) -> bytes:
    """A heartbeat with the signature of the specification."""
    packet = mavlink.MAVLink_heartbeat_message(2, 3, 0, 4, 4, 3).pack(mavlink.MAVLink(None, system, 1))
    head = packet[:2] + b"\x01" + packet[3:-2]
    checksum = mavlink.x25crc(head[1:] + bytes([50])).crc  # CRC_EXTRA of HEARTBEAT
    whole = head + struct.pack("<H", checksum) + bytes([link]) + stamp.to_bytes(6, "little")
    return whole + hashlib.sha256(key + whole).digest()[:6]


def test_a_forged_packet_from_the_future_does_not_shut_the_true_sender_out():
    key = bytes(range(32))
    codec = Codec(key=key, signed_at=1000.0)
    assert codec.parse(signed_by_hand(10**13, bytes(32))) == []
    assert len(codec.parse(signed_by_hand(10**8, key))) == 1
    assert codec.parse(signed_by_hand(10**8, key)) == []  # not twice


def test_each_sender_and_link_has_its_own_signing_time():
    key = bytes(range(32))
    codec = Codec(key=key, signed_at=1000.0)
    assert len(codec.parse(signed_by_hand(10**8 + 500, key))) == 1
    assert len(codec.parse(signed_by_hand(10**8, key, system=2))) == 1
    assert len(codec.parse(signed_by_hand(10**8, key, link=1))) == 1
    assert codec.parse(signed_by_hand(10**8, key, system=2)) == []


def test_a_signed_stream_may_begin_a_minute_late_and_no_more():
    key = bytes(range(32))
    codec = Codec(key=key, signed_at=1000.0)
    assert codec.parse(signed_by_hand(940 * 100_000 - 1, key)) == []
    assert len(codec.parse(signed_by_hand(941 * 100_000, key))) == 1


def test_what_we_sign_is_never_older_than_what_we_have_heard():
    key = bytes(range(32))
    codec = Codec(key=key, signed_at=1000.0)
    codec.parse(signed_by_hand(5000 * 100_000, key))
    stamps = [int.from_bytes(codec.pack(heartbeat())[-12:-6], "little") for _ in range(2)]
    assert 5000 * 100_000 <= stamps[0] < stamps[1]
