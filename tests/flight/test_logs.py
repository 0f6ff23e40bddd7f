"""Logs as files: what a reader finds after good flights, killed ones and full disks."""

import json
import multiprocessing
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from wordwing.errors import WordwingError
from wordwing.flight.arena import Arena
from wordwing.flight.camera_stream import CameraFrame
from wordwing.flight.logs import FlightLog, LoggedEvent, load_frame, read_events
from wordwing.flight.matching import MatchedObservation
from wordwing.frames import Pose
from wordwing.interface import Setpoint
from wordwing.world.layout import Layout, Placement


def seen(value: int = 9, taken: float = 4.5) -> MatchedObservation:
    image = torch.full((72, 128, 3), value, dtype=torch.uint8)
    image[0, 0] = torch.tensor([1, 2, 3])
    pose = Pose.level(torch.tensor([0.5, -0.25]), torch.tensor(0.0), 0.75)
    return MatchedObservation(CameraFrame(image, taken, 1), pose, 0.01)


def lines(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]


def test_every_event_is_a_line_with_its_time_and_kind(tmp_path):
    with FlightLog(tmp_path / "log") as log:
        log.begin(1.23456, 1_700_000_000.0, "go", "pvn2-sureal", "mavlink:udp:127.0.0.1:14550", Arena(), None)
        log.observation(1.5, seen())
        log.decision(1.6, Setpoint(torch.tensor([0.5]), torch.tensor([-0.25])), stop=False)
        log.flown(1.65, Setpoint(torch.tensor([0.25]), torch.tensor([0.0])))
        log.end(2.0, "stop", 3)
    first, observed, decided, flown, end = lines(tmp_path / "log")
    assert (first["kind"], first["time"], first["instruction"], first["unix"]) == ("flight", 1.2346, "go", 1.7e9)
    assert first["arena"]["heading_deg"] == 0.0
    assert first["layout"] is None
    assert observed == {
        "time": 1.5,
        "kind": "observation",
        "number": 1,
        "position": [0.5, -0.25, 0.75],
        "quaternion": [1.0, 0.0, 0.0, 0.0],
        "image_time": 4.5,
        "gap": 0.01,
        "frame": None,
    }
    assert decided == {"time": 1.6, "kind": "decision", "forward": 0.5, "yaw_rate": -0.25, "stop": False}
    assert flown == {"time": 1.65, "kind": "flown", "forward": 0.25, "yaw_rate": 0.0}
    assert end == {"time": 2.0, "kind": "end", "by": "stop", "decisions": 3}


def test_images_are_kept_only_if_asked_for(tmp_path):
    with FlightLog(tmp_path / "a") as log:
        log.observation(1.0, seen())
    assert {path.name for path in (tmp_path / "a").iterdir()} == {"events.jsonl"}
    with FlightLog(tmp_path / "b", record=True) as log:
        log.observation(1.0, seen(9))
        log.observation(1.3, seen(200))
    assert [row["frame"] for row in lines(tmp_path / "b")] == ["frames/00001.png", "frames/00002.png"]
    with Image.open(tmp_path / "b" / "frames" / "00002.png") as kept:
        assert np.array_equal(np.asarray(kept), seen(200).frame.image.numpy())  # not one pixel changed
    assert torch.equal(load_frame(tmp_path / "b", "frames/00001.png"), seen(9).frame.image)


def test_a_layout_that_is_known_is_in_the_log(tmp_path):
    layout = Layout((Placement("Barrel", 1.0, 0.5),))
    with FlightLog(tmp_path) as log:
        log.begin(0.0, 0.0, "go", "stop", "lab", None, layout)
    [row] = lines(tmp_path)
    assert row["layout"]["landmarks"] == [{"name": "Barrel", "x": 1.0, "y": 0.5}]


def test_events_of_any_kind_can_be_written_also_strange_ones(tmp_path):
    with FlightLog(tmp_path) as log:
        log.event(1.0, "note", text="Grüße\nover two lines", numbers=np.array([1.5, np.nan]), inf=float("inf"))
        log.add({"time": 2.0, "kind": "sent", "values": {"a": torch.tensor([1, 2]), "b": {1}, "c": Path("x")}})
    assert (tmp_path / "events.jsonl").read_text("utf-8").count("\n") == 2
    note, sent = read_events(tmp_path)
    assert note.values == {"text": "Grüße\nover two lines", "numbers": [1.5, None], "inf": None}
    assert sent.values == {"values": {"a": [1, 2], "b": [1], "c": "x"}}


def test_a_line_is_in_the_file_as_soon_as_it_is_written(tmp_path):
    log = FlightLog(tmp_path)
    log.event(1.0, "note", text="a")
    assert len(read_events(tmp_path)) == 1
    log.close()
    log.close()
    log.event(2.0, "note", text="too late")
    assert len(read_events(tmp_path)) == 1


def write_until_killed(folder: Path) -> None:
    log = FlightLog(folder, tlog=True)
    for number in range(50):
        log.event(number, "note", text="x" * number)
        log.packet(b"abc", float(number))
    os.kill(os.getpid(), 9)


def test_a_killed_process_leaves_all_that_it_had_written(tmp_path):
    process = multiprocessing.get_context("fork").Process(target=write_until_killed, args=(tmp_path,))
    process.start()
    process.join()
    assert process.exitcode == -9
    assert [event.time for event in read_events(tmp_path)] == list(range(50))
    assert (tmp_path / "flight.tlog").stat().st_size == 50 * 11


def write_many(folder: Path, kind: str) -> None:
    with FlightLog(folder) as log:
        for number in range(500):
            log.event(number, kind, text=kind * 50)


def test_two_processes_write_whole_lines_into_one_log(tmp_path):
    context = multiprocessing.get_context("fork")
    both = [context.Process(target=write_many, args=(tmp_path, kind)) for kind in ("pilot", "guardian")]
    for process in both:
        process.start()
    for process in both:
        process.join()
    events = read_events(tmp_path)
    for kind in ("pilot", "guardian"):
        assert [event.time for event in events if event.kind == kind] == list(range(500))


def test_half_a_last_line_is_left_out(tmp_path):
    whole = '{"time": 1, "kind": "note", "text": "a"}\n'
    for torn in ('{"time": 2, "ki', "\0\0\0\0", '{"time": 2, "kind": "note"}'):
        (tmp_path / "events.jsonl").write_text(whole + torn)
        kept = [event.time for event in read_events(tmp_path)]
        assert kept == ([1.0, 2.0] if torn.endswith("}") else [1.0])
    assert read_events(tmp_path / "events.jsonl")[0] == LoggedEvent(1.0, "note", {"text": "a"}, 1)


@pytest.mark.parametrize(
    "damage",
    [
        "{",
        "[]",
        "3",
        '{"kind": "note"}',
        '{"time": "1", "kind": "a"}',
        '{"time": 1}',
        pytest.param(f'{{"time": {10**400}, "kind": "a"}}', id="a time that no clock has"),
    ],
)
def test_damage_in_the_middle_is_named_by_its_line(damage, tmp_path):
    (tmp_path / "events.jsonl").write_text(f'{{"time": 1, "kind": "a"}}\n{damage}\n{{"time": 2, "kind": "a"}}\n')
    with pytest.raises(WordwingError, match=r"events\.jsonl: line 2 is damaged"):
        read_events(tmp_path)


def test_a_folder_without_a_log_is_refused(tmp_path):
    with pytest.raises(WordwingError, match=r"no log of a flight, there is no events\.jsonl in it"):
        read_events(tmp_path)
    with pytest.raises(WordwingError, match="no log of a flight"):
        read_events(tmp_path / "none")


def test_a_new_flight_does_not_write_into_the_log_of_another(tmp_path):
    FlightLog.fresh(tmp_path / "log").close()
    with pytest.raises(WordwingError, match="there is the log of another flight; choose another --log"):
        FlightLog.fresh(tmp_path / "log")


def test_a_log_that_cannot_be_written_is_refused_before_the_flight(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(WordwingError, match="cannot be written"):
        FlightLog(tmp_path / "file")


def test_a_full_disk_ends_the_log_and_not_the_flight(tmp_path):
    (tmp_path / "events.jsonl").symlink_to("/dev/full")
    log = FlightLog(tmp_path)
    log.event(1.0, "note", text="a")
    assert log.failed == "no space left on device"
    log.event(2.0, "note", text="b")
    log.observation(3.0, seen())
    log.close()


def test_a_line_that_fits_only_in_part_is_the_last_one(tmp_path, monkeypatch):
    log, write = FlightLog(tmp_path), os.write
    log.event(1.0, "note", text="a")
    monkeypatch.setattr(os, "write", lambda file, data: write(file, data[:10]))
    log.event(2.0, "note", text="b")
    assert log.failed == "there is no more room"
    monkeypatch.undo()
    log.event(3.0, "note", text="c")
    log.close()
    assert [event.time for event in read_events(tmp_path)] == [1.0]


def test_an_image_that_is_missing_or_damaged_or_elsewhere_is_none(tmp_path):
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames" / "1.png").write_bytes(b"\x89PNG")
    Image.new("RGB", (128, 72)).save(tmp_path / "secret.png")
    for name in ("frames/1.png", "frames/2.png", "../secret.png", "None", str(tmp_path / "secret.png")):
        assert load_frame(tmp_path, name) is None
