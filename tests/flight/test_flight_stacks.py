"""What is written about PX4 and ArduPilot, against the MAVLink specification and pymavlink's tables."""

import struct

import pytest
from pymavlink import mavutil
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from wordwing.errors import WordwingError
from wordwing.flight.mavlink.flight_stacks import ARDUPILOT, FLIGHT_STACKS, PX4, VELOCITY_AND_YAW_RATE, flight_stack


def wanted(stack, name):
    return next(entry for entry in stack.wanted if entry.name == name)


def test_autopilots_are_recognised_by_their_heartbeat():
    assert flight_stack(mavlink.MAV_AUTOPILOT_ARDUPILOTMEGA) is ARDUPILOT
    assert flight_stack(mavlink.MAV_AUTOPILOT_PX4) is PX4
    with pytest.raises(WordwingError, match=r"of kind 0; wordwing flies ArduPilot \(3\) and PX4 \(12\)"):
        flight_stack(mavlink.MAV_AUTOPILOT_GENERIC)


def test_modes_of_arducopter_have_the_numbers_of_pymavlink():
    theirs = mavutil.mode_mapping_acm
    assert ARDUPILOT.modes == {number: theirs[number] for number in ARDUPILOT.modes}
    assert (ARDUPILOT.flying_mode, ARDUPILOT.land_mode) == (4, 9)


def test_modes_of_px4_have_main_and_sub_mode_where_pymavlink_has_them():
    shown = {number: mavutil.interpret_px4_mode(29, number) for number in PX4.modes}  # 29: stabilised, guided
    assert shown[PX4.land_mode] == "LAND"
    assert shown[4 << 16 | 2 << 24] == "TAKEOFF"
    assert mavutil.px4_map["OFFBOARD"][1:] == (6, 0)
    assert PX4.flying_mode == 6 << 16 == 393216
    assert PX4.land_mode == 4 << 16 | 6 << 24 == 100925440


def test_a_mode_command_has_one_number_for_ardupilot_and_two_for_px4():
    assert ARDUPILOT.mode_parameters(9) == (1.0, 9.0, 0.0)
    assert PX4.mode_parameters(PX4.land_mode) == (1.0, 4.0, 6.0)
    assert PX4.mode_parameters(PX4.flying_mode) == (1.0, 6.0, 0.0)


def test_an_unknown_mode_has_a_name_too():
    assert ARDUPILOT.mode_name(77) == "mode 77"


def test_the_type_mask_leaves_velocity_and_yaw_rate():
    ignored = ["X", "Y", "Z", "AX", "AY", "AZ", "YAW"]
    bits = sum(getattr(mavlink, f"POSITION_TARGET_TYPEMASK_{name}_IGNORE") for name in ignored)
    assert bits == VELOCITY_AND_YAW_RATE == 0x5C7


def test_px4_has_the_bytes_of_an_integer_in_the_float_field_and_ardupilot_its_value():
    assert ARDUPILOT.encode(245, mavlink.MAV_PARAM_TYPE_INT16) == 245.0
    assert struct.pack("<f", PX4.encode(4, mavlink.MAV_PARAM_TYPE_INT32)) == b"\x04\x00\x00\x00"
    assert PX4.encode(0.5, mavlink.MAV_PARAM_TYPE_REAL32) == 0.5
    assert PX4.decode(struct.unpack("<f", b"\x2c\x01\x00\x00")[0], mavlink.MAV_PARAM_TYPE_INT32) == 300
    assert PX4.decode(struct.unpack("<f", b"\xff\xff\xff\xff")[0], mavlink.MAV_PARAM_TYPE_INT32) == -1
    assert ARDUPILOT.decode(3.0, mavlink.MAV_PARAM_TYPE_INT8) == 3.0


@pytest.mark.parametrize("stack", FLIGHT_STACKS)
def test_what_is_written_is_what_is_wanted(stack):
    for entry in stack.wanted:
        assert entry.accepts(entry.name, entry.write)
        assert len(entry.name) <= 16
        for name, scale in entry.older:
            assert entry.accepts(name, entry.write * scale)


def test_time_outs_are_at_most_half_a_second():
    assert wanted(ARDUPILOT, "GUID_TIMEOUT").accepts("GUID_TIMEOUT", 0.5)
    assert not wanted(ARDUPILOT, "GUID_TIMEOUT").accepts("GUID_TIMEOUT", 0.6)
    assert not wanted(ARDUPILOT, "GUID_TIMEOUT").accepts("GUID_TIMEOUT", 3.0)
    assert wanted(PX4, "COM_OF_LOSS_T").accepts("COM_OF_LOSS_T", 0.5)
    assert not wanted(PX4, "COM_OF_LOSS_T").accepts("COM_OF_LOSS_T", 1.0)


def test_actions_on_losses_are_to_land():
    land = {"FS_GCS_ENABLE": 5, "FS_THR_ENABLE": 3, "BATT_FS_LOW_ACT": 1, "FS_EKF_ACTION": 1}
    land_on_px4 = {"COM_OBL_RC_ACT": 4, "NAV_RCL_ACT": 3, "COM_LOW_BAT_ACT": 2}
    for stack, actions in ((ARDUPILOT, land), (PX4, land_on_px4)):
        for name, number in actions.items():
            assert [value for value in range(8) if wanted(stack, name).accepts(name, value)] == [number]


def test_our_silence_does_not_take_the_drone_from_a_pilot_and_a_lost_transmitter_is_no_reason_to_fly_on():
    # ArduCopter's bits: 4, a pilot flies on without a ground station; 2, GUIDED goes on without a transmitter.
    options = wanted(ARDUPILOT, "FS_OPTIONS")
    accepted = [value for value in range(64) if options.accepts("FS_OPTIONS", value)]
    assert accepted
    assert all(value & 1 << 4 and not value & 1 << 2 for value in accepted)
    # PX4's bits: 0 missions, 1 hold, 2 offboard go on without a transmitter.
    assert [value for value in range(8) if wanted(PX4, "COM_RCL_EXCEPT").accepts("COM_RCL_EXCEPT", value)] == [0]


def test_an_older_landing_speed_is_in_centimetres():
    speed = wanted(ARDUPILOT, "LAND_SPD_MS")
    assert speed.names == ("LAND_SPD_MS", "LAND_SPEED")
    assert speed.accepts("LAND_SPEED", 30)
    assert not speed.accepts("LAND_SPEED", 50)
    assert not speed.accepts("LAND_SPEED", 0.3)
