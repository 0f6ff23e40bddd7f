"""Parameters on the wire: names, types and how values stand in the float field."""

import struct

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from served_flight import Companion, empty_lab
from wordwing.errors import WordwingError

BOTH = pytest.mark.parametrize("autopilot", ["ardupilot", "px4"])
UINT8, INT8, INT16, INT32, REAL32 = 1, 2, 4, 6, 9


def read(companion: Companion, name: str) -> object | None:
    companion.send(mavlink.MAVLink_param_request_read_message(1, 1, name.encode(), -1))
    before = len(companion.heard)
    companion.wait(0.05)
    found = [m for m in companion.heard[before:] if m.get_type() == "PARAM_VALUE"]
    return found[0] if found else None


def write(companion: Companion, name: str, value: float, kind: int) -> None:
    companion.send(mavlink.MAVLink_param_set_message(1, 1, name.encode(), value, kind))
    companion.wait(0.05)


def as_float(integer: int) -> float:
    """The float whose four bytes are an integer's."""
    return struct.unpack("<f", struct.pack("<i", integer))[0]


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("GUID_TIMEOUT", 0.5, REAL32),
        ("FS_GCS_ENABLE", 5.0, INT8),
        ("MAV_GCS_SYSID", 245.0, UINT8),
        ("LAND_SPD_MS", 0.3, REAL32),
    ],
)
def test_ardupilot_casts_integers_to_floats(name, value, kind):
    message = read(Companion(empty_lab("ardupilot")), name)
    assert (message.param_id, message.param_type) == (name, kind)
    assert message.param_value == pytest.approx(value)


@pytest.mark.parametrize(("name", "value"), [("COM_OBL_RC_ACT", 4), ("NAV_RCL_ACT", 3), ("COM_LOW_BAT_ACT", 2)])
def test_px4_puts_the_bytes_of_an_integer_into_the_float(name, value):
    message = read(Companion(empty_lab("px4")), name)
    assert message.param_type == INT32
    assert message.param_value == as_float(value)
    assert message.param_value != value


def test_px4_sends_floats_as_floats():
    message = read(Companion(empty_lab("px4")), "MIS_TAKEOFF_ALT")
    assert message.param_type == REAL32
    assert message.param_value == pytest.approx(0.7)


def test_px4s_integers_are_written_by_their_bytes():
    lab = empty_lab("px4")
    companion = Companion(lab)
    write(companion, "COM_OBL_RC_ACT", as_float(5), INT32)
    assert lab.parameters["COM_OBL_RC_ACT"] == 5
    assert read(companion, "COM_OBL_RC_ACT").param_value == as_float(5)
    write(companion, "COM_OBL_RC_ACT", as_float(-1), INT32)  # as a float this is NaN
    assert lab.parameters["COM_OBL_RC_ACT"] == -1
    write(companion, "COM_OBL_RC_ACT", 3.0, REAL32)  # not its type
    assert lab.parameters["COM_OBL_RC_ACT"] == -1


def test_what_is_written_counts():
    lab = empty_lab("ardupilot")
    companion = Companion(lab)
    write(companion, "GUID_TIMEOUT", 2.0, REAL32)
    companion.take_off()
    companion.fly(1.5, 0.5, 0.0)
    companion.wait(1.8)
    assert lab.autopilot.flight.velocity[0] > 0.4
    companion.wait(1.2)
    assert lab.autopilot.flight.velocity[0] < 0.1


@BOTH
def test_an_unknown_name_is_not_answered(autopilot):
    companion = Companion(empty_lab(autopilot))
    assert read(companion, "SYSID_MYGCS") is None
    assert read(companion, "NO_SUCH_THING") is None


def test_older_versions_have_older_names_and_centimetres():
    lab = empty_lab("ardupilot", older_names=True)
    companion = Companion(lab)
    assert read(companion, "MAV_GCS_SYSID") is None
    assert read(companion, "LAND_SPD_MS") is None
    assert read(companion, "SYSID_MYGCS").param_value == 245
    assert read(companion, "LAND_SPEED").param_value == 30
    assert read(companion, "LAND_SPEED").param_type == INT16
    write(companion, "LAND_SPEED", 50.0, INT16)
    assert lab.parameters["LAND_SPD_MS"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("autopilot", "factory"),
    [
        ("ardupilot", {"GUID_TIMEOUT": 3.0, "FS_GCS_ENABLE": 0, "MAV_GCS_SYSID": 255}),
        ("px4", {"COM_OF_LOSS_T": 1.0, "COM_OBL_RC_ACT": as_float(0), "MIS_TAKEOFF_ALT": 2.5}),
    ],
)
def test_it_can_start_as_it_comes_out_of_the_box(autopilot, factory):
    companion = Companion(empty_lab(autopilot, factory=True))
    for name, value in factory.items():
        assert read(companion, name).param_value == pytest.approx(value)


@BOTH
def test_the_whole_list_can_be_asked_for(autopilot):
    companion = Companion(empty_lab(autopilot))
    companion.send(mavlink.MAVLink_param_request_list_message(1, 1))
    companion.wait(0.05)
    found = companion.all("PARAM_VALUE")
    assert [m.param_index for m in found] == list(range(found[0].param_count))
    assert len({m.param_id for m in found}) == len(found) > 8


def test_a_parameter_that_does_not_exist_cannot_be_set_from_the_start():
    with pytest.raises(WordwingError, match='no parameter GUID_TIMOUT; did you mean "GUID_TIMEOUT"'):
        empty_lab("ardupilot", parameters={"GUID_TIMOUT": 1.0})
