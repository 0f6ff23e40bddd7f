import json
import math

import pytest

from studio_server import LAYOUT, START
from wordwing.errors import WordwingError
from wordwing.studio.live import Start
from wordwing.studio.messages import (
    Button,
    Fly,
    Hello,
    MalformedError,
    RandomLayout,
    Speed,
    UnknownWords,
    read_link,
    read_message,
    start_json,
)

POLICIES = ["small0", "other"]


def read(**content):
    return read_message(json.dumps(content), POLICIES)


def place(**changes):
    return {"type": "place", "layout": LAYOUT, "start": START, "seed": 0, "vehicle": "sim", **changes}


def test_messages_are_read():
    assert read(type="hello", version=1) == Hello(1)
    assert read(type="stage", text="the barrel", corpus=None, seed=3) == RandomLayout("the barrel", None, 3)
    assert read(type="fly", text=" go \n there ", policies=["other"]) == Fly("go there", ("other",), False)
    assert read(type="fly", text="go", policies=POLICIES, **{"continue": True}) == Fly("go", ("small0", "other"), True)
    assert read(type="pause") == Button("pause")
    assert read(type="speed", value=2) == Speed(2.0)
    assert read(type="words", text="", policy="other", id=1) == UnknownWords("", "other", 1)
    placed = read(**place())
    assert isinstance(placed, Start)
    assert placed.xy == (START["x"], START["y"])
    assert [entry.name for entry in placed.layout.landmarks] == ["Barrel", "Anvil", "Pumpkin"]


MALFORMED = [
    "",
    "null",
    "[1]",
    "{}",
    '{"type": []}',
    '{"type": "__class__"}',
    '{"type": "pause", "type": "resume"}',
    '{"type": "pause", "x": 1}',
    '{"type": "speed", "value": NaN}',
    '{"type": "speed", "value": Infinity}',
    '{"type": "speed", "value": true}',
    '{"type": "speed", "value": "2"}',
    '{"type": "speed"}',
    '{"type": "fly", "text": 1, "policies": ["small0"]}',
    '{"type": "fly", "text": "go", "policies": "small0"}',
    '{"type": "fly", "text": "go", "policies": []}',
    '{"type": "fly", "text": "go", "policies": ["small0", "other", "small0"]}',
    '{"type": "fly", "text": "go", "policies": [{}]}',
    '{"type": "fly", "text": "go", "policies": ["small0"], "continue": 1}',
    '{"type": "stage", "text": "go", "corpus": "moon", "seed": 1}',
    '{"type": "stage", "text": "go", "corpus": null, "seed": 1.5}',
    '{"type": "stage", "text": "go", "corpus": null, "seed": true}',
    '{"type": "words", "text": null, "policy": "other", "id": 1}',
    '{"a":' * 3000,
    "9" * 5000,
    '{"type": "hello", "version": 1}' + " " * 66_000,
]


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_what_no_page_of_ours_sends_is_malformed(text):
    with pytest.raises(MalformedError) as error:
        read_message(text, POLICIES)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("message", "sentence"),
    [
        ({"type": "speed", "value": 9}, "from 0.25 to 8"),
        ({"type": "speed", "value": 10**400}, "from 0.25 to 8"),
        ({"type": "stage", "text": "x" * 2001, "corpus": None, "seed": 0}, "2001 characters"),
        ({"type": "stage", "text": "x", "corpus": None, "seed": -1}, "from 0"),
        ({"type": "stage", "text": "x", "corpus": None, "seed": 2**32}, "from 0"),
        ({"type": "fly", "text": " .,! ", "policies": ["other"]}, "no word"),
        ({"type": "fly", "text": "a " * 201, "policies": ["other"]}, "201 words"),
        ({"type": "fly", "text": "\ud800 go", "policies": ["other"]}, "half a character"),
        ({"type": "fly", "text": "go", "policies": ["othr"]}, 'did you mean "other"'),
        (place(layout={**LAYOUT, "schema": 2}), "schema"),
        (place(layout={"schema": 1, "landmarks": [{"name": "Nothing", "x": 0, "y": 0}]}), "Nothing"),
        (place(layout={"schema": 1, "landmarks": [{"name": "Barrel", "x": "0", "y": 0}]}), "finite number"),
        (place(start={**START, "x": 1e7}), "from -1000000 to 1000000"),
        (place(start={**START, "yaw": 101}), "from -100"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_sentence(message, sentence):
    with pytest.raises(WordwingError) as error:
        read_message(json.dumps(message), POLICIES)
    assert not isinstance(error.value, MalformedError)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"vehicle": "mavlink"},
        {"vehicle": "udp://10.0.0.1:14550"},
        {"layout": []},
        {"start": [0, 0, 0]},
        {"start": {**START, "z": 1}},
        {"start": {**START, "x": "0"}},
        {"start": {"x": 0, "y": 0}},
    ],
)
def test_a_place_of_another_kind_is_malformed(changes):
    with pytest.raises(MalformedError):
        read_message(json.dumps(place(**changes)), POLICIES)


def test_what_is_dragged_out_of_the_arena_is_put_back_at_its_edge():
    layout = {"schema": 1, "landmarks": [{"name": "Barrel", "x": 9, "y": -1e300}, {"name": "Anvil", "x": 0, "y": 0}]}
    start = read(**place(layout=layout, start={"x": 5, "y": -2.3, "yaw": 7}))
    barrel, anvil = start.layout.landmarks
    assert (barrel.x, barrel.y) == pytest.approx((2.35 + 0.05 - 0.24, -(2.35 + 0.05 - 0.24)))
    assert (anvil.x, anvil.y) == (0, 0)
    assert start.xy == pytest.approx((2.25, -2.25))
    assert start.yaw == pytest.approx(7 - 2 * math.pi)


def test_a_start_that_was_written_is_read_back_the_same():
    start = read(**place(seed=17, vehicle="lab", start={"x": 0.1, "y": 1 / 3, "yaw": -0.7}))
    link = read_link(json.dumps({**start_json(start), "policies": ["small0"], "texts": ["go"]}), POLICIES)
    assert link.start == start
    assert isinstance(start, Start)


@pytest.mark.parametrize(
    "changes",
    [{"texts": []}, {"texts": "go"}, {"texts": ["go"] * 21}, {"policies": ["small0"], "policy": "small0"}, {"x": 1}],
)
def test_a_link_that_is_no_link_is_refused(changes):
    link = {**place(), "policies": ["small0"], "texts": ["go"]}
    del link["type"]
    assert read_link(json.dumps(link), POLICIES).texts == ("go",)
    with pytest.raises(WordwingError):
        read_link(json.dumps({**link, **changes}), POLICIES)
