import math
from collections import Counter

import numpy as np
import pytest

from house_rooms import KINDS, random_furniture, random_walk
from wordwing.data.furniture import (
    ANCHORS,
    CLEARANCE,
    HOSTS,
    LAST_HOSTS,
    MAX_MOVE,
    MAX_STRAY,
    NAMED,
    FurnishingReport,
    furnish,
)
from wordwing.errors import WordwingError
from wordwing.world.catalogue import landmark


def random_ground(rng: np.random.Generator, walks: int = 2) -> np.ndarray:
    """[E, 2, 2] lines of walks."""
    paths = [np.array(random_walk(rng, 10, tuple((rng.integers(-8, 9, 2) * 0.25).tolist()))) for _ in range(walks)]
    return np.concatenate([np.stack([path[:-1], path[1:]], axis=1) for path in paths])


def sampled_distance(point: tuple[float, float], lines: np.ndarray) -> float:
    """Distance to lines by 101 points on each."""
    share = np.linspace(0, 1, 101)[:, None, None]
    points = (lines[:, 0] * (1 - share) + lines[:, 1] * share).reshape(-1, 2)
    return float(np.hypot(*(points - point).T).min())


def moved(pieces, scene) -> list[float]:
    """For each piece of the scene the distance to the nearest raw piece of its name."""
    return [
        min(math.dist((entry.x, entry.y), (x, y)) for name, x, y in pieces if name == entry.name)
        for entry in scene.landmarks
    ]


def test_all_furniture_is_ranked_and_hosts_are_furniture():
    assert sorted(NAMED) == sorted(KINDS)
    for table in (HOSTS, LAST_HOSTS):
        assert {*table, *(host for hosts in table.values() for host in hosts)} <= set(KINDS)
        assert not ANCHORS & set(table), "what never moves never climbs"


def test_any_room_becomes_a_scene_in_which_everything_stands(rng):
    total = []
    for _ in range(60):
        pieces = random_furniture(rng, int(rng.integers(1, 25)))
        scene, report = furnish(pieces)
        scene.validate()
        total.append(report)
        assert report.pieces == len(pieces)
        assert report.kept == len(scene.landmarks)
        assert Counter(name for name, _, _ in pieces) == Counter(
            [*(entry.name for entry in scene.landmarks), *report.left_out]
        )
        assert report.stacked == sum(entry.elevation > 0 for entry in scene.landmarks)
        assert max(moved(pieces, scene)) <= MAX_MOVE + 0.002
        assert all(distance <= MAX_MOVE + 0.002 for distance in report.moved)
        assert len(report.moved) >= sum(distance > 0.002 for distance in moved(pieces, scene))
    together = FurnishingReport.total(total)
    assert together.pieces == sum(report.pieces for report in total)
    assert len(together.left_out) == together.pieces - together.kept
    assert together.stacked > 20


def test_walked_ground_stays_free(rng):
    for _ in range(40):
        pieces, ground = random_furniture(rng, 10), random_ground(rng)
        scene, _ = furnish(pieces, ground)
        raw = {(x, y): sampled_distance((x, y), ground) - landmark(name).footprint for name, x, y in pieces}
        for entry in scene.landmarks:
            gap = sampled_distance((entry.x, entry.y), ground) - entry.kind.footprint
            assert gap >= -0.002
            if (entry.x, entry.y) not in raw:
                assert gap >= min(CLEARANCE, min(max(value, 0.0) for value in raw.values())) - 0.002


def test_a_piece_on_walked_ground_is_moved_off_it_by_the_shortest_way():
    line = np.array([[[-5.0, 0.0], [5.0, 0.0]]])
    scene, report = furnish([("Bed", 0.0, 0.1)], line)
    [bed] = scene.landmarks
    assert abs(bed.y) == pytest.approx(0.5, abs=0.021)
    assert bed.y > 0
    assert bed.x == 0
    assert MAX_MOVE < report.moved[0] <= MAX_STRAY


def test_a_piece_that_cannot_leave_walked_ground_is_left_out():
    steps = np.arange(-2, 2.01, 0.25)
    ground = np.array([[[x, -2.0], [x, 2.0]] for x in steps])
    scene, report = furnish([("Bed", 0.0, 0.0)], ground)
    assert scene.landmarks == ()
    assert report.left_out == ("Bed",)


@pytest.mark.parametrize(
    ("guest", "host"),
    [("Microwave", "CounterTop"), ("CoffeeMachine", "DiningTable"), ("DeskLamp", "Desk"), ("SinkBasin", "Cabinet")],
)
def test_small_things_stand_on_furniture_as_at_home(guest, host):
    # Reading order does not matter, and guests look where their hosts do: here to the walked ground in the south.
    walked = np.array([[[-1.0, -1.0], [1.0, -1.0]]])
    scene, report = furnish([(guest, 0.05, 0.1), (host, 0.0, 0.0)], walked)
    top, bottom = scene.landmarks
    assert (top.name, top.elevation) == (guest, landmark(host).height)
    assert (top.x, top.y, bottom.x, bottom.y) == (0.05, 0.1, 0, 0)
    assert top.yaw == bottom.yaw == pytest.approx(-math.pi / 2, abs=1e-5)
    assert (report.stacked, report.moved, report.left_out) == (1, (), ())


def test_two_pieces_are_moved_apart_no_farther_than_needed():
    # Side tables have a footprint of 0.24 m: 0.08 m are missing.
    scene, report = furnish([("SideTable", 0.0, 0.0), ("SideTable", 0.4, 0.0)])
    a, b = scene.landmarks
    assert 0.48 - 1e-6 <= math.dist((a.x, a.y), (b.x, b.y)) <= 0.51
    assert sum(report.moved) <= 0.11


@pytest.mark.parametrize(("big", "small"), [("Fridge", "GarbageCan"), ("Bed", "SideTable"), ("Sofa", "FloorLamp")])
def test_the_big_piece_stays_and_the_small_one_moves(big, small):
    reach = landmark(big).footprint + landmark(small).footprint
    for pieces in ([(big, 1.0, 1.0), (small, 1.0 + reach - 0.1, 1.0)], [(small, 1.0, 1.0), (big, 1.0, 1.1 - reach)]):
        scene, report = furnish(pieces)
        raw = {name: (x, y) for name, x, y in pieces}
        for entry in scene.landmarks:
            assert math.dist((entry.x, entry.y), raw[entry.name]) == pytest.approx(
                0 if entry.name == big else 0.1, abs=0.021
            )
        assert report.left_out == ()


def test_where_two_cannot_be_the_one_named_less_is_left_out():
    scene, report = furnish([("GarbageCan", 0.0, 0.0), ("Fridge", 0.05, 0.0)])
    assert [entry.name for entry in scene.landmarks] == ["Fridge"]
    assert report.left_out == ("GarbageCan",)


@pytest.mark.parametrize(("quarter", "side"), [(0, (2, 0)), (1, (0, 2)), (2, (-2, 0)), (-1, (0, -2))])
def test_fronts_look_to_where_people_stand(quarter, side):
    stood = np.array([[side, side]], float) / 2
    far = np.array([[[-9.0, -9.0], [-9.0, -9.0]]])
    [sofa] = furnish([("Sofa", 0.0, 0.0)], np.concatenate([stood, far]))[0].landmarks
    assert math.remainder(sofa.yaw - quarter * math.pi / 2, 2 * math.pi) == pytest.approx(0, abs=1e-5)


def test_without_walks_fronts_look_to_the_middle_of_the_room():
    pieces = [("Sofa", -2.0, 0.0), ("Fridge", 2.0, 0.2), ("Bed", 0.1, 2.0), ("Toilet", 0.0, -2.0)]
    scene, _ = furnish(pieces)
    assert [round(math.cos(entry.yaw)) for entry in scene.landmarks] == [1, -1, 0, 0]
    assert [round(math.sin(entry.yaw)) for entry in scene.landmarks] == [0, 0, -1, 1]


def test_the_same_room_is_furnished_the_same_way(rng):
    pieces, ground = random_furniture(rng, 20), random_ground(rng)
    assert furnish(pieces, ground) == furnish(list(pieces), ground.copy())


def test_an_empty_room_is_an_empty_scene():
    assert furnish([])[0].landmarks == ()


def test_unknown_furniture_is_named_with_its_scene_or_skipped_when_asked():
    pieces = [("Sofa", 0.0, 0.0), ("Fridgge", 2.0, 0.0)]
    with pytest.raises(WordwingError, match=r'^attic: a piece is called "Fridgge"; did you mean "Fridge"\?$'):
        furnish(pieces, where="attic")
    with pytest.raises(WordwingError, match=r'"Barrel".*no furniture'):
        furnish([("Barrel", 0.0, 0.0)])
    scene, report = furnish(pieces, skip_unknown=True)
    assert [entry.name for entry in scene.landmarks] == ["Sofa"]
    assert (report.pieces, report.unknown) == (1, ("Fridgge",))


def test_rooms_without_bounds_are_refused():
    with pytest.raises(WordwingError, match="Sofa is at"):
        furnish([("Sofa", math.inf, 0.0)])
    with pytest.raises(WordwingError, match="500 is the most"):
        furnish([("Sofa", 0.0, 0.0)] * 501)
