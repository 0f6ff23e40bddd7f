"""The templates of all voices: what each must say, what none may say, and which are kept from training."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest

from wordwing.language.meaning.clauses import COLOURS
from wordwing.language.tokenizer import tokenize
from wordwing.language.writing.content_selection import FINALS, MIDDLES, OPENINGS
from wordwing.language.writing.templates import VOICES, expand, held_out, pick_weighted, templates, voice
from wordwing.world.catalogue import landmarks

SLOTS: dict[str, list[str]] = {
    "turn": ["side"],
    "turn_slight": ["side"],
    "turn_around": [],
    "turn_to": ["X"],
    "straight": [],
    "forward": ["distance"],
    "curve": ["side"],
    "pass": ["X", "side|opp"],
    "circle": ["X", "amount", "side|opp|clock"],
    "hug": ["X", "side|opp"],
    "between": ["X", "Y"],
    "toward": ["X"],
    "reach": ["X"],
    "reach_side": ["X", "where"],
    "reach_fence": ["X"],
    "reach_between": ["X", "Y"],
    "face": ["X"],
    "abeam": ["X", "side|opp"],
    "along": ["X", "side|opp"],
    "leave": ["X"],
}
"""What a sentence about a kind must fill in: one of each row's parts, and nothing else."""

BESIDE = ("pass", "circle", "hug", "abeam", "along")
"""Kinds with a thing beside the drone."""

FORMS = [(form, kind) for form in ("do", "until") for kind in getattr(voice(VOICES[0]), form)]


def entries(form: str, kind: str) -> list[str]:
    """The templates of all voices, those that two of them have twice."""
    return [template for name in VOICES for template in getattr(voice(name), form)[kind]]


def readings(template: str) -> set[str]:
    """Every text that a template's brackets allow: its first bracket decided in each way, and so on."""
    match = re.search(r"\[([^\[\]]*)\]|\(([^()]*)\)", template)
    if match is None:
        return {" ".join(template.split())}
    options = ["", match[1]] if match[1] is not None else match[2].split("|")
    return {
        reading
        for option in options
        for reading in readings(template[: match.start()] + option + template[match.end() :])
    }


def phrases() -> list[str]:
    """All that is said besides imperatives and what follows "until"."""
    found = []
    for speaker in map(voice, VOICES):
        found += [*speaker.openers, *speaker.joins, *speaker.closers]
        for table in (speaker.distances, speaker.amounts, speaker.where, speaker.clock):
            found += [phrase for row in table.values() for phrase in row]
    return found


def test_every_voice_speaks_of_every_kind_of_clause():
    kinds = {*FINALS, *MIDDLES, *OPENINGS}
    for name in VOICES:
        assert set(voice(name).do) == {*kinds, "turn_slight"}
        assert set(voice(name).until) == set(voice(VOICES[0]).until) <= kinds
        for form, kind in FORMS:
            assert templates(name, form, kind, training=True), (name, form, kind)


def test_every_kind_of_clause_can_be_said_in_25_ways():
    for kind in SLOTS:
        assert len(set(entries("do", kind))) >= 25, kind


@pytest.mark.parametrize(("form", "kind"), FORMS)
def test_every_reading_fills_in_what_its_kind_means_once_and_nothing_else(form, kind):
    for template in entries(form, kind):
        for reading in readings(template):
            used = re.findall(r"\{(\w+)\}", reading)
            assert set(used) <= {slot for row in SLOTS[kind] for slot in row.split("|")}, reading
            assert all(any(slot in used for slot in row.split("|")) for row in SLOTS[kind]), reading
            assert len(set(used)) == len(used), reading


def test_brackets_are_all_decided_and_leave_no_gaps(rng):
    for form, kind in FORMS:
        for template in entries(form, kind):
            allowed = readings(template)
            assert not any(re.search(r"[\[\]()|]| [,.;]|  |^ | $", reading) for reading in allowed), template
            assert {expand(template, rng) for _ in range(8)} <= allowed


def test_every_option_and_every_choice_is_taken_sometimes(rng):
    template = "(go|head|fly) [straight] to {X}[, (quickly|now)]"
    assert len(readings(template)) == 3 * 2 * 3
    assert {expand(template, rng) for _ in range(600)} == readings(template)


def test_phrases_outside_templates_have_no_brackets_and_only_counts_have_a_slot():
    assert not any(re.search(r"[\[\]()|]", phrase) for phrase in phrases())
    counts = [
        phrase
        for speaker in map(voice, VOICES)
        for unit in ("steps", "feet", "lengths", "metres")
        for phrase in speaker.distances[unit]
    ]
    assert all(re.findall(r"\{.*?\}", phrase) == ["{n}"] for phrase in counts)
    assert not any("{" in phrase for phrase in set(phrases()) - set(counts))


def test_no_phrase_names_a_colour_or_a_landmark():
    nouns = {noun for entry in landmarks("field") for noun in entry.nouns}
    longest = max(len(tokenize(noun)) for noun in nouns)
    forbidden = {*COLOURS, *nouns, *(f"{noun}s" for noun in nouns)}
    everything = [template for form, kind in FORMS for template in entries(form, kind)] + phrases()
    for phrase in everything:
        words = tokenize(re.sub(r"\{\w+\}", " | ", phrase))
        runs = {" ".join(words[i : i + n]) for n in range(1, longest + 1) for i in range(len(words))}
        assert not runs & forbidden, phrase


def test_a_template_speaks_of_left_and_right_only_through_its_slots():
    # "Right" is also what stresses a place: "right next to you".
    stressed = r"right (there|here|by|up|next|in|infront|at|behind|beside|where|before|after|when|through|along|on)\b"
    for form, kind in FORMS:
        for template in entries(form, kind):
            rest = re.sub(stressed, "", template)
            assert not re.search(r"\b(left|right|\w*clockwise|c?cw)\b", rest), template


@pytest.mark.parametrize("kind", BESIDE)
def test_the_drones_side_and_the_things_own_side_are_not_mixed_up(kind):
    thing = r"(\{X\}|it\b)"
    body = r"(wing|shoulder|hand|ear|arm|eye)\b"
    wrong = [
        r"\b(your|ur|yours|the drone's) \{opp\}",
        r"\{opp\} of (you|u)\b",
        rf"\{{opp\}} {body}",
        r"\b(turning|curving|bending|bend|curve|bank|lean|curling) \{opp\}",
        r"\bits \{side\}",
        rf"\{{side\}}( side| edge| flank|-hand side)? of {thing}",
    ]
    right = [
        r"\b(your|ur) \{side\}",
        r"\{side\} of (you|u)\b",
        rf"\{{side\}} {body}",
        r"\bits? \{opp\}",
        rf"\{{opp\}}( side| edge| flank)? of {thing}",
        r"\{clock\}",
    ]
    forms = [form for form in ("do", "until") if (form, kind) in FORMS]
    told = [template for form in forms for template in entries(form, kind)]
    for template in told:
        assert not any(re.search(pattern, template) for pattern in wrong), template
    assert sum(any(re.search(pattern, template) for pattern in right) for template in told) > 0.4 * len(told)


def test_words_for_places_clocks_and_circles_mean_what_they_stand_for():
    places = {
        "front": r"front|near side|this side|before",
        "behind": r"behind|back|rear|far side|other side|beyond",
        "left": r"\bleft\b",
        "right": r"\bright\b",
    }
    parts = {
        "quarter": r"quarter|fourth|1/4|90",
        "half": r"half|180",
        "three_quarters": r"three|3|270",
        "full": r"all|full|whole|complete|entire|360",
    }
    backwards = r"^(.* )?(counter|anti|ccw)"
    for speaker in map(voice, VOICES):
        for table, meant in ((speaker.where, places), (speaker.amounts, parts)):
            assert set(table) == set(meant)
            assert all(re.search(meant[key], phrase) for key, row in table.items() for phrase in row)
        assert not any(re.search(r"\bright\b", phrase) for phrase in speaker.where["left"])
        assert not any(
            re.search(r"\bleft\b", phrase) for key in places if key != "left" for phrase in speaker.where[key]
        )
        # Flying counterclockwise around a thing keeps it on the left.
        assert all(re.search(backwards, phrase) for phrase in speaker.clock["left"])
        assert all(re.search(r"clock|cw", phrase) for row in speaker.clock.values() for phrase in row)
        assert not any(re.search(backwards, phrase) for phrase in speaker.clock["right"])


@pytest.mark.parametrize(("form", "kind"), FORMS)
def test_a_fifth_of_the_templates_of_each_kind_are_kept_from_training(form, kind):
    everything = set(entries(form, kind))
    kept = {template for f, k, template in held_out() if (f, k) == (form, kind)}
    assert len(kept) == pytest.approx(len(everything) / 5, abs=1)
    assert kept < everything
    trained = {template for name in VOICES for template in templates(name, form, kind, training=True)}
    assert trained == everything - kept
    for name in VOICES:
        assert list(templates(name, form, kind, training=False)) == getattr(voice(name), form)[kind]


@pytest.mark.parametrize(("form", "kind"), FORMS)
def test_no_reading_of_a_template_kept_from_training_is_one_of_a_training_template(form, kind):
    kept, trained = set(), set()
    for template in entries(form, kind):
        (kept if (form, kind, template) in held_out() else trained).update(readings(template))
    assert not kept & trained


def test_the_same_templates_are_kept_in_every_process():
    code = "from wordwing.language.writing.templates import held_out; print(sorted(held_out()))"
    command = [sys.executable, "-c", code]
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(sys.path)}
    said = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    assert said.strip() == str(sorted(held_out()))


def test_expanding_is_decided_by_the_generator_alone():
    template = "(go|head|fly) [straight] [on] to {X}"
    first, again = ([expand(template, np.random.default_rng(seed)) for seed in range(20)] for _ in range(2))
    assert first == again
    assert len(set(first)) > 5


def test_picking_by_weight_is_what_numpy_does():
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    for count in (1, 2, 7) * 30:
        weights = one.random(count)
        chances = other.random(count) / weights.sum()
        assert pick_weighted(range(count), weights, one) == other.choice(count, p=chances)
    assert one.random() == other.random()
