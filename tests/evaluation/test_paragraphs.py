"""Pictures of datasets show each path in its colour, each sentence once, and everything where it belongs."""

import math
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from wordwing.commands.show import examples, paragraph
from wordwing.data.dataset import Dataset, Source, write_dataset
from wordwing.data.scenes import Scene
from wordwing.data.schema import Instruction, Paragraph, Segment, Window
from wordwing.errors import WordwingError
from wordwing.language.meaning.clauses import Clause
from wordwing.viz import sheets as paragraphs
from wordwing.viz.drawing import FLOWN, INK, PAPER, map_pixels
from wordwing.viz.overhead import Stroke, _apart, draw_map, overheads, readable
from wordwing.viz.sheets import (
    COLUMN,
    MAP,
    MARGIN,
    SEGMENT_COLOURS,
    instructions_page,
    meaning_words,
    mixed,
    paragraph_image,
    save_small,
)
from wordwing.world.layout import Layout, Placement

ARENA = Layout((Placement("Barrel", 1.5, 1.5), Placement("Palm1", -1.5, -1.5)))
GRASS = np.full((400, 400, 3), (80, 130, 60), np.uint8)


def segment(path: object, text: str = "go on", yaw: float = 0.0, *meaning: Clause) -> Segment:
    path = np.asarray(path, float)
    return Segment(text, (path[0, 0], path[0, 1]), yaw, path, meaning or None)


SQUARE = Paragraph(
    "p-7",
    "dev",
    "arena",
    (
        segment([[-1, 0.8], [1, 0.8]], "go ahead to the barrel", 0.0, Clause("reach", 0)),
        segment([[1, 0.8], [1, -0.8]], "turn and go right, " * 12, 0.0),
        segment([[1, -0.8], [-1, -0.8]], "come back", 0.0, Clause("turn_around"), Clause("leave", 0)),
    ),
)


def colour_at(picture: Image.Image, xy: tuple[float, float], size: int, corner: tuple[int, int] = (0, 0)) -> list[int]:
    column, row = map_pixels(np.array(xy), size).round().astype(int)
    return list(picture.getpixel((int(column) + corner[0], int(row) + corner[1])))


def near(found: list[int], wanted: tuple[int, int, int]) -> bool:
    return max(abs(a - b) for a, b in zip(found, wanted, strict=True)) < 12


def test_a_path_has_its_colour_a_white_edge_and_nothing_elsewhere():
    picture = draw_map(GRASS, Layout(()), [Stroke(np.array([[-1.5, 0], [1.5, 0.0]]), FLOWN)], SQUARE.segments[0], 14)
    for x in np.linspace(-1.4, 1.4, 15):
        assert near(colour_at(picture, (x, 0), 400), FLOWN)
    edge = np.asarray(picture).astype(int)[200]
    assert edge[185:215].sum(axis=-1).max() > 700, "there is white beside the path"
    assert near(colour_at(picture, (0, -1.5), 400), (80, 130, 60))


def test_the_drone_stands_at_the_start_and_looks_where_it_is_told_to():
    for yaw in (0.0, 2.0, -1.5):
        start = segment([[0.3, -0.4]], yaw=yaw)
        picture = draw_map(GRASS, Layout(()), [], start, 14)
        nose = (0.3 + 0.13 * math.cos(yaw), -0.4 + 0.13 * math.sin(yaw))
        tail = (0.3 - 0.13 * math.cos(yaw), -0.4 - 0.13 * math.sin(yaw))
        assert near(colour_at(picture, nose, 400), INK)
        assert not near(colour_at(picture, tail, 400), INK)


def test_every_segment_has_its_own_colour_on_the_map_and_beside_its_sentence():
    picture = paragraph_image(SQUARE, ARENA, "a title")
    corner = (MARGIN, 2 * MARGIN + 24)
    quarters = [(-0.5, 0.8), (1, 0.4), (0.5, -0.8)]
    for point, colour in zip(quarters, SEGMENT_COLOURS, strict=False):
        assert near(colour_at(picture, point, MAP, corner), colour)
    margin = np.asarray(picture)[:, 2 * MARGIN + MAP : 2 * MARGIN + MAP + 28].astype(int)
    for index, colour in enumerate(SEGMENT_COLOURS):
        discs = (np.abs(margin - colour).max(axis=-1) < 4).any(axis=1)
        begins = np.flatnonzero(np.diff(discs.astype(int)) == 1)
        assert (len(begins) == 1) == (index < 3), "three sentences, three discs"


def test_a_page_grows_with_its_sentences_and_none_is_cut_off():
    short = paragraph_image(SQUARE, ARENA, "short")
    assert short.size == (3 * MARGIN + MAP + COLUMN, 3 * MARGIN + 24 + MAP)
    words = " ".join(["all the way around the barrel and then some"] * 12)
    many = Paragraph("p", "dev", "arena", tuple(segment([[0, 0], [1, 0]], words) for _ in range(9)))
    long = paragraph_image(many, ARENA, "long")
    assert long.height > short.height
    last = np.asarray(long)[-60:, 2 * MARGIN + MAP + 44 :].astype(int)
    assert (np.abs(last - PAPER).max(axis=-1) > 60).any(), "the last line is there"


def test_meanings_are_said_in_the_judges_terms():
    meaning = [
        Clause("turn", side="left", amount=math.pi / 2),
        Clause("pass", 0, side="left"),
        Clause("circle", 1, side="right", amount=math.pi),
        Clause("between", 0, "red"),
        Clause("forward", amount=0.6),
        Clause("reach_side", 1, side="behind"),
    ]
    assert meaning_words(meaning, ARENA) == (
        "turn left 90°; pass Barrel, left; circle Palm1, right 180°; between Barrel and red fence; forward 0.6 m; "
        "reach side Palm1, behind"
    )


def test_colours_are_darkened_until_they_can_be_read():
    def luminance(colour: tuple[int, int, int]) -> float:
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in np.array(colour) / 255]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    for colour in SEGMENT_COLOURS:
        assert (luminance(PAPER) + 0.05) / (luminance(readable(colour)) + 0.05) >= 4.45
    assert len(set(SEGMENT_COLOURS)) == len(SEGMENT_COLOURS) == 8


def test_discs_that_would_hide_each_other_are_moved_apart():
    places = [np.array([100.0, 100.0])] * 4 + [np.array([300.0, 50.0])]
    found = _apart(places, 20.0)
    assert found[0] == (100, 100)
    assert found[4] == (300, 50)
    apart = [math.dist(a, b) for i, a in enumerate(found) for b in found[:i]]
    assert min(apart) >= 20 - 1e-9
    assert max(math.dist(place, (100, 100)) for place in found[:4]) < 45


def instruction(number: int, kind: str | None, layout: str = "arena") -> Instruction:
    meaning = () if kind is None else (Clause(kind, 0),)
    return Instruction(
        f"p/{number}", "dev", layout, None, 1, segment([[0, 0], [1, 0]], f"sentence {number}", 0.0, *meaning)
    )


def test_rare_kinds_are_shown_as_often_as_common_ones(rng):
    entries = [instruction(i, "reach") for i in range(50)] + [instruction(50 + i, "face") for i in range(3)]
    chosen = mixed(entries, 8, rng)
    assert len({entry.id for entry in chosen}) == 8
    assert Counter(entry.segment.meaning[-1].kind for entry in chosen) == {"reach": 5, "face": 3}


def test_all_are_shown_where_there_are_few_and_fresh_layouts_come_first(rng):
    entries = [instruction(i, None, layout=str(i // 5)) for i in range(20)]
    assert {entry.layout for entry in mixed(entries, 4, rng)} == {"0", "1", "2", "3"}
    assert len(mixed(entries, 99, rng)) == 20


def test_a_page_has_a_map_for_each_instruction_in_rows():
    entries = [
        Instruction(f"p/{i}", "dev", "arena", None, 1, segment([[-1, 0.2 * i], [1, 0.2 * i]], "go on"))
        for i in range(5)
    ]
    page = instructions_page(entries, [ARENA] * 5, "five", columns=3)
    tile = paragraphs.TILE
    assert page.width == 3 * (tile + MARGIN) + MARGIN
    rows = [2 * MARGIN + 28, 2 * MARGIN + 28 + tile + 14 + 26 + MARGIN]
    for index in range(5):
        corner = (MARGIN + index % 3 * (tile + MARGIN), rows[index // 3])
        assert near(colour_at(page, (0.5, 0.2 * index), tile, corner), FLOWN)
    empty = np.asarray(page)[rows[1] :, MARGIN + 2 * (tile + MARGIN) :]
    assert (empty == PAPER).all()


def test_layouts_are_drawn_side_by_side_as_they_are_alone():
    two = overheads([ARENA, Layout(())], 64)
    assert two.shape == (2, 64, 64, 3)
    np.testing.assert_array_equal(two[1], overheads([Layout(())], 64)[0])
    assert (two[0] != two[1]).any()


@pytest.mark.parametrize("ending", [".png", ".jpg", ".webp"])
def test_a_small_file_is_small_and_still_the_image(ending, tmp_path, rng):
    noise = Image.fromarray(rng.integers(0, 255, (200, 200, 3), dtype=np.uint8)).resize((400, 400))
    noise.paste(FLOWN, (0, 0, 400, 200))
    path = tmp_path / f"page{ending}"
    save_small(noise, path, limit=60_000)
    assert path.stat().st_size < 60_000
    with Image.open(path) as found:
        assert found.size == (400, 400)
        assert near(list(found.convert("RGB").getpixel((200, 80))), FLOWN)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory) -> Dataset:
    others = [Paragraph(f"q-{i}", "dev", "arena", SQUARE.segments[:1]) for i in range(4)]
    nothing = Paragraph("empty", "dev", "arena", ())
    source = Source("cage", "generated", 0, "by hand")
    folder = tmp_path_factory.mktemp("data") / "mini"
    return write_dataset(folder, source, {"arena": ARENA}, [SQUARE, *others, nothing])


def test_the_commands_write_what_they_are_asked_for(dataset, tmp_path, capsys):
    paragraph(dataset.folder, id="p-7", out=tmp_path / "one.png")
    examples(dataset.folder, count=4, out=tmp_path / "page")
    assert Image.open(tmp_path / "one.png").width == 3 * MARGIN + MAP + COLUMN
    assert Image.open(tmp_path / "page.webp").width <= 1800
    assert (tmp_path / "page.webp").stat().st_size < 900_000
    assert capsys.readouterr().out.split() == [str(tmp_path / "one.png"), str(tmp_path / "page.webp")]


def test_as_many_examples_as_are_allowed_fit_into_a_webp(tmp_path, monkeypatch):
    pages: list[Image.Image] = []
    monkeypatch.setattr(paragraphs, "overheads", lambda layouts, size: [GRASS] * len(layouts))
    monkeypatch.setattr(paragraphs, "draw_map", lambda *_, **__: Image.new("RGB", (400, 400)))
    monkeypatch.setattr(paragraphs, "save_small", lambda picture, path: pages.append(picture))
    many = [Paragraph(f"p-{i}", "dev", "arena", (segment([[0, 0], [1, 0]], "go on " * 20),)) for i in range(200)]
    data = write_dataset(tmp_path / "data", Source("cage", "generated", 0, "by hand"), {"arena": ARENA}, many)
    examples(data.folder, count=200)
    assert max(pages[0].size) <= 16383


def test_a_paragraph_in_a_scene_is_drawn_window_by_window(tmp_path):
    legs = tuple(segment([[i, 0], [i + 1, 0]], f"leg {i}") for i in range(3))
    windows = {(0, 0): Window(0.5, 0, 0), (2, 2): Window(2.5, 0, 1.0), (0, 1): Window(1, 0, 0)}
    room = Paragraph("walk", "dev", "room", legs, windows)
    source = Source("house", "human", 0, "by hand")
    data = write_dataset(tmp_path / "data", source, {"room": Scene(ARENA.landmarks)}, [room])
    paragraph(data.folder, out=tmp_path / "walk.png")
    picture = np.asarray(Image.open(tmp_path / "walk.png").convert("RGB")).astype(int)
    assert picture.shape[1] == 2 * (paragraphs.TILE + MARGIN) + MARGIN
    # The first and the third leg, in the colours of the first and the third.
    for colour, seen in zip(SEGMENT_COLOURS, (True, False, True), strict=False):
        assert ((np.abs(picture - colour).max(axis=-1) < 4).sum() > 150) == seen


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"id": "p-8"}, 'there is no paragraph "p-8"; did you mean'),
        ({"id": "empty"}, 'paragraph "empty" has no instructions to draw'),
        ({"split": "tset"}, 'there is no split "tset"'),
    ],
)
def test_a_paragraph_that_is_not_there_is_asked_back_about(dataset, tmp_path, options, sentence):
    with pytest.raises(WordwingError, match=sentence):
        paragraph(dataset.folder, out=tmp_path / "x.png", **options)
    assert not (tmp_path / "x.png").exists()
