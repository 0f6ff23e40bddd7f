import numpy as np
import pytest

from wordwing.frames import ARENA_HALF
from wordwing.language.text_checks import CORPORA, catalogue_layout, named_landmarks, sample_named_task
from wordwing.world.catalogue import landmarks
from wordwing.world.tasks import StartPose


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
        chosen, task = sample_named_task(text, None, seeded(seed))
        assert chosen == corpus
        assert names <= {entry.name for entry in task.layout.landmarks}
        assert {entry.name for entry in task.layout.landmarks} <= {kind.name for kind in landmarks(corpus)}
        assert max(map(abs, task.start_xy)) < ARENA_HALF


def test_a_world_that_is_asked_for_is_taken_whatever_it_lacks():
    chosen, task = sample_named_task("go to the bed", "cage", seeded())
    assert chosen == "cage"
    assert "Bed" not in {entry.name for entry in task.layout.landmarks}


def test_the_same_seed_gives_the_same_place_and_another_another():
    places = [sample_named_task("go to the boat", None, seeded(seed))[1] for seed in (1, 1, 2)]
    assert places[0].layout == places[1].layout
    assert places[0].start_xy == places[1].start_xy
    assert places[0].layout != places[2].layout


def test_each_thing_is_named_once_in_order():
    assert named_landmarks("go to the boat, circle the pumpkin and stop at the boat", "cage") == ["Boat", "Pumpkin"]
    assert named_landmarks("", "cage") == []


def test_everything_holds_one_of_each():
    for corpus in CORPORA:
        assert [entry.name for entry in catalogue_layout(corpus).landmarks] == [kind.name for kind in landmarks(corpus)]


def test_a_start_that_is_given_is_taken_whatever_the_seed():
    for seed in range(3):
        _corpus, task = sample_named_task("go to the boat", None, seeded(seed), StartPose(0.5, -1.0, 2.0))
        assert (task.start_xy, task.start_yaw) == ((0.5, -1.0), 2.0)
        assert task.gold_path[0].tolist() == [0.5, -1.0]
