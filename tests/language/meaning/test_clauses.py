import json
import math

import pytest

from wordwing.errors import WordwingError
from wordwing.language.meaning.clauses import COLOURS, KINDS, Clause
from wordwing.validation import parse

GOOD = [
    {"kind": "turn", "side": "left", "amount": 1.57},
    {"kind": "turn_around"},
    {"kind": "turn_to", "reference": 2},
    {"kind": "straight"},
    {"kind": "forward", "amount": 0.5},
    {"kind": "curve", "side": "right"},
    {"kind": "pass", "reference": 0, "side": "left"},
    {"kind": "circle", "reference": 1, "side": "right", "amount": 6.28},
    {"kind": "hug", "reference": 3, "side": "left"},
    {"kind": "between", "reference": 0, "other": 3},
    {"kind": "toward", "reference": "blue"},
    {"kind": "reach", "reference": 3},
    {"kind": "reach_side", "reference": 1, "side": "behind"},
    {"kind": "reach_fence", "reference": "red"},
    {"kind": "reach_between", "reference": 0, "other": "white"},
    {"kind": "face", "reference": "yellow"},
    {"kind": "abeam", "reference": 2, "side": "right"},
    {"kind": "along", "reference": "red", "side": "left"},
    {"kind": "leave", "reference": 0},
    {"kind": "return"},
    {"kind": "avoid", "reference": "red"},
    {"kind": "reach_own_side", "reference": 1, "side": "behind"},
    {"kind": "spin", "side": "left", "amount": 6.28},
    {"kind": "look", "reference": 1},
    {"kind": "move", "side": "behind", "amount": 0.5},
    {"kind": "hover", "amount": 3},
]
"""One clause of each kind, with exactly the fields that it needs, in a layout of four landmarks."""

MAY = ("reach", "reach_side", "reach_own_side", "reach_fence", "avoid")
"""Kinds that may have an amount."""

SPARE = {"reference": 0, "other": 1, "side": "left", "amount": 1.0}
LANDMARK = "the number of one of 4 landmarks, from 0"
FENCE = "a fence (red, white, blue, yellow)"


def read_clause(row: object, landmarks: int, where: str) -> Clause:
    clause = parse(Clause, row, where)
    clause.validate(landmarks, where)
    return clause


def complaint(row: object) -> str:
    with pytest.raises(WordwingError) as caught:
        read_clause(row, 4, "line 3")
    return str(caught.value)


def test_there_is_an_example_of_every_kind():
    assert sorted(row["kind"] for row in GOOD) == sorted(KINDS)


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row["kind"])
def test_a_kind_needs_exactly_its_fields(row):
    read_clause(row, 4, "line 3")
    kind = row["kind"]
    for name, value in SPARE.items():
        if name == "amount" and kind in MAY:
            for distance in (value, None):
                read_clause(row | {name: distance}, 4, "line 3")
        elif name in row:
            less = {key: entry for key, entry in row.items() if key != name}
            assert complaint(less) == f'line 3: a clause of kind "{kind}" needs "{name}"'
            assert complaint(row | {name: None}) == complaint(less)
        else:
            assert complaint(row | {name: value}) == f'line 3: a clause of kind "{kind}" has no "{name}"'


@pytest.mark.parametrize("row", GOOD, ids=lambda row: row["kind"])
def test_what_is_written_is_what_is_read(row):
    clause = read_clause(row, 4, "line 3")
    assert clause == Clause(**row)
    assert clause.to_json() == row
    assert read_clause(json.loads(json.dumps(clause.to_json())), 4, "line 3") == clause


def test_random_clauses_survive_writing_and_reading(rng):
    for _ in range(500):
        row = dict(GOOD[rng.integers(len(GOOD))])
        landmarks = int(rng.integers(4, 41))
        if row.keys() & {"reference", "other"} and isinstance(row["reference"], int):
            numbers = rng.permutation(landmarks).tolist()
            row.update((key, numbers.pop()) for key in ("reference", "other") if key in row)
        elif "reference" in row:
            row["reference"] = str(rng.choice(COLOURS))
        if "side" in row:
            row["side"] = str(rng.choice(["left", "right"]))
        if "amount" in row:
            row["amount"] = float(rng.uniform(1e-3, 10))
        clause = Clause(**row)
        clause.validate(landmarks, "line 3")
        assert read_clause(json.loads(json.dumps(clause.to_json())), landmarks, "line 3") == clause


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (7, "this is 7; it must be an object, {…}"),
        (None, "this is null; it must be an object, {…}"),
        (["reach", 3], "this is a list; it must be an object, {…}"),
        ({}, '"kind" is missing; it must be turn, turn_around, turn_to, '),
        (
            {"kind": "straight", "speed": 1},
            'it has an unknown key "speed"; the keys are kind, reference, other, side, amount',
        ),
        ({"kind": "cirlce"}, '"kind" is "cirlce"; did you mean "circle"?'),
        ({"kind": "zzz"}, '"kind" is "zzz"; it must be turn, turn_around, turn_to, '),
        ({"kind": None}, '"kind" is null; it must be turn, '),
        ({"kind": ["turn"]}, '"kind" is a list; it must be turn, '),
        ({"kind": "x\ny" * 100_000}, '"kind" is "x\\nyx'),
        ({"kind": "reach", "reference": 4}, f'a "reach" clause speaks of 4; it must be {FENCE} or {LANDMARK}'),
        ({"kind": "reach", "reference": -1}, f'a "reach" clause speaks of -1; it must be {FENCE} or {LANDMARK}'),
        ({"kind": "reach", "reference": 1.0}, '"reference" is 1.0; it must be a whole number or a text'),
        ({"kind": "reach", "reference": True}, '"reference" is true; it must be a whole number or a text'),
        ({"kind": "reach", "reference": [1]}, '"reference" is a list; it must be a whole number or a text'),
        ({"kind": "reach", "reference": "green"}, "a \"reach\" clause speaks of 'green'; it must be"),
        ({"kind": "between", "reference": 1, "other": 9}, 'a "between" clause speaks of 9; it must be'),
        ({"kind": "between", "reference": 1, "other": 1}, 'a "between" clause speaks of 1 twice; it needs two things'),
        (
            {"kind": "reach_between", "reference": "red", "other": "red"},
            "a \"reach_between\" clause speaks of 'red' twice",
        ),
        (
            {"kind": "pass", "reference": "red", "side": "left"},
            f"a \"pass\" clause speaks of 'red'; it must be {LANDMARK}",
        ),
        (
            {"kind": "hug", "reference": "red", "side": "left"},
            f"a \"hug\" clause speaks of 'red'; it must be {LANDMARK}",
        ),
        (
            {"kind": "circle", "reference": "red", "side": "left", "amount": 3},
            f"a \"circle\" clause speaks of 'red'; it must be {LANDMARK}",
        ),
        ({"kind": "reach_fence", "reference": 1}, f'a "reach_fence" clause speaks of 1; it must be {FENCE}'),
        ({"kind": "along", "reference": 1, "side": "left"}, f'a "along" clause speaks of 1; it must be {FENCE}'),
        ({"kind": "curve", "side": "up"}, '"side" is "up"; it must be left, right, front or behind'),
        ({"kind": "curve", "side": "front"}, "a \"curve\" clause has side 'front'; it must be left or right"),
        ({"kind": "curve", "side": ["left"]}, '"side" is a list; it must be left, right, front or behind'),
        (
            {"kind": "reach_side", "reference": 1, "side": "above"},
            '"side" is "above"; it must be left, right, front or behind',
        ),
        *(
            (
                {"kind": "forward", "amount": amount},
                f'"amount" is {shown}; it must be a finite number above 0 and at most 1,000',
            )
            for amount, shown in [
                (0, "0"),
                (-1.5, "-1.5"),
                ("1", '"1"'),
                (True, "true"),
                (math.nan, "NaN"),
                (math.inf, "Infinity"),
                (10**400, f"1{'0' * 56}…"),
                ([1.0], "a list"),
            ]
        ),
    ],
)
def test_each_mistake_is_answered_with_one_sentence_that_names_it(row, sentence):
    message = complaint(row)
    assert message.startswith(f"line 3: {sentence}")
    assert len(message) < 320
    assert "\n" not in message


def test_every_side_is_one_for_reach_side_and_whole_numbers_are_amounts():
    for side in ("left", "right", "front", "behind"):
        Clause("reach_side", 0, side=side).validate(1, "here")
        Clause("reach_own_side", 0, side=side).validate(1, "here")
        Clause("move", side=side, amount=0.5).validate(0, "here")
    Clause("forward", amount=2).validate(0, "here")


def test_a_layout_without_landmarks_has_only_fences_to_speak_of():
    for colour in ("red", "white", "blue", "yellow"):
        Clause("reach", colour).validate(0, "here")
    with pytest.raises(WordwingError, match="one of 0 landmarks"):
        Clause("reach", 0).validate(0, "here")


def test_references_come_in_order_and_a_side_may_be_a_hand():
    assert Clause("between", 3, "red").references == (3, "red")
    assert Clause("reach", 0).references == (0,)
    assert Clause("straight").references == ()
    handed = {side: Clause("reach_side", 0, side=side).handed for side in ("left", "right", "front", "behind")}
    assert handed == {"left": True, "right": True, "front": False, "behind": False}
    assert not Clause("reach", 0).handed
