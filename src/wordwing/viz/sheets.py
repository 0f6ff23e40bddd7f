"""Sheets of images: what landmarks and worlds look like to the drone and from above, and what datasets say."""

import math
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from wordwing.camera import Camera
from wordwing.data.schema import Instruction, Paragraph
from wordwing.files import replacing
from wordwing.frames import Pose
from wordwing.lab.camera import LabCamera
from wordwing.language.meaning.clauses import Clause, Kind, Meaning
from wordwing.sim.render import RenderConfig, Renderer
from wordwing.sim.scene import SimScene
from wordwing.viz.animation import wrapped
from wordwing.viz.drawing import (
    BLUISH_GREEN,
    FLOWN,
    GOLD,
    GREY,
    INK,
    PAPER,
    REDDISH_PURPLE,
    SKY_BLUE,
    VERMILLION,
    YELLOW,
    Colour,
    font,
    map_pixels,
)
from wordwing.viz.overhead import Stroke, badge, draw_map, overheads, readable
from wordwing.world.assets import Look
from wordwing.world.catalogue import Corpus, Landmark
from wordwing.world.layout import Layout, Placement
from wordwing.world.samplers import sample_layout

# The green comes last, because the ground is green.
SEGMENT_COLOURS: tuple[Colour, ...] = (
    FLOWN,
    GOLD,
    REDDISH_PURPLE,
    VERMILLION,
    SKY_BLUE,
    YELLOW,
    (60, 60, 60),
    BLUISH_GREEN,
)
"""Of the segments of a paragraph, in order; with more segments they begin again."""

MAP, TILE = 820, 404
"""Edges of the overhead view of a paragraph and of a single instruction, pixels."""

COLUMN = 600
"""Width of the sentences beside a paragraph, pixels."""

WORDS = 20
"""Size of the sentences, pixels."""

MARGIN = 20
SMALL_FILE = 900_000
"""Most bytes of a page of examples."""


def contact_sheet(
    images: Sequence[NDArray[np.uint8]],
    captions: Sequence[str],
    columns: int,
    scale: int = 2,
    title: str = "",
) -> Image.Image:
    """Lay images [H, W, 3] of one size out in rows, each over its caption."""
    height, width = images[0].shape[0] * scale, images[0].shape[1] * scale
    gap, text, head = 6, 20, 34 if title else 6
    rows = math.ceil(len(images) / columns)
    sheet = Image.new("RGB", (columns * (width + gap) + gap, head + rows * (height + text + gap)), PAPER)
    draw = ImageDraw.Draw(sheet)
    if title:
        draw.text((gap, 8), title, INK, font(18))
    for index, (image, caption) in enumerate(zip(images, captions, strict=True)):
        x = gap + index % columns * (width + gap)
        y = head + index // columns * (height + text + gap)
        sheet.paste(Image.fromarray(image).resize((width, height), Image.Resampling.NEAREST), (x, y))
        draw.text((x + 2, y + height + 2), caption, INK, font(14))
    return sheet


def portrait_pose(distance: float = 1.5, height: float = 0.7) -> Pose:
    """A hovering drone that looks along +x at a landmark `distance` ahead of it at the origin; [1]."""
    return Pose.level(torch.tensor([[-distance, 0.0]]), torch.zeros(1), height)


def sim_portraits(landmarks: Sequence[Landmark], yaw: float = 2.5) -> NDArray[np.uint8]:
    """Each landmark alone, 1.5 m ahead of the drone's own camera, in its `sim` look: [L, 72, 128, 3]."""
    layouts = [Layout((Placement(entry.name, 0.0, 0.0, yaw),)) for entry in landmarks]
    pose, count = Camera().pose(portrait_pose()), len(layouts)
    poses = Pose(pose.position.expand(count, 3).contiguous(), pose.quaternion.expand(count, 4).contiguous())
    return Renderer(SimScene.of(layouts), config=RenderConfig(shadows=True)).first_person(poses).numpy()


def lab_portraits(landmarks: Sequence[Landmark], yaw: float = 2.5) -> Iterator[NDArray[np.uint8]]:
    """The same portraits in the `lab` look, [72, 128, 3] each, one after the other through the lab's camera."""
    pose = portrait_pose()
    for entry in landmarks:
        layout = Layout((Placement(entry.name, 0.0, 0.0, yaw),))
        yield LabCamera(layout, np.random.default_rng(entry.index)).take(pose, pose).numpy()


def landmark_sheet(landmarks: Sequence[Landmark], lab: Sequence[NDArray[np.uint8]], title: str) -> Image.Image:
    """Every landmark in both looks, side by side, the middle of the drone's image."""
    pairs = zip(sim_portraits(landmarks), lab, strict=True)
    images = [np.concatenate([image[4:68, 24:104] for image in pair], axis=1) for pair in pairs]
    captions = [f"{entry.name}: {entry.nouns[0]}" for entry in landmarks]
    return contact_sheet(images, captions, columns=5, scale=2, title=title)


def frame_sheet(domain: Look, corpus: Corpus, count: int, seed: int) -> Image.Image:
    """What the drone sees at random poses in random layouts."""
    images = []
    for index in range(count):
        rng = np.random.default_rng([seed, index])
        layout = sample_layout(corpus, rng)
        xy = rng.uniform(-1.8, 1.8, 2)
        while layout.inside(xy):
            xy = rng.uniform(-1.8, 1.8, 2)
        # Roughly towards the middle: a sheet of fences would show little.
        yaw = math.atan2(-xy[1], -xy[0]) + rng.uniform(-0.8, 0.8)
        pose = Pose.level(torch.tensor(xy[None]).float(), torch.tensor([yaw]).float(), 0.7)
        if domain == "sim":
            images.append(Renderer(SimScene.of([layout])).first_person(Camera().pose(pose))[0].numpy())
        else:
            images.append(LabCamera(layout, rng).take(pose, pose).numpy())
    title = f"{domain}: what the drone sees in {count} random {corpus} layouts"
    return contact_sheet(images, [f"seed {seed}, {i}" for i in range(count)], 4, 2, title)


def layout_image(layout: Layout, size: int = 720) -> Image.Image:
    """A layout from above, x up and y left, every landmark with its name."""
    image = Image.fromarray(overheads([layout], size)[0])
    draw = ImageDraw.Draw(image)
    for placement in layout.landmarks:
        x, y = map_pixels(np.array([placement.x, placement.y]), size)
        draw.text((x, y), placement.name, "white", font(15), anchor="mm", stroke_width=2, stroke_fill=INK)
    return image


def _colour(number: int) -> Colour:
    """Of a segment, counted from 1."""
    return SEGMENT_COLOURS[(number - 1) % len(SEGMENT_COLOURS)]


def meaning_words(meaning: Meaning, layout: Layout) -> str:
    """A meaning for people who know the terms: "turn left 90°; pass Barrel, left; reach red fence"."""
    return "; ".join(_clause_words(clause, layout) for clause in meaning)


_UNITS: dict[Kind, str] = {"turn": "°", "circle": "°", "spin": "°", "hover": " s"}
"""Of amounts that are not metres."""


def _clause_words(clause: Clause, layout: Layout) -> str:
    things = [
        f"{entry} fence" if isinstance(entry, str) else layout.landmarks[entry].name for entry in clause.references
    ]
    text = " ".join([clause.kind.replace("_", " "), " and ".join(things)]).strip()
    if clause.side is not None:
        text += f", {clause.side}" if things else f" {clause.side}"
    if clause.amount is not None:
        unit = _UNITS.get(clause.kind, " m")
        text += f" {math.degrees(clause.amount):.0f}°" if unit == "°" else f" {clause.amount:.2g}{unit}"
    return text


def paragraph_image(paragraph: Paragraph, layout: Layout, title: str) -> Image.Image:
    """A paragraph in a layout: every segment's path on one map, the sentences beside it.

    Args:
        paragraph: Without windows: the layout is the arena.
        layout: The paragraph's.
        title: Which dataset, and who wrote the sentences.
    """
    numbered = list(enumerate(paragraph.segments, start=1))
    strokes = [Stroke(segment.path, _colour(number), str(number)) for number, segment in numbered]
    [ground] = overheads([layout], MAP)
    image = draw_map(ground, layout, strokes, paragraph.segments[0], names=15)
    column = _sentences(paragraph, layout)
    height = 3 * MARGIN + 24 + max(MAP, column.height)
    sheet = Image.new("RGB", (3 * MARGIN + MAP + COLUMN, height), PAPER)
    ImageDraw.Draw(sheet).text((MARGIN, MARGIN), title, INK, font(WORDS))
    sheet.paste(image, (MARGIN, 2 * MARGIN + 24))
    sheet.paste(column, (2 * MARGIN + MAP, 2 * MARGIN + 24))
    return sheet


def _sentences(paragraph: Paragraph, layout: Layout) -> Image.Image:
    """Numbered sentences in the colours of their paths, each over its meaning in grey."""
    rows = []
    for segment in paragraph.segments:
        meaning = "" if segment.meaning is None else meaning_words(segment.meaning, layout)
        rows.append(
            (wrapped(segment.instruction, COLUMN - 44, WORDS) or ["(no words)"], wrapped(meaning, COLUMN - 44, 14))
        )
    height = sum(28 * len(text) + 20 * len(small) + 22 for text, small in rows)
    column = Image.new("RGB", (COLUMN, height), PAPER)
    draw = ImageDraw.Draw(column)
    y = 0
    for number, (text, small) in enumerate(rows, start=1):
        column.paste(badge(str(number), _colour(number), 28), (0, y))
        for line in text:
            draw.text((44, y + 2), line, readable(_colour(number)), font(WORDS))
            y += 28
        for line in small:
            draw.text((44, y), line, GREY, font(14))
            y += 20
        y += 22
    return column


def instructions_page(
    instructions: Sequence[Instruction],
    layouts: Sequence[Layout],
    title: str,
    columns: int = 4,
    numbers: Sequence[int] = (),
) -> Image.Image:
    """Single instructions as small maps in rows, each over its sentence.

    Args:
        instructions: In the arena's frame.
        layouts: The arena of each.
        title: Which dataset, and who wrote the sentences.
        columns: How many in a row.
        numbers: Of each instruction, where they have an order; each then has a colour of its own.
    """
    sentences = [entry.segment.instruction or "(no words)" for entry in instructions]
    strokes = [Stroke(entry.segment.path, FLOWN) for entry in instructions]
    if numbers:
        sentences = [f"{number}. {text}" for number, text in zip(numbers, sentences, strict=True)]
        strokes = [Stroke(entry.path, _colour(n), str(n)) for entry, n in zip(strokes, numbers, strict=True)]
    texts = [wrapped(text, TILE - 4, WORDS) for text in sentences]
    rows = [range(first, min(first + columns, len(texts))) for first in range(0, len(texts), columns)]
    heights = [TILE + 14 + 26 * max(len(texts[index]) for index in row) + MARGIN for row in rows]
    across = min(columns, len(texts))
    sheet = Image.new("RGB", (across * (TILE + MARGIN) + MARGIN, 2 * MARGIN + 28 + sum(heights)), PAPER)
    draw = ImageDraw.Draw(sheet)
    draw.text((MARGIN, MARGIN), title, INK, font(WORDS))
    grounds = overheads(layouts, TILE)
    y = 2 * MARGIN + 28
    for row, height in zip(rows, heights, strict=True):
        for place, index in enumerate(row):
            x = MARGIN + place * (TILE + MARGIN)
            start, stroke = instructions[index].segment, strokes[index]
            sheet.paste(draw_map(grounds[index], layouts[index], [stroke], start, names=14), (x, y))
            ink = readable(stroke.colour) if numbers else INK
            draw.text((x + 2, y + TILE + 6), "\n".join(texts[index]), ink, font(WORDS), spacing=5)
        y += height
    return sheet


def mixed(instructions: Sequence[Instruction], count: int, rng: np.random.Generator) -> list[Instruction]:
    """Choose instructions at random, by turns of every kind of last clause where meanings are known.

    Args:
        instructions: What there is; a layout is used again only when there are no others.
        count: How many; all of them if there are fewer.
        rng: Source of every choice.
    """
    waiting: dict[str, list[Instruction]] = {}
    for index in rng.permutation(len(instructions)):
        entry = instructions[index]
        meaning = entry.segment.meaning
        waiting.setdefault(meaning[-1].kind if meaning else "", []).append(entry)
    chosen: list[Instruction] = []
    seen: set[str] = set()
    while len(chosen) < count and any(waiting.values()):
        for kind in sorted(waiting):
            if waiting[kind] and len(chosen) < count:
                fresh = next((entry for entry in waiting[kind] if entry.layout not in seen), waiting[kind][0])
                waiting[kind].remove(fresh)
                seen.add(fresh.layout)
                chosen.append(fresh)
    return [chosen[index] for index in rng.permutation(len(chosen))]


def save_small(image: Image.Image, path: Path, limit: int = SMALL_FILE) -> None:
    """Write an image in as good a quality as keeps its file under a number of bytes, whole or not at all."""
    with replacing(path) as temporary:
        if path.suffix.lower() == ".png":
            attempts = [partial(image.quantize(colours).save, temporary, optimize=True) for colours in (256, 64, 24)]
        else:
            attempts = [partial(image.save, temporary, quality=quality) for quality in range(92, 20, -6)]
        for attempt in attempts:
            attempt()
            if temporary.stat().st_size < limit:
                break
