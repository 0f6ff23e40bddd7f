"""The gallery of a report: a few instructions, chosen by a fixed rule, and how every system flew them.

Everything is made from lines of episodes.jsonl alone. Camera images in videos are taken again at the poses that were
flown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from wordwing.camera import Camera
from wordwing.data.schema import Segment
from wordwing.evaluation.report.labels import Origin, learned, ordered, slug, title
from wordwing.execution.environments import flight_seed
from wordwing.execution.execution import Execution
from wordwing.execution.metrics import SUCCESS_DISTANCE, Metrics, measure
from wordwing.files import replacing
from wordwing.frames import Pose
from wordwing.interface import Domain
from wordwing.lab.camera import LabCamera
from wordwing.sim.render import Renderer
from wordwing.sim.scene import SimScene
from wordwing.viz.animation import MAP_SIZE, flight_frames, write_video
from wordwing.viz.drawing import FLOWN, GOLD, INK, MAP_EXTENT, REDDISH_PURPLE, drone_outline, map_pixels, webp
from wordwing.viz.overhead import FINE, WHITE, Stroke, draw_map, overheads

IMAGE_SIZE = 340
"""Edge of an image, pixels."""

VIDEOS = 12
"""How many are made by default."""

PREFERRED = "pvn2-sureal"
"""The system by whose flights instructions are chosen, if it has flown."""

Position = tuple[int, int]
"""Where a flight is in a gallery: the number of the example, and of the flight in it."""

Kind = Literal["success", "middle", "failure"]

RULE = (
    "Instructions are chosen by a fixed rule, not by eye. For each number of segments there is one that {reference} "
    f"flew to within {SUCCESS_DISTANCE / 2:.3f} m of the goal and one that it missed by more than "
    f"{2 * SUCCESS_DISTANCE:.2f} m, each drawn at random with a fixed seed (any success or failure where none is so "
    "clear), and the one with its median distance from the goal."
)
"""The rule in words, for the reader."""


@dataclass(frozen=True)
class Choice:
    """An instruction to show."""

    origin: Origin
    id: str
    segments: int
    kind: Kind
    """How the reference system did."""
    reference: str


@dataclass(frozen=True)
class ExampleFlight:
    """A system's flight of an instruction, to be shown."""

    episode: Execution
    metrics: Metrics
    image: bytes
    """WebP."""
    video: str | None = None
    """Name of its file beside the page, if there is one: "videos/….mp4"."""


@dataclass(frozen=True)
class Example:
    """An instruction and all flights of it."""

    choice: Choice
    instruction: str | None
    """None where the sentence may not be passed on."""
    flights: tuple[ExampleFlight, ...]


def choose(flights: pd.DataFrame, origins: Sequence[Origin], seed: int = 0) -> list[Choice]:
    """Choose instructions to show, by `RULE`, origin by origin; those of two segments first.

    Where no flight is as clear a success or failure as the rule has it, any success or failure may be drawn.

    Args:
        flights: Of all systems (`summary.flight_table`); their order does not matter.
        origins: Those to choose from, in the order in which they are shown.
        seed: Of what is drawn.
    """
    by_length = flights.groupby([*Origin._fields, "segments"])
    choices = []
    for origin in origins:
        for segments in sorted((key[-1] for key in by_length.groups if key[:-1] == origin), reverse=True):
            own = by_length.get_group((*origin, segments))
            distances = own.pivot(index="id", columns="system", values="distance")
            reference = reference_of(distances)
            flown_by_all = distances[distances.notna().all(axis=1)]
            found = (distances if flown_by_all.empty else flown_by_all)[reference].dropna()
            drawn = _draw(found, np.random.default_rng([seed, segments]))
            choices += [Choice(origin, name, segments, kind, reference) for kind, name in drawn]
    return choices


def reference_of(distances: pd.DataFrame) -> str:
    """The system to choose by: PVN2-SuReAL, else the best learned policy, else AVERAGE, else any other.

    Args:
        distances: From the goal, metres: a row for each instruction, a column for each system.
    """
    systems = ordered(distances.columns)
    best = distances[list(filter(learned, systems))].mean().sort_values(kind="stable").index
    return next(name for name in (PREFERRED, *best, "average", *systems) if name in systems)


def _draw(distances: pd.Series[float], rng: np.random.Generator) -> list[tuple[Kind, str]]:
    """A success, the middle and a failure, as far as there are such, each another instruction."""
    ranked = distances.sort_index().sort_values(kind="stable")
    drawn: dict[Kind, str] = {"middle": ranked.index[len(ranked) // 2]}
    others = ranked.drop(drawn["middle"])
    pools: dict[Kind, tuple[pd.Series[float], pd.Series[float]]] = {
        "success": (others[others < SUCCESS_DISTANCE / 2], others[others < SUCCESS_DISTANCE]),
        "failure": (others[others > 2 * SUCCESS_DISTANCE], others[others >= SUCCESS_DISTANCE]),
    }
    for kind, (clear, any_) in pools.items():
        pool = any_ if clear.empty else clear
        if len(pool):
            drawn[kind] = pool.index[int(rng.integers(len(pool)))]
    order: tuple[Kind, ...] = ("success", "middle", "failure")
    return [(kind, drawn[kind]) for kind in order if kind in drawn]


def examples(choices: Sequence[Choice], episodes: Iterable[Execution]) -> list[Example]:
    """Find and draw the flights of chosen instructions, systems in the order of tables."""
    found: dict[tuple[Origin, str], dict[str, Execution]] = {(choice.origin, choice.id): {} for choice in choices}
    for episode in episodes:
        flight = episode.provenance
        key = Origin.of(flight), flight.id
        if key in found:
            found[key][flight.system] = episode
    shown = []
    for choice in choices:
        by_system = found[choice.origin, choice.id]
        flights = [by_system[name] for name in ordered(by_system)]
        first = flights[0]
        [ground] = overheads([first.task.layout], IMAGE_SIZE)
        images = (webp(draw_flight(episode, ground), quality=78, method=6) for episode in flights)
        drawn = tuple(map(ExampleFlight, flights, map(measure, flights), images))
        shown.append(Example(choice, None if first.provenance.withheld else first.task.instruction, drawn))
    return shown


def draw_flight(episode: Execution, ground: NDArray[np.uint8]) -> Image.Image:
    """A flown path and the demonstration on an overhead view [S, S, 3], with the circle that counts as success.

    A cross is where a policy believed the goal to be at its last decision: far from the circle, it misunderstood; near
    it with the path's end elsewhere, it flew badly.
    """
    task, gold, goals = episode.task, np.asarray(episode.task.gold_path), episode.believed_goals
    (x, y), yaw = task.start_xy, task.start_yaw
    size, fine = len(ground), FINE * len(ground)
    segment = Segment(task.instruction, (x, y), yaw, gold)
    image = draw_map(ground, task.layout, [Stroke(gold, GOLD)], segment, names=round(size / 26))
    image = image.resize((fine, fine), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(image)
    unit = fine / 600
    goal = map_pixels(gold[-1], fine)
    reach = fine * SUCCESS_DISTANCE / MAP_EXTENT
    for colour, width in ((INK, 6 * unit), (WHITE, 3 * unit)):
        draw.ellipse(_around(goal, reach + width / 2), None, colour, round(width))
    points = [(float(u), float(v)) for u, v in map_pixels(episode.path, fine)]
    for colour, width in ((WHITE, 9.5 * unit), (FLOWN, 6 * unit)):
        draw.line(points, colour, round(width), joint="curve")
    draw.ellipse(_around(points[-1], 9 * unit), FLOWN, WHITE, round(2.5 * unit))
    if len(goals):
        x_goal, y_goal = map_pixels(goals[-1, :2], fine)
        for colour, width, reach in ((WHITE, 8.5 * unit, 15 * unit), (REDDISH_PURPLE, 5 * unit, 13 * unit)):
            for side in (-reach, reach):
                ends = [(x_goal - reach, y_goal - side), (x_goal + reach, y_goal + side)]
                draw.line(ends, colour, round(width))
    draw.polygon(drone_outline(np.array([x, y]), yaw, fine, scale=1.25), INK, WHITE, round(2.5 * unit))
    return image.resize((size, size), Image.Resampling.BOX)


def _around(centre: Sequence[float] | NDArray[np.float64], radius: float) -> tuple[float, float, float, float]:
    return centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius


def make_videos(
    shown: Sequence[Example],
    folder: Path,
    videos: int = VIDEOS,
    progress: Callable[[Sequence[Position]], Iterable[Position]] = iter,
) -> list[Example]:
    """Make videos of a gallery's flights, the reference system's first, in `videos` of a folder.

    Args:
        shown: The gallery.
        folder: Where the page will be.
        videos: How many to make at most.
        progress: Wraps the flights that are drawn: a progress bar.

    Returns:
        The gallery again, with the names of its videos.
    """
    made: dict[Position, str] = {}
    for number, (place, flight) in enumerate(progress(_order(shown)[:videos]), start=1):
        episode = shown[place].flights[flight].episode
        of = episode.provenance
        name = f"videos/{number:02d}-{slug(of.system, of.domain, of.id)[:80]}.mp4"
        with replacing(folder / name) as temporary:
            write_video(video_frames(episode), temporary)
        made[place, flight] = name
    return [
        replace(entry, flights=tuple(replace(own, video=made.get((i, k))) for k, own in enumerate(entry.flights)))
        for i, entry in enumerate(shown)
    ]


def _order(shown: Sequence[Example]) -> list[Position]:
    """Flights in the order in which videos are made: the reference's, then all others, of every origin by turns."""
    rows = [
        (i, k, entry.choice.origin.title, flight.episode.provenance.system != entry.choice.reference)
        for i, entry in enumerate(shown)
        for k, flight in enumerate(entry.flights)
    ]
    flights = pd.DataFrame(rows, columns=["example", "flight", "origin", "other"])
    flights["turn"] = flights.groupby(["origin", "other"]).cumcount()
    ranked = flights.sort_values(["other", "turn"], kind="stable")
    return list(zip(ranked["example"], ranked["flight"], strict=True))


def video_frames(episode: Execution) -> Iterator[Image.Image]:
    """Frames of a video of a flight."""
    of = episode.provenance
    images = camera_images(episode, of.domain, flight_seed(of.seed, of.id))
    [overhead] = overheads([episode.task.layout], MAP_SIZE)
    domain = "sim" if of.domain == "sim" else "the lab stand-in; camera images taken again"
    yield from flight_frames(replace(episode, images=(tuple(images),)), overhead, f"{title(of.system)} in {domain}")


def camera_images(flight: Execution, domain: Domain, seed: int) -> list[NDArray[np.uint8]]:
    """What the drone saw at each state of a flight, [72, 128, 3] each.

    `sim` draws the same images again, all states at once, each in a world of its own. The lab's are new: their noise is
    another, and nothing is blurred by turning, for how the drone moved during the exposure is not in a line.
    """
    layout, count = flight.task.layout, len(flight.positions)
    poses = Pose(torch.from_numpy(flight.positions), torch.from_numpy(flight.quaternions))
    if domain == "sim":
        camera = Camera()
        return list(Renderer(SimScene.of([layout] * count), camera).first_person(camera.pose(poses)).numpy())
    lab_camera = LabCamera(layout, np.random.default_rng(seed))
    at = [Pose(poses.position[k : k + 1], poses.quaternion[k : k + 1]) for k in range(count)]
    return [lab_camera.take(pose, pose).numpy() for pose in at]
