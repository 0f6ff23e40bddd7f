import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from small_policy import VOCABULARY, small_network
from studio_server import LAYOUT
from wordwing.errors import WordwingError
from wordwing.execution.execution import Execution
from wordwing.execution.runner import fly, start_poses
from wordwing.interface import Action, Observation, Setpoint
from wordwing.lab.vehicle import LabVehicle
from wordwing.policies.learned import LearnedPolicy
from wordwing.sim.simulator import Simulator
from wordwing.studio.live import LiveFlight, Start
from wordwing.world.layout import Layout, Placement
from wordwing.world.tasks import Task

WORLD = Layout(tuple(Placement(**row) for row in LAYOUT["landmarks"]))
XY, YAW = (-1.5, -0.5), 0.3
TEXT = "go to the barrel"


def policy(domain="sim", seed=0):
    return LearnedPolicy(small_network(seed), VOCABULARY, domain)


class StopsAt(LearnedPolicy):
    """A small policy that decides STOP at a certain decision, whatever it thinks."""

    def __init__(self, decision, domain="sim"):
        super().__init__(small_network(), VOCABULARY, domain)
        self.decision = decision

    def reset(self, *given, **more):
        super().reset(*given, **more)
        self.count = -1

    def act(self, observation: Observation) -> Action:
        self.count += 1
        action = super().act(observation)
        return Action(action.setpoint, torch.tensor([self.count == self.decision]))


class Ahead(StopsAt):
    """One that flies straight on."""

    def act(self, observation):
        action = super().act(observation)
        return Action(Setpoint(torch.full((1,), 0.5), torch.zeros(1)), action.stop)


def task(text=TEXT, xy=XY, yaw=YAW):
    return Task(text, WORLD, xy, yaw, np.array([xy]))


def flown(live, text, pilot):
    live.begin(text, pilot)
    moments = []
    while live.flying:
        moments.append(live.advance())
    return moments, live.executions[-1]


def assert_same(ours: Execution, theirs: Execution):
    assert np.array_equal(ours.positions, theirs.positions)
    assert np.array_equal(ours.quaternions, theirs.quaternions)
    assert np.array_equal(ours.setpoints, theirs.setpoints)
    assert np.array_equal(ours.believed_goals, theirs.believed_goals)
    assert (ours.end, ours.ended_by) == (theirs.end, theirs.ended_by)


@pytest.mark.parametrize("decision", [0, 7, None])
def test_a_live_flight_in_sim_is_that_of_an_evaluation_to_the_last_bit(decision):
    live = LiveFlight(Start(WORLD, XY, YAW), max_steps=15)
    moments, ours = flown(live, TEXT, StopsAt(decision))
    [theirs] = fly(StopsAt(decision), Simulator(1), [task()], max_steps=15, keep_images=True)
    assert_same(ours, theirs)
    assert len(moments) == len(theirs.images[0])
    for moment, image in zip(moments, theirs.images[0], strict=True):
        assert np.array_equal(moment.observation.image[0].numpy(), image)
    for moment, belief in zip(moments, theirs.beliefs[0], strict=False):
        assert torch.equal(moment.beliefs.visitation.goal, belief.visitation.goal)


def test_a_drone_that_flies_at_a_fence_is_held_back_as_in_an_evaluation():
    xy, yaw = (1.6, 0.0), 0.0
    _moments, ours = flown(LiveFlight(Start(WORLD, xy, yaw), max_steps=12), TEXT, Ahead(None))
    [theirs] = fly(Ahead(None), Simulator(1), [task(xy=xy, yaw=yaw)], max_steps=12)
    assert_same(ours, theirs)
    assert ours.positions[:, 0].max() < 2.35
    assert ours.setpoints[:, 0].min() == 0  # else safety had nothing to do
    assert len(ours.setpoints) == 18


@pytest.mark.parametrize("decision", [6, None])
def test_a_live_flight_in_the_lab_is_that_of_the_pilot_to_the_last_bit(decision):
    live = LiveFlight(Start(WORLD, XY, YAW, 5, "lab"), max_steps=9)
    _moments, ours = flown(live, TEXT, StopsAt(decision, "lab"))
    with LabVehicle(WORLD, XY, YAW, seed=5) as vehicle:
        [theirs] = fly(StopsAt(decision, "lab"), vehicle, [task()], max_steps=9)
    assert_same(ours, theirs)


def test_another_seed_is_another_flight_in_the_lab():
    ends = []
    for seed in (5, 6):
        _moments, flight = flown(LiveFlight(Start(WORLD, XY, YAW, seed, "lab"), max_steps=3), TEXT, policy("lab"))
        ends.append(flight.positions[-1])
    assert not np.array_equal(*ends)


def test_a_second_instruction_goes_on_where_the_drone_is_as_a_second_flight_of_the_pilot_does():
    live = LiveFlight(Start(WORLD, XY, YAW, 5, "lab"), max_steps=5)
    _moments, first = flown(live, TEXT, policy("lab"))
    _moments, second = flown(live, "left of the barrel", policy("lab", 1))
    with LabVehicle(WORLD, XY, YAW, seed=5) as vehicle:
        assert_same(first, fly(policy("lab"), vehicle, [task()], max_steps=5)[0])
        assert_same(second, fly(policy("lab", 1), vehicle, [task("left of the barrel")], max_steps=5)[0])


def test_a_second_instruction_in_sim_has_its_start_frame_where_the_first_ended():
    live = LiveFlight(Start(WORLD, XY, YAW), max_steps=5)
    _moments, first = flown(live, TEXT, policy())
    _moments, second = flown(live, "left of the barrel", policy(seed=1))
    # The same by hand: one simulator that is never reset.
    simulator = Simulator(1)
    simulator.reset([WORLD], start_poses([task()]))
    for setpoint in first.setpoints:
        simulator.step(Setpoint(torch.tensor(setpoint[:1]), torch.tensor(setpoint[1:])))
    pilot, seen = policy(seed=1), simulator.observe()
    pilot.reset(["left of the barrel"], seen.pose)
    path = [seen.pose.position[0].numpy()]
    for step in range(5 + 6):
        setpoint = pilot.act(seen).setpoint if step < 5 else Setpoint.zero(1)
        simulator.step(setpoint, safety=True)
        seen = simulator.observe()
        path.append(seen.pose.position[0].numpy())
    assert np.array_equal(second.positions, np.stack(path))
    assert np.array_equal(second.positions[0], first.positions[-1])
    assert second.task.start_xy == tuple(first.positions[-1, :2].tolist())
    assert torch.equal(live.frame.position[0], torch.from_numpy(first.positions[-1]))


def test_restarting_gives_the_same_flight_again():
    for vehicle in ("sim", "lab"):
        live = LiveFlight(Start(WORLD, XY, YAW, 3, vehicle), max_steps=4)
        _moments, once = flown(live, TEXT, policy(vehicle))
        live.restart()
        _moments, again = flown(live, TEXT, policy(vehicle))
        assert_same(again, once)
        assert len(live.executions) == 1


def test_two_flights_at_once_in_threads_are_those_of_one_after_another(rng):
    def fly(number):
        torch.set_num_threads(1)
        vehicle = ("sim", "lab")[number % 2]
        live = LiveFlight(Start(WORLD, XY, YAW + 0.1 * number, number, vehicle), max_steps=8)
        return flown(live, TEXT, LearnedPolicy(shared, VOCABULARY, vehicle))[1]

    shared = small_network()
    alone = [fly(number) for number in range(6)]
    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(fly, range(6)))
    for ours, theirs in zip(together, alone, strict=True):
        assert_same(ours, theirs)


def test_a_halted_flight_comes_to_rest_and_nobody_judges_it():
    live = LiveFlight(Start(WORLD, XY, YAW), max_steps=50)
    live.begin(TEXT, policy())
    for _decision in range(3):
        live.advance()
    live.halt()
    settling = 0
    while live.flying:
        moment = live.advance()
        assert moment.action is None
        settling += moment.setpoint is not None
    assert settling == 6
    assert moment.setpoint is None
    ending = live.ending()
    assert (ending.reason, ending.verdict.followed, ending.verdict.clauses) == ("stopped", None, ())
    assert ending.seconds == pytest.approx(0.9)


def test_a_flight_that_is_halted_before_its_first_decision_stays_where_it_is():
    live = LiveFlight(Start(WORLD, XY, YAW))
    live.begin(TEXT, policy())
    live.halt()
    while live.flying:
        live.advance()
    assert np.abs(live.executions[0].path - XY).max() < 0.01
    assert live.executions[0].end == 0


def test_a_flight_that_is_halted_during_a_decision_still_flies_it_and_is_recorded_to_rest():
    class HaltedWithin(LearnedPolicy):
        def act(self, observation):
            action = super().act(observation)
            live.halt()  # as another thread does
            return action

    live = LiveFlight(Start(WORLD, XY, YAW), max_steps=50)
    moments, execution = flown(live, TEXT, HaltedWithin(small_network(), VOCABULARY, "sim"))
    assert [moment.action is not None for moment in moments] == [True] + [False] * 7
    assert (execution.end, len(execution.setpoints)) == (1, 7)  # the decision, and six control periods until rest


def test_a_drone_flies_also_in_the_middle_of_a_decision():
    said = []

    class Watched(Simulator):
        def step(self, setpoint, *, safety=False):
            said.append(live.flying)
            return super().step(setpoint, safety=safety)

    start = Start(WORLD, XY, YAW)
    live = LiveFlight(start, Watched(1), max_steps=2)
    flown(live, TEXT, policy())
    assert said == [True] * 8  # two decisions, and six control periods until rest
    assert not live.flying


def test_a_flight_is_gone_when_nobody_has_it():
    for vehicle in ("sim", "lab"):
        live = LiveFlight(Start(WORLD, XY, YAW, 3, vehicle), max_steps=1)
        flown(live, TEXT, policy(vehicle))
        left = [weakref.ref(live), weakref.ref(live._environment)]
        del live
        gc.collect()
        assert [thing() for thing in left] == [None, None]


def test_a_flying_drone_is_told_nothing_new():
    live = LiveFlight(Start(WORLD, XY, YAW))
    live.begin(TEXT, policy())
    with pytest.raises(WordwingError, match="is flying"):
        live.begin(TEXT, policy())


def test_the_ending_says_how_far_it_flew_and_what_the_judge_says():
    live = LiveFlight(Start(WORLD, (-1.5, 0.5), 0.0))
    _moments, flight = flown(live, "go to the barrel", Ahead(14))
    ending = live.ending()
    steps = np.diff(flight.path.astype(float), axis=0)
    assert ending.metres == pytest.approx(np.hypot(*steps.T).sum(), abs=1e-6)
    assert ending.seconds == pytest.approx(4.2)
    assert ending.verdict.followed is True
    assert ending.verdict.clauses == (("came to rest at the barrel", True),)
    live.restart()
    flown(live, "barrel gibberish wibble", Ahead(2))
    assert live.ending().verdict.followed is None
    live.restart()
    flown(live, "go to the barrel", Ahead(2))
    assert live.ending().verdict.followed is False
