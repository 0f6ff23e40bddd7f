"""Lines of episodes.jsonl: what is written is what is read, and what cannot be read is named."""

import json
import lzma
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.transform import Rotation

from randomly import random_lakes, random_poses
from small_evaluation import plain_episode
from wordwing.errors import WordwingError
from wordwing.execution.episodes import (
    EPISODES,
    episode_line,
    find_episodes,
    parse_episode,
    pose_rows,
    read_episodes,
)
from wordwing.execution.execution import Execution
from wordwing.execution.metrics import measure
from wordwing.frames import Pose, euler_from_quaternion
from wordwing.language.meaning.clauses import Clause
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import Task

LAYOUT = Layout((Placement("Barrel", 0.5, -1.0, yaw=0.3), Placement("Well", -1.25, 1.0, radius=0.5)))


def flown(rng: np.random.Generator, steps: int = 12) -> Execution:
    """A flight through anywhere."""
    poses = random_poses(rng, steps + 1)
    return Execution.single(
        task=Task("go", LAYOUT, (0.0, 0.0), 0.0, np.zeros((1, 2))),
        positions=poses.position.numpy(),
        quaternions=poses.quaternion.numpy(),
        setpoints=rng.uniform(-0.7, 0.7, (steps, 2)).astype(np.float32),
        decisions=steps - 6,
        ended_by="stop",
        seconds_inside_landmarks=0.25,
    )


def episode(rng: np.random.Generator, **changes: object) -> Execution:
    flight = flown(rng)
    angles = torch.stack(euler_from_quaternion(flight.pose.quaternion[0]), -1)
    given = {
        "domain": "lab",
        "seed": 4_000_000_000,
        "id": "cage-0001/2-3",
        "segments": 2,
        "instruction": 'go to the "café"\nand then\u2028飞 \\ left',
        "meaning": (Clause("pass", 0, side="left"), Clause("between", 1, "red"), Clause("forward", amount=0.1 + 0.2)),
        "layout": replace(LAYOUT, lakes=random_lakes(rng)),
        "start": (0.1 + 0.2, -1 / 3, 2.5),
        "gold": rng.uniform(-2, 2, (7, 2)),
        "poses": np.column_stack([flight.positions, angles.numpy()]),
        "setpoints": flight.setpoints,
        "decisions": flight.end,
        "seconds_inside_landmarks": 0.25,
        "goals": rng.uniform(0, 1, (7, 3)),
    }
    return plain_episode(np.zeros((1, 2)), **(given | changes))


def assert_same(a: Execution, b: Execution) -> None:
    """Whether two flights have the same line, and the same content to what a line keeps."""
    assert episode_line(a, {}) == episode_line(b, {})
    assert a.provenance == b.provenance
    mine, theirs = replace(a.task, gold_path=np.zeros(0)), replace(b.task, gold_path=np.zeros(0))
    assert repr(mine) == repr(theirs)
    assert (a.ended_by, a.end, a.seconds_inside_landmarks) == (b.ended_by, b.end, b.seconds_inside_landmarks)
    for name in ("positions", "setpoints", "believed_goals"):
        assert getattr(a, name).shape == getattr(b, name).shape
        assert np.abs(getattr(a, name) - getattr(b, name)).max(initial=0) <= 0.5e-4 + 1e-6, name


def written(file: Path, *lines: str) -> Path:
    file.write_text("".join(lines), "utf-8")
    return file


def refused(file: Path) -> str:
    """The one sentence about a file that cannot be read."""
    with pytest.raises(WordwingError) as error:
        list(read_episodes([file]))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"instruction": None, "meaning": None, "seconds_inside_landmarks": None},
        {"meaning": (), "goals": np.zeros((0, 3)), "ended_by": "steps", "domain": "sim", "layout": Layout(())},
        {
            "alternatives": (
                (Clause("reach", 1, amount=0.5),),
                (Clause("look", 0), Clause("spin", side="left", amount=6.0)),
            )
        },
        {"poses": np.zeros((1, 6)), "setpoints": np.zeros((0, 2)), "decisions": 0, "gold": np.zeros((1, 2))},
    ],
)
def test_a_line_that_is_read_is_the_episode_that_was_written_to_the_last_digit(rng, tmp_path, changes):
    first, second = episode(rng, **changes), episode(rng, id="cage-0001/1", segments=1)
    text = [episode_line(entry, measure(entry).to_json()) for entry in (first, second)]
    assert all(line.count("\n") == 1 for line in text)
    found = list(read_episodes([written(tmp_path / EPISODES, *text)]))
    assert len(found) == 2
    assert_same(found[0], first)
    assert_same(found[1], second)
    assert [measure(entry).to_json() for entry in found] == [json.loads(line)["metrics"] for line in text]


def test_lines_may_be_compressed_and_in_several_files(rng, tmp_path):
    entries = [episode(rng, id=f"cage-0001/{number}") for number in range(3)]
    lines = [episode_line(entry, {}) for entry in entries]
    with lzma.open(tmp_path / "a.jsonl.xz", "wt", encoding="utf-8") as file:
        file.write(lines[0] + lines[1])
    files = [tmp_path / "a.jsonl.xz", written(tmp_path / "b.jsonl", lines[2])]
    for found, entry in zip(read_episodes(files), entries, strict=True):
        assert_same(found, entry)


def test_poses_are_kept_to_a_tenth_of_a_millimetre_and_milliradian_as_scipy_has_their_angles(rng):
    flight = flown(rng)
    row = json.loads(episode_line(flight, {}))
    poses, setpoints = np.array(row["poses"]), np.array(row["setpoints"])
    assert np.array_equal(poses, pose_rows(flight))
    angles = Rotation.from_quat(np.roll(flight.quaternions, -1, axis=-1)).as_euler("ZYX")[:, ::-1]
    for kept, exact in ((poses[:, :3], flight.positions), (poses[:, 3:], angles), (setpoints, flight.setpoints)):
        assert np.abs(kept - exact).max() <= 0.5e-4 + 1e-6
        assert np.array_equal(kept, np.round(kept, 4))
        assert kept.dtype == np.float64


def test_a_zero_has_no_sign():
    still = Execution.single(
        Task("", LAYOUT, (0.0, 0.0), 0.0, np.full((1, 2), -1e-6)),
        np.full((2, 3), -1e-6, np.float32),
        Pose.level(torch.zeros(2, 2), torch.full((2,), -1e-6)).quaternion.numpy(),
        np.full((1, 2), -1e-9, np.float32),
        0,
        "stop",
        goals=np.full((1, 3), -1e-6),
    )
    assert "-0.0" not in episode_line(still, {})


def test_the_flight_of_a_line_is_the_one_that_was_flown(rng):
    flight = flown(rng, steps=40)
    again = parse_episode(episode_line(flight, {}), "here")
    assert np.abs(again.positions - flight.positions).max() <= 0.5e-4 + 1e-6
    turns = [Rotation.from_quat(np.roll(entry.quaternions, -1, axis=-1)) for entry in (flight, again)]
    between = turns[0].as_matrix().transpose(0, 2, 1) @ turns[1].as_matrix()
    assert np.abs(between - np.eye(3)).max() <= 2e-4
    assert np.abs(again.setpoints - flight.setpoints).max() <= 0.5e-4 + 1e-6
    assert (again.end, again.ended_by, again.seconds_inside_landmarks) == (34, ("stop",), (0.25,))
    assert (again.task.start_xy, again.task.start_yaw) == ((0.0, 0.0), 0.0)
    assert again.positions.dtype == again.quaternions.dtype == np.float32


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("schema", 2, '"schema" is 2; it must be 1, the version that this wordwing reads'),
        ("schema", True, '"schema" is true; it must be 1'),
        ("schema", None, '"schema" is null; it must be 1'),
        ("system", 3, '"system" is 3; it must be a text'),
        ("corpus", None, '"corpus" is null'),
        ("text", ["human"], '"text" is a list'),
        ("split", 1.5, '"split" is 1.5'),
        ("domain", "moon", '"domain" is "moon"; it must be sim or lab'),
        ("domain", None, '"domain" is null; it must be sim or lab'),
        ("seed", 0.5, '"seed" is 0.5; it must be a whole number'),
        ("seed", True, '"seed" is true'),
        ("id", {}, '"id" is an object'),
        ("segments", "2", '"segments" is "2"'),
        ("instruction", 7, '"instruction" is 7; it must be a text or null'),
        ("meaning", "go", '"meaning" is "go"'),
        ("meaning", [7], "meaning 1 is 7; it must be an object"),
        ("meaning", [{"kind": "fly"}], 'meaning 1: "kind" is "fly"; it must be turn, '),
        ("meaning", [{"kind": "reach", "reference": 2}], "the number of one of 2 landmarks"),
        ("layout_id", None, '"layout_id" is null'),
        ("layout", [], '"layout" is a list; it must be a layout'),
        ("layout", {"schema": 1, "arena": 4.7, "landmarks": [{"name": "Barell", "x": 0, "y": 0}]}, '"Barrel"'),
        ("start", [0.0, 0.0], '"start" is a list of 2; it must be [x, y, yaw] in metres and radians'),
        ("start", [0.0, 0.0, "north"], '"start" has "north" in it; it must be [x, y, yaw]'),
        ("gold", [], '"gold" is a list of 0; it must be a list of points [x, y] in metres, at least one'),
        ("gold", [[0.0, 0.0, 0.0]], '"gold" has a list of 3 in it; it must be a list of'),
        ("gold", None, '"gold" is null; it must be a list'),
        ("poses", [], '"poses" is a list of 0; it must be a list of'),
        (
            "poses",
            [[0.0] * 5] * 13,
            '"poses" has a list of 5 in it; it must be a list of rows of 6 finite numbers',
        ),
        ("poses", [[0.0] * 6] * 12, "one setpoint fewer than poses"),
        (
            "poses",
            [[1e7] * 6] * 13,
            '"poses" has 10000000.0 in it; it must be a list of rows of 6 finite',
        ),
        ("setpoints", [[0.0, True]] * 12, '"setpoints" has true in it; it must be a list of rows of 2'),
        ("setpoints", [0.0] * 24, '"setpoints" has 0.0 in it; it must be a list of rows of 2'),
        ("setpoints", [[0.0, 0.0]] * 13, "one setpoint fewer than poses"),
        ("goals", [[0.0, 0.0]], '"goals" has a list of 2 in it; it must be a list of rows of 3'),
        ("goals", {}, '"goals" is an object; it must be a list of rows of 3'),
        ("decisions", -1, '"decisions" is -1; it must be a whole number at least 0'),
        ("decisions", 13, "no more decisions"),
        ("decisions", 6.0, '"decisions" is 6.0; it must be a whole number'),
        ("ended_by", "crash", '"ended_by" is "crash"; it must be stop or steps'),
        ("ended_by", 0, '"ended_by" is 0'),
        ("seconds_inside_landmarks", "1", '"seconds_inside_landmarks" is "1"; it must be a finite number'),
        ("seconds_inside_landmarks", 10**400, "it must be a finite number"),
    ],
)
def test_a_broken_field_is_named_with_its_file_and_line(rng, tmp_path, key, value, sentence):
    good = episode(rng)
    row = json.loads(episode_line(good, {}))
    lines = episode_line(good, {}), json.dumps({**row, key: value}) + "\n"
    said = refused(written(tmp_path / EPISODES, *lines))
    assert said.startswith(f"{tmp_path / EPISODES}: line 2: ")
    assert sentence in said


KEYS = (
    *("system", "corpus", "text", "split", "domain", "seed", "id", "segments", "instruction", "meaning", "layout_id"),
    *("layout", "start", "gold", "poses", "setpoints", "decisions", "ended_by", "seconds_inside_landmarks", "goals"),
)


@pytest.mark.parametrize("key", KEYS)
def test_a_field_that_is_missing_is_named_unless_it_may_be_null(rng, tmp_path, key):
    row = json.loads(episode_line(episode(rng), {}))
    del row[key]
    file = written(tmp_path / EPISODES, json.dumps(row) + "\n")
    if key in ("instruction", "meaning", "seconds_inside_landmarks"):
        [found] = read_episodes([file])
        assert json.loads(episode_line(found, {}))[key] is None
    else:
        said = refused(file)
        assert said.startswith(f"{file}: line 1: ")
        assert key in said


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
@pytest.mark.parametrize("key", ["poses", "setpoints", "gold", "goals", "seconds_inside_landmarks"])
def test_numbers_that_are_none_are_refused_wherever_they_stand(rng, tmp_path, key, number):
    row = json.loads(episode_line(episode(rng), {}))
    if key == "seconds_inside_landmarks":
        row[key] = "HERE"
    else:
        row[key][-1][-1] = "HERE"
    file = written(tmp_path / EPISODES, json.dumps(row).replace('"HERE"', number) + "\n")
    said = refused(file)
    assert said.startswith(f"{file}: line 1")
    assert key in said or "number out of range" in said


@pytest.mark.parametrize("line", ["\n", "go left\n", "{}{}\n", "[" * 100_000 + "\n", '{"schema": 1'])
def test_a_line_that_is_not_json_is_named(rng, tmp_path, line):
    file = written(tmp_path / EPISODES, episode_line(episode(rng), {}), line)
    assert refused(file).startswith(f"{file}: line 2: not valid JSON (")


@pytest.mark.parametrize("line", ["[]\n", "3\n", '"a flight"\n', "null\n"])
def test_a_line_that_holds_something_else_is_named(rng, tmp_path, line):
    file = written(tmp_path / EPISODES, line)
    assert refused(file).endswith("it must be an object, {…}")


def test_a_line_is_refused_wherever_it_was_cut_off(rng, tmp_path):
    whole = episode_line(episode(rng), measure(episode(rng)).to_json())
    for end in range(1, len(whole) - 1, 211):
        file = written(tmp_path / EPISODES, whole, whole[:end])
        said = refused(file)
        assert said.startswith(f"{file}: line 2: not valid JSON (")
        assert said.endswith("; was it cut off?")


def test_files_that_cannot_be_read_are_named(rng, tmp_path):
    line = episode_line(episode(rng), {}).encode()
    cases = {
        "no-xz.jsonl.xz": (line, "after line 0: not a whole xz file ("),
        "cut.jsonl.xz": (lzma.compress(line)[:-20], "after line 1: not a whole xz file ("),
        "latin.jsonl": ("é".encode("latin-1") + b"\n", "line 1: not valid JSON"),
    }
    for name, (content, said) in cases.items():
        (tmp_path / name).write_bytes(content)
        assert refused(tmp_path / name).startswith(f"{tmp_path / name}: {said}")
    assert refused(tmp_path / "none.jsonl") == f"{tmp_path / 'none.jsonl'}: there is no such file"
    assert refused(tmp_path) == f"{tmp_path}: the file cannot be read (is a directory)"


def test_a_line_holds_no_nan(rng):
    with pytest.raises(ValueError, match="not JSON compliant"):
        episode_line(episode(rng, goals=np.full((1, 3), np.nan)), {})


def test_the_file_of_a_folder_is_found_compressed_or_not(tmp_path):
    with pytest.raises(WordwingError, match=rf"^{tmp_path}: there is no episodes.jsonl in it; wordwing evaluate makes"):
        find_episodes(tmp_path)
    (tmp_path / "episodes.jsonl.xz").touch()
    assert find_episodes(str(tmp_path)) == tmp_path / "episodes.jsonl.xz"
    (tmp_path / EPISODES).touch()
    assert find_episodes(tmp_path) == tmp_path / EPISODES
    assert find_episodes(tmp_path / "episodes.jsonl.xz") == tmp_path / "episodes.jsonl.xz"
