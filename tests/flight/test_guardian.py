"""The guardian against a fake autopilot: before a flight, take-off, landing, and what it tells."""

import itertools
import json
import math

import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from fake_autopilot import PARAMETERS, FakeAutopilot
from wordwing.flight.arena import Arena
from wordwing.flight.guardian.protocol import (
    GuardianState,
    Hold,
    KeepAlive,
    Land,
    Phase,
    PilotDisconnected,
    SetParameters,
    TakeOff,
)
from wordwing.flight.guardian.safety import FenceMargins

BOTH = pytest.mark.parametrize("kind", ["ardupilot", "px4"])
HEARTBEAT = "HEARTBEAT"


def kinds(messages) -> list[str]:
    return [message.get_type() for message in messages]


def reasons(autopilot: FakeAutopilot) -> str:
    return "; ".join(autopilot.guardian.state(autopilot.now).unready)


@BOTH
def test_a_flight_goes_through_its_phases(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.fly()
    autopilot.tick(Land())
    autopilot.ticks(0.5)
    autopilot.position[2], autopilot.armed = 0.0, False
    autopilot.tick()
    phases = [text.split(":")[0] for text in autopilot.story()]
    assert phases == ["ready", "taking off", "holding", "flying", "landing", "landed"]
    state = autopilot.guardian.state(autopilot.now)
    assert state.done
    assert state.why == "disarmed; it came down because the pilot ordered it"
    assert GuardianState.from_json(json.loads(json.dumps(state.to_json()))).reason == "ordered"
    logged = [event.to_json() for event in autopilot.guardian.events if event.kind == "phase"]
    assert [row.get("reason") for row in logged] == [None, None, None, None, "ordered", "ordered"]


def test_old_poses_before_a_flight_are_the_reason_to_wait_and_a_takeover_has_none_that_programs_read():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.until(Phase.READY)
    autopilot.silent = {"POSE"}
    autopilot.until(Phase.CONNECTING)
    assert "the newest pose is" in reasons(autopilot)
    assert autopilot.guardian.reason == "old pose"
    autopilot.silent = set()
    autopilot.fly()
    autopilot.tick(Land())
    autopilot.mode = autopilot.modes["STABILIZE"]
    autopilot.ticks(0.5)
    assert (autopilot.guardian.phase, autopilot.guardian.reason) == (Phase.RELEASED, None)


def test_ardupilot_takes_off_by_guided_arm_and_takeoff_without_any_setpoint():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.take_off()
    assert autopilot.commands() == [(176, 1.0, 4.0, 0.0), (400, 1.0, 0.0, 0.0), (22, 0.0, 0.0, 0.0)]
    (takeoff,) = [m for _, m in autopilot.got if m.get_type() == "COMMAND_LONG" and m.command == 22]
    assert takeoff.param7 == pytest.approx(0.7)
    hovering_at = next(event.time for event in autopilot.guardian.events if event.text.startswith("holding"))
    first = next(time for time, m in autopilot.got if m.get_type() == "SET_POSITION_TARGET_LOCAL_NED")
    assert first == hovering_at


def test_px4_gets_zero_setpoints_for_over_a_second_before_offboard_is_armed_there_and_climbs_by_setpoints():
    autopilot = FakeAutopilot("px4")
    autopilot.take_off()
    assert autopilot.commands() == [(176, 1.0, 6.0, 0.0), (400, 1.0, 0.0, 0.0)]
    setpoints = [(t, m) for t, m in autopilot.got if m.get_type() == "SET_POSITION_TARGET_LOCAL_NED"]
    offboard, arm = (t for t, m in autopilot.got if m.get_type() == "COMMAND_LONG" and m.command in (176, 400))
    assert offboard - setpoints[0][0] > 1.0
    assert max(b[0] - a[0] for a, b in itertools.pairwise(setpoints)) == pytest.approx(0.05)
    assert {(m.vx, m.vy, m.vz, m.yaw_rate) for t, m in setpoints if t <= arm} == {(0.0, 0.0, 0.0, 0.0)}
    climbing = [m for t, m in setpoints if t > arm + 0.1]
    assert climbing[0].vz == pytest.approx(-0.3)  # down is positive, and 0.3 m/s the limit
    assert {(m.vx, m.vy, m.yaw_rate) for m in climbing} == {(0.0, 0.0, 0.0)}
    assert climbing[-1].vz == pytest.approx(0.0, abs=1e-6)  # at 0.7 m


def test_messages_and_the_version_are_asked_for():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.lab = True
    autopilot.ticks(0.3)
    asked = {m.param1: m.param2 for _, m in autopilot.got if m.get_type() == "COMMAND_LONG" and m.command == 511}
    assert asked == {32: 20000, 30: 20000, 1: 500000, 147: 500000, 245: 200000, 0: 100000, 193: 200000}
    assert [m.param1 for _, m in autopilot.got if m.get_type() == "COMMAND_LONG" and m.command == 512] == [148]
    state = autopilot.guardian.state(autopilot.now)
    assert (state.autopilot, state.system, state.version, state.lab) == ("ArduPilot", 1, "4.8.0", True)


def test_lost_requests_are_sent_again_and_then_left():
    autopilot = FakeAutopilot("px4")
    autopilot.deaf = {511}
    autopilot.until(Phase.READY)
    autopilot.ticks(20.0)
    rounds = [t for t, m in autopilot.got if m.get_type() == "COMMAND_LONG" and m.command == 511 and m.param1 == 32]
    assert len(rounds) == 3


def test_an_autopilot_that_has_not_told_its_version_is_asked_again_and_not_armed():
    """It may be the lab or a real drone."""
    autopilot = FakeAutopilot("px4")
    autopilot.deaf = {512}
    autopilot.ticks(20.0)
    assert autopilot.guardian.state(autopilot.now).unready == ("the autopilot has not told its version yet",)
    autopilot.deaf = set()
    autopilot.until(Phase.READY)


@BOTH
def test_nothing_is_armed_without_an_order(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.until(Phase.READY)
    autopilot.ticks(10.0, autopilot.decide())
    assert autopilot.commands() == []
    assert not autopilot.setpoints([m for _, m in autopilot.got])
    assert autopilot.guardian.phase is Phase.READY


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"silent": {"POSE"}}, "there is no local position and attitude yet"),
        ({"flags": 830}, "estimator has flags 830; it needs 831"),
        ({"prearm": False}, "checks before arming are not passed"),
        ({"battery": 29}, "the battery has 29%; it must have 30%"),
        ({"battery": -1}, "the battery's charge is not known"),
        ({"armed": True}, "armed already"),
        ({"status": 5}, "system state 5"),
        ({"type": 1}, "type 1; wordwing flies multicopters"),
        ({"position": [2.1, 0.0, 0.0]}, "(2.10, 0.00); it must start within 2.00 m"),
        ({"position": [0.0, 0.0, -0.5]}, "0.50 m above the floor; it must stand on it"),
        ({"attitude": [0.2, 0.0, 0.0]}, "tilted by 11°; it must stand level"),
        ({"velocity": [0.0, 0.4, 0.0]}, "moves at 0.4 m/s; it must stand still"),
        (
            {"parameters": {**PARAMETERS["ardupilot"], "GUID_TIMEOUT": (3.0, 9)}},
            "GUID_TIMEOUT is 3; it must be from 0.1",
        ),
    ],
)
def test_what_speaks_against_arming_is_said_and_keeps_the_drone_on_the_floor(change, reason):
    autopilot = FakeAutopilot("ardupilot")
    for name, value in change.items():
        setattr(autopilot, name, value)
    autopilot.ticks(6.0)
    assert autopilot.guardian.phase is Phase.CONNECTING
    assert reason in reasons(autopilot)
    autopilot.ticks(1.0, TakeOff())
    assert autopilot.commands() == []
    assert reason in autopilot.story("refused")[0]


def test_px4_needs_no_pre_arm_bit_but_a_bad_one_counts():
    autopilot = FakeAutopilot("px4")
    autopilot.prearm = False
    autopilot.ticks(5.0)
    assert "checks before arming" in reasons(autopilot)
    autopilot.prearm = True
    autopilot.until(Phase.READY)


def test_a_drone_that_is_ready_is_not_for_ever():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.until(Phase.READY)
    autopilot.silent = {"all"}
    autopilot.ticks(0.3)
    assert autopilot.guardian.phase is Phase.CONNECTING
    autopilot.tick(TakeOff())
    assert autopilot.commands() == []


def test_other_autopilots_are_refused_in_a_sentence():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.say(mavlink.MAVLink_heartbeat_message(2, 0, 0, 0, 3, 3))
    autopilot.tick()
    assert reasons(autopilot) == "the autopilot is of kind 0; wordwing flies ArduPilot (3) and PX4 (12)"


def test_a_ground_station_and_a_camera_are_not_the_vehicle_and_a_second_vehicle_stops_all():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.say(mavlink.MAVLink_heartbeat_message(6, 8, 0, 0, 4, 3), system=255, component=190)
    autopilot.say(mavlink.MAVLink_heartbeat_message(30, 8, 0, 0, 4, 3), system=1, component=100)
    autopilot.until(Phase.READY)
    assert autopilot.guardian.state(autopilot.now).system == 1
    autopilot.say(mavlink.MAVLink_heartbeat_message(2, 3, 0, 0, 3, 3), system=2)
    autopilot.tick()
    assert reasons(autopilot) == "there are two vehicles on this link, systems 1 and 2; leave one"


def test_what_others_say_does_not_count():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.fly()
    autopilot.say(mavlink.MAVLink_heartbeat_message(2, 8, 0, 5, 4, 3), system=255, component=190)
    autopilot.say(mavlink.MAVLink_local_position_ned_message(0, math.nan, 0, 0, 0, 0, 0), system=1, component=158)
    autopilot.tick()
    assert autopilot.guardian.phase is Phase.FLYING


def test_narrow_margins_are_for_the_lab_only():
    fence = FenceMargins(0.3, 0.1, edge=0.0)
    autopilot = FakeAutopilot("ardupilot", fence=fence)
    autopilot.ticks(3.0)
    assert "margins under 0.35 m are for the lab" in reasons(autopilot)
    lab = FakeAutopilot("ardupilot", fence=fence)
    lab.lab = True
    lab.until(Phase.READY)


@BOTH
def test_wrong_parameters_are_written_only_when_allowed_and_ordered(kind):
    name, value, right = ("FS_GCS_ENABLE", 1, 5) if kind == "ardupilot" else ("COM_OBL_RC_ACT", 0, 4)
    for allowed in (False, True):
        autopilot = FakeAutopilot(kind, may_set_parameters=allowed)
        autopilot.parameters[name] = (value, autopilot.parameters[name][1])
        autopilot.ticks(5.0)
        finding = next(f for f in autopilot.guardian.state(autopilot.now).parameters if f.name == name)
        assert (finding.value, finding.write, finding.right) == (value, right, False)
        assert "PARAM_SET" not in kinds([m for _, m in autopilot.got])
        autopilot.tick(SetParameters())
        autopilot.ticks(2.0)
        assert autopilot.parameters[name][0] == (right if allowed else value)
        assert (autopilot.guardian.phase is Phase.READY) == allowed
    written = next(event for event in autopilot.guardian.events if event.text.startswith("writing"))
    assert written.values == {"name": name, "old": value, "new": right}


def test_older_names_will_do_and_a_missing_parameter_does_not():
    autopilot = FakeAutopilot("ardupilot")
    del autopilot.parameters["LAND_SPD_MS"], autopilot.parameters["MAV_GCS_SYSID"]
    autopilot.parameters |= {"LAND_SPEED": (30, 4), "SYSID_MYGCS": (245, 4)}
    autopilot.until(Phase.READY)
    autopilot = FakeAutopilot("ardupilot")
    del autopilot.parameters["FS_THR_ENABLE"]
    autopilot.ticks(6.0)
    assert "FS_THR_ENABLE was not told by the autopilot" in reasons(autopilot)
    asked = [m for _, m in autopilot.got if m.get_type() == "PARAM_REQUEST_READ" and m.param_id == "FS_THR_ENABLE"]
    assert len(asked) == 6


def test_a_parameter_that_not_every_px4_has_may_be_missing():
    autopilot = FakeAutopilot("px4")
    del autopilot.parameters["COM_FAIL_ACT_T"]
    autopilot.until(Phase.READY)


REFUSED = [("ardupilot", 176), ("ardupilot", 400), ("ardupilot", 22), ("px4", 176), ("px4", 400)]


@pytest.mark.parametrize(("kind", "command"), REFUSED)
def test_a_refused_command_ends_the_take_off_with_its_reason(kind, command):
    autopilot = FakeAutopilot(kind)
    autopilot.until(Phase.READY)
    autopilot.refuses[command] = 4
    autopilot.tick(TakeOff())
    autopilot.ticks(2.0)
    what = {176: "go to ", 400: "arm", 22: "take off"}[command]
    assert any(f"the autopilot refused to {what}" in text and "(failed)" in text for text in autopilot.story())
    if command == 22:
        assert autopilot.guardian.phase is Phase.LANDING
        autopilot.armed = False  # as it does by itself
    autopilot.ticks(3.0)
    assert autopilot.guardian.phase is Phase.LANDED
    assert len([c for c in autopilot.commands() if c[0] == command and c != autopilot.mode_command("LAND")]) == 1
    autopilot.ticks(1.0, TakeOff())
    assert autopilot.guardian.phase is Phase.LANDED


@pytest.mark.parametrize("kind", ["ardupilot", "px4"])
@pytest.mark.parametrize("command", [176, 400])
def test_a_command_that_is_lost_is_sent_again_but_not_for_ever(kind, command):
    autopilot = FakeAutopilot(kind)
    autopilot.until(Phase.READY)
    autopilot.deaf.add(command)
    autopilot.tick(TakeOff())
    autopilot.ticks(0.8)
    autopilot.deaf.clear()
    for _ in range(100):
        autopilot.tick()
        autopilot.rise()
    assert autopilot.story("phase")[-1].startswith(("holding", "landing: it has hovered"))
    autopilot = FakeAutopilot(kind)
    autopilot.until(Phase.READY)
    autopilot.deaf.add(command)
    autopilot.tick(TakeOff())
    autopilot.ticks(10.0)
    tries = [c for c in autopilot.commands() if c[0] == command and c != autopilot.mode_command("LAND")]
    assert len(tries) == 5
    assert any("did not answer 5 requests" in text for text in autopilot.story())
    assert autopilot.guardian.phase is Phase.LANDED


def test_a_lost_answer_does_no_harm_when_the_effect_shows():
    for kind in ("ardupilot", "px4"):
        autopilot = FakeAutopilot(kind)
        autopilot.mute = {176, 400}
        autopilot.take_off()
        assert len(autopilot.commands()) == (3 if kind == "ardupilot" else 2)


@pytest.mark.parametrize("seen_by", ["height", "state"])
def test_a_take_off_whose_answer_is_lost_is_not_asked_for_again_once_it_shows(seen_by):
    autopilot = FakeAutopilot("ardupilot")
    autopilot.mute = {22}
    autopilot.until(Phase.READY)
    autopilot.tick(TakeOff())
    autopilot.silent = {"LANDED"} if seen_by == "height" else set()
    while not any(command[0] == 22 for command in autopilot.commands()):
        autopilot.tick()
    autopilot.refuses[22] = 4  # as ArduCopter does in the air
    for tick in range(40):
        autopilot.tick()
        if seen_by == "height" or tick > 20:
            autopilot.rise()
    autopilot.until(Phase.HOLDING, 3.0)
    assert len([command for command in autopilot.commands() if command[0] == 22]) == 1


def test_arming_that_is_accepted_but_never_shows_ends_the_take_off():
    autopilot = FakeAutopilot("px4")
    autopilot.until(Phase.READY)
    autopilot.tick(TakeOff())
    while not any(command[0] == 400 for command in autopilot.commands()):
        autopilot.tick()
    for _ in range(120):
        autopilot.armed = False
        autopilot.tick()
    assert any("agreed to arm, but it did not happen" in text for text in autopilot.story())
    assert len([c for c in autopilot.commands() if c[0] == 400]) == 1
    assert autopilot.guardian.phase is Phase.LANDED


def test_a_drone_that_does_not_climb_is_landed():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.until(Phase.READY)
    autopilot.tick(TakeOff())
    autopilot.ticks(16.0)
    assert "landing: the drone did not hover within 15 s" in autopilot.story()
    assert autopilot.mode == autopilot.modes["LAND"]


def test_a_landing_while_arming_is_on_its_way_is_not_taken_for_a_landed_drone():
    autopilot = FakeAutopilot("px4")
    autopilot.until(Phase.READY)
    autopilot.deaf.add(400)
    autopilot.tick(TakeOff())
    while not any(command[0] == 400 for command in autopilot.commands()):
        autopilot.tick()
    autopilot.tick(Land())
    autopilot.ticks(0.5)
    assert autopilot.guardian.phase is Phase.LANDING
    assert autopilot.mode_command("LAND") in autopilot.commands()
    autopilot.armed = True  # the request has arrived after all
    autopilot.ticks(1.0)
    assert autopilot.guardian.phase is Phase.LANDING
    autopilot.armed = False
    autopilot.tick()
    assert autopilot.guardian.phase is Phase.LANDED


@BOTH
def test_land_is_asked_for_until_it_shows_and_zero_velocity_meanwhile(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.fly()
    autopilot.deaf.add(176)
    came = autopilot.tick(Land()) + autopilot.ticks(2.4)
    assert autopilot.commands(came) == [autopilot.mode_command("LAND")] * 5
    assert set(autopilot.setpoints(came)) == {(0.0, 0.0, 0.0)}
    assert len(autopilot.setpoints(came)) == 49
    autopilot.deaf.clear()
    autopilot.ticks(1.0)
    assert autopilot.mode == autopilot.modes["LAND"]
    came = autopilot.ticks(5.0)
    assert set(kinds(came)) == ({HEARTBEAT} if kind == "ardupilot" else {HEARTBEAT, "COMMAND_LONG"})
    assert autopilot.commands(came) == []  # but PX4 is asked for its heartbeat


def test_if_land_never_shows_all_else_stops_so_that_the_autopilots_failsafe_may_act():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.fly()
    autopilot.refuses[176] = 4
    autopilot.tick(Land())
    autopilot.ticks(3.0)
    came = autopilot.ticks(5.0)
    assert set(kinds(came)) == {"COMMAND_LONG"}
    assert set(autopilot.commands(came)) == {autopilot.mode_command("LAND")}


def test_a_landing_during_the_take_off_sends_no_setpoint():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.until(Phase.READY)
    autopilot.tick(TakeOff())
    autopilot.ticks(0.5)
    autopilot.deaf.add(176)
    autopilot.tick(Land())
    autopilot.ticks(1.0)
    assert not autopilot.setpoints([m for _, m in autopilot.got])


def test_an_order_to_land_on_the_floor_does_nothing():
    autopilot = FakeAutopilot("px4")
    autopilot.until(Phase.READY)
    autopilot.ticks(1.0, Land())
    assert autopilot.guardian.phase is Phase.READY
    assert autopilot.commands() == []


def test_dry_it_tells_what_it_would_send_and_sends_none_of_it():
    autopilot = FakeAutopilot("px4", dry=True, may_set_parameters=True)
    autopilot.parameters["NAV_RCL_ACT"] = (2, 6)
    autopilot.ticks(5.0)
    autopilot.tick(SetParameters())
    autopilot.parameters["NAV_RCL_ACT"] = (3, 6)
    autopilot._tell_parameter("NAV_RCL_ACT")
    autopilot.until(Phase.READY)
    autopilot.tick(TakeOff())
    for _ in range(20):
        autopilot.tick(autopilot.decide(0.7, -1.0))
    autopilot.tick(Land())
    autopilot.ticks(2.0)
    assert autopilot.guardian.phase is Phase.READY
    assert autopilot.commands() == []
    assert set(kinds([m for _, m in autopilot.got])) == {HEARTBEAT, "TIMESYNC", "COMMAND_LONG", "PARAM_REQUEST_READ"}
    told = [event for event in autopilot.guardian.events if event.kind == "would send"]
    assert told[0].text == "a take-off to 0.7 m: stream, mode, arm, hover"
    assert told[-1].values == pytest.approx({"forward": 0.7, "yaw_rate": -1.0, "up": 0.3})


def test_state_and_events_can_be_written_as_json():
    autopilot = FakeAutopilot("ardupilot", arena=Arena(north=1.0, east=2.0, heading_deg=90.0, floor_down=0.1))
    autopilot.position = [1.0, 3.0, 0.1]
    autopilot.attitude = [0.0, 0.0, math.pi / 2]
    autopilot.fly()
    state = json.loads(json.dumps(autopilot.guardian.state(autopilot.now).to_json()))
    assert state["phase"] == "flying"
    assert state["pose"] == pytest.approx([1.0, 0.0, 0.8, 0.0, 0.0, 0.0], abs=1e-3)
    assert state["setpoint"] == pytest.approx([0.075, 0.0, -0.1], abs=1e-3)
    assert (state["armed"], state["mode"], state["battery"], state["pose_age"]) == (True, "GUIDED", 0.9, 0.0)
    lines = [json.dumps(event.to_json()) for event in autopilot.guardian.events]
    assert json.loads(lines[-1])["kind"] == "setpoint"


def test_poses_are_told_in_the_world_frame_at_the_time_of_the_clock():
    autopilot = FakeAutopilot("ardupilot", arena=Arena(north=1.0, east=2.0, heading_deg=90.0, floor_down=0.1))
    for _ in range(10):
        autopilot.position[0] += 0.01  # to the north: the world's left
        autopilot.tick()
    time, (*position, _roll, _pitch, yaw) = autopilot.guardian.estimate.poses_since(0.275)[0]
    assert (time, *position) == pytest.approx((0.3, -2.0, -1.0 + 0.06, 0.1), abs=1e-3)
    assert yaw == pytest.approx(math.pi / 2)
    assert autopilot.guardian.estimate.poses_since(9.0) == []
    told = autopilot.guardian.estimate.poses_since(0.4)
    assert [time for time, _ in told] == pytest.approx([0.45, 0.5])
    assert told[-1][1] == pytest.approx((-2.0, -0.9, 0.1, 0.0, 0.0, math.pi / 2), abs=1e-3)


def test_another_pilot_may_come_before_the_take_off_but_not_after():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.until(Phase.READY)
    autopilot.guardian.order(PilotDisconnected(), autopilot.now)
    autopilot.guardian.order(KeepAlive(), autopilot.now)
    assert not autopilot.guardian.state(autopilot.now).done
    autopilot.fly()
    autopilot.guardian.order(PilotDisconnected(), autopilot.now)
    came = autopilot.tick(autopilot.decide())
    assert autopilot.setpoints(came)[0][0] == 0.0
    autopilot.ticks(1.0, Hold())
    assert autopilot.guardian.phase is Phase.LANDING
