"""Layouts whose landmarks have labels in place of names: from above, and each landmark as the drone sees it.

As in the paper, names would tell people what to call things, or which of them matter.
"""

import math
import string
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from PIL import Image, ImageDraw

from wordwing.camera import Camera, CameraConfig
from wordwing.frames import Pose
from wordwing.interface import FLIGHT_HEIGHT
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import SimScene
from wordwing.viz.drawing import INK, MAP_EXTENT, PAPER, font, map_pixels, webp
from wordwing.viz.overhead import WHITE, overheads
from wordwing.world.fences import FENCES
from wordwing.world.layout import MAX_LANDMARKS, Layout, Placement

SIZE = 640
"""Edge of the animation, pixels."""

FINE = 2
"""It is drawn this much larger and shrunk, which makes lines smooth."""

BORDER = 14
"""Width of the coloured borders, pixels."""

BADGE = 13
"""Radius of the labels' discs, pixels."""

COLUMNS, TILE = 5, (150, 105)
"""Images in a row of the legend, and the size of one, pixels."""

NEARBY, TOP = 1.5, 0.19
"""From how far objects are shown, metres; from farther those that would reach higher above the camera, a metre away,
than this."""


NUMBERS = tuple(str(number) for number in range(1, MAX_LANDMARKS + 1))
LETTERS = tuple(string.ascii_letters[:MAX_LANDMARKS].swapcase())
"""Labels where numbers are something else's: capitals first."""


@dataclass(frozen=True)
class Background:
    """Where flights of one layout are drawn."""

    ground: Image.Image
    """[SIZE · FINE]² the layout from above."""
    badges: Image.Image
    """[SIZE · FINE]² RGBA: borders and labels, which lie over it and are never dimmed."""


def numbered(layout: Layout) -> tuple[Placement, ...]:
    """The landmarks in the order of their labels: from the top of the image down, from left to right.

    The order in the layout's file might tell which of them matters.
    """
    return tuple(sorted(layout.landmarks, key=lambda entry: (-round(entry.x, 1), -entry.y, entry.elevation)))


def draw_background(layout: Layout, labels: Sequence[str] = NUMBERS) -> Background:
    """Draw what all flights in a layout share."""
    fine = FINE * SIZE
    ground = Image.fromarray(overheads([layout], SIZE)[0]).resize((fine, fine), Image.Resampling.BICUBIC)
    badges = Image.new("RGBA", (fine, fine), (0, 0, 0, 0))
    draw = ImageDraw.Draw(badges)
    _borders(draw, fine)
    for label, (x, y) in zip(labels, badge_places(layout), strict=False):
        _badge(draw, FINE * x, FINE * y, FINE * BADGE, label)
    return Background(ground, badges)


def legend(layout: Layout, labels: Sequence[str] = NUMBERS) -> Image.Image:
    """The labelled landmarks as the drone's camera sees each, alone, from 1.5 m; tall ones from farther."""
    tiles = portraits(layout)
    gap = 6
    rows = math.ceil(len(tiles) / COLUMNS)
    width, height = TILE
    sheet = Image.new("RGB", (COLUMNS * (width + gap) + gap, max(rows, 1) * (height + gap) + gap), PAPER)
    draw = ImageDraw.Draw(sheet, "RGBA")
    for index, (label, tile) in enumerate(zip(labels, tiles, strict=False)):
        x, y = gap + index % COLUMNS * (width + gap), gap + index // COLUMNS * (height + gap)
        sheet.paste(tile.resize(TILE, Image.Resampling.LANCZOS), (x, y))
        _badge(draw, x + BADGE + 3, y + BADGE + 3, BADGE, label)
    return sheet


@lru_cache(maxsize=1)  # for sheets with other labels
def portraits(layout: Layout) -> list[Image.Image]:
    """Each landmark where it stands, alone, seen from the side of the arena's centre; in the order of their labels.

    The camera is the drone's with twice the pixels, of which the middle is kept.
    """
    entries = numbered(layout)
    if not entries:
        return []
    camera = Camera(CameraConfig(width=256, height=144))
    # On the floor also what stands on furniture, which would float without it.
    alone = [Layout((Placement(entry.name, entry.x, entry.y, entry.yaw),)) for entry in entries]
    yaw = torch.tensor([math.atan2(entry.y, entry.x) for entry in entries])  # outwards
    place = torch.tensor([[entry.x, entry.y] for entry in entries])
    away = torch.tensor([max(NEARBY, (entry.kind.height - FLIGHT_HEIGHT) / TOP) for entry in entries])
    eye = place - away[:, None] * torch.stack([yaw.cos(), yaw.sin()], -1)
    renderer = Renderer(SimScene.of(alone), camera, RenderConfig(shadows=True, samples=2))
    images = renderer.first_person(camera.pose(Pose.level(eye, yaw, FLIGHT_HEIGHT))).numpy()
    return [Image.fromarray(image).crop((48, 4, 208, 116)) for image in images]


def badge_places(layout: Layout) -> list[tuple[float, float]]:
    """Centres of the labels' discs, pixels: each beside its landmark, as little as can be over others."""
    entries = numbered(layout)
    scale = SIZE / MAP_EXTENT
    discs = [(*map_pixels(np.array([entry.x, entry.y]), SIZE), scale * entry.kind.footprint) for entry in entries]
    found: list[tuple[float, float]] = []
    for own, (x, y, radius) in enumerate(discs):
        reach = 0.7 * radius + BADGE
        angles = [math.pi / 2 + turn * math.pi / 4 for turn in (0, 4, 1, -1, 2, -2, 3, -3)]  # below, above, …
        places = [(x + reach * math.cos(angle), y + reach * math.sin(angle)) for angle in angles]
        others = [disc for place, disc in enumerate(discs) if place != own]
        found.append(min(places, key=lambda place: _crowding(place, others, found)))
    return found


def _crowding(
    place: tuple[float, float], discs: list[tuple[float, float, float]], badges: list[tuple[float, float]]
) -> float:
    """How many pixels a badge would cover of other landmarks and, which is worse, of other badges and borders."""
    edge = max(BORDER + BADGE - min(*place, SIZE - place[0], SIZE - place[1]), 0)
    covered = sum(max(radius + BADGE - math.dist(place, (x, y)), 0) for x, y, radius in discs)
    return covered + 10 * (edge + sum(max(2 * BADGE - math.dist(place, other), 0) for other in badges))


def still(image: Image.Image) -> bytes:
    """An image as a small file."""
    return webp(image, quality=88, method=4)


def _borders(draw: ImageDraw.ImageDraw, size: int) -> None:
    """The fences' colours along the image's edges: the guidelines speak of them."""
    width = FINE * BORDER
    corners = [(0, 0), (size, 0), (size, size), (0, size)]  # clockwise from the top left, as the fences are
    inner = [(width, width), (size - width, width), (size - width, size - width), (width, size - width)]
    for side, fence in enumerate(FENCES):
        following = (side + 1) % 4
        colour = tuple(round(255 * channel) for channel in fence.rgb)
        draw.polygon([corners[side], corners[following], inner[following], inner[side]], fill=(*colour, 255))
    draw.rectangle((0, 0, size - 1, size - 1), outline=(*INK, 255), width=FINE)
    draw.rectangle((width, width, size - 1 - width, size - 1 - width), outline=(*INK, 255), width=FINE)


def _badge(draw: ImageDraw.ImageDraw, x: float, y: float, radius: int, label: str) -> None:
    box = (x - radius, y - radius, x + radius, y + radius)
    draw.ellipse(box, (*WHITE, 255), (*INK, 255), max(radius // 8, 1))
    draw.text((x, y), label, (*INK, 255), font(round(1.15 * radius)), anchor="mm")
