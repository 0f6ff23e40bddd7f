"""Pictures of datasets: whole paragraphs, and pages of single instructions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from wordwing.data.schema import Instruction, Paragraph
from wordwing.files import replacing
from wordwing.language.meaning.clauses import Clause, Meaning, Reference
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
)
from wordwing.viz.overhead import Stroke, badge, draw_map, overheads, readable
from wordwing.world.layout import Layout

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


def _colour(number: int) -> Colour:
    """Of a segment, counted from 1."""
    return SEGMENT_COLOURS[(number - 1) % len(SEGMENT_COLOURS)]


def meaning_words(meaning: Meaning, layout: Layout) -> str:
    """A meaning for people who know the terms: "turn left 90°; pass Barrel, left; reach red fence"."""
    return "; ".join(_clause_words(clause, layout) for clause in meaning)


def _clause_words(clause: Clause, layout: Layout) -> str:
    things = [_thing(entry, layout) for entry in clause.references]
    text = " ".join([clause.kind.replace("_", " "), " and ".join(things)]).strip()
    if clause.side is not None:
        text += f", {clause.side}" if things else f" {clause.side}"
    if clause.amount is not None:
        text += f" {clause.amount:.2g} m" if clause.kind == "forward" else f" {math.degrees(clause.amount):.0f}°"
    return text


def _thing(reference: Reference, layout: Layout) -> str:
    return f"{reference} fence" if isinstance(reference, str) else layout.landmarks[reference].name


def paragraph_picture(paragraph: Paragraph, layout: Layout, title: str) -> Image.Image:
    """A paragraph in a layout: every segment's path on one map, the sentences beside it.

    Args:
        paragraph: Without windows: the layout is the arena.
        layout: The paragraph's.
        title: Which dataset, and who wrote the sentences.
    """
    numbered = list(enumerate(paragraph.segments, start=1))
    strokes = [Stroke(segment.path, _colour(number), str(number)) for number, segment in numbered]
    [ground] = overheads([layout], MAP)
    picture = draw_map(ground, layout, strokes, paragraph.segments[0], names=15)
    column = _sentences(paragraph, layout)
    height = 3 * MARGIN + 24 + max(MAP, column.height)
    sheet = Image.new("RGB", (3 * MARGIN + MAP + COLUMN, height), PAPER)
    ImageDraw.Draw(sheet).text((MARGIN, MARGIN), title, INK, font(WORDS))
    sheet.paste(picture, (MARGIN, 2 * MARGIN + 24))
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
    if numbers:
        sentences = [f"{number}. {text}" for number, text in zip(numbers, sentences, strict=True)]
    strokes = [Stroke(entry.segment.path, FLOWN) for entry in instructions]
    if numbers:
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


def save_small(picture: Image.Image, path: Path, limit: int = SMALL_FILE) -> None:
    """Write a picture in as good a quality as keeps its file under a number of bytes, whole or not at all."""
    with replacing(path) as temporary:
        if path.suffix.lower() == ".png":
            attempts = [partial(picture.quantize(colours).save, temporary, optimize=True) for colours in (256, 64, 24)]
        else:
            attempts = [partial(picture.save, temporary, quality=quality) for quality in range(92, 20, -6)]
        for attempt in attempts:
            attempt()
            if temporary.stat().st_size < limit:
                break
