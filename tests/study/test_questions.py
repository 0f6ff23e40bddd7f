"""What raters are asked, and which answers are answers."""

import math
from dataclasses import asdict

import pytest

from wordwing.errors import WordwingError
from wordwing.execution.metrics import SUCCESS_DISTANCE
from wordwing.study.questions import GUIDELINES, NEAR, QUESTIONS, UNCLEAR, Answers, Practice, feedback, parse_answers

GOOD = {"path": 1, "goal": 5, "efficiency": 3, "unclear": False, "seconds": 2.5}


def test_the_questions_are_numbered_as_the_guidelines_speak_of_them():
    # "if the drone reached the goal correctly, but took the wrong path, you should answer "Yes, perfectly" for
    # question 2, while giving a worse score for question 1"
    assert [question.key for question in QUESTIONS] == ["path", "goal", "efficiency"]
    assert {question.answers[-1] for question in QUESTIONS} == {"Yes, perfectly"}
    assert all(len(set(question.answers)) == 5 for question in QUESTIONS)
    assert len(GUIDELINES) == 7
    assert UNCLEAR.split("is ")[1].rstrip(".") in GUIDELINES[1]


def test_answers_come_back_as_they_were_sent():
    assert parse_answers(GOOD) == Answers(1, 5, 3, False, 2.5)
    assert asdict(parse_answers(GOOD)) == GOOD


@pytest.mark.parametrize(
    "change",
    [
        {"path": 0},
        {"path": 6},
        {"goal": 3.0},
        {"goal": "3"},
        {"goal": None},
        {"efficiency": True},
        {"efficiency": [3]},
        {"unclear": 1},
        {"unclear": "false"},
        {"seconds": -1},
        {"seconds": math.nan},
        {"seconds": math.inf},
        {"seconds": True},
        {"seconds": 10**400},
        {"more": 1},
    ],
)
def test_anything_else_is_refused(change):
    with pytest.raises(WordwingError):
        parse_answers(GOOD | change)


@pytest.mark.parametrize("row", [None, [], "x", 3, {}, {key: GOOD[key] for key in list(GOOD)[:-1]}])
def test_answers_must_be_whole(row):
    with pytest.raises(WordwingError):
        parse_answers(row)


def fits(practice: Practice, path: int, goal: int) -> tuple:
    return tuple(entry.fits for entry in feedback(practice, Answers(path, goal, 3)))


def test_feedback_says_what_fits_only_where_that_is_plain():
    assert fits(Practice(0.2, 0.9), 4, 5) == (True, True, None)
    assert fits(Practice(0.2, 0.9), 3, 1) == (False, False, None)
    assert fits(Practice(1.5, 0.1), 2, 1) == (True, True, None)
    assert fits(Practice(1.5, 0.1), 3, 5) == (False, False, None)
    assert fits(Practice(0.7, 0.6), 1, 5) == (None, None, None)
    assert NEAR == SUCCESS_DISTANCE
    told = feedback(Practice(1.5, 0.1), Answers(5, 1, 3))
    assert "about 1.5 m" in told[1].text
    assert "1 or 2 would fit" in told[0].text
    assert "would fit" not in told[1].text
