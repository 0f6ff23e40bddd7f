"""Diagrams for docs/flight.md: wiring and frames.

Usage: python scripts/flight_diagrams.py [FOLDER]     (docs by default)
"""

import io
import math
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Polygon, Wedge
from PIL import Image

from wordwing.camera import Camera
from wordwing.files import replacing
from wordwing.flight.arena import Arena
from wordwing.frames import Pose, world_to_ned
from wordwing.interface import FLIGHT_HEIGHT
from wordwing.viz.drawing import FLOWN, GREY, INK, LIGHT, PAPER, VERMILLION
from wordwing.world.fences import FENCES

EXAMPLE = Arena(north=4.3, east=3.6, heading_deg=35.0, floor_down=0.15)
"""The arena in the diagram."""


def colour(rgb: tuple[float, ...]) -> tuple[float, ...]:
    """A colour from 0 to 255 for matplotlib."""
    return tuple(channel / 255 for channel in rgb)


def save(figure: Figure, path: Path) -> None:
    """Write a figure as a small WebP."""
    data = io.BytesIO()
    figure.savefig(data, dpi=110, facecolor=colour(PAPER))
    plt.close(figure)
    with replacing(path) as temporary:
        Image.open(data).convert("RGB").save(temporary, "WEBP", quality=85, method=6)


def canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """A blank figure with axes in hundredths of an inch, y up."""
    figure = plt.figure(figsize=(width, height))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, 100 * width)
    axes.set_ylim(0, 100 * height)
    axes.axis("off")
    return figure, axes


def box(axes: Axes, x: float, y: float, w: float, h: float, title: str, text: str, fill: str = "white") -> None:
    """A part of the system."""
    edge = colour(INK)
    axes.add_patch(FancyBboxPatch((x, y), w, h, boxstyle="round,pad=0,rounding_size=8", fc=fill, ec=edge, lw=1.3))
    axes.text(x + w / 2, y + h - 20, title, ha="center", va="center", fontsize=11, weight="bold", color=edge)
    axes.text(x + w / 2, y + (h - 30) / 2, text, ha="center", va="center", fontsize=9, color=edge, linespacing=1.4)


def arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    text: str,
    at: tuple[float, float],
    ink: tuple[int, int, int] = INK,
    style: str = "-|>",
    line: str = "-",
) -> None:
    """An arrow from one part to another, with its label."""
    patch = FancyArrowPatch(
        start, end, arrowstyle=style, mutation_scale=14, lw=1.6, ls=line, color=colour(ink), shrinkA=0, shrinkB=0
    )
    axes.add_patch(patch)
    axes.text(*at, text, ha="center", va="center", fontsize=8.5, color=colour(ink), linespacing=1.3)


def wiring() -> Figure:
    """Pilot, guardian, autopilot, motion capture and camera."""
    figure, axes = canvas(10.2, 5.35)
    box(axes, 20, 380, 220, 130, "motion capture", "Vicon, OptiTrack, …\nsees the drone\n(JSON, or motioncapture)")
    box(
        axes,
        20,
        190,
        220,
        120,
        "wordwing flight mocap",
        "to FRD, 30 to 50 Hz\nold and broken poses dropped\na copy to the guardian",
    )
    box(
        axes,
        20,
        30,
        220,
        110,
        "safety pilot",
        "mode switch and kill switch\nin hand, eyes on the drone",
        fill="#fde8dc",
    )
    box(axes, 400, 30, 230, 480, "drone", "", fill="#eef3f7")
    box(axes, 420, 330, 190, 130, "camera", "84° or wider,\npitched down 15°")
    box(axes, 420, 120, 190, 150, "autopilot", "PX4 or ArduPilot\nits own failsafes:\nland")
    axes.text(
        515,
        75,
        "landmarks below 0.4 m:\nnothing avoids them",
        ha="center",
        va="center",
        fontsize=8.5,
        color=colour(GREY),
    )
    box(axes, 770, 330, 230, 130, "pilot process", "wordwing fly\nimages and poses in,\ndecisions out, 3 a second")
    box(
        axes,
        770,
        110,
        230,
        160,
        "guardian process",
        "fences, limits, failsafes\n20 setpoints a second\noutlives the pilot process\nevents.jsonl, flight.tlog",
    )
    arrow(axes, (130, 380), (130, 310), "", (0, 0))
    arrow(axes, (240, 235), (420, 235), "ODOMETRY\na link of its own", (322, 262))
    arrow(axes, (240, 85), (420, 150), "RC: always wins", (352, 92), VERMILLION)
    arrow(axes, (610, 395), (770, 395), "video\n(PyAV)", (690, 425))
    arrow(axes, (770, 225), (610, 225), "MAVLink\nsetpoints, land", (690, 252), FLOWN)
    arrow(axes, (610, 165), (770, 165), "pose, mode,\nbattery", (690, 140), FLOWN)
    arrow(axes, (850, 330), (850, 270), "decisions", (818, 300))
    arrow(axes, (930, 270), (930, 330), "poses", (957, 300))
    axes.text(885, 490, "companion computer, on board or off", ha="center", fontsize=8.5, color=colour(GREY))
    return figure


def seen_from_above(axes: Axes) -> None:
    """The arena in the autopilot's local frame: east to the right, north up."""

    def place(x: float, y: float) -> tuple[float, float]:
        pose = EXAMPLE.frame @ Pose.level(
            torch.tensor([x, y], dtype=torch.float64), torch.zeros((), dtype=torch.float64)
        )
        north, east, _down = world_to_ned(pose.position).tolist()
        return east, north

    def ray(start: tuple[float, float], end: tuple[float, float], text: str, ink: tuple[int, int, int]) -> None:
        axes.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "lw": 2, "color": colour(ink)})
        dx, dy = end[0] - start[0], end[1] - start[1]
        length = math.hypot(dx, dy)
        axes.text(
            end[0] + 0.3 * dx / length, end[1] + 0.25 * dy / length, text, ha="center", va="center", fontsize=10,
            color=colour(ink), weight="bold",
        )  # fmt: skip

    corners = [place(*fence.start) for fence in FENCES]
    axes.add_patch(Polygon(corners, closed=True, fc="#e7efe3", ec="none"))
    for fence in FENCES:
        (x0, y0), (x1, y1) = place(*fence.start), place(*fence.end)
        axes.plot(
            [x0, x1], [y0, y1], color=fence.rgb if fence.colour != "white" else "white", lw=6, solid_capstyle="butt"
        )
        if fence.colour == "white":
            axes.plot([x0, x1], [y0, y1], color=colour(GREY), lw=7.5, solid_capstyle="butt", zorder=1.4)
        mx, my = place(*(1.16 * value for value in fence.middle))
        axes.text(mx, my, fence.colour, ha="center", va="center", fontsize=9, color=colour(INK))
    ray((0, 0), (0, 1.6), "north", VERMILLION)
    ray((0, 0), (1.6, 0), "east", VERMILLION)
    axes.text(
        -0.1,
        -0.25,
        "local origin\n(NED, down into the page)",
        ha="center",
        va="top",
        fontsize=8.5,
        color=colour(VERMILLION),
    )
    centre = place(0, 0)
    ray(centre, place(1.4, 0), "x", FLOWN)
    ray(centre, place(0, 1.4), "y", FLOWN)
    axes.text(centre[0] + 0.15, centre[1] - 0.2, "world: z up", fontsize=9, color=colour(FLOWN), va="top")
    axes.plot([0, 0, centre[0]], [0, centre[1], centre[1]], ls=":", color=colour(GREY), lw=1.2)
    axes.text(-0.12, 0.62 * centre[1], "north", rotation=90, ha="right", va="center", fontsize=9, color=colour(GREY))
    axes.text(0.45 * centre[0], centre[1] + 0.1, "east", ha="center", va="bottom", fontsize=9, color=colour(GREY))
    axes.plot([centre[0], centre[0]], [centre[1], centre[1] + 1.25], ls=":", color=colour(GREY), lw=1.2)
    axes.add_patch(Wedge(centre, 1.0, 90 - EXAMPLE.heading_deg, 90, width=0.02, fc=colour(INK), ec="none"))
    axes.text(centre[0] + 0.05, centre[1] + 1.3, "heading_deg", fontsize=9, ha="center", color=colour(INK))
    drone = place(-1.2, -1.1)
    ray(drone, place(-1.2 + 0.8 * math.cos(1.0), -1.1 + 0.8 * math.sin(1.0)), "forward", INK)
    ray(drone, place(-1.2 - 0.7 * math.sin(1.0), -1.1 + 0.7 * math.cos(1.0)), "left", INK)
    axes.plot(*drone, "o", ms=9, color=colour(INK))
    axes.set_xlim(-1.6, 7.2)
    axes.set_ylim(-1.1, 7.9)
    axes.set_aspect("equal")
    axes.set_title("from above: arena.json", fontsize=11, loc="left")
    axes.axis("off")


def seen_from_the_side(axes: Axes) -> None:
    """Heights, and the camera's field of view."""
    axes.plot([-1.2, 3.4], [0, 0], color=colour(INK), lw=2)
    axes.text(3.4, -0.06, "floor: world z = 0", ha="right", va="top", fontsize=9, color=colour(INK))
    origin = EXAMPLE.floor_down
    axes.plot([-1.2, -0.35], [origin, origin], ls=":", color=colour(VERMILLION), lw=1.3)
    axes.text(-1.2, origin + 0.03, "local origin", fontsize=8.5, color=colour(VERMILLION))
    axes.annotate(
        "", (-0.5, 0), (-0.5, origin), arrowprops={"arrowstyle": "<->", "color": colour(VERMILLION), "lw": 1.2}
    )
    axes.text(-0.45, origin / 2, "floor_down", fontsize=8.5, va="center", color=colour(VERMILLION))
    camera = Camera()
    half, pitch = camera.vertical_fov_deg / 2, camera.config.pitch_down_deg
    axes.add_patch(Wedge((0.55, FLIGHT_HEIGHT), 2.6, -pitch - half, -pitch + half, fc=colour(LIGHT), ec="none"))
    for angle, line in ((-pitch, "--"), (-pitch - half, "-"), (-pitch + half, "-")):
        reach = min(2.6, FLIGHT_HEIGHT / math.sin(math.radians(-angle)) if angle < 0 else 2.6)
        end = 0.55 + reach * math.cos(math.radians(angle)), FLIGHT_HEIGHT + reach * math.sin(math.radians(angle))
        axes.plot([0.55, end[0]], [FLIGHT_HEIGHT, end[1]], ls=line, color=colour(GREY), lw=1.2)
    axes.axhspan(-0.35, 0, color=colour(PAPER), zorder=2)
    axes.plot([-1.2, 3.4], [0, 0], color=colour(INK), lw=2, zorder=3)
    axes.text(3.4, -0.06, "floor: world z = 0", ha="right", va="top", fontsize=9, color=colour(INK), zorder=3)
    axes.plot([0.35, 0.75], [FLIGHT_HEIGHT] * 2, color=colour(INK), lw=5)
    axes.annotate(
        "",
        (1.15, FLIGHT_HEIGHT),
        (0.75, FLIGHT_HEIGHT),
        arrowprops={"arrowstyle": "-|>", "color": colour(INK), "lw": 2},
    )
    axes.annotate(
        "",
        (0.55, FLIGHT_HEIGHT + 0.38),
        (0.55, FLIGHT_HEIGHT),
        arrowprops={"arrowstyle": "-|>", "color": colour(INK), "lw": 2},
    )
    axes.text(1.2, FLIGHT_HEIGHT + 0.03, "forward", fontsize=9, va="bottom", color=colour(INK))
    axes.text(0.6, FLIGHT_HEIGHT + 0.36, "up (ours); MAVLink's z is down", fontsize=9, color=colour(INK))
    axes.annotate(
        "", (0.2, 0), (0.2, FLIGHT_HEIGHT), arrowprops={"arrowstyle": "<->", "color": colour(FLOWN), "lw": 1.2}
    )
    axes.text(0.16, FLIGHT_HEIGHT / 2, f"{FLIGHT_HEIGHT} m", ha="right", va="center", fontsize=9, color=colour(FLOWN))
    axes.text(
        2.05, 0.22, f"{pitch:.0f}° down, {camera.vertical_fov_deg:.0f}° high\n(84° wide)", fontsize=9, color=colour(INK)
    )
    axes.add_patch(Polygon([(2.5, 0), (2.5, 0.18), (2.7, 0.18), (2.7, 0)], fc=colour(VERMILLION), ec="none", zorder=4))
    axes.set_xlim(-1.3, 3.5)
    axes.set_ylim(-0.25, 1.35)
    axes.set_aspect("equal")
    axes.set_title("from the side: heights and the camera", fontsize=11, loc="left")
    axes.axis("off")


def frames() -> Figure:
    """Both views."""
    figure, (above, side) = plt.subplots(1, 2, figsize=(11.4, 5.2), width_ratios=(1.1, 1))
    seen_from_above(above)
    seen_from_the_side(side)
    figure.tight_layout()
    return figure


def main() -> None:
    """Draw all diagrams."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    save(wiring(), folder / "flight-wiring.webp")
    save(frames(), folder / "flight-frames.webp")


if __name__ == "__main__":
    main()
