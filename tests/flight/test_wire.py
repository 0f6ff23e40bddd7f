"""Over UDP on loopback, with all processes that a real flight has. Clocks run at a quarter speed, for busy machines."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wordwing.bench.flight import LabAddresses, served_lab
from wordwing.cli import main
from wordwing.flight.logs import LoggedEvent, read_events
from wordwing.interface import Action, Observation
from wordwing.policies.learned import LearnedPolicy

SPEED = "0.25"


def arguments(folder: Path, lab: LabAddresses) -> list[str]:
    files = ["--arena", str(folder / "arena.json"), "--calibration", str(folder / "camera.json")]
    files += ["--layout", str(folder / "layout.json"), "--log", str(folder / "log"), "--out", str(folder / "film")]
    place = ["--vehicle", f"mavlink:{lab.url}", "--camera", lab.camera, "--mocap", lab.mocap]
    return ["fly", "go to the banana", *place, "--speed", SPEED, *files]


def phases(log: Path) -> list[LoggedEvent]:
    return [event for event in read_events(log) if event.kind == "phase"]


def wait_for(log: Path, phase: str, seconds: float = 150.0) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if (log / "events.jsonl").exists() and any(event.values["phase"] == phase for event in phases(log)):
            return
        time.sleep(0.2)
    raise AssertionError(f"the drone was never {phase}: {[event.values['text'] for event in phases(log)]}")


@pytest.fixture
def lab(tmp_path):
    with served_lab(tmp_path, "ardupilot", 3, "--speed", SPEED) as lab:
        yield tmp_path, lab


def test_the_shipped_policy_flies_an_instruction_over_udp_and_the_drone_lands(lab, capsys):
    folder, addresses = lab
    main([*arguments(folder, addresses), "--yes", "--record"])
    said = capsys.readouterr().out
    assert "the drone is landed: disarmed; it came down because the pilot ordered it" in said
    assert "says the judge" in said
    events = read_events(folder / "log")
    (end,) = [event for event in events if event.kind == "end"]
    assert end.values["by"] in ("stop", "steps")
    seen = [event for event in events if event.kind == "observation"]
    assert len(list((folder / "log" / "frames").glob("*.png"))) == len(seen) == end.values["decisions"] + 7
    assert max(event.values["gap"] for event in seen) <= 0.05
    assert (folder / "film" / "flight.mp4").stat().st_size > 10_000
    assert (folder / "log" / "flight.tlog").stat().st_size > 10_000


@pytest.mark.long
def test_a_pilot_that_is_killed_in_the_air_leaves_a_drone_that_lands(lab):
    folder, addresses = lab
    command = [sys.executable, "-m", "wordwing", *arguments(folder, addresses), "--yes"]
    pilot = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(folder / "log", "flying")
        pilot.send_signal(signal.SIGKILL)
        pilot.wait(10)
        wait_for(folder / "log", "landed")
    finally:
        pilot.kill()
    assert phases(folder / "log")[-1].values["text"] == "landed: disarmed; it came down because the pilot is gone"


@pytest.mark.long
def test_ctrl_c_lands_the_drone(lab):
    folder, addresses = lab
    command = [sys.executable, "-m", "wordwing", *arguments(folder, addresses), "--yes"]
    pilot = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        wait_for(folder / "log", "flying")
        os.killpg(pilot.pid, signal.SIGINT)  # as a terminal does it
        assert pilot.wait(60) == 130
        wait_for(folder / "log", "landed")
    finally:
        pilot.kill()
    assert "the pilot ordered it" in phases(folder / "log")[-1].values["text"]


def test_no_drone_is_armed_by_a_policy_that_decides_too_slowly_or_without_a_terminal_to_confirm_at(
    lab, capsys, monkeypatch
):
    folder, addresses = lab
    act = LearnedPolicy.act

    def act_slowly(policy: LearnedPolicy, observation: Observation) -> Action:
        time.sleep(1.5)  # 0.375 s of the lab's
        return act(policy, observation)

    monkeypatch.setattr("sys.stdin", open(os.devnull, encoding="utf-8"))  # noqa: SIM115
    monkeypatch.setattr("wordwing.flight.decision_latency.DECISIONS", 1)
    for slow, sentence in ((True, "and may take 0.3 s; this machine is probably busy"), (False, "typed on a terminal")):
        monkeypatch.setattr(LearnedPolicy, "act", act_slowly if slow else act)
        log = folder / f"log-{slow}"
        with pytest.raises(SystemExit) as stop:
            main([*arguments(folder, addresses), "--log", str(log), *["--yes"] * slow])
        assert stop.value.code == 2
        assert sentence in capsys.readouterr().err
        assert phases(log)
        assert not any(event.values["phase"] == "taking off" for event in phases(log))


@pytest.mark.long
def test_a_flight_whose_take_off_fails_exits_with_3(tmp_path, capsys):
    with (
        served_lab(tmp_path, "px4", 3, "--speed", SPEED, "--fault", "arming@0") as addresses,
        pytest.raises(SystemExit) as end,
    ):
        main([*arguments(tmp_path, addresses), "--yes"])
    assert end.value.code == 3
    said = capsys.readouterr().err
    assert re.fullmatch(r"wordwing: the flight is over, .*refused to arm.*Compasses inconsistent.*\n", said)
