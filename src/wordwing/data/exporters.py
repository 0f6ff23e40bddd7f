"""A wordwing dataset as a workspace of the authors' format, for their tools.

Written are annotations for each split (train, dev and test always, be it empty), and for each paragraph, which gets an
environment of its own, a layout and a curve, as that which was followed and as that which was shown. Positions are
real numbers where the authors have whole ones, a unit being 4.7 mm. Moves are ours: a walk along the path in steps of
1 Unity metre and turns of 15°, which ends within a step of it.

What the format has no place for is under keys `wordwing`, which its readers ignore: names of paragraphs and layouts,
where landmarks look and their exact radii, which points of a curve belong to which segment, and meanings. So
`wordwing data import drif` gives back what was exported.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from wordwing.data.dataset import Dataset
from wordwing.data.importers.annotations import SPLITS
from wordwing.data.importers.lani import CAGE_IDS, MARK
from wordwing.data.importers.originals import UNITY_METRE, Progress, silently
from wordwing.data.importers.paths import STRIDES, TURN
from wordwing.data.schema import Paragraph, Segment
from wordwing.errors import WordwingError
from wordwing.files import check_replaceable, replacing_folder
from wordwing.frames import CONFIG_UNIT, world_to_config, world_to_unity, yaw_to_compass
from wordwing.language.tokenizer import tokenize
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, resample

DIGITS = 6
"""Decimals of positions and angles; far below a micrometre."""

_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")


def export_drif(dataset: Dataset, out: str | Path, track: Progress = silently) -> dict[str, int]:
    """Write a workspace whole, or leave what was there.

    Args:
        dataset: Any dataset whose layouts are arenas, not scenes.
        out: A new or empty folder, or one that holds an earlier export and nothing else, which is replaced.
        track: Shows progress.

    Returns:
        How many paragraphs each split has.
    """
    # The authors' tools put models and results into the same folder.
    check_replaceable(out, ("configs", MARK), MARK, "only an earlier export")
    paragraphs = list(dataset.paragraphs())
    if any(paragraph.windows is not None for paragraph in paragraphs):
        raise WordwingError(
            f"{dataset.folder}: its layouts are scenes larger than the arena, of which each instruction has a part; "
            "a drif workspace has one arena for a whole paragraph, so this dataset cannot be exported"
        )
    with replacing_folder(out) as temporary:
        return _write(dataset, paragraphs, temporary, track)


def _write(dataset: Dataset, paragraphs: list[Paragraph], root: Path, track: Progress) -> dict[str, int]:
    configs = root / "configs"
    for name in ("configs", "paths", "anno_paths"):
        (configs / name).mkdir(parents=True)
    layouts = {name: dataset.layout(name) for name in dict.fromkeys(entry.layout for entry in paragraphs)}
    rows: dict[str, list[dict[str, Any]]] = {split: [] for split in (*SPLITS, *dataset.splits)}
    numbers = list(_numbers(paragraphs, layouts.values()))
    for number, paragraph in track(list(zip(numbers, paragraphs, strict=True)), "environments"):
        points, spans = _curve(paragraph.segments)
        x, z = _listed(world_to_config(torch.from_numpy(points)))
        _write_json(
            configs / "configs" / f"random_config_{number}.json",
            _config(paragraph.layout, layouts[paragraph.layout]),
        )
        for name in ("paths/random_curve", "anno_paths/anno_curve"):
            _write_json(configs / f"{name}_{number}.json", {"x_array": x, "z_array": z})
        rows[paragraph.split].append(_annotation(number, paragraph, spans))
    for split, entries in rows.items():
        _write_json(configs / f"{split}_annotations_7000.json", entries)
    meta = dataset.meta
    mark = {"name": dataset.name, "text": meta.get("text"), "steps": dataset.steps, "notes": meta.get("notes", [])}
    _write_json(root / MARK, mark)
    return {split: len(entries) for split, entries in rows.items()}


def _numbers(paragraphs: list[Paragraph], layouts: Iterable[Layout]) -> Iterator[int]:
    """A number for each paragraph: its id where that is one, else the next that is free.

    Numbers from 6000 to 6999 go to arenas of the paper's REAL landmarks only.
    """
    cage = all(entry.kind.cage is not None for layout in layouts for entry in layout.landmarks)
    taken = {int(entry.id) for entry in paragraphs if _NUMBER.fullmatch(entry.id)}
    free = CAGE_IDS.start if cage else 0
    for entry in paragraphs:
        if _NUMBER.fullmatch(entry.id):
            yield int(entry.id)
            continue
        while free in taken or (free in CAGE_IDS and not cage):
            free += 1
        yield free
        free += 1


def _config(name: str, layout: Layout) -> dict[str, Any]:
    x, z = _listed(world_to_config(torch.from_numpy(layout.centres)))
    return {
        "landmarkName": [entry.name for entry in layout.landmarks],
        "xPos": x,
        "zPos": z,
        "radius": (layout.keep_out / CONFIG_UNIT).round(DIGITS).tolist(),
        "isEnabled": [True] * len(layout.landmarks),
        "lakeCoords": [{"x": i, "y": j} for i, j in layout.lakes],
        "wordwing": {
            "layout": name,
            "landmarks": [
                {"yaw": one.yaw, "elevation": one.elevation, "radius": one.radius} for one in layout.landmarks
            ],
        },
    }


def _curve(segments: tuple[Segment, ...]) -> tuple[Floats, list[list[int]]]:
    """All points of a paragraph's path, and the first and last of each segment."""
    points = np.zeros((0, 2))
    spans = []
    for segment in segments:
        same = int(len(points) > 0 and np.array_equal(points[-1], segment.path[0]))
        first = len(points) - same
        points = np.concatenate([points, segment.path[same:]])
        spans.append([first, len(points) - 1])
    return points, spans


def _annotation(number: int, paragraph: Paragraph, spans: list[list[int]]) -> dict[str, Any]:
    segments = paragraph.segments
    starts = np.array([segment.start_xy for segment in segments], float).reshape(-1, 2)
    ends = np.array([segment.path[-1] for segment in segments], float).reshape(-1, 2)
    start_x, start_z = _listed(world_to_unity(torch.from_numpy(starts)))
    end_x, end_z = _listed(world_to_unity(torch.from_numpy(ends)))
    walks = [moves_along(segment.path, segment.start_xy, segment.start_yaw) for segment in segments]
    own: dict[str, Any] = {"id": paragraph.id, "spans": spans}
    if any(segment.meaning is not None for segment in segments):
        meanings = (segment.meaning for segment in segments)
        own["meaning"] = [None if clauses is None else [clause.to_json() for clause in clauses] for clauses in meanings]
    return {
        "id": str(number),
        "config_file": f"configs/random_config_{number}.json",
        "path_file": f"paths/random_curve_{number}.json",
        "instructions_file": "",
        "valid": True,
        "instructions": [segment.instruction for segment in segments],
        "moves": [moves for moves, _ in walks],
        "start_x": start_x,
        "start_z": start_z,
        "start_rot": _compass([segment.start_yaw for segment in segments]),
        "end_x": end_x,
        "end_z": end_z,
        "end_rot": _compass([yaw for _, yaw in walks]),
        "num_tokens": [len(tokenize(segment.instruction)) for segment in segments],
        "wordwing": own,
    }


def moves_along(path: Floats, start: tuple[float, float], yaw: float) -> tuple[str, float]:
    """Moves F, L and R that follow a path, and the heading after them.

    Args:
        path: [P, 2] metres, world frame.
        start: Metres, world frame.
        yaw: Radians, world frame.
    """
    stride = STRIDES[0] * UNITY_METRE
    place, letters = np.array(start, float), ""
    for point in resample(np.asarray(path, float), stride):
        # More than a few steps from one point to the next would be a circle around it.
        for _ in range(8):
            offset = point - place
            if math.hypot(*offset) <= stride / 2:
                break
            turns = round(math.remainder(math.atan2(offset[1], offset[0]) - yaw, 2 * math.pi) / TURN)
            yaw += turns * TURN
            place = place + stride * np.array([math.cos(yaw), math.sin(yaw)])
            letters += ("L" if turns > 0 else "R") * abs(turns) + "F"
    return letters, yaw


def _compass(yaws: list[float]) -> list[float]:
    return np.asarray(yaw_to_compass(torch.tensor(yaws, dtype=torch.float64))).round(DIGITS).tolist()


def _listed(points: torch.Tensor) -> tuple[list[float], list[float]]:
    """Positions [P, 2] as the two lists that files have."""
    x, z = points.numpy().round(DIGITS).T.tolist()
    return x, z


def _write_json(path: Path, document: Any) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")
