"""The control loop on a vehicle that writes down what is done to it."""

import numpy as np
import pytest
import torch

from wordwing.execution.runner import SETTLE_STEPS, fly
from wordwing.frames import Pose
from wordwing.interface import Action, FlightOverError, Observation, Setpoint, Vehicle
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task

TASK = Task("go", Layout(()), (0.0, 0.0), 0.0, np.array([[0.0, 0.0], [1.0, 0.0]]))


class Notebook(Vehicle):
    """Moves along x by its forward speed, at most 0.5 m/s."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.x = self.speed = self.time = 0.0
        self.failing: set[str] = set()

    def _note(self, call: str) -> None:
        self.calls.append(call)
        if call in self.failing:
            raise OSError(f"cannot {call}")

    def connect(self) -> None:
        self._note("connect")

    def observe(self) -> Observation:
        self._note("observe")
        pose = Pose.level(torch.tensor([[self.x, 0.0]]), torch.zeros(1), 0.7)
        image = torch.full((1, 72, 128, 3), round(self.time * 10), dtype=torch.uint8)
        return Observation(image, pose, torch.tensor([self.time]))

    def send(self, setpoint: Setpoint) -> Setpoint:
        self._note("send")
        self.speed = min(setpoint.forward.item(), 0.5)
        return Setpoint(torch.tensor([self.speed]), setpoint.yaw_rate)

    def wait(self, seconds: float) -> None:
        self._note("wait")
        self.x += self.speed * seconds
        self.time += seconds

    def land(self) -> None:
        self._note("land")

    def close(self) -> None:
        self._note("close")


class Script:
    """Asks for 0.7 m/s until it stops after a number of decisions."""

    def __init__(self, decisions: int, needs_gold_path: bool = False) -> None:
        self.left = decisions
        self.needs_gold_path = needs_gold_path
        self.seen: list[float] = []

    def reset(self, instructions, start, gold_paths=None) -> None:
        self.begun = (list(instructions), start.position.tolist(), gold_paths)

    def act(self, observation: Observation) -> Action:
        self.seen.append(observation.time.item())
        self.left -= 1
        return Action(Setpoint(torch.tensor([0.7]), torch.tensor([0.2])), torch.tensor([self.left < 0]))


def test_a_flight_ends_with_stop_and_is_recorded_down_to_rest():
    vehicle, policy = Notebook(), Script(4)
    [flight] = fly(policy, vehicle, [TASK])
    assert flight.stopped
    assert flight.end == 4
    assert policy.seen == pytest.approx([0.0, 0.3, 0.6, 0.9, 1.2])
    assert flight.positions.shape == (4 + SETTLE_STEPS + 1, 3)
    assert flight.quaternions.shape == (4 + SETTLE_STEPS + 1, 4)
    steps = np.minimum(np.arange(4 + SETTLE_STEPS + 1), 4)
    assert flight.path[:, 0] == pytest.approx(0.5 * 0.3 * steps)
    assert flight.images == ((),)


def test_the_setpoints_recorded_are_those_really_sent():
    [flight] = fly(Script(3), Notebook(), [TASK])
    assert flight.setpoints == pytest.approx(np.array([[0.5, 0.2]] * 3 + [[0.0, 0.0]] * SETTLE_STEPS))


def test_a_policy_that_never_stops_is_ended():
    [flight] = fly(Script(1000), Notebook(), [TASK], max_steps=7)
    assert (flight.ended_by[0], flight.end) == ("steps", 7)
    assert len(flight.setpoints) == 7 + SETTLE_STEPS


def test_a_policy_that_stops_at_once_does_not_move():
    [flight] = fly(Script(0), Notebook(), [TASK])
    assert (flight.ended_by[0], flight.end) == ("stop", 0)
    assert (flight.path == 0).all()


def test_images_are_kept_on_request_one_for_each_state():
    [flight] = fly(Script(2), Notebook(), [TASK], keep_images=True)
    assert [image[0, 0, 0] for image in flight.images[0]] == [3 * step for step in range(len(flight.positions))]


class Note:
    """A belief that knows when it was held and of which drone it was picked."""

    def __init__(self, time: float, drone: int | None = None) -> None:
        self.time, self.drone = time, drone

    def of(self, index: int) -> "Note":
        return Note(self.time, index)


class Thinker(Script):
    """Holds a belief about each moment at which it decides."""

    beliefs: Note | None = None

    def act(self, observation: Observation) -> Action:
        self.beliefs = Note(observation.time.item())
        return super().act(observation)


@pytest.mark.parametrize(("decisions", "times"), [(2, [0.0, 0.3, 0.6]), (9, [0.0, 0.3, 0.6, 0.9])])
def test_beliefs_are_kept_with_the_images_one_for_each_decision(decisions, times):
    [flight] = fly(Thinker(decisions), Notebook(), [TASK], max_steps=4, keep_images=True)
    assert [note.time for note in flight.beliefs[0]] == pytest.approx(times)
    assert {note.drone for note in flight.beliefs[0]} == {0}
    assert fly(Thinker(decisions), Notebook(), [TASK])[0].beliefs == ((),)
    assert fly(Script(decisions), Notebook(), [TASK], keep_images=True)[0].beliefs == ((),)


class Believer(Script):
    """Believes that the goal is as far ahead as it has flown seconds."""

    def goals(self) -> torch.Tensor:
        return torch.tensor([[self.seen[-1], -1.0, 0.25]])


@pytest.mark.parametrize(("decisions", "times"), [(2, [0.0, 0.3, 0.6]), (9, [0.0, 0.3, 0.6, 0.9]), (0, [0.0])])
def test_goals_are_kept_one_for_each_decision_and_none_where_nothing_is_believed(decisions, times):
    [flight] = fly(Believer(decisions), Notebook(), [TASK], max_steps=4)
    assert flight.believed_goals == pytest.approx(np.array([[time, -1.0, 0.25] for time in times]))
    assert len(flight.believed_goals) == flight.end + (flight.stopped)
    assert fly(Script(decisions), Notebook(), [TASK])[0].believed_goals.shape == (0, 3)


@pytest.mark.parametrize("needs", [True, False])
def test_only_a_policy_that_needs_it_is_shown_the_path(needs):
    policy = Script(1, needs)
    fly(policy, Notebook(), [TASK])
    instructions, start, gold = policy.begun
    assert instructions == ["go"]
    assert start == [pytest.approx([0.0, 0.0, 0.7])]
    assert gold[0].tolist() == [[0.0, 0.0], [1.0, 0.0]] if needs else gold is None


def test_every_setpoint_is_followed_by_one_control_period_and_a_look():
    vehicle = Notebook()
    fly(Script(2), vehicle, [TASK])
    assert vehicle.calls == ["observe"] + ["send", "wait", "observe"] * (2 + SETTLE_STEPS)


class Grounded(Notebook):
    """Takes no setpoint at all."""

    def send(self, setpoint: Setpoint) -> Setpoint:
        raise FlightOverError("the flight is over")


def test_a_flight_that_ends_before_its_first_setpoint_has_a_record_without_any():
    [flight] = fly(Script(3), Grounded(), [TASK])
    assert flight.interrupted == "the flight is over"
    assert (flight.end, flight.setpoints.shape, flight.positions.shape) == (0, (0, 2), (1, 3))


def test_the_context_connects_lands_and_closes():
    with Notebook() as vehicle:
        assert vehicle.calls == ["connect"]
    assert vehicle.calls == ["connect", "land", "close"]


def test_the_context_lands_and_closes_after_an_error():
    vehicle = Notebook()
    with pytest.raises(KeyError), vehicle:
        raise KeyError
    assert vehicle.calls == ["connect", "land", "close"]


def test_a_vehicle_that_cannot_land_is_closed_all_the_same():
    vehicle = Notebook()
    vehicle.failing = {"land"}
    with pytest.raises(OSError, match="cannot land"), vehicle:
        pass
    assert vehicle.calls == ["connect", "land", "close"]


@pytest.mark.parametrize("failing", [{"connect"}, {"connect", "land"}])
def test_a_vehicle_that_connects_halfway_is_brought_down_and_says_why(failing):
    vehicle = Notebook()
    vehicle.failing = failing
    with pytest.raises(OSError, match="cannot connect"), vehicle:
        pytest.fail("it must not fly")
    assert vehicle.calls == ["connect", "land", "close"]
