import math
from itertools import combinations

import numpy as np
import pytest
from scipy import ndimage

from wordwing.errors import WordwingError
from wordwing.world.catalogue import landmark, landmarks
from wordwing.world.fences import FENCES
from wordwing.world.samplers import ROOMS, _scatter, sample_layout

UNIT = 0.0047


def distance(a, b) -> float:
    return math.dist((a.x, a.y), (b.x, b.y))


@pytest.fixture(scope="module")
def fields():
    rng = np.random.default_rng(1)
    return [sample_layout("field", rng) for _ in range(120)]


@pytest.fixture(scope="module")
def cages():
    rng = np.random.default_rng(2)
    return [sample_layout("cage", rng) for _ in range(200)]


@pytest.fixture(scope="module")
def houses():
    rng = np.random.default_rng(3)
    return [sample_layout("house", rng) for _ in range(200)]


def test_every_layout_is_valid(fields, cages, houses):
    for layout in fields + cages + houses:
        layout.validate()


@pytest.mark.parametrize("corpus", ["field", "cage", "house"])
def test_equal_seeds_give_equal_layouts_and_others_do_not(corpus):
    first, again, other = (
        [sample_layout(corpus, rng) for _ in range(3)] for rng in map(np.random.default_rng, (5, 5, 6))
    )
    assert first == again
    assert first != other
    assert first[0] != first[1]


def test_fields_have_6_to_13_different_landmarks_of_the_63(fields):
    assert {len(layout.landmarks) for layout in fields} == set(range(6, 14))
    for layout in fields:
        names = [entry.name for entry in layout.landmarks]
        assert len(set(names)) == len(names)
    met = {entry.name for layout in fields for entry in layout.landmarks}
    assert met == {entry.name for entry in landmarks("field")}
    assert len(met) == 63


def test_fields_keep_the_authors_distances(fields):
    for layout in fields:
        for entry in layout.landmarks:
            assert 1.0 - 1e-3 <= entry.radius / landmark(entry.name).radius <= 1.3 + 1e-3
            for coordinate in (entry.x, entry.y):
                assert 90 <= round(coordinate / UNIT + 500, 6) <= 910
        for a, b in combinations(layout.landmarks, 2):
            assert distance(a, b) >= a.radius + b.radius + 60 * UNIT - 1e-9


def test_cages_have_5_to_8_different_landmarks_of_the_15(cages):
    assert {len(layout.landmarks) for layout in cages} == {5, 6, 7, 8}
    for layout in cages:
        names = [entry.name for entry in layout.landmarks]
        assert len(set(names)) == len(names)
    met = {entry.name for layout in cages for entry in layout.landmarks}
    assert met == {entry.name for entry in landmarks("cage")}
    assert len(met) == 15


def test_cages_keep_the_authors_distances(cages):
    near_container = math.inf
    for layout in cages:
        for entry in layout.landmarks:
            assert entry.radius == pytest.approx(0.47)
            for coordinate in (entry.x, entry.y):
                assert 100 <= round(coordinate / UNIT + 500, 6) <= 900
        for a, b in combinations(layout.landmarks, 2):
            assert distance(a, b) >= 260 * UNIT - 1e-9
            if "Container" in (a.name, b.name):
                near_container = min(near_container, distance(a, b))
    assert near_container >= 270 * UNIT - 1e-9
    assert near_container < 280 * UNIT


def test_places_and_headings_cover_their_ranges(fields, cages):
    for layouts, limit in ((fields, 1.927), (cages, 1.88)):
        entries = [entry for layout in layouts for entry in layout.landmarks]
        for values, reach in (
            ([entry.x for entry in entries], limit),
            ([entry.y for entry in entries], limit),
            ([entry.yaw for entry in entries], math.pi),
        ):
            shares, _ = np.histogram(values, bins=8, range=(-reach, reach))
            assert shares.sum() == len(entries)
            assert shares.min() > 0.08 * len(entries)


def test_coordinates_are_whole_millimetres(fields, cages, houses):
    for layout in fields + cages + houses:
        for entry in layout.landmarks:
            assert (entry.x, entry.y) == (round(entry.x, 3), round(entry.y, 3))


def test_scattering_gives_up_where_there_is_no_room(rng):
    assert _scatter(np.full(40, 0.5), edge=0.4, tries=100, rng=rng) is None


def test_rooms_have_5_to_14_pieces_and_use_all_26():
    for furnishings in ROOMS.values():
        assert sum(item.low for item in furnishings) >= 5
        assert sum(item.high for item in furnishings) <= 14
        # What a room has at least must not hang on a host that it may lack.
        certain = {item.name for item in furnishings if item.low > 0}
        assert all(set(item.hosts) & certain for item in furnishings if item.hosts and item.low > 0)
    names = {item.name for furnishings in ROOMS.values() for item in furnishings}
    assert names == {entry.name for entry in landmarks("house")}
    assert len(names) == 26


def test_houses_hold_what_their_kind_of_room_allows(houses):
    kinds = set()
    for layout in houses:
        names = [entry.name for entry in layout.landmarks]
        assert 5 <= len(names) <= 14
        fitting = [
            kind
            for kind, furnishings in ROOMS.items()
            if set(names) <= {item.name for item in furnishings}
            and all(item.low <= names.count(item.name) <= item.high for item in furnishings if not item.hosts)
        ]
        assert fitting
        kinds.update(fitting[:1])
    assert kinds == set(ROOMS)
    assert {entry.name for layout in houses for entry in layout.landmarks} == {
        entry.name for entry in landmarks("house")
    }


def test_furniture_stands_with_its_back_to_a_wall_and_one_wall_stays_free(houses):
    loose = {"DiningTable", "CoffeeTable", "Ottoman"}
    for layout in houses:
        used = set()
        for entry in layout.landmarks:
            if entry.name in loose or entry.elevation > 0:
                continue
            front = (math.cos(entry.yaw), math.sin(entry.yaw))
            (wall,) = (fence for fence in FENCES if fence.normal == pytest.approx(front, abs=1e-3))
            gap = (entry.x - wall.start[0]) * front[0] + (entry.y - wall.start[1]) * front[1]
            assert gap == pytest.approx(landmark(entry.name).footprint, abs=2e-3)
            used.add(wall.colour)
        assert 1 <= len(used) <= 3


def test_small_appliances_stand_on_furniture_of_their_height(houses):
    hosts = {
        "Microwave": {"CounterTop"},
        "CoffeeMachine": {"CounterTop"},
        "DeskLamp": {"Desk", "Dresser", "SideTable"},
    }
    met = set()
    for layout in houses:
        for entry in layout.landmarks:
            if entry.name not in hosts:
                assert entry.elevation == 0
                continue
            (host,) = (
                other for other in layout.landmarks if other is not entry and (other.x, other.y) == (entry.x, entry.y)
            )
            assert host.name in hosts[entry.name]
            assert entry.elevation == landmark(host.name).height
            met.add(entry.name)
    assert met == set(hosts)


def test_two_thirds_of_a_house_are_open_floor_in_one_piece(houses):
    ticks = np.arange(-2.30, 2.35, 0.1)
    cells = np.stack(np.meshgrid(ticks, ticks), axis=-1)
    for layout in houses[:100]:
        apart = np.linalg.norm(cells[:, :, None] - layout.centres, axis=-1)
        parts, _ = ndimage.label((apart > layout.keep_out).all(axis=-1))
        assert np.bincount(parts.ravel())[1:].max() / parts.size > 2 / 3


@pytest.mark.parametrize(
    ("corpus", "wanted"),
    [
        ("cage", ("Boat", "Gorilla")),
        ("field", ("Well", "Barrel", "Tank", "BigHouse", "Beacon")),
        ("house", ("Bed", "DeskLamp")),
        ("cage", tuple(entry.name for entry in landmarks("cage"))[:8]),
    ],
)
def test_what_is_wanted_is_there_once_in_an_otherwise_usual_layout(corpus, wanted):
    rng = np.random.default_rng(3)
    others = set()
    for _ in range(10):
        layout = sample_layout(corpus, rng, wanted)
        layout.validate()
        names = [entry.name for entry in layout.landmarks]
        assert set(wanted) <= set(names)
        if corpus != "house":
            assert len(set(names)) == len(names)
        others |= set(names) - set(wanted)
    assert len(others) > 4 or len(wanted) == 8


def test_wanting_nothing_changes_nothing():
    for corpus in ("field", "cage", "house"):
        assert sample_layout(corpus, np.random.default_rng(1)) == sample_layout(corpus, np.random.default_rng(1), ())


@pytest.mark.parametrize(
    ("corpus", "wanted", "sentence"),
    [
        ("cage", ("Toilet",), "no cage has a toilet"),
        ("house", ("Bed", "Toilet"), "no room has a bed and a toilet in it"),
        (
            "cage",
            tuple(entry.name for entry in landmarks("cage")),
            "15 landmarks are wanted in a cage, where at most 8",
        ),
        ("field", ("Barrell",), 'no landmark is called "Barrell"'),
    ],
)
def test_what_cannot_be_together_is_told_in_a_sentence(corpus, wanted, sentence):
    with pytest.raises(WordwingError, match=sentence):
        sample_layout(corpus, np.random.default_rng(0), wanted)
