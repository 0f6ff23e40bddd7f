"""Decisions that no sound policy takes are not flown, however they come to the guardian."""

import json
import math

import numpy as np
import pytest
import torch

from fake_autopilot import FakeAutopilot
from served_flight import QUICK
from wordwing.errors import WordwingError
from wordwing.flight.flying import fly_logged
from wordwing.flight.guardian.protocol import Decision, Phase, from_json, to_json
from wordwing.flight.lockstep import LockstepCamera, LockstepClient
from wordwing.flight.logs import FlightLog
from wordwing.flight.mavlink_vehicle import MavlinkVehicle
from wordwing.flight.served.vehicle import ServedLab
from wordwing.interface import Action, FlightOverError, Setpoint
from wordwing.world.layout import Layout
from wordwing.world.tasks import Task

ABSURD = [math.nan, math.inf, -math.inf, 1e30, -1e30]


def sent(decision: Decision) -> Decision:
    """As it comes through the socket between the processes."""
    order = from_json(json.loads(json.dumps(to_json(decision))))
    assert isinstance(order, Decision)
    return order


@pytest.mark.parametrize("number", ABSURD)
@pytest.mark.parametrize("which", ["forward", "yaw_rate"])
def test_the_guardian_refuses_it_and_lands_if_nothing_better_comes(number, which):
    autopilot = FakeAutopilot()
    autopilot.fly()
    for _decision in range(9):  # 2.7 s
        came = autopilot.tick(sent(autopilot.decide(**{which: number})))
        came += autopilot.ticks(0.25)
        assert all((vx, yaw_rate) == (0.0, 0.0) for vx, _vz, yaw_rate in autopilot.setpoints(came))
    assert autopilot.guardian.phase in (Phase.FLYING, Phase.HOLDING)
    assert "no sound policy decides" in autopilot.story("refused")[-1]
    autopilot.tick(autopilot.decide(0.4))
    assert autopilot.guardian.phase is Phase.FLYING, "a sound one is flown again"
    for _decision in range(12):
        autopilot.tick(sent(autopilot.decide(**{which: number})))
        autopilot.ticks(0.25)
    assert autopilot.guardian.phase is Phase.LANDING


def connected(lab: ServedLab) -> tuple[MavlinkVehicle, LockstepClient]:
    guardian = LockstepClient(lab)
    return MavlinkVehicle(
        guardian, LockstepCamera(lab, guardian.clock), lambda state: None, say=lambda words: None
    ), guardian


@pytest.mark.parametrize("number", [math.nan, math.inf, 1e30])
def test_the_pilot_does_not_make_a_sound_decision_of_it(number):
    lab = ServedLab(Layout(()), (0.0, 0.0), 0.0, autopilot="ardupilot", config=QUICK)
    vehicle, guardian = connected(lab)
    with vehicle:
        vehicle.observe()
        flown = vehicle.send(Setpoint(torch.tensor([number]), torch.zeros(1)))
    assert abs(float(flown.forward[0])) < 0.05  # it holds its place
    assert float(flown.yaw_rate[0]) == 0.0
    assert any("no sound policy decides" in event.text for event in guardian.guardian.events if event.kind == "refused")


class Breaking:
    """Decides once; then its decision makes no sense."""

    needs_gold_path = False

    def reset(self, instructions, start, gold_paths=None):
        self.sound = True

    def act(self, observation):
        if not self.sound:
            raise WordwingError("the policy's decision makes no sense")
        self.sound = False
        return Action(Setpoint(torch.tensor([0.4]), torch.zeros(1)), torch.tensor([False]))


def test_a_policy_that_breaks_in_the_air_aborts_the_flight_and_the_drone_lands(tmp_path):
    lab = ServedLab(Layout(()), (0.0, 0.0), 0.0, autopilot="ardupilot", config=QUICK)
    vehicle, guardian = connected(lab)
    task = Task("go", Layout(()), (0.0, 0.0), 0.0, np.zeros((0, 2)))
    raises = pytest.raises(FlightOverError, match="makes no sense")
    with FlightLog.fresh(tmp_path / "log") as log, raises as over, vehicle:
        fly_logged(Breaking(), vehicle, task, log, guardian.clock)
    assert over.value.status == 3
    assert guardian.guardian.phase is Phase.LANDED
    assert not lab.armed
