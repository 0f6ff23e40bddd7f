"""The guardian at the seams: a pilot who takes long or dies early, a process that slept, numbers that are wrong."""

import math

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from fake_autopilot import TICK, FakeAutopilot
from wordwing.flight.guardian.protocol import Hold, Land, Phase, PilotDisconnected, TakeOff

BOTH = pytest.mark.parametrize("kind", ["ardupilot", "px4"])
QUIET = {"HEARTBEAT", "TIMESYNC"}


def kinds(messages) -> list[str]:
    return [message.get_type() for message in messages]


def asleep(autopilot: FakeAutopilot, seconds: float) -> None:
    """Time passes in which the guardian does nothing, and what the autopilot says is lost."""
    autopilot.now = round(autopilot.now + seconds, 6)


def test_while_a_person_thinks_about_the_confirmation_heartbeats_go_on():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.until(Phase.READY)
    autopilot.pilot = False  # the pilot waits for the terminal; its connection is open
    assert kinds(autopilot.ticks(10.0)).count("HEARTBEAT") == 20
    autopilot.guardian.order(PilotDisconnected(), autopilot.now)
    assert "HEARTBEAT" not in kinds(autopilot.ticks(3.0))


@BOTH
@pytest.mark.parametrize("later", [0, 2])
def test_a_pilot_that_is_gone_before_the_drone_is_armed_leaves_it_disarmed(kind, later):
    autopilot = FakeAutopilot(kind)
    autopilot.until(Phase.READY)
    autopilot.deaf = {176}  # the mode takes its time
    autopilot.tick(TakeOff())
    autopilot.ticks(later * TICK)
    autopilot.pilot = False
    autopilot.guardian.order(PilotDisconnected(), autopilot.now)
    autopilot.deaf = set()
    autopilot.ticks(5.0)
    assert 400 not in [command for command, *_ in autopilot.commands()]
    assert autopilot.guardian.phase is Phase.LANDED
    assert autopilot.guardian.why == "never armed: the pilot is gone"


def test_a_pilot_that_is_gone_during_the_climb_is_landed_at_once():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.until(Phase.READY)
    autopilot.tick(TakeOff())
    autopilot.ticks(0.4)
    assert autopilot.armed
    autopilot.pilot = False
    assert autopilot.mode_command("LAND") in autopilot.commands(autopilot.tick(PilotDisconnected()))


@BOTH
def test_land_that_was_accepted_is_not_asked_for_again_before_a_heartbeat_says_that_it_is_needed(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.fly()
    autopilot.silent = {"HEARTBEAT"}
    autopilot.tick(Land())
    autopilot.mode = autopilot.modes["STABILIZE"]  # the safety pilot takes over before the land mode has shown
    assert autopilot.commands(autopilot.ticks(3.0)) == []
    autopilot.silent = set()
    autopilot.ticks(1.0)
    assert autopilot.guardian.phase is Phase.RELEASED
    assert autopilot.mode == autopilot.modes["STABILIZE"]


def test_a_late_answer_to_an_earlier_mode_does_not_put_land_off():
    autopilot = FakeAutopilot("px4")
    autopilot.fly()
    autopilot.silent = {"HEARTBEAT"}
    autopilot.tick()
    autopilot.guardian.order(Land(), autopilot.now)
    autopilot.say(mavlink.MAVLink_command_ack_message(176, 0, 0, 0, 245, 191))
    assert autopilot.mode_command("LAND") in autopilot.commands(autopilot.tick())


def test_land_that_was_accepted_but_did_not_happen_is_asked_for_again():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.fly()
    autopilot.tick(Land())
    autopilot.mode = autopilot.modes["GUIDED"]
    autopilot.ticks(1.0)
    assert autopilot.mode == autopilot.modes["LAND"]


@BOTH
@pytest.mark.parametrize("phase", ["flying", "landing"])
def test_after_a_long_sleep_nothing_is_asked_for_until_the_autopilot_has_told_its_mode(kind, phase):
    autopilot = FakeAutopilot(kind)
    autopilot.fly()
    if phase == "landing":
        autopilot.deaf = {176}
        autopilot.tick(Land())
    asleep(autopilot, 20.0)
    # What had come before the buffers were full is read first: the mode of long ago, and an old pose.
    autopilot.boot -= 20.0
    assert set(kinds(autopilot.tick())) <= QUIET
    autopilot.boot += 20.0
    autopilot.silent = {"HEARTBEAT"}
    assert set(kinds(autopilot.ticks(0.5))) <= QUIET
    autopilot.silent = set()
    autopilot.mode = autopilot.modes["STABILIZE"]  # meanwhile the safety pilot has taken over
    assert set(kinds(autopilot.ticks(2.0))) <= QUIET
    assert autopilot.guardian.phase is Phase.RELEASED


def test_after_a_long_sleep_a_drone_that_is_still_ours_is_landed_as_soon_as_it_says_so():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.fly()
    asleep(autopilot, 20.0)
    autopilot.ticks(3 * TICK)
    assert autopilot.mode == autopilot.modes["LAND"]
    assert autopilot.guardian.phase is Phase.LANDING


def test_after_a_long_sleep_an_autopilot_that_stays_silent_is_asked_to_land_all_the_same():
    autopilot = FakeAutopilot("px4")
    autopilot.fly()
    asleep(autopilot, 20.0)
    autopilot.silent = {"all"}
    autopilot.ticks(3.0)
    assert autopilot.guardian.phase is Phase.LOST
    assert autopilot.mode == autopilot.modes["LAND"]


def test_a_battery_that_is_not_known_any_more_keeps_the_drone_on_the_floor():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.until(Phase.READY)
    autopilot.battery = -1
    autopilot.ticks(0.2)
    assert "the battery's charge is not known" in autopilot.guardian.state(autopilot.now).unready


@pytest.mark.parametrize("kind", ["ardupilot", "px4"])
def test_a_drone_that_drifts_without_a_decision_is_brought_back_gently(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.attitude = [0.0, 0.0, math.pi / 2]  # its nose to the east: what is north of it is at its left
    autopilot.take_off()
    for ticks, drift, back in ((10, 0.005, 0.15), (10, 0.0, 0.05), (40, 0.005, 0.2)):
        for _ in range(ticks):
            autopilot.position[0] += drift
            came = autopilot.tick(Hold())
        (setpoint,) = [m for m in came if m.get_type() == "SET_POSITION_TARGET_LOCAL_NED"]
        # To the right: as many metres as it is away, and against 0.1 m/s, but never faster than 0.2 m/s.
        assert (setpoint.vx, setpoint.vy) == pytest.approx((0.0, back), abs=0.01)
    autopilot.position[0] += 0.005
    came = autopilot.tick(autopilot.decide(0.5))
    (setpoint,) = [m for m in came if m.get_type() == "SET_POSITION_TARGET_LOCAL_NED"]
    assert setpoint.vy == pytest.approx(0.1, abs=0.01)  # who flies on is only kept from slipping sideways


@pytest.mark.parametrize("kind", ["ardupilot", "px4"])
def test_a_drone_that_may_not_fly_on_is_held_at_the_margin_and_so_is_one_that_only_turns(kind):
    for start, forward in ((1.95, 0.7), (0.0, 0.0)):
        autopilot = FakeAutopilot(kind)
        autopilot.position[0] = start  # its nose to the fence at 2.35 m
        autopilot.take_off()
        for _ in range(20):
            autopilot.position[0] += 0.004  # drifts on at 0.08 m/s, which it does not notice
            came = autopilot.tick(autopilot.decide(forward, 0.3))
        (setpoint,) = [m for m in came if m.get_type() == "SET_POSITION_TARGET_LOCAL_NED"]
        assert setpoint.vx == pytest.approx(
            -0.16, abs=0.015
        )  # 0.08 m back to where it came to rest, and against the drift
        assert setpoint.yaw_rate == pytest.approx(-0.3)


def test_px4_drifts_during_its_take_off_and_is_held():
    autopilot = FakeAutopilot("px4")
    autopilot.until(Phase.READY)
    autopilot.tick(TakeOff())
    pushes = []
    for _ in range(60):
        autopilot.position[1] += 0.005 * autopilot.armed
        came = autopilot.tick()
        pushes += [m.vy for m in came if m.get_type() == "SET_POSITION_TARGET_LOCAL_NED"]
        autopilot.rise()
    assert min(pushes) < -0.1


@pytest.mark.parametrize("kind", ["ardupilot", "px4"])
def test_after_a_takeover_heartbeats_go_on_without_the_pilots_process_until_the_drone_is_disarmed(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.fly()
    autopilot.mode = autopilot.modes["LOITER"]
    autopilot.tick()
    assert autopilot.guardian.phase is Phase.RELEASED
    autopilot.pilot = False
    autopilot.tick(PilotDisconnected())
    came = autopilot.ticks(30.0)
    assert {message.get_type() for message in came} == {"HEARTBEAT"}
    assert len(came) == pytest.approx(60, abs=1)
    assert autopilot.guardian.state(autopilot.now).done  # for the pilot's process
    assert not autopilot.guardian.finished(autopilot.now)
    autopilot.armed = False
    autopilot.tick()
    assert autopilot.guardian.finished(autopilot.now)


def test_a_px4_that_knows_where_on_earth_it_is_is_not_armed():
    for kind, armed in (("px4", False), ("ardupilot", True)):
        autopilot = FakeAutopilot(kind)
        autopilot.until(Phase.READY)
        autopilot.say(mavlink.MAVLink_gps_global_origin_message(473000000, 85000000, 400000))
        autopilot.tick()
        assert (autopilot.guardian.phase is Phase.READY) is armed
        assert ("global origin" in autopilot.guardian.why) is not armed
    px4 = FakeAutopilot("px4")
    asked = [m.param1 for m in px4.ticks(0.3) if m.get_type() == "COMMAND_LONG" and m.command == 512]
    assert 49 in asked


def test_px4_is_asked_for_its_heartbeat_in_the_air():
    for kind, asked in (("px4", 10), ("ardupilot", 0)):
        autopilot = FakeAutopilot(kind)
        autopilot.fly()
        came = autopilot.ticks(1.0, autopilot.decide())
        assert len([m for m in came if m.get_type() == "COMMAND_LONG" and (m.command, m.param1) == (512, 0)]) == asked


def test_px4s_estimator_counts_though_it_measures_neither_airspeed_nor_height_above_ground():
    autopilot = FakeAutopilot("px4")
    ratios = (0.1, 0.1, 0.1, 0.1, math.nan, math.nan, 0.1, 0.1)  # NaN where nothing is measured
    autopilot.heartbeat()
    autopilot.say(mavlink.MAVLink_estimator_status_message(0, 367, *ratios))
    autopilot.fly()
    autopilot.flags = 367 & ~256
    autopilot.tick(autopilot.decide())
    assert autopilot.guardian.phase is Phase.LANDING
    assert "lost its position" in autopilot.guardian.why


@pytest.mark.parametrize("field", range(6))
@pytest.mark.parametrize("value", [3e38, -1e7])
def test_numbers_that_no_drone_can_have_land_it_like_numbers_that_are_none(field, value):
    autopilot = FakeAutopilot("ardupilot")
    autopilot.fly()
    numbers = [0.0] * 6
    numbers[field] = value
    time = round((autopilot.boot + autopilot.now + TICK / 2) * 1000)
    autopilot.say(mavlink.MAVLink_attitude_message(time, *numbers))
    assert autopilot.setpoints(autopilot.tick(autopilot.decide())) == [(0.0, 0.0, 0.0)]
    assert autopilot.guardian.phase is Phase.LANDING
