"""The house corpora of other people: human_nav and ALFRED, walks through furnished rooms.

human_nav, sentences that people wrote for such walks:

    scenes.json                     {scene: [{"name": …, "x": …, "y": …}, …]}, raw furniture centres
    NAME.jsonl.xz or NAME.jsonl     the split NAME; a line is a paragraph:
                                    {"id", "scene", "segments": [{"instruction", "start_yaw", "end_yaw", "path"}]}

Metres and radians, yaw counter-clockwise from +x, which is wordwing's own convention.

ALFRED's "go to" legs, replayed from the plans of a folder json_2.1.0/SPLIT/TASK/TRIAL/traj_data.json:

ALFRED's frame has x to the right, z forward and rotations in degrees clockwise from +z; here y = z and
yaw = 90° − rotation. Lengths of plans are in quarters of a metre. A leg is kept if it moves or turns and its replay
ends exactly where the plan says.
"""

import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import TypeAdapter

from wordwing.data.dataset import Dataset, check_place
from wordwing.data.importers.originals import MAX_FILE, Progress, silently
from wordwing.data.importers.rooms import Rooms, build
from wordwing.data.scenes import MAX_DISTANCE
from wordwing.data.schema import MAX_POINTS, MAX_TEXT, Paragraph, Segment
from wordwing.errors import WordwingError
from wordwing.files import read_json, read_lines
from wordwing.validation import Array, Label, Number, numbered, parse, parse_json
from wordwing.world.catalogue import landmarks
from wordwing.world.paths import Floats

MAX_LINE = 1_000_000
"""Longest line that is read, bytes; with windows it grows, and must stay below what datasets may have."""

MAX_UNPACKED = 256_000_000
"""Most that a split is read of, bytes."""

ENDINGS = (".jsonl", ".jsonl.xz")


@dataclass(frozen=True)
class _Furniture:
    name: str
    x: Number
    y: Number


@dataclass(frozen=True)
class _SegmentRow:
    instruction: str
    start_yaw: Number
    end_yaw: Number
    path: Annotated[Floats, Array(2, least=1, most=MAX_POINTS)]


@dataclass(frozen=True)
class _ParagraphRow:
    id: Label
    scene: Label
    segments: Annotated[tuple[_SegmentRow, ...], numbered("segment", first=0)]


_SCENES = TypeAdapter(dict[str, Annotated[list[_Furniture], numbered("piece")]])


def import_human_nav(
    folder: str | Path,
    out: str | Path,
    seed: int = 0,
    hold_out: int = 10,
    skip_unknown: bool = False,
    track: Progress = silently,
) -> Dataset:
    """Make a dataset of a folder.

    Args:
        folder: Where scenes.json and the splits are.
        out: The dataset's folder; new, empty or a dataset, which is replaced.
        seed: Chooses windows and held-out rooms.
        hold_out: How many training rooms become the split `dev-unseen`.
        skip_unknown: Leave out furniture that the catalogue does not have, instead of complaining.
        track: Shows progress.
    """
    check_place(out)
    command = shlex.join(["wordwing", "data", "import", "human-nav", str(folder)])
    return build(out, read_human_nav(folder), command, seed, hold_out, skip_unknown, track)


def read_human_nav(folder: str | Path) -> Rooms:
    """Read a folder; every mistake is a `WordwingError` that names file and line."""
    folder = Path(folder)
    if not folder.is_dir():
        raise WordwingError(f"{folder}: there is no such folder; name one with scenes.json and train.jsonl.xz")
    furniture = _scenes(folder / "scenes.json")
    paragraphs: list[Paragraph] = []
    places: dict[str, str] = {}
    for split, path in sorted(_splits(folder).items()):
        for number, line in enumerate(read_lines(path, MAX_LINE, MAX_UNPACKED), start=1):
            if line.isspace():
                continue
            where = f"{path}: line {number}"
            row = parse_json(_ParagraphRow, line, where)
            segments = tuple(_segment(entry, f"{where}: segment {i}") for i, entry in enumerate(row.segments))
            if row.scene not in furniture:
                raise WordwingError(f'{where}: scene "{row.scene[:60]}" is not in scenes.json')
            if row.id in places:
                raise WordwingError(f'{where}: a paragraph is called "{row.id[:60]}" already ({places[row.id]})')
            places[row.id] = where
            paragraphs.append(Paragraph(row.id, split, row.scene, segments))
    return Rooms(furniture, paragraphs)


def _splits(folder: Path) -> dict[str, Path]:
    """The file of each split."""
    found: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        ending = next((ending for ending in ENDINGS if path.name.endswith(ending)), None)
        if ending is None or path.name == ending or not path.is_file():
            continue
        split = path.name.removesuffix(ending)
        if split in found:
            raise WordwingError(f"{folder}: there are both {found[split].name} and {path.name}; keep one")
        found[split] = path
    if not found:
        raise WordwingError(f"{folder}: there is no train.jsonl.xz or other file of paragraphs")
    return found


def _scenes(path: Path) -> dict[str, list[tuple[str, float, float]]]:
    if not path.is_file():
        raise WordwingError(f"{path}: there is no such file; it says where the furniture of each scene is")
    scenes = parse(_SCENES, read_json(path, MAX_FILE, "file of scenes"), str(path))
    return {name: [(piece.name, piece.x + 0.0, piece.y + 0.0) for piece in pieces] for name, pieces in scenes.items()}


def _segment(row: _SegmentRow, where: str) -> Segment:
    text = " ".join(row.instruction.split())
    if len(text) > MAX_TEXT:
        raise WordwingError(f"{where}: the instruction has {len(text)} characters; {MAX_TEXT} are the most")
    path = row.path.round(4) + 0.0
    if np.abs(path).max() > MAX_DISTANCE:
        raise WordwingError(f"{where}: the path is more than {MAX_DISTANCE:g} m from the scene's origin")
    x, y = path[0].tolist()
    return Segment(text, (x, y), row.start_yaw, path)


SPLITS = {"train": "train", "valid_seen": "dev"}
"""What ALFRED's splits are called here; others keep their names."""

SAME = 0.45
"""Pieces of one type that are nearer to each other than this are one piece, metres."""

MOVES = {"MoveAhead_25": 0.25}
TURNS = {"RotateLeft_90": -90, "RotateRight_90": 90}
"""Metres along the heading, and degrees clockwise; every other action stays."""


class _Leg(NamedTuple):
    """A replayed "go to" step."""

    step: int
    """Its place in the plan."""
    yaw: float
    """At its start, radians, to four digits as human_nav has it."""
    path: Floats
    """[P, 2] metres, scene frame."""


def import_alfred(
    folder: str | Path, out: str | Path, seed: int = 0, hold_out: int = 10, track: Progress = silently
) -> Dataset:
    """Make a dataset of ALFRED's "go to" legs.

    Args:
        folder: json_2.1.0, or the folder that it is in.
        out: The dataset's folder; new, empty or a dataset, which is replaced.
        seed: Chooses windows and held-out rooms.
        hold_out: How many training rooms become the split `dev-unseen`.
        track: Shows progress.
    """
    check_place(out)
    command = shlex.join(["wordwing", "data", "import", "alfred", str(folder)])
    return build(out, read_alfred(folder, track), command, seed, hold_out, track=track)


def read_alfred(folder: str | Path, track: Progress = silently) -> Rooms:
    """Read a folder that is, or holds, json_2.1.0; every mistake is a `WordwingError` that names the file."""
    folder = Path(folder)
    if not folder.is_dir():
        raise WordwingError(f"{folder}: there is no such folder; name ALFRED's json_2.1.0")
    root = folder / "json_2.1.0" if (folder / "json_2.1.0").is_dir() else folder
    files = sorted(root.glob("*/*/*/traj_data.json"))
    if not files:
        raise WordwingError(f"{root}: there is no SPLIT/TASK/TRIAL/traj_data.json; name ALFRED's json_2.1.0")
    pieces: dict[str, dict[str, list[tuple[float, float]]]] = {}
    paragraphs: dict[str, Paragraph] = {}
    for path in track(files, "trials"):
        document = read_json(path, MAX_FILE, "trial of ALFRED")
        if not isinstance(document, dict):
            raise WordwingError(f"{path}: a trial must be an object")
        if "plan" not in document:  # the test splits keep theirs secret
            continue
        split = path.relative_to(root).parts[0]
        try:
            scene = document["scene"]["floor_plan"]
            if not isinstance(scene, str) or not scene:
                raise ValueError("floor_plan must be a name")
            _collect(document["plan"]["high_pddl"], pieces.setdefault(scene, {}))
            entries = list(_paragraphs(document, path.parent.name, SPLITS.get(split, split), scene))
        except KeyError as error:
            raise WordwingError(f"{path}: there is no {error}, which a trial of ALFRED has") from None
        except (TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
            raise WordwingError(f"{path}: this is not a trial of ALFRED ({error})") from None
        for entry in entries:
            if entry.id in paragraphs:
                raise WordwingError(f'{path}: another trial is called "{path.parent.name}" too')
            paragraphs[entry.id] = entry
    if not paragraphs:
        raise WordwingError(f"{root}: no trial has a leg that can be replayed")
    furniture = {
        scene: [
            (name, round(x, 2) + 0.0, round(y, 2) + 0.0) for name, places in sorted(kinds.items()) for x, y in places
        ]
        for scene, kinds in sorted(pieces.items())
    }
    return Rooms(furniture, list(paragraphs.values()))


def _collect(steps: list[Any], kinds: dict[str, list[tuple[float, float]]]) -> None:
    """Add the furniture that a plan mentions to what is known of its scene."""
    known = {entry.name for entry in landmarks("house")}
    for action in (step["planner_action"] for step in steps):
        keys = ("coordinateReceptacleObjectId", "coordinateObjectId")
        for name, box in (action[key] for key in keys if key in action):
            if name not in known:
                continue
            x, y = (_number(box[axis]) / 4 for axis in (0, 2))
            places = kinds.setdefault(name, [])
            if all(math.dist((x, y), place) >= SAME for place in places):
                places.append((x, y))


def _paragraphs(document: dict[str, Any], trial: str, split: str, scene: str) -> Iterator[Paragraph]:
    """One paragraph for each person who described the trial."""
    legs = _replay(document["plan"], document["scene"]["init_action"])
    for worker, annotation in enumerate(document["turk_annotations"]["anns"]):
        sentences = annotation["high_descs"]
        segments = []
        for leg in legs:
            if leg.step >= len(sentences):  # this person described fewer steps
                continue
            text = " ".join(sentences[leg.step].split())
            if len(text) > MAX_TEXT:
                raise ValueError(f"a sentence has {len(text)} characters; {MAX_TEXT} are the most")
            x, y = leg.path[0].tolist()
            segments.append(Segment(text, (x, y), leg.yaw, leg.path))
        if segments:
            yield Paragraph(f"{trial}-{worker}", split, scene, tuple(segments))


def _replay(plan: dict[str, Any], start: dict[str, Any]) -> list[_Leg]:
    """Walk a plan and keep the "go to" legs that end where they should."""
    x, y = _number(start["x"]), _number(start["z"])
    rotation = round(_number(start["rotation"])) % 360
    begins: dict[int, tuple[float, list[tuple[float, float]]]] = {}
    ends: dict[int, tuple[float, float, int]] = {}
    active: set[int] = set()
    for action in plan["low_actions"]:
        step, name = action["high_idx"], action["discrete_action"]["action"]
        _, points = begins.setdefault(step, (_yaw(rotation), [(x, y)]))
        if name in MOVES:
            x += MOVES[name] * round(math.sin(math.radians(rotation)))
            y += MOVES[name] * round(math.cos(math.radians(rotation)))
            points.append((x, y))
        elif name in TURNS:
            rotation = (rotation + TURNS[name]) % 360
        if name in MOVES or name in TURNS:
            active.add(step)
        ends[step] = x, y, rotation
    legs = []
    for index, step in enumerate(plan["high_pddl"]):
        if step["discrete_action"]["action"] != "GotoLocation" or index not in active:
            continue
        _, four_x, four_z, quarters, *_ = step["planner_action"]["location"].split("|")
        goal = float(four_x) / 4, float(four_z) / 4, int(quarters) % 4 * 90
        if np.allclose(ends[index], goal, atol=1e-3):
            yaw, points = begins[index]
            legs.append(_Leg(index, yaw, np.array(points).round(4) + 0.0))
    return legs


def _yaw(rotation: int) -> float:
    """Degrees clockwise from +z to radians counter-clockwise from +x, to four digits."""
    return round(math.radians(90 - rotation), 4)


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not abs(value) <= 4 * MAX_DISTANCE:
        raise ValueError(f"{value!r} is not a length or angle")
    return float(value)
