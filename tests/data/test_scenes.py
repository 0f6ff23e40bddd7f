import json
import math
from dataclasses import replace

import numpy as np
import pytest

from house_rooms import random_furniture
from wordwing.data.furniture import furnish
from wordwing.data.scenes import MAX_PIECES, Scene
from wordwing.data.schema import Window
from wordwing.errors import WordwingError
from wordwing.frames import ARENA_HALF
from wordwing.world.layout import Placement

TABLE = Placement("DiningTable", 0.0, 0.0, yaw=0.3)
OVEN = Placement("Microwave", 0.1, 0.0, elevation=0.56)


def random_scene(rng: np.random.Generator) -> Scene:
    return furnish(random_furniture(rng, int(rng.integers(1, 30)), size=6.0))[0]


def random_window(rng: np.random.Generator) -> Window:
    return Window(*rng.uniform(-3, 3, 2).tolist(), rng.uniform(-math.pi, math.pi))


def reaches(piece: Placement, window: Window) -> float:
    """How far from the window's centre, along its axes, the footprint of a piece reaches."""
    turned = complex(piece.x - window.x, piece.y - window.y) * complex(math.cos(-window.yaw), math.sin(-window.yaw))
    return max(abs(turned.real), abs(turned.imag)) + piece.kind.footprint


def test_every_cut_is_a_valid_layout_of_the_pieces_inside(rng):
    stacked = fallen = 0
    for scene in [random_scene(rng) for _ in range(60)] * 20:
        window = random_window(rng)
        layout = scene.cut(window)
        layout.validate()
        expected = [piece for piece in scene.landmarks if reaches(piece, window) <= ARENA_HALF]
        standing = [piece for piece in expected if piece.elevation == 0]
        names = [entry.name for entry in layout.landmarks]
        assert len(standing) <= len(names) <= len(expected)
        left = iter(names)
        assert all(piece.name in left for piece in standing), "pieces on the floor are all there, in order"
        stacked += sum(entry.elevation > 0 for entry in layout.landmarks)
        fallen += sum(piece.elevation > 0 for piece in expected) - sum(e.elevation > 0 for e in layout.landmarks)
    assert stacked > 50
    assert fallen > 5


def test_a_cut_keeps_distances_and_headings_between_pieces(rng):
    scene = Scene((TABLE, Placement("Sofa", 1.2, -0.5, yaw=2.0, radius=0.6)))
    window = Window(0.3, 0.2, 2.5)
    table, sofa = scene.cut(window).landmarks
    assert math.dist((table.x, table.y), (sofa.x, sofa.y)) == pytest.approx(1.3)
    assert math.remainder(sofa.yaw - table.yaw - 1.7, 2 * math.pi) == pytest.approx(0, abs=1e-12)
    bearing = math.atan2(sofa.y - table.y, sofa.x - table.x)
    assert math.remainder(bearing - table.yaw - (math.atan2(-0.5, 1.2) - 0.3), 2 * math.pi) == pytest.approx(
        0, abs=1e-12
    )
    assert (sofa.radius, table.radius) == (0.6, None)


def test_a_guest_keeps_its_height_on_its_host_and_falls_when_the_host_is_cut_away():
    scene = Scene((TABLE, replace(OVEN, x=0.3)))
    assert [entry.elevation for entry in scene.cut(Window(0.0, 0.0, 0.0)).landmarks] == [0.0, 0.56]
    # At x = 2.24 the table, 0.42 m wide, reaches to −2.66 in the window's frame; the microwave only to −2.24.
    [oven] = scene.cut(Window(2.24, 0.0, 0.0)).landmarks
    assert (oven.name, oven.elevation) == ("Microwave", 0.0)
    assert (oven.x, oven.y) == pytest.approx((-1.94, 0.0))


def test_a_fallen_guest_that_finds_no_floor_is_left_out():
    # The sofa, lower than the table, stands under the microwave's edge.
    scene = Scene((TABLE, replace(OVEN, x=0.3), Placement("Sofa", 0.95, 0.0)))
    scene.validate()
    assert [entry.name for entry in scene.cut(Window(2.24, 0.0, 0.0)).landmarks] == ["Sofa"]


def test_a_stack_of_three_comes_down_together():
    scene = Scene((TABLE, replace(OVEN, x=0.3), Placement("Ottoman", 0.35, 0.0, elevation=0.56 + 0.4)))
    scene.validate()
    cut = scene.cut(Window(2.24, 0.0, 0.0))
    assert [(entry.name, entry.elevation) for entry in cut.landmarks] == [("Microwave", 0.0), ("Ottoman", 0.4)]
    cut.validate()


def test_what_hangs_without_a_host_keeps_its_height():
    scene = Scene((Placement("Cabinet", 0.0, 0.0, elevation=0.9),))
    assert scene.cut(Window(0.0, 0.0, 1.0)).landmarks[0].elevation == 0.9


def test_at_most_40_pieces_are_cut_out_and_they_are_the_nearest():
    grid = [(0.45 * i, 0.45 * j) for i in range(-6, 7) for j in range(-6, 7)]
    scene = Scene(tuple(Placement("GarbageCan", x, y) for x, y in grid))
    layout = scene.cut(Window(0.05, 0.02, 0.0))
    layout.validate()
    nearest = sorted(math.dist(place, (0.05, 0.02)) for place in grid)[:40]
    assert sorted(math.hypot(entry.x, entry.y) for entry in layout.landmarks) == pytest.approx(nearest)


def test_an_empty_scene_gives_an_empty_layout():
    assert Scene(()).cut(Window(0.0, 0.0, 0.0)).landmarks == ()
    assert Scene.from_json([], "x").landmarks == ()


def test_scenes_survive_json(rng):
    for _ in range(20):
        scene = random_scene(rng)
        assert Scene.from_json(json.loads(json.dumps(scene.to_json())), "here") == scene
    assert Scene((TABLE,)).to_json() == [{"name": "DiningTable", "x": 0.0, "y": 0.0, "yaw": 0.3}]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({}, "this is an object; it must be a list"),
        ([3], "landmark 1 is 3; it must be an object"),
        ([{"name": "Sofa", "x": 0}], 'landmark 1: "y" is missing; it must be a finite number'),
        ([{"name": "Soffa", "x": 0, "y": 0}], 'landmark 1 is called "Soffa"; did you mean "Sofa"?'),
        ([{"name": "Sofa", "x": 0, "y": 0, "z": 1}], 'landmark 1 has an unknown key "z"'),
        ([{"name": "Sofa", "x": float("nan"), "y": 0}], '"x" is NaN; it must be a finite number of metres'),
        ([{"name": "Sofa", "x": 2000, "y": 0}], "x and y must be between ±1000 m"),
        ([{"name": "Sofa", "x": 0, "y": 0, "elevation": -1}], "has elevation -1.0"),
        (
            [{"name": "Sofa", "x": 9, "y": 9}, {"name": "Bed", "x": 9.5, "y": 9}],
            "landmark 2 (Bed) overlaps landmark 1 (Sofa) by 0.48 m",
        ),
        ([{"name": "Sofa", "x": i, "y": 0} for i in range(MAX_PIECES + 1)], f"{MAX_PIECES} is the most"),
    ],
)
def test_each_mistake_in_a_scene_gets_a_sentence(rows, words):
    with pytest.raises(WordwingError) as raised:
        Scene.from_json(rows, "here")
    assert str(raised.value).startswith("here: ")
    assert words in str(raised.value)
