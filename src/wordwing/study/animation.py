"""What raters watch: a flight from above (paper: Mechanical Turk …).

As in the paper the world is drawn in its `sim` look wherever the flight was flown, and objects have numbers instead of
names. The demonstration is not shown. The same flight gives the same bytes.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from PIL import Image, ImageDraw

from wordwing.execution.execution import Execution
from wordwing.viz.animation import draw_flown, headings, lit, write_video
from wordwing.viz.labelled import FINE, SIZE, Background, still

DIMMED = 125
"""How bright what is not in view is drawn, of 255."""


def frames(flight: Execution, background: Background) -> Iterator[Image.Image]:
    """One image for each state of a flight: the view cone lit, the rest dimmed, the path so far.

    Args:
        flight: Its camera images are not needed.
        background: Of its layout.
    """
    for index, yaw in enumerate(headings(flight)):
        image = lit(background.ground, flight.path[index], yaw, DIMMED)
        image.paste(background.badges, (0, 0), background.badges)
        draw_flown(ImageDraw.Draw(image), flight, index, yaw, FINE * SIZE, width=5 * FINE, edge=2 * FINE, scale=1.25)
        yield image.reduce(FINE)


def animate(flight: Execution, background: Background) -> tuple[bytes, bytes]:
    """A flight as an MP4, at its own pace, and its last frame as a WebP."""
    drawn = list(frames(flight, background))
    with tempfile.TemporaryDirectory() as folder:
        write_video(drawn, Path(folder) / "video.mp4")
        return (Path(folder) / "video.mp4").read_bytes(), still(drawn[-1])
