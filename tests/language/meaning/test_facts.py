"""What is found to say about flights drawn by hand, about flights in a mirror, and about walks."""

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from walked_flights import Flight, walked_flights
from wordwing.language.meaning.clauses import KINDS, Clause
from wordwing.language.meaning.facts import TRUE, Facts
from wordwing.language.meaning.flown_path import ALL, FIRST, LAST, Track
from wordwing.language.meaning.judge import judge
from wordwing.world.layout import Layout, Placement

QUARTER, HALF, FULL = math.pi / 2, math.pi, 2 * math.pi
Path = list[tuple[float, float]]


def arena(*places: tuple[float, float]) -> Layout:
    """Barrels, whose footprint is 0.24 m."""
    return Layout(tuple(Placement("Barrel", x, y) for x, y in places))


def arc(radius: float, begin: float, sweep: float, x: float = 0.0, y: float = 0.0) -> Path:
    """A part of a circle, counter-clockwise for a positive sweep; angles in degrees."""
    angles = np.radians(begin + np.linspace(0, sweep, 60))
    return [(x + radius * math.cos(a), y + radius * math.sin(a)) for a in angles]


EMPTY, MIDDLE, GATE = arena(), arena((0, 0)), arena((0, 0.6), (0, -0.6))


def said(path: Path, yaw: float, layout: Layout) -> list[Clause]:
    return [fact.clause for fact in Facts(Track(path, yaw, layout)).true()]


def kinds(clauses: list[Clause]) -> set[str]:
    return {clause.kind for clause in clauses}


Case = tuple[str, Path, float, Layout, list[Clause], list[str]]
CASES: list[Case] = [
    (
        "a metre straight ahead",
        [(0, 0), (1, 0)],
        0.0,
        EMPTY,
        [Clause("straight"), Clause("forward", amount=1.1)],
        ["turn", "turn_around", "curve", "turn_to"],
    ),
    (
        "off to the left",
        [(0, 0), (0, 1)],
        0.0,
        EMPTY,
        [Clause("turn", side="left", amount=QUARTER)],
        ["turn_around", "curve"],
    ),
    (
        "a little to the right",
        [(0, 0), (1, -0.6)],
        0.0,
        EMPTY,
        [Clause("turn", side="right", amount=math.radians(35))],
        ["turn_around", "curve"],
    ),
    ("back", [(0, 0), (-1, 0)], 0.0, EMPTY, [Clause("turn_around")], ["turn"]),
    ("a bend to the right", arc(1, 90, -80), 0.0, EMPTY, [Clause("curve", side="right")], ["turn"]),
    (
        "past a barrel on the left",
        [(-0.8, -0.5), (0.8, -0.5)],
        0.0,
        MIDDLE,
        [Clause("pass", 0, side="left")],
        ["reach", "turn", "between"],
    ),
    (
        "until it is beside the drone",
        [(-1.2, 0.6), (0, 0.6)],
        0.0,
        MIDDLE,
        [Clause("abeam", 0, side="right")],
        ["between", "turn"],
    ),
    (
        "a quarter around it",
        arc(0.6, -135, 90),
        -math.pi / 4,
        MIDDLE,
        [Clause("circle", 0, side="left", amount=round(QUARTER, 4))],
        ["turn"],
    ),
    (
        "all around it, clockwise",
        arc(0.6, 90, -360),
        0.0,
        MIDDLE,
        [Clause("circle", 0, side="right", amount=round(FULL, 4)), Clause("hug", 0, side="right")],
        ["turn"],
    ),
    ("through a gate", [(-1, 0), (1, 0)], 0.0, GATE, [Clause("between", 0, 1)], ["turn", "curve"]),
    ("into a gate", [(-1, 0), (0, 0)], 0.0, GATE, [Clause("reach_between", 0, 1)], ["turn"]),
    (
        "to a barrel",
        [(-1.8, 0), (-0.5, 0)],
        0.0,
        MIDDLE,
        [Clause("reach", 0), Clause("toward", 0), Clause("reach_side", 0, side="front")],
        ["pass", "leave", "turn_to", "face"],
    ),
    (
        "behind a barrel",
        [(-1.8, 0), (-0.5, -0.7), (0.5, -0.5), (0.6, 0)],
        0.0,
        MIDDLE,
        [Clause("reach_side", 0, side="behind")],
        [],
    ),
    ("away from a barrel", [(0.5, 0), (1.8, 0)], 0.0, MIDDLE, [Clause("leave", 0)], ["reach", "turn_to"]),
    (
        "turned to a barrel and towards it",
        [(0, -1.8), (0, -1.0)],
        0.0,
        MIDDLE,
        [Clause("turn_to", 0), Clause("toward", 0)],
        ["turn_around"],
    ),
    (
        "round a corner to face a barrel",
        [(-1.5, 1.5), (0, 1.5), (0, 0.8)],
        0.0,
        MIDDLE,
        [Clause("face", 0), Clause("curve", side="right")],
        ["turn"],
    ),
    (
        "to the red fence",
        [(0.5, 0), (2.0, 0)],
        0.0,
        EMPTY,
        [Clause("reach_fence", "red"), Clause("toward", "red")],
        ["along"],
    ),
    (
        "along the white fence",
        [(-1, -1.9), (1, -1.9)],
        0.0,
        EMPTY,
        [Clause("along", "white", side="right")],
        ["reach_fence"],
    ),
    ("between a barrel and a fence", [(-1, 1.8), (1, 1.8)], 0.0, arena((0, 1.3)), [Clause("between", 0, "yellow")], []),
]


@pytest.mark.parametrize(
    ("path", "yaw", "layout", "expected", "missing"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_flight_drawn_by_hand_has_what_a_person_would_say_of_it(path, yaw, layout, expected, missing):
    found = said(path, yaw, layout)
    assert [clause for clause in expected if clause not in found] == []
    assert not kinds(found) & set(missing)


SHAPES = {
    "straight": [(-1.2, -0.4), (1.2, -0.4)],
    "a bend to the left": arc(1.4, -120, 80),
    "a bend to the right": arc(1.4, 150, -100),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_what_stands_on_one_side_is_passed_on_that_side_only(shape, side):
    path = np.array(SHAPES[shape])
    track = Track(path, 0.0, EMPTY)
    ahead = np.stack([np.cos(track.depart), np.sin(track.depart)], axis=-1)
    aside = np.stack([-ahead[:, 1], ahead[:, 0]], axis=-1) * (1 if side == "left" else -1)
    places = (track.points + 0.65 * aside)[[len(track) // 4, len(track) // 2, 3 * len(track) // 4]]
    layout = arena(*(tuple(place) for place in places))
    found = said(SHAPES[shape], float(track.depart[0]), layout)
    beside = [clause for clause in found if clause.kind in ("pass", "circle", "hug", "abeam")]
    assert {clause.side for clause in beside} == {side}
    assert {clause.reference for clause in beside if clause.kind == "pass"} == {0, 1, 2}


def test_nothing_is_said_of_being_beside_what_is_far_away():
    far = [clause for clause in said([(-1, -1.6), (1, -1.6)], 0.0, arena((0, 0.5))) if clause.references == (0,)]
    assert not kinds(far) & {"pass", "circle", "hug", "abeam", "reach", "reach_side", "leave"}


def test_a_fact_can_come_last_only_if_it_is_true_of_the_end():
    def ends(clause: Clause, path: Path, layout: Layout) -> bool:
        [fact] = [fact for fact in Facts(Track(path, 0.0, layout)).true() if fact.clause == clause]
        return fact.ends

    beside = Clause("pass", 0, side="left")
    assert ends(beside, [(-1, -0.5), (0.6, -0.5)], MIDDLE)
    # Two metres past it the barrel is no place to stop any more.
    assert not ends(beside, [(-1, -0.5), (2.2, -0.5)], MIDDLE)
    inside = Clause("reach_between", 0, 1)
    assert ends(inside, [(-1, 0), (0, 0)], GATE)
    assert not ends(inside, [(-1, 0), (1, 0)], GATE)


def test_facts_of_some_sections_are_those_of_all_that_are_true_of_them(found):
    for track, known in found:
        for begins, ends in ((ALL, LAST), (FIRST, ALL)):
            wanted = [
                (fact.clause, fact.score[begins, ends].tolist()) for fact in known if fact.true[begins, ends].any()
            ]
            assert [(fact.clause, fact.score.tolist()) for fact in Facts(track).true(KINDS, begins, ends)] == wanted


def test_a_drone_that_hovers_has_gone_nowhere():
    assert not kinds(said([(0, 0), (0, 0)], 0.0, EMPTY)) & {"straight", "forward", "curve", "toward", "along"}
    assert Facts(Track([(0, 0)], 0.0, EMPTY)).true() == Facts(Track([(0, 0), (0, 0)], 0.0, EMPTY)).true()


MIRROR = {"left": "right", "right": "left", "white": "yellow", "yellow": "white"}
"""Across the x axis."""
TURN = {"red": "yellow", "yellow": "blue", "blue": "white", "white": "red"}
"""By a quarter, counter-clockwise: x ahead becomes y."""


def seen(clause: Clause, names: dict[str, str]) -> Clause:
    """A clause with fences and sides renamed."""
    reference, other = (names.get(str(entry), entry) for entry in (clause.reference, clause.other))
    return replace(clause, reference=reference, other=other, side=names.get(str(clause.side), clause.side))


def moved(flight: Flight, matrix: list[list[int]]) -> Flight:
    """A flight and its layout, turned or mirrored."""
    turn = np.array(matrix)
    places = flight.layout.centres @ turn.T
    layout = Layout(
        tuple(replace(entry, x=x, y=y) for entry, (x, y) in zip(flight.layout.landmarks, places.tolist(), strict=True))
    )
    heading = turn @ [math.cos(flight.start_yaw), math.sin(flight.start_yaw)]
    return Flight(flight.path @ turn.T, math.atan2(heading[1], heading[0]), layout)


@pytest.mark.parametrize(
    ("matrix", "names"),
    [([[1, 0], [0, -1]], MIRROR), ([[0, -1], [1, 0]], TURN)],
    ids=["mirrored", "turned"],
)
def test_a_world_seen_otherwise_has_the_same_facts_with_other_sides_and_fences(matrix, names, rng):
    for flights in walked_flights("field", 12, rng):
        for flight in flights:
            renamed = {seen(fact.clause, names) for fact in Facts(flight.track).true()}
            assert renamed == {fact.clause for fact in Facts(moved(flight, matrix).track).true()}


@pytest.fixture(scope="module")
def found():
    """Tracks of both corpora, each with its facts."""
    rng = np.random.default_rng(11)
    flights = [flight for corpus in ("field", "cage") for part in walked_flights(corpus, 20, rng) for flight in part]
    return [(flight.track, Facts(flight.track).true()) for flight in flights]


def test_facts_are_valid_clauses_of_nearly_every_kind(found):
    everything = [fact.clause for _, known in found for fact in known]
    for track, known in found:
        for fact in known:
            fact.clause.validate(len(track.layout.landmarks), "fact")
    assert len(kinds(everything)) >= 17


def test_what_is_said_of_places_is_true_of_a_part_of_the_path_by_the_judge(found, rng):
    # What turns on headings is seen otherwise where a part of the path is cut off.
    headed = ("turn", "turn_around", "turn_to", "straight", "forward", "curve", "toward", "circle")
    for track, known in found:
        for fact in known:
            if fact.clause.kind in headed:
                continue
            sections = np.argwhere(fact.score >= TRUE)
            parts = [sections[k] for k in rng.permutation(len(sections))[:3]]
            scores = [
                judge([fact.clause], track.points[i : j + 1], track.arrive[i], track.layout).score for i, j in parts
            ]
            assert max(scores) >= 0.95, fact.clause


def between(a: np.ndarray, b: np.ndarray) -> float:
    """The angle from one direction to another, left positive."""
    return math.remainder(math.atan2(b[1], b[0]) - math.atan2(a[1], a[0]), 2 * math.pi)


def test_what_is_said_of_directions_is_true_of_the_points_flown(found):
    for track, known in found:
        points, layout = track.points, track.layout
        heading = np.array([math.cos(track.start_yaw), math.sin(track.start_yaw)])
        ahead = points[min(3, len(points) - 1)] - points[0]  # a quarter of a metre
        lengths = np.linalg.norm(points - points[:, None], axis=-1)
        for clause in (fact.clause for fact in known):
            if clause.kind == "turn":
                signed = between(heading, ahead) * (1 if clause.side == "left" else -1)
                assert abs(signed - clause.amount) < math.radians(50)
            if clause.kind == "turn_around":
                assert abs(between(heading, ahead)) > math.radians(125)
            if clause.kind in ("turn_to", "toward") and isinstance(clause.reference, int):
                assert abs(between(ahead, layout.centres[clause.reference] - points[0])) < math.radians(40)
            if clause.kind == "curve":
                turns = [between(a, b) for a, b in pairwise(np.diff(points, axis=0))]
                total = np.concatenate([[0], np.cumsum(turns)]) * (1 if clause.side == "left" else -1)
                assert (total - np.minimum.accumulate(total)).max() > math.radians(30)
            if clause.kind == "forward":
                assert lengths.max() > 0.5 * clause.amount


def test_scores_are_of_sections_that_go_forward(found):
    for track, known in found:
        for fact in known:
            assert fact.score.shape == (len(track), len(track))
            assert not np.tril(fact.score, k=-1).any()
            assert TRUE <= fact.score.max() <= 1
