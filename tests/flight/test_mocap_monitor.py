"""What the guardian makes of motion capture that stops, repeats itself, jumps, runs away or is not believed."""

import math

import numpy as np
import pytest

from fake_autopilot import FakeAutopilot
from wordwing.flight.guardian.pose_history import PoseHistory
from wordwing.flight.guardian.protocol import Phase, TakeOff
from wordwing.flight.guardian.state_estimate import MocapMonitor
from wordwing.flight.mavlink.parse_message import Attitude, Position

BOTH = pytest.mark.parametrize("kind", ["ardupilot", "px4"])
LEVEL = (1.0, 0.0, 0.0, 0.0)


def reasons(autopilot: FakeAutopilot) -> str:
    return "; ".join(autopilot.guardian.state(autopilot.now).unready)


@BOTH
def test_without_motion_capture_nothing_is_armed_though_the_autopilot_is_content(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.silent = {"MOCAP"}
    autopilot.ticks(5.0)
    assert autopilot.guardian.phase is Phase.CONNECTING
    assert reasons(autopilot).startswith("no motion capture has been heard")
    autopilot.ticks(1.0, TakeOff())
    assert autopilot.commands() == []


@BOTH
def test_a_drone_whose_autopilot_is_elsewhere_than_motion_capture_sees_it_is_not_armed(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.mocap_offset = [0.08, 0.08]  # 0.11 m
    autopilot.ticks(5.0)
    assert reasons(autopilot) == "the autopilot thinks that the drone is 0.11 m from where motion capture sees it"
    autopilot.mocap_offset = [0.05, 0.05]
    autopilot.until(Phase.READY)


@BOTH
def test_motion_capture_that_stops_lands_the_drone_after_a_fifth_of_a_second(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.fly()
    autopilot.silent = {"MOCAP"}
    stopped = autopilot.now
    autopilot.until(Phase.LANDING, order=autopilot.decide())
    assert autopilot.now - stopped == pytest.approx(0.25)
    assert autopilot.guardian.why == "motion capture is lost: its newest pose is 0.25 s old"


@BOTH
def test_motion_capture_that_repeats_itself_is_as_good_as_none(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.fly()
    autopilot.noise = 0.0
    autopilot.until(Phase.LANDING, 1.0, order=autopilot.decide())
    assert "motion capture is lost" in autopilot.guardian.why


@BOTH
@pytest.mark.parametrize("offset", [[0.6, 0.0], [0.0, -0.4]])
def test_a_jump_lands_the_drone_though_the_autopilot_does_not_follow_it(kind, offset):
    autopilot = FakeAutopilot(kind)
    autopilot.fly()
    autopilot.mocap_offset = offset
    autopilot.tick(autopilot.decide())
    assert autopilot.guardian.phase is Phase.LANDING
    assert autopilot.guardian.why.startswith("motion capture jumped by")


@BOTH
def test_a_jump_before_the_start_delays_it_by_two_seconds(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.until(Phase.READY)
    autopilot.position = [0.6, 0.0, 0.0]  # carried there
    autopilot.tick()
    assert "motion capture jumped by 0.30 m" in reasons(autopilot)
    autopilot.ticks(2.1)
    assert autopilot.guardian.phase is Phase.READY


@BOTH
def test_an_estimate_that_leaves_motion_capture_behind_lands_the_drone(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.fly()
    for _ in range(100):  # dead reckoning: the estimate creeps away from where the drone is seen
        autopilot.position[0] += 0.005
        autopilot.mocap_offset[0] -= 0.005
        autopilot.tick(autopilot.decide())
        if autopilot.guardian.phase is Phase.LANDING:
            break
    assert autopilot.position[0] == pytest.approx(0.255)
    assert "thinks that the drone is 0.25 m from where motion capture" in autopilot.guardian.why


@BOTH
def test_a_height_that_the_autopilot_gets_wrong_is_that_of_motion_capture(kind):
    autopilot = FakeAutopilot(kind)
    autopilot.height_bias = 0.09
    autopilot.take_off()
    autopilot.ticks(3.0, autopilot.decide(0.0))
    assert autopilot.guardian.state(autopilot.now).pose[2] == pytest.approx(-autopilot.position[2], abs=1e-3)
    ((_, vz, _),) = autopilot.setpoints(autopilot.tick(autopilot.decide(0.0)))
    assert vz == pytest.approx(0.0, abs=1e-3)


class Path:
    """A feed and an estimate at 50 Hz, flown as the rotors' lean commands, which a test may break."""

    def __init__(self) -> None:
        self.estimate = PoseHistory()
        self.watch = MocapMonitor(self.estimate)
        self.time = 0.0
        self.position, self.velocity = np.zeros(3), np.zeros(3)
        self.rng = np.random.default_rng(3)

    def fly(self, seconds: float, lean: tuple[float, float], feed=lambda position: position) -> str | None:
        """Lean forwards and to the left by some radians; what the feed is made of is given by `feed`."""
        for _ in range(round(seconds / 0.02)):
            self.time += 0.02
            acceleration = 9.81 * np.array([math.tan(lean[0]), math.tan(lean[1]), 0.0])
            self.position = self.position + self.velocity * 0.02 + acceleration * 0.0002
            self.velocity = self.velocity + acceleration * 0.02
            where = tuple(self.position)
            self.estimate.update(Position(self.time, where, tuple(self.velocity)), self.time)
            self.estimate.update(Attitude(self.time, (-lean[1], lean[0], 0.0), (0.0, 0.0, 0.0)), self.time)
            seen = feed(self.position) + 0.0005 * self.rng.standard_normal(3)
            self.watch.add(self.time, seen, LEVEL, self.time, flying=True)
        return self.watch.fault


def test_a_path_that_the_lean_explains_is_believed_however_hard_it_turns():
    path = Path()
    for lean in [(0.25, 0.0), (0.0, 0.25), (-0.25, 0.0), (0.0, -0.25), (0.0, 0.0)]:
        assert path.fly(0.5, lean) is None


def test_a_feed_that_stands_still_with_noise_while_the_drone_flies_is_not_believed():
    path = Path()
    path.fly(0.5, (0.15, 0.0))
    path.fly(1.0, (0.0, 0.0))  # 0.74 m/s
    frozen = path.position.copy()
    assert path.fly(0.3, (0.0, 0.0), lambda _position: frozen).endswith("off the path that the drone's lean explains")


def test_a_feed_that_stands_still_while_the_drone_leans_is_not_believed():
    path = Path()
    path.fly(1.0, (0.0, 0.0))
    assert "lean" in path.fly(1.0, (0.2, 0.0), lambda _position: np.zeros(3))


def test_velocities_are_those_of_the_path():
    watch = MocapMonitor(PoseHistory())
    assert watch.velocity() is None
    for time in np.arange(0.0, 0.5, 0.025):
        assert (watch.velocity() is None) == (time <= 0.15 + 1e-9)
        watch.add(time, (0.3 * time, -0.2 * time, 0.7), LEVEL, time)
    assert watch.velocity() == pytest.approx((0.3, -0.2))
