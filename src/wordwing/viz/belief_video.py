"""Videos of what a policy thinks: every step from its image to its setpoint.

They follow the paper's figure of intermediate representations. All maps lie as the overhead view does, x up and y left,
whatever frame the policy keeps them in.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from wordwing.execution.execution import Execution
from wordwing.execution.verdict import DONE, MISSED
from wordwing.frames import Pose
from wordwing.interface import CONTROL_PERIOD, MAX_FORWARD, MAX_YAW_RATE
from wordwing.language.text_checks import WordIssue, misspellings
from wordwing.language.tokenizer import tokenize
from wordwing.model.policy import Beliefs
from wordwing.viz.animation import MAP_SIZE, clock, draw_flown, headings, lit, still_states, wrapped
from wordwing.viz.belief_maps import Bytes, FeatureColours, WorldView, cells_of, glowing, ramp, shown_cells
from wordwing.viz.drawing import (
    BLUISH_GREEN,
    FLOWN,
    GOLD,
    GREY,
    INK,
    LIGHT,
    PAPER,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
    Colour,
    drone_outline,
    font,
)
from wordwing.viz.overhead import draw_names, readable

PASS, STOP, UNSEEN = SKY_BLUE, YELLOW, BLUISH_GREEN
"""The trajectory, the goal, and what of them lies where the drone has not looked."""

SEEN, UNOBSERVED, OUTSIDE, EDGE = (156, 76, 122), (190, 190, 186), (232, 232, 229), (40, 40, 40)
"""Cells that were looked at (a reddish purple so dark that its tone alone tells it from the greys), cells of maps
without features, outside the arena, and at its edge."""


UNKNOWN, SLIP = VERMILLION, GOLD
"""Lines under words that a policy does not know, and under those that it reads as others."""

LEFT_TO_RIGHT = "\u200e"
"""A mark without width; a line that begins with it runs from the left, whatever script its first word is in."""


BAR = 26
"""What a bar for p_oob and the gap before it take beside a panel, pixels."""


class Box(NamedTuple):
    """A rectangle of a frame, pixels."""

    left: int
    top: int
    width: int
    height: int

    @property
    def corner(self) -> tuple[int, int]:
        """The upper left one."""
        return self.left, self.top

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.width, self.height


SIZE = 1600, 900
TOP = 152
CAMERA, FEATURES, WORLD = Box(20, TOP, 320, 180), Box(20, TOP + 208, 320, 180), Box(20, TOP + 416, 320, 320)
SEMANTIC_MAP, GROUNDING, MASKS = Box(364, TOP, 226, 226), Box(364, TOP + 255, 226, 226), Box(364, TOP + 510, 226, 226)
TRAJECTORY, GOAL = Box(614, TOP, 442, 442), Box(1110, TOP, 442, 442)
TRACKS, LEGEND = Box(614, TOP + 510, 700, 226), Box(1350, TOP + 510, 230, 226)
"""Where the panels lie in a frame, pixels."""

HEADINGS: dict[Box, Sequence[tuple[str, str, str]]] = {
    CAMERA: [("image,", "I", "")],
    FEATURES: [("image features,", "F", "C")],
    WORLD: [("from above (not an input)", "", "")],
    SEMANTIC_MAP: [("semantic map,", "S", "W")],
    GROUNDING: [("grounding map,", "R", "W")],
    MASKS: [("masks,", "M", "W"), (" and", "B", "W")],
    TRAJECTORY: [("where to pass,", "d", "p")],
    GOAL: [("where to stop,", "d", "g")],
}

STRIP_COLUMNS = CAMERA, FEATURES, SEMANTIC_MAP, GROUNDING, MASKS, TRAJECTORY, GOAL
STRIP_SIDE, STRIP_GAP = 226, 20
"""Which panels a still image shows, how large at most, and what is between them, pixels."""

VERDICT = 25
"""Size of what is said about a flight, pixels."""

SIGNS = {DONE: BLUISH_GREEN, MISSED: VERMILLION}
"""How lines about a clause begin, and their colours."""

SHARPNESS = 2
"""Paths and cells are drawn this much larger and shrunk, which makes them smooth."""

NAMES = 13
"""Size of landmarks' names in the view from above, pixels."""

DIMMED = 0.6
"""Brightness of the overhead view under the distributions."""


def belief_frames(
    flight: Execution,
    overhead: Bytes,
    title: str,
    marked: Sequence[WordIssue] = (),
    stop_threshold: float = 0.5,
    states: Sequence[int] | None = None,
) -> Iterator[Image.Image]:
    """One image for each state of a flight that kept images and beliefs; the last belief stays until it is at rest.

    Args:
        flight: What to show.
        overhead: [S, S, 3] the world from above, 5 m wide.
        title: Who flies where, in a few words.
        marked: Words of the instruction that the policy does not know, or reads as others.
        stop_threshold: κ: above it the policy stops.
        states: Which ones; by default all.
    """
    painter = Painter(flight, overhead)
    canvas = _canvas(flight.task.instruction, title, marked, painter)
    from_above = Image.fromarray(overhead).resize((SHARPNESS * WORLD.width, SHARPNESS * WORLD.height))
    yaws = headings(flight)
    for index in range(len(yaws)) if states is None else states:
        yaw = yaws[index]
        belief = flight.beliefs[0][min(index, len(flight.beliefs[0]) - 1)]
        frame = canvas.copy()
        draw = ImageDraw.Draw(frame)
        draw.text((SIZE[0] - 20, 8), clock(flight, index), INK, font(24), anchor="ra")
        for box, pixels, how in (
            (CAMERA, flight.images[0][index], Image.Resampling.BICUBIC),
            (FEATURES, painter.features(belief), Image.Resampling.NEAREST),
        ):
            frame.paste(Image.fromarray(pixels).resize(box.size, how), box.corner)
        for box, image in (
            (WORLD, lit(from_above, flight.path[index], yaw)),
            (SEMANTIC_MAP, Image.fromarray(painter.semantic_map(belief))),
            (GROUNDING, Image.fromarray(painter.grounding(belief))),
            (MASKS, Image.fromarray(painter.masks(belief))),
            *zip((TRAJECTORY, GOAL), map(Image.fromarray, painter.plan(belief)), strict=True),
        ):
            width, scale = (3, 1.3) if box.width > 300 else (2, 2.0)
            over = ImageDraw.Draw(image)
            if box is WORLD:
                draw_names(over, flight.task.layout, SHARPNESS * NAMES, image.width)
            draw_flown(over, flight, index, yaw, image.width, SHARPNESS * width, SHARPNESS, scale)
            frame.paste(image.reduce(SHARPNESS), box.corner)
        for box, share in zip((TRAJECTORY, GOAL), belief.visitation.unobserved[0].tolist(), strict=True):
            draw_unobserved(draw, box, share)
        draw_tracks(draw, TRACKS, flight, index, stop_threshold)
        yield frame


def belief_strip(
    flight: Execution,
    frames: Sequence[Image.Image],
    overhead: Bytes,
    title: str,
    marked: Sequence[WordIssue] = (),
    verdict: Sequence[str] = (),
) -> Image.Image:
    """A still image of a video, like the paper's figure: a row for each of its frames, those at `still_states`.

    Beside them is the whole flight from above, among named landmarks, and below it what is said about it.
    """
    across = STRIP_GAP + len(STRIP_COLUMNS) * (STRIP_SIDE + STRIP_GAP) + STRIP_GAP
    height = TOP + len(frames) * (STRIP_SIDE + STRIP_GAP)
    strip = Image.new("RGB", (across + BAR + MAP_SIZE + STRIP_GAP, height + 80), PAPER)
    draw = _words(strip, flight.task.instruction, title, marked)
    lefts = [STRIP_GAP + number * (STRIP_SIDE + STRIP_GAP) for number in range(len(STRIP_COLUMNS))]
    lefts[-1] += STRIP_GAP  # for the bar beside the one before
    for box, left in zip(STRIP_COLUMNS, lefts, strict=True):
        _head(draw, (left, TOP - 8), box)
    for number, (index, frame) in enumerate(zip(still_states(flight), frames, strict=True)):
        top = TOP + number * (STRIP_SIDE + STRIP_GAP)
        for box, left in zip(STRIP_COLUMNS, lefts, strict=True):
            beside = BAR if box in (TRAJECTORY, GOAL) else 0
            panel = frame.crop((*box.corner, box.left + box.width + beside, box.top + box.height))
            panel.thumbnail((STRIP_SIDE + beside, STRIP_SIDE))
            strip.paste(panel, (left, top))
        stop = float(flight.beliefs[0][min(index, len(flight.beliefs[0]) - 1)].control.stop_probability[0])
        forward, turn = flight.setpoints[min(index, len(flight.setpoints) - 1)].tolist()
        for left, line, text in (
            (lefts[0], 0, clock(flight, index)),
            (lefts[1], 0, f"forward {forward:.2f} m/s"),
            (lefts[1], 1, f"turn left {turn:+z.2f} rad/s"),
            (lefts[1], 2, f"stop? {stop:.0%}"),
        ):
            draw.text((left, top + 138 + 26 * line), text, INK, font(19))
    _head(draw, (across + BAR, TOP - 8), WORLD)
    strip.paste(whole_flight(flight, overhead), (across + BAR, TOP))
    top = TOP + MAP_SIZE + 24
    for said in verdict:
        ink = next((readable(colour) for sign, colour in SIGNS.items() if said.startswith(sign)), INK)
        for part in wrapped(said, MAP_SIZE, VERDICT):
            draw.text((across + BAR, top), part, ink, font(VERDICT))
            top += 37
    draw_legend(draw, Box(STRIP_GAP, height, 1600, 75), marked, columns=3)
    return strip


def whole_flight(flight: Execution, overhead: Bytes) -> Image.Image:
    """The path from start to rest on the world from above, in full colour, with landmarks' names."""
    size = SHARPNESS * MAP_SIZE
    image = Image.fromarray(overhead).resize((size, size), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(image)
    draw_names(draw, flight.task.layout, SHARPNESS * 19, size)
    yaws = headings(flight)
    draw.polygon(drone_outline(flight.path[0], yaws[0], size, 1.3), INK, "white", 2 * SHARPNESS)
    last = len(yaws) - 1
    draw_flown(draw, flight, last, yaws[last], size, 5 * SHARPNESS, 2 * SHARPNESS, 1.3)
    return image.reduce(SHARPNESS)


class Painter:
    """What colours mean throughout a flight, and where its maps lie in the world."""

    def __init__(self, flight: Execution, overhead: Bytes) -> None:
        start = Pose(torch.from_numpy(flight.positions[0]), torch.from_numpy(flight.quaternions[0]))
        self.large, self.small = (WorldView(start, SHARPNESS * box.width) for box in (TRAJECTORY, SEMANTIC_MAP))
        grey = Image.fromarray(overhead).convert("L").resize((SHARPNESS * TRAJECTORY.width,) * 2)
        dimmed = grey.point(lambda tone: DIMMED * tone)
        self.ground = np.asarray(dimmed.convert("RGB"))
        around = dimmed.filter(ImageFilter.GaussianBlur(0.04 * dimmed.width))
        self.relief = (np.asarray(dimmed, np.float64) - np.asarray(around))[..., None]
        known = [(belief, shown_cells(belief)) for belief in flight.beliefs[0]]
        self.feature_colours = FeatureColours.fit(np.concatenate([cells_of(b.semantic_map)[on] for b, on in known]))
        self.grounding_colours = FeatureColours.fit(np.concatenate([cells_of(b.grounding_map)[on] for b, on in known]))
        peaks = [belief.visitation.cells[0].flatten(1).amax(1) for belief in flight.beliefs[0]]
        self.peaks: list[float] = torch.stack(peaks).amax(0).clamp(min=1e-6).tolist()
        """The greatest probability of a cell in the flight, of trajectory and goal: there their ramps end."""

    def features(self, belief: Beliefs) -> Bytes:
        """F^C [18, 32, 3]."""
        return self.feature_colours(cells_of(belief.image_features))

    def semantic_map(self, belief: Beliefs) -> Bytes:
        """S^W from above, in the colours of F^C."""
        return self._blocks(self.feature_colours(cells_of(belief.semantic_map)), shown_cells(belief), belief)

    def grounding(self, belief: Beliefs) -> Bytes:
        """R^W from above, in colours of its own."""
        return self._blocks(self.grounding_colours(cells_of(belief.grounding_map)), shown_cells(belief), belief)

    def masks(self, belief: Beliefs) -> Bytes:
        """M^W from above and, on it, B^W."""
        colours = np.where(belief.boundary[0, ..., None].numpy(), np.array(EDGE, np.uint8), np.array(SEEN, np.uint8))
        return self._blocks(colours, (belief.observed | belief.boundary)[0].numpy(), belief)

    def plan(self, belief: Beliefs) -> list[Bytes]:
        """d^p and d^g over the dimmed world; a colour is the same probability throughout the flight."""
        shares = self.large.smooth(belief.visitation.cells[0]) / np.reshape(self.peaks, (2, 1, 1))
        return [
            glowing(self.ground, self.relief, amount, colour)
            for amount, colour in zip(np.sqrt(shares), (PASS, STOP), strict=True)
        ]

    def _blocks(self, colours: Bytes, shown: NDArray[np.bool_], belief: Beliefs) -> Bytes:
        """Cells from above in their colours where they are shown, else grey; outside the arena lighter."""
        cells = np.where(shown[..., None], colours, np.array(UNOBSERVED, np.uint8))
        cells = np.where(belief.arena[0, ..., None].numpy(), cells, np.array(OUTSIDE, np.uint8))
        return self.small.blocks(cells, OUTSIDE)


def _words(canvas: Image.Image, instruction: str, title: str, marked: Sequence[WordIssue]) -> ImageDraw.ImageDraw:
    """Write what stands above all panels."""
    draw = ImageDraw.Draw(canvas)
    read = f"; it reads {', '.join(misspellings(marked))}" if misspellings(marked) else ""
    [heading, *rest] = wrapped(f"{title}{read}", canvas.width - 200, 20)
    draw.text((20, 12), f"{heading} …" if rest else heading, GREY, font(20))
    draw_instruction(draw, (20, 42), canvas.width - 40, instruction, marked)
    return draw


def _head(draw: ImageDraw.ImageDraw, corner: tuple[float, float], box: Box) -> None:
    """Write a panel's heading."""
    left, bottom = corner
    for part in HEADINGS[box]:
        left = draw_heading(draw, (left, bottom), *part)


def _canvas(instruction: str, title: str, marked: Sequence[WordIssue], painter: Painter) -> Image.Image:
    """What all frames of a flight share."""
    canvas = Image.new("RGB", SIZE, PAPER)
    draw = _words(canvas, instruction, title, marked)
    for box in HEADINGS:
        _head(draw, (box.left, box.top - 8), box)
    draw_scale(canvas, TRAJECTORY, PASS, painter.peaks[0])
    draw_scale(canvas, GOAL, STOP, painter.peaks[1])
    draw_legend(draw, LEGEND, marked)
    return canvas


def draw_heading(
    draw: ImageDraw.ImageDraw,
    corner: tuple[float, float],
    words: str,
    symbol: str = "",
    raised: str = "",
    size: int = 19,
) -> float:
    """Plain words and the paper's symbol on a baseline that begins at a corner; returns where they end."""
    x, y = corner
    base = f"{words} {symbol}" if symbol else words
    for text, height, up in ((base, size, 0), (raised, size - 4, 7)):
        draw.text((x, y - up), text, INK, font(height), anchor="ls")
        x += font(height).getlength(text)
    return x


def draw_instruction(
    draw: ImageDraw.ImageDraw, corner: tuple[int, int], width: int, instruction: str, marked: Sequence[WordIssue]
) -> None:
    """The words, as large as they fit; those that the policy does not know, or reads as others, are underlined."""
    colours = {mark.word: UNKNOWN if mark.meant is None else SLIP for mark in marked}
    for size, most in ((38, 1), (27, 2), (20, 3), (15, 4)):
        lines = wrapped(instruction, width, size)
        if len(lines) <= most:
            break
    else:
        lines = [*lines[: most - 1], wrapped(lines[most - 1], width - 30, size)[0]]
        draw.text((corner[0] + width, corner[1] + (most - 1) * 1.4 * size), "…", INK, font(size), anchor="ra")
    words, rest, line_colour = iter(instruction.split()), "", None
    for number, line in enumerate(lines):
        x, y = corner[0], corner[1] + 1.4 * number * size
        draw.text((x, y), f"{LEFT_TO_RIGHT}{line}", INK, font(size))
        before = ""
        for piece in line.split():  # a word, or a part of one that is longer than a line
            if not rest:
                rest = next(words)
                line_colour = next((colours[word] for word in tokenize(rest) if word in colours), None)
            rest = rest[len(piece) :]
            begin, end = font(size).getlength(before), font(size).getlength(before + piece)
            if line_colour is not None:
                draw.line((x + begin, y + 1.25 * size, x + end, y + 1.25 * size), line_colour, 3)
            before += f"{piece} "


def draw_scale(canvas: Image.Image, panel: Box, colour: Colour, peak: float) -> None:
    """Which colour is which probability, below a panel; as in it, the ramp goes with the root."""
    bar = Image.fromarray(np.tile(ramp(colour), (12, 1, 1))).resize((panel.width, 12))
    x, y = panel.left, panel.top + panel.height + 6
    canvas.paste(bar, (x, y))
    draw = ImageDraw.Draw(canvas)
    for share, anchor in ((0.0, "la"), (0.5, "ma"), (1.0, "ra")):
        label = f"{100 * peak * share**2:.2g} %" + (" in a cell" if share == 1 else "")
        draw.text((x + share * panel.width, y + 15), label, GREY, font(16), anchor=anchor)


def draw_unobserved(draw: ImageDraw.ImageDraw, panel: Box, share: float) -> None:
    """The green bar beside a distribution: p_oob, the share of it that lies where the drone has not looked."""
    left, bottom = panel.left + panel.width + 6, panel.top + panel.height
    draw.rectangle((left, panel.top, left + 19, bottom - 1), LIGHT)
    if (filled := round(share * panel.height)) > 0:
        draw.rectangle((left, bottom - filled, left + 19, bottom - 1), UNSEEN)
    draw.text((left + 19, panel.top - 8), f"not observed {100 * share:.0f} %", INK, font(17), anchor="rs")


def draw_tracks(draw: ImageDraw.ImageDraw, box: Box, flight: Execution, index: int, stop_threshold: float) -> None:
    """Setpoints as flown, the stop probability and the goal's p_oob, from the start up to now."""
    made = flight.beliefs[0][: index + 1]
    stop = [float(belief.control.stop_probability[0]) for belief in made]
    unseen = [float(belief.visitation.unobserved[0, 1]) for belief in made]
    forward, turn = flight.setpoints[: index + 1].T.tolist()
    rows: Sequence[tuple[tuple[str, str, str], list[float], tuple[float, float], Colour, str]] = (
        (("forward,", "v", ""), forward, (0.0, MAX_FORWARD), FLOWN, "{:.2f} m/s"),
        (("turn left,", "ω", ""), turn, (-MAX_YAW_RATE, MAX_YAW_RATE), FLOWN, "{:+z.2f} rad/s"),
        (("stop?", "p", "STOP"), stop, (0.0, 1.0), VERMILLION, "{:.0%}"),
        (("goal unseen,", "p", "oob"), unseen, (0.0, 1.0), UNSEEN, "{:.0%}"),
    )
    left, width, height = box.left + 175, box.width - 300, 44
    period = width / len(flight.positions)
    for number, (label, values, (low, high), colour, unit) in enumerate(rows):
        top = box.top + number * (height + 8)
        draw_heading(draw, (box.left, top + height / 2 + 6), *label, size=18)
        draw.rectangle((left, top, left + width, top + height), LIGHT)
        base = top + height * high / (high - low)
        for step, value in enumerate(values):
            tip = base - height * value / (high - low)
            ends = sorted((base, tip))
            draw.rectangle((left + step * period, ends[0], left + (step + 1) * period - 1, ends[1]), colour)
        if low < 0:
            draw.line((left, base, left + width, base), GREY)
        if values is stop:
            line = top + height * (1 - stop_threshold)
            for dash in range(left, left + width, 10):
                draw.line((dash, line, dash + 5, line), INK)
        draw.text(
            (left + width + 10, top + height / 2),
            unit.format(values[-1] if values else 0.0),
            INK,
            font(18),
            anchor="lm",
        )
    bottom = box.top + len(rows) * (height + 8) - 4
    seconds = int(len(flight.positions) * CONTROL_PERIOD)
    for second in range(0, seconds + 1, 3 if seconds < 20 else 6):
        x = left + second / CONTROL_PERIOD * period
        draw.text((x, bottom), f"{second} s", GREY, font(16), anchor="ma")


def draw_legend(draw: ImageDraw.ImageDraw, box: Box, marked: Sequence[WordIssue], columns: int = 1) -> None:
    """What the colours are, in columns; those of marked words where there are such."""
    rows: list[tuple[Colour, int, str]] = [
        (FLOWN, 5, "flown so far"),
        (PASS, 14, "where to pass"),
        (STOP, 14, "where to stop"),
        (UNSEEN, 14, "share not observed, p"),
        (SEEN, 14, "observed"),
        (EDGE, 14, "boundary of the arena"),
        (UNOBSERVED, 14, "not observed yet"),
        (OUTSIDE, 14, "outside the map"),
        *[(UNKNOWN, 3, "a word it does not know")] * any(mark.meant is None for mark in marked),
        *[(SLIP, 3, "a slip, read as meant")] * any(mark.meant is not None for mark in marked),
    ]
    deep = math.ceil(len(rows) / columns)
    step = min(25, box.height // deep)
    for number, (colour, height, label) in enumerate(rows):
        x, y = box.left + number // deep * box.width // columns, box.top + step * (number % deep) + 10
        draw.rectangle((x, y - height // 2, x + 22, y + (height - 1) // 2), colour)
        draw_heading(draw, (x + 30, y + 6), label, raised="oob" if colour == UNSEEN else "", size=17)
