"""What people are told of flights that are simple enough to be judged by eye."""

from itertools import pairwise

import numpy as np
import pytest

from wordwing.evaluation.rollout import Flight
from wordwing.evaluation.verdict import clause_words, verdict
from wordwing.language.semantics import KINDS, Clause
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import Task

LAYOUT = Layout(
    (
        Placement("Boat", 1.0, 0.0),
        Placement("Pumpkin", 0.0, 1.5),
        Placement("Barrel", -0.2, -0.5),
        Placement("Gorilla", -1.5, 1.5),
    )
)
STRAIGHT = ((-1.5, 0.0), (0.5, 0.0))
"""Past the barrel, which is on the right, to the boat."""
AROUND = ((-1.5, 0.0), (-1.5, 0.8), (1.0, 0.8), (1.0, 0.4))
"""To the boat, far from the barrel."""
AWAY = ((-1.5, 0.0), (-2.0, -2.0))


def flown(text: str, *corners: tuple[float, float]) -> Flight:
    points = np.concatenate([np.linspace(a, b, 20) for a, b in pairwise(corners)])
    positions = np.column_stack([points, np.full(len(points), 0.7)]).astype(np.float32)
    task = Task(text, LAYOUT, corners[0], 0.0, points)
    quaternions = np.tile(np.float32([1, 0, 0, 0]), (len(points), 1))
    still = np.zeros((len(points) - 1, 2), np.float32)
    return Flight(task, positions, quaternions, still, len(points) - 1, "stop", 0.0)


def test_the_verdict_is_about_everything_that_was_said():
    text = "pass the barrel on its left and stop in front of the boat"
    assert verdict(flown(text, *STRAIGHT)).lines == [
        "✓ passed the barrel on its left",
        "✓ came to rest in front of the boat",
        "everything that was said was done, says the judge",
    ]
    around = verdict(flown("pass the barrel on its left and stop at the boat", *AROUND))
    assert around.lines == [
        "✗ did not pass the barrel on its left",
        "✓ came to rest at the boat",
        "1 of 2 things that were said were done, says the judge",
    ]
    assert around.followed is False
    away = verdict(flown("go to the boat", *AWAY))
    assert (away.followed, away.summary) == (False, "what was said was not done, says the judge")


@pytest.mark.parametrize(
    "text",
    [
        "anywhere except near the boat",
        "do not go to the boat",
        "go anywhere but the boat",
        "go to the boat, not the pumpkin",
        "avoid the pumpkin and go to the boat",
        "go to the elephant",
        "go to the boat twice",
        "sing something nice",
        "is the boat blue?",
        "no",
    ],
)
def test_what_is_denied_or_not_understood_is_not_judged(text):
    found = verdict(flown(text, *STRAIGHT))
    assert found.followed is None
    assert found.clauses == ()
    assert found.summary.startswith("not judged: ")


def test_what_is_not_understood_is_quoted_and_long_quotes_are_cut():
    assert verdict(flown("go to the elephant", *STRAIGHT)).summary == 'not judged: "elephant" is not understood'
    both = verdict(flown("pass the windmill on its left and go to the sofa", *STRAIGHT))
    assert both.summary == 'not judged: "windmill", "sofa" are not in the layout'
    assert len(verdict(flown("never " * 60 + "go to the boat", *STRAIGHT)).summary) < 100


def test_words_that_no_rule_knows_keep_a_flight_from_being_called_perfect():
    slowly = verdict(flown("slowly go to the boat", *STRAIGHT))
    assert slowly.clauses == (("came to rest at the boat", True),)
    assert slowly.followed is None
    assert slowly.summary.startswith('not judged: "slowly" is not understood')
    assert verdict(flown("slowly go to the boat", *AWAY)).followed is False


def test_who_ran_out_of_time_is_judged_by_where_the_drone_rests():
    flight = flown("go to the boat", *STRAIGHT)
    flight.ended_by = "steps"
    assert verdict(flight).followed


def test_of_two_things_of_a_name_one_is_taken_and_the_doubt_is_said():
    rocks = Layout((Placement("Stone1", 1.0, 0.0), Placement("Stone1", -1.0, 1.0)))
    flight = flown("go to the rock", *STRAIGHT)
    flight.task = Task("go to the rock", rocks, (-1.5, 0.0), 0.0, np.zeros((0, 2)))
    assert 'by "rock" another one may be meant' in verdict(flight).summary


CLAUSES = {
    Clause("turn", side="left", amount=np.pi / 2): "turned left by 90°",
    Clause("turn_around"): "turned around",
    Clause("turn_to", 0): "turned to the boat",
    Clause("straight"): "flew straight on",
    Clause("forward", amount=0.6): "flew 0.6 m straight on",
    Clause("curve", side="right"): "flew in a curve to the right",
    Clause("pass", 2, side="right"): "passed the barrel on its left",
    Clause("circle", 2, side="right", amount=np.pi): "circled the barrel clockwise by 180°",
    Clause("hug", 2, side="left"): "kept close to the barrel, with it on the left",
    Clause("between", 0, 2): "flew between the boat and the barrel",
    Clause("toward", 0): "flew towards the boat",
    Clause("reach", 0): "reached the boat",
    Clause("reach_side", 0, side="behind"): "got behind the boat",
    Clause("reach_fence", "red"): "reached the red fence",
    Clause("reach_between", 0, "red"): "got between the boat and the red fence",
    Clause("face", 0): "faced the boat",
    Clause("abeam", 0, side="left"): "got beside the boat, with it on the left",
    Clause("along", "red", side="left"): "flew along the red fence, with it on the left",
    Clause("leave", 0): "left the boat behind",
}


def test_every_kind_of_clause_has_its_words():
    assert {clause.kind for clause in CLAUSES} == set(KINDS)
    for clause, words in CLAUSES.items():
        assert clause_words(clause, LAYOUT, done=True) == words
        assert clause_words(clause, LAYOUT, done=False).startswith("did not ")
    ends = {clause.kind: clause_words(clause, LAYOUT, done=True, last=True) for clause in CLAUSES}
    assert ends["reach"] == "came to rest at the boat"
    assert ends["reach_side"] == "came to rest behind the boat"
    assert ends["face"] == "came to rest facing the boat"
    assert ends["abeam"] == "came to rest beside the boat, with it on the left"
    assert clause_words(Clause("reach", 0), LAYOUT, done=False, last=True) == "did not come to rest at the boat"
