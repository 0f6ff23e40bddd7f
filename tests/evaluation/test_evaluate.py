"""Evaluation as a folder: what is in its lines, and that it comes to the same end however often it is interrupted."""

import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from killing import victims
from small_evaluation import save_policy, small_cage
from wordwing.data.dataset import Dataset
from wordwing.errors import WordwingError
from wordwing.evaluation import evaluate as flying
from wordwing.evaluation.evaluate import EVALUATION, EvaluationConfig, batches, evaluate
from wordwing.evaluation.report.labels import SUMMARY
from wordwing.evaluation.systems import System, find_systems
from wordwing.execution.episodes import EPISODES, read_episodes
from wordwing.execution.execution import Execution
from wordwing.execution.metrics import measure
from wordwing.execution.runner import fly
from wordwing.files import locked
from wordwing.lab.vehicle import LabVehicle
from wordwing.policies.baselines import MEAN_ACTIONS, Average, Stop
from wordwing.policies.oracle import Oracle
from wordwing.sim.simulator import Simulator

LIMIT = 7
NAMES = ("stop", "average", "ours", "oracle")


@pytest.fixture(scope="module", autouse=True)
def pieces() -> Iterator[None]:
    """Pieces so small that seven instructions are two or three."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flying, "BLIND_WORLDS", 3)
        patch.setitem(flying.FLIGHTS, "cpu", 4)
        patch.setattr(flying, "LAB_FLIGHTS", 1)
        yield


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    return small_cage(tmp_path_factory.mktemp("data") / "cage", dev=1, test=3)


@pytest.fixture(scope="module")
def settings(dataset) -> EvaluationConfig:
    return EvaluationConfig(dataset, "test", limit=LIMIT)


@pytest.fixture(scope="module")
def systems(dataset, tmp_path_factory) -> list[System]:
    """The three that learn nothing, and one that has learnt nothing."""
    policy = save_policy(tmp_path_factory.mktemp("policies") / "untrained")
    return find_systems([f"ours={policy}" if name == "ours" else name for name in NAMES], dataset)


@pytest.fixture(scope="module")
def whole(settings, systems, tmp_path_factory) -> Path:
    """An evaluation that nobody disturbed."""
    folder = tmp_path_factory.mktemp("whole")
    evaluate(settings, systems, folder)
    return folder


@pytest.fixture(scope="module")
def blind(systems) -> list[System]:
    """Those who fly fast, as nobody draws for them."""
    return [system for system in systems if not system.needs_images]


@pytest.fixture(scope="module")
def whole_blind(settings, blind, tmp_path_factory) -> Path:
    """Undisturbed, and three pieces of each system."""
    folder = tmp_path_factory.mktemp("blind")
    finished(settings, blind, folder)
    return folder


@pytest.fixture
def flown_pieces(monkeypatch) -> list[tuple[str, ...]]:
    """System and instructions of every piece that is flown from now on."""
    flown: list[tuple[str, ...]] = []
    really = flying.fly_batch

    def fly_batch(piece):
        flown.append((piece.system.name, *(entry.id for entry in piece.instructions)))
        return really(piece)

    monkeypatch.setattr(flying, "fly_batch", fly_batch)
    return flown


def results(folder: Path) -> tuple[bytes, bytes]:
    return (folder / EPISODES).read_bytes(), (folder / SUMMARY).read_bytes()


def finished(settings: EvaluationConfig, systems: list[System], folder: Path) -> tuple[bytes, bytes]:
    """What the command does."""
    evaluate(settings, systems, folder)
    return results(folder)


def interrupted(settings: EvaluationConfig, systems: list[System], folder: Path, after: int) -> None:
    """Evaluate until so many pieces have been flown."""
    left = after

    def tick(*_told: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(settings, systems, folder, tick)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def episodes_of(folder: Path) -> list[Execution]:
    return list(read_episodes([folder / EPISODES]))


def test_a_numbered_cuda_device_has_batches_as_large_as_any(settings, systems):
    instructions = settings.instructions() * 100
    for system in systems:
        one, any_ = (list(batches(system, replace(settings, device=name), instructions)) for name in ("cuda:1", "cuda"))
        assert [part.instructions for part in one] == [part.instructions for part in any_]


def test_every_system_flies_the_same_instructions_a_line_each_in_order(whole, settings):
    ids = [entry.id for entry in settings.instructions()]
    assert len(ids) == LIMIT
    assert [(flight.provenance.system, flight.provenance.id) for flight in episodes_of(whole)] == [
        (name, one) for name in NAMES for one in ids
    ]


def test_a_line_says_what_its_flight_was_given(whole, dataset):
    given = {entry.id: entry for entry in dataset.instructions("test")}
    for flight in episodes_of(whole):
        entry, task = flight.provenance, flight.task
        asked = given[entry.id]
        assert (entry.corpus, entry.text, entry.split, entry.domain, entry.seed) == (
            "cage",
            "generated",
            "test",
            "sim",
            0,
        )
        assert (task.instruction, entry.meaning, entry.withheld) == (
            asked.segment.instruction,
            asked.segment.meaning,
            False,
        )
        assert (entry.segments, entry.layout_id) == (asked.segments, asked.layout)
        assert (entry.layout_id, task.layout) == (asked.layout, dataset.layout(asked.layout))
        assert (*task.start_xy, task.start_yaw) == (*asked.segment.start_xy, asked.segment.start_yaw)
        assert np.array_equal(task.gold_path, asked.segment.path.round(4))


def test_a_line_says_what_came_of_its_flight_as_if_it_had_been_flown_alone(whole, dataset):
    given = {entry.id: entry for entry in dataset.instructions("test")}
    alone = {"stop": Stop(), "average": Average(*MEAN_ACTIONS["cage"]), "oracle": Oracle()}
    found = [entry for entry in episodes_of(whole) if entry.provenance.system in alone]
    assert {entry.ended_by for entry in found} == {("stop",), ("steps",)}
    for entry in found:
        task = dataset.task(given[entry.provenance.id])
        [flight] = fly(alone[entry.provenance.system], Simulator(1, draw=False), [task], max_steps=10)
        assert np.abs(entry.positions - flight.positions).max() < 1e-4
        assert np.abs(entry.setpoints - flight.setpoints).max() < 1e-4
        assert (entry.end, entry.ended_by) == (flight.end, flight.ended_by)
        assert entry.seconds_inside_landmarks[0] == pytest.approx(flight.seconds_inside_landmarks[0], abs=0.006)


def test_goals_are_kept_for_those_who_believe_one_for_each_decision(whole):
    for entry in episodes_of(whole):
        goals = entry.believed_goals
        if entry.provenance.system == "ours":
            assert len(goals) == entry.end + entry.stopped
            assert ((goals[:, 2] >= 0) & (goals[:, 2] <= 1)).all()
        else:
            assert len(goals) == 0


def test_the_metrics_of_a_line_are_those_of_its_flight(whole):
    lines = (whole / EPISODES).read_text("utf-8").splitlines()
    for line, entry in zip(lines, episodes_of(whole), strict=True):
        assert json.loads(line)["metrics"] == measure(entry).to_json()


def test_an_evaluation_that_is_interrupted_after_any_piece_comes_to_the_same_end(
    settings, blind, whole_blind, tmp_path, flown_pieces
):
    for after in range(1, 9):
        folder = tmp_path / str(after)
        interrupted(settings, blind, folder, after)
        assert finished(settings, blind, folder) == results(whole_blind)
        assert len(flown_pieces) == len(set(flown_pieces)) == 9
        flown_pieces.clear()


def test_an_evaluation_may_be_interrupted_again_and_again(settings, systems, whole, tmp_path, flown_pieces):
    for after in (2, 3, 8):  # pieces of earlier runs are told too
        interrupted(settings, systems, tmp_path, after)
    assert len(flown_pieces) == 8
    assert finished(settings, systems, tmp_path) == results(whole)
    assert len(flown_pieces) == len(set(flown_pieces)) == 11


def test_a_finished_evaluation_is_not_flown_again(settings, systems, whole, tmp_path, flown_pieces):
    before = results(whole)
    told: list[tuple[str, int]] = []
    evaluate(settings, systems, whole, lambda system, measures: told.append((system.name, len(measures))))
    assert flown_pieces == []
    assert results(whole) == before
    assert sum(count for _name, count in told) == LIMIT * len(NAMES)


@pytest.mark.parametrize(
    ("line", "bytes_more", "pieces_left"),
    [
        (0, 0, 9),
        (0, 1, 9),
        (1, 0, 9),
        (2, 40, 9),
        (3, 0, 8),
        (3, 100, 8),
        (8, 0, 6),
        (19, 5, 2),
        (20, -1, 2),
        (21, -1, 1),
    ],
)
def test_a_file_that_was_cut_off_anywhere_is_completed_to_the_same_bytes(
    settings, blind, whole_blind, tmp_path, flown_pieces, line, bytes_more, pieces_left
):
    (tmp_path / EVALUATION).write_bytes((whole_blind / EVALUATION).read_bytes())
    text = (whole_blind / EPISODES).read_bytes()
    ends = [0, *(index + 1 for index, byte in enumerate(text) if byte == ord("\n"))]
    (tmp_path / EPISODES).write_bytes(text[: ends[line] + bytes_more])
    assert finished(settings, blind, tmp_path) == results(whole_blind)
    assert len(flown_pieces) == pieces_left  # three lines, three lines and one are the pieces of each system


def test_half_a_piece_of_a_policy_is_flown_again_and_the_systems_behind_it_are_not(
    settings, systems, whole, tmp_path, flown_pieces
):
    (tmp_path / EVALUATION).write_bytes((whole / EVALUATION).read_bytes())
    lines = (whole / EPISODES).read_bytes().splitlines(keepends=True)
    (tmp_path / EPISODES).write_bytes(b"".join(lines[:16] + lines[18:]))
    assert finished(settings, systems, tmp_path) == results(whole)
    assert [(name, len(ids)) for name, *ids in flown_pieces] == [("ours", 4)]


def test_lines_in_the_order_of_a_race_are_brought_into_order(settings, blind, whole_blind, tmp_path, flown_pieces):
    (tmp_path / EVALUATION).write_bytes((whole_blind / EVALUATION).read_bytes())
    lines = (whole_blind / EPISODES).read_bytes().splitlines(keepends=True)
    (tmp_path / EPISODES).write_bytes(b"".join(lines[::-1]))
    assert finished(settings, blind, tmp_path) == results(whole_blind)
    assert flown_pieces == []


def test_an_evaluation_that_is_killed_at_any_time_comes_to_the_same_end(settings, systems, whole, tmp_path):
    policy = next(system.policy for system in systems if system.name == "ours")
    setup = f"""
import time, warp
from wordwing.evaluation import evaluate as flying
from wordwing.evaluation.systems import find_systems
from wordwing.data.dataset import Dataset
flying.BLIND_WORLDS, flying.LAB_FLIGHTS = 3, 1
flying.FLIGHTS["cpu"] = 4
settings = flying.EvaluationConfig(Dataset({str(settings.dataset.folder)!r}), "test", limit={LIMIT})
systems = find_systems(["stop", "average", "ours=" + {policy!r}, "oracle"], settings.dataset)
"""
    work = f"""
from pathlib import Path
flying.evaluate(settings, systems, Path({str(tmp_path)!r}), lambda system, measures: say(system.name))
time.sleep(600)
"""
    told = []
    with victims(setup, work) as children:
        for seconds in (0.01, 0.3, 0.05):
            told.append(len(children.kill_one_after(seconds)))
    assert 0 < told[0] < 11, "it was to be killed before all pieces were flown"
    assert finished(settings, systems, tmp_path) == results(whole)


def test_a_batch_larger_than_the_simulator_is_flown_in_turns(settings, systems, tmp_path, monkeypatch):
    learned = [system for system in systems if system.needs_images]
    monkeypatch.setitem(flying.FLIGHTS, "cpu", 8192)
    monkeypatch.setattr(flying, "WORLDS", 3)
    turns = []
    really = flying.fly_in_turns
    monkeypatch.setattr(flying, "fly_in_turns", lambda *given, **more: turns.append(1) or really(*given, **more))
    finished(settings, learned, tmp_path)
    assert len(turns) == len(learned)
    ids = [entry.id for entry in settings.instructions()]
    assert [one.provenance.id for one in episodes_of(tmp_path)] == ids * len(learned)


@pytest.mark.long
def test_flights_are_measured_by_other_processes_as_by_this_one(settings, blind, whole_blind, tmp_path, monkeypatch):
    monkeypatch.setitem(flying.MEASURING, "cpu", 2)
    here = []
    monkeypatch.setattr(flying, "measure", here.append)
    assert finished(settings, blind, tmp_path) == results(whole_blind)
    assert here == []


def test_what_is_flown_does_not_depend_on_the_cut(settings, blind, whole_blind, tmp_path, monkeypatch):
    monkeypatch.setattr(flying, "BLIND_WORLDS", 256)
    assert finished(settings, blind, tmp_path) == results(whole_blind)


def test_a_system_that_is_added_leaves_the_lines_of_others_as_they_are(
    settings, systems, whole, tmp_path, flown_pieces
):
    stop, average, ours, oracle = systems
    finished(settings, [stop, average], tmp_path)
    before = (tmp_path / EPISODES).read_bytes()
    finished(settings, [ours], tmp_path)
    assert (tmp_path / EPISODES).read_bytes().startswith(before)
    assert finished(settings, [oracle, stop], tmp_path) == results(whole)
    assert len(flown_pieces) == len(set(flown_pieces)) == 11
    assert list(json.loads((tmp_path / EVALUATION).read_text())["systems"]) == list(NAMES)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"split": "dev"}, "this is an evaluation with split test, not dev; take another --out"),
        ({"seed": 1}, "this is an evaluation with seed 0, not 1"),
        ({"limit": None}, "this is an evaluation with limit 7, not None"),
        ({"limit": 3}, "this is an evaluation with limit 7, not 3"),
        ({"segments": (1,)}, "this is an evaluation with segments [1, 2], not [1]"),
        ({"domain": "lab"}, "this is an evaluation with domain sim, not lab"),
    ],
)
def test_other_settings_are_refused_and_nothing_is_changed(settings, systems, whole, change, sentence):
    before = files_of(whole)
    with pytest.raises(WordwingError) as error:
        evaluate(replace(settings, **change), systems, whole)
    assert str(error.value).startswith(f"{whole}: {sentence}")
    assert files_of(whole) == before


def test_another_dataset_of_the_same_name_is_refused(settings, systems, whole, tmp_path):
    other = small_cage(tmp_path / "cage", dev=1, test=4)
    before = files_of(whole)
    with pytest.raises(WordwingError, match="this is an evaluation with dataset "):
        evaluate(replace(settings, dataset=other), systems, whole)
    assert files_of(whole) == before


def test_another_policy_of_the_same_name_is_refused_and_under_another_name_it_is_not(
    settings, dataset, whole, tmp_path
):
    other = save_policy(tmp_path / "untrained", seed=1)
    before = files_of(whole)
    with pytest.raises(WordwingError) as error:
        evaluate(settings, find_systems([f"ours={other}"], dataset), whole)
    assert str(error.value) == (
        f'{whole}: another "ours" has flown here; name this one NAME=POLICY, or take another --out'
    )
    assert files_of(whole) == before


def test_an_average_of_another_mean_action_is_another_average(settings, systems, dataset, tmp_path):
    evaluate(settings, systems[1:2], tmp_path)
    others = [replace(systems[1], fingerprint="average 0.1 0.0 3", mean_action=MEAN_ACTIONS["field"])]
    with pytest.raises(WordwingError, match='another "average" has flown here'):
        evaluate(settings, others, tmp_path)


def test_two_commands_in_one_folder_are_one_too_many(settings, systems, tmp_path):
    sentence = rf"^{tmp_path}: another command is evaluating there; wait for it, or take another --out$"
    with locked(tmp_path, "an evaluation", "evaluating"), pytest.raises(WordwingError, match=sentence):
        evaluate(settings, systems, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]

    def tick(*_told: object) -> None:
        before = files_of(tmp_path)
        with pytest.raises(WordwingError, match=sentence):
            evaluate(settings, systems, tmp_path)
        assert files_of(tmp_path) == before
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(settings, systems[:1], tmp_path, tick)
    evaluate(settings, systems[:1], tmp_path)  # the lock went with the command that held it


def test_a_folder_that_is_a_file_is_refused(settings, systems, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(WordwingError, match=r"file: an evaluation cannot be kept there \(it is a file\)$"):
        evaluate(settings, systems, tmp_path / "file")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"systems": 3}', '{"systems": {"stop": 5}}', "null", '"x"'])
def test_a_damaged_evaluation_json_is_named(settings, systems, tmp_path, text):
    (tmp_path / EVALUATION).write_text(text)
    with pytest.raises(WordwingError, match=rf"^{tmp_path / EVALUATION}: damaged; take another --out$"):
        evaluate(settings, systems, tmp_path)
    assert not (tmp_path / EPISODES).exists()


def test_flights_of_nobody_knows_what_are_left_alone(settings, systems, tmp_path):
    (tmp_path / EPISODES).write_text("years of work\n")
    with pytest.raises(WordwingError, match=rf"^{tmp_path}: there are flights in it but no evaluation.json"):
        evaluate(settings, systems, tmp_path)
    assert (tmp_path / EPISODES).read_text() == "years of work\n"


@pytest.mark.parametrize(
    "damage", [b"{}", b"[]", b"nonsense", b"\xff", b'{"system": "stop", "id": "x", "metrics": {}}']
)
def test_a_damaged_line_within_the_file_is_named_and_nothing_is_lost(settings, systems, whole, tmp_path, damage):
    (tmp_path / EVALUATION).write_bytes((whole / EVALUATION).read_bytes())
    lines = (whole / EPISODES).read_bytes().splitlines()
    text = b"\n".join([*lines[:4], damage, *lines[5:]])
    (tmp_path / EPISODES).write_bytes(text)
    with pytest.raises(WordwingError, match=rf"^{tmp_path / EPISODES}: line 5 is damaged; delete it"):
        evaluate(settings, systems, tmp_path)
    assert (tmp_path / EPISODES).read_bytes() == text


def test_a_limit_chooses_some_of_all_and_the_seed_says_which(settings):
    everything = [entry.id for entry in replace(settings, limit=None).instructions()]
    choices = []
    for seed in range(20):
        chosen = [entry.id for entry in replace(settings, seed=seed).instructions()]
        assert len(set(chosen)) == LIMIT
        assert chosen == [name for name in everything if name in chosen]
        assert chosen == [entry.id for entry in replace(settings, seed=seed).instructions()]
        choices.append(tuple(chosen))
    assert len(set(choices)) > 15
    assert {name for chosen in choices for name in chosen} == set(everything)
    for limit in (len(everything), 1000):
        assert [entry.id for entry in replace(settings, limit=limit).instructions()] == everything


def test_segments_choose_instructions_of_so_many(settings, dataset):
    for counts in ((1,), (2,), (1, 2)):
        found = replace(settings, segments=counts, limit=None).instructions()
        assert {entry.segments for entry in found} == set(counts)
        assert len(found) == sum(entry.segments in counts for entry in dataset.instructions("test"))


def test_a_split_without_such_instructions_is_refused(tmp_path):
    dataset = small_cage(tmp_path, dev=1)
    [paragraph] = dataset.paragraphs("dev")
    assert len(paragraph.segments) > 1
    short = replace(paragraph, segments=paragraph.segments[:1])
    (tmp_path / "paragraphs.jsonl").write_text(json.dumps(short.to_json()) + "\n")
    with pytest.raises(WordwingError, match="the split dev has no such instructions to fly"):
        EvaluationConfig(Dataset(tmp_path), "dev", segments=(2,)).instructions()


@pytest.fixture(scope="module")
def lab(settings) -> EvaluationConfig:
    return replace(settings, domain="lab", limit=3, seed=5)


@pytest.fixture(scope="module")
def whole_lab(lab, systems, tmp_path_factory) -> Path:
    """ORACLE's flights, undisturbed and in this process."""
    folder = tmp_path_factory.mktemp("lab")
    finished(lab, systems[-1:], folder)
    return folder


def test_the_lab_of_each_instruction_is_seeded_by_its_id_and_the_seed(whole_lab, dataset):
    given = {entry.id: entry for entry in dataset.instructions("test")}
    found = episodes_of(whole_lab)
    sources = [entry.provenance for entry in found]
    assert [(source.system, source.domain, source.seed) for source in sources] == [("oracle", "lab", 5)] * 3
    for entry in found[:1]:
        task = dataset.task(given[entry.provenance.id])
        seed = zlib.crc32(f"5 {entry.provenance.id}".encode())
        with LabVehicle(task.layout, task.start_xy, task.start_yaw, seed=seed) as drone:
            [flight] = fly(Oracle(), drone, [task], max_steps=10)
        assert np.abs(entry.positions - flight.positions).max() < 1e-4
        assert (entry.end, entry.ended_by) == (flight.end, flight.ended_by)


def test_in_the_lab_an_interrupted_evaluation_comes_to_the_same_end(lab, systems, whole_lab, tmp_path, flown_pieces):
    interrupted(lab, systems[-1:], tmp_path, 2)
    assert finished(lab, systems[-1:], tmp_path) == results(whole_lab)
    assert len(flown_pieces) == len(set(flown_pieces)) == 3


@pytest.mark.long
def test_two_processes_in_the_lab_that_are_interrupted_come_to_the_same_end(lab, systems, whole_lab, tmp_path):
    shared = replace(lab, processes=2)
    interrupted(shared, systems[-1:], tmp_path, 1)
    assert len(episodes_of(tmp_path)) == 1
    assert finished(shared, systems[-1:], tmp_path) == results(whole_lab)
