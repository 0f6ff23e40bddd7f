"""Plain flights over MAVLink, against what a real ArduCopter did with the same messages.

Measured there: 5 s of 0.5 m/s and 0.3 rad/s turned it by 83.0 to 83.9 degrees to the right, at 0.490 to 0.514 m/s in
the last 2 s. It stopped 1.1 s after the last setpoint with GUID_TIMEOUT 0.5 and 3.7 s after it with 3. From rest at
0.5 m/s it flew 0.19 m/s after 0.5 s, 0.45 after 1.0 s and 0.47 after 1.5 s.
"""

import math

import numpy as np
import pytest
import torch

from served_flight import CALM, QUICK, Companion, empty_lab
from wordwing.flight.arena import Arena
from wordwing.flight.served.faults import WindFault
from wordwing.flight.served.vehicle import ServedLab
from wordwing.interface import Setpoint
from wordwing.lab.vehicle import LabVehicle
from wordwing.world.layout import Layout

BOTH = pytest.mark.parametrize("autopilot", ["ardupilot", "px4"])


def airborne(autopilot: str, **options: object) -> tuple[ServedLab, Companion]:
    lab = empty_lab(autopilot, **options)
    companion = Companion(lab)
    companion.take_off()
    return lab, companion


def place(lab: ServedLab) -> np.ndarray:
    return lab.true_pose.position[0].numpy()


def speed(lab: ServedLab) -> float:
    return float(np.linalg.norm(lab.autopilot.flight.velocity[:2]))


@BOTH
def test_it_starts_on_the_floor_disarmed_and_stays_there(autopilot):
    lab = ServedLab(Layout(()), (0.5, -1.0), 2.0, autopilot=autopilot)
    Companion(lab).wait(5.0)
    assert place(lab) == pytest.approx([0.5, -1.0, 0.11], abs=0.002)
    assert float(lab.true_pose.yaw) == pytest.approx(2.0, abs=1e-3)
    assert not lab.armed
    assert not lab.autopilot.airborne
    assert bool((lab.true_pose.xy.abs() <= 2.35).all())


@BOTH
def test_it_takes_off_flies_and_lands(autopilot):
    lab, companion = airborne(autopilot)
    assert place(lab) == pytest.approx([0.0, 0.0, 0.11 + 0.7], abs=0.03)
    assert lab.autopilot.mode.name == ("GUIDED" if autopilot == "ardupilot" else "OFFBOARD")
    companion.fly(2.0, 0.5, 0.0)
    assert 0.6 < place(lab)[0] < 0.9
    companion.fly(2.0, 0.0, 0.0)
    companion.land()
    assert lab.autopilot.mode.name == "LAND"
    assert place(lab)[2] == pytest.approx(0.11, abs=0.002)
    assert not lab.armed
    assert not lab.autopilot.airborne


@BOTH
def test_from_rest_it_gathers_speed_like_ardupilot(autopilot):
    lab, companion = airborne(autopilot)
    for expected in (0.19, 0.45, 0.47):
        companion.fly(0.5, 0.5, 0.0)
        assert lab.autopilot.flight.velocity[0] == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize(
    ("autopilot", "parameters", "seconds"),
    [("ardupilot", {"GUID_TIMEOUT": 0.5}, 1.1), ("ardupilot", {"GUID_TIMEOUT": 3.0}, 3.7), ("px4", {}, 1.1)],
)
def test_in_a_turn_it_flies_like_ardupilot_and_stops_in_the_same_time(autopilot, parameters, seconds):
    lab, companion = airborne(autopilot, parameters=parameters)
    before, speeds = float(lab.true_pose.yaw), []
    for _ in range(100):
        companion.fly(0.05, 0.5, 0.3)
        yaw = float(lab.true_pose.yaw)
        speeds.append(lab.autopilot.flight.velocity[:2] @ [math.cos(yaw), math.sin(yaw)])
    assert -85.5 < math.degrees(float(lab.true_pose.yaw) - before) < -82.0  # clockwise: to the right
    assert all(0.49 <= value <= 0.515 for value in speeds[-40:])
    last = lab.time
    while speed(lab) >= 0.1:
        companion.wait(0.05)
    assert lab.time - last == pytest.approx(seconds, abs=0.25)
    companion.wait(1.0)
    assert speed(lab) < 0.05


@BOTH
def test_over_the_wire_it_flies_where_the_lab_in_process_flies(autopilot):
    setpoints = [(0.7, 0.0), (0.7, 0.8), (0.4, -1.0), (0.7, -0.5), (0.0, 0.0), (0.0, 0.0)]
    lab, companion = airborne(autopilot)
    start = place(lab)
    other = LabVehicle(Layout(()), start[:2], 0.0, config=CALM, safety=False)
    for forward, yaw_rate in setpoints:
        companion.fly(0.6, forward, -yaw_rate)
        other.send(Setpoint(torch.tensor([forward]), torch.tensor([yaw_rate])))
        other.wait(0.6)
    assert place(lab)[:2] == pytest.approx(other.true_pose.position[0, :2].numpy(), abs=0.05)
    assert float(lab.true_pose.yaw) == pytest.approx(float(other.true_pose.yaw), abs=0.02)


@BOTH
def test_axes_are_forward_right_and_down(autopilot):
    lab, companion = airborne(autopilot)
    start = place(lab)
    companion.fly(2.0, 0.0, 0.0, 0.4, 0.0)
    assert place(lab) - start == pytest.approx([0.0, -0.6, 0.0], abs=0.15)  # right is -y
    start = place(lab)
    companion.fly(2.0, 0.0, 0.0, 0.0, -0.2)
    assert place(lab)[2] - start[2] == pytest.approx(0.4, abs=0.06)
    start = place(lab)
    companion.fly(2.0, 0.0, 0.0, 0.0, 0.2)
    assert place(lab)[2] - start[2] == pytest.approx(-0.4, abs=0.12)


@pytest.mark.parametrize(("autopilot", "frame"), [("ardupilot", 1), ("ardupilot", 7), ("px4", 1)])
def test_a_velocity_in_the_local_frame_goes_along_its_axes(autopilot, frame):
    east = Arena(heading_deg=90.0)  # the world's +x axis points east
    lab, companion = airborne(autopilot, frame=east)
    start = place(lab)
    companion.fly(2.0, 0.4, 0.0, frame=frame)  # north, which is then the world's +y
    assert place(lab) - start == pytest.approx([0.0, 0.6, 0.0], abs=0.15)


def test_a_body_velocity_is_turned_by_the_heading_at_the_moment_of_receipt():
    lab, companion = airborne("ardupilot", parameters={"GUID_TIMEOUT": 3.0})
    companion.fly(1.5, 0.5, 0.0)
    start = place(lab)
    companion.setpoint(0.5, 0.5)  # once: it turns on, but flies straight
    companion.wait(2.5)
    assert abs(float(lab.true_pose.yaw)) > 1.0
    assert place(lab) - start == pytest.approx([1.25, 0.0, 0.0], abs=0.06)


def test_ardupilot_holds_its_place_at_zero_velocity_and_px4_does_not():
    wind = [WindFault(start=9.5, mean=(0.7, 0.3), gusts=0.3)]
    gone = {}
    for autopilot in ("ardupilot", "px4"):
        lab, companion = airborne(autopilot, faults=wind)
        start = place(lab)
        companion.fly(12.0, 0.0, 0.0)
        gone[autopilot] = np.linalg.norm((place(lab) - start)[:2])
    assert gone["ardupilot"] < 0.08 < gone["px4"]


@BOTH
def test_in_a_pilots_mode_it_holds_its_place_in_wind(autopilot):
    lab, companion = airborne(autopilot, faults=[WindFault(start=10.0, mean=(0.7, 0.0), gusts=0.3)])
    companion.mode(5) if autopilot == "ardupilot" else companion.mode(4, 3)
    start = place(lab)
    for _ in range(15):
        companion.wait(1.0)
        assert place(lab) == pytest.approx(start, abs=0.2)
    assert place(lab) == pytest.approx(start, abs=0.08)


@BOTH
def test_it_lands_where_it_is_even_in_wind(autopilot):
    lab, companion = airborne(autopilot, config=QUICK, faults=[WindFault(start=0.0, mean=(0.0, 0.6), gusts=0.4)])
    start = place(lab)
    companion.land()
    assert not lab.armed
    assert place(lab)[:2] == pytest.approx(start[:2], abs=0.2)


@BOTH
def test_the_same_seed_and_messages_give_the_same_bytes(autopilot):
    def flown(seed: int) -> tuple[list[bytes], np.ndarray]:
        lab = empty_lab(autopilot, seed=seed, config=QUICK, faults=[WindFault(start=5.0)])
        companion = Companion(lab)
        companion.take_off()
        companion.fly(2.0, 0.5, 0.4)
        return [bytes(message.get_msgbuf()) for message in companion.heard], place(lab)

    first, again, other = flown(3), flown(3), flown(4)
    assert first[0] == again[0]
    assert np.array_equal(first[1], again[1])
    assert first[0] != other[0]


@BOTH
def test_time_passes_only_in_advance_and_fractions_of_a_tick_add_up(autopilot):
    lab = empty_lab(autopilot)
    companion = Companion(lab, beating=False)
    for _ in range(5):
        companion.setpoint(0.5, 0.0)
    assert lab.time == 0.0
    for _ in range(1000):
        lab.advance(0.0033)
    assert lab.time == pytest.approx(3.3, abs=0.011)
