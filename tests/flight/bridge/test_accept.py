"""The acceptance list without an autopilot: its pilot, its judge and which rows are flown."""

import json
import math
import os
import re
import signal
import struct
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

pytest.importorskip("pymavlink")

from pymavlink.dialects.v20 import ardupilotmega as mavlink

from command_line import refused
from interrupting import wait_for
from wordwing.errors import WordwingError
from wordwing.flight.bridge.accept import running
from wordwing.flight.bridge.accept.running import COUNT, chosen, read_results, run_all, summarise, to_text
from wordwing.flight.bridge.accept.scenarios import MOCAP_FAULT_FLIGHTS, Scenario, flown_setpoints
from wordwing.flight.bridge.accept.script import Script, ScriptFile, Step
from wordwing.flight.bridge.accept.trial import (
    AcceptConfig,
    Result,
    Terminal,
    TrialError,
    greatest_xy,
    inside,
    point_at,
    read_tlog,
    stopped_at,
    to_fence,
)
from wordwing.flight.bridge.bridge import Recording, TruePoint
from wordwing.flight.logs import LoggedEvent
from wordwing.flight.options import DroneOptions
from wordwing.frames import Pose
from wordwing.interface import Observation
from wordwing.validation import parse_json


def observed(time: float, yaw: float = 0.0) -> Observation:
    pose = Pose.level(torch.zeros(1, 2), torch.tensor([yaw]), 0.7)
    return Observation(torch.zeros(1, 72, 128, 3, dtype=torch.uint8), pose, torch.tensor([time]))


def test_a_script_takes_its_steps_by_the_clock_and_by_the_heading_and_then_stops() -> None:
    script = Script([Step(forward=0.5, seconds=1.0), Step(turn_to=math.pi / 2), Step(yaw_rate=-0.4, seconds=0.5)])
    script.reset(["whatever"], observed(0.0).pose)
    seen = [(0.0, 0.0), (0.9, 0.0), (1.1, 0.0), (1.4, 1.2), (1.7, 1.55), (2.1, 1.55), (2.3, 1.4)]
    actions = [script.act(observed(time, yaw)) for time, yaw in seen]
    assert [float(action.setpoint.forward[0]) for action in actions] == [0.5, 0.5, 0, 0, 0, 0, 0]
    rates = [float(action.setpoint.yaw_rate[0]) for action in actions]
    assert rates[2] == 1.0  # as fast as it may to the left
    assert 0 < rates[3] < 1
    assert rates[4:6] == pytest.approx([-0.4, -0.4])
    assert [bool(action.stop[0]) for action in actions] == [False] * 6 + [True]


@pytest.mark.parametrize(("x", "y", "sign"), [(0.0, 0.5, -1), (0.0, -0.5, 1), (1.0, 0.0, 0)])
def test_a_script_follows_a_line_from_either_side(x: float, y: float, sign: int) -> None:
    for heading in (0.0, math.pi / 2, -2.5):
        cos, sin = math.cos(heading), math.sin(heading)
        place = torch.tensor([[1.0 + cos * x - sin * y, -1.0 + sin * x + cos * y]])  # beside the line through (1, -1)
        script = Script([Step(forward=0.7, seconds=1.0, line=(1.0, -1.0, heading))])
        script.reset(["whatever"], observed(0.0).pose)
        seen = observed(0.0)
        action = script.act(replace(seen, pose=Pose.level(place, torch.tensor([heading]), 0.7)))
        assert float(action.setpoint.forward[0]) == pytest.approx(0.7)
        assert float(action.setpoint.yaw_rate[0]) * sign >= 0
        assert (abs(float(action.setpoint.yaw_rate[0])) > 0.1) == (sign != 0)


def trial(*points: tuple[float, float, float, float]) -> SimpleNamespace:
    """Something with a record: times, x, y and speeds."""
    path = [TruePoint(time, x, y, 0.7, 0.0, speed) for time, x, y, speed in points]
    return SimpleNamespace(bridge=SimpleNamespace(recording=Recording(path)))


def test_the_judge_goes_by_the_true_path() -> None:
    flown = trial((0, 0, 0, 0), (1, 1.5, -0.5, 0.7), (2, 2.2, -0.9, 0.3), (3, -0.3, -2.36, 0.05))
    assert greatest_xy(flown) == (2.2, 2.36)  # type: ignore[arg-type]
    assert not inside(*greatest_xy(flown))  # type: ignore[arg-type]
    assert inside(2.2, 0.9)
    assert not inside(math.nan, 0.0)
    assert to_fence(flown.bridge.recording.path[2]) == pytest.approx(0.15)
    assert to_fence(flown.bridge.recording.path[3]) == pytest.approx(-0.01)
    assert stopped_at(flown, 0.5) == 3  # type: ignore[arg-type]
    assert stopped_at(flown, 3.5) is None  # type: ignore[arg-type]
    assert point_at(flown, 9.0).time == 3  # type: ignore[arg-type]


def test_a_flight_that_was_broken_off_before_it_turned_is_not_judged() -> None:
    ahead = LoggedEvent(1.0, "decision", {"forward": 0.5, "yaw_rate": 0.0})
    end = LoggedEvent(2.0, "phase", {"text": "landing: motion capture is lost"})
    with pytest.raises(TrialError, match="landing: motion capture is lost"):
        flown_setpoints(SimpleNamespace(events=lambda: [ahead, end]))  # type: ignore[arg-type]


def test_half_of_the_motion_capture_flights_are_within_60_cm_of_a_fence_and_the_wrong_pose_is_further_inside() -> None:
    assert len(MOCAP_FAULT_FLIGHTS) == 20
    assert sum(trouble.near for trouble in MOCAP_FAULT_FLIGHTS) == 10
    for trouble in MOCAP_FAULT_FLIGHTS:
        x, y, heading = trouble.start
        assert max(abs(x), abs(y)) < 2.0  # else it would not be armed
        ahead = (x + 1.5 * math.cos(heading), y + 1.5 * math.sin(heading))  # where it flies at full speed
        assert (2.35 - max(abs(ahead[0]), abs(ahead[1])) <= 0.6) == trouble.near
        fault = trouble.fault(0.0)
        if trouble.near and hasattr(fault, "bearing"):
            moved = (ahead[0] + 0.1 * math.cos(fault.bearing), ahead[1] + 0.1 * math.sin(fault.bearing))
            assert max(map(abs, moved)) < max(map(abs, ahead))


def test_a_tlog_is_read_up_to_half_a_packet_at_its_end(tmp_path: Path) -> None:
    packer = mavlink.MAVLink(None, 245, 191)
    packets = [mavlink.MAVLink_heartbeat_message(18, 8, 0, mode, 4, 3).pack(packer) for mode in (1, 2, 3)]
    data = b"".join(struct.pack(">Q", round(1e6 * (100 + n))) + bytes(packet) for n, packet in enumerate(packets))
    (tmp_path / "flight.tlog").write_bytes(data[:-4])
    found = [(time, message.custom_mode) for time, message in read_tlog(tmp_path / "flight.tlog")]
    assert found == [(100.0, 1), (101.0, 2)]


ASKS = """
import os, signal, sys, time
assert sys.stdin.isatty()
signal.signal(signal.SIGINT, signal.default_int_handler)  # also where the tests run in a shell's background
child = os.fork()
if child == 0:
    os.setsid()
    time.sleep(1000)
while os.getsid(child) != child:
    time.sleep(0.01)
answers = input('Type "write" to write them: '), input('Type "fly 7" to arm it: ')
try:
    print(*answers, child, flush=True)
    while True:
        time.sleep(0.01)  # a signal that comes just before a long sleep would not end it
except KeyboardInterrupt:
    os.kill(child, signal.SIGKILL)
    print("interrupted", flush=True)
"""


def asked() -> Terminal:
    terminal = Terminal([sys.executable, "-c", ASKS])
    while re.search(rb"write fly 7 \d+\r\n", terminal.output) is None:  # to the end of the line: it comes in parts
        assert terminal.process.poll() is None
        time.sleep(0.01)
    return terminal


def test_somebody_at_the_terminal_types_what_is_asked_for_and_ctrl_c_reaches_it() -> None:
    terminal = asked()
    terminal.interrupt()
    assert terminal.process.wait(20) == 0
    terminal.close()
    assert "write fly 7 " in terminal.text
    assert terminal.text.endswith("interrupted\n")


@pytest.mark.parametrize("guardian", [False, True])
def test_a_kill_reaches_the_guardian_only_if_asked_to(guardian: bool) -> None:
    terminal = asked()
    child = int(terminal.text.split()[-1])
    terminal.kill(children=guardian)
    assert terminal.process.wait(20) == -signal.SIGKILL
    terminal.close()
    if guardian:
        assert wait_for(lambda: not alive(child), 20.0)
    else:
        assert alive(child)
        os.kill(child, signal.SIGKILL)


def alive(pid: int) -> bool:
    state = Path(f"/proc/{pid}/status")
    return state.exists() and "State:\tZ" not in state.read_text()


def test_rows_are_chosen_by_the_beginnings_of_their_names() -> None:
    assert [entry.name for entry in chosen("px4", ["camera", "take-off"])] == [
        "first",
        "camera-frozen",
        "camera-silent",
    ]
    assert len(chosen("ardupilot", ["instruction"])) == COUNT
    names = [entry.name for entry in chosen("px4", [])]
    assert "takeover-brake" not in names
    assert "takeover-brake" in [entry.name for entry in chosen("ardupilot", [])]
    rows = [row for entry in chosen("ardupilot", []) for row in entry.rows]
    assert len(set(rows)) == len(rows)


class Flights:
    """Trials that are not flown: what they do is given, try by try."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *tries: str) -> None:
        self.begun = 0
        outer = self

        class NotFlown:
            def __init__(self, *_: object) -> None:
                outer.begun += 1
                if "not booted" in tries[outer.begun - 1]:
                    raise TrialError("not within 60 s: the drone is seen")
                self.bridge = SimpleNamespace(version="1.2.3", recording=Recording([TruePoint(0, 0.5, 1, 0, 0, 0)]))
                self.marked = 1.0 if "judged" in tries[outer.begun - 1] else None

            def close(self) -> None:
                pass

        def fly(_trial: object) -> Iterable[Result]:
            done = tries[self.begun - 1]
            if "fails" in done:
                raise TrialError("not within 90 s: the drone flies")
            yield Result("a", "well", True, 0.1, 0.2)
            yield Result("b", "ill", False)

        monkeypatch.setattr(running, "Trial", NotFlown)
        monkeypatch.setattr(running, "SCENARIOS", (Scenario("one", fly, ("a", "b")),))
        monkeypatch.setattr(running, "COUNT", 0)


def test_rows_are_kept_and_not_flown_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flights, file, said = Flights(monkeypatch, "", ""), tmp_path / "px4.jsonl", []
    config = AcceptConfig("px4", tmp_path)
    rows = run_all(config, file, (), said.append, again=False)
    assert rows == read_results(file)
    assert [asdict(row) for row in rows] == [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row.row, row.holds, row.version) for row in rows] == [("a", True, "1.2.3"), ("b", False, "1.2.3")]
    assert said == ["holds  a: well [|x| 0.10, |y| 0.20]", "FAILS  b: ill"]
    assert run_all(config, file, (), said.append, again=False) == rows
    assert flights.begun == 1
    run_all(config, file, (), said.append, again=True)
    assert flights.begun == 2
    assert len(file.read_text().splitlines()) == 2


def test_rows_are_replaced_whole_so_that_what_breaks_off_loses_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Flights(monkeypatch, "", "")
    config, file, before = AcceptConfig("px4", tmp_path), tmp_path / "px4.jsonl", tmp_path / "before.jsonl"
    run_all(config, file, (), lambda _text: None, again=False)
    written = file.read_text()
    before.hardlink_to(file)
    run_all(config, file, (), lambda _text: None, again=True)
    assert before.read_text() == written
    assert not before.samefile(file)


def test_a_flight_is_tried_again_only_before_it_is_judged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flights = Flights(monkeypatch, "fails", "fails", "")
    rows = run_all(AcceptConfig("px4", tmp_path), tmp_path / "1.jsonl", (), lambda _text: None, again=False)
    assert flights.begun == 3
    assert rows[0].seen == "well (try 3)"
    flights = Flights(monkeypatch, "fails, judged", "")
    rows = run_all(AcceptConfig("px4", tmp_path), tmp_path / "2.jsonl", (), lambda _text: None, again=False)
    assert flights.begun == 1
    assert [(row.row, row.holds, row.x) for row in rows] == [("a", False, 0.5), ("b", False, 0.5)]


def test_a_simulation_that_does_not_boot_is_tried_again_and_in_the_end_a_row_that_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flights = Flights(monkeypatch, "not booted", "")
    rows = run_all(AcceptConfig("px4", tmp_path), tmp_path / "1.jsonl", (), lambda _text: None, again=False)
    assert flights.begun == 2
    assert [row.seen for row in rows] == ["well (try 2)", "ill (try 2)"]
    Flights(monkeypatch, "not booted", "fails", "not booted")
    rows = run_all(AcceptConfig("px4", tmp_path), tmp_path / "2.jsonl", (), lambda _text: None, again=False)
    found = [(row.row, row.holds, row.seen, row.x, row.version) for row in rows]
    assert found == [(row, False, "not within 60 s: the drone is seen (try 3)", None, "") for row in "ab"]
    assert summarise([*rows, Result("c", "so", True, version="1.2.3")])[0]["seen"].startswith("1.2.3; wordwing ")


def test_results_that_are_not_ours_get_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "px4.jsonl").write_text('{"row": "connect", "seen": "so"}\n')
    with pytest.raises(WordwingError, match=r'px4\.jsonl: line 1: "holds" is missing; it must be true or false'):
        read_results(tmp_path / "px4.jsonl")


def test_a_script_is_written_and_read_back(tmp_path: Path) -> None:
    steps = (Step(forward=0.5, seconds=1.0), Step(seconds=0.5, line=(1.0, -1.0, 0.5)))
    script = ScriptFile("udp:127.0.0.1:14550", DroneOptions(tmp_path / "arena.json", log=tmp_path / "log"), steps)
    script.save(tmp_path / "script.json")
    assert parse_json(ScriptFile, (tmp_path / "script.json").read_bytes(), "script.json") == script


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--only", "takeof"], 'did you mean "take-off"'),
        (["--binary", "nowhere"], "there is no program there"),
        (["--instance", "77"], "from 0 to 9"),
    ],
)
def test_mistakes_get_one_sentence(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["flight", "accept", "--autopilot", "px4", "--binary", str(tmp_path / "px4"), "--out", str(tmp_path)]
    assert words in refused(capsys, *command, *options)


BINARIES = {"ardupilot": "WORDWING_ARDUCOPTER", "px4": "WORDWING_PX4"}


@pytest.mark.long
@pytest.mark.parametrize("autopilot", BINARIES)
def test_a_real_autopilot_is_flown(autopilot: str, tmp_path: Path) -> None:
    binary = os.environ.get(BINARIES[autopilot])
    if binary is None:
        pytest.skip(f"{BINARIES[autopilot]} names no simulation")
    config = AcceptConfig(autopilot, Path(binary), 6, tmp_path)  # type: ignore[arg-type]
    rows = run_all(config, tmp_path / "rows.jsonl", ["first", "fence", "pilot-killed"], print, again=False)
    assert [row.row for row in rows if not row.holds] == []


def test_the_table_puts_flights_of_one_kind_together() -> None:
    def row(name: str, holds: bool, x: float | None, **values: float) -> Result:
        return Result(name, "so", holds, x, x, values, autopilot="px4", version="1.16.2 (ab)", wordwing="0.1.0")

    lines = summarise(
        [
            row("connect", True, None),
            row("camera frozen", False, 1.0),
            row("motion capture stops, near a fence, 0", True, 2.1, land=0.4),
            row("motion capture stops, in the middle, 1", True, 1.1, land=0.3),
            row("motion capture stops, near a fence, 2", False, 2.4, land=7.1),
            row("instruction 1", True, 1.5, goal=0.2, success=1.0),
            row("instruction 2", True, 1.9, goal=0.9, success=0.0),
            row("instruction 3", False, 1.2),
        ]
    )
    assert [(line["row"], line["seen"], line["x, m"], line["holds"]) for line in lines] == [
        ("versions", "1.16.2 (ab); wordwing 0.1.0", "", ""),
        ("connect", "so", "", "yes"),
        ("camera frozen", "so", "1.00", "**no**"),
        ("motion capture stops, near a fence", "1 of 2 inside, LAND after 0.4 to 7.1 s", "2.40", "1 of 2"),
        ("motion capture stops, in the middle", "1 of 1 inside, LAND after 0.3 to 0.3 s", "1.10", "1 of 1"),
        (
            "instructions, by the shipped policy",
            "2 of 3 flown to the end, 1 of them within 0.47 m of the goal",
            "1.90",
            "2 of 3",
        ),
    ]
    assert all(text.count("|") == 6 for text in to_text(lines).splitlines())
