import cmath
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from wordwing.data.schema import Paragraph, Segment, Window, joined
from wordwing.errors import WordwingError
from wordwing.language.meaning.clauses import Clause
from wordwing.world.paths import path_length

LANDMARKS = {"yard": 3, "room": 5}


def segment(
    text: str, *path: tuple[float, float], yaw: float = 0.0, meaning: tuple[Clause, ...] | None = None
) -> Segment:
    return Segment(text, path[0], yaw, np.array(path, float), meaning)


def walk(*texts: str, step: float = 0.5) -> tuple[Segment, ...]:
    """Segments of one step along x each, every one beginning where the one before ends."""
    return tuple(segment(text, (i * step, 0.0), ((i + 1) * step, 0.0)) for i, text in enumerate(texts))


def random_window(rng: np.random.Generator) -> Window:
    return Window(*rng.uniform(-10, 10, 2), rng.uniform(-7, 7))


def in_window(window: Window, point: tuple[float, float]) -> complex:
    """A point of the scene in the arena, by complex numbers: x + iy."""
    return (complex(*point) - complex(window.x, window.y)) * cmath.exp(-1j * window.yaw)


def test_a_window_moves_and_turns_points_rigidly(rng):
    for _ in range(50):
        window = random_window(rng)
        points = rng.uniform(-12, 12, (4, 6, 2))
        moved = window.to_arena(points)
        assert moved.shape == points.shape
        for point, place in zip(points.reshape(-1, 2), moved.reshape(-1, 2), strict=True):
            assert complex(*place) == pytest.approx(in_window(window, point), abs=1e-12)
        apart = points.reshape(-1, 1, 2) - points.reshape(1, -1, 2)
        apart_moved = moved.reshape(-1, 1, 2) - moved.reshape(1, -1, 2)
        np.testing.assert_allclose(np.hypot(*apart_moved.T), np.hypot(*apart.T), atol=1e-12)


def test_a_windows_centre_is_the_arenas_and_its_axis_the_arenas_axis():
    window = Window(3.0, -1.0, math.pi / 2)
    places = window.to_arena(np.array([[3.0, -1.0], [3.0, 0.0], [2.0, -1.0]]))
    np.testing.assert_allclose(places, [[0, 0], [1, 0], [0, 1]], atol=1e-15)
    assert window.to_arena(np.array([3.0, -1.0])).tolist() == [0.0, 0.0]


def test_a_heading_turns_as_the_points_do(rng):
    for _ in range(200):
        window, yaw, at = random_window(rng), rng.uniform(-9, 9), rng.uniform(-5, 5, 2)
        ahead = at + np.array([math.cos(yaw), math.sin(yaw)])
        moved = window.yaw_to_arena(yaw)
        assert -math.pi <= moved <= math.pi
        assert cmath.exp(1j * moved) == pytest.approx(in_window(window, ahead) - in_window(window, at), abs=1e-12)


def test_joined_segments_are_one_path_with_each_shared_point_once():
    first = segment("go", (0, 0), (1, 0), yaw=0.3)
    touching = segment("on", (1, 0.0005), (1, 1), yaw=1.2)
    apart = segment("stop", (1, 1.2), (0, 1.2))
    both = joined((first, touching, apart))
    assert both.instruction == "go on stop"
    assert (both.start_xy, both.start_yaw) == (first.start_xy, 0.3)
    assert both.path.tolist() == [[0, 0], [1, 0], [1, 1], [1, 1.2], [0, 1.2]]
    assert path_length(both.path) == pytest.approx(1 + 1 + 0.2 + 1)
    assert joined((first,)) is first
    assert len(first.path) == 2


def test_segments_of_one_point_can_be_joined():
    here = segment("turn around", (0.5, 0.5))
    assert joined((here, here)).path.tolist() == [[0.5, 0.5]]
    assert path_length(here.path) == 0
    there = segment("go", (0.5, 0.5), (1, 1))
    assert joined((here, there)).path.tolist() == [[0.5, 0.5], [1, 1]]


def test_joined_segments_mean_one_thing_after_the_other_if_both_are_known():
    straight, reach = Clause("straight"), Clause("reach", 1)
    first = segment("go", (0, 0), (1, 0), meaning=(straight, reach))
    assert joined((first, segment("on", (1, 0), meaning=(straight,)))).meaning == (straight, reach, straight)
    assert joined((first, segment("on", (1, 0), meaning=()))).meaning == (straight, reach)
    assert joined((first, segment("on", (1, 0)))).meaning is None
    either = replace(first, alternatives=((reach,),))
    assert joined((either,)).alternatives == ((reach,),)
    both = joined((either, first))
    assert (both.meaning, both.alternatives) == (None, ())


def test_readings_are_of_a_segment_alone():
    first, second = (replace(entry, readings=((0.1, 0.2),)) for entry in walk("one", "two"))
    assert joined((first,)).readings == ((0.1, 0.2),)
    assert joined((first, second)).readings == ()


def test_instructions_are_single_segments_then_pairs_of_consecutive_ones():
    paragraph = Paragraph("yard-7", "dev", "yard", walk("a", "b", "c"))
    found = list(paragraph.instructions())
    assert [entry.id for entry in found] == ["yard-7/0", "yard-7/1", "yard-7/2", "yard-7/0-1", "yard-7/1-2"]
    assert [entry.segment.instruction for entry in found] == ["a", "b", "c", "a b", "b c"]
    assert [entry.segments for entry in found] == [1, 1, 1, 2, 2]
    assert {(entry.split, entry.layout, entry.window) for entry in found} == {("dev", "yard", None)}
    assert found[4].segment.path.tolist() == [[0.5, 0], [1, 0], [1.5, 0]]
    assert found[4].segment.start_xy == (0.5, 0)
    assert [entry.id for entry in paragraph.instructions((1,))] == ["yard-7/0", "yard-7/1", "yard-7/2"]
    assert [entry.id for entry in paragraph.instructions((2,))] == ["yard-7/0-1", "yard-7/1-2"]


@pytest.mark.parametrize("count", [0, 1, 2, 6])
def test_n_segments_make_n_instructions_and_a_pair_fewer(count):
    paragraph = Paragraph("p", "train", "yard", walk(*"abcdef"[:count], step=0.1))
    assert len(list(paragraph.instructions((1,)))) == count
    assert len(list(paragraph.instructions((2,)))) == max(count - 1, 0)


def test_in_a_scene_only_what_has_a_window_is_an_instruction(rng):
    windows = {(1, 1): random_window(rng), (0, 1): random_window(rng), (1, 3): random_window(rng)}
    paragraph = Paragraph("p", "train", "room", walk("a", "b", "c", "d"), windows)
    found = {entry.id: entry for entry in paragraph.instructions()}
    assert list(found) == ["p/1", "p/0-1"]
    for span, name in (((1, 1), "p/1"), ((0, 1), "p/0-1")):
        window, entry = windows[span], found[name]
        whole = joined(paragraph.segments[span[0] : span[1] + 1])
        assert entry.window == window
        assert entry.segment.instruction == whole.instruction
        assert complex(*entry.segment.start_xy) == pytest.approx(in_window(window, whole.start_xy), abs=1e-12)
        assert cmath.exp(1j * entry.segment.start_yaw) == pytest.approx(
            cmath.exp(1j * (whole.start_yaw - window.yaw)), abs=1e-12
        )
        expected = [in_window(window, point) for point in whole.path]
        assert [complex(*point) for point in entry.segment.path] == pytest.approx(expected, abs=1e-12)
    assert list(Paragraph("p", "train", "room", walk("a"), {}).instructions()) == []


def random_paragraph(rng: np.random.Generator, scene: bool) -> Paragraph:
    reach = 30.0 if scene else 2.0
    segments = []
    for _ in range(rng.integers(1, 5)):
        path = rng.uniform(-reach, reach, (rng.integers(1, 20), 2))
        meaning = (
            Clause("turn", side="left", amount=float(rng.uniform(0.1, 3))),
            Clause("reach", int(rng.integers(3))),
        )
        start = path[0] + rng.uniform(-0.3, 0.3, 2)
        yaw = float(rng.uniform(-7, 7))
        known = meaning if rng.random() < 0.5 else None
        others = (meaning[:1], meaning[::-1])[: rng.integers(3)] if known else ()
        readings = tuple(map(tuple, rng.uniform(-reach, reach, (rng.integers(3), 2)).round(4).tolist()))
        segments.append(
            Segment("Fly “on”,\n3 m — é 🚁", (float(start[0]), float(start[1])), yaw, path, known, readings, others)
        )
    spans = [(i, j) for i in range(len(segments)) for j in range(i, len(segments)) if rng.random() < 0.7]
    windows = {span: random_window(rng) for span in spans}
    return Paragraph("room/β", "dev-unseen", "room" if scene else "yard", tuple(segments), windows if scene else None)


@pytest.mark.parametrize("scene", [False, True])
def test_what_is_written_is_what_is_read_to_a_tenth_of_a_millimetre(scene, rng):
    for _ in range(100):
        written = random_paragraph(rng, scene)
        line = json.dumps(written.to_json())
        read = Paragraph.from_json(line, LANDMARKS, "line 1")
        assert (read.id, read.split, read.layout) == (written.id, written.split, written.layout)
        for a, b in zip(read.segments, written.segments, strict=True):
            assert (a.instruction, a.meaning, a.readings) == (b.instruction, b.meaning, b.readings)
            assert a.alternatives == b.alternatives
            assert a.start_xy == pytest.approx(b.start_xy, abs=0.501e-4)
            assert a.start_yaw == pytest.approx(b.start_yaw, abs=0.501e-5)
            assert a.path.dtype == np.float64
            np.testing.assert_allclose(a.path, b.path, atol=0.501e-4, rtol=0)
        assert (read.windows is None) == (written.windows is None)
        if read.windows is not None and written.windows is not None:
            assert list(read.windows) == list(written.windows)
            for span, window in written.windows.items():
                at = read.windows[span]
                assert (at.x, at.y, at.yaw) == pytest.approx((window.x, window.y, window.yaw), abs=0.501e-4)
        assert json.dumps(read.to_json()) == line


def line(**changes: object) -> dict:
    return {"id": "p", "split": "train", "layout": "yard", "segments": [row()]} | changes


def row(**changes: object) -> dict:
    return {"instruction": "go", "start": [0, 0, 0], "path": [[0, 0], [1, 0.5]]} | changes


def in_scene(*windows: object) -> dict:
    return line(layout="room", segments=[row(), row()], windows=list(windows))


def complaint(document: object) -> str:
    with pytest.raises(WordwingError) as caught:
        Paragraph.from_json(json.dumps(document), LANDMARKS, "line 3")
    return str(caught.value)


START = "it must be [x, y, yaw] in metres and radians"
PATH = "it must be a list of 1 to 10,000 points [x, y] in metres"
TEXT = "it must be a text of at most 2,000 characters"
SPAN = "it must be [first, last], segments from 0"
OUTSIDE = "leaves the arena; x and y must be between -2.35 and 2.35"


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ([], "this is a list; it must be an object"),
        (None, "this is null; it must be an object"),
        ({}, '"id" is missing; it must be a name'),
        (line(id=7), '"id" is 7; it must be a name'),
        (line(id=""), '"id" is ""; it must be a name'),
        (line(id=["x"] * 1000), '"id" is a list; it must be a name'),
        (line(split=None), '"split" is null; it must be a name'),
        (line(layout=["yard"]), '"layout" is a list; it must be a name'),
        (line(layout="garden"), 'layout "garden" is not in layouts.jsonl'),
        (line(layout="x" * 1000), f'layout "{"x" * 60}" is not in layouts.jsonl'),
        (line(segments=None), '"segments" is null; it must be a list'),
        (line(segments={"0": row()}), '"segments" is an object; it must be a list'),
        (
            line(segments=[row(readings=[[1, 2, 3]])]),
            "segment 0: reading 1 is a list of 3; it must be a point [x, y] in metres",
        ),
        (line(segments=[row(), 7]), "segment 1 is 7; it must be an object"),
        (line(segments=[row(instruction=None)]), f'segment 0: "instruction" is null; {TEXT}'),
        (line(segments=[row(instruction="x" * 2001)]), f'segment 0: "instruction" is "{"x" * 56}…; {TEXT}'),
        (line(segments=[row(), {"instruction": "go", "path": [[0, 0]]}]), f'segment 1: "start" is missing; {START}'),
        *(
            (line(segments=[row(start=start)]), f'segment 0: "start" {found}; {START}')
            for start, found in (
                (None, "is null"),
                ("0 0 0", 'is "0 0 0"'),
                ([0, 0], "is a list of 2"),
                ([0, 0, 0, 0], "is a list of 4"),
                ([0, 0, "0"], 'has "0" in it'),
                ([0, True, 0], "has true in it"),
                ([0, 0, None], "has null in it"),
                ([math.nan, 0, 0], "has NaN in it"),
                ([0, 0, -math.inf], "has -Infinity in it"),
                ([0, 0, 10**400], f"has 1{'0' * 56}… in it"),
                ([0, 0, 1e308], "has 1e+308 in it"),
            )
        ),
        *(
            (line(segments=[row(path=path)]), f'segment 0: "path" {found}; {PATH}')
            for path, found in (
                (None, "is null"),
                ([], "is a list of 0"),
                ({"0": [0, 0]}, "is an object"),
                ([0, 0], "has 0 in it"),
                ([[0, 0], [1]], "has a list of 1 in it"),
                ([[0, 0], [1, 1, 1]], "has a list of 3 in it"),
                ([[0, 0], [1, "1"]], 'has "1" in it'),
                ([[0, 0], [1, False]], "has false in it"),
                ([[0, 0], [1, math.nan]], "has NaN in it"),
                ([[0, 0], [10**400, 1]], f"has 1{'0' * 56}… in it"),
                ([[0, 0]] * 10_001, "is a list of 10001"),
            )
        ),
        (line(segments=[row(path=[[0, 0], [2.36, 0]])]), f"segment 0 {OUTSIDE}"),
        (line(segments=[row(path=[[0, -2.3501]], start=[0, -2.3, 0])]), f"segment 0 {OUTSIDE}"),
        (line(segments=[row(start=[2.4, 0, 0], path=[[2.3, 0]])]), f"segment 0 {OUTSIDE}"),
        (line(segments=[row(start=[0.3, 0.41, 0])]), "segment 0 starts 0.51 m from its path; 0.5 m is the most"),
        (line(segments=[row(meaning=None)]), 'segment 0: "meaning" is null; it must be a list'),
        (line(segments=[row(meaning={"kind": "straight"})]), 'segment 0: "meaning" is an object; it must be a list'),
        (line(segments=[row(meaning=[7])]), "segment 0: clause 1 is 7; it must be an object"),
        (
            line(segments=[row(), row(meaning=[{"kind": "reach", "reference": 3}])]),
            'segment 1: a "reach" clause speaks of 3; it must be a fence (red, white, blue, yellow) or '
            "the number of one of 3 landmarks",
        ),
        (line(windows=None), '"windows" is null; it must be a list'),
        (line(windows={}), '"windows" is an object; it must be a list'),
        (in_scene(7), "window 1 is 7; it must be an object"),
        (in_scene({"segments": [0, 0]}), f'window 1: "at" is missing; {START}'),
        (in_scene({"at": [0, 0, 0]}), f'window 1: "segments" is missing; {SPAN}'),
        (in_scene({"segments": [0, 0], "at": [0, 0]}), f'window 1: "at" is a list of 2; {START}'),
        (in_scene({"segments": [0, 0], "at": [0, 0, math.nan]}), f'window 1: "at" has NaN in it; {START}'),
        *(
            (in_scene({"segments": span, "at": [0, 0, 0]}), f'window 1: "segments" {found}; {SPAN}')
            for span, found in (
                (0, "is 0"),
                ([0], "is a list of 1"),
                ([0, 1, 2], "is a list of 3"),
                ([0.0, 1], "has 0.0 in it"),
                ([False, True], "has false in it"),
                (["0", "1"], 'has "0" in it'),
            )
        ),
        *(
            (
                in_scene({"segments": [a, b], "at": [0, 0, 0]}),
                f"a window is of segments {a} to {b}, which",
            )
            for a, b in ((1, 0), (-1, 0), (0, 2))
        ),
        (in_scene(*[{"segments": [0, 1], "at": [0, 0, 0]}] * 2), "there are two windows of segments 0 to 1"),
    ],
)
def test_each_mistake_is_answered_with_one_sentence_that_names_it(document, sentence):
    message = complaint(document)
    assert message.startswith(f"line 3: {sentence}")
    assert len(message) < 300
    assert "\n" not in message


def test_what_is_just_allowed_is_read():
    edge = row(start=[-2.35, 2.35, 3], path=[[-2.35, 2.35], [2.35, -2.35]])
    off = row(start=[0.3, 0.4, 0])
    longest = row(instruction="x" * 2000, path=[[0, 0]] * 10_000)
    document = json.dumps(line(segments=[edge, off, longest, row(instruction="")]))
    read = Paragraph.from_json(document, LANDMARKS, "line 3")
    assert [len(entry.path) for entry in read.segments] == [2, 2, 10_000, 2]
    assert Paragraph.from_json(json.dumps(line(segments=[])), LANDMARKS, "line 3").segments == ()


def test_what_may_be_written_may_be_read_though_it_is_rounded(rng):
    for angle in rng.uniform(-math.pi, math.pi, 200):
        start = (0.5 * math.cos(angle), 0.5 * math.sin(angle))
        written = Paragraph("p", "train", "yard", (Segment("go", start, 0.0, np.zeros((1, 2))),))
        Paragraph.from_json(json.dumps(written.to_json()), LANDMARKS, "line 3")


def test_in_a_scene_paths_may_lead_anywhere():
    far = row(start=[40, -7, 0], path=[[40, -7], [42, -9]])
    window = {"segments": [0, 0], "at": [41, -8, 1.5]}
    document = line(layout="room", segments=[far], windows=[window])
    read = Paragraph.from_json(json.dumps(document), LANDMARKS, "line 3")
    assert read.windows == {(0, 0): Window(41, -8, 1.5)}
    assert complaint(line(layout="room", segments=[far])).endswith(OUTSIDE)


def test_no_damage_to_a_line_raises_anything_but_a_sentence(rng):
    good = json.dumps(random_paragraph(rng, scene=True).to_json())
    scraps = ["null", "[]", "{}", "true", '"x"', "-1", "1e999", "NaN", "9" * 400]
    sentences = []
    for _ in range(1500):
        document = json.loads(good)
        place, key = document, None
        while isinstance(place, dict | list) and place:
            keys = list(place) if isinstance(place, dict) else range(len(place))
            above, key = place, keys[rng.integers(len(keys))]
            place = above[key]
            if rng.random() < 0.3:
                break
        above[key] = json.loads(scraps[rng.integers(len(scraps))])
        try:
            Paragraph.from_json(json.dumps(document), LANDMARKS, "line 3")
        except WordwingError as error:
            sentences.append(str(error))
    assert len(sentences) > 1000
    assert not any("\n" in sentence for sentence in sentences)
