import math
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import ot
import pytest
import torch
from torch.nn import functional

from small_policy import CONFIG
from wordwing.execution.packing import unpack_pose
from wordwing.execution.runner import SETTLE_STEPS
from wordwing.frames import Pose, in_start_frame
from wordwing.interface import Setpoint
from wordwing.learning.emd import KEEP
from wordwing.learning.rollouts import Collector, RolloutBuffer
from wordwing.learning.training_data import ExampleSet
from wordwing.model.ego import POOL, to_ego_frame
from wordwing.model.grid import START_GRID
from wordwing.model.history import History
from wordwing.model.layers import each
from wordwing.model.policy import PolicyNetwork
from wordwing.model.stage2 import ValueNetwork
from wordwing.sim.dynamics import RESPONSE_PARAMETERS, FleetState
from wordwing.sim.simulator import Simulator
from wordwing.world.layout import Layout

FORWARD, TURN, FORWARD_SPREAD, TURN_SPREAD, STOP = range(5)
"""What stage 2's five outputs are."""


def with_steps(examples: ExampleSet, steps) -> ExampleSet:
    """The same instructions, but with other limits."""
    return replace(examples, examples=replace(examples.examples, steps=torch.as_tensor(steps)))


def steady(network: PolicyNetwork, forward=0.5, turn=0.0, stop=-50.0) -> PolicyNetwork:
    """A policy that always does the same, as good as without chance."""
    last = network.stage2.network.last
    with torch.no_grad():
        last.weight.zero_()
        last.bias.copy_(torch.tensor([forward, turn, -50.0, -50.0, stop]))
    network.stage2.config = replace(network.stage2.config, min_deviation=0.0)
    return network


def lively(run) -> PolicyNetwork:
    """A policy that does something else wherever it is."""
    config = replace(CONFIG, stage2=replace(CONFIG.stage2, first_stop=-2.5, first_deviation=0.3, first_forward=0.8))
    network = run.network(config=config)
    with torch.no_grad():
        # Not so lively that the last bits of sums, which differ with the batch's size, grow into other flights.
        network.stage1.lingunet.up[0].second.weight.div_(10)
        network.stage2.network.last.weight.mul_(20)
    return network


def value_network(seed=3) -> ValueNetwork:
    torch.manual_seed(seed)
    made = ValueNetwork(CONFIG.stage2)
    with torch.no_grad():
        made.network.last.weight.mul_(100)
    return made


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def world_to_start(start: Pose, xy: np.ndarray) -> np.ndarray:
    """A point [2] seen from the start frame, by a matrix."""
    yaw = float(start.yaw[0])
    turn = np.array([[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]])
    return turn @ (xy - start.xy[0].double().numpy())


@pytest.fixture(scope="module")
def several(run):
    """Eleven flights in three worlds, of all datasets, short and long."""
    steps = [4 + 5 * (number % 3) for number in range(len(run.examples))]
    examples = with_steps(run.examples, steps)
    position = examples.examples.start.position.clone()
    position[5, :2] = torch.tensor([2.2, 0.0])  # near the edge, facing it
    quaternion = examples.examples.start.quaternion.clone()
    quaternion[5] = torch.tensor([1.0, 0.0, 0.0, 0.0])
    examples = replace(examples, examples=replace(examples.examples, start=Pose(position, quaternion)))
    index = torch.tensor([0, 1, 2, 40, 3, 41, 4, len(steps) - 1, 5, 0, 7])
    network, values = lively(run), value_network()
    return examples, index, network, values, Collector(network, values, examples, 3).collect(index, generator())


def one_decision(rollouts: RolloutBuffer, row: int, step: int) -> SimpleNamespace:
    """What the buffer holds of one decision."""
    names = [entry.name for entry in fields(rollouts) if entry.name not in ("example", "length")]
    return SimpleNamespace(**{name: each(lambda rows: rows[row, step], getattr(rollouts, name)) for name in names})


def test_the_buffer_holds_what_a_slow_loop_finds_that_flies_one_flight_at_a_time(several):
    examples, index, network, values, rollouts = several
    centres = START_GRID.centres().flatten(0, 1).double().numpy()
    ended_by = set()
    assert rollouts.example.tolist() == index.tolist()
    for row, example in enumerate(index.tolist()):
        chosen = examples.examples[torch.tensor([example])]
        simulator = Simulator(1)
        simulator.reset(examples.layouts.take(chosen.layout), chosen.start)
        with torch.no_grad():
            state = network.begin(chosen.tokens, chosen.start)
        length = int(rollouts.length[row])
        for step in range(length):
            record = one_decision(rollouts, row, step)
            observation = simulator.observe()
            pose = unpack_pose(record.pose)
            assert torch.allclose(pose.position, observation.pose.position[0], atol=6e-5)
            assert torch.allclose(pose.quaternion.abs(), observation.pose.quaternion[0].abs(), atol=1e-4)
            with torch.no_grad():
                state, beliefs = network(state, observation.image, observation.pose, "sim")
                value = values(beliefs.view)
            assert torch.allclose(record.view.close, beliefs.view.close[0], atol=1e-4)
            assert torch.allclose(record.view.whole, beliefs.view.whole[0], atol=1e-4)
            assert torch.allclose(record.view.unobserved, beliefs.view.unobserved[0], atol=1e-4)
            assert float(record.value) == pytest.approx(float(value), abs=1e-3)

            control = beliefs.control
            if record.stop:
                likely = torch.nn.functional.logsigmoid(control.stop_logit)[0]
            else:
                normals = torch.distributions.Normal(control.mean[0], control.deviation[0]).log_prob(record.action)
                likely = torch.log(1 - torch.sigmoid(control.stop_logit))[0] + normals.sum()
            assert float(record.log_prob) == pytest.approx(float(likely), abs=2e-3)

            trajectory = beliefs.visitation.trajectory[0].flatten().double().numpy()
            kept = np.sort(trajectory)[::-1][:KEEP]
            assert np.allclose(record.trajectory.weight, kept / kept.sum(), atol=1e-4, rtol=1e-3)
            assert np.allclose(trajectory[record.trajectory.index.numpy()], kept, atol=1e-4, rtol=1e-3)

            if record.stop:
                for _period in range(SETTLE_STEPS):
                    simulator.step(Setpoint.zero(1))
                led_to = simulator.pose.xy[0].double().numpy()
            else:
                forward, turn = record.action.tolist()
                simulator.step(
                    Setpoint(torch.tensor([min(max(0.7 * forward, 0), 0.7)]), torch.tensor([min(max(turn, -1), 1)]))
                )
                led_to = simulator.pose.xy[0].double().numpy()
            place = world_to_start(chosen.start, led_to)
            assert np.allclose(record.position, place, atol=1e-4)
            goal = beliefs.visitation.goal[0].flatten().double().numpy()
            cost = ot.dist(centres, place[None], metric="euclidean")
            assert float(record.stop_distance) == pytest.approx(ot.emd2(goal / goal.sum(), [1.0], cost), abs=1e-3)

            out = not bool(record.stop) and bool((np.abs(led_to) > 2.35).any())
            over = step + 1 == int(chosen.steps)
            assert bool(record.left_arena) == out
            assert not bool(record.strayed)
            assert (bool(record.stop) or out or over) == (step + 1 == length), "it ends then and not before"
        ended_by |= {"stop" if record.stop else "left" if record.left_arena else "steps"}
    assert ended_by == {"stop", "left", "steps"}, "the flights show every way to end"


def test_no_row_holds_anything_but_its_own_flight(several):
    examples, index, _network, _values, rollouts = several
    assert rollouts.stop.shape == (11, 14)
    for row, example in enumerate(index.tolist()):
        length = int(rollouts.length[row])
        assert rollouts.mask[row].tolist() == [step < length for step in range(14)]
        start = examples.examples.start[torch.tensor([example])]
        assert torch.allclose(unpack_pose(rollouts.pose[row, 0]).position, start.position[0], atol=1e-4)
        poses = unpack_pose(rollouts.pose[row])
        for step in range(length - 1):
            assert not rollouts.stop[row, step]
            reached = world_to_start(start, poses.xy[step + 1].double().numpy())
            assert np.allclose(rollouts.position[row, step], reached, atol=2e-4), "the next pose is where it led"
        for name in ("action", "log_prob", "value", "position", "pose", "stop", "left_arena"):
            assert not getattr(rollouts, name)[row, length:].any(), f"{name} of the padding is empty"


def test_what_a_drone_has_done_is_of_its_own_flight(run):
    config = replace(CONFIG, stage2=replace(CONFIG.stage2, history=True, first_stop=-50.0, first_forward=0.9))
    examples, index = (
        with_steps(run.examples, [2 + 2 * (number % 4) for number in range(len(run.examples))]),
        torch.arange(7),
    )
    collector = Collector(run.network(config=config), ValueNetwork(config.stage2), examples, 4)
    collector.collect(index, generator(1))
    rollouts, moved = collector.collect(index, generator()), []
    for row, example in enumerate(index.tolist()):
        history, start = History.empty(1, "cpu"), examples.examples.start[torch.tensor([example])]
        for step in range(int(rollouts.length[row])):
            record = one_decision(rollouts, row, step)
            pose = in_start_frame(each(lambda rows: rows[None], unpack_pose(record.pose)), start)
            history, motion = history.follow(pose)
            assert torch.allclose(record.view.done[:3], motion[0], atol=5e-3)
            assert 0 <= float(record.view.done[3]) <= 1
            whole = functional.avg_pool2d(to_ego_frame(history.cells[:, None].float(), pose), POOL)
            assert (record.view.whole[-1] - whole[0, 0]).abs().mean() < 2e-3
        moved.append(float(history.last[0, :2].norm()))
    assert max(moved) > 0.2


def test_with_fewer_worlds_than_flights_the_same_flights_are_flown(run):
    steps = [5 + number * 7 % 8 for number in range(len(run.examples))]
    examples, network = with_steps(run.examples, steps), lively(run)
    with torch.no_grad():
        network.stage2.network.last.weight.mul_(5)
        network.stage2.network.last.bias.copy_(torch.tensor([0.4, 0.0, -50.0, -50.0, -50.0]))
        network.stage2.network.last.weight[[FORWARD_SPREAD, TURN_SPREAD, STOP]] = 0
    network.stage2.config = replace(network.stage2.config, min_deviation=0.0)
    index = torch.arange(9)
    few = Collector(network, value_network(), examples, 2).collect(index, generator(1))
    collector = Collector(network, value_network(), examples, 9)
    collector.collect(index, generator(2))
    many = collector.collect(index, generator(3))
    assert few.length.tolist() == many.length.tolist() == steps[:9]
    assert many.action[many.mask].std(0).min() > 0.05, "each decides for itself"
    for name in ("position", "action"):
        a, b = getattr(few, name)[few.mask], getattr(many, name)[many.mask]
        assert (a - b).abs().max() < 0.03, name


def test_a_collector_flies_the_same_again_and_changes_no_network(several):
    examples, index, network, values, rollouts = several
    before = [parameter.clone() for parameter in (*network.parameters(), *values.parameters())]
    collector = Collector(network, values, examples, 3)
    collector.collect(index[:5], generator(4))
    again = collector.collect(index, generator())
    each(lambda a, b: torch.testing.assert_close(a, b, rtol=0, atol=0), rollouts, again)
    assert torch.equal(rollouts.length, again.length)
    for parameter, kept in zip((*network.parameters(), *values.parameters()), before, strict=True):
        assert torch.equal(parameter, kept)
        assert parameter.grad is None


def test_a_policy_that_always_stops_rests_where_it_began(run):
    collector = Collector(steady(run.network(), stop=50.0), value_network(), run.examples, 2)
    rollouts = collector.collect(torch.arange(5), generator())
    assert rollouts.length.tolist() == [1] * 5
    assert rollouts.stop[:, 0].all()
    assert rollouts.position[:, 0].abs().max() < 1e-5
    assert rollouts.position.shape == (5, run.examples.max_steps, 2)


def test_a_drone_that_never_stops_flies_to_its_last_step_or_out_of_the_arena(run):
    collector = Collector(steady(run.network(), forward=1.0), value_network(), run.examples, 3)
    index = torch.tensor([0, 7, len(run.examples) - 1])
    rollouts = collector.collect(index, generator())
    for row, example in enumerate(index.tolist()):
        start = run.examples.examples.start[torch.tensor([example])]
        simulator = Simulator(1, draw=False)
        simulator.reset([Layout(())], start)
        flown = 0
        while simulator.pose.xy.abs().max() <= 2.35:
            simulator.step(Setpoint(torch.tensor([0.7]), torch.zeros(1)))
            flown += 1
        assert int(rollouts.length[row]) == flown
        assert bool(rollouts.left_arena[row, flown - 1])
    turning = Collector(steady(run.network(), forward=0.0, turn=1.0), value_network(), run.examples, 2)
    house = turning.collect(torch.tensor([0, len(run.examples) - 1]), generator())
    assert house.length.tolist() == [50, 70], "every dataset has its own limit"
    assert not house.left_arena.any()
    assert not house.stop.any()


def test_nothing_about_the_demonstration_enters(several):
    examples, index, network, values, rollouts = several
    elsewhere = replace(examples, examples=replace(examples.examples, points=examples.examples.points.flip(0) + 1.0))
    again = Collector(network, values, elsewhere, 3).collect(index, generator())
    each(lambda a, b: torch.testing.assert_close(a, b, rtol=0, atol=0), rollouts, again)


def test_only_where_it_is_asked_for_a_flight_ends_far_from_the_demonstrated_path(run):
    network = steady(run.network(), forward=1.0, turn=0.3)
    index = torch.arange(5)
    collector = Collector(network, value_network(), run.examples, 5, gold_distance=0.6)
    rollouts, free = collector.collect(index, generator()), Collector(network, value_network(), run.examples, 5)
    unhindered = free.collect(index, generator())
    ends = set()
    for row in range(5):
        points = run.examples.examples.points[row].double().numpy()
        starts, ways = points[:-1], np.diff(points, axis=0)
        start = run.examples.examples.start[torch.tensor([row])]
        frame = np.array([[math.cos(float(start.yaw)), -math.sin(float(start.yaw))],
                          [math.sin(float(start.yaw)), math.cos(float(start.yaw))]])  # fmt: skip
        distances = []
        for place in unhindered.position[row, : unhindered.length[row]].double().numpy():
            here = frame @ place + start.xy[0].double().numpy()
            along = np.clip(((here - starts) * ways).sum(1) / np.maximum((ways**2).sum(1), 1e-12), 0, 1)
            distances.append(np.hypot(*(here - starts - along[:, None] * ways).T).min())
        strayed = [step for step, distance in enumerate(distances) if distance > 0.6]
        expected = strayed[0] + 1 if strayed else len(distances)
        assert abs(int(rollouts.length[row]) - expected) <= 1, "points of the path stand for it"
        flags = rollouts.strayed[row, : rollouts.length[row]].tolist()
        assert not any(flags[:-1])
        ends.add(flags[-1])
    assert True in ends
    assert not unhindered.strayed.any()


def test_what_process_a_gets_are_the_poses_of_every_flight(several):
    _examples, index, _network, _values, rollouts = several
    message = rollouts.message(0.3)
    assert message.example.tolist() == index.tolist()
    assert message.executions.lengths.tolist() == rollouts.length.tolist()
    assert message.progress == 0.3
    parts = message.executions.rows().split(rollouts.length.tolist())
    for row, part in enumerate(parts):
        assert torch.equal(part, rollouts.pose[row, : len(part)])


def test_p_oob_of_the_goal_is_the_second_of_the_view(several):
    rollouts = several[-1]
    assert torch.equal(rollouts.unobserved, rollouts.view.unobserved[..., 1])


def test_fewer_flights_than_worlds_are_refused(run):
    collector = Collector(run.network(), value_network(), run.examples, 4)
    with pytest.raises(ValueError, match="3 flights are too few for 4 worlds"):
        collector.collect(torch.arange(3), generator())


def test_drones_are_alike_unless_it_is_asked_for(run):
    """Six flights of one instruction in two worlds, straight on at full speed."""
    network = steady(run.network(), forward=1.0)
    index = torch.full((6,), 3)
    alike, varied, again = (
        Collector(network, value_network(), run.examples, 2, dynamics_randomization=spread).collect(index, generator())
        for spread in (0.0, 0.5, 0.5)
    )
    first = {name: flights.position[:, 2] for name, flights in (("alike", alike), ("varied", varied))}
    assert (first["alike"] - first["alike"][0]).norm(dim=1).max() < 1e-4
    apart = torch.cdist(first["varied"], first["varied"])
    assert apart[~torch.eye(6, dtype=torch.bool)].min() > 1e-4
    assert torch.equal(varied.position, again.position)


def test_randomized_dynamics_stay_within_bounds_and_each_flight_has_others(run, monkeypatch):
    drawn = []
    vary = FleetState.vary
    monkeypatch.setattr(FleetState, "vary", lambda *call: drawn.append(call[2]) or vary(*call))
    Collector(steady(run.network(), stop=50.0), value_network(), run.examples, 8, dynamics_randomization=0.5).collect(
        torch.arange(40), generator()
    )
    factors = torch.cat(drawn)
    assert factors.shape == (40, len(RESPONSE_PARAMETERS))
    assert len(factors.unique(dim=0)) == 40
    assert 1 / 1.5 <= float(factors.min()) < 0.7
    assert 1.4 < float(factors.max()) <= 1.5
