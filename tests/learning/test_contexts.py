"""Contexts against the simulator's own pictures, complex numbers for motions, and rotated maps."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import ndimage

from small_run import angle_between
from wordwing.frames import Pose
from wordwing.learning.contexts import (
    ContextConfig,
    Contexts,
    ContextSource,
    FlightCamera,
    example_probabilities,
    look_around,
    rotated,
    transplant,
)
from wordwing.learning.executions import ExecutionSet
from wordwing.learning.losses import GoldConfig, gold_of, run_stage1
from wordwing.model.layers import each
from wordwing.sim.simulator import Simulator

STILL = ContextConfig(images=3, foreign_motions=0.0, look_arounds=0.0, rotation=0.0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def flat(pose: Pose) -> Pose:
    return Pose(pose.position.flatten(0, 1), pose.quaternion.flatten(0, 1))


def plain(pose: Pose) -> tuple[np.ndarray, np.ndarray]:
    """Places as complex numbers, and headings, radians, in double precision."""
    xy = pose.position.double().numpy()
    w, x, y, z = pose.quaternion.double().numpy().T
    return (xy[..., 0] + 1j * xy[..., 1]), np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z)).T


def numbered(lab: ExecutionSet) -> ExecutionSet:
    """Every picture says which flight and which frame it is of."""
    images = torch.zeros_like(lab.images)
    row = 0
    for flight, length in enumerate(lab.lengths.tolist()):
        for frame in range(length):
            images[row, :, :, 0], images[row, :, :, 1] = flight, frame
            row += 1
    return replace(lab, images=images)


def test_images_are_those_of_a_simulator_whose_drones_are_there(run):
    config = ContextConfig(images=4, foreign_motions=0.4, look_arounds=0.2, rotation=0.5)
    source = ContextSource(run.examples, run.executions(), None, config, (6, 3, 0))
    index = source.sample_motions(seeded(1)).example
    contexts = source.draw(seeded(1))
    assert contexts.sim_image.shape == (9, 4, 72, 128, 3)
    data = run.data
    of_all = [
        dataset.task(one).layout for dataset, part in zip(data.datasets, data.training, strict=True) for one in part
    ]
    layouts = [of_all[number] for number in index.tolist()]
    simulator = Simulator(36)
    pose = flat(contexts.pose)
    simulator.reset([layout for layout in layouts for _picture in range(4)], pose)
    simulator.drones.position.copy_(pose.position)
    simulator.drones.attitude.copy_(pose.quaternion)
    assert torch.equal(simulator.images().unflatten(0, (9, 4)), contexts.sim_image)
    assert len({image.numpy().tobytes() for image in contexts.sim_image.flatten(0, 1)}) > 30


def test_own_executions_are_looked_at_from_the_poses_of_the_demonstrations(run):
    source = ContextSource(run.examples, run.executions(), None, STILL, (8, 0, 0))
    index, contexts = source.sample_motions(seeded(2)).example, source.draw(seeded(2))
    assert contexts.own.all()
    for row, number in enumerate(index.tolist()):
        flown = run.flight(number)
        frames = []
        for picture in range(3):
            there = (flown.position == contexts.pose.position[row, picture]).all(1).nonzero()[:, 0]
            assert len(there)
            frames.append(int(there[0]))
            assert angle_between(contexts.pose[row, picture], flown[frames[-1]]) < 1e-6
        assert frames[0] == 0
        assert frames == sorted(frames)


def test_setpoints_and_stop_are_those_of_the_poses_they_come_with(run):
    source = ContextSource(run.examples, run.executions(), run.lab(), STILL, (6, 2, 4))
    contexts = source.draw(seeded(3))
    given = run.demonstrations
    stops = 0
    for row in range(12):
        corpus = run.examples.corpora[int(contexts.examples.corpus[row])]
        rows, offsets = given[corpus].rows, given[corpus].offsets
        for picture in range(3):
            here = (contexts.pose.position[row, picture].double().numpy() / 1e-4).round()
            found = (rows[:, :3] == here).all(1).nonzero()[0]
            assert len(found)
            wanted = {(round(rows[at, 6] / 30_000, 6), round(rows[at, 7] / 30_000, 6)) for at in found}
            assert tuple(round(value, 6) for value in contexts.setpoint[row, picture].tolist()) in wanted
            ends = set((offsets[1:] - 1).tolist())
            assert bool(contexts.stop[row, picture]) in {int(at) in ends for at in found}
            stops += bool(contexts.stop[row, picture])
    assert contexts.known.all()
    assert stops > 1


def test_the_second_part_of_a_batch_is_of_the_cage_and_the_first_of_any_corpus(run):
    source = ContextSource(run.examples, run.executions(), run.lab(), STILL, (60, 30, 7))
    seen = Counter()
    for seed in range(5):
        corpus = run.examples.examples.corpus[source.sample_motions(seeded(seed)).example]
        assert (corpus[60:] == 0).all()
        seen.update(corpus[:60].tolist())
    shares = np.array([len(part) for part in run.examples.ids]) / len(run.examples)
    for corpus, share in enumerate(shares):
        assert seen[corpus] / 300 == pytest.approx(share, abs=4 * (share * (1 - share) / 300) ** 0.5)


def test_images_of_the_lab_come_with_the_poses_and_instructions_they_were_taken_at(run):
    lab = numbered(run.lab())
    source = ContextSource(run.examples, run.executions(), lab, STILL, (2, 1, 6))
    contexts = source.draw(seeded(4))
    assert contexts.lab_image.shape == (6, 3, 72, 128, 3)
    assert len(contexts.examples) == 9
    flights = set()
    for row in range(6):
        for picture in range(3):
            flight, frame, _blue = contexts.lab_image[row, picture, 5, 7].tolist()
            flown = run.flight(int(lab.example[flight]))
            assert torch.equal(contexts.pose.position[3 + row, picture], flown.position[frame])
            assert torch.equal(contexts.examples.points[3 + row], run.examples.examples.points[lab.example[flight]])
            flights.add(flight)
    assert len(flights) > 2


def test_what_stands_around_is_that_of_the_layout(run):
    source = ContextSource(run.examples, run.executions(), run.lab(), STILL, (5, 2, 2))
    contexts = source.draw(seeded(5))
    layouts = run.examples.layouts
    for row in range(9):
        which = int(contexts.examples.layout[row])
        count = int(layouts.count[which])
        assert contexts.present[row].tolist() == [slot < count for slot in range(40)]
        assert torch.equal(contexts.landmark[row], layouts.landmark[which])
        assert torch.equal(contexts.place[row], layouts.place[which, :, :2])
    assert contexts.clearing.abs().max() <= 2.35
    assert contexts.clearing.abs().max() > 2.0


def test_a_batch_depends_on_its_generator_alone(run):
    config = ContextConfig(images=3)
    source = ContextSource(run.examples, run.executions(), run.lab(), config, (4, 2, 2))
    first = source.draw(seeded(6))
    other = source.draw(seeded(7))
    again = source.draw(seeded(6))

    def tensors(contexts: Contexts) -> list[torch.Tensor]:
        found: list[torch.Tensor] = []
        each(lambda tensor: found.append(tensor) or tensor, contexts)
        return found

    assert all(torch.equal(mine, theirs) for mine, theirs in zip(tensors(first), tensors(again), strict=True))
    assert not torch.equal(first.sim_image, other.sim_image)
    assert not torch.equal(first.lab_image, other.lab_image)


def test_a_transplanted_motion_keeps_its_distances_turns_and_heights(run):
    executions, start = run.executions(), run.examples.examples.start
    index = torch.arange(len(executions))
    pose = executions.pose(index, executions.sample_frames(index, 6, seeded(8)))
    home = Pose.level(torch.zeros(len(index), 2), torch.linspace(-3, 3, len(index)), 0.7)
    moved = transplant(pose, start, home)
    place, heading = plain(pose)
    new_place, new_heading = plain(moved)
    begin, begin_heading = plain(start)
    home_place, home_heading = plain(home)
    turn = np.exp(1j * (home_heading - begin_heading))
    wanted = home_place[:, None] + (place - begin[:, None]) * turn[:, None]
    inside = (np.maximum(abs(wanted.real), abs(wanted.imag)) < 2.3499).cumprod(1).astype(bool)
    assert inside.mean() > 0.8
    assert abs(new_place - wanted)[inside].max() < 1e-5
    turns = np.angle(np.exp(1j * (new_heading - heading - (home_heading - begin_heading)[:, None])))
    assert abs(turns[inside]).max() < 1e-4
    assert (moved.position[..., 2] - pose.position[..., 2]).abs().numpy()[inside].max() < 1e-6
    # roll and pitch too: the relative rotation of two poses of a motion is the same as before
    back = Pose(moved.position[:, :1], moved.quaternion[:, :1]).inverse() @ moved
    before = Pose(pose.position[:, :1], pose.quaternion[:, :1]).inverse() @ pose
    assert angle_between(back, before).numpy()[inside].max() < 1e-5
    assert abs(new_place[:, 0] - home_place).max() < 1e-4
    assert abs(np.angle(np.exp(1j * (new_heading[:, 0] - home_heading)))).max() < 2e-4


def test_a_transplanted_motion_stops_where_it_would_leave_the_arena():
    # Forward 1 m each time, around a corner and back; from (1.2, 0) heading along x it leaves after one metre.
    xy = torch.tensor([[[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [1.0, 0.0], [0.5, 0.0]]])
    pose = Pose.level(xy, torch.zeros(1, 5), 0.7)
    start = Pose.level(torch.zeros(1, 2), torch.zeros(1), 0.7)
    moved = transplant(pose, start, Pose.level(torch.tensor([[1.2, 0.0]]), torch.zeros(1), 0.7))
    assert moved.xy[0, :, 0].tolist() == pytest.approx([1.2, 2.2, 2.2, 2.2, 2.2])
    away = transplant(pose, start, Pose.level(torch.tensor([[1.2, 0.0]]), torch.tensor([math.pi]), 0.7))
    assert away.xy[0, :, 0].tolist() == pytest.approx([1.2, 0.2, -0.8, 0.2, 0.7], abs=1e-6)


def test_no_transplanted_motion_leaves_the_arena(run):
    executions, start = run.executions(), run.examples.examples.start
    index = torch.arange(len(executions)).repeat(10)
    other = index[torch.randperm(len(index), generator=seeded(9))]
    moved = transplant(
        executions.pose(other, executions.sample_frames(other, 8, seeded(10))), start[other], start[index]
    )
    assert moved.xy.abs().max() <= 2.35
    stayed = (moved.position[:, -1] == moved.position[:, -2]).all(1)
    assert 0.05 < stayed.float().mean() < 0.9


def test_a_look_around_turns_evenly_on_the_spot_either_way(run):
    start = run.examples.examples.start[torch.arange(60).repeat(5)]
    around = look_around(start, 5, seeded(11))
    assert torch.equal(around.xy, start.xy[:, None].expand(-1, 5, -1))
    assert (around.position[..., 2] == 0.7).all()
    _place, heading = plain(around)
    _place, begin = plain(start)
    turn = np.angle(np.exp(1j * (heading - begin[:, None])))
    assert abs(turn[:, 0]).max() < 1e-5
    steps = np.angle(np.exp(1j * np.diff(turn, axis=1)))  # a quarter of a full turn at most
    assert abs(steps).max() <= math.pi / 2 + 1e-5
    assert abs(steps - steps[:, :1]).max() < 1e-4
    assert 0.4 < (steps[:, 0] > 0).mean() < 0.6
    assert abs(steps[:, 0]).mean() == pytest.approx(math.pi / 4, rel=0.15)  # evenly up to a quarter each
    assert look_around(start[:2], 1, seeded(12)).xy.shape == (2, 1, 2)


def test_shares_of_own_foreign_and_turning_executions_are_the_configured_ones(run):
    executions = run.executions()
    config = ContextConfig(images=3, foreign_motions=0.4, look_arounds=0.1)
    source = ContextSource(run.examples, executions, None, config, (2, 0, 0))
    index = torch.arange(len(executions)).repeat(15)
    frames = executions.sample_frames(index, 3, seeded(13))
    found = source.mix(index, frames, seeded(14))
    pose, own = found.pose, found.own
    demonstrated = (pose.position == executions.pose(index, frames).position).flatten(1).all(1)
    start = run.examples.examples.start[index]
    turning = (pose.xy == start.xy[:, None]).flatten(1).all(1) & ~demonstrated
    count = len(index)
    for share, wanted in ((demonstrated, 0.5), (turning, 0.1), (~demonstrated & ~turning, 0.4)):
        assert float(share.float().mean()) == pytest.approx(wanted, abs=4 * (wanted * (1 - wanted) / count) ** 0.5)
    assert demonstrated[own].all()
    assert (demonstrated & ~own).float().mean() < 0.01, "by chance a foreign motion can be the same as one's own"
    # whatever the motion is, it begins at the instruction's own start
    assert (pose.xy[:, 0] - start.xy).abs().max() < 2e-4
    assert abs(np.sin(pose.yaw[:, 0].numpy() - start.yaw.numpy())).max() < 1e-3


def test_corpora_are_drawn_by_their_shares_and_the_instructions_of_one_alike(run):
    corpus = run.examples.examples.corpus
    assert len(run.examples.corpora) == 3
    chances = example_probabilities(run.examples, (3, 1, 2))
    for number, share in enumerate((1 / 2, 1 / 6, 1 / 3)):
        of_it = chances[corpus == number]
        assert float(of_it.sum()) == pytest.approx(share)
        assert float(of_it.min()) == float(of_it.max())
    source = ContextSource(run.examples, run.executions(), None, replace(STILL, shares=(3, 1, 2)), (600, 0, 0))
    drawn = corpus[source.sample_motions(seeded(3)).example]
    assert float((drawn == 0).float().mean()) == pytest.approx(0.5, abs=4 * (0.25 / 600) ** 0.5)


def test_what_oracle_decided_is_known_only_in_its_own_executions(run):
    source = ContextSource(run.examples, run.executions(), run.lab(), ContextConfig(2, 0.5, 0.2), (30, 5, 3))
    contexts = source.draw(seeded(15))
    assert torch.equal(contexts.known, contexts.own[:, None].expand(-1, 2))
    assert contexts.own[-3:].all()
    assert 5 < int(contexts.own.sum()) < 33


def test_images_to_compare_with_the_lab_stay_those_of_cage_demonstrations_when_rollouts_replace_them(run):
    executions = run.executions()
    source = ContextSource(run.examples, executions, run.lab(), STILL, (4, 20, 2))
    executions.poses.zero_()
    executions.is_rollout[:] = True
    found = source.draw(seeded(18)).cage_image
    assert found.shape == (40, 72, 128, 3)
    flights = [(number, run.flight(number)) for number in source.cage.tolist()]
    where = torch.cat([torch.full((len(flight),), number) for number, flight in flights])
    poses = Pose(*(torch.cat([getattr(f, name) for _n, f in flights])[:, None] for name in ("position", "quaternion")))
    layouts = run.examples.layouts.take(run.examples.examples.layout[where])
    every = FlightCamera(len(where), 1, found.device).render(layouts, poses)[:, 0]
    assert {one.numpy().tobytes() for one in found} <= {one.numpy().tobytes() for one in every}


def test_foreign_motions_are_those_of_other_instructions_in_the_batch(run):
    executions = run.executions()
    config = ContextConfig(4, foreign_motions=1.0, look_arounds=0.0)
    source = ContextSource(run.examples, executions, None, config, (2, 0, 0))
    index = torch.arange(20)
    found = source.mix(index, executions.sample_frames(index, 4, seeded(16)), seeded(17))
    pose = found.pose
    assert not found.own.any()

    def shape(pose: Pose) -> np.ndarray:
        """[K, 2] what a transplant keeps of a motion: distances from its beginning, and heights."""
        xyz = pose.position.double().numpy()
        return np.stack([np.hypot(*(xyz - xyz[0])[:, :2].T), xyz[:, 2]], axis=1)

    strangers = 0
    for row in range(20):
        motion = shape(pose[row])
        found = {
            number
            for number in range(20)
            if (abs(motion[:, None] - shape(run.flight(number))).max(2).min(1) < 1e-4).all()
        }
        assert found, "it is the motion of one of the batch"
        strangers += row not in found
    assert strangers > 10


def rotated_by(examples, angle: float):
    """Examples [1] whose start frame was turned by just this angle."""
    drawn = float(torch.randn(1, generator=seeded(18)))
    return rotated(examples, angle / drawn, seeded(18))


def test_start_headings_are_turned_by_normal_angles_and_nothing_else_changes(run):
    examples = run.examples.examples[torch.arange(len(run.examples)).repeat(20)]
    found = rotated(examples, 0.5, seeded(19))
    angle = np.angle(np.exp(1j * (found.start.yaw - examples.start.yaw).double().numpy()))
    assert angle.mean() == pytest.approx(0, abs=4 * 0.5 / len(angle) ** 0.5)
    assert angle.std() == pytest.approx(0.5, rel=0.1)
    assert torch.equal(found.start.xy, examples.start.xy)
    assert (found.start.position[:, 2] == 0.7).all()
    assert torch.equal(found.points, examples.points)
    assert torch.equal(found.tokens.words, examples.tokens.words)


def looked(run, network, contexts: Contexts):
    """Maps and gold of contexts, as arrays."""
    with torch.no_grad():
        seen = run_stage1(network, contexts, network.stage1.encode_text(contexts.examples.tokens))[0]
    gold = gold_of(contexts, GoldConfig())
    return seen, gold.trajectory.numpy(), gold.goal.numpy()


def test_turning_the_start_frame_by_a_right_angle_turns_maps_masks_and_gold(run):
    source = ContextSource(run.examples, run.executions(), None, STILL, (1, 0, 0))
    network = run.network()
    contexts = source.draw(seeded(20))
    seen, trajectory, goal = looked(run, network, contexts)
    quarter = replace(contexts, examples=rotated_by(contexts.examples, math.pi / 2))
    other, other_trajectory, other_goal = looked(run, network, quarter)
    # Ahead was left before: what lay in the leftmost column is in the top row now.
    for before, after in ((trajectory, other_trajectory), (goal, other_goal)):
        assert after == pytest.approx(np.rot90(before, -1, axes=(1, 2)), abs=1e-4)
        assert abs(after - before).sum() > 1
    for before, after in ((seen.observed, other.observed), (seen.in_view, other.in_view)):
        same = np.rot90(before.numpy(), -1, axes=(1, 2)) == after.numpy()
        assert (~same).sum() <= 3 * len(same), "only cells on the very edge may be rounded otherwise"
        assert before.sum() > 300
    features = np.rot90(seen.semantic_map.numpy(), -1, axes=(2, 3))
    apart = abs(features - other.semantic_map.numpy()).max(1)
    assert (apart > 1e-3).sum() <= 4 * len(apart)
    assert torch.equal(seen.image_features, other.image_features)


@pytest.mark.parametrize("angle", [0.4, -1.1])
def test_turning_the_start_frame_by_any_angle_turns_the_maps_as_images_are_turned(run, angle):
    source = ContextSource(run.examples, run.executions(), None, STILL, (1, 0, 0))
    contexts = source.draw(seeded(21))
    network = run.network()
    seen, trajectory, goal = looked(run, network, contexts)
    other, other_trajectory, other_goal = looked(
        run, network, replace(contexts, examples=rotated_by(contexts.examples, angle))
    )

    def turn(picture: np.ndarray) -> np.ndarray:
        # In a frame that is turned left everything lies further right; ndimage turns pictures to the left.
        return ndimage.rotate(picture.astype(float), -math.degrees(angle), axes=(2, 1), reshape=False, order=1)

    def apart(one: np.ndarray, two: np.ndarray) -> float:
        return float(abs(one / one[0].sum() - two / two[0].sum())[0].sum() / 2)

    for before, after in ((trajectory, other_trajectory), (goal, other_goal)):
        assert apart(turn(before), after) < 0.12 < apart(before, after)
    middle = np.hypot(*(np.mgrid[:64, :64] - 31.5)) < 31  # what is turned off the map does not come back
    for before, after in ((seen.observed, other.observed), (seen.in_view, other.in_view)):
        wrong = ((turn(before.numpy()) > 0.5) != after.numpy()) & middle
        moved = (before.numpy() != after.numpy()) & middle
        assert wrong.sum() < 0.15 * moved.sum()
