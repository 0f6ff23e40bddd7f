"""The check of the arena with a drone that is carried by hand, in memory and over MAVLink."""

import json
import math
import os
import re
import socket
import struct
import threading
from contextlib import closing, suppress

import numpy as np
import pytest

pytest.importorskip("pymavlink")

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from command_line import refused
from served_flight import QUICK
from wordwing.bench.flight import free_port
from wordwing.cli import main
from wordwing.errors import WordwingError
from wordwing.flight.arena import Arena
from wordwing.flight.arena_check import (
    MavlinkDrone,
    MovedError,
    PoseReading,
    compare,
    fitted,
    measure,
    places,
    table,
    visit,
    wrong,
)
from wordwing.flight.mavlink.clock import ManualClock, SystemClock
from wordwing.flight.mavlink.messages import Codec
from wordwing.flight.mocap.sources import UdpSource
from wordwing.flight.served.vehicle import ServedLab
from wordwing.world.layout import Layout

TRUE = Arena(north=3.0, east=-2.0, heading_deg=30.0, floor_down=0.2)


def local(x: float, y: float, z: float) -> tuple[float, float, float]:
    """A place of the world in the autopilot's local frame with z up, worked out by hand for `TRUE`.

    World +x points 30 degrees to the right of north; +y points 60 degrees to the left of it.
    """
    thirty, sixty = math.radians(30), math.radians(60)
    north = 3.0 + x * math.cos(thirty) + y * math.cos(sixty)
    east = -2.0 + x * math.sin(thirty) - y * math.sin(sixty)
    return north, -east, z - 0.2


class Hands:
    """Carries a drone to where it is told, with an error of its own."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.at = (0.0, 0.0, 0.1)
        self.nose = 0.0
        self.armed = False
        self.drift = 0.0
        self.count = 40

    def readings(self, seconds: float) -> list[PoseReading]:
        found = []
        for k in range(self.count):
            x, y, z = local(*self.at)
            noise = 0.003 * self.rng.normal(size=3)
            place = (x + noise[0] + self.drift * k / self.count, y + noise[1], z + noise[2])
            found.append(PoseReading(place, self.nose - math.radians(30), self.armed))
        return found


@pytest.fixture
def hands(rng) -> Hands:
    return Hands(rng)


def carry(hands: Hands, inset: float = 0.3) -> list:
    """A visit in which the drone is put where it belongs."""
    spots = iter(places(inset))

    def ask(sentence: str) -> None:
        place = next(spots)
        assert place.where in sentence
        hands.at = (place.x, place.y, 0.1)

    return visit(hands, places(inset), ask, print)


def test_the_places_are_the_centre_and_two_corners_beside_the_red_fence_which_is_where_x_points():
    centre, left, right = places(0.3)
    assert (centre.x, centre.y) == (0.0, 0.0)
    assert (left.x, left.y) == pytest.approx((2.05, 2.05))  # yellow is to the left, where y is positive
    assert (right.x, right.y) == pytest.approx((2.05, -2.05))
    assert "red and the yellow" in left.where
    assert "red and the white" in right.where
    assert "where the fences meet" in places(0.0)[1].where


def test_a_true_arena_passes(hands):
    rows = compare(TRUE, carry(hands), stand=0.1)
    assert wrong(rows) is None
    assert max(row.error for row in rows) < 0.01
    assert max(abs(row.heading) for row in rows) < 0.01


@pytest.mark.parametrize(
    ("arena", "words"),
    [
        (Arena(3.2, -2.0, 30.0, 0.2), r"0\.20 m off at the"),
        (Arena(3.0, -2.0, 30.0, 0.35), r"0\.15 m off"),  # the floor is elsewhere
        (Arena(3.0, -2.0, 35.0, 0.2), r"0\.25 m off at the red-"),  # 2.9 m from the centre, 5 degrees
        (Arena(3.0, -2.0, -150.0, 0.2), r"5\.80 m off at the red-"),  # back to front
    ],
)
def test_an_arena_that_lies_elsewhere_does_not(arena, words, hands):
    rows = compare(arena, carry(hands), stand=0.1)
    assert re.match(words, wrong(rows))
    assert "<-" in table(rows, 0.1)


def test_an_error_just_inside_passes_and_one_just_outside_does_not(hands):
    visited = carry(hands)
    assert wrong(compare(Arena(3.09, -2.0, 30.0, 0.2), visited, 0.1)) is None
    assert wrong(compare(Arena(3.11, -2.0, 30.0, 0.2), visited, 0.1)) is not None


@pytest.mark.parametrize(("nose", "good"), [(8.0, True), (-8.0, True), (12.0, False), (90.0, False), (180.0, False)])
def test_a_nose_that_points_elsewhere_than_the_autopilot_thinks_is_noticed(nose, good, hands):
    hands.nose = math.radians(nose)
    trouble = wrong(compare(TRUE, carry(hands), 0.1))
    assert (trouble is None) == good
    if not good:
        assert f"the nose is {abs(nose):.0f}° off" in trouble


def test_the_fitted_arena_is_the_true_one(hands):
    best = fitted(carry(hands), 0.1, Arena(margin=0.6))
    assert (best.north, best.east, best.floor_down) == pytest.approx((3.0, -2.0, 0.2), abs=0.005)
    assert best.heading_deg == pytest.approx(30.0, abs=0.1)
    assert best.margin == 0.6


def test_no_arena_fits_a_frame_that_is_mirrored(hands):
    mirrored = [
        (place, PoseReading((reading.position[0], -reading.position[1], reading.position[2]), -reading.yaw, False))
        for place, reading in carry(hands)
    ]
    assert wrong(compare(fitted(mirrored, 0.1), mirrored, 0.1)) is not None


def test_an_armed_drone_is_refused_at_once(hands):
    hands.armed = True
    with pytest.raises(WordwingError, match="the drone is armed; never carry an armed drone"):
        carry(hands)


def test_a_drone_that_moves_is_asked_for_again_and_in_the_end_refused(hands, capsys):
    hands.drift = 0.1
    with pytest.raises(MovedError, match=r"moved by 0\.(09|10)\d m"):
        measure(hands)
    asked = []
    with pytest.raises(MovedError):
        visit(hands, places(0.3), asked.append, print)
    assert len(asked) == 3
    assert capsys.readouterr().out.count("let go of it") == 2

    def steadier(sentence: str) -> None:
        asked.append(sentence)
        hands.drift = 0.0 if len(asked) > 4 else 0.1

    assert len(visit(hands, places(0.3), steadier, print)) == 3


def test_a_drone_that_turns_is_moving_too(hands):
    found = hands.readings(2.0)
    turning = [PoseReading(r.position, 3.1 + 0.002 * k, False) for k, r in enumerate(found)]  # through south
    hands.readings = lambda seconds: turning
    with pytest.raises(MovedError, match=r"and 4\.5°"):
        measure(hands)
    still = [PoseReading(r.position, math.pi * (-1) ** k, False) for k, r in enumerate(found)]  # the same heading
    hands.readings = lambda seconds: still
    assert abs(measure(hands).yaw) == pytest.approx(math.pi)


def test_too_few_poses_or_none_are_refused(hands):
    hands.count = 5
    with pytest.raises(WordwingError, match=r"gave 5 poses in 2 s; it needs a local position"):
        measure(hands)


class LabLink:
    """A served lab on a link, whose time passes while somebody waits for packets."""

    def __init__(self, lab: ServedLab, clock: ManualClock) -> None:
        self.lab, self.clock, self.lost = lab, clock, None

    def send(self, data: bytes) -> None:
        self.lab.receive(data, "us")

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        if timeout <= 0:
            return []
        self.clock.sleep(0.05)
        return self.lab.advance(0.05)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("autopilot", ["ardupilot", "px4"])
def test_a_lab_on_the_wire_stands_where_its_arena_says(autopilot):
    visited, heard = [], []
    for place in places(0.3):
        clock = ManualClock()
        lab = ServedLab(Layout(()), (place.x, place.y), 0.0, autopilot=autopilot, config=QUICK, seed=1)
        drone = MavlinkDrone(LabLink(lab, clock), clock)
        drone.connect()
        visited.append((place, measure(drone)))
        heard += lab.commands
        assert not lab.armed
    assert {command.command for _time, command, _answer in heard} == {511}  # it only asked for messages
    assert wrong(compare(lab.frame, visited, stand=0.11)) is None
    assert wrong(compare(Arena(), visited, stand=0.11)) is not None
    best = fitted(visited, 0.11)
    assert (best.north, best.east) == pytest.approx((lab.frame.north, lab.frame.east), abs=0.02)
    assert best.heading_deg == pytest.approx(lab.frame.heading_deg, abs=0.5)


class Crowd(LabLink):
    """Another drone, armed and elsewhere, and a camera that says that it is an autopilot, are on the same link."""

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        found = super().receive(timeout)
        for system, component in ((2, 1), (1, 100)):
            factory = mavlink.MAVLink(None, system, component)
            for message in (
                mavlink.MAVLink_heartbeat_message(2, 12, 128, 0, 4, 3),
                mavlink.MAVLink_attitude_message(9, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0),
                mavlink.MAVLink_local_position_ned_message(9, 9.0, 9.0, 9.0, 0.0, 0.0, 0.0),
            ):
                found.append(bytes(message.pack(factory)))
        return found if timeout > 0 else []


def test_other_drones_and_cameras_on_the_link_are_not_listened_to():
    clock = ManualClock()
    lab = ServedLab(Layout(()), (0.0, 0.0), 0.0, config=QUICK, seed=1)
    drone = MavlinkDrone(Crowd(lab, clock), clock)
    drone.connect()
    assert wrong(compare(lab.frame, [(places(0.3)[0], measure(drone))], stand=0.11)) is None


@pytest.mark.parametrize(("key", "answered"), [(bytes(range(32)), True), (None, False)])
def test_a_drone_that_wants_signed_packets_answers_only_with_its_key(key, answered):
    clock = ManualClock()
    lab = ServedLab(Layout(()), (0.0, 0.0), 0.0, config=QUICK, key=bytes(range(32)), signing_time=10_000_000)
    drone = MavlinkDrone(LabLink(lab, clock), clock, Codec(key=key, signed_at=100.0))
    drone.connect()
    assert (len(drone.readings(1.0)) == pytest.approx(20, abs=2)) == answered  # the rate that it was asked for
    assert bool(lab.commands) == answered


class Silent(LabLink):
    def send(self, data: bytes) -> None:
        pass

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        self.clock.sleep(timeout)
        return []


class Heartbeats(Silent):
    """An autopilot that is there, of a kind, but does not know where it is."""

    autopilot = 3

    def receive(self, timeout: float = 0.0) -> list[bytes]:
        super().receive(timeout)
        factory = mavlink.MAVLink(None, 1, 1)
        return [bytes(mavlink.MAVLink_heartbeat_message(2, self.autopilot, 0, 0, 3, 3).pack(factory))]


def test_an_autopilot_that_is_not_there_or_does_not_know_where_it_is_gets_a_sentence():
    clock = ManualClock()
    with pytest.raises(WordwingError, match="no autopilot was heard for 10 s"):
        MavlinkDrone(Silent(None, clock), clock).connect()
    with pytest.raises(WordwingError, match="ArduPilot gives no local position and attitude"):
        MavlinkDrone(Heartbeats(None, clock), clock).connect()


def serve(port_found: list, stop: threading.Event, spots: list, mocap: int) -> None:
    """An ArduPilot that says where it stands, at the first of the spots, but 8 cm too high; motion capture is right."""
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind(("127.0.0.1", 0))
    made.settimeout(0.02)
    port_found.append(made.getsockname()[1])
    factory = mavlink.MAVLink(None, 1, 1)
    companion, boot = None, 0
    while not stop.is_set():
        with suppress(TimeoutError):
            _, companion = made.recvfrom(2048)
        if companion is None or not spots:
            continue
        boot += 20
        (x, y, z), yaw = spots[0]
        for message in (
            mavlink.MAVLink_heartbeat_message(2, 3, 81, 0, 3, 3),
            mavlink.MAVLink_attitude_message(boot, 0.0, 0.0, -yaw, 0.0, 0.0, 0.0),
            mavlink.MAVLink_local_position_ned_message(boot, x, -y, -z - 0.08, 0.0, 0.0, 0.0),
        ):
            made.sendto(message.pack(factory), companion)
        made.sendto(json.dumps({"position": [x, y, z], "quaternion": [1, 0, 0, 0]}).encode(), ("127.0.0.1", mocap))
    made.close()


@pytest.fixture
def autopilot(monkeypatch):
    """How to reach an autopilot that is carried to the next place each time somebody is asked to."""
    mocap = free_port(socket.SOCK_DGRAM)
    spots = [(local(place.x, place.y, 0.1), -math.radians(30)) for place in places(0.3)]
    port, stop = [], threading.Event()
    spots.insert(0, spots[0])
    thread = threading.Thread(target=serve, args=(port, stop, spots, mocap), daemon=True)
    thread.start()
    monkeypatch.setattr("wordwing.flight.arena_check.measure.__defaults__", (0.8,))

    def ask(sentence: str, meanwhile) -> None:
        print(sentence)
        meanwhile()
        spots.pop(0)

    monkeypatch.setattr("wordwing.commands.flight.ask", ask)
    while not port:
        stop.wait(0.01)
    yield f"udp:127.0.0.1:{port[0]}", "--mocap", f"udp:127.0.0.1:{mocap}"
    stop.set()
    thread.join(5.0)


def test_the_command_refuses_a_wrong_arena_and_proposes_the_right_one(autopilot, tmp_path, capsys):
    Arena(3.0, -2.5, 30.0, 0.2).save(tmp_path / "arena.json")
    with pytest.raises(SystemExit) as stop:
        main(["flight", "check", *autopilot, "--arena", str(tmp_path / "arena.json")])
    assert stop.value.code == 2
    said = capsys.readouterr()
    assert "0.50 m off at the" in said.err
    assert "with --write it would say north 3, east -2, heading_deg 30, floor_down 0.2 (within 0.00 m)" in said.err
    assert "<-" in said.out
    assert Arena.load(tmp_path / "arena.json").east == -2.5


def test_the_command_writes_an_arena_that_was_not_there(autopilot, tmp_path, capsys):
    main(["flight", "check", *autopilot, "--arena", str(tmp_path / "arena.json"), "--write"])
    assert Arena.load(tmp_path / "arena.json") == TRUE
    assert "check it: wordwing flight check" in capsys.readouterr().out


def test_mistakes_on_the_command_line_get_one_sentence(tmp_path, capsys, monkeypatch):
    arena = ["--arena", str(tmp_path / "arena.json")]
    assert "there is no such file" in refused(capsys, "flight", "check", "udp:127.0.0.1:9", *arena)
    TRUE.save(tmp_path / "arena.json")
    assert "is no link" in refused(capsys, "flight", "check", "nowhere", *arena)
    assert "--stand is 3.0" in refused(capsys, "flight", "check", "udp:127.0.0.1:9", *arena, "--stand", "3")
    assert "--inset is -1.0" in refused(capsys, "flight", "check", "udp:127.0.0.1:9", *arena, "--inset", "-1")
    mocap = ["flight", "mocap", "--url", "udp:127.0.0.1:9", "--source"]
    assert "is no source of motion capture" in refused(capsys, *mocap, "nowhere")
    assert "--rate is 5.0; autopilots want 30 to 50" in refused(capsys, *mocap, "udp:127.0.0.1:9", "--rate", "5")


def test_nobody_at_the_keyboard_is_an_error(monkeypatch, tmp_path):
    from wordwing.commands.flight import ask

    calls = []
    with open(tmp_path / "empty", "w+") as empty:
        monkeypatch.setattr("sys.stdin", empty)
        with pytest.raises(WordwingError, match="needs somebody who carries the drone"):
            ask("put it down", lambda: calls.append(1))
    assert calls == []


def test_two_presses_of_enter_that_come_at_once_answer_two_questions(monkeypatch):
    from wordwing.commands.flight import ask

    mouth, ears = os.pipe()
    with open(mouth, encoding="utf-8") as keyboard:
        monkeypatch.setattr("sys.stdin", keyboard)
        os.write(ears, b"\nyes\n")
        for corner in "ab":
            ask(corner, lambda: pytest.fail("an Enter that was pressed is waited for"))
        os.close(ears)


def test_motion_capture_goes_from_a_file_to_an_autopilot(tmp_path, capsys):
    rows = [{"time": k / 100, "position": [0.1 + k / 200, 0.0, 0.7], "quaternion": [1, 0, 0, 0]} for k in range(40)]
    (tmp_path / "walk.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(2.0)
        url = f"udp:127.0.0.1:{receiver.getsockname()[1]}"
        port = free_port(socket.SOCK_DGRAM)
        with closing(UdpSource(f"127.0.0.1:{port}", SystemClock())) as guardian:
            copy = ["--guardian", f"udp:127.0.0.1:{port}"]
            main(["flight", "mocap", "--source", f"file:{tmp_path / 'walk.jsonl'}", "--url", url, *copy])
            heard = guardian.read(2.0)
        packets = [receiver.recv(1000) for _ in heard]
    assert int.from_bytes(packets[0][7:10], "little") == 331
    # The guardian hears what the autopilot gets, pose by pose: north is x, and east is minus y.
    sent = [struct.unpack_from("<3f", packet, 10 + 8) for packet in packets]
    assert [pose.position for pose in heard] == [pytest.approx((x, -y, -z), abs=1e-6) for x, y, z in sent]
    assert "poses sent" in capsys.readouterr().out
