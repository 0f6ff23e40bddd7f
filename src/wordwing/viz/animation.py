"""Videos of flights: the drone from above, what it sees, what it does, the words it was given."""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from wordwing.camera import Camera
from wordwing.devices import one_thread
from wordwing.execution.execution import Execution
from wordwing.frames import Pose
from wordwing.interface import CONTROL_PERIOD, MAX_FORWARD, MAX_YAW_RATE
from wordwing.viz.drawing import FLOWN, GOLD, GREY, INK, LIGHT, PAPER, drone_outline, font, map_pixels
from wordwing.viz.overhead import draw_names

MAP_SIZE = 600
"""Edge of the overhead view, pixels."""

FRAME_RATE = 1 / Fraction(CONTROL_PERIOD).limit_denominator(100)
HELD_FRAMES = 5
"""Frames a second, and how many the end is shown for."""


def flight_frames(flight: Execution, overhead: NDArray[np.uint8], title: str) -> Iterator[Image.Image]:
    """One image for each state of a flight that kept its images.

    Args:
        flight: What to show.
        overhead: [600, 600, 3] the world from above, 5 m wide.
        title: Who flies, in a few words.
    """
    yaws = headings(flight)
    for index in range(len(flight.positions)):
        frame = Image.new("RGB", (1180, 690), PAPER)
        draw = ImageDraw.Draw(frame)
        draw.text((20, 8), title, INK, font(22))
        frame.paste(_map(flight, overhead, index, yaws[index]), (20, 60))
        _legend(draw, (20, 668), demonstrated=len(flight.task.gold_path) > 0)
        frame.paste(Image.fromarray(flight.images[0][index]).resize((512, 288), Image.Resampling.NEAREST), (648, 60))
        draw.text((648, 41), "camera, 128 x 72 pixels", GREY, font(15))
        _words(draw, flight.task.instruction, (648, 366))
        _setpoint(draw, flight, index, (648, 520))
        yield frame


def headings(flight: Execution) -> list[float]:
    """Where the drone looks at each state, radians, world frame."""
    return Pose(torch.from_numpy(flight.positions), torch.from_numpy(flight.quaternions)).yaw.tolist()


def _map(flight: Execution, overhead: NDArray[np.uint8], index: int, yaw: float) -> Image.Image:
    """The overhead view with the view cone lit, the demonstration, the path so far and the drone."""
    image = lit(Image.fromarray(overhead), flight.path[index], yaw)
    draw = ImageDraw.Draw(image)
    draw_names(draw, flight.task.layout, 17, MAP_SIZE)
    gold = [tuple(point) for point in map_pixels(flight.task.gold_path, MAP_SIZE)]
    if len(gold) > 1:
        draw.line(gold, GOLD, 4, joint="curve")
    if gold:
        x, y = gold[-1]
        draw.ellipse((x - 7, y - 7, x + 7, y + 7), GOLD, "white", 2)
    draw_flown(draw, flight, index, yaw, MAP_SIZE)
    return image


def lit(image: Image.Image, xy: NDArray[np.floating], yaw: float, shade: int = 150) -> Image.Image:
    """An overhead image, dimmed to `shade` of 255 but for what a camera at a place and heading has in view."""
    fov = math.radians(Camera().config.horizontal_fov_deg)
    edges = [yaw - fov / 2 + fov * step / 12 for step in range(13)]
    corners = [xy, *(xy + 8 * np.array([math.cos(edge), math.sin(edge)]) for edge in edges)]
    light = Image.new("L", image.size, shade)
    ImageDraw.Draw(light).polygon([tuple(map_pixels(corner, image.width)) for corner in corners], fill=255)
    return Image.composite(image, Image.new("RGB", image.size, (0, 0, 0)), light)


def draw_flown(
    draw: ImageDraw.ImageDraw,
    flight: Execution,
    index: int,
    yaw: float,
    size: int,
    width: int = 4,
    edge: int = 2,
    scale: float = 1.0,
) -> None:
    """The path so far and the drone on an overhead image of `size` pixels, in lines and at a scale as told."""
    flown = [tuple(point) for point in map_pixels(flight.path[: index + 1], size)]
    if len(flown) > 1:
        draw.line(flown, "white", width + 2 * edge - 1, joint="curve")
        draw.line(flown, FLOWN, width, joint="curve")
    draw.polygon(drone_outline(flight.path[index], yaw, size, scale), FLOWN, "white", edge)


def _legend(draw: ImageDraw.ImageDraw, corner: tuple[int, int], *, demonstrated: bool) -> None:
    x, y = corner
    for label, colour in (("flown", FLOWN), *[("demonstration", GOLD)] * demonstrated):
        draw.line((x, y + 9, x + 24, y + 9), colour, 5)
        draw.text((x + 30, y), label, INK, font(15))
        x += 110
    draw.text((x + 40, y), "bright: in view of the camera", GREY, font(15))


def _words(draw: ImageDraw.ImageDraw, instruction: str, corner: tuple[int, int]) -> None:
    lines = wrapped(instruction, width=512, size=18)
    if len(lines) > 5:
        lines = [*lines[:4], wrapped(lines[4], width=490, size=18)[0] + " …"]
    draw.text(corner, "\n".join(lines), INK, font(18), spacing=7)


def wrapped(text: str, width: int, size: int) -> list[str]:
    """A text in lines of at most `width` pixels; a word that is longer is cut."""
    lines = [""]
    for word in text.split():
        while font(size).getlength(word) > width:
            keep = max(
                1, bisect_right(range(1, len(word)), width, key=lambda n: math.ceil(font(size).getlength(word[:n])))
            )
            lines += [word[:keep], ""]
            word = word[keep:]
        longer = f"{lines[-1]} {word}".strip()
        if font(size).getlength(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return [line for line in lines if line]


def _setpoint(draw: ImageDraw.ImageDraw, flight: Execution, index: int, corner: tuple[int, int]) -> None:
    """Bars for the setpoint that was chosen at this state, and the clock."""
    x, y = corner
    forward, yaw_rate = (0.0, 0.0) if index >= len(flight.setpoints) else flight.setpoints[index]
    rows = (
        ("forward", f"{forward:.2f} m/s", 0.0, forward / MAX_FORWARD),
        ("turn", f"{yaw_rate:+z.2f} rad/s", 0.5, 0.5 - yaw_rate / MAX_YAW_RATE / 2),
    )
    for label, value, base, tip in rows:
        draw.text((x, y), label, INK, font(16))
        draw.rectangle((x + 80, y + 2, x + 380, y + 18), LIGHT)
        left, right = sorted((x + 80 + 300 * base, x + 80 + 300 * tip))
        draw.rectangle((left, y + 2, right, y + 18), FLOWN)
        draw.text((x + 392, y), value, INK, font(16))
        y += 32
    draw.text((x, y + 6), clock(flight, index), INK, font(19))


def clock(flight: Execution, index: int) -> str:
    """The time at a state, and whether the flight is still under way."""
    ended = {"stop": "STOP", "steps": "out of steps"}[flight.ended_by[0]]
    return f"{index * CONTROL_PERIOD:.1f} s   {ended if index >= flight.end else 'flying'}"


def still_states(flight: Execution) -> list[int]:
    """Those that a still image of a flight shows: four, even from first to last."""
    return [round(k * (len(flight.positions) - 1) / 3) for k in range(4)]


def filmstrip(frames: Sequence[Image.Image]) -> Image.Image:
    """A still image of a video: a few of its frames, row by row in two columns."""
    width, height = (side * 3 // 4 for side in frames[0].size)
    strip = Image.new("RGB", (2 * width, math.ceil(len(frames) / 2) * height), PAPER)
    for k, frame in enumerate(frames):
        strip.paste(frame.resize((width, height)), (k % 2 * width, k // 2 * height))
    return strip


def write_video(frames: Iterable[Image.Image], path: Path, rate: Fraction = FRAME_RATE) -> None:
    """Write an H.264 video, at a flight's own pace, that browsers and phones play; the last frame stays a while."""
    import av  # here, because nothing else needs it

    frames = iter(frames)
    first = next(frames)
    with av.open(str(path), "w") as video, ThreadPoolExecutor(1) as encoder, one_thread():
        # With x264's macroblock tree one video in about five had other bytes, of the same frames.
        options = {"crf": "20", "x264-params": "mbtree=0"}
        stream = video.add_stream("libx264", rate=rate, options=options)
        stream.width, stream.height = (side // 2 * 2 for side in first.size)
        stream.pix_fmt = "yuv420p"
        stream.thread_count = 1  # with more the bytes differ from run to run

        def encode(image: Image.Image) -> av.VideoFrame:
            frame = av.VideoFrame.from_image(image.crop((0, 0, stream.width, stream.height)))
            video.mux(stream.encode(frame))
            return frame

        encoded = encoder.submit(encode, first)
        for image in frames:  # each is drawn while the one before is encoded
            encoded.result()
            encoded = encoder.submit(encode, image)
        frame = encoded.result()
        for _frame in range(HELD_FRAMES):
            frame.pts = None  # the next one in line
            video.mux(stream.encode(frame))
        video.mux(stream.encode(None))
