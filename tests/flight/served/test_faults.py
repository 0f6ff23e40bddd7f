"""Each fault does what it says, from its moment on and for its while, and the same for the same seed."""

from itertools import pairwise

import numpy as np
import pytest

from served_flight import QUICK, Companion, empty_lab
from wordwing.flight.served import faults
from wordwing.flight.served.faults import Fault, FaultSchedule, LossyChannel
from wordwing.flight.served.vehicle import ServedLab
from wordwing.frames import ARENA_HALF

BOTH = pytest.mark.parametrize("autopilot", ["ardupilot", "px4"])
INTERVAL, ATTITUDE, LOCAL_POSITION = 511, 30, 32


def airborne(autopilot: str, *some: Fault, **options: object) -> tuple[ServedLab, Companion]:
    lab = empty_lab(autopilot, faults=some, **options)
    companion = Companion(lab)
    companion.take_off()
    companion.command(INTERVAL, ATTITUDE, 20_000)
    companion.command(INTERVAL, LOCAL_POSITION, 20_000)
    return lab, companion


def fly_until(companion: Companion, time: float, *setpoint: float) -> None:
    while companion.lab.time < time - 1e-6:
        companion.fly(0.05, *(setpoint or (0.0, 0.0)))


def sent_through(some: list[Fault], direction: str, seed: int = 0) -> list[tuple[float, int]]:
    """When each of 1000 numbers arrives that are sent every 10 ms."""
    pipe = LossyChannel(FaultSchedule(some, seed, 0.01), direction, seed)  # type: ignore[arg-type]
    arrived = []
    for step in range(1300):
        time = step * 0.01
        if step < 1000:
            pipe.send(step, time)
        arrived += [(time, number) for number in pipe.receive(time)]
    return arrived


def test_packet_loss_takes_its_share_while_it_lasts():
    numbers = {number for _time, number in sent_through([faults.PacketLoss(2.0, 5.0, share=0.3)], "in")}
    assert {*range(200), *range(700, 1000)} <= numbers
    assert len(numbers & set(range(200, 700))) == pytest.approx(350, abs=35)


@pytest.mark.parametrize(("direction", "lost"), [("in", True), ("out", False), ("both", True)])
def test_packet_loss_goes_its_way(direction, lost):
    assert (len(sent_through([faults.PacketLoss(0.0, share=1.0, direction=direction)], "in")) == 0) == lost


def test_delayed_packets_come_late_and_in_order():
    arrived = sent_through([faults.Delay(2.0, 5.0, seconds=0.3)], "out")
    assert len(arrived) == 1000
    delayed = [(time, number) for time, number in arrived if 200 <= number < 700]
    assert [number for _time, number in delayed] == list(range(200, 700))
    assert [time - number * 0.01 for time, number in delayed] == pytest.approx([0.3] * 500, abs=0.011)


def test_reordered_packets_all_come_but_some_are_overtaken():
    numbers = [number for _time, number in sent_through([faults.Reordering(2.0, 5.0)], "in")]
    assert sorted(numbers) == list(range(1000))
    assert numbers[:200] == list(range(200))
    overtaken = sum(a > b for a, b in pairwise(numbers))
    assert 30 < overtaken < 250


def test_the_same_seed_loses_the_same_packets():
    some = [faults.PacketLoss(0.0, share=0.5), faults.Reordering(0.0)]
    assert sent_through(some, "in", 3) == sent_through(some, "in", 3)
    assert sent_through(some, "in", 3) != sent_through(some, "in", 4)
    assert sent_through(some, "in", 3) != sent_through(some, "out", 3)


PATIENT = {"ardupilot": {}, "px4": {"EKF2_NOAID_TOUT": 5e6}}
"""How long PX4 reckons unless it is told otherwise."""


@BOTH
def test_with_a_dead_link_it_ends_on_the_floor(autopilot):
    lab, companion = airborne(autopilot, faults.PacketLoss(11.0, share=1.0))
    fly_until(companion, 11.0, 0.4, 0.0)
    heard = len(companion.heard)
    fly_until(companion, 22.0, 0.4, 0.0)
    assert len(companion.heard) == heard
    assert not lab.armed
    assert bool((lab.true_pose.xy.abs() <= 2.35).all())


@BOTH
def test_overtaken_setpoints_are_not_flown(autopilot):
    lab, companion = airborne(autopilot, faults.Reordering(11.0, share=0.5, seconds=0.2, direction="in"))
    fly_until(companion, 11.0)
    flown = len(lab.autopilot.accepted)
    for number in range(100):
        companion.setpoint(number * 1e-3, 0.0)
        companion.wait(0.05)
    speeds = [wanted.forward for _time, wanted in lab.autopilot.accepted[flown:]]
    assert speeds == sorted(speeds)
    assert len(speeds) < 100
    assert lab.packet_filter.dropped["old"] > 5


def test_a_frozen_camera_sends_the_same_image_with_new_times_or_none():
    for still in (True, False):
        lab = empty_lab("ardupilot", faults=[faults.FrozenCamera(1.0, 1.0, still=still)], config=QUICK)
        lab.advance(0.9)
        last, last_time = lab.image()
        lab.advance(0.2)
        frozen, time = lab.image()
        assert np.array_equal(frozen, last)
        assert time == pytest.approx(lab.time - 0.06 if still else last_time)
        lab.advance(1.0)
        alive, time = lab.image()
        assert not np.array_equal(alive, last)  # at the least its noise is new
        assert time == pytest.approx(lab.time - 0.06)


def test_images_are_raw_and_of_a_moment_60_milliseconds_ago():
    lab = empty_lab("px4", config=QUICK)
    lab.advance(0.5)
    image, time = lab.image()
    assert image.shape == (28, 48, 3)
    assert image.dtype == np.uint8
    assert time == pytest.approx(0.44)


@BOTH
def test_motion_capture_jumps_at_once_and_the_estimate_follows_in_four_seconds(autopilot):
    lab, companion = airborne(autopilot, faults.PoseJump(12.0, 5.0, offset=(1.0, 0.5)))
    fly_until(companion, 11.9)
    true = lab.true_pose.position
    before = companion.last("LOCAL_POSITION_NED")
    lab.mocap.take()
    fly_until(companion, 13.0)
    first, *_, last = [pose.position[:2] for pose in lab.mocap.take()]
    assert np.linalg.norm(np.subtract(last, first)) == pytest.approx(np.hypot(1.0, 0.5), abs=0.05)
    for time, share in ((13.0, 0.25), (16.5, 1.0)):
        fly_until(companion, time)
        told = companion.last("LOCAL_POSITION_NED")
        moved = np.hypot(told.x - before.x, told.y - before.y)
        assert moved == pytest.approx(share * np.hypot(1.0, 0.5), abs=0.05)
    fly_until(companion, 17.5)
    back = companion.last("LOCAL_POSITION_NED")
    assert (back.x, back.y) == pytest.approx((before.x, before.y), abs=0.05)
    assert (lab.true_pose.position - true).norm() < 0.05


@BOTH
def test_motion_capture_that_drifts_takes_the_estimate_along_and_the_drone_the_other_way(autopilot):
    lab, companion = airborne(autopilot, faults.PoseDrift(12.0, speed=0.1))
    fly_until(companion, 12.0)
    true, told = lab.true_pose.position[0].numpy(), companion.last("LOCAL_POSITION_NED")
    lab.mocap.take()
    fly_until(companion, 15.0)
    later = companion.last("LOCAL_POSITION_NED")
    assert np.hypot(later.x - told.x, later.y - told.y) < 0.08
    first, *_, last = [pose.position[:2] for pose in lab.mocap.take()]
    assert np.linalg.norm(np.subtract(last, first)) < 0.08
    assert np.linalg.norm(lab.true_pose.position[0].numpy() - true) == pytest.approx(0.3, abs=0.08)


@BOTH
def test_without_motion_capture_it_drifts_off_and_may_report_no_position(autopilot):
    lab, companion = airborne(autopilot, faults.PoseDropout(12.0, 4.0, drift=0.03, reported=False))
    lab.parameters.put(PATIENT[autopilot])
    fly_until(companion, 12.0)
    start, before = lab.true_pose.position[0, :2], len(companion.all("LOCAL_POSITION_NED"))
    fly_until(companion, 15.95)
    assert len(companion.all("LOCAL_POSITION_NED")) - before <= 1
    assert companion.all("ATTITUDE")[-1].time_boot_ms > 15_500
    assert np.linalg.norm(lab.autopilot.flight.velocity[:2]) == pytest.approx(0.03 * 3.7, abs=0.03)
    assert 0.1 < (lab.true_pose.position[0, :2] - start).norm() < 0.3
    fly_until(companion, 18.0)
    assert companion.last("LOCAL_POSITION_NED").time_boot_ms > 17_500
    assert np.linalg.norm(lab.autopilot.flight.velocity[:2]) < 0.05


@BOTH
def test_what_it_reckons_is_reported_and_says_that_it_stands_still(autopilot):
    lab, companion = airborne(autopilot, faults.PoseDropout(12.0, drift=0.03))
    lab.parameters.put(PATIENT[autopilot])
    fly_until(companion, 12.0)
    true, told = lab.true_pose.position[0].numpy(), companion.last("LOCAL_POSITION_NED")
    fly_until(companion, 16.0)
    later = companion.last("LOCAL_POSITION_NED")
    assert np.linalg.norm(lab.true_pose.position[0].numpy() - true) > 0.15
    assert np.hypot(later.x - told.x, later.y - told.y) < 0.08
    assert np.hypot(later.vx, later.vy) < 0.05


@BOTH
def test_on_dead_reckoning_it_lands_by_itself_as_late_as_the_real_one(autopilot):
    lab, companion = airborne(autopilot, faults.PoseDropout(12.0))
    lands = 12.0 + {"ardupilot": 7.1, "px4": 1.0}[autopilot]
    fly_until(companion, lands - 0.1)
    assert lab.autopilot.mode.name in ("GUIDED", "OFFBOARD")
    fly_until(companion, lands + 0.2)
    assert lab.autopilot.mode.name == "LAND"
    fly_until(companion, lands + 8.0)
    assert not lab.armed


@BOTH
def test_the_gale_never_blows_harder_than_it_may(autopilot):
    lab, companion = airborne(autopilot, faults.WindFault(11.0, mean=(0.8, 0.0), gusts=0.8, most=1.0))
    winds = []
    for _ in range(200):
        companion.fly(0.05, 0.0, 0.0)
        winds.append(lab._flight.gust or (0.0, 0.0, 0.0))
    strength = np.linalg.norm(np.array(winds)[20:], axis=1)
    assert strength.max() <= 1.0 + 1e-9
    assert strength.max() > 0.95
    assert strength.std() > 0.1


@BOTH
@pytest.mark.parametrize("free", [False, True])
def test_a_takeover_changes_the_mode_and_holds_the_place(autopilot, free):
    lab, companion = airborne(autopilot, faults.Takeover(12.0, stabilize=free))
    fly_until(companion, 12.05, 0.3, 0.0)
    assert (
        lab.autopilot.mode.name
        == {"ardupilot": ("LOITER", "STABILIZE"), "px4": ("POSCTL", "STABILIZED")}[autopilot][free]
    )
    fly_until(companion, 14.0, 0.3, 0.5)  # setpoints that nobody should send any more
    before = lab.true_pose.position
    fly_until(companion, 17.0, 0.3, 0.5)
    assert (lab.true_pose.position - before).norm() < 0.05
    assert lab.armed
    companion.mode(4) if autopilot == "ardupilot" else companion.mode(6)
    assert lab.autopilot.mode.name in ("GUIDED", "OFFBOARD")  # whoever takes the mode back gets it, so that it shows


@BOTH
def test_a_reboot_in_the_air_turns_the_clock_back_and_lands(autopilot):
    lab, companion = airborne(autopilot, faults.Reboot(12.0))
    fly_until(companion, 12.0, 0.3, 0.0)
    heard = len(companion.heard)
    fly_until(companion, 12.9, 0.3, 0.0)
    assert len(companion.heard) - heard <= 2
    fly_until(companion, 14.5, 0.3, 0.0)
    after = [m for m in companion.heard[heard:] if m.get_type() == "ATTITUDE"]
    assert after[-1].time_boot_ms == pytest.approx(2500, abs=200)
    assert lab.autopilot.mode.name == ("STABILIZE" if autopilot == "ardupilot" else "MANUAL")
    fly_until(companion, 22.0, 0.3, 0.0)
    assert not lab.armed
    assert float(lab.true_pose.position[0, 2]) < 0.12


@BOTH
def test_a_refusal_can_show_in_the_pre_arm_bit(autopilot):
    for shown in (False, True):
        lab = empty_lab(autopilot, faults=[faults.RefusedArming(0.0, shown=shown)])
        companion = Companion(lab)
        companion.wait(4.0)
        assert bool(companion.last("SYS_STATUS").onboard_control_sensors_health & 0x10000000) != shown


@BOTH
def test_a_drone_that_nobody_stops_leaves_the_arena(autopilot):
    lab, companion = airborne(autopilot)
    fly_until(companion, 18.0, 0.7, 0.0)
    assert float(lab.true_pose.position[0, 0]) > ARENA_HALF
    assert not bool((lab.true_pose.xy.abs() <= 2.35).all())


@pytest.mark.parametrize("kind", list(faults.LAB_FAULTS))
def test_every_fault_ends(kind):
    fault = faults.LAB_FAULTS[kind][0](2.0, 1.5)
    assert [fault.active(time) for time in (1.99, 2.0, 3.49, 3.5)] == [False, True, True, False]
