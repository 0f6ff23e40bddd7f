"""Films from logs: the flight that comes out is the one that went in."""

import json
import re

import av
import numpy as np
import pytest
import torch
from PIL import Image

from command_line import refused
from small_policy import VOCABULARY, small_network
from wordwing.cli import main
from wordwing.errors import WordwingError
from wordwing.execution.execution import Execution
from wordwing.execution.runner import fly
from wordwing.flight.camera_stream import CameraFrame
from wordwing.flight.logs import FlightLog
from wordwing.flight.matching import MatchedObservation
from wordwing.flight.replay import read_flight, replay, think_again
from wordwing.frames import Pose
from wordwing.interface import Setpoint
from wordwing.policies.learned import LearnedPolicy
from wordwing.sim.simulator import Simulator
from wordwing.viz.animation import MAP_SIZE
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import Task

LAYOUT = Layout((Placement("Barrel", 1.2, 0.4), Placement("Anvil", 0.0, -1.2)))
TASK = Task("go to the barrel", LAYOUT, (-1.0, 0.0), 0.2, np.array([[-1.0, 0.0], [1.0, 0.3]]))


@pytest.fixture(scope="module")
def policy(tmp_path_factory) -> str:
    """The folder of a small policy."""
    folder = tmp_path_factory.mktemp("policies") / "small"
    LearnedPolicy(small_network(), VOCABULARY).save(folder)
    return str(folder)


@pytest.fixture(scope="module")
def flown(policy) -> Execution:
    """A flight with its images and beliefs."""
    [flight] = fly(LearnedPolicy.from_pretrained(policy, "lab"), Simulator(1), [TASK], max_steps=4, keep_images=True)
    return flight


def write_log(folder, flight: Execution, policy: str, *, record: bool = True, known: bool = True) -> None:
    """What a pilot would log of a flight."""
    with FlightLog(folder, record=record) as log:
        log.begin(100.0, 1.7e9, flight.task.instruction, policy, "mavlink:test", None, LAYOUT if known else None)
        for index in range(len(flight.positions)):
            pose = Pose(torch.from_numpy(flight.positions[index]), torch.from_numpy(flight.quaternions[index]))
            picture = CameraFrame(torch.from_numpy(flight.images[0][index]), 100.0 + 0.3 * index, index + 1)
            log.observation(100.05 + 0.3 * index, MatchedObservation(picture, pose, 0.0))
            if index < len(flight.setpoints):
                forward, yaw_rate = (torch.tensor([float(value)]) for value in flight.setpoints[index])
                log.decision(100.1 + 0.3 * index, Setpoint(forward + 0.1, yaw_rate), stop=False)
                log.event(100.12 + 0.3 * index, "setpoint", text="of the guardian's", forward=9.9)
                log.flown(100.15 + 0.3 * index, Setpoint(forward, yaw_rate))
        log.end(110.0, flight.ended_by[0], flight.end)


def test_the_flight_in_a_log_is_the_flight_that_was_flown(tmp_path, flown, policy):
    write_log(tmp_path, flown, policy)
    found, told = read_flight(tmp_path)
    assert np.array_equal(found.positions, flown.positions)
    assert np.array_equal(found.quaternions, flown.quaternions)
    assert np.array_equal(found.setpoints, flown.setpoints)  # what was sent, not what was wished for
    assert (found.decisions, found.ended_by) == (flown.decisions, flown.ended_by)
    assert all(np.array_equal(a, b) for a, b in zip(found.images, flown.images, strict=True))
    assert found.task.layout == LAYOUT
    assert found.task.start_yaw == pytest.approx(0.2, abs=1e-5)
    assert told["policy"] == policy


def test_the_policy_thinks_the_same_again(tmp_path, flown, policy):
    write_log(tmp_path, flown, policy)
    found, _ = read_flight(tmp_path)
    thought = think_again(found, LearnedPolicy.from_pretrained(policy, "lab"))
    assert len(thought.beliefs[0]) == len(flown.beliefs[0]) == 4
    for again, before in zip(thought.beliefs[0], flown.beliefs[0], strict=True):
        assert torch.allclose(again.visitation.cells, before.visitation.cells, atol=1e-6)
        assert again.control.stop_probability == pytest.approx(before.control.stop_probability, abs=1e-6)
    assert thought.believed_goals == pytest.approx(flown.believed_goals, abs=1e-5)


def size_of(film) -> tuple[int, int, int]:
    with av.open(str(film)) as container:
        stream = container.streams.video[0]
        return stream.width, stream.height, sum(1 for _ in container.decode(stream))


def test_a_log_with_images_becomes_the_film_of_what_was_thought(tmp_path, flown, policy, capsys):
    write_log(tmp_path / "log", flown, policy)
    main(["fly", "--replay", str(tmp_path / "log"), "--policy", policy, "--out", str(tmp_path / "film")])
    said = capsys.readouterr().out.splitlines()
    assert said[0] == '"go to the barrel"'
    assert said[1].startswith("small on mavlink:test had not stopped when its time was up after 1.2 s")
    assert said[2:4] == ["✗ did not come to rest at the barrel", "what was said was not done, says the judge"]
    assert said[-1] == f"video: {tmp_path / 'film' / 'flight.mp4'}"
    assert size_of(tmp_path / "film" / "flight.mp4") == (1600, 900, len(flown.positions) + 5)
    assert {path.name for path in (tmp_path / "film").iterdir()} == {"flight.mp4", "filmstrip.png", "layout.json"}
    assert len(json.loads((tmp_path / "film" / "layout.json").read_text())["landmarks"]) == 2


def test_a_log_without_images_becomes_a_film_of_the_path_in_an_empty_arena(tmp_path, flown, policy):
    write_log(tmp_path / "log", flown, policy, record=False, known=False)
    said: list[str] = []
    replay(tmp_path / "log", tmp_path / "film", say=said.append)
    assert not any("judge" in line for line in said)  # nobody knows what stood there
    assert size_of(tmp_path / "film" / "flight.mp4")[:2] == (1180, 690)
    assert json.loads((tmp_path / "film" / "layout.json").read_text())["landmarks"] == []
    with Image.open(tmp_path / "film" / "filmstrip.png") as still:
        picture = np.asarray(still.convert("RGB")).astype(int)
    blue = (np.abs(picture - [0, 114, 178]).sum(-1) < 40).sum()
    gold = (np.abs(picture - [230, 159, 0]).sum(-1) < 40).sum()
    assert blue > 200  # the path that was flown
    assert gold < 20  # and no demonstration, for there was none
    assert MAP_SIZE == 600


def test_a_baseline_has_no_thoughts_to_show(tmp_path, flown):
    write_log(tmp_path / "log", flown, "average")
    replay(tmp_path / "log", tmp_path / "film", say=lambda line: None)
    assert size_of(tmp_path / "film" / "flight.mp4")[:2] == (1180, 690)


def test_a_flight_that_was_cut_off_is_shown_as_far_as_it_went(tmp_path, flown, policy):
    write_log(tmp_path, flown, policy)
    events = (tmp_path / "events.jsonl").read_text().splitlines()
    third = [number for number, line in enumerate(events) if '"observation"' in line][2]
    (tmp_path / "events.jsonl").write_text("\n".join(events[: third + 1]) + '\n{"time": 5, "ki')
    found, told = read_flight(tmp_path)
    assert len(found.positions) == 3
    assert (found.ended_by, found.end) == (("steps",), 3)  # flying at all three
    assert np.array_equal(found.setpoints, flown.setpoints[:2])
    assert told["broken off"] == "the log ends"


@pytest.mark.parametrize(
    ("text", "values"),
    [("landing: the battery is empty", {}), ("coming down: the battery is empty", {"phase": "landing"})],
)
def test_the_end_of_a_flight_is_known_by_its_phase_and_in_old_logs_by_its_text(text, values, tmp_path, flown, policy):
    write_log(tmp_path, flown, policy, record=False)
    file = tmp_path / "events.jsonl"
    file.write_text("".join(line for line in file.read_text().splitlines(True) if '"end"' not in line))
    with FlightLog(tmp_path) as log:
        log.event(108.0, "phase", text="holding: it has taken off", phase="holding")
        log.event(109.0, "phase", text=text, **values)
    assert read_flight(tmp_path)[1]["broken off"] == text


def test_a_flight_that_the_guardian_ended_is_told_with_its_reason(tmp_path, flown, policy):
    write_log(tmp_path / "log", flown, policy, record=False)
    file = tmp_path / "log" / "events.jsonl"
    lines = [line for line in file.read_text().splitlines() if '"end"' not in line]
    with FlightLog(tmp_path / "log") as log:
        file.write_text("\n".join(lines) + "\n")
        log.event(109.0, "phase", text="landing: the newest pose is 0.25 s old", phase="landing")
        log.event(112.0, "phase", text="landed: disarmed", phase="landed")
    said: list[str] = []
    replay(tmp_path / "log", tmp_path / "film", say=said.append)
    seconds = 0.3 * len(flown.setpoints)
    assert said[1] == (
        f"small on mavlink:test was broken off after {seconds:.1f} s: landing: the newest pose is 0.25 s old"
    )
    assert said[2] == "not judged: the flight was broken off"


def test_one_missing_image_leaves_all_of_them_out(tmp_path, flown, policy):
    write_log(tmp_path, flown, policy)
    (tmp_path / "frames" / "00002.png").unlink()
    assert read_flight(tmp_path)[0].images == ((),)


def test_logs_that_hold_no_flight_get_one_sentence(tmp_path, flown, policy, capsys):
    out = ["--out", str(tmp_path / "film")]
    assert "no log of a flight" in refused(capsys, "fly", "--replay", str(tmp_path / "none"), *out)
    with FlightLog(tmp_path / "empty") as log:
        log.event(1.0, "phase", text="connecting")
    assert "it ends before the flight began" in refused(capsys, "fly", "--replay", str(tmp_path / "empty"), *out)
    with FlightLog(tmp_path / "empty") as log:
        log.begin(1.0, 1.0, "go", policy, "x")
    assert "there are no observations in this log" in refused(capsys, "fly", "--replay", str(tmp_path / "empty"), *out)
    assert "leave the instruction out" in refused(capsys, "fly", "go", "--replay", str(tmp_path / "empty"), *out)
    assert not (tmp_path / "film").exists()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r'"position": \[[^,]*,', '"position": ["x",'),
        (r'"position": \[[^,]*,', f'"position": [{10**400},'),
        (r'"position": \[[^,]*,', '"position": ['),
        (r'"quaternion": \[[^,]*,', '"quaternion": [NaN,'),
        ('"forward": ', '"fast": '),
    ],
)
def test_a_log_with_wrong_numbers_gets_one_sentence(old, new, tmp_path, flown, policy):
    write_log(tmp_path, flown, policy, record=False)
    file = tmp_path / "events.jsonl"
    file.write_text(re.sub(old, new, file.read_text()))
    with pytest.raises(WordwingError, match=r'line \d+ of events\.jsonl: "(position|quaternion|forward)"'):
        read_flight(tmp_path)
