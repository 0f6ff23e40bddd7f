"""The guardian in the air against an autopilot made by hand: watchdogs, takeovers, lost links and pilots."""

import math

import numpy as np
import pytest
from pymavlink.dialects.v20 import ardupilotmega as mavlink

from fake_autopilot import TICK, FakeAutopilot
from wordwing.flight.guardian.guardian import Guardian
from wordwing.flight.guardian.protocol import (
    Decision,
    Hold,
    KeepAlive,
    Land,
    Phase,
    PilotDisconnected,
    SetParameters,
    TakeOff,
)
from wordwing.flight.guardian.safety import FlightLimits

BOTH = pytest.mark.parametrize("kind", ["ardupilot", "px4"])


def forward_speeds(autopilot: FakeAutopilot, ticks: int) -> list[float]:
    return [autopilot.setpoints(autopilot.tick())[0][0] for _ in range(ticks)]


def kinds(messages) -> set[str]:
    return {message.get_type() for message in messages}


@BOTH
def test_a_decision_is_flown_as_velocity_ahead_and_a_clockwise_yaw_rate(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.take_off()
    for _ in range(12):
        came = autopilot.tick(autopilot.decide(0.5, 0.4))
    ((vx, vz, yaw_rate),) = autopilot.setpoints(came)
    assert (vx, vz, yaw_rate) == pytest.approx((0.5, 0.0, -0.4), abs=1e-6)
    autopilot.position[2] = -0.6
    ((_, vz, _),) = autopilot.setpoints(autopilot.tick(autopilot.decide(0.5)))
    assert vz == pytest.approx(-0.1)


def test_a_decision_is_repeated_for_six_tenths_of_a_second_then_there_is_zero_velocity_then_a_landing():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.take_off()
    for _ in range(10):
        autopilot.tick(autopilot.decide())
    made_at = autopilot.now
    speeds = forward_speeds(autopilot, 11)  # up to 0.55 s after
    assert speeds == pytest.approx([0.5] * 11)
    assert autopilot.guardian.phase is Phase.FLYING
    assert forward_speeds(autopilot, 1) == [0.0]
    assert autopilot.now == pytest.approx(made_at + 0.6)
    assert autopilot.guardian.phase is Phase.HOLDING
    assert forward_speeds(autopilot, 59) == [0.0] * 59
    assert autopilot.guardian.phase is Phase.HOLDING
    came = autopilot.tick()
    assert autopilot.now == pytest.approx(made_at + 3.6)
    assert autopilot.guardian.phase is Phase.LANDING
    assert autopilot.commands(came) == [autopilot.mode_command("LAND")]
    assert autopilot.guardian.why == "it has hovered for 3 s: the last decision is older than 0.6 s"
    assert autopilot.guardian.reason == "no decision"


def test_time_counts_from_when_a_decision_was_made_not_from_when_it_came():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.take_off()
    autopilot.tick(autopilot.decide(age=0.4))
    assert len([speed for speed in forward_speeds(autopilot, 10) if speed > 0]) == 3
    autopilot.tick(autopilot.decide(age=0.6))
    assert autopilot.guardian.phase is Phase.HOLDING
    assert autopilot.story("refused") == ["the decision is 0.60 s old"]


def test_a_decision_from_the_future_is_no_better_than_one_from_now():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.take_off()
    autopilot.tick(autopilot.decide(age=-100.0, image_age=100.1))  # the picture is new, the clock is wrong
    autopilot.tick(autopilot.decide(age=-100.0))
    speeds = forward_speeds(autopilot, 20)
    assert speeds[-1] == 0.0
    assert speeds.index(0.0) == 11


@pytest.mark.parametrize("image_age", [0.51, -0.06, math.nan, math.inf])
def test_a_decision_from_an_old_image_stops_the_drone(image_age):
    autopilot = FakeAutopilot("ardupilot")
    autopilot.fly()
    came = autopilot.tick(autopilot.decide(image_age=image_age))
    assert autopilot.setpoints(came)[0][0] == 0.0
    assert autopilot.guardian.phase is Phase.HOLDING
    for _ in range(59):
        autopilot.tick(autopilot.decide(image_age=image_age))
    assert autopilot.guardian.phase is Phase.HOLDING
    autopilot.tick(autopilot.decide(image_age=image_age))
    assert autopilot.guardian.phase is Phase.LANDING


def test_a_frozen_camera_stops_and_lands_the_drone():
    autopilot = FakeAutopilot("px4")
    autopilot.fly()
    seen = autopilot.now
    stopped = landed = None
    for _ in range(100):
        made_at = autopilot.now + TICK
        autopilot.tick(Decision(0.5, 0.0, seen, made_at))
        stopped = stopped or (autopilot.guardian.phase is Phase.HOLDING and autopilot.now) or None
        landed = landed or (autopilot.guardian.phase is Phase.LANDING and autopilot.now) or None
    assert stopped - seen == pytest.approx(0.55)
    assert landed - stopped == pytest.approx(3.0)


def test_hovering_on_purpose_must_be_said_again_and_has_an_end():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.take_off()
    autopilot.tick(Hold())
    autopilot.ticks(2.9)
    assert autopilot.guardian.phase is Phase.HOLDING
    autopilot.ticks(0.1)
    assert autopilot.guardian.phase is Phase.LANDING
    autopilot = FakeAutopilot("ardupilot")
    autopilot.take_off()
    autopilot.ticks(29.0, Hold())
    assert autopilot.guardian.phase is Phase.HOLDING
    autopilot.ticks(1.1, Hold())
    assert autopilot.guardian.phase is Phase.LANDING
    assert autopilot.guardian.why == "the pilot has let it hover for 30 s"


def test_a_hold_stops_at_once():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.fly()
    assert autopilot.setpoints(autopilot.tick(Hold()))[0][0] == 0.0


@BOTH
def test_a_pose_older_than_a_fifth_of_a_second_lands_at_once(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.fly()
    autopilot.silent = {"POSE"}
    came = [autopilot.tick(autopilot.decide()) for _ in range(5)]
    assert [autopilot.commands(messages) for messages in came] == [[], [], [], [], [autopilot.mode_command("LAND")]]
    assert autopilot.setpoints(came[4]) == [(0.0, 0.0, 0.0)]
    assert autopilot.guardian.why == "the newest pose is 0.25 s old"
    assert autopilot.guardian.reason == "old pose"


def test_poses_that_have_queued_up_land_too():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.fly()
    autopilot.boot -= 0.25  # what comes from now on was made so much earlier
    for _ in range(5):
        autopilot.tick(autopilot.decide())
    assert autopilot.guardian.phase is Phase.LANDING


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"position": [0.6, 0.0, -0.7]}, "the position jumped by 0.60 m in 0.05 s"),
        ({"attitude": [0.0, 0.0, 2.0]}, "the heading jumped by 115° in 0.05 s"),
        ({"attitude": [0.62, 0.0, 0.0]}, "the drone is tilted by 36°"),
        ({"attitude": [0.0, -0.62, 0.0]}, "the drone is tilted by 36°"),
        ({"battery": 19}, "the battery has 19%"),
        ({"position": [math.nan, 0.0, -0.7]}, "LOCAL_POSITION_NED held a number that no drone can have"),
        ({"attitude": [0.0, 0.0, math.inf]}, "ATTITUDE held a number that no drone can have"),
    ],
)
def test_what_must_not_happen_in_the_air_lands_the_drone_at_once(change, why):
    autopilot = FakeAutopilot("px4")
    autopilot.fly()
    for name, value in change.items():
        setattr(autopilot, name, value)
    came = autopilot.tick(autopilot.decide())
    assert autopilot.guardian.phase is Phase.LANDING
    assert autopilot.guardian.why == why
    assert autopilot.commands(came) == [autopilot.mode_command("LAND")]


@pytest.mark.parametrize(
    ("axis", "target", "why"), [(0, 2.2, "from a fence"), (1, -2.2, "from a fence"), (2, -1.55, "high")]
)
def test_a_drone_that_is_carried_away_is_landed(axis, target, why):
    autopilot = FakeAutopilot("ardupilot")
    autopilot.fly()
    for _ in range(120):
        if autopilot.guardian.phase is Phase.LANDING:
            break
        autopilot.position[axis] += math.copysign(0.02, target)
        autopilot.tick(autopilot.decide())
    assert why in autopilot.guardian.why
    reached = abs(autopilot.position[axis])
    assert reached == pytest.approx({0: 2.18, 1: 2.18, 2: 1.51}[axis], abs=0.021)


def test_a_flight_has_an_end():
    assert FlightLimits().flight_time == 120.0
    autopilot = FakeAutopilot("ardupilot", limits=FlightLimits(flight_time=10.0))
    autopilot.fly()
    took_off = next(event.time for event in autopilot.guardian.events if event.text.startswith("taking off"))
    while autopilot.guardian.phase is Phase.FLYING:
        autopilot.tick(autopilot.decide(0.0))
    assert autopilot.guardian.why == "it has been flying for 10 s"
    assert autopilot.now - took_off == pytest.approx(10.05, abs=0.051)


def test_a_guardian_that_was_away_stops_the_drone_and_says_so():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.take_off()
    autopilot.tick(autopilot.decide())
    autopilot.now = round(autopilot.now + 0.2, 6)
    came = autopilot.tick()
    assert autopilot.setpoints(came)[0][0] == 0.0
    assert autopilot.guardian.phase is Phase.HOLDING
    assert "the guardian was away for 0.25 s" in autopilot.story("note")
    autopilot.tick(autopilot.decide())
    assert autopilot.guardian.phase is Phase.FLYING


@BOTH
def test_a_pilot_that_is_gone_stops_the_drone_at_once_and_lands_it_after_a_second(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.fly()
    autopilot.pilot = False
    gone_at = autopilot.now
    came = autopilot.tick(PilotDisconnected())
    assert autopilot.setpoints(came)[0][0] == 0.0
    came += autopilot.ticks(0.95)
    assert autopilot.guardian.phase is Phase.HOLDING
    came += autopilot.tick()
    assert autopilot.guardian.phase is Phase.LANDING
    assert autopilot.now - gone_at == pytest.approx(1.05)
    autopilot.ticks(5.0)
    assert "HEARTBEAT" not in kinds(m for t, m in autopilot.got if t > gone_at)
    assert autopilot.mode == autopilot.modes["LAND"]


def test_a_silent_pilot_is_landed_after_a_second_and_has_no_heartbeat():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.fly()
    autopilot.pilot = False
    silent_at = autopilot.now
    speeds = forward_speeds(autopilot, 19)
    assert speeds[-1] == 0.0
    assert autopilot.guardian.phase is Phase.HOLDING
    autopilot.tick()
    assert autopilot.guardian.phase is Phase.LANDING
    autopilot.ticks(5.0)
    assert "HEARTBEAT" not in kinds(m for t, m in autopilot.got if t >= silent_at + 1.0)


def test_a_pilot_that_goes_during_the_take_off_is_missed_too():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.until(Phase.READY)
    autopilot.tick(TakeOff())
    autopilot.pilot = False
    autopilot.ticks(1.2)
    assert autopilot.guardian.phase is Phase.LANDING
    assert not autopilot.setpoints([m for _, m in autopilot.got])


def in_phase(kind: str, phase: Phase) -> FakeAutopilot:
    autopilot = FakeAutopilot(kind)
    if phase is Phase.TAKING_OFF:
        autopilot.until(Phase.READY)
        autopilot.tick(TakeOff())
        while not autopilot.armed:
            autopilot.tick()
        autopilot.ticks(0.2)
    else:
        autopilot.fly()
    if phase is Phase.HOLDING:
        autopilot.tick(Hold())
    if phase is Phase.LANDING:
        autopilot.tick(Land())
        autopilot.tick()
    assert autopilot.guardian.phase is phase
    return autopilot


IN_FLIGHT = pytest.mark.parametrize("phase", [Phase.TAKING_OFF, Phase.HOLDING, Phase.FLYING, Phase.LANDING])


def assert_hands_off(autopilot: FakeAutopilot) -> None:
    """Nothing but heartbeats comes any more, whatever is ordered and whatever the drone does."""
    assert autopilot.guardian.phase is Phase.RELEASED
    came = autopilot.ticks(1.0)
    for order in (TakeOff(), Hold(), Land(), SetParameters(), autopilot.decide()):
        came += autopilot.tick(order)
    autopilot.silent = {"POSE"}
    came += autopilot.ticks(1.0)
    autopilot.silent = {"all"}
    came += autopilot.ticks(3.0)
    autopilot.silent = set()
    for name in ("GUIDED", "OFFBOARD", "LAND", "STABILIZE"):
        autopilot.mode = autopilot.modes.get(name, autopilot.mode)
        came += autopilot.ticks(0.5, autopilot.decide())
    autopilot.armed = False
    came += autopilot.ticks(1.0, TakeOff())
    assert kinds(came) == {"HEARTBEAT"}
    assert autopilot.guardian.phase is Phase.RELEASED
    assert autopilot.guardian.state(autopilot.now).done


@BOTH
@IN_FLIGHT
@pytest.mark.parametrize("mode", ["RTL", "STABILIZE"])
def test_a_mode_without_our_order_means_hands_off_in_every_phase(kind, phase, mode):
    autopilot = in_phase(kind, phase)
    autopilot.mode = autopilot.modes[mode]
    assert kinds(autopilot.tick(autopilot.decide())) <= {"HEARTBEAT"}
    assert "without our order" in autopilot.guardian.why
    assert_hands_off(autopilot)


@BOTH
def test_the_autopilots_own_landing_in_flight_is_not_ours(kind):
    autopilot = in_phase(kind, Phase.FLYING)
    autopilot.mode = autopilot.modes["LAND"]
    autopilot.tick()
    assert_hands_off(autopilot)


def test_a_pilot_who_takes_over_after_the_land_mode_has_shown_keeps_the_drone():
    autopilot = in_phase("ardupilot", Phase.LANDING)
    autopilot.mode = autopilot.modes["GUIDED"]  # back to where it was, but not by us
    autopilot.tick()
    assert_hands_off(autopilot)


def test_a_takeover_between_a_mode_command_and_its_answer_is_not_undone():
    autopilot = FakeAutopilot("px4")
    autopilot.until(Phase.READY)
    autopilot.tick(TakeOff())
    while not any(command[2] == 6.0 for command in autopilot.commands()):
        autopilot.tick()
        autopilot.rise()
    autopilot.mode = autopilot.modes["POSCTL"]  # it was in OFFBOARD for a moment that no heartbeat has seen
    autopilot.tick()
    assert_hands_off(autopilot)
    assert len([command for command in autopilot.commands() if command[2] == 6.0]) == 1


def test_offboard_before_we_asked_for_it_is_not_ours():
    autopilot = FakeAutopilot("px4")
    autopilot.until(Phase.READY)
    autopilot.tick(TakeOff())
    while not autopilot.setpoints(autopilot.tick()):
        autopilot.rise()
    autopilot.mode = autopilot.modes["OFFBOARD"]
    autopilot.tick()
    assert_hands_off(autopilot)


def test_without_a_newer_heartbeat_no_mode_and_no_arming_is_asked_for_again():
    for command in (176, 400):
        autopilot = FakeAutopilot("ardupilot")
        autopilot.until(Phase.READY)
        autopilot.deaf.add(command)
        autopilot.tick(TakeOff())
        while not any(c[0] == command for c in autopilot.commands()):
            autopilot.tick()
        autopilot.silent = {"HEARTBEAT"}
        autopilot.ticks(1.8)
        assert len([c for c in autopilot.commands() if c[0] == command]) == 1


@BOTH
@pytest.mark.parametrize("phase", [Phase.TAKING_OFF, Phase.HOLDING, Phase.FLYING])
def test_a_drone_disarmed_by_someone_else_is_never_armed_again(kind, phase):
    autopilot = in_phase(kind, phase)
    autopilot.armed = False
    autopilot.tick()
    assert "disarmed without our order" in autopilot.guardian.why
    assert_hands_off(autopilot)


@BOTH
@IN_FLIGHT
def test_an_autopilot_that_starts_anew_is_left_alone(kind, phase):
    autopilot = in_phase(kind, phase)
    autopilot.boot = -autopilot.now
    autopilot.ticks(0.2)
    assert autopilot.guardian.why == "the autopilot has been started anew"
    assert_hands_off(autopilot)


def test_an_autopilot_that_starts_anew_before_the_take_off_is_not_armed():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.until(Phase.READY)
    autopilot.boot = -autopilot.now
    autopilot.ticks(1.0)
    assert_hands_off(autopilot)
    assert autopilot.commands() == []


def test_a_heartbeat_that_was_overtaken_is_no_takeover():
    autopilot = FakeAutopilot("px4")
    autopilot.take_off()
    late = mavlink.MAVLink_heartbeat_message(2, 12, 129, autopilot.modes["LOITER"], 4, 3)
    sender = mavlink.MAVLink(None, 1, 1)
    sender.seq = (autopilot._pack.seq - 5) % 256
    packet = late.pack(sender)
    autopilot.guardian.receive(mavlink.MAVLink(None).decode(bytearray(packet)), autopilot.now)
    assert autopilot.guardian.phase is Phase.HOLDING
    sender.seq = autopilot._pack.seq
    packet = late.pack(sender)
    autopilot.guardian.receive(mavlink.MAVLink(None).decode(bytearray(packet)), autopilot.now)
    assert autopilot.guardian.phase is Phase.RELEASED


@BOTH
def test_without_heartbeats_the_link_is_lost_land_is_sent_for_a_while_and_then_there_is_silence(kind):
    autopilot = in_phase(kind, Phase.FLYING)
    autopilot.silent = {"HEARTBEAT"}
    autopilot.deaf = {176}
    for _ in range(39):
        autopilot.tick(autopilot.decide(0.0))
    assert autopilot.guardian.phase is Phase.FLYING
    came = [m for _ in range(60) for m in autopilot.tick(autopilot.decide(0.0))]
    assert autopilot.guardian.phase is Phase.LOST
    assert kinds(came[2:]) == {"COMMAND_LONG"}
    assert set(autopilot.commands(came)) == {autopilot.mode_command("LAND")}
    assert 2 <= len(autopilot.commands(came)) <= 4
    assert autopilot.ticks(50.0) == []
    assert not autopilot.guardian.state(autopilot.now).done
    autopilot.ticks(12.0)
    assert autopilot.guardian.state(autopilot.now).done


@BOTH
def test_a_drone_that_is_heard_again_is_landed(kind):
    autopilot = in_phase(kind, Phase.FLYING)
    autopilot.silent, autopilot.deaf = {"all"}, {176}
    autopilot.ticks(8.0)
    assert autopilot.guardian.phase is Phase.LOST
    autopilot.silent, autopilot.deaf = set(), set()
    autopilot.ticks(0.2)
    assert autopilot.guardian.phase is Phase.LANDING
    assert autopilot.mode == autopilot.modes["LAND"]
    autopilot.armed = False
    autopilot.tick()
    assert autopilot.guardian.phase is Phase.LANDED


def test_a_drone_that_is_heard_again_in_another_mode_is_left_alone():
    autopilot = in_phase("ardupilot", Phase.FLYING)
    autopilot.silent = {"all"}
    autopilot.deaf = {176}
    autopilot.ticks(8.0)
    autopilot.silent = set()
    autopilot.mode = autopilot.modes["LOITER"]
    autopilot.tick()
    assert_hands_off(autopilot)


def test_a_drone_that_landed_is_never_armed_again():
    autopilot = in_phase("ardupilot", Phase.LANDING)
    autopilot.armed = False
    autopilot.tick()
    assert autopilot.guardian.phase is Phase.LANDED
    came = autopilot.ticks(2.0, TakeOff()) + autopilot.ticks(2.0, autopilot.decide()) + autopilot.ticks(2.0, Land())
    assert kinds(came) == {"HEARTBEAT"}


SENT = ("HEARTBEAT", "TIMESYNC", "COMMAND_LONG", "SET_POSITION_TARGET_LOCAL_NED", "PARAM_REQUEST_READ")


def random_message(autopilot: FakeAutopilot, rng: np.random.Generator):
    time = round((autopilot.boot + autopilot.now) * 1000)
    number = float(rng.choice([0.0, 0.3, -0.7, 5.0, 1e30, math.nan, math.inf]))
    mode = int(rng.choice([*autopilot.modes.values(), 77]))
    return [
        mavlink.MAVLink_heartbeat_message(2, int(rng.choice([3, 12])), int(rng.choice([1, 129])), mode, 4, 3),
        mavlink.MAVLink_local_position_ned_message(time, number, 0, -0.7, 0, number, 0),
        mavlink.MAVLink_attitude_message(time, number, 0, 0, 0, 0, number),
        mavlink.MAVLink_command_ack_message(int(rng.choice([22, 176, 400, 511])), int(rng.integers(0, 7))),
        mavlink.MAVLink_battery_status_message(0, 0, 0, 0, [0] * 10, 0, 0, 0, int(rng.integers(-1, 101))),
        mavlink.MAVLink_local_position_ned_message(int(rng.integers(0, 2**32)), 0, 0, 0, 0, 0, 0),
        mavlink.MAVLink_param_value_message(b"GUID_TIMEOUT", number, 9, 1, 0),
        mavlink.MAVLink_extended_sys_state_message(0, int(rng.integers(0, 5))),
    ][int(rng.integers(8))]


def check(previous: tuple[float, float] | None, message) -> tuple[float, float]:
    """That a setpoint is inside all limits, and speeds up no more than it may since the previous one."""
    assert 0.0 <= message.vx <= 0.7 + 1e-6
    assert message.vy == 0.0
    assert abs(message.vz) <= 0.3 + 1e-6
    assert abs(message.yaw_rate) <= 1.0 + 1e-6
    assert (message.type_mask, message.coordinate_frame) == (1479, 8)
    if previous is not None:
        assert message.vx <= previous[0] + 0.1 * 1.5 + 1e-6
        if message.yaw_rate * previous[1] > 0:
            assert abs(message.yaw_rate) <= abs(previous[1]) + 0.1 * 4.0 + 1e-6
    return message.vx, message.yaw_rate


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(8, 120))])
def test_whatever_comes_nothing_goes_out_that_must_not(seed):
    rng = np.random.default_rng(seed)
    autopilot = FakeAutopilot(["ardupilot", "px4"][seed % 2])
    autopilot.mute = {int(rng.choice([22, 176, 400, 0]))}
    previous, arms = None, 0
    released = took_off = ordered = False
    rare = float(rng.choice([0.0, 0.003, 0.02]))
    for tick in range(400):
        autopilot.rise()
        if rng.random() < rare:
            autopilot.say(random_message(autopilot, rng))
        if rng.random() < rare / 4:
            autopilot.mode = int(rng.choice(list(autopilot.modes.values())))
        if rng.random() < rare / 4:
            autopilot.armed = not autopilot.armed
        if rng.random() < rare:
            autopilot.silent = {"all"} if not autopilot.silent else set()
        if rng.random() < rare / 8:  # the guardian's computer was busy, or asleep
            autopilot.now = round(autopilot.now + float(rng.choice([0.3, 1.5, 25.0])), 6)
        order = None
        if tick % 6 == 0:
            numbers = rng.choice([0.5, -2.0, 3.0, math.nan, math.inf, 0.0, -0.9], 2)
            ages = rng.choice([0.0, 0.1, 0.4, 0.8], 2)
            order = autopilot.decide(*map(float, numbers), *map(float, ages))
        if rng.random() < 0.05 and not took_off:
            order, took_off = TakeOff(), autopilot.guardian.phase is Phase.READY
        elif rng.random() < 0.01:
            order = [Hold(), Land(), KeepAlive(), SetParameters(), TakeOff()][int(rng.integers(5))]
        ordered |= isinstance(order, TakeOff)
        came = autopilot.tick(order)
        for message in came:
            kind = message.get_type()
            assert not (released and kind != "HEARTBEAT")
            assert kind in SENT
            if kind == "SET_POSITION_TARGET_LOCAL_NED":
                previous = check(previous, message)
            if kind == "COMMAND_LONG" and message.command == 400:
                assert (message.param1, message.param2) == (1.0, 0.0)
                assert ordered
                arms += 1
        released |= autopilot.guardian.phase in (Phase.RELEASED, Phase.LANDED)
    assert arms <= 5


def test_the_guardian_needs_no_autopilot_to_be_asked():
    guardian = Guardian(FakeAutopilot().guardian.estimate._arena)
    for order in (KeepAlive(), TakeOff(), Hold(), Land(), SetParameters(), Decision(1, 1, 0, 0), PilotDisconnected()):
        guardian.order(order, 0.0)
    assert guardian.tick(0.05) == []
    state = guardian.state(0.05)
    assert (state.phase, state.pose, state.done) == (Phase.CONNECTING, None, True)


def test_an_estimator_that_loses_its_place_lands_the_drone_whatever_positions_still_come():
    autopilot = FakeAutopilot("ardupilot")
    autopilot.fly()
    autopilot.flags = 831 & ~16
    autopilot.ticks(1.0, autopilot.decide())
    assert autopilot.guardian.phase is Phase.LANDING
    assert "lost its position" in autopilot.guardian.why
