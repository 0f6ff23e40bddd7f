"""The lab's disarmed drone in somebody's hands, up to a whole check of the arena over UDP."""

import math
import os
import socket
import threading
from pathlib import Path

import numpy as np
import pytest

from served_flight import QUICK, Companion, empty_lab
from wordwing.bench.flight import free_port
from wordwing.cli import main
from wordwing.errors import WordwingError
from wordwing.flight.arena_check import places
from wordwing.flight.served.server import LabServer, PlacementReader, parse_placement
from wordwing.flight.served.vehicle import sample_start
from wordwing.world.samplers import sample_layout


def test_a_drone_that_is_carried_says_so_and_stays_disarmed():
    lab = empty_lab("ardupilot")
    companion = Companion(lab)
    companion.wait(3.0)
    lab.place((2.05, -1.0), math.pi / 2)
    companion.wait(1.0)
    told = companion.last("LOCAL_POSITION_NED")
    # The lab's arena: its centre 3.2 m north and 1.5 m west, its x axis at 125° from north.
    forward, left, turn = 2.05, -1.0, math.radians(125)
    north = 3.2 + forward * math.cos(turn) + left * math.sin(turn)
    east = -1.5 + forward * math.sin(turn) - left * math.cos(turn)
    assert (told.x, told.y) == pytest.approx((north, east), abs=0.01)
    assert companion.last("ATTITUDE").yaw == pytest.approx(math.radians(125 - 90), abs=0.01)
    assert not lab.armed
    assert lab.time == pytest.approx(4.0)


def test_a_drone_that_was_carried_flies_from_where_it_was_put():
    lab = empty_lab("px4")
    companion = Companion(lab)
    lab.place((1.0, 0.5), 0.0)
    companion.take_off()
    assert lab.true_pose.position[0].tolist() == pytest.approx([1.0, 0.5, 0.81], abs=0.1)


def test_nobody_carries_an_armed_drone_or_puts_it_outside():
    lab = empty_lab("ardupilot")
    for place in ((2.4, 0.0), (0.0, math.nan)):
        with pytest.raises(WordwingError, match=r"outside the arena, which ends 2\.35 m"):
            lab.place(place, 0.0)
    Companion(lab).take_off()
    before = lab.true_pose.position.tolist()
    with pytest.raises(WordwingError, match="only a disarmed drone can be moved"):
        lab.place((1.0, 0.0), 0.0)
    assert lab.true_pose.position.tolist() == before


def test_a_line_is_a_place_and_a_heading():
    assert parse_placement("1 -0.5\n") == (1.0, -0.5, 0.0)
    assert parse_placement(" 2.05 2.05 90 ") == (2.05, 2.05, pytest.approx(math.pi / 2))
    for line in ("1", "a b", "nan 0", "1 2 3 4", "1e400 0"):
        with pytest.raises(WordwingError, match="is not a position; type where"):
            parse_placement(line)


def test_lines_are_obeyed_as_they_come_and_their_end_ends_nothing():
    lab, said = empty_lab("ardupilot"), []
    mouth, ears = os.pipe()
    with open(mouth, encoding="utf-8") as lines:
        hands = PlacementReader(lab, lines, said.append)
        hands.poll()
        assert said == []
        os.write(ears, b"1 0.5 180\n")
        hands.poll()
        lab.advance(0.01)
        assert lab.true_pose.xy[0].tolist() == pytest.approx([1.0, 0.5], abs=1e-3)
        assert said.pop() == "the drone stands at (1, 0.5), its nose at 180°"
        os.write(ears, b"9 9\n")
        hands.poll()
        assert "outside the arena" in said.pop()
        os.write(ears, b"1 1\n-1 -")
        hands.poll()
        os.write(ears, b"1\n0 1\n")
        hands.poll()
        assert said == [f"the drone stands at ({place}), its nose at 0°" for place in ("1, 1", "-1, -1", "0, 1")]
        os.close(ears)
        assert not any(hands.poll() for _ in range(3))


@pytest.fixture
def served(monkeypatch):
    """A served lab whose drone is carried to the next place each time somebody is asked to."""
    server = LabServer(
        empty_lab("px4", config=QUICK), port=0, video=None, mocap=free_port(socket.SOCK_DGRAM), speed=5.0
    )
    spots = [(place.x, place.y) for place in places(0.3)]
    asked: list[tuple[float, float]] = []

    def carry() -> bool:
        """In the lab's own thread: its physics is no place for two."""
        while asked:
            server.lab.place(asked.pop(), 0.0)
        return False

    thread = threading.Thread(target=server.run, args=(carry,))
    thread.start()
    monkeypatch.setattr("wordwing.flight.arena_check.measure.__defaults__", (0.5,))

    def ask(sentence: str, meanwhile) -> None:
        print(sentence)
        asked.append(spots.pop(0))
        before = server.lab.time
        while server.lab.time < before + 0.5:  # until old poses are under way no more
            meanwhile()

    monkeypatch.setattr("wordwing.commands.flight.ask", ask)
    yield server
    server.stop()
    thread.join(10.0)


def test_a_check_of_the_served_lab_passes_with_its_own_arena(served, tmp_path: Path, capsys):
    lab, files = served.lab, ["--arena", str(tmp_path / "arena.json")]
    lab.frame.save(tmp_path / "arena.json")
    main(["flight", "check", f"udp:127.0.0.1:{served.port}", "--mocap", f"udp:127.0.0.1:{served.mocap}", *files])
    said = capsys.readouterr().out
    assert said.count("press Enter") == 3
    assert f"the arena is where {tmp_path / 'arena.json'} says" in said
    assert "within 0.01 m" in said or "within 0.02 m" in said
    assert not lab.armed
    assert {command.command for _time, command, _answer in lab.commands} == {
        511
    }  # messages were asked for, nothing else


@pytest.mark.parametrize("seed", [2, 5])
def test_a_served_lab_starts_where_a_flight_may_begin(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    layout = sample_layout("field", rng)
    drawn = []

    def draw(place, corpus, rng):
        drawn.append(rng.uniform(1.0, 2.3, 2))
        return type("Drawn", (), {"start_xy": tuple(drawn[-1])})()

    monkeypatch.setattr("wordwing.flight.served.vehicle.sample_task_in", draw)
    assert max(sample_start(layout, "field", rng).start_xy) <= 1.9
    assert all(max(start) > 1.9 for start in drawn[:-1])
    far = type("Far", (), {"start_xy": (2.2, 0.0)})()
    monkeypatch.setattr("wordwing.flight.served.vehicle.sample_task_in", lambda *_: far)
    with pytest.raises(WordwingError, match=r"no start within 1\.90 m of the centre"):
        sample_start(layout, "field", rng)
