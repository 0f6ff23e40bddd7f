from itertools import pairwise

import numpy as np
import pytest

from wordwing.evaluation.demo import verdict
from wordwing.evaluation.rollout import Flight
from wordwing.evaluation.staging import CORPORA, everything, spoken_of, stage
from wordwing.frames import ARENA_HALF
from wordwing.world.catalogue import landmarks
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import Task

LAYOUT = Layout((Placement("Boat", 1.0, 0.0, 0.0), Placement("Pumpkin", 0.0, 1.5, 0.0)))


def seeded(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("text", "corpus", "names"),
    [
        ("go to the pumpkin, then stop at the boat", "cage", {"Pumpkin", "Boat"}),
        ("pass the windmill on its left and stop in front of the tank", "field", {"Windmill", "Tank"}),
        ("walk to the bed", "house", {"Bed"}),
        ("turn around and go straight", "cage", set()),
        ("kumquat", "cage", set()),
    ],
)
def test_the_first_world_that_has_what_is_named_is_chosen_and_it_is_there(text, corpus, names):
    for seed in range(3):
        chosen, task = stage(text, None, seeded(seed))
        assert chosen == corpus
        assert names <= {entry.name for entry in task.layout.landmarks}
        assert {entry.name for entry in task.layout.landmarks} <= {kind.name for kind in landmarks(corpus)}
        assert max(map(abs, task.start_xy)) < ARENA_HALF


def test_a_world_that_is_asked_for_is_taken_whatever_it_lacks():
    chosen, task = stage("go to the bed", "cage", seeded())
    assert chosen == "cage"
    assert "Bed" not in {entry.name for entry in task.layout.landmarks}


def test_the_same_seed_gives_the_same_place_and_another_another():
    places = [stage("go to the boat", None, seeded(seed))[1] for seed in (1, 1, 2)]
    assert places[0].layout == places[1].layout
    assert places[0].start_xy == places[1].start_xy
    assert places[0].layout != places[2].layout


def test_each_thing_is_named_once_in_order():
    assert spoken_of("go to the boat, circle the pumpkin and stop at the boat", "cage") == ["Boat", "Pumpkin"]
    assert spoken_of("", "cage") == []


def test_everything_holds_one_of_each():
    for corpus in CORPORA:
        assert [entry.name for entry in everything(corpus).landmarks] == [kind.name for kind in landmarks(corpus)]


def flown(text: str, *path: tuple[float, float]) -> Flight:
    points = np.array(path)
    positions = np.column_stack([points, np.full(len(points), 0.7)]).astype(np.float32)
    quaternions = np.tile(np.float32([1, 0, 0, 0]), (len(points), 1))
    task = Task(text, LAYOUT, path[0], 0.0, points)
    return Flight(
        task, positions, quaternions, np.zeros((len(points) - 1, 2), np.float32), len(points) - 1, "stop", 0.0
    )


def straight(*ends: tuple[float, float]) -> list[tuple[float, float]]:
    steps = [np.linspace(a, b, 20) for a, b in pairwise(ends)]
    return [tuple(map(float, point)) for point in np.concatenate(steps)]


def test_the_verdict_is_about_where_the_flight_ended():
    there = straight((-1.0, 0.0), (0.6, 0.0))
    assert verdict(flown("go to the boat", *there)).sentence.startswith(
        "it stopped where the instruction means (the judge gives 1"
    )
    away = straight((-1.0, 0.0), (-1.5, -1.5))
    assert verdict(flown("go to the boat", *away)).sentence.startswith("it did not stop where the instruction means")


def test_what_is_not_understood_is_not_judged():
    path = straight((-1.0, 0.0), (0.6, 0.0))
    said = verdict(flown("go to the elephant", *path)).sentence
    assert "nobody can say" in said
    assert "elephant" in said
