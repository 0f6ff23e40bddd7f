"""From a dataset to a drif workspace and back."""

import errno
import json
import math
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from original_files import workspace, write
from wordwing.commands import datasets
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.exporters import export_drif, moves_along
from wordwing.data.importers.lani import import_drif
from wordwing.data.scenes import Scene
from wordwing.data.schema import Paragraph, Segment, Window
from wordwing.errors import WordwingError
from wordwing.language.meaning.clauses import Clause
from wordwing.world.layout import Layout, Placement
from wordwing.world.samplers import sample_layout
from wordwing.world.walks import WALK_CONFIGS, sample_walks

SPLITS = ("train", "train", "dev", "test", "dev-unseen")


def corpus(folder: Path, kind: str, seed: int = 0, text: str = "generated") -> Dataset:
    """A small dataset of random layouts and walks, one in each, cut into three segments."""
    rng = np.random.default_rng(seed)
    layouts, paragraphs = {}, []
    while len(paragraphs) < len(SPLITS):
        number = len(paragraphs)
        layout = sample_layout(kind, rng)
        if number % 2 == 0:
            cells = {(int(i), int(j)) for i, j in rng.integers(0, 100, (30, 2))}
            layout = replace(layout, lakes=tuple(sorted(cells)))
        [walk] = sample_walks([layout], rng, WALK_CONFIGS[kind])
        if walk is None:
            continue
        cuts = [0, len(walk.points) // 3, 2 * len(walk.points) // 3, len(walk.points) - 1]
        segments = []
        for index in range(3):
            path = walk.points[cuts[index] : cuts[index + 1] + 1]
            start = path[0] + rng.uniform(-0.05, 0.05, 2)
            meaning = None if index == 1 else (Clause("reach", index), Clause("turn", side="left", amount=0.5))
            segments.append(
                Segment(f"fly part {index}, “quickly”", tuple(start.tolist()), rng.uniform(-3, 3), path, meaning)
            )
        layouts[f"arena {number}"] = layout
        paragraphs.append(Paragraph(f"{kind}-{number:04}", SPLITS[number], f"arena {number}", tuple(segments)))
    source = Source(name=kind, text=text, seed=seed, command="test", steps=70, notes=("made for a test",))
    return write_dataset(folder, source, layouts, paragraphs)


def assert_same(a: Dataset, b: Dataset, whole: bool = True) -> None:
    """Within a millimetre and a thousandth of a radian; by name where nothing is lost, else in order."""
    b.validate()
    assert a.splits == b.splits
    for p, q in zip(a.paragraphs(), b.paragraphs(), strict=True):
        assert p.split == q.split
        assert not whole or (p.id, p.layout) == (q.id, q.layout)
        for s, t in zip(p.segments, q.segments, strict=True):
            assert s.instruction == t.instruction
            np.testing.assert_allclose(s.path, t.path, atol=1e-3)
            assert s.start_xy == pytest.approx(t.start_xy, abs=1e-3)
            assert math.remainder(s.start_yaw - t.start_yaw, 2 * math.pi) == pytest.approx(0, abs=1e-3)
            assert not whole or s.meaning == t.meaning
        m, n = a.layout(p.layout), b.layout(q.layout)
        assert m.lakes == n.lakes
        np.testing.assert_allclose(m.centres, n.centres, atol=1e-3)
        np.testing.assert_allclose(m.keep_out, n.keep_out, atol=1e-3)
        assert [mark.name for mark in m.landmarks] == [mark.name for mark in n.landmarks]
        assert not whole or m == n


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def without_our_keys(folder: Path) -> None:
    """Leave only what the authors' format has."""
    (folder / "wordwing.json").unlink()
    for path in folder.rglob("*.json"):
        document = json.loads(path.read_text("utf-8"))
        for row in document if isinstance(document, list) else [document]:
            row.pop("wordwing", None)
        write(path, document)


@pytest.mark.parametrize("kind", ["field", "cage", "house"])
def test_what_is_exported_can_be_imported(tmp_path, kind):
    dataset = corpus(tmp_path / "a", kind)
    counts = export_drif(dataset, tmp_path / "ws")
    assert counts == {"train": 2, "dev": 1, "test": 1, "dev-unseen": 1}
    again = import_drif(tmp_path / "ws", tmp_path / "b")
    assert_same(dataset, again)
    assert (again.name, again.steps, again.meta["text"]) == (kind, 70, "generated")
    assert again.meta["notes"][0] == "made for a test"


@pytest.mark.parametrize("kind", ["field", "cage"])
def test_the_authors_own_fields_are_enough(tmp_path, kind):
    dataset = corpus(tmp_path / "a", kind)
    export_drif(dataset, tmp_path / "ws")
    (tmp_path / "ws" / "configs" / "dev-unseen_annotations_7000.json").unlink()
    without_our_keys(tmp_path / "ws")
    kept = [paragraph for paragraph in dataset.paragraphs() if paragraph.split != "dev-unseen"]
    layouts = {paragraph.layout: dataset.layout(paragraph.layout) for paragraph in kept}
    rest = write_dataset(tmp_path / "rest", Source("x", "generated", 0, ""), layouts, kept)
    assert_same(rest, import_drif(tmp_path / "ws", tmp_path / "b"), whole=False)


def test_two_trips_are_as_good_as_one(tmp_path):
    export_drif(corpus(tmp_path / "a", "field"), tmp_path / "ws1")
    once = import_drif(tmp_path / "ws1", tmp_path / "b")
    export_drif(once, tmp_path / "ws2")
    assert (tmp_path / "b" / "paragraphs.jsonl").read_bytes() == (tmp_path / "a" / "paragraphs.jsonl").read_bytes()
    first, second = tree(tmp_path / "ws1"), tree(tmp_path / "ws2")
    assert {name for name in first if first[name] != second.get(name)} == {"wordwing.json"}


def simple(folder: Path, layout: Layout | None = None, **changes) -> Dataset:
    path = np.array([[0.0, 0.0], [0.0, 0.47], [0.0, 0.94]])
    segment = replace(Segment("go up", (0.0, 0.0), math.pi / 2, path), **changes)
    layout = layout or Layout((Placement("Barrel", -1.175, 1.175), Placement("Tank", 1.0, 0.0, radius=0.5)))
    return write_dataset(folder, Source("x", "human", 0, ""), {"l": layout}, [Paragraph("p", "train", "l", (segment,))])


def test_positions_are_in_the_authors_units(tmp_path):
    export_drif(
        simple(tmp_path / "a", Layout((Placement("Barrel", -1.175, 1.175),), lakes=((3, 99),))), tmp_path / "ws"
    )
    configs = tmp_path / "ws" / "configs"
    file = json.loads((configs / "configs" / "random_config_0.json").read_text())
    assert (file["landmarkName"], file["xPos"], file["zPos"]) == (["Barrel"], [250.0], [750.0])
    assert file["radius"] == [pytest.approx(75)]
    assert (file["isEnabled"], file["lakeCoords"]) == ([True], [{"x": 3, "y": 99}])
    for name in ("paths/random_curve_0", "anno_paths/anno_curve_0"):
        assert json.loads((configs / f"{name}.json").read_text()) == {
            "x_array": [500.0, 500.0, 500.0],
            "z_array": [500.0, 600.0, 700.0],
        }
    [row] = json.loads((configs / "train_annotations_7000.json").read_text())
    assert row["id"] == "0"
    assert (row["start_x"], row["start_z"]) == ([250.0], [250.0])
    assert (row["end_x"], row["end_z"]) == ([250.0], [260.0])
    for key in ("start_rot", "end_rot"):
        assert math.remainder(row[key][0], 360) == pytest.approx(0, abs=1e-3)
    assert (row["moves"], row["num_tokens"], row["instructions"], row["valid"]) == (["F" * 10], [2], ["go up"], True)
    assert json.loads((configs / "dev_annotations_7000.json").read_text()) == []


def test_arenas_of_the_real_landmarks_have_real_numbers(tmp_path):
    export_drif(corpus(tmp_path / "a", "cage"), tmp_path / "ws")
    names = {path.name for path in (tmp_path / "ws" / "configs" / "configs").iterdir()}
    assert names == {f"random_config_{number}.json" for number in range(6000, 6005)}


def test_ids_that_are_numbers_are_kept_and_others_get_free_ones(tmp_path):
    layout = Layout((Placement("Tank", 1.0, 1.0),))
    segment = Segment("go", (0.0, 0.0), 0.0, np.array([[0.0, 0.0], [0.5, 0.0]]))
    ids = ["0", "a", "2", "b", "6001-1", "6001", "007"]
    rows = [Paragraph(name, "train", "l", (segment,)) for name in ids]
    dataset = write_dataset(tmp_path / "a", Source("x", "human", 0, ""), {"l": layout}, rows)
    export_drif(dataset, tmp_path / "ws")
    entries = json.loads((tmp_path / "ws" / "configs" / "train_annotations_7000.json").read_text())
    assert [row["id"] for row in entries] == ["0", "1", "2", "3", "4", "6001", "5"]
    again = import_drif(tmp_path / "ws", tmp_path / "b")
    assert [paragraph.id for paragraph in again.paragraphs()] == ids


def test_segments_that_do_not_join_and_single_points_come_back(tmp_path):
    parts = [[[0, 0], [0.5, 0]], [[0.5, 0]], [[0.7, 0.1], [0.9, 0.1], [0.9, 0.1]], [[0.9, 0.1], [0, 0], [0.5, 0]]]
    segments = tuple(Segment(f"part {i}", (0.6, 0.1), 0.0, np.array(part, float)) for i, part in enumerate(parts))
    segments = (replace(segments[0], start_xy=(0.0, 0.0)), *segments[1:])
    row = Paragraph("p", "train", "l", segments)
    dataset = write_dataset(tmp_path / "a", Source("x", "human", 0, ""), {"l": Layout(())}, [row])
    export_drif(dataset, tmp_path / "ws")
    assert_same(dataset, import_drif(tmp_path / "ws", tmp_path / "b"))


def test_meanings_are_lost_with_landmarks_and_that_is_told(tmp_path):
    dataset = simple(tmp_path / "a", meaning=(Clause("reach", 1),))
    export_drif(dataset, tmp_path / "ws")
    path = tmp_path / "ws" / "configs" / "configs" / "random_config_0.json"
    content = json.loads(path.read_text())
    content["landmarkName"][0] = "Unicorn"
    write(path, content)
    again = import_drif(tmp_path / "ws", tmp_path / "b")
    assert next(again.paragraphs()).segments[0].meaning is None
    assert any("meaning is lost" in line for line in again.meta["notes"])


def test_moves_follow_the_path(rng):
    layout = sample_layout("field", rng)
    for walk in sample_walks([layout] * 10, rng, WALK_CONFIGS["field"]):
        yaw = rng.uniform(-3, 3)
        start = walk.points[0] + rng.uniform(-0.2, 0.2, 2)
        moves, last = moves_along(walk.points, tuple(start), yaw)
        assert set(moves) <= set("FLR")
        place, passed = start, [start]
        for letter in moves:
            yaw += {"L": 1, "R": -1, "F": 0}[letter] * math.pi / 12
            if letter == "F":
                place = place + 0.094 * np.array([math.cos(yaw), math.sin(yaw)])
                passed.append(place)
        assert last == pytest.approx(yaw)
        assert math.dist(place, walk.points[-1]) < 0.094
        gaps = np.linalg.norm(np.array(passed)[:, None] - walk.points, axis=-1).min(axis=1)
        assert gaps[4:].max() < 0.2


def test_scenes_are_refused(tmp_path):
    segment = Segment("go", (0.0, 0.0), 0.0, np.array([[0.0, 0.0], [1.0, 0.0]]))
    row = Paragraph("p", "train", "room", (segment,), {(0, 0): Window(0.0, 0.0, 0.0)})
    scene = Scene((Placement("Bed", 3.0, 3.0),))
    dataset = write_dataset(tmp_path / "a", Source("house", "human", 0, ""), {"room": scene}, [row])
    with pytest.raises(WordwingError, match=r"scenes larger than the arena.* cannot be exported"):
        export_drif(dataset, tmp_path / "ws")
    assert not (tmp_path / "ws").exists()


def test_an_earlier_export_is_replaced_and_nothing_else(tmp_path):
    dataset = simple(tmp_path / "a")
    export_drif(corpus(tmp_path / "b", "field"), tmp_path / "ws")
    export_drif(dataset, tmp_path / "ws")
    assert len(list((tmp_path / "ws" / "configs" / "configs").iterdir())) == 1
    write(tmp_path / "ws" / "models" / "pvn2.pytorch", "days of training")
    file = write(tmp_path / "file", "x")
    for other in (dataset.folder, workspace(tmp_path / "theirs"), tmp_path / "ws", file):
        before = tree(other) if other.is_dir() else other.read_bytes()
        with pytest.raises(WordwingError, match=r"not replaced|not a directory"):
            export_drif(dataset, other)
        assert before == (tree(other) if other.is_dir() else other.read_bytes())
    (tmp_path / "empty").mkdir()
    export_drif(dataset, tmp_path / "empty")


@pytest.mark.parametrize("writes", [0, 1, 7, 19])
def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch, writes):
    dataset = corpus(tmp_path / "a", "field")
    export_drif(simple(tmp_path / "b"), tmp_path / "old")
    before = tree(tmp_path / "old")
    plain, done = Path.write_text, []

    def write_text(path, *arguments, **options):
        done.append(path)
        if len(done) > writes:
            raise OSError(errno.ENOSPC, "No space left on device")
        return plain(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", write_text)
    for name in ("new", "old"):
        done.clear()
        with pytest.raises(WordwingError, match="the disk is full; nothing was changed"):
            export_drif(dataset, tmp_path / name)
    assert not (tmp_path / "new").exists()
    assert tree(tmp_path / "old") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "old"]


def test_a_killed_export_leaves_what_was_there(tmp_path):
    export_drif(simple(tmp_path / "a"), tmp_path / "ws")
    before = tree(tmp_path / "ws")
    dataset = corpus(tmp_path / "b", "field")
    script = f"""
import os, signal
from wordwing.data.dataset import Dataset
from wordwing.data.exporters import export_drif
def track(rows, title):
    yield from rows[:3]
    os.kill(os.getpid(), signal.SIGKILL)
export_drif(Dataset({str(dataset.folder)!r}), {str(tmp_path / "ws")!r}, track)
"""
    killed = subprocess.run([sys.executable, "-c", script], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert tree(tmp_path / "ws") == before
    export_drif(dataset, tmp_path / "ws")
    assert_same(dataset, import_drif(tmp_path / "ws", tmp_path / "c"))


def test_an_interrupted_export_leaves_nothing(tmp_path):
    def track(rows, title):
        yield rows[0]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_drif(simple(tmp_path / "a"), tmp_path / "ws", track)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    write(tmp_path / "file", "x")
    with pytest.raises(WordwingError, match="cannot be written"):
        export_drif(simple(tmp_path / "a"), tmp_path / "file" / "ws")


def test_the_command_says_what_it_wrote_and_where(tmp_path, capsys):
    datasets.export_drif(corpus(tmp_path / "a", "field").folder, out=tmp_path / "ws")
    said = capsys.readouterr()
    assert said.err == ""
    lines = said.out.splitlines()
    assert lines[-1] == str(tmp_path / "ws")
    assert [line.split() for line in lines[:2]] == [["train", "2", "paragraphs"], ["dev", "1", "paragraphs"]]
    with pytest.raises(WordwingError, match="no such folder"):
        datasets.export_drif(tmp_path / "nowhere", out=tmp_path / "other")
