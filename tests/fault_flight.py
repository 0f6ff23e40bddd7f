"""One flight of a wild pilot over MAVLink in lock-step, in gusts, with one thing that goes wrong at a random moment."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from served_flight import QUICK
from wordwing.flight.guardian.protocol import GuardianEvent
from wordwing.flight.lockstep import LockstepCamera, LockstepClient
from wordwing.flight.mavlink_vehicle import MavlinkVehicle
from wordwing.flight.served import faults
from wordwing.flight.served.autopilot import VelocitySetpoint
from wordwing.flight.served.vehicle import ServedLab
from wordwing.interface import CONTROL_PERIOD, FlightOverError, Setpoint
from wordwing.world.layout import Layout

KINDS = (
    "nothing",
    "loss",
    "dead link",
    "delay",
    "reordering",
    "frozen picture",
    "no pictures",
    "jump",
    "dropout",
    "drift",
    "battery",
    "gale",
    "refusal",
    "takeover",
    "free takeover",
    "reboot",
    "killed pilot",
    "hung pilot",
    "crashed policy",
    "restarted companion",
)

TAKING_OFF = 2.5
"""By then a drone has begun to take off, seconds of lab time."""

FLYING = 7.5
"""By then it flies on decisions."""


class CrashedPolicyError(Exception):
    pass


@dataclass
class Story:
    """What happened, by the lab's own account."""

    kind: str
    autopilot: str
    moment: float
    phase: str = ""
    why: str = ""
    furthest: float = 0.0
    highest: float = 0.0
    setpoints: list[tuple[float, VelocitySetpoint]] = field(default_factory=list)
    commands: list[Any] = field(default_factory=list)
    events: list[GuardianEvent] = field(default_factory=list)
    armed: bool = True
    mode: str = ""
    height: float = math.nan
    speed: float = math.nan


class WatchedClient(LockstepClient):
    """Looks where the drone really is at every moment."""

    def watch(self, story: Story, hang_at: float = math.inf) -> None:
        self.story, self.hang_at, self.hung = story, hang_at, False

    def order(self, order: Any) -> None:
        self.hung = self.hung or self.lab.time >= self.hang_at
        if not self.hung:
            super().order(order)

    def _advance(self, seconds: float) -> None:
        super()._advance(seconds)
        position = self.lab.true_pose.position[0]
        self.story.furthest = max(self.story.furthest, float(position[:2].abs().max()))
        self.story.highest = max(self.story.highest, float(position[2]))


def fly_with_a_fault(seed: int) -> Story:
    """Fly until the fault has had all its consequences."""
    rng = np.random.default_rng([seed, 5])
    kind = KINDS[seed % len(KINDS)]
    autopilot = ("ardupilot", "px4")[(seed + seed // len(KINDS)) % 2]
    moment = float(rng.uniform(1.0 if kind in ("loss", "delay", "reordering") else TAKING_OFF, 15.0))
    story = Story(kind, autopilot, moment)
    lab = ServedLab(
        Layout(()),
        rng.uniform(-1.7, 1.7, 2),
        float(rng.uniform(-math.pi, math.pi)),
        seed=seed,
        autopilot=autopilot,
        config=QUICK,
        faults=[faults.WindFault(0.0, mean=tuple(rng.uniform(-0.4, 0.4, 2)), gusts=0.35), *_faults(kind, moment, rng)],
    )
    client = WatchedClient(lab)
    client.watch(story, moment if kind == "hung pilot" else math.inf)
    vehicle = MavlinkVehicle(client, LockstepCamera(lab, client.clock), lambda _state: None, say=lambda _words: None)
    ends = moment + 7.0
    try:
        if kind == "killed pilot":
            vehicle.connect()
            _fly(vehicle, lab, rng, moment)
            client.close()  # nobody lands: the process is gone
        else:
            with vehicle:
                _fly(vehicle, lab, rng, ends if kind != "crashed policy" else moment)
                if kind == "crashed policy":
                    raise CrashedPolicyError
    except (FlightOverError, CrashedPolicyError):
        pass
    except Exception as error:  # a start that was refused
        story.why = str(error)
    if kind == "restarted companion":
        client.close()
        _restart(lab, story)
    for _ in range(25):  # until all that the autopilot does by itself is done
        client.sleep(1.0)
        if not lab.armed and client.state().done:
            break
    state = client.state()
    story.phase, story.why = state.phase.value, story.why or state.why
    story.setpoints, story.commands, story.events = lab.autopilot.accepted, lab.commands, client.guardian.events
    story.armed, story.mode = lab.armed, lab.autopilot.mode.name
    story.height, story.speed = (
        float(lab.true_pose.position[0, 2]),
        float(np.linalg.norm(lab.autopilot.flight.velocity)),
    )
    return story


def _fly(vehicle: MavlinkVehicle, lab: ServedLab, rng: np.random.Generator, until: float) -> None:
    """Decisions that nobody would call wise."""
    vehicle.observe()
    while lab.time < until:
        forward, turn = rng.uniform(0.0, 1.2), rng.uniform(-1.5, 1.5)
        vehicle.send(Setpoint(torch.tensor([forward]), torch.tensor([turn])))
        vehicle.wait(CONTROL_PERIOD)
        vehicle.observe()


def _restart(lab: ServedLab, story: Story) -> None:
    """A new companion on the same drone, from its first packet on."""
    client = WatchedClient(lab)
    client.watch(story)
    client.sleep(6.0)
    client.close()


def _faults(kind: str, moment: float, rng: np.random.Generator) -> list[faults.Fault]:
    while_it_lasts = float(rng.uniform(0.3, 6.0))
    angle = rng.uniform(-math.pi, math.pi)
    jump = (float(rng.uniform(0.5, 2.0)) * math.cos(angle), float(rng.uniform(0.5, 2.0)) * math.sin(angle))
    made: dict[str, faults.Fault] = {
        "loss": faults.PacketLoss(moment, while_it_lasts, share=float(rng.uniform(0.2, 0.95))),
        "dead link": faults.PacketLoss(moment, share=1.0),
        "delay": faults.Delay(moment, while_it_lasts, seconds=float(rng.uniform(0.05, 1.0))),
        "reordering": faults.Reordering(moment, while_it_lasts, share=0.5),
        "frozen picture": faults.FrozenCamera(moment, still=True),
        "no pictures": faults.FrozenCamera(moment, still=False),
        "jump": faults.PoseJump(moment, while_it_lasts, offset=jump),
        "dropout": faults.PoseDropout(moment),
        "drift": faults.PoseDrift(moment, speed=0.02),
        "battery": faults.LowBattery(moment),
        "gale": faults.WindFault(moment, mean=tuple(rng.uniform(-0.7, 0.7, 2)), gusts=0.4),
        "refusal": faults.RefusedArming(0.0),
        "takeover": faults.Takeover(moment),
        "free takeover": faults.Takeover(moment, stabilize=True),
        "reboot": faults.Reboot(moment),
    }
    return [made[kind]] if kind in made else []
