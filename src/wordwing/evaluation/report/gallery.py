"""The gallery of a report: a few instructions, chosen by a fixed rule, and how every system flew them.

Everything is made from lines of episodes.jsonl alone. Camera pictures in films are taken again at the poses that were
flown.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from wordwing.camera import Camera
from wordwing.data.schema import Segment
from wordwing.evaluation.episodes import Episode
from wordwing.evaluation.measures import Measures, measure
from wordwing.evaluation.report.summary import Origin, Score, learned, ordered, title
from wordwing.evaluation.report.tables import slug
from wordwing.execution.environments import flight_seed
from wordwing.execution.execution import Execution
from wordwing.execution.metrics import SUCCESS_DISTANCE
from wordwing.files import replacing
from wordwing.frames import Pose
from wordwing.interface import Domain
from wordwing.lab.camera import LabCamera
from wordwing.sim.render import Renderer
from wordwing.sim.scene import PackedLayouts, Scene
from wordwing.viz.animation import MAP_SIZE, flight_frames, write_video
from wordwing.viz.drawing import FLOWN, GOLD, INK, MAP_EXTENT, REDDISH_PURPLE, drone_outline, map_pixels
from wordwing.viz.overhead import FINE, WHITE, Stroke, draw_map, overheads
from wordwing.world.layout import Layout

PICTURE_SIZE = 340
"""Edge of a picture, pixels."""

FILMS = 12
"""How many are made unless told otherwise."""

PREFERRED = "pvn2-sureal"
"""Whose flights the choice goes by, if it has flown."""

Place = tuple[int, int]
"""Of a flight in a gallery: which exhibit, and which of its flights."""

Kind = Literal["success", "middle", "failure"]

RULE = (
    "Instructions are chosen by a fixed rule, not by eye. For each number of segments there is one that {reference} "
    f"flew to within {SUCCESS_DISTANCE / 2:.3f} m of the goal and one that it missed by more than "
    f"{2 * SUCCESS_DISTANCE:.2f} m, each drawn at random with a fixed seed (any success or failure where none is so "
    "clear), and the one with its median distance from the goal."
)
"""In words, for the reader."""


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
class Flown:
    """A system's flight of an instruction, to be shown."""

    episode: Episode
    measures: Measures
    picture: bytes
    """WebP."""
    film: str | None = None
    """Name of its file beside the page, if there is one: "films/….mp4"."""


@dataclass(frozen=True)
class Exhibit:
    """An instruction and all flights of it."""

    choice: Choice
    instruction: str | None
    """None where the sentence may not be passed on."""
    flights: tuple[Flown, ...]


def choose(scores: Iterable[Score], origins: Sequence[Origin], seed: int = 0) -> list[Choice]:
    """Choose instructions to show, by `RULE`, origin by origin; those of two segments first.

    Where no flight is as clear a success or failure as the rule has it, any success or failure may be drawn.

    Args:
        scores: Of all systems; their order does not matter.
        origins: Those to choose from, in the order in which they are shown.
        seed: Of what is drawn.
    """
    flown: dict[Origin, dict[int, dict[str, dict[str, float]]]] = {origin: {} for origin in origins}
    for score in scores:
        if score.origin in flown:
            of_system = flown[score.origin].setdefault(score.segments, {}).setdefault(score.system, {})
            of_system[score.id] = score.measures.distance
    choices = []
    for origin, by_segments in flown.items():
        for segments, by_system in sorted(by_segments.items(), reverse=True):
            reference = reference_of(by_system)
            shared = set.intersection(*(set(part) for part in by_system.values())) or set(by_system[reference])
            distances = {name: by_system[reference][name] for name in sorted(shared)}
            for kind, name in _draw(distances, np.random.default_rng([seed, segments])):
                choices.append(Choice(origin, name, segments, kind, reference))
    return choices


def reference_of(by_system: Mapping[str, Mapping[str, float]]) -> str:
    """Whose flights the choice goes by: PVN2-SuReAL's, else the best learned policy's, else AVERAGE's, else another's.

    Args:
        by_system: Distances from the goal, metres, of each system's flights.
    """
    known = ordered(by_system)
    best = sorted(filter(learned, known), key=lambda name: fmean(by_system[name].values()))
    return next(name for name in (PREFERRED, *best, "average", *known) if name in known)


def _draw(distances: Mapping[str, float], rng: np.random.Generator) -> list[tuple[Kind, str]]:
    """A success, the middle and a failure, as far as there are such, each another instruction."""
    names = sorted(distances, key=lambda name: (distances[name], name))
    pools: dict[Kind, tuple[list[str], list[str]]] = {
        "success": (
            [name for name in names if distances[name] < SUCCESS_DISTANCE / 2],
            [name for name in names if distances[name] < SUCCESS_DISTANCE],
        ),
        "failure": (
            [name for name in names if distances[name] > 2 * SUCCESS_DISTANCE],
            [name for name in names if distances[name] >= SUCCESS_DISTANCE],
        ),
    }
    middle = names[len(names) // 2]
    drawn: dict[Kind, str] = {"middle": middle}
    for kind, (clear, any_) in pools.items():
        pool = [name for name in clear if name != middle] or [name for name in any_ if name != middle]
        if pool:
            drawn[kind] = pool[int(rng.integers(len(pool)))]
    order: tuple[Kind, ...] = ("success", "middle", "failure")
    return [(kind, drawn[kind]) for kind in order if kind in drawn]


def exhibits(choices: Sequence[Choice], episodes: Iterable[Episode]) -> list[Exhibit]:
    """Find and draw the flights of chosen instructions, systems in the order of tables."""
    found: dict[tuple[Origin, str], dict[str, Episode]] = {(choice.origin, choice.id): {} for choice in choices}
    for episode in episodes:
        key = Origin(episode.corpus, episode.text, episode.split, episode.domain), episode.id
        if key in found:
            found[key][episode.system] = episode
    shown = []
    for choice in choices:
        by_system = found[choice.origin, choice.id]
        flights = [by_system[name] for name in ordered(by_system)]
        [ground] = overheads([flights[0].layout], PICTURE_SIZE)
        flown = tuple(Flown(episode, measure(episode), webp(draw_flight(episode, ground))) for episode in flights)
        shown.append(Exhibit(choice, flights[0].instruction, flown))
    return shown


def draw_flight(episode: Episode, ground: NDArray[np.uint8]) -> Image.Image:
    """A flown path and the demonstration on an overhead view [S, S, 3], with the circle that counts as success.

    A cross is where a policy believed the goal to be at its last decision: far from the circle, it misunderstood; near
    it with the path's end elsewhere, it flew badly.
    """
    x, y, yaw = episode.start
    size, fine = len(ground), FINE * len(ground)
    segment = Segment(episode.instruction or episode.id, (x, y), yaw, episode.gold)
    picture = draw_map(ground, episode.layout, [Stroke(episode.gold, GOLD)], segment, names=round(size / 26))
    picture = picture.resize((fine, fine), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(picture)
    unit = fine / 600
    goal = map_pixels(episode.gold[-1], fine)
    reach = fine * SUCCESS_DISTANCE / MAP_EXTENT
    for colour, width in ((INK, 6 * unit), (WHITE, 3 * unit)):
        draw.ellipse(_around(goal, reach + width / 2), None, colour, round(width))
    points = [(float(u), float(v)) for u, v in map_pixels(episode.path, fine)]
    for colour, width in ((WHITE, 9.5 * unit), (FLOWN, 6 * unit)):
        draw.line(points, colour, round(width), joint="curve")
    draw.ellipse(_around(points[-1], 9 * unit), FLOWN, WHITE, round(2.5 * unit))
    if len(episode.goals):
        _cross(draw, map_pixels(episode.goals[-1, :2], fine), 13 * unit, unit)
    draw.polygon(drone_outline(np.array([x, y]), yaw, fine, scale=1.25), INK, WHITE, round(2.5 * unit))
    return picture.resize((size, size), Image.Resampling.BOX)


def _cross(draw: ImageDraw.ImageDraw, centre: NDArray[np.float64], reach: float, unit: float) -> None:
    x, y = centre
    for colour, width, more in ((WHITE, 8.5 * unit, 2 * unit), (REDDISH_PURPLE, 5 * unit, 0.0)):
        end = reach + more
        for side in (-1, 1):
            draw.line([(x - end, y - side * end), (x + end, y + side * end)], colour, round(width))


def _around(centre: Sequence[float] | NDArray[np.float64], radius: float) -> tuple[float, float, float, float]:
    return centre[0] - radius, centre[1] - radius, centre[0] + radius, centre[1] + radius


def webp(picture: Image.Image) -> bytes:
    """A picture as a small file."""
    out = io.BytesIO()
    picture.save(out, "WEBP", quality=78, method=6)
    return out.getvalue()


def make_films(
    shown: Sequence[Exhibit],
    folder: Path,
    films: int = FILMS,
    progress: Callable[[Sequence[Place]], Iterable[Place]] = iter,
) -> list[Exhibit]:
    """Film flights of a gallery, the reference system's first, into `films` of a folder.

    Args:
        shown: The gallery.
        folder: Where the page will be.
        films: How many to make at most.
        progress: Wraps the flights that are filmed: a progress bar.

    Returns:
        The gallery again, which knows its films.
    """
    made: dict[Place, str] = {}
    for number, (exhibit, flight) in enumerate(progress(_order(shown)[:films]), start=1):
        episode = shown[exhibit].flights[flight].episode
        name = f"films/{number:02d}-{slug(episode.system, episode.domain, episode.id)[:80]}.mp4"
        with replacing(folder / name) as temporary:
            write_video(film_frames(episode), temporary)
        made[exhibit, flight] = name
    return [
        replace(
            entry,
            flights=tuple(replace(flown, film=made.get((i, k))) for k, flown in enumerate(entry.flights)),
        )
        for i, entry in enumerate(shown)
    ]


def _order(shown: Sequence[Exhibit]) -> list[Place]:
    """Flights in the order in which they are filmed: the reference's, then all others, of every origin by turns."""
    turns: Counter[tuple[Origin, bool]] = Counter()
    ranks: dict[Place, tuple[bool, int]] = {}
    for i, entry in enumerate(shown):
        for k, flown in enumerate(entry.flights):
            other = flown.episode.system != entry.choice.reference
            turns[entry.choice.origin, other] += 1
            ranks[i, k] = other, turns[entry.choice.origin, other]
    return sorted(ranks, key=ranks.__getitem__)


def film_frames(episode: Episode) -> Iterator[Image.Image]:
    """Frames of a film of a flight."""
    flight = episode.flight
    images = camera_pictures(flight, episode.domain, flight_seed(episode.seed, episode.id))
    flight = replace(flight, images=(tuple(images),))
    [overhead] = overheads([episode.layout], MAP_SIZE)
    where = "sim" if episode.domain == "sim" else "the lab stand-in; camera pictures taken again"
    yield from flight_frames(flight, overhead, f"{title(episode.system)} in {where}")


def camera_pictures(flight: Execution, domain: Domain, seed: int) -> list[NDArray[np.uint8]]:
    """What the drone saw at each state of a flight, [72, 128, 3] each.

    `sim` draws the same pictures again. The lab's are new: their noise is another, and nothing is blurred by turning,
    for how the drone moved during the exposure is not in a line.
    """
    poses = Pose(torch.from_numpy(flight.positions), torch.from_numpy(flight.quaternions))
    if domain == "sim":
        return _sim_pictures(flight.task.layout, poses)
    camera = LabCamera(flight.task.layout, np.random.default_rng(seed))
    at = [Pose(poses.position[k : k + 1], poses.quaternion[k : k + 1]) for k in range(len(poses.position))]
    return [camera.take(pose, pose).numpy() for pose in at]


def _sim_pictures(layout: Layout, poses: Pose) -> list[NDArray[np.uint8]]:
    """All states at once, each in a world of its own."""
    count = len(poses.position)
    scene = Scene(count, torch.device("cpu"))
    scene.place(PackedLayouts.pack([layout]).take(torch.zeros(count, dtype=torch.long)), torch.arange(count))
    camera = Camera()
    return list(Renderer(scene, camera).first_person(camera.pose(poses)).numpy())
