"""The writer of tours: the text of a meaning, in a mirror too, and what things are called."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from wordwing.language.meaning.clauses import Clause, Side
from wordwing.language.tokenizer import mirrored, tokenize
from wordwing.language.writing.templates import HELD_OUT
from wordwing.language.writing.tour_phrases import phrases
from wordwing.language.writing.tour_references import Habits, References, hour, palette
from wordwing.language.writing.tour_writer import TourWriter, Visitor
from wordwing.world.catalogue import landmark
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import StartPose

START = StartPose(-1.0, 0.0, 0.0)
LAYOUT = Layout(
    (
        Placement("Barrel", 0.5, 1.2),
        Placement("OilDrum", 0.8, -1.0),
        Placement("Gorilla", 1.6, 1.5, 0.5),
        Placement("Boat", -2.0, -0.3, 2.0),
        Placement("Pumpkin", -0.9, 1.9),
    )
)
"""Seen from the start, the first two are barrels at the left and right; the third stands near the first."""
MIRROR = Layout(tuple(replace(entry, y=-entry.y, yaw=-entry.yaw) for entry in LAYOUT.landmarks))
OTHER: dict[Side | None, Side | None] = {"left": "right", "right": "left"}

MEANINGS = (
    (Clause("turn", side="left", amount=1.5708), Clause("pass", 0, side="left"), Clause("reach", 2)),
    (Clause("move", side="right", amount=0.5), Clause("circle", 1, side="right", amount=6.2832), Clause("return")),
    (Clause("turn", side="right", amount=0.5236), Clause("reach", 3, amount=1.0), Clause("look", 4)),
    (Clause("between", 0, 2), Clause("avoid", 1), Clause("abeam", 4, side="right")),
    (Clause("toward", 0), Clause("circle", 0, side="left", amount=3.1416), Clause("reach_side", 1, side="right")),
    (Clause("pass", 1, side="right"), Clause("reach_own_side", 2, side="behind"), Clause("hover", amount=3.0)),
    (Clause("reach", 0), Clause("reach", 4), Clause("circle", 3, side="left", amount=12.5664), Clause("reach", 0)),
    (Clause("forward", amount=1.5), Clause("turn", side="left", amount=math.pi / 2), Clause("reach_between", 1, 3)),
)


def visitor(seed: int, **habits: object) -> Visitor:
    """Somebody who types no words wrong."""
    drawn = replace(Visitor.sample(np.random.default_rng(seed)), typos=0.0, short=0.0)
    return replace(drawn, **habits)


def text(meaning, seed: int, who: Visitor | None = None, layout: Layout = LAYOUT, start: StartPose = START):
    rng = np.random.default_rng(seed)
    return TourWriter(layout, who or visitor(seed), False, rng, start).write_tour(meaning)


def one_word(words: list[str]) -> list[str]:
    """There are several words for counter-clockwise."""
    said = " ".join(words).replace("counter clockwise", "counterclockwise")
    return said.replace("anti clockwise", "counterclockwise").replace("anticlockwise", "counterclockwise").split()


@pytest.mark.parametrize("meaning", MEANINGS)
def test_the_text_of_a_mirrored_tour_is_the_text_in_a_mirror(meaning):
    flipped = tuple(replace(clause, side=OTHER.get(clause.side, clause.side)) for clause in meaning)
    turned = 0
    for seed in range(40):
        who = visitor(seed)
        who = replace(who, habits=replace(who.habits, relations=0.0))  # fences stay where they are
        here = text(meaning, seed, who).text
        there = text(flipped, seed, who, MIRROR).text
        for tokenizer in (1, 2):
            words = tokenize(here, tokenizer)
            assert one_word(mirrored(words)) == one_word(tokenize(there, tokenizer)), here
            turned += mirrored(words) != words
    assert turned > 20


@pytest.mark.parametrize("meaning", MEANINGS)
def test_every_slot_is_filled_and_everything_meant_is_spoken_of(meaning):
    for seed in range(40):
        said = text(meaning, seed).text
        assert not re.search(r"[{}\[\]|]|  ", said)
        assert 3 < len(said) < 1000
        if (amount := next((c.amount for c in meaning if c.kind == "hover"), None)) is not None:
            assert re.search(f"{amount:g}|three|few|some", said)


def test_a_side_that_is_not_said_leaves_the_other_one_open():
    meaning = (Clause("pass", 2, side="left"), Clause("circle", 3, side="right", amount=6.2832))
    counts = {0: 0, 1: 0, 3: 0}
    for seed in range(120):
        who = visitor(seed)
        said = text(meaning, seed, replace(who, habits=replace(who.habits, relations=0.0), asides=0.0, corrections=0.0))
        counts[len(said.alternatives)] += 1
        sides = {tuple(clause.side for clause in other) for other in said.alternatives}
        spoken = re.search(
            r"\b(left|right|opp)\b|clockwise|[39] o'clock|three o'clock|nine o'clock|flank", said.text.lower()
        )
        assert (len(said.alternatives) < 3) == bool(spoken), said.text
        if len(said.alternatives) == 3:
            assert sides == {("right", "right"), ("left", "left"), ("right", "left")}
    assert min(counts.values()) > 0


def test_pronouns_mean_what_was_named_just_before():
    habits = Habits(pronouns=1.0, relations=0.0, back=0.0)
    meaning = (Clause("reach", 3), Clause("circle", 3, side="left", amount=6.2832))
    who = visitor(1, habits=habits, contrasts=0.0, corrections=0.0, backwards=0.0, asides=0.0, polite=0.0)
    assert all(re.search(r"\b(it|that one)\b", text(meaning, seed, who).text.lower()) for seed in range(30))
    apart = (Clause("reach", 3), Clause("between", 0, 1), Clause("reach", 3))
    assert not any(re.search(r"\bthat one\b", text(apart, seed, who).text.lower()) for seed in range(30))


def test_two_fences_in_a_row_are_a_corner():
    for seed in range(20):
        said = text((Clause("reach_fence", "red"), Clause("reach_fence", "white")), seed).text.lower()
        assert "corner" in said
        assert said.index("red") >= 0 < said.index("white")


def test_an_angle_may_be_a_clock_direction():
    said = " ".join(
        text((Clause("turn", side="left", amount=2.0944), Clause("return")), seed).text for seed in range(60)
    )
    assert re.search(r"(8|eight) o'clock", said)
    assert not re.search(r"(4|four) o'clock", said)
    assert "120" in said
    assert [hour(math.radians(angle)) for angle in (0, 30, -90, 180, 45)] == [
        "12 o'clock",
        "11 o'clock",
        "3 o'clock",
        "6 o'clock",
        "",
    ]


def test_distances_are_in_the_visitor_s_units():
    meaning = (Clause("reach", 3, amount=1.5),)

    def said(**habits):
        return " ".join(text(meaning, seed, visitor(seed, **habits)).text.lower() for seed in range(40))

    assert re.search(r"\b5 (feet|ft)", said(units="feet", digits=True))
    assert "five feet" in said(units="feet", digits=False)
    assert re.search(r"\b150 ?cm", said(units="centimetres"))
    assert "a metre and a half" in said(units="metres", digits=False)
    assert re.search(r"1\.5 (m|metres)\b", said(units="metres", digits=True))


def relations(place: int, first: bool) -> set[str]:
    """All that can be said of where a landmark is."""
    found = set()
    for seed in range(300):
        rng = np.random.default_rng(seed)
        namer = TourWriter(LAYOUT, visitor(seed, looks=0.0), False, rng, START).namer
        habits = Habits(pronouns=0.0, relations=1.0, back=0.0)
        found.add(References(LAYOUT, START, namer, habits, phrases(False), rng).call(place, alone=True, first=first))
    return found


def test_what_is_said_of_where_a_thing_is_is_true_of_it():
    barrel, drum = relations(0, first=True), relations(1, first=True)
    assert {"the left one of the two barrels", "the left barrel"} <= barrel
    assert {"the right one of the two barrels", "the right barrel"} <= drum
    assert not any(re.search(r"\bright", phrase) for phrase in barrel)
    assert not any(re.search(r"\bleft", phrase) for phrase in drum)
    assert any(re.search("barrel (closest|nearest).* (gorilla|monkey|ape)", phrase) for phrase in barrel)
    assert not any(re.search("(closest|nearest).*gorilla", phrase) for phrase in drum)
    boat = relations(3, first=True)
    assert any("behind you" in phrase or "at your back" in phrase for phrase in relations(4, first=True) | boat)
    assert not any(
        re.search("behind you|your (left|right)|you can see|closer to you", p) for p in relations(3, first=False)
    )
    assert any(re.search("(farthest|furthest|farthest away) from", phrase) for phrase in boat)


def test_a_thing_is_called_by_its_colour_where_nothing_else_has_it():
    assert [palette(name)[0] for name in ("OilDrum", "Gorilla", "Pumpkin")] == ["orange", "black", "orange"]
    said = [relations(place, first=False) for place in range(5)]
    assert "the black one" in said[2]
    assert not any("orange one" in phrase for phrases_of in said for phrase in phrases_of), "two of them are orange"


def test_training_has_no_phrase_that_is_kept_for_dev():
    known, training = phrases(False), phrases(True)
    assert known.words == training.words
    for kind, entries in known.do.items():
        assert len(entries) - len(training.do[kind]) == len(entries) // HELD_OUT
        assert len(set(entries)) == len(entries), kind
        assert set(training.do[kind]) < set(entries) or len(entries) < HELD_OUT


def test_no_phrase_has_a_word_that_means_something_else_in_a_mirror():
    known = phrases(False)
    everything = [entry for part in (known.do, known.words) for key, entries in part.items() for entry in entries]
    everything += [phrase for parts in known.parts.values() for entries in parts.values() for phrase in entries]
    sided = [entry for entry in everything if re.search(r"\b(left|right)", entry)]
    assert sided == []
    assert {landmark(name).name for name in known.parts} == set(known.parts)
