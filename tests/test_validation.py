"""One sentence for whatever is wrong with what comes from outside."""

import json
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
import pytest
from pydantic import ConfigDict, Field

from wordwing.errors import WordwingError
from wordwing.validation import Array, Label, Number, Point, Pose2, SafeName, numbered, parse, parse_json
from wordwing.world.paths import Floats


@dataclass(frozen=True)
class Step:
    """A docstring is no description."""

    __pydantic_config__ = ConfigDict(extra="forbid")  # type: ignore[misc]
    kind: Literal["turn", "pass", "reach"]
    amount: Annotated[float, Field(gt=0, le=1000)] | None = None


@dataclass(frozen=True)
class Leg:
    text: Annotated[str, Field(max_length=20)]
    start: Pose2
    path: Annotated[Floats, Array(2, least=1, most=100)]
    steps: tuple[Step, ...] = ()
    reference: int | str | None = None
    values: list[Number] = field(default_factory=list)
    goal: Point | None = None

    def __post_init__(self) -> None:
        if self.text == "out":
            raise ValueError("leaves the arena")


@dataclass(frozen=True)
class Walk:
    id: SafeName
    legs: Annotated[tuple[Leg, ...], numbered("leg", first=0)]
    title: Label = "none"
    most: Annotated[int, Field(ge=1, le=50)] = 3
    counts: dict[SafeName, dict[str, int]] = field(default_factory=dict)
    flag: bool = False


def walk(**changes: Any) -> dict[str, Any]:
    leg = {"text": "go", "start": [0, 1, 2.5], "path": [[1, 2], [3, 4]], "steps": [{"kind": "turn"}]}
    at_top = {key: value for key, value in changes.items() if key in Walk.__dataclass_fields__ or key == "other"}
    leg |= {key: value for key, value in changes.items() if key not in at_top}
    row = {"id": "a", "legs": [leg], "counts": {"train": {"a": 1}}} | at_top
    return {key: value for key, value in row.items() if value is not ...}


def test_what_is_right_becomes_the_class_with_tuples_floats_and_arrays() -> None:
    read = parse(Walk, walk(other=1), "F")
    [leg] = read.legs
    assert leg.start == (0.0, 1.0, 2.5)
    assert all(type(value) is float for value in leg.start)
    assert leg.path.dtype == np.float64
    assert leg.path.tolist() == [[1, 2], [3, 4]]
    assert leg.steps == (Step("turn"),)
    text = json.dumps(walk())
    again = parse_json(Walk, text, "F")
    assert again.id == parse_json(Walk, text.encode(), "F").id == "a"


NAME = "a name of at most 60 letters (a to z), digits, _, . and -, and must not begin with . or -"
POINTS = "a list of 1 to 100 points [x, y] in metres"
POSE = "[x, y, yaw] in metres and radians"
AMOUNT = "a finite number above 0 and at most 1,000 or null"


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        ([], "this is a list; it must be an object, {…}"),
        (walk(id="../x"), f'"id" is "../x"; it must be {NAME}'),
        (walk(id="a\n"), f'"id" is "a\\n"; it must be {NAME}'),
        (walk(id=...), f'"id" is missing; it must be {NAME}'),
        (walk(title=""), '"title" is ""; it must be a name'),
        (walk(legs=3), '"legs" is 3; it must be a list, […]'),
        (walk(legs=[3]), "leg 0 is 3; it must be an object, {…}"),
        (walk(most=True), '"most" is true; it must be a whole number from 1 to 50'),
        (walk(most="3"), '"most" is "3"; it must be a whole number from 1 to 50'),
        (walk(most=2.0), '"most" is 2.0; it must be a whole number from 1 to 50'),
        (walk(most=0), '"most" is 0; it must be a whole number from 1 to 50'),
        (walk(flag=1), '"flag" is 1; it must be true or false'),
        (walk(counts={"../": {}}), f'"counts": "../" is "../"; it must be {NAME}'),
        (walk(counts={"dev": {"a": "x"}}), '"counts": "dev": "a" is "x"; it must be a whole number'),
        (walk(start="home"), f'leg 0: "start" is "home"; it must be {POSE}'),
        (walk(start=[1, 2]), f'leg 0: "start" is a list of 2; it must be {POSE}'),
        (walk(start=[1, 2, float("nan")]), f'leg 0: "start" has NaN in it; it must be {POSE}'),
        (walk(start=[1, 2, 1e7]), f'leg 0: "start" has 10000000.0 in it; it must be {POSE}'),
        (walk(text="x" * 21), f'leg 0: "text" is "{"x" * 21}"; it must be a text of at most 20 characters'),
        (walk(text="out"), "leg 0 leaves the arena"),
        (walk(path=[]), f'leg 0: "path" is a list of 0; it must be {POINTS}'),
        (walk(path=[[1, 2], [3, "x"]]), f'leg 0: "path" has "x" in it; it must be {POINTS}'),
        (walk(path=[[1, 2, 3]]), f'leg 0: "path" has a list of 3 in it; it must be {POINTS}'),
        (walk(path=[[1, True]]), f'leg 0: "path" has true in it; it must be {POINTS}'),
        (walk(goal=[1]), 'leg 0: "goal" is a list of 1; it must be a point [x, y] in metres or null'),
        (walk(steps=[{"kind": "tern"}]), 'leg 0: step 1: "kind" is "tern"; did you mean "turn"?'),
        (walk(steps=[{"kind": "quit"}]), 'leg 0: step 1: "kind" is "quit"; it must be turn, pass or reach'),
        (
            walk(steps=[{"kind": "turn", "amuont": 3}]),
            'leg 0: step 1 has an unknown key "amuont"; did you mean "amount"?',
        ),
        (walk(steps=[{"kind": "turn", "z": 3}]), 'leg 0: step 1 has an unknown key "z"; the keys are kind, amount'),
        (walk(steps=[{"kind": "turn", "amount": 0}]), f'leg 0: step 1: "amount" is 0; it must be {AMOUNT}'),
        (walk(steps=[{"kind": "turn", "amount": "1"}]), f'leg 0: step 1: "amount" is "1"; it must be {AMOUNT}'),
        (walk(reference=[1]), 'leg 0: "reference" is a list; it must be a whole number or a text or null'),
        (
            walk(values=[1, "2"]),
            'leg 0: value 2 is "2"; it must be a finite number from -1,000,000 to 1,000,000',
        ),
        (walk(values=[[1]]), "leg 0: value 1 is a list; it must be a finite number from -1,000,000 to 1,000,000"),
    ],
)
def test_a_mistake_is_one_sentence_that_says_where_what_and_what_instead(document: Any, sentence: str) -> None:
    with pytest.raises(WordwingError) as error:
        parse(Walk, document, "walks.jsonl: line 3")
    assert str(error.value) == f"walks.jsonl: line 3: {sentence}"


def test_a_key_that_the_whole_document_must_not_have_is_named() -> None:
    with pytest.raises(WordwingError, match=r'^F: it has an unknown key "kinds"; did you mean "kind"[?]$'):
        parse(Step, {"kind": "turn", "kinds": 3}, "F")


@pytest.mark.parametrize("text", ["{", b"\xff", "[" * 100_000, '{"id": "\\ud800"}', ""])
def test_what_is_not_json_is_a_sentence_too(text: str | bytes) -> None:
    with pytest.raises(WordwingError, match=r"^F: not valid JSON \("):
        parse_json(Walk, text, "F")


def test_a_value_that_no_json_can_hold_is_a_sentence_too() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(WordwingError, match=r"^F: not valid JSON \("):
        parse(Walk, deep, "F")


def test_an_annotated_type_needs_no_class() -> None:
    kind = Annotated[list[Point], Field(max_length=2)]
    assert parse(kind, [[1, 2]], "F") == [(1.0, 2.0)]
    with pytest.raises(WordwingError, match=r"^F: this is a list of 3; it must be a list of at most 2$"):
        parse(kind, [[1, 2]] * 3, "F")
    with pytest.raises(WordwingError, match=r'^F: entry 2 has "x" in it; it must be a point \[x, y\] in metres$'):
        parse(kind, [[1, 2], [3, "x"]], "F")
