"""Demonstrations in `sim`: what is recorded, what is kept in the file, and what is refused."""

import json
import math
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from wordwing.commands.datasets import demonstrate
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.demonstrations import archive, flying
from wordwing.data.demonstrations.archive import Demonstrations
from wordwing.data.demonstrations.flying import fly_sim, summarise
from wordwing.data.generating import Chunk, make
from wordwing.data.schema import Paragraph, Segment
from wordwing.errors import WordwingError
from wordwing.execution.packing import PackedExecutions, pack_pose, pack_setpoint, unpack_pose, unpack_setpoint
from wordwing.execution.runner import SETTLE_STEPS, Runner, fly
from wordwing.frames import Pose, quaternion_from_euler
from wordwing.interface import Setpoint
from wordwing.policies.oracle import Oracle
from wordwing.sim.simulator import Simulator
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    layouts, paragraphs = make(Chunk("cage", "train", 0, 0, 5))
    source = Source("cage", "generated", 0, "a test")
    return write_dataset(tmp_path_factory.mktemp("data") / "cage", source, layouts, paragraphs)


@pytest.fixture(scope="module")
def instructions(dataset):
    return list(dataset.instructions("train"))


@pytest.fixture(scope="module")
def flown(dataset, instructions) -> Demonstrations:
    return fly_sim(dataset, instructions)


@pytest.fixture
def file(flown, tmp_path) -> Path:
    flown.save(tmp_path / "sim-train.npz")
    return tmp_path / "sim-train.npz"


def angle_between(a: Pose, b: Pose) -> torch.Tensor:
    """[...] radians, exact where it is small; q and −q are the same rotation."""
    p, q = a.quaternion.double(), b.quaternion.double()
    return 4 * torch.asin(torch.minimum((p - q).norm(dim=-1), (p + q).norm(dim=-1)) / 2)


def replayed(start: Pose, setpoints: Setpoint) -> tuple[Pose, Pose]:
    """Poses [T + 1] under setpoints [T] from a start [], and where a hovering drone then rests."""
    simulator = Simulator(1, draw=False)
    simulator.reset([Layout(())], Pose(start.position[None], start.quaternion[None]))
    poses = [simulator.pose[0]]
    for forward, yaw_rate in zip(setpoints.forward, setpoints.yaw_rate, strict=True):
        simulator.step(Setpoint(forward[None], yaw_rate[None]))
        poses.append(simulator.pose[0])
    for _ in range(SETTLE_STEPS):
        simulator.step(Setpoint.zero(1))
    return Pose.stack(poses), simulator.pose[0]


def test_setpoint_t_flown_from_pose_t_leads_to_pose_t_plus_1(flown):
    for index in range(0, len(flown), 4):
        poses, rest = replayed(flown.poses(index)[0], flown.setpoints(index))
        recorded = flown.poses(index)
        assert (poses.position - recorded.position).norm(dim=-1).max() < 1e-3
        assert angle_between(poses, recorded).max() < 1e-3
        assert (rest.position - flown.rest(index).position).norm() < 1e-3


def test_setpoints_one_step_off_would_not_lead_there(flown):
    index = int(flown.decisions.argmax())
    late = Setpoint(flown.setpoints(index).forward.roll(1), flown.setpoints(index).yaw_rate.roll(1))
    poses, _ = replayed(flown.poses(index)[0], late)
    assert (poses.position - flown.poses(index).position).norm(dim=-1).max() > 0.05


def test_flights_are_those_of_the_evaluation_with_landmarks_and_all(dataset, instructions, flown):
    tasks = [dataset.task(instruction) for instruction in instructions]
    for index, flight in enumerate(fly(Oracle(), Simulator(len(tasks), draw=False), tasks)):
        t = flight.end
        assert flown.decisions[index] == t
        assert flown.stopped[index] == (flight.stopped)
        assert np.abs(flown.poses(index).position.numpy() - flight.positions[: t + 1]).max() < 6e-5
        recorded = Pose(*map(torch.from_numpy, (flight.positions[: t + 1], flight.quaternions[: t + 1])))
        assert angle_between(flown.poses(index), recorded).max() < 1e-4
        sent = flown.setpoints(index)
        assert np.abs(torch.stack([sent.forward, sent.yaw_rate], -1).numpy() - flight.setpoints[:t]).max() < 2e-5
        assert np.abs(flown.rest(index).position.numpy() - flight.positions[-1]).max() < 6e-5


def test_every_instruction_of_one_and_two_segments_is_flown_to_its_end(instructions, flown):
    assert flown.ids == tuple(instruction.id for instruction in instructions)
    assert sum("-" in name.rpartition("/")[2] for name in flown.ids) > 10
    for index, instruction in enumerate(instructions):
        end = flown.rest(index).xy.numpy()
        assert math.dist(end, instruction.segment.path[-1]) < 0.47
        assert np.allclose(flown.poses(index).xy[0].numpy(), instruction.segment.start_xy, atol=6e-5)
    summary = summarise(flown, instructions)
    assert (summary.flights, summary.success, summary.timed_out) == (len(instructions), 1.0, 0)
    assert summary.steps == pytest.approx(np.mean([len(flown.setpoints(i).forward) for i in range(len(flown))]))
    assert summary.interval[0] > 0.9
    assert 0.01 < summary.emd < 0.17


def test_a_corner_that_the_drone_overshoots_is_not_the_end_of_its_path():
    """The path turns to the left half a metre before its end, and its points lie 0.25 m apart, as in a house."""
    path = np.array([[0.0, y] for y in np.arange(0, 1.51, 0.25)] + [[-0.25, 1.5], [-0.5, 1.5]])
    [flight] = fly(Oracle(), Simulator(1, draw=False), [Task("", Layout(()), (0.0, 0.0), math.pi / 2, path)])
    assert math.dist(flight.path[-1], path[-1]) < 0.3


def test_the_safety_rule_keeps_flights_inside_the_fences(tmp_path):
    """The path meets a fence at full speed and turns along it."""
    path = np.array([[0.0, 0.0], [2.34, 0.0], [2.34, 1.5]])
    paragraph = Paragraph("a", "train", "a", (Segment("go", (0.0, 0.0), 0.0, path),))
    dataset = write_dataset(tmp_path / "d", Source("mine", "x", 0, "x"), {"a": Layout(())}, [paragraph])
    flown = fly_sim(dataset, list(dataset.instructions("train")))
    assert 2.2 < flown.poses(0).xy.max() <= 2.35
    free = fly(Oracle(), Simulator(1, draw=False), [Task("", Layout(()), (0.0, 0.0), 0.0, path)], safety=False)
    assert free[0].path.max() > 2.36


def test_a_flight_that_runs_out_of_steps_has_no_decision_at_its_last_pose(dataset, tmp_path):
    layouts = {name: dataset.layout(name) for name in {p.layout for p in dataset.paragraphs()}}
    short = write_dataset(tmp_path / "d", Source("cage", "x", 0, "x", steps=6), layouts, dataset.paragraphs())
    flown = fly_sim(short, list(short.instructions("train")))
    late = np.flatnonzero(~flown.stopped)
    assert len(late) > 5
    assert set(flown.decisions[late]) == {6}
    packed = flown.packed(late)
    assert packed.poses.shape == (len(late), 7, 6)
    assert packed.lengths.tolist() == [7] * len(late)
    assert not packed.stopped.any()
    flown.save(tmp_path / "late.npz")
    assert not Demonstrations.load(tmp_path / "late.npz", short).stopped[late].any()


def test_packing_is_wrong_by_less_than_a_tenth_of_a_millimetre_and_of_a_milliradian(rng):
    position = torch.from_numpy(rng.uniform(-2.36, 2.36, (20_000, 3)))
    roll, pitch = torch.from_numpy(rng.uniform(-0.4, 0.4, (2, 20_000)))
    yaw = torch.from_numpy(np.append(rng.uniform(-math.pi, math.pi, 19_998), [math.pi, -math.pi]))
    pose = Pose(position, quaternion_from_euler(roll, pitch, yaw))
    kept = unpack_pose(pack_pose(pose))
    assert (kept.position - position).abs().max() < 5.1e-5
    assert angle_between(kept, pose).max() < 1e-4
    setpoint = Setpoint(torch.from_numpy(rng.uniform(0, 0.7, 5000)), torch.from_numpy(rng.uniform(-1, 1, 5000)))
    restored = unpack_setpoint(pack_setpoint(setpoint))
    assert (restored.forward - setpoint.forward).abs().max() < 1.7e-5
    assert (restored.yaw_rate - setpoint.yaw_rate).abs().max() < 1.7e-5
    limits = unpack_setpoint(pack_setpoint(Setpoint(torch.tensor([0.0, 0.7]), torch.tensor([-1.0, 1.0]))))
    assert torch.equal(limits.forward, torch.tensor([0.0, 0.7]))
    assert torch.equal(limits.yaw_rate, torch.tensor([-1.0, 1.0]))


def test_a_position_that_does_not_fit_is_not_packed():
    for x in (3.3, math.nan):
        with pytest.raises(ValueError, match=r"3\.28 m"):
            pack_pose(Pose.level(torch.tensor([[x, 0.0]]), torch.zeros(1)))


def test_packed_executions_are_the_demonstrations_of_the_same_flights(dataset, instructions, flown):
    tasks = [dataset.task(instruction) for instruction in instructions]
    packed = PackedExecutions.of(Runner(Oracle(), Simulator(len(tasks), draw=False)).run(tasks))
    assert packed.lengths.tolist() == (flown.decisions + 1).tolist()
    assert packed.stopped is not None
    assert packed.stopped.tolist() == flown.stopped.tolist()
    assert np.array_equal(packed.rows().numpy(), flown.rows)
    again = PackedExecutions.from_rows(packed.rows(), packed.lengths, packed.stopped)
    assert torch.equal(again.poses, packed.poses)
    assert torch.equal(again.setpoints, packed.setpoints)
    cut = PackedExecutions.from_rows(packed.rows()[:, :6], packed.lengths, most=4)
    assert cut.poses.shape == (len(tasks), 4, 6)
    assert torch.equal(cut.poses, packed.poses[:, :4])
    assert cut.setpoints is None
    index, frames = torch.tensor([3, 1]), torch.tensor([[0, 2], [5, 5]])
    chosen = packed[index]
    for row, one in enumerate(index.tolist()):
        last = min(int(packed.lengths[one]) - 1, 5)
        assert torch.equal(
            packed.pose(index, frames).position[row], flown.poses(one)[frames[row].clamp(max=last)].position
        )
        assert torch.equal(packed.setpoint(index, frames).forward[row, 0], flown.setpoints(one).forward[frames[row, 0]])
        assert torch.equal(chosen.poses[row], packed.poses[one])


def test_a_file_gives_back_what_was_saved(flown, file, dataset):
    read = Demonstrations.load(file, dataset)
    assert read.header == flown.header
    assert read.ids == flown.ids
    for name in ("decisions", "stopped", "rows", "rests"):
        assert np.array_equal(getattr(read, name), getattr(flown, name))
        assert getattr(read, name).dtype == getattr(flown, name).dtype
    assert file.stat().st_size < 40 * flown.decisions.sum()


def test_the_same_dataset_gives_the_same_file(dataset, instructions, file, tmp_path):
    fly_sim(dataset, instructions).save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == file.read_bytes()


def test_a_flight_does_not_depend_on_those_beside_it(dataset, instructions, flown, monkeypatch):
    monkeypatch.setitem(flying.WORLDS, "cpu", 7)
    ended: list[int] = []
    few = fly_sim(dataset, instructions[3:30], tick=ended.append)
    assert ended == [7, 7, 7, 6]
    assert np.array_equal(few.decisions, flown.decisions[3:30])
    assert np.array_equal(few.rows, flown.rows[flown.offsets[3] : flown.offsets[30]])
    assert np.array_equal(few.rests, flown.rests[3:30])


@pytest.mark.cuda(cpu_kernels=True)
def test_flights_on_cuda_are_those_on_the_cpu(dataset, instructions, flown):
    other = fly_sim(dataset, instructions, "cuda")
    same = other.decisions == flown.decisions
    assert same.mean() > 0.95  # a rounding may tip a decision
    assert np.abs(other.rests[same, :2].astype(int) - flown.rests[same, :2]).max() < 100
    assert other.packed([0, 1]).to("cuda").poses.is_cuda


def test_packed_flights_hold_each_flight_and_say_where_it_ends(flown):
    indices = [5, 0, 17, 5]
    packed = flown.packed(indices)
    assert packed.poses.shape == (4, flown.decisions[indices].max() + 1, 6)
    pose, setpoint = unpack_pose(packed.poses), unpack_setpoint(packed.setpoints)
    for row, index in enumerate(indices):
        t = int(flown.decisions[index])
        poses, setpoints = flown.poses(index), flown.setpoints(index)
        assert len(poses) == t + 1
        assert len(setpoints.forward) == t
        assert torch.equal(pose.position[row, : t + 1], poses.position)
        assert torch.equal(pose.quaternion[row, : t + 1], poses.quaternion)
        assert torch.equal(setpoint.forward[row, :t], setpoints.forward)
        assert torch.equal(setpoint.yaw_rate[row, :t], setpoints.yaw_rate)
        assert (int(packed.lengths[row]), bool(packed.stopped[row])) == (t + 1, True)
        assert not setpoint.forward[row, t:].any()
        assert (pose.position[row, t:] == poses.position[-1]).all()
    assert torch.equal(flown.packed(np.array(indices)).poses, packed.poses)
    few = flown.packed(indices, most=3)
    assert torch.equal(few.poses, packed.poses[:, :3])
    assert few.lengths.tolist() == [3] * 4


def test_flights_are_counted_from_either_end_and_no_further(flown):
    assert torch.equal(flown.poses(-1).position, flown.poses(len(flown) - 1).position)
    assert np.array_equal(flown.path(-1), flown.path(len(flown) - 1))
    with pytest.raises(IndexError):
        flown.poses(len(flown))


def test_demonstrations_of_another_dataset_are_refused(dataset, file, tmp_path):
    layouts = {name: dataset.layout(name) for name in {p.layout for p in dataset.paragraphs()}}

    def written(name: str, folder: str, paragraphs: list[Paragraph]) -> Dataset:
        return write_dataset(tmp_path / folder, Source(name, "x", 0, "x"), layouts, paragraphs)

    paragraphs = list(dataset.paragraphs())
    Demonstrations.load(file, written("cage", "same", paragraphs))
    with pytest.raises(WordwingError, match="flown in the dataset 'cage', not in 'field'"):
        Demonstrations.load(file, written("field", "other", paragraphs))
    first, *rest = paragraphs
    moved = replace(first.segments[0], path=first.segments[0].path + 0.01)
    changed = [replace(first, segments=(moved, *first.segments[1:])), *rest]
    with pytest.raises(WordwingError, match=r"is now; wordwing data demonstrate .*changed --domain sim makes it again"):
        Demonstrations.load(file, written("cage", "changed", changed))


def test_every_truncated_file_is_refused(file, tmp_path):
    whole = file.read_bytes()
    for size in (0, 1, 100, len(whole) // 2, len(whole) - 1):
        (tmp_path / "cut.npz").write_bytes(whole[:size])
        with pytest.raises(WordwingError, match=r"cut\.npz: damaged"):
            Demonstrations.load(tmp_path / "cut.npz")


def test_a_flipped_byte_is_noticed(file):
    whole = bytearray(file.read_bytes())
    whole[len(whole) // 2] ^= 0xFF
    file.write_bytes(whole)
    with pytest.raises(WordwingError, match="damaged"):
        Demonstrations.load(file)


def test_a_missing_file_says_how_to_make_one(tmp_path):
    with pytest.raises(WordwingError, match="no such file; wordwing data demonstrate makes one"):
        Demonstrations.load(tmp_path / "none.npz")


def test_sim_flights_are_not_taken_for_lab_flights(file):
    with pytest.raises(WordwingError, match="these are sim demonstrations; lab ones are wanted"):
        Demonstrations.load(file, domain="lab")


def rewritten(file: Path, **changes: object) -> None:
    """Change arrays of a file, or keys of its header."""
    with np.load(file) as archive:
        arrays = dict(archive)
    header = json.loads(arrays["header"].tobytes())
    for key, value in changes.items():
        if isinstance(value, np.ndarray):
            arrays[key] = value
        else:
            header[key] = value
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    np.savez_compressed(file, **arrays)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("version", 2, "the file's version is 2; this version of wordwing reads 1"),
        ("version", None, "the file's version is null"),
        ("format", "holiday pictures", "not a file of demonstrations"),
        ("steps", "50", 'the header: "steps" is "50"; it must be a whole number'),
        ("steps", 3, "more than 3 steps"),
        ("subsets", {"half": 3}, 'the header: "subsets": "half" is 3; it must be a list'),
    ],
)
def test_a_header_with_a_mistake_is_refused(file, key, value, sentence):
    rewritten(file, **{key: value})
    with pytest.raises(WordwingError, match=sentence):
        Demonstrations.load(file)


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("decisions", lambda a: a[:-1], r"not of \d+ flights each"),
        ("decisions", lambda a: -a, "fewer than 0"),
        ("decisions", lambda a: np.clip(a + 1, 0, 50), "its rows are"),
        ("decisions", lambda a: a.astype(np.float64), '"decisions" is float64'),
        ("rows", lambda a: a[:, :-1], "its rows are"),
        ("rows", lambda a: a[:-1], "its rows are"),
        ("rows", lambda a: np.full_like(a, -1), "a setpoint is out of its limits"),
        ("rests", lambda a: a[:, :3], "its rows are"),
        ("ids", lambda a: a[:-1], '"ids": not valid JSON'),
        ("ids", lambda a: np.frombuffer(b'["a","a"]', np.uint8), "twice"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(file, name, change, sentence):
    with np.load(file) as archive:
        changed = change(archive[name])
    rewritten(file, **{name: np.ascontiguousarray(changed)})
    with pytest.raises(WordwingError, match=sentence):
        Demonstrations.load(file)


def test_an_archive_without_an_array_is_refused(file, tmp_path):
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(tmp_path / "new.npz", "w") as new:
        for name in old.namelist():
            if name != "rests.npy":
                new.writestr(name, old.read(name))
    with pytest.raises(WordwingError, match="damaged"):
        Demonstrations.load(tmp_path / "new.npz")


@pytest.mark.parametrize(("limit", "sentence"), [("MAX_TEXT", '"header" has more'), ("MAX_ARRAYS", "its arrays have")])
def test_an_archive_that_would_take_much_memory_is_refused(file, monkeypatch, limit, sentence):
    monkeypatch.setattr(archive, limit, 100)
    with pytest.raises(WordwingError, match=sentence):
        Demonstrations.load(file)


def test_an_array_with_more_behind_it_is_refused(file):
    with zipfile.ZipFile(file) as packed:
        content = {name: packed.read(name) for name in packed.namelist()}
    with zipfile.ZipFile(file, "w") as packed:
        for name, data in content.items():
            packed.writestr(name, data + b"more" * (name == "decisions.npy"))
    with pytest.raises(WordwingError, match=re.escape(str(file))):
        Demonstrations.load(file)


def test_instructions_of_two_splits_are_not_one_file(dataset, instructions):
    other = replace(instructions[0], split="dev")
    with pytest.raises(WordwingError, match="of one split, not of 2"):
        fly_sim(dataset, [instructions[1], other])


def test_the_command_flies_every_split_beside_the_dataset_and_says_how_well(tmp_path, capsys):
    paths = [np.array([[0.0, 0.0], [1.0, 0.5]]), np.array([[1.0, 0.5], [1.0, 1.5]])]
    segments = tuple(Segment("go", (float(p[0, 0]), float(p[0, 1])), 0.4, p) for p in paths)
    paragraphs = [Paragraph(f"{split}-0", split, f"{split}-0", segments) for split in ("train", "dev")]
    layouts = {paragraph.layout: Layout(()) for paragraph in paragraphs}
    dataset = write_dataset(tmp_path / "d", Source("mine", "human", None, "x"), layouts, paragraphs)
    demonstrate(dataset.folder)
    said = capsys.readouterr()
    assert said.err == ""
    assert "sim train: 3 flights, success 100.0 % (95 % interval" in said.out
    assert "steps on average, EMD 0." in said.out
    for split in ("train", "dev"):
        read = Demonstrations.load(dataset.folder / "demonstrations" / f"sim-{split}.npz", Dataset(dataset.folder))
        assert read.ids == (f"{split}-0/0", f"{split}-0/1", f"{split}-0/0-1")
    demonstrate(dataset.folder, splits=("dev",), limit=2, out=tmp_path / "out")
    assert [entry.name for entry in (tmp_path / "out").iterdir()] == ["sim-dev-first2.npz"]
    dataset.validate()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"corpus": "cage"}, "name one dataset: either its folder or --corpus"),
        ({"limit": 0}, "--limit is 0"),
        ({"seed": -1}, "--seed is -1"),
        ({"processes": -1}, "--processes is -1"),
        ({"splits": ("tran",)}, 'there is no split "tran"; there are train'),
        ({"splits": ("train",), "device": "tpu"}, '"tpu"'),
    ],
)
def test_the_command_answers_a_mistake_with_a_sentence(dataset, options, sentence):
    with pytest.raises(WordwingError, match=sentence):
        demonstrate(dataset.folder, **options)


def test_the_command_needs_a_dataset_that_is_there():
    with pytest.raises(WordwingError, match="name one dataset"):
        demonstrate()
    with pytest.raises(WordwingError, match="no such folder"):
        demonstrate(Path("no/such/folder"))
