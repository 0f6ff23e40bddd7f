"""What is chosen to say: true by the public judge, in the order it happens, and not true of other paths."""

import math

import numpy as np
import pytest

from walked_flights import Flight, walked_flights
from wordwing.language.meaning.clauses import Clause
from wordwing.language.meaning.flown_path import Track
from wordwing.language.meaning.judge import judge
from wordwing.language.writing.content_selection import FINALS, MIDDLES, OPENINGS, compose
from wordwing.world.layout import Layout, Placement

Meaning = tuple[Clause, ...]


def arena(*places: tuple[float, float]) -> Layout:
    """Barrels, whose footprint is 0.24 m."""
    return Layout(tuple(Placement("Barrel", x, y) for x, y in places))


def meanings(track: Track, rivals: list[Track], clauses: int, draws: int = 40) -> list[Meaning]:
    found = [compose(track, rivals, clauses, np.random.default_rng(seed)) for seed in range(draws)]
    assert None not in found
    return [meaning for meaning in found if meaning is not None]


@pytest.fixture(scope="module")
def composed():
    """Flights of both corpora, each with a meaning; the flights in a layout are each other's rivals."""
    rng = np.random.default_rng(12)
    found: list[tuple[Flight, int, Meaning | None]] = []
    for corpus in ("field", "cage"):
        for flights in walked_flights(corpus, 20, rng):
            for flight in flights:
                clauses = int(rng.integers(1, 4))
                rivals = [other.track for other in flights if other is not flight]
                found.append((flight, clauses, compose(flight.track, rivals, clauses, rng)))
    return found


def test_there_is_something_to_say_of_nearly_every_flight(composed):
    assert np.mean([meaning is None for _, _, meaning in composed]) < 0.1


def test_the_judge_gives_full_marks_to_the_flight_that_a_meaning_is_about(composed):
    for flight, _, meaning in composed:
        if meaning is not None:
            judged = judge(meaning, *flight)
            assert judged.score >= 0.95, meaning
            assert min(judged.clauses) >= 0.95, meaning
            assert judged.goal >= 0.95, meaning


def test_meanings_are_valid(composed):
    for flight, _, meaning in composed:
        for clause in meaning or ():
            clause.validate(len(flight.layout.landmarks), "meaning")


def test_a_meaning_is_a_turn_perhaps_then_what_leads_on_then_how_it_ends(composed):
    for _, clauses, meaning in composed:
        if meaning is None:
            continue
        *middles, final = meaning
        assert final.kind in FINALS
        if middles and middles[0].kind in OPENINGS:
            middles = middles[1:]
        assert all(clause.kind in MIDDLES for clause in middles)
        # One more is allowed where fewer do not tell the path from others.
        assert len(middles) + 1 <= clauses + 1


def test_short_and_long_meanings_are_what_was_asked_for(composed):
    said = {count: [len(m) for _, clauses, m in composed if m is not None and clauses == count] for count in (1, 2, 3)}
    assert np.mean(said[1]) < np.mean(said[2]) < np.mean(said[3])


ROW = arena((-1.5, 0.6), (-0.3, -0.6), (0.9, 0.6))
"""Three barrels along x: on the left, on the right and on the left of y = 0."""


def test_things_are_said_in_the_order_in_which_they_happen():
    track = Track([(-2.1, 0.0), (1.4, 0.0)], 0.0, ROW)
    several = 0
    for meaning in meanings(track, [], clauses=3):
        passed = [clause.reference for clause in meaning if clause.kind == "pass"]
        assert passed == sorted(passed), meaning
        several += len(passed) > 1
    assert several > 3


def test_nothing_is_said_twice(composed):
    gate = Track([(-1.0, 0.0), (0.8, 0.0)], 0.0, arena((0.0, 0.6), (0.0, -0.6)))
    through = meanings(gate, [], clauses=3)
    for meaning in [*through, *(meaning for _, _, meaning in composed if meaning is not None)]:
        said = [(clause.kind, clause.references) for clause in meaning]
        assert len(set(said)) == len(said), meaning


def test_what_stands_on_the_left_is_passed_on_the_left():
    for path, yaw, sides in (
        ([(-2.1, 0.0), (1.4, 0.0)], 0.0, {0: "left", 1: "right", 2: "left"}),
        ([(1.4, 0.0), (-2.1, 0.0)], math.pi, {0: "right", 1: "left", 2: "right"}),
    ):
        told = {
            (clause.reference, clause.side)
            for meaning in meanings(Track(path, yaw, ROW), [], clauses=3)
            for clause in meaning
            if clause.kind in ("pass", "circle", "hug", "abeam")
        }
        assert told <= set(sides.items())
        assert {reference for reference, _ in told} == {0, 1, 2}


def test_a_sharp_turn_is_usually_mentioned_and_no_turn_never():
    ahead = meanings(Track([(-2.1, 0.0), (1.4, 0.0)], 0.0, ROW), [], clauses=1)
    assert not any(meaning[0].kind in OPENINGS for meaning in ahead)
    behind = meanings(Track([(-2.1, 0.0), (1.4, 0.0)], math.pi, ROW), [], clauses=1)
    turned = [meaning[0] for meaning in behind if meaning[0].kind in OPENINGS]
    assert len(turned) > 0.2 * len(behind)
    assert {clause.kind for clause in turned} <= {"turn_around", "turn_to"}


def fits(meaning: Meaning, path: list[tuple[float, float]], layout: Layout) -> bool:
    return judge(meaning, path, 0.0, layout).score >= 0.5


def test_a_meaning_that_fits_another_path_is_avoided_if_there_is_one_that_does_not():
    layout = arena((0.0, 0.5), (1.4, 0.0))
    path, rival = [(-1.0, 0.0), (0.9, 0.0)], [(-1.0, 1.0), (0.0, 1.2), (0.9, 0.2)]
    track, other = Track(path, 0.0, layout), Track(rival, 0.0, layout)
    alone = meanings(track, [], clauses=1)
    # Both end at the second barrel; the first one is on other sides.
    assert np.mean([fits(meaning, rival, layout) for meaning in alone]) > 0.2
    told_apart = meanings(track, [other], clauses=1)
    assert not any(fits(meaning, rival, layout) for meaning in told_apart)
    assert all(judge(meaning, path, 0.0, layout).score >= 0.95 for meaning in told_apart)


def test_a_meaning_that_fits_an_equal_path_is_better_than_none():
    track = Track([(-1.0, 0.0), (0.9, 0.0)], 0.0, ROW)
    assert meanings(track, [track, track], clauses=1, draws=5)


def test_of_a_drone_that_hovers_there_is_nothing_to_say(rng):
    assert compose(Track([(0.0, 0.0)], 0.0, Layout(())), [], 2, rng) is None


def test_equal_seeds_choose_equal_meanings_and_others_do_not():
    track = Track([(-2.1, 0.0), (1.4, 0.0)], 0.0, ROW)
    first, again = (meanings(track, [], clauses=2, draws=12) for _ in range(2))
    assert first == again
    assert len(set(first)) > 4
