"""Draw what writers and readers of the corpus `written` see, and make a folder for each of them.

Usage: python scripts/written_sheets.py OUT [--seed N] [--sheets N]

A writer's sheet has the layout from above with the path in numbered segments, what the drone sees between them, and
a picture of each landmark. A reader's sheet has one pose in place of the path, and axes in metres. Landmarks have
letters, not names: both say what they see. The same seed gives the same files, byte for byte, on the same machine.
"""

import argparse
import hashlib
import io
import json
import math
import string
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from wordwing.camera import Camera, CameraConfig
from wordwing.data.schema import Segment
from wordwing.data.segmenting import heading
from wordwing.data.written import PACKED, Profile, read_written
from wordwing.files import replacing
from wordwing.frames import ARENA_HALF, Pose
from wordwing.interface import FLIGHT_HEIGHT
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import SimScene
from wordwing.viz.drawing import INK, MAP_EXTENT, PAPER, font, map_pixels
from wordwing.viz.overhead import WHITE, badge
from wordwing.viz.routes import COLOURS, FINE, VIEW, draw_arrow, draw_drone, draw_number, views
from wordwing.world.layout import Layout, Placement
from wordwing.world.paths import Floats
from written_plan import HOME, Assignment, Plan, Reading, make_plan, profiles

SIZE = 1280, 884
MAP, MARGIN = 720, 10
PORTRAIT, LARGEST = 160, 128
"""Pixels of a landmark's picture as rendered, and as shown at most."""


@cache
def portrait(name: str) -> Image.Image:
    """A landmark alone, from nearby and from the drone's height."""
    placement = Placement(name, 0.0, 0.0, 2.5)
    kind, distance = placement.kind, 1.6
    down = math.degrees(math.atan2(FLIGHT_HEIGHT - kind.height / 2, distance))
    reach = max(1.05 * kind.footprint, 0.62 * kind.height)
    fov = 2 * math.degrees(math.atan2(reach, distance - 0.3 * kind.footprint))
    camera = Camera(CameraConfig(PORTRAIT, PORTRAIT, fov, down))
    pose = camera.pose(Pose.level(torch.tensor([[-distance, 0.0]]), torch.zeros(1), FLIGHT_HEIGHT))
    config = RenderConfig(shadows=True, samples=2)
    return Image.fromarray(Renderer(SimScene.of([Layout((placement,))]), camera, config).first_person(pose)[0].numpy())


def from_above(layout: Layout) -> NDArray[np.uint8]:
    """A layout from straight above, x up and y left: [MAP, MAP, 3]."""
    renderer = Renderer(SimScene.of([layout]), config=RenderConfig(shadows=True))
    image: NDArray[np.uint8] = renderer.overhead(MAP, MAP_EXTENT, samples=1)[0].numpy()
    return image


def _map(ground: NDArray[np.uint8]) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    image = Image.fromarray(ground).resize((FINE * MAP, FINE * MAP), Image.Resampling.BICUBIC)
    return image, ImageDraw.Draw(image)


def _points(xy: Floats) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in map_pixels(xy, FINE * MAP)]


def _letters(draw: ImageDraw.ImageDraw, layout: Layout) -> None:
    """A letter on each landmark."""
    for letter, entry in zip(string.ascii_uppercase, layout.landmarks, strict=False):
        [place] = _points(np.array([[entry.x, entry.y]]))
        draw.text(place, letter, WHITE, font(FINE * 19), anchor="mm", stroke_width=FINE * 2, stroke_fill=INK)


def _legend(sheet: Image.Image, layout: Layout, top: int) -> None:
    """Pictures of the landmarks in a row, with their letters."""
    count = len(layout.landmarks)
    size = min(LARGEST, (SIZE[0] - 2 * MARGIN) // count - 4)
    draw = ImageDraw.Draw(sheet)
    for number, entry in enumerate(layout.landmarks):
        x = MARGIN + number * (size + 4)
        sheet.paste(portrait(entry.name).resize((size, size), Image.Resampling.BICUBIC), (x, top))
        letter = string.ascii_uppercase[number]
        draw.text((x + 4, top + 2), letter, WHITE, font(19), stroke_width=2, stroke_fill=INK)


def _scale(draw: ImageDraw.ImageDraw, left: int, top: int) -> None:
    length = MAP / MAP_EXTENT
    draw.line((left, top, left + length, top), INK, 3)
    for x in (left, left + length):
        draw.line((x, top - 5, x, top + 5), INK, 3)
    draw.text((left + length + 10, top), "1 metre", INK, font(15), anchor="lm")


def writer_sheet(ground: NDArray[np.uint8], layout: Layout, segments: Sequence[Segment]) -> Image.Image:
    """The path in a layout as a writer sees it."""
    sheet = Image.new("RGB", SIZE, PAPER)
    image, draw = _map(ground)
    for segment, colour in zip(segments, COLOURS, strict=False):
        draw_arrow(draw, segment.path, colour, FINE * MAP)
    _letters(draw, layout)
    draw_drone(draw, segments[0].start_xy, segments[0].start_yaw, FINE * MAP)
    for number, segment in enumerate(segments, start=1):
        draw_number(draw, segment.path, str(number), COLOURS[number - 1], FINE * MAP)
    sheet.paste(image.resize((MAP, MAP), Image.Resampling.BOX), (MARGIN, MARGIN))
    poses = [(np.array(segment.start_xy), segment.start_yaw) for segment in segments]
    poses.append((segments[-1].path[-1], heading(segments[-1].path)))
    draw = ImageDraw.Draw(sheet)
    for number, view in enumerate(views(layout, poses, [*(segment.path for segment in segments), None])):
        x = MAP + 2 * MARGIN + 2 + number % 2 * (VIEW.width + 6)
        y = MARGIN + number // 2 * (VIEW.height + 30)
        sheet.paste(view, (x, y + 26))
        words = [("start of", number + 1)] if number < len(segments) else []
        words = [("end of", number), *words] if number else words
        for text, which in words:
            draw.text((x, y + 13), text, INK, font(15), anchor="lm")
            x += round(font(15).getlength(text)) + 5
            sheet.paste(badge(str(which), COLOURS[which - 1], 22), (x, y + 2))
            x += 34
    _scale(draw, MAP + 2 * MARGIN + 2 + VIEW.width + 6, MARGIN + MAP - 10)
    _legend(sheet, layout, 2 * MARGIN + MAP)
    return sheet


def reader_sheet(ground: NDArray[np.uint8], layout: Layout, segment: Segment) -> Image.Image:
    """Where the drone stands in a layout as a reader sees it, with x to the right and y up, metres."""
    sheet = Image.new("RGB", SIZE, PAPER)
    image, draw = _map(ground)
    for metre in np.arange(-2.0, 2.5, 0.5):
        for ends in ([[metre, -ARENA_HALF], [metre, ARENA_HALF]], [[-ARENA_HALF, metre], [ARENA_HALF, metre]]):
            (left, top), (right, bottom) = _points(np.array(ends))
            draw.line((left, top, right, bottom), (200, 215, 190), FINE if metre % 1 == 0 else 1)
    _letters(draw, layout)
    draw_drone(draw, segment.start_xy, segment.start_yaw, FINE * MAP)
    edge = 34
    sheet.paste(image.resize((MAP - edge, MAP - edge), Image.Resampling.BOX), (MARGIN + edge, MARGIN))
    draw = ImageDraw.Draw(sheet)
    for metre in np.arange(-2.0, 2.5, 0.5):
        away = float(map_pixels(np.array([-metre, -metre]), MAP - edge)[0])
        mark = f"{metre:g}".replace("-", "−")
        draw.text((MARGIN + edge + away, MARGIN + MAP - edge + 4), mark, INK, font(15), anchor="ma")
        draw.text((MARGIN + edge - 4, MARGIN + MAP - edge - away), mark, INK, font(15), anchor="rm")
    draw.text((MARGIN + edge + MAP - edge, MARGIN + MAP - 16), "x", INK, font(17), anchor="rm")
    draw.text((MARGIN + 14, MARGIN + 8), "y", INK, font(17), anchor="mm")
    left = MAP + 2 * MARGIN + 2
    draw.text((left, MARGIN + 13), "what the drone sees where it stands now", INK, font(15), anchor="lm")
    large = CameraConfig(2 * VIEW.width, 2 * VIEW.height)
    [view] = views(layout, [(np.array(segment.start_xy), segment.start_yaw)], config=large)
    sheet.paste(view, (left, MARGIN + 26))
    _legend(sheet, layout, 2 * MARGIN + MAP)
    return sheet


def png(image: Image.Image) -> bytes:
    """An image as the bytes of a PNG file."""
    buffer = io.BytesIO()
    image.save(buffer, "png", compress_level=2)
    return buffer.getvalue()


def draw_plan(plan: Plan, out: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Write all sheets; returns the SHA-256 of writers' and of readers' sheets, by their path below `out`."""
    written: dict[str, str] = {}
    read: dict[str, str] = {}
    readings: dict[str, list[Reading]] = {}
    for reading in plan.readings:
        readings.setdefault(reading.paragraph, []).append(reading)
    for entry in plan.assignments:
        ground = from_above(entry.layout)
        segments = entry.paragraph.segments
        path = f"writers/{entry.writer}/{entry.sheet}"
        written[path] = write_file(out / path, png(writer_sheet(ground, entry.layout, segments)))
        for reading in readings.get(entry.paragraph.id, []):
            path = f"readers/{reading.reader}/{reading.sheet}"
            image = reader_sheet(ground, entry.layout, segments[reading.segment])
            read[path] = write_file(out / path, png(image))
    return written, read


def write_file(path: Path, content: bytes) -> str:
    """Write a file, with its folders; returns its SHA-256."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_bytes(content)
    return hashlib.sha256(content).hexdigest()


def write_lines(path: Path, rows: Sequence[object]) -> None:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


def brief(profile: Profile, protocol: Path) -> str:
    """What somebody is told: who they are, and the protocol."""
    person = "\n".join(f"- **{trait}**: {text}" for trait, text in profile.traits.items())
    return protocol.read_text("utf-8").replace("PROFILE", person)


def write_folders(plan: Plan, writers: Sequence[Profile], out: Path) -> None:
    """Briefs and reply forms, empty where nothing has been written, beside the sheets."""
    for profile in writers:
        folder = out / "writers" / profile.id
        own = [entry for entry in plan.assignments if entry.writer == profile.id]
        form = [
            {"sheet": entry.sheet, "sentences": [segment.instruction for segment in entry.paragraph.segments]}
            for entry in own
        ]
        write_lines(folder / "reply.jsonl", form)
        write_file(folder / "brief.md", brief(profile, HOME / "writers.md").encode())
        folder = out / "readers" / profile.id
        reads = [reading for reading in plan.readings if reading.reader == profile.id]
        write_lines(folder / "reply.jsonl", [{"sheet": reading.sheet, "x": None, "y": None} for reading in reads])
        write_file(folder / "brief.md", brief(profile, HOME / "readers.md").encode())


def write_plan(plan: Plan, hashes: tuple[dict[str, str], dict[str, str]], seed: int, out: Path) -> None:
    """What the replies are put together with: paragraphs and their sheets, layouts, readings."""
    written, read = hashes
    write_lines(out / "paragraphs.jsonl", [_row(entry, written) for entry in plan.assignments])
    rows = [{**vars(reading), "sha256": read[f"readers/{reading.reader}/{reading.sheet}"]} for reading in plan.readings]
    write_lines(out / "readings.jsonl", rows)
    write_lines(
        out / "plan.json", [{"seed": seed, "paragraphs": len(plan.assignments), "readings": len(plan.readings)}]
    )


def _row(entry: Assignment, hashes: dict[str, str]) -> dict[str, object]:
    return {
        "writer": entry.writer,
        "sheet": entry.sheet,
        "sha256": hashes[f"writers/{entry.writer}/{entry.sheet}"],
        "world": entry.world,
        "paragraph": entry.paragraph.to_json(),
        "layout": entry.layout.to_document(),
    }


def main() -> None:
    """Write everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=26)
    parser.add_argument("--sheets", type=int, help="draw only the first so many of each writer, to look at them")
    options = parser.parse_args()
    torch.set_num_threads(1)
    writers = profiles()
    packed = {entry.id: entry for entry in read_written()[1]} if PACKED.exists() else {}
    plan = make_plan(options.seed, writers, packed)
    if options.sheets:
        kept = tuple(entry for entry in plan.assignments if int(entry.sheet[:3]) <= options.sheets)
        names = {entry.paragraph.id for entry in kept}
        plan = Plan(kept, tuple(reading for reading in plan.readings if reading.paragraph in names))
    hashes = draw_plan(plan, options.out)
    write_folders(plan, writers, options.out)
    write_plan(plan, hashes, options.seed, options.out)
    count = sum(len(entry.paragraph.segments) for entry in plan.assignments)
    print(f"{options.out}: {len(plan.assignments)} paragraphs, {count} segments, {len(plan.readings)} readings")


if __name__ == "__main__":
    main()
