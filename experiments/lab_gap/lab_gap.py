"""What makes the lab harder than `sim`: the same instructions there and in labs that lack a property; JSON lines.

Usage: python experiments/lab_gap/lab_gap.py POLICY DATASET [--segments N] [--limit N] [--places NAME…]

A lab without disturbances still has its own images, airframe and autopilot; the one with the images of `sim` has
everything else of the lab.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import tyro

from wordwing.data.dataset import Dataset
from wordwing.evaluation.evaluate import EvaluationConfig
from wordwing.execution.environments import flight_seed
from wordwing.execution.execution import Execution
from wordwing.execution.runner import fly
from wordwing.interface import Domain, Observation
from wordwing.lab.autopilot import AutopilotConfig
from wordwing.lab.flight import LabFlightConfig
from wordwing.lab.vehicle import LabConfig, LabVehicle
from wordwing.lab.wind import WindConfig
from wordwing.learning.evaluator import FlightMetrics
from wordwing.policies.learned import LearnedPolicy
from wordwing.sim.simulator import Simulator
from wordwing.world.paths import path_length

CALM = replace(LabConfig(), flight=LabFlightConfig(wind=WindConfig(standard_deviation=0.0)))

BRAKING = AutopilotConfig(max_acceleration=1.4, max_jerk=5.0)
"""Its stopping distance equals that in `sim` to a centimetre up to 0.5 m/s, and is 4 cm shorter from full speed; the
lab's own is 7 and 10 cm longer."""

PLACES: dict[str, tuple[LabConfig | None, Domain]] = {
    "sim": (None, "sim"),
    "lab with the images of sim": (LabConfig(), "sim"),
    "lab": (LabConfig(), "lab"),
    "lab without wind": (CALM, "lab"),
    "lab without wind, delays and noise of poses": (
        replace(CALM, pose_latency=0.0, image_latency=0.0, position_noise=0.0, attitude_noise=0.0),
        "lab",
    ),
    "lab whose drone brakes as in sim": (replace(LabConfig(), flight=LabFlightConfig(autopilot=BRAKING)), "lab"),
}
"""Configuration of the lab, and domain of the images."""


class Disguised(LabVehicle):
    """The lab's drone with the images of `sim`."""

    def observe(self) -> Observation:
        """The lab's pose with a `sim` image from that pose, because images in `sim` have no latency."""
        seen = super().observe()
        taken = self._pose_at(self._flight.time - self.config.pose_latency)
        if not hasattr(self, "_painter"):
            self._painter = Simulator(1)
            self._painter.reset([self._layout], taken)
        image = self._painter.renderer.first_person(self._painter.camera.pose(taken))
        return replace(seen, image=image)


def main(
    policy: Annotated[str, tyro.conf.Positional],
    data: Annotated[Path, tyro.conf.Positional],
    /,
    segments: int = 2,
    limit: int = 130,
    places: tuple[str, ...] = tuple(PLACES),
) -> None:
    """Fly dev instructions in each place and print a line.

    Args:
        policy: Name or folder.
        data: A dataset.
        segments: Segments of the instructions.
        limit: How many instructions.
        places: Names of environments.
    """
    dataset = Dataset(data)
    settings = EvaluationConfig(dataset, "dev", (segments,), limit=limit)
    for place in places:
        flights = flown(LearnedPolicy.from_pretrained(policy, PLACES[place][1]), settings, place)
        marks = FlightMetrics.of(flights)
        line = {
            "policy": policy,
            "corpus": dataset.name,
            "segments": segments,
            "where": place,
            "n": len(flights),
            "SR, %": round(100 * float(marks.success), 1),
            "EMD, m": round(float(marks.emd.mean()), 3),
            "flown, m": round(float(np.mean([path_length(flight.path.astype(np.float64)) for flight in flights])), 2),
            "decisions": round(float(np.mean([flight.end for flight in flights])), 1),
        }
        print(json.dumps(line), flush=True)


def flown(policy: LearnedPolicy, settings: EvaluationConfig, place: str) -> list[Execution]:
    """Fly each instruction once."""
    dataset, (config, domain) = settings.dataset, PLACES[place]
    instructions = settings.instructions()
    tasks = [dataset.task(entry) for entry in instructions]
    if config is None:
        return fly(policy, Simulator(len(tasks)), tasks, max_steps=dataset.steps)
    vehicle = Disguised if domain == "sim" else LabVehicle
    flights = []
    for task, entry in zip(tasks, instructions, strict=True):
        seed = flight_seed(settings.seed, entry.id)
        with vehicle(task.layout, task.start_xy, task.start_yaw, seed, config) as drone:
            flights += fly(policy, drone, [task], max_steps=dataset.steps)
    return flights


if __name__ == "__main__":
    tyro.cli(main)
