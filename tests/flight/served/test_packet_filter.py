"""Which packets the served lab lets in."""

import hashlib
import math
import struct

import numpy as np
import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from served_flight import Companion, empty_lab
from wordwing.flight.served.faults import Reboot
from wordwing.flight.served.packet_filter import PacketFilter
from wordwing.flight.served.vehicle import ServedLab

BOTH = pytest.mark.parametrize("autopilot", ["ardupilot", "px4"])
KEY = bytes(range(32))


def codec(system: int = 245) -> mavlink.MAVLink:
    return mavlink.MAVLink(None, system, 191)


def beat(mav: mavlink.MAVLink, sequence: int | None = None) -> bytes:
    """A heartbeat with a sequence number."""
    if sequence is not None:
        mav.seq = sequence
    packet = mavlink.MAVLink_heartbeat_message(18, 8, 0, 0, 4, 3).pack(mav)
    mav.seq = (mav.seq + 1) % 256
    return bytes(packet)


def setpoint(mav: mavlink.MAVLink, velocity: float = 0.5, target: int = 1, component: int = 1) -> bytes:
    packet = mavlink.MAVLink_set_position_target_local_ned_message(
        0, target, component, 8, 1479, 0, 0, 0, velocity, 0, 0, 0, 0, 0, 0, 0.0
    ).pack(mav)
    mav.seq = (mav.seq + 1) % 256
    return bytes(packet)


def airborne(autopilot: str) -> tuple[ServedLab, Companion]:
    lab = empty_lab(autopilot)
    companion = Companion(lab)
    companion.take_off()
    companion.fly(1.0, 0.0, 0.0)
    return lab, companion


def test_one_sender_at_a_time_is_heard_until_it_has_been_silent_for_5_seconds():
    gate, first, second = PacketFilter(), codec(), codec()
    assert len(gate.accept(beat(first), "first", 0.0)) == 1
    assert gate.accept(beat(second), "second", 0.1) == []
    assert len(gate.accept(beat(first), "first", 3.0)) == 1
    assert gate.accept(beat(second), "second", 7.9) == []
    assert len(gate.accept(beat(second), "second", 8.0)) == 1
    assert gate.accept(beat(first), "first", 8.1) == []
    assert gate.dropped["other peer"] == 3


def test_px4_hears_and_answers_only_its_first_partner_until_it_boots_again():
    gate, first, second = PacketFilter(first_peer_only=True), codec(), codec()
    assert len(gate.accept(beat(first), "first", 0.0)) == 1
    assert gate.accept(beat(second), "second", 1000.0) == []
    assert len(gate.accept(beat(first), "first", 1001.0)) == 1
    gate.reset()
    assert len(gate.accept(beat(second), "second", 1001.1)) == 1
    assert gate.companion == "second"
    assert gate.accept(beat(first), "first", 2000.0) == []


@BOTH
def test_after_a_reboot_another_partner_is_heard(autopilot):
    lab = empty_lab(autopilot, faults=[Reboot(8.0, 1.0)])
    first, second = Companion(lab, sender="first"), Companion(lab, sender="second")
    first.wait(1.0)
    lab.advance(6.0)
    second.wait(0.5)
    assert bool(lab.packet_filter.companion == "second") == (autopilot == "ardupilot")
    lab.advance(2.0)
    second.wait(0.5)
    assert lab.packet_filter.companion == "second"


def test_noise_neither_takes_the_seat_nor_keeps_it():
    gate, mav = PacketFilter(), codec()
    assert gate.accept(b"\xfd" + bytes(40), "noise", 0.0) == []
    assert len(gate.accept(beat(mav), "companion", 0.1)) == 1
    for time in (2.0, 4.0, 5.0):
        gate.accept(b"\xfd" + bytes(40), "companion", time)
    assert len(gate.accept(beat(codec()), "other", 5.2)) == 1


@BOTH
def test_a_strangers_setpoints_do_not_fly(autopilot):
    lab, companion = airborne(autopilot)
    stranger = Companion(lab, system=246, sender="other peer", beating=False)
    flown = len(lab.autopilot.accepted)
    for _ in range(20):
        stranger.setpoint(0.7, 1.0)
        companion.setpoint(0.0, 0.0)
        companion.wait(0.05)
    assert len(lab.autopilot.accepted) == flown + 20
    assert all(wanted.forward == 0 for _time, wanted in lab.autopilot.accepted[flown:])
    assert np.linalg.norm(lab.autopilot.flight.velocity[:2]) < 0.05


@pytest.mark.parametrize(
    ("before", "sequence", "heard"),
    [(10, 11, True), (10, 15, True), (10, 10, False), (10, 9, False), (10, 7, False), (250, 3, True), (3, 250, False)],
)
def test_repeated_and_overtaken_sequence_numbers_are_dropped(before, sequence, heard):
    gate, mav = PacketFilter(), codec()
    gate.accept(beat(mav, before), "a", 0.0)
    assert bool(gate.accept(beat(mav, sequence), "a", 0.1)) == heard


def test_sequence_numbers_are_counted_for_each_component():
    gate, ours, other = PacketFilter(), codec(), mavlink.MAVLink(None, 245, 190)
    assert gate.accept(beat(ours, 100), "a", 0.0)
    assert gate.accept(beat(other, 5), "a", 0.0)
    assert not gate.accept(beat(ours, 99), "a", 0.0)


def test_a_companion_that_was_restarted_begins_anew_after_a_second_of_silence():
    gate, mav = PacketFilter(), codec()
    gate.accept(beat(mav, 100), "a", 0.0)
    assert not gate.accept(beat(mav, 0), "a", 0.9)
    assert gate.accept(beat(mav, 0), "a", 1.1)
    assert not gate.accept(beat(mav, 0), "a", 1.2)


@BOTH
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_field_that_is_not_finite_drops_the_message(autopilot, value):
    lab, companion = airborne(autopilot)
    flown = len(lab.autopilot.accepted)
    companion.setpoint(value, 0.0)
    companion.setpoint(0.2, value)
    companion.send(mavlink.MAVLink_command_long_message(1, 1, 400, 0, 0, 21196, value, 0, 0, 0, 0))
    companion.wait(0.05)
    assert len(lab.autopilot.accepted) == flown
    assert lab.armed
    assert lab.packet_filter.dropped["not finite"] == 3


@BOTH
def test_what_is_meant_for_another_system_is_ignored(autopilot):
    lab, companion = airborne(autopilot)
    flown = len(lab.autopilot.accepted)
    companion.setpoint(0.5, 0.0, target=2)
    lab.receive(setpoint(companion.codec, component=200), companion.sender)
    assert len(lab.autopilot.accepted) == flown
    companion.setpoint(0.5, 0.0, target=1)
    assert len(lab.autopilot.accepted) == flown + 1


def test_a_wrong_checksum_is_dropped():
    packet = bytearray(setpoint(codec()))
    for position in range(1, len(packet)):
        broken = bytearray(packet)
        broken[position] ^= 0x10
        assert PacketFilter().accept(bytes(broken), "a", 0.0) == [], position
    assert len(PacketFilter().accept(bytes(packet), "a", 0.0)) == 1


def test_several_packets_in_one_datagram_are_all_heard_and_what_follows_garbage_is_not():
    mav = codec()
    first, second, third = beat(mav), beat(mav), beat(mav)
    assert len(PacketFilter().accept(first + second + third, "a", 0.0)) == 3
    assert len(PacketFilter().accept(first + b"\x00" + second, "a", 0.0)) == 1


def signed(mav: mavlink.MAVLink, stamp: int, key: bytes = KEY) -> bytes:
    """A heartbeat signed by hand, as https://mavlink.io/en/guide/message_signing.html has it."""
    payload = struct.pack("<IBBBBB", 0, 18, 8, 0, 4, 3)
    header = struct.pack("<BBBBBBB", len(payload), 1, 0, mav.seq, 245, 191, 0) + b"\x00\x00"
    checksum = mavlink.x25crc(header + payload + bytes([50])).crc  # CRC_EXTRA of HEARTBEAT
    packet = b"\xfd" + header + payload + struct.pack("<H", checksum) + b"\x00" + stamp.to_bytes(6, "little")
    mav.seq = (mav.seq + 1) % 256
    return packet + hashlib.sha256(key + packet).digest()[:6]


def test_with_a_key_only_packets_signed_with_it_are_heard():
    gate, mav = PacketFilter(KEY), codec()
    assert len(gate.accept(signed(mav, 1000), "a", 0.0)) == 1
    assert gate.accept(beat(mav), "a", 0.1) == []
    assert gate.accept(signed(mav, 1001, bytes(32)), "a", 0.2) == []
    assert len(gate.accept(signed(mav, 1002), "a", 0.3)) == 1


def test_a_signed_packet_is_heard_once_only_however_its_sequence_number_looks():
    gate, mav = PacketFilter(KEY), codec()
    recorded = signed(mav, 1000)
    assert len(gate.accept(recorded, "a", 0.0)) == 1
    assert gate.accept(recorded, "a", 60.0) == []
    assert gate.accept(signed(mav, 999), "a", 60.1) == []


def test_a_forged_time_does_not_lock_the_companion_out():
    gate, mav = PacketFilter(KEY), codec()
    gate.accept(signed(mav, 10**12, bytes(32)), "a", 0.0)
    assert len(gate.accept(signed(mav, 1000), "a", 0.1)) == 1


def test_a_recording_from_before_the_lab_started_is_not_heard():
    started = 10**9
    gate, mav = PacketFilter(KEY, signing_time=started), codec()
    assert gate.accept(signed(mav, started - 61 * 100_000), "a", 0.0) == []
    assert len(gate.accept(signed(mav, started - 59 * 100_000), "a", 0.1)) == 1


def test_with_a_key_the_lab_signs_what_it_says():
    lab = empty_lab("ardupilot", key=KEY)
    stamps = []
    for datagram in lab.advance(2.0):
        assert datagram[2] & 1
        assert hashlib.sha256(KEY + datagram[:-6]).digest()[:6] == datagram[-6:]
        stamps.append(int.from_bytes(datagram[-12:-6], "little"))
    assert stamps == sorted(set(stamps))


def test_pymavlinks_signed_packets_are_heard():
    lab, mav = empty_lab("px4", key=KEY), codec()
    mav.signing.secret_key, mav.signing.sign_outgoing, mav.signing.timestamp = KEY, True, 5
    for _ in range(3):
        lab.receive(beat(mav), "a")
    assert not lab.packet_filter.dropped


@BOTH
def test_ten_thousand_random_or_truncated_packets_neither_crash_nor_move_the_drone(autopilot, rng):
    lab = empty_lab(autopilot)
    mav = codec()
    lab.advance(3.0)
    good = [setpoint(mav), beat(mav)]
    for command, values in ((400, (1, 21196)), (22, (0, 0, 0, 0, 0, 0, 0.7)), (176, (1, 4)), (176, (1, 6))):
        filled = (*values, *[0] * (7 - len(values)))
        good.append(bytes(mavlink.MAVLink_command_long_message(1, 1, command, 0, *filled).pack(mav)))
    before = lab.true_pose
    for number in range(10_000):
        packet = bytearray(good[rng.integers(len(good))])
        kind = number % 4
        if kind == 0:
            packet = bytearray(rng.bytes(rng.integers(0, 300)))
        elif kind == 1:
            packet = packet[: rng.integers(0, len(packet))]
        elif kind == 2:
            packet[rng.integers(1, len(packet))] ^= int(rng.integers(1, 256))
        else:
            packet = bytearray([0xFD if number % 8 < 4 else 0xFE, *rng.bytes(rng.integers(0, 290))])
        lab.receive(bytes(packet), int(rng.integers(3)))
        if number % 100 == 0:
            lab.advance(0.01)
    lab.advance(1.0)
    assert not lab.armed
    assert not lab.commands
    assert (lab.true_pose.position - before.position).norm() < 1e-3


@BOTH
def test_garbage_in_flight_does_not_move_it(autopilot, rng):
    lab, companion = airborne(autopilot)
    before = lab.true_pose.position
    for _ in range(60):
        companion.setpoint(0.0, 0.0)
        for _ in range(20):
            lab.receive(rng.bytes(rng.integers(0, 120)), companion.sender)
        companion.wait(0.05)
    assert (lab.true_pose.position - before).norm() < 0.05
    companion.land()
    assert not lab.armed


@BOTH
def test_valid_messages_with_random_contents_do_not_crash_it(autopilot, rng):
    lab = empty_lab(autopilot)
    mav = codec()
    for name in ("PARAM_SET", "PARAM_REQUEST_READ", "COMMAND_LONG", "SET_POSITION_TARGET_LOCAL_NED", "HEARTBEAT"):
        kind = getattr(mavlink, f"MAVLink_{name.lower()}_message")
        for _ in range(300):
            payload = rng.bytes(kind.unpacker.size)
            header = struct.pack("<BBBBBB", len(payload), 0, 0, mav.seq, 245, 191) + kind.id.to_bytes(3, "little")
            checksum = mavlink.x25crc(header + payload + bytes([kind.crc_extra])).crc
            mav.seq = (mav.seq + 1) % 256
            lab.receive(b"\xfd" + header + payload + struct.pack("<H", checksum), "a")
        lab.advance(0.1)
