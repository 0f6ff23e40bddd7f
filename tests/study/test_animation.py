"""What raters watch shows the flight, the right way round, and nothing that they must not know."""

import io
import math

import av
import numpy as np
import pytest
from PIL import Image

from small_evaluation import plain_episode
from wordwing.study.animation import animate, frames
from wordwing.viz.labelled import SIZE, badge_places, draw_background, legend, numbered, portraits
from wordwing.world.catalogue import catalogue
from wordwing.world.layout import Layout, Placement
from wordwing.world.samplers import sample_layout

BLUE = (0, 114, 178)  # Okabe and Ito's
ACROSS = 5.0  # metres that the image spans
BEND = [(-1.5, 0.5), (-0.5, 0.5), (0.5, 0.5), (1.5, 0.5), (1.5, 1.25), (1.5, 2.0)]  # ahead, then left


def at(frame: Image.Image, x: float, y: float) -> np.ndarray:
    """The pixel at a place in the world: x up, y left."""
    return np.asarray(frame)[int(SIZE * (0.5 - x / ACROSS)), int(SIZE * (0.5 - y / ACROSS))].astype(int)


def blue(pixel: np.ndarray) -> bool:
    return bool(np.abs(pixel - BLUE).max() < 12)


@pytest.fixture(scope="module")
def empty():
    return draw_background(Layout(()))


def test_the_path_so_far_is_drawn_where_it_was_flown(empty):
    drawn = list(frames(plain_episode(BEND), empty))
    assert len(drawn) == len(BEND)
    assert drawn[0].size == (640, 640)
    for index, frame in enumerate(drawn):
        for leg, (x, y) in enumerate([(-1.0, 0.5), (0.0, 0.5), (0.8, 0.5), (1.5, 0.85)]):
            assert blue(at(frame, x, y)) == (leg < index), (index, leg)
            assert not blue(at(frame, x, -y))


def test_what_the_drone_has_in_view_is_lit_and_the_rest_is_dimmed(empty):
    for yaw in (0.0, 2.0, -1.0):
        [frame] = frames(plain_episode([(0.0, 0.0)], poses=np.array([[0.0, 0.0, 0.7, 0.0, 0.0, yaw]])), empty)

        def brightness(bearing: float, frame=frame, yaw=yaw) -> float:
            angle = yaw + math.radians(bearing)
            return np.mean([at(frame, r * math.cos(angle), r * math.sin(angle)) for r in np.arange(0.5, 2.0, 0.05)])

        seen = [brightness(bearing) for bearing in (-38, 0, 38)]
        unseen = [brightness(bearing) for bearing in (-46, 46, 90, 180, 270)]
        assert min(seen) > 1.5 * max(unseen)


def test_borders_have_the_colours_that_the_guidelines_speak_of(empty):
    [frame] = frames(plain_episode([(0.0, 0.0)]), empty)
    top, right, bottom, left = (
        np.asarray(frame)[place].astype(int) for place in ((6, 320), (320, 633), (633, 320), (320, 6))
    )
    assert top[0] > 150 > 60 > max(top[1:])
    assert min(right) > 220
    assert bottom[2] > 150 > 80 > max(bottom[:2])
    assert min(left[:2]) > 150 > 80 > left[2]


def test_the_demonstration_is_not_shown(empty):
    one = plain_episode(BEND)
    other = plain_episode(BEND, gold=np.array([[-2.0, -2.0], [2.0, -2.0]]))
    assert animate(one, empty) == animate(other, empty)


def test_a_video_has_every_state_and_a_still_its_end_and_both_are_the_same_again(empty):
    flight = plain_episode(BEND)
    video, still = animate(flight, empty)
    assert animate(flight, draw_background(Layout(()))) == (video, still)
    with av.open(io.BytesIO(video)) as opened:
        shown = [frame.to_image() for frame in opened.decode(video=0)]
    assert len(shown) > len(BEND)
    drawn = list(frames(flight, empty))
    end = np.asarray(Image.open(io.BytesIO(still)).convert("RGB")).astype(int)
    for seen, meant in ((shown[2], drawn[2]), (shown[-1], drawn[-1])):
        assert np.abs(np.asarray(seen).astype(int) - np.asarray(meant)).mean() < 6
    assert np.abs(end - np.asarray(drawn[-1])).mean() < 4


CORNERS = Layout(
    (
        Placement("Barrel", -1.5, -1.5),
        Placement("Banana", 1.5, -1.5),
        Placement("Gorilla", 1.5, 1.5),
        Placement("Pumpkin", -1.5, 1.5),
    )
)


def test_objects_are_numbered_by_where_they_are_in_the_image():
    assert [entry.name for entry in numbered(CORNERS)] == ["Gorilla", "Banana", "Pumpkin", "Barrel"]
    turned = Layout(tuple(reversed(CORNERS.landmarks)))
    assert numbered(turned) == numbered(CORNERS)


@pytest.mark.parametrize("corpus", ["cage", "field", "house"])
def test_numbers_lie_beside_their_objects_and_not_over_each_other(corpus, rng):
    for _ in range(5):
        layout = sample_layout(corpus, rng)
        places = np.array(badge_places(layout))
        assert len(places) == len(layout.landmarks)
        apart = np.linalg.norm(places[:, None] - places[None], axis=-1) + 1000 * np.eye(len(places))
        assert apart.min() > 16
        assert places.min() > 13
        assert places.max() < SIZE - 13
        for entry, (column, row) in zip(numbered(layout), places, strict=True):
            x, y = ACROSS * (0.5 - row / SIZE), ACROSS * (0.5 - column / SIZE)
            assert math.hypot(x - entry.x, y - entry.y) < entry.kind.footprint + 0.2


def test_each_object_is_shown_as_the_drone_would_see_it(rng):
    drawn = portraits(CORNERS)
    assert len(drawn) == 4
    # By hue: gorillas are dark, bananas yellow, pumpkins orange; what is behind them differs, so the middle counts.
    middles = [np.asarray(image)[45:75, 55:90].reshape(-1, 3).astype(int) for image in drawn]
    gorilla, banana, pumpkin, _barrel = middles
    assert (gorilla.max(axis=1) < 90).mean() > 0.1
    assert ((banana[:, 0] > 180) & (banana[:, 1] > 150) & (banana[:, 2] < 110)).mean() > 0.05
    assert ((pumpkin[:, 0] > 180) & (abs(pumpkin[:, 1] - 115) < 50) & (pumpkin[:, 2] < 90)).mean() > 0.2
    sheet = legend(Layout(tuple(sample_layout("field", rng).landmarks)))
    assert sheet.width == 786
    assert legend(Layout(())).size[0] == 786


def test_no_name_is_in_a_video(rng):
    layout = sample_layout("field", rng)
    video, still = animate(plain_episode(BEND, layout=layout, system="pvn2-sureal"), draw_background(layout))
    names = [entry.name for entry in catalogue() if len(entry.name) > 4] + ["pvn2", "sureal", "fly on", "cage-0001"]
    for content in (video, still):
        assert not any(name.lower().encode() in content.lower() for name in names)
