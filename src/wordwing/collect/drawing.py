"""What people see: the field from above, and the camera's view along a path. No landmark has a name there.

A writer's map has the numbered path, with letters on the landmarks; a follower's has no path, and numbers on the
landmarks, so that "go to C" leads nowhere.
"""

import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from wordwing.camera import CameraConfig
from wordwing.collect.database import RATE
from wordwing.data.schema import Segment
from wordwing.viz.animation import write_video
from wordwing.viz.labelled import FINE, LETTERS, NUMBERS, SIZE, badge_places, draw_background, legend, still
from wordwing.viz.routes import COLOURS, draw_arrow, draw_number, views
from wordwing.world.layout import Layout
from wordwing.world.paths import path_length, points_along

VIEW = CameraConfig(width=320, height=180)
"""The drone's own camera, with more pixels."""

SPEED, TURN = 0.5, 1.0
"""How fast the drone flies and turns in a video, m/s and rad/s."""

AHEAD = 0.15
"""How far ahead on the path the drone looks, metres."""

Drawn = dict[tuple[str, str], bytes]
"""Images and videos, by the id of what they show and their kind."""


@dataclass(frozen=True, eq=False)  # arrays have no hash
class Route:
    """A path to write about, or to practise on."""

    layout: Layout
    segments: tuple[Segment, ...]
    writing: tuple[str, ...]
    """Ids of what a writer is shown: of the whole path, then of each segment."""
    following: tuple[str, ...]
    """The same for a follower."""


def video_poses(segment: Segment) -> list[tuple[float, float, float]]:
    """Where the drone is in each frame of a segment's video: x, y and yaw, metres and radians, world frame."""
    whole = path_length(segment.path)
    count = max(math.ceil(whole * RATE / SPEED), 1)
    points = points_along(segment.path, np.linspace(0.0, whole, count + 1))
    targets = points_along(segment.path, np.linspace(0.0, whole, count + 1) + AHEAD)
    yaw = segment.start_yaw
    poses = [(float(points[0, 0]), float(points[0, 1]), yaw)]
    for place, (point, target) in enumerate(zip(points, targets, strict=True)):
        offset = target - point
        # Near the end there is nothing ahead any more: the drone looks the way it has been flying.
        wanted = math.atan2(offset[1], offset[0]) if np.hypot(*offset) > AHEAD / 2 else yaw
        while place == 0 and abs(math.remainder(wanted - yaw, math.tau)) > TURN / RATE:
            yaw += math.copysign(TURN / RATE, math.remainder(wanted - yaw, math.tau))
            poses.append((float(point[0]), float(point[1]), yaw))
        yaw += math.remainder(wanted - yaw, math.tau)
        poses.append((float(point[0]), float(point[1]), yaw))
    return [(round(x, 3), round(y, 3), round(math.remainder(yaw, math.tau), 4)) for x, y, yaw in poses]


def draw_route(route: Route) -> Drawn:
    """All that writers and followers of a path see."""
    layout, segments = route.layout, route.segments
    drawn: Drawn = {}
    for ids, labels, shown in ((route.writing, LETTERS, segments), (route.following, NUMBERS, ())):
        drawn[ids[0], "map"] = still(draw_layout(layout, labels, shown))
        drawn[ids[0], "legend"] = still(legend(layout, labels))
    starts = [(np.array(segment.start_xy), segment.start_yaw) for segment in segments]
    for name, view in zip(route.following[1:], views(layout, starts, config=VIEW), strict=True):
        drawn[name, "view"] = still(view)
    for name, segment, colour in zip(route.writing[1:], segments, colours(len(segments)), strict=True):
        poses = [(np.array([x, y]), yaw) for x, y, yaw in video_poses(segment)]
        seen = views(layout, poses, [segment.path] * len(poses), VIEW, [colour] * len(poses))
        drawn[name, "video"], drawn[name, "still"] = encode(seen), still(seen[0])
    return drawn


def draw_layout(layout: Layout, labels: Sequence[str], segments: Sequence[Segment]) -> Image.Image:
    """A layout from above with labelled landmarks, and the numbered segments of a path over it."""
    background = draw_background(layout, labels)
    image, size = background.ground, FINE * SIZE
    draw = ImageDraw.Draw(image)
    numbered = list(zip(range(1, len(segments) + 1), segments, colours(len(segments)), strict=True))
    for _number, segment, colour in numbered:
        draw_arrow(draw, segment.path, colour, size)
    image.paste(background.badges, (0, 0), background.badges)
    taken = [(FINE * x, FINE * y) for x, y in badge_places(layout)]
    for number, segment, colour in numbered:
        draw_number(draw, segment.path, str(number), colour, size, taken)
    return image.reduce(FINE)


def colours(count: int) -> list[tuple[int, int, int]]:
    """Of so many segments, in order."""
    return [COLOURS[number % len(COLOURS)] for number in range(count)]


def encode(frames: Sequence[Image.Image]) -> bytes:
    """An MP4."""
    with tempfile.TemporaryDirectory() as folder:
        write_video(frames, Path(folder) / "video.mp4", Fraction(RATE))
        return (Path(folder) / "video.mp4").read_bytes()
