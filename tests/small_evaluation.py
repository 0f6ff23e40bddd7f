"""A small cage to fly in, policies that nobody has trained, and flights that nobody has flown."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike

from small_policy import VOCABULARY, small_network
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.generating import Chunk, make
from wordwing.data.schema import Paragraph, Segment
from wordwing.execution.execution import Execution, Provenance
from wordwing.frames import quaternion_from_euler
from wordwing.policies.learned import LearnedPolicy
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task


def small_cage(folder: Path, name: str = "cage", steps: int = 10, **sizes: int) -> Dataset:
    """Generated paragraphs, so many in each split; some of their paths are too long for 10 steps."""
    layouts, paragraphs = {}, []
    for split, size in sizes.items():
        more_layouts, more_paragraphs = make(Chunk("cage", split, 0, 0, size))
        layouts |= more_layouts
        paragraphs += more_paragraphs
    return write_dataset(folder, Source(name, "generated", 0, "a test", steps=steps), layouts, paragraphs)


def bare_dataset(folder: Path, paragraphs: list[tuple[str, str, str]], name: str = "bare") -> Dataset:
    """Paragraphs by id, split and layout, of one segment each, among no landmarks at all."""
    segment = Segment("go", (0.0, 0.0), 0.0, np.array([[0.0, 0.0], [1.0, 0.0]]))
    entries = [Paragraph(key, split, layout, (segment,)) for key, split, layout in paragraphs]
    layouts = {layout: Layout(()) for _key, _split, layout in paragraphs}
    return write_dataset(folder, Source(name, "generated", 0, "a test"), layouts, entries)


def save_policy(folder: Path, seed: int = 0, stop: float = 0.0) -> Path:
    """A policy in a folder; it stops the sooner the greater `stop` is."""
    network = small_network(seed)
    with torch.no_grad():
        network.stage2.network.last.bias[4] += stop
    LearnedPolicy(network, VOCABULARY).save(folder)
    return folder


def plain_episode(path: ArrayLike, **changes: Any) -> Execution:
    """A level flight [P, 2] at 0.7 m that heads along x and stops at its end, one segment, among no landmarks.

    Args:
        path: Where it was flown.
        changes: Keys of a line of episodes.jsonl, as arrays or what `Execution` has, that are other than plain.
    """
    flown = np.array(path, float)
    row: dict[str, Any] = {
        "system": "oracle",
        "corpus": "cage",
        "text": "generated",
        "split": "test",
        "domain": "sim",
        "seed": 0,
        "id": "cage-0001/2",
        "segments": 1,
        "instruction": "fly on",
        "meaning": None,
        "layout_id": "cage-0001",
        "layout": Layout(()),
        "start": (flown[0, 0], flown[0, 1], 0.0),
        "gold": flown,
        "poses": np.column_stack([flown, np.full(len(flown), 0.7), np.zeros((len(flown), 3))]),
        "setpoints": np.zeros((len(flown) - 1, 2)),
        "decisions": len(flown) - 1,
        "ended_by": "stop",
        "seconds_inside_landmarks": 0.0,
        "goals": np.zeros((0, 3)),
    } | changes
    names = [field.name for field in fields(Provenance) if field.name in row]
    poses, (x, y, yaw) = np.asarray(row["poses"]), row["start"]
    angles = torch.from_numpy(poses[:, 3:].astype(np.float32)).unbind(-1)
    return Execution.single(
        task=Task(row["instruction"] or row["id"], row["layout"], (x, y), yaw, row["gold"]),
        positions=poses[:, :3].astype(np.float32),
        quaternions=quaternion_from_euler(*angles).numpy(),
        setpoints=row["setpoints"],
        decisions=row["decisions"],
        ended_by=row["ended_by"],
        seconds_inside_landmarks=row["seconds_inside_landmarks"],
        goals=row["goals"],
        provenance=Provenance(**{name: row[name] for name in names}, withheld=row["instruction"] is None),
    )
