"""Made-up furnished rooms and walks through them, in the format of human_nav."""

import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np

from wordwing.world.catalogue import landmarks

KINDS = [entry.name for entry in landmarks("house")]
NOUNS = {entry.name: entry.nouns[0] for entry in landmarks("house")}


def random_furniture(rng: np.random.Generator, count: int, size: float = 4.0) -> list[tuple[str, float, float]]:
    """Pieces anywhere in a square of `size` metres around the origin, overlapping as they please."""
    names = rng.choice(KINDS, count)
    places = rng.uniform(-size / 2, size / 2, (count, 2)).round(2)
    return [(str(name), float(x), float(y)) for name, (x, y) in zip(names, places, strict=True)]


def random_walk(rng: np.random.Generator, steps: int, start: tuple[float, float] = (0.0, 0.0)) -> list[list[float]]:
    """Points 0.25 m apart on a grid within 3 m of the origin: straight stretches and turns."""
    points = [list(start)]
    heading = rng.integers(4)
    while len(points) <= steps:
        if rng.random() < 0.25:
            heading = (heading + rng.choice([1, 3])) % 4
        dx, dy = [(0.25, 0.0), (0.0, 0.25), (-0.25, 0.0), (0.0, -0.25)][heading]
        x, y = points[-1][0] + dx, points[-1][1] + dy
        if max(abs(x), abs(y)) <= 3:
            points.append([x, y])
        else:
            heading = rng.integers(4)
    return points


def leg(text: str, path: list[list[float]], start_yaw: float = 0.0, end_yaw: float = 0.0) -> dict[str, Any]:
    return {"instruction": text, "start_yaw": start_yaw, "end_yaw": end_yaw, "path": path}


def random_paragraph(rng: np.random.Generator, name: str, scene: str, legs: int = 3) -> dict[str, Any]:
    """Legs end to end, each with a sentence about some piece of furniture."""
    segments = []
    start = tuple((rng.integers(-6, 7, 2) * 0.25).tolist())
    for _ in range(legs):
        path = random_walk(rng, int(rng.integers(1, 12)), start)
        noun = NOUNS[str(rng.choice(KINDS))]
        segments.append(leg(f"Go over to the {noun}, please.", path, start_yaw=1.5708, end_yaw=-3.1416))
        start = (path[-1][0], path[-1][1])
    return {"id": name, "scene": scene, "segments": segments}


def write_human_nav(folder: Path, scenes: dict[str, Any], splits: dict[str, list[Any]], packed: bool = True) -> Path:
    """Write a folder; scenes may be lists of (name, x, y)."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {
        name: [dict(zip(("name", "x", "y"), piece, strict=True)) for piece in room] for name, room in scenes.items()
    }
    (folder / "scenes.json").write_text(json.dumps(rows))
    for split, paragraphs in splits.items():
        text = "".join(json.dumps(row) + "\n" for row in paragraphs)
        if packed:
            (folder / f"{split}.jsonl.xz").write_bytes(lzma.compress(text.encode()))
        else:
            (folder / f"{split}.jsonl").write_text(text)
    return folder
