"""Demonstrations in the lab: which paragraphs, what is recorded, and how an interrupted run goes on."""

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from wordwing.commands.datasets import demonstrate
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.demonstrations import flying
from wordwing.data.demonstrations.archive import Demonstrations, decode, encode
from wordwing.data.demonstrations.flying import fly_lab, single_segments
from wordwing.data.demonstrations.selection import Selection, _Block, _Entry, _exactly, select
from wordwing.data.generating import Chunk, make
from wordwing.data.schema import Paragraph, Segment
from wordwing.errors import WordwingError
from wordwing.execution.environments import flight_seed
from wordwing.execution.runner import fly
from wordwing.lab.vehicle import LabVehicle
from wordwing.policies.oracle import Oracle
from wordwing.world.catalogue import landmarks
from wordwing.world.paths import path_length
from wordwing.world.samplers import sample_layout

KINDS = {entry.name for entry in landmarks("cage")}


def walked(folder: Path, blocks: int, segments: tuple[int, int], per_block: int = 5, seed: int = 0) -> Dataset:
    """A cage corpus of straight walks: paragraphs of so many segments each, at random, in blocks."""
    rng = np.random.default_rng(seed)
    layouts, paragraphs = {}, []
    for block in range(blocks):
        layouts[f"layout-{block}"] = sample_layout("cage", rng)
        for turn in range(per_block):
            points = rng.uniform(-2, 2, (rng.integers(*segments, endpoint=True) + 1, 2))
            legs = tuple(Segment("go", tuple(a.tolist()), 0.0, np.array([a, b])) for a, b in pairwise(points))
            paragraphs.append(Paragraph(f"p-{block}-{turn}", "train", f"layout-{block}", legs))
    return write_dataset(folder, Source("cage", "generated", seed, "a test"), layouts, paragraphs)


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    return walked(tmp_path_factory.mktemp("walks") / "d", 60, (2, 7))


def kinds_near(dataset: Dataset, paragraph: Paragraph) -> set[str]:
    """Landmarks within 1.41 m of a paragraph's paths, by looking at many points of them."""
    layout = dataset.layout(paragraph.layout)
    shares = np.linspace(0, 1, 200)[:, None]
    points = np.concatenate([s.path[0] * (1 - shares) + s.path[-1] * shares for s in paragraph.segments])
    return {p.name for p in layout.landmarks if np.hypot(*(points - (p.x, p.y)).T).min() < 1.41}


def test_100_paragraphs_with_402_segments_are_chosen_in_whole_blocks(walks):
    for seed in range(3):
        chosen = select(walks, seed).paragraphs
        assert len({paragraph.id for paragraph in chosen}) == len(chosen) == 100
        assert sum(len(paragraph.segments) for paragraph in chosen) == 402
        assert set(Counter(paragraph.layout for paragraph in chosen).values()) == {5}
        order = [paragraph.id for paragraph in walks.paragraphs("train")]
        assert [p.id for p in chosen] == sorted((p.id for p in chosen), key=order.index)


def test_a_tenth_is_inside_a_half_inside_all_and_each_passes_by_all_15_kinds(walks):
    for seed in range(3):
        choice = select(walks, seed)
        by_id = {paragraph.id: paragraph for paragraph in choice.paragraphs}
        half, tenth = choice.subsets["half"], choice.subsets["tenth"]
        assert (len(half), len(tenth)) == (50, 10)
        assert set(tenth) < set(half) < set(by_id)
        for part in (tenth, half, by_id):
            assert set().union(*(kinds_near(walks, by_id[name]) for name in part)) == KINDS
        assert len({by_id[name].layout for name in tenth}) <= 4
        assert Counter(Counter(by_id[name].layout for name in half).values())[5] >= 9


def test_whole_blocks_make_a_tenth_where_two_of_them_show_everything(walks, tmp_path):
    """The layouts of two blocks together hold all 15 kinds, and their walks cross the whole arena."""
    layouts, paragraphs = {}, []
    names = sorted(KINDS)
    for block, part in enumerate([names[:8], names[8:], *([names[:5]] * 30)]):
        spots = [(x, y) for x in (-1.6, 0.0, 1.6) for y in (-1.6, 0.0, 1.6)]
        whole = sample_layout("cage", np.random.default_rng(0))
        placed = [replace(whole.landmarks[0], name=n, x=x, y=y) for n, (x, y) in zip(part, spots, strict=False)]
        layouts[f"{block}"] = replace(whole, landmarks=tuple(placed))
        cross = [
            np.array(p) for p in ([[-2.0, -2.0], [2.0, 2.0]], [[2.0, 2.0], [-2.0, 2.0]], [[-2.0, 2.0], [2.0, -2.0]])
        ]
        legs = tuple(Segment("go", tuple(path[0].tolist()), 0.0, path) for path in cross)
        paragraphs += [Paragraph(f"{block}-{turn}", "train", f"{block}", legs) for turn in range(5)]
    dataset = write_dataset(tmp_path / "d", Source("cage", "x", 0, "x"), layouts, paragraphs)
    assert set(select(dataset, 0).subsets["tenth"]) == {f"{block}-{turn}" for block in (0, 1) for turn in range(5)}


def test_a_seed_chooses_and_another_seed_chooses_otherwise(walks):
    first, again, other = (select(walks, seed) for seed in (1, 1, 2))
    assert [p.id for p in first.paragraphs] == [p.id for p in again.paragraphs]
    assert first.subsets == again.subsets
    assert [p.id for p in first.paragraphs] != [p.id for p in other.paragraphs]


def test_the_nearest_number_of_segments_is_taken_where_402_is_impossible(tmp_path):
    choice = select(walked(tmp_path / "d", 30, (5, 5)), 0)
    assert (len(choice.paragraphs), len(single_segments(choice))) == (100, 500)


def test_paragraphs_are_chosen_one_by_one_where_blocks_are_larger_than_the_set(tmp_path):
    rooms = walked(tmp_path / "d", 3, (1, 7), per_block=120)
    one, other = (select(rooms, seed) for seed in (0, 1))
    for choice in (one, other):
        assert (len(choice.paragraphs), len(single_segments(choice))) == (100, 402)
        assert set(choice.subsets["tenth"]) < set(choice.subsets["half"]) < {p.id for p in choice.paragraphs}
    common = {p.id for p in one.paragraphs} & {p.id for p in other.paragraphs}
    assert len(common) < 60


def test_all_paragraphs_are_taken_where_there_are_fewer(tmp_path):
    choice = select(walked(tmp_path / "d", 2, (2, 3)), 0)
    assert len(choice.paragraphs) == 10
    assert (len(choice.subsets["half"]), len(choice.subsets["tenth"])) == (5, 1)


def test_every_choice_with_the_right_numbers_is_equally_likely():
    """Of blocks with 1, 1, 2, 2 and 3 segments, three pairs have 4: either 1 with the 3, and the two 2s."""
    sizes = [1, 1, 2, 2, 3]
    blocks: list[_Block] = [
        (_Entry(i, Paragraph(str(i), "train", "", ()), s, frozenset()),) for i, s in enumerate(sizes)
    ]
    drawn: Counter[frozenset[int]] = Counter()
    rng = np.random.default_rng(0)
    for _ in range(900):
        drawn[frozenset(block[0].index for block in _exactly(blocks, 2, 4, rng))] += 1
    assert set(drawn) == {frozenset({0, 4}), frozenset({1, 4}), frozenset({2, 3})}
    assert all(abs(count - 300) < 4 * math.sqrt(900 * 2 / 9) for count in drawn.values())


def test_a_dataset_without_single_segments_is_refused(tmp_path):
    dataset = write_dataset(tmp_path / "d", Source("cage", "x", 0, "x"), {}, [])
    dataset.meta["counts"]["train"] = {}
    with pytest.raises(WordwingError, match="no single segments"):
        select(dataset, 0)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    layouts, paragraphs = make(Chunk("cage", "train", 0, 0, 5))
    source = Source("cage", "generated", 0, "a test")
    return write_dataset(tmp_path_factory.mktemp("data") / "cage", source, layouts, paragraphs)


@pytest.fixture(scope="module")
def choice(dataset) -> Selection:
    """Three paragraphs with one or two of their segments: four short flights."""

    def flown(paragraph):
        return sum(path_length(segment.path) for segment in paragraph.segments[:2])

    paragraphs = sorted(dataset.paragraphs("train"), key=flown)[:3]
    short = [replace(p, segments=p.segments[:count]) for p, count in zip(paragraphs, (2, 1, 1), strict=True)]
    return Selection(tuple(short), {"half": [short[0].id, short[2].id], "tenth": [short[2].id]})


@pytest.fixture(scope="module")
def file(dataset, choice, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("lab") / "lab-train.npz"
    fly_lab(dataset, choice, path, seed=3)
    return path


def test_a_flight_holds_what_the_vehicle_showed_reported_and_was_sent(dataset, choice, file):
    read = Demonstrations.load(file, dataset, "lab")
    singles = single_segments(choice)
    assert read.ids == tuple(single.id for single in singles)
    index = 3
    task = dataset.task(singles[index])
    seed = flight_seed(3, read.ids[index])
    with LabVehicle(task.layout, task.start_xy, task.start_yaw, seed=seed) as drone:
        [flight] = fly(Oracle(), drone, [task], keep_images=True)
    t = flight.end
    assert read.decisions[index] == t
    assert read.stopped[index]
    poses, setpoints = read.poses(index), read.setpoints(index)
    assert np.abs(poses.position.numpy() - flight.positions[: t + 1]).max() < 6e-5
    sent = torch.stack([setpoints.forward, setpoints.yaw_rate], -1).numpy()
    assert np.abs(sent - flight.setpoints[:t]).max() < 2e-5
    assert np.abs(read.rest(index).position.numpy() - flight.positions[-1]).max() < 6e-5
    images = read.images(index)
    assert images.shape == (t + 1, 72, 128, 3)
    assert images.dtype == torch.uint8
    taken = np.stack(flight.images[0][: t + 1])
    error = np.square(images.numpy().astype(float) - taken).mean(axis=(1, 2, 3))
    assert (10 * np.log10(255**2 / error)).min() > 30
    # A picture belongs to its pose: the next moment's is further from it than what compression lost.
    moved = np.square(images[:-1].numpy().astype(float) - taken[1:]).mean(axis=(1, 2, 3))
    assert moved.max() > 3 * error.max()
    assert math.dist(read.path(index)[-1], task.gold_path[-1]) < 0.47


def test_a_tenth_of_the_flights_is_found_by_its_name(choice, file):
    read = Demonstrations.load(file, domain="lab")
    assert read.subsets == ("all", "half", "tenth")
    assert [len(read.subset(name)) for name in read.subsets] == [4, 3, 1]
    assert {read.ids[i].rpartition("/")[0] for i in read.subset("tenth")} == set(choice.subsets["tenth"])
    with pytest.raises(WordwingError, match='no subset "third"; there are all, half, tenth'):
        read.subset("third")


class InterruptionError(Exception):
    pass


def test_an_interrupted_run_goes_on_where_it_was_and_ends_the_same(dataset, choice, file, tmp_path, monkeypatch):
    path = tmp_path / "lab-train.npz"

    def interrupt(flights: int) -> None:
        raise InterruptionError

    with pytest.raises(InterruptionError):
        fly_lab(dataset, choice, path, seed=3, tick=interrupt)
    assert not path.exists()
    [kept] = (tmp_path / "lab-train.parts").iterdir()
    kept.with_name("0001.npz").write_bytes(kept.read_bytes()[:1000])  # as if another part were damaged
    flown: list[tuple[str, ...]] = []
    original = flying._fly_paragraph
    monkeypatch.setattr(flying, "_fly_paragraph", lambda work: (flown.append(work.ids), original(work))[1])
    ticks: list[int] = []
    fly_lab(dataset, choice, path, seed=3, tick=ticks.append)
    assert [name for ids in flown for name in ids] == [single.id for single in single_segments(choice)][2:]
    assert ticks == [2, 1, 1]
    assert path.read_bytes() == file.read_bytes()
    assert [entry.name for entry in tmp_path.iterdir()] == ["lab-train.npz"]


def test_only_the_same_flights_of_the_same_dataset_and_seed_are_gone_on_with(dataset, file):
    made = Demonstrations.load(file, domain="lab")
    work = flying._Paragraph(file, made.header, made.ids, ())
    assert work.done() is not None
    for other in (
        replace(work, header=replace(made.header, seed=4)),
        replace(work, header=replace(made.header, fingerprint="0")),
        replace(work, header=replace(made.header, quality=20)),
        replace(work, ids=made.ids[:-1]),
        replace(work, file=file.with_name("none.npz")),
    ):
        assert other.done() is None


def test_another_seed_is_another_flight(dataset, choice, file, tmp_path):
    made = fly_lab(dataset, Selection(choice.paragraphs[2:], {}), tmp_path / "lab-train.npz", seed=4)
    before = Demonstrations.load(file, domain="lab")
    assert made.ids == before.ids[3:]
    assert not torch.equal(made.poses(0).position[0], before.poses(3).position[0])
    assert not torch.equal(made.images(0)[0], before.images(3)[0])


@pytest.mark.long
def test_two_processes_fly_what_one_does(dataset, choice, file, tmp_path):
    fly_lab(dataset, choice, tmp_path / "two.npz", seed=3, processes=2)
    assert (tmp_path / "two.npz").read_bytes() == file.read_bytes()


def test_a_lab_file_with_images_missing_or_of_another_kind_is_refused(file, tmp_path):
    read = Demonstrations.load(file, domain="lab")
    mistakes = {
        "one image for each": replace(read, sizes=read.sizes[:-1]),
        "image 0 is not WebP": replace(read, pictures=np.roll(read.pictures, 1)),
        "which is not in it": replace(read, header=replace(read.header, subsets={"half": ["elsewhere"]})),
    }
    for sentence, broken in mistakes.items():
        broken.save(tmp_path / "broken.npz")
        with pytest.raises(WordwingError, match=sentence):
            Demonstrations.load(tmp_path / "broken.npz", domain="lab")
    with pytest.raises(WordwingError, match="damaged"):
        decode(encode(np.zeros((72, 128, 3), np.uint8), 80)[:-8])
    with pytest.raises(WordwingError, match="is 64 × 36, not 128 × 72"):
        decode(encode(np.zeros((36, 64, 3), np.uint8), 80))


def test_the_command_flies_a_trial_in_the_lab(dataset, tmp_path, capsys):
    demonstrate(dataset.folder, domain="lab", limit=1, processes=1, out=tmp_path)
    assert "lab train: 1 flights, success 100.0 %" in capsys.readouterr().out
    read = Demonstrations.load(tmp_path / "lab-train-first1.npz", dataset, "lab")
    assert len(read) == 1
    with pytest.raises(WordwingError, match="the lab flies demonstrations of train only"):
        demonstrate(_with_dev(dataset, tmp_path), domain="lab", splits=("dev",))


def _with_dev(dataset: Dataset, tmp_path: Path) -> Path:
    paragraphs = [replace(p, split="dev") for p in dataset.paragraphs("train")]
    layouts = {p.layout: dataset.layout(p.layout) for p in paragraphs}
    return write_dataset(tmp_path / "dev", Source("cage", "x", 0, "x"), layouts, paragraphs).folder
