"""What people are told of flights that are simple enough to be judged by eye."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from wordwing.execution.execution import Execution
from wordwing.execution.verdict import clause_words, verdict
from wordwing.language.meaning.clauses import KINDS, Clause
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


def flown(text: str, *corners: tuple[float, float]) -> Execution:
    points = np.concatenate([np.linspace(a, b, 20) for a, b in pairwise(corners)])
    positions = np.column_stack([points, np.full(len(points), 0.7)]).astype(np.float32)
    task = Task(text, LAYOUT, corners[0], 0.0, points)
    quaternions = np.tile(np.float32([1, 0, 0, 0]), (len(points), 1))
    still = np.zeros((len(points) - 1, 2), np.float32)
    return Execution.single(task, positions, quaternions, still, len(points) - 1, "stop", 0.0)


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


TO_THE_GORILLA = ((-1.5, 0.0), (-1.5, 1.2))


@pytest.mark.parametrize(
    "text",
    [
        "go halfway to the gorilla", "keep your distance to the gorilla", "hold the gorilla at arm's length",
        "quit going to the gorilla", "run from the boat", "move back from the boat",
        "go to the opposite corner from the boat", "go to the mirror position of the boat",
        "go to the boat but keep a metre away", "go 1 metre towards the boat", "go part of the way to the boat",
        "go to the second boat", "go to second boat", "go to the next boat", "go to the fake imaginary boat",
        "go to the green boat", "go to the left boat", "go to the thing next to the boat", "go to the boat's shadow",
        "go to the barrel behind the boat", "go to the gorilla next to the boat", "maybe go to the boat",
        "slowly go to the boat", "stop before going to the boat", "stop two metres in front of the boat",
        "go to the boat in five seconds", "pass the barrel on its left at two metres",
        "pass the barrel on its left and right", "circle the barrel 45 degrees clockwise", "turn left a third",
        "turn left 30 metres", "turn around three hundred degrees", "go forward two metres minus one",
        "refrain from going to the boat", "do n't go to the boat", "do nto go to the boat", "don`t go to the boat",
        "don´t go to the boat", "don t go to the boat", "cancel going to the boat",
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", [STRAIGHT, AROUND, AWAY, TO_THE_GORILLA])
def test_a_sentence_with_a_word_that_nothing_explains_is_not_judged_wherever_it_was_flown(text, path):
    found = verdict(flown(text, *path))
    assert (found.followed, found.clauses) == (None, ())
    assert found.summary.startswith("not judged: ")


@pytest.mark.parametrize(
    ("text", "there", "away"),
    [
        ("go to the boat", True, False),
        ("please fly over to the boat and stop there", True, False),
        ("could you head straight to the small wooden boat now", True, False),
        ("walk up to the rowboat", True, False),
        ("stop right in front of the boat", True, False),
        ("hover near the boat", True, False),
        ("fly towards the boat", True, False),
        ("keep going until you reach the boat", True, False),
        ("pass the barrel on its left", True, False),
        ("pass the barrel on your right, then stop at the boat", True, False),
        ("keep the barrel on your right and go to the boat", True, False),
        ("pass the barrel on its right", False, False),
        ("go past the barrel with it on your left and stop at the boat", False, False),
        ("fly straight on", True, False),
        ("go forward two metres", True, False),
        ("move away from the gorilla", False, False),
        ("turn left, then go to the boat", False, False),
        ("turn around", False, False),
        ("circle the barrel clockwise", False, False),
        ("fly between the pumpkin and the barrel", True, False),
        ("go to the pumpkin", False, False),
        ("fly along the red fence with it on your left", False, False),
    ],
)
def test_plain_sentences_are_judged(text, there, away):
    assert verdict(flown(text, *STRAIGHT)).followed is there
    assert verdict(flown(text, *AWAY)).followed is away


def test_beside_a_clause_that_is_not_understood_the_others_have_their_marks():
    found = verdict(flown("pass the barrel on its left, then hastily go to the boat", *STRAIGHT))
    assert found.lines == ["✓ passed the barrel on its left", 'not judged: "hastily" is not understood']
    assert found.followed is None
    missed = verdict(flown("pass the barrel on its right, then hastily go to the boat", *STRAIGHT))
    assert (missed.followed, missed.clauses) == (None, (("did not pass the barrel on its right", False),))


def test_who_ran_out_of_time_has_not_come_to_rest():
    flight = flown("pass the barrel on its left and go to the boat", *STRAIGHT)
    flight = replace(flight, ended_by=("steps",))
    assert verdict(flight).lines == [
        "✓ passed the barrel on its left",
        "✗ was at the boat when its time was up, but had not stopped",
        "1 of 2 things that were said were done, says the judge",
    ]
    assert verdict(flight).followed is False
    flight = flown("go to the boat", *AWAY)
    flight = replace(flight, ended_by=("steps",))
    assert verdict(flight).lines[0] == "✗ did not come to rest at the boat"


def test_who_was_not_told_where_to_stop_and_ran_out_of_time_is_not_called_perfect():
    flight = flown("pass the barrel on its left", *STRAIGHT)
    flight = replace(flight, ended_by=("steps",))
    found = verdict(flight)
    assert (found.followed, found.clauses) == (None, (("passed the barrel on its left", True),))
    assert found.summary.startswith("not judged: it had not stopped when its time was up")


def test_of_two_things_of_a_name_one_is_taken_and_the_doubt_is_said():
    rocks = Layout((Placement("Stone1", 1.0, 0.0), Placement("Stone1", -1.0, 1.0)))
    flight = flown("go to the rock", *STRAIGHT)
    flight = replace(flight, tasks=(Task("go to the rock", rocks, (-1.5, 0.0), 0.0, np.zeros((0, 2))),))
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
    Clause("return"): "came back to where it started",
    Clause("avoid", 0): "kept away from the boat",
    Clause("reach_own_side", 0, side="front"): "got to the boat's own front",
    Clause("spin", side="left", amount=2 * np.pi): "spun left by 360°",
    Clause("look", 0): "looked at the boat",
    Clause("move", side="behind", amount=0.5): "moved backwards by 0.5 m",
    Clause("hover", amount=3.0): "hovered for 3 s",
}


def test_every_kind_of_clause_has_its_words():
    assert {clause.kind for clause in CLAUSES} == set(KINDS)
    for clause, words in CLAUSES.items():
        assert clause_words(clause, LAYOUT, done=True) == words
        assert clause_words(clause, LAYOUT, done=False).startswith("did not ")
    ends = {clause.kind: clause_words(clause, LAYOUT, done=True, last=True) for clause in CLAUSES}
    assert ends["reach"] == "came to rest at the boat"
    assert ends["reach_side"] == "came to rest behind the boat"
    held = {
        Clause("reach", 0, amount=1.0): "reached the boat, 1 m away",
        Clause("avoid", 0, amount=0.1): "kept 0.1 m away from the boat",
    }
    for clause, words in held.items():
        assert clause_words(clause, LAYOUT, done=True) == words
    assert ends["face"] == "came to rest facing the boat"
    assert ends["abeam"] == "came to rest beside the boat, with it on the left"
    assert clause_words(Clause("reach", 0), LAYOUT, done=False, last=True) == "did not come to rest at the boat"
