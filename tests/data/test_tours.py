"""Tours: paths that do what their sentences say, that ORACLE can fly, and the same from any number of hands."""

import json
from collections import Counter
from dataclasses import replace
from itertools import chain, pairwise

import numpy as np
import pytest

from wordwing.data.corpora import Job, build
from wordwing.data.dataset import Dataset
from wordwing.data.demonstrations.flying import fly_sim
from wordwing.data.generating import Chunk
from wordwing.data.schema import Paragraph
from wordwing.data.tours.making import make_tours
from wordwing.data.tours.moves import FINALS, FRONTED, MIDDLES, OPENINGS, Ground, Tour
from wordwing.data.tours.planning import bent
from wordwing.execution.metrics import succeeded
from wordwing.frames import ARENA_HALF
from wordwing.language.meaning.judge import judge
from wordwing.world.catalogue import landmark
from wordwing.world.layout import Layout, Placement
from wordwing.world.paths import lengths, resample
from wordwing.world.tasks import StartPose

CHUNK = Chunk("tours", "train", seed=5, first=100, count=50)


@pytest.fixture(scope="module")
def made() -> tuple[dict[str, Layout], list[Paragraph]]:
    return make_tours(CHUNK)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    """25 instructions in each split."""
    folder = tmp_path_factory.mktemp("tours") / "tours"
    [built] = build([Job("tours", folder, seed=0, share=0.001)], processes=1)
    return built


def test_a_paragraph_is_one_instruction_and_25_share_a_layout(made):
    layouts, paragraphs = made
    assert [paragraph.id for paragraph in paragraphs] == [f"tours-train-{100 + k:05}" for k in range(50)]
    assert {len(paragraph.segments) for paragraph in paragraphs} == {1}
    assert Counter(paragraph.layout for paragraph in paragraphs) == {"tours-train-0004": 25, "tours-train-0005": 25}
    for name, layout in layouts.items():
        layout.validate(name)


def test_equal_chunks_are_equal_and_others_share_nothing(made):
    def text(chunk):
        return json.dumps([paragraph.to_json() for paragraph in make_tours(chunk)[1]])

    assert text(CHUNK) == json.dumps([paragraph.to_json() for paragraph in made[1]])
    few = replace(CHUNK, count=3)
    others = [replace(few, seed=6), replace(few, split="dev"), replace(few, first=150)]
    assert len({text(chunk)[-200:] for chunk in (few, *others)}) == 4


def test_a_path_begins_at_its_start_stays_in_the_arena_and_keeps_clear_of_footprints(made):
    layouts, paragraphs = made
    for paragraph in paragraphs:
        [segment] = paragraph.segments
        layout, path = layouts[paragraph.layout], resample(segment.path, 0.01)
        assert segment.start_xy == pytest.approx(tuple(segment.path[0]), abs=1e-3)
        assert np.abs(path).max() <= ARENA_HALF - 0.19
        assert (lengths(path[:, None] - layout.centres) - layout.footprints).min() > 0.18


def test_the_stored_path_follows_every_clause_of_its_meaning(made):
    layouts, paragraphs = made
    sizes = {name: len(layout.landmarks) for name, layout in layouts.items()}
    for paragraph in paragraphs:
        stored = Paragraph.from_json(json.dumps(paragraph.to_json()), sizes, "stored")
        [segment] = stored.segments
        judged = judge(segment.meaning, segment.path, segment.start_yaw, layouts[paragraph.layout])
        assert min(judged.clauses) > 0.8, segment.instruction


def test_an_alternative_has_another_side_and_nothing_else():
    _, paragraphs = make_tours(replace(CHUNK, count=25, first=1000))
    segments = [paragraph.segments[0] for paragraph in paragraphs]
    free = [segment for segment in segments if segment.alternatives]
    assert 0 < len(free) < 15
    for segment in free:
        for other in segment.alternatives:
            changed = [(a, b) for a, b in zip(segment.meaning, other, strict=True) if a != b]
            assert changed
            assert all(replace(a, side=b.side) == b and a.kind in ("pass", "circle") for a, b in changed)


def test_every_kind_of_move_occurs_and_from_one_to_five_are_made():
    meanings = [
        paragraph.segments[0].meaning
        for first in (0, 50, 100, 150)
        for paragraph in make_tours(replace(CHUNK, first=first))[1]
    ]
    kinds = Counter(clause.kind for clause in chain(*meanings))
    known = "turn turn_around turn_to forward move pass circle between toward along look reach reach_side"
    known += " reach_own_side reach_fence reach_between abeam return avoid hover"
    assert set(kinds) == set(known.split())
    sizes = Counter(min(len(meaning), 5) for meaning in meanings)
    assert min(sizes[number] for number in (1, 2, 3, 4, 5)) > 10
    repeated = [[c.reference for c in meaning if c.kind == "reach"] for meaning in meanings]
    assert any(len(set(places)) < len(places) for places in repeated), "back to what was visited before"


def test_oracle_follows_nearly_all_tours_in_time(dataset):
    instructions = list(dataset.instructions("dev"))
    flights = fly_sim(dataset, instructions)
    followed = 0
    for number, one in enumerate(instructions):
        task, path = dataset.task(one), flights.path(number)
        yaws = [*flights.poses(number).yaw.tolist(), float(flights.rest(number).yaw)]
        assert len(path) <= dataset.steps
        assert succeeded(np.linalg.norm(path[-1] - task.gold_path[-1]))
        followed += judge(one.segment.meaning, path, task.start_yaw, task.layout, yaws).followed
    assert followed >= 24


def test_it_is_a_valid_dataset_whose_splits_share_no_layout(dataset):
    dataset.validate()
    assert (dataset.name, dataset.meta["text"], dataset.meta["shared"], dataset.steps) == (
        "tours",
        "generated",
        [],
        100,
    )
    assert {split: row["instructions"] for split, row in dataset.meta["counts"].items()} == {
        "train": 25,
        "dev": 25,
        "test": 25,
    }


def test_a_path_goes_around_what_stands_on_the_straight_way():
    ground = Ground.of(Layout((Placement("Barrel", 0.0, 0.05),)))
    path = bent(np.array([[-1.5, 0.0], [1.5, 0.0]]), ground)
    assert path[[0, -1]].ravel() == pytest.approx([-1.5, 0.0, 1.5, 0.0])
    assert 0.25 < ground.gaps(path).min() < 0.4
    assert (path[:, 1] <= 1e-9).all(), "past the nearer side"
    assert bent(np.array([[-1.5, 0.0], [2.3, 0.0]]), ground) is None, "too near to a fence"


@pytest.mark.parametrize("move", [*OPENINGS, *MIDDLES, *FINALS])
def test_what_a_move_means_is_done_where_it_leads(move):
    """The line through a move's own points does what it says, from a start from which it is possible."""
    layout = Layout(
        (Placement("Gorilla", 0.0, 0.0, 1.0), Placement("Barrel", 1.3, 0.4), Placement("Jet", -1.2, -0.6, 2.0))
    )
    tried = done = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        start = StartPose(*rng.uniform(-1.8, 1.8, 2), rng.uniform(-3, 3))
        tour = Tour(Ground.of(layout), start, [], rng)
        for maker in (next(iter(MIDDLES)), list(MIDDLES)[1]) if move.__name__ in LATER else ():
            if (before := maker(tour)) is not None:
                tour.moves.append(before)
        found = move(tour)
        if found is None or tour.ground.gaps(np.array(start[:2])).min() < 0.4:
            continue
        points = np.vstack([start[:2], *(one.points for one in (*tour.moves, found))])
        meaning = [clause for one in (*tour.moves, found) for clause in one.clauses]
        path = bent(points, tour.ground)
        if path is not None:
            tried += 1
            done += judge(meaning, path, start.yaw, layout).followed
    assert done > 0.7 * tried > 2


LATER = ("returns", "goes_back", "waits", "looks")


def test_landmarks_with_a_front_are_in_the_catalogue():
    assert {landmark(name).name for name in FRONTED} == FRONTED


def test_fences_in_a_row_are_a_corner(made):
    for paragraph in made[1]:
        for one, two in pairwise(paragraph.segments[0].meaning):
            if one.kind == two.kind == "reach_fence":
                end = np.abs(paragraph.segments[0].path[-1])
                assert one.reference != two.reference
                assert end.max() > 1.7 or end.min() > 1.7
