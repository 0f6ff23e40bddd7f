"""The guardian flies the served lab in lock-step, as ArduPilot and as PX4, and meets its faults."""

import math

import pytest

from guarded_flight import GuardedFlight, square
from served_flight import CALM
from wordwing.flight.guardian.protocol import Land, Phase, PilotDisconnected, SetParameters, TakeOff
from wordwing.flight.served import faults

BOTH = pytest.mark.parametrize("autopilot", ["ardupilot", "px4"])
LONG = pytest.mark.long


@BOTH
def test_it_takes_off_flies_a_square_and_lands(autopilot):
    flight = GuardedFlight(autopilot, (-0.5, -0.5), 0.0, config=CALM)
    flight.take_off()
    flight.hold(3.0)
    assert flight.height == pytest.approx(0.7, abs=0.03)
    corners = square(flight)
    ideal = [(0.5, -0.5), (0.5, 0.5), (-0.5, 0.5), (-0.5, -0.5)]
    for (x, y), (u, v) in zip(corners, ideal, strict=True):
        assert math.hypot(x - u, y - v) < 0.3
    assert flight.height == pytest.approx(0.7, abs=0.05)
    x, y, z, _, _, yaw = flight.guardian.state(flight.now).pose
    assert (x, y, z) == pytest.approx(tuple(flight.lab.true_pose.position[0].tolist()), abs=0.02)
    assert yaw == pytest.approx(flight.lab.true_pose.yaw.item(), abs=0.02)
    flight.land()
    assert flight.height < 0.15
    assert not flight.lab.autopilot.airborne
    phases = [text.split(":")[0] for text in flight.story() if ":" in text]
    assert [phase for phase in phases if phase not in ("holding", "flying")] == [
        "ready",
        "taking off",
        "landing",
        "landed",
    ]


@LONG
@BOTH
def test_flown_at_a_fence_it_stops_at_the_margin(autopilot):
    flight = GuardedFlight(autopilot, (0.5, 0.3), 0.4)
    flight.take_off()
    flight.fly(0.7, 0.0, 9.0)
    assert flight.phase is Phase.FLYING
    assert 1.6 < flight.furthest < 2.15
    assert abs(flight.guardian.state(flight.now).setpoint[0]) < 0.05  # it is held there


def fly_into(autopilot: str, fault) -> GuardedFlight:
    """Take off, fly a curve, meet a fault, wait for the end."""
    flight = GuardedFlight(autopilot, (-0.8, 0.2), 0.3, faults=(fault,))
    flight.until_phase(Phase.READY)
    flight.tick(TakeOff())
    flight.until(lambda: flight.phase is not Phase.TAKING_OFF)
    while flight.phase in (Phase.HOLDING, Phase.FLYING) and flight.now < 16.0:
        flight.fly(0.4, 0.3, 0.3)
    flight.tick(Land())
    flight.until(lambda: flight.guardian.state(flight.now).done, 30.0)
    assert flight.furthest < 2.35
    return flight


@pytest.mark.parametrize("autopilot", ["ardupilot", pytest.param("px4", marks=LONG)])
@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (faults.PoseJump(start=9.0), "motion capture jumped"),
        (faults.PoseDropout(start=9.0, duration=3.0), "motion capture is lost"),
        pytest.param(faults.LowBattery(start=9.0), "the battery has 15%", marks=LONG),
        pytest.param(faults.Delay(start=9.0, seconds=0.4, duration=3.0), "the newest pose is", marks=LONG),
        pytest.param(faults.PacketLoss(start=9.0, share=1.0, duration=4.0), "the newest pose is", marks=LONG),
    ],
)
def test_a_fault_in_the_air_lands_it_and_the_log_says_why(autopilot, fault, why):
    flight = fly_into(autopilot, fault)
    assert flight.phase is Phase.LANDED
    assert f"it came down because {why}" in flight.guardian.why
    assert flight.height < 0.15


def test_brake_is_not_turned_into_a_landing_by_our_silence():
    flight = GuardedFlight("ardupilot")
    flight.take_off()
    flight.lab.autopilot.enter(flight.lab.profile.mode("BRAKE"))
    flight.until_phase(Phase.RELEASED)
    flight.alive = False
    flight.tick(PilotDisconnected())
    for _ in range(200):
        flight.tick()
    assert flight.lab.autopilot.mode.name == "BRAKE"
    assert flight.height > 0.5


def test_a_ground_station_must_not_be_taken_for_us():
    flight = GuardedFlight("ardupilot", parameters={"MAV_GCS_SYSID_HI": 255})
    for _ in range(100):
        flight.tick()
    state = flight.guardian.state(flight.now)
    assert "MAV_GCS_SYSID_HI is 255; it must be from 0 to 245" in "; ".join(state.unready)
    # Nor does the served lab land without us while a ground station is there: as the real one did not.
    flight.lab.autopilot.arm()
    flight.lab.autopilot.heartbeat(255, 6)
    assert flight.lab.autopilot.gcs_heartbeat == flight.lab.time


@pytest.mark.parametrize("autopilot", [pytest.param("ardupilot", marks=LONG), "px4"])
@pytest.mark.parametrize("start", [4.0, 9.0, pytest.param(17.0, marks=LONG)])
def test_a_pilot_who_takes_over_keeps_the_drone(autopilot, start):
    flight = fly_into(autopilot, faults.Takeover(start=start))
    assert flight.phase is Phase.RELEASED
    mode = flight.lab.autopilot.mode.name
    before = len(flight.lab.commands)
    for _ in range(60):
        flight.tick(Land())
    assert flight.lab.autopilot.mode.name == mode
    assert len(flight.lab.commands) == before


@LONG
@BOTH
def test_a_lossy_and_disordered_link_is_flown_over(autopilot):
    flight = fly_into(autopilot, faults.Reordering(start=0.0))
    assert "because the pilot ordered it" in flight.guardian.why
    flight = fly_into(autopilot, faults.PacketLoss(start=0.0, share=0.2))
    assert "because the pilot ordered it" in flight.guardian.why


@LONG
@BOTH
def test_a_refusal_to_arm_ends_on_the_floor_with_the_autopilots_words(autopilot):
    flight = GuardedFlight(autopilot, faults=(faults.RefusedArming(start=0.0, why="Compasses inconsistent"),))
    flight.until_phase(Phase.READY)
    flight.tick(TakeOff())
    flight.until_phase(Phase.LANDED)
    assert flight.guardian.why.startswith("never armed: the autopilot refused to arm")
    assert "Compasses inconsistent" in flight.guardian.why
    assert flight.height < 0.15


@LONG
@BOTH
def test_a_reboot_in_the_air_is_never_followed_by_arming(autopilot):
    flight = fly_into(autopilot, faults.Reboot(start=9.0))
    assert flight.phase is Phase.RELEASED
    for _ in range(100):
        flight.tick(TakeOff())
    assert not flight.lab.armed
    assert len([command for _time, command, _answer in flight.lab.commands if command.command == 400]) == 1


@BOTH
def test_a_dead_pilot_ends_on_the_floor(autopilot):
    flight = GuardedFlight(autopilot)
    flight.take_off()
    flight.fly(0.5, 0.2, 1.5)
    flight.alive = False
    flight.tick(PilotDisconnected())
    flight.until_phase(Phase.LANDED)
    assert "the pilot is gone" in flight.guardian.why


@BOTH
def test_a_dead_guardian_leaves_the_drone_to_the_autopilots_failsafes(autopilot):
    flight = GuardedFlight(autopilot)
    flight.take_off()
    flight.fly(0.5, 0.2, 1.5)
    flight.lab.advance(15.0)  # nobody sends anything any more
    assert not flight.lab.armed
    assert flight.height < 0.15


@BOTH
@pytest.mark.parametrize("seconds", [1.0, 2.0])
def test_cut_off_during_the_take_off_it_comes_down_by_itself(autopilot, seconds):
    flight = GuardedFlight(autopilot)
    flight.until_phase(Phase.READY)
    flight.tick(TakeOff())
    flight.until(lambda: flight.lab.autopilot.airborne)
    began = flight.now
    flight.until(lambda: flight.now > began + seconds)
    assert flight.phase is Phase.TAKING_OFF
    assert flight.height > 0.2
    flight.lab.advance(12.0)  # nobody sends anything any more
    assert not flight.lab.armed
    assert flight.furthest < 0.3
    assert flight.height < 0.15


@LONG
@BOTH
def test_factory_parameters_are_refused_and_written_when_it_is_ordered(autopilot):
    flight = GuardedFlight(autopilot, factory=True, may_set_parameters=True)
    for _ in range(100):
        flight.tick()
    assert flight.phase is Phase.CONNECTING
    assert all(reason.startswith("parameter ") for reason in flight.guardian.state(flight.now).unready)
    flight.tick(SetParameters())
    flight.take_off()


def test_the_lab_says_that_it_is_the_lab():
    flight = GuardedFlight("ardupilot")
    flight.until_phase(Phase.READY)
    state = flight.guardian.state(flight.now)
    assert state.lab
    assert state.pose_age < 0.1
