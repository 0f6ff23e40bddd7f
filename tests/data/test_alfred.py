import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from house_rooms import write_human_nav
from wordwing.data.dataset import FILES, Dataset
from wordwing.data.importers.houses import import_alfred, import_human_nav, read_alfred
from wordwing.data.importers.rooms import build
from wordwing.errors import WordwingError

STEP = {0: (0, 1), 90: (1, 0), 180: (0, -1), 270: (-1, 0)}
"""Where a quarter of a metre ahead is in (4x, 4z), by rotation."""


def action(name: str, step: int) -> dict[str, Any]:
    return {"discrete_action": {"action": name, "args": {}}, "high_idx": step, "api_action": {"action": name}}


def random_trial(rng: np.random.Generator, scene: str, legs: int = 3, workers: int = 3) -> dict[str, Any]:
    """A plan of "go to" and "pick up" steps in quarters of a metre, and sentences; some legs are not what they say."""
    x, z = rng.integers(-6, 7, 2).tolist()
    rotation = int(rng.choice([0, 90, 180, 270]))
    start = {"action": "TeleportFull", "horizon": 30, "rotation": rotation, "x": x / 4, "y": 0.9, "z": z / 4}
    high, low, sentences = [], [], []
    for number in range(legs):
        step = 2 * number
        low.append(action("LookDown_15", step))
        kind = rng.choice(["walk", "walk", "walk", "turn", "stay", "astray"])
        for _ in range({"turn": 1, "stay": 0}.get(str(kind), int(rng.integers(2, 9)))):
            if kind == "turn" or rng.random() < 0.3:
                side = str(rng.choice(["Left", "Right"]))
                rotation = (rotation + (90 if side == "Right" else -90)) % 360
                low.append(action(f"Rotate{side}_90", step))
            else:
                x, z = x + STEP[rotation][0], z + STEP[rotation][1]
                low.append(action("MoveAhead_25", step))
        shown = x + (4 if kind == "astray" else 0)
        location = f"loc|{shown}|{z}|{rotation // 90}|60"
        goto = {"action": "GotoLocation", "location": location}
        high.append({"discrete_action": {"action": "GotoLocation"}, "high_idx": step, "planner_action": goto})
        sentences.append(f"  go to  thing {number} ")
        low.append(action("PickupObject", step + 1))
        place = (rng.uniform(-8, 8, 2)).round(3).tolist()
        box = [place[0], place[0], place[1], place[1], 1.0, 1.0]
        pick: dict[str, Any] = {"action": "PickupObject", "coordinateObjectId": ["Mug", box]}
        if rng.random() < 0.8:
            pick["coordinateReceptacleObjectId"] = [str(rng.choice(["Sofa", "Desk", "Shelf", "Painting"])), box]
        if rng.random() < 0.3:
            pick["coordinateObjectId"] = ["FloorLamp", [v + 3 for v in box]]
        high.append({"discrete_action": {"action": "PickupObject"}, "high_idx": step + 1, "planner_action": pick})
        sentences.append("pick it up")
    end = {"discrete_action": {"action": "NoOp"}, "high_idx": 2 * legs, "planner_action": {"action": "End", "value": 1}}
    annotations = [{"high_descs": [f"{text} said {worker}" for text in sentences]} for worker in range(workers)]
    return {
        "plan": {"high_pddl": [*high, end], "low_actions": low},
        "scene": {"floor_plan": scene, "init_action": start},
        "turk_annotations": {"anns": annotations},
    }


def write_alfred(root: Path, trials: dict[str, dict[str, Any]]) -> Path:
    """Write trials by "SPLIT/TASK/TRIAL"."""
    for name, trial in trials.items():
        (root / name).mkdir(parents=True)
        (root / name / "traj_data.json").write_text(json.dumps(trial))
    return root


def random_release(rng: np.random.Generator, root: Path) -> dict[str, dict[str, Any]]:
    trials = {}
    for split, rooms in {"train": (1, 2, 3, 201), "valid_seen": (2, 201), "valid_unseen": (9, 209)}.items():
        for room in rooms:
            for number in range(3):
                name = f"{split}/task-{room}/trial_{split}_{room}_{number}"
                trials[name] = random_trial(rng, f"FloorPlan{room}", workers=int(rng.integers(1, 4)))
    write_alfred(root, trials)
    return trials


def as_human_nav(folder: Path, trials: dict[str, dict[str, Any]]) -> Path:
    """The recipe of human_nav's description once more, in integers: quarters of a metre and quarter turns."""
    rows: dict[str, list[Any]] = {}
    rooms: dict[str, list[tuple[str, float, float]]] = {}
    yaws = {0: 1.5708, 1: 0.0, 2: -1.5708, 3: -3.1416}
    for name in sorted(trials):
        split, _, trial = name.split("/")
        plan, scene = trials[name]["plan"], trials[name]["scene"]
        room = rooms.setdefault(scene["floor_plan"], [])
        for step in plan["high_pddl"]:
            for key in ("coordinateReceptacleObjectId", "coordinateObjectId"):
                kind, box = step["planner_action"].get(key, ["", []])
                if kind in ("Sofa", "Desk", "Shelf", "FloorLamp"):
                    near = [p for p in room if p[0] == kind and math.hypot(box[0] / 4 - p[1], box[2] / 4 - p[2]) < 0.45]
                    if not near:
                        room.append((kind, box[0] / 4, box[2] / 4))
        here = (int(scene["init_action"]["x"] * 4), int(scene["init_action"]["z"] * 4))
        turn = scene["init_action"]["rotation"] // 90
        legs: dict[int, dict[str, Any]] = {}
        for index, step in enumerate(plan["high_pddl"]):
            begin = {"start_yaw": yaws[turn], "path": [here]}
            acted = False
            for low in plan["low_actions"]:
                verb = low["discrete_action"]["action"]
                if low["high_idx"] != index:
                    continue
                if verb.startswith("Rotate"):
                    turn, acted = (turn + (1 if verb == "RotateRight_90" else 3)) % 4, True
                if verb == "MoveAhead_25":
                    dx, dz = STEP[90 * turn]
                    here, acted = (here[0] + dx, here[1] + dz), True
                    begin["path"].append(here)
            place = step["planner_action"].get("location", "").split("|")
            if acted and place[1:4] == [str(here[0]), str(here[1]), str(turn)]:
                legs[index] = {**begin, "end_yaw": yaws[turn], "path": [[a / 4, b / 4] for a, b in begin["path"]]}
        for worker, annotation in enumerate(trials[name]["turk_annotations"]["anns"]):
            sentences = annotation["high_descs"]
            segments = [{"instruction": " ".join(sentences[i].split()), **entry} for i, entry in legs.items()]
            if segments:
                row = {"id": f"{trial}-{worker}", "scene": scene["floor_plan"], "segments": segments}
                rows.setdefault({"valid_seen": "dev"}.get(split, split), []).append(row)
    furniture = {
        name: [(kind, round(x, 2), round(y, 2)) for kind, x, y in sorted(room, key=lambda piece: piece[0])]
        for name, room in rooms.items()
    }
    return write_human_nav(folder, furniture, rows)


def assert_same(a: Dataset, b: Dataset) -> None:
    """Equal but for the command that made them."""
    for name in FILES:
        first, second = ((dataset.folder / name).read_text() for dataset in (a, b))
        if name == "meta.json":
            first, second = ("\n".join(x for x in text.split("\n") if '"command"' not in x) for text in (first, second))
        assert first == second, name


@pytest.mark.parametrize("hold_out", [0, 1])
def test_alfred_and_human_nav_of_the_same_trials_are_the_same(rng, tmp_path, hold_out):
    trials = random_release(rng, tmp_path / "release" / "json_2.1.0")
    ours = import_alfred(tmp_path / "release", tmp_path / "a", 5, hold_out)
    theirs = import_human_nav(as_human_nav(tmp_path / "nav", trials), tmp_path / "b", 5, hold_out)
    ours.validate()
    assert_same(ours, theirs)
    assert ours.splits == ["train", "dev", *["dev-unseen"] * hold_out, "valid_unseen"]
    assert ours.meta["shared"] == ["dev"]
    assert sum(row["instructions"] for row in ours.meta["counts"].values()) > 60


def test_a_folder_that_holds_the_splits_is_fine_too(rng, tmp_path):
    random_release(rng, tmp_path / "json_2.1.0")
    inner, outer = read_alfred(tmp_path / "json_2.1.0"), read_alfred(tmp_path)
    assert inner.furniture == outer.furniture
    assert [entry.id for entry in inner.paragraphs] == [entry.id for entry in outer.paragraphs]


@pytest.mark.parametrize("rotation", [0, 360.0, -360])
def test_a_trial_is_replayed_by_hand(tmp_path, rotation):
    # From (1, 2) facing +z: right, two steps along +x, then right again, to face −z.
    low = [
        action(name, 0) for name in ("RotateRight_90", "MoveAhead_25", "LookUp_15", "MoveAhead_25", "RotateRight_90")
    ]
    trial = {
        "plan": {
            "high_pddl": [
                {
                    "discrete_action": {"action": "GotoLocation"},
                    "planner_action": {"action": "GotoLocation", "location": "loc|6|8|2|30"},
                },
                {
                    "discrete_action": {"action": "PutObject"},
                    "planner_action": {"coordinateReceptacleObjectId": ["Bed", [8.4, 8.4, -2.0, -2.0, 1, 1]]},
                },
            ],
            "low_actions": low,
        },
        "scene": {"floor_plan": "FloorPlan7", "init_action": {"x": 1.0, "y": 0.9, "z": 2.0, "rotation": rotation}},
        "turk_annotations": {"anns": [{"high_descs": ["Go  right", "drop it"]}, {"high_descs": []}]},
    }
    rooms = read_alfred(write_alfred(tmp_path, {"train/task/trial_7": trial}))
    assert rooms.furniture == {"FloorPlan7": [("Bed", 2.1, -0.5)]}
    [entry] = rooms.paragraphs
    assert (entry.id, entry.split, entry.layout) == ("trial_7-0", "train", "FloorPlan7")
    [segment] = entry.segments
    assert segment.instruction == "Go right"
    assert (segment.start_xy, segment.start_yaw) == ((1.0, 2.0), 1.5708)
    assert segment.path.tolist() == [[1.0, 2.0], [1.25, 2.0], [1.5, 2.0]]
    dataset = build(tmp_path / "out", rooms, "x", hold_out=0)
    assert dataset.meta["counts"]["train"]["instructions"] == 1


def test_trials_whose_plan_is_secret_are_passed_over(rng, tmp_path):
    trials = {"train/a/t1": random_trial(rng, "FloorPlan1", legs=6), "tests_seen/a/t2": {"task_id": "t2"}}
    rooms = read_alfred(write_alfred(tmp_path, trials))
    assert {entry.split for entry in rooms.paragraphs} == {"train"}


def broken(trial: dict[str, Any], *keys: Any, value: Any = None) -> dict[str, Any]:
    """A copy of a trial in which one thing is another, or is missing."""
    copy = json.loads(json.dumps(trial))
    row = copy
    for key in keys[:-1]:
        row = row[key]
    if value is None:
        del row[keys[-1]]
    else:
        row[keys[-1]] = value
    return copy


@pytest.mark.parametrize(
    ("keys", "value", "words"),
    [
        (("scene",), None, "there is no 'scene'"),
        (("scene", "floor_plan"), None, "there is no 'floor_plan'"),
        (("scene", "floor_plan"), 5, "floor_plan must be a name"),
        (("scene", "init_action", "x"), None, "there is no 'x'"),
        (("scene", "init_action", "x"), "here", "'here' is not a length or angle"),
        (("scene", "init_action", "z"), float("nan"), "nan is not a length or angle"),
        (("turk_annotations",), None, "there is no 'turk_annotations'"),
        (("turk_annotations", "anns"), 3, "this is not a trial of ALFRED"),
        (("turk_annotations", "anns", 0, "high_descs", 0), 3, "this is not a trial of ALFRED"),
        (("plan", "low_actions"), None, "there is no 'low_actions'"),
        (("plan", "low_actions", 0, "high_idx"), None, "there is no 'high_idx'"),
        (("plan", "high_pddl", 0, "planner_action", "location"), "nowhere", "this is not a trial of ALFRED"),
        (("plan", "high_pddl", 1, "planner_action", "coordinateObjectId"), ["Bed", [1]], "this is not a trial"),
    ],
)
def test_each_mistake_in_a_trial_is_named_with_its_file(tmp_path, keys, value, words):
    trial = {
        "plan": {
            "high_pddl": [
                {"discrete_action": {"action": "GotoLocation"}, "planner_action": {"location": "loc|0|1|0|30"}},
                {
                    "discrete_action": {"action": "PutObject"},
                    "planner_action": {"coordinateObjectId": ["Bed", [1] * 6]},
                },
            ],
            "low_actions": [action("MoveAhead_25", 0)],
        },
        "scene": {"floor_plan": "FloorPlan7", "init_action": {"x": 0, "z": 0, "rotation": 0}},
        "turk_annotations": {"anns": [{"high_descs": ["go", "put"]}]},
    }
    assert len(read_alfred(write_alfred(tmp_path / "good", {"train/a/t": trial})).paragraphs) == 1
    root = write_alfred(tmp_path / "bad", {"train/a/t": broken(trial, *keys, value=value)})
    with pytest.raises(WordwingError) as raised:
        read_alfred(root)
    assert str(raised.value).startswith(f"{root / 'train/a/t/traj_data.json'}: ")
    assert words in str(raised.value)


def test_folders_that_are_not_alfred_are_refused(rng, tmp_path):
    with pytest.raises(WordwingError, match="there is no such folder"):
        read_alfred(tmp_path / "nowhere")
    with pytest.raises(WordwingError, match=r"there is no SPLIT/TASK/TRIAL/traj_data.json"):
        read_alfred(tmp_path)
    root = write_alfred(tmp_path / "x", {"train/a/t": random_trial(rng, "FloorPlan1", legs=6)})
    (root / "train/a/t/traj_data.json").write_text("{")
    with pytest.raises(WordwingError, match="not valid JSON"):
        read_alfred(root)
    (root / "train/a/t/traj_data.json").write_text("[]")
    with pytest.raises(WordwingError, match="a trial must be an object"):
        read_alfred(root)
    with pytest.raises(WordwingError, match="no trial has a leg"):
        read_alfred(write_alfred(tmp_path / "y", {"train/a/t": {}}))
    same = random_trial(rng, "FloorPlan1", legs=6)
    with pytest.raises(WordwingError, match='another trial is called "t" too'):
        read_alfred(write_alfred(tmp_path / "z", {"train/a/t": same, "train/b/t": same}))
