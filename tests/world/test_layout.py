import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from randomly import random_lakes
from wordwing.errors import WordwingError
from wordwing.world.catalogue import landmark
from wordwing.world.layout import Layout, Placement

KITCHEN = Layout(
    (
        Placement("CounterTop", 1.9, 0.5, yaw=math.pi),
        Placement("Microwave", 1.9, 0.5, yaw=math.pi, elevation=0.62),
        Placement("DiningTable", -0.25, 0.0, radius=0.55),
        Placement("Fridge", 1, -2),
    )
)

LAKELAND = Layout(KITCHEN.landmarks, lakes=((0, 0), (12, 30), (12, 31), (12, 32), (12, 34), (13, 35), (99, 99)))


def complaint(text: str) -> str:
    with pytest.raises(WordwingError) as caught:
        Layout.from_json(text, "kitchen.json")
    return str(caught.value)


def file_with(*rows: dict, **changes: object) -> str:
    return json.dumps({"schema": 1, "arena": 4.7, "landmarks": list(rows)} | changes)


def barrel(**changes: object) -> dict:
    return {"name": "Barrel", "x": 0.5, "y": -1.0} | changes


def test_a_file_has_a_landmark_per_line_and_leaves_defaults_out():
    assert KITCHEN.to_json() == (
        '{\n  "schema": 1,\n  "arena": 4.7,\n  "landmarks": [\n'
        '    {"name": "CounterTop", "x": 1.9, "y": 0.5, "yaw": 3.141592653589793},\n'
        '    {"name": "Microwave", "x": 1.9, "y": 0.5, "yaw": 3.141592653589793, "elevation": 0.62},\n'
        '    {"name": "DiningTable", "x": -0.25, "y": 0.0, "radius": 0.55},\n'
        '    {"name": "Fridge", "x": 1, "y": -2}\n'
        "  ]\n}\n"
    )


def test_lakes_are_runs_of_cells_on_one_line_and_left_out_where_there_are_none():
    dry, wet = KITCHEN.to_json(), LAKELAND.to_json()
    runs = "[[0, 0, 0], [12, 30, 32], [12, 34, 34], [13, 35, 35], [99, 99, 99]]"
    assert wet == dry.replace("  ]\n}\n", f'  ],\n  "lakes": {runs}\n}}\n')
    assert "lakes" not in dry


def test_runs_may_come_in_any_order_and_end_where_others_begin():
    shuffled = file_with(lakes=[[13, 35, 35], [12, 32, 34], [0, 1, 1], [12, 30, 31]])
    assert Layout.from_json(shuffled).lakes == ((0, 1), (12, 30), (12, 31), (12, 32), (12, 33), (12, 34), (13, 35))
    assert Layout.from_json(file_with(lakes=[])) == Layout(())


def test_any_lakes_come_back_as_they_were(rng):
    every_cell = tuple((i, j) for i in range(100) for j in range(100))
    checkers = tuple(cell for cell in every_cell if sum(cell) % 2)
    for lakes in (every_cell, checkers, *(random_lakes(rng) for _ in range(20))):
        layout = Layout(KITCHEN.landmarks, lakes=lakes)
        again = Layout.from_json(layout.to_json())
        assert again == layout
        assert hash(again) == hash(layout)
        assert layout != KITCHEN
        assert len(layout.to_json()) < 100_000  # the largest file is ten times that


@pytest.mark.parametrize("layout", [KITCHEN, LAKELAND, Layout(())])
def test_what_is_saved_is_what_is_loaded(layout, tmp_path):
    path = tmp_path / "layout.json"
    layout.save(path)
    assert Layout.load(path) == layout
    assert Layout.load(str(path)) == layout
    assert Layout.from_json(layout.to_json()) == Layout.from_document(layout.to_document()) == layout
    assert json.dumps(layout.to_document()) == json.dumps(json.loads(layout.to_json()))
    assert list(tmp_path.iterdir()) == [path]


def test_left_out_fields_have_their_defaults():
    layout = Layout.from_json('{"schema": 1, "landmarks": [{"name": "Barrel", "x": 1, "y": 0}]}')
    assert layout == Layout((Placement("Barrel", 1.0, 0.0, 0.0, 0.0, None),), 4.7)


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = tmp_path / "layout.json"
    path.write_text(KITCHEN.to_json(), "utf-8-sig")
    assert Layout.load(path) == KITCHEN


def test_keep_out_is_the_catalogues_unless_the_layout_says_otherwise():
    assert KITCHEN.keep_out.tolist() == [0.47, 0.37, 0.55, 0.37]
    assert KITCHEN.centres.tolist() == [[1.9, 0.5], [1.9, 0.5], [-0.25, 0.0], [1.0, -2.0]]
    assert Layout(()).centres.shape == (0, 2)


FINITE = "it must be a finite number of metres"
RUN = "it must be three whole numbers from 0 to 99, [i, first j, last j]"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        # The text as a whole.
        ("", "not valid JSON at line 1, column 1 (Expecting value)"),
        ('{\n  "schema": 1,,\n}', "not valid JSON at line 2, column 15 (Expecting property name"),
        ("[" * 100_000, "not a layout (maximum recursion depth exceeded"),
        (file_with(barrel(x=0)).replace("0", "1" * 5000), "not a layout (Exceeds the limit"),
        ("[1, 2]", "this is a list; it must be an object, {…}"),
        ("null", "this is null; it must be an object, {…}"),
        # The object.
        ("{}", '"schema" is missing; it must be 1, the version'),
        (file_with(schema=2), '"schema" is 2; it must be 1, the version that this wordwing reads'),
        (file_with(schema=True), '"schema" is true; it must be 1, the version'),
        (file_with(schema="1"), '"schema" is "1"; it must be 1, the version'),
        ('{"schema": 1}', '"landmarks" is missing; it must be a list, […]'),
        (file_with(aren=1), 'it has an unknown key "aren"; did you mean "arena"?'),
        (file_with(q=1), 'it has an unknown key "q"; the keys are schema, landmarks, arena, lakes'),
        ('{"schema": 1, "schema": 1}', '"schema" appears twice in one object; keep one'),
        (file_with(landmarks={}), '"landmarks" is an object; it must be a list, […]'),
        (file_with(landmarks=None), '"landmarks" is null; it must be a list, […]'),
        (file_with(arena=5), "the arena is 5.0 m; the only size supported is 4.7"),
        (file_with(arena="4.7"), f'"arena" is "4.7"; {FINITE}'),
        (file_with(arena=math.nan), f'"arena" is NaN; {FINITE}'),
        (file_with(*[barrel()] * 41), "there are 41 landmarks; 40 is the most"),
        # Lakes.
        (file_with(lakes={}), '"lakes" is an object; it must be a list, […]'),
        (file_with(lakes=None), '"lakes" is null; it must be a list, […]'),
        (file_with(lake=[]), 'it has an unknown key "lake"; did you mean "lakes"?'),
        (file_with(lakes=[[1, 2, 3], 7]), f"lake run 2 is 7; {RUN}"),
        (file_with(lakes=[[1, 2]]), f"lake run 1 is a list of 2; {RUN}"),
        (file_with(lakes=[{"x": 1, "y": 2}]), f"lake run 1 is an object; {RUN}"),
        (file_with(lakes=[[0, 0, 100]]), f"lake run 1 has 100 in it; {RUN}"),
        (file_with(lakes=[[-1, 0, 0]]), f"lake run 1 has -1 in it; {RUN}"),
        (file_with(lakes=[[1.0, 0, 0]]), f"lake run 1 has 1.0 in it; {RUN}"),
        (file_with(lakes=[[True, 0, 0]]), f"lake run 1 has true in it; {RUN}"),
        (file_with(lakes=[["1", 0, 0]]), f'lake run 1 has "1" in it; {RUN}'),
        (file_with(lakes=[[5, 41, 30]]), "lake run 1 goes from j = 41 to 30; the smaller one comes first"),
        (
            file_with(lakes=[[5, 30, 41], [6, 30, 41], [5, 40, 50]]),
            "lake run 3 covers cell (5, 40) again; a cell may be in one run only",
        ),
        # One landmark.
        (file_with(barrel(), 7), "landmark 2 is 7; it must be an object, {…}"),
        (file_with({"name": "Barrel", "x": 1}), f'landmark 1: "y" is missing; {FINITE}'),
        (file_with(barrel(elevaton=1)), 'landmark 1 has an unknown key "elevaton"; did you mean "elevation"?'),
        (file_with(barrel(name=3)), 'landmark 1: "name" is 3; it must be a text'),
        (
            file_with(barrel(), barrel(x=-0.5), barrel(name="Barell", x=-1.5)),
            'landmark 3 is called "Barell"; did you mean "Barrel"? (89 names: wordwing data show landmarks)',
        ),
        (
            file_with(barrel(name="Zzzz\n")),
            'landmark 1 is called "Zzzz\\n", which no landmark is (89 names: wordwing data show landmarks)',
        ),
        (file_with(barrel(x="1")), f'landmark 1: "x" is "1"; {FINITE}'),
        (file_with(barrel(y=True)), f'landmark 1: "y" is true; {FINITE}'),
        (file_with(barrel(y=None)), f'landmark 1: "y" is null; {FINITE}'),
        (file_with(barrel(x=[1])), f'landmark 1: "x" is a list; {FINITE}'),
        (file_with(barrel(x=math.nan)), f'landmark 1: "x" is NaN; {FINITE}'),
        (file_with(barrel(x=-math.inf)), f'landmark 1: "x" is -Infinity; {FINITE}'),
        (file_with(barrel(x=0)).replace("0,", "1e999,"), f'landmark 1: "x" is Infinity; {FINITE}'),
        (file_with(barrel(x=10**400)), 'landmark 1: "x" is 1000000000'),
        (file_with(barrel(yaw="north")), 'landmark 1: "yaw" is "north"; it must be a finite number of radians'),
        (file_with(barrel(radius=None)), f'landmark 1: "radius" is null; {FINITE}'),
        (file_with(barrel(elevation=math.inf)), f'landmark 1: "elevation" is Infinity; {FINITE}'),
        (
            file_with(barrel(elevation=-0.1)),
            "landmark 1 (Barrel) has elevation -0.1; it must be between 0, the floor, and 2.0 m",
        ),
        (
            file_with(barrel(radius=0.2)),
            "landmark 1 (Barrel) has radius 0.2; it must be between its footprint, 0.24, and 2.35",
        ),
        (
            file_with(barrel(x=2.36)),
            "landmark 1 (Barrel) at (2.36, -1.00) is outside the arena; x and y must be between -2.35 and 2.35",
        ),
        (
            file_with(barrel(y=-2.25)),
            "landmark 1 (Barrel) at (0.50, -2.25) reaches 0.14 m out of the arena; x and y must be between ±2.11",
        ),
        (file_with(barrel(elevation=1e299)), "landmark 1 (Barrel) has elevation 1e+299; it must be between 0"),
        (file_with(barrel(yaw=1e39)), "landmark 1 (Barrel) has yaw 1e+39; radians between ±100.0 are enough"),
        # Two landmarks.
        (
            file_with(barrel(), barrel(name="Bench", x=0.5, y=-0.6)),
            "landmark 2 (Bench) overlaps landmark 1 (Barrel) by 0.22 m; their centres must be at least 0.62 m apart",
        ),
    ],
)
def test_each_mistake_is_answered_with_one_sentence_that_names_it(text, sentence):
    message = complaint(text)
    assert message.startswith(f"kitchen.json: {sentence}")
    assert len(message) < 200
    assert "\n" not in message


def test_a_footprint_may_reach_five_centimetres_across_the_fence_but_no_more():
    touching = 2.35 - landmark("Barrel").footprint
    Layout((Placement("Barrel", touching + 0.049, 0.0),)).validate()
    with pytest.raises(WordwingError, match="out of the arena"):
        Layout((Placement("Barrel", 0.0, -touching - 0.051),)).validate()


def test_footprints_may_overlap_by_a_centimetre_but_no_more():
    touching = landmark("Barrel").footprint + landmark("Apple").footprint
    apple = Placement("Apple", 0.0, 0.0)
    Layout((apple, Placement("Barrel", touching - 0.009, 0.0))).validate()
    with pytest.raises(WordwingError, match="overlaps"):
        Layout((apple, Placement("Barrel", 0.0, touching - 0.011))).validate()


@pytest.mark.parametrize("turn", [1, -1])
def test_things_may_stand_on_each_other_but_not_in_each_other(turn):
    desk, lamp = Placement("Desk", 0.0, 0.0), Placement("DeskLamp", 0.1, 0.0, elevation=0.56)
    Layout((desk, lamp)[::turn]).validate()
    with pytest.raises(WordwingError, match="overlaps"):
        Layout((desk, Placement("DeskLamp", 0.1, 0.0, elevation=0.5))[::turn]).validate()


def test_a_layout_made_in_code_is_checked_by_validate():
    with pytest.raises(WordwingError, match=r"^layout: landmark 1: yaw is NaN"):
        Layout((Placement("Barrel", 0.0, 0.0, yaw=math.nan),)).validate()
    with pytest.raises(WordwingError, match=r"^the sketch: the arena is 3\.0 m"):
        Layout((), arena=3.0).validate("the sketch")


@pytest.mark.parametrize(
    ("lakes", "sentence"),
    [
        (((0, 1), (0, 100)), "lake cell 2 is [0, 100]; a cell is two whole numbers from 0 to 99"),
        (((0, 1, 2),), "lake cell 1 is [0, 1, 2]; a cell is two whole numbers from 0 to 99"),
        (((0, 1.5),), "lake cell 1 is [0, 1.5]; a cell is two whole numbers from 0 to 99"),
        (((1, 0), (0, 1)), "lake cell 2, (0, 1), comes after (1, 0); cells must be sorted, each once"),
        (((1, 0), (1, 0)), "lake cell 2, (1, 0), comes after (1, 0); cells must be sorted, each once"),
    ],
)
def test_lakes_made_in_code_are_checked_by_validate(lakes, sentence):
    with pytest.raises(WordwingError) as caught:
        Layout((), lakes=lakes).validate("the sketch")
    assert str(caught.value) == f"the sketch: {sentence}"


def unreadable(path: Path) -> str:
    with pytest.raises(WordwingError) as caught:
        Layout.load(path)
    return str(caught.value)


def test_a_file_that_cannot_be_read_is_named_with_the_reason(tmp_path):
    path = tmp_path / "layout.json"
    assert unreadable(path) == f"{path}: there is no such file; name a layout file"
    assert unreadable(tmp_path) == f"{tmp_path}: this is a folder, not a file; name a layout file"
    long = tmp_path / ("x" * 300)
    assert unreadable(long) == f"{long}: the file cannot be read (file name too long)"
    path.write_bytes(b'{"schema": 1, "caf\xe9": 2}')
    assert unreadable(path) == f"{path}: byte 18 is not UTF-8 text; save the file as UTF-8"
    path.write_bytes(b" " * 1_000_001)
    assert unreadable(path) == f"{path}: the file has more than 1000000 bytes, so it is no layout"


def test_a_mistake_in_a_file_names_the_file(tmp_path):
    path = tmp_path / "layout.json"
    path.write_text("[]")
    assert unreadable(path) == f"{path}: this is a list; it must be an object, {{…}}"


def test_a_failed_save_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "layout.json"
    KITCHEN.save(path)
    before = path.read_bytes()
    with pytest.raises(WordwingError, match=r"layout\.json: landmark 1 is called"):
        Layout((Placement("Barell", 0.0, 0.0),)).save(path)

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(WordwingError, match="the disk is full; nothing was changed"):
        Layout(()).save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_saving_makes_the_folder_and_says_so_where_none_can_be(tmp_path):
    KITCHEN.save(tmp_path / "new" / "layout.json")
    assert Layout.load(tmp_path / "new" / "layout.json") == KITCHEN
    (tmp_path / "file").touch()
    with pytest.raises(WordwingError, match="cannot be written"):
        KITCHEN.save(tmp_path / "file" / "layout.json")


@pytest.mark.parametrize("layout", [KITCHEN, LAKELAND])
def test_no_damage_to_a_file_raises_anything_but_a_sentence(layout, rng):
    good = layout.to_json()
    scraps = ['"', "{", "]", ",", "-", "1e9", "null", "true", "NaN", "\\u0000", "é", "\x00"]
    sentences = []
    for _ in range(2000):
        cut, end = sorted(rng.integers(0, len(good), 2))
        end = min(end, cut + 12)
        try:
            Layout.from_json(good[:cut] + scraps[rng.integers(len(scraps))] + good[end:])
        except WordwingError as error:
            sentences.append(str(error))
    assert len(sentences) > 1500
    assert not any("\n" in sentence for sentence in sentences)


def test_inside_means_within_the_footprint_of_some_landmark(rng):
    points = rng.uniform(-2.35, 2.35, (4, 500, 2))
    inside = KITCHEN.inside(points)
    assert inside.shape == (4, 500)
    for point, answer in zip(points.reshape(-1, 2), inside.ravel(), strict=True):
        assert answer == any(
            math.dist(point, (entry.x, entry.y)) < landmark(entry.name).footprint for entry in KITCHEN.landmarks
        )
    assert 0.05 < inside.mean() < 0.2


def test_inside_takes_a_single_point_and_an_empty_layout():
    assert KITCHEN.inside([1.0, -2.0])
    assert not KITCHEN.inside(np.array([0.9, -0.9]))
    assert not Layout(()).inside(np.zeros((3, 2))).any()


def test_a_lake_is_around_the_centres_of_its_cells(rng):
    layout = Layout((), lakes=random_lakes(rng))
    cells = rng.integers(0, 100, (50, 40, 2))
    offsets = rng.uniform(-0.499, 0.499, cells.shape)
    water = layout.lake_at((cells + 0.5 + offsets) / 100 * 4.7 - 2.35)
    assert water.shape == (50, 40)
    members = set(layout.lakes)
    assert water.ravel().tolist() == [tuple(cell) in members for cell in cells.reshape(-1, 2).tolist()]
    assert 0.05 < water.mean() < 0.6


def test_the_first_index_of_a_lake_cell_goes_along_x():
    assert Layout((), lakes=((99, 0),)).lake_at([2.34, -2.34])
    assert not Layout((), lakes=((0, 99),)).lake_at(np.array([2.34, -2.34]))


def test_there_are_no_lakes_outside_the_arena_nor_in_a_layout_without():
    everywhere = Layout((), lakes=tuple((i, j) for i in range(100) for j in range(100)))
    beyond = [[2.36, 0.0], [-2.36, 0.0], [0.0, 2.36], [0.0, -2.36], [1e9, 1e9], [math.nan, 0.0], [0.0, math.inf]]
    assert not everywhere.lake_at(beyond).any()
    assert everywhere.lake_at([[0.0, 0.0], [-2.35, -2.35]]).all()
    assert not Layout(()).lake_at(np.zeros((3, 2))).any()
