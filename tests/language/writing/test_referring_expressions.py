"""What things are called: the lexicon against the catalogue, and names against what stands in the layout."""

import math
import re
from itertools import combinations, pairwise

import numpy as np
import pytest

from wordwing.language.meaning.clauses import COLOURS
from wordwing.language.tokenizer import tokenize
from wordwing.language.writing.referring_expressions import CLOSE, Namer
from wordwing.world.catalogue import landmarks, lexicon
from wordwing.world.layout import Layout, Placement
from wordwing.world.samplers import sample_layout

BESIDE = re.compile(r"^(?P<phrase>.+) (next to|near|by|close to|beside) the (?P<noun>.+)$")


def phrases(name: str) -> set[str]:
    """All that a landmark may be called."""
    entry = lexicon()[name]
    return {*entry.names, *entry.looks, *entry.contrast}


def names(layout: Layout, index: int, rng: np.random.Generator, draws: int = 80, **habits: float) -> set[str]:
    """What writers who have not spoken yet call a landmark; without article."""
    found = {Namer(layout, rng, **habits).name(index) for _ in range(draws)}
    assert all(name.startswith("the ") for name in found)
    return {name.removeprefix("the ") for name in found}


def test_every_landmark_that_corpora_are_generated_from_has_an_entry_that_begins_with_its_nouns():
    assert {entry.name for entry in (*landmarks("field"), *landmarks("cage"))} <= set(lexicon())
    for entry in landmarks("field"):
        assert lexicon()[entry.name].names[: len(entry.nouns)] == entry.nouns


def test_every_landmark_can_be_named_and_described_in_several_ways_each_once():
    for name, entry in lexicon().items():
        everything = [*entry.names, *entry.looks, *entry.contrast]
        assert len(entry.names) >= 5, name
        assert len(entry.looks) >= 3, name
        assert len(set(everything)) == len(everything), name
        assert all(phrase == phrase.lower().strip() and len(tokenize(phrase)) <= 8 for phrase in everything), name


def test_no_phrase_has_a_side_or_a_slot_in_it():
    for name in lexicon():
        assert not any(re.search(r"\b(left|right|the|a)$|\b(left|right)\b|[{}\[\]()|]", p) for p in phrases(name)), name


def test_whatever_shares_a_noun_has_something_that_tells_it_from_all_others():
    for name, entry in lexicon().items():
        family = [other for other in lexicon() if lexicon()[other].family == entry.family]
        assert bool(entry.contrast) == (len(family) > 1), name
    for one, other in combinations(lexicon(), 2):
        assert not set(lexicon()[one].contrast) & phrases(other), (one, other)
        assert not set(lexicon()[other].contrast) & phrases(one), (one, other)
        assert not set(lexicon()[one].looks) & phrases(other), (one, other)


def may_mean(layout: Layout, phrase: str) -> list[int]:
    """Landmarks that somebody who knows the lexicon could take a phrase for: called so, or of that family."""
    return [
        index
        for index, placement in enumerate(layout.landmarks)
        if phrase in phrases(placement.name) or phrase == lexicon()[placement.name].family
    ]


def near(layout: Layout, index: int, noun: str) -> bool:
    """Whether something that is called so stands near a landmark."""
    here = layout.landmarks[index]
    return any(
        other != index
        and noun in lexicon()[placement.name].names
        and math.hypot(placement.x - here.x, placement.y - here.y) <= CLOSE
        for other, placement in enumerate(layout.landmarks)
    )


@pytest.mark.parametrize("corpus", ["field", "cage"])
def test_a_careful_writers_names_fit_one_landmark_only(corpus, rng):
    neighbours = contrasts = 0
    for _ in range(120):
        layout = sample_layout(corpus, rng)
        for index, placement in enumerate(layout.landmarks):
            for name in names(layout, index, rng, draws=4, loose=0.0):
                if name in phrases(placement.name):
                    contrasts += name in lexicon()[placement.name].contrast
                    assert may_mean(layout, name) == [index], name
                else:
                    match = BESIDE.match(name)
                    assert match is not None, name
                    assert match["phrase"] in phrases(placement.name)
                    fits = [other for other in may_mean(layout, match["phrase"]) if near(layout, other, match["noun"])]
                    assert fits == [index], name
                    neighbours += 1
    assert contrasts > 20
    assert neighbours > 5


BARRELS = (Placement("Barrel", -1.5, 0.0), Placement("Barrel", 1.5, 0.0))
"""Alike, and 3 m apart."""


def test_two_of_a_kind_are_told_apart_by_what_stands_near_one_of_them(rng):
    layout = Layout((*BARRELS, Placement("Mushroom", -1.5, 0.8), Placement("Anvil", 0.0, 2.0)))
    told = names(layout, 0, rng, looks=0.0, loose=0.0)
    assert {BESIDE.match(name)["noun"] for name in told} == {lexicon()["Mushroom"].names[0]}
    assert {BESIDE.match(name)["phrase"] for name in told} <= set(lexicon()["Barrel"].names)
    assert len({re.sub(r".* (\w+) the .*", r"\1", name) for name in told}) >= 3
    # Nothing stands near the other one.
    assert not any(BESIDE.match(name) for name in names(layout, 1, rng, looks=0.0, loose=0.0))


def test_the_nearest_neighbour_is_the_one_spoken_of(rng):
    others = [Placement("Mushroom", -1.5, 1.0), Placement("Anvil", -1.5, -0.7), Placement("Boat", -0.4, 0.0)]
    for around in (others, others[::-1]):
        told = names(Layout((*BARRELS, *around)), 0, rng, looks=0.0, loose=0.0)
        assert {BESIDE.match(name)["noun"] for name in told} == {"anvil"}


def test_a_neighbour_that_both_have_tells_nothing(rng):
    one = Layout((Placement("Barrel", -0.7, 0.0), Placement("Barrel", 0.7, 0.0), Placement("Mushroom", 0.0, 0.5)))
    # Two bushes are two landmarks, but one word.
    two = Layout((*BARRELS, Placement("BushTree", -1.5, 0.9), Placement("BushTree2", 1.5, 0.9)))
    assert lexicon()["BushTree"].names[0] == lexicon()["BushTree2"].names[0]
    for layout in (one, two):
        for index in (0, 1):
            assert not any(BESIDE.match(name) for name in names(layout, index, rng, looks=0.0, loose=0.0))


def test_a_careless_writer_does_not_mind_that_a_name_fits_two_things(rng):
    layout = Layout((*BARRELS, Placement("Mushroom", -1.5, 0.8)))
    assert "barrel" in names(layout, 0, rng, looks=0.0, loose=1.0)
    assert names(layout, 0, rng, looks=0.0, loose=1.0) <= set(lexicon()["Barrel"].names)
    assert "barrel" not in names(layout, 0, rng, looks=0.0, loose=0.0)


def test_a_name_that_fits_one_thing_only_is_left_as_it_is(rng):
    layout = Layout((Placement("Barrel", -0.5, 0.0), Placement("Mushroom", 0.3, 0.0)))
    assert names(layout, 0, rng, looks=0.0, loose=0.0) <= set(lexicon()["Barrel"].names)
    assert "barrel" in names(layout, 0, rng, looks=0.0, loose=0.0)


def test_who_goes_by_looks_describes_and_who_does_not_names(rng):
    layout = Layout((Placement("Anvil", 0.0, 0.0),))
    assert names(layout, 0, rng, looks=1.0) == set(lexicon()["Anvil"].looks)
    assert names(layout, 0, rng, looks=0.0) <= set(lexicon()["Anvil"].names)


def test_most_people_use_the_commonest_noun(rng):
    layout = Layout((Placement("Boat", 0.0, 0.0),))
    said = [Namer(layout, rng, looks=0.0).name(0) for _ in range(400)]
    assert said.count("the boat") > 0.4 * len(said)
    assert {"the wooden boat", "the row boat", "the canoe"} <= set(said)


def test_a_writer_mostly_goes_on_calling_a_thing_the_same(rng):
    layout = Layout((Placement("Boat", 0.0, 0.0), Placement("Anvil", 1.0, 0.0)))
    namer = Namer(layout, rng)
    said = [(namer.name(0), namer.name(1), namer.name("red")) for _ in range(200)]
    for thing in zip(*said, strict=True):
        same = np.mean([a == b for a, b in pairwise(thing)])
        assert 0.6 < same < 1


def test_fences_are_told_by_their_colour(rng):
    nouns = {word for entry in landmarks("field") for noun in entry.nouns for word in tokenize(noun)}
    for colour in COLOURS:
        said = {Namer(Layout(()), rng).name(colour) for _ in range(60)}
        assert f"the {colour} fence" in said
        assert len(said) >= 4
        for name in said:
            article, first, *rest = name.split()
            assert (article, first) == ("the", colour)
            assert len(rest) == 1
            assert rest[0] not in nouns


def test_who_drops_articles_drops_some(rng):
    layout = Layout((Placement("Anvil", 0.0, 0.0),))
    namer = Namer(layout, rng, looks=0.0, article=False)
    with_article = [namer.name(0).startswith("the ") for _ in range(100)]
    assert 20 < sum(with_article) < 80


@pytest.mark.parametrize(
    ("name", "many"),
    [
        ("red flowers", True),
        ("flowers near the boat", True),
        ("boat next to the flowers", False),
        ("barrel with silver hoops", False),
        ("bushes close to the bus", True),
        ("bus", False),
        ("cactus", False),
    ],
)
def test_it_does_not_stand_for_what_is_called_by_a_plural(name, many, rng):
    namer = Namer(Layout((Placement("Boat", 0.0, 0.0),)), rng)
    namer._called[0] = name
    assert namer.plural(0) == many
