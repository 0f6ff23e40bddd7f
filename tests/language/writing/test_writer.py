"""A meaning in words: every slot with what it stands for, every thing by its name, every persona by its habits."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from walked_flights import walked_flights
from wordwing.language.meaning.clauses import COLOURS, Clause
from wordwing.language.meaning.facts import UNITS
from wordwing.language.meaning.flown_path import Track
from wordwing.language.meaning.judge import judge
from wordwing.language.writing import writer as writer_module
from wordwing.language.writing.templates import VOICES, held_out, voice
from wordwing.language.writing.writer import Persona, Writer
from wordwing.world.catalogue import lexicon
from wordwing.world.layout import Layout, Placement

LAYOUT = Layout((Placement("Boat", -1.5, 0.0), Placement("Anvil", 1.5, 0.0), Placement("Pumpkin", 0.0, 1.5)))
"""Three landmarks that no one could take for one another."""

PLAIN = Persona("plain", typos=0.0, looks=0.0, pronouns=0.5, tidy=True, articles=True, clauses=(0.4, 0.3, 0.3))
SLIGHT, QUARTER = math.radians(35), math.pi / 2

CLAUSES = [
    *(Clause("turn", side=side, amount=amount) for side in ("left", "right") for amount in (SLIGHT, QUARTER)),
    Clause("turn_around"),
    Clause("turn_to", 0),
    Clause("turn_to", "red"),
    Clause("straight"),
    *(Clause("forward", amount=amount) for amount in (0.28, 0.6, 1.1, 1.9)),
    *(Clause(kind, 0, side=side) for kind in ("pass", "hug", "abeam") for side in ("left", "right")),
    *(Clause("curve", side=side) for side in ("left", "right")),
    *(
        Clause("circle", 0, side=side, amount=round(quarters * QUARTER, 4))
        for side in ("left", "right")
        for quarters in (1, 2, 3, 4)
    ),
    Clause("between", 0, 1),
    Clause("between", 0, "white"),
    Clause("toward", 1),
    Clause("toward", "blue"),
    Clause("reach", 2),
    *(Clause("reach_side", 2, side=side) for side in ("front", "behind", "left", "right")),
    Clause("reach_fence", "yellow"),
    Clause("reach_between", 1, 2),
    Clause("face", 1),
    Clause("face", "red"),
    *(Clause("along", "white", side=side) for side in ("left", "right")),
    Clause("leave", 0),
]
"""Every kind, on both sides, with every amount."""

MOVEMENTS = [Clause("straight"), Clause("curve", side="left"), Clause("toward", "blue"), Clause("leave", 1)]


def texts(meaning: list[Clause], count: int = 20, training: bool = False, seed: int = 0, **habits: object) -> list[str]:
    """A meaning in several sets of words."""
    persona = replace(PLAIN, **habits)
    return [Writer(LAYOUT, persona, training, np.random.default_rng([seed, k])).word(meaning) for k in range(count)]


def name_of(reference: int | str) -> str:
    """A pattern for what somebody may call a landmark of the layout, or a fence."""
    if isinstance(reference, str):
        return rf"\b{reference} \w+"
    entry = lexicon()[LAYOUT.landmarks[reference].name]
    return "|".join(rf"\b{re.escape(phrase)}\b" for phrase in (*entry.names, *entry.looks, *entry.contrast))


@pytest.fixture
def marked(monkeypatch):
    """Has all clauses worded by a template that shows its slots."""

    def templates(name: str, form: str, kind: str, training: bool) -> tuple[str, ...]:
        slots = {
            "turn": "{side}",
            "turn_slight": "{side}",
            "curve": "{side}",
            "forward": "{distance}",
            "circle": "{X} {side} {opp} {clock} {amount}",
            "between": "{X} {Y}",
            "reach_between": "{X} {Y}",
            "reach_side": "{X} {where}",
            **dict.fromkeys(("pass", "hug", "abeam", "along"), "{X} {side} {opp}"),
            **dict.fromkeys(("turn_to", "toward", "reach", "reach_fence", "face", "leave"), "{X}"),
        }.get(kind, "")
        return (f"«{form} {kind} " + slots.replace("{", "<{").replace("}", "}>").replace("> <", "><") + "»",)

    monkeypatch.setattr(writer_module, "templates", templates)


def slots(text: str) -> list[tuple[str, str, list[str]]]:
    """Form, kind and what was filled in, of each clause of a text in marked templates."""
    found = re.findall(r"«(\w+) (\w+) (?:(<.*?>)?)»", text)
    return [(form, kind, re.findall(r"<(.*?)>", filled)) for form, kind, filled in found]


@pytest.mark.parametrize("name", VOICES)
def test_every_slot_of_every_clause_is_filled_in_every_voice(name):
    for clause in CLAUSES:
        for meaning in ([clause], [MOVEMENTS[0], clause], [clause, MOVEMENTS[2], clause]):
            for text in texts(meaning, 4, voice=name):
                assert not re.search(r"[{}\[\]|<>]|None|  | [,.;]|\bthe the\b", text), text
                assert text == text.strip() != ""


@pytest.mark.usefixtures("marked")
def test_sides_are_the_drones_and_the_opposite_is_the_other_one():
    other = {"left": "right", "right": "left"}
    for clause in CLAUSES:
        for text in texts([clause], 6, articles=True):
            [(form, kind, filled)] = slots(text)
            assert form == "do"
            assert kind == ("turn_slight" if clause.amount == SLIGHT else clause.kind)
            if clause.kind in ("turn", "curve"):
                assert filled == [clause.side]
            if clause.kind in ("pass", "hug", "abeam", "along", "circle"):
                assert filled[1:3] == [clause.side, other[clause.side]]


@pytest.mark.usefixtures("marked")
def test_places_clocks_and_parts_of_a_circle_are_those_of_the_meaning():
    parts = dict(zip((1, 2, 3, 4), ("quarter", "half", "three_quarters", "full"), strict=True))
    speakers = [voice(name) for name in VOICES]
    for clause in CLAUSES:
        for text in texts([clause], 12):
            [(_, _, filled)] = slots(text)
            if clause.kind == "reach_side":
                assert any(filled[1] in speaker.where[clause.side] for speaker in speakers)
            if clause.kind == "circle":
                assert any(filled[3] in speaker.clock[clause.side] for speaker in speakers)
                part = parts[round(clause.amount / QUARTER)]
                assert any(filled[4] in speaker.amounts[part] for speaker in speakers)


@pytest.mark.usefixtures("marked")
def test_things_are_named_in_the_order_of_the_clause():
    for clause in CLAUSES:
        for text in texts([clause], 6, looks=0.3):
            [(_, _, filled)] = slots(text)
            for reference, name in zip(clause.references, filled, strict=False):
                assert re.fullmatch(rf"the ({name_of(reference)})", name), (clause, name)


@pytest.mark.usefixtures("marked")
def test_clauses_are_said_in_their_order():
    meaning = [Clause("turn", side="left", amount=SLIGHT), Clause("straight"), Clause("pass", 1, side="right")]
    for text in texts([*meaning, Clause("face", 0)]):
        assert [kind for _, kind, _ in slots(text)] == ["turn_slight", "straight", "pass", "face"]


@pytest.mark.usefixtures("marked")
def test_it_stands_only_for_the_one_thing_last_spoken_of():
    meanings = [
        ([Clause("toward", 0), Clause("pass", 0, side="left")], [False, True]),
        ([Clause("toward", 0), Clause("pass", 1, side="left"), Clause("reach", 0)], [False, False, False]),
        ([Clause("between", 0, 1), Clause("reach", 1)], [False, False]),
        ([Clause("between", 0, 1), Clause("face", 0)], [False, False]),
        ([Clause("pass", 0, side="left"), Clause("between", 0, 1)], [False, False]),
        ([Clause("turn_to", 0), Clause("straight"), Clause("reach", 0)], [False, None, True]),
        ([Clause("toward", "red"), Clause("reach_fence", "red"), Clause("face", 0)], [False, True, False]),
        ([Clause("pass", 0, side="left"), Clause("circle", 0, side="left", amount=1.5708), Clause("reach", 0)], None),
    ]
    for meaning, allowed in meanings:
        for text in texts(meaning, pronouns=1.0):
            said = [filled[0] == "it" if filled else None for _, _, filled in slots(text)]
            assert said == (allowed or [False, True, True]), text
            assert not any("it" in filled[1:] for _, _, filled in slots(text))


@pytest.mark.usefixtures("marked")
def test_who_never_says_it_names_things_again():
    meaning = [Clause("toward", 0), Clause("pass", 0, side="left")]
    for text in texts(meaning, pronouns=0.0):
        assert all(re.fullmatch(rf"the ({name_of(0)})", filled[0]) for _, _, filled in slots(text))
    share = np.mean([slots(text)[1][2][0] == "it" for text in texts(meaning, 200, pronouns=0.5)])
    assert 0.35 < share < 0.65


@pytest.mark.usefixtures("marked")
def test_nobody_says_it_of_flowers(rng):
    layout = Layout((Placement("RedFlowers", 0.0, 0.0),))
    said = set()
    for _ in range(60):
        text = Writer(layout, replace(PLAIN, pronouns=1.0), False, rng).word([Clause("toward", 0), Clause("reach", 0)])
        (_, _, [first]), (_, _, [again]) = slots(text)
        assert again != "it" or not first.endswith("flowers")
        said.add(again)
    assert said - {"it"}


@pytest.mark.usefixtures("marked")
def test_until_joins_a_movement_without_an_end_to_what_ends_it():
    joined = texts([Clause("straight"), Clause("reach", 0)], 60)
    assert {slots(text)[1][0] for text in joined} == {"do", "until"}
    for text in joined:
        assert (slots(text)[1][0] == "until") == bool(re.search(r"» (until|til) «", text)), text
    # What has an end of its own needs none, and a curve can not be one.
    for meaning in ([Clause("reach", 0), Clause("face", 1)], [Clause("straight"), Clause("curve", side="left")]):
        assert all(form == "do" for text in texts(meaning) for form, _, _ in slots(text))


SIDED = [
    # What is said of the drone.
    (re.compile(r"\b(?:your|ur) (left|right)\b(?! of)"), False),
    (re.compile(r"\b(left|right) of (?:you|u)\b"), False),
    # What is said of the thing: the drone is on its left if it is on the drone's right.
    (re.compile(r"\bits (left|right)\b"), True),
    (re.compile(r"\b(left|right)(?: side)? of (?:the|it)\b"), True),
]


@pytest.mark.parametrize("name", VOICES)
def test_the_words_left_and_right_agree_with_the_meaning(name):
    other = {"left": "right", "right": "left"}
    heard = 0
    handed = [clause for clause in CLAUSES if clause.kind in ("pass", "circle", "hug", "abeam", "along")]
    for clause in handed:
        for text in texts([clause], 12, voice=name, seed=1):
            told = text.lower()
            for pattern, turned in SIDED:
                for side in pattern.findall(told):
                    assert (other[side] if turned else side) == clause.side, text
                    heard += 1
            if match := re.search(r"\b(?:(counter|anti)[ -]?)?clock ?wise\b", told):
                assert clause.side == ("left" if match[1] else "right"), text
                heard += 1
    assert heard > 12 * len(handed) / 4
    for clause in CLAUSES:
        if clause.kind in ("turn", "curve"):
            for text in texts([clause], 6, voice=name):
                sides = set(re.findall(r"\b(left|right)\b", text.lower()))
                assert clause.side in sides, text
                assert other[clause.side] not in sides, text


COUNTED = sorted({round(number * unit, 2) for unit in UNITS.values() for number in range(2, 9)} - {0.6})


@pytest.mark.usefixtures("marked")
@pytest.mark.parametrize("metres", COUNTED)
def test_a_counted_distance_is_as_long_as_it_says(metres):
    numbers = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8}
    units = {"step|pace|stride": 0.3, "feet|foot|ft": 0.3, "length|size": 0.4, "meter|metre": 1.0}
    said = [slots(text)[0][2][0].lower() for text in texts([Clause("forward", amount=metres)], 40)]
    for distance in said:
        [number] = re.findall(rf"\b(?:\d+|{'|'.join(numbers)})\b", distance)
        [unit] = [worth for pattern, worth in units.items() if re.search(pattern, distance)]
        assert (numbers.get(number) or int(number)) * unit == pytest.approx(metres), distance
    assert any(re.search(r"\d", distance) for distance in said)
    assert any(not re.search(r"\d", distance) for distance in said)


def test_vague_distances_have_words_of_their_own():
    for metres, name in ((0.28, "tiny"), (0.6, "short"), (1.1, "medium"), (1.9, "long")):
        words = {phrase for speaker in VOICES for phrase in voice(speaker).distances[name]}
        for text in texts([Clause("forward", amount=metres)]):
            assert any(phrase in text.lower() for phrase in words), text


def test_texts_of_tidy_people_are_sentences():
    for clause in CLAUSES:
        for text in texts([clause, *MOVEMENTS[:1], clause], 4, tidy=True):
            assert text.endswith((".", "!"))
            assert not text.endswith("..")
            assert not re.search(r"^[a-z]|[.!?] [a-z]", text), text


def test_texts_of_untidy_people_are_not_touched():
    said = [text for clause in CLAUSES for text in texts([clause, Clause("straight"), clause], 4, tidy=False)]
    assert not any(re.search(r"[A-Z]", text) for text in said)
    assert sum(text.endswith(".") for text in said) < 0.1 * len(said)


@pytest.fixture
def spoken(monkeypatch):
    """Form, kind and template of every clause as it is put into words."""
    said: list[tuple[str, str, str]] = []
    asked = [("", "")]
    templates, expand = writer_module.templates, writer_module.expand

    def choose(name: str, form: str, kind: str, training: bool) -> tuple[str, ...]:
        asked[0] = form, kind
        return templates(name, form, kind, training)

    def decide(template: str, rng: np.random.Generator) -> str:
        said.append((*asked[0], template))
        return expand(template, rng)

    monkeypatch.setattr(writer_module, "templates", choose)
    monkeypatch.setattr(writer_module, "expand", decide)
    return said


def say_everything(training: bool) -> None:
    for clause in CLAUSES:
        for name in VOICES:
            texts([clause], 8, training, voice=name)
            texts([Clause("straight"), clause], 8, training, voice=name)


def test_training_texts_use_no_template_that_is_kept_for_dev_and_test(spoken):
    say_everything(training=True)
    assert {form for form, _, _ in spoken} == {"do", "until"}
    assert not set(spoken) & held_out()


def test_texts_for_dev_and_test_use_both_kinds_of_templates(spoken):
    say_everything(training=False)
    assert len(set(spoken) & held_out()) > 30
    assert len(set(spoken) - held_out()) > 120


@pytest.fixture(scope="module")
def written():
    """Flights of both corpora with what somebody wrote about them."""
    rng = np.random.default_rng(13)
    found = []
    for corpus in ("field", "cage"):
        for flights in walked_flights(corpus, 25, rng):
            persona = replace(Persona.sample(rng), typos=0.0)
            pen = Writer(flights[0].layout, persona, bool(rng.random() < 0.5), rng)
            for flight in flights:
                rivals = [other.track for other in flights if other is not flight]
                found.append((flight, persona, pen.write(flight.track, rivals)))
    return found


def test_what_is_written_is_true_of_the_flight(written):
    assert np.mean([sentence is None for _, _, sentence in written]) < 0.1
    for flight, _, sentence in written:
        if sentence is not None:
            assert judge(sentence.meaning, *flight).score >= 0.95, sentence


def test_everything_that_is_meant_is_mentioned_by_one_of_its_names_or_as_it(written):
    for flight, _, sentence in written:
        if sentence is None:
            continue
        text, last = sentence.text.lower(), ()
        for clause in sentence.meaning:
            for reference in clause.references:
                if isinstance(reference, str):
                    mentioned = re.search(rf"\b{reference} (fence|wall|border|boundary|edge|side)\b", text)
                else:
                    entry = lexicon()[flight.layout.landmarks[reference].name]
                    mentioned = any(phrase in text for phrase in (*entry.names, *entry.looks, *entry.contrast))
                assert mentioned or (last == (reference,) and re.search(r"\bit\b", text)), sentence
            last = clause.references or last


def test_no_fence_is_mentioned_that_is_not_meant(written):
    for _, _, sentence in written:
        for colour in COLOURS if sentence is not None else ():
            if re.search(rf"\bthe {colour} (fence|border|boundary)\b", sentence.text.lower()):
                assert any(colour in clause.references for clause in sentence.meaning), sentence


def test_personas_differ_as_people_do(rng):
    people = [Persona.sample(rng) for _ in range(400)]
    assert {person.voice for person in people} == set(VOICES)
    assert {person.tidy for person in people} == {True, False}
    assert not any(person.tidy for person in people if person.voice == "sloppy")
    assert all(person.articles for person in people if person.voice != "terse")
    assert all(math.isclose(sum(person.clauses), 1) for person in people)
    assert all(0 <= person.typos < 0.2 and 0 <= person.looks < 0.5 and 0 <= person.pronouns <= 1 for person in people)
    assert len({person.typos for person in people}) > 2


def test_mistakes_are_the_personas():
    meaning = [Clause("toward", 0), Clause("circle", 1, side="left", amount=1.5708), Clause("reach", 2)]
    right, wrong = (texts(meaning, 10, typos=rate) for rate in (0.0, 1.0))
    assert all(re.search(name_of(1), text.lower()) for text in right)
    assert not any(all(re.search(name_of(k), text.lower()) for k in range(3)) for text in wrong)


def test_of_a_drone_that_hovers_nothing_is_written(rng):
    assert Writer(Layout(()), PLAIN, False, rng).write(Track([(0.0, 0.0)], 0.0, Layout(())), []) is None


def test_equal_seeds_write_equal_texts_and_others_do_not():
    meaning = [Clause("straight"), Clause("pass", 0, side="left"), Clause("reach", 1)]
    first, again, other = (texts(meaning, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert len(set(first) & set(other)) < 5
