"""A path that somebody is to describe: numbered segments from above, painted on the ground in the camera's images."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from wordwing.camera import Camera, CameraConfig
from wordwing.frames import Pose
from wordwing.interface import FLIGHT_HEIGHT
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import SimScene
from wordwing.viz.drawing import INK, Colour, drone_outline, font, map_pixels
from wordwing.viz.overhead import WHITE, ink_on
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, path_length, points_along

COLOURS: tuple[Colour, ...] = (
    (0, 90, 200),
    (235, 120, 0),
    (190, 30, 160),
    (0, 200, 215),
    (245, 225, 40),
    (60, 60, 60),
)
"""Of the segments, in order; different from each other and from the ground, which is green."""

VIEW = CameraConfig(width=264, height=148)
"""The drone's own camera, with more pixels."""

FINE = 2
"""Lines are drawn this much larger and shrunk, which makes them smooth."""


def views(
    layout: Layout,
    poses: Sequence[tuple[Floats, float]],
    paths: Sequence[Floats | None] = (),
    config: CameraConfig = VIEW,
    colours: Sequence[Colour] = COLOURS,
) -> list[Image.Image]:
    """What the drone sees at poses (xy, yaw), with the way on painted on the ground in the colour of its segment.

    Args:
        layout: Where it is.
        poses: Position, metres, and heading, radians, world frame.
        paths: For each pose the segment that begins there, [P, 2], or None.
        config: The camera.
        colours: Of the segments that begin at the poses.
    """
    camera = Camera(config)
    xy = torch.tensor(np.array([place for place, _ in poses])).float()
    yaw = torch.tensor([yaw for _, yaw in poses]).float()
    cameras = camera.pose(Pose.level(xy, yaw, FLIGHT_HEIGHT))
    renderer = Renderer(SimScene.of([layout] * len(poses)), camera, RenderConfig(shadows=True))
    images = [Image.fromarray(image) for image in renderer.first_person(cameras).numpy()]
    distances = renderer.probe(cameras)[0].numpy() if paths else np.zeros(0, np.float32)
    for number, path in enumerate(paths):
        if path is not None:
            one = Pose(cameras.position[number], cameras.quaternion[number])
            _paint(images[number], distances[number], path, camera, one, colours[number])
    return images


def _paint(
    image: Image.Image, distance: NDArray[np.float32], path: Floats, camera: Camera, pose: Pose, colour: Colour
) -> None:
    """Draw a path on the ground of a first-person image where nothing hides it."""
    along = points_along(path, np.arange(0.0, path_length(path), 0.02))
    points = torch.tensor(np.c_[along, np.zeros(len(along))]).float()
    pixels, in_front = camera.project(points, pose)
    inside = (in_front & camera.contains(pixels)).numpy()
    far = torch.linalg.vector_norm(points - pose.position, dim=-1).numpy()
    column, row = np.clip(pixels.numpy(), 0, (image.width - 1, image.height - 1)).astype(int).T
    shown = inside & (distance[row, column] > far - 0.06)
    fine = Image.new("RGBA", (FINE * image.width, FINE * image.height))
    draw = ImageDraw.Draw(fine)
    for rim, paint in ((3.2, WHITE), (0.0, colour)):
        for (u, v), seen, metres in zip(FINE * pixels.numpy(), shown, far, strict=True):
            if seen:
                radius = FINE * (0.022 * camera.focal / metres + rim / 2 * 0.6)
                draw.ellipse((u - radius, v - 0.5 * radius, u + radius, v + 0.5 * radius), paint)
    layer = fine.resize(image.size, Image.Resampling.BOX)
    image.paste(layer, (0, 0), layer)


def draw_arrow(draw: ImageDraw.ImageDraw, path: Floats, colour: Colour, size: int) -> None:
    """A segment: a line, chevrons on it, and an arrowhead at its end."""
    points = _pixels(path, size)
    for width, paint in ((10, WHITE), (6, colour)):
        draw.line(points, paint, FINE * width, joint="curve")
    for at in np.arange(0.3, path_length(path) - 0.25, 0.4):
        _head(draw, points_along(path, np.array([at - 0.03, at + 0.03])), size, FINE * 6, WHITE, INK)
    back = max(path_length(path) - 0.12, 0.0)
    _head(draw, points_along(path, np.array([back, path_length(path)])), size, FINE * 13, colour, WHITE)


def _head(draw: ImageDraw.ImageDraw, ends: Floats, size: int, reach: float, colour: Colour, edge: Colour) -> None:
    tail, tip = map_pixels(ends, size)
    ahead = (tip - tail) / max(float(np.hypot(*(tip - tail))), 1e-9) * reach
    across = np.array([-ahead[1], ahead[0]]) * 0.8
    corners = (tip, tip - 1.6 * ahead + across, tip - 1.1 * ahead, tip - 1.6 * ahead - across)
    draw.polygon([(float(x), float(y)) for x, y in corners], colour, edge, FINE)


def draw_number(
    draw: ImageDraw.ImageDraw,
    path: Floats,
    label: str,
    colour: Colour,
    size: int,
    taken: Sequence[tuple[float, float]] = (),
) -> None:
    """A segment's number in its middle, or near it where something else is there, at pixels that are `taken`."""
    shares = np.array([0.45, 0.6, 0.3, 0.75, 0.15]) if taken else np.array([0.45])
    places = _pixels(points_along(path, shares * path_length(path)), size)
    free = (place for place in places if all(math.dist(place, other) > 27 * FINE for other in taken))
    x, y = next(free, places[0])
    radius = FINE * 13
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), colour, WHITE, FINE * 2)
    draw.text((x, y), label, ink_on(colour), font(FINE * 17), anchor="mm")


def draw_drone(draw: ImageDraw.ImageDraw, xy: tuple[float, float], yaw: float, size: int) -> None:
    """The drone where it stands and looks."""
    outline = drone_outline(np.array(xy), yaw, size, scale=1.15)
    draw.polygon([(float(x), float(y)) for x, y in outline], INK, WHITE, FINE * 2)


def _pixels(xy: Floats, size: int) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in map_pixels(xy, size)]
