"""How long decisions take, on a clock that is moved by hand; what is said if it was too long."""

from collections.abc import Iterable, Iterator

import pytest
import torch

pytest.importorskip("pymavlink")

from guarded_flight import GuardedFlight
from wordwing.devices import one_thread
from wordwing.errors import WordwingError
from wordwing.flight import flying
from wordwing.flight.arena import Arena
from wordwing.flight.calibration import Calibration
from wordwing.flight.decision_latency import DECISIONS, check_latency, decision_latency, likely_cause
from wordwing.flight.flying import fly_drone
from wordwing.flight.guardian.protocol import Decision, Phase
from wordwing.flight.mavlink.clock import ManualClock
from wordwing.flight.options import DroneOptions
from wordwing.interface import Action, Observation, Setpoint


class Thinks:
    """For so many seconds at each decision."""

    needs_gold_path = False

    def __init__(self, clock: ManualClock, seconds: Iterable[float]) -> None:
        self.clock, self.seconds = clock, iter(seconds)
        self.seen: list[Observation] = []

    def reset(self, instructions, start, gold_paths=None):
        self.instructions = instructions

    def act(self, observation: Observation) -> Action:
        self.seen.append(observation)
        self.clock.sleep(next(self.seconds))
        return Action(Setpoint.zero(1), torch.tensor([False]))


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def test_a_decision_takes_as_long_as_the_slowest_after_the_first():
    clock = ManualClock(100.0)
    policy = Thinks(clock, [9.0, *[0.04] * (DECISIONS - 2), 0.35, 0.05])
    assert decision_latency(policy, "go to the barrel", clock) == pytest.approx(0.35)
    assert policy.instructions == ["go to the barrel"]
    images = torch.cat([observation.image for observation in policy.seen]).float()
    assert images.shape == (DECISIONS + 1, 72, 128, 3)
    assert images.std(dim=0).mean() > 50  # no two pictures are alike
    assert len({tuple(observation.pose.position[0].tolist()) for observation in policy.seen}) == DECISIONS + 1


@pytest.mark.parametrize(("lab", "ways"), [(True, "serve the lab, and fly it, with the same lower"), (False, "")])
def test_a_policy_that_decides_too_slowly_is_not_flown(lab, ways):
    check_latency(0.29, lab=lab)
    with pytest.raises(WordwingError) as refusal:
        check_latency(0.82, lab=lab)
    said = str(refusal.value)
    assert said.startswith("the drone stays on the floor: a decision took 0.82 s and may take 0.3 s")
    assert "end other programs (top shows them)" in said
    assert "another --policy" in said
    assert ways in said
    assert lab == ("--speed" in said)


def test_threads_are_as_many_after_a_flight_as_before(two_threads):
    with one_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_a_flight_is_thought_out_on_one_thread_from_the_loading_of_its_policy_on(two_threads, tmp_path, monkeypatch):
    threads = []

    def load(name: str, domain: str) -> None:
        threads.append(torch.get_num_threads())
        raise WordwingError("that is enough")

    monkeypatch.setattr(flying, "load_policy", load)
    Arena().save(tmp_path / "arena.json")
    Calibration(128, 72, latency=0.0, horizontal_fov_deg=84.0).save(tmp_path / "camera.json")
    files = DroneOptions(arena=tmp_path / "arena.json", calibration=tmp_path / "camera.json", camera="rtsp://x")
    with pytest.raises(WordwingError, match="that is enough"):
        fly_drone("go", "udp:127.0.0.1:9", "pvn2-sureal", files, None, tmp_path)
    assert threads == [1]


class Ends:
    """The guardian's own reason of flights that ended in its way, in lock-step with the served lab."""

    @staticmethod
    def old_pictures() -> str | None:
        flight = GuardedFlight("ardupilot")
        flight.take_off()
        while flight.phase is Phase.HOLDING:
            flight.tick(Decision(0.3, 0.0, flight.now - 1.0, flight.now))
        return flight.guardian.reason

    @staticmethod
    def no_decisions() -> str | None:
        flight = GuardedFlight("px4")
        flight.take_off()
        flight.fly(0.1, 0.0, 0.3)
        flight.until_phase(Phase.LANDING)
        return flight.guardian.reason

    @staticmethod
    def silence() -> str | None:
        flight = GuardedFlight("ardupilot")
        flight.take_off()
        flight.alive = False
        flight.until_phase(Phase.LANDING)
        return flight.guardian.reason


@pytest.mark.parametrize("end", [Ends.old_pictures, Ends.no_decisions, Ends.silence])
def test_a_flight_that_ended_for_want_of_decisions_names_a_likely_cause(end):
    reason = end()
    slow = likely_cause(reason, lab=False, latency=1.35, unchanged=0.1)
    assert slow.startswith("; a decision took 1.35 s and may take 0.3 s; this machine is probably busy: end other")
    assert "--speed" in likely_cause(reason, lab=True, latency=1.35, unchanged=0.1)
    blind = likely_cause(reason, lab=True, latency=0.04, unchanged=3.6, failure="connection refused")
    assert blind == "; the camera has shown nothing new for 3.6 s (connection refused)"
    assert "0.04 s, but this machine may be busy" in likely_cause(reason, lab=False, latency=0.04, unchanged=0.1)


def test_a_takeover_has_no_other_cause_than_itself():
    assert likely_cause(None, lab=True, latency=1.35, unchanged=9.0) == ""


def test_a_lab_whose_poses_are_old_may_be_served_too_fast():
    assert "with the same lower --speed" in likely_cause("old pose", lab=True, latency=0.04, unchanged=0.1)
    assert likely_cause("old pose", lab=False, latency=0.04, unchanged=0.1) == ""
