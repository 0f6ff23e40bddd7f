"""Picture sheets show each thing in its place, under its own name."""

from itertools import pairwise

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage

from wordwing.viz.sheets import (
    contact_sheet,
    frame_sheet,
    lab_portraits,
    landmark_sheet,
    layout_image,
    sim_portraits,
)
from wordwing.world.catalogue import landmark
from wordwing.world.layout import Layout, Placement

# Things whose colour everybody knows.
COLOURS = {"FireHydrant": "red", "Container": "blue", "Banana": "yellow"}
LANDMARKS = [landmark(name) for name in COLOURS]


def pixels(picture: Image.Image) -> np.ndarray:
    return np.asarray(picture.convert("RGB")).astype(int)


def box_of(mask: np.ndarray) -> tuple[slice, slice]:
    """The smallest rectangle around what is true."""
    rows, columns = np.nonzero(mask)
    return slice(rows.min(), rows.max() + 1), slice(columns.min(), columns.max() + 1)


def painted(portrait: np.ndarray, colour: str) -> np.ndarray:
    """[36, 88] which pixels on the floor ahead, below the fences, have a colour."""
    red, green, blue = np.moveaxis(portrait[36:, 20:108].astype(int), -1, 0)
    return {
        "red": (red > 1.6 * green) & (red > 1.6 * blue),
        "blue": (blue > 1.5 * red) & (blue > 1.15 * green),
        "yellow": (green > 1.3 * blue) & (green > 0.75 * red) & (red > 1.05 * green),
    }[colour]


def colour_of(portrait: np.ndarray) -> str:
    return max(COLOURS.values(), key=lambda colour: painted(portrait, colour).sum())


@pytest.fixture(scope="module")
def lab() -> list[np.ndarray]:
    return list(lab_portraits(LANDMARKS))


def test_a_sim_portrait_is_of_the_landmark_asked_for_in_the_order_asked_for():
    assert [colour_of(portrait) for portrait in sim_portraits(LANDMARKS)] == list(COLOURS.values())
    assert [colour_of(portrait) for portrait in sim_portraits(LANDMARKS[::-1])] == list(COLOURS.values())[::-1]


def test_a_lab_portrait_is_of_the_landmark_asked_for_in_the_order_asked_for(lab):
    assert [colour_of(portrait) for portrait in lab] == list(COLOURS.values())


def test_portraits_show_a_landmark_straight_ahead(lab):
    for portraits in (sim_portraits(LANDMARKS), lab):
        for portrait, colour in zip(portraits, COLOURS.values(), strict=True):
            _, columns = np.nonzero(painted(portrait, colour))
            assert len(columns) > 60
            assert columns.mean() + 20.5 == pytest.approx(64, abs=6), colour


PAINTS = [(220, 30, 30), (30, 160, 30), (30, 30, 220), (200, 200, 0), (0, 200, 200), (200, 0, 200), (120, 120, 120)]


def plain(paint: tuple[int, int, int]) -> np.ndarray:
    return np.full((20, 60, 3), paint, np.uint8)


def sheet_of(count: int, columns: int, title: str = "") -> np.ndarray:
    """Plain pictures with captions that grow."""
    pictures, captions = [plain(paint) for paint in PAINTS[:count]], ["m" * (n + 1) for n in range(count)]
    return pixels(contact_sheet(pictures, captions, columns, scale=2, title=title))


def tiles(sheet: np.ndarray, count: int) -> list[tuple[slice, slice]]:
    return [box_of((sheet == paint).all(axis=-1)) for paint in PAINTS[:count]]


@pytest.mark.parametrize(("count", "columns"), [(7, 3), (6, 3), (1, 5), (4, 1)])
def test_a_contact_sheet_is_read_line_by_line_from_the_left(count, columns):
    found = tiles(sheet_of(count, columns), count)
    assert all((rows.stop - rows.start, cols.stop - cols.start) == (40, 120) for rows, cols in found)
    tops = sorted({rows.start for rows, _ in found})
    lefts = sorted({cols.start for _, cols in found})
    assert len(tops) == -(-count // columns)
    for number, (rows, cols) in enumerate(found):
        assert (tops.index(rows.start), lefts.index(cols.start)) == divmod(number, columns)
    assert all(b - a > 40 for a, b in pairwise(tops))
    assert all(b - a > 120 for a, b in pairwise(lefts))


def test_each_image_of_a_contact_sheet_stands_over_its_own_caption():
    sheet = sheet_of(7, 3)
    widths = []
    for rows, cols in tiles(sheet, 7):
        below = sheet[rows.stop : rows.stop + 20, cols]
        _, ink = np.nonzero(below.max(axis=-1) < 120)
        widths.append(np.ptp(ink))
    assert np.diff(widths) == pytest.approx(np.diff(widths).mean(), abs=2)  # a letter more each
    assert np.diff(widths).min() > 5


def test_a_title_stands_above_all_images():
    without, titled = sheet_of(6, 3), sheet_of(6, 3, title="a title")
    top = min(rows.start for rows, _ in tiles(titled, 6))
    assert (titled[:top].max(axis=-1) < 120).sum() > 30
    above = without[: min(rows.start for rows, _ in tiles(without, 6))]
    assert (above == above[0, 0]).all()


def test_small_images_are_enlarged_without_blur():
    checker = np.kron(np.indices((4, 4)).sum(axis=0) % 2, np.ones((1, 1)))[..., None].repeat(3, axis=-1)
    sheet = pixels(contact_sheet([(200 * checker).astype(np.uint8)], [""], 1, scale=8))
    rows, cols = box_of((sheet == 0).all(axis=-1))
    assert np.array_equal(sheet[rows, cols], np.kron(200 * checker[..., 0], np.ones((8, 8)))[..., None].repeat(3, -1))


def test_the_landmark_sheet_has_the_sim_look_on_the_left_and_the_lab_look_on_the_right():
    labs = [np.full((72, 128, 3), paint, np.uint8) for paint in PAINTS[: len(LANDMARKS)]]
    sheet = pixels(landmark_sheet(LANDMARKS, labs, "both looks"))
    order = []
    for rows, cols in tiles(sheet, len(LANDMARKS)):
        width = cols.stop - cols.start
        order.append(cols.start)
        portrait = np.zeros((72, 128, 3))
        portrait[4:68, 24:104] = sheet[rows, cols.start - width : cols.start][::2, ::2]
        assert colour_of(portrait) == list(COLOURS.values())[len(order) - 1]
    assert order == sorted(order)


def test_a_layout_image_has_each_name_at_its_landmarks_place_x_up_and_y_left():
    places = {"ConniferCluster": (1.2, 0.8), "Box": (-1.0, -1.3), "Cactus": (0.3, 1.7), "Pumpkin": (-1.7, 0.4)}
    picture = pixels(layout_image(Layout(tuple(Placement(name, x, y) for name, (x, y) in places.items()))))
    white = (picture > 245).all(axis=-1)
    size, widths = len(picture), {}
    for name, (x, y) in places.items():
        # The picture shows the arena, 4.7 m, and 15 cm around it.
        row, column = size * (0.5 - x / 5.0), size * (0.5 - y / 5.0)
        window = slice(round(row) - 14, round(row) + 14), slice(round(column) - 80, round(column) + 80)
        rows, columns = np.nonzero(white[window])
        assert len(rows) > 20, name
        assert (columns.min() + columns.max()) / 2 == pytest.approx(80, abs=3), name
        assert (rows.min() + rows.max()) / 2 == pytest.approx(14, abs=4), name
        widths[name] = np.ptp(columns)
        white[window] = False
    assert not white.any()
    assert sorted(widths, key=widths.__getitem__) == ["Box", "Cactus", "Pumpkin", "ConniferCluster"]


def test_a_layout_image_shows_the_landmarks_under_their_names():
    picture = pixels(layout_image(Layout((Placement("Pumpkin", 1.3, 0.9), Placement("Container", -1.1, 1.2)))))
    red, green, blue = np.moveaxis(picture[40:-40, 40:-40], -1, 0)
    size = len(picture)
    for mask, (x, y) in (((red > 1.3 * green) & (green > 2 * blue), (1.3, 0.9)), ((blue > 1.3 * red), (-1.1, 1.2))):
        rows, columns = np.nonzero(mask)
        assert np.median(rows) + 40 == pytest.approx(size * (0.5 - x / 5.0), abs=9)
        assert np.median(columns) + 40 == pytest.approx(size * (0.5 - y / 5.0), abs=9)


def test_a_frame_of_a_sheet_depends_on_seed_and_number_and_not_on_how_many_there_are():
    def frames(count: int, seed: int) -> list[np.ndarray]:
        sheet = pixels(frame_sheet("sim", "cage", count, seed))
        drawn = (sheet != sheet[0, 0]).any(axis=-1)
        rows = drawn[:, 20:250].mean(axis=1) > 0.98  # letters leave gaps, pictures do not
        groups, found = ndimage.label(drawn[rows].mean(axis=0) > 0.98)
        assert found == count
        pictures = [sheet[rows][:, groups == number + 1] for number in range(count)]
        assert all(picture.shape == (144, 256, 3) for picture in pictures)  # twice the camera's size
        return pictures

    [alone], [first, second], [other] = frames(1, 3), frames(2, 3), frames(1, 4)
    assert np.array_equal(alone, first)
    assert np.abs(first - second).mean() > 3
    assert np.abs(first - other).mean() > 3
