"""What stands around the maps of a belief video: headings, words, scales, a legend, curves over time."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from wordwing.execution.execution import Execution
from wordwing.interface import CONTROL_PERIOD, MAX_FORWARD, MAX_YAW_RATE
from wordwing.language.text_checks import WordIssue
from wordwing.language.tokenizer import tokenize
from wordwing.viz.animation import wrapped
from wordwing.viz.belief_maps import ramp
from wordwing.viz.drawing import (
    BLUISH_GREEN,
    FLOWN,
    GOLD,
    GREY,
    INK,
    LIGHT,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
    Colour,
    font,
)

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
    draw.text((left + 19, panel.top - 8), f"out of sight {100 * share:.0f} %", INK, font(17), anchor="rs")


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
        (UNSEEN, 14, "share out of sight, p"),
        (SEEN, 14, "looked at"),
        (EDGE, 14, "edge of the arena"),
        (UNOBSERVED, 14, "not seen yet"),
        (OUTSIDE, 14, "not on its map"),
        *[(UNKNOWN, 3, "a word it does not know")] * any(mark.meant is None for mark in marked),
        *[(SLIP, 3, "a slip, read as meant")] * any(mark.meant is not None for mark in marked),
    ]
    deep = math.ceil(len(rows) / columns)
    step = min(25, box.height // deep)
    for number, (colour, height, label) in enumerate(rows):
        x, y = box.left + number // deep * box.width // columns, box.top + step * (number % deep) + 10
        draw.rectangle((x, y - height // 2, x + 22, y + (height - 1) // 2), colour)
        draw_heading(draw, (x + 30, y + 6), label, raised="oob" if colour == UNSEEN else "", size=17)
