"""Clocks, histories, ages, jumps and restarts, by hand-made messages."""

import math

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from wordwing.flight.guardian.pose_history import PoseHistory, TimeSeries
from wordwing.flight.mavlink.clock import ClockSync
from wordwing.flight.mavlink.parse_message import Attitude, Position

STILL = (0.0, 0.0, 0.0)


def feed(estimate: PoseHistory, boot: float, now: float, position=STILL, yaw: float = 0.0) -> None:
    estimate.update(Position(boot, position, (0.1, 0.2, 0.3)), now)
    estimate.update(Attitude(boot, (0.0, 0.0, yaw), (0.4, 0.5, 0.6)), now)


def test_the_smallest_delay_ties_the_clocks():
    sync = ClockSync(window=10.0)
    assert math.isnan(sync.offset)
    for boot, delay in ((0.0, 0.09), (1.0, 0.02), (2.0, 0.3), (3.0, 0.05)):
        sync.add(boot, 100.0 + boot + delay)
    assert sync.offset == pytest.approx(100.02)


def test_a_delay_is_forgotten_after_the_window(rng):
    sync = ClockSync(window=5.0)
    heard = []
    for boot in np.arange(0.0, 100.0, 0.5):
        now = 7.0 + boot + rng.uniform(0.01, 0.4)
        sync.add(boot, now)
        heard.append((now, now - boot))
        expected = min(offset for then, offset in heard if then >= now - 5.0)
        assert sync.offset == pytest.approx(expected)


def test_what_has_queued_up_shows_as_old():
    estimate = PoseHistory()
    assert estimate.age(0.0) == math.inf
    assert estimate.newest() is None
    feed(estimate, 10.0, 50.01)
    assert estimate.age(50.01) == pytest.approx(0.0)
    feed(estimate, 10.1, 50.45)
    assert estimate.age(50.45) == pytest.approx(0.34)
    assert estimate.age(51.0) == pytest.approx(0.89)


def test_the_age_is_that_of_the_older_of_position_and_attitude():
    estimate = PoseHistory()
    feed(estimate, 10.0, 20.0)
    estimate.update(Position(10.5, STILL, STILL), 20.5)
    assert estimate.age(20.5) == pytest.approx(0.5)
    estimate.update(Attitude(10.4, STILL, STILL), 20.5)
    assert estimate.age(20.5) == pytest.approx(0.1)


def test_poses_are_interpolated_in_our_time():
    estimate = PoseHistory()
    for step in range(11):
        feed(estimate, 3.0 + 0.1 * step, 13.0 + 0.1 * step, (0.2 * step, -0.1 * step, 1.0), 0.05 * step)
    moment = estimate.pose_at(13.47)
    assert moment.position == pytest.approx((0.94, -0.47, 1.0))
    assert moment.velocity == pytest.approx((0.1, 0.2, 0.3))
    assert moment.angles == pytest.approx((0.0, 0.0, 0.235))
    assert moment.rates == pytest.approx((0.4, 0.5, 0.6))
    assert estimate.pose_at(12.9) is None
    assert estimate.pose_at(14.1) is None
    assert estimate.newest_time() == pytest.approx(14.0)
    assert estimate.pose_at(estimate.newest_time()).position == pytest.approx((2.0, -1.0, 1.0))
    assert estimate.times_since(13.75) == pytest.approx([13.8, 13.9, 14.0])


def test_headings_are_interpolated_the_short_way_round_as_scipy_does():
    estimate = PoseHistory()
    for step, yaw in enumerate((3.0, -3.1)):
        feed(estimate, float(step), float(step), yaw=yaw)
    for share in (0.1, 0.5, 0.9):
        yaw = estimate.pose_at(share).angles[2]
        theirs = Slerp([0, 1], Rotation.from_euler("Z", [[3.0], [-3.1]]))(share).as_euler("ZYX")[0]
        assert math.remainder(yaw - theirs, math.tau) == pytest.approx(0.0, abs=1e-9)


def test_two_seconds_are_remembered_and_overtaken_packets_are_not():
    track = TimeSeries(memory=2.0)
    for step in range(100):
        assert track.add(0.1 * step, (float(step),))
    assert not track.add(9.0, (0.0,))
    assert track.at(7.9) == pytest.approx((79.0,))
    assert track.at(7.8) is None
    assert track.newest == (pytest.approx(9.9), (99.0,))


def test_a_jump_is_more_than_a_drone_can_do():
    for distance, jumps in ((0.35, False), (0.37, True)):  # 0.3 m and 3 m/s for 0.02 s
        estimate = PoseHistory()
        feed(estimate, 1.0, 1.0)
        feed(estimate, 1.02, 1.02, (0.0, distance, 0.0))
        assert (estimate.jump is not None) == jumps
    assert estimate.jumped_at == 1.02
    assert estimate.jump == "the position jumped by 0.37 m in 0.02 s"


def test_a_long_gap_allows_a_longer_way():
    for distance, jumps in ((1.7, False), (1.9, True)):
        estimate = PoseHistory()
        feed(estimate, 1.0, 1.0)
        feed(estimate, 1.5, 1.5, (distance, 0.0, 0.0))
        assert (estimate.jump is not None) == jumps


def test_a_heading_that_flips_is_a_jump_but_not_one_that_passes_south():
    estimate = PoseHistory()
    feed(estimate, 1.0, 1.0, yaw=3.1)
    feed(estimate, 1.02, 1.02, yaw=-3.1)
    assert estimate.jump is None
    feed(estimate, 1.04, 1.04, yaw=0.0)
    assert "heading" in estimate.jump


def test_an_autopilot_that_starts_anew_is_noticed_and_a_late_packet_is_not_one():
    estimate = PoseHistory()
    feed(estimate, 100.0, 10.0)
    estimate.update(Position(98.0, STILL, STILL), 10.05)
    feed(estimate, 100.1, 10.1)
    estimate.update(Position(98.1, STILL, STILL), 10.15)
    assert not estimate.rebooted
    feed(estimate, 0.5, 10.2)
    assert estimate.rebooted
    assert estimate.age(10.3) == pytest.approx(0.2)


def test_an_exchange_of_times_takes_the_delay_of_all_messages_into_account():
    sync = ClockSync()
    for step in range(10):
        sync.add(step * 0.1, 5.0 + step * 0.1 + 0.04)  # the clocks are 5 s apart, each message takes 40 ms
    assert sync.offset == pytest.approx(5.04)
    sync.add_reply(asked=6.0, boot=1.01, now=6.02)  # 10 ms there, 10 ms back
    assert sync.offset == pytest.approx(5.0)


def test_a_slower_exchange_does_not_count_while_a_quicker_one_is_remembered():
    sync = ClockSync(window=10.0)
    sync.add_reply(1.0, 0.005, 1.01)
    sync.add_reply(2.0, 1.0, 2.08)  # 80 ms, and nobody knows how many of them there
    assert sync.offset == pytest.approx(1.0)
    sync.add_reply(20.0, 19.0, 20.04)
    assert sync.offset == pytest.approx(1.02)


@pytest.mark.parametrize(("asked", "now"), [(5.0, 4.9), (5.0, 5.2), (-1e9, 5.0)])
def test_an_exchange_that_took_long_or_went_backwards_does_not_count(asked, now):
    sync = ClockSync()
    sync.add(1.0, 4.0)
    sync.add_reply(asked, 1.0, now)
    assert sync.offset == pytest.approx(3.0)
