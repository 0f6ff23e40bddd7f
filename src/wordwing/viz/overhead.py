"""The world from above with paths flown in it: what images of datasets are made of."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from wordwing.data.schema import Segment
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import SimScene
from wordwing.viz.drawing import INK, MAP_EXTENT, PAPER, Colour, drone_outline, font, map_pixels
from wordwing.world.layout import Layout
from wordwing.world.paths import Floats, path_length, points_along

WHITE: Colour = (255, 255, 255)

FINE = 3
"""Lines are drawn this much larger and shrunk, which makes them smooth."""


@dataclass(frozen=True)
class Stroke:
    """A path to draw."""

    path: Floats
    """[P, 2] metres, world frame."""
    colour: Colour
    label: str = ""
    """What stands in the disc at its end."""


def overheads(layouts: Sequence[Layout], size: int) -> NDArray[np.uint8]:
    """Layouts from straight above, x up and y left: [N, size, size, 3]."""
    return Renderer(SimScene.of(layouts), config=RenderConfig(shadows=True)).overhead(size, MAP_EXTENT).numpy()


def draw_map(
    ground: NDArray[np.uint8], layout: Layout, strokes: Sequence[Stroke], start: Segment, names: int
) -> Image.Image:
    """An overhead view with paths, the drone at the start and landmarks' names.

    Args:
        ground: [S, S, 3] the world from above.
        layout: Whose landmarks are named.
        strokes: In the order in which they are flown.
        start: Where the drone stands and looks at first.
        names: Size of the names, pixels.
    """
    size = len(ground)
    fine = FINE * size
    image = Image.fromarray(ground).resize((fine, fine), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(image)
    unit = FINE * (0.4 + 0.6 * size / 820)  # on a smaller map lines are finer, but not as much as the map is smaller
    draw_names(draw, layout, FINE * names, fine)
    for stroke in strokes:
        _line(draw, stroke.path, WHITE, round(12 * unit), fine)
    for stroke in strokes:
        _line(draw, stroke.path, stroke.colour, round(7 * unit), fine)
        if len(strokes) > 1:
            _chevron(draw, stroke.path, unit, fine)
    radius = round((13 if any(stroke.label for stroke in strokes) else 8) * unit)
    places = _apart([map_pixels(stroke.path[-1], fine) for stroke in strokes], 2.1 * radius)
    for stroke, place in zip(strokes, places, strict=True):
        _disc(draw, place, radius, stroke.colour, stroke.label, round(2.5 * unit))
    _drone(draw, start, unit, fine)
    return image.resize((size, size), Image.Resampling.BOX)


def badge(label: str, colour: Colour, size: int) -> Image.Image:
    """A label in a disc of a colour on paper, as at the ends of paths."""
    image = Image.new("RGB", (FINE * size, FINE * size), PAPER)
    centre = FINE * size / 2
    _disc(ImageDraw.Draw(image), (centre, centre), round(centre), colour, label, 0)
    return image.resize((size, size), Image.Resampling.BOX)


def _disc(
    draw: ImageDraw.ImageDraw, place: tuple[float, float], radius: int, colour: Colour, label: str, edge: int
) -> None:
    x, y = place
    draw.ellipse((x - radius, y - radius, x + radius, y + radius), colour, WHITE if edge else None, edge)
    draw.text(place, label, ink_on(colour), font(round(1.3 * radius)), anchor="mm")


def _drone(draw: ImageDraw.ImageDraw, start: Segment, unit: float, size: int) -> None:
    """The drone at the start, where it looks; as large on a small map as on a large one, nearly."""
    centre = map_pixels(np.array(start.start_xy), size)
    scale = 820 * unit / size
    outline = (np.array(drone_outline(np.array(start.start_xy), start.start_yaw, size)) - centre) * scale + centre
    draw.polygon([(float(x), float(y)) for x, y in outline], INK, WHITE, round(3 * unit))


def _line(draw: ImageDraw.ImageDraw, path: Floats, colour: Colour, width: int, size: int) -> None:
    points = [(float(x), float(y)) for x, y in map_pixels(path, size)]
    if len(points) > 1:
        draw.line(points, colour, width, joint="curve")
    for x, y in (points[0], points[-1]):
        draw.ellipse((x - width / 2, y - width / 2, x + width / 2, y + width / 2), colour)


def _chevron(draw: ImageDraw.ImageDraw, path: Floats, unit: float, size: int) -> None:
    """A small arrowhead in the middle of a path: which way it is flown."""
    whole = path_length(path)
    if whole < 0.3:
        return
    tail, tip = map_pixels(points_along(path, np.array([whole / 2 - 0.05, whole / 2 + 0.05])), size)
    ahead = (tip - tail) / max(float(np.hypot(*(tip - tail))), 1e-9) * 9 * unit
    across, middle = np.array([-ahead[1], ahead[0]]), (tip + tail) / 2
    corners = (middle + ahead, middle - ahead + across, middle - 0.5 * ahead, middle - ahead - across)
    draw.polygon([(float(x), float(y)) for x, y in corners], WHITE, INK, round(unit))


def _apart(places: Sequence[NDArray[np.float64]], distance: float) -> list[tuple[float, float]]:
    """Pixels moved as little as needed so that no two are nearer than a distance."""
    found: list[tuple[float, float]] = []
    ring = [(0.0, 0.0)] + [
        (reach * math.cos(angle), reach * math.sin(angle))
        for reach in np.arange(0.25, 4, 0.25) * distance
        for angle in np.linspace(0, 2 * math.pi, 24, endpoint=False)
    ]
    for x, y in places:
        free = ((x + dx, y + dy) for dx, dy in ring)
        clear = (p for p in free if all(math.dist(p, other) >= distance for other in found))
        found.append(next(clear, (float(x), float(y))))
    return found


def draw_names(draw: ImageDraw.ImageDraw, layout: Layout, text: int, size: int) -> None:
    """Each landmark's name below it, or above it, or nowhere where that would hide another name.

    Args:
        draw: Over an overhead view.
        layout: Whose landmarks are named.
        text: Size of the names, pixels.
        size: Edge of the view, pixels.
    """
    taken: list[tuple[float, float, float, float]] = []
    for entry in layout.landmarks:
        half = 0.55 * font(text).getlength(entry.name)
        for side, anchor in ((-1, "ma"), (1, "md")):
            x, y = map_pixels(np.array([entry.x + 0.75 * side * entry.kind.footprint, entry.y]), size)
            place = float(np.clip(x, half, size - half)), float(np.clip(y, 1.5 * text, size - 1.5 * text))
            box = draw.textbbox(place, entry.name, font(text), anchor=anchor)
            if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
                draw.text(
                    place, entry.name, WHITE, font(text), anchor=anchor, stroke_width=round(text / 7), stroke_fill=INK
                )
                taken.append(box)
                break


def ink_on(colour: Colour) -> Colour:
    """Ink or white, whichever is easier to read on a colour."""
    return INK if _luminance(colour) > 0.3 else WHITE


def _luminance(colour: Colour) -> float:
    """As WCAG has it, 0 to 1."""
    channels = [(c / 255 / 12.92) if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]


def readable(colour: Colour) -> Colour:
    """A colour dark enough to write with on paper: contrast at least 4.5."""
    shade = 1.0
    while (_luminance(PAPER) + 0.05) / (_luminance(_dimmed(colour, shade)) + 0.05) < 4.5:
        shade -= 0.02
    return _dimmed(colour, shade)


def _dimmed(colour: Colour, shade: float) -> Colour:
    red, green, blue = (round(c * shade) for c in colour)
    return red, green, blue
