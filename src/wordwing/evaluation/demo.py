"""One flight for people to watch: sample, fly, film, and say how it went."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from wordwing.baselines import Average, Oracle, Stop
from wordwing.evaluation.animation import MAP_SIZE, filmstrip, flight_frames, write_video
from wordwing.evaluation.drawing import MAP_EXTENT
from wordwing.evaluation.metrics import SUCCESS_DISTANCE, emd, final_distance
from wordwing.evaluation.rollout import Flight, fly_tasks, start_poses
from wordwing.files import replacing
from wordwing.interface import Policy
from wordwing.sim.render import RenderConfig
from wordwing.sim.simulator import Simulator
from wordwing.world.catalogue import Corpus
from wordwing.world.layout import Layout
from wordwing.world.tasks import sample_task_in, sample_tasks

BASELINES: dict[str, type[Policy]] = {"oracle": Oracle, "average": Average, "stop": Stop}
TITLES = {"oracle": "ORACLE", "average": "AVERAGE", "stop": "STOP"}
HABITS = {
    "oracle": "follows the demonstration; it does not read the text",
    "average": "flies straight on; it does not read the text",
    "stop": "stays where it is; it does not read the text",
}


def film_flight(
    instruction: str,
    layout_file: Path | None,
    corpus: Corpus,
    seed: int,
    policy_name: str,
    vehicle: Literal["sim", "lab"],
    out: Path,
) -> None:
    """Fly once and write the film, a still of it and the layout into a folder."""
    rng = np.random.default_rng(seed)
    if layout_file:
        task = sample_task_in(Layout.load(layout_file), corpus, rng)
    else:
        [task] = sample_tasks(corpus, 1, rng)
    task = replace(task, instruction=instruction)
    policy = BASELINES[policy_name]()
    viewer = Simulator(1, render=RenderConfig(shadows=True))
    if vehicle == "sim":
        [flight] = fly_tasks(policy, viewer, [task], keep_images=True)
    else:
        from wordwing.flight.lab import LabVehicle
        from wordwing.flight.pilot import fly_vehicle

        with LabVehicle(task.layout, task.start_xy, task.start_yaw, seed=seed) as drone:
            flight = fly_vehicle(policy, drone, task, keep_images=True)
    title = f"{TITLES[policy_name]} in {vehicle}: {HABITS[policy_name]}"
    write_films(flight, viewer, title, out)
    print(f'"{instruction}"')
    print(f"{TITLES[policy_name]} {HABITS[policy_name]}")
    print(summary(flight, policy_name))
    print(f"film: {out / 'flight.mp4'}")


def write_films(flight: Flight, viewer: Simulator, title: str, out: Path) -> None:
    """`flight.mp4`, `filmstrip.png` and `layout.json` of a flight that kept its images: all of them or none."""
    viewer.reset([flight.task.layout], start_poses([flight.task]))
    overhead = viewer.overhead(MAP_SIZE, MAP_EXTENT)[0].numpy()
    frames = list(flight_frames(flight, overhead, title))
    with (
        replacing(out / "flight.mp4") as film,
        replacing(out / "filmstrip.png") as still,
        replacing(out / "layout.json") as layout,
    ):
        write_video(frames, film)
        filmstrip(frames).save(still)
        layout.write_text(flight.task.layout.to_json(), "utf-8")


def summary(flight: Flight, policy_name: str) -> str:
    """One line about how a flight went."""
    distance = final_distance(flight.path, flight.task.gold_path)
    verdict = "within" if distance < SUCCESS_DISTANCE else "not within"
    inside = flight.seconds_inside_landmarks
    through = f", {inside:.1f} s of it through landmarks" if inside else ""
    return (
        f"{TITLES[policy_name]} came to rest {distance:.2f} m from the end of the path, {verdict} "
        f"{SUCCESS_DISTANCE} m (EMD {emd(flight.path, flight.task.gold_path):.2f} m){through}"
    )
