"""Every kind of clause on flights drawn by hand, with the score that a person would give; and what must not matter."""

import math
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from wordwing.language.meaning.clauses import COLOURS, KINDS, Clause
from wordwing.language.meaning.flown_path import ALL, FIRST, LAST, Track
from wordwing.language.meaning.judge import judge
from wordwing.language.meaning.scores import score
from wordwing.world.layout import Layout, Placement

QUARTER, HALF, FULL = math.pi / 2, math.pi, 2 * math.pi
DEG = math.pi / 180
AHEAD, LEFT, BACK, RIGHT = 0.0, math.pi / 2, math.pi, -math.pi / 2
"""Start headings: along x, y, −x and −y. With x ahead, y is left."""


def arena(*places: tuple[float, float]) -> Layout:
    """Barrels, whose footprint is 0.24 m."""
    return Layout(tuple(Placement("Barrel", x, y) for x, y in places))


def arc(radius: float, begin: float, sweep: float) -> list[tuple[float, float]]:
    """A part of a circle around the origin, counter-clockwise for a positive sweep; angles in degrees."""
    angles = np.radians(begin + np.linspace(0, sweep, 60))
    return [(radius * math.cos(a), radius * math.sin(a)) for a in angles]


MIDDLE = arena((0, 0))
LOOKS_LEFT = Layout((Placement("Gorilla", 0, 0, LEFT),))
"""It looks along y, to the left of who comes along x; its footprint is 0.28 m."""
GATE = arena((0, 0.6), (0, -0.6))
"""Two barrels with a way through along x."""
PAST = [(-0.9, -0.5), (0.8, -0.5)]
"""Past the barrel in the middle, which is on the left."""
LINE = [(0, 0), (1, 0)]

Case = tuple[str, Clause, list[tuple[float, float]], float, Layout, int]
CASES: list[Case] = [
    ("left by a quarter", Clause("turn", side="left", amount=QUARTER), [(0, 0), (0, 0.3)], AHEAD, MIDDLE, 1),
    ("right is not left", Clause("turn", side="right", amount=QUARTER), [(0, 0), (0, 0.3)], AHEAD, MIDDLE, 0),
    ("a little to the right", Clause("turn", side="right", amount=0.6), [(0, 0), (0.24, -0.16)], AHEAD, MIDDLE, 1),
    ("no turn at all", Clause("turn", side="right", amount=0.6), [(0, 0), (0.3, 0)], AHEAD, MIDDLE, 0),
    ("a turn and then a flight", Clause("turn", side="left", amount=QUARTER), [(0, 0), (0, 0.8)], AHEAD, MIDDLE, 0),
    ("back", Clause("turn_around"), [(0, 0), (-0.3, 0)], AHEAD, MIDDLE, 1),
    ("only to the side", Clause("turn_around"), [(0, 0), (0, 0.3)], AHEAD, MIDDLE, 0),
    ("to the barrel", Clause("turn_to", 0), [(0, -1.5), (0, -1.2)], AHEAD, MIDDLE, 1),
    ("to the barrel's side", Clause("turn_to", 0), [(0, -1.5), (0.3, -1.5)], AHEAD, MIDDLE, 0),
    ("to the yellow fence", Clause("turn_to", "yellow"), [(0, 0), (0, 0.3)], AHEAD, MIDDLE, 1),
    ("to the white fence", Clause("turn_to", "white"), [(0, 0), (0, 0.3)], AHEAD, MIDDLE, 0),
    ("ahead", Clause("straight"), LINE, AHEAD, MIDDLE, 1),
    ("to the side", Clause("straight"), LINE, LEFT, MIDDLE, 0),
    ("there and back", Clause("straight"), [(0, 0), (1, 0), (1, 0.1), (0, 0.1)], AHEAD, MIDDLE, 0),
    ("a metre", Clause("forward", amount=1.0), LINE, AHEAD, MIDDLE, 1),
    ("two metres for one", Clause("forward", amount=1.0), [(0, 0), (2, 0)], AHEAD, MIDDLE, 0),
    ("a metre of twenty", Clause("forward", amount=20.0), LINE, AHEAD, MIDDLE, 0),
    ("bent to the left", Clause("curve", side="left"), arc(1, -90, 90), AHEAD, MIDDLE, 1),
    ("bent to the right", Clause("curve", side="left"), arc(1, 90, -90), AHEAD, MIDDLE, 0),
    ("not bent", Clause("curve", side="left"), LINE, AHEAD, MIDDLE, 0),
    ("round and round", Clause("curve", side="left"), arc(0.5, -90, 360), AHEAD, MIDDLE, 0),
    ("past, on the left", Clause("pass", 0, side="left"), PAST, AHEAD, MIDDLE, 1),
    ("past, on the wrong side", Clause("pass", 0, side="right"), PAST, AHEAD, MIDDLE, 0),
    ("past, on the right", Clause("pass", 0, side="right"), PAST[::-1], BACK, MIDDLE, 1),
    ("too far away", Clause("pass", 0, side="left"), [(-1.8, -1.6), (0.8, -1.6)], AHEAD, MIDDLE, 0),
    ("not there yet", Clause("pass", 0, side="left"), [(-2, -0.5), (-0.8, -0.5)], AHEAD, MIDDLE, 0),
    ("on and on", Clause("pass", 0, side="left"), [(-0.9, -0.5), (2, -0.5)], AHEAD, MIDDLE, 0),
    ("half round it", Clause("circle", 0, side="left", amount=HALF), arc(0.6, -90, 180), AHEAD, MIDDLE, 1),
    ("half round, clockwise", Clause("circle", 0, side="left", amount=HALF), arc(0.6, 90, -180), AHEAD, MIDDLE, 0),
    ("clockwise", Clause("circle", 0, side="right", amount=HALF), arc(0.6, 90, -180), AHEAD, MIDDLE, 1),
    ("all round it", Clause("circle", 0, side="left", amount=FULL), arc(0.6, -90, 360), AHEAD, MIDDLE, 1),
    ("half for all", Clause("circle", 0, side="left", amount=FULL), arc(0.6, -90, 180), AHEAD, MIDDLE, 0),
    ("all for half", Clause("circle", 0, side="left", amount=HALF), arc(0.6, -90, 360), AHEAD, MIDDLE, 0),
    (
        "up to the gate and round it",
        Clause("between", 0, 1),
        [(-1, 0), (-0.02, 0), (-0.5, 0), (-0.5, 1.6), (0.5, 1.6)],
        AHEAD,
        GATE,
        0,
    ),
    ("through and back", Clause("between", 0, 1), [(-0.5, 0), (0.2, 0), (0.2, 0.1), (-0.5, 0.1)], AHEAD, GATE, 0),
    ("straight past", Clause("circle", 0, side="left", amount=QUARTER), PAST, AHEAD, MIDDLE, 0),
    (
        "back and on again",
        Clause("circle", 0, side="left", amount=QUARTER),
        arc(0.6, -90, -70) + arc(0.6, -160, 150),
        BACK,
        MIDDLE,
        0,
    ),
    ("round from afar", Clause("circle", 0, side="left", amount=HALF), arc(1.5, -90, 180), AHEAD, MIDDLE, 0),
    ("close to it", Clause("hug", 0, side="left"), arc(0.5, -90, 120), AHEAD, MIDDLE, 1),
    ("close, other side", Clause("hug", 0, side="right"), arc(0.5, -90, 120), AHEAD, MIDDLE, 0),
    ("not close", Clause("hug", 0, side="left"), arc(1.2, -90, 120), AHEAD, MIDDLE, 0),
    ("through the gate", Clause("between", 0, 1), [(-0.8, 0), (0.8, 0)], AHEAD, GATE, 1),
    ("the other way through", Clause("between", 1, 0), [(0.8, 0), (-0.8, 0)], BACK, GATE, 1),
    ("around the gate", Clause("between", 0, 1), [(-0.8, 1.2), (0.8, 1.2)], AHEAD, GATE, 0),
    ("up to the gate", Clause("between", 0, 1), [(-1.2, 0), (-0.45, 0)], AHEAD, GATE, 0),
    ("to the brink of it", Clause("between", 0, 1), [(-1.2, 0), (-0.03, 0)], AHEAD, GATE, 0),
    ("not as far as the barrel", Clause("between", "red", 0), [(2, 1.8), (2, 0.25)], RIGHT, arena((1.6, 0)), 0),
    ("barrel and fence", Clause("between", 0, "red"), [(2, 0.8), (2, -0.8)], RIGHT, arena((1.6, 0)), 1),
    ("fence and barrel", Clause("between", "red", 0), [(2, 0.8), (2, -0.8)], RIGHT, arena((1.6, 0)), 1),
    ("not by the fence", Clause("between", 0, "red"), [(1.1, 0.8), (1.1, -0.8)], RIGHT, arena((1.6, 0)), 0),
    ("nearer", Clause("toward", 0), [(-1.8, 0), (-0.8, 0)], AHEAD, MIDDLE, 1),
    ("farther", Clause("toward", 0), [(-0.8, 0), (-1.8, 0)], BACK, MIDDLE, 0),
    ("neither", Clause("toward", 0), arc(1, 0, 60), LEFT, MIDDLE, 0),
    ("to the blue fence", Clause("toward", "blue"), [(1, 0), (0, 0)], BACK, MIDDLE, 1),
    ("from the blue fence", Clause("toward", "blue"), LINE, AHEAD, MIDDLE, 0),
    ("at it", Clause("reach", 0), [(-1.8, 0), (-0.5, 0)], AHEAD, MIDDLE, 1),
    ("short of it", Clause("reach", 0), [(-2.3, 0), (-1.3, 0)], AHEAD, MIDDLE, 0),
    ("by it and on", Clause("reach", 0), [(-1, -0.4), (1.5, -0.4)], AHEAD, MIDDLE, 0),
    ("before it", Clause("reach_side", 0, side="front"), [(-1.5, 0), (-0.5, 0)], AHEAD, MIDDLE, 1),
    ("not behind it", Clause("reach_side", 0, side="behind"), [(-1.5, 0), (-0.5, 0)], AHEAD, MIDDLE, 0),
    ("behind it", Clause("reach_side", 0, side="behind"), [(-1.5, 0), (0, 0.5), (0.5, 0)], AHEAD, MIDDLE, 1),
    ("not before it", Clause("reach_side", 0, side="front"), [(-1.5, 0), (0, 0.5), (0.5, 0)], AHEAD, MIDDLE, 0),
    ("left of it", Clause("reach_side", 0, side="left"), [(-1.5, 0), (0, 0.5)], AHEAD, MIDDLE, 1),
    ("not right of it", Clause("reach_side", 0, side="right"), [(-1.5, 0), (0, 0.5)], AHEAD, MIDDLE, 0),
    ("right of it", Clause("reach_side", 0, side="right"), [(-1.5, 0), (0, -0.5)], AHEAD, MIDDLE, 1),
    ("left, but far", Clause("reach_side", 0, side="left"), [(-1.5, 0), (0, 1.5)], AHEAD, MIDDLE, 0),
    ("at the red fence", Clause("reach_fence", "red"), [(0, 0), (2, 0)], AHEAD, MIDDLE, 1),
    ("not at the white one", Clause("reach_fence", "white"), [(0, 0), (2, 0)], AHEAD, MIDDLE, 0),
    ("in the gate", Clause("reach_between", 0, 1), [(-1.2, 0), (0, 0)], AHEAD, GATE, 1),
    ("beyond the gate", Clause("reach_between", 0, 1), [(-1.2, 0), (0.7, 0)], AHEAD, GATE, 0),
    ("facing it", Clause("face", 0), [(-1.8, 0), (-0.8, 0)], AHEAD, MIDDLE, 1),
    ("with one's back to it", Clause("face", 0), [(0.8, 0), (1.8, 0)], AHEAD, MIDDLE, 0),
    ("facing yellow", Clause("face", "yellow"), [(0, 0), (1, 0), (1, 1)], AHEAD, MIDDLE, 1),
    ("facing red", Clause("face", "yellow"), LINE, AHEAD, MIDDLE, 0),
    ("beside it", Clause("abeam", 0, side="left"), [(-1, -0.5), (0, -0.5)], AHEAD, MIDDLE, 1),
    ("it beside one's other side", Clause("abeam", 0, side="right"), [(-1, -0.5), (0, -0.5)], AHEAD, MIDDLE, 0),
    ("still before one", Clause("abeam", 0, side="left"), [(-2.3, -0.2), (-0.9, -0.2)], AHEAD, MIDDLE, 0),
    ("red on the left", Clause("along", "red", side="left"), [(1.9, 1), (1.9, -1)], RIGHT, MIDDLE, 1),
    ("red on the right", Clause("along", "red", side="right"), [(1.9, -1), (1.9, 1)], LEFT, MIDDLE, 1),
    ("red on the wrong side", Clause("along", "red", side="right"), [(1.9, 1), (1.9, -1)], RIGHT, MIDDLE, 0),
    ("red far away", Clause("along", "red", side="left"), [(0.2, 1), (0.2, -1)], RIGHT, MIDDLE, 0),
    ("towards red", Clause("along", "red", side="left"), [(1.5, 0), (2.2, 0)], AHEAD, MIDDLE, 0),
    ("away", Clause("leave", 0), [(0.5, 0), (1.5, 0)], AHEAD, MIDDLE, 1),
    ("back to it", Clause("leave", 0), [(1.5, 0), (0.5, 0)], BACK, MIDDLE, 0),
    ("away from elsewhere", Clause("leave", 0), [(1.4, 0), (2.2, 0)], AHEAD, MIDDLE, 0),
    ("there and back", Clause("return"), [(-2, 1), (2, 1), (2, -1), (-2, 0.7)], AHEAD, MIDDLE, 1),
    ("there only", Clause("return"), [(-2, 1), (2, 1)], AHEAD, MIDDLE, 0),
    ("never away", Clause("return"), [(-2, 1), (-1.7, 1), (-2, 1)], AHEAD, MIDDLE, 0),
    ("well clear of it", Clause("avoid", 0), [(-2, 1), (2, 1)], AHEAD, MIDDLE, 1),
    ("close by it", Clause("avoid", 0), [(-2, 0.3), (2, 0.3)], AHEAD, MIDDLE, 0),
    ("close by it, but not touching", Clause("avoid", 0, amount=0.05), [(-2, 0.3), (2, 0.3)], AHEAD, MIDDLE, 1),
    ("over it, not touching", Clause("avoid", 0, amount=0.05), [(-2, 0), (2, 0)], AHEAD, MIDDLE, 0),
    ("a metre short", Clause("reach", 0, amount=1.0), [(-2.3, 0), (-1.24, 0)], AHEAD, MIDDLE, 1),
    ("not a metre short", Clause("reach", 0, amount=1.0), [(-2.3, 0), (-0.3, 0)], AHEAD, MIDDLE, 0),
    ("two metres short, not one", Clause("reach", 0, amount=1.0), [(-2.35, 0), (-2.24, 0)], AHEAD, MIDDLE, 0),
    ("before its face", Clause("reach_own_side", 0, side="front"), [(-1.5, 0), (0, 0.6)], AHEAD, LOOKS_LEFT, 1),
    (
        "from behind, before its face",
        Clause("reach_own_side", 0, side="front"),
        [(0, -2), (1, 0), (0, 0.6)],
        LEFT,
        LOOKS_LEFT,
        1,
    ),
    ("on its right", Clause("reach_own_side", 0, side="front"), [(-1.5, 0), (0.6, 0)], AHEAD, LOOKS_LEFT, 0),
    ("on its own right", Clause("reach_own_side", 0, side="right"), [(2, 1), (0.6, 0)], BACK, LOOKS_LEFT, 1),
    ("behind its back", Clause("reach_own_side", 0, side="behind"), [(-1.5, 0), (0, -0.6)], AHEAD, LOOKS_LEFT, 1),
    (
        "behind it, but too near",
        Clause("reach_own_side", 0, side="behind", amount=1.5),
        [(-1.5, 0), (0, -0.6)],
        AHEAD,
        LOOKS_LEFT,
        0,
    ),
    (
        "half a metre to its left",
        Clause("reach_side", 0, side="left", amount=0.5),
        [(-1.5, 0), (0, 0.74)],
        AHEAD,
        MIDDLE,
        1,
    ),
    ("left, but touching", Clause("reach_side", 0, side="left", amount=1.2), [(-1.5, 0), (0, 0.3)], AHEAD, MIDDLE, 0),
    ("a metre from the fence", Clause("reach_fence", "red", amount=1.0), [(0, 0), (1.35, 0)], AHEAD, MIDDLE, 1),
    ("at the fence for a metre", Clause("reach_fence", "red", amount=1.5), [(0, 0), (2.2, 0)], AHEAD, MIDDLE, 0),
    ("shown by the way back", Clause("spin", side="left", amount=HALF), [(0, 0), (-0.29, 0.01)], AHEAD, MIDDLE, 1),
    ("the other way round", Clause("spin", side="right", amount=HALF), [(0, 0), (-0.29, 0.01)], AHEAD, MIDDLE, 0),
    ("a large circle", Clause("spin", side="left", amount=FULL), arc(0.6, -90, 360), AHEAD, MIDDLE, 0),
    ("straight on is no spin", Clause("spin", side="left", amount=FULL), LINE, AHEAD, MIDDLE, 0),
    ("flown towards it", Clause("look", 0), [(-1.8, 0), (-0.8, 0)], AHEAD, MIDDLE, 1),
    ("flown away from it", Clause("look", 0), [(0.8, 0), (1.8, 0)], AHEAD, MIDDLE, 0),
    ("half a metre back", Clause("move", side="behind", amount=0.5), [(0, 0), (-0.5, 0)], AHEAD, MIDDLE, 1),
    ("half a metre on", Clause("move", side="behind", amount=0.5), LINE, AHEAD, MIDDLE, 0),
    ("a metre back for half", Clause("move", side="behind", amount=0.5), [(0, 0), (-1, 0)], AHEAD, MIDDLE, 0),
    ("to the left", Clause("move", side="left", amount=1.0), [(0, 0), (0, 1)], AHEAD, MIDDLE, 1),
    ("to the left of where it looked", Clause("move", side="left", amount=1.0), [(0, 0), (-1, 0)], LEFT, MIDDLE, 1),
    ("not to the right", Clause("move", side="right", amount=1.0), [(0, 0), (0, 1)], AHEAD, MIDDLE, 0),
    ("on, not on and back", Clause("move", side="front", amount=0.5), [(0, 0), (1.5, 0), (0.5, 0)], AHEAD, MIDDLE, 0),
    ("at rest", Clause("hover", amount=3.0), [(0, 0)], AHEAD, MIDDLE, 1),
    ("on its way", Clause("hover", amount=3.0), LINE, AHEAD, MIDDLE, 0),
]
"""What happens; the clause; the path and its start heading; the arena; what the whole path scores."""


def whole(clause: Clause, path: object, yaw: float, layout: Layout) -> float:
    """The score of the section that is the whole path, as the only thing to do."""
    return float(score(clause, Track(path, yaw, layout), first=True)[0, -1])


PARTS: list[tuple[str, Clause, list[tuple[float, float]], float, Layout, float]] = [
    # Full from 0.25 m on, none up to 0.1 m.
    ("hardly away", Clause("leave", 0), [(0.5, 0), (0.625, 0)], AHEAD, MIDDLE, 1 / 6),
    # With the barrel 100° behind: full from 120° on, none up to 80°.
    (
        "away, but askew",
        Clause("leave", 0),
        [(0.5, 0), (0.5 + 2 * math.cos(80 * DEG), 2 * math.sin(80 * DEG))],
        80 * DEG,
        MIDDLE,
        0.5,
    ),
    # A tenth of the line beside either barrel does not count: 0.1 m from the rest; full to 0.05 m, none from 0.4 m on.
    ("close to the left barrel", Clause("between", 0, 1), [(-0.8, 0.58), (0.8, 0.58)], AHEAD, GATE, 0.3 / 0.35),
    ("close to the right barrel", Clause("between", 0, 1), [(-0.8, -0.58), (0.8, -0.58)], AHEAD, GATE, 0.3 / 0.35),
]
"""Between done and not done, by the thresholds of `judge`."""


@pytest.mark.parametrize("case", PARTS, ids=lambda case: f"{case[1].kind}: {case[0]}")
def test_a_flight_that_does_a_part_scores_that_part(case):
    _, clause, path, yaw, layout, expected = case
    assert whole(clause, path, yaw, layout) == pytest.approx(expected, abs=2e-2)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1].kind}: {case[0]}")
def test_a_flight_scores_what_a_person_would_give_it(case):
    _, clause, path, yaw, layout, expected = case
    clause.validate(len(layout.landmarks), "here")
    assert whole(clause, path, yaw, layout) == pytest.approx(expected, abs=1e-6), clause


def test_every_kind_has_a_flight_that_does_it_and_one_that_does_not():
    for expected in (0, 1):
        assert {case[1].kind for case in CASES if case[-1] == expected} == set(KINDS)


def test_every_fence_can_be_on_either_side():
    # Clockwise around the arena, all fences are on the left; counter-clockwise on the right.
    corners = {"red": [(1.9, 1), (1.9, -1)], "white": [(1, -1.9), (-1, -1.9)]}
    corners |= {"blue": [(-1.9, -1), (-1.9, 1)], "yellow": [(-1, 1.9), (1, 1.9)]}
    for colour, path in corners.items():
        for other in COLOURS:
            for side in ("left", "right"):
                clause = Clause("along", other, side=side)
                assert whole(clause, path, 0.0, MIDDLE) == (side == "left" and other == colour)
                assert whole(clause, path[::-1], 0.0, MIDDLE) == (side == "right" and other == colour)


def test_between_full_and_no_marks_scores_fall_in_a_line():
    # A barrel reached is 0.5 m from its edge, one not reached 1 m: the middle is half.
    assert whole(Clause("reach", 0), [(-2, 0), (-0.99, 0)], 0.0, MIDDLE) == pytest.approx(0.5)
    # A quarter turn may be 38° off for full marks, and is none at 75° off.
    turn = math.radians(90 - (38 + 75) / 2)
    path = [(0, 0), (0.3 * math.cos(turn), 0.3 * math.sin(turn))]
    assert whole(Clause("turn", side="left", amount=QUARTER), path, 0.0, MIDDLE) == pytest.approx(0.5)


def test_sides_are_told_from_where_the_clause_began_and_not_from_beside_the_thing():
    # From x = −1.5, past the barrel's left, to a stop behind it.
    track = Track([(-1.5, 0), (-0.6, 0.6), (0.6, 0.6), (0.6, 0)], 0.0, MIDDLE)
    front, behind = (score(Clause("reach_side", 0, side=side), track, True)[:, -1] for side in ("front", "behind"))
    assert (behind[0], front[0]) == (1, 0)
    assert front.max() < 0.5, "wherever one stops is in front, seen from a hand's breadth away"


def test_only_the_first_clause_takes_straight_for_the_starts_heading():
    track = Track(LINE, LEFT, MIDDLE)
    assert score(Clause("straight"), track, first=True)[0, -1] == 0
    assert score(Clause("straight"), track, first=False)[0, -1] == 1


HERE = [(0.0, 0.0)]
GO = [(x, 0.0) for x in np.linspace(0, 1, 6)[1:]]
"""From the origin on, a control period for each point."""
ROUND = np.linspace(0, FULL, 22).tolist()
"""Headings of a drone that turns left once."""
WAIT = 11 * HERE
"""Three seconds between the first and the last."""
CLOSE, BEYOND = arena((0, 1)), arena((1, 1))

Timed = tuple[str, list[Clause], list[tuple[float, float]], list[float], Layout, tuple[int, ...]]
TIMED: list[Timed] = [
    (
        "a spin, then a flight",
        [Clause("spin", side="left", amount=FULL), Clause("straight")],
        22 * HERE + GO,
        ROUND + 5 * [FULL],
        MIDDLE,
        (1, 1),
    ),
    (
        "a flight without the spin",
        [Clause("spin", side="left", amount=FULL), Clause("straight")],
        HERE + GO,
        6 * [0.0],
        MIDDLE,
        (0, 1),
    ),
    (
        "a spin to fly off elsewhere",
        [Clause("spin", side="left", amount=FULL), Clause("turn", side="left", amount=QUARTER)],
        28 * HERE + [(0.0, 0.2)],
        ROUND + [FULL + 0.26 * k for k in range(1, 8)],
        MIDDLE,
        (1, 1),
    ),
    (
        "half a spin for a whole one",
        [Clause("spin", side="left", amount=FULL), Clause("straight")],
        11 * HERE + GO,
        ROUND[:11] + 5 * [0.0],
        MIDDLE,
        (0, 1),
    ),
    (
        "twice round for once",
        [Clause("spin", side="left", amount=FULL)],
        43 * HERE,
        ROUND + [FULL + yaw for yaw in ROUND[1:]],
        MIDDLE,
        (0,),
    ),
    (
        "a spin at the end",
        [Clause("forward", amount=1.0), Clause("spin", side="right", amount=FULL)],
        HERE + GO + 21 * GO[-1:],
        5 * [0.0] + [-yaw for yaw in ROUND],
        MIDDLE,
        (1, 1),
    ),
    (
        "no spin at the end",
        [Clause("forward", amount=1.0), Clause("spin", side="right", amount=FULL)],
        HERE + GO,
        6 * [0.0],
        BEYOND,
        (1, 0),
    ),
    (
        "headings in [−π, π)",
        [Clause("spin", side="left", amount=FULL)],
        22 * HERE,
        [(yaw + HALF) % FULL - HALF for yaw in ROUND],
        MIDDLE,
        (1,),
    ),
    (
        "a look, then a flight",
        [Clause("look", 0), Clause("straight")],
        3 * HERE + GO,
        [0.0, 0.8, QUARTER] + 5 * [0.0],
        CLOSE,
        (1, 1),
    ),
    ("a flight without a look", [Clause("look", 0), Clause("straight")], 3 * HERE + GO, 8 * [0.0], CLOSE, (0, 1)),
    (
        "looking at rest",
        [Clause("straight"), Clause("look", 0)],
        HERE + GO + 3 * GO[-1:],
        6 * [0.0] + [0.5, 1.0, QUARTER],
        BEYOND,
        (1, 1),
    ),
    (
        "looked, but not at rest",
        [Clause("straight"), Clause("look", 0)],
        HERE + GO + 3 * GO[-1:],
        6 * [0.0] + [1.0, QUARTER, 0.0],
        BEYOND,
        (1, 0),
    ),
    (
        "backwards, still looking ahead",
        [Clause("move", side="behind", amount=1.0)],
        [(-x, 0.0) for x, _y in HERE + GO],
        6 * [0.0],
        MIDDLE,
        (1,),
    ),
    (
        "turned around and flown",
        [Clause("move", side="behind", amount=1.0)],
        3 * HERE + [(-x, 0.0) for x, _y in GO],
        [0.0, 1.5, 3.0] + 5 * [HALF],
        MIDDLE,
        (1,),
    ),
    (
        "three seconds on the way",
        [Clause("forward", amount=1.0), Clause("hover", amount=3.0), Clause("toward", "red")],
        HERE + GO + 10 * GO[-1:] + [(x + 1, 0.0) for x, _y in GO],
        21 * [0.0],
        MIDDLE,
        (1, 1, 1),
    ),
    (
        "no second on the way",
        [Clause("forward", amount=1.0), Clause("hover", amount=3.0), Clause("toward", "red")],
        HERE + GO + [(x + 1, 0.0) for x, _y in GO],
        11 * [0.0],
        MIDDLE,
        (1, 0, 1),
    ),
]
"""What happens; the meaning; a position and a heading for every control period; the arena; what each clause scores."""


@pytest.mark.parametrize("case", TIMED, ids=lambda case: case[0])
def test_a_flight_whose_headings_are_known_scores_what_a_person_would_give_it(case):
    _, meaning, path, yaws, layout, expected = case
    assert len(path) == len(yaws)
    assert judge(meaning, path, yaws[0], layout, yaws).clauses == pytest.approx(expected, abs=1e-6)


def test_headings_change_nothing_of_clauses_that_speak_of_the_direction_of_flight(rng):
    for _, clause, path, yaw, layout, expected in CASES:
        if clause.kind not in ("spin", "look", "move", "hover"):
            track = Track(path, yaw, layout, rng.uniform(-9, 9, len(path)))
            assert score(clause, track, first=True)[0, -1] == pytest.approx(expected, abs=1e-6), clause


CLAUSES = sorted({case[1] for case in CASES}, key=repr)


def random_flight(rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """A wandering path [30, 2] of about 2 m within the arena, and any heading."""
    heading = rng.uniform(-math.pi, math.pi) + np.cumsum(rng.normal(0, 0.35, 30))
    steps = 0.07 * np.stack([np.cos(heading), np.sin(heading)], axis=-1)
    return rng.uniform(-1.2, 1.2, 2) + np.cumsum(steps, axis=0), float(rng.uniform(-math.pi, math.pi))


def turned(points: object, angle: float, shift: object = (0.0, 0.0)) -> np.ndarray:
    """Points turned about the origin, then moved; by complex numbers."""
    z = np.asarray(points, float) @ [1, 1j] * np.exp(1j * angle)
    return np.stack([z.real, z.imag], axis=-1) + shift


def moved(layout: Layout, places: np.ndarray, angle: float = 0.0, mirror: int = 1) -> Layout:
    """The same landmarks elsewhere, turned, or mirrored about x."""
    entries = zip(layout.landmarks, places.tolist(), strict=True)
    return Layout(tuple(replace(entry, x=x, y=y, yaw=mirror * entry.yaw + angle) for entry, (x, y) in entries))


def assert_same_scores(one: tuple[Clause, Track], two: tuple[Clause, Track]) -> None:
    for first in (True, False):
        upper = [np.triu(score(clause, track, first)) for clause, track in (one, two)]
        np.testing.assert_allclose(*upper, atol=1e-6, err_msg=f"{one[0]} {two[0]}")


def test_landmarks_and_paths_may_be_turned_and_moved_together(rng):
    clauses = [entry for entry in CLAUSES if not any(isinstance(name, str) for name in entry.references)]
    for clause in clauses:
        for _ in range(10):
            (path, yaw), layout = random_flight(rng), arena(*rng.uniform(-1.2, 1.2, (2, 2)))
            angle, shift = rng.uniform(-math.pi, math.pi), rng.uniform(-3, 3, 2)
            other = moved(layout, turned(layout.centres, angle, shift), angle)
            there = Track(turned(path, angle, shift), yaw + angle, other)
            assert_same_scores((clause, Track(path, yaw, layout)), (clause, there))


NEXT = {"red": "yellow", "yellow": "blue", "blue": "white", "white": "red"}
"""What a fence becomes when the world is turned left by a quarter."""


def test_a_quarter_turn_of_the_world_turns_fences_into_each_other(rng):
    for clause in CLAUSES:
        renamed = {
            name: NEXT[value] for name in ("reference", "other") if isinstance(value := getattr(clause, name), str)
        }
        for _ in range(10):
            (path, yaw), layout = random_flight(rng), arena(*rng.uniform(-1.2, 1.2, (2, 2)))
            other = moved(layout, turned(layout.centres, QUARTER), QUARTER)
            there = Track(turned(path, QUARTER), yaw + QUARTER, other)
            assert_same_scores((clause, Track(path, yaw, layout)), (replace(clause, **renamed), there))


def test_in_a_mirror_left_is_right(rng):
    swap = {"left": "right", "right": "left", "yellow": "white", "white": "yellow"}
    for clause in CLAUSES:
        names = {name: swap.get(value, value) for name, value in clause.to_json().items() if name != "kind"}
        for _ in range(10):
            (path, yaw), layout = random_flight(rng), arena(*rng.uniform(-1.2, 1.2, (2, 2)))
            other = moved(layout, layout.centres * (1, -1), mirror=-1)
            mirrored = Track(path * (1, -1), -yaw, other)
            assert_same_scores((clause, Track(path, yaw, layout)), (Clause(clause.kind, **names), mirrored))


def test_some_sections_score_as_they_do_among_all(rng):
    for clause in CLAUSES:
        for _ in range(10):
            (path, yaw), layout = random_flight(rng), arena(*rng.uniform(-1.2, 1.2, (2, 2)))
            yaws = rng.uniform(-9, 9, len(path)) if rng.random() < 0.5 else None
            track, first = Track(path, yaw, layout, yaws), bool(rng.integers(2))
            everything = score(clause, track, first)
            for begins, ends in product((ALL, FIRST), (ALL, LAST)):
                some = score(clause, track, first, begins, ends)
                assert some.tolist() == everything[begins, ends].tolist()


def test_sections_of_timed_flights_agree_with_a_loop_over_their_moments(rng):
    for _ in range(10):
        steps = rng.normal(0, 0.15, (20, 2)) * (rng.random((20, 1)) < 0.6)  # now and then it hovers
        path, yaws = np.cumsum(steps, axis=0), np.cumsum(rng.normal(0, 0.8, 20))
        track = Track(path, yaws[0], arena((1, 1)), yaws)
        flown = np.concatenate([[0], np.hypot(*np.diff(path, axis=0).T).cumsum()])
        for i in range(len(track)):
            for j in range(i, len(track)):
                inside = [t for t in range(20) if track.passed[i] - 1e-6 <= flown[t] <= track.passed[j] + 1e-6]
                before = [t for t in range(20) if flown[t] <= track.passed[i] + 1e-6]
                after = [t for t in range(20) if flown[t] >= track.passed[j] - 1e-6]
                first, last = min([*inside, before[-1]]), max([*inside, after[0]])
                assert (track.moments.first[i], track.moments.last[j]) == (first, last)
                pairs = [(s, t) for s in range(first, last + 1) for t in range(s, last + 1)]
                for sign in (1, -1):
                    most = max(sign * (yaws[t] - yaws[s]) for s, t in pairs)
                    assert track.most_turned(sign)[i, j] == pytest.approx(most)


def test_whatever_is_flown_the_score_is_between_none_and_full(rng):
    for _ in range(60):
        count = int(rng.integers(1, 12))
        path = rng.normal(0, 10 ** rng.uniform(-4, 2), (count, 2))
        path = np.repeat(path, rng.integers(1, 3, count), axis=0)
        layout = arena(*rng.uniform(-2, 2, (2, 2)))
        yaws = rng.uniform(-10, 10, len(path))
        track = Track(path, yaws[0], layout, yaws if rng.random() < 0.5 else None)
        for clause in CLAUSES:
            for first in (True, False):
                values = score(clause, track, first)
                assert values.shape == (len(track), len(track))
                upper = values[np.triu_indices(len(track))]
                assert np.isfinite(upper).all()
                assert upper.min() >= 0
                assert upper.max() <= 1


def test_a_path_through_the_middle_of_a_landmark_is_judged_like_any_other():
    track = Track([(-1, 0), (1, 0)], 0.0, MIDDLE)
    for clause in CLAUSES:
        if 1 not in clause.references:
            assert np.isfinite(score(clause, track, True)).all()


def test_how_densely_a_path_is_sampled_does_not_matter():
    for name, clause, path, yaw, layout, expected in CASES:
        passed = np.concatenate([[0], np.cumsum([math.dist(a, b) for a, b in pairwise(path)])])
        dense = np.union1d(passed, np.linspace(0, passed[-1], 301))  # keeps the corners
        points = np.stack([np.interp(dense, passed, axis) for axis in np.array(path, float).T], axis=-1)
        assert whole(clause, points, yaw, layout) == pytest.approx(expected, abs=1e-6), name


@pytest.mark.parametrize("amount", [0.4, 1.0, 2.5])
def test_a_distance_is_kept_or_missed_by_its_share(amount):
    def forward(flown: float) -> float:
        return whole(Clause("forward", amount=amount), [(0, 0), (flown, 0)], AHEAD, MIDDLE)

    assert forward(0.7 * amount) == forward(1.3 * amount) == 1
    assert forward(2 * amount) == 0
    assert 0.4 < forward(1.625 * amount) < 0.6
