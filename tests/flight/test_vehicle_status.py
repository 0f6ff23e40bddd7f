"""What an autopilot's own reports say against arming."""

import pytest

pytest.importorskip("pymavlink")

from wordwing.flight.mavlink.parse_message import VehicleHeartbeat
from wordwing.flight.mavlink.vehicle_status import VehicleStatus

PX4, ARDUPILOT, QUADROTOR = 12, 3, 2
HOLD, POSCTL = 4 << 16 | 3 << 24, 3 << 16
UNINIT, STANDBY = 0, 3


def about_state(autopilot: int, mode: int, status: int) -> str:
    """What is said of the system state of an autopilot on the floor; nothing if it is well."""
    vehicle = VehicleStatus()
    beat = VehicleHeartbeat(kind=QUADROTOR, autopilot=autopilot, armed=False, mode=mode, status=status)
    assert vehicle.identify(1, 1, beat)
    vehicle.update(beat, 5.0)
    return "".join(reason for reason in vehicle.unready(5.0) if "system state" in reason)


def test_a_px4_that_waits_in_hold_is_told_what_it_lacks():
    said = about_state(PX4, HOLD, UNINIT)
    assert "system state 0" in said
    for hint in ("AUTO.LOITER", "Hold needs GPS", "transmitter", "COM_RC_IN_MODE", "POSCTL"):
        assert hint in said


def test_a_px4_that_does_not_pass_its_checks_in_another_mode_is_sent_to_its_ground_station():
    said = about_state(PX4, POSCTL, UNINIT)
    assert "its own checks for POSCTL are not passed; a ground station shows which" in said
    assert "GPS" not in said


@pytest.mark.parametrize("autopilot", [PX4, ARDUPILOT])
def test_an_autopilot_on_standby_needs_no_hint_and_ardupilot_never_gets_px4s(autopilot):
    assert about_state(autopilot, 0, STANDBY) == ""
    assert "POSCTL" not in about_state(ARDUPILOT, 0, UNINIT)
