"""ExecutionSet against the demonstrations they are of, and merging against plain dictionaries."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from small_run import angle_between, random_rollouts
from wordwing.data.demonstrations.archive import Demonstrations, decode, encode
from wordwing.errors import WordwingError
from wordwing.execution.packing import unpack_pose
from wordwing.learning.executions import ExecutionSet


def everything(executions: ExecutionSet) -> dict[int, list[list[int]]]:
    """Packed poses of each execution, without what they are padded with."""
    return {
        number: executions.poses[number, :length].tolist() for number, length in enumerate(executions.lengths.tolist())
    }


def unpacked(rollouts) -> list[tuple[int, list[list[int]]]]:
    """Instruction and packed poses of each rollout, one by one."""
    poses, lengths = rollouts.executions.poses, rollouts.executions.lengths.tolist()
    return [(index, poses[row, : lengths[row]].tolist()) for row, index in enumerate(rollouts.example.tolist())]


def test_executions_are_the_demonstrations_pose_by_pose_with_room_for_any_rollout(run):
    executions = run.executions()
    assert executions.poses.shape == (len(run.examples), 71, 6)
    assert executions.demonstrations_left == 1
    for number in range(len(executions)):
        flown = run.flight(number)
        length = int(executions.lengths[number])
        assert length == len(flown)
        found = executions.pose(torch.tensor([number]), torch.arange(length)[None])
        assert torch.equal(found.position[0], flown.position)
        assert angle_between(found[0], flown).max() < 1e-6


def test_demonstrations_may_come_in_another_order_and_none_may_be_missing(run):
    cage = run.demonstrations["cage"]
    order = np.random.default_rng(0).permutation(len(cage))
    shuffled = cage.take(order)
    found = ExecutionSet.from_demonstrations(run.examples, run.demonstrations | {"cage": shuffled})
    assert everything(found) == everything(run.executions())
    lost = replace(cage, ids=("nothing", *cage.ids[1:]))
    with pytest.raises(WordwingError, match=f"cage: there is no demonstration of the instruction '{cage.ids[0]}'"):
        ExecutionSet.from_demonstrations(run.examples, run.demonstrations | {"cage": lost})


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_frames_begin_with_the_first_and_one_is_drawn_from_every_equal_part_of_the_rest(run, count):
    executions = run.executions()
    generator = torch.Generator().manual_seed(count)
    index = torch.arange(len(executions)).repeat(40)
    frames = executions.sample_frames(index, count, generator)
    assert frames.shape == (len(index), count)
    assert (frames[:, 0] == 0).all()
    assert (frames.diff(dim=1) >= 0).all()
    later = executions.lengths[index].double() - 1
    assert (frames <= later[:, None]).all()
    for part in range(1, count):
        number = frames[:, part].double()
        assert (number >= torch.floor(1 + (part - 1) / (count - 1) * later)).all()
        assert (number <= torch.ceil(part / (count - 1) * later)).all()


def test_every_later_frame_of_a_flight_is_drawn_equally_often(run):
    executions = run.executions()
    number = int(executions.lengths.argmax())
    later = int(executions.lengths[number]) - 1
    draws = 4000
    frames = executions.sample_frames(torch.tensor([number]).repeat(draws), 4, torch.Generator().manual_seed(0))
    share = np.bincount(frames[:, 1:].flatten().numpy(), minlength=later + 1)[1:] / draws  # 3 / later each
    assert share == pytest.approx(np.full(later, 3 / later), abs=5 * (3 / later / draws) ** 0.5)


def test_an_execution_of_one_pose_gives_it_again_and_again(run):
    standing = ExecutionSet.standing(run.examples, 4)
    frames = standing.sample_frames(torch.arange(3), 5, torch.Generator().manual_seed(0))
    assert (frames == 0).all()


def test_who_always_stops_has_only_ever_seen_the_start(run):
    standing = ExecutionSet.standing(run.examples, run.examples.max_steps + 1)
    assert (standing.lengths == 1).all()
    found = standing.pose(torch.arange(len(standing)), torch.zeros(len(standing), 1, dtype=torch.int64))
    start = run.examples.examples.start
    assert (found.position[:, 0] - start.position).abs().max() < 6e-5
    assert angle_between(found[:, 0], start).max() < 1e-4
    _setpoint, stop, known = standing.oracle_actions(torch.arange(3), torch.zeros(3, 1, dtype=torch.int64))
    assert not stop.any()
    assert not known.any()


def test_rollouts_of_any_length_fit_in_the_place_of_standing_drones(run, rng):
    standing = ExecutionSet.standing(run.examples, run.examples.max_steps + 1)
    rollouts = random_rollouts(rng, [2, 0], [71, 3], 1.0)
    assert standing.merge(rollouts) == 2
    assert [everything(standing)[2], everything(standing)[0]] == [rows for _index, rows in unpacked(rollouts)]


def test_decisions_are_the_setpoints_that_led_to_the_next_pose_and_stop_at_the_last(run):
    executions = run.executions()
    for name, ids in zip(run.examples.corpora, run.examples.ids, strict=True):
        given = run.demonstrations[name]
        for number, flight in zip(run.examples.of(name).tolist()[:4], ids[:4], strict=True):
            wanted = given.setpoints(given.ids.index(flight))
            steps = len(wanted.forward)
            frames = torch.arange(steps + 1)[None]
            setpoint, stop, known = executions.oracle_actions(torch.tensor([number]), frames)
            assert torch.equal(setpoint[0, :-1], torch.stack([wanted.forward, wanted.yaw_rate], dim=-1))
            assert setpoint[0, -1].tolist() == [0, 0]
            assert stop[0].tolist() == [False] * steps + [True]
            assert known.all()


def test_where_the_steps_ran_out_nothing_was_decided(run):
    cage = run.demonstrations["cage"]
    stopped = cage.stopped.copy()
    stopped[1] = False
    hurried = replace(cage, stopped=stopped)
    executions = ExecutionSet.from_demonstrations(run.examples, run.demonstrations | {"cage": hurried})
    last = executions.lengths[:3, None] - 1
    frames = torch.cat([last - 1, last], dim=1)
    _setpoint, stop, known = executions.oracle_actions(torch.arange(3), frames)
    assert stop.tolist() == [[False, True], [False, False], [False, True]]
    assert known.tolist() == [[True, True], [True, False], [True, True]]


def test_what_a_rollout_decided_is_not_known(run, rng):
    executions = run.executions()
    executions.merge(random_rollouts(rng, [1], [4], 1.0))
    frames = torch.tensor([[0, 3], [0, 3]])
    setpoint, stop, known = executions.oracle_actions(torch.tensor([0, 1]), frames)
    assert known.tolist() == [[True, True], [False, False]]
    assert not stop[1].any()
    assert (setpoint[1] == 0).all()
    assert (setpoint[0] != 0).any()


def test_merging_leaves_one_execution_for_each_instruction_the_newest(run, rng):
    executions = run.executions()
    wanted = everything(executions)
    rolled: set[int] = set()
    for progress in (0.2, 0.4, 0.6):
        index = rng.choice(len(executions), 20, replace=False).tolist()
        rollouts = random_rollouts(rng, index, rng.integers(1, 51, 20).tolist(), progress)
        assert executions.merge(rollouts) == 20
        wanted |= dict(unpacked(rollouts))
        rolled |= set(index)
        assert everything(executions) == wanted
        assert float(executions.demonstrations_left) == pytest.approx(1 - len(rolled) / len(executions), abs=1e-6)
        assert executions.is_rollout.nonzero()[:, 0].tolist() == sorted(rolled)


def test_a_share_of_the_demonstrations_is_never_replaced(run, rng):
    executions = run.executions()
    executions.keep(1 / 3)
    assert executions.kept.tolist() == [number % 3 == 2 for number in range(len(executions))]
    before = everything(executions)
    index = list(range(9))
    rollouts = random_rollouts(rng, index, [4] * 9, 1.0)
    assert executions.merge(rollouts) == 6
    wanted = before | {example: flown for example, flown in unpacked(rollouts) if example % 3 != 2}
    assert everything(executions) == wanted
    executions.keep(0.0)
    assert not executions.kept.any()


def test_merged_poses_are_where_the_rollout_was(run, rng):
    executions = run.executions()
    rollouts = random_rollouts(rng, [5, 9], [6, 8], 1.0)
    executions.merge(rollouts)
    found = executions.pose(torch.tensor([9]), torch.tensor([[0, 7, 3]]))
    assert torch.equal(found.position[0], unpack_pose(rollouts.executions.poses[1, [0, 7, 3]]).position)


def test_an_instruction_that_was_flown_twice_in_a_message_keeps_the_last_flight_whole(run, rng):
    executions = run.executions()
    rollouts = random_rollouts(rng, [3, 8, 3, 8, 3], [40, 2, 7, 30, 11], 1.0)
    assert executions.merge(rollouts) == 2
    assert executions.merged == 2
    for number, rows in (unpacked(rollouts)[3], unpacked(rollouts)[4]):
        assert everything(executions)[number] == rows


def test_no_more_than_ten_turnovers_times_progress_are_ever_merged(run, rng):
    executions = run.executions()
    total, done = len(executions), 0
    for progress in (0.0, 0.001, 0.05, 0.05, 0.1, 0.35, 0.36, 1.0, 1.0):
        rollouts = random_rollouts(rng, rng.permutation(total).tolist(), [2] * total, progress)
        before = everything(executions)
        taken = executions.merge(rollouts)
        assert taken == min(total, int(10 * progress * total) - done)
        done += taken
        assert executions.merged == done <= 10 * progress * total + 1e-9
        wanted = before | dict(unpacked(rollouts)[:taken])
        assert everything(executions) == wanted
    assert executions.merge(random_rollouts(rng, [], [], 1.0)) == 0


def test_an_execution_longer_than_the_room_keeps_its_beginning(run, rng):
    executions = run.executions()
    rollouts = random_rollouts(rng, [4, 5], [90, 3], 1.0)
    assert executions.merge(rollouts) == 2
    found = everything(executions)
    assert found[4] == unpacked(rollouts)[0][1][:71]
    assert found[5] == unpacked(rollouts)[1][1]


def test_what_was_replaced_can_be_put_back_into_fresh_demonstrations(run, rng):
    executions = run.executions()
    total = len(executions)
    for progress in (0.5, 1.0):
        index = rng.choice(total, total // 2, replace=False).tolist()
        executions.merge(random_rollouts(rng, index, rng.integers(1, 71, len(index)).tolist(), progress))
    kept = executions.rollouts()
    assert kept.example.tolist() == executions.is_rollout.nonzero()[:, 0].tolist()
    fresh = run.executions()
    fresh.restore(kept, executions.merged)
    assert everything(fresh) == everything(executions)
    assert torch.equal(fresh.is_rollout, executions.is_rollout)
    assert fresh.merged == executions.merged
    # and nothing of the limit was used up or given away
    again = random_rollouts(rng, list(range(total)), [1] * total, fresh.merged / total / 10 + 0.01)
    assert fresh.merge(again) == executions.merge(again) > 0


def test_replaced_is_empty_while_there_are_only_demonstrations(run):
    executions = run.executions()
    kept = executions.rollouts()
    assert (len(kept.example), len(kept.executions)) == (0, 0)
    executions.restore(kept, 0)
    assert executions.merged == 0
    assert everything(executions) == everything(run.executions())


def pictured(run, rng, chosen: list[int]) -> Demonstrations:
    """Some of the cage's flights with pictures of their own."""
    cage = run.demonstrations["cage"]
    rows = np.concatenate([cage.rows[cage.offsets[number] : cage.offsets[number + 1]] for number in chosen])
    coarse = rng.integers(0, 256, (len(rows), 6, 8, 3), dtype=np.uint8)
    files = [encode(np.kron(picture, np.ones((12, 16, 1), np.uint8)), quality=50) for picture in coarse]
    return Demonstrations(
        header=replace(cage.header, domain="lab"),
        ids=tuple(cage.ids[number] for number in chosen),
        decisions=cage.decisions[chosen],
        stopped=np.array([True] * (len(chosen) - 1) + [False]),
        rows=rows,
        rests=cage.rests[chosen],
        sizes=np.array([len(file) for file in files], np.int32),
        pictures=np.frombuffer(b"".join(files), np.uint8),
    )


def test_the_labs_flights_keep_images_poses_and_decisions_together(run, rng):
    recorded = pictured(run, rng, [9, 2, 5, 0])
    lab = ExecutionSet.from_lab(run.examples, recorded, [2, 0, 3])
    ids = run.examples.ids[0]
    assert [ids[number] for number in lab.example] == [recorded.ids[number] for number in (2, 0, 3)]
    assert len(lab) == 3
    for flight, number in enumerate((2, 0, 3)):
        length = int(recorded.decisions[number]) + 1
        assert int(lab.lengths[flight]) == length
        frames = torch.tensor([[0, length - 1, length // 2]])
        begin = int(recorded.offsets[number])
        wanted = []
        for frame in frames[0].tolist():
            at = int(recorded.sizes[: begin + frame].sum())
            wanted.append(decode(recorded.pictures[at : at + int(recorded.sizes[begin + frame])].tobytes()))
        index = torch.tensor([flight])
        assert np.array_equal(lab.image(index, frames)[0].numpy(), np.stack(wanted))
        poses = recorded.poses(number)
        assert (lab.pose(index, frames).position[0] - poses.position[frames[0]]).abs().max() < 1e-4
        assert angle_between(lab.pose(index, frames)[0], poses[frames[0]]).max() < 1e-4
        setpoint, stop, known = lab.oracle_actions(index, frames)
        sent = recorded.setpoints(number)
        assert setpoint[0, 0].tolist() == pytest.approx([float(sent.forward[0]), float(sent.yaw_rate[0])], abs=4e-5)
        assert stop[0].tolist() == [False, number != 3, False]
        assert known[0].tolist() == [True, number != 3, True]


def test_a_flight_of_the_lab_needs_its_instruction_among_the_examples(run, rng):
    recorded = pictured(run, rng, [1, 2])
    strange = replace(recorded, ids=(recorded.ids[0], "walk/0"))
    with pytest.raises(WordwingError, match='the lab flew the instruction "walk/0", which is not among the examples'):
        ExecutionSet.from_lab(run.examples, strange, [0, 1])
