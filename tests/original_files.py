"""Small files in the formats of LANI and the drif workspace, written by hand for tests."""

import json
from pathlib import Path
from typing import Any

SQUARE = [(100, 100), (300, 100), (500, 100), (500, 300), (500, 500)]
"""A path in layout units: 400 to the right, then 400 up."""


def unity(units: float) -> float:
    """Layout units to Unity metres."""
    return 225 + units / 20


def entry(env: Any = "12", path: Any = SQUARE, ends: Any = (2, 4), **changes: Any) -> dict:
    """An entry whose segments end at some points of a path; followers begin where the segment before ends."""
    stops = [path[0], *(path[index] for index in ends)]
    count = len(stops) - 1
    return {
        "id": env,
        "config_file": f"configs/random_config_{env}.json",
        "path_file": f"paths/random_curve_{env}.json",
        "instructions_file": f"instructions/{env}.txt",
        "valid": True,
        "instructions": [f"go to place {number} ." for number in range(count)],
        "moves": [""] * count,
        "start_x": [unity(x) for x, _ in stops[:-1]],
        "start_z": [unity(z) for _, z in stops[:-1]],
        "start_rot": [90.0] * count,
        "end_x": [unity(x) for x, _ in stops[1:]],
        "end_z": [unity(z) for _, z in stops[1:]],
        "end_rot": [0.0] * count,
        "num_tokens": [5] * count,
    } | changes


def config(*landmarks: tuple[str, float, float], **changes: Any) -> dict:
    """A layout file's content; by default two landmarks far from the fences."""
    rows = landmarks or (("Barrel", 200, 300), ("Windmill", 800, 700))
    return {
        "landmarkName": [name for name, _, _ in rows],
        "xPos": [x for _, x, _ in rows],
        "zPos": [z for _, _, z in rows],
        "radius": [100.0] * len(rows),
        "isEnabled": [True] * len(rows),
    } | changes


def curve(points: Any = SQUARE) -> dict:
    return {"x_array": [x for x, _ in points], "z_array": [z for _, z in points]}


def write(path: Path, content: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def workspace(root: Path, train: Any = None, **parts: Any) -> Path:
    """A drif workspace with one environment, 12, unless told otherwise.

    Args:
        root: Its folder.
        train: Entries of the training split.
        parts: `dev` and `test` entries; `configs`, `shown` and `followed`: contents by environment.
    """
    if train is None:
        train = [entry()]
    entries = {"train": train, "dev": parts.get("dev", []), "test": parts.get("test", [])}
    for split, rows in entries.items():
        write(root / "configs" / f"{split}_annotations_7000.json", rows)
    for env, content in parts.get("configs", {"12": config()}).items():
        write(root / "configs" / "configs" / f"random_config_{env}.json", content)
    for env, content in parts.get("shown", {}).items():
        write(root / "configs" / "paths" / f"random_curve_{env}.json", content)
    for env, content in parts.get("followed", {"12": curve()}).items():
        write(root / "configs" / "anno_paths" / f"anno_curve_{env}.json", content)
    return root


def release(root: Path, train: Any = None, **parts: Any) -> Path:
    """A LANI release with one environment, 12, unless told otherwise; its resources are in `resources`."""
    home = root / "data" / "nav_drone"
    entries = {"train": [entry()] if train is None else train, "dev": parts.get("dev", []), "test": []}
    for split, rows in entries.items():
        write(home / f"{split}_annotations_6000.json", rows)
    write(home / "config_localmoves_6000.json", {"port": 1, "resources_dir": parts.get("resources_dir", "gone/")})
    resources = root / parts.get("resources", "resources")
    for env, content in parts.get("configs", {"12": config()}).items():
        write(resources / "configs" / f"random_config_{env}.json", content)
    for env, content in parts.get("shown", {"12": curve()}).items():
        write(resources / "paths" / f"random_curve_{env}.json", content)
    return root
