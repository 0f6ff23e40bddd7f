"""From paths to a collection, and from its accepted sentences to a dataset; what is drawn, refused and reported."""

import inspect
import io
import json
import math
import re
import shlex
import sqlite3
from collections import Counter
from pathlib import Path
from unittest.mock import patch

import av
import numpy as np
import pytest
from PIL import Image

import tiny_training
from command_line import refused
from small_collection import LAYOUT, act, small_collection, straight, undrawn
from wordwing.cli import main
from wordwing.collect import create
from wordwing.collect.create import create_collection, new_settings, plan
from wordwing.collect.database import RATE
from wordwing.collect.drawing import SPEED, TURN, Route, draw_layout, draw_route, video_poses
from wordwing.collect.export import export, sentences_of
from wordwing.collect.guidelines import remarks, writing_feedback
from wordwing.collect.store import Collection
from wordwing.commands import collect as command
from wordwing.data.dataset import Dataset
from wordwing.data.schema import Segment
from wordwing.errors import WordwingError
from wordwing.viz.labelled import LETTERS, NUMBERS, SIZE
from wordwing.viz.routes import COLOURS
from wordwing.world.layout import Layout, Placement

ACROSS = 5.0  # metres that a map spans


def at(image: Image.Image, x: float, y: float) -> np.ndarray:
    """The pixel at a place in the world: x up, y left."""
    return np.asarray(image)[int(SIZE * (0.5 - x / ACROSS)), int(SIZE * (0.5 - y / ACROSS))].astype(int)


def finished(collection: Collection, people: int = 4) -> Collection:
    """All that can be done is done, rightly."""
    tokens = [collection.new_participant() for _ in range(people)]
    while sum(act(collection, token) is not None for token in tokens):
        pass
    return collection


def planned(file: Path, paths: int = 6, **options) -> Collection:
    """Real paths, not drawn."""
    made = plan(new_settings("mine", "human", 2, 0), "cage", paths, (2, 3), practice=0, **options)
    with patch.object(create, "draw_route", undrawn):
        create_collection(made, file)
    return Collection(file)


def test_a_writers_map_has_the_path_and_a_followers_has_not():
    layout, segments = Layout((Placement("Barrel", 1.5, 1.5),)), (straight(-1.0, 0.0), straight(-0.2, 0.0))
    writers, followers = draw_layout(layout, LETTERS, segments), draw_layout(layout, NUMBERS, ())
    for x, colour in ((-0.85, COLOURS[0]), (-0.05, COLOURS[1])):
        assert np.abs(at(writers, x, 0.0) - colour).max() < 12
        assert at(followers, x, 0.0)[1] > at(followers, x, 0.0)[[0, 2]].max()  # grass
    assert np.abs(np.asarray(writers).astype(int) - np.asarray(followers)).max(axis=-1)[:100].max() == 0


def test_in_a_video_the_drone_turns_and_flies_along_the_segment():
    path = np.array([[0.0, 0.0], [0.0, 0.6], [0.0, 1.2]])  # to the left
    poses = np.array(video_poses(Segment("", (0.0, 0.0), 0.0, path)))
    assert np.allclose(poses[0], [0.0, 0.0, 0.0])
    assert np.allclose(poses[-1], [0.0, 1.2, math.pi / 2], atol=0.01)
    steps = np.hypot(*np.diff(poses[:, :2], axis=0).T)
    assert steps.max() <= SPEED / RATE + 1e-3
    assert np.abs(np.diff(poses[:, 2])).max() <= TURN / RATE + 1e-3
    turning = poses[poses[:, 2] < math.pi / 2 - 0.2]
    assert np.allclose(turning[:, :2], 0.0)  # first on the spot
    assert abs(len(poses) / RATE - (1.2 / SPEED + math.pi / 2 / TURN)) < 0.5


def test_everything_of_a_path_is_drawn_and_the_video_shows_what_the_drone_sees():
    layout = Layout((Placement("Pumpkin", 1.0, 0.0),))
    ahead = Segment("", (-1.2, 0.0), 0.0, np.array([[-1.2, 0.0], [0.4, 0.0]]))
    route = Route(layout, (ahead,), ("w", "w0"), ("f", "f0"))
    drawn = draw_route(route)
    assert set(drawn) == {
        *(("w", kind) for kind in ("map", "legend")),
        *(("f", kind) for kind in ("map", "legend")),
        *(("w0", kind) for kind in ("video", "still")),
        ("f0", "view"),
    }
    with av.open(io.BytesIO(drawn["w0", "video"])) as opened:
        frames = [np.asarray(frame.to_image()).astype(int) for frame in opened.decode(video=0)]
    assert len(frames) >= len(video_poses(route.segments[0]))

    orange = [((f[..., 0] > 170) & (abs(f[..., 1] - 115) < 60) & (f[..., 2] < 90)).mean() for f in frames]
    assert orange[-1] > 2 * orange[0] > 0  # the pumpkin grows
    blue = [((f[..., 2] > 150) & (f[..., 0] < 70) & (f[..., 1] < 130)).mean() for f in frames]
    assert blue[0] > 0.003  # the segment lies ahead
    assert blue[-1] < 0.2 * blue[0]
    view = np.asarray(Image.open(io.BytesIO(drawn["f0", "view"])).convert("RGB")).astype(int)
    assert not ((view[..., 2] > 150) & (view[..., 0] < 70) & (view[..., 1] < 130)).any()


@pytest.mark.parametrize("paths", [3, 20])
def test_paths_are_cut_as_wanted_and_no_layout_is_in_two_splits(paths):
    made = plan(new_settings("mine", "human", 2, 1), "cage", paths, (2, 3), practice=2)
    assert len(made.paths) == len(made.layouts) == paths
    assert {len(segments) for _layout, segments in made.paths} <= {2, 3}
    splits = [split for split, _layout in made.layouts.values()]
    assert (splits.count("dev"), splits.count("test")) == (max(round(paths / 10), 1),) * 2
    assert splits.count("train") == paths - 2 * max(round(paths / 10), 1)
    assert len(made.practice) == 4
    assert all(segment.instruction for _layout, segment in made.practice)
    again = plan(new_settings("mine", "human", 2, 1), "cage", paths, (2, 3), practice=2)
    assert again.layouts == made.layouts
    assert all(
        np.array_equal(one.path, other.path)
        for (_name, some), (_same, others) in zip(made.paths, again.paths, strict=True)
        for one, other in zip(some, others, strict=True)
    )


def test_paths_lie_in_ones_own_layouts(tmp_path):
    crowded = Layout((Placement("Barrel", 0.0, 0.0),))
    made = plan(new_settings("mine", "human", 2, 1), "cage", 4, (2, 2), own=[LAYOUT, LAYOUT], practice=0)
    assert [name for name, _segments in made.paths] == ["mine-0001", "mine-0002"] * 2
    assert {layout for _split, layout in made.layouts.values()} == {LAYOUT}
    with pytest.raises(WordwingError, match="in layout 1 no path of 2 segments was found"):
        plan(new_settings("mine", "human", 2, 1), "cage", 1, (2, 2), own=[crowded], practice=0)


def test_an_export_has_the_accepted_sentences_in_paragraphs_of_neighbours_and_says_who_wrote(tmp_path):
    collection = small_collection(tmp_path / "c.db", paths=2, segments=4, tries=1)
    people = [collection.new_participant() for _ in range(2)]
    for token in people:
        act(collection, token)
    for place in range(4):
        for token in people:
            act(collection, token, off=1.0 if token == people[0] and place == 1 else 0.0)
    dataset = export(collection, tmp_path / "mine", tmp_path / "all.jsonl")
    dataset.validate()
    assert (dataset.name, dataset.meta["text"], dataset.meta["seed"]) == ("mine", "human", 5)
    paragraphs = list(dataset.paragraphs())
    sizes = {paragraph.id: len(paragraph.segments) for paragraph in paragraphs}
    assert sizes == {"mine-00001.1": 4, "mine-00002.1": 1, "mine-00002.3": 2}
    segment = next(paragraph for paragraph in paragraphs if paragraph.id == "mine-00002.3").segments[0]
    assert segment.instruction == "go past the barrel, part 2"
    assert np.allclose(segment.path, straight(-0.4, -1.7).path)
    assert (segment.start_xy, segment.readings) == (pytest.approx((-0.4, -1.7)), ())
    assert "7 of 8 (87.5%) led to within 0.47 m" in dataset.meta["notes"][0]
    assert "1 dropped after 1 tries" in dataset.meta["notes"][2]
    rows = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert rows == list(sentences_of(collection))
    assert [row["accepted"] for row in rows] == [True] * 4 + [True, False, True, True]
    assert all(row["drawn"][-1][1] == pytest.approx(-2.0 + 0.3 * (row["path"] - 1)) for row in rows)


def test_an_export_overwrites_nothing_and_needs_something_accepted(tmp_path, capsys):
    collection = small_collection(tmp_path / "c.db", paths=2, segments=1)
    file, out, lines = str(collection.file), str(tmp_path / "mine"), str(tmp_path / "all.jsonl")
    told = refused(capsys, "collect", "export", file, "--out", out)
    assert "there is nothing to export yet: 0 sentences, none of them followed yet" in told
    assert not Path(out).exists()
    finished(collection)
    Path(lines).write_text("mine")
    assert "nothing is overwritten" in refused(capsys, "collect", "export", file, "--out", out, "--sentences", lines)
    assert not Path(out).exists()
    main(["collect", "export", file, "--out", out])
    assert capsys.readouterr().out.splitlines()[0] == "train: 1 segments; dev: 1 segments"
    before = {path.name: path.read_bytes() for path in Path(out).iterdir()}
    assert "nothing is overwritten" in refused(capsys, "collect", "export", file, "--out", out)
    assert {path.name: path.read_bytes() for path in Path(out).iterdir()} == before
    assert Path(lines).read_text() == "mine"


def test_status_says_how_far_a_collection_is_and_what_each_person_has_done(tmp_path, capsys):
    collection = small_collection(tmp_path / "c.db", paths=1, segments=3, tries=1)
    one, other = collection.new_participant(), collection.new_participant()
    act(collection, one)
    act(collection, other)
    act(collection, other, off=0.6)
    main(["collect", "status", str(collection.file), "--json", str(tmp_path / "s.json")])
    assert capsys.readouterr().out.splitlines() == [
        "3 segments: 1 accepted, 1 wait for a follower, 0 wait for a writer, 1 dropped",
        "3 sentences; of those followed 1 of 2 (50.0%) led to within 0.47 m of where they were meant, median 0.30 m",
        "person 1: 3 written, 1 accepted, 1 not; 0 followed",
        "person 2: 0 written, 0 accepted, 0 not; 2 followed",
    ]
    document = json.loads((tmp_path / "s.json").read_text())
    assert (document["name"], document["text"], document["readings"], document["agreeing"]) == ("mine", "human", 2, 1)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--paths 0", "--paths is 0; it must be 1 or more"),
        ("--segments 3 2", "--segments is 3 2; it must be fewest and most, from 1 to 12"),
        ("--segments 1 13", "--segments is 1 13"),
        ("--dev 0.5", "--dev is 0.5; it must be from 0 to 0.4"),
        ("--test nan", "--test is nan"),
        ("--name ../x", "--name is"),
        ("--tries 0", "--tries is 0; it must be 1 or more"),
        ("--layouts none.json", "none.json"),
        ("--out .", "this is there already"),
    ],
)
def test_each_mistake_in_creating_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, capsys, options, sentence):
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(capsys, "collect", "create", "--by", "human", *options.split())
    assert list(tmp_path.iterdir()) == []


def test_who_writes_must_be_said(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["collect", "create"])
    assert stop.value.code == 2
    assert "--by" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("go to the barrel and stop left of it", None),
        ("follow the orange arrow", "colour of an arrow"),
        ("go to where it is on the map", "sheet, picture, map or camera image"),
        ("fly to object C and stop", "letter of a picture"),
        ("go there", "very short"),
    ],
)
def test_a_writer_is_told_what_the_drone_does_not_know(text, remark):
    found = remarks(text)
    assert (found == []) if remark is None else (len(found) == 1 and remark in found[0])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("go straight and pass the barrel on your left", "found none"),
        ("go straight and pass the barrel on your right", "Check left and right"),
        ("supercalifragilistic", "could not read"),
    ],
)
def test_a_practice_sentence_is_checked_for_left_and_right(text, told):
    layout = Layout((Placement("Barrel", 0.4, 0.4), Placement("Boat", -1.5, -1.5)))
    feedback = writing_feedback(text, straight(0.0, 0.0, "an example"), layout)
    assert told in feedback.text
    assert "“an example”" in feedback.text


def test_a_collection_that_cannot_be_made_leaves_nothing(tmp_path):
    made = plan(new_settings("mine", "human", 2, 1), "cage", 2, (2, 2), practice=0)

    def broken(route: Route) -> dict:
        raise WordwingError("no more ink")

    with patch.object(create, "draw_route", broken), pytest.raises(WordwingError, match="no more ink"):
        create_collection(made, tmp_path / "c.db")
    assert list(tmp_path.iterdir()) == []


def test_the_page_in_docs_names_the_options_that_there_are():
    page = (Path(__file__).parents[2] / "docs" / "collect.md").read_text("utf-8")
    for name in ("create", "serve", "export", "status"):
        options = set(inspect.signature(getattr(command, name)).parameters) - {"collection"}
        named = {option.replace("-", "_") for option in re.findall(r"--([a-z-]+)", page)}
        assert options - named <= {"seed", "processes", "json"}, name
    lines = [line.partition("#")[0].strip() for line in page.splitlines() if line.startswith("wordwing collect create")]
    assert lines
    assert all("--by" in shlex.split(line) for line in lines)


def test_one_may_not_write_scores_into_the_database_that_are_none(tmp_path):
    collection = finished(small_collection(tmp_path / "c.db", paths=2, segments=1))
    connection = sqlite3.connect(collection.file)
    for change in ("readings SET distance = -1", "readings SET agrees = 2", "tasks SET role = 'x'"):
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(f"UPDATE {change}")
    connection.close()


@pytest.mark.long
def test_a_collection_trains_and_evaluates_as_any_other_dataset(tmp_path, capsys):
    collection = finished(planned(tmp_path / "c.db", paths=12))
    folder = str(tmp_path / "mine")
    main(["collect", "export", str(collection.file), "--out", folder])
    main(["data", "stats", folder])
    told = capsys.readouterr().out
    assert "written by people" in told
    main(tiny_training.command(Path(folder), tmp_path / "run"))
    policy = next(path.parent for path in (tmp_path / "run").rglob("model.safetensors"))
    main(["evaluate", "oracle", str(policy), "--data", folder, "--device", "cpu", "--out", str(tmp_path / "flown")])
    summary = json.loads((tmp_path / "flown" / "summary.json").read_text())
    flown = [json.loads(line) for line in (tmp_path / "flown" / "episodes.jsonl").read_text().splitlines()]
    dev = {instruction.id for instruction in Dataset(folder).instructions("dev")}
    assert Counter(row["id"] for row in flown) == dict.fromkeys(dev, 2)
    assert '"human"' in json.dumps(summary)
